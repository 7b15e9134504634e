// Data sets drawn from a seed, for runs that should need no download: every machine draws the same
// bytes.
#pragma once

#include <cstdint>

#include "tasks/data/dataset.h"

namespace drover {

// Ten classes of 1 x 28 x 28 images: each class has a picture of its own, shown shifted and noisy.
// `samples` for training and a quarter as many for testing. REQUIRES: samples >= 1.
Dataset generate_images(uint64_t seed, uint64_t samples);

// Words of a small made-up language, each followed by one of the few words that may follow it;
// 16 characters per sample. REQUIRES: samples >= 1.
Dataset generate_text(uint64_t seed, uint64_t samples);

}  // namespace drover
