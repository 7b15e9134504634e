#include "job/given_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/check.h"
#include "job/job_file.h"
#include "job/validation.h"

namespace drover {
namespace {

template <typename Number>
bool read_number(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, trouble] = std::from_chars(text.data(), end, number);
  return trouble == std::errc{} && stop == end;
}

// The texts of a flag as a value of the setting's kind.
Result<SettingValue> value_of(const Setting& setting, const std::vector<std::string>& texts) {
  if (setting.kind == SettingKind::kTexts) return SettingValue(texts);
  DROVER_CHECK(texts.size() == 1);
  const std::string& text = texts.front();
  switch (setting.kind) {
    case SettingKind::kSwitch:
      if (text == "true" || text == "false") return SettingValue(text == "true");
      break;
    case SettingKind::kCount:
      if (uint64_t count = 0; read_number(text, count)) return SettingValue(count);
      break;
    case SettingKind::kNumber:
      if (double number = 0.0; read_number(text, number)) return SettingValue(number);
      break;
    case SettingKind::kText:
      return SettingValue(text);
    case SettingKind::kTexts:
      break;
  }
  return invalid_input(fmt::format("expected {}, not '{}'", words_for(setting.kind), text));
}

Status apply_flag(const Setting& setting, const std::vector<std::string>& texts, Job& job) {
  const Result<SettingValue> value = value_of(setting, texts);
  if (!value) return value.error();
  return setting.set(job, value.value());
}

}  // namespace

std::vector<std::string> flag_texts(const SettingValue& value) {
  if (const auto* on = std::get_if<bool>(&value)) return {*on ? "true" : "false"};
  if (const auto* count = std::get_if<uint64_t>(&value)) return {fmt::format("{}", *count)};
  if (const auto* number = std::get_if<double>(&value)) return {fmt::format("{}", *number)};
  if (const auto* text = std::get_if<std::string>(&value)) return {*text};
  return std::get<std::vector<std::string>>(value);
}

std::vector<std::string> command_words(const GivenFlags& flags) {
  std::vector<std::string> words;
  for (const Setting& setting : job_settings()) {
    const auto given = flags.find(setting.key);
    if (given == flags.end()) continue;
    const std::string flag = flag_of(setting);
    if (setting.listing == Listing::kJobFile) {
      for (const std::string& text : given->second) {
        words.emplace_back("--set");
        words.push_back(fmt::format("{}={}", setting.key, text));
      }
      continue;
    }
    if (setting.kind == SettingKind::kSwitch) {
      words.push_back(given->second.front() == "true" ? flag : "--no-" + flag.substr(2));
      continue;
    }
    for (const std::string& text : given->second) {
      words.push_back(flag);
      words.push_back(text);
    }
  }
  return words;
}

Status set_flags(const GivenFlags& flags, Job& job) {
  for (const Setting& setting : job_settings()) {
    const auto given = flags.find(setting.key);
    if (given == flags.end()) continue;
    const Status status = apply_flag(setting, given->second, job);
    if (!status) {
      return invalid_input(fmt::format(
          "{}: {}",
          setting.listing == Listing::kJobFile ? std::string(setting.key) : flag_of(setting),
          status.error().message));
    }
  }
  return done();
}

Status apply_flags(const GivenFlags& flags, Job& job) {
  if (const Status status = set_flags(flags, job); !status) return status;
  finish(job);
  return validate(job);
}

Result<Job> job_of(const std::string& job_file, const GivenFlags& flags, const Job& defaults) {
  Job job = defaults;
  if (!job_file.empty()) {
    Result<Job> from_file = read_job_file(job_file, defaults);
    if (!from_file) return from_file;
    job = std::move(from_file).value();
  }
  if (const Status status = apply_flags(flags, job); !status) return status.error();
  return job;
}

}  // namespace drover
