#include "policy/held_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace drover {
namespace {

constexpr uint32_t kLongest = 4;      // steps: to hold longer costs more than to decide
constexpr double kAlike = 0.02;       // of the cutoff; one more or less is alike in any case
constexpr double kAlikeLimits = 0.1;  // of the time limit
constexpr double kOdd = 1.5;          // times as long as usual, or as short
constexpr double kNewest = 0.2;       // weight in what is usual

bool alike(const Choice& a, const Choice& b) {
  const double difference = std::abs(static_cast<double>(a.cutoff) - static_cast<double>(b.cutoff));
  if (difference > std::max(1.0, kAlike * b.cutoff)) return false;
  if (a.time_limit == b.time_limit) return true;  // both may be infinite
  return std::abs(a.time_limit - b.time_limit) <= kAlikeLimits * b.time_limit;
}

}  // namespace

std::optional<Choice> HeldChoice::choice(const Situation& situation) {
  if (!held_ || left_ == 0) return std::nullopt;
  if (!std::equal(alive_.begin(), alive_.end(), situation.alive.begin(), situation.alive.end()))
    return std::nullopt;
  --left_;
  Choice choice = *held_;
  // What was forecast then is not looked at again.
  choice.review = {};
  choice.expected.clear();
  choice.reason = fmt::format("holds what was decided at step {}: {}", since_, held_->reason);
  return choice;
}

void HeldChoice::hold(const Situation& situation, const Choice& choice) {
  if (steps_ == 0) {
    length_ = held_ && alike(choice, *held_) ? std::min(2 * length_, kLongest) : 1;
  }
  if (length_ == 1 && steps_ == 1) return;  // nothing is ever held
  held_ = choice;
  since_ = situation.step;
  left_ = length_ - 1;
  alive_.assign(situation.alive.begin(), situation.alive.end());
}

void HeldChoice::learn(const StepTimes& times) {
  if (usual_ > 0.0 && (times.elapsed > kOdd * usual_ || times.elapsed * kOdd < usual_)) {
    left_ = 0;
    if (steps_ == 0) length_ = 1;
  }
  usual_ = usual_ > 0.0 ? usual_ + kNewest * (times.elapsed - usual_) : times.elapsed;
}

}  // namespace drover
