// Files of a checkpoint: a manifest, a zero byte, and a shard's part. They are refused or can be
// read completely.
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fuzz/promise.h"
#include "fuzz/scratch_file.h"
#include "fuzz/targets.h"
#include "store/checkpoint.h"

namespace drover::fuzz {
namespace {

using nlohmann::json;

uint32_t checksum_of_text(std::string_view text) {
  return checksum_of(std::as_bytes(std::span(text)));
}

std::string hex(uint32_t number) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%08x", number);
  return text.data();
}

// Everything before the arrays, by the length that the file gives.
std::string_view head_of(std::string_view part) {
  uint64_t length = 0;
  if (part.size() < sizeof(length)) return part;
  std::memcpy(&length, part.data(), sizeof(length));
  return part.substr(0, sizeof(length) + std::min<uint64_t>(length, part.size()));
}

// With correct checksums and sizes, so that the code behind those checks is reached.
std::string mended(std::string_view text, std::string_view part) {
  json manifest = json::parse(text, nullptr, false);
  if (!manifest.is_object()) return std::string(text);
  if (json& files = manifest["files"];
      files.is_array() && files.size() == 1 && files[0].is_object()) {
    files[0]["bytes"] = part.size();
    files[0]["header_crc32"] = hex(checksum_of_text(head_of(part)));
  }
  manifest.erase("crc32");
  manifest["crc32"] =
      hex(checksum_of_text(manifest.dump(-1, ' ', false, json::error_handler_t::replace)));
  return manifest.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

void checkpoint(Bytes input) {
  const std::string_view text = text_of(input);
  const size_t zero = std::min(text.find('\0'), text.size());
  const std::string_view part = text.substr(std::min(zero + 1, text.size()));
  scratch().write("manifest.json", mended(text.substr(0, zero), part));
  scratch().write("shard-0.safetensors", part);
  const auto opened = Checkpoint::open(scratch().path());
  if (!opened) {
    promise(!opened.error().message.empty(), "a refusal says why");
    return;
  }
  const Layout& layout = opened.value().layout();
  promise(layout.parameter_count() * sizeof(float) <= part.size(),
          "what is taken lies in its files");
  const BlockPlan plan = plan_blocks(layout, 2);
  const auto read = opened.value().read(plan.blocks);
  const Status verified = opened.value().verify();
  promise(read.ok() || !verified.ok(), "a verified checkpoint can be read");
  if (!read) return;
  promise(read.value().size() == plan.blocks.size(), "every block is read");
  for (const SavedBlock& block : read.value())
    promise(block.parameters && block.parameters->size() == block.length,
            "every block is complete");
}

}  // namespace drover::fuzz
