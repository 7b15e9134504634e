// Checks of module boundaries and of rules for code: functions from a source tree to complaints.
//
// Trees are maps in memory, so that each rule can be tested with a small tree that breaks it.
// Complaints are lines for people; an empty list means that the rule holds.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace drover::testing_support {

using Tree = std::map<std::string, std::string>;  // path from the project's root -> content
using ModuleTable = std::map<std::string, std::set<std::string>>;  // module -> modules it may use
using Complaints = std::vector<std::string>;

// Sources, headers and CMakeLists.txt files of src, tests and bench, and ARCHITECTURE.md.
Tree read_tree(const std::string& root);

// The table in ARCHITECTURE.md whose header is | module | may use | what it is |; empty if there is
// none.
ModuleTable read_module_table(std::string_view markdown);

// The table itself: modules have folders and folders are modules, only known modules are used, and
// no module depends on itself, directly or indirectly.
Complaints check_table(const Tree& tree);
// Every #include "..." under src/ names a module that the file's module may use.
Complaints check_includes(const Tree& tree);
// Every module that a row of the table may use is included by the module's own code, its tests
// aside, and the row's CMakeLists.txt links the same modules.
Complaints check_permissions(const Tree& tree);
// Every source and header under src/ is listed in its module's CMakeLists.txt.
Complaints check_listed(const Tree& tree);
// Headers open with a sentence and have #pragma once.
Complaints check_headers(const Tree& tree);
// Names that may not be used: sleeping in tests; clocks, threads and randomness in state machines;
// libtorch elsewhere than in `tasks` and `fit`.
Complaints check_words(const Tree& tree);

// `source` with comments, and what is inside string and character literals, blanked out; lines stay
// where they are.
std::string code_only(std::string_view source);

}  // namespace drover::testing_support
