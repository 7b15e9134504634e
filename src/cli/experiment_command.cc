#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "cli/commands.h"
#include "cli/experiment_progress.h"
#include "cli/run_report.h"
#include "cli/shared_flags.h"
#include "core/atomic_file.h"
#include "core/text.h"
#include "experiment/cell_folder.h"
#include "experiment/cell_processes.h"
#include "experiment/cell_watch.h"
#include "experiment/experiment_table.h"
#include "launch/page_process.h"
#include "node/interrupts.h"

namespace drover {
namespace {

struct ExperimentOptions {
  std::string file;
  std::string out;  // folder; empty: experiments/<name of the file>
  bool resume = false;
  uint32_t jobs = 0;  // simulated cells at once; 0: as many as there are cores
  bool json = false;
  bool quiet = false;
  std::optional<uint16_t> dashboard;  // the port of the live page
};

Result<CellResult> result_of(const ExperimentFile& file, const CellFolder& folder,
                             const Cell& cell) {
  CellResult result{.place = cell.place, .variant = cell.variant, .seed = cell.seed};
  if (folder.state(cell) == CellState::kFailed) {
    result.measures.failed = true;
    result.measures.reason = folder.failure(cell);
    return result;
  }
  const auto reader = RunReader::open(folder.run_file(cell));
  if (!reader) return reader.error();
  auto measures = measure(reader.value(), file.target);
  if (!measures) return measures.error();
  result.measures = std::move(measures).value();
  return result;
}

// Runs the missing cells. ENSURES: none is missing afterwards, unless it was interrupted.
Status run_missing(const ExperimentFile& file, const std::vector<Cell>& cells,
                   const CellFolder& folder, const ExperimentOptions& options, PageProcess& page) {
  std::vector<size_t> todo;
  std::vector<CellToRun> order;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (folder.state(cells[i]) != CellState::kMissing) continue;
    folder.drop(cells[i]);  // a partial run file that a killed drover left
    todo.push_back(i);
    order.push_back({.cell = i, .alone = cells[i].real});
  }
  const ProgressStyle style = choose_progress_style(options.quiet);
  if (style != ProgressStyle::kNone) {
    fmt::print(stderr, "experiment  {}\ncells       {} of {} to run, in {}\n",
               file.about.empty() ? file.path : file.about, todo.size(), cells.size(),
               folder.path());
  }
  if (!todo.empty()) {
    if (const Status shown = page.start(CellWatch(file, cells, folder)); !shown) return shown;
  }
  listen_for_interrupts();  // after the page process has started: it handles signals itself
  const size_t jobs =
      options.jobs > 0 ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  ExperimentProgress progress(file, cells, todo, jobs, style);
  CellProcesses host("/proc/self/exe", folder, cells, interrupted);
  const Status ran = run_cells(
      order, jobs, host, [&](const EndedCell& ended) { progress.on_ended(ended); },
      [&](const std::vector<size_t>& running) { progress.on_change(running); });
  progress.finish();
  page.finish();
  folder.tidy(cells);
  return ran;
}

Status write_results(const ExperimentFile& file, const std::vector<CellResult>& results,
                     const std::vector<PlaceSummary>& places, const std::string& folder) {
  for (const auto& [name, text] : {std::pair{"results.csv", results_csv(file, results)},
                                   std::pair{"summary.csv", summary_csv(file, places)},
                                   std::pair{"summary.md", to_markdown(file, places)},
                                   std::pair{"experiment.toml", file.text}}) {
    if (const Status written = write_file_atomically(folder + "/" + name, text); !written)
      return written;
  }
  return done();
}

int report_unfinished(const ExperimentOptions& options, const CellFolder& folder, size_t missing,
                      size_t all) {
  fmt::print(stderr,
             "drover: {} of {} cells done. Continue with:   drover experiment {} --out {} "
             "--resume\n",
             all - missing, all, shell_quoted(options.file), shell_quoted(folder.path()));
  return interrupted() ? kExitInterrupted : kExitFailed;
}

int fail_usage(const Error& error) { return fail(error, kExitUsage); }

int experiment_command(const ExperimentOptions& options) {
  const auto file = read_experiment_file(options.file);
  if (!file) return fail_usage(file.error());
  const auto plan = plan_cells(file.value());
  if (!plan) return fail_usage(plan.error());
  const std::vector<Cell>& cells = plan.value();
  auto page = PageProcess::prepare(options.dashboard);
  if (!page) return fail(page.error());
  CellFolder folder(options.out.empty()
                        ? "experiments/" + std::filesystem::path(options.file).stem().string()
                        : options.out);
  if (const Status opened = folder.open(cells, options.resume); !opened)
    return fail_usage(opened.error());

  if (const Status ran = run_missing(file.value(), cells, folder, options, page.value()); !ran)
    return fail(ran.error());
  const auto missing =
      static_cast<size_t>(std::count_if(cells.begin(), cells.end(), [&](const Cell& cell) {
        return folder.state(cell) == CellState::kMissing;
      }));
  if (missing > 0) return report_unfinished(options, folder, missing, cells.size());

  std::vector<CellResult> results;
  for (const Cell& cell : cells) {
    auto result = result_of(file.value(), folder, cell);
    if (!result) return fail(result.error());
    results.push_back(std::move(result).value());
  }
  const std::vector<PlaceSummary> places = summarize(file.value(), results);
  if (const Status written = write_results(file.value(), results, places, folder.path()); !written)
    return fail(written.error());
  if (options.json) {
    fmt::print("{}\n", to_json_line(file.value(), places, folder.path()));
  } else {
    fmt::print("{}\nAll cells:    {}/results.csv and {}/cells\n", to_text(file.value(), places),
               folder.path(), folder.path());
  }
  const bool any = std::any_of(results.begin(), results.end(), [](const CellResult& each) {
    return !each.measures.failed || each.measures.reached;
  });
  return any ? 0 : kExitFailed;
}

void add_experiment_options(CLI::App& app, ExperimentOptions& options) {
  app.add_option("file", options.file,
                 "experiment file (docs/experiments.md; examples in examples/experiments)")
      ->required()
      ->type_name("EXPERIMENT.toml");
  app.add_flag("--resume", options.resume,
               "run only the missing cells of an interrupted experiment");
  app.add_option("--out", options.out,
                 "folder for cells and results (default: experiments/<name of the file>)")
      ->type_name("DIR");
  app.add_option("--jobs", options.jobs,
                 "simulated cells to run at once (0: one per core); real runs run one at a time")
      ->check(check_whole_number)
      ->type_name("COUNT")
      ->capture_default_str();
  add_dashboard_flag(app, options.dashboard);
  app.add_flag("--json", options.json, "print the summary as one line of JSON");
  app.add_flag("--quiet", options.quiet, "print only errors and the result");
}

}  // namespace

void add_experiment_command(CommandTable& commands) {
  auto [app, options] = commands.add<ExperimentOptions>(
      "experiment", "Compare variants by time to a target, over environments and seeds",
      experiment_command);
  add_experiment_options(app, options);
}

}  // namespace drover
