#include "node/worker_node.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <new>
#include <string>

#include "node/host.h"
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

}  // namespace

int run_worker(const WorkerSettings& settings, Task& task) {
  keep_freed_memory();
  const auto session = LiveSession::create(settings, task.layout());
  if (!session) {
    spdlog::error("{}", session.error().message);
    return 1;
  }
  task.initial_parameters(session.value()->initial_parameters());
  if (const Status started = session.value()->start(); !started) {
    spdlog::error("{}", started.error().message);
    return 1;
  }
  try {
    training_loop(*session.value(), task);
  } catch (const std::exception& trouble) {
    // A task is built on a library that throws; out of memory is what it throws most.
    const std::string reason = explain(trouble);
    spdlog::error("{}", reason);
    session.value()->leave(reason);
    return 1;
  }
  const auto farewell = session.value()->farewell();
  return farewell && farewell->outcome == RunOutcome::kFailed ? 1 : 0;
}

}  // namespace drover
