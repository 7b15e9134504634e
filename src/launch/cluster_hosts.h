// Lists of hosts as Slurm writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace drover {

// "node[01-03,7],gpu1" is node01, node02, node03, node7
// and gpu1.
Result<std::vector<std::string>> expand_hosts(std::string_view list);

}  // namespace drover
