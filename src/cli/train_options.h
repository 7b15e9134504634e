// TrainOptions: the command line of `drover train`, and the job that follows from it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "job/given_flags.h"
#include "job/job.h"
#include "job/settings.h"
#include "launch/cluster_options.h"

namespace drover {

struct TrainOptions {
  std::string job_file;               // empty: none was given
  bool json = false;                  // print the result as one line of JSON
  bool quiet = false;                 // print only errors and the result
  bool print_job = false;             // print the job as a job file, and do not train
  std::optional<uint16_t> dashboard;  // port of the dashboard; absent: no dashboard
  std::optional<uint16_t> metrics;    // port of the Prometheus metrics; absent: not served
  ClusterOptions cluster;
  GivenFlags flags;
};

// Which settings a command has; null: all of them.
using SettingChoice = std::function<bool(const Setting&)>;

// Adds a flag for each setting that has one. `flags` must outlive the parsing of `app`.
void add_job_flags(CLI::App& app, GivenFlags& flags, const SettingChoice& choose = nullptr);
// Adds --set KEY=VALUE, which sets any setting, also one without a flag of its own. `flags` as
// above.
void add_set_option(CLI::App& app, GivenFlags& flags, const SettingChoice& choose = nullptr);
// Adds all flags of `drover train`. `options` must outlive the parsing of `app`.
void add_train_options(CLI::App& app, TrainOptions& options);

// Flags override the job file, which overrides the defaults. ENSURES: the job is finished and
// valid.
Result<Job> job_of(const TrainOptions& options, const Job& defaults = {});

// "unknown option '--workrs'. Did you mean '--workers'?", or the same for a command.
// REQUIRES: extras, the words that `app` did not recognise, is not empty.
std::string explain_unknown_option(const CLI::App& app, const std::vector<std::string>& extras);

// The error message for `trouble`, which parsing `app` threw. It names the nearest known option or
// command for an unknown one. REQUIRES: `trouble` is no CLI::Success (--help, --version).
std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& trouble);

}  // namespace drover
