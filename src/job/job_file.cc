#include "job/job_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/former_settings.h"
#include "core/nearest.h"
#include "job/settings.h"
#include "job/toml_complaint.h"
#include "job/validation.h"

namespace drover {
namespace {

// The node's value if it is of the right kind; a whole number is also a number.
std::optional<SettingValue> value_of(const toml::node& node, SettingKind kind) {
  switch (kind) {
    case SettingKind::kSwitch:
      if (const auto* value = node.as_boolean()) return SettingValue(value->get());
      break;
    case SettingKind::kCount:
      if (const auto* value = node.as_integer(); value && value->get() >= 0) {
        return SettingValue(static_cast<uint64_t>(value->get()));
      }
      break;
    case SettingKind::kNumber:
      if (const auto* value = node.as_floating_point()) return SettingValue(value->get());
      if (const auto* value = node.as_integer()) {
        return SettingValue(static_cast<double>(value->get()));
      }
      break;
    case SettingKind::kText:
      if (const auto* value = node.as_string()) return SettingValue(value->get());
      break;
    case SettingKind::kTexts:
      if (const auto* array = node.as_array()) {
        std::vector<std::string> texts;
        for (const toml::node& element : *array) {
          if (!element.is_string()) return std::nullopt;
          texts.push_back(element.as_string()->get());
        }
        return SettingValue(std::move(texts));
      }
      break;
  }
  return std::nullopt;
}

std::string wrong_kind(const Setting& setting, const toml::node& node) {
  if (setting.kind == SettingKind::kCount && node.is_integer()) {
    return fmt::format("{}: must not be negative: {}", setting.key, source_text(node));
  }
  if (node.is_table() || node.is_array()) {
    return fmt::format("{}: expected {}, found {}", setting.key, words_for(setting.kind),
                       words_for(node.type()));
  }
  return fmt::format("{}: expected {}, found {}: {}", setting.key, words_for(setting.kind),
                     words_for(node.type()), source_text(node));
}

// `name` as it is written in the file: "lr", or "optimizer.kind" in the table [optimizer].
std::string unknown_key(std::string_view name) {
  if (const auto successor = successor_of_setting(name))
    return fmt::format("{}: {}", name, *successor);
  std::vector<std::string_view> known;
  for (const Setting& setting : job_settings()) known.push_back(setting.key);
  return fmt::format("unknown key '{}'.{}", name, did_you_mean(name, known));
}

// Job files of older versions had tables, [optimizer] and [schedule].
void refuse_table(std::string_view name, const toml::table& table,
                  std::vector<Complaint>& complaints) {
  for (const auto& [key, node] : table) {
    const std::string full = fmt::format("{}.{}", name, key.str());
    std::string what =
        find_setting(key.str()) != nullptr && !successor_of_setting(full)
            ? fmt::format("unknown key '{}': {} belongs at the top of the file", full, key.str())
            : unknown_key(full);
    if (successor_of_setting(full)) what += ", at the top of the file: a job file has no tables";
    complaints.push_back({key.source().begin, std::move(what)});
  }
  if (table.empty()) {
    complaints.push_back(
        {table.source().begin, fmt::format("{}: expected a value, found an empty table", name)});
  }
}

// Adopts the settings of `table`, and lists everything that is wrong with it.
void apply(const toml::table& table, Job& job, std::vector<Complaint>& complaints) {
  for (const auto& [key, node] : table) {
    if (const auto* const inner = node.as_table()) {
      refuse_table(key.str(), *inner, complaints);
      continue;
    }
    const Setting* const setting = find_setting(key.str());
    if (setting == nullptr) {
      complaints.push_back({key.source().begin, unknown_key(key.str())});
      continue;
    }
    const auto value = value_of(node, setting->kind);
    if (!value) {
      complaints.push_back({node.source().begin, wrong_kind(*setting, node)});
      continue;
    }
    if (const Status status = setting->set(job, *value); !status) {
      complaints.push_back(
          {node.source().begin, fmt::format("{}: {}", setting->key, status.error().message)});
    }
  }
}

// The library's text, on one line: its multi-line form loses a newline at the start.
std::string toml_text(const toml::node& node) {
  std::ostringstream out;
  out << toml::toml_formatter(node, toml::format_flags::none);
  return out.str();
}

std::string toml_text(const SettingValue& value) {
  if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "true" : "false";
  if (const auto* count = std::get_if<uint64_t>(&value)) return fmt::format("{}", *count);
  // The shortest text that parses to the same number: 0.1, where the library writes
  // 0.10000000000000001.
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return toml_text(toml::value(*text));
  toml::array array;
  for (const std::string& text : std::get<std::vector<std::string>>(value)) array.push_back(text);
  return toml_text(array);
}

}  // namespace

void read_job_table(const toml::table& table, Job& job, std::vector<Complaint>& complaints) {
  apply(table, job, complaints);
}

Result<Job> parse_job(std::string_view text, std::string_view name, const Job& defaults) {
  const auto table = parse_toml(text, name);
  if (!table) return table.error();
  Job job = defaults;
  std::vector<Complaint> complaints;
  read_job_table(table.value(), job, complaints);
  if (!complaints.empty()) return first_of(complaints, name);
  finish(job);
  return job;
}

Result<Job> read_job_file(const std::string& path, const Job& defaults) {
  const auto text = read_toml_file(path, "job file");
  if (!text) return text.error();
  return parse_job(text.value(), path, defaults);
}

std::string to_toml(const Job& job) {
  constexpr size_t kCommentColumn = 30;
  std::string text;
  std::optional<SettingGroup> group;
  for (const Setting& setting : job_settings()) {
    if (setting.group != group) {
      text += fmt::format("{}# {}\n", group ? "\n" : "", name_of(setting.group));
      group = setting.group;
    }
    const std::string line = fmt::format("{} = {}", setting.key, toml_text(setting.get(job)));
    text += fmt::format("{:<{}}  # {}\n", line, kCommentColumn, setting.help);
  }
  return text;
}

}  // namespace drover
