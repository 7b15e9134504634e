"""Tries mutants, one after the other or several at once, and keeps what came of each."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from .builds import SECOND_TESTS, BuildError, Module, Tree, program_in
from .source import Mutant, line_choices

KILLED, KILLED_BY_SECOND, SURVIVED, INVALID = "killed", "killed by sim", "survived", "does not compile"
_MEMORY_MAX = 16 << 30  # bytes of address space: a mutant that allocates for ever ends


@dataclass(frozen=True)
class Trial:
    mutant: Mutant
    module: str
    outcome: str
    by: str = ""  # the test that failed, or how the program ended


@dataclass(frozen=True)
class TestEnd:
    passed: bool
    by: str = ""


def draw(mutants: Iterable[Mutant], seed: int) -> Iterator[Mutant]:
    """Mutants in the order of a seed, no two of one line."""
    source = random.Random(seed)
    lines = list(line_choices(list(mutants)).values())
    source.shuffle(lines)
    for choices in lines:
        yield source.choice(choices)


def judge_output(status: int, output: str) -> TestEnd:
    """Reads the output of a gtest program: passed, or which test failed first."""
    if status == 0:
        return TestEnd(True)
    failed = re.search(r"^\[  FAILED  \] ([\w./]+)", output, re.M)
    if failed:
        return TestEnd(False, failed[1])
    begun = re.findall(r"^\[ RUN      \] ([\w./]+)", output, re.M)
    return TestEnd(False, f"{begun[-1] if begun else 'the program'} ended with {status}")


def run_test(program: Path, words: Sequence[str], folder: Path, limit: float) -> TestEnd:
    """Runs a program of tests until the first failure, with temporary files in `folder` and a limit of seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="tmp-", dir=folder))
    with tempfile.TemporaryFile() as output:
        run = subprocess.Popen(
            [str(program), "--gtest_fail_fast", *words],
            cwd=scratch,
            env=dict(os.environ, TMPDIR=str(scratch)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status: Optional[int] = run.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _kill_session(run)
        output.seek(0)
        text = output.read().decode(errors="replace")
    shutil.rmtree(scratch, ignore_errors=True)
    return TestEnd(False, "time limit") if status is None else judge_output(status, text)


def limit_resources() -> None:
    """For this process and those it starts: no core files, and no mutant that takes all memory."""
    for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, _MEMORY_MAX)):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _kill_session(run: subprocess.Popen) -> None:  # type: ignore[type-arg]
    """The program and whatever it has started; its number stays its own until it is waited for."""
    try:
        os.killpg(run.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    run.wait()


class Memory:
    """The outcomes of mutants, in a file, so that an interrupted round continues."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: Dict[str, Tuple[str, str]] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                key, outcome, by = json.loads(line)
                self._known[key] = (outcome, by)

    def find(self, key: str) -> Optional[Tuple[str, str]]:
        return self._known.get(key)

    def add(self, key: str, outcome: str, by: str) -> None:
        self._known[key] = (outcome, by)
        with open(self._path, "a") as file:
            file.write(json.dumps([key, outcome, by]) + "\n")


class Trials:
    """A tree, the modules to mutate, and how each is tested."""

    def __init__(
        self, tree: Tree, modules: Sequence[Module], scratch: Path, second: bool, say: Callable[[str], None]
    ) -> None:
        self._tree, self._scratch = tree, scratch
        self._module_of = {file: module for module in modules for file in module.files}
        self._second = SECOND_TESTS if second else ()
        self._memory = Memory(scratch / "trials.jsonl")
        self._say = say
        self._digests: Dict[str, str] = {}
        self._limits: Dict[str, float] = {}
        self._folders: Set[int] = set()
        self._lock = threading.Lock()
        for target in [module.test for module in modules]:
            self._measure(target, ())
        for target, words in self._second:
            self._measure(target, words)

    def _measure(self, target: str, words: Sequence[str]) -> None:
        """How long the tests take as they are; they must pass, also away from their build folder."""
        folder = self._scratch / "unchanged"
        program = program_in(folder, target)
        shutil.copy2(self._tree.program(target), program)
        began = time.monotonic()
        end = run_test(program, words, folder, 600)
        shutil.rmtree(folder)
        if not end.passed:
            raise BuildError(f"{target} fails without a mutant: {end.by}")
        # A machine that was idle now may be busy later.
        limit = 20 + 5 * (time.monotonic() - began)
        self._limits[target] = max(limit, self._limits.get(target, 0.0))
        self._digests[target] = self._tree.digest(target)

    def run(self, mutants: Iterator[Mutant], count: int, jobs: int, deadline: Optional[float]) -> List[Trial]:
        """Tries mutants in their order until `count` of them compiled, or time is up.

        Which ones these are does not depend on the number of jobs.
        """
        tried: List[Trial] = []
        running: Set[Future] = set()  # type: ignore[type-arg]
        with ThreadPoolExecutor(jobs) as pool:
            try:
                while True:
                    while len(tried) + len(running) < count and len(running) < jobs:
                        mutant = next(mutants, None) if deadline is None or time.monotonic() < deadline else None
                        if mutant is None:
                            count = 0
                            break
                        running.add(pool.submit(self._try, mutant))
                    if not running:
                        return sorted(tried, key=lambda each: dataclasses.astuple(each.mutant))
                    ended, running = wait(running, return_when=FIRST_COMPLETED)
                    for trial in (each.result() for each in ended):
                        if trial.outcome != INVALID:
                            tried.append(trial)
                            self._say(f"{len(tried):4d}  {describe(trial)}")
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _try(self, mutant: Mutant) -> Trial:
        module = self._module_of[mutant.file]
        key = self._key(mutant, module)
        known = self._memory.find(key)
        if known is None:
            with self._lock:
                number = next(n for n in range(len(self._folders) + 1) if n not in self._folders)
                self._folders.add(number)
            try:
                known = self._outcome(mutant, module, self._scratch / f"job-{number}")
            finally:
                with self._lock:
                    self._folders.remove(number)
            with self._lock:
                self._memory.add(key, *known)
        return Trial(mutant, module.name, *known)

    def _key(self, mutant: Mutant, module: Module) -> str:
        programs = [module.test, *(target for target, _ in self._second)]
        parts = [str(dataclasses.astuple(mutant)), *(f"{each} {self._digests[each]}" for each in programs)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _outcome(self, mutant: Mutant, module: Module, folder: Path) -> Tuple[str, str]:
        text = mutant.apply((self._tree.root / mutant.file).read_text())
        end = self._test(module.test, (), mutant, text, folder)
        if end is None:
            return INVALID, ""
        if not end.passed:
            return KILLED, end.by
        for target, words in self._second:
            if target != module.test and self._tree.uses(target, module):
                end = self._test(target, words, mutant, text, folder)
                # A change of a header may break the build of another module.
                if end is None or not end.passed:
                    return KILLED_BY_SECOND, end.by if end else f"{target} does not compile"
        return SURVIVED, ""

    def _test(self, target: str, words: Sequence[str], mutant: Mutant, text: str, folder: Path) -> Optional[TestEnd]:
        program = self._tree.make_mutated(target, mutant.file, text, folder)
        end = run_test(program, words, folder, self._limits[target]) if program else None
        shutil.rmtree(folder, ignore_errors=True)
        return end


def describe(trial: Trial) -> str:
    mutant = trial.mutant
    by = f" ({trial.by})" if trial.by else ""
    return f"{trial.outcome}{by}: {mutant.file}:{mutant.line} {mutant.operator}: {mutant.before}  =>  {mutant.after}"
