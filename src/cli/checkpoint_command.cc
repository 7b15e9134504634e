// drover checkpoint: lists checkpoints, and exports one as a model for other tools.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/run_report.h"
#include "core/text.h"
#include "store/checkpoint.h"
#include "store/checkpoint_export.h"

namespace drover {
namespace {

struct CheckpointInspectOptions {
  std::string dir;
  bool json = false;
};

struct CheckpointExportOptions {
  std::string dir;
  std::string out;
  bool average = false;
  bool force = false;
};

namespace fs = std::filesystem;

nlohmann::json to_json(const CheckpointFound& found) {
  nlohmann::json json = {
      {"step", found.step}, {"folder", found.folder}, {"complete", found.checkpoint.has_value()}};
  if (!found.checkpoint) {
    json["trouble"] = found.trouble;
    return json;
  }
  const CheckpointManifest& manifest = found.checkpoint->manifest();
  json["when"] = manifest.when;
  json["bytes"] = found.checkpoint->bytes();
  json["files"] = manifest.files.size();
  json["tensors"] = manifest.tensors.size();
  json["parameters"] = found.checkpoint->layout().parameter_count();
  json["workers"] = manifest.workers;
  json["settings"] = manifest.settings;
  return json;
}

std::string line_of(const CheckpointFound& found) {
  if (!found.checkpoint) return fmt::format("{:>10}  {}", found.step, found.trouble);
  const CheckpointManifest& manifest = found.checkpoint->manifest();
  return fmt::format("{:>10}  {}  {:>10.1f} MB  {:>7}  {:>6}  complete", found.step, manifest.when,
                     static_cast<double>(found.checkpoint->bytes()) / 1e6, manifest.tensors.size(),
                     manifest.files.size());
}

// The checkpoint at `path`, or all checkpoints in that folder.
Result<std::vector<CheckpointFound>> find_checkpoints(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(fs::path(path) / kManifestName, ignored)) return list_checkpoints(path, true);
  auto one = newest_checkpoint(path);
  std::vector<CheckpointFound> found(1);
  found[0].folder = path;
  if (!one) {
    found[0].trouble = one.error().message;
    return found;
  }
  found[0].checkpoint = std::move(one.value().checkpoint);
  found[0].step = found[0].checkpoint->manifest().step;
  return found;
}

// Fails if there are checkpoints but none is complete, so that scripts can test whether a run can
// be resumed.
int exit_status(const std::vector<CheckpointFound>& found) {
  const bool all_bad = std::none_of(found.begin(), found.end(), [](const CheckpointFound& each) {
    return each.checkpoint.has_value();
  });
  return all_bad && !found.empty() ? kExitFailed : 0;
}

int checkpoint_inspect_command(const CheckpointInspectOptions& options) {
  const auto found = find_checkpoints(options.dir);
  if (!found) return fail(found.error());
  if (options.json) {
    nlohmann::json all = nlohmann::json::array();
    for (const CheckpointFound& each : found.value()) all.push_back(to_json(each));
    fmt::print("{}\n", all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return exit_status(found.value());
  }
  if (found.value().empty()) fmt::print("no checkpoints in {}\n", options.dir);
  if (!found.value().empty())
    fmt::print("{:>10}  {:<20}  {:>13}  {:>7}  {:>6}\n", "step", "when", "size", "tensors",
               "files");
  for (const CheckpointFound& each : found.value()) fmt::print("{}\n", line_of(each));
  return exit_status(found.value());
}

int checkpoint_export_command(const CheckpointExportOptions& options) {
  std::error_code ignored;
  if (options.out.ends_with(".pt") || options.out.ends_with(".pth")) {
    return fail(invalid_input(fmt::format(
        "cannot write a PyTorch file; use: python3 -m drover.checkpoint export {} --out {}{}",
        shell_quoted(options.dir), shell_quoted(options.out),
        options.average ? " --average" : "")));
  }
  auto newest = newest_checkpoint(options.dir);
  if (!newest) return fail(newest.error());
  for (const CheckpointFound& each : newest.value().skipped)
    fmt::print(stderr, "drover: skipped: {}\n", each.trouble);
  if (!newest.value().checkpoint)
    return fail(invalid_input("no usable checkpoint in " + options.dir));
  if (fs::exists(options.out, ignored) && !options.force) {
    return fail(invalid_input(options.out + " already exists; use --force to replace it"));
  }
  const Checkpoint& checkpoint = *newest.value().checkpoint;
  const Status written = export_checkpoint(checkpoint, options.out, options.average);
  if (!written) return fail(written.error());
  fmt::print("{}: {} tensors of step {}\n", options.out, checkpoint.manifest().tensors.size(),
             checkpoint.manifest().step);
  return 0;
}

}  // namespace

void add_checkpoint_commands(CommandTable& commands) {
  CommandGroup group =
      commands.add_group("checkpoint", "List checkpoints, or export one as a model");
  {
    auto [app, options] = group.add<CheckpointInspectOptions>(
        "inspect", "List checkpoints and their errors", checkpoint_inspect_command);
    app.add_option("DIR", options.dir, "a checkpoint, or a folder of checkpoints")->required();
    app.add_flag("--json", options.json, "print a JSON array instead of a table");
  }
  {
    auto [app, options] = group.add<CheckpointExportOptions>(
        "export", "Write the model of the newest checkpoint as one safetensors file",
        checkpoint_export_command);
    app.add_option("DIR", options.dir, "a checkpoint, or a folder of checkpoints")->required();
    app.add_option("--out", options.out, "the file to write")
        ->required()
        ->type_name("MODEL.safetensors");
    app.add_flag("--average", options.average,
                 "export the averaged parameters of a run with --ema");
    app.add_flag("--force", options.force, "replace an existing file");
  }
}

}  // namespace drover
