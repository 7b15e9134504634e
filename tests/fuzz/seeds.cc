// fuzz_seeds FOLDER: writes the initial inputs of fuzzing, one for every kind of input. corpus/ has
// those that `tools/fuzz minimise` keeps of them and of the fuzzers' findings.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "forecast/learned/model_file.h"
#include "forecast/learned/random_model.h"
#include "fuzz/scratch_file.h"
#include "job/job_file.h"
#include "store/checkpoint.h"
#include "wire/control.h"
#include "wire/header.h"

namespace drover::fuzz {
namespace {

class Seeds {
 public:
  explicit Seeds(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void add(const std::string& target, const std::string& input) {
    const auto path = folder_ / target;
    std::filesystem::create_directories(path);
    std::ofstream(path / ("seed-" + std::to_string(made_++)), std::ios::binary) << input;
  }

 private:
  const std::filesystem::path folder_;
  int made_ = 0;
};

const Layout& layout() {
  static const Layout made({{"a", 8}, {"b", 20, TensorKind::kAveraged}});
  return made;
}

void add_frames(Seeds& seeds) {
  for (int type = 1; type <= 13; ++type) {
    const HeaderBytes bytes = encode_header({.type = static_cast<FrameType>(type), .step = 3});
    seeds.add("header", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
}

void add_messages(Seeds& seeds) {
  const BlockPlan blocks = plan_blocks(layout(), 2);
  const std::vector<Control> messages = {
      Hello{.host = "h", .tensors = layout().tensors(), .learning = Learning{}},
      Refusal{"no"},
      Plan{.workers = 2,
           .steps = 9,
           .staleness = 1,
           .tensors = layout().tensors(),
           .blocks = blocks},
      Welcome{.shards = {"s", "t"},
              .blocks = blocks,
              .workers = 2,
              .slow = {{.workers = {{0, 1}}, .factor = 2.0}}},
      PlaceOffer{.worker = 2, .job = "steps = 1"},
      Connected{.mpi_rank = 1},
      StandBy{.address = "s"},
      Replica{.kept = {3, 1}, .blocks = {{.length = 8, .floats = 3}}},
      Replicated{.version = 3},
      WantInitial{},
      Ready{},
      Decision{.step = 3, .cutoff = 1, .time_limit = Duration(5), .alive = {0, 1}},
      StepClosed{.step = 2,
                 .arrivals = {{1, Duration(1), 2}},
                 .late = {{0, Duration(1), 1}},
                 .refused = {{1, 1}},
                 .block_counts = {{1, 1}}},
      StepReport{.step = 1,
                 .samples = 1,
                 .loss = 0.5,
                 .learning_rate = 0.1,
                 .blocks = 2,
                 .fresh = 1,
                 .responses = {{Duration(1), true}}},
      Evaluated{.version = 1, .loss = 0.5, .accuracy = 0.5, .samples = 1},
      Farewell{.reason = "over", .rejoin = true},
      Arrived{.step = 5, .arrivals = {{0, Duration(1), 5}}},
      Share{.from = 1, .first = 0, .count = 1, .total = 1},
      Abandoned{.step = 9, .resumed = 10, .wasted = Duration(5)},
      PullShare{.from = 1, .share = 0.5},
      LearningRate{.from = 1, .rate = 0.5},
      Challenge{.nonce = std::string(32, 'n'), .proof = std::string(32, 'p')},
      CheckpointSaved{.version = 2, .file = "f", .bytes = 7, .checksum = 1, .took = Duration(1)}};
  for (const Control& message : messages) seeds.add("control", encode_control(message));
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void add_checkpoint(Seeds& seeds) {
  CheckpointPart part{.version = 4};
  for (const Block& block : plan_blocks(layout(), 1).blocks) {
    part.blocks.push_back({.offset = block.offset,
                           .length = block.length,
                           .updates = 4,
                           .parameters = std::make_shared<FloatBuffer>(block.length),
                           .momentum = std::make_shared<FloatBuffer>(block.length)});
  }
  const std::string& folder = scratch().path();
  const auto entry = write_checkpoint_part(part, folder);
  if (!entry || !write_manifest({.step = 4,
                                 .workers = 2,
                                 .when = "2026-01-01T00:00:00Z",
                                 .settings = {{"optimizer", "momentum"}},
                                 .tensors = layout().tensors(),
                                 .files = {entry.value()}},
                                folder))
    return;
  seeds.add("checkpoint", content_of(folder + "/manifest.json") + std::string(1, '\0') +
                              content_of(folder + "/" + entry.value().name));
}

std::string npy(const std::string& head, const std::vector<double>& numbers) {
  std::string file = "\x93NUMPY\x01";
  file.push_back('\0');
  file.push_back(static_cast<char>(head.size()));
  file.push_back('\0');
  file += head;
  return file.append(reinterpret_cast<const char*>(numbers.data()),
                     numbers.size() * sizeof(double));
}

void add_files(Seeds& seeds) {
  seeds.add("trace", "step,w0,w1,w2\n0,1.5,2.25,\n1,nan,2,3e-1\n");
  seeds.add("trace", "\xef\xbb\xbfstep,\"a\",b\r\n0, 1 ,2\r\n\r\n");
  seeds.add("trace",
            npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }", {1, 2, 3, 4}));
  seeds.add("trace", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", {1, 2}));
  seeds.add("model", encode_model(random_model({.workers = 2,
                                                .latent = 1,
                                                .window = 1,
                                                .rnn = 1,
                                                .transition = 1,
                                                .embedding = 1,
                                                .pooled_hidden = 1,
                                                .pooled = 1,
                                                .worker_hidden = 1,
                                                .components = 1,
                                                .emission_hidden = 1},
                                               1)));
  seeds.add("job",
            "workers = 3\nshards = 2\nsteps = 10\nslow = [\"worker=1,factor=2\"]\n"
            "policy = \"static:0.5\"\noptimizer = \"adam\"\nbeta1 = 0.5\n");
  seeds.add("job",
            "policy = \"ssp:2\"\ntransport = \"tcp\"\ndeterministic = false\nmax-wait = \"2s\"\n");
  seeds.add("scenario", R"(about = "all tables"
nodes = [2, 2]
layers = 3
[job]
workers = 4
steps = 9
shards = 2
[[run_time]]
kind = "lognormal"
mean = 1.5
deviation = 0.5
[[slow]]
node = 1
factor = 2
steps = "0:5"
[[straggling]]
share = 0.5
delay_mean = "1s"
[[regime]]
by_node = true
[[drift]]
per_step = 0.1
[[link]]
workers = "0-1"
latency = "2ms"
bandwidth = "1Gbit/s"
loss = 0.1
[[slow_shard]]
shard = 1
delay = "1s"
[[stall]]
shard = 0
step = 3
length = "1s"
[[death]]
worker = 2
step = 4
[[join]]
worker = 2
at = "9s"
[[partition]]
node = 0
step = 2
length = "1s"
[[corrupt_gradient]]
worker = 0
step = 1
)");
}

void add_requests(Seeds& seeds) {
  const auto request = [](bool guarded, const std::string& target, const std::string& host) {
    std::string input = {'\1', guarded ? '\1' : '\0', static_cast<char>(target.size())};
    input += target;
    input.push_back(static_cast<char>(host.size()));
    return input + host;
  };
  for (const char* target : {"/", "/api/events", "/metrics", "/api/step/3", "/favicon.ico"}) {
    seeds.add("request", request(false, target, "127.0.0.1:8410"));
    seeds.add("request", request(true, std::string(target) + "?token=a-token-of-this-run", "x"));
  }
}

// Inputs of the state machines' targets: each comment says what the bytes choose. A change of a
// target changes their meaning, which only costs a fuzzer some minutes.
std::string bytes(std::initializer_list<int> numbers) {
  std::string made;
  for (const int number : numbers) made.push_back(static_cast<char>(number));
  return made;
}

// A shard with two workers, which push all blocks in every step and pull the new versions.
std::string shard_play(int async, int partial) {
  const Layout layout({{"a", 8}, {"b", 20}, {"c", 5, TensorKind::kAveraged}});
  const int blocks = static_cast<int>(plan_blocks(layout, 2, 8).blocks_of_shard(0).size());
  std::string play = bytes({1, 5, 0, 2, 1, 0, 0, 10, async});
  if (async == 0) play += bytes({0});
  if (async != 0) play += bytes({partial, 0});
  play += bytes({2, 31});
  const auto push = [&](int worker, int block, int step) {
    play += bytes({8, worker, 0, block, 0, step, 0, 1, 0, 1, 1, 1, 140});
  };
  for (const int worker : {0, 1}) play += bytes({0, worker, 0, 0});
  for (int block = 0; block < blocks; ++block) push(0, block, 242);
  for (int step = 0; step < 5; ++step) {
    play += bytes({2, step == 0 ? 0 : 1, 2, 0, 1, 0, 0, 3});
    for (const int worker : {0, 1}) play += bytes({8, worker, 2, 0, 0, 0, 0, 1, 0, 1, 1, 0});
    for (const int worker : {0, 1}) {
      for (int block = 0; block < blocks; ++block) push(worker, block, 0);
    }
    for (const int worker : {0, 1}) play += bytes({8, worker, 2, 0, 0, 0, 1, 1, 0, 1, 1, 0});
  }
  return play;
}

// A coordinator with a shard and two workers, which receives a report of every step and gradient.
std::string coordinator_play(int policy) {
  std::string play =
      bytes({1, 0, 0, 6, 0, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 2, 1, policy});
  if (policy >= 7) play += bytes({1});
  play += bytes({0, 0, 0});
  for (const int worker : {0, 1}) play += bytes({0, 5, worker, 1, 1});
  for (const int peer : {0, 1, 2}) play += bytes({9, peer, 0});
  for (int step = 0; step < 6; ++step) {
    play += bytes({9, 0, 3, 0, 0, 130, 3, 0, 120, 0, 125, 0, 0, 0, 2, 16, 16, 0});
    for (const int worker : {1, 2})
      play += bytes({9, worker, 7, 7, 1, 16, 0, 0, 0, 120, 1, 0, 0, 0, 0});
    play += bytes({5, 140, 1});
  }
  return play;
}

// Partial pull with two shards, the first of which is always a step behind; and checkpoints.
std::string partial_pull_coordinator_play() {
  std::string play = bytes({1, 0, 1, 6, 0, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 2, 1, 1});
  for (const int shard : {0, 1}) play += bytes({0, 0, shard});
  for (const int worker : {0, 1}) play += bytes({0, 5, worker, 1, 1});
  for (const int peer : {0, 1, 2, 3}) play += bytes({9, peer, 0});
  const auto close = [&](int shard, int step) {
    play += bytes({9, shard, 3, step, 0, 130, 3, 0, 120, 0, 125, 0, 0, 0, 2, 16, 16, 0});
  };
  for (int step = 0; step < 6; ++step) {
    close(1, 0);
    if (step > 0) close(0, 7);
    for (const int shard : {0, 1}) play += bytes({9, shard, 12, 0, 0, 0, 100, 1});
    play += bytes({8, 1});
  }
  return play;
}

// A worker whose requests are answered, by two shards.
std::string worker_play(int async, int partial) {
  const Layout layout({{"a", 8}, {"b", 20}, {"c", 5, TensorKind::kAveraged}});
  std::string play = bytes({1, 1, async, 0, 3});
  if (async != 0) play += bytes({partial});
  if (async != 0 && partial == 0) play += bytes({5});
  play += bytes({0});
  for (int step = 0; step < 5; ++step) {
    play += bytes({1, 0});
    for (const Block& block : plan_blocks(layout, 2, 8).blocks)
      play += bytes(
          {0, 5, static_cast<int>(block.shard), 0, static_cast<int>(block.id), 1, 0, 0, 0, 1});
    play += bytes({1, 0});
    if (async != 0 && partial != 0) play += bytes({1});
    for (int tensor = 0; tensor < 3; ++tensor) play += bytes({1, 0, 2});
    play += bytes({1, 0});
  }
  return play;
}

// Normal runs, and some random bytes.
void add_plays(Seeds& seeds) {
  for (const auto& [async, partial] : {std::pair{1, 1}, {0, 1}, {1, 0}}) {
    seeds.add("shard", shard_play(async, partial));
    seeds.add("worker", worker_play(async, partial));
  }
  for (int policy = 0; policy < 12; ++policy) seeds.add("coordinator", coordinator_play(policy));
  seeds.add("coordinator", partial_pull_coordinator_play());
  std::mt19937_64 random(1);
  for (const char* target : {"coordinator", "shard", "worker"}) {
    for (const size_t size : {100, 600, 1'200}) {
      std::string input(size, '\0');
      for (char& byte : input) byte = static_cast<char>(random());
      seeds.add(target, input);
    }
  }
}

}  // namespace
}  // namespace drover::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  drover::fuzz::Seeds seeds(argv[1]);
  drover::fuzz::add_frames(seeds);
  drover::fuzz::add_messages(seeds);
  drover::fuzz::add_checkpoint(seeds);
  drover::fuzz::add_files(seeds);
  drover::fuzz::add_requests(seeds);
  drover::fuzz::add_plays(seeds);
  return 0;
}
