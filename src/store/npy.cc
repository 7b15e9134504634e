#include "store/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

namespace drover {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read without conversion");

constexpr uint64_t kHeaderBytesMax = 1 << 20;  // numpy's own are below 200 bytes
constexpr size_t kChunkBytes = 1 << 20;

void skip_spaces(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
}

bool take(std::string_view& text, char wanted) {
  skip_spaces(text);
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

// The text after 'key': in the dictionary.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = quote + std::string(key) + quote;
    const size_t place = header.find(quoted);
    if (place == std::string_view::npos) continue;
    std::string_view rest = header.substr(place + quoted.size());
    if (!take(rest, ':')) return std::nullopt;
    skip_spaces(rest);
    return rest;
  }
  return std::nullopt;
}

// The numbers of "(1500, 2175)" or "(7,)".
std::optional<std::vector<uint64_t>> parse_shape(std::string_view text) {
  if (!take(text, '(')) return std::nullopt;
  std::vector<uint64_t> shape;
  while (!take(text, ')')) {
    skip_spaces(text);
    uint64_t size = 0;
    const auto [stop, trouble] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (trouble != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(stop - text.data()));
    shape.push_back(size);
    if (take(text, ',')) continue;
    if (!take(text, ')')) return std::nullopt;
    break;
  }
  return shape;
}

Error damaged(const std::string& what) {
  return invalid_input("its NPY header " + what + "; save it again with numpy.save");
}

struct Opened {
  NpyMatrix matrix;
  uint64_t data_offset = 0;
};

// Reads everything before the numbers.
Result<Opened> open_matrix(std::ifstream& file, uint64_t file_bytes) {
  std::array<unsigned char, 12> start{};
  file.read(reinterpret_cast<char*>(start.data()), 8);
  if (!file) return damaged("is cut short");
  const unsigned version = start[6];
  if (version < 1 || version > 3) {
    return invalid_input(fmt::format(
        "it has NPY format {}.{}, and formats 1 to 3 can be read; save it again with numpy.save",
        version, start[7]));
  }
  const unsigned length_bytes = version == 1 ? 2 : 4;
  file.read(reinterpret_cast<char*>(start.data()) + 8, length_bytes);
  if (!file) return damaged("is cut short");
  uint64_t length = 0;
  for (unsigned i = 0; i < length_bytes; ++i) length |= uint64_t{start[8 + i]} << (8 * i);
  const uint64_t offset = 8 + length_bytes + length;
  if (offset > file_bytes) return damaged("is cut short");
  if (length > kHeaderBytesMax) return damaged("is too long");
  std::string text(length, '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  if (!file) return damaged("cannot be read");
  Result<NpyMatrix> matrix = parse_npy_header(text);
  if (!matrix) return matrix.error();
  return Opened{matrix.value(), offset};
}

Status check_size(const Opened& opened, uint64_t file_bytes) {
  const NpyMatrix& matrix = opened.matrix;
  if (matrix.rows == 0 || matrix.columns == 0) {
    return invalid_input(
        fmt::format("its shape ({}, {}) has no numbers in it", matrix.rows, matrix.columns));
  }
  if (matrix.columns > kTraceWorkersMax) {
    return invalid_input(fmt::format(
        "its shape ({}, {}) means {} workers, and at most {} can be; rows are steps, columns "
        "workers: transpose it if it is the other way round",
        matrix.rows, matrix.columns, matrix.columns, kTraceWorkersMax));
  }
  const uint64_t data_bytes = file_bytes - opened.data_offset;
  const uint64_t row_bytes = matrix.columns * (matrix.doubles ? 8 : 4);
  // Uses division, since a product of invalid sizes may overflow.
  if (data_bytes / row_bytes == matrix.rows && data_bytes % row_bytes == 0) return done();
  if (data_bytes / row_bytes < matrix.rows) {
    return invalid_input(fmt::format(
        "it is cut short: its shape is ({}, {}), but only {} bytes of numbers are there, enough "
        "for {} rows; copy it again",
        matrix.rows, matrix.columns, data_bytes, data_bytes / row_bytes));
  }
  return invalid_input(fmt::format(
      "after the ({}, {}) numbers of its shape there are more bytes; save one matrix alone, with "
      "numpy.save",
      matrix.rows, matrix.columns));
}

// Reads `count` numbers and calls `each(number, index)`.
template <typename Float, typename Each>
bool for_numbers(std::ifstream& file, uint64_t count, Each&& each) {
  std::vector<Float> chunk(std::min<uint64_t>(count, kChunkBytes / sizeof(Float)));
  for (uint64_t index = 0; index < count;) {
    const uint64_t now = std::min<uint64_t>(count - index, chunk.size());
    file.read(reinterpret_cast<char*>(chunk.data()),
              static_cast<std::streamsize>(now * sizeof(Float)));
    if (!file) return false;
    for (uint64_t i = 0; i < now; ++i) each(static_cast<double>(chunk[i]), index + i);
    index += now;
  }
  return true;
}

bool read_numbers(std::ifstream& file, const NpyMatrix& matrix, std::vector<double>& times) {
  const uint64_t count = matrix.rows * matrix.columns;
  times.resize(count);
  const auto place = [&](double number, uint64_t index) {
    times[matrix.column_order ? index % matrix.rows * matrix.columns + index / matrix.rows
                              : index] = number;
  };
  return matrix.doubles ? for_numbers<double>(file, count, place)
                        : for_numbers<float>(file, count, place);
}

}  // namespace

Result<NpyMatrix> parse_npy_header(std::string_view text) {
  const auto descr = value_of(text, "descr");
  const auto order = value_of(text, "fortran_order");
  const auto shape_text = value_of(text, "shape");
  if (!descr || !order || !shape_text) {
    return damaged("does not say descr, fortran_order and shape");
  }
  NpyMatrix matrix;
  const std::string_view type = descr->substr(0, std::min<size_t>(descr->find_first_of(",}"), 40));
  if (type == "'<f8'" || type == "\"<f8\"") {
    matrix.doubles = true;
  } else if (type == "'<f4'" || type == "\"<f4\"") {
    matrix.doubles = false;
  } else {
    return invalid_input(fmt::format(
        "its numbers are of type {}, and little-endian float32 ('<f4') or float64 ('<f8') can be "
        "read; convert it: numpy.save(name, matrix.astype('<f8'))",
        type));
  }
  if (order->starts_with("True")) {
    matrix.column_order = true;
  } else if (!order->starts_with("False")) {
    return damaged("has a fortran_order that is neither True nor False");
  }
  const auto shape = parse_shape(*shape_text);
  if (!shape) return damaged("has a shape that cannot be read");
  if (shape->size() != 2) {
    return invalid_input(fmt::format(
        "it has {} dimension{}, and a trace has two: steps by workers; reshape it with numpy",
        shape->size(), shape->size() == 1 ? "" : "s"));
  }
  matrix.rows = (*shape)[0];
  matrix.columns = (*shape)[1];
  return matrix;
}

Result<Trace> read_npy_trace(const std::string& path) {
  std::error_code error;
  const uint64_t file_bytes = std::filesystem::file_size(path, error);
  if (error) return trace_trouble(path, "", error.message());
  std::ifstream file(path, std::ios::binary);
  const Result<Opened> opened = open_matrix(file, file_bytes);
  if (!opened) return trace_trouble(path, "", opened.error().message);
  if (const Status status = check_size(opened.value(), file_bytes); !status) {
    return trace_trouble(path, "", status.error().message);
  }
  Trace trace;
  trace.path = path;
  const NpyMatrix& matrix = opened.value().matrix;
  for (uint64_t worker = 0; worker < matrix.columns; ++worker) {
    trace.workers.push_back(fmt::format("w{}", worker));
  }
  if (!read_numbers(file, matrix, trace.times)) {
    return trace_trouble(path, "", "the file cannot be read to its end; check the disk");
  }
  for (size_t i = 0; i < trace.times.size(); ++i) {
    if (std::isnan(trace.times[i])) continue;
    const std::string what = time_trouble(trace.times[i]);
    if (what.empty()) continue;
    return trace_trouble(path,
                         fmt::format("element [{}, {}]", i / matrix.columns, i % matrix.columns),
                         fmt::format("{:g} {}", trace.times[i], what));
  }
  if (const Status status = check_nothing_is_empty(trace, -1); !status) return status.error();
  return trace;
}

}  // namespace drover
