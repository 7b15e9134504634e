// RuleRace: which of a few rules decides, by what each would have earned of late.
//
// After every step each rule's plan is held against the step as it is believed to have been. With
// lambda the rate of the rule in charge, a step is worth gradients - lambda * time. Another rule
// takes over if its fading mean is better by a margin and by more than its standard error: these
// differences are noisy, and every change has its price.
#pragma once

#include <cstddef>
#include <vector>

namespace drover {

class RuleRace {
 public:
  struct Result {
    double gradients = 0.0;
    double time = 0.0;  // the overhead included
  };

  // `first` is in charge to begin with. REQUIRES: first < rules.
  RuleRace(size_t rules, size_t first);

  size_t leader() const { return leader_; }
  // What each rule would have earned in a step. REQUIRES: one for each rule, with a time above 0.
  void add(const std::vector<Result>& results);

 private:
  struct Entry {
    double gradients = 0.0;  // fading sums
    double time = 0.0;
    double squares = 0.0;  // of the difference to the leader
    double difference = 0.0;
  };
  std::vector<Entry> entries_;
  double weight_ = 0.0;
  double weight_squares_ = 0.0;
  size_t leader_;
};

}  // namespace drover
