// Run-times as a matrix, steps by workers: NPY for numpy, and a trace for `drover replay`.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>

#include "core/text.h"
#include "store/npy.h"
#include "store/trace_run.h"
#include "view/export/exports.h"
#include "view/export/out_file.h"

namespace drover {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written in memory order");

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kFirstPass = 0.4;  // of the work

// NPY format 1.0: a Python dictionary, padded so that the numbers begin at a multiple of 64.
std::string npy_header(uint64_t rows, uint64_t columns) {
  std::string text =
      fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  constexpr size_t kBefore = 10;  // mark, version, length
  text.resize((kBefore + text.size() + 1 + 63) / 64 * 64 - kBefore - 1, ' ');
  text += '\n';
  std::string header(kNpyMark);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

void write_row(OutFile& file, const std::vector<double>& row) {
  const auto bytes = std::as_bytes(std::span(row));
  file.write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string bounds_path(const std::string& out) {
  const std::string_view ending = ".npy";
  const size_t removed = out.ends_with(ending) ? ending.size() : 0;
  return out.substr(0, out.size() - removed) + ".bounds.npy";
}

std::string many(uint64_t number, std::string_view word) {
  return fmt::format("{} {}{}", with_commas(number), word, number == 1 ? "" : "s");
}

// The share of the work done when the second pass has reached `step`.
double second_pass(const ExportPlan& plan, Step step) {
  return kFirstPass + (1.0 - kFirstPass) * static_cast<double>(step - plan.steps.from) /
                          static_cast<double>(plan.steps.to - plan.steps.from);
}

// Adds notes on censored run-times and on the rounds of asynchronous runs.
Status add_notes(const RunReader& reader, const WorkerCoverage& coverage, std::string_view bounds,
                 Exported& exported) {
  if (coverage.censored > 0) {
    exported.notes.push_back(fmt::format("{} of {} censored (only a lower bound is known): {}",
                                         with_commas(coverage.censored),
                                         many(coverage.arrivals, "run-time"), bounds));
  }
  const auto rounds = warning_of_rounds(reader);
  if (!rounds) return rounds.error();
  if (!rounds.value().empty()) exported.notes.push_back(rounds.value());
  return done();
}

class NpyRows {
 public:
  NpyRows(const ExportPlan& plan, uint32_t columns, std::vector<OutFile>& files)
      : plan_(plan), columns_(columns), files_(files), next_(plan.steps.from) {
    for (OutFile& file : files_) file.write(npy_header(plan.steps.to - plan.steps.from, columns));
  }

  Status add(const WalkedStep& walked) {
    fill_up_to(walked.step.step);
    clear();
    for (const RecordedArrival& each : walked.arrivals) {
      const ArrivalRecord& arrival = each.arrival;
      // A worker that joined after the first pass.
      if (arrival.worker >= columns_) continue;
      (arrival.censored ? bounds_ : times_)[arrival.worker] = seconds(arrival.run_time);
    }
    write();
    for (const OutFile& file : files_) {
      if (Status status = file.status(); !status) return status;
    }
    return plan_.on_progress(second_pass(plan_, walked.step.step));
  }

  // Writes empty rows for steps that are not recorded.
  void fill_up_to(Step step) {
    for (clear(); next_ < step;) write();
  }

 private:
  void clear() {
    times_.assign(columns_, kUnknown);
    bounds_.assign(columns_, kUnknown);
  }
  void write() {
    write_row(files_[0], times_);
    write_row(files_[1], bounds_);
    ++next_;
  }

  const ExportPlan& plan_;
  const uint32_t columns_;
  std::vector<OutFile>& files_;
  Step next_;  // the next step to write
  std::vector<double> times_;
  std::vector<double> bounds_;
};

// A trace has only positive times.
bool replayable(const RecordedArrival& each) {
  return !each.arrival.censored && each.arrival.run_time > Duration::zero();
}

// The line of a step; empty if no run-time is known.
std::string trace_line(const WalkedStep& walked, const std::vector<bool>& columns) {
  std::string line = fmt::format("{}", walked.step.step);
  bool any = false;
  auto arrival = walked.arrivals.begin();
  for (WorkerId worker = 0; worker < columns.size(); ++worker) {
    if (!columns[worker]) continue;
    line += ',';
    while (arrival != walked.arrivals.end() && arrival->arrival.worker < worker) ++arrival;
    if (arrival == walked.arrivals.end() || arrival->arrival.worker != worker) continue;
    if (!replayable(*arrival)) continue;
    line += seconds_text(arrival->arrival.run_time);
    any = true;
  }
  return any ? line + '\n' : std::string();
}

}  // namespace

Result<Exported> export_npy(const RunReader& reader, const ExportPlan& plan) {
  std::vector<OutFile> files;
  for (const std::string& path : {plan.out, bounds_path(plan.out)}) {
    auto file = OutFile::create(path, plan.force);
    if (!file) return file.error();
    files.push_back(std::move(file).value());
  }
  const auto coverage = worker_coverage(reader, plan, kFirstPass);
  if (!coverage) return coverage.error();
  if (coverage.value().columns == 0) {
    return invalid_input(
        fmt::format("cannot export '{}': no run-times are recorded in these steps", reader.path()));
  }
  NpyRows rows(plan, coverage.value().columns, files);
  Status status = walk_steps(reader, plan.steps, plan.workers,
                             [&](const WalkedStep& walked) { return rows.add(walked); });
  if (!status) return status.error();
  rows.fill_up_to(plan.steps.to);
  Exported exported{.files = {files[0].path(), files[1].path()}, .notes = {}};
  status = add_notes(
      reader, coverage.value(),
      fmt::format("the bounds are in {}; NaN in {}", files[1].path(), files[0].path()), exported);
  if (status) status = publish_all(files);
  if (!status) return status.error();
  return exported;
}

Result<Exported> export_trace(const RunReader& reader, const ExportPlan& plan) {
  auto file = OutFile::create(plan.out, plan.force);
  if (!file) return file.error();
  const auto coverage = worker_coverage(reader, plan, kFirstPass);
  if (!coverage) return coverage.error();
  const std::vector<bool>& known = coverage.value().known;
  if (std::count(known.begin(), known.end(), true) < 2) {
    return invalid_input(fmt::format(
        "cannot export '{}': a trace needs run-times of at least two workers", reader.path()));
  }
  std::string header = "step";
  for (WorkerId worker = 0; worker < known.size(); ++worker) {
    if (known[worker]) fmt::format_to(std::back_inserter(header), ",w{}", worker);
  }
  file.value().write(header + "\n");
  uint64_t empty = 0;
  Status status =
      walk_steps(reader, plan.steps, plan.workers, [&](const WalkedStep& walked) -> Status {
        const std::string line = trace_line(walked, known);
        empty += line.empty() ? 1 : 0;
        file.value().write(line);
        if (Status written = file.value().status(); !written) return written;
        return plan.on_progress(second_pass(plan, walked.step.step));
      });
  if (!status) return status.error();
  Exported exported{.files = {plan.out}, .notes = {}};
  status = add_notes(reader, coverage.value(),
                     "these are blank, so the trace has fewer stragglers than the run", exported);
  if (empty > 0) {
    exported.notes.push_back(
        fmt::format("omitted {} without a known run-time", many(empty, "step")));
  }
  if (status) status = file.value().complete();
  if (status) status = file.value().publish();
  if (!status) return status.error();
  return exported;
}

}  // namespace drover
