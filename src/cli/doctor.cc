#include "cli/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace drover {
namespace {

// Private memory of a worker (with a small model) and of a shard, and memory that all processes
// share (libtorch and the data). Measured (docs/benchmarks.md) and rounded up.
constexpr uint64_t kWorkerMemory = 40'000'000;
constexpr uint64_t kShardMemory = 20'000'000;
constexpr uint64_t kSharedMemory = 500'000'000;
constexpr uint64_t kDiskEnough = 1'000'000'000;
constexpr uint64_t kDiskMinimum = 50'000'000;
constexpr uint64_t kWorkersPerCore = 8;

constexpr const char* kBlasAdvice =
    "install the OpenMP variant: apt-get install libopenblas0-openmp";

std::string size(uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.3g} GB", value / 1e9);
  return fmt::format("{:.0f} MB", value / 1e6);
}

Check examine_cores(const DoctorInputs& in) {
  Check check{"cores", CheckState::kOk, fmt::format("{} for {} workers", in.cores, in.workers), ""};
  if (in.workers > kWorkersPerCore * in.cores) {
    check.state = CheckState::kWarning;
    check.advice =
        fmt::format("workers share cores, so measured run-times mean little; use --workers {}",
                    std::max<uint32_t>(in.cores, 1));
  } else if (in.workers > in.cores) {
    check.found += " (workers share cores)";
  }
  return check;
}

Check examine_memory(const DoctorInputs& in) {
  const uint64_t needed = kSharedMemory + kWorkerMemory * in.workers + kShardMemory * in.shards;
  Check check{
      "memory", CheckState::kOk,
      fmt::format("{} of {} available", size(in.memory_available_bytes), size(in.memory_bytes)),
      ""};
  if (in.memory_available_bytes < needed) {
    check.state = CheckState::kWarning;
    check.advice = fmt::format(
        "{} workers and {} shards need about {} with a small model; use fewer workers, or free "
        "memory",
        in.workers, in.shards, size(needed));
  }
  return check;
}

Check examine_blas(const Result<BlasReport>& blas) {
  if (!blas) {
    return {"BLAS", CheckState::kWarning, "unknown: " + blas.error().message,
            "fix libtorch first, then repeat drover doctor"};
  }
  const BlasReport& report = blas.value();
  Check check{"BLAS", CheckState::kOk, report.name, ""};
  if (report.is_openblas && report.threading == BlasThreading::kSingle) {
    // A single-threaded OpenBLAS has no locks, so concurrent callers get wrong results.
    check.state = CheckState::kProblem;
  } else if (!report.advice.empty()) {
    check.state = CheckState::kWarning;
  }
  if (check.state != CheckState::kOk) {
    check.advice =
        report.advice.empty() ? kBlasAdvice : fmt::format("{} ({})", report.advice, kBlasAdvice);
  }
  return check;
}

Check examine_torch(const Status& torch) {
  if (torch) return {"libtorch", CheckState::kOk, "loads", ""};
  return {"libtorch", CheckState::kProblem, torch.error().message,
          "built-in models need libtorch: apt-get install libtorch1.13, or rebuild drover"};
}

Check examine_fit(const Status& fit) {
  if (fit) return {"model fitting", CheckState::kOk, "library loads", ""};
  return {"model fitting", CheckState::kWarning, fit.error().message,
          "runs work; drover fit does not, and policies bayes and bayes-paper fit no model"};
}

Check examine_shared_memory(const DoctorInputs& in) {
  if (!*in.shared_memory) {
    return {
        "shared memory", CheckState::kProblem, in.shared_memory->error().message,
        "workers on one machine send gradients through it; allow memfd_create in the container or "
        "sandbox, or use --transport tcp"};
  }
  return {"shared memory", CheckState::kOk,
          in.shared_memory_bytes > 0
              ? fmt::format("memfd works; /dev/shm has {}", size(in.shared_memory_bytes))
              : "memfd works; no /dev/shm (not needed)",
          ""};
}

Check examine_sockets(const DoctorInputs& in) {
  Check check{"sockets", CheckState::kOk, "Unix sockets and loopback TCP work", ""};
  if (!*in.unix_socket) {
    check.state = CheckState::kProblem;
    check.found = in.unix_socket->error().message;
    check.advice = "runs on one machine use Unix sockets; allow them, or use --transport tcp";
  } else if (!*in.tcp_port) {
    check.state = CheckState::kWarning;
    check.found = in.tcp_port->error().message;
    check.advice = "runs on this machine work; --transport tcp and runs on several machines do not";
  }
  return check;
}

Check examine_files(const DoctorInputs& in) {
  const uint64_t needed = files_needed(in.workers, in.shards);
  Check check{"open files", CheckState::kOk,
              fmt::format("{} allowed, about {} needed", in.files_soft, needed), ""};
  if (in.files_soft >= needed) return check;
  check.state = CheckState::kProblem;
  check.advice =
      in.files_hard >= needed
          ? fmt::format("run: ulimit -n {}", needed)
          : fmt::format(
                "ask the administrator for a limit of {} (nofile in "
                "/etc/security/limits.conf; it is {} now), or use fewer workers or shards",
                needed, in.files_hard);
  return check;
}

Check examine_disk(const DoctorInputs& in) {
  Check check{"disk", CheckState::kOk,
              fmt::format("{} free in {}/", size(in.disk_free_bytes), in.run_folder), ""};
  if (!*in.run_folder_writable) {
    check.state = CheckState::kProblem;
    check.found = in.run_folder_writable->error().message;
    check.advice = "run files are written there; make it writable, or use --run-file";
  } else if (in.disk_free_bytes < kDiskEnough) {
    check.state = in.disk_free_bytes < kDiskMinimum ? CheckState::kProblem : CheckState::kWarning;
    check.advice =
        "a run of 100 workers writes about 2.5 MB per 1,000 steps; free disk space, or use "
        "--run-file";
  }
  return check;
}

Check examine_data(const DataSetPlace& place) {
  Check check{place.name, CheckState::kOk, "in " + place.folder, ""};
  if (place.present) return check;
  // fashion-mnist is the default of --data; the other data sets are optional.
  if (place.name == "fashion-mnist") {
    check.state = CheckState::kWarning;
    check.found = "not in " + place.folder;
    check.advice = "apt-get install dataset-fashion-mnist, or use --data generated";
  } else {
    check.found = "not installed; to get it: drover data get " + place.name;
  }
  return check;
}

Check examine_congestion(const std::string& control) {
  if (control != "bbr") return {"TCP", CheckState::kOk, "congestion control " + control, ""};
  return {"TCP", CheckState::kWarning, "congestion control bbr, which halves loopback speed",
          "drover uses another for its own connections; to change it for all programs: "
          "sysctl net.ipv4.tcp_congestion_control=cubic"};
}

size_t count(const std::vector<Check>& checks, CheckState state) {
  return static_cast<size_t>(std::count_if(checks.begin(), checks.end(),
                                           [&](const Check& c) { return c.state == state; }));
}

}  // namespace

uint64_t files_needed(uint32_t workers, uint32_t shards) {
  return 64 + 4 * (uint64_t{workers} + uint64_t{shards});
}

std::vector<Check> examine(const DoctorInputs& in) {
  std::vector<Check> checks;
  if (!in.kernel.empty()) checks.push_back({"kernel", CheckState::kOk, in.kernel, ""});
  checks.push_back(examine_cores(in));
  checks.push_back(examine_memory(in));
  if (in.torch) checks.push_back(examine_torch(*in.torch));
  if (in.fit) checks.push_back(examine_fit(*in.fit));
  if (in.blas) checks.push_back(examine_blas(*in.blas));
  if (in.shared_memory) checks.push_back(examine_shared_memory(in));
  if (in.unix_socket && in.tcp_port) checks.push_back(examine_sockets(in));
  if (!in.congestion_control.empty()) checks.push_back(examine_congestion(in.congestion_control));
  checks.push_back(examine_files(in));
  if (in.run_folder_writable) checks.push_back(examine_disk(in));
  for (const DataSetPlace& place : in.data_sets) checks.push_back(examine_data(place));
  return checks;
}

std::string_view name_of(CheckState state) {
  switch (state) {
    case CheckState::kOk:
      return "ok";
    case CheckState::kWarning:
      return "warning";
    case CheckState::kProblem:
      return "problem";
  }
  return "unknown";
}

std::string to_text(const std::vector<Check>& checks) {
  size_t width = 0;
  for (const Check& check : checks) width = std::max(width, check.name.size());
  std::string text;
  auto out = std::back_inserter(text);
  for (const Check& check : checks) {
    fmt::format_to(out, "{:<9}{:<{}}  {}\n", name_of(check.state), check.name, width, check.found);
    if (!check.advice.empty()) fmt::format_to(out, "{:<{}}{}\n", "", 9 + width + 2, check.advice);
  }
  const size_t problems = count(checks, CheckState::kProblem);
  const size_t warnings = count(checks, CheckState::kWarning);
  if (problems > 0) {
    fmt::format_to(out, "Not ready: {} problem{} to fix before a run works.\n", problems,
                   problems == 1 ? "" : "s");
  } else if (warnings > 0) {
    fmt::format_to(out, "Ready, with {} warning{}.\n", warnings, warnings == 1 ? "" : "s");
  } else {
    fmt::format_to(out, "Ready.\n");
  }
  return text;
}

std::string to_json_line(const std::vector<Check>& checks) {
  nlohmann::ordered_json json;
  json["problems"] = count(checks, CheckState::kProblem);
  json["warnings"] = count(checks, CheckState::kWarning);
  json["checks"] = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    nlohmann::ordered_json one;
    one["name"] = check.name;
    one["state"] = std::string(name_of(check.state));
    one["found"] = check.found;
    one["advice"] = check.advice;
    json["checks"].push_back(std::move(one));
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

int exit_status(const std::vector<Check>& checks) {
  return count(checks, CheckState::kProblem) > 0 ? 1 : 0;
}

}  // namespace drover
