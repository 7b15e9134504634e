"""The command line of tools/mutants."""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import time
from pathlib import Path
from typing import Iterator, List, Optional, Sequence

from .builds import SECOND_TESTS, BuildError, Module, Tree
from .report import Equivalents, as_json, key_of, survivors_in, table, tallies
from .source import Mutant, mutants_of
from .trials import Trials, draw, limit_resources

_ROOT = Path(__file__).resolve().parent.parent.parent
_SCRATCH = _ROOT / "build" / "mutants"
_EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/mutants",
        description="Changes one line at a time in a scratch copy of the tree, and reports which changes the tests "
        "of its module miss. An interrupted round continues with the same command.",
    )
    add = parser.add_argument
    add("--count", type=int, default=50, help="mutants to try (default 50)")
    add("--seed", type=int, default=1, help="random seed (default 1)")
    add("--least", type=float, default=90.0, help="fail if fewer are killed (percent, default 90)")
    add("--modules", nargs="+", metavar="MODULE", help="only these modules, such as core wire")
    add("--jobs", type=int, default=1, help="mutants at a time, one core each (default 1)")
    add("--minutes", type=float, help="start no mutants after this many minutes")
    add("--no-sim", action="store_true", help="do not try simulation and cluster tests on survivors")
    add("--json", type=Path, metavar="FILE", help="write the result as JSON too")
    add("--survivors", type=Path, metavar="FILE", help="only mutants that an earlier --json lists as not killed")
    add("--match", metavar="TEXT", help="only mutants with this in 'file:line before => after'")
    add("--list", action="store_true", help="print the mutants without trying them")
    add("--scratch", type=Path, default=_SCRATCH, help="folder of the copy (default build/mutants)")
    return parser.parse_args(words)


def _say(text: str) -> None:
    print(text, flush=True)


def _choose(modules: List[Module], names: Sequence[str]) -> List[Module]:
    known = {module.name for module in modules}
    for name in names:
        if name not in known:
            raise BuildError(f"no module '{name}'; there are {', '.join(sorted(known))}")
    return [module for module in modules if not names or module.name in names]


def _pool(tree: Tree, modules: Sequence[Module], options: argparse.Namespace) -> List[Mutant]:
    equivalents = Equivalents.read(_EQUIVALENT)
    wanted = survivors_in(options.survivors.read_text()) if options.survivors else None
    pool = []
    for module in modules:
        for file in module.files:
            for mutant in mutants_of(file, (tree.root / file).read_text()):
                shown = f"{mutant.file}:{mutant.line} {mutant.before} => {mutant.after}"
                if options.match and options.match not in shown:
                    continue
                if mutant not in equivalents and (wanted is None or key_of(mutant) in wanted):
                    pool.append(mutant)
    return pool


def _list(order: Iterator[Mutant], count: int) -> int:
    for mutant, _ in zip(order, range(count)):
        print(f"{mutant.file}:{mutant.line}  {mutant.operator}\n    - {mutant.before}\n    + {mutant.after}")
    return 0


def main(words: Sequence[str] = ()) -> int:
    options = _parse(words or sys.argv[1:])
    limit_resources()
    os.nice(5)  # a background job: other work on this machine is first
    deadline = time.monotonic() + 60 * options.minutes if options.minutes else None
    try:
        return _main(options, deadline)
    except (BuildError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command continues", file=sys.stderr)
        return 130


def _main(options: argparse.Namespace, deadline: Optional[float]) -> int:
    scratch: Path = options.scratch.resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    with open(scratch / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BuildError(f"another round uses {scratch}: wait for it, or choose another --scratch") from None
        return _round(options, scratch, deadline)


def _round(options: argparse.Namespace, scratch: Path, deadline: Optional[float]) -> int:
    tree = Tree(_ROOT, scratch)
    tree.copy()
    tree.configure()
    modules = _choose(tree.modules(), options.modules or ())
    targets = [module.test for module in modules]
    targets += [target for target, _ in SECOND_TESTS if not options.no_sim and target not in targets]
    _say(f"building {', '.join(targets)} in {tree.build}")
    tree.make(targets, options.jobs)
    for module in modules:
        tree.add_headers(module)
    pool = _pool(tree, modules, options)
    order = iter(pool) if options.survivors or options.match else draw(pool, options.seed)
    count = min(options.count, len(pool)) if not options.survivors else len(pool)
    names = ", ".join(module.name for module in modules)
    _say(f"{len(pool)} possible mutants in {names}; trying {count} with seed {options.seed}")
    if options.list:
        return _list(order, count)
    trials = Trials(tree, modules, scratch, not options.no_sim, _say)
    tried = trials.run(order, count, options.jobs, deadline)
    print(f"\n{table(tried)}")
    if options.json:
        options.json.write_text(as_json(tried, options.seed, options.count))
    share = tallies(tried)[0].share
    if len(tried) < count:
        _say(f"{len(tried)} of {count} mutants were tried within the time limit")
    _say(f"{share:.1f} % killed by the module's own tests; at least {options.least:g} % are required")
    return 0 if tried and share >= options.least else 1
