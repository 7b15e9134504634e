// Every target keeps its promises for all inputs of its corpus, for parts of them, and for small
// changes of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/promise.h"
#include "fuzz/targets.h"

namespace drover::fuzz {
namespace {

constexpr int kNeighbours = 40;  // of each input

class Corpus : public ::testing::TestWithParam<Target> {};

void try_input(const Target& target, const std::string& name, const std::string& input) {
  name_input("in " + name);
  target.run(std::as_bytes(std::span(input)));
}

std::string neighbour(std::string input, std::mt19937_64& random) {
  if (input.empty()) return input;
  for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
    const size_t at = random() % input.size();
    switch (random() % 3) {
      case 0:
        input[at] = static_cast<char>(random());
        break;
      case 1:
        input.insert(at, input.substr(random() % input.size(), random() % 16));
        break;
      default:
        input.erase(at, 1 + random() % 8);
        if (input.empty()) return input;
    }
  }
  return input;
}

TEST_P(Corpus, BreaksNoPromise) {
  const std::filesystem::path folder =
      std::filesystem::path(DROVER_FUZZ_CORPUS) / std::string(GetParam().name);
  std::vector<std::filesystem::path> files{std::filesystem::directory_iterator(folder), {}};
  std::ranges::sort(files);
  ASSERT_FALSE(files.empty()) << folder << " is empty";
  std::mt19937_64 random(1);
  try_input(GetParam(), "an empty input", "");
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    try_input(GetParam(), path, input);
    try_input(GetParam(), path.string() + ", its first half", input.substr(0, input.size() / 2));
    for (int i = 0; i < kNeighbours; ++i)
      try_input(GetParam(), path.string() + ", neighbour " + std::to_string(i),
                neighbour(input, random));
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace drover::fuzz
