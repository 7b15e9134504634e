#include "store/checkpoint_export.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/atomic_file.h"
#include "store/schema.h"

namespace drover {
namespace {

using nlohmann::json;

// Splits a tensor into pieces that fit a Block, of which a few are in memory at a time.
constexpr uint64_t kPieceFloats = uint64_t{4} << 20;

std::string header_of(const Checkpoint& checkpoint, bool average) {
  const CheckpointManifest& manifest = checkpoint.manifest();
  json header = json::object();
  header["__metadata__"] = {{"format", "pt"},
                            {"step", std::to_string(manifest.step)},
                            {"run", to_hex(manifest.run)},
                            {"values", average ? "average" : "parameters"}};
  uint64_t place = 0;
  for (const TensorSpec& tensor : manifest.tensors) {
    if (tensor.size == 0) continue;  // only a name, by which scripts agree
    const uint64_t end = place + tensor.size * sizeof(float);
    header[tensor.name] = {
        {"dtype", "F32"},
        {"shape", tensor.shape.empty() ? std::vector<uint64_t>{tensor.size} : tensor.shape},
        {"data_offsets", {place, end}}};
    place = end;
  }
  std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string all(sizeof(length), '\0');
  std::memcpy(all.data(), &length, sizeof(length));
  return all + text;
}

}  // namespace

Status export_checkpoint(const Checkpoint& checkpoint, const std::string& path, bool average) {
  const Layout& layout = checkpoint.layout();
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  const std::string header = header_of(checkpoint, average);
  if (const Status written = file.value().write(std::as_bytes(std::span(header))); !written)
    return written;
  for (size_t tensor = 0; tensor < layout.tensors().size(); ++tensor) {
    const TensorSpec& spec = layout.tensors()[tensor];
    for (uint64_t begin = 0; begin < spec.size; begin += kPieceFloats) {
      const Block piece{.offset = layout.offset(tensor) + begin,
                        .length = static_cast<uint32_t>(std::min(kPieceFloats, spec.size - begin))};
      const auto read = checkpoint.read(std::span(&piece, 1));
      if (!read) return read.error();
      const SavedBlock& saved = read.value().front();
      // Running statistics are averages already, and have no moving average.
      const bool smooth = average && spec.kind == TensorKind::kTrained;
      if (smooth && !saved.average) {
        return invalid_input("the run of " + checkpoint.folder() +
                             " kept no average of its parameters: that is done with --ema. Leave "
                             "out --average");
      }
      const ConstBuffer& values = smooth ? saved.average : saved.parameters;
      if (const Status written = file.value().write(std::as_bytes(values->span())); !written)
        return written;
    }
  }
  return file.value().commit();
}

}  // namespace drover
