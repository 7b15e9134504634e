// Options of a policy: read from the text behind its name by the rules of one table.
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
  kPath,  // of a file: any text, but no ':', which begins the next option
};

// What one option may be. The first option of a policy may be given by its bare value.
struct OptionRule {
  std::string_view key;
  OptionKind kind = OptionKind::kNumber;
  double lowest = 0.0;  // numbers: must be more than this; counts: at least this
  double highest = 1e9;
  std::string_view words = {};       // of kWord, e.g. "pooled or each"
  bool needed = false;               // an error if it is not given
  std::string_view instead_of = {};  // an option that cannot be given together with this one
};

// The options that were given.
class Options {
 public:
  // Reads NAME:KEY=VALUE:VALUE... by the rules, whatever the name. An error says what is wrong, and
  // leaves it to the caller to say with what.
  static Result<Options> parse(std::string_view text, std::span<const OptionRule> rules);

  bool has(std::string_view key) const { return values_.contains(key); }
  // Changes `setting` if the option was given: what is usual stays where the setting is.
  void take(std::string_view key, double& setting) const;
  void take(std::string_view key, uint32_t& setting) const;
  // REQUIRES: has(key), and the rule of the key is of that kind.
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
