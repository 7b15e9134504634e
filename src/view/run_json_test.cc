// The JSON for the page is valid, and applying updates gives the same as the complete state.
#include "view/run_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "view/random_run.h"

namespace drover {
namespace {

using nlohmann::json;

// Applies an update as the page does.
json merged(const json& known, const json& update) {
  json all = known;
  for (const auto& [key, value] : update.items()) {
    if (key != "steps" && key != "heat") {
      all[key] = value;
      continue;
    }
    json part = value;
    const bool replaced = known[key]["per"] != value["per"];
    const auto from = value["from"].get<size_t>();
    EXPECT_TRUE(!replaced || from == 0);
    for (auto& [name, list] : part.items()) {
      if (name == "rows" || !list.is_array()) continue;
      json whole = json::array();
      for (size_t i = 0; i < from; ++i) whole.push_back(known[key][name][i]);
      for (const json& each : list) whole.push_back(each);
      list = whole;
    }
    if (!part.contains("rows") && key == "heat") part["rows"] = known[key]["rows"];
    part["from"] = 0;
    all[key] = part;
  }
  return all;
}

TEST(RunJson, AnUnknownNumberOfStepsIsNull) {
  RunSnapshot snapshot;
  snapshot.progress.step = 7;
  json all = json::parse(all_json(snapshot));
  EXPECT_EQ(all["progress"]["step"], 7);
  EXPECT_TRUE(all["progress"]["steps"].is_null());
  EXPECT_TRUE(all["run"]["steps"].is_null());
  snapshot.progress.steps = 9;
  all = json::parse(all_json(snapshot));
  EXPECT_EQ(all["progress"]["steps"], 9);
  EXPECT_EQ(all["run"]["steps"], 9);
}

TEST(RunJson, HasThePagesFormat) {
  const TempFolder folder;
  RecordedRun run;
  ASSERT_TRUE(run.read(reader_at(random_run_file(folder, 1, 4, 50))).ok());
  const json all = json::parse(all_json(snapshot_of(run, {})));
  EXPECT_EQ(all["format"], 1);
  EXPECT_EQ(all["run"]["id"], "fedcba9876543210");
  EXPECT_EQ(all["run"]["outcome"], "completed");
  EXPECT_EQ(all["run"]["settings"]["workers"], "4");
  EXPECT_EQ(all["run"]["workers"], 4);
  EXPECT_EQ(all["run"]["shards"], 1);
  EXPECT_EQ(all["progress"]["state"], "completed");
  EXPECT_TRUE(all["progress"]["left_s"].is_null());
  EXPECT_EQ(all["steps"]["per"], 1);
  for (const char* name :
       {"step",      "at_s",          "elapsed_s",     "elapsed_min_s", "elapsed_max_s",
        "cutoff",    "alive",         "contributors",  "oracle",        "loss",
        "accuracy",  "samples",       "learning_rate", "noise_scale",   "computing_s",
        "waiting_s", "aggregating_s", "deciding_s",    "moving_s",      "late",
        "refused",   "saved_s",       "saved_about_s", "fresh"}) {
    EXPECT_EQ(all["steps"][name].size(), 50u) << name;
  }
  EXPECT_TRUE(all["steps"]["fresh"][0].is_null());
  EXPECT_EQ(all["steps"]["step"][7].dump(), "7") << "a whole number has no fraction";
  EXPECT_EQ(all["heat"]["rows"][3]["label"], "worker 3");
  EXPECT_EQ(all["heat"]["rows"][3]["node"], "node1");
  EXPECT_EQ(all["heat"]["time_s"].size(), 50u);
  EXPECT_EQ(all["heat"]["time_s"][0].size(), 4u);
  EXPECT_EQ(all["workers"].size(), 4u);
  EXPECT_EQ(all["shards"][0]["shard"], 0);
  EXPECT_TRUE(all["shards"][0]["busy_share"].is_null());
  EXPECT_EQ(all["evaluations"]["step"].size(), 5u);
}

TEST(RunJson, ReplacesInvalidUtf8) {
  const TempFolder folder;
  RunHeader header = sample_header();
  header.command = "drover train \xff\xfe \"quoted\" </script>";
  const std::string path = folder.file("run.db");
  ASSERT_TRUE(RunWriter::create(path, header).ok());
  RecordedRun run;
  ASSERT_TRUE(run.read(reader_at(path)).ok());
  const json all = json::parse(all_json(snapshot_of(run, {})));
  EXPECT_NE(all["run"]["command"].get<std::string>().find("\"quoted\""), std::string::npos);
}

TEST(RunJson, UpdatesGiveTheSameAsTheCompleteState) {
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    const std::string path = folder.file("run.db");
    const auto writer = writer_at(path);
    const RandomRun writes(seed, 2);
    RecordedRun run;
    ASSERT_TRUE(run.read(reader_at(path)).ok());
    RunSnapshot sent = snapshot_of(run, {});
    json known = json::parse(all_json(sent));
    Step step = 0;
    for (uint64_t round = 0; round < 40; ++round) {
      const Step to = step + draw({seed, round}) % 70;
      writes.write(*writer, step, to);
      step = to;
      DROVER_EXPECT_OK(writer->flush());
      ASSERT_TRUE(run.read(reader_at(path)).ok());
      RunSnapshot now = snapshot_of(run, {});
      const std::string update = update_json(sent, now);
      if (!update.empty()) known = merged(known, json::parse(update));
      sent = std::move(now);
      ASSERT_EQ(known, json::parse(all_json(sent))) << "after step " << step;
    }
    EXPECT_GT(sent.steps.per, 1u) << "long enough to have merged buckets";
  }
}

TEST(RunJson, UpdatesHaveOnlyChanges) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  for (Step step = 0; step < 10; ++step)
    DROVER_EXPECT_OK(writer->on_step(sample_step(step, 2), sample_arrivals(step, 2)));
  DROVER_EXPECT_OK(writer->flush());
  RecordedRun run;
  ASSERT_TRUE(run.read(reader_at(path)).ok());
  const RunSnapshot before = snapshot_of(run, {});
  EXPECT_EQ(update_json(before, before), "");
  DROVER_EXPECT_OK(writer->on_step(sample_step(10, 2), sample_arrivals(10, 2)));
  DROVER_EXPECT_OK(writer->flush());
  ASSERT_TRUE(run.read(reader_at(path)).ok());
  const json update = json::parse(update_json(before, snapshot_of(run, {})));
  EXPECT_EQ(update["steps"]["from"], 10);
  EXPECT_EQ(update["steps"]["step"], json::array({10}));
  EXPECT_EQ(update["heat"]["from"], 10);
  EXPECT_FALSE(update["heat"].contains("rows"));
  EXPECT_FALSE(update.contains("events"));
  EXPECT_FALSE(update.contains("evaluations"));
  EXPECT_TRUE(update.contains("progress"));
}

TEST(StepJson, HasThePagesFormat) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  DROVER_EXPECT_OK(writer->on_decision({.step = 0, .cutoff = 3, .alive = 3, .reason = "all"}));
  DROVER_EXPECT_OK(writer->on_decision({.step = 0,
                                        .cutoff = 2,
                                        .alive = 3,
                                        .reason = "one is slow",
                                        .time_limit = std::chrono::milliseconds(20),
                                        .at = std::chrono::milliseconds(5)}));
  auto arrivals = sample_arrivals(0, 3);
  arrivals[2].censored = true;
  DROVER_EXPECT_OK(writer->on_step(sample_step(0, 3), arrivals));
  DROVER_EXPECT_OK(writer->flush());
  const auto detail = read_step(reader_at(path), 0);
  ASSERT_TRUE(detail.ok() && detail.value());
  const json step = json::parse(step_json(*detail.value()));
  EXPECT_EQ(step["cutoff"], 2);
  EXPECT_EQ(step["reason"], "one is slow");
  EXPECT_TRUE(step["decisions"][0]["limit_s"].is_null());
  EXPECT_EQ(step["decisions"][1]["limit_s"], 0.02);
  EXPECT_TRUE(step["oracle"].is_null());
  EXPECT_EQ(
      step["arrivals"][1],
      (json{
          {"worker", 1}, {"time_s", 0.002}, {"censored", false}, {"late", false}, {"used", true}}));
  EXPECT_EQ(step["arrivals"][2]["used"], false);
  EXPECT_TRUE(step["forecast"].is_null());
}

}  // namespace
}  // namespace drover
