#include "node/worker_node.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <new>
#include <string>

#include "node/host.h"
#include "node/sittings.h"
#include "worker/training_loop.h"

namespace drover {
namespace {

// The first line: libtorch appends a page of addresses.
std::string explain(const std::exception& trouble) {
  const std::string words = trouble.what();
  const std::string reason = "computing a gradient failed: " + words.substr(0, words.find('\n'));
  const bool memory = dynamic_cast<const std::bad_alloc*>(&trouble) != nullptr ||
                      words.find("allocate") != std::string::npos;
  return memory ? reason + ". Try a smaller --batch, or fewer workers" : reason;
}

Sitting train(const WorkerSettings& settings, Task& task) {
  const auto session = LiveSession::create(settings, task.layout());
  if (!session) {
    spdlog::error("{}", session.error().message);
    return {.exit_status = 1};
  }
  task.initial_parameters(session.value()->initial_parameters());
  if (const Status started = session.value()->start(); !started)
    return {.exit_status = 1, .again = true, .why = started.error().message};
  try {
    training_loop(*session.value(), task);
  } catch (const std::exception& trouble) {
    // A task is built on a library that throws; out of memory is what it throws most.
    const std::string reason = explain(trouble);
    spdlog::error("{}", reason);
    session.value()->leave(reason);
    return {.exit_status = 1};
  }
  const Farewell farewell = session.value()->farewell().value_or(Farewell{});
  return {.exit_status = farewell.outcome == RunOutcome::kFailed ? 1 : 0,
          .again = farewell.again,
          .was_in = session.value()->was_connected(),
          .why = farewell.reason};
}

}  // namespace

int run_worker(const WorkerSettings& settings, Task& task) {
  keep_freed_memory();
  return run_sittings(settings.identity.name(), settings.rejoin_for,
                      [&] { return train(settings, task); });
}

}  // namespace drover
