// Finds the known name that a misspelt word probably means.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace drover {

// Number of single-character insertions, deletions, replacements and swaps of neighbours between
// two words.
size_t edit_distance(std::string_view a, std::string_view b);

// The name in `known` with the least edit distance, if that is at most a third of the word (at
// least one letter).
std::optional<std::string> nearest_name(std::string_view word,
                                        std::span<const std::string_view> known);

// " Did you mean 'sync'?" or "" for the end of an error message.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace drover
