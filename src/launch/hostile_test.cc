// A real run on loopback with a hostile peer: first an unauthenticated one, then a member that
// breaks the protocol; over plain TCP, and over TLS. The run must complete with its honest workers.
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "launch/test_view.h"
#include "net/tls_keys.h"
#include "node/introduction.h"
#include "node/live_session.h"
#include "node/worker_node.h"
#include "store/run_reader.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr uint32_t kWorkers = 4;
constexpr WorkerId kHostile = 3;  // the others are honest
// A worker that crash-loops is quarantined, so the hostile peer uses another index and another host
// name each time.
constexpr uint32_t kIndices = 600;
constexpr Step kSteps = 30;
// Honest workers wait after so many gradients until the hostile peer has ended.
constexpr uint64_t kHeldAt = 10;
constexpr int kPatienceSeconds = 120;

// Memory that the processes share.
struct Board {
  sem_t hostile_ended;
  std::atomic<uint32_t> attacks;
  std::atomic<uint32_t> joined;     // memberships of the hostile peer, connected to all shards
  std::atomic<uint32_t> tls_leaks;  // answers that it got without the right certificate
};

const Layout& small_layout() {
  static const Layout layout(
      {{"large", 100'000, TensorKind::kTrained}, {"small", 17, TensorKind::kTrained}});
  return layout;
}

class SmallTask final : public Task {
 public:
  explicit SmallTask(Board& board) : board_(board) {}
  const Layout& layout() const override { return small_layout(); }
  void initial_parameters(std::span<float> parameters) override {
    std::fill(parameters.begin(), parameters.end(), 1.0F);
  }
  GradientReport gradient(std::span<const float> parameters, const Batch& batch,
                          std::span<float> gradient, GradientListener& listener) override {
    if (++gradients_ == kHeldAt) {
      timespec until{};
      ::clock_gettime(CLOCK_REALTIME, &until);
      until.tv_sec += kPatienceSeconds;
      ::sem_timedwait(&board_.hostile_ended, &until);
    }
    std::copy(parameters.begin(), parameters.end(), gradient.begin());
    for (const uint32_t tensor : {1U, 0U}) {
      if (!listener.tensor_ready(tensor)) return {};
    }
    return {.finished = true, .samples = batch.count, .loss = 1.0};
  }
  Evaluation evaluate(std::span<const float>) override { return {}; }
  Status save(std::span<const float>, const std::string&) override { return done(); }
  std::vector<std::pair<std::string, std::string>> describe() const override { return {}; }

 private:
  Board& board_;
  uint64_t gradients_ = 0;
};

std::string bytes_of(FrameHeader header, RunId run, const std::string& payload,
                     std::optional<uint32_t> claimed_length = {}) {
  header.run = run;
  header.length = claimed_length.value_or(static_cast<uint32_t>(payload.size()));
  const HeaderBytes encoded = encode_header(header);
  return std::string(reinterpret_cast<const char*>(encoded.data()), encoded.size()) + payload;
}

std::string bytes_of(const Control& message, RunId run) {
  return bytes_of({.type = FrameType::kControl}, run, encode_control(message));
}

// A message of every type.
std::vector<Control> every_message() {
  return {Hello{.role = Role::kWorker, .index = kHostile, .tensors = small_layout().tensors()},
          Hello{.role = Role::kShard, .index = 0, .address = "tcp:127.0.0.1:1"},
          Hello{.role = Role::kEvaluator},
          Hello{.role = Role::kCoordinator},
          Refusal{"no"},
          Plan{.workers = 1,
               .tensors = small_layout().tensors(),
               .blocks = plan_blocks(small_layout(), 1)},
          Welcome{.shards = {"tcp:127.0.0.1:1"}},
          PlaceOffer{.worker = 1, .job = "steps = 1"},
          Connected{},
          WantInitial{},
          Ready{},
          Decision{.step = 3, .cutoff = 1, .alive = {kHostile}},
          StepClosed{.step = 2, .arrivals = {{kHostile, Duration(1), 2}}, .digest = 1},
          StepReport{.step = ~Step{0}, .samples = 1, .loss = -1.0},
          Evaluated{.version = 1, .loss = 0.0, .accuracy = 1.0, .samples = 1},
          Farewell{.outcome = RunOutcome::kCompleted, .reason = "over"},
          Farewell{.outcome = RunOutcome::kFailed, .reason = "over"},
          Arrived{.step = 5, .arrivals = {{0, Duration(1), 5}}},
          Share{.from = 1, .first = 0, .count = 1, .total = 1},
          Abandoned{.step = 9'999, .resumed = 3, .wasted = Duration(-5)},
          PullShare{.from = 1, .share = 0.5},
          LearningRate{.from = 1, .rate = 0.5},
          Challenge{.nonce = make_nonce(), .proof = std::string(kProofBytes, 'p')}};
}

// Waits until the socket can be read from or written to. False: a timeout.
bool await(int socket, int16_t what) {
  pollfd waited{.fd = socket, .events = what, .revents = 0};
  return ::poll(&waited, 1, kPatienceSeconds * 1'000) == 1;
}

// The ClientHello of OpenSSL for a version of TLS.
std::string client_hello(int version) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_max_proto_version(context, version);
  SSL* const ssl = SSL_new(context);
  BIO* const sent = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), sent);
  SSL_connect(ssl);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(sent, &bytes);
  std::string hello(bytes, static_cast<size_t>(size));
  SSL_free(ssl);
  SSL_CTX_free(context);
  return hello;
}

// Whether the victim answers `bytes` of a TLS client that accepts every certificate. The client's
// own certificate is in the folder `keys`; "": it has none.
bool is_answered(const std::string& address, const std::string& keys, const std::string& bytes) {
  boost::asio::io_context loop{1};
  auto socket = connect_socket(loop, address, "the victim");
  if (!socket) return false;
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  if (!keys.empty()) {
    SSL_CTX_use_certificate_file(context, (keys + "/cert.pem").c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context, (keys + "/key.pem").c_str(), SSL_FILETYPE_PEM);
  }
  SSL* const ssl = SSL_new(context);
  const int fd = socket.value().native_handle();
  SSL_set_fd(ssl, fd);
  const auto retry = [&](auto&& attempt) {
    while (true) {
      const int result = attempt();
      const int wants = result > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl, result);
      if (result > 0) return true;
      if (wants != SSL_ERROR_WANT_READ && wants != SSL_ERROR_WANT_WRITE) return false;
      if (!await(fd, wants == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT)) return false;
    }
  };
  char answer = 0;
  const bool answered =
      retry([&] { return SSL_connect(ssl); }) &&
      retry([&] { return SSL_write(ssl, bytes.data(), static_cast<int>(bytes.size())); }) &&
      retry([&] { return SSL_read(ssl, &answer, 1); });
  SSL_free(ssl);
  SSL_CTX_free(context);
  return answered;
}

// A connection that sends any bytes, encrypted if the key has TLS.
class Line {
 public:
  Line(const std::string& address, const RunKey& key) : key_(key) {
    auto socket = connect_socket(loop_, address, "the victim");
    if (!socket) return;
    socket_.emplace(std::move(socket).value());
    const timeval patience{kPatienceSeconds, 0};
    ::setsockopt(socket_->native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (key.tls) tls_ = key.tls->session(Tls::Side::kConnects, socket_->native_handle());
  }

  void send(const std::string& bytes) {
    if (!tls_) return send_plainly(bytes);
    std::span<const std::byte> rest = std::as_bytes(std::span(bytes));
    while (!rest.empty() && retry([&] { return tls_->write(rest); }))
      rest = rest.subspan(tls_->bytes());
    retry([&] { return tls_->flush(); });
    sent_ += bytes;
  }
  // Without encryption, whatever the other end expects.
  void send_plainly(const std::string& bytes) {
    boost::system::error_code gone;
    if (socket_) boost::asio::write(*socket_, boost::asio::buffer(bytes), gone);
    sent_ += bytes;
  }
  void send(const Control& message) { send(bytes_of(message, key_.run)); }

  // The next control message; nothing at the end of the connection.
  std::optional<Control> receive() {
    HeaderBytes header{};
    while (socket_) {
      if (!read(header)) return {};
      const auto decoded = decode_header(header);
      if (!decoded) return {};
      std::vector<std::byte> payload(decoded.value().length);
      if (!read(payload)) return {};
      if (decoded.value().type != FrameType::kControl) continue;
      auto message = decode_control(payload);
      return message ? std::optional(std::move(message).value()) : std::nullopt;
    }
    return {};
  }
  template <typename Message>
  bool receive_until() {
    for (auto message = receive(); message; message = receive()) {
      if (const auto* found = std::get_if<Message>(&*message)) {
        last_ = *found;
        return true;
      }
    }
    return false;
  }
  const Control& last() const { return last_; }
  const std::string& sent() const { return sent_; }

  // The handshake of an honest member.
  bool handshake(Hello hello) {
    Nonces nonces{.acceptor = {}, .connector = make_nonce()};
    send(Challenge{.nonce = nonces.connector});
    if (!receive_until<Challenge>()) return false;
    nonces.acceptor = std::get<Challenge>(last_).nonce;
    send(Challenge{.proof = prove_connector(key_, nonces)});
    if (!receive_until<Challenge>()) return false;
    send(hello);
    return true;
  }

  void shut_down() {
    boost::system::error_code gone;
    if (tls_) tls_->close();
    if (socket_) socket_->shutdown(boost::asio::socket_base::shutdown_send, gone);
  }
  // Shuts down sending, and waits until the other end has closed.
  void end() {
    boost::system::error_code gone;
    if (!socket_) return;
    shut_down();
    std::array<char, 4096> rest{};
    while (!gone) socket_->read_some(boost::asio::buffer(rest), gone);
    socket_.reset();
  }

 private:
  // Repeats an attempt until it makes progress. False: the session has failed.
  template <typename Try>
  bool retry(Try&& attempt) {
    while (true) {
      const TlsSession::Progress progress = attempt();
      if (progress == TlsSession::Progress::kSome) return true;
      if (progress == TlsSession::Progress::kFailed) return false;
      const bool reads = progress == TlsSession::Progress::kWaitsRead;
      if (!await(socket_->native_handle(), reads ? POLLIN : POLLOUT)) return false;
    }
  }
  bool read(std::span<std::byte> into) {
    boost::system::error_code gone;
    if (!tls_) boost::asio::read(*socket_, boost::asio::buffer(into.data(), into.size()), gone);
    while (tls_ && !into.empty()) {
      if (!retry([&] { return tls_->read(into); })) return false;
      into = into.subspan(tls_->bytes());
    }
    return !gone;
  }

  const RunKey key_;
  boost::asio::io_context loop_{1};
  std::optional<Socket> socket_;
  std::unique_ptr<TlsSession> tls_;
  std::string sent_;
  Control last_;
};

class HostilePeer {
 public:
  // `keys`, `others`: folders with TLS files of the run's authority, and of another one.
  HostilePeer(const MemberIdentity& identity, Board& board, uint64_t seed, std::string keys,
              std::string others)
      : key_(identity.key),
        coordinator_(identity.coordinator),
        ours_(std::move(keys)),
        others_(std::move(others)),
        board_(board),
        random_(seed) {}

  void run() {
    ::signal(SIGPIPE, SIG_IGN);
    // With the right certificate there is an answer, so the lack of one below is significant.
    const std::string bytes = bytes_of(Challenge{.nonce = make_nonce()}, key_.run);
    if (key_.tls && !is_answered(coordinator_, ours_, bytes)) return;
    attack_unauthenticated(coordinator_);
    record_handshake();
    for (const std::string& shard : shards_) attack_unauthenticated(shard);
    replay();
    for (const Control& message : every_message()) {
      for (const Target target : {Target::kCoordinator, Target::kControl, Target::kBulk})
        attack_as_member(target, bytes_of(message, key_.run));
    }
    for (int type = 1; type <= 11; ++type) {
      for (const Target target : {Target::kCoordinator, Target::kControl, Target::kBulk})
        attack_as_member(target, random_frame(static_cast<FrameType>(type)));
    }
    for (int i = 0; i < 10; ++i) {
      attack_as_member(Target::kCoordinator, damaged());
      attack_as_member(Target::kControl, damaged());
      attack_as_member(Target::kBulk, noise());
    }
  }

 private:
  enum class Target : uint8_t { kCoordinator, kControl, kBulk };

  Hello hello(Lane lane) const {
    return {.role = Role::kWorker,
            .index = index_,
            .lane = lane,
            .host = "host" + std::to_string(index_),
            .pid = ::getpid()};
  }
  Hello first_hello() const {
    Hello first = hello(Lane::kControl);
    first.tensors = small_layout().tensors();
    return first;
  }

  // --- as an unauthenticated peer

  void attack_unauthenticated(const std::string& address) {
    if (key_.tls) break_handshakes(address);
    for (const Control& message : every_message()) attack(address, bytes_of(message, key_.run));
    for (int type = 1; type <= 11; ++type) {
      attack(address, random_frame(static_cast<FrameType>(type)));
      attack(address, bytes_of({.type = static_cast<FrameType>(type)}, key_.run, "few",
                               kUnauthenticatedBytesMax + 1));
      attack(address,
             bytes_of({.type = static_cast<FrameType>(type)}, key_.run, "few", kControlBytesMax));
    }
    for (int i = 0; i < 20; ++i) {
      attack(address, noise());
      attack(address, damaged());
    }
    attack(address, "");
    attack(address, "GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    for (int i = 0; i < 50; ++i) {
      silent_.push_back(std::make_unique<Line>(address, key_));
      ++board_.attacks;
    }
  }

  // Other bytes in place of a TLS handshake, parts of one, one of an old version, and one with a
  // certificate of another authority. None may get an answer behind it.
  void break_handshakes(const std::string& address) {
    for (int i = 0; i < 20; ++i) attack_plainly(address, noise());
    for (const Control& message : every_message())
      attack_plainly(address, bytes_of(message, key_.run));
    attack_plainly(address, "GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    const std::string hello = client_hello(TLS1_3_VERSION);
    for (size_t size = 1; size < hello.size(); size += 1 + random_() % 32)
      attack_plainly(address, hello.substr(0, size));
    attack_plainly(address, hello + noise());
    attack_plainly(address, hello + hello);
    for (int i = 0; i < 20; ++i) {
      std::string damaged = hello;
      damaged[random_() % damaged.size()] = static_cast<char>(random_());
      attack_plainly(address, damaged);
    }
    for (const int version : {TLS1_2_VERSION, TLS1_1_VERSION})
      attack_plainly(address, client_hello(version));
    // Run and token are right, but the certificate is of another authority, or missing.
    const std::string bytes = bytes_of(Challenge{.nonce = make_nonce()}, key_.run);
    for (const std::string& keys : {others_, std::string()}) {
      if (is_answered(address, keys, bytes)) ++board_.tls_leaks;
      ++board_.attacks;
    }
  }

  void attack_plainly(const std::string& address, const std::string& bytes) {
    RunKey plain = key_;
    plain.tls = nullptr;
    Line line(address, plain);
    line.send_plainly(bytes);
    line.shut_down();
    if (line.receive()) ++board_.tls_leaks;
    line.end();
    ++board_.attacks;
  }

  void attack(const std::string& address, const std::string& bytes) {
    Line line(address, key_);
    line.send(bytes);
    line.end();
    ++board_.attacks;
  }

  std::string noise() {
    std::string bytes(random_() % 3000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  // A valid message that is truncated, or has a few changed bytes.
  std::string damaged() {
    const std::vector<Control> all = every_message();
    std::string bytes = bytes_of(all[random_() % all.size()], key_.run);
    for (uint64_t left = 1 + random_() % 4; left > 0; --left)
      bytes[random_() % bytes.size()] = static_cast<char>(random_());
    if (random_() % 2 == 0) bytes.resize(random_() % bytes.size());
    return bytes;
  }
  std::string random_frame(FrameType type) {
    const size_t length = random_() % 2 == 0 ? 0 : random_() % 2000;
    return bytes_of({.type = type,
                     .flags = static_cast<uint16_t>(random_() % 8),
                     .step = random_() % 3 == 0 ? kInitialStep : random_() % 20,
                     .version = random_() % 20,
                     .worker = static_cast<WorkerId>(random_() % 5),
                     .block = static_cast<BlockId>(random_() % 6),
                     .samples = static_cast<uint32_t>(random_() % 100),
                     .place = static_cast<uint32_t>(random_())},
                    key_.run, std::string(length, '\x7f'));
  }

  // All that a member sent to join. replay() sends it again, to another challenge.
  void record_handshake() {
    Line line(coordinator_, key_);
    if (line.handshake(first_hello())) recorded_ = line.sent();
    if (line.receive_until<Welcome>()) shards_ = std::get<Welcome>(line.last()).shards;
    line.end();
  }
  void replay() {
    attack(coordinator_, recorded_);
    for (const std::string& shard : shards_) attack(shard, recorded_);
  }

  // --- as a member

  void attack_as_member(Target target, const std::string& bytes) {
    index_ = index_ + 1 < kWorkers + kIndices ? index_ + 1 : kWorkers;
    Line coordinator(coordinator_, key_);
    std::vector<std::unique_ptr<Line>> lanes;
    if (coordinator.handshake(first_hello()) && coordinator.receive_until<Welcome>()) {
      bool connected = true;
      for (const std::string& shard : std::get<Welcome>(coordinator.last()).shards) {
        for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
          lanes.push_back(std::make_unique<Line>(shard, key_));
          connected = lanes.back()->handshake(hello(lane)) && connected;
        }
        connected = connected && lanes[lanes.size() - 2]->receive_until<Connected>();
      }
      if (connected) coordinator.send(Ready{});
      if (connected) ++board_.joined;
    }
    const size_t lane = target == Target::kControl ? 0 : 1;
    if (target == Target::kCoordinator) coordinator.send(bytes);
    if (target != Target::kCoordinator && lane < lanes.size()) lanes[lane]->send(bytes);
    if (target != Target::kCoordinator && lane < lanes.size()) lanes[lane]->end();
    for (const auto& each : lanes) each->end();
    coordinator.end();
    ++board_.attacks;
  }

  const RunKey key_;
  const std::string coordinator_;
  const std::string ours_;
  const std::string others_;
  Board& board_;
  std::mt19937_64 random_;
  WorkerId index_ = kHostile;
  std::string recorded_;
  std::vector<std::string> shards_;
  std::vector<std::unique_ptr<Line>> silent_;
};

struct Parameters {
  uint64_t seed = 1;
  bool tls = false;
};

class HostileTest : public ::testing::TestWithParam<Parameters> {};

TEST_P(HostileTest, TheRunCompletesWithItsHonestWorkers) {
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Board& board = *new (memory) Board{};
  ASSERT_EQ(::sem_init(&board.hostile_ended, 1, 0), 0);
  std::string folder = std::filesystem::temp_directory_path() / "drover-hostile-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  Job job;
  job.cluster.workers = kWorkers;
  job.cluster.workers_max = kWorkers + kIndices;
  job.cluster.shards = 2;
  job.steps = kSteps;
  job.cluster.transport = Transport::kTcp;
  job.record.run_file = folder + "/run.db";
  if (GetParam().tls) {
    job.cluster.tls = folder + "/keys";
    ASSERT_TRUE(make_keys(job.cluster.tls, {}).ok());
    ASSERT_TRUE(make_keys(folder + "/others", {}).ok());
  }
  const WorkerFactory factory{.worker =
                                  [&](const WorkerSettings& settings) {
                                    SmallTask task(board);
                                    if (settings.identity.index != kHostile)
                                      return run_worker(settings, task);
                                    HostilePeer(settings.identity, board, GetParam().seed,
                                                job.cluster.tls, folder + "/others")
                                        .run();
                                    for (uint32_t i = 1; i < kWorkers; ++i)
                                      ::sem_post(&board.hostile_ended);
                                    return 0;
                                  },
                              .evaluator = nullptr};
  const int status =
      launch(job, factory, {.run_id = 77}, {.view = [] { return std::make_unique<SilentView>(); }});
  EXPECT_EQ(status, 0);
  EXPECT_GT(board.attacks.load(), 500U);
  EXPECT_GT(board.joined.load(), 50U) << "it joined the shards";
  EXPECT_EQ(board.tls_leaks.load(), 0U) << "only certificates of the run's authority get an answer";
  const auto reader = RunReader::open(job.record.run_file);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader.value().end().value().outcome, RunOutcome::kCompleted)
      << reader.value().end().value().reason;
  EXPECT_EQ(reader.value().steps().value().size(), kSteps);
  std::filesystem::remove_all(folder);
  ::munmap(memory, sizeof(Board));
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileTest,
                         ::testing::Values(Parameters{1}, Parameters{2}, Parameters{3},
                                           Parameters{1, true}, Parameters{2, true}),
                         [](const auto& hostility) {
                           return (hostility.param.tls ? "Tls" : "Plain") +
                                  std::to_string(hostility.param.seed);
                         });

}  // namespace
}  // namespace drover
