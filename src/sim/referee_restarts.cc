// The Referee's checks of checkpoints and restarts.
#include <fmt/format.h>

#include <algorithm>

#include "sim/referee.h"

namespace drover {
// A checkpoint must have all blocks, with the values of its version.
void Referee::on_checkpoint(const CheckpointReady& checkpoint,
                            const std::map<ShardId, CheckpointPart>& parts, TimePoint now) {
  wrong(checkpoints_.on_checkpoint(checkpoint.version), now);
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
      wrong(fmt::format("shard {} saved a block that does not exist", part.shard), now);
      continue;
    }
    BlockBook& book = found->second;
    const auto saved_value = static_cast<double>(saved.parameters->data()[0]);
    const double saved_momentum =
        saved.momentum ? static_cast<double>(saved.momentum->data()[0]) : 0.0;
    // A version of an asynchronous run is a round, and the Referee does not see when it ends.
    if (settings_.asynchronous) {
      book.states[part.version] = {{saved_value, saved_value}, {saved_momentum, saved_momentum}};
      continue;
    }
    advance(found->first, book, part.version, now);
    const BlockState& expected = book.states[part.version];
    if (!is_in(saved_value, expected.value))
      wrong(fmt::format("version {} of block {} is saved as {}, but was {}", part.version,
                        found->first, saved_value, expected.value.low),
            now);
    if (settings_.momentum > 0.0 && !book.averaged && !is_in(saved_momentum, expected.momentum))
      wrong(fmt::format("version {} of block {} is saved with a momentum of {}, but had {}",
                        part.version, found->first, saved_momentum, expected.momentum.low),
            now);
  }
}

// The lost shard does not answer offers any more.
void Referee::on_server_lost(ShardId shard) {
  lost_servers_.insert(shard);
  std::erase_if(unanswered_,
                [&](const PushKey& key) { return books_[std::get<0>(key)].shard == shard; });
}

void Referee::on_restart(const Restart& restart, TimePoint now) {
  wrong(checkpoints_.on_restart(restart, record_.recorded()), now);
  take_back(restart.version);
}

// Discards all steps from `version` on.
void Referee::take_back(Version version) {
  members_.restart(version);
  guard_.restart(version);
  for (auto& [id, book] : books_) {
    book.accounts.erase(book.accounts.lower_bound(version), book.accounts.end());
    book.states.erase(book.states.upper_bound(version), book.states.end());
    if (book.states.contains(version)) book.state = book.states[version];
    book.version = version;
    book.seen = version;
  }
  pushes_.clear();
  unanswered_.clear();
  lost_servers_.clear();
  lates_.restart();
  staleness_.restart();
  stragglers_.restart();
  shares_.restart();
  leaving_.clear();
  stale_.clear();
  record_.restart(version);
  named_ = version;
}

}  // namespace drover
