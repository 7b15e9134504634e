"""Tests of planted bugs without a compiler: descriptions, places, results of a hunt, and that all bugs apply."""

import tempfile
import unittest
from pathlib import Path

from .bugs_file import Bug, BugError, Change, apply, parse, places, read_all
from .command import read_outcome, row

_ROOT = Path(__file__).resolve().parent.parent.parent

_TEXT = """# about it
bug: one
runs: 50
in: src/*.cc
find:
  f(a);
put:
  f(b);
  g(b);

bug: two
in: src/a.cc
find:
  g(a);
put:
"""


class Descriptions(unittest.TestCase):
    def test_name_what_is_found_and_what_is_put(self):
        one, two = parse("area", _TEXT)
        self.assertEqual((one.name, one.area, one.runs), ("one", "area", 50))
        self.assertEqual(one.changes, [Change("src/*.cc", "f(a);\n", "f(b);\ng(b);\n")])
        self.assertEqual(two.changes, [Change("src/a.cc", "g(a);\n", "")])

    def test_are_refused_where_they_make_no_sense(self):
        for text in ("  f(a);", "bug: x", "bug: x\nin: a\n", "in: a", "bug: x\nin: a\nfind: f", "what: x", "runs: 5"):
            with self.assertRaises(BugError, msg=text):
                parse("area", text)


class Places(unittest.TestCase):
    def test_are_found_whatever_the_formatting(self):
        text = "void h() {\n  f(a,  // why\n    b);\n}"
        ((first, last),) = places(text, "f(a, b);")
        self.assertEqual(text[first:last], "f(a,  // why\n    b);")

    def test_are_whole_tokens(self):
        self.assertEqual(places("half(a);", "f(a);"), [])


class Application(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = Path(self._folder.name)
        (self.root / "src").mkdir()
        (self.root / "src/a.cc").write_text("g(a); f(c);")
        (self.root / "src/b.cc").write_text("f(a);")
        (self.root / "src/a_test.cc").write_text("f(a);")

    def bug(self, *changes):
        return Bug("bug", "area", [Change(*change) for change in changes])

    def test_changes_the_one_place_in_all_files(self):
        self.assertEqual(apply(self.bug(("src/*.cc", "f(a);", "f(b);")), self.root), {"src/b.cc": "f(b);"})

    def test_makes_several_changes_in_one_file(self):
        changed = apply(self.bug(("src/a.cc", "g(a);", "h();"), ("src/a.cc", "f(c);", "")), self.root)
        self.assertEqual(changed, {"src/a.cc": "h(); "})

    def test_fails_where_there_is_no_place_or_another(self):
        with self.assertRaisesRegex(BugError, "0 places"):
            apply(self.bug(("src/a.cc", "f(a);", "")), self.root)
        (self.root / "src/a.cc").write_text("f(a);")
        with self.assertRaisesRegex(BugError, "2 places"):
            apply(self.bug(("src/*.cc", "f(a);", "")), self.root)


class Outcomes(unittest.TestCase):
    BUG = Bug("bug", "area")

    def test_are_what_the_hunt_says_last(self):
        found = read_outcome(self.BUG, "noise\nfound 1234 the run hangs\n")
        self.assertTrue(found.found)
        self.assertEqual(row(found), "| area | bug | 1,234 | the run hangs |")

    def test_are_failures_where_nothing_is_found_or_said(self):
        missed = read_outcome(self.BUG, "clean 20000\n")
        self.assertFalse(missed.found)
        self.assertEqual(missed.text, "not found in 20,000 runs")
        self.assertFalse(read_outcome(self.BUG, "").found)


class PlantedBugs(unittest.TestCase):
    def test_apply_to_the_code_as_it_is(self):
        bugs = read_all(_ROOT / "tests/planted/bugs")
        self.assertGreater(len(bugs), 50)
        for bug in bugs:
            with self.subTest(bug=bug.name):
                apply(bug, _ROOT)

    def test_have_names_of_their_own(self):
        names = [bug.name for bug in read_all(_ROOT / "tests/planted/bugs")]
        self.assertEqual(sorted(set(names)), sorted(names))


if __name__ == "__main__":
    unittest.main()
