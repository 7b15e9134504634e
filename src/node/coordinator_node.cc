#include "node/coordinator_node.h"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <csignal>
#include <string>
#include <utility>

#include "node/clock.h"
#include "node/host.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(200);
// How long the last messages may take to be written.
constexpr Duration kFlushTimeout = std::chrono::seconds(1);

sigset_t handled_signals() {
  sigset_t all;
  sigemptyset(&all);
  for (const int number : {SIGINT, SIGTERM, kLauncherLostSignal}) sigaddset(&all, number);
  return all;
}

bool is_farewell(const Frame& frame) {
  const auto* control = std::get_if<Control>(&frame.payload);
  return control != nullptr && std::holds_alternative<Farewell>(*control);
}

}  // namespace

CoordinatorNode::CoordinatorNode(const CoordinatorNodeSettings& settings,
                                 std::unique_ptr<Policy> policy,
                                 const std::vector<RunObserver*>& observers, Upkeep upkeep)
    : upkeep_(std::move(upkeep)),
      signals_(loop_, SIGINT, SIGTERM, kLauncherLostSignal),
      timer_(loop_),
      wake_up_(
          loop_,
          [this] { work([&](CoordinatorOutput& out) { machine_.on_time(clock_now(), out); }); }),
      exits_(loop_, settings.exits_fd, [this](const ExitReport& report) { on_exit(report); }),
      workers_(settings.machine.workers),
      machine_(settings.machine, std::move(policy), clock_now()),
      recorder_(observers, settings.training_since,
                [this](const std::string& why) { fail(EndCause::kRecordFailed, why); }),
      before_(settings.machine.before),
      began_(clock_now()),
      launcher_(settings.launcher),
      keeper_(loop_, settings.checkpoints,
              [this](Version version, const Status& kept, Duration took) {
                work([&](CoordinatorOutput& out) {
                  machine_.on_checkpoint_kept(version, kept, took, clock_now(), out);
                });
              }),
      acceptor_(loop_, Listener::adopt(loop_, ::dup(settings.listening_fd)), settings.key,
                [this](const std::shared_ptr<Channel>& channel, const Hello& hello) {
                  return admit(channel, hello);
                }) {}

IncarnationEnd CoordinatorNode::run() {
  recorder_.record(
      PeerRecord{.peer = {Role::kCoordinator, 0}, .host = host_name(), .pid = ::getpid()});
  signals_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) return;
    if (number == kLauncherLostSignal) return fail_without_launcher();
    work([&](CoordinatorOutput& out) { machine_.on_interrupt(clock_now(), out); });
  });
  exits_.start();
  // The launcher may have died between two incarnations.
  boost::asio::post(loop_, [this] { lost_launcher(); });
  tick();
  const sigset_t handled = handled_signals();
  sigset_t before;
  ::pthread_sigmask(SIG_UNBLOCK, &handled, &before);
  loop_.run();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!machine_.restarts()) return {.end = recorder_.end(), .committed = {}};
  if (const auto& failure = recorder_.failure())
    return {.end = RunEnd{.outcome = RunOutcome::kFailed,
                          .cause = EndCause::kRecordFailed,
                          .reason = *failure},
            .committed = {}};
  return {
      .end = {}, .committed = machine_.committed(), .training_since = recorder_.training_since()};
}

Status CoordinatorNode::admit(const std::shared_ptr<Channel>& channel, const Hello& hello) {
  if (hello.role == Role::kWorker && hello.index == kAnyIndex)
    return offer_place(channel, hello.host);
  CoordinatorOutput out;
  Status admitted = machine_.on_hello(hello, clock_now(), out);
  if (!admitted) return admitted;
  const Peer id{hello.role, hello.index};
  // The machine has given up an earlier incarnation of the peer, whose connection may still be
  // open.
  if (const auto earlier = peers_.find(id); earlier != peers_.end())
    earlier->second.channel->close();
  peers_[id] = Member{channel, hello.pid, hello.host == host_name()};
  Channel::Callbacks callbacks;
  callbacks.on_control = [this, id](const Control& message) {
    Status status = done();
    work([&](CoordinatorOutput& answer) {
      status = machine_.on_message(id.role, id.index, message, clock_now(), answer);
    });
    return status;
  };
  callbacks.on_closed = [this, id](const Error& why) {
    peers_.erase(id);
    if (lost_launcher()) return;
    work([&](CoordinatorOutput& answer) {
      machine_.on_lost(id.role, id.index, disconnected(why.message), clock_now(), answer);
    });
  };
  channel->replace_callbacks(std::move(callbacks));
  carry_out(std::move(out));
  return done();
}

// The joiner reconnects as a worker when it has loaded its data.
Status CoordinatorNode::offer_place(const std::shared_ptr<Channel>& channel,
                                    const std::string& host) {
  auto place = machine_.offer_place(host, clock_now());
  if (!place) return place.error();
  channel->replace_callbacks({});
  channel->send(control_frame(std::move(place).value()));
  channel->close_when_sent();
  return done();
}

// When the launcher dies the kernel kills all its children. The reason of the run's end is then the
// launcher, not the first child whose connection ends.
bool CoordinatorNode::lost_launcher() {
  if (launcher_ < 0 || ::getppid() == launcher_) return false;
  fail_without_launcher();
  return true;
}

void CoordinatorNode::fail_without_launcher() {
  fail(EndCause::kLauncherLost, "lost the launcher: the process that started the run was killed");
}

void CoordinatorNode::fail(EndCause cause, const std::string& why) {
  work([&](CoordinatorOutput& out) { machine_.on_failure(cause, why, clock_now(), out); });
}

template <typename Work>
void CoordinatorNode::work(Work&& machine) {
  CoordinatorOutput out;
  machine(out);
  carry_out(std::move(out));
}

void CoordinatorNode::carry_out(CoordinatorOutput out) {
  for (Outgoing& message : out.messages) {
    const auto found = peers_.find({message.to.role, message.to.index});
    if (found == peers_.end()) continue;
    if (is_farewell(message.frame)) note_memory(found->first, found->second);
    found->second.channel->send(std::move(message.frame));
  }
  for (const RunRecord& record : out.records) {
    const auto* end = std::get_if<RunEnd>(&record);
    if (end == nullptr) {
      recorder_.record(record);
    } else {
      recorder_.note_memory({Role::kCoordinator, 0}, peak_memory_bytes(::getpid()));
      recorder_.record_end(*end);
    }
  }
  // The record is saved before the checkpoint is complete, so that a run that resumes from it has
  // no gap.
  if (!out.checkpoints.empty() && !leaving_) recorder_.check(upkeep_.save());
  for (CheckpointReady& ready : out.checkpoints) keeper_.keep(std::move(ready));
  if (machine_.ended() && !leaving_) leave();
  wake_up_.set(machine_.wake_at());
}

// Called before a peer is sent Farewell: its process may end at once.
void CoordinatorNode::note_memory(const Peer& id, const Member& member) {
  if (member.local) recorder_.note_memory(id, peak_memory_bytes(member.pid));
}

void CoordinatorNode::tick() {
  timer_.expires_after(kTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || leaving_) return;
    work([&](CoordinatorOutput& out) { machine_.on_tick(clock_now(), out); });
    if (!leaving_) upkeep_.show();
    if (!leaving_) recorder_.check(upkeep_.save());
    if (!leaving_) tick();
  });
}

void CoordinatorNode::on_exit(const ExitReport& report) {
  if (leaving_) return;
  const Peer& peer = report.peer;
  recorder_.record(
      EventRecord{.at = before_ + (clock_now() - began_),
                  .step = machine_.step(),
                  .peer = peer,
                  .payload = event::Exited{.exit = report.exit, .restarted = report.restarted}});
  // The loss of a worker that had joined is handled when its connection ends.
  if (report.restarted || peer.role != Role::kWorker || peer.index >= workers_) return;
  if (peers_.contains(peer)) return;
  work([&](CoordinatorOutput& out) {
    machine_.on_lost(peer.role, peer.index, {.cause = LossCause::kExited, .exit = report.exit},
                     clock_now(), out);
  });
}

void CoordinatorNode::leave() {
  leaving_ = true;
  stop_when_sent(clock_now() + kFlushTimeout);
}

void CoordinatorNode::stop_when_sent(TimePoint deadline) {
  bool idle = true;
  for (const auto& [id, peer] : peers_) idle = idle && peer.channel->idle();
  if (idle || clock_now() >= deadline) return loop_.stop();
  timer_.expires_after(std::chrono::milliseconds(5));
  timer_.async_wait(
      [this, deadline](const boost::system::error_code&) { stop_when_sent(deadline); });
}

InterruptionsHeld::InterruptionsHeld() {
  const sigset_t held = handled_signals();
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
}

InterruptionsHeld::~InterruptionsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

IncarnationEnd run_coordinator(const CoordinatorNodeSettings& settings,
                               std::unique_ptr<Policy> policy,
                               const std::vector<RunObserver*>& observers, const Upkeep& upkeep) {
  return CoordinatorNode(settings, std::move(policy), observers, upkeep).run();
}

}  // namespace drover
