// Settings that had another name, or that were removed: for errors that name the successor, and for
// files that older versions have written.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace drover {

// The name that a setting of an older version has now; the same name if it was not renamed.
// "optimizer.kind" -> "optimizer".
std::string_view current_setting_name(std::string_view name);

// The end of an error message about a setting that was renamed or removed: "is now lr_warmup".
// Nothing if no version had a setting of that name. `exists` says which successors are known here.
std::optional<std::string> successor_of_setting(
    std::string_view name, const std::function<bool(std::string_view)>& exists = nullptr);

}  // namespace drover
