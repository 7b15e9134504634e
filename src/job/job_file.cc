#include "job/job_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>

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

std::string in_words(std::string_view table) {
  return table.empty() ? "at the top of the file" : fmt::format("in [{}]", table);
}

// Names that may stand in `table`: its settings and, at the top, the tables themselves.
std::vector<std::string_view> names_in(std::string_view table) {
  std::vector<std::string_view> names;
  std::set<std::string_view> tables;
  for (const Setting& setting : job_settings()) {
    if (table_of(setting) == table) names.push_back(name_of(setting));
    tables.insert(table_of(setting));
  }
  if (table.empty()) names.insert(names.end(), std::next(tables.begin()), tables.end());
  return names;
}

std::string unknown_key(std::string_view table, std::string_view name) {
  const std::string full = table.empty() ? std::string(name) : fmt::format("{}.{}", table, name);
  for (const Setting& setting : job_settings()) {
    if (name_of(setting) == name) {
      return fmt::format("unknown key '{}': '{}' belongs {}", full, name,
                         in_words(table_of(setting)));
    }
  }
  return fmt::format("unknown key '{}'.{}", full, did_you_mean(name, names_in(table)));
}

// Takes over what `table` says, and notes everything that is wrong with it.
void apply(const toml::table& table, std::string_view table_name, Job& job,
           std::vector<Complaint>& complaints) {
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    const auto& settings = job_settings();
    const auto setting = std::find_if(settings.begin(), settings.end(), [&](const Setting& each) {
      return table_of(each) == table_name && name_of(each) == name;
    });
    if (setting != settings.end()) {
      const auto value = value_of(node, setting->kind);
      if (!value) {
        complaints.push_back({node.source().begin, wrong_kind(*setting, node)});
        continue;
      }
      const Status status = setting->set(job, *value);
      if (!status) {
        complaints.push_back(
            {node.source().begin, fmt::format("{}: {}", setting->key, status.error().message)});
      }
      continue;
    }
    const bool is_known_table = table_name.empty() && std::any_of(settings.begin(), settings.end(),
                                                                  [&](const Setting& each) {
                                                                    return table_of(each) == name;
                                                                  });
    if (is_known_table && node.is_table()) {
      apply(*node.as_table(), name, job, complaints);
    } else if (is_known_table) {
      complaints.push_back(
          {node.source().begin, fmt::format("{}: expected a table [{}], found {}: {}", name, name,
                                            words_for(node.type()), source_text(node))});
    } else {
      complaints.push_back({key.source().begin, unknown_key(table_name, name)});
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
  // The shortest that reads back the same: 0.1, where the library writes 0.10000000000000001.
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return toml_text(toml::value(*text));
  toml::array array;
  for (const std::string& text : std::get<std::vector<std::string>>(value)) array.push_back(text);
  return toml_text(array);
}

}  // namespace

void read_job_table(const toml::table& table, Job& job, std::vector<Complaint>& complaints) {
  apply(table, "", job, complaints);
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
  std::string_view table;
  for (const Setting& setting : job_settings()) {
    if (table_of(setting) != table) {
      table = table_of(setting);
      text += fmt::format("\n[{}]\n", table);
    }
    const std::string line = fmt::format("{} = {}", name_of(setting), toml_text(setting.get(job)));
    text += fmt::format("{:<{}}  # {}\n", line, kCommentColumn, setting.help);
  }
  return text;
}

}  // namespace drover
