// Job files: a Job in TOML.
//
// Keys are those of job_settings(), without tables; missing ones are as in `defaults`. Errors name
// file, line, column and key, for an unknown key the nearest known one, and for a key of an older
// version its successor.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "job/job.h"

namespace drover {

// Checks each value by itself. validate() checks combinations, since flags may change values.
// ENSURES: the job is finished (see finish()).
Result<Job> read_job_file(const std::string& path, const Job& defaults = {});

// The same for the text of a job file; `name` is the file's name in errors.
Result<Job> parse_job(std::string_view text, std::string_view name, const Job& defaults = {});

// A job file with every key, each explained: parse_job(to_toml(job)) gives the same finished job.
std::string to_toml(const Job& job);

}  // namespace drover
