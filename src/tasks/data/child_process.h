// Runs another program and waits for it, without a shell, leaving nothing behind if we are
// interrupted.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

// While one of these lives, SIGINT, SIGTERM and SIGHUP to this thread wait, so that what must be
// tidied up is. They strike when it ends.
class DelayedSignals {
 public:
  DelayedSignals();
  ~DelayedSignals();
  DelayedSignals(const DelayedSignals&) = delete;
  DelayedSignals& operator=(const DelayedSignals&) = delete;

  // Whether one of them has come.
  bool pending() const;

 private:
  sigset_t before_;
};

struct ChildCommand {
  std::vector<std::string> words;  // the program, looked up in PATH, and its arguments
  std::string folder;              // where it runs
  std::string log;                 // a file for all it says; the end of it is quoted if it fails
  std::string install_hint;        // what to do if there is no such program
};

// Waits for the program to end. One of the delayed signals ends it early, with ErrorKind::kStopped.
Status run_child(const ChildCommand& command, const DelayedSignals& signals);

}  // namespace drover
