"""Statistics of all runs."""

from __future__ import annotations

from collections import Counter
from typing import Dict, List

from .broken_run import Outcome
from .judging import Verdict
from .schedules import Schedule


def _median_and_worst(values: List[float], unit: str) -> str:
    if not values:
        return "–"
    ordered = sorted(values)
    return f"{ordered[len(ordered) // 2]:.3g}{unit}, {ordered[-1]:.3g}{unit} ({len(ordered)})"


class Figures:
    def __init__(self) -> None:
        self.runs: Counter = Counter()
        self.bad: Counter = Counter()
        self.ends: Dict[str, Counter] = {}
        self.faults: Counter = Counter()
        self.missed = 0
        self.next_step: List[float] = []
        self.came_back: List[float] = []
        self.steps_lost: List[float] = []

    def add(self, schedule: Schedule, outcome: Outcome, verdict: Verdict) -> None:
        self.runs[schedule.family] += 1
        self.bad[schedule.family] += bool(verdict.findings)
        self.ends.setdefault(schedule.family, Counter())[verdict.outcome] += 1
        for hit in outcome.hits:
            for name in hit.targets:
                role = name.split()[0]
                self.faults[f"{hit.fault.kind} {role}" if role not in ("connections", "link") else hit.fault.kind] += 1
        if schedule.place != "plain" and not schedule.faults:
            self.faults[schedule.family] += 1
        self.missed += len(outcome.missed)
        self.next_step += verdict.next_step_after
        self.came_back += verdict.came_back_after
        self.steps_lost += [float(each) for each in verdict.steps_lost]

    def table(self) -> str:
        lines = ["| family | runs | ended | findings |", "|---|---|---|---|"]
        for family in sorted(self.runs):
            ends = ", ".join(f"{name} {count}" for name, count in self.ends[family].most_common())
            lines.append(f"| {family} | {self.runs[family]} | {ends} | {self.bad[family] or '–'} |")
        lines += ["", "| fault | times |", "|---|---|"]
        lines += [f"| {name} | {count} |" for name, count in sorted(self.faults.items())]
        lines += ["", "| median, worst (count) | |", "|---|---|"]
        lines.append(
            f"| from a kill or pause to the end of the next step | {_median_and_worst(self.next_step, ' s')} |"
        )
        lines.append(f"| from a worker's loss until it rejoins | {_median_and_worst(self.came_back, ' s')} |")
        lines.append(f"| steps lost by a restart | {_median_and_worst(self.steps_lost, '')} |")
        lines.append(f"| faults whose time had not come when the run was over | {self.missed} |")
        return "\n".join(lines)
