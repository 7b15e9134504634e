// End-to-end tests of the live page and the report, with real runs.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <string>

#include "core/test_text.h"
#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A connection to a port of this machine.
class Browser {
 public:
  explicit Browser(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Browser() { ::close(fd_); }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  bool connected() const { return connected_; }
  void get(const std::string& target) {
    const std::string text = "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Reads until `part` is received. False if the connection ends before.
  bool read_to(const std::string& part) {
    while (text_.find(part) == std::string::npos) {
      if (!read_some()) return false;
    }
    return true;
  }
  // Reads until there is a warning after the text that was already read. False if the connection
  // ends before.
  bool read_to_next_warning() {
    const size_t from = text_.size();
    const std::regex warning(R"re("warning":"[^"])re");
    while (!std::regex_search(text_.substr(from), warning)) {
      if (!read_some()) return false;
    }
    return true;
  }
  std::string read_to_end() {
    while (read_some()) {
    }
    return text_;
  }

 private:
  bool read_some() {
    char buffer[16384];
    const ssize_t count = ::recv(fd_, buffer, sizeof buffer, 0);
    if (count > 0) text_.append(buffer, static_cast<size_t>(count));
    return count > 0;
  }

  int fd_;
  bool connected_ = false;
  std::string text_;
};

// The port in a line with an address such as http://127.0.0.1:8410/.
uint16_t port_in(const Result<std::string>& line) {
  EXPECT_TRUE(line.ok()) << (line.ok() ? "" : line.error().message);
  if (!line.ok()) return 0;
  const size_t colon = line.value().rfind(':');
  return static_cast<uint16_t>(std::stoi(line.value().substr(colon + 1)));
}

// A port of this machine that is in use.
class TakenPort {
 public:
  TakenPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { ::close(fd_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  std::string text() const { return std::to_string(port_); }

 private:
  int fd_;
  uint16_t port_ = 0;
};

TEST(TrainWithDashboard, IsSeenFromBeginningToEnd) {
  DroverRun run(small_job() + Words{"--steps", "300", "--workers", "2", "--dashboard", "0"});
  const uint16_t port = port_in(run.process().wait_for_line("http://127.0.0.1:"));
  Browser browser(port);
  ASSERT_TRUE(browser.connected());
  browser.get("/api/events");
  EXPECT_TRUE(browser.read_to("event: all\n"));
  const auto ending = run.process().wait(kRunPatience);
  ASSERT_TRUE(ending.ok()) << ending.error().message;
  EXPECT_EQ(ending.value().exit_code, 0) << run.err();
  EXPECT_THAT(browser.read_to_end(), HasSubstr("\"outcome\":\"completed\""));
  EXPECT_THAT(names_in(run.folder().path()), ElementsAre("run.db"));
  EXPECT_FALSE(Browser(port).connected()) << "no process serves it any more";
}

TEST(TrainWithMetrics, ServesThemDuringTheRun) {
  DroverRun run(small_job() + Words{"--steps", "1000000", "--workers", "2", "--metrics", "0"});
  const uint16_t port = port_in(run.process().wait_for_line("http://127.0.0.1:"));
  // The run file may not exist yet.
  std::string answer;
  while (answer.find("drover_steps_total") == std::string::npos) {
    Browser browser(port);
    ASSERT_TRUE(browser.connected());
    browser.get("/metrics");
    answer = browser.read_to_end();
    ASSERT_THAT(answer, HasSubstr("HTTP/1.1"));
  }
  EXPECT_THAT(answer, HasSubstr("# TYPE drover_steps_total counter"));
  run.process().signal_group(SIGINT);
  const auto ending = run.process().wait(kRunPatience);
  ASSERT_TRUE(ending.ok()) << ending.error().message;
  EXPECT_EQ(ending.value().exit_code, 130);
}

TEST(TrainWithDashboard, EndsInOrderWhenItIsInterrupted) {
  DroverRun run(small_job() + Words{"--steps", "1000000", "--workers", "2", "--dashboard", "0"});
  Browser browser(port_in(run.process().wait_for_line("http://127.0.0.1:")));
  browser.get("/api/events");
  EXPECT_TRUE(browser.read_to("event: update\n"));
  run.process().signal_group(SIGINT);
  EXPECT_THAT(browser.read_to_end(), HasSubstr("\"outcome\":\"interrupted\""));
  const auto ending = run.process().wait(kRunPatience);
  ASSERT_TRUE(ending.ok()) << ending.error().message;
  EXPECT_EQ(ending.value().exit_code, 130);
  EXPECT_THAT(names_in(run.folder().path()), ElementsAre("run.db"));
}

TEST(TrainWithDashboard, ContinuesWhenItsPageIsLost) {
  DroverRun run(small_job() + Words{"--steps", "1000", "--workers", "2", "--dashboard", "0"});
  Browser browser(port_in(run.process().wait_for_line("http://127.0.0.1:")));
  browser.get("/api/events");
  EXPECT_TRUE(browser.read_to("event: all\n"));
  const auto processes = run.find_processes();
  ASSERT_TRUE(processes.contains("page"));
  ::kill(processes.at("page"), SIGKILL);
  const auto ending = run.process().wait(kRunPatience);
  ASSERT_TRUE(ending.ok()) << ending.error().message;
  EXPECT_EQ(ending.value().exit_code, 0) << run.err();
}

TEST(TrainWithDashboard, EndsWithItsLauncher) {
  DroverRun run(small_job() + Words{"--steps", "1000000", "--workers", "2", "--dashboard", "0"});
  Browser browser(port_in(run.process().wait_for_line("http://127.0.0.1:")));
  browser.get("/api/events");
  EXPECT_TRUE(browser.read_to("event: all\n"));
  ASSERT_TRUE(run.find_processes().contains("page"));
  run.process().signal(SIGKILL);
  EXPECT_TRUE(run.all_processes_end());
}

TEST(TrainWithDashboard, DoesNotStartIfThePortIsInUse) {
  const TakenPort taken;
  const TemporaryFolder folder;
  const Outcome outcome =
      drover(Words{"train"} + small_job() + Words{"--dashboard", taken.text()}, folder.path());
  EXPECT_EQ(outcome.status(), 1);
  EXPECT_THAT(outcome.err, mentions(taken.text(), "--dashboard 0"));
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(TrainWithDashboard, TakesNoFileForAPort) {
  const TemporaryFolder folder;
  const Outcome outcome = drover({"train", "--dashboard", "job.toml"}, folder.path());
  EXPECT_EQ(outcome.status(), 2);
  EXPECT_THAT(outcome.err, mentions("'job.toml'", "--dashboard"));
}

// An experiment of one place and one variant, with two seeds.
class ExperimentWithDashboard : public ::testing::Test {
 protected:
  void SetUp() override {
    write("small.toml", R"([job]
model = "logistic"
data = "generated"
generated_samples = 256
workers = 4
shards = 1
batch = 4

[run_time]
kind = "lognormal"
mean = 1.0
deviation = 0.2
)");
    // Too many steps to end by itself.
    write("grid.toml", R"(target = "loss=1e-9"
seeds = [1, 2]

[common]
evaluate_every = 5
steps = 1000000000

[[place]]
name = "small"
scenario = "small.toml"

[[variant]]
name = "sync"
)");
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_.file(name), std::ios::binary) << content;
  }
  Process start(const std::string& port) const {
    auto process = Process::start(
        {.words = {DROVER_BINARY, "experiment", "grid.toml", "--jobs", "1", "--dashboard", port},
         .environment = {},
         .directory = folder_.path()});
    EXPECT_TRUE(process.ok());
    return std::move(process).value();
  }
  // The process of the cell that is running.
  static pid_t cell_of(const Process& experiment) {
    for (const pid_t child : children_of(experiment.pid())) {
      const std::string words = content_of("/proc/" + std::to_string(child) + "/cmdline");
      if (words.find(".db.part") != std::string::npos) return child;
    }
    return -1;
  }

  TemporaryFolder folder_;
};

TEST_F(ExperimentWithDashboard, ContinuesWithTheNextCellOnTheSameConnection) {
  Process experiment = start("0");
  const uint16_t port = port_in(experiment.wait_for_line("http://127.0.0.1:"));
  Browser browser(port);
  ASSERT_TRUE(browser.connected());
  browser.get("/api/events");
  ASSERT_TRUE(browser.read_to(R"("cell":{"number":1,"of":2,"title":"small / sync / seed 1"})"));
  const pid_t first = cell_of(experiment);
  ASSERT_GT(first, 0);
  ::kill(first, SIGKILL);  // it fails, and the next one starts
  ASSERT_TRUE(browser.read_to(R"("cell":{"number":2,"of":2,"title":"small / sync / seed 2"})"));
  experiment.signal(SIGINT);
  EXPECT_TRUE(browser.read_to_next_warning()) << "it was interrupted, and nothing of it is kept";
  const auto ending = experiment.wait(kRunPatience);
  ASSERT_TRUE(ending.ok()) << ending.error().message;
  EXPECT_EQ(ending.value().exit_code, 130);
  EXPECT_THAT(names_in(folder_.file("experiments/grid/cells")),
              ElementsAre("small-sync-1.cell", "small-sync-1.failed", "small-sync-1.log",
                          "small-sync-2.cell"));
  EXPECT_FALSE(Browser(port).connected()) << "no process serves it any more";
}

TEST_F(ExperimentWithDashboard, ShowsTheEndOfTheLastCell) {
  std::string text = content_of(folder_.file("grid.toml"));
  text.replace(text.find("[1, 2]"), 6, "[1]");
  text.insert(text.find("[[variant]]"),
              "[[place]]\nname = \"short\"\nscenario = \"small.toml\"\nset = { steps = 20 }\n\n");
  write("grid.toml", text);
  Process experiment = start("0");
  Browser browser(port_in(experiment.wait_for_line("http://127.0.0.1:")));
  browser.get("/api/events");
  ASSERT_TRUE(browser.read_to(R"("title":"small / sync / seed 1")"));
  ::kill(cell_of(experiment), SIGKILL);  // a browser is connected, so the short cell may start
  // It may have been too short to be seen running.
  EXPECT_TRUE(browser.read_to(R"("file":"experiments/grid/cells/short-sync-1.db")"));
  EXPECT_TRUE(browser.read_to(R"("outcome":"completed")"));
  const auto ending = experiment.wait(kRunPatience);
  ASSERT_TRUE(ending.ok()) << ending.error().message;
  EXPECT_THAT(names_in(folder_.file("experiments/grid/cells")),
              ElementsAre("short-sync-1.cell", "short-sync-1.db", "small-sync-1.cell",
                          "small-sync-1.failed", "small-sync-1.log"));
}

TEST_F(ExperimentWithDashboard, DoesNotStartIfThePortIsInUse) {
  const TakenPort taken;
  const Outcome outcome =
      drover({"experiment", "grid.toml", "--dashboard", taken.text()}, folder_.path());
  EXPECT_EQ(outcome.status(), 1);
  EXPECT_THAT(outcome.err, mentions(taken.text(), "--dashboard 0"));
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("grid.toml", "small.toml"));
}

TEST(Dashboard, ShowsAFinishedRunUntilItIsInterrupted) {
  const TemporaryFolder folder;
  ASSERT_EQ(drover(Words{"train"} + small_job() +
                       Words{"--steps", "20", "--workers", "2", "--run-file", "run.db"},
                   folder.path())
                .status(),
            0);
  auto process = Process::start({.words = {DROVER_BINARY, "dashboard", "run.db", "--port", "0"},
                                 .environment = {},
                                 .directory = folder.path()});
  ASSERT_TRUE(process.ok()) << process.error().message;
  const uint16_t port = port_in(process.value().wait_for_line("http://"));
  Browser page(port);
  page.get("/");
  EXPECT_THAT(page.read_to_end(), HasSubstr("id=\"drover-data\""));
  Browser step(port);
  step.get("/api/step/19");
  EXPECT_THAT(step.read_to_end(), HasSubstr("\"arrivals\":["));
  process.value().signal(SIGINT);
  const auto ending = process.value().wait();
  ASSERT_TRUE(ending.ok()) << ending.error().message;
  EXPECT_EQ(ending.value().exit_code, 0);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("run.db"));
}

TEST(Dashboard, ReportsFilesThatItCannotShow) {
  const TemporaryFolder folder;
  const Outcome missing = drover({"dashboard", "missing.db", "--port", "0"}, folder.path());
  EXPECT_EQ(missing.status(), 1);
  EXPECT_THAT(missing.err, mentions("missing.db"));
  const Outcome binary = drover({"dashboard", DROVER_BINARY, "--port", "0"}, folder.path());
  EXPECT_EQ(binary.status(), 1);
  EXPECT_THAT(binary.err, mentions(DROVER_BINARY));
}

TEST(Report, IsOneFileOfSeveralRuns) {
  const TemporaryFolder folder;
  for (const char* name : {"a.db", "b.db"}) {
    ASSERT_EQ(drover(Words{"train"} + small_job() +
                         Words{"--steps", "20", "--workers", "2", "--run-file", name},
                     folder.path())
                  .status(),
              0);
  }
  const Outcome html = drover({"report", "a.db", "b.db", "--out", "r.html"}, folder.path());
  EXPECT_EQ(html.status(), 0) << html.err;
  const std::string text = content_of(folder.file("r.html"));
  EXPECT_THAT(text, AllOf(HasSubstr("\"file\":\"a.db\""), HasSubstr("\"file\":\"b.db\""),
                          HasSubstr("\"steps_detail\":{\"0\":")));
  const Outcome short_one =
      drover({"report", "a.db", "b.db", "--format", "md", "--out", "r.md"}, folder.path());
  EXPECT_EQ(short_one.status(), 0) << short_one.err;
  EXPECT_THAT(content_of(folder.file("r.md")), HasSubstr("| steps | 20 | 20 |"));
  const Outcome over = drover({"report", "a.db", "--out", "b.db"}, folder.path());
  EXPECT_EQ(over.status(), 1);
  EXPECT_THAT(over.err, mentions("b.db"));
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a.db", "b.db", "r.html", "r.md"));
}

}  // namespace
}  // namespace drover::testing_support
