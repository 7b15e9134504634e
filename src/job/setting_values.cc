#include "job/setting_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "core/duration_text.h"
#include "core/nearest.h"
#include "core/slowness.h"
#include "job/settings.h"
#include "policy/catalogue.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr std::array<std::string_view, 5> kTransports = {"auto", "shm", "uds", "tcp", "mpi"};
constexpr std::array<std::string_view, 3> kNumberTypes = {"float32", "bfloat16", "float16"};
constexpr std::array<std::string_view, 3> kPartitions = {"none", "random", "label"};
constexpr std::array<std::string_view, 2> kStragglerRules = {"stop", "finish"};
constexpr std::array<std::string_view, 3> kGuardRules = {"off", "norm", "refuse"};

constexpr std::string_view kNoMaxWait = "none";
constexpr std::string_view kAuto = "auto";

Error unknown_name(std::string_view what, std::string_view name,
                   std::span<const std::string_view> known) {
  return invalid_input(fmt::format("unknown {} '{}'.{} Known: {}.", what, name,
                                   did_you_mean(name, known), fmt::join(known, ", ")));
}

// A placeholder for future run-times, which only a simulation knows; never called here.
std::vector<double> some_foresight(Step, std::span<const WorkerId> alive) {
  return std::vector<double>(alive.size(), 1.0);
}

}  // namespace

// Checks that the catalogue accepts the text; the policy itself is created later.
Result<std::string> parse_policy(const std::string& text) {
  const auto asynchronous = asynchronous_of(text);
  if (!asynchronous) return asynchronous.error();
  if (asynchronous.value()) return text;
  const auto policy = make_policy(text, {.foresight = some_foresight});
  if (!policy) return policy.error();
  return text;
}

std::string stop_at_text(const std::optional<Target>& target) {
  return target ? to_text(*target) : std::string();
}

Result<std::optional<Target>> parse_stop_at(const std::string& text) {
  if (text.empty()) return std::optional<Target>();
  const auto target = parse_target(text);
  if (!target) return target.error();
  return std::optional<Target>(target.value());
}

std::string max_wait_text(Duration max_wait) {
  return max_wait == Duration::zero() ? std::string(kNoMaxWait) : duration_text(max_wait);
}

Result<Duration> parse_max_wait(const std::string& text) {
  if (text == kNoMaxWait) return Duration::zero();
  const auto max_wait = parse_duration(text);
  if (max_wait && *max_wait > Duration::zero() && *max_wait <= kMaxWaitMax) return *max_wait;
  return invalid_input(fmt::format(
      "must be a time such as 10s or 500ms, of at most a day, or none, not '{}'", text));
}

std::string pull_text(double share) {
  return share == kPullAuto ? std::string(kAuto) : fmt::format("{}", share);
}

Result<double> parse_pull(const std::string& text) {
  if (text == kAuto) return kPullAuto;
  double share = 0.0;
  const char* const end = text.data() + text.size();
  const auto [stop, trouble] = std::from_chars(text.data(), end, share);
  if (trouble == std::errc{} && stop == end && share > 0.0 && share <= 1.0) return share;
  return invalid_input(fmt::format(
      "must be a share of the blocks, more than 0 and at most 1, or auto, not '{}'", text));
}

Result<Duration> parse_grace(const std::string& text) {
  const auto grace = parse_duration(text);
  if (grace && *grace >= Duration::zero() && *grace <= kMaxWaitMax) return *grace;
  return invalid_input(
      fmt::format("must be a time such as 5ms or 0s, of at most a day, not '{}'", text));
}

std::string_view transport_name(Transport transport) {
  return kTransports[static_cast<size_t>(transport)];
}

Result<Transport> parse_transport(const std::string& name) {
  if (name == "unix") return Transport::kUnix;
  for (const Transport transport :
       {Transport::kAuto, Transport::kShm, Transport::kUnix, Transport::kTcp, Transport::kMpi}) {
    if (transport_name(transport) == name) return transport;
  }
  return unknown_name("transport", name, kTransports);
}

std::string_view number_type_name(NumberType type) { return name_of(type); }

Result<NumberType> parse_number_type(const std::string& name) {
  for (const NumberType type :
       {NumberType::kFloat32, NumberType::kBfloat16, NumberType::kFloat16}) {
    if (name_of(type) == name) return type;
  }
  return unknown_name("type of numbers", name, kNumberTypes);
}

std::string_view partition_name(DataPartition partition) {
  return kPartitions[static_cast<size_t>(partition)];
}

Result<DataPartition> parse_partition(const std::string& name) {
  for (const DataPartition partition :
       {DataPartition::kNone, DataPartition::kRandom, DataPartition::kLabel}) {
    if (partition_name(partition) == name) return partition;
  }
  return unknown_name("partition", name, kPartitions);
}

std::string_view straggler_rule_name(StragglerRule rule) {
  return kStragglerRules[static_cast<size_t>(rule)];
}

Result<StragglerRule> parse_straggler_rule(const std::string& name) {
  for (const StragglerRule rule : {StragglerRule::kStop, StragglerRule::kFinish}) {
    if (straggler_rule_name(rule) == name) return rule;
  }
  return unknown_name("rule for stragglers", name, kStragglerRules);
}

std::string_view guard_rule_name(GuardRule rule) { return kGuardRules[static_cast<size_t>(rule)]; }

Result<GuardRule> parse_guard_rule(const std::string& name) {
  for (const GuardRule rule : {GuardRule::kOff, GuardRule::kNorm, GuardRule::kRefuse}) {
    if (guard_rule_name(rule) == name) return rule;
  }
  return unknown_name("guard", name, kGuardRules);
}

// Checks the form only; the host is looked up when it is used.
Result<std::string> parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  if (colon != std::string::npos && colon > 0) {
    const char* const end = text.data() + text.size();
    const auto [stop, trouble] = std::from_chars(text.data() + colon + 1, end, port);
    if (trouble == std::errc{} && stop == end) return text;
  }
  return invalid_input(
      fmt::format("must be HOST:PORT such as 127.0.0.1:0 (port 0: any free one), not '{}'", text));
}

SettingValue slow_texts(const Job& job) {
  std::vector<std::string> texts;
  for (const SlowRule& rule : job.cluster.slow) texts.push_back(to_text(rule));
  return texts;
}

Status set_slow(Job& job, const SettingValue& value) {
  const auto& texts = std::get<std::vector<std::string>>(value);
  if (texts.size() > kSlowRulesMax) {
    return invalid_input(
        fmt::format("must be at most {} rules, not {}", kSlowRulesMax, texts.size()));
  }
  std::vector<SlowRule> rules;
  for (const std::string& text : texts) {
    const Result<SlowRule> rule = parse_slow_rule(text);
    if (!rule) return rule.error();
    rules.push_back(rule.value());
  }
  job.cluster.slow = std::move(rules);
  return done();
}

}  // namespace drover
