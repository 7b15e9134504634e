// ExitReport: how a process ended, as the launcher writes it to the coordinator's pipe.
//
// Both ends are processes of one program on one host, so a report is sent as its bytes in memory.
// It is shorter than PIPE_BUF, so a write is atomic.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "core/event.h"
#include "core/peer.h"

namespace drover {

struct ExitReport {
  Peer peer;
  ProcessExit exit;
  bool restarted = false;
  bool operator==(const ExitReport&) const = default;
};

using ExitReportBytes = std::array<std::byte, sizeof(ExitReport)>;
static_assert(std::is_trivially_copyable_v<ExitReport> && sizeof(ExitReport) <= PIPE_BUF);

inline ExitReportBytes bytes_of(const ExitReport& report) {
  ExitReportBytes bytes;
  std::memcpy(bytes.data(), &report, sizeof(report));
  return bytes;
}

// REQUIRES: `bytes` are those of bytes_of().
inline ExitReport read_exit_report(const ExitReportBytes& bytes) {
  ExitReport report;
  std::memcpy(&report, bytes.data(), sizeof(report));
  return report;
}

}  // namespace drover
