#include "node/checkpoint_saver.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <utility>

#include "node/clock.h"
#include "store/checkpoint.h"

namespace drover {
namespace {

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

CheckpointManifest manifest_of(const CheckpointKeeping& keeping, const CheckpointReady& ready) {
  CheckpointManifest manifest{.step = ready.version,
                              .run = keeping.run,
                              .seed = keeping.seed,
                              .workers = keeping.workers,
                              .when = time_text(),
                              .settings = ready.settings,
                              .noise = ready.noise,
                              .tensors = ready.tensors,
                              .files = {}};
  manifest.settings.insert(keeping.settings.begin(), keeping.settings.end());
  for (const CheckpointSaved& part : ready.parts)
    manifest.files.push_back({.name = part.file, .bytes = part.bytes, .checksum = part.checksum});
  return manifest;
}

}  // namespace

void CheckpointSaver::save(const Plan& plan, CheckpointPart part) {
  if (!thread_.busy()) return write(plan.checkpoint_dir, std::move(part));
  if (part.version == plan.steps) {
    waiting_ = std::move(part);
    return;
  }
  report_({.version = part.version,
           .failure = CheckpointFailure::kBusy,
           .error = "the previous checkpoint is still being written; use more steps between "
                    "checkpoints (--checkpoint-every) or a faster disk"});
}

void CheckpointSaver::write(const std::string& dir, CheckpointPart part) {
  const Version version = part.version;
  const TimePoint began = clock_now();
  // Shared because std::function is copyable. The thread releases the part when it is written.
  auto held = std::make_shared<CheckpointPart>(std::move(part));
  const bool started = thread_.begin(
      [this, dir, held = std::move(held)]() mutable -> Result<CheckpointFileEntry> {
        const std::shared_ptr<CheckpointPart> mine = std::move(held);
        const std::string folder = checkpoint_folder(dir, mine->version);
        if (const Status made = make_folder(folder); !made) return made.error();
        return write_checkpoint_part(*mine, folder, [this] { return !thread_.stopping(); });
      },
      [this, dir, version, began](const Result<CheckpointFileEntry>& written) {
        CheckpointSaved saved{.version = version, .took = clock_now() - began};
        if (written) {
          saved.file = written.value().name;
          saved.bytes = written.value().bytes;
          saved.checksum = written.value().checksum;
        } else {
          const Error& why = written.error();
          saved.failure =
              why.os_error != 0 ? CheckpointFailure::kSystem : CheckpointFailure::kOther;
          saved.os_error = why.os_error;
          saved.error = why.message;
        }
        report_(std::move(saved));
        if (auto next = std::exchange(waiting_, std::nullopt)) write(dir, std::move(*next));
      });
  if (!started) {
    report_({.version = version,
             .failure = CheckpointFailure::kOther,
             .error = "cannot start a thread to write it"});
  }
}

void CheckpointKeeper::keep(CheckpointReady ready) {
  waiting_.push_back(std::move(ready));
  if (!thread_.busy()) begin_next();
}

void CheckpointKeeper::begin_next() {
  if (waiting_.empty()) return;
  const CheckpointReady ready = std::move(waiting_.front());
  waiting_.pop_front();
  const Version version = ready.version;
  Duration slowest{};
  for (const CheckpointSaved& part : ready.parts) slowest = std::max(slowest, part.took);
  const TimePoint began = clock_now();
  const bool started = thread_.begin(
      [this, ready]() -> Status {
        const Status written = write_manifest(manifest_of(keeping_, ready),
                                              checkpoint_folder(keeping_.dir, ready.version));
        // A run that restarts after its last step continues from the checkpoint before it.
        const uint32_t least = ready.version >= keeping_.last ? 2 : 1;
        return written ? prune_checkpoints(keeping_.dir, std::max(keeping_.keep, least)) : written;
      },
      [this, version, began, slowest](const Status& kept) {
        kept_(version, kept, slowest + (clock_now() - began));
        if (!thread_.busy()) begin_next();
      });
  if (!started) kept_(version, system_error("cannot start a thread to write it"), slowest);
}

}  // namespace drover
