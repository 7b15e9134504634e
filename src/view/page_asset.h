// The page itself: one HTML file with everything in it, part of the program.
#pragma once

#include <string_view>

namespace drover {

std::string_view page_html();

// Where a report puts its data; in the page exactly once. Empty in a live page.
inline constexpr std::string_view kDataPlace =
    R"(<script type="application/json" id="drover-data"></script>)";

}  // namespace drover
