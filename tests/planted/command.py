"""The command line of tools/planted-bugs."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

from mutants.builds import BuildError, Tree
from mutants.trials import limit_resources

from .bugs_file import Bug, BugError, apply, read_all

_ROOT = Path(__file__).resolve().parent.parent.parent
_BUGS = Path(__file__).with_name("bugs")
_TARGET = "hunt_driver"


@dataclass(frozen=True)
class Outcome:
    bug: Bug
    run: Optional[int]  # the run that found it, from 1
    text: str  # the finding of the hunt, or why the bug could not be tried

    @property
    def found(self) -> bool:
        return self.run is not None


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/planted-bugs",
        description="Plants each bug of tests/planted/bugs in a scratch copy of the tree, hunts, and prints after how "
        "many runs it is found. Fails if one is not found, or no longer applies to the code.",
    )
    add = parser.add_argument
    add("--runs", type=int, default=20_000, help="runs to hunt through for each (default 20000)")
    add("--seed", type=int, default=1, help="first seed of the hunt (default 1)")
    add("--jobs", type=int, default=1, help="bugs at a time, one core each (default 1)")
    add("--match", nargs="+", metavar="TEXT", default=[""], help="only bugs with one of these in 'AREA: NAME'")
    add("--preset", default="release", help="CMake preset of the build (default release)")
    add("--list", action="store_true", help="check that all bugs apply, print them, and hunt for none")
    add("--scratch", type=Path, default=_ROOT / "build" / "planted", help="folder of the copy (default build/planted)")
    return parser.parse_args(words)


def read_outcome(bug: Bug, output: str) -> Outcome:
    """The last result printed by hunt_driver: "clean RUNS" or "found RUN WHAT"."""
    lines = [line for line in output.splitlines() if line.startswith(("clean ", "found "))]
    word, number, text = (*lines[-1].split(" ", 2), "")[:3] if lines else ("", "", "the hunt printed no result")
    if word == "found":
        return Outcome(bug, int(number), text)
    return Outcome(bug, None, f"not found in {int(number):,} runs" if word == "clean" else text)


def _hunt(bug: Bug, tree: Tree, folder: Path, options: argparse.Namespace) -> Outcome:
    try:
        texts = apply(bug, tree.root)
    except BugError as error:
        return Outcome(bug, None, str(error))
    program = tree.make_changed(_TARGET, texts, folder)
    if program is None:
        return Outcome(bug, None, "it does not compile")
    runs = max(options.runs, bug.runs or 0)
    done = subprocess.run([str(program), str(runs), str(options.seed)], stdout=subprocess.PIPE, text=True)
    return read_outcome(bug, done.stdout)


def row(outcome: Outcome) -> str:
    run = f"{outcome.run:,}" if outcome.run is not None else "–"
    return f"| {outcome.bug.area} | {outcome.bug.name} | {run} | {outcome.text} |"


def _try_all(bugs: List[Bug], tree: Tree, scratch: Path, options: argparse.Namespace) -> List[Outcome]:
    def attempt(numbered: Tuple[int, Bug]) -> Outcome:
        folder = scratch / f"bug-{numbered[0]}"
        outcome = _hunt(numbered[1], tree, folder, options)
        shutil.rmtree(folder, ignore_errors=True)
        return outcome

    print("| area | planted bug | found after | what the hunt says |\n|---|---|---|---|", flush=True)
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(attempt, enumerate(bugs)):
            print(row(outcome), flush=True)
            outcomes.append(outcome)
    return outcomes


def _main(options: argparse.Namespace) -> int:
    bugs = [bug for bug in read_all(_BUGS) if any(text in f"{bug.area}: {bug.name}" for text in options.match)]
    if options.list:
        for bug in bugs:
            apply(bug, _ROOT)
            print(f"{bug.area}: {bug.name}")
        return 0
    scratch = options.scratch.resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    with open(scratch / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BuildError(f"another round uses {scratch}: wait for it, or choose another --scratch") from None
        return _round(bugs, scratch, options)


def _round(bugs: List[Bug], scratch: Path, options: argparse.Namespace) -> int:
    tree = Tree(_ROOT, scratch, options.preset)
    tree.copy()
    tree.configure()
    tree.make([_TARGET], options.jobs)
    clean = subprocess.run(
        [str(tree.program(_TARGET)), str(options.runs), str(options.seed)], stdout=subprocess.PIPE, text=True
    )
    if clean.returncode != 0:
        raise BugError(f"the hunt finds something before any bug is planted: {clean.stdout.strip()}")
    outcomes = _try_all(bugs, tree, scratch, options)
    missed = [outcome for outcome in outcomes if not outcome.found]
    print(f"\n{len(outcomes) - len(missed)} of {len(outcomes)} planted bugs were found")
    return 1 if missed or not outcomes else 0


def main(words: Sequence[str] = ()) -> int:
    options = _parse(words or sys.argv[1:])
    limit_resources()
    os.nice(5)  # a background job: other work on this machine is first
    try:
        return _main(options)
    except (BuildError, BugError) as error:
        print(f"planted-bugs: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
