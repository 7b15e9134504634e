#include "support/drover_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/check.h"

namespace drover::testing_support {
namespace {

namespace fs = std::filesystem;

Outcome run_to_end(const Command& command) {
  Result<Process> process = Process::start(command);
  DROVER_CHECK(process.ok());
  const Result<Ending> ending = process.value().wait(kRunPatience);
  if (!ending) ADD_FAILURE() << ending.error().message;
  return {ending ? ending.value() : Ending{}, process.value().output(Output::kStdout),
          process.value().output(Output::kStderr)};
}

Process start_train(const Words& words, const TemporaryFolder& folder,
                    const TemporaryFolder& scratch) {
  const Words all = Words{DROVER_BINARY, "train", "--run-file", "run.db"} + words;
  Result<Process> process =
      Process::start({.words = all,
                      .environment = {{"TMPDIR", scratch.path()}, {"TERM", "dumb"}},
                      .directory = folder.path()});
  DROVER_CHECK(process.ok());
  return std::move(process).value();
}

// "drover worker 1" -> "worker 1"; the kernel keeps 15 letters.
std::string name_of_process(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  constexpr std::string_view kPrefix = "drover ";
  if (!name.starts_with(kPrefix)) return name;
  name = name.substr(kPrefix.size());
  const size_t space = name.find(' ');
  const std::string number = space == std::string::npos ? "" : name.substr(space);
  for (const std::string_view word : {"coordinator", "evaluator", "shard", "standby", "worker"}) {
    if (word.starts_with(name.substr(0, space))) return std::string(word) + number;
  }
  return name;
}

std::set<std::string> socket_inodes_of(pid_t pid) {
  std::set<std::string> inodes;
  std::error_code trouble;
  for (const auto& entry :
       fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", trouble)) {
    const std::string target = fs::read_symlink(entry.path(), trouble).string();
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  return inodes;
}

// Names of all Unix sockets on this machine, by inode.
std::multimap<std::string, std::string> unix_sockets() {
  std::multimap<std::string, std::string> names;
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string skipped;
    std::string inode;
    std::string name;
    for (int i = 0; i < 6; ++i) words >> skipped;
    if (words >> inode >> name) names.emplace(inode, name);
  }
  return names;
}

}  // namespace

void PrintTo(const Ending& ending, std::ostream* out) { *out << to_text(ending); }

Outcome run_program(const std::string& program, const Words& words, const std::string& directory) {
  return run_to_end({.words = Words{program} + words, .directory = directory});
}

Outcome drover(const Words& words, const std::string& directory) {
  return run_to_end({.words = Words{DROVER_BINARY} + words,
                     .environment = {{"TERM", "dumb"}},
                     .directory = directory});
}

Outcome drover_under(const std::string& setup, const Words& words, const std::string& directory) {
  // "$@" passes the arguments on unchanged.
  return run_to_end({.words = Words{"/bin/sh", "-c", setup + "; exec \"$@\"", "sh"} +
                              Words{DROVER_BINARY} + words,
                     .environment = {{"TERM", "dumb"}},
                     .directory = directory});
}

nlohmann::json last_line_json(const std::string& text) {
  if (text.empty() || text.back() != '\n') return nullptr;
  const size_t before = text.rfind('\n', text.size() - 2);
  const std::string line = before == std::string::npos ? text : text.substr(before + 1);
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? nlohmann::json(nullptr) : json;
}

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words small_job(const std::string& model) {
  return {"--model", model, "--data", "generated", "--generated-samples", "256"};
}

DroverRun::DroverRun(const Words& words) : process_(start_train(words, folder_, scratch_)) {}

RunReader DroverRun::reader() const {
  Result<RunReader> reader = RunReader::open(run_file());
  if (!reader) ADD_FAILURE() << reader.error().message << "\n--- stderr\n" << err();
  DROVER_CHECK(reader.ok());
  return std::move(reader).value();
}

void DroverRun::wait_for_step(uint64_t steps) {
  const auto line = process_.wait_for_line(" " + std::to_string(steps) + "/", kRunPatience);
  ASSERT_TRUE(line.ok()) << line.error().message;
}

std::map<std::string, pid_t> DroverRun::find_processes() {
  processes_["launcher"] = process_.pid();
  std::set<std::string> inodes = socket_inodes_of(process_.pid());
  for (const pid_t pid : children_of(process_.pid())) {
    processes_[name_of_process(pid)] = pid;
    inodes.merge(socket_inodes_of(pid));
  }
  for (const auto& [inode, name] : unix_sockets()) {
    if (inodes.contains(inode)) sockets_.insert(name);
  }
  return processes_;
}

bool DroverRun::all_processes_end() {
  const auto until = std::chrono::steady_clock::now() + kEndsWithin;
  const auto left = [&] {
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::duration_cast<std::chrono::milliseconds>(
                        until - std::chrono::steady_clock::now()));
  };
  // The outputs close when the last process that holds them has ended.
  const auto closed = process_.wait_for_line([](std::string_view) { return false; }, left());
  bool gone = closed.error().kind == ErrorKind::kDisconnected;
  if (!gone) ADD_FAILURE() << "outputs are still open; " << closed.error().message;
  for (const auto& [name, pid] : processes_) {
    if (wait_until_gone(pid, left())) continue;
    ADD_FAILURE() << name << " is still there";
    gone = false;
  }
  return gone;
}

void DroverRun::expect_nothing_left(bool killed) const {
  for (const auto& [name, pid] : processes_) EXPECT_TRUE(process_gone(pid)) << name;
  for (const auto& [inode, name] : unix_sockets()) EXPECT_FALSE(sockets_.contains(name)) << name;
  EXPECT_EQ(names_in(scratch_.path()), std::vector<std::string>{});
  for (const std::string& name : names_in(folder_.path())) {
    const bool side_file = name == "run.db-wal" || name == "run.db-shm";
    EXPECT_TRUE(name == "run.db" || (killed && side_file)) << name;
  }
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace drover::testing_support
