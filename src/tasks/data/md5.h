// MD5 sums of files, to tell whether a data set is the published one. Not for anything an enemy
// could touch.
#pragma once

#include <string>

#include "core/result.h"

namespace drover {

// Of the content as unpacked, in lower-case hexadecimal: a gzip file has the sum of what is in it.
Result<std::string> md5_of_file(const std::string& path);

}  // namespace drover
