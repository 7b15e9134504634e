#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "tasks/data/input_file.h"
#include "tasks/data/readers.h"

namespace drover {
namespace {

constexpr size_t kFileBytesMax = size_t{4} << 30;
constexpr uint64_t kDenseFloatsMax = uint64_t{1} << 30;  // 4 GiB: the launcher holds it in memory
constexpr size_t kClassesMax = 1000;

struct SparseRows {
  struct Entry {
    uint32_t feature;  // counted from 0
    float value;
  };
  std::vector<Entry> entries;
  std::vector<size_t> ends;  // where each row's entries end
  std::vector<long> labels;
  uint32_t features = 0;
};

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Removes and returns the next word of `line`; empty at its end or at a comment.
std::string_view next_word(std::string_view& line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos || line[begin] == '#') return {};
  const size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Appends the line to `rows`, or returns the error.
std::optional<std::string> append_line(std::string_view line, SparseRows& rows) {
  const std::string_view label_word = next_word(line);
  if (label_word.empty()) return std::nullopt;
  const auto label = parse_number<double>(label_word);
  if (!label) return fmt::format("'{}' is not a label", label_word);
  if (*label != std::floor(*label) || std::abs(*label) > 1e9) {
    return fmt::format("label {} is not a class number; only classification is supported",
                       label_word);
  }
  int64_t last = -1;
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    const size_t colon = word.find(':');
    if (colon == std::string_view::npos) return fmt::format("'{}' is not index:value", word);
    const auto index = parse_number<uint32_t>(word.substr(0, colon));
    const auto value = parse_number<float>(word.substr(colon + 1));
    if (!index || !value || !std::isfinite(*value)) {
      return fmt::format("'{}' is not index:value", word);
    }
    if (*index == 0) return fmt::format("'{}': features count from 1", word);
    if (int64_t{*index} <= last) return fmt::format("'{}': features must be in rising order", word);
    last = *index;
    rows.entries.push_back({*index - 1, *value});
    rows.features = std::max(rows.features, *index);
  }
  rows.labels.push_back(std::lround(*label));
  rows.ends.push_back(rows.entries.size());
  return std::nullopt;
}

Result<SparseRows> read_rows(const std::string& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return file.error();
  const Result<std::vector<uint8_t>> bytes = file.value().read_rest(kFileBytesMax);
  if (!bytes.ok()) return bytes.error();
  std::string_view text(reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size());
  SparseRows rows;
  for (size_t number = 1; !text.empty(); ++number) {
    if (const auto trouble = append_line(next_line(text), rows)) {
      return invalid_input(fmt::format("{}, line {}: {}", path, number, *trouble));
    }
  }
  if (rows.labels.empty()) return invalid_input(fmt::format("{} has no rows", path));
  return rows;
}

// Appends row `row` of `rows` to `part`.
void append_dense(const SparseRows& rows, size_t row, const std::vector<long>& classes,
                  uint32_t width, DataPart& part) {
  const size_t begin = row == 0 ? 0 : rows.ends[row - 1];
  const size_t offset = part.values.size();
  part.values.resize(offset + width, 0.0f);
  for (size_t i = begin; i < rows.ends[row]; ++i) {
    part.values[offset + rows.entries[i].feature] = rows.entries[i].value;
  }
  const auto found = std::lower_bound(classes.begin(), classes.end(), rows.labels[row]);
  part.labels.push_back(static_cast<uint32_t>(found - classes.begin()));
}

}  // namespace

bool looks_like_libsvm(std::string_view line) {
  SparseRows rows;
  return !append_line(line, rows) && !rows.entries.empty();
}

Result<Dataset> read_libsvm(const std::string& train_path, const std::string& test_path) {
  const Result<SparseRows> train = read_rows(train_path);
  if (!train.ok()) return train.error();
  const Result<SparseRows> test = test_path.empty() ? SparseRows{} : read_rows(test_path);
  if (!test.ok()) return test.error();

  const std::set<long> labels(train.value().labels.begin(), train.value().labels.end());
  const std::vector<long> classes(labels.begin(), labels.end());
  if (classes.size() < 2 || classes.size() > kClassesMax) {
    return invalid_input(fmt::format("{} has {} different labels; a classification needs 2 to {}",
                                     train_path, classes.size(), kClassesMax));
  }
  for (size_t row = 0; row < test.value().labels.size(); ++row) {
    if (!labels.contains(test.value().labels[row])) {
      return invalid_input(fmt::format("{}: label {} of row {} does not occur in {}", test_path,
                                       test.value().labels[row], row + 1, train_path));
    }
  }
  Dataset dataset;
  dataset.kind = DataKind::kRows;
  dataset.classes = static_cast<uint32_t>(classes.size());
  dataset.width = std::max({train.value().features, test.value().features, uint32_t{1}});
  const size_t rows = train.value().labels.size() + test.value().labels.size();
  if (uint64_t{rows} * dataset.width > kDenseFloatsMax) {
    return invalid_input(fmt::format(
        "{} is too large to hold as dense rows: {} rows of {} features need {} MB", train_path,
        rows, dataset.width, rows * dataset.width * sizeof(float) / 1'000'000));
  }
  if (test_path.empty()) {
    if (rows < 10) {
      return invalid_input(fmt::format(
          "{} has only {} rows; without a test file beside it ({}.t) at least 10 are needed, every "
          "tenth for testing",
          train_path, rows, train_path));
    }
    for (size_t row = 0; row < rows; ++row) {
      append_dense(train.value(), row, classes, dataset.width,
                   row % 10 == 9 ? dataset.test : dataset.train);
    }
  } else {
    dataset.train.values.reserve(train.value().labels.size() * dataset.width);
    for (size_t row = 0; row < train.value().labels.size(); ++row) {
      append_dense(train.value(), row, classes, dataset.width, dataset.train);
    }
    for (size_t row = 0; row < test.value().labels.size(); ++row) {
      append_dense(test.value(), row, classes, dataset.width, dataset.test);
    }
  }
  return dataset;
}

}  // namespace drover
