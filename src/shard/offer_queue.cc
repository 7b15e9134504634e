#include "shard/offer_queue.h"

#include <algorithm>
#include <utility>

#include "wire/header.h"
#include "wire/limits.h"

namespace drover {

OfferQueue::Added OfferQueue::add(const Offer& offer) {
  std::vector<Step>& steps = open_[{offer.worker, offer.block}];
  if (std::find(steps.begin(), steps.end(), offer.step) != steps.end()) return Added::kAgain;
  if (steps.size() >= kOffersOpenMax) return Added::kTooMany;
  steps.push_back(offer.step);
  waiting_.push_back(offer);
  return Added::kYes;
}

void OfferQueue::close(const Offer& offer) {
  const auto found = open_.find({offer.worker, offer.block});
  std::erase(found->second, offer.step);
  if (found->second.empty()) open_.erase(found);
}

std::vector<Offer> OfferQueue::grant() {
  std::vector<Offer> granted;
  while (!waiting_.empty()) {
    const Offer& next = waiting_.front();
    if (under_way_bytes_ > 0 && under_way_bytes_ + next.bytes > window_bytes_) break;
    under_way_bytes_ += next.bytes;
    under_way_.push_back(next);
    granted.push_back(next);
    waiting_.pop_front();
  }
  return granted;
}

bool OfferQueue::take(WorkerId worker, Step step, BlockId block) {
  const auto found = std::find_if(under_way_.begin(), under_way_.end(), [&](const Offer& offer) {
    return offer.worker == worker && offer.step == step && offer.block == block;
  });
  if (found == under_way_.end()) return false;
  under_way_bytes_ -= found->bytes;
  close(*found);
  under_way_.erase(found);
  return true;
}

void OfferQueue::forget(WorkerId worker) {
  const auto is_theirs = [&](const Offer& offer) { return offer.worker == worker; };
  std::erase_if(waiting_, is_theirs);
  for (const Offer& offer : under_way_) {
    if (is_theirs(offer)) under_way_bytes_ -= offer.bytes;
  }
  std::erase_if(under_way_, is_theirs);
  std::erase_if(open_, [&](const auto& entry) { return entry.first.first == worker; });
}

std::vector<Offer> OfferQueue::withdraw_late(BlockId block, Version version) {
  std::vector<Offer> late;
  const auto is_late = [&](const Offer& offer) {
    return offer.block == block && offer.step != kInitialStep && offer.step < version;
  };
  for (Offer& offer : under_way_) {
    if (is_late(offer)) under_way_bytes_ -= std::exchange(offer.bytes, 0);
  }
  std::erase_if(waiting_, [&](const Offer& offer) {
    if (!is_late(offer)) return false;
    late.push_back(offer);
    close(offer);
    return true;
  });
  return late;
}

}  // namespace drover
