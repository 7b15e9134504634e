// Makes a Setting of each kind for a field of Job; only settings.cc uses it.
//
// `field` is always a generic lambda that returns the field of a Job, const or not.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/result.h"
#include "job/job.h"
#include "job/settings.h"
#include "wire/limits.h"

namespace drover {

// The members that settings of every kind have.
struct SettingHead {
  std::string_view key;
  SettingGroup group;
  Listing listing;
  std::string_view help;
};

inline Setting setting_of(const SettingHead& head, SettingKind kind,
                          std::function<SettingValue(const Job&)> get,
                          std::function<Status(Job&, const SettingValue&)> set) {
  return {head.key, head.group, head.listing, head.help, kind, std::move(get), std::move(set)};
}

template <typename Field>
Setting switch_setting(const SettingHead& head, Field field) {
  return setting_of(
      head, SettingKind::kSwitch, [field](const Job& job) { return SettingValue(field(job)); },
      [field](Job& job, const SettingValue& value) {
        field(job) = std::get<bool>(value);
        return done();
      });
}

template <typename Field>
Setting count_setting(const SettingHead& head, Field field, uint64_t min, uint64_t max) {
  return setting_of(
      head, SettingKind::kCount,
      [field](const Job& job) { return SettingValue(uint64_t{field(job)}); },
      [field, min, max](Job& job, const SettingValue& value) -> Status {
        const auto count = std::get<uint64_t>(value);
        if (count < min || count > max) {
          return invalid_input(fmt::format("must be from {} to {}, not {}", min, max, count));
        }
        field(job) = static_cast<std::remove_reference_t<decltype(field(job))>>(count);
        return done();
      });
}

struct NumberRange {
  double min;
  double max;
  bool without_min = false;
  bool without_max = false;
};

template <typename Field>
Setting number_setting(const SettingHead& head, Field field, NumberRange range) {
  return setting_of(
      head, SettingKind::kNumber, [field](const Job& job) { return SettingValue(field(job)); },
      [field, range](Job& job, const SettingValue& value) -> Status {
        const auto number = std::get<double>(value);
        // Written so that NaN, which compares false with everything, is outside.
        const bool inside = (range.without_min ? number > range.min : number >= range.min) &&
                            (range.without_max ? number < range.max : number <= range.max);
        if (!inside) {
          return invalid_input(fmt::format(
              "must be {} {} and {} {}, not {}", range.without_min ? "more than" : "at least",
              range.min, range.without_max ? "less than" : "at most", range.max, number));
        }
        field(job) = number;
        return done();
      });
}

enum class MayBeEmpty : uint8_t { kNo, kYes };

template <typename Field>
Setting text_setting(const SettingHead& head, Field field, MayBeEmpty may_be_empty) {
  return setting_of(
      head, SettingKind::kText, [field](const Job& job) { return SettingValue(field(job)); },
      [field, may_be_empty](Job& job, const SettingValue& value) -> Status {
        const auto& text = std::get<std::string>(value);
        if (text.empty() && may_be_empty == MayBeEmpty::kNo) {
          return invalid_input("must not be empty");
        }
        if (text.size() > kTextBytesMax) {
          return invalid_input(fmt::format("must be at most {} bytes long", kTextBytesMax));
        }
        field(job) = text;
        return done();
      });
}

// One of several names. `parse` turns a name into the value, or lists the known names.
template <typename Field, typename Name, typename Parse>
Setting choice_setting(const SettingHead& head, Field field, Name name, Parse parse) {
  return setting_of(
      head, SettingKind::kText,
      [field, name](const Job& job) { return SettingValue(std::string(name(field(job)))); },
      [field, parse](Job& job, const SettingValue& value) -> Status {
        auto parsed = parse(std::get<std::string>(value));
        if (!parsed.ok()) return parsed.error();
        field(job) = std::move(parsed).value();
        return done();
      });
}

}  // namespace drover
