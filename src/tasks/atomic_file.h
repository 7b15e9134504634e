// Writes a file so that whoever looks sees the old content or the new, never half of it.
#pragma once

#include <span>
#include <string>

#include "core/result.h"

namespace drover {

// Writes beside `path`, syncs to disk and renames. On failure the old file is untouched and nothing
// is left.
Status write_file_atomically(const std::string& path, std::span<const char> bytes);

}  // namespace drover
