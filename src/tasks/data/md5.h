// MD5 sums of files, to detect data sets that differ from the published ones. Not for security.
#pragma once

#include <string>

#include "core/result.h"

namespace drover {

// The MD5 sum in lower-case hexadecimal. For a gzip file, the sum of its uncompressed content.
Result<std::string> md5_of_file(const std::string& path);

}  // namespace drover
