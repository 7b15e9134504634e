// A run as CSV files, one for each table.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <type_traits>

#include "core/event_text.h"
#include "core/text.h"
#include "store/event_columns.h"
#include "store/schema.h"
#include "view/export/exports.h"
#include "view/export/out_file.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

void add_cell(std::string& line, Duration value) { line += seconds_text(value); }
void add_cell(std::string& line, double value) {
  if (!std::isnan(value)) fmt::format_to(std::back_inserter(line), "{}", value);
}
void add_cell(std::string& line, bool value) { line += value ? '1' : '0'; }
void add_cell(std::string& line, const std::string& value) { line += csv_quoted(value); }
template <typename Count>
requires std::is_integral_v<Count>
void add_cell(std::string& line, Count value) {
  fmt::format_to(std::back_inserter(line), "{}", value);
}
template <typename T>
void add_cell(std::string& line, const std::optional<T>& value) {
  if (value) add_cell(line, *value);
}

// The tables of one export.
class Tables {
 public:
  Tables(std::string folder, bool force) : folder_(std::move(folder)), force_(force) {}
  // Removes a folder that was created for an export that failed.
  ~Tables() {
    files_.clear();
    std::error_code ignored;
    if (made_ && !published_) fs::remove(folder_, ignored);
  }
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  Status open_folder() {
    std::error_code trouble;
    const fs::file_status there = fs::status(folder_, trouble);
    if (fs::exists(there) && !fs::is_directory(there)) {
      return invalid_input(fmt::format(
          "--out: '{}' is a file; CSV needs a folder, for one file per table", folder_));
    }
    made_ = !fs::exists(there) && fs::create_directories(folder_, trouble);
    if (fs::is_directory(folder_)) return done();
    return system_error(fmt::format("cannot create folder '{}': {}", folder_, trouble.message()));
  }

  // Adds a table and returns its index.
  Result<size_t> add(const std::string& name, const std::string& columns) {
    auto file = OutFile::create((fs::path(folder_) / (name + ".csv")).string(), force_);
    if (!file) return file.error();
    files_.push_back(std::move(file).value());
    files_.back().write(columns + "\n");
    return files_.size() - 1;
  }

  template <typename... Cells>
  void row(size_t table, const Cells&... cells) {
    line_.clear();
    bool first = true;
    ((first ? void(first = false) : line_.push_back(','), add_cell(line_, cells)), ...);
    line_ += '\n';
    files_[table].write(line_);
  }

  Status status() const {
    for (const OutFile& file : files_) {
      if (Status status = file.status(); !status) return status;
    }
    return done();
  }

  Result<Exported> finish() {
    if (const Status status = publish_all(files_); !status) return status.error();
    published_ = true;
    Exported exported;
    for (const OutFile& file : files_) exported.files.push_back(file.path());
    return exported;
  }

 private:
  const std::string folder_;
  const bool force_;
  bool made_ = false;
  bool published_ = false;
  std::vector<OutFile> files_;
  std::string line_;
};

enum Table : size_t {
  kRun,
  kPeers,
  kSteps,
  kBlocks,
  kArrivals,
  kDecisions,
  kAbandoned,
  kEvaluations,
  kEvents
};

Status add_tables(Tables& tables) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"run", "key,value"},
      {"peers", "name,host,pid,memory_bytes"},
      {"steps",
       "step,at_seconds,elapsed_seconds,cutoff,alive,contributors,late,refused,samples,loss,"
       "accuracy,learning_rate,last_worker,aggregate_seconds,closing_seconds,undecided_seconds,"
       "signal,noise,noise_scale_samples,fresh_mean,fresh_min,staleness_mean_steps,"
       "staleness_max_steps"},
      {"block_contributors", "step,contributors,blocks"},
      {"arrivals", "step,worker,run_time_seconds,censored,late,compute_seconds,samples"},
      {"decisions", "step,at_seconds,cutoff,alive,time_limit_seconds,reason"},
      {"abandoned", "step,worker,wasted_seconds,restart_seconds,resumed_step"},
      {"evaluations", "version,at_seconds,loss,accuracy,samples"},
      {"events", "at_seconds,step,kind,peer,text,cause,version,detail"},
  };
  for (const auto& [name, columns] : all) {
    if (const auto added = tables.add(name, columns); !added) return added.error();
  }
  return done();
}

Status add_run(Tables& tables, const RunReader& reader) {
  const auto header = reader.header();
  if (!header) return header.error();
  const auto end = reader.end();
  if (!end) return end.error();
  const auto peers = reader.peers();
  if (!peers) return peers.error();
  const auto add = [&](const std::string& key, const auto& value) { tables.row(kRun, key, value); };
  add("run_id", to_hex(header.value().run_id));
  add("started", header.value().started);
  add("command", header.value().command);
  add("outcome", std::string(name_of(end.value().outcome)));
  add("reason", end.value().reason);
  add("elapsed_seconds", end.value().elapsed);
  if (end.value().parameters_digest != 0)
    add("parameters_digest", to_hex(end.value().parameters_digest));
  add("job", header.value().job);
  for (const auto& [key, value] : header.value().settings) add("setting " + key, value);
  for (const auto& [key, value] : header.value().environment) add("environment " + key, value);
  const std::map<Peer, uint64_t> memory(end.value().memory_bytes.begin(),
                                        end.value().memory_bytes.end());
  for (const PeerRecord& peer : peers.value()) {
    const auto used = memory.find(peer.peer);
    tables.row(kPeers, name_of(peer.peer), peer.host, peer.pid,
               used == memory.end() ? std::nullopt : std::optional(used->second));
  }
  return done();
}

void add_step(Tables& tables, const WalkedStep& walked) {
  const StepRecord& step = walked.step;
  std::optional<uint32_t> cutoff;
  std::optional<uint32_t> alive;
  for (const DecisionRecord& each : walked.decisions) {
    cutoff = each.cutoff;
    alive = each.alive;
    tables.row(kDecisions, each.step, each.at, each.cutoff, each.alive,
               each.time_limit > Duration::zero() ? std::optional(each.time_limit) : std::nullopt,
               each.reason);
  }
  tables.row(kSteps, step.step, step.at, step.elapsed, cutoff, alive, step.contributors, step.late,
             step.refused, step.samples, step.loss, step.accuracy, step.learning_rate,
             step.last_worker, step.aggregate, step.closing, step.undecided, step.signal,
             step.noise, step.noise_scale, step.fresh_mean, step.fresh_min, step.staleness_mean,
             step.staleness_max);
  for (const BlockCount& count : step.block_counts)
    tables.row(kBlocks, step.step, count.contributors, count.blocks);
  for (const RecordedArrival& each : walked.arrivals) {
    tables.row(kArrivals, each.arrival.step, each.arrival.worker, each.arrival.run_time,
               each.arrival.censored, each.late, each.arrival.compute, each.arrival.samples);
  }
}

void add_event(Tables& tables, const EventRecord& event) {
  // Events of old files have only a text.
  const bool known = event.recorded_text.empty();
  const EventCells cells = known ? cells_of(event.payload) : EventCells{};
  const auto* cause = std::get_if<std::string>(&cell_of(cells, "cause"));
  const auto* version = std::get_if<int64_t>(&cell_of(cells, "version"));
  const auto* detail = std::get_if<std::string>(&cell_of(cells, "detail"));
  tables.row(kEvents, event.at, event.step, std::string(name_of(event.kind())), peer_text(event),
             event_text(event), cause != nullptr ? *cause : std::string(),
             version != nullptr ? std::optional(static_cast<uint64_t>(*version)) : std::nullopt,
             detail != nullptr ? *detail : std::string());
}

// The tables that are small enough to be read at once.
Status add_small_tables(Tables& tables, const RunReader& reader, const StepInterval& span) {
  const auto inside = [&](Step step) { return step >= span.from && step < span.to; };
  const auto abandoned = reader.abandoned();
  if (!abandoned) return abandoned.error();
  for (const AbandonRecord& each : abandoned.value()) {
    if (inside(each.step))
      tables.row(kAbandoned, each.step, each.worker, each.wasted, each.restart, each.resumed);
  }
  const auto evaluations = reader.evaluations();
  if (!evaluations) return evaluations.error();
  for (const EvaluationRecord& each : evaluations.value()) {
    // Version v is the result of v steps, so versions go from the first step to the end.
    if (each.version >= span.from && each.version <= span.to)
      tables.row(kEvaluations, each.version, each.at, each.loss, each.accuracy, each.samples);
  }
  const auto events = reader.events();
  if (!events) return events.error();
  for (const EventRecord& each : events.value()) {
    // Events at the end of a run have the number of a step that was not taken.
    if (each.step >= span.from && each.step <= span.to) add_event(tables, each);
  }
  return done();
}

}  // namespace

Result<Exported> export_csv(const RunReader& reader, const ExportPlan& plan) {
  Tables tables(plan.out, plan.force);
  Status status = tables.open_folder();
  if (status) status = add_tables(tables);
  if (status) status = add_run(tables, reader);
  if (!status) return status.error();
  const auto all = static_cast<double>(plan.steps.to - plan.steps.from);
  status = walk_steps(reader, plan.steps, plan.workers, [&](const WalkedStep& walked) -> Status {
    add_step(tables, walked);
    if (Status written = tables.status(); !written) return written;
    return plan.on_progress(static_cast<double>(walked.step.step - plan.steps.from) / all);
  });
  if (status) status = add_small_tables(tables, reader, plan.steps);
  if (!status) return status.error();
  return tables.finish();
}

}  // namespace drover
