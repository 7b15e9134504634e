#include "view/page_asset.h"

#include <cstddef>

// The file is embedded, so that the program needs no other files.
asm(R"(
  .pushsection .rodata
  .global drover_page_begin
  .global drover_page_end
drover_page_begin:
  .incbin ")" DROVER_PAGE_FILE R"("
drover_page_end:
  .popsection
)");
extern "C" const char drover_page_begin[];
extern "C" const char drover_page_end[];

namespace drover {

std::string_view page_html() {
  return {drover_page_begin, static_cast<size_t>(drover_page_end - drover_page_begin)};
}

}  // namespace drover
