#include "store/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "store/npy.h"
#include "store/trace_csv.h"
#include "store/trace_run.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRunFileMark("SQLite format 3\0", 16);
constexpr std::string_view kZipMark("PK\x03\x04", 4);
constexpr std::string_view kGzipMark("\x1f\x8b", 2);

Error cannot_open(const std::string& path, const std::string& why) {
  return system_error(fmt::format("cannot read the trace '{}': {}", path, why));
}

Status check_is_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return cannot_open(path, "there is no such file; check its name");
  }
  if (error) return cannot_open(path, error.message());
  if (status.type() == fs::file_type::directory) {
    return cannot_open(path, "it is a folder; name one of the files in it");
  }
  if (status.type() != fs::file_type::regular) {
    return cannot_open(path, "it is not a regular file; write its content to a file first");
  }
  return done();
}

// The first bytes, which identify the format.
Result<std::string> beginning_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return cannot_open(path, std::strerror(errno));
  std::array<char, 4096> bytes{};
  file.read(bytes.data(), bytes.size());
  return std::string(bytes.data(), static_cast<size_t>(file.gcount()));
}

bool looks_like_text(std::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t';
  });
}

Result<Trace> read_by_content(const std::string& path, std::string_view beginning) {
  if (beginning.starts_with(kNpyMark)) return read_npy_trace(path);
  if (beginning.starts_with(kRunFileMark)) return read_run_trace(path);
  constexpr const char* kKinds =
      "a trace is a CSV file (step,w0,w1,...), an NPY file (numpy.save of a matrix, steps by "
      "workers) or a run file of drover";
  if (beginning.empty()) return trace_trouble(path, "", fmt::format("it is empty; {}", kKinds));
  if (beginning.starts_with(kZipMark)) {
    return trace_trouble(path, "",
                         "it is a ZIP archive (an .npz file is one too); take the matrix out of "
                         "it and save it alone, with numpy.save");
  }
  if (beginning.starts_with(kGzipMark)) {
    return trace_trouble(path, "", "it is compressed; unpack it with gunzip first");
  }
  if (!looks_like_text(beginning)) {
    return trace_trouble(path, "", fmt::format("its format is unknown; {}", kKinds));
  }
  return read_csv_trace(path);
}

bool read_count(std::string_view text, Step& count) {
  const auto [stop, trouble] = std::from_chars(text.data(), text.data() + text.size(), count);
  return trouble == std::errc{} && stop == text.data() + text.size();
}

}  // namespace

Error trace_trouble(const std::string& path, std::string_view where, const std::string& what) {
  return invalid_input(fmt::format("cannot use the trace '{}'{}{}: {}", path,
                                   where.empty() ? "" : ", ", where, what));
}

std::string time_trouble(double time) {
  if (std::isinf(time)) return "is infinite; leave it blank (NaN) if it was not recorded";
  if (time < 0.0) return "is negative; run-times are positive";
  if (time == 0.0) return "is zero; leave it blank (NaN) if it was not recorded";
  if (time < kTraceTimeMin || time > kTraceTimeMax) {
    return fmt::format("is out of range: use a unit in which all run-times are from {:g} to {:g}",
                       kTraceTimeMin, kTraceTimeMax);
  }
  return "";
}

Status check_nothing_is_empty(const Trace& trace, int64_t first_line) {
  std::vector<bool> seen(trace.workers.size());
  for (Step step = 0; step < trace.steps(); ++step) {
    const std::span<const double> row = trace.row(step);
    bool any = false;
    for (size_t worker = 0; worker < row.size(); ++worker) {
      if (std::isnan(row[worker])) continue;
      any = true;
      seen[worker] = true;
    }
    if (any) continue;
    const std::string where =
        first_line < 0 ? fmt::format("row {}", step)
                       : fmt::format("line {}", static_cast<uint64_t>(first_line) + step);
    return trace_trouble(trace.path, where,
                         "no worker was recorded in this step; take the row out");
  }
  const auto never = std::find(seen.begin(), seen.end(), false);
  if (never == seen.end()) return done();
  const auto column = static_cast<size_t>(never - seen.begin());
  const std::string name = fmt::format("column '{}'", trace.workers[column]);
  return trace_trouble(trace.path, first_line < 0 ? name : "line 1, " + name,
                       "this worker was not recorded in any step; take the column out");
}

Result<StepRange> parse_step_range(std::string_view text) {
  const auto wrong = [&](const char* why) {
    return invalid_input(fmt::format(
        "cannot read the steps '{}': {}; write FROM:TO, for example 100:200 for rows 100 to 199, "
        "or 100: for all from row 100 on",
        text, why));
  };
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return wrong("there is no colon");
  const std::string_view from = text.substr(0, colon);
  const std::string_view to = text.substr(colon + 1);
  StepRange range;
  if (!from.empty() && !read_count(from, range.from)) return wrong("FROM is not a whole number");
  range.open_ended = to.empty();
  if (!to.empty() && !read_count(to, range.to)) return wrong("TO is not a whole number");
  if (!range.open_ended && range.to <= range.from) return wrong("it holds no step");
  return range;
}

Result<Step> end_of(const StepRange& range, Step steps, const std::string& path) {
  const Step to = range.open_ended ? steps : range.to;
  if (range.from < steps && to <= steps) return to;
  return trace_trouble(
      path, "",
      fmt::format("--steps asks for rows {} to {}, but the trace has {} rows, 0 to {}", range.from,
                  range.open_ended ? "the last" : std::to_string(to - 1), steps, steps - 1));
}

Status keep_steps(Trace& trace, const StepRange& range) {
  const Result<Step> to = end_of(range, trace.steps(), trace.path);
  if (!to) return to.error();
  const size_t width = trace.workers.size();
  trace.times.resize(to.value() * width);
  trace.times.erase(trace.times.begin(),
                    trace.times.begin() + static_cast<std::ptrdiff_t>(range.from * width));
  return done();
}

Result<bool> is_run_file(const std::string& path) {
  if (Status status = check_is_file(path); !status) return status.error();
  const Result<std::string> beginning = beginning_of(path);
  if (!beginning) return beginning.error();
  return beginning.value().starts_with(kRunFileMark);
}

Result<Trace> read_trace(const std::string& path) {
  if (const Status status = check_is_file(path); !status) return status.error();
  const Result<std::string> beginning = beginning_of(path);
  if (!beginning) return beginning.error();
  Result<Trace> trace = read_by_content(path, beginning.value());
  if (!trace) return trace;
  if (trace.value().workers.size() < 2) {
    return trace_trouble(
        path, "",
        "there is only one worker, so a policy has nothing to decide; a trace needs at "
        "least two");
  }
  return trace;
}

}  // namespace drover
