#include "experiment/experiment_plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "core/random_draw.h"
#include "core/text.h"
#include "job/toml_complaint.h"
#include "launch/job_machines.h"
#include "launch/model_fitting.h"
#include "launch/run_setup.h"
#include "sim/scenario_flags.h"
#include "tasks/model_choice.h"

namespace drover {
namespace {

constexpr uint64_t kEmptyDigest = 0x9e3779b97f4a7c15ULL;

// A digest that shows that a file has changed. Not cryptographic.
uint64_t digest_of(std::string_view text, uint64_t digest = kEmptyDigest) {
  for (const char each : text) digest = mix_bits(digest ^ static_cast<unsigned char>(each));
  return digest;
}

uint64_t digest_of(const ScenarioFile& file) {
  uint64_t digest = digest_of(file.text);
  for (const RunTimeRule& rule : file.scenario.run_times) {
    if (!rule.law.trace) continue;
    const std::vector<double>& times = rule.law.trace->times;
    std::string bytes(times.size() * sizeof(double), '\0');
    std::memcpy(bytes.data(), times.data(), bytes.size());
    digest = digest_of(bytes, digest);
  }
  return digest;
}

// Settings from the experiment, the place and the variant; later ones override earlier ones.
GivenFlags flags_of(const ExperimentFile& file, const Place& place, const Variant& variant,
                    uint64_t seed) {
  GivenFlags flags = file.common;
  for (const GivenFlags& more : {place.set, variant.set}) {
    for (const auto& [key, texts] : more) flags[key] = texts;
  }
  flags["seed"] = {fmt::format("{}", seed)};
  flags["stop_at"] = {file.past_target ? "" : to_text(file.target)};
  return flags;
}

struct Checked {
  Job job;
  uint64_t digest = 0;  // of the files that the cell reads
};

Result<Checked> check_simulated(const std::string& path, const GivenFlags& flags) {
  auto file = scenario_of(path, flags);
  if (!file) return file.error();
  const Job& job = file.value().job;
  const Foresight foresight = [](Step, std::span<const WorkerId> alive) {
    return std::vector<double>(alive.size(), 1.0);
  };
  const auto policy = policy_of(job, foresight, stepped_fitters());
  if (!policy) return policy.error();
  return Checked{job, digest_of(file.value())};
}

Result<Checked> check_real(const std::string& path, const GivenFlags& flags) {
  const auto job = job_of(path, flags);
  if (!job) return job.error();
  if (const Status may = check_listen(job.value().cluster); !may) return may.error();
  const auto policy = policy_of(job.value(), {}, background_fitters());
  if (!policy) return policy.error();
  const auto text = read_toml_file(path, "job file");
  if (!text) return text.error();
  return Checked{job.value(), digest_of(text.value())};
}

Result<Checked> check(const ExperimentFile& file, const Place& place, const Variant& variant) {
  const GivenFlags flags = flags_of(file, place, variant, file.seeds.front());
  auto checked = place.real ? check_real(place.path, flags) : check_simulated(place.path, flags);
  if (!checked) return checked;
  const Job& job = checked.value().job;
  if (job.record.evaluate_every == 0) {
    return invalid_input(
        "evaluate_every: is 0, so only the last step would be compared with the target; set it in "
        "[common], for example to 10");
  }
  if (const Status known = check_model_name(job.task.model); !known) return known.error();
  if (const Status there = check_data_dir(job.task); !there) return there.error();
  return checked;
}

bool is_executable(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

// Whether a shell would find the command.
bool is_command(const std::string& word) {
  if (word.find('/') != std::string::npos) return is_executable(word);
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_executable((folder.empty() ? "." : folder) + "/" + word)) return true;
  }
  return false;
}

Status check_beside(const ExperimentFile& file, const Place& place) {
  if (place.beside.empty() || is_command(place.beside.front())) return done();
  return invalid_input(fmt::format(
      "{}: place '{}': beside: command '{}' not found; install it (apt install {}) or give its "
      "path",
      file.path, place.name, place.beside.front(),
      std::filesystem::path(place.beside.front()).filename().string()));
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quoted(word);
  return line;
}

Cell make_cell(const ExperimentFile& file, size_t place, size_t variant, uint64_t seed,
               uint64_t digest) {
  const Place& where = file.places[place];
  Cell cell{.place = place,
            .variant = variant,
            .seed = seed,
            .name = fmt::format("{}-{}-{}", file_name_of(where.name),
                                file_name_of(file.variants[variant].name), seed),
            .beside = where.beside,
            .real = where.real};
  const std::vector<std::string> flags =
      command_words(flags_of(file, where, file.variants[variant], seed));
  const char* const command = where.real ? "train" : "simulate";
  cell.words = {command, where.path};
  cell.words.insert(cell.words.end(), flags.begin(), flags.end());
  // The file as written, because an experiment may be resumed from another working directory.
  cell.identity = fmt::format("drover {} {} {}\n{:016x} {}\n", command, shell_quoted(where.file),
                              joined(flags), digest, where.file);
  if (!cell.beside.empty()) cell.identity += "beside " + joined(cell.beside) + "\n";
  return cell;
}

}  // namespace

std::string file_name_of(const std::string& name) {
  std::string safe = name;
  std::replace_if(
      safe.begin(), safe.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '_'; },
      '-');
  if (safe.starts_with('.')) safe.front() = '-';
  return safe;
}

std::string title_of(const ExperimentFile& file, const Cell& cell) {
  return fmt::format("{} / {} / seed {}", file.places[cell.place].name,
                     file.variants[cell.variant].name, cell.seed);
}

Result<std::vector<Cell>> plan_cells(const ExperimentFile& file) {
  std::vector<Cell> cells;
  std::map<std::string, size_t> names;  // index of the cell with each name
  for (size_t place = 0; place < file.places.size(); ++place) {
    if (const Status found = check_beside(file, file.places[place]); !found) return found.error();
    std::vector<uint64_t> digests;
    for (const Variant& variant : file.variants) {
      const auto checked = check(file, file.places[place], variant);
      if (!checked) {
        return Error{checked.error().kind,
                     fmt::format("{}: place '{}', variant '{}': {}", file.path,
                                 file.places[place].name, variant.name, checked.error().message)};
      }
      digests.push_back(checked.value().digest);
    }
    for (const uint64_t seed : file.seeds) {
      for (size_t variant = 0; variant < file.variants.size(); ++variant) {
        cells.push_back(make_cell(file, place, variant, seed, digests[variant]));
        const auto [same, is_new] = names.emplace(cells.back().name, cells.size() - 1);
        if (is_new) continue;
        return invalid_input(fmt::format(
            "{}: cells '{}' and '{}' have the same file name, {}; rename a place or a variant",
            file.path, title_of(file, cells[same->second]), title_of(file, cells.back()),
            cells.back().name));
      }
    }
  }
  return cells;
}

}  // namespace drover
