// system_bench: measures drover itself on this machine.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "cli/command_table.h"
#include "cli/run_report.h"
#include "cli/train_options.h"
#include "node/log.h"
#include "system/benches.h"

namespace drover {
namespace {

void add_bench_options(CLI::App& app, BenchOptions& bench) {
  app.add_option("--workers", bench.workers, "numbers of workers, separated by commas")
      ->type_name("COUNT,COUNT")
      ->capture_default_str();
  app.add_option("--samples", bench.samples, "samples of a forecast; 0: as many as a run takes")
      ->check(check_whole_number)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--repeat", bench.repeat, "decisions that are timed for each number of workers")
      ->check(check_whole_number)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--emission", bench.emission, "of the model: shared, workers or sorted")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_flag("--json", bench.json, "one JSON object for each number of workers");
}

void add_rounds(CLI::App& app, uint32_t& rounds, bool& json) {
  app.add_option("--rounds", rounds, "rounds, each measuring everything once")
      ->check(check_whole_number)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_flag("--json", json, "one JSON object instead of a table");
}

void add_sockets(CLI::App& app, std::string& transport, std::string& listen, std::string& netns,
                 const char* whose) {
  app.add_option("--transport", transport, "uds, tcp or shm")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--listen", listen, "with tcp: address to listen on; port 0: any free one")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--netns", netns, whose)->type_name("NAME");
}

void add_optimizer_bench(CLI::App& app, OptimizerBenchOptions& bench) {
  app.add_option("--kind", bench.kind, "sgd, momentum, nesterov, rmsprop, adam or adamw")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--mb", bench.mb, "megabytes of parameters")
      ->check(check_whole_number)
      ->type_name("COUNT")
      ->capture_default_str();
  add_rounds(app, bench.rounds, bench.json);
}

void add_transport_bench(CLI::App& app, TransportBenchOptions& bench) {
  add_sockets(app, bench.transport, bench.listen, bench.netns,
              "with tcp: network namespace of the far end");
  app.add_option("--volume-mb", bench.volume_mb, "megabytes moved for each figure in each round")
      ->check(check_whole_number)
      ->type_name("COUNT")
      ->capture_default_str();
  add_rounds(app, bench.rounds, bench.json);
}

void add_server_bench(CLI::App& app, ServerBenchOptions& bench) {
  add_sockets(app, bench.transport, bench.listen, bench.netns,
              "with tcp: network namespaces of the workers, separated by commas, in turn");
  app.add_option("--workers", bench.workers, "processes that push")
      ->check(check_whole_number)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--mb", bench.mb, "megabytes (of 1048576) of gradient each")
      ->check(check_whole_number)
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--kb", bench.kb, "kilobytes (of 1024) of gradient each, instead of --mb")
      ->check(check_whole_number)
      ->type_name("COUNT");
  app.add_option("--block-kb", bench.block_kb,
                 "kilobytes of each block of a gradient, at most (as training would cut it)")
      ->check(check_whole_number)
      ->type_name("COUNT");
  app.add_option("--tls", bench.tls, "with tcp: folder of `drover keys make`, to encrypt it all")
      ->type_name("DIR");
  app.add_flag("--fixed-window", bench.fixed_window, "keep the window even while packets get lost");
  app.add_option("--window", bench.window, "bytes of gradients that may be under way at once")
      ->check(check_whole_number)
      ->type_name("BYTES")
      ->capture_default_str();
  add_rounds(app, bench.rounds, bench.json);
}

int run(int argc, char** argv) {
  set_log_name("");
  CLI::App app("Measures drover itself on this machine.", "system_bench");
  app.require_subcommand(1);
  BenchOptions bench;
  CLI::App* decide_app = app.add_subcommand(
      "decide", "How long a decision takes with a learned model of random weights, on one core");
  add_bench_options(*decide_app, bench);
  OptimizerBenchOptions optimizer_bench;
  CLI::App* optimizer_app =
      app.add_subcommand("optimizer", "How near to the speed of memory a shard's update is");
  add_optimizer_bench(*optimizer_app, optimizer_bench);
  TransportBenchOptions transport_bench;
  CLI::App* transport_app = app.add_subcommand(
      "transport", "Round trips and bandwidth between two processes, beside plain Asio");
  add_transport_bench(*transport_app, transport_bench);
  ServerBenchOptions server_bench;
  CLI::App* server_app = app.add_subcommand(
      "server", "How fast a shard takes gradients and gives out parameters, beside plain memory");
  add_server_bench(*server_app, server_bench);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help
    return app.exit(success);
  } catch (const CLI::ParseError& trouble) {
    fmt::print(stderr, "system_bench: {}\n", explain_parse_error(app, trouble));
    return kExitUsage;
  }
  if (decide_app->parsed()) return bench_decide_command(bench);
  if (optimizer_app->parsed()) return bench_optimizer_command(optimizer_bench);
  if (transport_app->parsed()) return bench_transport_command(transport_bench);
  return bench_server_command(server_bench);
}

}  // namespace
}  // namespace drover

int main(int argc, char** argv) { return drover::run(argc, argv); }
