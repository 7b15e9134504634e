// PythonSession: a LiveSession as a Python thread can use it: waiting lets other threads run and
// hears Ctrl-C, trouble is an exception.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/training.h"
#include "node/live_session.h"

namespace drover {

class PythonSession {
 public:
  // `token`: to_text(RunKey).
  PythonSession(const std::string& address, const std::string& token, WorkerId rank,
                std::vector<TensorSpec> tensors, const Learning& learning, uint32_t copiers);
  ~PythonSession();

  LiveSession& live() { return *live_; }
  const Layout& layout() const { return layout_; }

  // The run is, and not only this connection to it.
  bool over();

  // Connects, and waits until this worker is part of the run.
  void start();
  std::optional<Step> next_step();
  std::optional<Version> fetch_average();
  // The sum of the squares and the largest absolute value of the mean of the gradients that were
  // pushed as held; nothing if this worker's came too late.
  std::optional<std::pair<double, double>> wait_for_norm();
  void leave(const std::string& reason);

 private:
  void rejoin_if_lost();
  // Calls `look` until it returns true, without holding the interpreter; each call may wait for as
  // long as its argument says.
  void wait(const std::function<bool(Duration)>& look);

  const Layout layout_;
  std::unique_ptr<LiveSession> live_;
  // A data loader forks: the child has this object, but not its threads.
  const pid_t owner_;
  bool over_ = false;  // the loop knows
  bool left_ = false;
};

}  // namespace drover
