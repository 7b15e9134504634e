// Measures this machine; doctor.cc judges the measurements.
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
#include <utility>

#include "cli/doctor.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTrialBytes = 1 << 16;
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

// A value of /proc/meminfo, in bytes; 0 if absent.
uint64_t meminfo(std::string_view key) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size(), nullptr, 10) * 1024;
  }
  return 0;
}

// The number in a cgroup file; UINT64_MAX if there is no number ("max" means no limit).
uint64_t cgroup_value(const char* path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : UINT64_MAX;
}

// In a container the cgroup's limit counts, not the machine's memory.
void measure_memory(DoctorInputs& inputs) {
  inputs.memory_bytes = meminfo("MemTotal:");
  inputs.memory_available_bytes = meminfo("MemAvailable:");
  const uint64_t limit = cgroup_value("/sys/fs/cgroup/memory.max");
  if (limit >= inputs.memory_bytes) return;
  inputs.memory_bytes = limit;
  const uint64_t used = std::min(limit, cgroup_value("/sys/fs/cgroup/memory.current"));
  inputs.memory_available_bytes = std::min(inputs.memory_available_bytes, limit - used);
}

Status try_shared_memory() {
  const Descriptor file(memfd_create("drover-doctor", MFD_CLOEXEC));
  if (!file.ok()) return failed("memfd_create failed");
  if (ftruncate(file.number(), kTrialBytes) != 0) return failed("cannot resize a memfd");
  void* memory = mmap(nullptr, kTrialBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) return failed("cannot map a memfd");
  munmap(memory, kTrialBytes);
  return done();
}

Status try_tcp_port() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.ok()) return failed("cannot create a TCP socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed("cannot bind a port of 127.0.0.1");
  }
  if (listen(socket.number(), 1) != 0) return failed("cannot listen on 127.0.0.1");
  return done();
}

Status try_unix_socket() {
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.ok()) return failed("cannot create a Unix socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A leading zero byte makes the name abstract: it is in no folder and vanishes with the socket.
  const std::string name = fmt::format("drover-doctor-{}", getpid());
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return failed("cannot bind an abstract Unix socket");
  }
  if (listen(socket.number(), 1) != 0) return failed("cannot listen on a Unix socket");
  return done();
}

// The folder, or its nearest existing ancestor, in which it would be created.
fs::path existing_ancestor(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::absolute(folder.empty() ? "." : folder, error);
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

void measure_disk(DoctorInputs& inputs) {
  const fs::path place = existing_ancestor(inputs.run_folder);
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

std::vector<DataSetPlace> find_data_sets(const std::string& data_dir) {
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
  inputs.fit = question.fit;
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
  inputs.data_sets = find_data_sets(question.data_dir);
  std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> inputs.congestion_control;
  return inputs;
}

}  // namespace drover
