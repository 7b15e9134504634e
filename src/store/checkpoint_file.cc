#include "store/checkpoint_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "store/json_numbers.h"
#include "store/schema.h"

namespace drover {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 64;  // of the first array
constexpr const char* kFormat = "drover checkpoint 1";
constexpr const char* kMetadata = "__metadata__";

std::string name_of_array(size_t array, uint64_t offset) {
  return fmt::format("{}.{:012}", CheckpointFile::kArrays[array], offset);
}
std::string name_of_block(uint64_t offset) { return fmt::format("block.{:012}", offset); }

std::string text_of(const SavedBlock& block) {
  std::string text = fmt::format("{} {} {} {}", block.length, block.updates,
                                 to_hex(std::bit_cast<uint64_t>(block.beta1_power)),
                                 to_hex(std::bit_cast<uint64_t>(block.beta2_power)));
  if (!block.lengths.empty()) text += ' ';
  for (const float length : block.lengths)
    text += fmt::format("{:08x}", std::bit_cast<uint32_t>(length));
  return text;
}

template <typename Number>
bool read_number(std::string_view text, Number& number, int base = 10) {
  const char* const end = text.data() + text.size();
  const auto [stop, trouble] = std::from_chars(text.data(), end, number, base);
  return trouble == std::errc{} && stop == end;
}

constexpr size_t kDigits = 8;  // of a float's bits

bool parse_lengths(std::string_view text, std::vector<float>& lengths) {
  if (text.empty() || text.size() % kDigits != 0) return false;
  for (size_t place = 0; place < text.size(); place += kDigits) {
    uint32_t bits = 0;
    if (!read_number(text.substr(place, kDigits), bits, 16)) return false;
    lengths.push_back(std::bit_cast<float>(bits));
  }
  return true;
}

// The inverse; false if the text is invalid.
bool parse_block(std::string_view text, SavedBlock& block) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  uint64_t beta1 = 0;
  uint64_t beta2 = 0;
  if (words.size() < 4 || words.size() > 5 || !read_number(words[0], block.length) ||
      !read_number(words[1], block.updates) || !read_number(words[2], beta1, 16) ||
      !read_number(words[3], beta2, 16))
    return false;
  block.beta1_power = std::bit_cast<double>(beta1);
  block.beta2_power = std::bit_cast<double>(beta2);
  if (words.size() == 5 && !parse_lengths(words[4], block.lengths)) return false;
  return block.length > 0;
}

std::span<const std::byte> bytes_of(const ConstBuffer& buffer) {
  return std::as_bytes(buffer->span());
}

// The header: length and JSON, padded with blanks so that the arrays are aligned.
std::string make_header(const CheckpointPart& part) {
  json header = json::object();
  json& metadata = header[kMetadata];
  metadata = {{"format", kFormat},
              {"shard", std::to_string(part.shard)},
              {"step", std::to_string(part.version)}};
  uint64_t place = 0;
  for (const SavedBlock& block : part.blocks) {
    metadata[name_of_block(block.offset)] = text_of(block);
    const auto buffers = buffers_of(block);
    for (size_t array = 0; array < buffers.size(); ++array) {
      const ConstBuffer& values = *buffers[array];
      if (!values) continue;
      DROVER_CHECK(values->size() == block.length);
      const std::string name = name_of_array(array, block.offset);
      const uint64_t end = place + block.length * sizeof(float);
      header[name] = {{"dtype", "F32"}, {"shape", {block.length}}, {"data_offsets", {place, end}}};
      metadata["crc32." + name] = fmt::format("{:08x}", checksum_of(bytes_of(values)));
      place = end;
    }
  }
  std::string text = header.dump();
  text.resize(
      (text.size() + kLengthBytes + kAlignment - 1) / kAlignment * kAlignment - kLengthBytes, ' ');
  const uint64_t length = text.size();
  std::string all(kLengthBytes, '\0');
  std::memcpy(all.data(), &length, kLengthBytes);
  return all + text;
}

}  // namespace

uint32_t checksum_of(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::array<ConstBuffer*, 4> buffers_of(SavedBlock& block) {
  return {&block.parameters, &block.momentum, &block.squares, &block.average};
}
std::array<const ConstBuffer*, 4> buffers_of(const SavedBlock& block) {
  return {&block.parameters, &block.momentum, &block.squares, &block.average};
}

Result<CheckpointFileEntry> write_checkpoint_part(const CheckpointPart& part,
                                                  const std::string& folder,
                                                  const KeepWriting& keep_writing) {
  CheckpointFileEntry entry{.name = fmt::format("shard-{}.safetensors", part.shard)};
  const std::string header = make_header(part);
  entry.bytes = header.size();
  entry.checksum = checksum_of(std::as_bytes(std::span(header)));
  auto file = AtomicFile::create(folder + "/" + entry.name, {.keep_writing = keep_writing});
  if (!file) return file.error();
  if (const Status written = file.value().write(std::as_bytes(std::span(header))); !written)
    return written.error();
  for (const SavedBlock& block : part.blocks) {
    for (const ConstBuffer* values : buffers_of(block)) {
      if (!*values) continue;
      if (const Status written = file.value().write(bytes_of(*values)); !written)
        return written.error();
      entry.bytes += bytes_of(*values).size();
    }
  }
  if (const Status kept = file.value().commit(); !kept) return kept.error();
  return entry;
}

Result<CheckpointFile> CheckpointFile::open(const std::string& folder,
                                            const CheckpointFileEntry& entry) {
  CheckpointFile opened;
  opened.path_ = folder + "/" + entry.name;
  const std::string& path = opened.path_;
  opened.file_.reset(std::fopen(path.c_str(), "rbe"));
  std::FILE* const file = opened.file_.get();
  if (file == nullptr) return system_error("cannot read " + path + ": " + std::strerror(errno));
  if (::fseeko(file, 0, SEEK_END) != 0)
    return system_error("cannot read " + path + ": " + std::strerror(errno));
  const auto size = static_cast<uint64_t>(::ftello(file));
  if (size != entry.bytes) {
    return invalid_input(
        fmt::format("{} has {} bytes, and the manifest says {}", path, size, entry.bytes));
  }
  if (std::fseek(file, 0, SEEK_SET) != 0) return system_error("cannot read " + path);
  uint64_t length = 0;
  if (size < kLengthBytes || std::fread(&length, 1, kLengthBytes, file) != kLengthBytes ||
      length > size - kLengthBytes) {
    return invalid_input(path + " says that its header is longer than the file");
  }
  std::vector<char> header(kLengthBytes + length);
  std::memcpy(header.data(), &length, kLengthBytes);
  if (std::fread(header.data() + kLengthBytes, 1, length, file) != length)
    return system_error("cannot read " + path + ": " + std::strerror(errno));
  if (checksum_of(std::as_bytes(std::span(header))) != entry.checksum)
    return invalid_input(path + " is damaged: the checksum of its header is wrong");
  const Status parsed = opened.parse(std::span(header).subspan(kLengthBytes), header.size(), size);
  if (!parsed)
    return invalid_input(path + " is no part of a checkpoint: " + parsed.error().message);
  return opened;
}

Status CheckpointFile::parse(std::span<const char> text, uint64_t data_begin, uint64_t bytes) try {
  const json header = json::parse(text.begin(), text.end());
  const json& metadata = header.at(kMetadata);
  if (metadata.at("format") != kFormat)
    return invalid_input("its format is not '" + std::string(kFormat) + "'");
  if (!read_number(metadata.at("shard").get_ref<const std::string&>(), shard_) ||
      !read_number(metadata.at("step").get_ref<const std::string&>(), version_))
    return invalid_input("it does not have its shard and step");
  constexpr std::string_view kBlock = "block.";
  for (const auto& [key, value] : metadata.items()) {
    if (!key.starts_with(kBlock)) continue;
    Block block;
    if (!read_number(std::string_view(key).substr(kBlock.size()), block.saved.offset) ||
        !parse_block(value.get_ref<const std::string&>(), block.saved))
      return invalid_input("its entry " + key + " is invalid");
    for (size_t array = 0; array < kArrays.size(); ++array) {
      const std::string name = name_of_array(array, block.saved.offset);
      const auto found = header.find(name);
      if (found == header.end()) continue;
      const auto begin = whole(found->at("data_offsets").at(0));
      const auto end = whole(found->at("data_offsets").at(1));
      if (found->at("dtype") != "F32" || end > bytes - data_begin || begin > end ||
          end - begin != uint64_t{block.saved.length} * sizeof(float))
        return invalid_input("the array " + name + " is outside the file");
      Array place{.begin = data_begin + begin};
      if (!read_number(metadata.at("crc32." + name).get_ref<const std::string&>(), place.checksum,
                       16))
        return invalid_input("the array " + name + " has no checksum");
      block.arrays[array] = place;
    }
    if (!block.arrays[0]) return invalid_input(key + " has no parameters");
    blocks_.push_back(std::move(block));
  }
  std::sort(blocks_.begin(), blocks_.end(),
            [](const Block& a, const Block& b) { return a.saved.offset < b.saved.offset; });
  for (size_t i = 1; i < blocks_.size(); ++i) {
    if (blocks_[i].saved.offset - blocks_[i - 1].saved.offset < blocks_[i - 1].saved.length)
      return invalid_input("two of its blocks overlap");
  }
  return done();
} catch (const json::exception& trouble) {
  return invalid_input(trouble_in(trouble));
}

Status CheckpointFile::read(const Block& block, size_t array, std::span<float> out) const {
  DROVER_CHECK(block.arrays[array].has_value());
  DROVER_CHECK(out.size() == block.saved.length);
  const Array& place = *block.arrays[array];
  if (::fseeko(file_.get(), static_cast<off_t>(place.begin), SEEK_SET) != 0 ||
      std::fread(out.data(), sizeof(float), out.size(), file_.get()) != out.size()) {
    return system_error("cannot read " + path_ +
                        " to its end: it is truncated, or the disk has errors");
  }
  if (checksum_of(std::as_bytes(out)) != place.checksum) {
    return invalid_input(fmt::format("{} is damaged: the checksum of {} is wrong", path_,
                                     name_of_array(array, block.saved.offset)));
  }
  return done();
}

}  // namespace drover
