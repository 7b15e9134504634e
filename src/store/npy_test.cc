#include "store/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/random_draw.h"
#include "core/test_text.h"
#include "store/test_run.h"

namespace drover {
namespace {

using ::testing::Not;

template <typename Float>
std::string bytes_of(const std::vector<Float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Float));
}

// A file in the format of numpy.save: mark, version, length of the header, header, numbers.
std::string npy(const std::string& header, const std::string& numbers, int version = 1) {
  const size_t fixed = version == 1 ? 10 : 12;
  std::string padded = header;
  while ((fixed + padded.size() + 1) % 64 != 0) padded += ' ';
  padded += '\n';
  std::string file(kNpyMark);
  file += static_cast<char>(version);
  file += '\0';
  for (size_t i = 0; i < (version == 1 ? 2u : 4u); ++i) {
    file += static_cast<char>(padded.size() >> (8 * i));
  }
  return file + padded + numbers;
}

std::string header(const std::string& type, const std::string& order, const std::string& shape) {
  return "{'descr': " + type + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

Result<Trace> read(const std::string& content, const TempFolder& folder = TempFolder()) {
  // Not named .npy: the content decides, and not the name.
  const std::string path = folder.file("trace.csv");
  std::ofstream(path, std::ios::binary) << content;
  return read_trace(path);
}

const std::vector<double> kDoubles = {1, 2, 3, 4, 5, 6};
const std::vector<float> kFloats = {1, 2, 3, 4, 5, 6};

TEST(Npy, ReadsAllSupportedFormats) {
  const std::vector<double> by_column = {1, 4, 2, 5, 3, 6};
  for (int version = 1; version <= 3; ++version) {
    for (const std::string& content : {
             npy(header("'<f8'", "False", "(2, 3)"), bytes_of(kDoubles), version),
             npy(header("'<f4'", "False", "(2, 3)"), bytes_of(kFloats), version),
             npy(header("'<f8'", "True", "(2, 3)"), bytes_of(by_column), version),
             npy("{\"shape\":(2,3),\"descr\":\"<f8\",\"fortran_order\":False}", bytes_of(kDoubles),
                 version),
         }) {
      const Result<Trace> trace = read(content);
      ASSERT_TRUE(trace.ok()) << trace.error().message;
      EXPECT_EQ(trace.value().workers, (std::vector<std::string>{"w0", "w1", "w2"}));
      EXPECT_EQ(trace.value().times, kDoubles);
    }
  }
}

TEST(Npy, ReadsFilesLargerThanAChunk) {
  const size_t rows = 1'300;
  const size_t columns = 211;
  std::vector<float> by_column(rows * columns);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column) {
      by_column[column * rows + row] = static_cast<float>(row * 1'000 + column + 1);
    }
  }
  const Result<Trace> trace =
      read(npy(header("'<f4'", "True", "(1300, 211)"), bytes_of(by_column)));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column) {
      ASSERT_EQ(trace.value().row(row)[column], static_cast<double>(row * 1'000 + column + 1));
    }
  }
}

TEST(Npy, NanMeansNotRecorded) {
  std::vector<double> values = kDoubles;
  values[4] = std::nan("");
  const Result<Trace> trace = read(npy(header("'<f8'", "False", "(2, 3)"), bytes_of(values)));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_TRUE(std::isnan(trace.value().row(1)[1]));
}

std::string error_of(const std::string& content) {
  const TempFolder folder;
  const Result<Trace> trace = read(content, folder);
  EXPECT_FALSE(trace.ok());
  if (trace) return "";
  EXPECT_EQ(trace.error().kind, ErrorKind::kInvalidInput);
  return without(trace.error().message, folder.file("trace.csv"));
}

std::string with_value(double value) {
  std::vector<double> values = kDoubles;
  values[5] = value;
  return npy(header("'<f8'", "False", "(2, 3)"), bytes_of(values));
}

TEST(Npy, ErrorsSayWhyAndWhatToDo) {
  const std::string six = bytes_of(kDoubles);
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {npy(header("'>f8'", "False", "(2, 3)"), six), {"'>f8'", "matrix.astype('<f8')"}},
      {npy(header("'<i8'", "False", "(2, 3)"), six), {"'<i8'", "'<f4'", "'<f8'"}},
      {npy(header("'<f2'", "False", "(2, 3)"), six), {"'<f2'", "'<f4'", "'<f8'"}},
      {npy(header("[('a', '<f8')]", "False", "(6,)"), six), {"[('a'"}},
      {npy(header("'<f8'", "False", "(6,)"), six), {"1"}},
      {npy(header("'<f8'", "False", "()"), six), {"0"}},
      {npy(header("'<f8'", "False", "(1, 2, 3)"), six), {"3"}},
      {npy(header("'<f8'", "False", "(3, 3)"), six), {"(3, 3)", "48", "2"}},
      {npy(header("'<f8'", "False", "(1, 3)"), six), {"(1, 3)", "numpy.save"}},
      {npy(header("'<f8'", "False", "(2, 3)"), six + "x"), {"(2, 3)", "numpy.save"}},
      {npy(header("'<f8'", "False", "(0, 3)"), ""), {"(0, 3)"}},
      {npy(header("'<f8'", "False", "(2, 99999999)"), six),
       {"(2, 99999999)", "99999999", std::to_string(kTraceWorkersMax)}},
      {npy(header("'<f8'", "False", "(4611686018427387904, 4)"), six),
       {"(4611686018427387904, 4)", "48", "1"}},
      {npy(header("'<f8'", "False", "(18446744073709551615, 1000000)"), six),
       {"(18446744073709551615, 1000000)", "48", "0"}},
      {npy(header("'<f8'", "False", "(99999999999999999999, 3)"), six), {"numpy.save"}},
      {npy(header("'<f8'", "False", "(-2, 3)"), six), {"numpy.save"}},
      {npy(header("'<f8'", "False", "(2, 3"), six), {"numpy.save"}},
      {npy(header("'<f8'", "Maybe", "(2, 3)"), six), {"fortran_order", "True", "False"}},
      {npy("{}", six), {"descr", "fortran_order", "shape"}},
      {npy(header("'<f8'", "False", "(2, 3)"), six, 4), {"4.0", "1", "3"}},
      {with_value(-1.0), {"[1, 2]", "-1"}},
      {with_value(0.0), {"[1, 2]", "0"}},
      {with_value(std::numeric_limits<double>::infinity()), {"[1, 2]", "inf"}},
  };
  for (const auto& [content, values] : cases) {
    SCOPED_TRACE(content);
    for (const std::string& value : values) EXPECT_THAT(error_of(content), mentions(value));
  }
  // These errors have no values to compare; each has another reason.
  const std::string cut_short = error_of(std::string(kNpyMark));
  for (const size_t length : {9, 40}) {
    const std::string part = npy(header("'<f8'", "False", "(2, 3)"), six).substr(0, length);
    EXPECT_EQ(error_of(part), cut_short);
  }
  const std::string shape = error_of(npy(header("'<f8'", "False", "(-2, 3)"), six));
  const std::string one_worker = error_of(npy(header("'<f8'", "False", "(6, 1)"), six));
  EXPECT_EQ((std::set{cut_short, shape, one_worker}.size()), 3u);
  EXPECT_THAT(one_worker, Not(mentions("numpy.save")));
}

TEST(Npy, DamagedFilesGiveAnErrorOrAValidTrace) {
  const std::string good = npy(header("'<f8'", "False", "(2, 3)"), bytes_of(kDoubles));
  const TempFolder folder;
  for (uint64_t seed = 0; seed < 1'000; ++seed) {
    SCOPED_TRACE(seed);
    std::string damaged = good;
    damaged[draw({seed, 1}) % (good.size() - 6) + 6] = static_cast<char>(draw({seed, 2}));
    if (seed % 5 == 0) damaged.resize(6 + draw({seed, 3}) % (good.size() - 6));
    const Result<Trace> trace = read(damaged, folder);
    if (trace) {
      EXPECT_EQ(trace.value().times.size(), 6u);
    }
  }
}

}  // namespace
}  // namespace drover
