#include "launch/run_setup.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "core/random_draw.h"
#include "core/version.h"
#include "job/job_file.h"
#include "job/settings.h"
#include "net/endpoint.h"
#include "net/tls.h"
#include "node/host.h"

namespace drover {
namespace {

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

}  // namespace

std::string default_run_file(std::string_view what, std::time_t now) {
  std::string name(what);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '/'; }, '-');
  const std::string stem = fmt::format("runs/{:%Y%m%d-%H%M%S}-{}", fmt::gmtime(now), name);
  std::string path = stem + ".db";
  for (int number = 2; std::filesystem::exists(path); ++number)
    path = fmt::format("{}-{}.db", stem, number);
  return path;
}

Status check_run_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return invalid_input("the run file " + path +
                         " is a folder. Name a file with --run-file, such as " + path + "/run.db.");
  }
  if (std::filesystem::exists(path, ignored) && std::filesystem::file_size(path, ignored) > 0) {
    return invalid_input("the run file " + path +
                         " exists already and is never overwritten. Choose another with "
                         "--run-file, or move it away.");
  }
  return done();
}

Status check_model_path(std::string_view flag, const std::string& path) {
  std::error_code ignored;
  const auto folder = std::filesystem::absolute(path, ignored).parent_path();
  if (std::filesystem::is_directory(path, ignored)) {
    return invalid_input(fmt::format("{} {} is a folder; name a file", flag, path));
  }
  if (!std::filesystem::is_directory(folder, ignored) || ::access(folder.c_str(), W_OK) != 0) {
    return invalid_input(fmt::format("cannot save the model to {}: there is no writable folder {}",
                                     path, folder.string()));
  }
  return done();
}

Status check_data_dir(const TaskSpec& task) {
  std::error_code ignored;
  if (task.data_dir.empty() || std::filesystem::is_directory(task.data_dir, ignored)) return done();
  return invalid_input("there is no folder " + task.data_dir +
                       ", given with --data-dir. Fetch data sets into it with: drover data get "
                       "mnist --data-dir " +
                       task.data_dir);
}

RunHeader make_run_header(const Job& job,
                          const std::vector<std::pair<std::string, std::string>>& about,
                          const std::string& command_line, std::time_t now) {
  RunHeader header;
  header.run_id =
      draw({static_cast<uint64_t>(Purpose::kRunId), static_cast<uint64_t>(::getpid()),
            static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count())});
  header.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
  header.command = command_line;
  // Without the names of files: a run that repeats the job must use others.
  Job repeatable = job;
  repeatable.record.run_file.clear();
  repeatable.record.save_model.clear();
  repeatable.record.checkpoint.clear();
  repeatable.record.resume.clear();
  header.job = to_toml(repeatable);
  for (const Setting& setting : job_settings())
    header.settings.emplace_back(setting.key, text_of(setting.get(job)));
  header.environment = describe_host();
  header.environment.emplace_back("drover", kVersion);
  for (const auto& [key, value] : about) header.environment.emplace_back(key, value);
  return header;
}

Status check_listen(const JobCluster& cluster) {
  const std::string address = "tcp:" + cluster.listen;
  // An invalid address is refused when the run starts.
  if (cluster.transport != Transport::kTcp || !parse_endpoint(address)) return done();
  const Status may = may_listen(address, !cluster.tls.empty(), cluster.insecure);
  return may ? done() : invalid_input("listen (--listen): " + may.error().message);
}

}  // namespace drover
