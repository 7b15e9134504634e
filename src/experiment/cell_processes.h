// CellProcesses: runs cells as processes of this same program, each in a group of its own that ends
// with it.
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

// A program in a process group of its own. If this process dies, it is asked to end as well.
class GroupedProcess {
 public:
  // What it says goes to `log`, or nowhere if that is empty.
  static Result<std::unique_ptr<GroupedProcess>> start(const std::vector<std::string>& words,
                                                       const std::string& log);
  // Asks the whole group to end, and then insists.
  ~GroupedProcess();
  GroupedProcess(const GroupedProcess&) = delete;
  GroupedProcess& operator=(const GroupedProcess&) = delete;

  bool running();
  // How it ended, as wait() says it. REQUIRES: !running().
  int status() const { return status_; }
  // Asks it to end; whatever it started is its own to end.
  void terminate();
  // Ends it and whatever it started.
  void kill_group();

 private:
  explicit GroupedProcess(pid_t pid) : pid_(pid) {}

  const pid_t pid_;
  bool gone_ = false;
  int status_ = 0;
};

class CellProcesses : public CellHost {
 public:
  // `program` is started with a cell's words. `interrupted` says whether the user wants to stop.
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
    std::string beside_ended;  // before the cell did: how
    TimePoint began{};
  };

  Result<EndedCell> finish(size_t cell, Running& running);

  const std::string program_;
  const CellFolder& folder_;
  const std::vector<Cell>& cells_;
  const std::function<bool()> interrupted_;
  std::map<size_t, Running> running_;
  bool stopping_ = false;
  TimePoint patience_ends_{};  // of those asked to end
};

}  // namespace drover
