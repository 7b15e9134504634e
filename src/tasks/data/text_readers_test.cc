// LIBSVM and text readers, and the generated sets.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tasks/data/readers.h"
#include "tasks/data/temp_folder.h"

namespace drover {
namespace {

class Libsvm : public testing::TestWithParam<const char*> {
 protected:
  Result<Dataset> read(const std::string& train, const std::string& test) const {
    const std::string train_path = folder.write(std::string("x") + GetParam(), train);
    return read_libsvm(train_path,
                       test.empty() ? "" : folder.write(std::string("x.t") + GetParam(), test));
  }
  std::string error(const std::string& train, const std::string& test = "+1 1:1\n") const {
    const Result<Dataset> data = read(train, test);
    return data.ok() ? "" : data.error().message;
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

TEST_P(Libsvm, NumbersClassesInRisingOrder) {
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

TEST_P(Libsvm, NamesTheLineThatIsWrong) {
  const std::string fine = "+1 1:1\n-1 2:1\n";
  const std::map<std::string, std::string> cases = {
      {"x 1:1", "line 3: 'x' is not a label"},
      {"1.5 1:1", "line 3: label 1.5 is not a class number"},
      {"nan 1:1", "line 3: label nan is not a class number"},
      {"+1 1", "line 3: '1' is not index:value"},
      {"+1 1:", "line 3: '1:' is not index:value"},
      {"+1 a:1", "line 3: 'a:1' is not index:value"},
      {"+1 1:inf", "line 3: '1:inf' is not index:value"},
      {"+1 0:1", "line 3: '0:1': features count from 1"},
      {"+1 2:1 2:1", "line 3: '2:1': features must be in rising order"},
      {"+1 99999999999:1", "line 3: '99999999999:1' is not index:value"},
  };
  for (const auto& [line, expected] : cases) {
    const std::string message = error(fine + line + "\n");
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_NE(message.find("/x"), std::string::npos) << message;
  }
}

TEST_P(Libsvm, RefusesWhatCannotBeLearnt) {
  EXPECT_NE(error("\n").find("holds no rows"), std::string::npos);
  EXPECT_NE(error("+1 1:1\n").find("1 different labels"), std::string::npos);
  EXPECT_NE(error("+1 1:1\n-1 1:1\n", "0 1:1\n").find("label 0 of row 1 does not occur"),
            std::string::npos);
  EXPECT_NE(error("+1 4000000000:1\n-1 1:1\n").find("too large"), std::string::npos);
  EXPECT_NE(error("+1 1:1\n-1 1:1\n", "").find("only 2 rows"), std::string::npos);
}

TEST(LibsvmLook, TellsLibsvmFromText) {
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

TEST(Text, ToldOfWhatIsNoText) {
  const TempFolder folder;
  EXPECT_NE(read_text(folder.write("a", "")).error().message.find("is empty"), std::string::npos);
  EXPECT_NE(
      read_text(folder.write("b", std::string("a\0b", 3))).error().message.find("not a text file"),
      std::string::npos);
  const std::string cut = folder.write("c.gz", std::string(1000, 'a') + "bcd");
  truncate_file(cut, 20);
  EXPECT_NE(read_text(cut).error().message.find("truncated"), std::string::npos);
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
