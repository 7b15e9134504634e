#include "cli/command_table.h"

#include <algorithm>

#include "core/check.h"

namespace drover {

int CommandTable::run(const std::string& command_line) const {
  const auto parsed =
      std::find_if(all_.begin(), all_.end(), [](const auto& each) { return each.first->parsed(); });
  DROVER_CHECK(parsed != all_.end());
  return parsed->second(command_line);
}

std::string check_whole_number(const std::string& text) {
  const bool whole = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return whole ? "" : "expected a whole number, not '" + text + "'";
}

}  // namespace drover
