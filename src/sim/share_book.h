// ShareBook: which samples of each step were dealt to which worker, where work is dealt by speed,
// and what must hold of that.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/ids.h"
#include "wire/control.h"

namespace drover {

class ShareBook {
 public:
  struct Settings {
    uint32_t batch = 0;  // of each worker, at first; 0: nothing is dealt
    double least = 0.0;  // shares of it that a worker gets
    double most = 0.0;
    // By worker, where these are its run-times exactly; else absent.
    std::function<double(WorkerId)> seconds = {};
    Step warmup = 0;  // steps from which it must be known who is slow
  };
  explicit ShareBook(Settings settings) : settings_(std::move(settings)) {}

  // A worker is told its share.
  void on_share(WorkerId worker, const Share& share) { shares_[worker].push_back(share); }
  // It is lost by the coordinator: its next incarnation has to be told anew.
  void on_lost(WorkerId worker);
  // Another incarnation of the coordinator, which has dealt nothing yet.
  void restart();

  // The shares that this worker may have used for so many samples of `step`: those in force (a
  // worker that is told too late does what it did before), and one that is not, if a later one may
  // have displaced all that were (SampleShare::kKept).
  std::vector<Share> may_use(WorkerId worker, Step step, uint32_t samples) const;

  // The first decision about a step. Returns what is wrong with its shares; empty: nothing. Where
  // the same workers are in it as in the step before, all samples are dealt, and none twice.
  std::string on_decision(const Decision& decision);

 private:
  struct Dealt {
    WorkerId worker = 0;
    Share share;
  };
  std::string check_share(const Dealt& dealt) const;
  std::string check_sum(Step step, std::vector<Dealt> all) const;
  std::string check_speeds(Step step, const std::vector<Dealt>& all) const;

  const Settings settings_;
  std::map<WorkerId, std::vector<Share>> shares_;
  std::vector<WorkerId> members_before_;  // in the decision before, and not lost since
  bool same_before_ = true;               // none of them was lost
};

}  // namespace drover
