// Creates a run file with tables and header. Never overwrites a file.
#pragma once

#include <string>

#include "core/result.h"
#include "store/database.h"
#include "store/run_header.h"

namespace drover {

// The file appears under its name only when it is complete: a kill leaves a complete run file or
// none, and possibly a draft beside it (`path`.new-<pid>). Creates parent folders. An existing file
// at `path` is not changed, and named in the Error. The returned database is open for writing, in
// WAL mode.
Result<Database> create_run_file(const std::string& path, const RunHeader& header);

}  // namespace drover
