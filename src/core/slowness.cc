#include "core/slowness.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "core/duration_text.h"
#include "core/nearest.h"
#include "core/random_draw.h"

namespace drover {
namespace {

constexpr std::array<std::string_view, 5> kKeys = {"worker", "steps", "share", "factor", "delay"};

// The error for one value; parse_slow_rule() adds the rule.
Error bad_value(std::string_view key, std::string_view value, const std::string& expected) {
  return invalid_input(std::string(key) + " must be " + expected + ", not '" + std::string(value) +
                       "'");
}

// All of `text` as a finite number, or nullopt. from_chars also accepts "inf" and "nan".
template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (trouble != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

template <typename Number>
Result<std::pair<Number, Number>> parse_span(std::string_view key, std::string_view text) {
  const size_t dash = text.find('-');
  const auto first = number_of<Number>(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : number_of<Number>(text.substr(dash + 1));
  if (!first || !last) return bad_value(key, text, "a number such as 3, or two such as 0-7");
  if (*first > *last) return bad_value(key, text, "two numbers of which the first is not larger");
  return std::pair(*first, *last);
}

Result<double> parse_number(std::string_view key, std::string_view text, double min, double max,
                            const std::string& expected) {
  const auto value = number_of<double>(text);
  if (!value || *value < min || *value > max) return bad_value(key, text, expected);
  return *value;
}

Result<Duration> parse_delay(std::string_view text) {
  const auto delay = parse_duration(text);
  if (delay && *delay <= SlowRule::kDelayMax) return *delay;
  return bad_value("delay", text, "a time such as 200ms, 1.5s or 10us, of at most an hour");
}

Status set_value(SlowRule& rule, std::string_view key, std::string_view value) {
  if (key == "worker") {
    const auto workers = parse_span<WorkerId>(key, value);
    if (!workers) return workers.error();
    rule.workers = workers.value();
  } else if (key == "steps") {
    const auto steps = parse_span<Step>(key, value);
    if (!steps) return steps.error();
    rule.steps = steps.value();
  } else if (key == "share") {
    const auto share = parse_number(key, value, 0.0, 1.0, "from 0 to 1");
    if (!share) return share.error();
    rule.share = share.value();
  } else if (key == "factor") {
    const auto factor = parse_number(key, value, 1.0, SlowRule::kFactorMax, "from 1 to 1000000");
    if (!factor) return factor.error();
    rule.factor = factor.value();
  } else if (key == "delay") {
    const auto delay = parse_delay(value);
    if (!delay) return delay.error();
    rule.delay = delay.value();
  } else {
    return invalid_input("unknown key '" + std::string(key) + "'." + did_you_mean(key, kKeys) +
                         " Known: worker, steps, share, factor, delay");
  }
  return done();
}

Status fill_rule(SlowRule& rule, std::string_view text) {
  std::set<std::string_view> seen;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view pair = text.substr(0, comma);
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      return invalid_input("expected key=value, not '" + std::string(pair) + "'");
    }
    const std::string_view key = pair.substr(0, equals);
    if (!seen.insert(key).second) return invalid_input(std::string(key) + " is given twice");
    Status status = set_value(rule, key, pair.substr(equals + 1));
    if (!status) return status;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (!seen.contains("factor") && !seen.contains("delay")) {
    return invalid_input("needs factor=... or delay=..., otherwise it has no effect");
  }
  return done();
}

// The shortest text that parses to the same number.
std::string shortest(double value) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

template <typename Number>
std::string span_text(const std::pair<Number, Number>& span) {
  std::string text = std::to_string(span.first);
  if (span.second != span.first) text += "-" + std::to_string(span.second);
  return text;
}

template <typename Number>
bool within(const std::optional<std::pair<Number, Number>>& span, Number value) {
  return !span || (span->first <= value && value <= span->second);
}

}  // namespace

Result<SlowRule> parse_slow_rule(std::string_view text) {
  SlowRule rule;
  const Status status = fill_rule(rule, text);
  if (!status) {
    return invalid_input("slow rule '" + std::string(text) + "': " + status.error().message +
                         ". A rule reads like 'worker=3,factor=4' or 'share=0.05,delay=200ms'.");
  }
  return rule;
}

std::string to_text(const SlowRule& rule) {
  std::string text;
  const auto add = [&](const std::string& pair) { text += (text.empty() ? "" : ",") + pair; };
  if (rule.workers) add("worker=" + span_text(*rule.workers));
  if (rule.steps) add("steps=" + span_text(*rule.steps));
  if (rule.share != 1.0) add("share=" + shortest(rule.share));
  if (rule.delay != Duration::zero()) add("delay=" + duration_text(rule.delay));
  if (rule.factor != 1.0 || rule.delay == Duration::zero()) add("factor=" + shortest(rule.factor));
  return text;
}

Slowness slowness_of(std::span<const SlowRule> rules, uint64_t seed, Step step, WorkerId worker) {
  Slowness slowness;
  for (size_t index = 0; index < rules.size(); ++index) {
    const SlowRule& rule = rules[index];
    if (!within(rule.workers, worker) || !within(rule.steps, step)) continue;
    const uint64_t bits =
        draw({seed, static_cast<uint64_t>(Purpose::kSlowness), step, worker, index});
    if (unit_interval(bits) >= rule.share) continue;
    slowness.factor *= rule.factor;
    slowness.delay += rule.delay;
  }
  return slowness;
}

}  // namespace drover
