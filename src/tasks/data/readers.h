// Readers of data sets, and generators of data sets for runs without a download.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

inline constexpr size_t kCifarPixels = 3 * 32 * 32;
inline constexpr size_t kCifarRecord = 1 + kCifarPixels;
inline constexpr uint32_t kCifarClasses = 10;

// Any number of training batches, at least one; each may be gzip or plain and of any length.
Result<Dataset> read_cifar10(const std::vector<std::string>& train_batches,
                             const std::string& test_batch);

// Makes rows dense. Labels must be whole numbers; in ascending order they become classes 0, 1, ...,
// so -1/+1 and 0/1 both become two classes. Without a test file (empty path) every tenth row is
// used for testing.
Result<Dataset> read_libsvm(const std::string& train_path, const std::string& test_path);

// Whether a line looks like LIBSVM: a number, then only index:value pairs, at least one.
bool looks_like_libsvm(std::string_view line);

// The first nine tenths are for training, the rest for testing; the vocabulary is every byte that
// occurs.
Result<Dataset> read_text(const std::string& path);

// The same from memory; `origin` names the text in errors.
Result<Dataset> dataset_of_text(std::span<const uint8_t> text, const std::string& origin);

// Ten classes of 1 x 28 x 28 images: shifted and noisy copies of one picture per class. Has
// `samples` training samples, and a quarter as many for testing. REQUIRES: samples >= 1.
Dataset generate_images(uint64_t seed, uint64_t samples);

// Words of a small artificial language, in which only a few words may follow each word; 16
// characters per sample. REQUIRES: samples >= 1.
Dataset generate_text(uint64_t seed, uint64_t samples);

}  // namespace drover
