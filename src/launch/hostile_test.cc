// A real run on loopback, one of whose peers is hostile: first a stranger, then a member that
// breaks every rule; over plain TCP, and through the encrypted door. The run must complete with the
// others.
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
// Who comes and goes all the time is kept out, so the hostile comes under other names, each time as
// if from another host.
constexpr uint32_t kNames = 600;
constexpr Step kSteps = 30;
constexpr uint64_t kHeldAt = 10;  // gradients; then honest workers wait until the hostile has ended
constexpr int kPatienceSeconds = 120;

// What the processes share.
struct Board {
  sem_t hostile_ended;
  std::atomic<uint32_t> attacks;
  std::atomic<uint32_t> joined;    // times that the hostile was let in, up to the shards
  std::atomic<uint32_t> let_past;  // times that it was spoken to without the right certificate
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

// Everything that can be said.
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

// Waits until the other end can be read from or written to, but not for ever.
bool await(int socket, int16_t what) {
  pollfd waited{.fd = socket, .events = what, .revents = 0};
  return ::poll(&waited, 1, kPatienceSeconds * 1'000) == 1;
}

// What a client of OpenSSL's sends first: of this version, or an older one.
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

// Whether anything is answered to these words of somebody who believes every certificate, and shows
// that of a folder with keys; "": none.
bool is_answered(const std::string& address, const std::string& keys, const std::string& words) {
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
  const auto go_on = [&](auto&& attempt) {
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
      go_on([&] { return SSL_connect(ssl); }) &&
      go_on([&] { return SSL_write(ssl, words.data(), static_cast<int>(words.size())); }) &&
      go_on([&] { return SSL_read(ssl, &answer, 1); });
  SSL_free(ssl);
  SSL_CTX_free(context);
  return answered;
}

// A connection on which anything at all can be said: encrypted, if the key has something to do it
// with.
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

  void say(const std::string& bytes) {
    if (!tls_) return say_plainly(bytes);
    std::span<const std::byte> rest = std::as_bytes(std::span(bytes));
    while (!rest.empty() && go_on([&] { return tls_->write(rest); }))
      rest = rest.subspan(tls_->bytes());
    go_on([&] { return tls_->flush(); });
    said_ += bytes;
  }
  // Without encryption, whatever the other end expects.
  void say_plainly(const std::string& bytes) {
    boost::system::error_code gone;
    if (socket_) boost::asio::write(*socket_, boost::asio::buffer(bytes), gone);
    said_ += bytes;
  }
  void say(const Control& message) { say(bytes_of(message, key_.run)); }

  // The next frame that is a control message; nothing at the end of the connection.
  std::optional<Control> hear() {
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
  bool hear_until() {
    for (auto heard = hear(); heard; heard = hear()) {
      if (const auto* found = std::get_if<Message>(&*heard)) {
        last_ = *found;
        return true;
      }
    }
    return false;
  }
  const Control& last() const { return last_; }
  const std::string& said() const { return said_; }

  // As an honest member.
  bool greet(Hello hello) {
    Nonces nonces{.acceptor = {}, .connector = make_nonce()};
    say(Challenge{.nonce = nonces.connector});
    if (!hear_until<Challenge>()) return false;
    nonces.acceptor = std::get<Challenge>(last_).nonce;
    say(Challenge{.proof = prove_connector(key_, nonces)});
    if (!hear_until<Challenge>()) return false;
    say(hello);
    return true;
  }

  void say_no_more() {
    boost::system::error_code gone;
    if (tls_) tls_->close();
    if (socket_) socket_->shutdown(boost::asio::socket_base::shutdown_send, gone);
  }
  // Says no more, and waits until the other end has heard it all and closed.
  void end() {
    boost::system::error_code gone;
    if (!socket_) return;
    say_no_more();
    std::array<char, 4096> rest{};
    while (!gone) socket_->read_some(boost::asio::buffer(rest), gone);
    socket_.reset();
  }

 private:
  // Until it has got somewhere.
  template <typename Try>
  bool go_on(Try&& attempt) {
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
      if (!go_on([&] { return tls_->read(into); })) return false;
      into = into.subspan(tls_->bytes());
    }
    return !gone;
  }

  const RunKey key_;
  boost::asio::io_context loop_{1};
  std::optional<Socket> socket_;
  std::unique_ptr<TlsSession> tls_;
  std::string said_;
  Control last_;
};

class Hostile {
 public:
  // `keys`, `others`: files for TLS of the run's authority, and of another's.
  Hostile(const MemberIdentity& identity, Board& board, uint64_t seed, std::string keys,
          std::string others)
      : key_(identity.key),
        coordinator_(identity.coordinator),
        ours_(std::move(keys)),
        others_(std::move(others)),
        board_(board),
        random_(seed) {}

  void run() {
    ::signal(SIGPIPE, SIG_IGN);
    // Whoever shows the right certificate is answered: the others' silence means something.
    const std::string words = bytes_of(Challenge{.nonce = make_nonce()}, key_.run);
    if (key_.tls && !is_answered(coordinator_, ours_, words)) return;
    strange(coordinator_);
    record_greeting();
    for (const std::string& shard : shards_) strange(shard);
    replay();
    for (const Control& message : every_message()) {
      for (const Target target : {Target::kCoordinator, Target::kControl, Target::kBulk})
        betray(target, bytes_of(message, key_.run));
    }
    for (int type = 1; type <= 11; ++type) {
      for (const Target target : {Target::kCoordinator, Target::kControl, Target::kBulk})
        betray(target, random_frame(static_cast<FrameType>(type)));
    }
    for (int i = 0; i < 10; ++i) {
      betray(Target::kCoordinator, damaged());
      betray(Target::kControl, damaged());
      betray(Target::kBulk, noise());
    }
  }

 private:
  enum class Target : uint8_t { kCoordinator, kControl, kBulk };

  Hello hello(Lane lane) const {
    return {.role = Role::kWorker,
            .index = name_,
            .lane = lane,
            .host = "host" + std::to_string(name_),
            .pid = ::getpid()};
  }
  Hello first_hello() const {
    Hello first = hello(Lane::kControl);
    first.tensors = small_layout().tensors();
    return first;
  }

  // --- as a stranger

  void strange(const std::string& address) {
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

  // Something else in place of a handshake, parts of one, an old one, and one with a certificate of
  // another authority: nobody is spoken to behind it.
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
    // Run and token are right, but not the certificate; or there is none.
    const std::string words = bytes_of(Challenge{.nonce = make_nonce()}, key_.run);
    for (const std::string& keys : {others_, std::string()}) {
      if (is_answered(address, keys, words)) ++board_.let_past;
      ++board_.attacks;
    }
  }

  void attack_plainly(const std::string& address, const std::string& bytes) {
    RunKey plain = key_;
    plain.tls = nullptr;
    Line line(address, plain);
    line.say_plainly(bytes);
    line.say_no_more();
    if (line.hear()) ++board_.let_past;
    line.end();
    ++board_.attacks;
  }

  void attack(const std::string& address, const std::string& bytes) {
    Line line(address, key_);
    line.say(bytes);
    line.end();
    ++board_.attacks;
  }

  std::string noise() {
    std::string bytes(random_() % 3000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  // What was meant well, cut off or with a few bytes changed.
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

  // All that a member said to get in, and says again to another challenge.
  void record_greeting() {
    Line line(coordinator_, key_);
    if (line.greet(first_hello())) recorded_ = line.said();
    if (line.hear_until<Welcome>()) shards_ = std::get<Welcome>(line.last()).shards;
    line.end();
  }
  void replay() {
    attack(coordinator_, recorded_);
    for (const std::string& shard : shards_) attack(shard, recorded_);
  }

  // --- as a member

  void betray(Target target, const std::string& bytes) {
    name_ = name_ + 1 < kWorkers + kNames ? name_ + 1 : kWorkers;
    Line coordinator(coordinator_, key_);
    std::vector<std::unique_ptr<Line>> lanes;
    if (coordinator.greet(first_hello()) && coordinator.hear_until<Welcome>()) {
      bool in = true;
      for (const std::string& shard : std::get<Welcome>(coordinator.last()).shards) {
        for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
          lanes.push_back(std::make_unique<Line>(shard, key_));
          in = lanes.back()->greet(hello(lane)) && in;
        }
        in = in && lanes[lanes.size() - 2]->hear_until<Connected>();
      }
      if (in) coordinator.say(Ready{});
      if (in) ++board_.joined;
    }
    const size_t lane = target == Target::kControl ? 0 : 1;
    if (target == Target::kCoordinator) coordinator.say(bytes);
    if (target != Target::kCoordinator && lane < lanes.size()) lanes[lane]->say(bytes);
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
  WorkerId name_ = kHostile;
  std::string recorded_;
  std::vector<std::string> shards_;
  std::vector<std::unique_ptr<Line>> silent_;
};

struct Hostility {
  uint64_t seed = 1;
  bool tls = false;
};

class HostileTest : public ::testing::TestWithParam<Hostility> {};

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
  job.cluster.workers_max = kWorkers + kNames;
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
                                    Hostile(settings.identity, board, GetParam().seed,
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
  EXPECT_GT(board.joined.load(), 50U) << "it was let in as far as the shards";
  EXPECT_EQ(board.let_past.load(), 0U) << "only our authority's certificates are spoken to";
  const auto reader = RunReader::open(job.record.run_file);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader.value().end().value().outcome, RunOutcome::kCompleted)
      << reader.value().end().value().reason;
  EXPECT_EQ(reader.value().steps().value().size(), kSteps);
  std::filesystem::remove_all(folder);
  ::munmap(memory, sizeof(Board));
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileTest,
                         ::testing::Values(Hostility{1}, Hostility{2}, Hostility{3},
                                           Hostility{1, true}, Hostility{2, true}),
                         [](const auto& hostility) {
                           return (hostility.param.tls ? "Tls" : "Plain") +
                                  std::to_string(hostility.param.seed);
                         });

}  // namespace
}  // namespace drover
