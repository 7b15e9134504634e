// A folder of checkpoints: lists them, finds usable ones, removes old ones.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "store/checkpoint.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";

// The step in the name of a checkpoint's folder; nullopt if it is another name.
std::optional<Version> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  Version step = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, trouble] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (trouble != std::errc{} || stop != end) return std::nullopt;
  return step;
}

CheckpointFound examine(Version step, const std::string& folder, bool deep) {
  CheckpointFound found{.step = step, .folder = folder, .checkpoint = {}, .trouble = {}};
  auto opened = Checkpoint::open(folder);
  Status fine = opened ? done() : Status(opened.error());
  if (fine && opened.value().manifest().step != step)
    fine = invalid_input(fmt::format("{} is of step {}", folder, opened.value().manifest().step));
  if (fine && deep) fine = opened.value().verify();
  if (fine) found.checkpoint = std::move(opened).value();
  if (!fine) found.trouble = fine.error().message;
  return found;
}

// Folders of checkpoints, oldest first.
Result<std::vector<std::pair<Version, std::string>>> folders_in(const std::string& dir) {
  std::error_code trouble;
  std::vector<std::pair<Version, std::string>> folders;
  for (fs::directory_iterator each(dir, trouble), end; !trouble && each != end;
       each.increment(trouble)) {
    const auto step = step_of(each->path().filename().string());
    if (step) folders.emplace_back(*step, each->path().string());
  }
  if (trouble)
    return system_error("cannot look for checkpoints in " + dir + ": " + trouble.message());
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Removes the manifest first: after a crash in between, the rest is an incomplete checkpoint.
Status remove_checkpoint(const std::string& folder) {
  std::error_code trouble;
  fs::remove(fs::path(folder) / kManifestName, trouble);
  if (!trouble) sync_folder(folder);
  if (!trouble) fs::remove_all(folder, trouble);
  if (!trouble) return done();
  return system_error("cannot remove the checkpoint " + folder + ": " + trouble.message());
}

}  // namespace

std::string checkpoint_folder(const std::string& dir, Version step) {
  return fmt::format("{}/{}{:010}", dir, kPrefix, step);
}

Result<std::vector<CheckpointFound>> list_checkpoints(const std::string& dir, bool deep) {
  const auto folders = folders_in(dir);
  if (!folders) return folders.error();
  std::vector<CheckpointFound> found;
  for (const auto& [step, folder] : folders.value()) found.push_back(examine(step, folder, deep));
  return found;
}

Result<NewestCheckpoint> newest_checkpoint(const std::string& path, Version before) {
  std::error_code ignored;
  NewestCheckpoint newest;
  const fs::path plain = fs::path(path).lexically_normal();
  const std::string name =
      plain.has_filename() ? plain.filename().string() : plain.parent_path().filename().string();
  if (const auto step = step_of(name);
      step || fs::exists(fs::path(path) / kManifestName, ignored)) {
    auto only = Checkpoint::open(path);
    if (!only) return only.error();
    if (const Status fine = only.value().verify(); !fine) return fine.error();
    newest.checkpoint = std::move(only).value();
    return newest;
  }
  const auto folders = folders_in(path);
  if (!folders) return folders.error();
  for (auto each = folders.value().rbegin(); each != folders.value().rend(); ++each) {
    if (each->first >= before) continue;
    CheckpointFound found = examine(each->first, each->second, true);
    if (found.checkpoint) {
      newest.checkpoint = std::move(found.checkpoint);
      break;
    }
    newest.skipped.push_back(std::move(found));
  }
  return newest;
}

Status prune_checkpoints(const std::string& dir, uint32_t keep) {
  auto found = list_checkpoints(dir, false);
  if (!found) return found.error();
  uint32_t kept = 0;
  for (auto each = found.value().rbegin(); each != found.value().rend(); ++each) {
    const bool good = each->checkpoint.has_value();
    const bool newer_is_there = kept > 0;
    if (good && kept < std::max(keep, 1u)) {
      ++kept;
      continue;
    }
    if (!newer_is_there) continue;
    each->checkpoint.reset();
    if (const Status removed = remove_checkpoint(each->folder); !removed) return removed;
  }
  return done();
}

Result<std::vector<std::string>> set_aside_after(const std::string& dir, Version step) {
  std::error_code trouble;
  std::vector<std::string> moved;
  if (!fs::exists(dir, trouble)) return moved;
  const auto folders = folders_in(dir);
  if (!folders) return folders.error();
  for (const auto& [each, folder] : folders.value()) {
    if (each <= step) continue;
    if (!fs::exists(fs::path(folder) / kManifestName, trouble)) {
      if (const Status removed = remove_checkpoint(folder); !removed) return removed.error();
      continue;
    }
    std::string aside = folder + ".aside";
    for (int number = 2; fs::exists(aside, trouble); ++number)
      aside = folder + ".aside-" + std::to_string(number);
    fs::rename(folder, aside, trouble);
    if (trouble) return system_error("cannot move " + folder + " aside: " + trouble.message());
    moved.push_back(aside);
  }
  sync_folder(dir);
  return moved;
}

}  // namespace drover
