#include <fmt/chrono.h>
#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <ctime>
#include <filesystem>

#include "cli/commands.h"
#include "cli/job_file.h"
#include "cli/progress.h"
#include "cli/settings.h"
#include "cli/summary.h"
#include "cli/version.h"
#include "core/chance.h"
#include "node/host.h"
#include "node/launcher.h"
#include "store/run_reader.h"
#include "tasks/load_task.h"

namespace drover {
namespace {

int fail(const Error& error) {
  fmt::print(stderr, "drover: {}\n", error.message);
  return kExitFailed;
}

// runs/20260701-120000-lenet-fashion-mnist.db, with a number if that is taken.
std::string default_run_file(const Job& job, std::time_t now) {
  std::string data = std::filesystem::path(job.task.data).filename().string();
  std::replace_if(
      data.begin(), data.end(), [](char c) { return c == ' ' || c == '/'; }, '-');
  const std::string stem =
      fmt::format("runs/{:%Y%m%d-%H%M%S}-{}-{}", fmt::gmtime(now), job.task.model, data);
  std::string path = stem + ".db";
  for (int number = 2; std::filesystem::exists(path); ++number)
    path = fmt::format("{}-{}.db", stem, number);
  return path;
}

// As a shell takes it: in quotes if it has anything but the usual characters.
std::string quoted(const std::string& path) {
  const bool plain = std::all_of(path.begin(), path.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '-' || c == '_';
  });
  return plain ? path : "'" + path + "'";
}

// Found out before training, not after.
Status check_save_model(const std::string& path) {
  if (path.empty()) return done();
  std::error_code ignored;
  const auto folder = std::filesystem::absolute(path, ignored).parent_path();
  if (std::filesystem::is_directory(path, ignored)) {
    return invalid_input("--save-model " + path + " is a folder; give the name of a file");
  }
  if (!std::filesystem::is_directory(folder, ignored) || ::access(folder.c_str(), W_OK) != 0) {
    return invalid_input("the model cannot be saved to " + path + ": there is no writable folder " +
                         folder.string());
  }
  return done();
}

std::string text_of(const SettingValue& value) {
  struct Visitor {
    std::string operator()(bool on) const { return on ? "true" : "false"; }
    std::string operator()(uint64_t count) const { return std::to_string(count); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const std::vector<std::string>& texts) const {
      return fmt::format("{}", fmt::join(texts, "; "));
    }
  };
  return std::visit(Visitor{}, value);
}

RunHeader make_header(const Job& job, const Task& task, const std::string& command_line,
                      std::time_t now) {
  RunHeader header;
  header.run_id =
      draw({static_cast<uint64_t>(Purpose::kRunId), static_cast<uint64_t>(::getpid()),
            static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count())});
  header.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
  header.command = command_line;
  // Names of files belong to this run alone: whoever repeats it wants others.
  Job repeatable = job;
  repeatable.run_file.clear();
  repeatable.save_model.clear();
  header.job = to_toml(repeatable);
  for (const Setting& setting : job_settings())
    header.settings.emplace_back(setting.key, text_of(setting.get(job)));
  header.environment = describe_host();
  header.environment.emplace_back("drover", kVersion);
  for (const auto& [key, value] : task.describe()) header.environment.emplace_back(key, value);
  return header;
}

// When the file was written; the beginning of time if there is none.
std::filesystem::file_time_type written_at(const std::string& path) {
  std::error_code missing;
  const auto time = std::filesystem::last_write_time(path, missing);
  return missing ? std::filesystem::file_time_type::min() : time;
}

// What became of the run, from its own record: the same words as `drover runs` prints.
int report(const Job& job, const TrainOptions& options, bool model_saved) {
  const auto reader = RunReader::open(job.run_file);
  if (!reader) return fail(reader.error());
  const auto summary = summarize(reader.value());
  if (!summary) return fail(summary.error());
  if (options.json) {
    fmt::print("{}\n", to_json_line(summary.value()));
  } else {
    fmt::print(
        "\n{}\nLook again with:   drover runs {}\nQuery it with:     sqlite3 {} 'select * from "
        "steps limit 5'\n",
        to_text(summary.value()), quoted(job.run_file), quoted(job.run_file));
    if (!job.save_model.empty() && model_saved) {
      fmt::print("The model is in:   {}\n", job.save_model);
    }
  }
  return 0;
}

}  // namespace

int train_command(const TrainOptions& options, const std::string& command_line) {
  auto read = job_of(options);
  if (!read) {
    fmt::print(stderr, "drover: {}\n", read.error().message);
    return kExitUsage;
  }
  Job job = std::move(read).value();
  if (options.print_job) {
    fmt::print("{}", to_toml(job));
    return 0;
  }
  const std::time_t now = std::time(nullptr);
  if (job.run_file.empty()) job.run_file = default_run_file(job, now);
  // Known before the data is read and anybody is started.
  std::error_code ignored;
  if (std::filesystem::is_directory(job.run_file, ignored)) {
    return fail(invalid_input("the run file " + job.run_file +
                              " is a folder. Give the name of a file with --run-file, such as " +
                              job.run_file + "/run.db."));
  }
  if (std::filesystem::exists(job.run_file, ignored) &&
      std::filesystem::file_size(job.run_file, ignored) > 0) {
    return fail(invalid_input("the run file " + job.run_file +
                              " exists already and is never overwritten. Choose another with "
                              "--run-file, or move it away."));
  }
  if (const Status writable = check_save_model(job.save_model); !writable) {
    return fail(writable.error());
  }
  if (!job.task.data_dir.empty() && !std::filesystem::is_directory(job.task.data_dir, ignored)) {
    return fail(invalid_input("there is no folder " + job.task.data_dir +
                              ", given with --data-dir. Fetch data sets into it with: drover data "
                              "get mnist --data-dir " +
                              job.task.data_dir));
  }
  const auto task = load_task(job.task);
  if (!task) return fail(task.error());
  const RunHeader header = make_header(job, *task.value(), command_line, now);
  const ProgressStyle style = choose_progress_style(options.quiet);
  if (style != ProgressStyle::kNone) {
    for (const auto& [key, value] : task.value()->describe())
      fmt::print(stderr, "{:<9} {}\n", key, value);
    fmt::print(stderr, "{:<9} {} workers x {} samples, {} shards, {} steps\n{:<9} {}\n", "run",
               job.workers, job.batch, job.shards, job.steps, "run file", job.run_file);
  }
  std::fflush(nullptr);
  const auto model_before = written_at(job.save_model);
  const int status =
      launch(job, *task.value(), header, [&] { return make_progress_view(job.steps, style); });
  if (!std::filesystem::exists(job.run_file, ignored)) return status;
  // The evaluator saves it, and may be lost or fail without ending the run.
  const bool model_saved = written_at(job.save_model) != model_before;
  const int reported = report(job, options, model_saved);
  if (!job.save_model.empty() && !model_saved) {
    const int failed = fail(system_error("the model was not saved to " + job.save_model +
                                         ": that is done when the last step has been evaluated"));
    return status != 0 ? status : failed;
  }
  return status != 0 ? status : reported;
}

}  // namespace drover
