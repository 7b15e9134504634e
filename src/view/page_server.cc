#include "view/page_server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <map>
#include <optional>
#include <utility>

#include "view/export/metrics_text.h"
#include "view/page_asset.h"
#include "view/page_connection.h"
#include "view/run_json.h"

namespace drover {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::string_view kJson = "application/json";
constexpr std::chrono::seconds kStopTimeout{1};
constexpr std::chrono::milliseconds kAcceptPause{100};

Duration wall_clock() {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
}
TimePoint steady_clock() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

PageAnswer refusal(unsigned status, const std::string& message) {
  return {status, kJson, error_json(message), false};
}

std::shared_ptr<const std::string> event_text(std::string_view name, std::string_view data) {
  return std::make_shared<const std::string>(fmt::format("event: {}\ndata: {}\n\n", name, data));
}

tcp protocol_of(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4();
}

}  // namespace

class PageServer::Impl {
 public:
  Impl(PageListener listener, RunChooser choose, const PageServerSettings& settings)
      : settings_(settings), token_(listener.token()), follower_(std::move(choose)) {
    const int fd = listener.release();
    acceptor_.assign(protocol_of(fd), fd);
  }

  void stop_on_signals() {
    signals_.add(SIGINT);
    signals_.add(SIGTERM);
    signals_.async_wait([this](const error_code& trouble, int) {
      if (!trouble) shut_down();
    });
  }

  void stop_when_readable(int fd) {
    stop_fd_.assign(fd);
    stop_fd_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        [this](const error_code& trouble) {
                          if (!trouble) shut_down();
                        });
  }

  void serve() {
    accept();
    tick();
    loop_.run();
  }

  void stop() {
    boost::asio::post(loop_, [this] { shut_down(); });
  }

 private:
  void accept() {
    acceptor_.async_accept([this](const error_code& trouble, tcp::socket socket) {
      if (trouble == boost::asio::error::operation_aborted || stopping_) return;
      if (trouble) {  // most likely out of file descriptors; retry later
        accept_pause_.expires_after(kAcceptPause);
        accept_pause_.async_wait([this](const error_code& stopped) {
          if (!stopped) accept();
        });
        return;
      }
      admit(std::move(socket));
      accept();
    });
  }

  void admit(tcp::socket socket) {
    error_code ignored;
    socket.non_blocking(true, ignored);
    if (connections_.size() >= settings_.connections_max) {
      const std::string text =
          to_http(refusal(503, "too many open dashboards of this run; close some"));
      socket.write_some(boost::asio::buffer(text), ignored);
      return;
    }
    socket.set_option(tcp::no_delay(true), ignored);
    auto connection = std::make_shared<PageConnection>(
        std::move(socket), settings_.unread_max,
        PageConnection::Callbacks{
            .answer = [this](const PageRequest& request) { return answer(request); },
            .events_begin = [this](PageConnection& self) { begin_events(self); },
            .closed = [this](PageConnection& self) { remove(self); }});
    connections_[connection.get()] = connection;
    connection->start();
  }

  void remove(PageConnection& connection) {
    connections_.erase(&connection);
    if (stopping_ && connections_.empty()) loop_.stop();
  }

  PageAnswer answer(const PageRequest& request) {
    struct Answering {
      Impl& server;
      PageAnswer operator()(const PageResource&) const {
        return {200, "text/html; charset=utf-8", std::string(page_html()), false};
      }
      PageAnswer operator()(const EventsResource&) const {
        return {200, "text/event-stream", "", true};
      }
      PageAnswer operator()(const StepResource& resource) const {
        return server.answer_step(resource.step);
      }
      PageAnswer operator()(const MetricsResource&) const { return server.answer_metrics(); }
      PageAnswer operator()(const IconResource&) const { return {204, "image/x-icon", "", false}; }
      PageAnswer operator()(const Refused& refused) const {
        return refusal(refused.status, refused.message);
      }
    };
    return std::visit(Answering{*this}, resource_of(request, token_));
  }

  PageAnswer answer_metrics() {
    if (!settings_.metrics)
      return refusal(404, "this server has no metrics; start it with --metrics");
    Status read = read_new();
    while (read && behind_) read = read_new();
    if (!read) return refusal(503, read.error().message);
    if (!follower_.has_run()) return refusal(503, "the run has not started yet");
    return {200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(follower_.run()), false};
  }

  PageAnswer answer_step(Step step) {
    const auto detail = follower_.step(step);
    if (!detail) return refusal(503, detail.error().message);
    if (!detail.value()) return refusal(404, fmt::format("the run has no step {} (yet)", step));
    return {200, kJson, step_json(*detail.value()), false};
  }

  void begin_events(PageConnection& connection) {
    // Without streams the run file is not polled.
    if (stream_count() == 1) poll();
    if (!follower_.has_run()) {
      connection.send(std::make_shared<const std::string>(": the run has not started\n\n"));
      return;
    }
    publish();
  }

  size_t stream_count() const {
    return static_cast<size_t>(
        std::count_if(connections_.begin(), connections_.end(),
                      [](const auto& c) { return c.second->streams_events; }));
  }

  // The next snapshot reports an error as its warning.
  void poll() { static_cast<void>(read_new()); }

  Status read_new() {
    const auto news = follower_.poll();
    behind_ = news && news.value() == RunFollower::PollResult::kMoreToRead;
    changed_ |= !news || news.value() != RunFollower::PollResult::kUnchanged;
    if (!news) return news.error();
    return done();
  }

  // Sends the complete state to clients that have not received it yet, and changes to the others.
  void publish() {
    changed_ = false;
    published_at_ = steady_clock();
    RunSnapshot now = follower_.snapshot(wall_clock());
    if (published_ && published_->file != now.file) {  // another run
      published_.reset();
      for (const auto& connection : all_connections()) connection->received_all = false;
    }
    const std::string update = published_ ? update_json(*published_, now) : std::string();
    const auto update_event = update.empty() ? nullptr : event_text("update", update);
    std::shared_ptr<const std::string> all_event;
    for (const auto& connection : all_connections()) {
      if (!connection->streams_events) continue;
      if (connection->received_all) {
        if (update_event) connection->send(update_event);
        continue;
      }
      if (!all_event) all_event = event_text("all", all_json(now));
      connection->received_all = true;
      connection->send(all_event);
    }
    published_ = std::move(now);
  }

  // A copy, because sending can remove a connection.
  std::vector<std::shared_ptr<PageConnection>> all_connections() const {
    std::vector<std::shared_ptr<PageConnection>> all;
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    return all;
  }

  void tick() {
    const bool streaming = stream_count() > 0;
    if (streaming || behind_ || !follower_.has_run()) poll();
    const TimePoint now = steady_clock();
    if (streaming && now - last_keepalive_ >= settings_.keepalive_every) {
      last_keepalive_ = now;
      const auto comment = std::make_shared<const std::string>(": keepalive\n\n");
      for (const auto& connection : all_connections()) {
        if (connection->streams_events) connection->send(comment);
      }
      // Publishes a running run even without new data: its state may have become silent.
      changed_ |= published_ && published_->end.outcome == RunOutcome::kRunning;
    }
    if (streaming && changed_ && follower_.has_run() &&
        now - published_at_ >= settings_.publish_every)
      publish();
    timer_.expires_after(behind_ ? Duration::zero() : settings_.poll_every);
    timer_.async_wait([this](const error_code& stopped) {
      if (!stopped && !stopping_) tick();
    });
  }

  void shut_down() {
    if (std::exchange(stopping_, true)) return;
    error_code ignored;
    acceptor_.close(ignored);
    if (stream_count() > 0) {
      poll();
      if (follower_.has_run()) publish();
    }
    for (const auto& connection : all_connections()) connection->finish();
    if (connections_.empty()) loop_.stop();
    timer_.expires_after(kStopTimeout);
    timer_.async_wait([this](const error_code& stopped) {
      if (!stopped) loop_.stop();
    });
  }

  const PageServerSettings settings_;
  const std::string token_;
  RunFollower follower_;
  boost::asio::io_context loop_{1};
  tcp::acceptor acceptor_{loop_};
  boost::asio::steady_timer timer_{loop_};
  boost::asio::steady_timer accept_pause_{loop_};
  boost::asio::signal_set signals_{loop_};
  boost::asio::posix::stream_descriptor stop_fd_{loop_};
  std::map<PageConnection*, std::shared_ptr<PageConnection>> connections_;

  bool behind_ = false;                   // there is more to read
  bool changed_ = false;                  // since published_
  std::optional<RunSnapshot> published_;  // the state that all streams have received
  TimePoint published_at_{};
  TimePoint last_keepalive_ = steady_clock();
  bool stopping_ = false;
};

PageServer::PageServer(PageListener listener, std::string run_file,
                       const PageServerSettings& settings)
    : PageServer(std::move(listener), only_run(std::move(run_file)), settings) {}
PageServer::PageServer(PageListener listener, RunChooser choose, const PageServerSettings& settings)
    : impl_(std::make_unique<Impl>(std::move(listener), std::move(choose), settings)) {}
PageServer::~PageServer() = default;
void PageServer::stop_on_signals() { impl_->stop_on_signals(); }
void PageServer::stop_when_readable(int fd) { impl_->stop_when_readable(fd); }
void PageServer::serve() { impl_->serve(); }
void PageServer::stop() { impl_->stop(); }

}  // namespace drover
