"""The result of a round of mutants as a table and as JSON, and the list of equivalent mutants."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Sequence, Set, Tuple

from .source import Mutant, collapse
from .trials import KILLED, KILLED_BY_SECOND, SURVIVED, Trial

_Key = Tuple[str, str, str]  # name of the file, the line before, the line after


class Equivalents:
    """Mutants that no test can kill, each with a reason.

    A text file: "FILE: LINE BEFORE => LINE AFTER", then an indented line with the reason. FILE is a name without
    folders, since files move.
    """

    def __init__(self, text: str) -> None:
        self._keys: Set[_Key] = set()
        entry = ""
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if line[0].isspace():
                if not entry:
                    raise ValueError(f"line {number}: a reason without a mutant")
                self._keys.add(_parse(entry, number))
                entry = ""
            elif entry:
                raise ValueError(f"line {number}: the mutant before has no reason")
            else:
                entry = line
        if entry:
            raise ValueError("the last mutant has no reason")

    @classmethod
    def read(cls, path: Path) -> Equivalents:
        return cls(path.read_text() if path.exists() else "")

    def __contains__(self, mutant: Mutant) -> bool:
        return (os.path.basename(mutant.file), mutant.before, mutant.after) in self._keys


def _parse(entry: str, number: int) -> _Key:
    file, colon, change = entry.partition(": ")
    before, arrow, after = change.partition(" => ")
    if not colon or not arrow:
        raise ValueError(f"line {number}: expected 'FILE: LINE BEFORE => LINE AFTER'")
    return file.strip(), collapse(before), collapse(after)


@dataclass
class Tally:
    killed: int = 0
    killed_by_second: int = 0
    survived: int = 0

    def add(self, outcome: str) -> None:
        self.killed += outcome == KILLED
        self.killed_by_second += outcome == KILLED_BY_SECOND
        self.survived += outcome == SURVIVED

    @property
    def all(self) -> int:
        return self.killed + self.killed_by_second + self.survived

    @property
    def share(self) -> float:
        """Killed by the module's own tests, in percent."""
        return 100 * self.killed / self.all if self.all else 0.0


def tallies(trials: Sequence[Trial]) -> Tuple[Tally, Dict[str, Tally]]:
    everything, by_module = Tally(), {}  # type: Tally, Dict[str, Tally]
    for trial in trials:
        everything.add(trial.outcome)
        by_module.setdefault(trial.module, Tally()).add(trial.outcome)
    return everything, dict(sorted(by_module.items()))


def table(trials: Sequence[Trial]) -> str:
    """Every mutant, those that survived last, and a line for each module."""
    lines: List[str] = []
    for outcome in (KILLED, KILLED_BY_SECOND, SURVIVED):
        for trial in (each for each in trials if each.outcome == outcome):
            mutant = trial.mutant
            by = f" by {trial.by}" if trial.by else ""
            lines += [f"{mutant.file}:{mutant.line}  {mutant.operator}  {outcome.partition(' ')[0]}{by}"]
            lines += [f"    - {mutant.before}", f"    + {mutant.after}"]
    everything, by_module = tallies(trials)
    lines += ["", f"{'module':<14}{'mutants':>8}{'killed':>8}{'by sim':>8}{'survived':>10}{'killed %':>10}"]
    for name, tally in [*by_module.items(), ("all", everything)]:
        counts = f"{tally.all:>8}{tally.killed:>8}{tally.killed_by_second:>8}{tally.survived:>10}"
        lines.append(f"{name:<14}{counts}{tally.share:>9.1f}%")
    return "\n".join(lines)


def as_json(trials: Sequence[Trial], seed: int, count: int) -> str:
    everything, by_module = tallies(trials)
    counts = {
        name: {"killed": each.killed, "killed_by_sim": each.killed_by_second, "survived": each.survived}
        for name, each in by_module.items()
    }
    mutants = [
        {
            "file": each.mutant.file,
            "line": each.mutant.line,
            "operator": each.mutant.operator,
            "before": each.mutant.before,
            "after": each.mutant.after,
            "module": each.module,
            "outcome": each.outcome,
            "by": each.by,
        }
        for each in trials
    ]
    whole = {"seed": seed, "count": count, "killed_percent": everything.share, "modules": counts, "mutants": mutants}
    return json.dumps(whole, indent=1)


def survivors_in(text: str) -> Set[_Key]:
    """Mutants of an earlier result (as_json) that the module's own tests missed."""
    missed = (each for each in json.loads(text)["mutants"] if each["outcome"] != KILLED)
    return {(os.path.basename(each["file"]), each["before"], each["after"]) for each in missed}


def key_of(mutant: Mutant) -> _Key:
    return os.path.basename(mutant.file), mutant.before, mutant.after
