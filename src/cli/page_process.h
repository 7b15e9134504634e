// PageProcess: the live page of a run that this process makes, served by a process of its own.
//
// It only reads the run file, with a low priority: the run does not notice.
#pragma once

#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "core/result.h"
#include "web/page_listener.h"

namespace drover {

// --dashboard [PORT]. `port` must outlive the parsing of `app`, and stays empty without the flag.
void add_dashboard_flag(CLI::App& app, std::optional<uint16_t>& port);

class PageProcess {
 public:
  // Takes the port, if one is wanted: told before anything is started whether it is free.
  static Result<PageProcess> prepare(const std::optional<uint16_t>& port);

  ~PageProcess() { finish(); }
  PageProcess(PageProcess&& other) noexcept;
  PageProcess& operator=(PageProcess&&) = delete;

  // Forks it, and prints the page's address. The run file need not be there yet.
  // REQUIRES: this process has no other thread, and has not opened the run file.
  Status start(const std::string& run_file);

  // When the run has ended and nobody writes to its file any more: whoever looks at the page is
  // told the last of it, and the process ends.
  void finish();

 private:
  PageProcess() = default;

  std::optional<PageListener> listener_;
  std::string run_file_;
  pid_t pid_ = -1;
  int stop_fd_ = -1;  // a byte written to it is the order to end
};

}  // namespace drover
