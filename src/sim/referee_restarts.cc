// What the Referee checks of checkpoints, and of a run that restarts.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/referee.h"

namespace drover {
// It holds all blocks as they were at that version, and the shards say what it is.
void Referee::on_checkpoint(const CheckpointReady& checkpoint,
                            const std::map<ShardId, CheckpointPart>& parts, TimePoint now) {
  checkpoints_.insert(checkpoint.version);
  size_t blocks = 0;
  for (const auto& [shard, part] : parts) {
    blocks += part.blocks.size();
    check_part(part, now);
  }
  if (blocks != books_.size())
    wrong(fmt::format("the checkpoint of step {} has {} of {} blocks", checkpoint.version, blocks,
                      books_.size()),
          now);
}

void Referee::check_part(const CheckpointPart& part, TimePoint now) {
  for (const SavedBlock& saved : part.blocks) {
    const auto found = std::find_if(books_.begin(), books_.end(), [&](const auto& entry) {
      return entry.second.offset == saved.offset;
    });
    if (found == books_.end()) {
      wrong(fmt::format("shard {} saved a block that there is not", part.shard), now);
      continue;
    }
    BlockBook& book = found->second;
    const auto saved_value = static_cast<double>(saved.parameters->data()[0]);
    // A version is then a round, whose end is not seen.
    if (settings_.free_running) {
      book.values[part.version] = {saved_value, saved_value};
      continue;
    }
    advance(found->first, book, part.version, now);
    const Range& expected = book.values[part.version];
    if (!is_in(saved_value, expected))
      wrong(fmt::format("version {} of block {} is saved as {}, but was {}", part.version,
                        found->first, saved_value, expected.low),
            now);
  }
}

// What it was offered it does not answer any more.
void Referee::on_server_lost(ShardId shard) {
  lost_servers_.insert(shard);
  std::erase_if(unanswered_,
                [&](const PushKey& key) { return books_[std::get<0>(key)].shard == shard; });
}

// From memory a run continues with the step that was open, and from the disk with its newest
// checkpoint. That of the last step does not count: the evaluation of the parameters is missing.
void Referee::on_restart(const Restart& restart, TimePoint now) {
  ++restarts_;
  if (!settings_.recovers) wrong("a run restarts that does not recover", now);
  if (restarts_ > settings_.restarts_most)
    wrong(fmt::format("the run restarts for the {}th time", restarts_), now);
  const auto after = checkpoints_.lower_bound(settings_.steps);
  const Version newest = after == checkpoints_.begin() ? 0 : *std::prev(after);
  const Version open = told_ == settings_.steps ? told_ - 1 : told_;
  const Version expected = restart.from_memory ? open : newest;
  if (restart.version != expected)
    wrong(fmt::format("the run continues from step {} ({}), but should from {}", restart.version,
                      restart.from_memory ? "in memory" : "a checkpoint", expected),
          now);
  if (restart.loses_none && !restart.from_memory)
    wrong("steps are lost with a shard, though its standby had all of them", now);
  take_back(restart.version);
}

// What happened from `version` on has not been.
void Referee::take_back(Version version) {
  continued_from_ = version;
  attendance_.restart(version);
  guard_.restart(version);
  checkpoints_.erase(checkpoints_.upper_bound(version), checkpoints_.end());
  for (auto& [id, book] : books_) {
    book.accounts.erase(book.accounts.lower_bound(version), book.accounts.end());
    book.values.erase(book.values.upper_bound(version), book.values.end());
    if (book.values.contains(version)) book.value = book.values[version];
    book.version = version;
    book.seen = version;
  }
  pushes_.clear();
  unanswered_.clear();
  lost_servers_.clear();
  answered_.clear();
  straggling_.clear();
  parts_.clear();
  clocks_.clear();
  asks_.clear();
  finishing_.clear();
  slow_.clear();
  stopped_.clear();
  gone_.clear();
  shares_.clear();
  members_before_.clear();
  stale_.clear();
  alive_.erase(alive_.lower_bound(version), alive_.end());
  censored_.clear();
  told_ = decided_ = named_ = version;
}

}  // namespace drover
