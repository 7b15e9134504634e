#include <algorithm>
#include <array>
#include <string>

#include "core/check.h"
#include "core/random_draw.h"
#include "tasks/data/readers.h"

namespace drover {
namespace {

constexpr int kSide = 28;
constexpr size_t kPixels = kSide * kSide;
constexpr uint32_t kClasses = 10;

using Picture = std::array<uint8_t, kPixels>;

// The purpose of a random draw within the generated data.
enum class Part : uint64_t { kPicture = 1, kTrain = 2, kTest = 3, kWord = 4, kText = 5 };

uint64_t part_key(uint64_t seed, Part part, uint64_t index) {
  return draw(
      {seed, static_cast<uint64_t>(Purpose::kGeneratedData), static_cast<uint64_t>(part), index});
}

// Five round spots. Integer arithmetic only, here and below, gives the same data on every machine.
Picture class_picture(uint64_t seed, uint32_t label) {
  Picture picture{};
  for (uint64_t blot = 0; blot < 5; ++blot) {
    const uint64_t bits = mix_bits(part_key(seed, Part::kPicture, label) + blot);
    const int centre_x = 4 + static_cast<int>(bits % 20);
    const int centre_y = 4 + static_cast<int>((bits >> 16) % 20);
    const int radius = 3 + static_cast<int>((bits >> 32) % 4);
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const int distance = (x - centre_x) * (x - centre_x) + (y - centre_y) * (y - centre_y);
        const int value = std::max(0, 180 - 180 * distance / (radius * radius));
        uint8_t& pixel = picture[static_cast<size_t>(y * kSide + x)];
        pixel = static_cast<uint8_t>(std::min(255, pixel + value));
      }
    }
  }
  return picture;
}

// `picture`, shifted by at most two pixels in each direction, with bell-shaped noise of deviation
// ~92.
void append_sample(const Picture& picture, uint64_t key, DataPart& part) {
  const uint64_t shift = mix_bits(key);
  const int shift_x = static_cast<int>(shift % 5) - 2;
  const int shift_y = static_cast<int>((shift >> 16) % 5) - 2;
  uint64_t bits = 0;
  for (int i = 0; i < static_cast<int>(kPixels); ++i) {
    // One draw of 64 bits is used for two pixels, with four bytes each.
    bits = i % 2 == 0 ? mix_bits(key + 1 + static_cast<uint64_t>(i)) : bits >> 32;
    const int noise = static_cast<int>((bits & 0xff) + (bits >> 8 & 0xff) + (bits >> 16 & 0xff) +
                                       (bits >> 24 & 0xff)) -
                      510;
    const int x = std::clamp(i % kSide + shift_x, 0, kSide - 1);
    const int y = std::clamp(i / kSide + shift_y, 0, kSide - 1);
    const int value = picture[static_cast<size_t>(y * kSide + x)] + noise * 10 / 16;
    part.bytes.push_back(static_cast<uint8_t>(std::clamp(value, 0, 255)));
  }
}

DataPart draw_part(const std::array<Picture, kClasses>& pictures, uint64_t seed, Part part,
                   uint64_t samples) {
  DataPart drawn;
  drawn.bytes.reserve(samples * kPixels);
  for (uint64_t row = 0; row < samples; ++row) {
    const uint64_t key = part_key(seed, part, row);
    // Classes take turns, so that every class occurs. Samples are visited in random order anyway.
    const auto label = static_cast<uint32_t>(row % kClasses);
    append_sample(pictures[label], key, drawn);
    drawn.labels.push_back(label);
  }
  return drawn;
}

}  // namespace

Dataset generate_images(uint64_t seed, uint64_t samples) {
  DROVER_CHECK(samples >= 1);
  std::array<Picture, kClasses> pictures;
  for (uint32_t label = 0; label < kClasses; ++label) pictures[label] = class_picture(seed, label);
  Dataset dataset;
  dataset.kind = DataKind::kImages;
  dataset.height = kSide;
  dataset.width = kSide;
  dataset.classes = kClasses;
  dataset.train = draw_part(pictures, seed, Part::kTrain, samples);
  dataset.test = draw_part(pictures, seed, Part::kTest, std::max<uint64_t>(1, samples / 4));
  measure_pixels(dataset);
  return dataset;
}

Dataset generate_text(uint64_t seed, uint64_t samples) {
  DROVER_CHECK(samples >= 1);
  constexpr uint64_t kWords = 32;
  constexpr uint64_t kFollowers = 4;
  std::array<std::string, kWords> words;
  for (uint64_t word = 0; word < kWords; ++word) {
    uint64_t bits = part_key(seed, Part::kWord, word);
    const uint64_t length = 2 + bits % 5;
    for (uint64_t letter = 0; letter < length; ++letter) {
      bits = mix_bits(bits);
      words[word].push_back(static_cast<char>('a' + bits % 20));
    }
  }
  const uint64_t characters = std::max<uint64_t>(samples * 16, 2048);
  std::string text;
  for (uint64_t word = 0, turn = 0; text.size() < characters; ++turn) {
    text += words[word];
    text += turn % 8 == 7 ? '\n' : ' ';
    const uint64_t choice = part_key(seed, Part::kText, turn) % kFollowers;
    word = part_key(seed, Part::kWord, kWords + word * kFollowers + choice) % kWords;
  }
  text.resize(characters);
  return dataset_of_text({reinterpret_cast<const uint8_t*>(text.data()), text.size()},
                         "generated-text")
      .value();
}

}  // namespace drover
