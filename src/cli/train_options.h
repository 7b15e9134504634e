// TrainOptions: what `drover train` was told on its command line, and the job that follows from it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
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
  bool quiet = false;                 // only trouble, and the result
  bool print_job = false;             // print the job as a job file, and do not train
  std::optional<uint16_t> dashboard;  // the port of the run's page; absent: none
  std::optional<uint16_t> metrics;    // the same of its metrics
  ClusterOptions cluster;
  GivenFlags flags;
};

// A flag for each setting of a job, or for those that `choose` takes. `also` has a second name for
// some flags: {"--policy-warmup", "--warmup"}. `flags` must outlive the parsing of `app`.
void add_job_flags(CLI::App& app, GivenFlags& flags,
                   const std::function<bool(const Setting&)>& choose = nullptr,
                   const std::map<std::string_view, std::string_view>& also = {});
// Adds a flag for each setting, and those above. `options` must outlive the parsing of `app`.
void add_train_options(CLI::App& app, TrainOptions& options);

// Flags win over the job file, which wins over the defaults. The job is finished and valid.
Result<Job> job_of(const TrainOptions& options, const Job& defaults = {});

// "unknown option '--workrs'. Did you mean '--workers'?", or the same for a command.
// REQUIRES: extras, what `app` could not place, is not empty.
std::string explain_unknown_option(const CLI::App& app, const std::vector<std::string>& extras);

// What to tell the user when parsing `app` threw `trouble` (which is no CLI::Success, that is
// neither
// --help nor --version): an unknown option or command comes with the nearest known one.
std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& trouble);

}  // namespace drover
