// PageServer: serves the live dashboard of one run at a time over HTTP, read-only.
//
//   GET /              the page
//   GET /api/events    server-sent events: first `all`, then `update` with changes, and `all` again
//                      when the server switches to another run
//   GET /api/step/N    details of a step
//   GET /metrics       the run's Prometheus metrics
//
// Everything runs in the thread that calls serve().
#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "view/page_listener.h"
#include "view/run_follower.h"

namespace drover {

struct PageServerSettings {
  Duration poll_every = std::chrono::milliseconds(500);  // interval of checks of the run file
  Duration publish_every = std::chrono::seconds(1);      // minimum interval of updates
  Duration keepalive_every = std::chrono::seconds(10);   // interval of comments on idle streams
  uint32_t connections_max = 64;
  // Bytes queued for a client; one that exceeds this is disconnected. The complete state of the
  // largest runs is several times smaller.
  size_t unread_max = 32u << 20;
  bool metrics = false;  // whether to serve /metrics
};

class PageServer {
 public:
  // The run file need not exist yet; clients that connect earlier wait for it.
  PageServer(PageListener listener, std::string run_file, const PageServerSettings& settings = {});
  // Serves several runs in turn.
  PageServer(PageListener listener, RunChooser choose, const PageServerSettings& settings = {});
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  // Makes SIGINT and SIGTERM call stop().
  void stop_on_signals();
  // Calls stop() when `fd` becomes readable or reaches its end. Takes ownership of `fd`.
  void stop_when_readable(int fd);

  // Serves until stopped. Then sends the final state of the run to connected clients, within at
  // most a second.
  void serve();

  // May be called from any thread.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drover
