// drover export: writes a run in the formats of other tools.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/run_report.h"
#include "core/nearest.h"
#include "core/text.h"
#include "node/clock.h"
#include "node/interrupts.h"
#include "store/trace.h"
#include "view/export/exports.h"

namespace drover {
namespace {

struct ExportOptions {
  std::string run_file;
  std::string format;
  std::string out;
  std::string steps = ":";
  bool force = false;
  bool quiet = false;
};

using Exporter = Result<Exported> (*)(const RunReader&, const ExportPlan&);

struct Format {
  std::string_view name;
  Exporter exporter;
};
constexpr std::array<Format, 4> kFormats = {Format{"csv", export_csv}, Format{"npy", export_npy},
                                            Format{"perfetto", export_perfetto},
                                            Format{"trace", export_trace}};

Result<Format> format_of(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Format& format : kFormats) {
    if (format.name == name) return format;
    names.push_back(format.name);
  }
  return invalid_input(
      fmt::format("--format: unknown format '{}'; use csv, npy, perfetto or trace.{}", name,
                  did_you_mean(name, names)));
}

// The recorded steps that --steps selects.
Result<StepInterval> selected_steps(const RunReader& reader, const StepRange& range) {
  const auto recorded = recorded_steps(reader);
  if (!recorded) return recorded.error();
  const auto [first, end] = recorded.value();
  if (first == end) {
    return invalid_input(
        fmt::format("cannot export '{}': the run has recorded no step{}", reader.path(),
                    reader.end() && reader.end().value().outcome == RunOutcome::kRunning
                        ? " yet. If it has just started, try again in a few seconds"
                        : ""));
  }
  // "From 0" means from the first recorded step: a resumed run may have recorded only later ones.
  const Step from = range.from == 0 ? first : range.from;
  const Step to = range.open_ended ? end : range.to;
  if (from < first || from >= end || to > end) {
    return invalid_input(fmt::format(
        "--steps: the run '{}' has recorded {} steps, {} to {}; requested were {} to {}",
        reader.path(), with_commas(end - first), first, end - 1, range.from,
        range.open_ended ? "the last" : std::to_string(to - 1)));
  }
  return StepInterval{from, to};
}

// Shows the progress of an export, and stops it when the user interrupts.
class ExportProgress {
 public:
  explicit ExportProgress(ProgressStyle style) : line_(style), began_(clock_now()) {}

  // `share` of the export is done. Fails if the user has interrupted.
  Status update(double share) {
    if (interrupted()) return Error{ErrorKind::kStopped, "interrupted; no file was written"};
    const double passed = seconds(clock_now() - began_);
    if (passed < 1.0 || !line_.due()) return done();
    line_.show([&](size_t width) {
      const auto percent = static_cast<uint64_t>(100.0 * share);
      return join_parts({{progress_bar(percent, 100), 1},
                         {fmt::format("exporting {} %", percent), 3},
                         {share > 0.0 ? time_left(passed / share * (1.0 - share)) : "", 2}},
                        width);
    });
    return done();
  }
  void clear() { line_.clear(); }

 private:
  StatusLine line_;
  const TimePoint began_;
};

std::string size_text(const std::string& path) {
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(path, missing);
  if (missing) return "";
  const auto size = static_cast<double>(bytes);
  if (size < 1e4) return fmt::format("{} bytes", bytes);
  if (size < 1e6) return fmt::format("{:.0f} kB", size / 1e3);
  return size < 1e9 ? fmt::format("{:.1f} MB", size / 1e6) : fmt::format("{:.2f} GB", size / 1e9);
}

const char* hint_of(std::string_view format) {
  if (format == "perfetto") return "Open it at https://ui.perfetto.dev (nothing is uploaded).";
  return "";
}

int export_command(const ExportOptions& options) {
  const auto format = format_of(options.format);
  if (!format) return fail(format.error(), kExitUsage);
  const auto range = parse_step_range(options.steps);
  if (!range) return fail(invalid_input("--steps: " + range.error().message), kExitUsage);
  const auto reader = RunReader::open(options.run_file);
  if (!reader) return fail(reader.error());
  std::error_code ignored;
  if (std::filesystem::equivalent(options.out, options.run_file, ignored))
    return fail(invalid_input("--out is the run file itself; choose another path"), kExitUsage);
  const auto span = selected_steps(reader.value(), range.value());
  if (!span) return fail(span.error());
  const auto totals = reader.value().totals();
  if (!totals) return fail(totals.error());
  const auto end = reader.value().end();
  if (!end) return fail(end.error());

  listen_for_interrupts();
  ExportProgress progress(choose_progress_style(options.quiet));
  const auto exported = format.value().exporter(
      reader.value(), {.out = options.out,
                       .steps = span.value(),
                       .workers = totals.value().workers,
                       .force = options.force,
                       .on_progress = [&](double share) { return progress.update(share); }});
  progress.clear();
  if (!exported) {
    const bool stopped = exported.error().kind == ErrorKind::kStopped;
    return fail(exported.error(), stopped ? kExitInterrupted : kExitFailed);
  }
  std::vector<std::string> notes = exported.value().notes;
  if (!reader.value().warning().empty()) notes.insert(notes.begin(), reader.value().warning());
  if (end.value().outcome == RunOutcome::kRunning) {
    notes.insert(notes.begin(),
                 fmt::format("the run has not ended (it is running or was killed); exported up to "
                             "step {}",
                             with_commas(span.value().to)));
  }
  for (const std::string& note : notes) fmt::print(stderr, "drover: note: {}\n", note);
  if (options.quiet) return 0;
  for (const std::string& file : exported.value().files)
    fmt::print("{}  {}\n", file, size_text(file));
  if (const std::string hint = hint_of(options.format); !hint.empty()) fmt::print("{}\n", hint);
  return 0;
}

void add_export_options(CLI::App& app, ExportOptions& options) {
  app.add_option("run", options.run_file, "run file; the run may still be in progress")
      ->required()
      ->type_name("RUN");
  app.add_option("--format", options.format,
                 "csv (tables), npy (run-time matrix), perfetto (timeline) or trace (for replay)")
      ->required()
      ->type_name("NAME");
  app.add_option("--out", options.out, "file to write; for csv a folder")
      ->required()
      ->type_name("PATH");
  app.add_option("--steps", options.steps, "export only these steps (numbered from 0; TO excluded)")
      ->type_name("FROM:TO");
  app.add_flag("--force", options.force, "replace existing files");
  app.add_flag("--quiet", options.quiet, "print only errors");
}

}  // namespace

void add_export_command(CommandTable& commands) {
  auto [app, options] = commands.add<ExportOptions>(
      "export", "Export a run as tables, matrices, a trace or a timeline", export_command);
  add_export_options(app, options);
}

}  // namespace drover
