// Slow rules parse to what was written, have useful errors, and apply to the same (step, worker)
// pairs every time.
#include "core/slowness.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/test_text.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Not;
using namespace std::chrono_literals;

SlowRule rule_of(std::string_view text) {
  Result<SlowRule> rule = parse_slow_rule(text);
  EXPECT_TRUE(rule.ok()) << rule.error().message;
  return rule.ok() ? rule.value() : SlowRule{};
}

std::string complaint_about(std::string_view text) {
  const Result<SlowRule> rule = parse_slow_rule(text);
  EXPECT_FALSE(rule.ok()) << text << " should be refused";
  return rule.ok() ? "" : rule.error().message;
}

Slowness slowness_at(const SlowRule& rule, Step step, WorkerId worker) {
  return slowness_of(std::span(&rule, 1), 1, step, worker);
}

TEST(Slowness, ParsesTheExamplesOfTheHeader) {
  SlowRule slower;
  slower.workers = {3, 3};
  slower.factor = 4.0;
  EXPECT_EQ(rule_of("worker=3,factor=4"), slower);

  SlowRule sometimes;
  sometimes.share = 0.05;
  sometimes.delay = 200ms;
  EXPECT_EQ(rule_of("share=0.05,delay=200ms"), sometimes);

  SlowRule at_first;
  at_first.workers = {0, 1};
  at_first.steps = {0, 75};
  at_first.factor = 2.0;
  EXPECT_EQ(rule_of("worker=0-1,factor=2,steps=0-75"), at_first);
}

TEST(Slowness, ParsesTimesInEveryUnit) {
  EXPECT_EQ(rule_of("delay=1.5s").delay, 1500ms);
  EXPECT_EQ(rule_of("delay=10us").delay, 10us);
  EXPECT_EQ(rule_of("delay=7ns").delay, 7ns);
  EXPECT_EQ(rule_of("delay=3600s").delay, 1h);
  EXPECT_EQ(rule_of("delay=0s").delay, 0s);
}

TEST(Slowness, ErrorsNameTheInvalidPart) {
  // The message without the rule itself and the examples of rules.
  const auto says = [](const std::string& text, const auto& matcher) {
    std::string complaint = complaint_about(text);
    for (const std::string& part :
         {text, std::string("worker=3,factor=4"), std::string("share=0.05,delay=200ms")}) {
      const size_t at = complaint.find(part);
      ASSERT_NE(at, std::string::npos) << part << " is not in " << complaint;
      complaint.erase(at, part.size());
    }
    EXPECT_THAT(complaint, matcher) << text;
  };
  says("worker=3,factr=4", AllOf(mentions("factr"), proposes("factor")));
  says("worker=3", mentions("factor", "delay"));
  says("", mentions("key=value"));
  says("factor=2,", mentions("key=value"));
  says("factor", mentions("key=value", "factor"));
  says("factor=2,factor=3", AllOf(mentions("factor"), Not(mentions("delay"))));
  says("worker=-1,factor=2", mentions("worker", "-1", "0-7"));
  says("worker=1-,factor=2", mentions("worker", "1-", "0-7"));
  says("worker=4294967296,factor=2", mentions("worker", "4294967296", "0-7"));
  says("worker=5-3,factor=2", AllOf(mentions("worker", "5-3"), Not(mentions("0-7"))));
  says("steps=1.5,factor=2", mentions("steps", "1.5"));
  says("share=1.01,factor=2", mentions("share", 0, 1, "1.01"));
  says("share=-0.1,factor=2", mentions("share", "-0.1"));
  says("share=nan,factor=2", mentions("share", "nan"));
  says("factor=0.5", mentions("factor", 1, 1000000, "0.5"));
  says("factor=inf", mentions("factor", 1, 1000000, "inf"));
  says("factor=4x", mentions("factor", 1, 1000000, "4x"));
  says("delay=200", mentions("delay", "200", "200ms"));
  says("delay=ms", mentions("delay", "ms", "10us"));
  says("delay=-1s", mentions("delay", "-1s", "10us"));
  says("delay=1.2.3s", mentions("delay", "1.2.3s", "10us"));
  says("delay=2min", mentions("delay", "2min", "10us"));
  says("delay=3601s", mentions("delay", "3601s", "10us"));
  says("delay=99999999999999999999999999s", mentions("delay", "99999999999999999999999999s"));
}

TEST(Slowness, TextParsesToTheSameRule) {
  EXPECT_EQ(to_text(rule_of("delay=1500ms,worker=2-2")), "worker=2,delay=1500ms");
  EXPECT_EQ(to_text(SlowRule{}), "factor=1");
  for (uint64_t seed = 0; seed < 2'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    SlowRule rule;
    const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1.0p-53; };
    if (random() % 2) {
      const auto first = static_cast<WorkerId>(random());
      rule.workers = {first, std::max(first, static_cast<WorkerId>(random()))};
    }
    if (random() % 2) {
      const Step first = random();
      rule.steps = {first, std::max<Step>(first, random())};
    }
    if (random() % 2) rule.share = unit();
    if (random() % 2) rule.factor = 1.0 + 1000.0 * unit();
    if (random() % 2) rule.delay = Duration(random() % 3'600'000'000'000);
    if (random() % 4 == 0) rule.delay = rule.delay / 1'000'000 / 1000 * 1'000'000;
    const Result<SlowRule> again = parse_slow_rule(to_text(rule));
    ASSERT_TRUE(again.ok()) << again.error().message;
    ASSERT_EQ(again.value(), rule) << to_text(rule);
  }
}

TEST(Slowness, AppliesOnlyToItsWorkersAndSteps) {
  const SlowRule rule = rule_of("worker=1-2,steps=10-20,factor=3,delay=5ms");
  for (const auto& [step, worker, hit] : {std::tuple<Step, WorkerId, bool>{10, 1, true},
                                          {20, 2, true},
                                          {9, 1, false},
                                          {21, 1, false},
                                          {10, 0, false},
                                          {10, 3, false}}) {
    const Slowness slowness = slowness_at(rule, step, worker);
    EXPECT_EQ(slowness.factor, hit ? 3.0 : 1.0) << "step " << step << " worker " << worker;
    EXPECT_EQ(slowness.delay, hit ? Duration(5ms) : Duration::zero());
  }
}

TEST(Slowness, MultipliesFactorsAndAddsDelays) {
  const std::vector<SlowRule> rules = {rule_of("factor=2,delay=1ms"),
                                       rule_of("factor=3,delay=2ms")};
  const Slowness slowness = slowness_of(rules, 1, 0, 0);
  EXPECT_EQ(slowness.factor, 6.0);
  EXPECT_EQ(slowness.delay, 3ms);
  EXPECT_EQ(slowness_of({}, 1, 0, 0).factor, 1.0);
}

TEST(Slowness, AppliesToItsShareOfStepsRepeatably) {
  const SlowRule rule = rule_of("share=0.05,delay=200ms");
  int hits = 0;
  int same_elsewhere = 0;
  constexpr int kDraws = 40'000;
  for (Step step = 0; step < kDraws / 4; ++step) {
    for (WorkerId worker = 0; worker < 4; ++worker) {
      const bool hit = slowness_at(rule, step, worker).delay > Duration::zero();
      EXPECT_EQ(hit, slowness_at(rule, step, worker).delay > Duration::zero());
      hits += hit;
      const bool other = slowness_of(std::span(&rule, 1), 2, step, worker).delay > Duration::zero();
      same_elsewhere += hit && other;
    }
  }
  // 2,000 expected; the standard deviation is 44. Another seed shares about 1 in 20 of them.
  EXPECT_NEAR(hits, 2'000, 220);
  EXPECT_LT(same_elsewhere, 200);
}

TEST(Slowness, DrawsIndependentlyForEachRule) {
  const std::vector<SlowRule> rules = {rule_of("share=0.5,factor=2"),
                                       rule_of("share=0.5,factor=3")};
  int seen_by_factor[7] = {};
  for (Step step = 0; step < 1'000; ++step) {
    ++seen_by_factor[static_cast<int>(slowness_of(rules, 1, step, 0).factor)];
  }
  for (const int factor : {1, 2, 3, 6}) EXPECT_GT(seen_by_factor[factor], 180) << factor;
}

TEST(Slowness, AShareOfZeroOrOneIsExact) {
  const SlowRule never = rule_of("share=0,factor=2");
  const SlowRule always = rule_of("share=1,factor=2");
  for (Step step = 0; step < 1'000; ++step) {
    ASSERT_EQ(slowness_at(never, step, 0).factor, 1.0);
    ASSERT_EQ(slowness_at(always, step, 0).factor, 2.0);
  }
}

}  // namespace
}  // namespace drover
