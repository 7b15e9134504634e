// Texts as cells of a CSV file.
#pragma once

#include <string>
#include <string_view>

namespace drover {

// In quotes if it has a comma, a quote or a line break.
std::string csv_quoted(std::string_view text);

}  // namespace drover
