// MessagePort over MPI's point-to-point messages. Only this file includes MPI.
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "net/mpi/mpi_entry.h"

namespace drover {
namespace {

// How long to wait for the rest of a message that has begun to arrive when its receive is
// cancelled.
constexpr auto kRestOfMessage = std::chrono::seconds(2);

Error mpi_error(const std::string& what, int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Error{ErrorKind::kDisconnected, "MPI could not " + what + ": " + std::string(text)};
}

// A worker has a thread for connections, one that computes and one that ends the process. The lock
// admits one of them at a time (MPI_THREAD_SERIALIZED), so that Open MPI takes no locks of its own
// for every message, as it would with MPI_THREAD_MULTIPLE.
class MpiPort final : public MessagePort {
 public:
  static Result<std::shared_ptr<MessagePort>> open() {
    // With more ranks than cores, Open MPI yields the processor after every unsuccessful poll,
    // which is meant for programs that poll without pause. MessageCourier pauses by itself; with
    // the additional yields a step took six times as long.
    ::setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);
    int level = MPI_THREAD_SINGLE;
    if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
        code != MPI_SUCCESS)
      return mpi_error("begin", code);
    if (level < MPI_THREAD_SERIALIZED) {
      return system_error(
          "this MPI library may be called by one thread only (MPI_Init_thread gave level " +
          std::to_string(level) +
          "), and a worker has two. Use another MPI library, or --transport tcp");
    }
    // Failures are returned and reported by Drover. MPI's launcher handles ranks that die.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return std::shared_ptr<MessagePort>(
        new MpiPort(static_cast<uint32_t>(rank), static_cast<uint32_t>(ranks)));
  }

  uint32_t rank() const override { return rank_; }
  uint32_t ranks() const override { return ranks_; }

  uint32_t new_lane() override {
    const MutexLock lock(mutex_);
    lane_ = lane_ % kLaneMax + 1;
    return lane_;
  }

  Result<Ticket> begin_send(std::span<const std::byte> message, MessageAddress to) override {
    return begin(message.size(), false, "send a block to rank " + std::to_string(to.rank),
                 [&](int count, MPI_Request* request) {
                   return MPI_Isend(message.data(), count, MPI_BYTE, static_cast<int>(to.rank),
                                    static_cast<int>(to.lane), MPI_COMM_WORLD, request);
                 });
  }

  Result<Ticket> begin_receive(std::span<std::byte> into, MessageAddress from) override {
    return begin(into.size(), true, "receive a block from rank " + std::to_string(from.rank),
                 [&](int count, MPI_Request* request) {
                   return MPI_Irecv(into.data(), count, MPI_BYTE, static_cast<int>(from.rank),
                                    static_cast<int>(from.lane), MPI_COMM_WORLD, request);
                 });
  }

  Result<bool> has_ended(Ticket ticket) override {
    const MutexLock lock(mutex_);
    if (finished_) return false;
    const auto found = under_way_.find(ticket);
    int ended = 0;
    MPI_Status status{};
    const int code = MPI_Test(&found->second.request, &ended, &status);
    if (code == MPI_SUCCESS && ended == 0) return false;
    const Begun begun = std::move(found->second);
    under_way_.erase(found);
    if (code != MPI_SUCCESS) return mpi_error(begun.what, code);
    int bytes = begun.bytes;
    if (begun.receives) MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes == begun.bytes) return true;
    return Error{ErrorKind::kInvalidInput, "a block of " + std::to_string(bytes) +
                                               " bytes came where one of " +
                                               std::to_string(begun.bytes) + " was announced"};
  }

  void cancel_receive(Ticket receive) override {
    const MutexLock lock(mutex_);
    if (finished_) return;
    auto found = under_way_.extract(receive);
    MPI_Request& request = found.mapped().request;
    MPI_Cancel(&request);
    const auto until = std::chrono::steady_clock::now() + kRestOfMessage;
    for (int ended = 0; MPI_Test(&request, &ended, MPI_STATUS_IGNORE) == MPI_SUCCESS && ended == 0;
         std::this_thread::yield()) {
      if (std::chrono::steady_clock::now() < until) continue;
      std::fprintf(stderr,
                   "drover: could not %s: the message arrived only in part, and MPI cannot cancel "
                   "it\n",
                   found.mapped().what.c_str());
      ::_exit(1);
    }
  }

  void release_send(Ticket send, Memory memory) override {
    const MutexLock lock(mutex_);
    if (finished_) return;
    std::erase_if(released_sends_, [](ReleasedSend& each) {
      int ended = 0;
      return MPI_Test(&each.request, &ended, MPI_STATUS_IGNORE) == MPI_SUCCESS && ended != 0;
    });
    auto found = under_way_.extract(send);
    released_sends_.push_back({found.mapped().request, std::move(memory)});
  }

  void finish() override {
    const MutexLock lock(mutex_);
    if (std::exchange(finished_, true)) return;
    MPI_Finalize();
  }

 private:
  struct Begun {
    MPI_Request request = MPI_REQUEST_NULL;
    int bytes = 0;
    bool receives = false;
    std::string what;
  };
  struct ReleasedSend {
    MPI_Request request = MPI_REQUEST_NULL;
    Memory memory;
  };

  MpiPort(uint32_t rank, uint32_t ranks) : rank_(rank), ranks_(ranks) {}

  template <typename Call>
  Result<Ticket> begin(size_t bytes, bool receives, std::string what, Call&& call) {
    const MutexLock lock(mutex_);
    if (finished_) return Error{ErrorKind::kStopped, "could not " + what + ": the run is over"};
    if (bytes > static_cast<size_t>(std::numeric_limits<int>::max()))
      return system_error("could not " + what + ": it is too large for one message");
    Begun begun{.bytes = static_cast<int>(bytes), .receives = receives, .what = std::move(what)};
    const int code = call(begun.bytes, &begun.request);
    if (code != MPI_SUCCESS) return mpi_error(begun.what, code);
    under_way_.emplace(++ticket_, std::move(begun));
    return ticket_;
  }

  const uint32_t rank_;
  const uint32_t ranks_;
  Mutex mutex_;
  std::map<Ticket, Begun> under_way_ DROVER_GUARDED_BY(mutex_);
  std::vector<ReleasedSend> released_sends_ DROVER_GUARDED_BY(mutex_);
  Ticket ticket_ DROVER_GUARDED_BY(mutex_) = 0;
  uint32_t lane_ DROVER_GUARDED_BY(mutex_) = 0;
  bool finished_ DROVER_GUARDED_BY(mutex_) = false;
};

}  // namespace
}  // namespace drover

extern "C" __attribute__((visibility("default"))) void drover_open_mpi(
    drover::MpiRequest& request) {
  if (request.interface != drover::kMpiInterface) return;
  request.answer = drover::MpiPort::open();
}
