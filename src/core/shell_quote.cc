#include "core/shell_quote.h"

#include <algorithm>
#include <cctype>

namespace drover {

std::string shell_quoted(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '-' || c == '_';
  });
  return plain ? text : "'" + text + "'";
}

}  // namespace drover
