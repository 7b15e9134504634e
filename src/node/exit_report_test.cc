#include "node/exit_report.h"

#include <gtest/gtest.h>

#include <csignal>

namespace drover {
namespace {

TEST(ExitReport, IsReadAsItWasWritten) {
  for (const ExitReport& report :
       {ExitReport{},
        ExitReport{{Role::kWorker, 4'000'000'000}, {.by_signal = true, .number = SIGKILL}, true},
        ExitReport{{Role::kStandby, 2}, {.by_signal = false, .number = 77}, false}}) {
    EXPECT_EQ(read_exit_report(bytes_of(report)), report) << name_of(report.peer);
  }
}

}  // namespace
}  // namespace drover
