#include "launch/cluster_meeting.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "core/atomic_file.h"
#include "launch/cluster_address.h"
#include "net/descriptor.h"
#include "net/endpoint.h"
#include "node/attempts.h"
#include "node/clock.h"
#include "node/host.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTokenFileMax = 4096;
// Pauses between probes: short at first, and long enough later for hundreds of ranks.
constexpr Duration kFirstPause = std::chrono::milliseconds(50);
constexpr Duration kLongestPause = std::chrono::seconds(2);
constexpr int kProbeMs = 2000;
constexpr Duration kReportAfter = std::chrono::seconds(3);

std::string reason() { return std::strerror(errno); }

// Whether users other than the owner can read the file. A file of another owner, such as root, may
// be readable by a group: this user reads it through that group.
bool is_public(const struct stat& about) {
  const bool ours = about.st_uid == ::geteuid();
  return (about.st_mode & (ours ? 0077 : 0027)) != 0;
}

// All numeric addresses of the host in `address`, in the form that net/endpoint.h reads.
Result<std::vector<std::string>> numeric_addresses(const std::string& address) {
  constexpr std::string_view kTcp = "tcp:";
  if (!address.starts_with(kTcp)) return std::vector<std::string>{address};
  const size_t colon = address.rfind(':');
  std::string host = address.substr(kTcp.size(), colon - kTcp.size());
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  const auto known = resolve_host(host);
  if (!known) return known.error();
  std::vector<std::string> addresses;
  for (const std::string& each : known.value()) {
    const bool six = each.find(':') != std::string::npos;
    addresses.push_back(std::string(kTcp) + (six ? "[" + each + "]" : each) +
                        address.substr(colon));
  }
  return addresses;
}

// Makes a probe connection. Returns why it failed; empty: a process listens there. The timeout is
// short, because the token file may name another address by the next probe.
std::string probe(const std::string& address) {
  const auto endpoint = parse_endpoint(address);
  if (!endpoint) return endpoint.error().message;
  const auto& where = endpoint.value().address;
  const Descriptor socket(
      ::socket(where.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) return reason();
  if (::connect(socket.get(), where.data(), static_cast<socklen_t>(where.size())) == 0) return {};
  if (errno != EINPROGRESS) return reason();
  pollfd waiting{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&waiting, 1, kProbeMs) != 1)
    return "no answer within " + std::to_string(kProbeMs) + " ms";
  int trouble = 0;
  socklen_t size = sizeof(trouble);
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &trouble, &size);
  return trouble == 0 ? std::string() : std::strerror(trouble);
}

// Reads the token and the address, and probes the address once.
Result<Invited> try_to_find(const TokenPlace& place, const KnownAddress& known) {
  Invited invited;
  if (!place.text.empty()) {
    const auto key = key_from(place.text);
    if (!key) return key.error();
    invited = {key.value(), place.text, ""};
  } else {
    auto read = read_token_file(place.file);
    if (!read) return read.error();
    invited = std::move(read).value();
  }
  if (!known.given.empty()) invited.address = known.given;
  if (invited.address.empty() && known.otherwise) invited.address = known.otherwise(invited.key);
  if (invited.address.empty())
    return invalid_input("the coordinator's address is not known. Add --coordinator HOST:PORT");
  const auto addresses = numeric_addresses(invited.address);
  if (!addresses) return addresses.error();
  std::string trouble = "its host has no address";
  for (const std::string& each : addresses.value()) {
    trouble = probe(each);
    if (!trouble.empty()) continue;
    invited.address = each;
    return invited;
  }
  return Error{ErrorKind::kDisconnected, "no coordinator at " + invited.address + ": " + trouble};
}

}  // namespace

Result<TokenPlace> find_token_place(const Environment& environment, const std::string& token_file,
                                    const std::string& launch) {
  if (!token_file.empty()) return TokenPlace{.text = {}, .file = token_file};
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  if (const std::string token = value("DROVER_TOKEN"); !token.empty())
    return TokenPlace{.text = token, .file = {}};
  if (launch.empty()) {
    return invalid_input(
        "processes on several hosts need a common token. Give the run's with --token-file, or in "
        "DROVER_TOKEN. If there is none yet, write one to a file that only you can read, for "
        "example with (umask 077; openssl rand -hex 16 > token), and give it to all processes");
  }
  const std::string home = value("HOME");
  if (home.empty())
    return invalid_input("cannot keep the run's token: HOME is not set. Add --token-file FILE");
  return TokenPlace{.text = {}, .file = home + "/.cache/drover/token-" + launch};
}

Result<RunKey> key_from(const std::string& token) {
  if (token.size() < kTokenLettersMin)
    return invalid_input("the token has only " + std::to_string(token.size()) +
                         " letters; it must have at least " + std::to_string(kTokenLettersMin));
  if (auto key = parse_run_key(token); key && key.value().token.size() >= kTokenLettersMin)
    return key;
  return key_of(token);
}

Result<Invited> read_token_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) {
    return Error{errno == ENOENT ? ErrorKind::kTimedOut : ErrorKind::kSystem,
                 "cannot read the token in " + path + ": " + reason()};
  }
  struct stat about {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return invalid_input("cannot read the token in " + path + ": it is not a regular file");
  if (is_public(about))
    return invalid_input("other users can read the token in " + path +
                         " and could join the run. Try: chmod 600 " + path);
  std::array<char, kTokenFileMax> bytes{};
  const ssize_t size = ::read(file.get(), bytes.data(), bytes.size());
  if (size < 0) return system_error("cannot read the token in " + path + ": " + reason());
  const std::string text(bytes.data(), static_cast<size_t>(size));
  const size_t first = std::min(text.find('\n'), text.size());
  Invited invited;
  invited.token = text.substr(0, first);
  while (!invited.token.empty() && std::isspace(static_cast<unsigned char>(invited.token.back())))
    invited.token.pop_back();
  if (first < text.size()) {
    const size_t begin = first + 1;
    invited.address = text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
  }
  const auto key = key_from(invited.token);
  if (!key) return invalid_input(path + ": " + key.error().message);
  invited.key = key.value();
  return invited;
}

Status write_token_file(const std::string& path, const std::string& token,
                        const std::string& address) {
  std::error_code trouble;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty())
    fs::create_directories(folder, trouble);
  return write_file_atomically(path, token + "\n" + address + "\n", {.shared = false});
}

Result<TokenHost> TokenHost::open(const TokenPlace& place, RunId run) {
  TokenHost host;
  host.token_ = place.text;
  if (!place.file.empty()) {
    const auto there = read_token_file(place.file);
    if (there) {
      host.token_ = there.value().token;
      // A file with an address was made by Drover, for a launch that could not remove it.
      if (!there.value().address.empty()) host.file_ = place.file;
    } else if (there.error().kind == ErrorKind::kTimedOut) {
      host.file_ = place.file;
      host.token_ = to_text(RunKey{.run = run, .token = random_token()});
    } else {
      return there.error();
    }
  }
  const auto key = key_from(host.token_);
  if (!key) return key.error();
  host.key_ = key.value();
  return host;
}

Status TokenHost::invite(const std::string& address) {
  return file_.empty() ? done() : write_token_file(file_, token_, address);
}

void TokenHost::close() {
  if (!file_.empty()) ::unlink(file_.c_str());
  file_.clear();
}

Result<Invited> find_coordinator(const TokenPlace& place, const KnownAddress& known,
                                 Duration patience) {
  const TimePoint began = clock_now();
  const TimePoint deadline = began + patience;
  Duration pause = kFirstPause;
  bool reported = false;
  while (true) {
    auto found = try_to_find(place, known);
    if (found) return found;
    // Errors that do not go away with time.
    if (found.error().kind == ErrorKind::kInvalidInput || found.error().kind == ErrorKind::kSystem)
      return found;
    if (clock_now() + pause > deadline) {
      const std::string waited =
          std::to_string(std::chrono::ceil<std::chrono::seconds>(patience).count());
      return Error{ErrorKind::kTimedOut,
                   "found no coordinator within " + waited +
                       " s (--join-timeout): " + found.error().message +
                       (found.error().kind == ErrorKind::kTimedOut
                            ? ". Rank 0 makes that file, unless it fails: see its output. The file "
                              "must be in a folder that all hosts share; if there is none, set "
                              "DROVER_TOKEN on all hosts"
                            : "; see the output of rank 0, which may have failed")};
    }
    if (clock_now() - began > kReportAfter && !std::exchange(reported, true))
      spdlog::info("waiting for the coordinator: {}", found.error().message);
    std::this_thread::sleep_for(pause * (0.75 + 0.5 * random_fraction()));
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace drover
