// The dashboard's page: one self-contained HTML file that is compiled into the program.
#pragma once

#include <string_view>

namespace drover {

std::string_view page_html();

// The element into which a report puts its data. It occurs exactly once in the page, and stays
// empty in a live page.
inline constexpr std::string_view kDataElement =
    R"(<script type="application/json" id="drover-data"></script>)";

}  // namespace drover
