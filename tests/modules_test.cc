// The boundaries between modules (ARCHITECTURE.md) and the rules for code (CONTRIBUTING.md) hold in
// this source tree, and each check finds violations.
#include "support/modules.h"

#include <gtest/gtest.h>

namespace drover::testing_support {
namespace {

std::string joined(const Complaints& complaints) {
  std::string text;
  for (const std::string& complaint : complaints) text += complaint + "\n";
  return text;
}

// --- This source tree.

const Tree& this_tree() {
  static const Tree tree = read_tree(DROVER_SOURCE_DIR);
  return tree;
}

TEST(ThisTree, IsReadCompletely) {
  EXPECT_TRUE(this_tree().contains("src/core/result.h"));
  EXPECT_TRUE(this_tree().contains("src/core/CMakeLists.txt"));
  EXPECT_TRUE(this_tree().contains("tests/modules_test.cc"));
  EXPECT_TRUE(read_module_table(this_tree().at("ARCHITECTURE.md")).contains("core"));
}
TEST(ThisTree, HasATableOfModulesThatMatchesItsFolders) {
  EXPECT_EQ(joined(check_table(this_tree())), "");
}
TEST(ThisTree, IncludesOnlyModulesThatItMayUse) {
  EXPECT_EQ(joined(check_includes(this_tree())), "");
}
TEST(ThisTree, UsesEveryModuleThatItsModulesMayUse) {
  EXPECT_EQ(joined(check_permissions(this_tree())), "");
}
TEST(ThisTree, ListsEveryFile) { EXPECT_EQ(joined(check_listed(this_tree())), ""); }
TEST(ThisTree, HasHeadersThatStateTheirPurpose) {
  EXPECT_EQ(joined(check_headers(this_tree())), "");
}
TEST(ThisTree, KeepsToTheForbiddenWords) { EXPECT_EQ(joined(check_words(this_tree())), ""); }

// --- Made-up trees.

constexpr const char* kPage =
    "# Architecture\n\n| other | table |\n|---|---|\n| nonsense | core |\n\n"
    "| module | may use | what it is |\n|---|---|---|\n"
    "| core | | values |\n| wire | core | bytes: `a` | \n| cli | core wire | all |\n\nText after "
    "it.\n";

Tree good_tree() {
  return {{"ARCHITECTURE.md", kPage},
          {"src/CMakeLists.txt", ""},
          {"src/core/CMakeLists.txt", "drover_module(core\n SOURCES a.cc\n HEADERS a.h)"},
          {"src/core/a.h", "// A: for tests.\n#pragma once\n"},
          {"src/core/a.cc", "#include \"core/a.h\"\n#include <vector>\n"},
          {"src/wire/CMakeLists.txt", "drover_module(wire SOURCES deep/b.cc USES core)"},
          {"src/wire/deep/b.cc", "#include \"core/a.h\"\n"},
          {"src/cli/CMakeLists.txt", "drover_module(cli SOURCES main.cc USES core wire)"},
          {"src/cli/main.cc", "#include \"wire/b.h\"\n#include \"core/a.h\"\n"}};
}

// The complaints of `check` about the valid tree with one file added or replaced.
std::string after(Complaints (*check)(const Tree&), const std::string& path,
                  const std::string& content) {
  Tree tree = good_tree();
  EXPECT_EQ(joined(check(tree)), "") << "the tree is valid before the change";
  tree[path] = content;
  return joined(check(tree));
}

std::string with_row(const std::string& row) {
  std::string page = kPage;
  return page.insert(page.find("| cli |"), row + "\n");
}

TEST(ModuleTable, IsReadFromItsOwnTableOnly) {
  const ModuleTable expected = {{"core", {}}, {"wire", {"core"}}, {"cli", {"core", "wire"}}};
  EXPECT_EQ(read_module_table(kPage), expected);
  EXPECT_TRUE(read_module_table("no table").empty());
}

TEST(CheckTable, NoticesFoldersThatAreNoModules) {
  EXPECT_EQ(after(check_table, "src/attic/x.cc", ""),
            "src/attic: is no module in ARCHITECTURE.md\n");
}

TEST(CheckTable, NoticesModulesWithoutFolder) {
  EXPECT_EQ(after(check_table, "ARCHITECTURE.md", with_row("| net | core | x |")),
            "ARCHITECTURE.md: module 'net' has no folder under src/\n");
}

TEST(CheckTable, NoticesUsesOfNoModule) {
  EXPECT_EQ(after(check_table, "ARCHITECTURE.md", with_row("| core | cellar | x |")),
            "ARCHITECTURE.md: 'core' may use 'cellar', which is no module\n");
}

TEST(CheckTable, NoticesCircles) {
  const std::string complaint =
      after(check_table, "ARCHITECTURE.md", with_row("| core | cli | x |"));
  EXPECT_NE(complaint.find("in a circle: core -> cli -> core"), std::string::npos) << complaint;
  EXPECT_NE(
      after(check_table, "ARCHITECTURE.md", with_row("| core | core | x |")).find("core -> core"),
      std::string::npos);
}

TEST(CheckTable, NoticesAMissingTable) {
  EXPECT_NE(after(check_table, "ARCHITECTURE.md", "").find("has no table of modules"),
            std::string::npos);
}

TEST(CheckIncludes, NoticesBoundariesCrossed) {
  EXPECT_EQ(after(check_includes, "src/core/a.cc", "// x\n#include \"wire/b.h\"\n"),
            "src/core/a.cc:2: core may not use wire (see ARCHITECTURE.md)\n");
  EXPECT_EQ(after(check_includes, "src/wire/deep/c.h", "#include \"cli/main.h\"\n"),
            "src/wire/deep/c.h:1: wire may not use cli (see ARCHITECTURE.md)\n");
  EXPECT_EQ(after(check_includes, "src/core/a.cc", "  #  include   \"cli/main.h\"\n"),
            "src/core/a.cc:1: core may not use cli (see ARCHITECTURE.md)\n");
}

TEST(CheckIncludes, NoticesIncludesThatNameNoModule) {
  EXPECT_NE(after(check_includes, "src/core/a.cc", "#include \"a.h\"\n").find("names no module"),
            std::string::npos);
  EXPECT_NE(
      after(check_includes, "src/core/a.cc", "#include \"../wire/b.h\"\n").find("names no module"),
      std::string::npos);
  EXPECT_NE(
      after(check_includes, "src/core/a.cc", "#include \"attic/b.h\"\n").find("names no module"),
      std::string::npos);
}

TEST(CheckPermissions, NoticesModulesThatAreNotUsed) {
  EXPECT_EQ(after(check_permissions, "src/cli/main.cc", "#include \"core/a.h\"\n"),
            "ARCHITECTURE.md: cli may use wire, but does not; take it out of the table\n");
  EXPECT_EQ(after(check_permissions, "src/wire/deep/b.cc", "// #include \"core/a.h\"\n"),
            "ARCHITECTURE.md: wire may use core, but does not; take it out of the table\n");
}

TEST(CheckPermissions, TestsDoNotCount) {
  Tree tree = good_tree();
  tree["src/wire/deep/b.cc"] = "";
  tree["src/wire/deep/b_test.cc"] = "#include \"core/a.h\"\n";
  tree["src/wire/test_b.h"] = "#include \"core/a.h\"\n";
  EXPECT_EQ(joined(check_permissions(tree)),
            "ARCHITECTURE.md: wire may use core, but does not; take it out of the table\n");
}

TEST(CheckPermissions, NoticesLinksThatTheTableDoesNotHave) {
  EXPECT_EQ(after(check_permissions, "src/wire/CMakeLists.txt",
                  "drover_module(wire SOURCES deep/b.cc USES core cli LIBRARIES fmt::fmt)"),
            "src/wire/CMakeLists.txt: USES cli core, but ARCHITECTURE.md allows core\n");
  EXPECT_EQ(after(check_permissions, "src/core/CMakeLists.txt",
                  "drover_module(core SOURCES a.cc HEADERS a.h USES wire)"),
            "src/core/CMakeLists.txt: USES wire, but ARCHITECTURE.md allows nothing\n");
}

TEST(CheckListed, NoticesFilesThatNoTargetBuilds) {
  EXPECT_EQ(after(check_listed, "src/core/b.cc", ""),
            "src/core/b.cc: is not listed in src/core/CMakeLists.txt\n");
  EXPECT_EQ(after(check_listed, "src/core/aa.cc", ""),
            "src/core/aa.cc: is not listed in src/core/CMakeLists.txt\n")
      << "a suffix of another name is not enough";
  EXPECT_EQ(after(check_listed, "src/cli/CMakeLists.txt", "# main.cc\n"),
            "src/cli/main.cc: is not listed in src/cli/CMakeLists.txt\n");
}

TEST(CheckHeaders, NoticesHeadersWithoutAPurpose) {
  EXPECT_NE(after(check_headers, "src/core/a.h", "#pragma once\n").find("does not open"),
            std::string::npos);
  EXPECT_NE(after(check_headers, "src/core/a.h", "// A.\nint a;\n").find("no #pragma once"),
            std::string::npos);
}

TEST(CheckWords, NoticesSleepInTests) {
  for (const char* code : {"std::this_thread::sleep_for(x);", "usleep(1);", "sleep (1);"}) {
    EXPECT_NE(after(check_words, "src/core/a_test.cc", code), "") << code;
    EXPECT_NE(after(check_words, "tests/b_test.cc", code), "") << code;
    EXPECT_EQ(after(check_words, "src/cli/main.cc", code), "") << code;
  }
  EXPECT_EQ(after(check_words, "src/core/a_test.cc", "oversleep(1);"), "");
}

TEST(CheckWords, NoticesInputAndOutputInStateMachines) {
  for (const char* code :
       {"std::thread t;", "std::mutex m;", "boost::asio::io_context c;", "int x = rand();",
        "auto now = std::chrono::steady_clock::now();", "#include <mutex>",
        "#include \"core/mutex.h\"", "std::random_device r;"}) {
    for (const char* path :
         {"src/shard/x.cc", "src/worker/x.h", "src/core/x.cc", "src/worker/deep/x.cc"}) {
      EXPECT_NE(after(check_words, path, code), "") << path << ": " << code;
    }
    for (const char* path : {"src/node/x.cc", "src/shard/x_test.cc", "src/core/float_buffer.cc"}) {
      EXPECT_EQ(after(check_words, path, code), "") << path << ": " << code;
    }
  }
  EXPECT_EQ(after(check_words, "src/shard/x.cc", "int operand(int); std::chrono::nanoseconds n;"),
            "");
}

TEST(CheckWords, NoticesLibtorchOutsideItsModule) {
  const std::string code = "#include <torch/torch.h>\n";
  EXPECT_NE(after(check_words, "src/cli/main.cc", code), "");
  EXPECT_NE(after(check_words, "bench/x_bench.cc", code), "");
  EXPECT_EQ(after(check_words, "src/tasks/torch/net.cc", code), "");
  EXPECT_EQ(after(check_words, "src/cli/main.cc", "#include \"tasks/torch/net.h\"\n"), "");
}

TEST(CheckWords, NamesTheLine) {
  EXPECT_TRUE(after(check_words, "src/core/a.cc", "// one\n/* two\n*/ std::thread t;\n")
                  .starts_with("src/core/a.cc:3: 'std::thread': "));
}

TEST(CodeOnly, LeavesOutCommentsAndLiterals) {
  EXPECT_EQ(code_only("a // b\nc"), "a     \nc");
  EXPECT_EQ(code_only("a /* b\nc */ d"), "a     \n     d");
  EXPECT_EQ(code_only(R"(f("x // y", '"') + g)"), R"(f("      ", ' ') + g)");
  EXPECT_EQ(code_only(R"(f("a\"b") c)"), R"(f("    ") c)");
  EXPECT_EQ(code_only("x = R\"--(a\")\")--\" + y"), "x = R\"--" + std::string(9, ' ') + " + y");
  EXPECT_EQ(code_only("1'000 + b('c')"), "1'000 + b(' ')");
  EXPECT_EQ(code_only("#include \"core/a.h\"\nb"), "#include \"core/a.h\"\nb");
  EXPECT_EQ(code_only("\"open"), "\"    ");
}

}  // namespace
}  // namespace drover::testing_support
