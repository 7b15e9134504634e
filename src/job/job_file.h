// Job files: a Job written down as TOML.
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

// Each value is checked by itself. validate() checks them together, since flags may change some.
// The job is finished (see finish()).
Result<Job> read_job_file(const std::string& path, const Job& defaults = {});

// The same for text that was read already; `name` stands for the file in errors.
Result<Job> parse_job(std::string_view text, std::string_view name, const Job& defaults = {});

// A job file with every key, each explained: parse_job(to_toml(job)) gives the same finished job.
std::string to_toml(const Job& job);

}  // namespace drover
