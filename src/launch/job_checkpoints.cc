#include "launch/job_checkpoints.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "store/checkpoint.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

// The settings that a resumed run must not change, besides those of learning.
SettingTexts texts_of_task(const Job& job, bool brings_model) {
  SettingTexts texts = {{"seed", std::to_string(job.task.seed)},
                        {"batch", std::to_string(job.batch)}};
  if (brings_model) return texts;
  texts["model"] = job.task.model;
  texts["data"] = job.task.data;
  constexpr std::array kPartitions = {"none", "random", "label"};
  texts["partition"] = kPartitions.at(static_cast<size_t>(job.task.partition));
  if (job.task.data == "generated")
    texts["generated_samples"] = std::to_string(job.task.generated_samples);
  return texts;
}

std::string absolute(const std::string& path) {
  std::error_code trouble;
  const std::string whole = fs::absolute(path, trouble).lexically_normal().string();
  return trouble ? path : whole;
}

bool same_folder(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && absolute(a + "/") == absolute(b + "/");
}

Error nothing_left(const Checkpoint& found, const Job& job) {
  return invalid_input("the checkpoint " + found.folder() + " is of step " +
                       std::to_string(found.manifest().step) + ", and the run has only " +
                       std::to_string(job.steps) +
                       " steps: there is nothing left to do. Add steps with --steps");
}

Result<std::optional<ResumeFrom>> find_resume(const Job& job, const SettingTexts& now,
                                              Version before, std::vector<std::string>& warnings) {
  const std::optional<ResumeFrom> none;
  // A run that resumes from the folder that it writes to may find no checkpoint there: so the same
  // command starts the run and restarts it.
  const bool own = same_folder(job.record.resume, job.record.checkpoint);
  std::error_code ignored;
  if (own && !fs::exists(job.record.resume, ignored)) return none;
  auto newest = newest_checkpoint(absolute(job.record.resume), before);
  if (!newest) return newest.error();
  for (const CheckpointFound& each : newest.value().skipped)
    warnings.push_back("skipped an unusable checkpoint: " + each.trouble);
  if (!newest.value().checkpoint) {
    // An unfinished checkpoint has no manifest and can be ignored. A damaged one must not be: the
    // run would silently begin again.
    const bool damaged =
        std::any_of(newest.value().skipped.begin(), newest.value().skipped.end(),
                    [&](const CheckpointFound& each) {
                      return fs::exists(fs::path(each.folder) / kManifestName, ignored);
                    });
    if (own && !damaged) return none;
    return invalid_input("there is no usable checkpoint in " + job.record.resume +
                         " (--resume). For details: drover checkpoint inspect " +
                         job.record.resume + "; to start a new run, choose another folder");
  }
  const Checkpoint& found = *newest.value().checkpoint;
  const CheckpointManifest& manifest = found.manifest();
  if (const auto other = differences(manifest.settings, now)) {
    return invalid_input("cannot resume from " + found.folder() + ": " + *other +
                         ". Only workers, shards, steps and policy may differ. Use the same "
                         "settings, or start a new run without --resume");
  }
  if (manifest.step >= job.steps) return nothing_left(found, job);
  return std::optional(ResumeFrom{.step = manifest.step,
                                  .folder = found.folder(),
                                  .tensors = manifest.tensors,
                                  .settings = manifest.settings,
                                  .noise = manifest.noise});
}

}  // namespace

Result<JobCheckpoints> prepare_checkpoints(const Job& job, bool brings_model, Version before) {
  JobCheckpoints prepared;
  const SettingTexts settings = texts_of_task(job, brings_model);
  if (!job.record.resume.empty()) {
    SettingTexts now = settings;
    if (!brings_model) {
      now.merge(texts_of(job.learning.optimizer));
      now.merge(texts_of(job.learning.schedule));
    }
    auto resume = find_resume(job, now, before, prepared.warnings);
    if (!resume) return resume.error();
    prepared.resume = std::move(resume).value();
  }
  if (job.record.checkpoint.empty()) return prepared;
  const std::string dir = absolute(job.record.checkpoint);
  if (const Status made = make_folder(dir); !made) {
    return invalid_input("cannot write checkpoints to " + job.record.checkpoint + ": " +
                         made.error().message + ". Choose another folder with --checkpoint");
  }
  if (::access(dir.c_str(), W_OK | X_OK) != 0) {
    return invalid_input("cannot write checkpoints to " + job.record.checkpoint +
                         ": permission denied. Choose another folder with --checkpoint");
  }
  const auto there = list_checkpoints(dir, false);
  if (!there) return there.error();
  for (const CheckpointFound& each : there.value()) {
    // Checkpoints of step `before` and later are of this run.
    if (prepared.resume || !each.checkpoint || each.checkpoint->manifest().step >= before) continue;
    return invalid_input(job.record.checkpoint + " has checkpoints of another run, such as " +
                         each.folder + ". Resume that run with --resume " + job.record.checkpoint +
                         ", or choose another folder with --checkpoint");
  }
  const Version first = prepared.resume ? prepared.resume->step : 0;
  const auto aside = set_aside_after(dir, first);
  if (!aside) return aside.error();
  for (const std::string& each : aside.value())
    prepared.warnings.push_back(
        "moved aside a checkpoint that is later than the one resumed from: " + each);
  prepared.keeping = {.dir = dir,
                      .keep = job.record.keep,
                      .last = job.steps,
                      .settings = settings,
                      .run = 0,
                      .seed = job.task.seed,
                      .workers = job.cluster.workers};
  return prepared;
}

void apply(const Job& job, const JobCheckpoints& checkpoints, CoordinatorSettings& machine) {
  machine.resume = checkpoints.resume;
  machine.checkpoint_dir = checkpoints.keeping.dir;
  machine.checkpoint_every = checkpoints.keeping.dir.empty() ? 0 : job.record.checkpoint_every;
  if (!machine.resume) return;
  // Observed run-times are not in a checkpoint, so the warm-up is repeated.
  machine.pull.warmup += machine.resume->step;
  if (machine.balance) machine.balance->warmup += machine.resume->step;
}

}  // namespace drover
