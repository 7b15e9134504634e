// ShareChecker: tracks which samples of each step each worker gets where batches are balanced by
// speed, and checks the shares.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/ids.h"
#include "wire/control.h"

namespace drover {

class ShareChecker {
 public:
  struct Settings {
    uint32_t batch = 0;  // initial batch of each worker; 0: batches are not balanced
    double least = 0.0;  // bounds of a worker's share, in batches
    double most = 0.0;
    // Run-time by worker where it is constant; otherwise absent.
    std::function<double(WorkerId)> seconds = {};
    Step warmup = 0;  // after these steps shares must follow the speeds
  };
  explicit ShareChecker(Settings settings) : settings_(std::move(settings)) {}

  // A share is sent to a worker.
  void on_share(WorkerId worker, const Share& share) { shares_[worker].push_back(share); }
  // The coordinator has lost the worker: its next process needs a new share.
  void on_lost(WorkerId worker);
  // A new incarnation of the coordinator, which has sent no shares yet.
  void restart();

  // The shares that this worker may have used for `samples` samples of `step`: those in force (a
  // worker that receives a share too late uses the previous one), and one that is not yet, if a
  // later one may have displaced those in force (SampleShare::kKept).
  std::vector<Share> may_use(WorkerId worker, Step step, uint32_t samples) const;

  // To be called with the first decision of a step. Returns a description of the violation, or an
  // empty string. If the step has the same workers as the previous one, all samples must be
  // assigned, and none twice.
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
  std::vector<WorkerId> members_before_;  // of the previous decision, and not lost since
  bool same_before_ = true;               // none of them was lost
};

}  // namespace drover
