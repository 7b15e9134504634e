// drover fit: fits a model of run-times to recorded ones.
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
  std::string trace;              // either this
  std::vector<std::string> runs;  // or these
  std::string out;
  std::string emission = "auto";
  std::string steps = ":";
  uint64_t seed = 1;
  std::optional<uint32_t> iterations;  // absent: the default limit
  bool progress = false;               // plain lines, even on a terminal
  bool quiet = false;
  bool json = false;
  std::string show;  // a model file to describe instead of fitting one
};

namespace fs = std::filesystem;

// From this number of workers, the published model has one output for each rank in the order of
// arrival instead of one for each worker.
constexpr uint32_t kManyWorkers = 500;

// Samples of a forecast that is evaluated. The ends of a 99 % interval need more than one sample.
constexpr uint32_t kJudgedSamples = 512;

// The parsed and checked command line.
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
        "no run-times given: name a recording with --trace, or run files with --run");
  }
  if (!options.trace.empty() && !options.runs.empty()) {
    return invalid_input("--trace and --run cannot both be given");
  }
  if (options.out.empty()) {
    return invalid_input("--out is required: the file to save the model to");
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

// Checks --out before fitting starts. It may replace a model file, but no other file.
Status check_out(const std::string& path) {
  if (Status status = check_model_path("--out", path); !status) return status;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return done();
  const Result<ModelWeights> there = read_model(path);
  if (there) return done();
  return invalid_input(
      fmt::format("--out: will not overwrite '{}', which is not a model file ({}); choose another "
                  "file, or move it away",
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

  // Fits, evaluates and saves. Returns the report on the saved model.
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
      // If one model cannot be fitted, another may still be.
      if (!trouble) trouble = candidate.error();
      if (plan_.emission || candidate.error().kind == ErrorKind::kStopped) break;
      fmt::print(stderr, "drover: warning: skipping the {} model: {}\n", name_of(emission),
                 candidate.error().message);
    }
    if (candidates_.empty()) return *trouble;
    const bool stopped = interrupted();
    if (stopped) {
      interrupts_end_the_process();
      if (!options_.quiet) {
        fmt::print(stderr,
                   "drover: interrupted; evaluating the best model so far (press Ctrl-C again to "
                   "stop without saving a model)\n");
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
                   fmt::format("interrupted after {} iterations, before the first evaluation; no "
                               "model was saved",
                               candidate.iterations)};
    }
    return system_error(
        fmt::format("cannot fit the {} model to these run-times: its parameters became NaN within "
                    "{} iterations; try another --seed or other --steps",
                    name_of(emission), candidate.iterations));
  }

  ForecasterCalibration judged(const std::string& name, std::unique_ptr<Forecaster> forecaster) {
    progress_.doing("evaluating forecasts of " + name);
    auto found = calibrate(*forecaster, record_.steps, record_.steps.size() - held_out_);
    progress_.clear();
    return found;
  }

  // Keeps the model with the most accurate forecasts of the arrival order, because cutoffs are
  // chosen by these.
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
    return fail(invalid_input("--show only describes a model file; remove --trace, --run and "
                              "--out"),
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
  app.add_option("--trace", options.trace,
                 "recorded run-times: CSV (step,w0,w1,...), NPY or run file")
      ->type_name("FILE");
  app.add_option("--run", options.runs, "run files to fit to, concatenated in this order")
      ->type_name("FILE");
  app.add_option("--out", options.out, "file to save the model to")->type_name("MODEL");
  app.add_option("--emission", options.emission,
                 "output layer: shared, workers or sorted (auto: fit two, keep the better one)")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--steps", options.steps, "use only these steps (numbered from 0; TO excluded)")
      ->type_name("FROM:TO");
  app.add_option("--seed", options.seed, "random seed; equal seeds give equal models")
      ->check(check_whole_number)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--iterations", options.iterations, "maximum number of iterations")
      ->check(check_whole_number)
      ->type_name("COUNT");
  app.add_option("--show", options.show, "describe a model file instead of fitting one")
      ->type_name("MODEL");
  app.add_flag("--progress", options.progress, "print progress as plain lines, also on a terminal");
  app.add_flag("--json", options.json, "print a JSON object instead of text");
  app.add_flag("--quiet", options.quiet, "print only errors and the result");
}

}  // namespace

void add_fit_command(CommandTable& commands) {
  auto [app, options] = commands.add<FitOptions>(
      "fit", "Fit a learned model to recorded run-times, for --policy bayes", fit_command);
  add_fit_options(app, options);
}

}  // namespace drover
