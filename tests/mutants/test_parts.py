"""Tests of mutation testing without a compiler: mutants of small texts, builds, trials, the report."""

import json
import os
import tempfile
import threading
import unittest
from pathlib import Path

from .builds import Module, Tree, compilations_of, dependencies_of, is_test, link_of, linking, modules_of
from .report import Equivalents, as_json, survivors_in, table, tallies
from .source import mutants_of, tokens_of
from .trials import INVALID, KILLED, KILLED_BY_SECOND, SURVIVED, Memory, Trial, Trials, draw, judge_output, run_test


def changes(body, operator, returns="void"):
    """The lines after each change of one kind in a function's body."""
    text = f"namespace n {{\n{returns} f(int a, int b) {{\n{body}\n}}\n}}  // namespace n\n"
    return [mutant.after for mutant in mutants_of("src/m/f.cc", text) if mutant.operator == operator]


class Operators(unittest.TestCase):
    def test_delete_whole_statements_that_are_expressions(self):
        self.assertEqual(changes("g(a);", "delete"), ["{}"])
        self.assertEqual(changes("x_->y[2].g(a,\n       b);", "delete"), ["{}"])
        self.assertEqual(changes("if (a) std::swap(a, b);", "delete"), ["if (a) {}"])
        self.assertEqual(changes("for (int i : x) a += i;", "delete"), ["for (int i : x) {}"])
        self.assertEqual(changes("++a;", "delete"), ["{}"])
        self.assertEqual(changes("x.put<int>(a);", "delete"), ["{}"])
        self.assertEqual(changes("switch (a) {\n case kOne: g(a); break;\n}", "delete"), ["case kOne: {} break;"])
        self.assertEqual(changes("run([&] { g(a); });", "delete"), ["{}", "run([&] { {} });"])

    def test_leave_declarations_checks_and_what_only_saves_time(self):
        declarations = ["int c = a;", "const auto c = g(a);", "Thing thing(a);", "std::vector<int> v{a};"]
        for body in declarations + ["DROVER_CHECK(a < b);", "return g(a);"]:
            self.assertEqual(changes(body, "delete"), [], body)
        self.assertEqual(changes("v.reserve(a);", "delete"), [])
        self.assertEqual(changes("DROVER_CHECK(a < b);", "boundary"), [])

    def test_exchange_operators(self):
        self.assertEqual(changes("return a && b;", "logic", "int"), ["return a || b;"])
        self.assertEqual(changes("return a != b;", "equality", "int"), ["return a == b;"])
        self.assertEqual(changes("return a < b;", "boundary", "int"), ["return a <= b;"])
        self.assertEqual(changes("return a >= b;", "boundary", "int"), ["return a > b;"])
        self.assertEqual(changes("return a - b;", "sign", "int"), ["return a + b;"])
        self.assertEqual(changes("a += b;", "sign"), ["a -= b;"])
        self.assertEqual(changes("return -a;", "sign", "int"), ["return a;"])
        self.assertEqual(changes("return std::min(a, b);", "min-max", "int"), ["return std::max(a, b);"])
        self.assertEqual(changes("return std::max<int>(a, b);", "min-max", "int"), ["return std::min<int>(a, b);"])

    def test_leave_what_only_looks_like_an_operator(self):
        body = 'std::vector<int> v = g<int>(static_cast<int&&>(a)); s = "a && b"; t = u + " - ";  // a && b\n'
        for operator in ("logic", "boundary", "sign", "equality"):
            self.assertEqual(changes(body, operator), [], operator)

    def test_negate_conditions(self):
        self.assertEqual(changes("if (a) g();", "condition"), ["if (!(a)) g();"])
        self.assertEqual(changes("if (!a) g();", "condition"), ["if (a) g();"])
        self.assertEqual(changes("if (!a && b) g();", "condition"), ["if (!(!a && b)) g();"])
        self.assertEqual(changes("while (a > b) ++b;", "condition"), ["while (!(a > b)) ++b;"])
        self.assertEqual(changes("if (int c = g(); c > a) g();", "condition"), ["if (int c = g(); !(c > a)) g();"])
        self.assertEqual(changes("if (const auto c = g()) g();", "condition"), [])
        self.assertEqual(changes("return has(a);", "condition", "bool"), ["return !(has(a));"])
        self.assertEqual(changes("return has(a);", "condition", "int"), [])

    def test_change_small_constants(self):
        self.assertEqual(changes("g(0);", "constant"), ["g(1);"])
        self.assertEqual(changes("g(2u);", "constant"), ["g(1u);", "g(3u);"])
        self.assertEqual(changes("g(true);", "constant"), ["g(false);"])
        for body in ("g(64);", "g(0x1f);", "g(2.5);", "g(10ms);", 'g("1");'):
            self.assertEqual(changes(body, "constant"), [], body)

    def test_return_early_from_functions_that_return_nothing(self):
        # In place of the last statement it would be a deletion.
        self.assertEqual(changes("g(a);\nh(b);", "return"), ["return;"])
        self.assertEqual(changes("g(a);\nreturn b;", "return", "int"), [])
        self.assertEqual(changes("run([&] { g(a); h(a); });\nh(b);", "return"), ["return;"])

    def test_swap_variables_of_a_call(self):
        self.assertEqual(changes("g(a, x.b);", "arguments"), ["g(x.b, a);"])
        self.assertEqual(changes("g(h(a), b);", "arguments"), [])
        self.assertEqual(changes("g(std::min(a, b));", "arguments"), [])

    def test_apply_only_inside_functions(self):
        text = (
            "#define G(a) if (a && 1) g(1)\nconstexpr int kMost = 1 + 2;\nenum class E { kOne = 1 };\n"
            "struct S : Base {\n  int a = 1;\n  bool is(int b) const { return a == b; }\n  S() : a(1), b{2} {}\n};\n"
        )
        found = [(each.line, each.after.strip()) for each in mutants_of("src/m/f.h", text)]
        negated = "bool is(int b) const { return !(a == b); }"
        self.assertEqual(sorted(found), [(6, negated), (6, "bool is(int b) const { return a != b; }")])

    def test_name_the_line_and_change_nothing_else(self):
        text = "void f() {\n  g(1);\n  h();\n}\n"
        for mutant in mutants_of("src/m/f.cc", text):
            self.assertEqual(text.splitlines()[mutant.line - 1].strip(), mutant.before)
            self.assertEqual(len(mutant.apply(text)), len(text) - (mutant.end - mutant.start) + len(mutant.replacement))
        self.assertEqual([each.text for each in tokens_of('R"(a "b")" 1\'000 x')], ['R"(a "b")"', "1'000", "x"])


COMMANDS = [
    {"file": "/t/src/m/a.cc", "command": "c++ -I/t/src -Werror -o src/m/CMakeFiles/m.dir/a.cc.o -c /t/src/m/a.cc"},
    {"file": "/t/src/m/a.cc", "command": "c++ -DV3 -o src/m/CMakeFiles/m_v3.dir/a.cc.o -c /t/src/m/a.cc"},
    {"file": "/t/src/m/a_test.cc", "command": "c++ -o src/m/CMakeFiles/m_test.dir/a_test.cc.o -c /t/src/m/a_test.cc"},
    {"file": "/t/build/dev/src/m/g.cc", "command": "c++ -o src/m/CMakeFiles/m.dir/g.cc.o -c /t/build/dev/src/m/g.cc"},
    {"file": "/t/src/net/s.cc", "command": "c++ -o src/net/CMakeFiles/net.dir/s.cc.o -c /t/src/net/s.cc"},
    {"file": "/t/src/net/n_test.cc", "command": "c++ -o src/net/CMakeFiles/net_test.dir/n_test.cc.o -c /t/n_test.cc"},
]
LINKED = (
    "c++ -c a.cc\n"
    ": && c++ -O1 src/m/CMakeFiles/m_test.dir/a_test.cc.o -o bin/m_test  src/m/libm.a  /usr/lib/libgtest.a && cmake"
)


class Builds(unittest.TestCase):
    def test_the_copy_of_a_tree_has_its_files_and_only_writes_what_changed(self):
        with tempfile.TemporaryDirectory() as folder:
            source, scratch = Path(folder) / "source", Path(folder) / "source/build/mutants"
            for name in ("src/a.cc", "src/b.cc", "build/dev/c.o"):
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                (source / name).write_text(name)
            tree = Tree(source, scratch)
            tree.copy()
            copied = {str(each.relative_to(tree.root)) for each in tree.root.rglob("*") if each.is_file()}
            self.assertEqual(copied, {"src/a.cc", "src/b.cc"})
            os.utime(tree.root / "src/a.cc", (1, 1))
            (source / "src/b.cc").unlink()
            (source / "src/d.cc").write_text("new")
            tree.copy()
            copied = {str(each.relative_to(tree.root)) for each in tree.root.rglob("*") if each.is_file()}
            self.assertEqual(copied, {"src/a.cc", "src/d.cc"})
            self.assertEqual((tree.root / "src/a.cc").stat().st_mtime, 1)

    def test_modules_are_folders_with_a_library_and_tests(self):
        compilations = compilations_of(COMMANDS, Path("/t"))
        self.assertEqual(modules_of(compilations), [Module("m", "src/m", "m_test", ["src/m/a.cc"])])
        self.assertEqual([is_test(each) for each in compilations], [False, False, True, False, True])

    def test_a_changed_object_is_linked_before_the_library_it_is_in(self):
        link = link_of(LINKED, "m_test")
        self.assertEqual(link.libraries, ("src/m/libm.a",))
        test = "src/m/CMakeFiles/m_test.dir/a_test.cc.o"
        made = linking(link, {"src/m/CMakeFiles/m.dir/a.cc.o": "/s/a.o", test: "/s/a_test.o"}, "/s/m_test")
        self.assertEqual(made[:6], ["c++", "-O1", "/s/a.o", "/s/a_test.o", "-o", "/s/m_test"])
        self.assertEqual(made[6:], ["src/m/libm.a", "/usr/lib/libgtest.a"])

    def test_dependencies_are_files_of_the_tree(self):
        files = "    ../../src/m/a.cc\n    /usr/include/x.h\n    src/m/g.h\n"
        listing = f"src/m/a.o: #deps 3 (VALID)\n{files}\nb.o: #deps 0\n"
        found = dependencies_of(listing, Path("/t/build/dev"), Path("/t"))
        self.assertEqual(found, {"src/m/a.o": {"src/m/a.cc"}, "b.o": set()})


SOME = mutants_of("src/m/f.cc", "void f() {\n" + "".join(f"  g{n}(a == {n});\n" for n in range(8)) + "}\n")


class FakeTree:
    """Mutants that delete do not compile; those of even lines are killed by the module's test, one by a second one."""

    root = Path("/")

    def __init__(self, folder):
        self.root = folder
        (folder / "src/m").mkdir(parents=True)
        (folder / "src/m/f.cc").write_text("void f() {\n" + "".join(f"  g{n}(a == {n});\n" for n in range(8)) + "}\n")
        self.makes = 0
        self._lock = threading.Lock()

    def program(self, _target):
        return self._script("exit 0")

    def digest(self, target):
        return f"digest of {target}"

    def uses(self, _target, _module):
        return True

    def make_mutated(self, target, _file, text, folder):
        with self._lock:
            self.makes += 1
        if "{}" in text or "return;" in text:
            return None
        changed = next(n for n, line in enumerate(text.splitlines()[1:-1]) if line != f"  g{n}(a == {n});")
        killed = changed % 2 == 0 if target == "m_test" else changed == 1
        return self._script("echo '[  FAILED  ] Some.Test'; exit 1" if killed else "exit 0", folder)

    def _script(self, words, folder=None):
        folder = folder or self.root
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "program"
        if not path.exists():
            path.write_text(f"#!/bin/sh\n{words}\n")
            path.chmod(0o755)
        return path


class TrialsOfMutants(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def _trials(self, name):
        (self.folder / name).mkdir(exist_ok=True)
        tree_folder = self.folder / name / "tree"
        tree = FakeTree(tree_folder) if not tree_folder.exists() else self.tree
        self.tree = tree
        module = Module("m", "src/m", "m_test", ["src/m/f.cc"])
        return Trials(tree, [module], self.folder / name, True, lambda _text: None)

    def test_are_drawn_by_seed_and_one_for_a_line(self):
        first = list(draw(SOME, 1))
        self.assertEqual(first, list(draw(SOME, 1)))
        self.assertNotEqual(first, list(draw(SOME, 2)))
        self.assertEqual(sorted(each.line for each in first), list(range(2, 10)))

    def test_are_the_same_with_any_number_of_jobs_and_those_that_do_not_compile_do_not_count(self):
        alone = self._trials("one").run(iter(SOME), 5, 1, None)
        together = self._trials("many").run(iter(SOME), 5, 4, None)
        self.assertEqual(alone, together)
        self.assertEqual(len(alone), 5)
        self.assertNotIn(INVALID, {each.outcome for each in alone})

    def test_say_which_tests_notice(self):
        order = [each for each in SOME if each.operator == "equality"]
        tried = self._trials("one").run(iter(order), len(order), 1, None)
        expected = [KILLED, KILLED_BY_SECOND, KILLED, SURVIVED, KILLED, SURVIVED, KILLED, SURVIVED]
        self.assertEqual([each.outcome for each in tried], expected)
        self.assertEqual(tried[0].by, "Some.Test")

    def test_continue_where_an_earlier_round_ended(self):
        first = self._trials("one").run(iter(SOME), 4, 1, None)
        made = self.tree.makes
        again = self._trials("one").run(iter(SOME), 4, 1, None)
        self.assertEqual(first, again)
        self.assertEqual(self.tree.makes, made)

    def test_none_begins_after_the_time_is_up(self):
        self.assertEqual(self._trials("one").run(iter(SOME), 4, 1, 0.0), [])

    def test_memory_is_a_file(self):
        memory = Memory(self.folder / "memory")
        memory.add("a", KILLED, "Some.Test")
        self.assertEqual(Memory(self.folder / "memory").find("a"), (KILLED, "Some.Test"))
        self.assertIsNone(memory.find("b"))

    def test_a_program_that_hangs_is_killed_with_what_it_started(self):
        program = self.folder / "hangs"
        program.write_text("#!/bin/sh\nsleep 1000 & sleep 1000\n")
        program.chmod(0o755)
        end = run_test(program, (), self.folder / "runs", 0.2)
        self.assertEqual((end.passed, end.by), (False, "time limit"))

    def test_output_names_the_test(self):
        self.assertTrue(judge_output(0, "").passed)
        self.assertEqual(judge_output(1, "[ RUN      ] A.B\n[  FAILED  ] A.B (0 ms)\n").by, "A.B")
        self.assertEqual(judge_output(-6, "[ RUN      ] A.B\n[ RUN      ] A.C\n").by, "A.C ended with -6")


class Report(unittest.TestCase):
    def setUp(self):
        outcomes = [KILLED, KILLED, KILLED_BY_SECOND, SURVIVED]
        self.trials = [Trial(mutant, "m", outcome, "Some.Test") for mutant, outcome in zip(SOME, outcomes)]

    def test_counts_what_the_module_s_own_tests_kill(self):
        everything, by_module = tallies(self.trials)
        self.assertEqual((everything.killed, everything.killed_by_second, everything.survived), (2, 1, 1))
        self.assertEqual(everything.share, 50.0)
        self.assertEqual(list(by_module), ["m"])

    def test_shows_every_mutant_and_survivors_last(self):
        text = table(self.trials)
        for trial in self.trials:
            self.assertIn(f"{trial.mutant.file}:{trial.mutant.line}  {trial.mutant.operator}", text)
        self.assertLess(text.index("killed by Some.Test"), text.index("survived by"))
        self.assertIn(f"    - {SOME[3].before}\n    + {SOME[3].after}\n", text)
        self.assertRegex(text, r"all +4 +2 +1 +1 +50\.0%")

    def test_json_names_the_survivors_for_another_round(self):
        text = as_json(self.trials, 7, 4)
        self.assertEqual(json.loads(text)["modules"]["m"], {"killed": 2, "killed_by_sim": 1, "survived": 1})
        self.assertEqual(survivors_in(text), {("f.cc", each.before, each.after) for each in SOME[2:4]})

    def test_equivalents_are_matched_by_file_name_and_text(self):
        known = Equivalents(f"# Comment\nf.cc: {SOME[0].before} => {SOME[0].after}\n    Both are zero.\n")
        self.assertIn(SOME[0], known)
        self.assertNotIn(SOME[1], known)

    def test_an_equivalent_needs_a_reason(self):
        for text in ("f.cc: a => b\n", "f.cc: a => b\nf.cc: c => d\n    Why.\n", "    Why.\n", "f.cc: a\n    Why.\n"):
            with self.assertRaises(ValueError, msg=text):
                Equivalents(text)

    def test_the_list_kept_with_the_code_can_be_read(self):
        Equivalents.read(Path(__file__).with_name("equivalent.txt"))


if __name__ == "__main__":
    unittest.main()
