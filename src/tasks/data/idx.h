// Reads image sets in the IDX format of MNIST: one file of images and one of labels per part.
#pragma once

#include <string>

#include "core/result.h"
#include "tasks/data/dataset.h"

namespace drover {

struct IdxFiles {
  std::string train_images;
  std::string train_labels;
  std::string test_images;
  std::string test_labels;
};

// Classes are 0 up to the largest label of the training part. Files may be gzip or plain.
Result<Dataset> read_idx(const IdxFiles& files);

}  // namespace drover
