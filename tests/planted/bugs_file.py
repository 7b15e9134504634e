"""Descriptions of planted bugs, and the changes of source text that they stand for.

A description names files, what to find in them, and what to put there instead. What is found is a sequence of C++
tokens, so that neither formatting nor comments matter; it must be there exactly once in all files that match.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from mutants.source import tokens_of


class BugError(Exception):
    """An invalid description, or one that no longer applies to the code."""


@dataclass
class Change:
    files: str  # a path or a pattern, from the root of the tree
    find: str = ""
    put: str = ""


@dataclass
class Bug:
    name: str
    area: str
    changes: List[Change] = field(default_factory=list)
    runs: Optional[int] = None  # the number of runs to hunt for it, if it needs more than others


def parse(area: str, text: str) -> List[Bug]:
    """Lines `bug: NAME`, `runs: NUMBER`, and for each change `in: FILES`, `find:` and `put:` with indented text."""
    bugs: List[Bug] = []
    part = ""  # the part that indented lines belong to
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("  "):
            if part not in ("find", "put") or not bugs or not bugs[-1].changes:
                raise BugError(f"{area}, line {number}: indented text outside of find: and put:")
            change = bugs[-1].changes[-1]
            setattr(change, part, getattr(change, part) + line.strip() + "\n")
            continue
        if not line.strip() or line.startswith("#"):
            continue
        part, colon, value = line.partition(":")
        value = value.strip()
        if part == "bug" and value:
            bugs.append(Bug(value, area))
        elif part == "runs" and value.isdigit() and bugs:
            bugs[-1].runs = int(value)
        elif part == "in" and value and bugs:
            bugs[-1].changes.append(Change(value))
        elif not colon or part not in ("find", "put") or value:
            raise BugError(f"{area}, line {number}: expected bug:, runs:, in:, find: or put:")
    for bug in bugs:
        if not bug.changes or any(not change.find for change in bug.changes):
            raise BugError(f"{area}: '{bug.name}' changes nothing")
    return bugs


def read_all(folder: Path) -> List[Bug]:
    return [bug for file in sorted(folder.glob("*.txt")) for bug in parse(file.stem, file.read_text())]


def places(text: str, wanted: str) -> List[Tuple[int, int]]:
    """The places (begin and end) of the token sequence `wanted` in C++ text."""
    pattern = [token.text for token in tokens_of(wanted)]
    tokens = tokens_of(text)
    texts = [token.text for token in tokens]
    return [
        (tokens[at].start, tokens[at + len(pattern) - 1].end)
        for at in range(len(texts) - len(pattern) + 1)
        if texts[at] == pattern[0] and texts[at : at + len(pattern)] == pattern
    ]


def apply(bug: Bug, root: Path) -> Dict[str, str]:
    """The files that the bug changes, by path from the root, as they are with it."""
    changed: Dict[str, str] = {}
    for change in bug.changes:
        names = [str(path.relative_to(root)) for path in sorted(root.glob(change.files))]
        names = [name for name in names if not name.endswith("_test.cc")]
        found = []
        for name in names:
            text = changed.get(name) or (root / name).read_text()
            found += [(name, text, first, last) for first, last in places(text, change.find)]
        if len(found) != 1:
            shown = " ".join(change.find.split())
            raise BugError(f"'{bug.name}' no longer applies: {len(found)} places in {change.files} have `{shown}`")
        name, text, first, last = found[0]
        changed[name] = text[:first] + change.put.rstrip("\n") + text[last:]
    return changed
