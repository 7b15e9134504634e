// Makes a new run file: tables, header, and nothing that was there before destroyed.
#pragma once

#include <string>

#include "core/result.h"
#include "store/database.h"
#include "store/run_header.h"

namespace drover {

// The file appears under its name only when it is complete, so that a kill leaves a run file or
// none (and perhaps a draft beside it, `path`.new-<pid>). Makes the folders above. Whatever lies at
// `path` already is left alone and named in the Error. The database is open for writing, in WAL
// mode.
Result<Database> create_run_file(const std::string& path, const RunHeader& header);

}  // namespace drover
