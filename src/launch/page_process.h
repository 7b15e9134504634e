// PageProcess: serves the live page and the metrics of this process's runs, in a child process.
//
// The child only reads the run file, with a low priority, so that it does not slow down the run.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/result.h"
#include "view/page_server.h"

namespace drover {

class PageProcess {
 public:
  // Opens the port, if one is given: an error before processes are started if it is in use.
  // `metrics`: the user asked for metrics, so their URL is printed; the page is served too.
  static Result<PageProcess> prepare(const std::optional<uint16_t>& port, bool metrics = false);

  ~PageProcess() { finish(); }
  PageProcess(PageProcess&& other) noexcept;
  PageProcess& operator=(PageProcess&&) = delete;

  // Forks the child and prints the page's URL. The run file need not exist yet.
  // REQUIRES: this process has no other thread, and has not opened the run file.
  Status start(const std::string& run_file);
  // The same for a sequence of runs, without metrics. `choose` is called in the child.
  Status start(RunChooser choose);

  // Ends the child after it has sent the end of the record to open pages. REQUIRES: the run has
  // ended, and its file is not written to any more.
  void finish();

 private:
  PageProcess() = default;
  Status start(RunChooser choose, const PageServerSettings& settings);

  std::optional<PageListener> listener_;
  bool metrics_ = false;
  std::string run_file_;  // its log is folded into it at the end; empty: not done here
  pid_t pid_ = -1;
  int stop_fd_ = -1;  // a byte written to it ends the child
};

}  // namespace drover
