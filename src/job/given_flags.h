// GivenFlags: settings of a job as a command line gives them, independent of its parser.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "job/job.h"
#include "job/settings.h"

namespace drover {

// The texts that a command line gives to each setting, by key; other settings are absent.
using GivenFlags = std::map<std::string_view, std::vector<std::string>>;

// Sets the given settings in the job; each is checked by itself.
Status set_flags(const GivenFlags& flags, Job& job);
// The same. ENSURES: the job is finished and valid.
Status apply_flags(const GivenFlags& flags, Job& job);

// The job of a file (empty: none) and flags: flags override the file, which overrides `defaults`.
// ENSURES: the job is finished and valid.
Result<Job> job_of(const std::string& job_file, const GivenFlags& flags, const Job& defaults = {});

// The inverse: a setting's value as texts of its flag, and the words of a command line.
std::vector<std::string> flag_texts(const SettingValue& value);
std::vector<std::string> command_words(const GivenFlags& flags);

}  // namespace drover
