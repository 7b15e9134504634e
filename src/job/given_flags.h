// GivenFlags: settings of a job as a command line gives them, without a command line's parser.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "job/job.h"
#include "job/settings.h"

namespace drover {

// The texts that were given to each flag of a setting, by flag; flags that were not given are
// absent.
using GivenFlags = std::map<std::string_view, std::vector<std::string>>;

// Takes over what the flags say, each checked by itself alone.
Status set_flags(const GivenFlags& flags, Job& job);
// The same; the job is then finished and valid.
Status apply_flags(const GivenFlags& flags, Job& job);

// The job of a file (empty: none) and flags: flags win over the file, which wins over `defaults`.
// It is finished and valid.
Result<Job> job_of(const std::string& job_file, const GivenFlags& flags, const Job& defaults = {});

// The other way round: a setting's value as its flag is given it, and what a user would type.
std::vector<std::string> flag_texts(const SettingValue& value);
std::vector<std::string> command_words(const GivenFlags& flags);

}  // namespace drover
