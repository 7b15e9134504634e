// JointPolicy: the policy `bayes`. It decides by a joint forecast of the next step
// (forecast/joint), and holds that against waiting for all and the best fixed rules.
//
// Several experts propose a cutoff and a time limit for each step:
//
//   all      waits for all workers
//   names    the best plan for draws with each worker's own level
//   common   the same with one level for all workers: what counts is the place in the order
//   raw      the same for past steps as they were: the best fixed cutoff and time limit
//   learned  the same for draws of learned state-space models mixed with ecdf and ewma
//            (forecast/learned/bayes.h); by default only where a model file is given
//
// A proposal that promises less than 1 % over waiting for all is to wait for all. The race
// (rule_race.h) decides which expert is in charge.
//
// Dropped workers that would be dropped again anyway are let finish now and then (Choice::probes):
// a worker that has become faster, but not fast enough to be seen, is taken back.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "forecast/forecaster.h"
#include "forecast/joint/joint_forecaster.h"
#include "forecast/sort_rows.h"
#include "policy/joint_choice.h"
#include "policy/live_step.h"
#include "policy/objective.h"
#include "policy/policy.h"
#include "policy/rule_race.h"
#include "policy/share_scaling.h"
#include "policy/warm_up.h"

namespace drover {

enum class Expert : uint8_t { kAll, kNames, kCommon, kRaw, kLearned };
inline constexpr size_t kExperts = 5;
inline constexpr std::array<std::string_view, kExperts> kExpertNames = {"all", "names", "common",
                                                                        "raw", "learned"};

struct JointPolicySettings {
  Objective objective = Objective::kThroughput;
  Step warmup = 20;   // at most: ends sooner where the gain is sure
  bool live = false;  // decides again inside the step
  uint64_t seed = 1;
  std::array<bool, kExperts> experts = {true, true, true, true, false};
};

class JointPolicy : public Policy {
 public:
  // `learned` null: there is no such expert. REQUIRES: some expert that is not kAll.
  JointPolicy(const JointPolicySettings& settings, std::unique_ptr<Forecaster> learned);

  Choice decide(const Situation& situation) override;
  std::optional<Choice> reconsider(const StepProgress& progress) override;
  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;

 private:
  bool serves(Expert expert) const;
  bool is_early(const JointPlan& plan) const;
  void draw(Expert expert, const Situation& situation);
  void sort_samples(const Situation& situation);
  void plan(Expert expert, const Situation& situation);
  void plan_all(const Situation& situation);
  void plan_live(const Situation& situation, const JointPlan& plan, Choice& choice);
  void explore(const Situation& situation, double close, Choice& choice) const;
  void hold_race();

  const JointPolicySettings settings_;
  const std::unique_ptr<Forecaster> learned_;
  WarmUp warm_up_;
  JointForecaster forecaster_;
  ShareScaling scaling_;
  WeightedForecast drawn_;
  JointSamples samples_;
  RowSorter sorter_;
  JointSearch search_;
  JointTerms terms_;
  std::array<JointPlan, kExperts> plans_;
  RuleRace race_;
  std::vector<WorkerId> alive_;                 // of the step that is decided; empty: no plans
  std::vector<uint32_t> dropped_;               // by worker: steps in a row
  std::vector<std::pair<float, float>> pairs_;  // (time, share) of one row
  std::vector<double> last_times_;
  Goal goal_;
  LiveStep live_;
  bool reviewed_ = false;  // the open step is decided again inside
};

}  // namespace drover
