#include "policy/catalogue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "forecast/forecasters.h"
#include "policy/bandit.h"
#include "policy/dbw.h"
#include "policy/mad.h"
#include "policy/walk.h"

namespace drover::testing_support {
namespace {

std::string trouble(std::string_view text) {
  const auto policy = make_policy(text, {});
  return policy ? "" : policy.error().message;
}

std::string reason(std::string_view text, size_t workers = 10) {
  return walk(text, {std::vector(workers, 1.0)}).front().choice.reason;
}

TEST(Catalogue, ListsEveryPolicyOnce) {
  std::set<std::string_view> names;
  for (const PolicyInfo& info : policies()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.summary.empty());
    EXPECT_EQ(info.name.find_first_of(":,= "), std::string_view::npos);
  }
  for (const char* name : {"sync", "static", "deadline", "mad", "bandit", "dbw", "dropcompute",
                           "elfving", "elfving-online", "ecdf", "ewma", "oracle", "async", "ssp"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

std::string_view help(std::string_view name) {
  for (const PolicyInfo& info : policies()) {
    if (info.name == name) return info.options;
  }
  return {};
}

TEST(Catalogue, TellsWhatIsUsual) {
  const MadSettings mad;
  EXPECT_EQ(help("mad"), fmt::format("k={}, window={} (steps), quorum={} (share)", mad.deviations,
                                     mad.window, mad.quorum));
  const BanditSettings bandit;
  EXPECT_EQ(help("bandit"),
            fmt::format("memory={} (steps), explore={}", bandit.memory, bandit.explore));
  EXPECT_TRUE(help("dbw").ends_with(fmt::format("window={} (arrivals)", DbwSettings{}.window)));
  EXPECT_EQ(help("elfving-online"),
            fmt::format("window={} (steps)", ElfvingOnlineSettings{}.window));
  EXPECT_EQ(help("ecdf"),
            fmt::format("{} (mode, usual) or pooled, half-life={} (steps; pooled: {}), hedge=off",
                        EcdfSettings{}.per_worker ? "each" : "?", EcdfSettings{}.half_life,
                        EcdfSettings{}.pooled_half_life));
  EXPECT_EQ(help("ewma"), fmt::format("alpha={} (weight of the newest run-time), hedge=off",
                                      EwmaSettings{}.alpha));
}

TEST(Catalogue, ReadsOptions) {
  EXPECT_EQ(reason("static"), "static: 9 of 10 workers alive, a share of 0.943");
  EXPECT_EQ(reason("static:0.8"), "static: 8 of 10 workers alive, a share of 0.8");
  EXPECT_EQ(reason("static:share=0.8"), reason("static:0.8"));
  EXPECT_EQ(reason("static:k=7"), "static: 7 of 10 workers alive");
  EXPECT_EQ(reason("deadline:2.5"), "deadline: all 10 workers, but no longer than 2.5");
  EXPECT_EQ(reason("deadline:limit=1e-3"), "deadline: all 10 workers, but no longer than 0.001");
  for (const char* text : {"mad:k=3:window=20:quorum=0.5", "mad:2.5", "bandit:memory=100",
                           "bandit:explore=1:30", "dbw:noise=10", "dbw:window=3", "dropcompute",
                           "sync", "elfving", "elfving-online:window=50", "ecdf:pooled",
                           "ecdf:each:half-life=9", "ecdf:mode=pooled", "ewma:0.1"}) {
    EXPECT_EQ(trouble(text), "") << text;
  }
}

TEST(Catalogue, NamesTheNearestPolicyAndAllThereAre) {
  const std::string message = trouble("statik:0.9");
  EXPECT_EQ(
      message.find("there is no policy 'statik'. Did you mean 'static'? There are sync, static, "),
      0u)
      << message;
  EXPECT_NE(trouble("").find("there is no policy ''. There are sync"), std::string::npos);
  EXPECT_NE(trouble("Sync"), "");
}

TEST(Catalogue, SaysWhatIsWrongWithAnOption) {
  EXPECT_EQ(trouble("static:1.5"),
            "policy 'static:1.5': share must be a number of more than 0 and at most 1, not '1.5'. "
            "static takes "
            "0.943 (share, usual) or k=100 (number)");
  EXPECT_EQ(trouble("static:0.9:k=3"),
            "policy 'static:0.9:k=3': share and k cannot both be given. static takes 0.943 (share, "
            "usual) or k=100 "
            "(number)");
  EXPECT_NE(trouble("static:k=0").find("k must be a whole number of at least 1, not '0'"),
            std::string::npos);
  EXPECT_NE(
      trouble("mad:windw=3").find("unknown option 'windw'. Did you mean 'window'? mad takes k=3"),
      std::string::npos);
  EXPECT_NE(
      trouble("mad:window=1.5").find("window must be a whole number from 1 to 1000, not '1.5'"),
      std::string::npos);
  EXPECT_NE(trouble("mad:k=3:k=4").find("k is given twice"), std::string::npos);
  EXPECT_NE(trouble("mad:3:k=4").find("k is given twice"), std::string::npos);
  EXPECT_NE(
      trouble("ecdf:poold")
          .find("mode must be each or pooled, not 'poold'. Did you mean 'pooled'? ecdf takes each"),
      std::string::npos);
  EXPECT_EQ(trouble("sync:3"), "policy 'sync:3': takes no options, not even '3'");
}

TEST(Catalogue, RefusesWhatIsNoNumber) {
  for (const char* text :
       {"static:", "static:x", "static:0.9x", "static:nan", "static:inf", "static:-0.5", "static:0",
        "static:k=", "static:k=-1", "static:k=99999999999", "static:=0.9", "mad:quorum=2",
        "deadline:0", "deadline:inf", "bandit:1", "dbw:noise=-1", "static:0.9:"}) {
    EXPECT_NE(trouble(text), "") << text;
  }
}

TEST(Catalogue, ADeadlineNeedsItsTime) {
  EXPECT_EQ(trouble("deadline"),
            "policy 'deadline': limit must be given, a number of more than 0. deadline takes 2.5 "
            "(limit, in the "
            "unit of the run-times; needed)");
}

TEST(Catalogue, OnlyThoseWhoKnowTheFutureHaveAnOracle) {
  EXPECT_NE(trouble("oracle").find("only a replay or a simulation can"), std::string::npos);
}

TEST(Oracle, ChoosesTheBestInHindsight) {
  const Trace trace = {{1.0, 1.0, 4.0, 1.0}, {2.0, 2.1, 2.0, 2.2}, {1.0, 9.0, 9.0, 9.0}};
  const auto walked = walk("oracle", trace, 0.0);
  EXPECT_EQ(walked[0].choice.cutoff, 3u);
  EXPECT_EQ(walked[1].choice.cutoff, 4u);
  EXPECT_EQ(walked[2].choice.cutoff, 1u);
  EXPECT_EQ(walked[0].choice.reason, "oracle: 3 of 4 workers are there by 1");
}

TEST(Oracle, NoPolicyHasAHigherThroughputInAnyStep) {
  for (const auto shape : kShapes) {
    const auto trace = make_trace(shape, 5, 60, 10);
    const auto oracle = walk("oracle", trace, 0.2);
    for (const char* text : {"sync", "static:0.8", "deadline:1.1", "mad", "bandit", "dbw",
                             "dropcompute", "elfving", "elfving-online", "ecdf", "ewma"}) {
      const auto other = walk(text, trace, 0.2);
      for (size_t step = 0; step < trace.size(); ++step) {
        const auto value = [&](const Walked& walked) {
          return walked.close.contributors / (0.2 + walked.close.elapsed);
        };
        EXPECT_GE(value(oracle[step]), value(other[step]) - 1e-12) << text;
      }
    }
  }
}

TEST(Oracle, WithRateItDoesBetterInTheLongRun) {
  const auto trace = make_trace(Shape::kHeavyTail, 5, 500, 10);
  const auto greedy = walk("oracle", trace, 0.2);
  const auto patient = walk("oracle", trace, 0.2, {.objective = Objective::kRate});
  EXPECT_GE(throughput(patient, 0.2), throughput(greedy, 0.2));
}

TEST(FreeRunning, HasNoCutoff) {
  for (const char* text : {"async", "ssp", "ssp:4"}) {
    EXPECT_NE(trouble(text).find("have no cutoff"), std::string::npos) << trouble(text);
    EXPECT_NE(trouble(text).find("drover simulate or drover train"), std::string::npos);
  }
}

TEST(FreeRunning, SaysHowFarAheadWorkersMayRun) {
  EXPECT_FALSE(free_running_of("async").value().value().staleness);
  EXPECT_EQ(free_running_of("ssp").value().value().staleness, 4u);
  EXPECT_EQ(free_running_of("ssp:7").value().value().staleness, 7u);
  EXPECT_EQ(free_running_of("ssp:staleness=0").value().value().staleness, 0u);
  for (const char* text : {"sync", "static:0.9", "oracle", "deadline:3"}) {
    EXPECT_FALSE(free_running_of(text).value()) << text;
  }
  for (const char* text : {"ssp:x", "asink", "static:7", "deadline"}) {
    EXPECT_FALSE(free_running_of(text).ok()) << text;
  }
}

}  // namespace
}  // namespace drover::testing_support
