#include "policy/options.h"

#include <gtest/gtest.h>

#include <array>

#include "core/test_text.h"

namespace drover {
namespace {

constexpr std::array kRules = {
    OptionRule{.key = "model", .kind = OptionKind::kPath},
    OptionRule{.key = "every", .kind = OptionKind::kCount, .lowest = 1},
};

TEST(Options, AcceptsFileNamesWithoutColon) {
  for (const char* name : {"a", "../models/my cluster.model", "x=1", "/ü/ñ.bin"}) {
    SCOPED_TRACE(name);
    const auto options = Options::parse(std::string("bayes:model=") + name + ":every=3", kRules);
    ASSERT_TRUE(options.ok()) << options.error().message;
    EXPECT_EQ(options.value().word("model"), name);
    EXPECT_EQ(options.value().count("every"), 3U);
  }
  const auto bare = Options::parse("bayes:some/file", kRules);
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ(bare.value().word("model"), "some/file");
}

TEST(Options, RequiresAFileName) {
  const auto options = Options::parse("bayes:model=", kRules);
  ASSERT_FALSE(options.ok());
  EXPECT_THAT(options.error(), is_error(ErrorKind::kInvalidInput, "model", "':'", "''"));
}

}  // namespace
}  // namespace drover
