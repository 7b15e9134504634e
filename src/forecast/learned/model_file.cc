#include "forecast/learned/model_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "core/check.h"

// The layout, all numbers little-endian:
//   8 bytes   mark
//   u32       format version
//   u64       length of the whole file
//   u32 x 12  the shape, in the order of ModelShape
//   u64 u64 f64 f64   the note, in the order of FitNote
//   u32       number of tensors, then for each:
//             u32 length of its name, the name, u32 rows, u32 columns, f32 x (rows x columns)
//   u32       CRC-32 of everything before it

namespace drover {
namespace {

// Begins with a byte that no text has, so that a transfer as text is found at once.
constexpr std::string_view kMark =
    "\x93"
    "DROVER\n";  // two literals: 'D' would be a hex digit
constexpr uint32_t kFormat = 1;
constexpr size_t kHeadBytes = 8 + 4 + 8;
constexpr size_t kShapeBytes = 12 * 4;
constexpr size_t kNoteBytes = 4 * 8;
constexpr size_t kChecksumBytes = 4;
constexpr size_t kFixedBytes = kHeadBytes + kShapeBytes + kNoteBytes + 4 + kChecksumBytes;

constexpr const char* kFitAgain = "fit the model again, or copy the file again from where it came";

class Writer {
 public:
  template <typename T>
  void put(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<char>((static_cast<uint64_t>(value) >> (8 * i)) & 0xff));
    }
  }
  void put_text(std::string_view text) { bytes_ += text; }
  void reserve(size_t size) { bytes_.reserve(size); }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
};

// REQUIRES of each call: this number of bytes is left.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <typename T>
  T get() {
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= uint64_t{static_cast<unsigned char>(bytes_[at_ + i])} << (8 * i);
    }
    at_ += sizeof(T);
    return static_cast<T>(value);
  }
  double get_double() { return std::bit_cast<double>(get<uint64_t>()); }
  std::string_view get_text(size_t size) {
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

// References, for writing and for reading.
template <typename Shape>
auto sizes_in(Shape& shape) {
  return std::array{&shape.workers,       &shape.latent,     &shape.window,         &shape.rnn,
                    &shape.transition,    &shape.embedding,  &shape.pooled_hidden,  &shape.pooled,
                    &shape.worker_hidden, &shape.components, &shape.emission_hidden};
}

size_t numbers_in(const Tensor& tensor) { return size_t{tensor.rows} * tensor.columns; }

// The length of a file with these tensors.
size_t file_bytes(const std::vector<Tensor>& tensors) {
  size_t bytes = kFixedBytes;
  for (const Tensor& each : tensors) bytes += 3 * 4 + each.name.size() + 4 * numbers_in(each);
  return bytes;
}

uint32_t checksum(std::string_view bytes) {
  return static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Error trouble(const std::string& name, const std::string& why) {
  return invalid_input(fmt::format("cannot use the model in {}: {}", name, why));
}

// Checks the first bytes and the length. `size` is that of the whole file.
Status check_head(std::string_view bytes, uint64_t size, const std::string& name) {
  if (size == 0) return trouble(name, fmt::format("it is empty; {}", kFitAgain));
  const size_t seen = std::min(bytes.size(), kMark.size());
  if (bytes.substr(0, seen) != kMark.substr(0, seen)) {
    return trouble(name, "it is not a drover model; make one with 'drover fit'");
  }
  const Error cut_off =
      trouble(name, fmt::format("it is truncated after {} bytes; {}", size, kFitAgain));
  if (bytes.size() < kHeadBytes) return cut_off;
  Reader reader(bytes.substr(kMark.size()));
  const auto format = reader.get<uint32_t>();
  if (format != kFormat) {
    return trouble(name,
                   fmt::format("it has format {}, but this drover reads only format {}; use the "
                               "drover that wrote it, or fit the model again with this one",
                               format, kFormat));
  }
  const auto length = reader.get<uint64_t>();
  if (size < kFixedBytes || size < length) return cut_off;
  if (size > length) {
    return trouble(
        name, fmt::format("it has {} bytes instead of {}, so it was extended or damaged; {}", size,
                          length, kFitAgain));
  }
  return done();
}

Result<ModelShape> read_shape(Reader& reader, const std::string& name) {
  ModelShape shape;
  const auto emission = reader.get<uint32_t>();
  if (emission > static_cast<uint32_t>(Emission::kSorted)) {
    return trouble(name, fmt::format("its emission {} is unknown; {}", emission, kFitAgain));
  }
  shape.emission = static_cast<Emission>(emission);
  for (uint32_t* size : sizes_in(shape)) *size = reader.get<uint32_t>();
  if (const Status status = check_shape(shape); !status) {
    return trouble(name, fmt::format("{}; {}", status.error().message, kFitAgain));
  }
  return shape;
}

// REQUIRES: `tensor` has the expected name and size. Fails if the file has others.
Status read_tensor(Reader& reader, Tensor& tensor, const std::string& name) {
  const Error other =
      trouble(name, fmt::format("it has another tensor in the place of {} ({} x {}); {}",
                                tensor.name, tensor.rows, tensor.columns, kFitAgain));
  if (reader.get<uint32_t>() != tensor.name.size()) return other;
  if (reader.get_text(tensor.name.size()) != tensor.name) return other;
  if (reader.get<uint32_t>() != tensor.rows || reader.get<uint32_t>() != tensor.columns)
    return other;
  tensor.values.resize(numbers_in(tensor));
  for (float& value : tensor.values) {
    value = std::bit_cast<float>(reader.get<uint32_t>());
    if (std::isfinite(value)) continue;
    return trouble(name, fmt::format("its tensor {} has a number that is not finite, so the fit "
                                     "diverged; fit the model again with a smaller learning rate",
                                     tensor.name));
  }
  return done();
}

}  // namespace

std::string encode_model(const ModelWeights& weights) {
  const std::vector<Tensor> expected = tensors_of(weights.shape);
  DROVER_CHECK(weights.tensors.size() == expected.size());
  Writer writer;
  const size_t length = file_bytes(expected);
  writer.reserve(length);
  writer.put_text(kMark);
  writer.put(kFormat);
  writer.put(uint64_t{length});
  writer.put(static_cast<uint32_t>(weights.shape.emission));
  for (const uint32_t* size : sizes_in(weights.shape)) writer.put(*size);
  writer.put(weights.note.seed);
  writer.put(weights.note.steps);
  writer.put(std::bit_cast<uint64_t>(weights.note.held_out_elbo));
  writer.put(std::bit_cast<uint64_t>(weights.note.cut_short_share));
  writer.put(static_cast<uint32_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor& tensor = weights.tensors[i];
    DROVER_CHECK(tensor.name == expected[i].name);
    DROVER_CHECK(tensor.rows == expected[i].rows && tensor.columns == expected[i].columns);
    DROVER_CHECK(tensor.values.size() == numbers_in(tensor));
    writer.put(static_cast<uint32_t>(tensor.name.size()));
    writer.put_text(tensor.name);
    writer.put(tensor.rows);
    writer.put(tensor.columns);
    for (const float value : tensor.values) writer.put(std::bit_cast<uint32_t>(value));
  }
  writer.put(checksum(writer.bytes()));
  DROVER_CHECK(writer.bytes().size() == length);
  return std::move(writer.bytes());
}

Result<ModelWeights> decode_model(std::string_view bytes, const std::string& name) {
  if (Status status = check_head(bytes, bytes.size(), name); !status) return status.error();
  const std::string_view content = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (Reader(bytes.substr(content.size())).get<uint32_t>() != checksum(content)) {
    return trouble(name, fmt::format("it is damaged (wrong checksum); {}", kFitAgain));
  }
  Reader reader(content.substr(kHeadBytes));
  Result<ModelShape> shape = read_shape(reader, name);
  if (!shape) return shape.error();
  ModelWeights weights;
  weights.shape = shape.value();
  weights.note.seed = reader.get<uint64_t>();
  weights.note.steps = reader.get<uint64_t>();
  weights.note.held_out_elbo = reader.get_double();
  weights.note.cut_short_share = reader.get_double();
  weights.tensors = tensors_of(weights.shape);
  // All lengths have been checked against that of the file.
  if (reader.get<uint32_t>() != weights.tensors.size() ||
      file_bytes(weights.tensors) != bytes.size()) {
    return trouble(name, fmt::format("its tensors do not match its shape; {}", kFitAgain));
  }
  for (Tensor& tensor : weights.tensors) {
    if (Status status = read_tensor(reader, tensor, name); !status) return status.error();
  }
  if (weights.shape.emission != Emission::kShared &&
      weights.tensor("normal_scale").values.front() <= 0.0F) {
    return trouble(name, fmt::format("its normal_scale is not positive; {}", kFitAgain));
  }
  return weights;
}

Result<ModelWeights> read_model(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    return trouble(path,
                   fmt::format("it is {}; give a file written by 'drover fit'",
                               fs::is_directory(path, ignored) ? "a folder" : "not a plain file"));
  }
  std::ifstream file(path, std::ios::binary);
  const uint64_t size = file ? fs::file_size(path, ignored) : 0;
  if (!file || ignored) {
    return system_error(
        fmt::format("cannot read the model in {}: {}; check the name, or make one with "
                    "'drover fit'",
                    path, ignored ? ignored.message() : std::strerror(errno)));
  }
  std::array<char, kHeadBytes> head{};
  file.read(head.data(), head.size());
  const std::string_view beginning(head.data(), static_cast<size_t>(file.gcount()));
  // The path may be wrong, so check the head before reading a file of any length.
  if (Status status = check_head(beginning, size, path); !status) return status.error();
  std::string bytes(size, '\0');
  file.clear();
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return decode_model(bytes, path);
}

}  // namespace drover
