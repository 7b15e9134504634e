// The list of all settings of a run. Job files, flags and --print-job use it, so that they agree.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/result.h"
#include "job/job.h"

namespace drover {

// Limits of settings beyond those in wire/limits.h.
inline constexpr Step kStepsMax = kEndless;
inline constexpr uint64_t kGeneratedSamplesMax = 1'000'000'000;
inline constexpr uint64_t kSeedMax = std::numeric_limits<int64_t>::max();  // TOML's largest integer
inline constexpr double kLearningRateMax = 1'000.0;
inline constexpr double kWeightDecayMax = 1.0;
inline constexpr uint32_t kKeepMax = 1'000'000;
inline constexpr double kBalanceMost = 1'000.0;
inline constexpr uint64_t kWindowMax = uint64_t{1} << 40;
inline constexpr Duration kMaxWaitMax = std::chrono::hours(24);

// The value of a setting, as a job file or a flag gives it.
using SettingValue = std::variant<bool, uint64_t, double, std::string, std::vector<std::string>>;
// The same alternatives in the same order, by name.
enum class SettingKind : uint8_t { kSwitch, kCount, kNumber, kText, kTexts };

enum class SettingGroup : uint8_t { kTask, kLearning, kProcesses, kWaiting, kRecord };
// "Task": a heading of --help and of job files.
std::string_view name_of(SettingGroup group);

// Where a setting is listed.
enum class Listing : uint8_t {
  kMain,     // a flag that --help lists
  kMore,     // a flag that only --help-all lists
  kJobFile,  // no flag of its own; a command line has --set KEY=VALUE
};

struct Setting {
  std::string_view key;  // the name; the flag is the same with dashes
  SettingGroup group;
  Listing listing;
  std::string_view help;  // one line, for --help and --print-job
  SettingKind kind;
  std::function<SettingValue(const Job&)> get;
  // Refuses an invalid value with an error ("must be from 1 to 1000, not 0") and leaves the job
  // unchanged. REQUIRES: the value is of `kind`.
  std::function<Status(Job&, const SettingValue&)> set;
};

// All settings, by group.
const std::vector<Setting>& job_settings();
// Null if there is no setting with this key.
const Setting* find_setting(std::string_view key);

// "--weight-decay" for the key weight_decay.
std::string flag_of(const Setting& setting);
// "weight_decay (--weight-decay)"; the key alone if there is no flag.
std::string key_and_flag(const Setting& setting);

// "a whole number", for messages about values of the wrong kind.
std::string_view words_for(SettingKind kind);

}  // namespace drover
