// Wrong input, damaged files and unauthenticated peers give a clear error on stderr, and no data is
// lost.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/event_text.h"
#include "core/test_text.h"
#include "support/drover_run.h"
#include "wire/control.h"
#include "wire/header.h"
#include "wire/limits.h"

namespace drover::testing_support {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Ne;
using ::testing::Not;
using ::testing::StartsWith;

// Runs `drover train` in `folder`, on small data by default.
Outcome train(const TemporaryFolder& folder, const Words& words) {
  return drover(Words{"train"} + words, folder.path());
}

void expect_error(const Words& words, const ::testing::Matcher<std::string>& error, int status) {
  const TemporaryFolder folder;
  const Outcome outcome = train(folder, words);
  EXPECT_EQ(outcome.status(), status) << outcome.err;
  EXPECT_THAT(outcome.err, error);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(names_in(folder.path()), IsEmpty()) << "nothing was started";
}

// --- command lines

TEST(WrongNames, AreAnsweredWithTheNearestKnownName) {
  expect_error({"--workrs", "3"}, AllOf(mentions("--workrs"), proposes("--workers")), 2);
  expect_error({"--policy", "snyc"}, AllOf(mentions("snyc"), proposes("sync")), 2);
  expect_error({"--optimizer", "adma"}, AllOf(mentions("adma"), proposes("adam")), 2);
  expect_error({"--model", "mpl", "--data", "generated"}, AllOf(mentions("mpl"), proposes("mlp")),
               1);
  expect_error({"--data", "genrated"}, AllOf(mentions("genrated"), proposes("generated")), 1);
  expect_error({"--slow", "wroker=1,factor=2"}, AllOf(mentions("wroker"), proposes("worker")), 2);
  expect_error({"--slow", "worker=9,factor=2"}, mentions("--slow", 9, 4), 2);
  expect_error({"--workers", "0"}, mentions("--workers", 0), 2);
  expect_error({"--steps", "many"}, mentions("--steps", "many"), 2);
  expect_error({"--lr", "nan"}, mentions("--lr"), 2);
}

TEST(WrongNames, IncludeCommands) {
  const TemporaryFolder folder;
  const Outcome outcome = drover({"trian"}, folder.path());
  EXPECT_EQ(outcome.status(), 2);
  EXPECT_THAT(outcome.err, AllOf(mentions("trian"), proposes("train")));
  EXPECT_EQ(drover({}, folder.path()).status(), 2);
}

TEST(JobFile, ErrorsNameLineAndKey) {
  const std::vector<std::pair<std::string, ::testing::Matcher<std::string>>> wrong = {
      {"workers = 3\nsteps = \"ten\"\n", mentions("job.toml:2:9", "steps", "ten")},
      {"workers = 3\nwrkers = 4\n", AllOf(mentions("job.toml:2:1", "wrkers"), proposes("workers"))},
      {"workers =\n", HasSubstr("job.toml:1:")},
      {"momentum = 1.5\n", mentions("job.toml:1:12", "momentum", "1.5")},
      {"\n\nbatch = 0\n", mentions("job.toml:3:9", "batch", 0)},
  };
  for (const auto& [text, error] : wrong) {
    const TemporaryFolder folder;
    std::ofstream(folder.file("job.toml")) << text;
    const Outcome outcome = train(folder, {"job.toml"});
    EXPECT_EQ(outcome.status(), 2);
    EXPECT_THAT(outcome.err, error);
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"job.toml"});
  }
  expect_error({"nowhere.toml"}, mentions("nowhere.toml"), 2);
}

// --- data

// Four IDX files of 3 x 3 images.
void write_idx(const std::string& folder, uint32_t images) {
  const auto big_endian = [](uint32_t value) {
    return std::string{static_cast<char>(value >> 24), static_cast<char>(value >> 16),
                       static_cast<char>(value >> 8), static_cast<char>(value)};
  };
  fs::create_directories(folder);
  for (const std::string part : {"train", "t10k"}) {
    std::ofstream pixels(folder + "/" + part + "-images-idx3-ubyte", std::ios::binary);
    pixels << big_endian(0x803) << big_endian(images) << big_endian(3) << big_endian(3);
    std::ofstream labels(folder + "/" + part + "-labels-idx1-ubyte", std::ios::binary);
    labels << big_endian(0x801) << big_endian(images);
    for (uint32_t i = 0; i < images; ++i) {
      pixels << std::string(9, static_cast<char>(i * 37));
      labels << static_cast<char>(i % 2);
    }
  }
}

Words idx_job() {
  return {"--model", "logistic", "--data",    "./idx", "--steps",    "3",
          "--batch", "2",        "--workers", "2",     "--run-file", "run.db"};
}

TEST(Data, FromTheUserIsRead) {
  const TemporaryFolder folder;
  write_idx(folder.file("idx"), 20);
  const Outcome outcome = train(folder, idx_job());
  EXPECT_EQ(outcome.status(), 0) << outcome.err;
  EXPECT_THAT(outcome.err, mentions(20, "1 x 3 x 3"));
}

TEST(Data, ErrorsNameMissingFiles) {
  expect_error({"--data", "./nowhere", "--model", "mlp"}, mentions("./nowhere"), 1);
  expect_error({"--data", "mnist", "--data-dir", "./empty", "--model", "mlp"},
               mentions("./empty", "drover data get mnist --data-dir ./empty"), 1);
}

TEST(Data, ErrorsNameTruncatedFilesAndTheFailedCheck) {
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                           "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    const TemporaryFolder folder;
    write_idx(folder.file("idx"), 20);
    const std::string path = folder.file("idx/" + std::string(name));
    const bool images = std::string(name).find("images") != std::string::npos;
    const int bytes = images ? 20 * 9 : 20;  // after the header
    fs::resize_file(path, fs::file_size(path) - 1);
    const Outcome outcome = train(folder, idx_job());
    EXPECT_EQ(outcome.status(), 1);
    EXPECT_THAT(outcome.err, mentions(name, bytes, bytes - 1)) << "file and check";
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"idx"}) << "no run was started";
  }
}

TEST(Data, ErrorsNameDamagedFiles) {
  const TemporaryFolder folder;
  write_idx(folder.file("idx"), 20);
  const std::string path = folder.file("idx/train-images-idx3-ubyte");
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.write("PK\x03\x04", 4);
  }
  const Outcome outcome = train(folder, idx_job());
  EXPECT_EQ(outcome.status(), 1);
  EXPECT_THAT(outcome.err, mentions("train-images-idx3-ubyte"));
}

// --- the run file

TEST(RunFile, IsNeverOverwritten) {
  const TemporaryFolder folder;
  const std::string content = "a file of the user";
  std::ofstream(folder.file("run.db")) << content;
  const Outcome outcome =
      train(folder, Words{"--run-file", "run.db", "--steps", "2"} + small_job());
  EXPECT_EQ(outcome.status(), 1);
  EXPECT_THAT(outcome.err, mentions("run.db"));
  EXPECT_EQ(content_of(folder.file("run.db")), content);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"run.db"});
}

TEST(RunFile, ThatCannotBeCreatedEndsTheRunBeforeTraining) {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("folder"));
  std::ofstream(folder.file("file")) << "x";
  const std::string too_long(300, 'n');
  for (const std::string& place : {std::string("folder"), std::string("file/run.db"), too_long}) {
    SCOPED_TRACE(place);
    const Outcome outcome =
        train(folder, Words{"--run-file", place, "--steps", "2", "--batch", "2"} + small_job());
    EXPECT_EQ(outcome.status(), 1) << to_text(outcome.ending);
    ASSERT_FALSE(outcome.err.empty());
    EXPECT_THAT(outcome.err.substr(outcome.err.rfind('\n', outcome.err.size() - 2) + 1),
                mentions(place, "--run-file"))
        << "one error message, and nothing after it: " << outcome.err;
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"file", "folder"}));
  }
}

TEST(RunFile, OnADiskThatFillsUpEndsTheRunAndStaysReadable) {
  const TemporaryFolder folder;
  // Limits files to 100 KB (the shell counts in units of 512 bytes), without the signal that kills.
  const Outcome outcome =
      drover_under("trap '' XFSZ; ulimit -f 200",
                   Words{"train", "--run-file", "run.db", "--steps", "1000000", "--batch", "1",
                         "--workers", "2", "--shards", "1", "--slow", "delay=2ms"} +
                       small_job("logistic"),
                   folder.path());
  EXPECT_EQ(outcome.status(), 1) << outcome.err;
  EXPECT_THAT(outcome.err, mentions("run.db"));
  const Result<RunReader> reader = RunReader::open(folder.file("run.db"));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  const auto steps = reader.value().steps().value();
  ASSERT_GT(steps.size(), 10U);
  EXPECT_EQ(steps.back().step, steps.size() - 1) << "no step is missing";
  EXPECT_NE(reader.value().end().value().outcome, RunOutcome::kCompleted);
  EXPECT_EQ(drover({"runs", "run.db"}, folder.path()).status(), 0);
}

TEST(RunFile, OnAFullDiskEndsEvenAShortRunWithAnError) {
  // At some limit in this range the run fails only when its end is written.
  for (int blocks = 90; blocks <= 200; blocks += 10) {
    SCOPED_TRACE(blocks);
    const TemporaryFolder folder;
    const Outcome outcome = drover_under("trap '' XFSZ; ulimit -f " + std::to_string(blocks),
                                         Words{"train", "--run-file", "run.db", "--steps", "3",
                                               "--batch", "1", "--workers", "1", "--shards", "1"} +
                                             small_job("logistic"),
                                         folder.path());
    const Result<RunReader> reader = RunReader::open(folder.file("run.db"));
    const bool completed = reader && reader.value().end() &&
                           reader.value().end().value().outcome == RunOutcome::kCompleted;
    EXPECT_EQ(outcome.status(), completed ? 0 : 1) << outcome.err;
    if (completed) break;  // larger limits change nothing
  }
}

// --- numbers

TEST(Diverging, EndsWithAdvice) {
  DroverRun run(small_job() +
                Words{"--lr", "999", "--steps", "500", "--batch", "16", "--workers", "2"});
  EXPECT_EQ(run.process().wait(kRunPatience).value(), (Ending{1, std::nullopt}));
  EXPECT_THAT(run.err(), mentions("--lr"));
  const RunReader reader = run.reader();
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kFailed);
  EXPECT_EQ(reader.end().value().cause, EndCause::kDiverged);
  EXPECT_GT(reader.totals().value().gradients_refused, 0U);
  EXPECT_THAT(run.out(), Not(HasSubstr("nan")));
}

// --- unauthenticated peers

TEST(Port, InUseIsAnErrorThatSaysSo) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const TemporaryFolder folder;
  const Outcome outcome = train(
      folder, Words{"--transport", "tcp", "--listen", "127.0.0.1:" + port, "--run-file", "run.db"} +
                  small_job());
  ::close(fd);
  EXPECT_EQ(outcome.status(), 1);
  EXPECT_THAT(outcome.err, mentions("127.0.0.1:" + port, "--listen"));
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

// The loopback ports on which `pid` listens.
std::vector<uint16_t> listening_ports(pid_t pid) {
  std::vector<uint16_t> ports;
  std::set<std::string> sockets;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code gone;
    sockets.insert(fs::read_symlink(entry.path(), gone).string());
  }
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::vector<std::string> columns;
    for (std::string word; words >> word;) columns.push_back(word);
    constexpr const char* kListening = "0A";
    if (columns.size() < 10 || columns[3] != kListening) continue;
    if (!sockets.contains("socket:[" + columns[9] + "]")) continue;
    const std::string port = columns[1].substr(columns[1].find(':') + 1);
    ports.push_back(static_cast<uint16_t>(std::stoul(port, nullptr, 16)));
  }
  return ports;
}

class UnauthenticatedPeer {
 public:
  explicit UnauthenticatedPeer(uint16_t port)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  UnauthenticatedPeer(const UnauthenticatedPeer&) = delete;
  UnauthenticatedPeer& operator=(const UnauthenticatedPeer&) = delete;
  ~UnauthenticatedPeer() { ::close(fd_); }

  void say(std::string_view bytes) const {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void say_no_more() const { ::shutdown(fd_, SHUT_WR); }

  // All bytes received until the connection is closed.
  std::string answer() const {
    std::string all;
    std::array<char, 4096> some;
    pollfd polled{fd_, POLLIN, 0};
    while (::poll(&polled, 1, static_cast<int>(kPatience.count())) > 0) {
      const ssize_t count = ::read(fd_, some.data(), some.size());
      if (count <= 0) return all;
      all.append(some.data(), static_cast<size_t>(count));
    }
    ADD_FAILURE() << "the connection was not closed";
    return all;
  }
  // The reason in the refusal, which follows a challenge.
  std::string refusal() const {
    const std::string all = answer();
    auto bytes = std::as_bytes(std::span(all));
    while (bytes.size() >= kHeaderBytes) {
      const auto header = decode_header(bytes.first<kHeaderBytes>());
      if (!header || bytes.size() < kHeaderBytes + header.value().length) return "(no frame)";
      const auto message = decode_control(bytes.subspan(kHeaderBytes, header.value().length));
      if (!message) return "(no message)";
      if (const auto* refusal = std::get_if<Refusal>(&message.value())) return refusal->reason;
      bytes = bytes.subspan(kHeaderBytes + header.value().length);
    }
    return "(no refusal)";
  }

 private:
  int fd_;
};

std::string text_of(const HeaderBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(UnauthenticatedPeers, GetTheReasonAndDoNotDisturbTheRun) {
  DroverRun run(small_job() + Words{"--workers", "3", "--shards", "2", "--steps", "8", "--batch",
                                    "4", "--transport", "tcp", "--slow", "delay=20ms", "--slow",
                                    "worker=1,steps=3,delay=600s"});
  run.wait_for_step(3);
  const auto processes = run.find_processes();
  // The step has been recorded when the progress line shows it.
  ASSERT_TRUE(run.process().wait_for_line(" 3/", kRunPatience).ok());
  const RunId run_id = run.reader().header().value().run_id;

  for (const char* name : {"coordinator", "shard 1"}) {
    SCOPED_TRACE(name);
    const std::vector<uint16_t> ports = listening_ports(processes.at(name));
    ASSERT_FALSE(ports.empty());
    for (const uint16_t port : ports) {
      const UnauthenticatedPeer silent(port);  // stays until the others have been served

      const UnauthenticatedPeer browser(port);
      browser.say(
          "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a browser that is lost\r\nAccept: "
          "*/*\r\n\r\n");
      EXPECT_THAT(browser.refusal(), mentions("drover"));

      const UnauthenticatedPeer brief(port);
      brief.say("hello?");
      brief.say_no_more();
      EXPECT_EQ(brief.refusal(), "(no refusal)");

      const UnauthenticatedPeer newer(port);
      HeaderBytes header = encode_header({.run = run_id});
      header[4] = std::byte{kProtocolVersion + 1};
      newer.say(text_of(header));
      EXPECT_THAT(newer.refusal(), mentions(kProtocolVersion + 1, kProtocolVersion));

      const UnauthenticatedPeer large(port);
      large.say(text_of(encode_header({.run = run_id, .length = 0xffff'ffff})));
      EXPECT_THAT(large.refusal(), mentions(0xffff'ffff));

      const UnauthenticatedPeer elsewhere(port);
      const std::string hello = encode_control(Hello{.role = Role::kWorker, .index = 1});
      const auto length = static_cast<uint32_t>(hello.size());
      elsewhere.say(text_of(encode_header({.run = run_id + 1, .length = length})) + hello);
      EXPECT_THAT(elsewhere.refusal(), mentions("--token-file", "DROVER_TOKEN"));

      const UnauthenticatedPeer hasty(port);
      hasty.say(text_of(encode_header({.run = run_id, .length = length})) + hello);
      const std::string without_greeting = hasty.refusal();
      EXPECT_THAT(without_greeting, Not(AnyOf(StartsWith("("), mentions("DROVER_TOKEN"))));

      const UnauthenticatedPeer impostor(port);
      for (const Challenge& challenge : {Challenge{.nonce = std::string(kNonceBytes, 'n')},
                                         Challenge{.proof = std::string(kProofBytes, 'p')}}) {
        const std::string answered = encode_control(challenge);
        impostor.say(text_of(encode_header(
                         {.run = run_id, .length = static_cast<uint32_t>(answered.size())})) +
                     answered);
      }
      EXPECT_THAT(impostor.refusal(), AllOf(Not(StartsWith("(")), Ne(without_greeting)));
    }
  }
  ::kill(processes.at("worker 1"), SIGKILL);  // the run continues
  EXPECT_EQ(run.process().wait(kRunPatience).value(), (Ending{0, std::nullopt})) << run.err();
  const RunReader reader = run.reader();
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kCompleted);
  EXPECT_EQ(reader.steps().value().size(), 8U);
  const auto events = reader.events().value();
  for (const EventRecord& event : events) {
    if (event.kind() == EventKind::kExited) continue;
    EXPECT_TRUE((!event.peer || event.peer == Peer{Role::kWorker, 1})) << event_line(event);
  }
}

}  // namespace
}  // namespace drover::testing_support
