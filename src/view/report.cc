#include "view/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "core/check.h"
#include "view/page_asset.h"
#include "view/run_follower.h"
#include "view/run_json.h"

namespace drover {
namespace {

constexpr uint64_t kDetailedSteps = 40;

std::string quoted_json(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// In JSON '<' occurs only in strings, where it can be escaped. Without '<' the text cannot end the
// script element or begin a comment.
std::string without_tags(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string run_json(const ReportedRun& run) {
  std::string text = all_json(run.snapshot);
  DROVER_CHECK(text.back() == '}');
  text.pop_back();
  text += ",\"steps_detail\":{";
  bool first = true;
  for (const auto& [step, detail] : run.details) {
    text += fmt::format("{}\"{}\":{}", first ? "" : ",", step, step_json(detail));
    first = false;
  }
  return text + "}}";
}

Error cannot_write(const std::string& path, const std::string& why) {
  return system_error(
      fmt::format("cannot write the report to {}: {}; choose another path with --out", path, why));
}

}  // namespace

Result<ReportedRun> read_for_report(const std::string& path, Duration wall_clock) {
  RunFollower follower(only_run(path));
  while (true) {
    const auto news = follower.poll();
    if (!news) return news.error();
    if (news.value() != RunFollower::PollResult::kMoreToRead) break;
  }
  ReportedRun run{.snapshot = follower.snapshot(wall_clock), .details = {}};
  const uint64_t steps = run.snapshot.progress.step;
  const uint64_t shown = std::min(steps, kDetailedSteps);
  const Result<RunReader> reader = RunReader::open(path);
  if (!reader) return reader.error();
  for (uint64_t i = 0; i < shown; ++i) {
    const Step step = shown > 1 ? i * (steps - 1) / (shown - 1) : 0;
    auto detail = read_step(reader.value(), step);
    if (!detail) return detail.error();
    if (detail.value()) run.details.emplace(step, std::move(*detail.value()));
  }
  return run;
}

std::string report_html(const std::vector<ReportedRun>& runs, const ReportFacts& facts) {
  std::string data = "{\"runs\":[";
  for (size_t i = 0; i < runs.size(); ++i) data += (i > 0 ? "," : "") + run_json(runs[i]);
  data += fmt::format("],\"made\":{},\"command\":{}}}", quoted_json(facts.made),
                      quoted_json(facts.command));
  std::string page(page_html());
  const size_t place = page.find(kDataElement);
  DROVER_CHECK(place != std::string::npos);
  const size_t opening = kDataElement.find("</script>");
  return page.insert(place + opening, without_tags(data));
}

Status write_report(const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return cannot_write(path, "it is a folder");
  {
    constexpr std::string_view kDatabase = "SQLite format 3";
    std::string begin(kDatabase.size(), '\0');
    std::ifstream existing(path, std::ios::binary);
    if (existing.read(begin.data(), static_cast<std::streamsize>(begin.size())) &&
        begin == kDatabase)
      return cannot_write(path, "it is a database and may be a run file");
  }
  const Status written = write_file_atomically(path, text, {.contended = true});
  if (!written) return system_error(written.error().message + "; choose another path with --out");
  return done();
}

}  // namespace drover
