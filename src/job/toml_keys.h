// TomlKeys: reads the keys of one TOML table into values, and collects errors.
//
// Each call names a key that the table may have. finish() adds errors for all other keys.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"
#include "job/toml_complaint.h"

namespace drover {

class TomlKeys {
 public:
  // `name` is the table's name in messages: "[[slow]]"; empty for the top level of the file.
  TomlKeys(const toml::table& table, std::string_view name, std::vector<Complaint>& complaints)
      : table_(table), name_(name), complaints_(complaints), before_(complaints.size()) {}

  bool has(std::string_view key) const { return table_.contains(key); }

  // Each leaves `value` unchanged if the key is absent or its value invalid.
  void number(std::string_view key, double& value, double min, double max);
  void count(std::string_view key, uint32_t& value, uint32_t min, uint32_t max);
  void count(std::string_view key, std::optional<uint32_t>& value, uint32_t min, uint32_t max);
  void step(std::string_view key, std::optional<Step>& value);
  void flag(std::string_view key, bool& value);
  void text(std::string_view key, std::string& value);
  // "200ms", "1.5s".
  void duration(std::string_view key, Duration& value);
  // Text that `parse` accepts; its error says what is expected.
  void parsed(std::string_view key, const std::function<Status(const std::string&)>& parse);
  // A whole number, or a range as text such as "0-39" (first and last).
  void range(std::string_view key, std::optional<std::pair<uint32_t, uint32_t>>& value);

  // Marks a key as required. If it is missing, finish() adds an error, unless the table has other
  // errors: the key may be misspelt.
  void need(std::string_view key, std::string_view example);

  // The node of a key that the caller reads itself; null if absent.
  const toml::node* node(std::string_view key);

  void complain(std::string_view key, const std::string& what);
  void complain(const std::string& what);  // about the table
  void finish();

 private:
  void wrong_kind(std::string_view key, const toml::node& node, std::string_view expected);

  const toml::table& table_;
  const std::string name_;
  std::vector<Complaint>& complaints_;
  const size_t before_;  // number of complaints before this table
  std::vector<std::string_view> known_;
  std::vector<std::string> missing_;  // examples of missing required keys
};

}  // namespace drover
