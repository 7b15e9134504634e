// OfferQueue: which of the offered blocks may be sent now.
//
// A shard takes offers in the order in which they arrive, and lets only a bounded number of bytes
// be under way at once: that bounds its memory, keeps many senders from drowning a switch, and lets
// whoever came first finish first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "core/ids.h"

namespace drover {

struct Offer {
  WorkerId worker = 0;
  Step step = 0;
  BlockId block = 0;
  size_t bytes = 0;
  bool operator==(const Offer&) const = default;
};

class OfferQueue {
 public:
  // One block may always be under way, however large.
  explicit OfferQueue(size_t window_bytes) : window_bytes_(window_bytes) {}

  // For what is granted from now on.
  void set_window(size_t bytes) { window_bytes_ = bytes; }

  enum class Added : uint8_t {
    kYes,
    kAgain,    // the same has been offered, and neither sent nor withdrawn
    kTooMany,  // so have kOffersOpenMax other steps of that block
  };
  Added add(const Offer& offer);

  // The offers that fit the window now, oldest first; they count as under way until taken or lost.
  std::vector<Offer> grant();

  // The bytes of a granted offer have arrived. Returns false if there was no such grant.
  bool take(WorkerId worker, Step step, BlockId block);

  // A worker left: neither its offers nor its grants count any longer.
  void forget(WorkerId worker);

  // Removes and returns the waiting offers of `block` for steps before `version`: they are late.
  // Those under way may still come, but no longer take up the window.
  std::vector<Offer> withdraw_late(BlockId block, Version version);

  // Those that wait, and those under way.
  size_t pending() const { return waiting_.size() + under_way_.size(); }
  size_t bytes_under_way() const { return under_way_bytes_; }

 private:
  void close(const Offer& offer);

  size_t window_bytes_;
  std::deque<Offer> waiting_;
  std::vector<Offer> under_way_;
  size_t under_way_bytes_ = 0;
  // Steps of all of them.
  std::map<std::pair<WorkerId, BlockId>, std::vector<Step>> open_;
};

}  // namespace drover
