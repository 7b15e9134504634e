#include "tasks/data/load_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "core/nearest.h"
#include "tasks/data/input_file.h"
#include "tasks/data/readers.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kNames = {"fashion-mnist", "mnist", "cifar10",
                                                    "generated", "generated-text"};
constexpr const char* kFashionMnistDir = "/usr/share/datasets/fashion-mnist";

std::optional<std::string> first_file(const fs::path& dir, const std::vector<std::string>& names) {
  std::error_code ignored;
  for (const std::string& name : names) {
    for (const char* ending : {"", ".gz"}) {
      const fs::path path = dir / (name + ending);
      if (fs::is_regular_file(path, ignored)) return path.string();
    }
  }
  return std::nullopt;
}

// The four IDX files, in either spelling; nothing if none of them exists.
Result<std::optional<Dataset>> try_idx(const fs::path& dir) {
  const auto find = [&](const std::string& part, const std::string& kind) {
    return first_file(dir, {part + "-" + kind + "-ubyte",
                            part + "-" + kind.substr(0, 6) + "." + kind.substr(7) + "-ubyte"});
  };
  const std::array<std::pair<const char*, const char*>, 4> wanted = {{{"train", "images-idx3"},
                                                                      {"train", "labels-idx1"},
                                                                      {"t10k", "images-idx3"},
                                                                      {"t10k", "labels-idx1"}}};
  std::array<std::optional<std::string>, 4> found;
  for (size_t i = 0; i < wanted.size(); ++i) found[i] = find(wanted[i].first, wanted[i].second);
  if (std::none_of(found.begin(), found.end(), [](const auto& path) { return path.has_value(); })) {
    return std::optional<Dataset>{};
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!found[i]) {
      return invalid_input(fmt::format("{} has IDX files, but {}-{}-ubyte[.gz] is missing",
                                       dir.string(), wanted[i].first, wanted[i].second));
    }
  }
  Result<Dataset> dataset = read_idx({*found[0], *found[1], *found[2], *found[3]});
  if (!dataset.ok()) return dataset.error();
  return std::optional(std::move(dataset).value());
}

Result<std::optional<Dataset>> try_cifar10(const fs::path& dir,
                                           const std::vector<std::string>& names) {
  std::vector<std::string> train;
  for (const std::string& name : names) {
    if (name.starts_with("data_batch_") && (name.ends_with(".bin") || name.ends_with(".bin.gz"))) {
      train.push_back((dir / name).string());
    }
  }
  const auto test = first_file(dir, {"test_batch.bin"});
  if (train.empty() && !test) return std::optional<Dataset>{};
  if (train.empty() || !test) {
    return invalid_input(fmt::format("{} has CIFAR-10 batches, but {} is missing", dir.string(),
                                     test ? "data_batch_1.bin[.gz]" : "test_batch.bin[.gz]"));
  }
  Result<Dataset> dataset = read_cifar10(train, *test);
  if (!dataset.ok()) return dataset.error();
  return std::optional(std::move(dataset).value());
}

std::string without_gz(const std::string& name) {
  return name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
}

Result<Dataset> read_file(const std::string& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return file.error();
  std::array<uint8_t, 65536> head{};
  const Result<size_t> got = file.value().read(head);
  if (!got.ok()) return got.error();
  if (got.value() == 0) return invalid_input(fmt::format("{} is empty", path));
  std::string_view text(reinterpret_cast<const char*>(head.data()), got.value());
  if (text.find('\0') != std::string_view::npos) {
    return invalid_input(
        fmt::format("{} is neither LIBSVM nor text: it contains zero bytes. For IDX or CIFAR-10 "
                    "files give the folder.",
                    path));
  }
  if (!looks_like_libsvm(text.substr(0, text.find('\n')))) return read_text(path);
  const fs::path plain = without_gz(path);
  const auto test = first_file(plain.parent_path(), {plain.filename().string() + ".t"});
  return read_libsvm(path, test.value_or(""));
}

Result<Dataset> read_folder(const fs::path& dir) {
  std::vector<std::string> names;
  std::error_code trouble;
  for (fs::directory_iterator entry(dir, trouble), end; !trouble && entry != end;
       entry.increment(trouble)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) names.push_back(entry->path().filename().string());
  }
  if (trouble) {
    return system_error(fmt::format("cannot list {}: {}", dir.string(), trouble.message()));
  }
  std::sort(names.begin(), names.end());
  Result<std::optional<Dataset>> found = try_idx(dir);
  if (found.ok() && !found.value()) found = try_cifar10(dir, names);
  if (!found.ok()) return found.error();
  if (found.value()) return std::move(*found.value());
  for (const std::string& name : names) {
    const std::string plain = without_gz(name);
    if (!plain.ends_with(".t")) continue;
    const auto train = first_file(dir, {plain.substr(0, plain.size() - 2)});
    if (train) return read_libsvm(*train, (dir / name).string());
  }
  if (names.size() == 1) return read_file((dir / names[0]).string());
  return invalid_input(
      fmt::format("no known data set in {}; expected one of: train/t10k-images-idx3-ubyte and "
                  "-labels-idx1-ubyte (IDX); data_batch_1.bin and test_batch.bin (CIFAR-10); NAME "
                  "and NAME.t (LIBSVM); a single text file. Each may end in .gz.",
                  dir.string()));
}

Result<Dataset> read_downloaded(const std::string& name, const TaskSpec& spec) {
  const fs::path dir = fs::path(spec.data_dir.empty() ? default_data_dir() : spec.data_dir) / name;
  std::error_code ignored;
  if (!fs::is_directory(dir, ignored)) {
    return invalid_input(fmt::format("data set {} is not in {}. Get it with: drover data get {}",
                                     name, dir.string(), name));
  }
  return read_folder(dir);
}

Result<Dataset> read_named(const TaskSpec& spec) {
  std::error_code ignored;
  if (spec.data == "generated") return generate_images(spec.seed, spec.generated_samples);
  if (spec.data == "generated-text") return generate_text(spec.seed, spec.generated_samples);
  if (spec.data == "mnist" || spec.data == "cifar10") return read_downloaded(spec.data, spec);
  if (spec.data == "fashion-mnist") {
    if (!fs::is_directory(kFashionMnistDir, ignored)) {
      return invalid_input(fmt::format(
          "data set fashion-mnist is not in {}. Get it with: apt-get install dataset-fashion-mnist",
          kFashionMnistDir));
    }
    return read_folder(kFashionMnistDir);
  }
  if (fs::is_directory(spec.data, ignored)) return read_folder(spec.data);
  if (fs::exists(spec.data, ignored)) return read_file(spec.data);
  if (spec.data.find('/') != std::string::npos) {
    return invalid_input(fmt::format("data: no such folder or file: {}", spec.data));
  }
  return invalid_input(
      fmt::format("data: '{}' is neither a known data set ({}) nor a folder or file.{}", spec.data,
                  fmt::join(kNames, ", "), did_you_mean(spec.data, kNames)));
}

}  // namespace

std::vector<std::string_view> known_datasets() { return {kNames.begin(), kNames.end()}; }

std::string default_data_dir() {
  const char* data_home = std::getenv("XDG_DATA_HOME");
  if (data_home != nullptr && *data_home == '/') return std::string(data_home) + "/drover";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "") + "/.local/share/drover";
}

Result<Dataset> load_dataset(const TaskSpec& spec) {
  if (spec.generated_samples == 0 || spec.generated_samples > 10'000'000) {
    return invalid_input(fmt::format("generated samples: {} is not between 1 and 10,000,000",
                                     spec.generated_samples));
  }
  Result<Dataset> dataset = read_named(spec);
  if (dataset.ok()) dataset.value().name = spec.data;
  return dataset;
}

}  // namespace drover
