#include "sim/scenario_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <numeric>

#include "core/nearest.h"
#include "job/settings.h"
#include "job/toml_keys.h"
#include "job/validation.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr double kTimeMax = 1e6;  // seconds
constexpr double kFactorMax = 1e6;

// A kind of run-times, and the keys that it requires; other keys are refused.
struct KindOfTimes {
  std::string_view name;
  RunTimeKind kind;
  std::array<std::string_view, 2> keys;
};
constexpr std::array<KindOfTimes, 6> kKinds = {
    {{"constant", RunTimeKind::kConstant, {"mean"}},
     {"normal", RunTimeKind::kNormal, {"mean", "deviation"}},
     {"lognormal", RunTimeKind::kLognormal, {"mean", "deviation"}},
     {"shifted-exponential", RunTimeKind::kShiftedExponential, {"shift", "mean"}},
     {"pareto", RunTimeKind::kPareto, {"shift", "shape"}},
     {"trace", RunTimeKind::kTrace, {"trace"}}}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kExamples = {
    {{"mean", "1.0"},
     {"deviation", "0.2"},
     {"shift", "1.0"},
     {"shape", "2.5"},
     {"trace", "\"times.csv\""}}};

Status parse_kind(const std::string& text, const KindOfTimes*& kind) {
  std::vector<std::string_view> names;
  for (const KindOfTimes& each : kKinds) {
    if (each.name == text) {
      kind = &each;
      return done();
    }
    names.push_back(each.name);
  }
  return invalid_input(fmt::format("unknown kind '{}'.{} Known: {}", text,
                                   did_you_mean(text, names), fmt::join(names, ", ")));
}

// "10Gbit/s", "100MB/s": in bytes per second.
Status parse_bandwidth(const std::string& text, double& bytes_per_second) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {{{"Gbit/s", 1e9 / 8},
                                                                          {"Mbit/s", 1e6 / 8},
                                                                          {"kbit/s", 1e3 / 8},
                                                                          {"GB/s", 1e9},
                                                                          {"MB/s", 1e6},
                                                                          {"kB/s", 1e3}}};
  double value = 0.0;
  const char* const end = text.data() + text.size();
  const auto [stop, trouble] = std::from_chars(text.data(), end, value);
  for (const auto& [unit, size] : kUnits) {
    if (trouble != std::errc{} || std::string_view(stop, end) != unit || !(value > 0.0)) continue;
    bytes_per_second = value * size;
    return done();
  }
  return invalid_input(fmt::format("must be a speed such as 10Gbit/s or 100MB/s, not '{}'", text));
}

// --- one function a table

void read(TomlKeys& keys, WorkerSelector& selector) {
  if (keys.has("node") && keys.has("workers"))
    keys.complain("workers", "give either node or workers, not both");
  keys.count("node", selector.node, 0, kWorkersMax);
  keys.range("workers", selector.workers);
}

void read(TomlKeys& keys, StepSpan& steps) {
  keys.parsed("steps", [&](const std::string& text) -> Status {
    const auto range = parse_step_range(text);
    if (!range) return range.error();
    steps.first = range.value().from;
    if (!range.value().open_ended) steps.end = range.value().to;
    return done();
  });
}

void read(TomlKeys& keys, Trigger& when) {
  keys.step("step", when.step);
  keys.duration("at", when.at);
  if (keys.has("step") == keys.has("at"))
    keys.complain("needs either step = 10 (when that step opens) or at = \"3s\"");
}

void read(TomlKeys& keys, RunTimeRule& rule, const std::filesystem::path& folder) {
  RunTimeLaw& law = rule.law;
  read(keys, rule.selector);
  keys.need("kind", "\"lognormal\", for example");
  const KindOfTimes* kind = nullptr;
  keys.parsed("kind", [&](const std::string& text) { return parse_kind(text, kind); });
  keys.number("mean", law.mean, 1e-9, kTimeMax);
  keys.number("deviation", law.deviation, 0.0, kTimeMax);
  // `shift` is the least Pareto time, and must be positive.
  const bool pareto = kind != nullptr && kind->kind == RunTimeKind::kPareto;
  keys.number("shift", law.shift, pareto ? 1e-9 : 0.0, kTimeMax);
  keys.number("shape", law.shape, 0.1, 1000.0);
  keys.parsed("trace", [&](const std::string& text) -> Status {
    auto trace = read_trace((folder / text).string());
    if (!trace) return trace.error();
    law.trace = std::make_shared<const Trace>(std::move(trace).value());
    return done();
  });
  if (kind == nullptr) return;
  law.kind = kind->kind;
  for (const auto& [key, example] : kExamples) {
    if (std::find(kind->keys.begin(), kind->keys.end(), key) != kind->keys.end()) {
      keys.need(key, example);
    } else if (keys.has(key)) {
      keys.complain(key, fmt::format("means nothing to the kind '{}'", kind->name));
    }
  }
}

void read(TomlKeys& keys, SlowSpell& slow) {
  read(keys, slow.selector);
  read(keys, slow.steps);
  keys.need("factor", "2.0");
  keys.number("factor", slow.factor, 1e-3, kFactorMax);
}

void read(TomlKeys& keys, Straggling& straggling) {
  read(keys, straggling.selector);
  read(keys, straggling.steps);
  keys.need("share", "0.05");
  if (!keys.has("delay_mean")) keys.need("factor", "3.0 (or delay_mean)");
  keys.number("share", straggling.share, 0.0, 1.0);
  keys.number("factor", straggling.factor, 1e-3, kFactorMax);
  keys.number("delay_mean", straggling.delay_mean, 0.0, kTimeMax);
  keys.number("delay_deviation", straggling.delay_deviation, 0.0, kTimeMax);
}

void read(TomlKeys& keys, Regime& regime) {
  read(keys, regime.selector);
  keys.flag("by_node", regime.by_node);
  keys.number("enter", regime.enter, 0.0, 1.0);
  keys.number("leave", regime.leave, 0.0, 1.0);
  keys.number("factor", regime.factor, 1e-3, kFactorMax);
}

void read(TomlKeys& keys, Drift& drift) {
  read(keys, drift.selector);
  keys.need("per_step", "0.01");
  keys.number("per_step", drift.per_step, -0.1, 0.1);
}

void read(TomlKeys& keys, LinkRule& rule) {
  LinkLaw& law = rule.law;
  read(keys, rule.selector);
  keys.duration("latency", law.latency);
  keys.duration("jitter", law.jitter);
  keys.parsed("bandwidth",
              [&](const std::string& text) { return parse_bandwidth(text, law.bytes_per_second); });
  keys.number("loss", law.loss, 0.0, 0.9);
  keys.number("duplication", law.duplication, 0.0, 1.0);
  keys.number("reordering", law.reordering, 0.0, 1.0);
  keys.duration("resend", law.resend);
}

void read(TomlKeys& keys, SlowShard& slow) {
  keys.count("shard", slow.shard, 0, kShardsMax);
  keys.need("delay", "\"4s\"");
  keys.number("share", slow.share, 0.0, 1.0);
  keys.duration("delay", slow.delay);
}

void read(TomlKeys& keys, Stall& stall) {
  std::optional<ShardId> shard;
  keys.need("shard", "2");
  keys.count("shard", shard, 0, kShardsMax);
  if (shard) stall.shard = *shard;
  read(keys, stall.when);
  keys.need("length", "\"10s\"");
  keys.duration("length", stall.length);
}

void read_worker(TomlKeys& keys, WorkerId& worker) {
  keys.need("worker", "3");
  keys.count("worker", worker, 0, kWorkersMax);
}

void read(TomlKeys& keys, Death& death) {
  read_worker(keys, death.worker);
  read(keys, death.when);
  keys.flag("loses_messages", death.loses_messages);
}

void read(TomlKeys& keys, Join& join) {
  read_worker(keys, join.worker);
  read(keys, join.when);
}

void read(TomlKeys& keys, Partition& partition) {
  read(keys, partition.selector);
  read(keys, partition.when);
  keys.need("length", "\"10s\"");
  keys.duration("length", partition.length);
}

void read(TomlKeys& keys, CorruptGradient& corrupt) {
  read_worker(keys, corrupt.worker);
  std::optional<Step> step;
  keys.need("step", "10");
  keys.step("step", step);
  if (step) corrupt.step = *step;
}

void read(TomlKeys& keys, ByzantineFault& fault) {
  read_worker(keys, fault.worker);
  keys.need("factor", "100.0");
  keys.number("factor", fault.factor, -kFactorMax, kFactorMax);
  keys.step("step", fault.step);
}

// Reads all tables of one kind: any number of [[slow]], or one [slow].
template <typename Rule, typename... More>
void read_all(TomlKeys& top, std::string_view key, std::vector<Rule>& rules,
              std::vector<Complaint>& complaints, const More&... more) {
  const toml::node* node = top.node(key);
  if (node == nullptr) return;
  const auto read_one = [&](const toml::table& table) {
    TomlKeys keys(table, fmt::format("[[{}]]", key), complaints);
    read(keys, rules.emplace_back(), more...);
    keys.finish();
  };
  if (const auto* table = node->as_table()) return read_one(*table);
  const auto* array = node->as_array();
  if (array == nullptr || !array->is_array_of_tables())
    return top.complain(
        key, fmt::format("expected a table [[{}]], found {}", key, words_for(node->type())));
  for (const toml::node& each : *array) read_one(*each.as_table());
}

// `nodes` is a list of workers per node, or the number of nodes that share the workers evenly.
void read_nodes(TomlKeys& top, ScenarioFile& file) {
  const toml::node* node = top.node("nodes");
  if (node == nullptr) return;
  if (const auto* count = node->as_integer();
      count != nullptr && count->get() >= 1 && count->get() <= file.job.cluster.workers) {
    file.even_nodes = static_cast<uint32_t>(count->get());
    return;
  }
  if (const auto* list = node->as_array()) {
    for (const toml::node& each : *list) {
      const auto workers = each.value<int64_t>();
      if (!each.is_integer() || *workers < 0 || *workers > kWorkersMax) break;
      file.scenario.nodes.push_back(static_cast<uint32_t>(*workers));
    }
    const uint64_t all =
        std::accumulate(file.scenario.nodes.begin(), file.scenario.nodes.end(), uint64_t{0});
    if (file.scenario.nodes.size() == list->size() && all == file.job.cluster.workers) return;
  }
  top.complain("nodes",
               fmt::format("must be the number of workers on each node, {} workers in all, such "
                           "as [{}, {}], or the number of nodes",
                           file.job.cluster.workers, (file.job.cluster.workers + 1) / 2,
                           file.job.cluster.workers / 2));
}

void read_file(const toml::table& table, const std::filesystem::path& folder, ScenarioFile& file,
               std::vector<Complaint>& complaints) {
  TomlKeys top(table, "", complaints);
  Scenario& scenario = file.scenario;
  top.text("about", file.about);
  if (const toml::node* job = top.node("job")) {
    if (const auto* job_table = job->as_table()) {
      read_job_table(*job_table, file.job, complaints);
    } else {
      top.complain("job", "expected a table [job] with the keys of a job file");
    }
  }
  if (!file.job.cluster.slow.empty())
    top.complain("job", "slow: slows down real workers; use [[slow]] for simulated ones");
  read_nodes(top, file);
  top.count("layers", scenario.layers, 0, 100'000);
  read_all(top, "run_time", scenario.run_times, complaints, folder);
  read_all(top, "slow", scenario.slow, complaints);
  read_all(top, "straggling", scenario.straggling, complaints);
  read_all(top, "regime", scenario.regimes, complaints);
  read_all(top, "drift", scenario.drifts, complaints);
  read_all(top, "link", scenario.links, complaints);
  read_all(top, "slow_shard", scenario.slow_shards, complaints);
  read_all(top, "death", scenario.deaths, complaints);
  read_all(top, "join", scenario.joins, complaints);
  read_all(top, "partition", scenario.partitions, complaints);
  read_all(top, "stall", scenario.stalls, complaints);
  read_all(top, "corrupt_gradient", scenario.corrupt_gradients, complaints);
  read_all(top, "byzantine", scenario.byzantine_faults, complaints);
  // The former names of these two tables stay valid.
  read_all(top, "poison", scenario.corrupt_gradients, complaints);
  read_all(top, "lie", scenario.byzantine_faults, complaints);
  top.finish();
}

// "[[death]]", or "[[death]] number 3" if there are several.
template <typename Rules>
std::string name_of(std::string_view table, size_t index, const Rules& rules) {
  return rules.size() == 1 ? fmt::format("[[{}]]", table)
                           : fmt::format("[[{}]] number {}", table, index + 1);
}

Status check_worker(WorkerId worker, const Job& job, std::string_view rule) {
  if (worker < job.cluster.workers) return done();
  return invalid_input(fmt::format("{} names worker {}, but {} workers are numbered 0 to {}", rule,
                                   worker, job.cluster.workers, job.cluster.workers - 1));
}

Status check_selector(const WorkerSelector& selector, const Scenario& scenario, const Job& job,
                      std::string_view rule) {
  const size_t nodes = std::max<size_t>(1, scenario.nodes.size());
  if (selector.node && *selector.node >= nodes) {
    return invalid_input(fmt::format("{} names node {}, but {} nodes are numbered 0 to {}", rule,
                                     *selector.node, nodes, nodes - 1));
  }
  return selector.workers ? check_worker(selector.workers->second, job, rule) : done();
}

// The coordinator starts the run when the first workers have joined, so the workers that join later
// must have the highest numbers.
Status check_start(const Scenario& scenario, const Job& job) {
  uint32_t at_start = 0;
  while (at_start < job.cluster.workers && !scenario.joins_later(at_start)) ++at_start;
  if (at_start == 0) {
    return invalid_input(
        "worker 0 joins later, but a run begins with worker 0: remove its [[join]]");
  }
  for (WorkerId worker = at_start; worker < job.cluster.workers; ++worker) {
    if (scenario.joins_later(worker)) continue;
    return invalid_input(fmt::format(
        "worker {} joins later, but worker {} does not: only the last workers, up to {}, can join "
        "later",
        at_start, worker, job.cluster.workers - 1));
  }
  return done();
}

}  // namespace

Result<ScenarioFile> parse_scenario(std::string_view text, const std::string& name) {
  const auto table = parse_toml(text, name);
  if (!table) return table.error();
  ScenarioFile file;
  std::vector<Complaint> complaints;
  read_file(table.value(), std::filesystem::path(name).parent_path(), file, complaints);
  if (!complaints.empty()) return first_of(complaints, name);
  finish(file.job);
  place_workers(file);
  file.text = text;
  return file;
}

void place_workers(ScenarioFile& file) {
  if (!file.even_nodes) return;
  const uint32_t nodes = *file.even_nodes;
  file.scenario.nodes.clear();
  for (uint32_t i = 0; i < nodes; ++i) {
    file.scenario.nodes.push_back(file.job.cluster.workers / nodes +
                                  (i < file.job.cluster.workers % nodes ? 1 : 0));
  }
}

Result<ScenarioFile> read_scenario_file(const std::string& path) {
  const auto text = read_toml_file(path, "scenario");
  if (!text) return text.error();
  return parse_scenario(text.value(), path);
}

Status validate(const Scenario& scenario, const Job& job) {
  if (!job.record.checkpoint.empty() || !job.record.resume.empty()) {
    return invalid_input(
        "checkpoint (--checkpoint), resume (--resume): a simulation writes no checkpoints; remove "
        "them");
  }
  const uint64_t placed =
      std::accumulate(scenario.nodes.begin(), scenario.nodes.end(), uint64_t{0});
  if (!scenario.nodes.empty() && placed != job.cluster.workers) {
    return invalid_input(fmt::format(
        "the scenario places {} workers on its nodes, but the job has {}: change nodes as well",
        placed, job.cluster.workers));
  }
  std::vector<Status> checks;
  const auto check_all = [&](const auto& rules, std::string_view table) {
    for (size_t i = 0; i < rules.size(); ++i)
      checks.push_back(check_selector(rules[i].selector, scenario, job, name_of(table, i, rules)));
  };
  const auto check_workers = [&](const auto& rules, std::string_view table) {
    for (size_t i = 0; i < rules.size(); ++i)
      checks.push_back(check_worker(rules[i].worker, job, name_of(table, i, rules)));
  };
  check_all(scenario.run_times, "run_time");
  check_all(scenario.slow, "slow");
  check_all(scenario.straggling, "straggling");
  check_all(scenario.regimes, "regime");
  check_all(scenario.drifts, "drift");
  check_all(scenario.links, "link");
  check_all(scenario.partitions, "partition");
  check_workers(scenario.deaths, "death");
  check_workers(scenario.joins, "join");
  check_workers(scenario.corrupt_gradients, "corrupt_gradient");
  check_workers(scenario.byzantine_faults, "byzantine");
  const auto check_shard = [&](ShardId shard, const std::string& rule) {
    if (shard < job.cluster.shards) return;
    checks.emplace_back(
        invalid_input(fmt::format("{} names shard {}, but {} shards are numbered 0 to {}", rule,
                                  shard, job.cluster.shards, job.cluster.shards - 1)));
  };
  for (size_t i = 0; i < scenario.slow_shards.size(); ++i) {
    if (scenario.slow_shards[i].shard)
      check_shard(*scenario.slow_shards[i].shard, name_of("slow_shard", i, scenario.slow_shards));
  }
  for (size_t i = 0; i < scenario.stalls.size(); ++i)
    check_shard(scenario.stalls[i].shard, name_of("stall", i, scenario.stalls));
  checks.push_back(check_start(scenario, job));
  const auto wrong =
      std::find_if(checks.begin(), checks.end(), [](const Status& check) { return !check.ok(); });
  return wrong == checks.end() ? done() : *wrong;
}

}  // namespace drover
