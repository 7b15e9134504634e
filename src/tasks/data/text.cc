#include <fmt/format.h>

#include <array>

#include "tasks/data/input_file.h"
#include "tasks/data/readers.h"

namespace drover {
namespace {

constexpr size_t kTextBytesMax = size_t{1} << 30;

}  // namespace

Result<Dataset> dataset_of_text(std::span<const uint8_t> text, const std::string& origin) {
  if (text.empty()) return invalid_input(fmt::format("{} is empty", origin));
  std::array<uint8_t, 256> index_of{};
  std::array<bool, 256> occurs{};
  for (const uint8_t byte : text) occurs[byte] = true;
  if (occurs[0]) {
    return invalid_input(fmt::format("{} is not a text file: it contains zero bytes", origin));
  }
  Dataset dataset;
  dataset.kind = DataKind::kText;
  for (size_t byte = 0; byte < occurs.size(); ++byte) {
    if (!occurs[byte]) continue;
    index_of[byte] = static_cast<uint8_t>(dataset.vocabulary.size());
    dataset.vocabulary.push_back(static_cast<char>(byte));
  }
  dataset.classes = static_cast<uint32_t>(dataset.vocabulary.size());
  const size_t split = text.size() - text.size() / 10;
  for (size_t i = 0; i < text.size(); ++i) {
    (i < split ? dataset.train : dataset.test).bytes.push_back(index_of[text[i]]);
  }
  return dataset;
}

Result<Dataset> read_text(const std::string& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return file.error();
  const Result<std::vector<uint8_t>> bytes = file.value().read_rest(kTextBytesMax);
  if (!bytes.ok()) return bytes.error();
  return dataset_of_text(bytes.value(), path);
}

}  // namespace drover
