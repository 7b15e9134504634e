#include "python/session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

#include "node/attempts.h"
#include "node/back_off.h"
#include "node/clock.h"
#include "node/host.h"
#include "python/bindings.h"

namespace drover {
namespace {

namespace py = pybind11;

// So often Ctrl-C is looked for.
constexpr Duration kPatience = std::chrono::milliseconds(100);

// A supervised run says to its workers how long to look for it when it is lost.
Duration rejoin_for() {
  const char* const seconds = std::getenv("DROVER_REJOIN_FOR");
  return std::chrono::seconds(seconds == nullptr ? 0 : std::atoi(seconds));
}

WorkerSettings settings_of(const std::string& address, const std::string& token, WorkerId rank,
                           const Learning& learning, uint32_t copiers) {
  auto key = parse_run_key(token);
  if (!key) throw Trouble(key.error().message);
  const char* const keys = std::getenv("DROVER_TLS");
  if (const Status loaded = use_tls(key.value(), keys != nullptr ? keys : ""); !loaded)
    throw Trouble("DROVER_TLS: " + loaded.error().message);
  // Whether memory is shared is for the shards to say; only those of this host are asked.
  const bool here = address.starts_with("unix:");
  const bool plain = !here && !address.starts_with("tcp:");  // host:port
  return {
      .identity = {Role::kWorker, rank, std::move(key).value(), plain ? "tcp:" + address : address},
      .own_part = false,
      .partial = false,
      .sharing = here ? Sharing::kIfPossible : Sharing::kNo,
      .learning = learning,
      .watch = copiers == 0,  // else the model has copies
      .copiers = copiers,
      .rejoin_for = rejoin_for(),
      .exit_when_over = false};
}

}  // namespace

PythonSession::PythonSession(const std::string& address, const std::string& token, WorkerId rank,
                             std::vector<TensorSpec> tensors, const Learning& learning,
                             uint32_t copiers)
    : layout_(std::move(tensors)), owner_(::getpid()) {
  keep_freed_memory();
  auto live = LiveSession::create(settings_of(address, token, rank, learning, copiers), layout_);
  if (!live) throw Trouble(live.error().message);
  live_ = std::move(live).value();
}

PythonSession::~PythonSession() {
  if (::getpid() != owner_) live_.release();
}

void PythonSession::wait(const std::function<bool(Duration)>& look) {
  for (;;) {
    bool enough = false;
    {
      const py::gil_scoped_release others;
      enough = look(kPatience);
    }
    if (enough) return;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

bool PythonSession::over() {
  const auto farewell = live_->farewell();
  return farewell && !(farewell->rejoin && rejoin_for() > Duration::zero());
}

// The script notices nothing but that the step is an earlier one.
void PythonSession::rejoin_if_lost() {
  auto farewell = live_->farewell();
  if (!farewell || over()) return;
  BackOff back_off(rejoin_for());
  while (farewell && farewell->rejoin) {
    const auto pause = back_off.next(clock_now(), random_fraction());
    if (!pause) throw Trouble("could not join the run: " + farewell->reason);
    const TimePoint until = clock_now() + *pause;
    wait([&](Duration patience) {
      std::this_thread::sleep_for(std::min(patience, until - clock_now()));
      return clock_now() >= until;
    });
    const Status started = live_->start();
    if (!started) {
      farewell->reason = started.error().message;
      continue;
    }
    wait([&](Duration patience) { return live_->wait_until_connected(patience); });
    farewell = live_->farewell();
  }
}

void PythonSession::start() {
  if (const Status started = live_->start(); !started) throw Trouble(started.error().message);
  wait([&](Duration patience) { return live_->wait_until_connected(patience); });
  rejoin_if_lost();  // the coordinator may have said to come again later
  const auto farewell = live_->farewell();
  if (farewell && farewell->outcome == RunOutcome::kFailed) throw Trouble(farewell->reason);
}

std::optional<Step> PythonSession::next_step() {
  std::optional<LiveSession::Waited> waited;
  do {
    rejoin_if_lost();
    live_->ask_for_step();
    wait([&](Duration patience) {
      waited = live_->wait_for_step(patience);
      return waited.has_value();
    });
  } while (*waited == LiveSession::Waited::kOver && !over());
  over_ = *waited == LiveSession::Waited::kOver;
  if (over_) return std::nullopt;
  return live_->step();
}

std::optional<std::pair<double, double>> PythonSession::wait_for_norm() {
  std::optional<LiveSession::Norm> norm;
  wait([&](Duration patience) {
    norm = live_->wait_for_norm(patience);
    return norm.has_value();
  });
  if (!norm->known) return std::nullopt;
  return std::pair(norm->norm.squares, norm->norm.largest);
}

std::optional<Version> PythonSession::fetch_average() {
  rejoin_if_lost();
  if (!live_->ask_for_average()) {
    throw Trouble(
        "the run has kept no parameters for evaluation yet: start it with --evaluate-every STEPS, "
        "and evaluate after the first so many steps");
  }
  std::optional<Version> version;
  wait([&](Duration patience) {
    version = live_->wait_for_average(patience);
    return version || live_->farewell();
  });
  return version;
}

void PythonSession::leave(const std::string& reason) {
  if (std::exchange(left_, true)) return;
  // A script that is done ends the run: what it has made of the model so far is the result.
  if (reason.empty() && !over_) live_->ask_for_length(live_->step());
  live_->leave(reason);
}

}  // namespace drover
