// For tests only: a temporary folder, and records of a small run.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "store/run_reader.h"
#include "store/run_writer.h"

namespace drover {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "drover-test-XXXXXX").string();
    DROVER_CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string make_file(const std::string& name, const std::string& content) const {
    std::ofstream stream(path_ / name);
    stream << content;
    return file(name);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline RunHeader sample_header() {
  return RunHeader{.run_id = 0xfedcba9876543210,
                   .started = "2026-07-01T12:00:00Z",
                   .command = "drover train lenet --workers 4",
                   .job = "workers = 4\n",
                   .settings = {{"shards", "2"}, {"workers", "4"}},
                   .environment = {{"cores", "2"}, {"host", "it's a \"host\""}}};
}

inline std::unique_ptr<RunWriter> writer_at(const std::string& path,
                                            const RunWriterOptions& options = {}) {
  auto writer = RunWriter::create(path, sample_header(), options);
  if (!writer) ADD_FAILURE() << writer.error().message;
  return std::move(writer).value();
}

inline RunReader reader_at(const std::string& path) {
  auto reader = RunReader::open(path);
  if (!reader) ADD_FAILURE() << reader.error().message;
  return std::move(reader).value();
}

// A step of 10 ms in which worker w of `workers` arrives after w + 1 ms. It depends on `step` only.
inline StepRecord sample_step(Step step, uint32_t workers) {
  return StepRecord{.step = step,
                    .at = std::chrono::milliseconds(10 * step),
                    .elapsed = std::chrono::milliseconds(9),
                    .contributors = workers,
                    .late = 0,
                    .refused = 0,
                    .samples = uint64_t{64} * workers,
                    .loss = 2.0 / static_cast<double>(step + 1),
                    .accuracy = 0.5,
                    .learning_rate = 0.05,
                    .last_worker = workers - 1,
                    .aggregate = std::chrono::microseconds(300)};
}

inline std::vector<ArrivalRecord> sample_arrivals(Step step, uint32_t workers) {
  std::vector<ArrivalRecord> arrivals;
  arrivals.reserve(workers);
  for (WorkerId worker = 0; worker < workers; ++worker) {
    arrivals.push_back({.step = step,
                        .worker = worker,
                        .run_time = std::chrono::milliseconds(worker + 1),
                        .censored = false,
                        .compute = std::chrono::microseconds(500 * (worker + 1))});
  }
  return arrivals;
}

#define DROVER_EXPECT_OK(expression)                                    \
  do {                                                                  \
    const auto drover_outcome = (expression);                           \
    EXPECT_TRUE(drover_outcome.ok())                                    \
        << (drover_outcome.ok() ? "" : drover_outcome.error().message); \
  } while (false)

}  // namespace drover
