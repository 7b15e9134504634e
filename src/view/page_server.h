// PageServer: serves the page of one run at a time, live, over HTTP, and changes nothing.
//
//   GET /              the page
//   GET /api/events    server-sent events: first `all`, then `update` with what has changed, and
//                      `all` again if another run is looked at from then on
//   GET /api/step/N    one step in detail
//   GET /metrics       the run's metrics, for Prometheus
//
// Everything in one thread, the one that calls serve().
#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "view/page_listener.h"
#include "view/run_follower.h"

namespace drover {

struct PageServerSettings {
  Duration look_every = std::chrono::milliseconds(500);  // at the run file
  Duration tell_every = std::chrono::seconds(1);         // at most
  Duration alive_every = std::chrono::seconds(10);       // a sign of life on quiet connections
  uint32_t connections_max = 64;
  // What a reader has not taken yet; one that lets more gather is dropped. Several times all of the
  // largest runs.
  size_t unread_max = 32u << 20;
  bool metrics = false;  // whether there are any
};

class PageServer {
 public:
  // The run file need not be there yet: whoever connects earlier waits for it.
  PageServer(PageListener listener, std::string run_file, const PageServerSettings& settings = {});
  // One run after the other.
  PageServer(PageListener listener, RunChooser choose, const PageServerSettings& settings = {});
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  // SIGINT and SIGTERM are taken as stop().
  void stop_on_signals();
  // ... and so is anything that can be read from `fd`, or its end. The descriptor becomes the
  // server's.
  void stop_when_readable(int fd);

  // Until it is stopped. Whoever is connected is then told the last of the run, if that takes no
  // longer than a second.
  void serve();

  // From any thread.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drover
