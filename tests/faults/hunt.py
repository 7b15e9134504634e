"""Runs schedules: injects the faults of each into a run, checks the result, and prints the findings."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, Optional

from .broken_run import BrokenRun
from .figures import Figures
from .judging import Verdict, judge
from .network import can_make_hosts
from .schedules import LINK, PROXY, SMALL_DISK, WILD_CLOCK, Job, Schedule, schedule_of


class Hunt:
    def __init__(self, drover: Path, tools: Path) -> None:
        self._drover, self._tools = drover, tools
        self._undisturbed: Dict[Job, str] = {}
        self.figures = Figures()
        self._hosts = can_make_hosts()
        self._root = os.geteuid() == 0
        self._shim = self._make_shim()

    def _make_shim(self) -> bool:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            return False
        source = Path(__file__).with_name("realtime_shim.c")
        shim = self._tools / "realtime_shim.so"
        words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(shim), str(source)]
        if subprocess.run(words, capture_output=True).returncode != 0:
            return False
        # A program with a sanitizer does not start, because its runtime must be loaded first.
        tried = subprocess.run(
            [str(self._drover), "--version"], env=dict(os.environ, LD_PRELOAD=str(shim)), capture_output=True
        )
        return tried.returncode == 0

    def skip_reason(self, schedule: Schedule) -> Optional[str]:
        """Why this machine cannot run the schedule; None: it can."""
        if schedule.place in (PROXY, LINK) and not self._hosts:
            return "no network namespaces"
        if schedule.place == SMALL_DISK and not self._root:
            return "only root can mount a small disk"
        if schedule.place == WILD_CLOCK and not self._shim:
            return "no C compiler, or the program cannot be started with another clock (LD_PRELOAD)"
        return None

    def undisturbed_digest(self, job: Job) -> str:
        if job not in self._undisturbed:
            with BrokenRun(Schedule(0, "undisturbed", job, ()), self._drover, self._tools) as run:
                run.start()
                outcome = run.inject_faults()
                verdict = judge(run, outcome, self._drover, None)
                if verdict.findings or not verdict.digest:
                    raise SystemExit(f"a run without faults has findings: {verdict.findings}\n{run.logs()}")
                self._undisturbed[job] = verdict.digest
        return self._undisturbed[job]

    def run(self, schedule: Schedule, keep: bool = False) -> Verdict:
        undisturbed = self.undisturbed_digest(schedule.job) if schedule.same_parameters else None
        with BrokenRun(schedule, self._drover, self._tools, keep) as run:
            run.start()
            outcome = run.inject_faults()
            verdict = judge(run, outcome, self._drover, undisturbed)
            self.figures.add(schedule, outcome, verdict)
            if verdict.findings:
                print("\n".join(f"    hit {', '.join(h.targets)} at {h.at:.3f} s: {h.fault}" for h in outcome.hits))
                print(f"{run.logs()}\n    {outcome.statuses}")
            if keep:
                print(f"    kept in {run.folder}")
        return verdict


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tools/faults", description="Injects faults into real runs, by seeded schedules, and checks the results."
    )
    parser.add_argument("drover", type=Path, help="the program, such as build/release/drover")
    parser.add_argument(
        "--seeds",
        type=_seeds,
        default=range(1, 201),
        metavar="FIRST-LAST",
        help="seeds of the schedules (default 1-200)",
    )
    parser.add_argument("--steady", action="store_true", help="only schedules that end alike on a busy machine")
    parser.add_argument("--family", help="only schedules of this family, such as 'weather'")
    parser.add_argument(
        "--seconds", type=float, default=0.0, help="start no more schedules after so many seconds (default: no limit)"
    )
    parser.add_argument("--show", action="store_true", help="print the schedules and run none")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the runs")
    options = parser.parse_args()
    tools = Path(tempfile.mkdtemp(prefix="drover-faults-tools-"))
    try:
        return _hunt(options, tools)
    finally:
        shutil.rmtree(tools, ignore_errors=True)


def _hunt(options: argparse.Namespace, tools: Path) -> int:
    hunt = Hunt(options.drover.resolve(), tools)
    began = time.monotonic()
    bad = done = 0
    for seed in options.seeds:
        schedule = schedule_of(seed, options.steady)
        if options.family and schedule.family != options.family:
            continue
        if options.seconds and time.monotonic() - began > options.seconds:
            break
        print(schedule, flush=True)
        if options.show:
            continue
        if reason := hunt.skip_reason(schedule):
            print(f"    skipped: {reason}")
            continue
        verdict = hunt.run(schedule, options.keep)
        done += 1
        if verdict.findings:
            bad += 1
            steady = " --steady" if options.steady else ""
            for finding in verdict.findings:
                print(f"    FINDING: {finding}")
            print(f"    repeat with: tools/faults {options.drover} --seeds {seed}{steady}", flush=True)
    print(
        f"\n{done} runs with faults in {time.monotonic() - began:.0f} s, {bad} with findings\n\n{hunt.figures.table()}"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
