// OfferQueue: decides which of the offered blocks may be sent now.
//
// A shard grants offers in order of arrival, and allows a bounded number of bytes in flight. This
// bounds its memory, avoids incast (many senders that overflow a switch), and lets the first offers
// finish first.
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
  // One block may always be in flight, however large.
  explicit OfferQueue(size_t window_bytes) : window_bytes_(window_bytes) {}

  // For grants from now on.
  void set_window(size_t bytes) { window_bytes_ = bytes; }

  enum class Added : uint8_t {
    kYes,
    kAgain,    // the same offer is already open (neither sent nor withdrawn)
    kTooMany,  // offers of kOffersOpenMax other steps of that block are open
  };
  Added add(const Offer& offer);

  // Grants and returns the offers that fit the window now, oldest first. Their bytes are in flight
  // until take() or forget().
  std::vector<Offer> grant();

  // The bytes of a granted offer have arrived. Returns false if there was no such grant.
  bool take(WorkerId worker, Step step, BlockId block);

  // A worker left: removes its offers and grants.
  void forget(WorkerId worker);

  // Removes and returns the waiting offers of `block` for steps before `version`, which are late.
  // Granted ones may still arrive, but no longer count for the window.
  std::vector<Offer> withdraw_late(BlockId block, Version version);

  // The number of offers that wait or are granted.
  size_t pending() const { return waiting_.size() + under_way_.size(); }
  size_t bytes_under_way() const { return under_way_bytes_; }

 private:
  void close(const Offer& offer);

  size_t window_bytes_;
  std::deque<Offer> waiting_;
  std::vector<Offer> under_way_;
  size_t under_way_bytes_ = 0;
  // The steps of all open offers.
  std::map<std::pair<WorkerId, BlockId>, std::vector<Step>> open_;
};

}  // namespace drover
