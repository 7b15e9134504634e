// drover replay: simulates the decisions of policies on recorded run-times.
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <set>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/replay_report.h"
#include "cli/run_report.h"
#include "cli/shared_flags.h"
#include "cli/train_options.h"
#include "core/check.h"
#include "core/random_draw.h"
#include "core/version.h"
#include "job/settings.h"
#include "launch/model_fitting.h"
#include "launch/page_process.h"
#include "node/clock.h"
#include "node/host.h"
#include "node/interrupts.h"
#include "sim/replay.h"
#include "sim/replay_record.h"
#include "store/trace.h"

namespace drover {
namespace {

struct ReplayOptions {
  std::string trace;
  std::vector<std::string> policies;  // lists with commas
  GivenFlags flags;                   // of the settings in is_for_replay()
  std::string steps = ":";            // rows of the trace
  double overhead = 0.0;
  std::optional<double> noise;  // noise scale of the gradients, in gradients
  double max_wait = std::numeric_limits<double>::infinity();  // in the unit of the trace
  std::string decisions;                                      // a CSV file; empty: none
  std::string save;                                           // a run file; empty: none
  std::optional<uint16_t> dashboard;                          // port of the dashboard; absent: none
  bool json = false;
  bool quiet = false;
};

namespace fs = std::filesystem;

constexpr double kNoiseMax = 1e9;

// The parsed and checked command line.
struct ReplayPlan {
  Job job;  // only its settings in is_for_replay() matter
  std::vector<std::string> policies;
  PolicySettings policy;
  DecisionLimits limits;
  ReplaySettings replay;
  std::optional<BalanceSettings> balance;
  StepRange range;
};

// The names in --policy. `all` stands for the policies that need no option.
Result<std::vector<std::string>> names_in(const std::vector<std::string>& lists,
                                          const PolicySettings& settings) {
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      const std::string name = list.substr(begin, end - begin);
      begin = end + 1;
      if (name.empty()) {
        return invalid_input("empty policy name in '" + list + "'");
      }
      if (name != "all") {
        names.push_back(name);
        continue;
      }
      for (const PolicyInfo& info : policies()) {
        if (make_policy(info.name, settings)) names.emplace_back(info.name);
      }
    }
  }
  for (const std::string& name : names) {
    const auto made = make_policy(name, settings);
    if (!made) return made.error();
  }
  return names;
}

Error wrong_flag(const char* flag, const std::string& why) {
  return invalid_input(fmt::format("{}: {}", flag, why));
}

// The value of a setting as text, as a run file has it.
std::string text_of(const Job& job, std::string_view key) {
  const Setting* const setting = find_setting(key);
  DROVER_CHECK(setting != nullptr);
  return flag_texts(setting->get(job)).front();
}

Result<ReplayPlan> plan_of(const ReplayOptions& options) {
  ReplayPlan plan;
  Job& job = plan.job;
  if (const Status status = set_flags(options.flags, job); !status) return status.error();
  // Written so that NaN, which compares false with everything, is rejected.
  const bool overhead_fits = options.overhead >= 0.0 && options.overhead <= kTraceTimeMax;
  if (!overhead_fits) {
    return wrong_flag("--overhead", fmt::format("must be a number from 0 to {}", kTraceTimeMax));
  }
  const bool noise_fits = !options.noise || (*options.noise > 0.0 && *options.noise <= kNoiseMax);
  if (!noise_fits) {
    return wrong_flag("--noise", fmt::format("must be a number above 0, at most {}", kNoiseMax));
  }
  if (job.waiting.objective == Objective::kGoodput && !options.noise) {
    return wrong_flag("--objective",
                      "goodput needs the noise scale of the gradients, which a trace does not "
                      "contain. Pass it with --noise N, in gradients (a run of drover train "
                      "records it: steps.noise_scale / batch), or use throughput");
  }
  if (std::isnan(options.max_wait) || options.max_wait <= 0.0) {
    return wrong_flag("--max-wait", "must be a number above 0");
  }
  const Result<StepRange> range = parse_step_range(options.steps);
  if (!range) return wrong_flag("--steps", range.error().message);
  plan.range = range.value();
  plan.policy = {.objective = job.waiting.objective,
                 .warmup = job.waiting.policy_warmup,
                 .seed = job.task.seed,
                 .live = job.waiting.live,
                 // A placeholder: only its presence matters until the trace is loaded.
                 .foresight = [](Step, std::span<const WorkerId>) { return std::vector<double>(); },
                 .fitter = stepped_fitters()};
  plan.limits = {.at_least = job.waiting.min_contributors,
                 .max_wait = options.max_wait,
                 .min_inclusion = job.waiting.min_inclusion};
  if (job.waiting.balance)
    plan.balance = BalanceSettings{.warmup = job.waiting.policy_warmup, .seed = job.task.seed};
  plan.replay = {.warmup = job.waiting.policy_warmup,
                 .overhead = options.overhead,
                 .noise = options.noise.value_or(0.0),
                 .probe = job.waiting.probe,
                 .seed = job.task.seed};
  Result<std::vector<std::string>> names = names_in(options.policies, plan.policy);
  if (!names) return wrong_flag("--policy", names.error().message);
  plan.policies = std::move(names).value();
  return plan;
}

// The run file for each policy. If there are several, the policy's name precedes the suffix.
std::vector<std::string> save_paths(const std::string& save,
                                    const std::vector<std::string>& policies) {
  if (policies.size() == 1) return {save};
  const fs::path whole(save);
  const std::string stem = (whole.parent_path() / whole.stem()).string();
  std::vector<std::string> paths;
  std::set<std::string> taken;
  for (std::string name : policies) {
    std::replace_if(
        name.begin(), name.end(),
        [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '='; }, '-');
    std::string path = fmt::format("{}-{}{}", stem, name, whole.extension().string());
    for (int number = 2; !taken.insert(path).second; ++number) {
      path = fmt::format("{}-{}-{}{}", stem, name, number, whole.extension().string());
    }
    paths.push_back(path);
  }
  return paths;
}

// Checks the outputs before the replay, which may take long.
Status check_outputs(const ReplayOptions& options, const std::vector<std::string>& run_files) {
  std::error_code ignored;
  for (const std::string& path : run_files) {
    if (!fs::exists(path, ignored)) continue;
    if (fs::is_directory(path, ignored)) {
      return invalid_input(fmt::format("--save: '{}' is a folder; give the name of a file", path));
    }
    return invalid_input(fmt::format(
        "--save: will not overwrite the run file '{}'; choose another name, or move it away",
        path));
  }
  if (!options.decisions.empty() && fs::equivalent(options.decisions, options.trace, ignored)) {
    return invalid_input(fmt::format(
        "--decisions: will not overwrite the trace '{}'; choose another file", options.trace));
  }
  return done();
}

RunHeader header_of(const ReplayOptions& options, const Job& job, const std::string& policy,
                    const std::string& command_line) {
  RunHeader header;
  header.run_id =
      draw({static_cast<uint64_t>(Purpose::kRunId), static_cast<uint64_t>(::getpid()),
            static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count())});
  header.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  header.command = command_line;
  header.settings = {{"replay", options.trace},
                     {"policy", policy},
                     {"objective", text_of(job, "objective")},
                     {"policy_warmup", text_of(job, "policy_warmup")},
                     {"seed", text_of(job, "seed")},
                     {"steps", options.steps},
                     {"overhead", fmt::format("{}", options.overhead)},
                     {"noise", options.noise ? fmt::format("{}", *options.noise) : "unknown"},
                     {"min_contributors", text_of(job, "min_contributors")},
                     {"max_wait", fmt::format("{}", options.max_wait)},
                     {"min_inclusion", text_of(job, "min_inclusion")},
                     {"probe", text_of(job, "probe")},
                     {"live", text_of(job, "live")},
                     {"balance", text_of(job, "balance")}};
  header.environment = describe_host();
  header.environment.emplace_back("drover", kVersion);
  return header;
}

// The progress of a replay, on standard error.
class ReplayProgress {
 public:
  ReplayProgress(ProgressStyle style, size_t policies, Step steps)
      : line_(style), policies_(policies), steps_(steps), began_(clock_now()) {}

  void begin(const std::string& policy) {
    policy_ = policy;
    ++number_;
  }
  void step(Step done) {
    // A short replay shows no progress.
    const Duration quiet = line_.style() == ProgressStyle::kTerminal
                               ? std::chrono::milliseconds(200)
                               : std::chrono::seconds(3);
    if (clock_now() - began_ < quiet || !line_.due()) return;
    line_.show([&](size_t width) {
      return join_parts({{progress_bar(done, steps_), 1},
                         {"replaying " + policy_, 4},
                         {fmt::format("({} of {})", number_, policies_), 2},
                         {fmt::format("step {}/{}", done, steps_), 3}},
                        width);
    });
  }
  // Removes the line from the terminal. Call before other output.
  void clear() { line_.clear(); }

 private:
  StatusLine line_;
  const size_t policies_;
  const Step steps_;
  const TimePoint began_;
  std::string policy_;
  size_t number_ = 0;
};

class ReplayJob {
 public:
  ReplayJob(const ReplayOptions& options, const std::string& command_line, ReplayPlan plan,
            Trace trace)
      : options_(options),
        command_line_(command_line),
        plan_(std::move(plan)),
        trace_(std::move(trace)),
        oracle_(oracle_of(trace_, plan_.replay.overhead)),
        progress_(choose_progress_style(options.quiet), plan_.policies.size(), trace_.steps()) {
    plan_.policy.foresight = foresight_of(trace_);
  }

  Status run() {
    std::vector<std::string> run_files;
    if (!options_.save.empty()) {
      run_files = save_paths(options_.save, plan_.policies);
      if (Status status = check_can_be_saved(trace_, plan_.replay.overhead); !status) return status;
    }
    if (Status status = check_outputs(options_, run_files); !status) return status;
    if (!options_.decisions.empty()) {
      auto made = DecisionsFile::create(options_.decisions);
      if (!made) return made.error();
      decisions_ = std::move(made).value();
    }
    const ReplayFrame frame{options_.trace, text_of(plan_.job, "objective"), plan_.replay.warmup};
    std::vector<ReplayRow> rows;
    Status status = done();
    for (size_t i = 0; i < plan_.policies.size(); ++i) {
      const std::string& policy = plan_.policies[i];
      progress_.begin(policy);
      const auto result = replay_one(policy, run_files.empty() ? "" : run_files[i]);
      progress_.clear();
      if (!result) {
        if (result.error().kind != ErrorKind::kStopped) return result.error();
        // The results so far are still valid and are printed.
        status = result.error();
        break;
      }
      rows.push_back({policy, result.value()});
      if (!options_.json) continue;
      fmt::print("{}\n", to_json_line(frame, rows.back()));
      std::fflush(stdout);
    }
    if (!options_.json && !rows.empty()) fmt::print("{}", to_text(frame, rows));
    if (!options_.json && !options_.quiet) {
      const size_t begun = std::min(run_files.size(), rows.size() + (status ? 0 : 1));
      for (size_t i = 0; i < begun; ++i) fmt::print(stderr, "saved {}\n", run_files[i]);
    }
    if (decisions_) {
      if (Status closed = decisions_->close(); !closed) return closed;
    }
    return status;
  }

 private:
  Result<ReplayResult> replay_one(const std::string& policy, const std::string& run_file) {
    auto made = make_policy(policy, plan_.policy);
    if (!made) return made.error();
    Decider decider(std::move(made).value(), plan_.limits, plan_.balance);
    std::unique_ptr<RunWriter> writer;
    std::optional<ReplayRecorder> recorder;
    if (!run_file.empty()) {
      auto opened =
          RunWriter::create(run_file, header_of(options_, plan_.job, policy, command_line_));
      if (!opened) return opened.error();
      writer = std::move(opened).value();
      recorder.emplace(*writer, plan_.replay.overhead);
    }
    const auto listen = [&](const ReplayedStep& step) -> Status {
      if (interrupted()) {
        return Error{ErrorKind::kStopped, fmt::format("interrupted at step {} of {} with {}",
                                                      step.step, trace_.steps(), policy)};
      }
      progress_.step(step.step);
      if (decisions_) {
        if (Status status = decisions_->add(policy, plan_.range.from, step); !status) return status;
      }
      return recorder ? recorder->add(step) : done();
    };
    auto result = replay(trace_, oracle_, decider, plan_.replay, clock_now, listen);
    const bool stopped = !result && result.error().kind == ErrorKind::kStopped;
    if (!recorder || (!result && !stopped)) return result;
    const Status status = recorder->finish(stopped ? result.error().message : "");
    return status ? result : status.error();
  }

  const ReplayOptions& options_;
  const std::string& command_line_;
  ReplayPlan plan_;
  const Trace trace_;
  const OracleCloses oracle_;
  ReplayProgress progress_;
  std::unique_ptr<DecisionsFile> decisions_;
};

bool is_for_replay(const Setting& setting) {
  static constexpr std::array<std::string_view, 8> kKeys = {
      "seed",          "objective", "policy_warmup", "min_contributors",
      "min_inclusion", "live",      "balance",       "probe"};
  return std::ranges::find(kKeys, setting.key) != kKeys.end();
}

int replay_command(const ReplayOptions& options, const std::string& command_line) {
  Result<ReplayPlan> plan = plan_of(options);
  if (!plan) return fail(plan.error(), kExitUsage);
  if (options.dashboard && (options.save.empty() || plan.value().policies.size() != 1)) {
    return fail(invalid_input("--dashboard shows one recorded run: give one policy and --save RUN"),
                kExitUsage);
  }
  auto page = PageProcess::prepare(options.dashboard);
  if (!page) return fail(page.error());
  Result<Trace> trace = read_trace(options.trace);
  if (!trace) return fail(trace.error(), kExitFailed);
  for (const std::string& warning : trace.value().warnings) {
    fmt::print(stderr, "drover: warning: {}\n", warning);
  }
  Status status = keep_steps(trace.value(), plan.value().range);
  if (status) status = check_long_enough(trace.value(), plan.value().replay.warmup);
  if (!status) return fail(status.error(), kExitFailed);
  if (status) status = page.value().start(options.save);
  if (!status) return fail(status.error(), kExitFailed);
  listen_for_interrupts();
  status =
      ReplayJob(options, command_line, std::move(plan).value(), std::move(trace).value()).run();
  if (status) return 0;
  return fail(status.error(),
              status.error().kind == ErrorKind::kStopped ? kExitInterrupted : kExitFailed);
}

void add_replay_options(CLI::App& app, ReplayOptions& options) {
  app.add_option("--trace", options.trace,
                 "recorded run-times: CSV (step,w0,w1,...), NPY or run file")
      ->required()
      ->type_name("FILE");
  app.add_option("--policy", options.policies,
                 "policies separated by commas, or 'all' ('drover policies' lists them)")
      ->required()
      ->allow_extra_args(false)
      ->type_name("NAME,NAME");
  app.add_option("--steps", options.steps, "use only these rows of the trace (from 0; TO excluded)")
      ->type_name("FROM:TO");
  app.add_option("--overhead", options.overhead,
                 "time of a step beyond waiting, in the unit of the trace")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--noise", options.noise,
                 "noise scale in gradients, for objective goodput and policy dbw")
      ->type_name("NUMBER");
  app.add_option("--max-wait", options.max_wait,
                 "maximum time of a step with --min-contributors, in the unit of the trace")
      ->type_name("TIME");
  add_job_flags(app, options.flags, is_for_replay);
  app.add_option("--decisions", options.decisions, "write every decision to this CSV file")
      ->type_name("OUT.csv");
  app.add_option("--save", options.save, "record the replay in this run file (one file per policy)")
      ->type_name("RUN");
  add_dashboard_flag(app, options.dashboard);
  app.add_flag("--json", options.json, "print one JSON object per policy instead of a table");
  app.add_flag("--quiet", options.quiet, "print only errors and the result");
}

}  // namespace

void add_replay_command(CommandTable& commands) {
  auto [app, options] = commands.add<ReplayOptions>(
      "replay", "Compare policies on recorded run-times", replay_command);
  add_replay_options(app, options);
}

}  // namespace drover
