// Options of a policy: parses the text after its name by a table of rules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace drover {

enum class OptionKind : uint8_t {
  kNumber,
  kCount,
  kWord,
  kPath,  // of a file; any text without ':', which separates options
};

// The rule for one option. A bare value is a policy's first option.
struct OptionRule {
  std::string_view key;
  OptionKind kind = OptionKind::kNumber;
  double lowest = 0.0;  // exclusive for numbers, inclusive for counts
  double highest = 1e9;
  std::string_view words = {};       // valid values of kWord: "pooled or each"
  bool needed = false;               // an error if it is not given
  std::string_view instead_of = {};  // an option that cannot be given together with this one
};

// The given options.
class Options {
 public:
  // Parses NAME:KEY=VALUE:VALUE... by the rules; ignores the name. The caller adds the policy to an
  // error's message.
  static Result<Options> parse(std::string_view text, std::span<const OptionRule> rules);

  bool has(std::string_view key) const { return values_.contains(key); }
  // Changes `setting` if the option was given, so that a setting keeps its default otherwise.
  void take(std::string_view key, double& setting) const;
  void take(std::string_view key, uint32_t& setting) const;
  // REQUIRES: has(key), and its rule has this kind.
  double number(std::string_view key) const;
  uint32_t count(std::string_view key) const;
  std::string_view word(std::string_view key) const;  // or path

 private:
  struct Value {
    double number = 0.0;
    std::string word;
  };
  static Result<Value> read(const OptionRule& rule, std::string_view text);

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace drover
