#include "policy/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include "core/check.h"
#include "core/nearest.h"

namespace drover {
namespace {

// Refuses "inf" and "nan", which from_chars accepts.
template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (trouble != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(static_cast<double>(value))) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

std::string limits_of(const OptionRule& rule) {
  const bool open = rule.highest >= OptionRule{}.highest;
  switch (rule.kind) {
    case OptionKind::kNumber:
      return open ? fmt::format("a number above {}", rule.lowest)
                  : fmt::format("a number above {} and at most {}", rule.lowest, rule.highest);
    case OptionKind::kCount:
      return open ? fmt::format("a whole number of at least {}", rule.lowest)
                  : fmt::format("a whole number from {} to {}", rule.lowest, rule.highest);
    case OptionKind::kWord:
      return std::string(rule.words);
    case OptionKind::kPath:
      return "a file name without ':'";
  }
  return {};
}

}  // namespace

Result<Options::Value> Options::read(const OptionRule& rule, std::string_view text) {
  const Error wrong =
      invalid_input(fmt::format("{} must be {}, not '{}'", rule.key, limits_of(rule), text));
  if (rule.kind == OptionKind::kNumber) {
    const auto number = number_in<double>(text);
    if (!number || *number <= rule.lowest || *number > rule.highest) return wrong;
    return Value{*number, {}};
  }
  if (rule.kind == OptionKind::kCount) {
    const auto count = number_in<uint32_t>(text);
    if (!count) return wrong;
    const auto number = static_cast<double>(*count);
    if (number < rule.lowest || number > rule.highest) return wrong;
    return Value{number, {}};
  }
  if (rule.kind == OptionKind::kPath) {
    if (text.empty()) return wrong;
    return Value{0.0, std::string(text)};
  }
  const std::vector<std::string_view> words = split(rule.words, " or ");
  if (std::find(words.begin(), words.end(), text) == words.end()) {
    return invalid_input(wrong.message + "." + did_you_mean(text, words));
  }
  return Value{0.0, std::string(text)};
}

Result<Options> Options::parse(std::string_view text, std::span<const OptionRule> rules) {
  Options options;
  std::vector<std::string_view> parts = split(text, ":");
  parts.erase(parts.begin());  // the name
  for (const std::string_view part : parts) {
    const size_t equals = part.find('=');
    if (rules.empty()) return invalid_input(fmt::format("takes no options, not even '{}'", part));
    const bool bare = equals == std::string_view::npos;
    const std::string_view key = bare ? rules.front().key : part.substr(0, equals);
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const OptionRule& each) { return each.key == key; });
    if (rule == rules.end()) {
      std::vector<std::string_view> keys;
      for (const OptionRule& each : rules) keys.push_back(each.key);
      return invalid_input(fmt::format("unknown option '{}'.{}", key, did_you_mean(key, keys)));
    }
    Result<Value> value = read(*rule, bare ? part : part.substr(equals + 1));
    if (!value) return value.error();
    if (!options.values_.emplace(key, std::move(value).value()).second) {
      return invalid_input(fmt::format("{} is given twice", key));
    }
  }
  for (const OptionRule& rule : rules) {
    if (options.has(rule.key) && options.has(rule.instead_of)) {
      return invalid_input(
          fmt::format("{} and {} cannot both be given", rule.instead_of, rule.key));
    }
    if (rule.needed && !options.has(rule.key)) {
      return invalid_input(fmt::format("{} is required: {}", rule.key, limits_of(rule)));
    }
  }
  return options;
}

double Options::number(std::string_view key) const {
  const auto found = values_.find(key);
  DROVER_CHECK(found != values_.end());
  return found->second.number;
}

void Options::take(std::string_view key, double& setting) const {
  if (has(key)) setting = number(key);
}

void Options::take(std::string_view key, uint32_t& setting) const {
  if (has(key)) setting = count(key);
}

uint32_t Options::count(std::string_view key) const { return static_cast<uint32_t>(number(key)); }

std::string_view Options::word(std::string_view key) const {
  const auto found = values_.find(key);
  DROVER_CHECK(found != values_.end());
  return found->second.word;
}

}  // namespace drover
