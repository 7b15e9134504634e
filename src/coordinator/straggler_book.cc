#include "coordinator/straggler_book.h"

#include <algorithm>

#include "core/check.h"

namespace drover {

Duration without_lead(Duration run_time, Duration lead) {
  return std::max(run_time - lead, Duration(1));
}

void StragglerBook::add(Step step, WorkerId worker, Straggler straggler) {
  const bool is_new = stragglers_.emplace(Key{step, worker}, std::move(straggler)).second;
  DROVER_CHECK(is_new);
}

void StragglerBook::on_arrived(ShardId shard, Step step, WorkerId worker, Duration run_time) {
  const auto found = stragglers_.find({step, worker});
  if (found == stragglers_.end()) return;
  Straggler& straggler = found->second;
  const auto lead = straggler.missing_on.find(shard);
  if (lead == straggler.missing_on.end()) return;
  straggler.run_time = std::max(straggler.run_time, without_lead(run_time, lead->second));
  straggler.missing_on.erase(lead);
  if (!straggler.missing_on.empty()) return;
  ++count_;
  run_times_.push_back({step, worker, straggler.run_time, straggler.was_busy});
  const ArrivalRecord late{.step = step, .worker = worker, .run_time = straggler.run_time};
  if (straggler.report) {
    record(late, *straggler.report);
  } else {
    unreported_[found->first] = late;
  }
  stragglers_.erase(found);
}

void StragglerBook::on_report(WorkerId worker, const StepReport& report) {
  const Key key{report.step, worker};
  if (const auto found = stragglers_.find(key); found != stragglers_.end())
    found->second.report = report;
  if (const auto found = unreported_.find(key); found != unreported_.end()) {
    record(found->second, report);
    unreported_.erase(found);
  }
}

void StragglerBook::forget_before(Step newest) {
  while (!stragglers_.empty() && stragglers_.begin()->first.first + kStepsRemembered < newest)
    stragglers_.erase(stragglers_.begin());
  for (auto oldest = unreported_.begin();
       oldest != unreported_.end() && oldest->first.first + kStepsRemembered < newest;
       oldest = unreported_.erase(oldest)) {
    records_.push_back(oldest->second);
  }
}

std::vector<ArrivalRecord> StragglerBook::take_records(bool all) {
  if (all) {
    for (const auto& [key, record] : unreported_) records_.push_back(record);
    unreported_.clear();
  }
  return std::exchange(records_, {});
}

void StragglerBook::record(ArrivalRecord record, const StepReport& report) {
  record.compute = report.compute;
  record.samples = report.samples;
  records_.push_back(record);
}

}  // namespace drover
