// Runs another program without a shell and waits for it. Handles interruption cleanly.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

// Blocks SIGINT, SIGTERM and SIGHUP in this thread during its lifetime, so that cleanup can finish.
// Pending signals are delivered when it is destroyed.
class DelayedSignals {
 public:
  DelayedSignals();
  ~DelayedSignals();
  DelayedSignals(const DelayedSignals&) = delete;
  DelayedSignals& operator=(const DelayedSignals&) = delete;

  // Whether one of the signals is pending.
  bool pending() const;

 private:
  sigset_t before_;
};

struct ChildCommand {
  std::vector<std::string> words;  // the program, searched in PATH, and its arguments
  std::string folder;              // working directory
  std::string log;                 // file for its output; its end is quoted if the program fails
  std::string install_hint;        // advice if the program is not installed
};

// Runs the program until it ends. A delayed signal stops it early, with ErrorKind::kStopped.
Status run_child(const ChildCommand& command, const DelayedSignals& signals);

}  // namespace drover
