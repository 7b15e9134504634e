// Reads a text file as a sequence of characters (bytes, as far as we care) to predict one after
// another.
#pragma once

#include <span>
#include <string>

#include "core/result.h"
#include "tasks/data/dataset.h"

namespace drover {

// The first nine tenths are for training, the rest for testing; the vocabulary is every byte that
// occurs.
Result<Dataset> read_text(const std::string& path);

// The same from memory; `origin` is what an error calls it.
Result<Dataset> dataset_of_text(std::span<const uint8_t> text, const std::string& origin);

}  // namespace drover
