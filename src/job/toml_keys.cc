#include "job/toml_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/duration_text.h"
#include "core/nearest.h"

namespace drover {
namespace {

std::optional<uint32_t> whole_number(std::string_view text) {
  uint32_t value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, trouble] = std::from_chars(begin, end, value);
  if (trouble != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace

const toml::node* TomlKeys::node(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
  return table_.get(key);
}

void TomlKeys::complain(std::string_view key, const std::string& what) {
  const toml::node* at = table_.get(key);
  complaints_.push_back({at != nullptr ? at->source().begin : table_.source().begin,
                         fmt::format("{}: {}", key, what)});
}

void TomlKeys::complain(const std::string& what) {
  complaints_.push_back({table_.source().begin, fmt::format("{}: {}", name_, what)});
}

void TomlKeys::wrong_kind(std::string_view key, const toml::node& node, std::string_view expected) {
  complain(key, fmt::format("expected {}, found {}{}", expected, words_for(node.type()),
                            node.is_value() ? ": " + source_text(node) : ""));
}

void TomlKeys::number(std::string_view key, double& value, double min, double max) {
  const toml::node* found = node(key);
  if (found == nullptr) return;
  const auto given = found->value<double>();
  if (!found->is_number() || !given) return wrong_kind(key, *found, "a number");
  // Also refuses NaN.
  const bool fits = *given >= min && *given <= max;
  if (!fits) return complain(key, fmt::format("must be from {} to {}, not {}", min, max, *given));
  value = *given;
}

void TomlKeys::count(std::string_view key, uint32_t& value, uint32_t min, uint32_t max) {
  std::optional<uint32_t> given;
  count(key, given, min, max);
  if (given) value = *given;
}

void TomlKeys::count(std::string_view key, std::optional<uint32_t>& value, uint32_t min,
                     uint32_t max) {
  const toml::node* found = node(key);
  if (found == nullptr) return;
  if (!found->is_integer()) return wrong_kind(key, *found, "a whole number");
  const int64_t given = found->as_integer()->get();
  if (given < min || given > max)
    return complain(key, fmt::format("must be from {} to {}, not {}", min, max, given));
  value = static_cast<uint32_t>(given);
}

void TomlKeys::step(std::string_view key, std::optional<Step>& value) {
  std::optional<uint32_t> given;
  count(key, given, 0, 1'000'000'000);
  if (given) value = *given;
}

void TomlKeys::flag(std::string_view key, bool& value) {
  const toml::node* found = node(key);
  if (found == nullptr) return;
  if (!found->is_boolean()) return wrong_kind(key, *found, "true or false");
  value = found->as_boolean()->get();
}

void TomlKeys::text(std::string_view key, std::string& value) {
  parsed(key, [&](const std::string& given) {
    value = given;
    return done();
  });
}

void TomlKeys::parsed(std::string_view key,
                      const std::function<Status(const std::string&)>& parse) {
  const toml::node* found = node(key);
  if (found == nullptr) return;
  if (!found->is_string()) return wrong_kind(key, *found, "text in quotes");
  const Status status = parse(found->as_string()->get());
  if (!status) complain(key, status.error().message);
}

void TomlKeys::duration(std::string_view key, Duration& value) {
  parsed(key, [&](const std::string& given) -> Status {
    const auto duration = parse_duration(given);
    if (!duration)
      return invalid_input(fmt::format("must be a time such as 200ms or 1.5s, not '{}'", given));
    value = *duration;
    return done();
  });
}

void TomlKeys::range(std::string_view key, std::optional<std::pair<uint32_t, uint32_t>>& value) {
  const toml::node* found = node(key);
  if (found == nullptr) return;
  if (found->is_integer()) {
    std::optional<uint32_t> one;
    count(key, one, 0, std::numeric_limits<int32_t>::max());
    if (one) value = {*one, *one};
    return;
  }
  parsed(key, [&](const std::string& given) -> Status {
    const size_t dash = given.find('-');
    const auto first = whole_number(std::string_view(given).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : whole_number(std::string_view(given).substr(dash + 1));
    if (!first || !last || *first > *last) {
      return invalid_input(
          fmt::format("must be a number such as 3, or two such as \"0-39\", not '{}'", given));
    }
    value = {*first, *last};
    return done();
  });
}

void TomlKeys::need(std::string_view key, std::string_view example) {
  if (!has(key)) missing_.push_back(fmt::format("{} = {}", key, example));
}

void TomlKeys::finish() {
  for (const auto& [key, value] : table_) {
    if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
    std::string all;
    for (const std::string_view each : known_) all += (all.empty() ? "" : ", ") + std::string(each);
    complaints_.push_back(
        {key.source().begin, fmt::format("unknown key '{}'{}.{} Known: {}", key.str(),
                                         name_.empty() ? std::string() : " in " + name_,
                                         did_you_mean(key.str(), known_), all)});
  }
  if (complaints_.size() > before_ || missing_.empty()) return;
  complain(fmt::format("needs {}", fmt::join(missing_, " and ")));
}

}  // namespace drover
