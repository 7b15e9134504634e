// Conversion of settings' values to text and back: names of choices, durations, lists of rules.
//
// Errors of the parsing functions have the valid values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/target.h"
#include "core/time.h"
#include "job/job.h"
#include "job/settings.h"

namespace drover {

Result<std::string> parse_policy(const std::string& text);
std::string stop_at_text(const std::optional<Target>& target);
Result<std::optional<Target>> parse_stop_at(const std::string& text);
std::string max_wait_text(Duration max_wait);
Result<Duration> parse_max_wait(const std::string& text);
std::string pull_text(double share);
Result<double> parse_pull(const std::string& text);
Result<Duration> parse_grace(const std::string& text);
std::string_view transport_name(Transport transport);
Result<Transport> parse_transport(const std::string& name);
std::string_view number_type_name(NumberType type);
Result<NumberType> parse_number_type(const std::string& name);
std::string_view partition_name(DataPartition partition);
Result<DataPartition> parse_partition(const std::string& name);
std::string_view straggler_rule_name(StragglerRule rule);
Result<StragglerRule> parse_straggler_rule(const std::string& name);
std::string_view guard_rule_name(GuardRule rule);
Result<GuardRule> parse_guard_rule(const std::string& name);
Result<std::string> parse_address(const std::string& text);
SettingValue slow_texts(const Job& job);
Status set_slow(Job& job, const SettingValue& value);

}  // namespace drover
