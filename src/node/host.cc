#include "node/host.h"

#include <malloc.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>
#include <thread>

#include "core/check.h"

namespace drover {
namespace {

// The value of the first line "key: value" of `path`.
std::string line_after(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t begin = line.find_first_not_of(" \t:", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// Open files besides connections to workers: to other processes, the run file, pending connections.
constexpr uint64_t kFilesBesides = 32;

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "unknown";
}

uint64_t peak_memory_bytes(int64_t pid) {
  const std::string text = line_after("/proc/" + std::to_string(pid) + "/status", "VmHWM");
  return text.empty() ? 0 : std::stoull(text) * 1024;
}

uint64_t raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_max;
}

std::string too_few_files(uint64_t limit, uint64_t workers) {
  // A shard has two connections to every worker.
  const uint64_t needed = 2 * workers + kFilesBesides;
  if (limit >= needed) return "";
  return "a process may have " + std::to_string(limit) + " files open here, and a shard needs " +
         std::to_string(needed) + " for " + std::to_string(workers) +
         " workers: those beyond will not get in. Raise the limit (ulimit -Hn, or LimitNOFILE= of "
         "the service), or take fewer workers";
}

void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value that glibc accepts
  ::mallopt(M_TOP_PAD, 16 << 20);
#endif
}

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  DROVER_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> describe_host() {
  utsname system{};
  ::uname(&system);
  return {{"host", host_name()},
          {"cpu", line_after("/proc/cpuinfo", "model name")},
          {"cores", std::to_string(std::thread::hardware_concurrency())},
          {"memory", line_after("/proc/meminfo", "MemTotal")},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"compiler", __VERSION__}};
}

}  // namespace drover
