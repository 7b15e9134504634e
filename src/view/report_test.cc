// A report contains the runs, and their data cannot break out of its element.
#include "view/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/event_samples.h"
#include "view/page_asset.h"
#include "view/random_run.h"

namespace drover {
namespace {

using nlohmann::json;

ReportedRun reported(const std::string& path) {
  auto run = read_for_report(path, {});
  EXPECT_TRUE(run.ok()) << (run.ok() ? "" : run.error().message);
  return std::move(run).value();
}

// The data as a browser reads it: up to the first end of a script element.
json data_in(const std::string& html) {
  const std::string opening(kDataElement.substr(0, kDataElement.find("</script>")));
  const size_t begin = html.find(opening) + opening.size();
  return json::parse(html.substr(begin, html.find("</script", begin) - begin));
}

size_t count(const std::string& text, std::string_view word) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST(Page, HasOneDataElement) { EXPECT_EQ(count(std::string(page_html()), kDataElement), 1u); }

TEST(Report, ContainsTheRuns) {
  const TempFolder folder;
  const std::vector<ReportedRun> runs = {reported(random_run_file(folder, 1, 3, 200)),
                                         reported(random_run_file(folder, 2, 4, 10))};
  const json data = data_in(report_html(runs, {"2026-07-01T12:00:00Z", "drover report a b"}));
  EXPECT_EQ(data["made"], "2026-07-01T12:00:00Z");
  EXPECT_EQ(data["command"], "drover report a b");
  ASSERT_EQ(data["runs"].size(), 2u);
  EXPECT_EQ(data["runs"][0]["progress"]["step"], 200);
  EXPECT_EQ(data["runs"][0]["steps_detail"].size(), 40u);
  EXPECT_TRUE(data["runs"][0]["steps_detail"].contains("0"));
  EXPECT_TRUE(data["runs"][0]["steps_detail"].contains("199"));
  EXPECT_EQ(data["runs"][0]["steps_detail"]["199"]["step"], 199);
  EXPECT_EQ(data["runs"][1]["steps_detail"].size(), 10u);
  EXPECT_EQ(data["runs"][1]["run"]["workers"], 4);
}

TEST(Report, EscapesItsData) {
  const TempFolder folder;
  const std::string evil = "</script><script>alert(1)</script><!-- </SCRIPT >";
  RunHeader header = sample_header();
  header.command = evil;
  header.settings.emplace_back("model", evil);
  const std::string path = folder.file("run.db");
  {
    auto writer = RunWriter::create(path, header);
    ASSERT_TRUE(writer.ok());
    DROVER_EXPECT_OK(
        writer.value()->on_event(lost_event(Duration{}, 0, Peer{Role::kWorker, 1}, evil)));
  }
  const std::string html = report_html({reported(path)}, {evil, evil});
  const json data = data_in(html);
  EXPECT_EQ(data["runs"][0]["run"]["model"], evil);
  EXPECT_EQ(data["command"], evil);
  EXPECT_EQ(count(html, "</script"), count(std::string(page_html()), "</script"));
  EXPECT_EQ(count(html, "<!--"), count(std::string(page_html()), "<!--"));
  EXPECT_EQ(count(html, "alert(1)"), count(html, "\\u003cscript>alert(1)"));
}

TEST(Report, AnEmptyRunIsMarked) {
  const TempFolder folder;
  writer_at(folder.file("run.db"));
  const ReportedRun run = reported(folder.file("run.db"));
  EXPECT_EQ(run.snapshot.progress.step, 0u);
  const json data = data_in(report_html({run}, {}));
  EXPECT_TRUE(data["runs"][0]["steps_detail"].empty());
  EXPECT_NE(report_markdown({run}, {}).find("not ended"), std::string::npos);
}

TEST(Report, RefusesOtherFiles) {
  const TempFolder folder;
  const auto text = read_for_report(folder.make_file("notes.txt", "Dear diary, today I"), {});
  ASSERT_FALSE(text.ok());
  EXPECT_NE(text.error().message.find("not an SQLite database"), std::string::npos);
  EXPECT_FALSE(read_for_report(folder.file("missing.db"), {}).ok());
  const std::string newer = random_run_file(folder, 1, 2, 3);
  {
    auto database = Database::open(newer, Database::Mode::kReadWrite);
    ASSERT_TRUE(database.ok());
    DROVER_EXPECT_OK(database.value().execute("PRAGMA user_version = 99"));
  }
  const auto schema = read_for_report(newer, {});
  ASSERT_FALSE(schema.ok());
  EXPECT_NE(schema.error().message.find("newer drover"), std::string::npos);
}

TEST(Markdown, ComparesRunsAndSaysHowToReproduceThem) {
  const TempFolder folder;
  const std::vector<ReportedRun> runs = {reported(random_run_file(folder, 1, 3, 20)),
                                         reported(random_run_file(folder, 2, 4, 10))};
  const std::string text = report_markdown(runs, {"2026-07-01T12:00:00Z", "drover report"});
  EXPECT_NE(text.find("| outcome | completed | completed |"), std::string::npos) << text;
  EXPECT_NE(text.find("| steps | 20 | 10 |"), std::string::npos) << text;
  for (const ReportedRun& run : runs) {
    const PageTotals& totals = run.snapshot.totals;
    EXPECT_EQ(totals.saved_exact, false);
    EXPECT_GT(totals.saved_about_s, totals.saved_s);
  }
  EXPECT_NE(text.find("| time saved vs. synchronous | at least "), std::string::npos) << text;
  EXPECT_NE(text.find(" by forecast |"), std::string::npos) << text;
  EXPECT_NE(text.find("drover train lenet --workers 4"), std::string::npos);
  EXPECT_NE(text.find("workers = 4"), std::string::npos);
}

TEST(Markdown, ShowsThePlannedNumberOfStepsIfKnown) {
  const TempFolder folder;
  ReportedRun run = reported(random_run_file(folder, 1, 3, 20));
  const auto steps_line = [&] {
    const std::string text = report_markdown({run}, {"2026-07-01T12:00:00Z", "drover report"});
    const size_t begin = text.find("| steps | ");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  run.snapshot.progress.steps = 1'500;
  EXPECT_EQ(steps_line(), "| steps | 20 of 1,500 |");
  run.snapshot.progress.steps.reset();
  EXPECT_EQ(steps_line(), "| steps | 20 |");
}

TEST(Markdown, EscapesTexts) {
  const TempFolder folder;
  RunHeader header = sample_header();
  header.settings.emplace_back("model", "a|b\nc");
  header.command = "```\n# not a title";
  const std::string path = folder.file("run.db");
  ASSERT_TRUE(RunWriter::create(path, header).ok());
  const std::string text = report_markdown({reported(path)}, {});
  EXPECT_NE(text.find("| model | a\\|b c |"), std::string::npos) << text;
  EXPECT_NE(text.find("````sh\n```\n"), std::string::npos) << text;
}

TEST(WriteReport, ReplacesAnEarlierReport) {
  const TempFolder folder;
  const std::string path = folder.file("report.html");
  DROVER_EXPECT_OK(write_report(path, "first"));
  DROVER_EXPECT_OK(write_report(path, "second"));
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text, "second");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            1);
}

TEST(WriteReport, RefusesToReplaceARunFile) {
  const TempFolder folder;
  const std::string path = random_run_file(folder, 1, 2, 3);
  const Status over_a_run = write_report(path, "text");
  ASSERT_FALSE(over_a_run.ok());
  EXPECT_NE(over_a_run.error().message.find("may be a run file"), std::string::npos);
  EXPECT_TRUE(RunReader::open(path).ok());
  EXPECT_FALSE(write_report(folder.path().string(), "text").ok());
  EXPECT_FALSE(write_report(folder.file("missing/report.html"), "text").ok());
}

}  // namespace
}  // namespace drover
