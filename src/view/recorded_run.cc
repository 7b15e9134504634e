#include "view/recorded_run.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace drover {
namespace {

// The number of steps that are read again each time, and a limit on their arrivals.
constexpr uint64_t kTailSteps = 64;
constexpr uint64_t kTailSteps_min = 4;
constexpr uint64_t kTailArrivals = 50'000;

std::optional<uint64_t> number_in(std::string_view text) {
  uint64_t number = 0;
  const auto [stop, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (trouble != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

void keep_last(std::vector<DecisionRecord>& decisions) {
  if (decisions.size() <= kDecisionsKept) return;
  decisions.erase(decisions.begin(), decisions.end() - static_cast<std::ptrdiff_t>(kDecisionsKept));
}

}  // namespace

std::string RunTables::setting(std::string_view key) const {
  for (const auto& [name, value] : header.settings) {
    if (name == key) return value;
  }
  return {};
}

std::optional<uint64_t> RunTables::steps_planned() const {
  const std::optional<uint64_t> planned = number_in(setting("steps"));
  return planned && *planned < kEndless ? planned : std::nullopt;
}

Result<bool> RecordedRun::read(const RunReader& reader, uint64_t arrivals_max) {
  if (const Status status = read_tables(reader); !status) return status.error();
  const Result<bool> rewound = was_rewound(reader);
  if (!rewound) return rewound.error();
  if (rewound.value()) reset_steps();
  return read_steps(reader, arrivals_max);
}

Status RecordedRun::read_all(const RunReader& reader, uint64_t arrivals_max) {
  while (true) {
    const Result<bool> more = read(reader, arrivals_max);
    if (!more) return more.error();
    if (!more.value()) return done();
  }
}

Status RecordedRun::read_tables(const RunReader& reader) {
  if (tables_.header.started.empty()) {
    Result<RunHeader> header = reader.header();
    if (!header) return header.error();
    tables_.header = std::move(header).value();
  }
  // The end is read first. If it is present, everything recorded before it is present too.
  Result<RunEnd> end = reader.end();
  if (!end) return end.error();
  const Result<std::vector<PeerRecord>> peers = reader.peers();
  if (!peers) return peers.error();
  Result<std::vector<EvaluationRecord>> evaluations = reader.evaluations();
  if (!evaluations) return evaluations.error();
  if (const Status status = read_events(reader); !status) return status;
  tables_.path = reader.path();
  tables_.warning = reader.warning();
  tables_.end = std::move(end).value();
  tables_.evaluations = std::move(evaluations).value();
  take_peers(peers.value());
  return done();
}

Status RecordedRun::read_events(const RunReader& reader) {
  Result<std::vector<EventRecord>> events = reader.events();
  if (!events) return events.error();
  // Events are never removed from a run file.
  for (; events_read_ < events.value().size(); ++events_read_) {
    EventRecord& event = events.value()[events_read_];
    tables_.worker_states.add(event);
    tables_.events.push_back(std::move(event));
    if (tables_.events.size() > kEventsKept) tables_.events.pop_front();
  }
  return done();
}

void RecordedRun::take_peers(const std::vector<PeerRecord>& peers) {
  uint32_t workers = std::max(
      tables_.workers, static_cast<uint32_t>(number_in(tables_.setting("workers")).value_or(0)));
  tables_.shards = 0;
  tables_.workers_joined = 0;
  for (const PeerRecord& each : peers) {
    tables_.shards += each.peer.role == Role::kShard ? 1 : 0;
    if (each.peer.role != Role::kWorker) continue;
    ++tables_.workers_joined;
    workers = std::max(workers, each.peer.index + 1);
    if (each.peer.index >= tables_.nodes.size()) tables_.nodes.resize(each.peer.index + size_t{1});
    tables_.nodes[each.peer.index] = each.host;
  }
  arrange(workers);
}

void RecordedRun::arrange(uint32_t workers) {
  tables_.nodes.resize(workers);
  HeatLayout layout = heat_layout(tables_.nodes);
  if (workers == tables_.workers && layout == layout_) return;
  tables_.workers = workers;
  layout_ = std::move(layout);
  reset_steps();
}

void RecordedRun::reset_steps() {
  settled_ = RunAggregate(layout_);
  settled_to_ = 0;
  settled_last_at_ = {};
  tail_ = {};
  old_decisions_.clear();
}

Result<bool> RecordedRun::was_rewound(const RunReader& reader) const {
  if (settled_to_ == 0) return false;
  const auto last = reader.steps(settled_to_ - 1, settled_to_);
  if (!last) return last.error();
  const bool exists = !last.value().empty();
  if (settled_.step_count() == 0) return exists;  // a resumed run, whose first step is not 0
  return !exists || last.value().front().at != settled_last_at_;
}

Result<bool> RecordedRun::read_steps(const RunReader& reader, uint64_t arrivals_max) {
  // If settings and peers do not have the number of workers, the first steps do.
  const bool unknown = tables_.workers == 0 && settled_.step_count() == 0;
  const uint64_t per_step = unknown ? arrivals_max : std::max<uint64_t>(tables_.workers, 1);
  const uint64_t tail_steps = std::clamp(kTailArrivals / per_step, kTailSteps_min, kTailSteps);
  const Step to =
      std::min(end_, settled_to_ + tail_steps + std::max<uint64_t>(arrivals_max / per_step, 1));
  auto stretch = read_stretch(reader, {settled_to_, to}, true);
  if (!stretch) return stretch.error();
  if (stretch.value().steps.empty() && settled_to_ == 0) {
    const Result<Step> first = first_step(reader);
    if (!first) return first.error();
    settled_to_ = std::min(first.value(), end_);
    if (settled_to_ > 0) return true;
  }
  const bool more = stretch.value().span.to == to && to < end_;
  auto loads = reader.shard_loads(settled_to_, stretch.value().span.to);
  if (!loads) return loads.error();

  uint32_t workers = tables_.workers;
  for (const RecordedArrival& each : stretch.value().arrivals)
    workers = std::max(workers, each.arrival.worker + 1);
  if (workers != tables_.workers) {  // more than in settings and peers
    arrange(workers);
    return true;
  }

  loads_ = std::move(loads).value();
  loads_of_ = {};
  for (const StepRecord& record : stretch.value().steps) loads_of_ += record.elapsed;
  settle(std::move(stretch).value(), tail_steps);
  return more;
}

void RecordedRun::settle(RunStretch stretch, uint64_t tail_steps) {
  const Step end = stretch.span.to;
  const Step begin = end - std::min<Step>(end, tail_steps);  // of the tail
  static_cast<void>(walk_stretch(stretch, [&](const WalkedStep& step) -> Status {
    if (step.step.step >= begin) return done();
    settled_.add(step);
    settled_to_ = step.step.step + 1;
    settled_last_at_ = step.step.at;
    return done();
  }));
  const auto before_tail = [&](auto& records, auto step_of) {
    return std::find_if(records.begin(), records.end(),
                        [&](const auto& each) { return step_of(each) >= settled_to_; });
  };
  const auto step_of = [](const auto& each) { return each.step; };
  const auto decisions = before_tail(stretch.decisions, step_of);
  std::move(stretch.decisions.begin(), decisions, std::back_inserter(old_decisions_));
  keep_last(old_decisions_);
  stretch.decisions.erase(stretch.decisions.begin(), decisions);
  stretch.steps.erase(stretch.steps.begin(), before_tail(stretch.steps, step_of));
  stretch.expected.erase(stretch.expected.begin(), before_tail(stretch.expected, step_of));
  const auto arrivals =
      before_tail(stretch.arrivals, [](const auto& each) { return each.arrival.step; });
  // A copy frees memory, because the stretch was much longer than its rest.
  tail_ = {.span = {settled_to_, end},
           .steps = {stretch.steps.begin(), stretch.steps.end()},
           .arrivals = {arrivals, stretch.arrivals.end()},
           .decisions = {stretch.decisions.begin(), stretch.decisions.end()},
           .expected = {stretch.expected.begin(), stretch.expected.end()}};
}

RunAggregate RecordedRun::aggregate() const {
  RunAggregate all = settled_;
  static_cast<void>(walk_stretch(tail_, [&](const WalkedStep& step) -> Status {
    all.add(step);
    return done();
  }));
  return all;
}

std::vector<DecisionRecord> RecordedRun::decisions() const {
  std::vector<DecisionRecord> all = old_decisions_;
  all.insert(all.end(), tail_.decisions.begin(), tail_.decisions.end());
  return all;
}

const DecisionRecord* RecordedRun::newest_decision() const {
  if (!tail_.decisions.empty()) return &tail_.decisions.back();
  return old_decisions_.empty() ? nullptr : &old_decisions_.back();
}

std::vector<double> RecordedRun::shard_busy_shares() const {
  std::vector<double> shares(tables_.shards, kUnknown);
  for (const ShardLoad& load : loads_) {
    if (load.shard < shares.size() && loads_of_ > Duration::zero())
      shares[load.shard] = seconds(load.busy) / seconds(loads_of_);
  }
  return shares;
}

}  // namespace drover
