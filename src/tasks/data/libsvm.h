// Reads LIBSVM text: per line a label and sparse features, `+1 3:0.5 7:1`.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "tasks/data/dataset.h"

namespace drover {

// Rows are made dense. Labels must be whole numbers; in rising order they become classes 0, 1, ...,
// so -1/+1 and 0/1 both become two classes. Without a test file (empty path) every tenth row is
// kept for testing.
Result<Dataset> read_libsvm(const std::string& train_path, const std::string& test_path);

// Whether a line looks like LIBSVM: a number, then only index:value pairs, at least one.
bool looks_like_libsvm(std::string_view line);

}  // namespace drover
