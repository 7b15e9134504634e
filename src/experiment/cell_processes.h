// CellProcesses: runs each cell as a process of this program, in a process group of its own that is
// killed when the process ends.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/time.h"
#include "experiment/cell_folder.h"
#include "experiment/cell_loop.h"

namespace drover {

// A program in a process group of its own. It gets SIGTERM if this process dies.
class GroupedProcess {
 public:
  // Its standard error goes to the file `log`, or nowhere if `log` is empty.
  static Result<std::unique_ptr<GroupedProcess>> start(const std::vector<std::string>& words,
                                                       const std::string& log);
  // Terminates the group, and kills it if it does not end in time.
  ~GroupedProcess();
  GroupedProcess(const GroupedProcess&) = delete;
  GroupedProcess& operator=(const GroupedProcess&) = delete;

  bool running();
  // Its wait status, as from waitpid(). REQUIRES: !running().
  int status() const { return status_; }
  // Sends SIGTERM to the process, which ends its own children.
  void terminate();
  // Kills the process and its children.
  void kill_group();

 private:
  explicit GroupedProcess(pid_t pid) : pid_(pid) {}

  const pid_t pid_;
  bool gone_ = false;
  int status_ = 0;
};

class CellProcesses : public CellHost {
 public:
  // Starts `program` with a cell's words. `interrupted` returns whether the user has interrupted.
  CellProcesses(std::string program, const CellFolder& folder, const std::vector<Cell>& cells,
                std::function<bool()> interrupted);

  Status start(size_t cell) override;
  Result<std::vector<EndedCell>> wait() override;
  bool interrupted() override { return interrupted_(); }
  void stop_all() override;

 private:
  struct Running {
    std::unique_ptr<GroupedProcess> process;
    std::unique_ptr<GroupedProcess> beside;
    std::string beside_ended;  // how `beside` ended before the cell; empty: it did not
    TimePoint began{};
  };

  Result<EndedCell> finish(size_t cell, Running& running);

  const std::string program_;
  const CellFolder& folder_;
  const std::vector<Cell>& cells_;
  const std::function<bool()> interrupted_;
  std::map<size_t, Running> running_;
  bool stopping_ = false;
  TimePoint kill_at_{};  // when running cells are killed after stop_all()
};

}  // namespace drover
