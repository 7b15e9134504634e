#include "cli/doctor.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace drover {
namespace {

namespace fs = std::filesystem;

// A worker with libtorch and a small model, and a shard without: guesses on the safe side.
constexpr uint64_t kWorkerMemory = 250'000'000;
constexpr uint64_t kShardMemory = 50'000'000;
constexpr uint64_t kDiskEnough = 1'000'000'000;
constexpr uint64_t kDiskLeast = 50'000'000;
constexpr uint64_t kWorkersPerCore = 8;
constexpr size_t kTrialBytes = 1 << 16;

constexpr const char* kBlasAdvice = "install the right one: apt-get install libopenblas0-openmp";

std::string size(uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.3g} GB", value / 1e9);
  return fmt::format("{:.0f} MB", value / 1e6);
}

Check examine_cores(const DoctorInputs& in) {
  Check check{"cores", CheckState::kOk, fmt::format("{} for {} workers", in.cores, in.workers), ""};
  if (in.workers > kWorkersPerCore * in.cores) {
    check.state = CheckState::kWarning;
    check.advice = fmt::format(
        "so many workers take turns on the cores, and their run-times say little; use --workers {}",
        std::max<uint32_t>(in.cores, 1));
  } else if (in.workers > in.cores) {
    check.found += " (they take turns)";
  }
  return check;
}

Check examine_memory(const DoctorInputs& in) {
  const uint64_t needed = kWorkerMemory * in.workers + kShardMemory * in.shards;
  Check check{
      "memory", CheckState::kOk,
      fmt::format("{} of {} available", size(in.memory_available_bytes), size(in.memory_bytes)),
      ""};
  if (in.memory_available_bytes < needed) {
    check.state = CheckState::kWarning;
    check.advice = fmt::format(
        "{} workers and {} shards need about {} with a small model; use fewer workers, or free "
        "some",
        in.workers, in.shards, size(needed));
  }
  return check;
}

Check examine_blas(const Result<BlasReport>& blas) {
  if (!blas) {
    return {"BLAS", CheckState::kWarning, "unknown: " + blas.error().message,
            "once libtorch loads, ask again"};
  }
  const BlasReport& report = blas.value();
  Check check{"BLAS", CheckState::kOk, report.name, ""};
  if (report.is_openblas && report.threading == BlasThreading::kSingle) {
    // Not a matter of speed: without its own locks it returns wrong numbers to concurrent callers.
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
          "the built-in models need it; install it (apt-get install libtorch1.13), or build again"};
}

Check examine_shared_memory(const DoctorInputs& in) {
  if (!*in.shared_memory) {
    return {
        "shared memory", CheckState::kProblem, in.shared_memory->error().message,
        "workers on one machine hand over gradients this way; allow memfd_create in the container "
        "or sandbox, or use --transport tcp"};
  }
  return {"shared memory", CheckState::kOk,
          in.shared_memory_bytes > 0
              ? fmt::format("memfd works; /dev/shm has {}", size(in.shared_memory_bytes))
              : "memfd works; there is no /dev/shm, and none is needed",
          ""};
}

Check examine_sockets(const DoctorInputs& in) {
  Check check{"sockets", CheckState::kOk, "Unix sockets and loopback TCP work", ""};
  if (!*in.unix_socket) {
    check.state = CheckState::kProblem;
    check.found = in.unix_socket->error().message;
    check.advice =
        "a run on one machine speaks over Unix sockets; allow them, or use --transport tcp";
  } else if (!*in.tcp_port) {
    check.state = CheckState::kWarning;
    check.found = in.tcp_port->error().message;
    check.advice =
        "runs on this machine work; --transport tcp and runs over several machines do not";
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
    check.advice = "run files are kept there; make it writable, or use --run-file";
  } else if (in.disk_free_bytes < kDiskEnough) {
    check.state = in.disk_free_bytes < kDiskLeast ? CheckState::kProblem : CheckState::kWarning;
    check.advice =
        "a run of 100 workers writes about 2.5 MB per 1,000 steps; free some space, or use "
        "--run-file";
  }
  return check;
}

Check examine_data(const DataSetPlace& place) {
  Check check{place.name, CheckState::kOk, "in " + place.folder, ""};
  if (place.present) return check;
  // fashion-mnist is what a run without --data learns from; the others are there for who wants
  // them.
  if (place.name == "fashion-mnist") {
    check.state = CheckState::kWarning;
    check.found = "not in " + place.folder;
    check.advice = "apt-get install dataset-fashion-mnist, or use --data generated";
  } else {
    check.found = "not here; to get it: drover data get " + place.name;
  }
  return check;
}

Check examine_congestion(const std::string& control) {
  if (control != "bbr") return {"TCP", CheckState::kOk, "congestion control " + control, ""};
  return {"TCP", CheckState::kWarning, "congestion control bbr, which halves loopback speed",
          "drover chooses another for its own connections; for all programs: "
          "sysctl net.ipv4.tcp_congestion_control=cubic"};
}

size_t count(const std::vector<Check>& checks, CheckState state) {
  return static_cast<size_t>(std::count_if(checks.begin(), checks.end(),
                                           [&](const Check& c) { return c.state == state; }));
}

// Looking, from here on.

constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  bool ok() const { return number_ >= 0; }

 private:
  int number_;
};

Error failed(std::string_view what) {
  return system_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

uint32_t cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
  return static_cast<uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

// A line of /proc/meminfo, in bytes; 0 if it is not there.
uint64_t meminfo(std::string_view key) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size(), nullptr, 10) * 1024;
  }
  return 0;
}

// A number in a file of the control group, or the most there is: "max" means no limit.
uint64_t group_value(const char* path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : UINT64_MAX;
}

// In a container the control group's limit counts, not the machine's memory.
void measure_memory(DoctorInputs& inputs) {
  inputs.memory_bytes = meminfo("MemTotal:");
  inputs.memory_available_bytes = meminfo("MemAvailable:");
  const uint64_t limit = group_value("/sys/fs/cgroup/memory.max");
  if (limit >= inputs.memory_bytes) return;
  inputs.memory_bytes = limit;
  const uint64_t used = std::min(limit, group_value("/sys/fs/cgroup/memory.current"));
  inputs.memory_available_bytes = std::min(inputs.memory_available_bytes, limit - used);
}

Status try_shared_memory() {
  const Descriptor file(memfd_create("drover-doctor", MFD_CLOEXEC));
  if (!file.ok()) return failed("memfd_create");
  if (ftruncate(file.number(), kTrialBytes) != 0) return failed("sizing a memfd");
  void* memory = mmap(nullptr, kTrialBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) return failed("mapping a memfd");
  munmap(memory, kTrialBytes);
  return done();
}

Status try_tcp_port() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.ok()) return failed("making a TCP socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed("binding a port of 127.0.0.1");
  }
  if (listen(socket.number(), 1) != 0) return failed("listening on 127.0.0.1");
  return done();
}

Status try_unix_socket() {
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.ok()) return failed("making a Unix socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A leading zero byte makes the name abstract: it lives in no folder and goes with the socket.
  const std::string name = fmt::format("drover-doctor-{}", getpid());
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return failed("binding an abstract Unix socket");
  }
  if (listen(socket.number(), 1) != 0) return failed("listening on a Unix socket");
  return done();
}

// The folder itself, or the nearest one above it that exists: where it would be made.
fs::path existing_part(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::absolute(folder.empty() ? "." : folder, error);
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

void measure_disk(DoctorInputs& inputs) {
  const fs::path place = existing_part(inputs.run_folder);
  struct statvfs space {};
  if (statvfs(place.c_str(), &space) == 0) {
    inputs.disk_free_bytes = uint64_t{space.f_bavail} * space.f_frsize;
  }
  std::error_code error;
  if (!fs::is_directory(place, error)) {
    inputs.run_folder_writable = system_error(fmt::format("{} is not a folder", place.string()));
  } else if (access(place.c_str(), W_OK | X_OK) != 0) {
    inputs.run_folder_writable = failed(fmt::format("cannot write in {}", place.string()));
  } else {
    inputs.run_folder_writable = done();
  }
}

bool has_all(const fs::path& folder, std::initializer_list<const char*> names) {
  std::error_code error;
  return std::all_of(names.begin(), names.end(), [&](const char* name) {
    return fs::exists(folder / name, error) ||
           fs::exists(folder / (std::string(name) + ".gz"), error);
  });
}

std::vector<DataSetPlace> look_for_data(const std::string& data_dir) {
  const auto has_idx = [](const fs::path& folder) {
    return has_all(folder, {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                            "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"});
  };
  std::vector<DataSetPlace> places;
  places.push_back({"fashion-mnist", kFashionMnistFolder, has_idx(kFashionMnistFolder)});
  const fs::path mnist = fs::path(data_dir) / "mnist";
  places.push_back({"mnist", mnist.string(), has_idx(mnist)});
  const fs::path cifar = fs::path(data_dir) / "cifar10";
  places.push_back(
      {"cifar10", cifar.string(), has_all(cifar, {"data_batch_1.bin", "test_batch.bin"})});
  return places;
}

}  // namespace

DoctorInputs gather(const DoctorQuestion& question) {
  DoctorInputs inputs;
  inputs.workers = question.workers;
  inputs.shards = question.shards;
  inputs.blas = question.blas;
  inputs.torch = question.torch;
  inputs.run_folder = question.run_folder;
  utsname system{};
  if (uname(&system) == 0) inputs.kernel = system.release;
  inputs.cores = cores();
  measure_memory(inputs);
  inputs.shared_memory = try_shared_memory();
  struct statvfs space {};
  if (statvfs("/dev/shm", &space) == 0) {
    inputs.shared_memory_bytes = uint64_t{space.f_blocks} * space.f_frsize;
  }
  inputs.tcp_port = try_tcp_port();
  inputs.unix_socket = try_unix_socket();
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    inputs.files_soft = files.rlim_cur;
    inputs.files_hard = files.rlim_max;
  }
  measure_disk(inputs);
  inputs.data_sets = look_for_data(question.data_dir);
  std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> inputs.congestion_control;
  return inputs;
}

uint64_t files_needed(uint32_t workers, uint32_t shards) {
  return 64 + 4 * (uint64_t{workers} + uint64_t{shards});
}

std::vector<Check> examine(const DoctorInputs& in) {
  std::vector<Check> checks;
  if (!in.kernel.empty()) checks.push_back({"kernel", CheckState::kOk, in.kernel, ""});
  checks.push_back(examine_cores(in));
  checks.push_back(examine_memory(in));
  if (in.torch) checks.push_back(examine_torch(*in.torch));
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
    fmt::format_to(out, "{} problem{} must be solved before a run can work here.\n", problems,
                   problems == 1 ? "" : "s");
  } else if (warnings > 0) {
    fmt::format_to(out, "A run works here; {} warning{} to look at.\n", warnings,
                   warnings == 1 ? "" : "s");
  } else {
    fmt::format_to(out, "All is well.\n");
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
