// PageProcess: the live page and the metrics of runs that this process makes, served by a process
// of its own.
//
// It only reads the run file, with a low priority: the run does not notice.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/result.h"
#include "view/page_server.h"

namespace drover {

class PageProcess {
 public:
  // Takes the port, if one is wanted: told before anything is started whether it is free.
  // `metrics`: it is they that were asked for, though the page is there too.
  static Result<PageProcess> prepare(const std::optional<uint16_t>& port, bool metrics = false);

  ~PageProcess() { finish(); }
  PageProcess(PageProcess&& other) noexcept;
  PageProcess& operator=(PageProcess&&) = delete;

  // Forks it, and prints the page's address. The run file need not be there yet.
  // REQUIRES: this process has no other thread, and has not opened the run file.
  Status start(const std::string& run_file);
  // ... of one run after the other, and without metrics. `choose` is asked in the other process.
  Status start(RunChooser choose);

  // When the run has ended and nobody writes to its file any more: whoever looks at the page is
  // told the last of it, and the process ends.
  void finish();

 private:
  PageProcess() = default;
  Status start(RunChooser choose, const PageServerSettings& settings);

  std::optional<PageListener> listener_;
  bool metrics_ = false;
  std::string run_file_;  // to be made one file at the end; empty: somebody else does
  pid_t pid_ = -1;
  int stop_fd_ = -1;  // a byte written to it is the order to end
};

}  // namespace drover
