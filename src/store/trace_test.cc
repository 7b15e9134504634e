#include "store/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "core/random_draw.h"
#include "core/test_text.h"
#include "store/test_run.h"

namespace drover {
namespace {

Trace trace_in(const std::string& text) {
  const TempFolder folder;
  Result<Trace> trace = read_trace(folder.make_file("trace.csv", text));
  if (!trace) ADD_FAILURE() << trace.error().message;
  return trace ? std::move(trace).value() : Trace{.workers = {"none"}};
}

std::string error_of(const std::string& text) {
  const TempFolder folder;
  const std::string path = folder.make_file("trace.csv", text);
  const Result<Trace> trace = read_trace(path);
  EXPECT_FALSE(trace.ok()) << text;
  if (trace) return "";
  EXPECT_THAT(trace.error(), is_error(ErrorKind::kInvalidInput, path)) << "names the file";
  return without(trace.error().message, path);
}

TEST(CsvTrace, HasARowForEveryStepAndAColumnForEveryWorker) {
  const Trace trace = trace_in("step,w0,w1,slow one\n0,1,2.5,3e1\n1,0.5, 4 ,\n");
  EXPECT_EQ(trace.workers, (std::vector<std::string>{"w0", "w1", "slow one"}));
  ASSERT_EQ(trace.steps(), 2u);
  EXPECT_EQ(trace.row(0)[2], 30.0);
  EXPECT_EQ(trace.row(1)[0], 0.5);
  EXPECT_EQ(trace.row(1)[1], 4.0);
  EXPECT_TRUE(std::isnan(trace.row(1)[2])) << "blank: not recorded";
  EXPECT_TRUE(trace.warnings.empty());
}

TEST(CsvTrace, ReadsTheFormatsOfOtherPrograms) {
  const Trace expected = trace_in("step,w0,w1\n0,1,2\n1,3,4\n");
  const std::string mark = "\xef\xbb\xbf";
  for (const std::string& text : {
           std::string("step,w0,w1\r\n0,1,2\r\n1,3,4\r\n"),
           std::string("step,w0,w1\n0,1,2\n1,3,4"),
           std::string("step,w0,w1\n0,1,2\n1,3,4\n\n\n"),
           mark + "Step,w0,w1\n0,1,2\n1,3,4\n",
           std::string("\"step\",\"w0\",\"w1\"\n\"0\",1,2\n\"1\",3,4\n"),
           std::string("step,w0,w1\n0,+1,2.\n100,3,4e0\n"),
       }) {
    SCOPED_TRACE(text);
    const Trace trace = trace_in(text);
    EXPECT_EQ(trace.workers, expected.workers);
    EXPECT_EQ(trace.times, expected.times);
  }
  EXPECT_TRUE(std::isnan(trace_in("step,w0,w1\n0,NaN,2\n1,3,nan\n").row(0)[0]));
}

TEST(CsvTrace, ErrorsHaveLineAndColumn) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"step,w0,w1\n0,1,2\n1,3\n", {"3", "2"}},
      {"step,w0,w1\n0,1,2,3\n", {"2", "4", "3"}},
      {"step,w0,w1\n0,1,two\n", {"2", "'w1'", "'two'"}},
      {"step,w0,w1\n0,1,2s\n", {"2", "'w1'", "'2s'"}},
      {"step,w0,w1\nfirst,1,2\n", {"2", "'step'", "'first'"}},
      {"step,w0,w1\n,1,2\n", {"2", "'step'"}},
      {"step,w0,w1\n0,1,-2\n", {"2", "'w1'", "'-2'"}},
      {"step,w0,w1\n0,1,2\n1,0.0,2\n", {"3", "'w0'", "'0.0'"}},
      {"step,w0,w1\n0,1,inf\n", {"2", "'w1'", "'inf'"}},
      {"step,w0,w1\n0,1,1e999\n", {"2", "'w1'", "'1e999'"}},
      {"step,w0,w1\n0,1,1e30\n", {"2", "'w1'", "'1e30'"}},
      {"", {"CSV", "NPY"}},
      {"step,w0,w1\n0,1,2\n\n1,1,2\n", {"3"}},
      {"step,w0,w1\n0,1,2\n1,,\n2,1,2\n", {"3"}},
      {"step,w0,w1\n0,1,\n1,2,\n", {"1", "'w1'"}},
      {"step,w0,w1,w0\n0,1,2,3\n", {"1", "2", "4", "'w0'"}},
      {"step,w0,,w2\n0,1,2,3\n", {"1", "3"}},
      {"step\n0\n", {"1", "step,w0,w1"}},
      {"step,w0\n0,1\n", {"1"}},
      {"0,1,2\n1,1,2\n", {"1", "'step'", "'0'"}},
      {"step;w0;w1\n0;1;2\n", {"1", "'step'"}},
      {std::string("step,w0\0,w1\n", 12), {"CSV", "NPY"}},
      {std::string("\x7f"
                   "ELF\x02\x01\x01\0\0\0",
                   10),
       {"CSV", "NPY"}},
      {std::string("PK\x03\x04rest", 8), {"numpy.save"}},
      {std::string("\x1f\x8b\x08\x00", 4), {"gunzip"}},
  };
  for (const auto& [text, values] : cases) {
    SCOPED_TRACE(text);
    const std::string error = error_of(text);
    for (const std::string& value : values) EXPECT_THAT(error, mentions(value));
  }
  // Errors that have no value to compare.
  EXPECT_EQ(error_of("step,w0,w1\n"), error_of("step,w0,w1\n\n\n")) << "no steps";
  std::set<std::string> reasons;
  for (const char* text :
       {"step,w0,w1\n", "", "step\n0\n", "step,w0\n0,1\n", "0,1,2\n1,1,2\n", "step;w0;w1\n0;1;2\n",
        "step,w0,w1\n0,1,2\n\n1,1,2\n", "step,w0,w1\n0,1,2\n1,,\n2,1,2\n"})
    reasons.insert(error_of(text));
  reasons.insert(error_of(std::string("step,w0\0,w1\n", 12)));
  EXPECT_EQ(reasons.size(), 9u);
}

TEST(CsvTrace, LongCellsAreNotRepeatedInFull) {
  EXPECT_LT(error_of("step,w0,w1\n0,1," + std::string(100'000, 'x') + "\n").size(), 400u);
}

TEST(CsvTrace, RandomBytesGiveAnErrorOrAValidTrace) {
  // Modifications of a valid file: bytes replaced, removed, repeated.
  std::string good = "step,w0,w1,w2\n";
  for (int i = 0; i < 20; ++i) good += std::to_string(i) + ",0.5,1.25,\n";
  good += "20,1,2,3\n";
  const TempFolder folder;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    std::string text = good;
    for (uint64_t i = 0; i <= seed % 4; ++i) {
      const uint64_t bits = draw({seed, i});
      const size_t place = bits % text.size();
      if (bits % 3 == 0) {
        text.erase(place, 1 + bits / 7 % 5);
      } else {
        text[place] = static_cast<char>(bits >> 40);
      }
    }
    const Result<Trace> trace = read_trace(folder.make_file("t.csv", text));
    if (!trace) continue;
    for (const double time : trace.value().times) EXPECT_TRUE(std::isnan(time) || time > 0.0);
    EXPECT_EQ(trace.value().times.size() % trace.value().workers.size(), 0u);
  }
}

TEST(Trace, ErrorsNameAPathThatIsNotAFile) {
  const TempFolder folder;
  std::set<std::string> reasons;
  for (const std::string& path :
       {folder.file("nowhere.csv"), folder.path().string(), std::string("/dev/null")}) {
    const Error error = read_trace(path).error();
    EXPECT_THAT(error.message, mentions(path));
    reasons.insert(without(error.message, path));
  }
  EXPECT_EQ(reasons.size(), 3u) << "each has another reason";
}

TEST(StepRange, HasTheSyntaxOfPython) {
  const StepRange both = parse_step_range("3:10").value();
  EXPECT_EQ(both.from, 3u);
  EXPECT_EQ(both.to, 10u);
  EXPECT_FALSE(both.open_ended);
  EXPECT_TRUE(parse_step_range("3:").value().open_ended);
  EXPECT_EQ(parse_step_range(":7").value().to, 7u);
  EXPECT_TRUE(parse_step_range(":").value().open_ended);
  for (const char* text :
       {"", "5", "a:b", "5:5", "6:5", "-1:5", "1:2:3", "1.5:3", "99999999999999999999:"}) {
    const Result<StepRange> range = parse_step_range(text);
    ASSERT_FALSE(range.ok()) << text;
    EXPECT_THAT(range.error().message, mentions("100:200")) << "shows how";
  }
}

TEST(StepRange, SelectsRows) {
  const Trace whole = trace_in("step,w0,w1\n0,1,1\n1,2,2\n2,3,3\n3,4,4\n");
  const auto kept = [&](const char* text) {
    Trace trace = whole;
    DROVER_EXPECT_OK(keep_steps(trace, parse_step_range(text).value()));
    std::vector<double> first;
    for (Step step = 0; step < trace.steps(); ++step) first.push_back(trace.row(step)[0]);
    return first;
  };
  EXPECT_EQ(kept("1:3"), (std::vector<double>{2, 3}));
  EXPECT_EQ(kept("2:"), (std::vector<double>{3, 4}));
  EXPECT_EQ(kept(":1"), (std::vector<double>{1}));
  EXPECT_EQ(kept("0:4"), (std::vector<double>{1, 2, 3, 4}));
  for (const char* text : {"4:", "0:5", "4:5"}) {
    Trace trace = whole;
    const Status status = keep_steps(trace, parse_step_range(text).value());
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_THAT(status.error().message, mentions("--steps", 4, 0, 3));
  }
}

}  // namespace
}  // namespace drover
