// The dashboard's server, over real sockets on loopback.
#include "view/page_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "view/page_asset.h"
#include "view/random_run.h"

namespace drover {
namespace {

using boost::asio::ip::tcp;
using nlohmann::json;

PageListener listener_on(const PageAddress& address) {
  auto listener = PageListener::open(address, "--port");
  EXPECT_TRUE(listener.ok()) << (listener.ok() ? "" : listener.error().message);
  return std::move(listener).value();
}

// Polls and publishes as often as possible.
PageServerSettings at_once(PageServerSettings settings = {}) {
  settings.poll_every = std::chrono::milliseconds(5);
  settings.publish_every = std::chrono::milliseconds(1);
  return settings;
}

class Served {
 public:
  explicit Served(RunChooser choose, const PageServerSettings& settings = {},
                  const std::string& token = "")
      : Served(listener_on({.port = 0, .token = token}), std::move(choose), settings) {}
  explicit Served(const std::string& run_file, const PageServerSettings& settings = {},
                  const std::string& token = "")
      : Served(only_run(run_file), settings, token) {}
  ~Served() { stop(); }

  void stop() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  uint16_t port() const { return port_; }

 private:
  Served(PageListener listener, RunChooser choose, const PageServerSettings& settings)
      : port_(listener.port()),
        server_(std::move(listener), std::move(choose), at_once(settings)),
        thread_([this] { server_.serve(); }) {}

  const uint16_t port_;
  PageServer server_;
  std::thread thread_;
};

// A connection whose reads time out.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(loop_) {
    socket_.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  void send(const std::string& text) {
    boost::system::error_code ignored;  // a server may answer before it has read everything
    boost::asio::write(socket_, boost::asio::buffer(text), ignored);
  }
  void get(const std::string& target, const std::string& headers = "") {
    send("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  }
  // Everything up to and including `mark`; all input if the connection ends before.
  std::string read_to(const std::string& mark) {
    size_t found = 0;
    while ((found = read_.find(mark)) == std::string::npos) {
      if (!read_some()) return std::exchange(read_, "");
    }
    const std::string text = read_.substr(0, found + mark.size());
    read_.erase(0, text.size());
    return text;
  }
  // Waits until there is something to read.
  void wait() { socket_.wait(tcp::socket::wait_read); }
  std::string read_to_end() {
    while (read_some()) {
    }
    return std::exchange(read_, "");
  }
  // The next event of that name; skips comments and other events.
  json event(const std::string& name) {
    while (true) {
      const std::string text = read_to("\n\n");
      const std::string begin = "event: " + name + "\ndata: ";
      const size_t found = text.find(begin);  // what comes before is the answer's head
      if (found != std::string::npos) return json::parse(text.substr(found + begin.size()));
      if (text.empty()) {
        ADD_FAILURE() << "the connection ended before an event '" << name << "'";
        return nullptr;
      }
    }
  }

 private:
  bool read_some() {
    char buffer[65536];
    boost::system::error_code trouble;
    const size_t count = socket_.read_some(boost::asio::buffer(buffer), trouble);
    read_.append(buffer, count);
    return !trouble;
  }

  boost::asio::io_context loop_;
  tcp::socket socket_;
  std::string read_;
};

struct Answer {
  int status = 0;
  std::string head;
  std::string body;
};

Answer answer_to(uint16_t port, const std::string& request) {
  Client client(port);
  client.send(request);
  const std::string text = client.read_to_end();
  const size_t blank = text.find("\r\n\r\n");
  Answer answer;
  if (blank == std::string::npos) return answer;
  answer.head = text.substr(0, blank);
  answer.body = text.substr(blank + 4);
  answer.status = std::stoi(answer.head.substr(answer.head.find(' ') + 1));
  return answer;
}
Answer get(uint16_t port, const std::string& target, const std::string& headers = "") {
  return answer_to(port, "GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers + "\r\n");
}

TEST(PageServer, ServesThePage) {
  const TempFolder folder;
  const Served served(random_run_file(folder, 1, 3, 20));
  const Answer answer = get(served.port(), "/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, page_html());
  for (const char* header :
       {"Content-Type: text/html", "Cache-Control: no-store", "X-Content-Type-Options: nosniff",
        "Content-Security-Policy: default-src 'self' 'unsafe-inline' data:"})
    EXPECT_NE(answer.head.find(header), std::string::npos) << header << " in\n" << answer.head;
}

TEST(PageServer, ServesMetricsIfEnabled) {
  const TempFolder folder;
  const std::string run = folder.file("run.db");
  EXPECT_EQ(get(Served(run).port(), "/metrics").status, 404);
  const Served served(run, {.metrics = true});
  EXPECT_EQ(get(served.port(), "/metrics").status, 503) << "there is no file yet";
  const auto writer = writer_at(run);
  for (Step step = 0; step < 3; ++step) {
    const Answer answer = get(served.port(), "/metrics");
    EXPECT_EQ(answer.status, 200);
    EXPECT_NE(answer.body.find("drover_steps_total " + std::to_string(step) + "\n"),
              std::string::npos)
        << answer.body;
    EXPECT_NE(answer.head.find("Content-Type: text/plain; version=0.0.4"), std::string::npos);
    DROVER_EXPECT_OK(writer->on_step(sample_step(step, 2), sample_arrivals(step, 2)));
    DROVER_EXPECT_OK(writer->flush());
  }
}

TEST(PageServer, ServesAStep) {
  const TempFolder folder;
  const Served served(random_run_file(folder, 1, 3, 20));
  const Answer answer = get(served.port(), "/api/step/7");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(json::parse(answer.body)["step"], 7);
  EXPECT_EQ(get(served.port(), "/api/step/20").status, 404);
  EXPECT_EQ(get(served.port(), "/api/step/x").status, 400);
}

TEST(PageServer, RefusesBadRequestsWithAnError) {
  const TempFolder folder;
  const Served served(random_run_file(folder, 1, 3, 5));
  const std::vector<std::pair<std::string, int>> cases = {
      {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 405},
      {"DELETE /api/step/1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
      {"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
      {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
      {"GET / HTTP/1.1\r\n\r\n", 403},
      {"complete nonsense\r\n\r\n", 400},
      {"GET / HTTP/9.9\r\n\r\n", 400},
      {"GET /" + std::string(20'000, 'x') + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 431},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n", 431}};
  for (const auto& [request, status] : cases) {
    SCOPED_TRACE(request.substr(0, 60));
    const Answer answer = answer_to(served.port(), request);
    EXPECT_EQ(answer.status, status);
    if (answer.status != 0) {
      EXPECT_FALSE(json::parse(answer.body)["error"].empty());
    }
  }
  EXPECT_EQ(get(served.port(), "/").status, 200) << "it still serves";
}

TEST(PageServer, AnswersHeadWithoutABody) {
  const TempFolder folder;
  const Served served(random_run_file(folder, 1, 3, 5));
  for (const std::string target : {"/", "/api/step/1", "/api/events"}) {
    const Answer answer =
        answer_to(served.port(), "HEAD " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(answer.status, 200) << target;
    EXPECT_TRUE(answer.body.empty()) << target;
  }
}

TEST(PageServer, RequiresItsToken) {
  const TempFolder folder;
  const Served served(random_run_file(folder, 1, 3, 5), {}, "secret-token");
  for (const char* target : {"/", "/api/events", "/api/step/1", "/?token=wrong-token"})
    EXPECT_EQ(get(served.port(), target).status, 401) << target;
  EXPECT_EQ(get(served.port(), "/?token=secret-token").status, 200);
  EXPECT_EQ(get(served.port(), "/api/step/1?token=secret-token").status, 200);
  EXPECT_EQ(get(served.port(), "/", "Authorization: Bearer secret-token\r\n").status, 200);
}

TEST(PageServer, StreamsARunAsItGrowsAndEnds) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  auto writer = writer_at(path);
  const RandomRun run(1, 3);
  run.write(*writer, 0, 10);
  DROVER_EXPECT_OK(writer->flush());
  const Served served(path);
  Client early(served.port());
  early.get("/api/events");
  EXPECT_NE(early.read_to("\r\n\r\n").find("text/event-stream"), std::string::npos);
  EXPECT_EQ(early.event("all")["progress"]["step"], 10);
  run.write(*writer, 10, 12);
  DROVER_EXPECT_OK(writer->flush());
  json update = early.event("update");
  while (update["progress"]["step"] != 12) update = early.event("update");

  Client later(served.port());
  later.get("/api/events");
  EXPECT_EQ(later.event("all")["steps"]["step"].size(), 12u);
  DROVER_EXPECT_OK(writer->on_end({.outcome = RunOutcome::kCompleted}));
  writer.reset();
  for (Client* client : {&early, &later}) {
    update = client->event("update");
    while (!update.contains("run")) update = client->event("update");
    EXPECT_EQ(update["run"]["outcome"], "completed");
    EXPECT_EQ(update["progress"]["state"], "completed");
  }
}

TEST(PageServer, SendsTheCompleteStateWhenTheNextRunStarts) {
  const TempFolder folder;
  const std::string first = random_run_file(folder, 1, 3, 20);
  const std::string second = folder.file("second.db");
  std::atomic<uint32_t> number = 1;
  const Served served([&] {
    const uint32_t now = number;
    return WatchedRun{.file = now == 1 ? first : second,
                      .place = {"seed " + std::to_string(now), now, 2}};
  });
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<Client>(served.port()));
    clients.back()->get("/api/events");
    const json all = clients.back()->event("all");
    EXPECT_EQ(all["progress"]["step"], 20);
    EXPECT_EQ(all["run"]["cell"], (json{{"title", "seed 1"}, {"number", 1}, {"of", 2}}));
  }
  number = 2;
  const auto writer = writer_at(second);
  RandomRun(2, 5).write(*writer, 0, 7);
  DROVER_EXPECT_OK(writer->flush());
  for (const auto& client : clients) {
    json all = client->event("all");  // on the same connection
    EXPECT_EQ(all["run"]["cell"]["number"], 2);
    while (all["progress"]["step"] != 7) all = client->event("update");
  }
  RandomRun(2, 5).write(*writer, 7, 9);
  DROVER_EXPECT_OK(writer->flush());
  for (const auto& client : clients) {
    json update = client->event("update");
    while (update["progress"]["step"] != 9) update = client->event("update");
  }
}

TEST(PageServer, StreamsAnEmptyRun) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  const Served served(path);
  Client client(served.port());
  client.get("/api/events");
  const json all = client.event("all");
  EXPECT_EQ(all["progress"]["state"], "waiting");
  EXPECT_TRUE(all["steps"]["step"].empty());
}

TEST(PageServer, WaitsForARunThatHasNotStarted) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const Served served(path);
  Client client(served.port());
  client.get("/api/events");
  EXPECT_NE(client.read_to("not started").find("not started"), std::string::npos);
  EXPECT_EQ(get(served.port(), "/").status, 200);
  EXPECT_EQ(get(served.port(), "/api/step/0").status, 503);
  const auto writer = writer_at(path);
  EXPECT_EQ(client.event("all")["progress"]["state"], "waiting");
}

TEST(PageServer, WarnsThatTheFileIsGone) {
  const TempFolder folder;
  const std::string path = random_run_file(folder, 1, 3, 5);
  const Served served(path);
  Client client(served.port());
  client.get("/api/events");
  EXPECT_EQ(client.event("all")["run"]["warning"], "");
  std::filesystem::remove(path);
  json update = client.event("update");
  while (!update.contains("run")) update = client.event("update");
  EXPECT_NE(update["run"]["warning"].get<std::string>().find("no such file"), std::string::npos);
}

TEST(PageServer, SendsTheFinalStateWhenItIsStopped) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  Served served(path);
  Client client(served.port());
  client.get("/api/events");
  client.event("all");
  Client idle(served.port());  // has sent no request
  DROVER_EXPECT_OK(writer->on_step(sample_step(0, 2), sample_arrivals(0, 2)));
  DROVER_EXPECT_OK(writer->on_end({.outcome = RunOutcome::kInterrupted, .reason = "Ctrl-C"}));
  served.stop();
  EXPECT_NE(client.read_to_end().find("\"interrupted\""), std::string::npos);
  EXPECT_EQ(idle.read_to_end(), "");
}

TEST(PageServer, LimitsItsConnections) {
  const TempFolder folder;
  const Served served(random_run_file(folder, 1, 3, 5), {.connections_max = 2});
  Client first(served.port());
  first.get("/api/events");
  first.event("all");
  {
    Client second(served.port());
    second.get("/api/events");
    second.event("all");
    EXPECT_NE(Client(served.port()).read_to_end().find("503 Service Unavailable"),
              std::string::npos);
  }
  // The second has disconnected, and its place is free as soon as the server has noticed.
  int status = 0;
  for (int tries = 0; status != 200 && tries < 10'000; ++tries)
    status = get(served.port(), "/").status;
  EXPECT_EQ(status, 200);
}

// Every switch to another run sends its complete state to all clients. One client reads it, the
// other does not, so the queue of the second grows with every switch.
TEST(PageServer, DisconnectsAClientThatDoesNotReadAndKeepsTheOthers) {
  const TempFolder folder;
  const std::string runs[] = {random_run_file(folder, 1, 8, 300),
                              random_run_file(folder, 2, 8, 300)};
  std::atomic<size_t> times = 0;
  const PageServerSettings settings{.connections_max = 2, .unread_max = 1u << 20};
  const Served served([&] { return WatchedRun{.file = runs[times % 2]}; }, settings);
  Client reader(served.port());
  reader.get("/api/events");
  const size_t size = reader.event("all").dump().size();
  ASSERT_LT(size, settings.unread_max) << "a client that reads is not disconnected";
  Client idler(served.port());
  idler.get("/api/events");
  idler.wait();  // the answer has begun, so it is connected
  // A third connection is refused until the idler is disconnected.
  size_t rounds = 0;
  while (get(served.port(), "/").status != 200) {
    ASSERT_LT(++rounds, 1000u) << "it is still there";
    ++times;
    EXPECT_EQ(reader.event("all")["run"]["file"], runs[times % 2]);
  }
  // The kernel's socket buffers hold some data too, but not more than this.
  EXPECT_GT(rounds * size, settings.unread_max);
  const std::string taken = idler.read_to_end();
  EXPECT_LT(taken.size(), rounds * size) << "its connection ended before all was sent";
  ++times;
  EXPECT_EQ(reader.event("all")["run"]["file"], runs[times % 2]) << "the reader still receives";
}

TEST(PageListener, ReportsAPortInUse) {
  const PageListener first = listener_on({.port = 0});
  const auto second = PageListener::open({.port = first.port()}, "--dashboard");
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("in use"), std::string::npos);
  EXPECT_NE(second.error().message.find("--dashboard 0"), std::string::npos);
}

TEST(PageListener, ServesOtherMachinesOnlyWithAToken) {
  const auto open = PageListener::open({.host = "0.0.0.0", .port = 0}, "--port");
  ASSERT_FALSE(open.ok());
  EXPECT_NE(open.error().message.find("--token"), std::string::npos);
  EXPECT_FALSE(PageListener::open({.host = "0.0.0.0", .port = 0, .token = "short"}, "--port").ok());
  const PageListener guarded = listener_on({.host = "0.0.0.0", .port = 0, .token = "long-enough"});
  EXPECT_NE(guarded.url().find("?token=long-enough"), std::string::npos);
  EXPECT_FALSE(PageListener::open({.host = "example.com", .port = 0}, "--port").ok());
  const PageListener own = listener_on({.port = 0});
  EXPECT_EQ(own.url(), "http://127.0.0.1:" + std::to_string(own.port()) + "/");
}

}  // namespace
}  // namespace drover
