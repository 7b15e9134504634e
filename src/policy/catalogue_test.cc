#include "policy/catalogue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/test_text.h"
#include "forecast/forecasters.h"
#include "policy/bandit.h"
#include "policy/dbw.h"
#include "policy/mad.h"
#include "policy/walk.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::Not;

std::string trouble(std::string_view text) {
  const auto policy = make_policy(text, {});
  if (policy) return "";
  EXPECT_EQ(policy.error().kind, ErrorKind::kInvalidInput);
  return policy.error().message;
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

TEST(Catalogue, ListsTheDefaultsOfOptions) {
  const MadSettings mad;
  EXPECT_THAT(help("mad"),
              mentions(fmt::format("k={}", mad.deviations), fmt::format("window={}", mad.window),
                       fmt::format("quorum={}", mad.quorum)));
  const BanditSettings bandit;
  EXPECT_THAT(help("bandit"), mentions(fmt::format("memory={}", bandit.memory),
                                       fmt::format("explore={}", bandit.explore)));
  EXPECT_THAT(help("dbw"), mentions(fmt::format("window={}", DbwSettings{}.window)));
  EXPECT_THAT(help("elfving-online"),
              mentions(fmt::format("window={}", ElfvingOnlineSettings{}.window)));
  EXPECT_TRUE(EcdfSettings{}.per_worker);
  EXPECT_THAT(help("ecdf"),
              mentions("each", "pooled", fmt::format("half-life={}", EcdfSettings{}.half_life),
                       fmt::format("{}", EcdfSettings{}.pooled_half_life), "hedge=off"));
  EXPECT_THAT(help("ewma"), mentions(fmt::format("alpha={}", EwmaSettings{}.alpha), "hedge=off"));
}

TEST(Catalogue, ReadsOptions) {
  EXPECT_THAT(reason("static"), mentions("static", 9, 10, "0.943"));
  EXPECT_THAT(reason("static:0.8"), mentions("static", 8, 10, "0.8"));
  EXPECT_EQ(reason("static:share=0.8"), reason("static:0.8"));
  EXPECT_THAT(reason("static:k=7"), mentions("static", 7, 10));
  EXPECT_THAT(reason("deadline:2.5"), mentions("deadline", 10, "2.5 s"));
  EXPECT_THAT(reason("deadline:limit=1e-3"), mentions("deadline", 10, "1 ms"));
  for (const char* text : {"mad:k=3:window=20:quorum=0.5", "mad:2.5", "bandit:memory=100",
                           "bandit:explore=1:30", "dbw:noise=10", "dbw:window=3", "dropcompute",
                           "sync", "elfving", "elfving-online:window=50", "ecdf:pooled",
                           "ecdf:each:half-life=9", "ecdf:mode=pooled", "ewma:0.1"}) {
    EXPECT_EQ(trouble(text), "") << text;
  }
}

TEST(Catalogue, SuggestsTheMostSimilarPolicyAndListsAll) {
  const std::string message = trouble("statik:0.9");
  EXPECT_THAT(message, AllOf(mentions("statik"), proposes("static")));
  for (const PolicyInfo& info : policies()) {
    EXPECT_THAT(message, mentions(info.name));
    EXPECT_THAT(trouble(""), mentions(info.name));
  }
  EXPECT_NE(trouble("Sync"), "");
}

TEST(Catalogue, ExplainsInvalidOptions) {
  EXPECT_THAT(trouble("static:1.5"),
              mentions("static:1.5", "share", 0, 1, "'1.5'", "0.943", "k=100"));
  EXPECT_THAT(trouble("static:0.9:k=3"),
              AllOf(mentions("static:0.9:k=3", "share", "k", "0.943", "k=100"), Not(mentions(0))));
  EXPECT_THAT(trouble("static:k=0"), mentions("static:k=0", "k", 1, "'0'"));
  EXPECT_THAT(trouble("mad:windw=3"), AllOf(mentions("'windw'", "k=3"), proposes("window")));
  EXPECT_THAT(trouble("mad:window=1.5"), mentions("window", 1, 1000, "'1.5'"));
  EXPECT_THAT(trouble("mad:k=3:k=4"), mentions("mad:k=3:k=4", "k"));
  EXPECT_EQ(without(trouble("mad:3:k=4"), "mad:3:k=4"),
            without(trouble("mad:k=3:k=4"), "mad:k=3:k=4"));
  EXPECT_THAT(trouble("ecdf:poold"),
              AllOf(mentions("mode", "each", "pooled", "'poold'"), proposes("pooled")));
  EXPECT_THAT(trouble("sync:3"), mentions("sync:3", "'3'"));
}

TEST(Catalogue, RefusesInvalidNumbers) {
  for (const char* text :
       {"static:", "static:x", "static:0.9x", "static:nan", "static:inf", "static:-0.5", "static:0",
        "static:k=", "static:k=-1", "static:k=99999999999", "static:=0.9", "mad:quorum=2",
        "deadline:0", "deadline:inf", "bandit:1", "dbw:noise=-1", "static:0.9:"}) {
    EXPECT_NE(trouble(text), "") << text;
  }
}

TEST(Catalogue, ADeadlineRequiresALimit) {
  EXPECT_THAT(trouble("deadline"), mentions("deadline", "limit", 0, "2.5"));
}

TEST(Catalogue, AnOracleRequiresForesight) {
  EXPECT_THAT(trouble("oracle"), mentions("oracle", "drover replay", "drover simulate"));
}

TEST(Oracle, ChoosesTheBestCutoff) {
  const Trace trace = {{1.0, 1.0, 4.0, 1.0}, {2.0, 2.1, 2.0, 2.2}, {1.0, 9.0, 9.0, 9.0}};
  const auto walked = walk("oracle", trace, 0.0);
  EXPECT_EQ(walked[0].choice.cutoff, 3u);
  EXPECT_EQ(walked[1].choice.cutoff, 4u);
  EXPECT_EQ(walked[2].choice.cutoff, 1u);
  EXPECT_THAT(walked[0].choice.reason, mentions("oracle", 3, 4, 1));
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

TEST(Oracle, RateHasAHigherLongRunThroughput) {
  const auto trace = make_trace(Shape::kHeavyTail, 5, 500, 10);
  const auto greedy = walk("oracle", trace, 0.2);
  const auto patient = walk("oracle", trace, 0.2, {.objective = Objective::kRate});
  EXPECT_GE(throughput(patient, 0.2), throughput(greedy, 0.2));
}

TEST(Asynchronous, HasNoCutoff) {
  for (const char* text : {"async", "ssp", "ssp:4"}) {
    EXPECT_THAT(trouble(text), AllOf(mentions("async", "ssp", "drover simulate", "drover train"),
                                     Not(mentions("drover replay"))));
  }
}

TEST(Asynchronous, SaysHowFarAheadWorkersMayRun) {
  EXPECT_FALSE(asynchronous_of("async").value().value().staleness);
  EXPECT_EQ(asynchronous_of("ssp").value().value().staleness, 4u);
  EXPECT_EQ(asynchronous_of("ssp:7").value().value().staleness, 7u);
  EXPECT_EQ(asynchronous_of("ssp:staleness=0").value().value().staleness, 0u);
  for (const char* text : {"sync", "static:0.9", "oracle", "deadline:3"}) {
    EXPECT_FALSE(asynchronous_of(text).value()) << text;
  }
  for (const char* text : {"ssp:x", "asink", "static:7", "deadline"}) {
    EXPECT_FALSE(asynchronous_of(text).ok()) << text;
  }
}

}  // namespace
}  // namespace drover::testing_support
