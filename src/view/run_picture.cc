#include "view/run_picture.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

namespace drover {
namespace {

constexpr size_t kDecisionsShown = 30;
constexpr size_t kEventsShown = 100;
constexpr size_t kDetailArrivals = 3000;
static_assert(kRecentSteps > kDecisionsShown, "the opening of every decision's step is known");
// A run that says it is running is silent after so many seconds, and so many of its longest steps.
constexpr double kSilent_s = 30.0;
constexpr double kSilentSteps = 10.0;
// The steps that are read again each time: so many, but no more arrivals than that.
constexpr uint64_t kTailSteps = 64;
constexpr uint64_t kTailSteps_min = 4;
constexpr uint64_t kTailArrivals = 50'000;

std::string_view setting_of(const RunHeader& header, std::string_view key) {
  for (const auto& [name, value] : header.settings) {
    if (name == key) return value;
  }
  return {};
}

uint64_t number_in(std::string_view text) {
  uint64_t number = 0;
  const auto [stop, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  return trouble == std::errc{} && stop == text.data() + text.size() ? number : 0;
}

// Walks over records that are in order of steps, handing out those of one step after the other.
template <typename Record, typename StepOf>
std::span<const Record> those_of(std::span<const Record>& rest, Step step, StepOf step_of) {
  size_t before = 0;
  while (before < rest.size() && step_of(rest[before]) < step) ++before;
  size_t end = before;
  while (end < rest.size() && step_of(rest[end]) == step) ++end;
  const auto found = rest.subspan(before, end - before);
  rest = rest.subspan(end);
  return found;
}

// They come in the order in which they were made: with several steps under way (weak
// synchronization) not every one is after those of the step before.
std::vector<DecisionRecord> by_step(std::vector<DecisionRecord> decisions) {
  std::vector<std::pair<Step, size_t>> order;
  for (size_t i = 0; i < decisions.size(); ++i) order.emplace_back(decisions[i].step, i);
  std::sort(order.begin(), order.end());
  std::vector<DecisionRecord> sorted;
  sorted.reserve(order.size());
  for (const auto& [step, place] : order) sorted.push_back(std::move(decisions[place]));
  return sorted;
}

std::vector<WorkerState> states_of(const std::vector<EventRecord>& events, uint32_t workers) {
  std::vector<WorkerState> states(workers, WorkerState::kAlive);
  for (const EventRecord& event : events) {
    // All workers are started again. Those that do not come are reported as lost once more.
    if (event.kind() == EventKind::kRestarted) states.assign(workers, WorkerState::kAlive);
    if (!event.peer || event.peer->role != Role::kWorker || event.peer->index >= workers) continue;
    WorkerState& state = states[event.peer->index];
    if (event.kind() == EventKind::kLost) state = WorkerState::kLost;
    if (event.kind() == EventKind::kLeft) state = WorkerState::kFinished;
    if (event.kind() == EventKind::kJoined) state = WorkerState::kAlive;
  }
  return states;
}

}  // namespace

Result<bool> RunPicture::read(const RunReader& reader, uint64_t arrivals_max) {
  if (const Status status = read_small_tables(reader); !status) return status.error();
  return read_steps(reader, arrivals_max);
}

Status RunPicture::read_small_tables(const RunReader& reader) {
  if (header_.started.empty()) {
    Result<RunHeader> header = reader.header();
    if (!header) return header.error();
    header_ = std::move(header).value();
  }
  Result<RunEnd> end = reader.end();
  if (!end) return end.error();
  const Result<std::vector<PeerRecord>> peers = reader.peers();
  if (!peers) return peers.error();
  Result<std::vector<EvaluationRecord>> evaluations = reader.evaluations();
  if (!evaluations) return evaluations.error();
  Result<std::vector<EventRecord>> events = reader.events();
  if (!events) return events.error();
  path_ = reader.path();
  warning_ = reader.warning();
  end_ = std::move(end).value();
  evaluations_ = std::move(evaluations).value();
  events_ = std::move(events).value();
  uint32_t workers =
      std::max(workers_, static_cast<uint32_t>(number_in(setting_of(header_, "workers"))));
  uint32_t shards = 0;
  for (const PeerRecord& peer : peers.value()) {
    if (peer.peer.role == Role::kWorker) {
      hosts_[peer.peer.index] = peer.host;
      workers = std::max(workers, peer.peer.index + 1);
    }
    shards += peer.peer.role == Role::kShard ? 1 : 0;
  }
  shards_ = shards;
  arrange(workers);
  return done();
}

std::vector<std::string> RunPicture::nodes_of(uint32_t workers) const {
  std::vector<std::string> nodes(workers);
  for (const auto& [worker, host] : hosts_) {
    if (worker < workers) nodes[worker] = host;
  }
  return nodes;
}

void RunPicture::arrange(uint32_t workers) {
  HeatLayout layout = heat_layout(nodes_of(workers));
  if (workers == workers_ && layout == layout_) return;
  workers_ = workers;
  layout_ = std::move(layout);
  settled_ = RunSums(layout_);
  settled_to_ = 0;
  settled_foretold_s_ = kUnknown;
  settled_longest_s_ = 0.0;
  tail_.clear();
  old_decisions_.clear();
  new_decisions_.clear();
}

Result<bool> RunPicture::read_steps(const RunReader& reader, uint64_t arrivals_max) {
  const uint64_t per_step = std::max<uint64_t>(workers_, 1);
  const uint64_t tail_steps = std::clamp(kTailArrivals / per_step, kTailSteps_min, kTailSteps);
  const Step to = settled_to_ + tail_steps + std::max<uint64_t>(arrivals_max / per_step, 1);
  // Steps first: whatever they have was written with them, or before.
  Result<std::vector<StepRecord>> steps = reader.steps(settled_to_, to);
  if (!steps) return steps.error();
  const Step end = steps.value().empty() ? settled_to_ : steps.value().back().step + 1;
  const bool more = end == to;
  const auto arrivals = reader.arrivals(settled_to_, end);
  if (!arrivals) return arrivals.error();
  auto decisions = reader.decisions(settled_to_, more ? end : kAllSteps);
  if (!decisions) return decisions.error();

  const auto expected = reader.expected_last(settled_to_, end);
  if (!expected) return expected.error();
  auto loads = reader.shard_loads(settled_to_, end);
  if (!loads) return loads.error();

  uint32_t workers = workers_;
  for (const RecordedArrival& each : arrivals.value())
    workers = std::max(workers, each.arrival.worker + 1);
  if (workers != workers_) {  // nobody had said that there are so many
    arrange(workers);
    return true;
  }

  loads_ = std::move(loads).value();
  loads_of_ = {};
  for (const StepRecord& record : steps.value()) loads_of_ += record.elapsed;
  tail_.clear();
  new_decisions_ = by_step(std::move(decisions).value());
  std::span<const RecordedArrival> arrivals_left(arrivals.value());
  std::span<const DecisionRecord> decisions_left(new_decisions_);
  const DecisionRecord* decision = old_decisions_.empty() ? nullptr : &old_decisions_.back();
  std::span<const RunReader::ExpectedLast> expected_left(expected.value());
  double foretold_s = settled_foretold_s_;
  double longest_s = settled_longest_s_;
  for (const StepRecord& record : steps.value()) {
    const auto own = those_of(arrivals_left, record.step,
                              [](const RecordedArrival& each) { return each.arrival.step; });
    const auto decided =
        those_of(decisions_left, record.step, [](const DecisionRecord& each) { return each.step; });
    const auto foretold = those_of(expected_left, record.step,
                                   [](const RunReader::ExpectedLast& each) { return each.step; });
    // A decision holds until the next one, and so does what it was made by.
    if (!decided.empty()) {
      decision = &decided.back();
      foretold_s = foretold.empty() ? kUnknown : foretold.back().mean_s;
    }
    for (const RecordedArrival& each : own) {
      if (!each.arrival.censored) longest_s = std::max(longest_s, seconds(each.arrival.run_time));
    }
    // Of workers that are hardly ever seen a model may expect anything. More than this run has ever
    // shown does not count.
    StepFacts facts = facts_of(record, own, decision,
                               std::isnan(foretold_s) ? kUnknown : std::min(foretold_s, longest_s));
    if (record.step + tail_steps < end) {
      settled_.add(facts, own);
      settled_to_ = record.step + 1;
      settled_foretold_s_ = foretold_s;
      settled_longest_s_ = longest_s;
    } else {
      tail_.push_back({std::move(facts), {own.begin(), own.end()}});
    }
  }
  const auto unsettled =
      std::find_if(new_decisions_.begin(), new_decisions_.end(),
                   [&](const DecisionRecord& each) { return each.step >= settled_to_; });
  std::move(new_decisions_.begin(), unsettled, std::back_inserter(old_decisions_));
  new_decisions_.erase(new_decisions_.begin(), unsettled);
  if (old_decisions_.size() > kDecisionsShown)
    old_decisions_.erase(old_decisions_.begin(),
                         old_decisions_.end() - static_cast<std::ptrdiff_t>(kDecisionsShown));
  return more;
}

RunProgress RunPicture::progress_of(const RunSums& sums, Duration quiet) const {
  RunProgress progress;
  progress.step = sums.elapsed_s().size();
  const uint64_t planned = number_in(setting_of(header_, "steps"));
  const bool runs = end_.outcome == RunOutcome::kRunning;
  if (planned < kEndless) progress.steps = std::max(planned, progress.step);
  progress.elapsed_s = seconds(end_.elapsed);
  progress.quiet_s = std::max(0.0, seconds(quiet));
  if (progress.step > 0 && progress.elapsed_s > 0.0)
    progress.steps_per_s = static_cast<double>(progress.step) / progress.elapsed_s;
  double longest_s = 0.0;
  if (!sums.recent().empty()) {
    const StepFacts& first = sums.recent().front();
    const StepFacts& last = sums.recent().back();
    const double took_s = last.at_s + last.elapsed_s - first.at_s;
    const auto recent = static_cast<double>(sums.recent().size());
    if (runs && took_s > 0.0) progress.steps_per_s = recent / took_s;
    for (const StepFacts& facts : sums.recent()) longest_s = std::max(longest_s, facts.elapsed_s);
  }
  switch (end_.outcome) {
    case RunOutcome::kCompleted:
      progress.state = RunState::kCompleted;
      break;
    case RunOutcome::kInterrupted:
      progress.state = RunState::kInterrupted;
      break;
    case RunOutcome::kFailed:
      progress.state = RunState::kFailed;
      break;
    case RunOutcome::kRunning:
      progress.state = progress.step > 0 ? RunState::kRunning : RunState::kWaiting;
      if (progress.quiet_s > std::max(kSilent_s, kSilentSteps * longest_s))
        progress.state = RunState::kSilent;
      break;
  }
  // The time of simulated and replayed runs is not the time of whoever waits for them.
  const bool real =
      setting_of(header_, "scenario").empty() && setting_of(header_, "replay").empty();
  if (progress.state == RunState::kRunning && real && planned > 0 && progress.steps)
    progress.left_s = static_cast<double>(*progress.steps - progress.step) / progress.steps_per_s;
  return progress;
}

std::vector<WorkerLine> RunPicture::workers_of(const RunSums& sums) const {
  const std::vector<WorkerState> states = states_of(events_, workers_);
  const std::vector<std::string> nodes = nodes_of(workers_);
  std::vector<WorkerLine> lines;
  lines.reserve(workers_);
  for (WorkerId worker = 0; worker < workers_; ++worker) {
    const WorkerSums& own = sums.workers()[worker];
    WorkerLine line{.worker = worker,
                    .node = nodes[worker],
                    .state = states[worker],
                    .steps = own.steps,
                    .late = own.late,
                    .censored = own.censored,
                    .last = own.last};
    if (own.steps > 0) {
      line.inclusion =
          1.0 - static_cast<double>(own.late + own.censored) / static_cast<double>(own.steps);
      line.median_s = own.times.at_rank((own.times.count() + 1) / 2);
      line.median_exact = own.bounds.up_to(line.median_s) == 0;
    }
    if (own.after_miss > 0)
      line.recurrence = static_cast<double>(own.missed_again) / static_cast<double>(own.after_miss);
    lines.push_back(std::move(line));
  }
  return lines;
}

RunSnapshot RunPicture::snapshot(Duration quiet) const {
  RunSums sums = settled_;
  for (const StepWithArrivals& step : tail_) sums.add(step.facts, step.arrivals);
  RunSnapshot snapshot{.file = path_,
                       .place = {},
                       .header = header_,
                       .end = end_,
                       .warning = warning_,
                       .workers = workers_,
                       .shards = shards_,
                       .progress = progress_of(sums, quiet),
                       .totals = page_totals(sums),
                       .steps = step_series(sums.steps()),
                       .evaluations = evaluations_,
                       .decisions = {},
                       .heat = heat_map(sums.heat(), layout_),
                       .worker_lines = workers_of(sums),
                       .shard_lines = {},
                       .events = {}};
  if (!evaluations_.empty()) {
    snapshot.totals.test_loss = evaluations_.back().loss;
    snapshot.totals.test_accuracy = evaluations_.back().accuracy;
  }
  for (ShardId shard = 0; shard < shards_; ++shard) snapshot.shard_lines.push_back({shard});
  for (const ShardLoad& load : loads_) {
    if (load.shard < shards_ && loads_of_ > Duration::zero())
      snapshot.shard_lines[load.shard].busy_share = seconds(load.busy) / seconds(loads_of_);
  }
  snapshot.decisions = last_decisions(sums);
  const size_t shown = std::min(kEventsShown, events_.size());
  snapshot.events.assign(events_.rbegin(), events_.rbegin() + static_cast<std::ptrdiff_t>(shown));
  return snapshot;
}

std::vector<DecisionLine> RunPicture::last_decisions(const RunSums& sums) const {
  std::vector<DecisionRecord> all = old_decisions_;
  all.insert(all.end(), new_decisions_.begin(), new_decisions_.end());
  std::vector<DecisionLine> lines;
  for (size_t i = all.size(); i > 0 && lines.size() < kDecisionsShown; --i) {
    const DecisionRecord& decision = all[i - 1];
    // The step that is open has no record yet: it opened when the last one closed, or is about to.
    double opened_s = 0.0;
    for (const StepFacts& facts : sums.recent()) {
      if (facts.record.step > decision.step) break;
      opened_s = facts.at_s + (facts.record.step < decision.step ? facts.elapsed_s : 0.0);
    }
    lines.push_back({decision, opened_s + seconds(decision.at)});
  }
  return lines;
}

Result<std::optional<StepDetail>> read_step(const RunReader& reader, Step step) {
  const auto steps = reader.steps(step, step + 1);
  if (!steps) return steps.error();
  if (steps.value().empty()) return std::optional<StepDetail>();
  auto arrivals = reader.arrivals(step, step + 1);
  if (!arrivals) return arrivals.error();
  auto decisions = reader.decisions(step, step + 1);
  if (!decisions) return decisions.error();
  StepDetail detail;
  detail.decisions = std::move(decisions).value();
  detail.facts = facts_of(steps.value().front(), arrivals.value(),
                          detail.decisions.empty() ? nullptr : &detail.decisions.back());
  detail.arrivals = std::move(arrivals).value();
  // Who was not in time came after all who were, though what is known of it may be less.
  std::sort(detail.arrivals.begin(), detail.arrivals.end(),
            [](const RecordedArrival& a, const RecordedArrival& b) {
              return std::tuple(!in_time(a), a.arrival.run_time, a.arrival.worker) <
                     std::tuple(!in_time(b), b.arrival.run_time, b.arrival.worker);
            });
  if (const size_t all = detail.arrivals.size(); all > kDetailArrivals) {
    // Evenly spread over the ranks, with the first and the last.
    for (size_t i = 0; i < kDetailArrivals; ++i)
      detail.arrivals[i] = detail.arrivals[i * (all - 1) / (kDetailArrivals - 1)];
    detail.arrivals.resize(kDetailArrivals);
  }
  const auto expected = reader.expected(step);
  if (!expected) return expected.error();
  if (!expected.value().empty()) {
    OrderForecast& forecast = detail.forecast.emplace();
    for (const ExpectedArrival& each : expected.value()) {
      forecast.rank.push_back(each.rank);
      forecast.mean_s.push_back(static_cast<double>(each.mean));
      forecast.low_s.push_back(static_cast<double>(each.low));
      forecast.high_s.push_back(static_cast<double>(each.high));
    }
  }
  return std::optional<StepDetail>(std::move(detail));
}

}  // namespace drover
