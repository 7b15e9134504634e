#include "support/modules.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <regex>
#include <sstream>

namespace drover::testing_support {
namespace {

namespace fs = std::filesystem;

bool is_source(std::string_view path) { return path.ends_with(".cc") || path.ends_with(".h"); }

// "shard" of "src/shard/shard.cc"; "" for a file outside modules.
std::string module_of(const std::string& path) {
  if (!path.starts_with("src/")) return {};
  const size_t end = path.find('/', 4);
  return end == std::string::npos ? std::string() : path.substr(4, end - 4);
}

ModuleTable table_of(const Tree& tree) {
  const auto page = tree.find("ARCHITECTURE.md");
  return page == tree.end() ? ModuleTable{} : read_module_table(page->second);
}

size_t line_at(std::string_view text, size_t position) {
  return 1 + static_cast<size_t>(std::count(
                 text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
}

// Calls `each` with match and line number.
void for_matches(const std::string& text, const std::regex& pattern,
                 const std::function<void(const std::smatch&, size_t)>& each) {
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    each(*match, line_at(text, static_cast<size_t>(match->position())));
  }
}

// A way from `module` back to `goal`, as "b -> c -> a"; "" if there is none.
std::string way_back(const ModuleTable& table, const std::string& module, const std::string& goal,
                     std::set<std::string>& seen) {
  const auto row = table.find(module);
  if (row == table.end() || !seen.insert(module).second) return {};
  for (const std::string& used : row->second) {
    if (used == goal) return module + " -> " + goal;
    const std::string rest = way_back(table, used, goal, seen);
    if (!rest.empty()) return module + " -> " + rest;
  }
  return {};
}

struct WordRule {
  std::regex where;  // paths
  std::regex words;  // in the code, without comments and literals
  std::string reason;
  std::set<std::string> except = {};
};

const std::vector<WordRule>& word_rules() {
  static const std::vector<WordRule> rules = {
      {std::regex(R"(.*_test\.cc)"),
       std::regex(R"(\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\()"),
       "tests wait for an event with a deadline, they do not sleep"},
      {std::regex(R"(src/(shard|coordinator|worker|core|forecast|policy|sim)/(?!.*_test\.cc).*)"),
       std::regex(R"(std::(thread|jthread|mutex|shared_mutex|recursive_mutex)\b)"
                  R"(|std::(condition_variable|random_device)\b)"
                  R"(|\b(asio|steady_clock|system_clock|high_resolution_clock)\b|\bs?rand\s*\()"
                  R"(|#\s*include\s*<(thread|mutex|condition_variable|random|sys/socket\.h)>)"
                  R"(|#\s*include\s*"core/mutex\.h")"),
       "state machines must not use a clock, thread, lock, socket or random device: pass events "
       "and times to them",
       // Provide buffers and locks to several event loops; not state machines.
       {"src/core/float_buffer.cc", "src/core/mutex.h"}},
      {std::regex(R"((src|tests|bench)/(?!tasks/|fit/).*)"),
       std::regex(R"(#\s*include\s*[<"](torch|ATen|c10|caffe2)/)"),
       "libtorch is for src/tasks and src/fit alone"},
  };
  return rules;
}

}  // namespace

Tree read_tree(const std::string& root) {
  Tree tree;
  const auto add = [&](const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    tree[path.lexically_relative(root).generic_string()] = content.str();
  };
  add(fs::path(root) / "ARCHITECTURE.md");
  for (const char* folder : {"src", "tests", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / folder)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file() && (is_source(name) || name == "CMakeLists.txt"))
        add(entry.path());
    }
  }
  return tree;
}

ModuleTable read_module_table(std::string_view markdown) {
  static const std::regex row_pattern(R"(\|\s*([a-z_]+)\s*\|([a-z_ ]*)\|.*)");
  ModuleTable table;
  std::istringstream lines{std::string(markdown)};
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| module | may use |")) {
      inside = true;
    } else if (!line.starts_with("|")) {
      inside = false;
    } else if (std::smatch row; inside && std::regex_match(line, row, row_pattern)) {
      std::istringstream used(row[2].str());
      std::set<std::string>& may_use = table[row[1].str()];
      for (std::string module; used >> module;) may_use.insert(module);
    }
  }
  return table;
}

Complaints check_table(const Tree& tree) {
  Complaints complaints;
  const ModuleTable table = table_of(tree);
  if (table.empty()) complaints.emplace_back("ARCHITECTURE.md: has no table of modules");

  std::set<std::string> folders;
  for (const auto& [path, content] : tree) {
    if (const std::string module = module_of(path); !module.empty()) folders.insert(module);
  }
  for (const std::string& folder : folders) {
    if (!table.contains(folder)) {
      complaints.push_back("src/" + folder + ": is no module in ARCHITECTURE.md");
    }
  }
  for (const auto& [module, may_use] : table) {
    if (!folders.contains(module)) {
      complaints.push_back("ARCHITECTURE.md: module '" + module + "' has no folder under src/");
    }
    for (const std::string& used : may_use) {
      if (!table.contains(used)) {
        complaints.push_back("ARCHITECTURE.md: '" + module + "' may use '" + used +
                             "', which is no module");
      }
    }
    std::set<std::string> seen;
    const std::string way = way_back(table, module, module, seen);
    if (!way.empty())
      complaints.push_back("ARCHITECTURE.md: modules use each other in a circle: " + way);
  }
  return complaints;
}

Complaints check_includes(const Tree& tree) {
  static const std::regex include_pattern(R"re((^|\n)[ \t]*#[ \t]*include[ \t]*"([^"]*)")re");
  Complaints complaints;
  const ModuleTable table = table_of(tree);
  for (const auto& entry : tree) {
    // Not a structured binding: in C++20 clang cannot capture one.
    const auto& path = entry.first;
    const auto& content = entry.second;
    const std::string module = module_of(path);
    if (module.empty() || !is_source(path)) continue;
    for_matches(content, include_pattern, [&](const std::smatch& match, size_t line) {
      const std::string included = match[2].str();
      const std::string used = included.substr(0, included.find('/'));
      const size_t at = line + (match[1].length() > 0 ? 1 : 0);
      const std::string place = path + ":" + std::to_string(at) + ": ";
      const auto row = table.find(module);
      if (!table.contains(used) || included.find('/') == std::string::npos) {
        complaints.push_back(
            place + "#include \"" + included +
            "\" names no module: our own headers are included as \"module/file.h\"");
      } else if (used != module && (row == table.end() || !row->second.contains(used))) {
        complaints.push_back(place + module + " may not use " + used + " (see ARCHITECTURE.md)");
      }
    });
  }
  return complaints;
}

namespace {

// The modules after USES in a CMakeLists.txt; nothing if it does not call drover_module().
std::optional<std::set<std::string>> linked_modules(const std::string& list) {
  static const std::regex call("drover_module\\(([^)]*)\\)");
  std::smatch found;
  if (!std::regex_search(list, found, call)) return std::nullopt;
  std::istringstream words(found[1].str());
  std::set<std::string> used;
  bool inside = false;
  for (std::string word; words >> word;) {
    const bool is_key = word == "SOURCES" || word == "HEADERS" || word == "TESTS" ||
                        word == "USES" || word == "LIBRARIES";
    if (is_key) inside = word == "USES";
    if (!is_key && inside) used.insert(word);
  }
  return used;
}

std::string list_of(const std::set<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : " ") + name;
  return list.empty() ? "nothing" : list;
}

}  // namespace

Complaints check_permissions(const Tree& tree) {
  static const std::regex include_pattern(R"re((^|\n)[ \t]*#[ \t]*include[ \t]*"([^"/]*)/)re");
  static const std::regex test_pattern(R"((.*/)?(test_[^/]*|[^/]*_test\.cc))");
  ModuleTable included;
  for (const auto& [path, content] : tree) {
    const std::string module = module_of(path);
    if (module.empty() || !is_source(path) || std::regex_match(path, test_pattern)) continue;
    std::set<std::string>& used = included[module];
    for_matches(content, include_pattern,
                [&](const std::smatch& match, size_t) { used.insert(match[2].str()); });
  }
  Complaints complaints;
  for (const auto& [module, may_use] : table_of(tree)) {
    for (const std::string& used : may_use) {
      if (!included[module].contains(used))
        complaints.push_back("ARCHITECTURE.md: " + module + " may use " + used +
                             ", but does not; take it out of the table");
    }
    const std::string path = "src/" + module + "/CMakeLists.txt";
    const auto list = tree.find(path);
    const auto linked = list == tree.end() ? std::nullopt : linked_modules(list->second);
    if (linked && *linked != may_use)
      complaints.push_back(path + ": USES " + list_of(*linked) + ", but ARCHITECTURE.md allows " +
                           list_of(may_use));
  }
  return complaints;
}

Complaints check_listed(const Tree& tree) {
  static const std::regex comment_pattern("#[^\n]*");
  Complaints complaints;
  for (const auto& [path, content] : tree) {
    const std::string module = module_of(path);
    if (module.empty() || !is_source(path)) continue;
    const std::string folder = "src/" + module + "/";
    const auto list = tree.find(folder + "CMakeLists.txt");
    std::set<std::string> words;
    if (list != tree.end()) {
      std::string text = std::regex_replace(list->second, comment_pattern, "");
      std::replace_if(
          text.begin(), text.end(), [](char c) { return c == '(' || c == ')'; }, ' ');
      std::istringstream all(text);
      for (std::string word; all >> word;) words.insert(word);
    }
    if (!words.contains(path.substr(folder.size()))) {
      complaints.push_back(path + ": is not listed in " + folder + "CMakeLists.txt");
    }
  }
  return complaints;
}

Complaints check_headers(const Tree& tree) {
  Complaints complaints;
  for (const auto& [path, content] : tree) {
    if (!path.ends_with(".h")) continue;
    if (!content.starts_with("// ")) {
      complaints.push_back(path + ": does not open with a sentence that says what it is for");
    }
    if (content.find("\n#pragma once\n") == std::string::npos) {
      complaints.push_back(path + ": has no #pragma once");
    }
  }
  return complaints;
}

Complaints check_words(const Tree& tree) {
  Complaints complaints;
  for (const auto& entry : tree) {
    const auto& path = entry.first;
    if (!is_source(path)) continue;
    const std::string code = code_only(entry.second);
    for (const WordRule& rule : word_rules()) {
      if (!std::regex_match(path, rule.where) || rule.except.contains(path)) continue;
      for_matches(code, rule.words, [&](const std::smatch& match, size_t line) {
        complaints.push_back(path + ":" + std::to_string(line) + ": '" + match.str() +
                             "': " + rule.reason);
      });
    }
  }
  return complaints;
}

std::string code_only(std::string_view source) {
  std::string code(source);
  const auto blank = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < std::min(end, code.size()); ++i) {
      if (code[i] != '\n') code[i] = ' ';
    }
  };
  // The end of the comment or literal at `begin`: just behind `mark`, or the end of the file.
  const auto behind = [&](std::string_view mark, size_t begin) {
    const size_t found = source.find(mark, begin);
    return found == std::string_view::npos ? source.size() : found + mark.size();
  };
  size_t i = 0;
  while (i < source.size()) {
    const std::string_view rest = source.substr(i);
    size_t end = i + 1;
    if (rest.starts_with("//")) {
      end = std::min(source.find('\n', i), source.size());
      blank(i, end);
    } else if (rest.starts_with("/*")) {
      end = behind("*/", i + 2);
      blank(i, end);
    } else if (rest.starts_with("R\"")) {
      const size_t open = source.find('(', i);
      if (open == std::string_view::npos) break;
      const std::string mark = ")" + std::string(source.substr(i + 2, open - i - 2)) + "\"";
      end = behind(mark, open);
      blank(open, end);
    } else if (rest.starts_with("#include")) {
      end = std::min(source.find('\n', i), source.size());  // its quotes are no literal
    } else if (rest.front() == '"' ||
               (rest.front() == '\'' &&
                (i == 0 || std::isalnum(static_cast<unsigned char>(source[i - 1])) == 0))) {
      // Not the ' in 1'000.
      while (end < source.size() && source[end] != rest.front() && source[end] != '\n') {
        end += source[end] == '\\' ? 2 : 1;
      }
      blank(i + 1, end);
      ++end;
    }
    i = end;
  }
  return code;
}

}  // namespace drover::testing_support
