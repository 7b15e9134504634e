#include "node/coordinator_node.h"

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "node/alarm.h"
#include "node/channel.h"
#include "node/clock.h"
#include "node/exit_report.h"
#include "node/host.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(200);
// How long the last messages may take to leave.
constexpr Duration kGoodbyeTimeout = std::chrono::seconds(1);

sigset_t interruptions() {
  sigset_t all;
  sigemptyset(&all);
  for (const int number : {SIGINT, SIGTERM, kLauncherLostSignal}) sigaddset(&all, number);
  return all;
}

bool is_farewell(const Frame& frame) {
  const auto* control = std::get_if<Control>(&frame.payload);
  return control != nullptr && std::holds_alternative<Farewell>(*control);
}

class CoordinatorNode {
 public:
  CoordinatorNode(const CoordinatorNodeSettings& settings, std::unique_ptr<Policy> policy,
                  const std::vector<RunObserver*>& observers, Upkeep upkeep)
      : observers_(observers),
        upkeep_(std::move(upkeep)),
        signals_(loop_, SIGINT, SIGTERM, kLauncherLostSignal),
        timer_(loop_),
        exits_(loop_),
        workers_(settings.machine.workers),
        machine_(settings.machine, std::move(policy), clock_now()),
        before_(settings.machine.before),
        began_(clock_now()),
        launcher_(settings.launcher),
        training_since_(settings.training_since),
        keeper_(loop_, settings.checkpoints,
                [this](Version version, const Status& kept, Duration took) {
                  work([&](CoordinatorOutput& out) {
                    machine_.on_checkpoint_kept(version, kept, took, clock_now(), out);
                  });
                }),
        doorman_(loop_, Listener::adopt(loop_, ::dup(settings.listening_fd)), settings.key,
                 [this](const std::shared_ptr<Channel>& channel, const Hello& hello) {
                   return admit(channel, hello);
                 }) {
    if (settings.exits_fd >= 0) exits_.assign(::dup(settings.exits_fd));
  }

  CoordinatorLife run() {
    record(PeerRecord{.peer = {Role::kCoordinator, 0}, .host = host_name(), .pid = ::getpid()});
    signals_.async_wait([this](const boost::system::error_code& error, int number) {
      if (error) return;
      if (number == kLauncherLostSignal) return fail_without_launcher();
      work([&](CoordinatorOutput& out) { machine_.on_interrupt(clock_now(), out); });
    });
    if (exits_.is_open()) read_exits();
    // It may have died between two lives, when nobody was there to hear of it.
    boost::asio::post(loop_, [this] { lost_launcher(); });
    tick();
    const sigset_t heard = interruptions();
    sigset_t before;
    ::pthread_sigmask(SIG_UNBLOCK, &heard, &before);
    loop_.run();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!machine_.again()) return {.end = end_, .committed = {}};
    if (!failing_) {
      return {.end = {},
              .committed = machine_.committed(),
              .training_since = training_since_ ? training_since_ : training_here_};
    }
    return {.end = RunEnd{.outcome = RunOutcome::kFailed,
                          .cause = EndCause::kRecordFailed,
                          .reason = failure_},
            .committed = {}};
  }

 private:
  struct Connected {
    std::shared_ptr<Channel> channel;
    int64_t pid = 0;
    bool here = false;  // on this machine
  };

  Status admit(const std::shared_ptr<Channel>& channel, const Hello& hello) {
    if (hello.role == Role::kWorker && hello.index == kAnyIndex)
      return offer_place(channel, hello.host);
    CoordinatorOutput out;
    Status admitted = machine_.on_hello(hello, clock_now(), out);
    if (!admitted) return admitted;
    const Peer id{hello.role, hello.index};
    // An earlier life that was given up, but whose connection has not ended yet.
    if (const auto earlier = peers_.find(id); earlier != peers_.end())
      earlier->second.channel->close();
    peers_[id] = Connected{channel, hello.pid, hello.host == host_name()};
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

  // Somebody has only asked, and comes back when it has loaded what it needs.
  Status offer_place(const std::shared_ptr<Channel>& channel, const std::string& host) {
    auto place = machine_.offer_place(host, clock_now());
    if (!place) return place.error();
    channel->replace_callbacks({});
    channel->send(control_frame(std::move(place).value()));
    channel->close_when_sent();
    return done();
  }

  // A launcher that dies takes everybody with it; that, and not who went first, is why the run
  // ends.
  bool lost_launcher() {
    if (launcher_ < 0 || ::getppid() == launcher_) return false;
    fail_without_launcher();
    return true;
  }

  void fail_without_launcher() {
    work([&](CoordinatorOutput& out) {
      machine_.on_failure(EndCause::kLauncherLost,
                          "lost the launcher: the process that started the run was killed",
                          clock_now(), out);
    });
  }

  template <typename Work>
  void work(Work&& machine) {
    CoordinatorOutput out;
    machine(out);
    carry_out(std::move(out));
  }

  void carry_out(CoordinatorOutput out) {
    for (Outgoing& message : out.messages) {
      const auto found = peers_.find({message.to.role, message.to.index});
      if (found == peers_.end()) continue;
      if (is_farewell(message.frame)) note_memory(found->first, found->second);
      found->second.channel->send(std::move(message.frame));
    }
    for (const Happening& happening : out.happenings) {
      const auto* end = std::get_if<RunEnd>(&happening);
      if (end == nullptr) record(happening);
      if (end != nullptr) record_end(*end);
    }
    // What led to a checkpoint is in the record before it is one: a run that goes on from it has no
    // gap.
    if (!out.checkpoints.empty() && !leaving_) check(upkeep_.save());
    for (CheckpointReady& ready : out.checkpoints) keeper_.keep(std::move(ready));
    if (machine_.ended() && !leaving_) leave();
    review_.set(machine_.wake_at());
  }

  // Memory is read when somebody is told that the run is over: later it would be gone.
  void note_memory(const Peer& id, const Connected& peer) {
    if (peer.here) memory_[id] = peak_memory_bytes(peer.pid);
  }

  void record(const Happening& happening) {
    if (!training_here_ && std::holds_alternative<DecisionRecord>(happening))
      training_here_ = clock_now();
    for (RunObserver* observer : observers_) check(tell(happening, *observer));
  }
  void record_end(RunEnd end) {
    memory_[{Role::kCoordinator, 0}] = peak_memory_bytes(::getpid());
    end.memory_bytes.assign(memory_.begin(), memory_.end());
    // A run that has started over has taken as long as all of it took.
    if (training_since_) end.elapsed += training_here_.value_or(clock_now()) - *training_since_;
    for (RunObserver* observer : observers_) {
      note_failure(end);
      check(observer->on_end(end));
    }
    note_failure(end);
    end_ = end;
  }
  // A run that could not be recorded to its end has not completed, whatever was trained.
  void note_failure(RunEnd& end) const {
    if (!failing_ || end.outcome == RunOutcome::kFailed) return;
    end.outcome = RunOutcome::kFailed;
    end.cause = EndCause::kRecordFailed;
    end.reason = failure_;
  }

  void check(const Status& status) {
    if (status || failing_) return;
    failing_ = true;  // the failure itself is told to the same observers
    failure_ = status.error().message;
    work([&](CoordinatorOutput& out) {
      machine_.on_failure(EndCause::kRecordFailed, status.error().message, clock_now(), out);
    });
  }

  void tick() {
    timer_.expires_after(kTick);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error || leaving_) return;
      work([&](CoordinatorOutput& out) { machine_.on_tick(clock_now(), out); });
      if (!leaving_) upkeep_.show();
      if (!leaving_) check(upkeep_.save());
      if (!leaving_) tick();
    });
  }

  void read_exits() {
    boost::asio::async_read(exits_, boost::asio::buffer(exit_bytes_),
                            [this](const boost::system::error_code& error, size_t) {
                              if (error || leaving_) return;
                              on_exit(read_exit_report(exit_bytes_));
                              read_exits();
                            });
  }

  void on_exit(const ExitReport& report) {
    const Peer& peer = report.peer;
    record(
        EventRecord{.at = before_ + (clock_now() - began_),
                    .step = machine_.step(),
                    .peer = peer,
                    .payload = event::Exited{.exit = report.exit, .restarted = report.restarted}});
    // Who has been here is missed when its connection ends; who has not, only now.
    if (report.restarted || peer.role != Role::kWorker || peer.index >= workers_) return;
    if (peers_.contains(peer)) return;
    work([&](CoordinatorOutput& out) {
      machine_.on_lost(peer.role, peer.index, {.cause = LossCause::kExited, .exit = report.exit},
                       clock_now(), out);
    });
  }

  // Waits until everybody has been told, but not for long, and stops.
  void leave() {
    leaving_ = true;
    const TimePoint deadline = clock_now() + kGoodbyeTimeout;
    wait_for_goodbyes(deadline);
  }

  void wait_for_goodbyes(TimePoint deadline) {
    bool idle = true;
    for (const auto& [id, peer] : peers_) idle = idle && peer.channel->idle();
    if (idle || clock_now() >= deadline) return loop_.stop();
    timer_.expires_after(std::chrono::milliseconds(5));
    timer_.async_wait(
        [this, deadline](const boost::system::error_code&) { wait_for_goodbyes(deadline); });
  }

  const std::vector<RunObserver*> observers_;
  const Upkeep upkeep_;
  boost::asio::io_context loop_{1};
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  // A step is to be decided again.
  Alarm review_{
      loop_, [this] { work([&](CoordinatorOutput& out) { machine_.on_time(clock_now(), out); }); }};
  boost::asio::posix::stream_descriptor exits_;
  ExitReportBytes exit_bytes_{};
  const uint32_t workers_;
  Coordinator machine_;
  const Duration before_;
  const TimePoint began_;
  const pid_t launcher_;
  const std::optional<TimePoint> training_since_;  // in an earlier life
  std::optional<TimePoint> training_here_;         // in this one
  CheckpointKeeper keeper_;
  std::map<Peer, Connected> peers_;
  std::map<Peer, uint64_t> memory_;
  Doorman doorman_;
  RunEnd end_;
  bool leaving_ = false;
  bool failing_ = false;
  std::string failure_;  // why
};

}  // namespace

InterruptionsHeld::InterruptionsHeld() {
  const sigset_t held = interruptions();
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
}

InterruptionsHeld::~InterruptionsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

CoordinatorLife run_coordinator(const CoordinatorNodeSettings& settings,
                                std::unique_ptr<Policy> policy,
                                const std::vector<RunObserver*>& observers, const Upkeep& upkeep) {
  return CoordinatorNode(settings, std::move(policy), observers, upkeep).run();
}

}  // namespace drover
