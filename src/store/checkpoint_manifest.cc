#include "store/checkpoint_manifest.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/former_settings.h"
#include "store/json_numbers.h"
#include "store/schema.h"

namespace drover {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "drover checkpoint 1";

// Replaces invalid UTF-8 in names, so that such names do not prevent a checkpoint.
std::string text_of(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

// The checksum covers the values and not the text, so that the file may be formatted.
std::string checksum_text(const json& manifest) {
  const std::string text = text_of(manifest);
  return fmt::format("{:08x}", checksum_of(std::as_bytes(std::span(text))));
}

json to_json(const CheckpointManifest& manifest) {
  json tensors = json::array();
  for (const TensorSpec& tensor : manifest.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"size", tensor.size},
                       {"shape", tensor.shape},
                       {"kind", tensor.kind == TensorKind::kTrained ? "trained" : "averaged"},
                       {"rate", tensor.rate},
                       {"decay", tensor.decay},
                       {"group", tensor.group}});
  }
  json files = json::array();
  for (const CheckpointFileEntry& file : manifest.files) {
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"header_crc32", fmt::format("{:08x}", file.checksum)}});
  }
  return {{"format", kFormat},
          {"step", manifest.step},
          {"run", to_hex(manifest.run)},
          {"seed", manifest.seed},
          {"workers", manifest.workers},
          {"when", manifest.when},
          {"settings", manifest.settings},
          {"noise",
           {{"signal", manifest.noise.signal},
            {"noise", manifest.noise.noise},
            {"steps", manifest.noise.steps}}},
          {"tensors", tensors},
          {"files", files}};
}

// Whether it is the name of a file in the folder, and not a path out of it.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos;
}

// Older versions had other names for some settings.
SettingTexts with_current_names(const SettingTexts& settings) {
  SettingTexts renamed;
  for (const auto& [name, text] : settings) renamed.emplace(current_setting_name(name), text);
  return renamed;
}

Result<CheckpointManifest> from_json(const json& from) {
  const uint64_t workers = whole(from.at("workers"));
  if (!std::in_range<uint32_t>(workers)) return invalid_input("its number of workers is too large");
  CheckpointManifest manifest{
      .step = whole(from.at("step")),
      .seed = whole(from.at("seed")),
      .workers = static_cast<uint32_t>(workers),
      .when = from.at("when").get<std::string>(),
      .settings = with_current_names(from.at("settings").get<SettingTexts>()),
      .noise = {.signal = from.at("noise").at("signal").get<double>(),
                .noise = from.at("noise").at("noise").get<double>(),
                .steps = whole(from.at("noise").at("steps"))},
      .tensors = {},
      .files = {}};
  const auto run = parse_hex(from.at("run").get<std::string>());
  if (!run) return run.error();
  manifest.run = run.value();
  for (const json& each : from.at("tensors")) {
    manifest.tensors.push_back(
        {.name = each.at("name").get<std::string>(),
         .size = whole(each.at("size")),
         .kind = each.at("kind") == "trained" ? TensorKind::kTrained : TensorKind::kAveraged,
         .rate = each.at("rate").get<double>(),
         .decay = each.at("decay").get<double>(),
         .shape = wholes(each.at("shape")),
         .group = each.value("group", 0u)});
  }
  for (const json& each : from.at("files")) {
    CheckpointFileEntry file{.name = each.at("name").get<std::string>(),
                             .bytes = whole(each.at("bytes"))};
    const auto checksum = each.at("header_crc32").get<std::string>();
    const char* const end = checksum.data() + checksum.size();
    const auto [stop, trouble] = std::from_chars(checksum.data(), end, file.checksum, 16);
    if (trouble != std::errc{} || stop != end || !is_plain_name(file.name))
      return invalid_input("its entry of a file is invalid");
    manifest.files.push_back(std::move(file));
  }
  return manifest;
}

Result<CheckpointManifest> parse(const std::string& text) try {
  json read = json::parse(text);
  const std::string recorded = read.at("crc32").get<std::string>();
  read.erase("crc32");
  if (checksum_text(read) != recorded) return invalid_input("its checksum is wrong");
  if (read.at("format") != kFormat)
    return invalid_input("its format is not '" + std::string(kFormat) + "'");
  return from_json(read);
} catch (const json::exception& trouble) {
  return invalid_input(trouble_in(trouble));
}

}  // namespace

Status write_manifest(const CheckpointManifest& manifest, const std::string& folder,
                      const KeepWriting& keep_writing) {
  json made = to_json(manifest);
  made["crc32"] = checksum_text(made);
  const std::string text = text_of(made, 1) + "\n";
  auto file = AtomicFile::create(folder + "/" + kManifestName, {.keep_writing = keep_writing});
  if (!file) return file.error();
  if (const Status written = file.value().write(std::as_bytes(std::span(text))); !written)
    return written;
  return file.value().commit();
}

Result<CheckpointManifest> read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  std::ifstream file(path, std::ios::binary);
  if (!file) return invalid_input("there is no " + path + ", so the checkpoint is incomplete");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto manifest = parse(text);
  if (!manifest) return invalid_input(path + " is damaged: " + manifest.error().message);
  return manifest;
}

}  // namespace drover
