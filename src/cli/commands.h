// The commands of the drover program; each returns the process's exit status.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch_options.h"
#include "cli/train_options.h"

namespace drover {

// `command_line` is kept in the run file.
int train_command(const TrainOptions& options, const std::string& command_line);
// A run whose workers are scripts that it starts, or that others start.
int launch_command(const LaunchOptions& options, const std::string& command_line);
int serve_command(const LaunchOptions& options, const std::string& command_line);

// A worker for a run that goes on already.
struct WorkerOptions {
  std::string join;      // HOST:PORT of the coordinator; empty: as the token file says
  std::string data_dir;  // empty: as the job says
  std::string tls;       // folder of keys; empty: connections are not encrypted
  ClusterOptions cluster;
};
int worker_command(const WorkerOptions& options);

struct RunsOptions {
  std::string run_file;
  bool json = false;
};
int runs_command(const RunsOptions& options);

struct ExportOptions {
  std::string run_file;
  std::string format;
  std::string out;
  std::string steps = ":";
  bool force = false;
  bool quiet = false;
};
int export_command(const ExportOptions& options);

// A live page of a run, until Ctrl-C.
struct DashboardOptions {
  std::string run_file;
  std::string listen = "127.0.0.1";
  uint16_t port = 8410;  // 0: any that is free
  std::string token;     // empty: none; others than this machine need one
};
int dashboard_command(const DashboardOptions& options);

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out;              // empty: standard output
  std::string format = "html";  // or md
};
// `command_line` becomes part of the report.
int report_command(const ReportOptions& options, const std::string& command_line);

struct CheckpointInspectOptions {
  std::string dir;
  bool json = false;
};
int checkpoint_inspect_command(const CheckpointInspectOptions& options);

struct CheckpointExportOptions {
  std::string dir;
  std::string out;
  bool average = false;
  bool force = false;
};
int checkpoint_export_command(const CheckpointExportOptions& options);

struct DataOptions {
  std::string name;
  std::string data_dir;  // empty: the default place
};
int data_get_command(const DataOptions& options);

struct DoctorOptions {
  uint32_t workers = 4;
  uint32_t shards = 2;
  std::string data_dir;
  bool json = false;
};
int doctor_command(const DoctorOptions& options);

struct ReplayOptions {
  std::string trace;
  std::vector<std::string> policies;  // lists with commas
  GivenFlags flags;                   // of settings that a run has too, see is_for_replay()
  std::string steps = ":";            // rows of the trace
  double overhead = 0.0;
  std::optional<double> noise;  // noise scale of the gradients, in gradients
  double max_wait = std::numeric_limits<double>::infinity();  // in the unit of the trace
  std::string decisions;                                      // a CSV file; empty: none
  std::string save;                                           // a run file; empty: none
  std::optional<uint16_t> dashboard;                          // the port of its page; absent: none
  bool json = false;
  bool quiet = false;
};
// Whether a setting of a job means something in a replay.
bool is_for_replay(const Setting& setting);
// `command_line` is kept in the run file, if one is saved.
int replay_command(const ReplayOptions& options, const std::string& command_line);

struct SimulateOptions {
  std::string scenario;
  GivenFlags flags;                   // of the job: they win over the scenario
  uint64_t hunt = 0;                  // so many random fault schedules instead of a scenario
  std::optional<uint16_t> dashboard;  // the port of its page; absent: none
  bool json = false;
  bool quiet = false;
};
int simulate_command(const SimulateOptions& options, const std::string& command_line);

struct ExperimentOptions {
  std::string file;
  std::string out;  // folder; empty: experiments/<name of the file>
  bool resume = false;
  uint32_t jobs = 0;  // simulated cells at once; 0: as many as there are cores
  bool json = false;
  bool quiet = false;
  std::optional<uint16_t> dashboard;  // the port of the live page
};
int experiment_command(const ExperimentOptions& options);

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
int fit_command(const FitOptions& options);

struct BenchOptions {
  std::string workers = "16,158,640,2175,10000";  // with commas
  uint32_t samples = 0;                           // 0: as many as a decision takes
  uint32_t repeat = 200;
  std::string emission = "shared";
  bool json = false;
};
int bench_decide_command(const BenchOptions& options);

// A shard's update against the speed of memory.
struct OptimizerBenchOptions {
  std::string kind = "momentum";
  uint64_t mb = 100;  // of parameters
  uint32_t rounds = 9;
  bool json = false;
};
int bench_optimizer_command(const OptimizerBenchOptions& options);

// Frames between two processes against plain Asio on the same kind of socket.
struct TransportBenchOptions {
  std::string transport = "uds";
  std::string listen = "127.0.0.1:0";  // with tcp
  std::string netns;                   // the network namespace of the far end; empty: this one
  uint32_t rounds = 7;
  uint32_t volume_mb = 256;  // moved for each figure in each round
  bool json = false;
};
int bench_transport_command(const TransportBenchOptions& options);

// A real shard and real workers against the plain sum of the same gradients.
struct ServerBenchOptions {
  std::string transport = "uds";
  std::string listen = "127.0.0.1:0";  // with tcp
  std::string netns;                   // network namespaces of the workers, with commas, in turn
  uint32_t workers = 8;
  uint64_t mb = 4;  // of gradient, each
  uint32_t kb = 0;  // the same in kilobytes, if not 0
  uint64_t window = 1 << 20;
  bool fixed_window = false;  // also while packets get lost
  std::string tls;            // folder of keys, with tcp; empty: nothing is encrypted
  uint32_t block_kb = 0;      // of blocks that a gradient is cut into; 0: as training would
  uint32_t rounds = 15;
  bool json = false;
};
int bench_server_command(const ServerBenchOptions& options);

// Keys for TLS between a run's machines.
struct KeysMakeOptions {
  std::string out;
  std::vector<std::string> hosts;
  int days = 30;
};
int keys_make_command(const KeysMakeOptions& options);
struct KeysShowOptions {
  std::string folder;
  bool json = false;
};
int keys_show_command(const KeysShowOptions& options);

struct PoliciesOptions {
  bool json = false;
};
int policies_command(const PoliciesOptions& options);

}  // namespace drover
