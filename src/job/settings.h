// The settings of a run, as one list: job files, flags and --print-job all read it, so that they
// cannot disagree.
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

// Limits of settings that wire/limits.h does not already bound.
inline constexpr Step kStepsMax = kEndless;
inline constexpr uint64_t kGeneratedSamplesMax = 1'000'000'000;
inline constexpr uint64_t kSeedMax = std::numeric_limits<int64_t>::max();  // what TOML can write
inline constexpr double kLearningRateMax = 1'000.0;
inline constexpr double kWeightDecayMax = 1.0;
inline constexpr uint32_t kDecideEveryMax = 1'000'000;
inline constexpr uint32_t kKeepMax = 1'000'000;
inline constexpr double kBalanceMost = 1'000.0;
inline constexpr uint64_t kWindowMax = uint64_t{1} << 40;
inline constexpr Duration kMaxWaitMax = std::chrono::hours(24);

// A setting's value as a job file or a flag can give it.
using SettingValue = std::variant<bool, uint64_t, double, std::string, std::vector<std::string>>;
// The same alternatives in the same order, by name.
enum class SettingKind : uint8_t { kSwitch, kCount, kNumber, kText, kTexts };

struct Setting {
  std::string_view key;    // in a job file: "workers", or "optimizer.momentum" for a table's
  std::string_view flag;   // "--workers"
  std::string_view group;  // heading in --help
  std::string_view help;   // one line, for --help and --print-job
  SettingKind kind;
  std::function<SettingValue(const Job&)> get;
  // Leaves the job alone and says why ("must be from 1 to 1000, not 0") if the value will not do.
  // REQUIRES: the value is of `kind`.
  std::function<Status(Job&, const SettingValue&)> set;
};

// All of them, in the order in which people want to read them; keys without a table come first.
const std::vector<Setting>& job_settings();

// The table of "optimizer.momentum" is "optimizer", its name in the table "momentum"; of "workers"
// the table is "".
std::string_view table_of(const Setting& setting);
std::string_view name_of(const Setting& setting);

// "a whole number", for messages about values of the wrong kind.
std::string_view words_for(SettingKind kind);

}  // namespace drover
