// Settings that were renamed or removed: for errors that name the successor, and to read files of
// older versions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace drover {

// The current name of a setting of an older version: "optimizer.kind" -> "optimizer". The same name
// if it was not renamed.
std::string_view current_setting_name(std::string_view name);

// The end of an error message about a setting that was renamed or removed: "is now lr_warmup".
// nullopt if no version had a setting of that name. `exists` returns whether a successor is known
// in the caller's context.
std::optional<std::string> successor_of_setting(
    std::string_view name, const std::function<bool(std::string_view)>& exists = nullptr);

}  // namespace drover
