// The LIBSVM and text readers, and generated data sets.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/test_text.h"
#include "tasks/data/readers.h"
#include "tasks/data/temp_folder.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Not;

class Libsvm : public testing::TestWithParam<const char*> {
 protected:
  Result<Dataset> read(const std::string& train, const std::string& test) const {
    const std::string train_path = folder.write(std::string("x") + GetParam(), train);
    return read_libsvm(train_path,
                       test.empty() ? "" : folder.write(std::string("x.t") + GetParam(), test));
  }
  std::string error(const std::string& train, const std::string& test = "+1 1:1\n") const {
    const Result<Dataset> data = read(train, test);
    if (data.ok()) return "";
    EXPECT_EQ(data.error().kind, ErrorKind::kInvalidInput);
    return data.error().message;
  }
  TempFolder folder;
};
INSTANTIATE_TEST_SUITE_P(PlainAndGzip, Libsvm, testing::Values("", ".gz"));

TEST_P(Libsvm, MakesRowsDense) {
  const Result<Dataset> read_data =
      read("-1 1:0.5 3:-2e1\n\n+1 2:1 # a comment\r\n+1\n", "-1 4:7\n+1 1:1");
  ASSERT_TRUE(read_data.ok()) << read_data.error().message;
  const Dataset& data = read_data.value();
  EXPECT_EQ(data.width, 4u);
  EXPECT_EQ(data.classes, 2u);
  EXPECT_EQ(data.train.values, (std::vector<float>{0.5f, 0, -20, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(data.train.labels, (std::vector<uint32_t>{0, 1, 1}));
  EXPECT_EQ(data.test.values, (std::vector<float>{0, 0, 0, 7, 1, 0, 0, 0}));
  EXPECT_EQ(data.test.labels, (std::vector<uint32_t>{0, 1}));

  std::vector<float> rows(8);
  copy_rows(data, data.test, std::vector<uint64_t>{1, 0}, rows);
  EXPECT_EQ(rows, (std::vector<float>{1, 0, 0, 0, 0, 0, 0, 7}));
}

TEST_P(Libsvm, NumbersClassesInAscendingOrder) {
  const Dataset data = read("7 1:1\n3 1:1\n5.0 1:1\n", "5 1:1\n").value();
  EXPECT_EQ(data.classes, 3u);
  EXPECT_EQ(data.train.labels, (std::vector<uint32_t>{2, 0, 1}));
}

TEST_P(Libsvm, KeepsEveryTenthRowForTestingIfThereIsNoTestFile) {
  std::string rows;
  for (int i = 0; i < 25; ++i) rows += std::to_string(i % 2) + " 1:" + std::to_string(i) + "\n";
  const Dataset data = read(rows, "").value();
  EXPECT_EQ(data.train.labels.size(), 23u);
  EXPECT_EQ(data.test.values, (std::vector<float>{9, 19}));
}

TEST_P(Libsvm, NamesTheWrongLine) {
  const std::string fine = "+1 1:1\n-1 2:1\n";
  struct Case {
    std::string line;
    std::string value;
    bool form;  // whether the word is not index:value
  };
  for (const auto& [line, value, form] :
       {Case{"x 1:1", "'x'", false}, Case{"1.5 1:1", "1.5", false}, Case{"nan 1:1", "nan", false},
        Case{"+1 1", "'1'", true}, Case{"+1 1:", "'1:'", true}, Case{"+1 a:1", "'a:1'", true},
        Case{"+1 1:inf", "'1:inf'", true}, Case{"+1 0:1", "'0:1'", false},
        Case{"+1 2:1 2:1", "'2:1'", false}, Case{"+1 99999999999:1", "'99999999999:1'", true}}) {
    const std::string message = error(fine + line + "\n");
    EXPECT_THAT(message, mentions(folder.file(std::string("x") + GetParam()), 3, value));
    EXPECT_EQ(has_value(message, "index:value"), form) << message;
  }
}

TEST_P(Libsvm, RefusesUnusableLabels) {
  const std::string train = folder.file(std::string("x") + GetParam());
  const std::string test = folder.file(std::string("x.t") + GetParam());
  EXPECT_THAT(error("\n"), AllOf(mentions(train), Not(mentions(2))));
  EXPECT_THAT(error("+1 1:1\n"), mentions(train, 1, 2));
  EXPECT_THAT(error("+1 1:1\n-1 1:1\n", "0 1:1\n"), mentions(test, 0, 1, train));
  EXPECT_THAT(error("+1 4000000000:1\n-1 1:1\n"), mentions(train, 4000000000));
  EXPECT_THAT(error("+1 1:1\n-1 1:1\n", ""), mentions(train, 2, 10));
}

TEST(LibsvmLook, DistinguishesLibsvmFromText) {
  EXPECT_TRUE(looks_like_libsvm("-1 3:1 11:0.5"));
  EXPECT_FALSE(looks_like_libsvm("First Citizen:"));
  EXPECT_FALSE(looks_like_libsvm("12"));
  EXPECT_FALSE(looks_like_libsvm("1 Corinthians 13:4"));
}

TEST(Text, SplitsNineToOneAndKeepsEveryCharacter) {
  const TempFolder folder;
  const std::string text = "to be, or not to be\n";
  for (const char* name : {"play.txt", "play.txt.gz"}) {
    const Result<Dataset> read = read_text(folder.write(name, text));
    ASSERT_TRUE(read.ok()) << read.error().message;
    const Dataset& data = read.value();
    EXPECT_EQ(data.vocabulary, "\n ,benort");
    EXPECT_EQ(data.classes, 9u);
    EXPECT_EQ(data.test.bytes.size(), 2u);
    std::string again;
    for (const DataPart* part : {&data.train, &data.test}) {
      for (const uint8_t index : part->bytes) again += data.vocabulary[index];
    }
    EXPECT_EQ(again, text);
  }
}

TEST(Text, RefusesOtherFiles) {
  const TempFolder folder;
  const std::string cut = folder.write("c.gz", std::string(1000, 'a') + "bcd");
  truncate_file(cut, 20);
  std::set<std::string> reasons;
  for (const std::string& path :
       {folder.write("a", ""), folder.write("b", std::string("a\0b", 3)), cut}) {
    const Error error = read_text(path).error();
    EXPECT_THAT(error, is_error(ErrorKind::kInvalidInput, path));
    reasons.insert(without(error.message, path));
  }
  EXPECT_EQ(reasons.size(), 3u) << "each has a different error";
}

TEST(Generated, ImagesAreAFunctionOfTheSeed) {
  const Dataset data = generate_images(5, 100);
  EXPECT_EQ(data.train.labels.size(), 100u);
  EXPECT_EQ(data.test.labels.size(), 25u);
  EXPECT_EQ(data.train.bytes.size(), 100 * data.row_size());
  EXPECT_EQ(std::set(data.train.labels.begin(), data.train.labels.end()).size(), 10u);
  EXPECT_EQ(generate_images(5, 100).train.bytes, data.train.bytes);
  EXPECT_NE(generate_images(6, 100).train.bytes, data.train.bytes);
  // More samples begin with the same samples.
  const Dataset more = generate_images(5, 200);
  EXPECT_TRUE(
      std::equal(data.train.bytes.begin(), data.train.bytes.end(), more.train.bytes.begin()));
}

TEST(Generated, TextIsAFunctionOfTheSeed) {
  const Dataset data = generate_text(5, 1000);
  EXPECT_EQ(data.train.bytes.size() + data.test.bytes.size(), 16'000u);
  EXPECT_GT(data.classes, 10u);
  EXPECT_EQ(generate_text(5, 1000).train.bytes, data.train.bytes);
  EXPECT_NE(generate_text(6, 1000).train.bytes, data.train.bytes);
}

}  // namespace
}  // namespace drover
