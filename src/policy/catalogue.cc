#include "policy/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/asynchronous.h"
#include "core/nearest.h"
#include "forecast/forecasters.h"
#include "forecast/learned/bayes.h"
#include "forecast/learned/model_file.h"
#include "policy/bandit.h"
#include "policy/dbw.h"
#include "policy/dropcompute.h"
#include "policy/forecast_policy.h"
#include "policy/joint_policy.h"
#include "policy/mad.h"
#include "policy/options.h"
#include "policy/oracle.h"
#include "policy/simple.h"

namespace drover {
namespace {

using Made = Result<std::unique_ptr<Policy>>;
using Maker = Made (*)(const Options& options, const PolicySettings& settings);

template <typename Kind, typename... Arguments>
std::unique_ptr<Policy> made(Arguments&&... arguments) {
  return std::make_unique<Kind>(std::forward<Arguments>(arguments)...);
}

// --- Options. A bare value is the policy's first option.

constexpr auto kCount = OptionKind::kCount;
constexpr auto kWord = OptionKind::kWord;

// For policies with a forecast: a time limit in addition to the cutoff.
constexpr OptionRule kHedgeRule{.key = "hedge", .kind = kWord, .words = "on or off"};

constexpr std::array kStaticOptions = {
    OptionRule{.key = "share", .highest = 1.0},
    OptionRule{.key = "k", .kind = kCount, .lowest = 1, .instead_of = "share"},
};
constexpr double kChen = 0.943;  // 100 of 106 workers

constexpr std::array kDeadlineOptions = {OptionRule{.key = "limit", .needed = true}};

constexpr std::array kMadOptions = {
    OptionRule{.key = "k"},
    OptionRule{.key = "window", .kind = kCount, .lowest = 1, .highest = 1000},
    OptionRule{.key = "quorum", .highest = 1.0},
};
constexpr std::array kBanditOptions = {
    OptionRule{.key = "memory", .lowest = 1.0, .highest = 1e6},
    OptionRule{.key = "explore", .highest = 100.0},
};
constexpr std::array kDbwOptions = {
    OptionRule{.key = "noise"},
    OptionRule{.key = "window", .kind = kCount, .lowest = 1, .highest = 100},
};
constexpr std::array kElfvingOnlineOptions = {
    OptionRule{.key = "window", .kind = kCount, .lowest = 1, .highest = 1000},
};
constexpr std::array kEcdfOptions = {
    OptionRule{.key = "mode", .kind = kWord, .words = "each or pooled"},
    OptionRule{.key = "half-life", .highest = 1e6},
    kHedgeRule,
};
constexpr std::array kEwmaOptions = {OptionRule{.key = "alpha", .highest = 1.0}, kHedgeRule};

constexpr std::string_view kOnOff = "on or off";
constexpr std::array kBayesOptions = {
    OptionRule{.key = "model", .kind = OptionKind::kPath},
    OptionRule{.key = "experts", .kind = OptionKind::kPath},
    OptionRule{.key = "joint", .kind = kWord, .words = kOnOff},
    OptionRule{.key = "prior", .kind = kWord, .words = kOnOff},
    OptionRule{.key = "fit", .kind = kWord, .words = kOnOff},
    kHedgeRule,
};
constexpr std::array kPublishedOptions = {
    OptionRule{.key = "model", .kind = OptionKind::kPath},
    OptionRule{.key = "emission", .kind = kWord, .words = "workers or sorted"},
    OptionRule{.key = "impute", .kind = kWord, .words = "truncated or bound"},
};

constexpr std::array kSspOptions = {
    OptionRule{.key = "staleness", .kind = kCount, .lowest = 0},
};

// --- One maker per policy.

Made make_sync(const Options&, const PolicySettings&) { return made<SyncPolicy>(); }

Made make_static(const Options& options, const PolicySettings&) {
  if (options.has("k")) return made<StaticCountPolicy>(options.count("k"));
  return made<StaticSharePolicy>(options.has("share") ? options.number("share") : kChen);
}

Made make_deadline(const Options& options, const PolicySettings&) {
  return made<DeadlinePolicy>(options.number("limit"));
}

Made make_mad(const Options& options, const PolicySettings& settings) {
  MadSettings mad;
  options.take("k", mad.deviations);
  options.take("window", mad.window);
  options.take("quorum", mad.quorum);
  return made<MadPolicy>(mad, settings.warmup);
}

Made make_bandit(const Options& options, const PolicySettings& settings) {
  BanditSettings bandit;
  options.take("memory", bandit.memory);
  options.take("explore", bandit.explore);
  return made<BanditPolicy>(bandit, settings.objective, settings.warmup);
}

Made make_dbw(const Options& options, const PolicySettings& settings) {
  DbwSettings dbw;
  if (options.has("noise")) dbw.noise = options.number("noise");
  options.take("window", dbw.window);
  return made<DbwPolicy>(dbw, settings.warmup);
}

Made make_dropcompute(const Options&, const PolicySettings& settings) {
  return made<DropComputePolicy>(settings.warmup);
}

Made forecasting(std::string name, std::unique_ptr<Forecaster> forecaster,
                 const PolicySettings& settings, bool hedged = false) {
  return made<ForecastPolicy>(std::move(name), std::move(forecaster),
                              ForecastPolicySettings{.objective = settings.objective,
                                                     .warmup = settings.warmup,
                                                     .hedged = hedged,
                                                     .live = settings.live,
                                                     .seed = settings.seed});
}

bool hedge_of(const Options& options, bool by_default) {
  return options.has("hedge") ? options.word("hedge") == "on" : by_default;
}

Made make_elfving_policy(const Options&, const PolicySettings& settings) {
  return forecasting("elfving", make_elfving({.warmup = settings.warmup}), settings);
}

Made make_elfving_online_policy(const Options& options, const PolicySettings& settings) {
  ElfvingOnlineSettings elfving{.warmup = settings.warmup};
  if (options.has("window")) elfving.window = options.count("window");
  return forecasting("elfving-online", make_elfving_online(elfving), settings);
}

Made make_ecdf_policy(const Options& options, const PolicySettings& settings) {
  EcdfSettings ecdf{.seed = settings.seed, .warmup = settings.warmup};
  if (options.has("mode")) ecdf.per_worker = options.word("mode") == "each";
  options.take("half-life", ecdf.per_worker ? ecdf.half_life : ecdf.pooled_half_life);
  return forecasting(ecdf.per_worker ? "ecdf" : "ecdf:pooled", make_ecdf(ecdf), settings,
                     hedge_of(options, false));
}

Made make_ewma_policy(const Options& options, const PolicySettings& settings) {
  EwmaSettings ewma{.seed = settings.seed, .warmup = settings.warmup};
  options.take("alpha", ewma.alpha);
  return forecasting("ewma", make_ewma(ewma), settings, hedge_of(options, false));
}

// Sets what all forecasters with a learned model have in common: the initial model, if one is
// named, and the fitter.
Status set_learned(const Options& options, const PolicySettings& settings,
                   LearnedSettings& learned) {
  learned.seed = settings.seed;
  learned.warmup = settings.warmup;
  if (options.has("model")) {
    Result<ModelWeights> model = read_model(std::string(options.word("model")));
    if (!model) return model.error();
    learned.model = std::make_shared<ModelWeights>(std::move(model).value());
    learned.fitting.emission = learned.model->shape.emission;
  }
  if (settings.fitter) learned.fitter = settings.fitter();
  return done();
}

bool is_on(const Options& options, std::string_view key, bool default_value) {
  return options.has(key) ? options.word(key) == "on" : default_value;
}

// "names+raw": the experts of bayes, of which waiting for all is always one.
Result<std::array<bool, kExperts>> experts_of(std::string_view text) {
  std::array<bool, kExperts> experts = {true};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    begin = end + 1;
    const auto* const found = std::find(kExpertNames.begin(), kExpertNames.end(), name);
    if (found == kExpertNames.end()) {
      return invalid_input(fmt::format("experts must be one or more of {}, joined by '+', not '{}'",
                                       fmt::join(kExpertNames, ", "), text));
    }
    experts[static_cast<size_t>(found - kExpertNames.begin())] = true;
  }
  if (std::count(experts.begin(), experts.end(), true) < 2)
    return invalid_input("experts must name one besides 'all', which is sync");
  return experts;
}

// Without the joint forecast it is the mixture of learned models with ecdf and ewma alone.
Made make_bayes_policy(const Options& options, const PolicySettings& settings) {
  JointPolicySettings joint{.objective = settings.objective,
                            .warmup = settings.warmup,
                            .live = settings.live,
                            .seed = settings.seed};
  auto& learned = joint.experts[static_cast<size_t>(Expert::kLearned)];
  learned = options.has("model") || options.has("prior") || options.has("fit");
  if (options.has("experts")) {
    const auto experts = experts_of(options.word("experts"));
    if (!experts) return experts.error();
    joint.experts = experts.value();
  }
  const bool alone = !is_on(options, "joint", true);
  if (!alone && !learned) return made<JointPolicy>(joint, nullptr);
  BayesSettings bayes;
  if (const Status status = set_learned(options, settings, bayes); !status) return status.error();
  bayes.prior = is_on(options, "prior", true);
  if (!is_on(options, "fit", true)) bayes.fitter = nullptr;
  if (bayes.fitting.emission == Emission::kSorted) {
    return invalid_input(
        "the model forecasts sorted run-times, but bayes needs run-times per worker: use the model "
        "with bayes-paper, or fit one with --emission shared");
  }
  if (!alone) return made<JointPolicy>(joint, make_bayes(std::move(bayes)));
  return forecasting("bayes", make_bayes(std::move(bayes)), settings, hedge_of(options, true));
}

Made make_published_policy(const Options& options, const PolicySettings& settings) {
  PublishedSettings published;
  if (const Status status = set_learned(options, settings, published); !status)
    return status.error();
  if (options.has("impute") && options.word("impute") == "bound") {
    published.imputing = Imputing::kBound;
  }
  if (!published.model) {
    const bool sorted = options.has("emission") && options.word("emission") == "sorted";
    published.fitting.emission = sorted ? Emission::kSorted : Emission::kWorkers;
  }
  return forecasting("bayes-paper", make_published(std::move(published)), settings);
}

Made make_oracle(const Options&, const PolicySettings& settings) {
  if (!settings.foresight) {
    return invalid_input(
        "oracle needs future run-times, which only a replay or a simulation has: use drover replay "
        "or drover simulate, or choose another policy");
  }
  return made<OraclePolicy>(settings.objective, settings.foresight);
}

Made refuse_asynchronous(const Options&, const PolicySettings&) {
  return invalid_input(
      "async and ssp have no cutoff, and recorded run-times do not show how far asynchronous "
      "workers would run ahead: use drover simulate or drover train");
}

// --- The table.

struct Entry {
  PolicyInfo info;
  std::span<const OptionRule> options;
  Maker make;
  bool forecasts = false;  // has a forecast, so that it can decide again inside a step
};

constexpr std::array kEntries = {
    Entry{{"sync", "wait for all workers alive", ""}, {}, make_sync},
    Entry{{"static", "wait for a fixed share or number of the workers alive",
           "0.943 (share, default) or k=100 (number)"},
          kStaticOptions,
          make_static},
    Entry{{"deadline", "wait for all workers, up to a fixed time limit",
           "2.5 (limit, in seconds or the trace's unit; required)"},
          kDeadlineOptions,
          make_deadline},
    Entry{{"mad", "wait until median + k * MAD of recent run-times, and for a quorum",
           "k=3, window=20 (steps), quorum=0.5 (share)"},
          kMadOptions,
          make_mad},
    Entry{{"bandit", "try cutoffs, use the one with the highest throughput",
           "memory=50 (steps), explore=0.1"},
          kBanditOptions,
          make_bandit},
    Entry{{"dbw", "dynamic backup workers: most progress per second, given the gradient noise",
           "noise=4 (noise-to-signal ratio; default: measured), window=5 (arrivals)"},
          kDbwOptions,
          make_dbw},
    Entry{{"dropcompute", "a time limit, fitted once to the run-times of the warm-up", ""},
          {},
          make_dropcompute},
    Entry{{"elfving", "one normal distribution for all run-times, fitted once to the warm-up", ""},
          {},
          make_elfving_policy,
          true},
    Entry{{"elfving-online", "elfving, fitted again after each step, with censored run-times",
           "window=20 (steps)"},
          kElfvingOnlineOptions,
          make_elfving_online_policy,
          true},
    Entry{{"ecdf", "empirical distribution of recent run-times, per worker or pooled",
           "each (mode, default) or pooled, half-life=4 (steps; pooled: 20), hedge=off"},
          kEcdfOptions,
          make_ecdf_policy,
          true},
    Entry{{"ewma", "exponential moving average per worker, with resampled residuals",
           "alpha=0.3 (weight of the newest run-time), hedge=off"},
          kEwmaOptions,
          make_ewma_policy,
          true},
    Entry{{"bayes", "levels by worker, residuals by whole step, beside the best fixed rules",
           "experts=names+common+raw (also learned), joint=off (learned models alone), model=FILE "
           "(from drover fit), prior=on, fit=on, hedge=on"},
          kBayesOptions,
          make_bayes_policy,
          true},
    Entry{{"bayes-paper", "the published state-space model, not mixed",
           "model=FILE, emission=workers or sorted, impute=truncated or bound"},
          kPublishedOptions,
          make_published_policy,
          true},
    Entry{{"oracle", "the best cutoff, from future run-times; replays and simulations only", ""},
          {},
          make_oracle},
    Entry{{kAsyncPolicy, "asynchronous: workers do not wait for each other; no cutoff", ""},
          {},
          refuse_asynchronous},
    Entry{{kSspPolicy, "stale synchronous: workers run at most some steps ahead of the slowest",
           "4 (staleness, in steps)"},
          kSspOptions,
          refuse_asynchronous},
};

constexpr auto kInfos = [] {
  std::array<PolicyInfo, kEntries.size()> infos{};
  for (size_t i = 0; i < infos.size(); ++i) infos[i] = kEntries[i].info;
  return infos;
}();

struct Named {
  const Entry* entry = nullptr;
  Options options;
};

Result<Named> parse(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  const auto* const entry = std::find_if(kEntries.begin(), kEntries.end(),
                                         [&](const Entry& each) { return each.info.name == name; });
  if (entry == kEntries.end()) {
    std::vector<std::string_view> names;
    for (const PolicyInfo& info : kInfos) names.push_back(info.name);
    return invalid_input(fmt::format("unknown policy '{}'.{} Policies: {}", name,
                                     did_you_mean(name, names), fmt::join(names, ", ")));
  }
  Result<Options> options = Options::parse(text, entry->options);
  if (!options) {
    std::string message = fmt::format("policy '{}': {}", text, options.error().message);
    if (const std::string_view known = entry->info.options; !known.empty()) {
      const bool ended = message.ends_with('.') || message.ends_with('?');
      message += fmt::format("{} Options of {}: {}", ended ? "" : ".", name, known);
    }
    return invalid_input(std::move(message));
  }
  return Named{entry, std::move(options).value()};
}

}  // namespace

std::span<const PolicyInfo> policies() { return kInfos; }

Result<std::unique_ptr<Policy>> make_policy(std::string_view text, const PolicySettings& settings) {
  const Result<Named> named = parse(text);
  if (!named) return named.error();
  if (settings.live && !named.value().entry->forecasts) {
    return invalid_input(fmt::format(
        "policy '{}' cannot decide again inside a step, because it has no forecast: omit --live, "
        "or use elfving, elfving-online, ecdf, ewma, bayes or bayes-paper",
        text));
  }
  Made policy = named.value().entry->make(named.value().options, settings);
  if (!policy) {
    return invalid_input(fmt::format("policy '{}': {}", text, policy.error().message));
  }
  return policy;
}

Result<std::optional<Asynchronous>> asynchronous_of(std::string_view text) {
  const Result<Named> named = parse(text);
  if (!named) return named.error();
  const std::string_view name = named.value().entry->info.name;
  if (name == kAsyncPolicy) return std::optional(Asynchronous{});
  if (name == kSspPolicy) {
    uint32_t staleness = 4;
    named.value().options.take("staleness", staleness);
    return std::optional(Asynchronous{staleness});
  }
  return std::optional<Asynchronous>();
}

}  // namespace drover
