// drover fit: a learned model of run-times from what was recorded.
#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/fit_progress.h"
#include "cli/fit_report.h"
#include "cli/run_report.h"
#include "core/atomic_file.h"
#include "forecast/forecasters.h"
#include "forecast/learned/impute.h"
#include "forecast/learned/model_file.h"
#include "forecast/learned/model_forecaster.h"
#include "launch/model_fitting.h"
#include "launch/run_setup.h"
#include "node/clock.h"
#include "node/interrupts.h"
#include "sim/times_record.h"

namespace drover {
namespace {

struct FitOptions {
  std::string trace;  // one of the two
  std::vector<std::string> runs;
  std::string out;
  std::string emission = "auto";
  std::string steps = ":";
  uint64_t seed = 1;
  std::optional<uint32_t> iterations;  // absent: as many as a fit usually takes at most
  bool progress = false;               // plain lines, even on a terminal
  bool quiet = false;
  bool json = false;
  std::string show;  // a model file to be told of, instead of all that
};

namespace fs = std::filesystem;

// From so many workers on, the published model has one output for each place in the order of
// arrival, and no longer one for each worker.
constexpr uint32_t kManyWorkers = 500;

// Of a forecast that is judged: the ends of a 99 % interval should rest on more than one sample.
constexpr uint32_t kJudgedSamples = 512;

// The command line, understood.
struct Plan {
  std::optional<Emission> emission;  // absent: the better of two
  StepRange range;
  FitSettings settings;
};

Error wrong_flag(const char* flag, const std::string& why) {
  return invalid_input(fmt::format("{}: {}", flag, why));
}

Result<Plan> plan_of(const FitOptions& options) {
  if (options.trace.empty() && options.runs.empty()) {
    return invalid_input(
        "drover fit needs run-times to fit a model to: name a recording with --trace, or run files "
        "with --run");
  }
  if (!options.trace.empty() && !options.runs.empty()) {
    return invalid_input(
        "--trace and --run cannot both be given: a model is fitted to one or the "
        "other");
  }
  if (options.out.empty()) {
    return invalid_input("--out must be given: the file that the model is saved to");
  }
  if (options.quiet && options.progress) {
    return invalid_input("--quiet and --progress cannot both be given");
  }
  Plan plan;
  if (options.emission != "auto") {
    const Result<Emission> emission = parse_emission(options.emission);
    if (!emission) return wrong_flag("--emission", emission.error().message + ", or auto");
    plan.emission = emission.value();
  }
  const Result<StepRange> range = parse_step_range(options.steps);
  if (!range) return wrong_flag("--steps", range.error().message);
  plan.range = range.value();
  plan.settings.seed = options.seed;
  if (options.iterations) {
    if (*options.iterations == 0) return wrong_flag("--iterations", "must be 1 or more");
    plan.settings.iterations = *options.iterations;
  }
  return plan;
}

// Found out before fitting, not after. A model may be replaced by another; anything else may not.
Status check_out(const std::string& path) {
  if (Status status = check_model_path("--out", path); !status) return status;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return done();
  const Result<ModelWeights> there = read_model(path);
  if (there) return done();
  return invalid_input(
      fmt::format("'{}' exists and is not overwritten, since it is no model that this drover can "
                  "read ({}); name another file with --out, or move it away",
                  path, there.error().message));
}

Result<TimesRecord> record_of(const FitOptions& options) {
  if (!options.trace.empty()) return read_record(options.trace);
  std::vector<TimesRecord> parts;
  for (const std::string& path : options.runs) {
    Result<TimesRecord> part = read_run_record(path);
    if (!part) return part.error();
    parts.push_back(std::move(part).value());
  }
  return join_records(std::move(parts));
}

struct Candidate {
  std::shared_ptr<const ModelWeights> weights;
  std::vector<FitPoint> curve;
  uint32_t iterations = 0;
  double seconds = 0.0;
};

class FitJob {
 public:
  FitJob(const FitOptions& options, const Plan& plan, TimesRecord record)
      : options_(options),
        plan_(plan),
        record_(std::move(record)),
        progress_(options.progress ? ProgressStyle::kLines : choose_progress_style(options.quiet)) {
    const auto steps = static_cast<double>(record_.steps.size());
    held_out_ = static_cast<size_t>(std::lround(plan_.settings.held_out * steps));
  }

  // What is to be told of the model that was saved.
  Result<FitSummary> run() {
    const auto history =
        std::make_shared<const History>(history_of(record_.steps, plan_.settings.seed));
    std::optional<Error> trouble;
    for (const Emission emission : emissions()) {
      if (interrupted()) break;
      Result<Candidate> candidate = fit_one(history, emission);
      progress_.clear();
      if (candidate) {
        candidates_.push_back(std::move(candidate).value());
        continue;
      }
      // What one cannot be fitted to, another may.
      if (!trouble) trouble = candidate.error();
      if (plan_.emission || candidate.error().kind == ErrorKind::kStopped) break;
      fmt::print(stderr, "drover: warning: the {} model is left out: {}\n", name_of(emission),
                 candidate.error().message);
    }
    if (candidates_.empty()) return *trouble;
    const bool stopped = interrupted();
    if (stopped) {
      interrupts_end_the_process();
      if (!options_.quiet) {
        fmt::print(stderr,
                   "drover: interrupted; judging the best so far (Ctrl-C once more ends "
                   "this without a model)\n");
      }
    }
    FitSummary summary = judge();
    summary.interrupted = stopped;
    const std::string bytes = encode_model(*kept_->weights);
    const Status saved = write_file_atomically(options_.out, bytes);
    if (!saved) return saved.error();
    return summary;
  }

 private:
  std::vector<Emission> emissions() const {
    if (plan_.emission) return {*plan_.emission};
    return {Emission::kShared,
            record_.workers < kManyWorkers ? Emission::kWorkers : Emission::kSorted};
  }

  Result<Candidate> fit_one(const std::shared_ptr<const History>& history, Emission emission) {
    progress_.begin(fmt::format("{} model", name_of(emission)), plan_.settings.iterations);
    Candidate candidate;
    const TimePoint began = clock_now();
    Result<FitOutcome> outcome = fit_({.history = history,
                                       .shape = default_shape(emission, record_.workers),
                                       .settings = plan_.settings,
                                       .start = nullptr},
                                      [&](uint32_t iteration, const FitPoint* judged) {
                                        candidate.iterations = iteration;
                                        progress_.iterated(iteration, judged);
                                        return !interrupted();
                                      });
    if (!outcome) return outcome.error();
    candidate.seconds = seconds(clock_now() - began);
    candidate.curve = std::move(outcome.value().curve);
    candidate.weights = std::make_shared<const ModelWeights>(std::move(outcome.value().weights));
    if (!candidate.curve.empty()) return candidate;
    if (interrupted()) {
      return Error{ErrorKind::kStopped,
                   fmt::format("interrupted after {} iterations, before there was a model worth "
                               "keeping; nothing was saved",
                               candidate.iterations)};
    }
    return system_error(
        fmt::format("the {} model cannot be fitted to these run-times: after {} iterations it is "
                    "no longer made of numbers; try another --seed or other --steps",
                    name_of(emission), candidate.iterations));
  }

  ForecasterCalibration judged(const std::string& name, std::unique_ptr<Forecaster> forecaster) {
    progress_.doing("judging the forecasts of " + name);
    auto found = calibrate(*forecaster, record_.steps, record_.steps.size() - held_out_);
    progress_.clear();
    return found;
  }

  // Chooses the model to keep: the one whose forecasts of the arrivals, which cutoffs are chosen
  // by, are closest.
  FitSummary judge() {
    const uint64_t seed = plan_.settings.seed;
    FitSummary summary;
    size_t best = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const std::string name(name_of(candidates_[i].weights->shape.emission));
      summary.judged.push_back(
          {.name = name,
           .model = true,
           .calibration = judged(name, std::make_unique<ModelForecaster>(candidates_[i].weights,
                                                                         seed, kJudgedSamples))});
      const auto crps = [&](size_t each) { return summary.judged[each].calibration.order.crps; };
      if (crps(i) < crps(best) || std::isnan(crps(best))) best = i;
    }
    summary.judged[best].kept = true;
    kept_ = &candidates_[best];
    summary.judged.push_back(
        {.name = "ecdf",
         .calibration =
             judged("ecdf", make_ecdf({.seed = seed, .warmup = 1, .samples = kJudgedSamples}))});
    summary.judged.push_back(
        {.name = "ewma",
         .calibration =
             judged("ewma", make_ewma({.seed = seed, .warmup = 1, .samples = kJudgedSamples}))});
    summary.model_file = options_.out;
    summary.sources = record_.paths;
    summary.shape = kept_->weights->shape;
    summary.note = kept_->weights->note;
    summary.held_out = held_out_;
    summary.iterations = kept_->iterations;
    summary.iterations_limit = plan_.settings.iterations;
    summary.seconds = kept_->seconds;
    summary.curve = kept_->curve;
    return summary;
  }

  const FitOptions& options_;
  const Plan plan_;
  const TimesRecord record_;
  const FitFunction fit_ = lazy_fit_function();
  FitProgress progress_;
  size_t held_out_ = 0;  // steps
  std::vector<Candidate> candidates_;
  const Candidate* kept_ = nullptr;
};

int show_model(const FitOptions& options) {
  if (!options.trace.empty() || !options.runs.empty() || !options.out.empty()) {
    return fail(invalid_input("--show tells what a model file is and fits nothing; leave out "
                              "--trace, --run and --out"),
                kExitUsage);
  }
  const Result<ModelWeights> weights = read_model(options.show);
  if (!weights) return fail(weights.error());
  fmt::print("{}", options.json ? model_json_line(options.show, weights.value()) + "\n"
                                : model_text(options.show, weights.value()));
  return 0;
}

int fit_command(const FitOptions& options) {
  if (!options.show.empty()) return show_model(options);
  const Result<Plan> plan = plan_of(options);
  if (!plan) return fail(plan.error(), kExitUsage);
  if (const Status status = check_out(options.out); !status) return fail(status.error());
  Result<TimesRecord> record = record_of(options);
  if (!record) return fail(record.error());
  for (const std::string& warning : record.value().warnings) {
    fmt::print(stderr, "drover: warning: {}\n", warning);
  }
  const Status status = keep_steps(record.value(), plan.value().range);
  if (!status) return fail(status.error());
  listen_for_interrupts();
  const Result<FitSummary> summary = FitJob(options, plan.value(), std::move(record).value()).run();
  if (!summary) {
    const bool stopped = summary.error().kind == ErrorKind::kStopped;
    return fail(summary.error(), stopped ? kExitInterrupted : kExitFailed);
  }
  fmt::print("{}", options.json ? to_json_line(summary.value()) + "\n" : to_text(summary.value()));
  return summary.value().interrupted ? kExitInterrupted : 0;
}

void add_fit_options(CLI::App& app, FitOptions& options) {
  app.add_option(
         "--trace", options.trace,
         "fit to recorded run-times: a CSV file (step,w0,w1,...), an NPY file or a run file")
      ->type_name("FILE");
  app.add_option("--run", options.runs, "fit to these run files, one after the other")
      ->type_name("FILE");
  app.add_option("--out", options.out, "save the model to this file")->type_name("MODEL");
  app.add_option("--emission", options.emission,
                 "shared, workers or sorted; auto: the better of shared and what suits the number "
                 "of workers")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--steps", options.steps, "only these steps, from 0, without the last")
      ->type_name("FROM:TO");
  app.add_option("--seed", options.seed, "equal seeds give equal models")
      ->check(check_whole_number)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--iterations", options.iterations, "stop after so many at the latest")
      ->check(check_whole_number)
      ->type_name("COUNT");
  app.add_option("--show", options.show, "tell what is in a model file, and fit nothing")
      ->type_name("MODEL");
  app.add_flag("--progress", options.progress, "plain lines of progress, also on a terminal");
  app.add_flag("--json", options.json, "one JSON object instead of text");
  app.add_flag("--quiet", options.quiet, "report only trouble and the result");
}

}  // namespace

void add_fit_command(CommandTable& commands) {
  auto [app, options] = commands.add<FitOptions>(
      "fit", "Fit a learned model to recorded run-times, for --policy bayes", fit_command);
  add_fit_options(app, options);
}

}  // namespace drover
