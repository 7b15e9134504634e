// Matchers for tests of messages: they check values, such as paths, numbers and names, and not the
// wording.
#pragma once

#include <gmock/gmock.h>

#include <array>
#include <cctype>
#include <concepts>
#include <regex>
#include <string>
#include <string_view>

#include "core/nearest.h"
#include "core/result.h"

namespace drover {

// Whether `text` has `value`, and not as a part of a longer number, name or flag: "9" is in
// "worker 9", but not in "19", "9.5", "-9" or "9x"; "--lr" is not in "--lr-floor", nor "run.db" in
// "run.db.part". Thousands may be separated: "1000" is in "1,000 steps".
inline bool has_value(std::string_view text, std::string_view value) {
  const auto in_word = [&](size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 ||
                                text[at] == '_' || static_cast<unsigned char>(text[at]) >= 0x80);
  };
  const auto joint = [&](size_t at) {
    return at < text.size() && (text[at] == '.' || text[at] == '-');
  };
  if (value.empty()) return false;
  for (size_t at = text.find(value); at != text.npos; at = text.find(value, at + 1)) {
    const size_t last = at + value.size() - 1;
    const bool number = std::isdigit(static_cast<unsigned char>(value.front())) != 0;
    const bool extends_left =
        in_word(at) && (in_word(at - 1) || (joint(at - 1) && in_word(at - 2)) ||
                        (number && at > 0 && text[at - 1] == '-'));
    const bool extends_right =
        in_word(last) && (in_word(last + 1) || (joint(last + 1) && in_word(last + 2)));
    if (!extends_left && !extends_right) return true;
  }
  const std::string without_separators =
      std::regex_replace(std::string(text), std::regex(R"((\d),(?=\d{3}(\D|$)))"), "$1");
  return without_separators != text && has_value(without_separators, value);
}

namespace test_text {

inline std::string text_of(std::string_view value) { return std::string(value); }
template <std::integral Number>
std::string text_of(Number value) {
  return std::to_string(value);
}

MATCHER_P(HasValue, value, (negation ? "does not mention " : "mentions ") + value) {
  return has_value(arg, value);
}
MATCHER_P(HasKind, kind, "") {
  *result_listener << "kind " << static_cast<int>(arg.kind) << ", \"" << arg.message << "\"";
  return arg.kind == kind;
}

}  // namespace test_text

// Matches a text that has all of these values (has_value): strings and whole numbers.
template <typename... Values>
auto mentions(const Values&... values) {
  return ::testing::AllOf(test_text::HasValue(test_text::text_of(values))...);
}

// `text` without any `part`: for comparing two messages about different files.
inline std::string without(std::string text, std::string_view part) {
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at))
    text.erase(at, part.size());
  return text;
}

// Matches a text that proposes this name instead of an unknown one.
inline auto proposes(std::string_view name) {
  const std::array known = {name};
  std::string proposal = did_you_mean(name, known);
  proposal.erase(0, proposal.find_first_not_of(' '));
  return ::testing::HasSubstr(proposal);
}

// Matches an Error of this kind whose message has these values.
template <typename... Values>
auto is_error(ErrorKind kind, const Values&... values) {
  return ::testing::AllOf(
      test_text::HasKind(kind),
      ::testing::Field(&Error::message, test_text::HasValue(test_text::text_of(values)))...);
}

}  // namespace drover
