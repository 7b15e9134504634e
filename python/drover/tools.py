"""The drover program's judgement of run-times, from Python.

    times = np.load("times.npy")                             # steps x workers, NaN: not recorded
    drover.replay(times, "ecdf").time_vs_sync                # what a policy would have done with them
    drover.replay(times, ["sync", "ecdf", "oracle"])         # several policies, on the same steps
    drover.fit(times, out="cluster.model").policy            # a learned model; what --policy takes to use it
    drover.simulate("examples/scenarios/calm.toml").run      # training on a cluster that is only described

Each call runs the program `drover` once. Options are its flags with underscores for dashes: `min_contributors=3` is
`--min-contributors 3`, `live=True` is `--live`; `drover replay --help` and the others list them.
"""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union, overload

import numpy as np

from .errors import Error
from .runs import PathLike, RunData, read_run

# Recorded run-times: a matrix (steps x workers), a file (CSV, NPY or a run file), or a run that was read.
Trace = Union[np.ndarray, PathLike, RunData]


@dataclass(frozen=True)
class Policy:
    """Something that `policy=` takes: NAME or NAME:OPTION:OPTION, an option KEY=VALUE or the bare value."""

    name: str
    summary: str
    options: str


@dataclass(frozen=True, eq=False)
class Replay:
    """What a policy would have done with recorded run-times. Numbers are over the steps after the warm-up;
    docs/replay.md explains them. The arrays have one entry a step, those of the warm-up among them."""

    policy: str
    objective: str
    steps: int
    workers: int
    warmup: int
    measured_steps: int
    throughput_total: float  # gradients per time, over all steps together
    throughput_median: float  # of the typical step
    oracle_share_total: float  # the same as shares of the clairvoyant's
    oracle_share_median: float
    time_vs_sync: float  # time for all steps, as a share of the time of waiting for all
    cutoff_mean: float  # gradients used in a step
    inclusion_min: float  # in what share of its steps the least used worker was used
    reviews_mean: float
    decision_us_p50: float
    decision_us_p99: float
    cutoffs: np.ndarray = field(repr=False)
    elapsed: np.ndarray = field(repr=False)  # how long each step takes, in the unit of the trace
    oracle_cutoffs: np.ndarray = field(repr=False)
    reasons: list[str] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated training: the summary that `drover simulate --json` prints, and all that was recorded."""

    summary: dict[str, Any] = field(repr=False)
    run: RunData


@dataclass(frozen=True, eq=False)
class Fit:
    """A learned model of run-times. `policy` is what uses it; `forecasts` judges it on steps that were held out."""

    model: Path
    policy: str
    emission: str
    steps: int
    workers: int
    iterations: int
    seconds: float
    train_elbo: float
    held_out_elbo: float
    curve: dict[str, np.ndarray] = field(repr=False)  # iteration, train_elbo, held_out_elbo
    forecasts: list[dict[str, Any]] = field(repr=False)


def policies() -> list[Policy]:
    """Every policy that there is."""
    return [Policy(**row) for row in _json_lines(_run(["policies", "--json"]))]


@overload
def replay(trace: Trace, policy: str = ..., **options: Any) -> Replay:  # type: ignore[misc]  # str is a Sequence[str]
    ...


@overload
def replay(trace: Trace, policy: Sequence[str], **options: Any) -> list[Replay]:
    ...


def replay(trace: Trace, policy: str | Sequence[str] = "bayes", **options: Any) -> Replay | list[Replay]:
    """What a policy would have done with recorded run-times, had it decided how long each step waits. A list of
    policies gives a list of answers; `["all"]` is every policy that can be replayed."""
    names = [policy] if isinstance(policy, str) else list(policy)
    if not names:
        raise Error("replay needs a policy; drover.policies() lists them")
    if isinstance(policy, str) and (policy == "all" or "," in policy):
        raise Error(f"policy='{policy}' names several: give a list, such as policy={policy.split(',')}")
    with tempfile.TemporaryDirectory(prefix="drover-") as folder:
        decisions = Path(folder) / "decisions.csv"
        words = [
            "replay",
            "--trace",
            _trace_file(trace, Path(folder)),
            "--policy",
            ",".join(names),
            "--decisions",
            str(decisions),
            "--json",
            "--quiet",
        ]
        results = _json_lines(
            _run(words + _flags(options, {"trace", "policy", "decisions", "json", "quiet", "dashboard"}))
        )
        with open(decisions, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    # One policy's rows after the other's, as many of each.
    each = len(rows) // len(results)
    replays = [_replay_of(result, rows[i * each : (i + 1) * each]) for i, result in enumerate(results)]
    return replays[0] if isinstance(policy, str) else replays


def simulate(scenario: PathLike, *, run_file: PathLike | None = None, **options: Any) -> Simulation:
    """Trains on the cluster that a scenario describes: a file, or TOML text (anything with a line break in it; paths in
    such text have to be absolute). The run file is kept only if `run_file` names one; nothing is ever overwritten."""
    with tempfile.TemporaryDirectory(prefix="drover-") as folder:
        path = os.fspath(scenario)
        if "\n" in path:
            Path(folder, "scenario.toml").write_text(path, encoding="utf-8")
            path = str(Path(folder, "scenario.toml"))
        kept = os.fspath(run_file) if run_file is not None else str(Path(folder, "run.db"))
        words = ["simulate", _as_word(path), "--run-file", kept, "--json", "--quiet"]
        lines = _json_lines(
            _run(words + _flags(options, {"run_file", "json", "quiet", "dashboard", "hunt"}, negatable=True))
        )
        return Simulation(summary=lines[-1], run=read_run(kept))


def fit(data: Trace | Iterable[PathLike | RunData], *, out: PathLike, **options: Any) -> Fit:
    """Fits a learned model to recorded run-times and saves it as `out`, for `--policy bayes:model=out`. Several run
    files are taken as one recording after the other. What is known only by a lower bound is learnt from too, if `data`
    is a run.
    """
    with tempfile.TemporaryDirectory(prefix="drover-") as folder:
        if isinstance(data, (np.ndarray, str, os.PathLike, RunData)):
            words = ["--trace", _trace_file(data, Path(folder))]
        else:
            files = [str(each.path) if isinstance(each, RunData) else os.fspath(each) for each in data]
            words = [word for file in files for word in ("--run", file)]
        flags = _flags(options, {"trace", "run", "out", "show", "json", "quiet", "progress"})
        fitted = _json_lines(_run(["fit", *words, "--out", os.fspath(out), "--json", "--quiet", *flags]))[-1]
    curve = {
        key: np.array([_number(point[key]) for point in fitted["curve"]])
        for key in ("iteration", "train_elbo", "held_out_elbo")
    }
    # bayes has to know whose the run-times are; a model of their order does not say it.
    user = "bayes-paper" if fitted["emission"] == "sorted" else "bayes"
    return Fit(
        model=Path(fitted["model"]),
        policy=f"{user}:model={fitted['model']}",
        emission=fitted["emission"],
        steps=fitted["steps"],
        workers=fitted["workers"],
        iterations=fitted["iterations"],
        seconds=_number(fitted["seconds"]),
        train_elbo=_number(fitted["train_elbo"]),
        held_out_elbo=_number(fitted["held_out_elbo"]),
        curve=curve,
        forecasts=fitted["forecasts"],
    )


# --- the program


def find_program() -> str:
    """Where the program `drover` is: DROVER_BIN, beside the package, or in a folder of PATH."""
    named = os.environ.get("DROVER_BIN")
    if named:
        found = shutil.which(named)
        if found:
            return found
        raise Error(
            f"DROVER_BIN is '{named}', and that is no program that can be run; set it to the drover program, such as "
            "build/release/drover, or unset it"
        )
    package = Path(__file__).absolute().parent
    # In a build tree, whose python/drover is the package; as installed, where pip puts commands.
    beside = [package.parent.parent / "drover", Path(sysconfig.get_path("scripts"), "drover")]
    for candidate in beside:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which("drover")
    if found:
        return found
    looked = ["DROVER_BIN (not set)", *map(str, beside), f"the folders of PATH ({os.environ.get('PATH', '')})"]
    raise Error(
        "cannot find the program drover. Looked at:\n  "
        + "\n  ".join(looked)
        + "\nBuild it with 'make', and set DROVER_BIN to build/release/drover"
    )


def _run(words: list[str]) -> str:
    program = find_program()
    try:
        done = subprocess.run(
            [program, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as trouble:
        raise Error(f"cannot run {program}: {trouble.strerror}") from trouble
    trouble_lines = []
    for line in done.stderr.splitlines():
        text = line.removeprefix("drover: ")
        if text.startswith("warning: "):
            warnings.warn(text.removeprefix("warning: "), stacklevel=3)
        elif text:
            trouble_lines.append(text)
    if done.returncode != 0:
        why = "\n".join(trouble_lines) or (
            f"ended by signal {-done.returncode}" if done.returncode < 0 else f"ended with status {done.returncode}"
        )
        raise Error(f"drover {words[0]}: {why}")
    for text in trouble_lines:
        print(text, file=sys.stderr)
    return done.stdout


def _flags(options: dict[str, Any], ours: set[str], negatable: bool = False) -> list[str]:
    words: list[str] = []
    for name, value in options.items():
        if name in ours:
            raise Error(f"the option '{name}' is not for use here: this function gives it itself, or has no use for it")
        flag = "--" + name.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, (bool, np.bool_)):
            if value:
                words.append(flag)
            elif negatable:
                words.append("--no-" + flag[2:])
        elif isinstance(value, (list, tuple)) and name != "steps":
            for each in value:
                words.append(f"{flag}={each}")
        else:
            words.append(f"{flag}={_span_text(value) if name == 'steps' else value}")
    return words


def _span_text(value: Any) -> str:
    """FROM:TO of a slice or a pair; anything else as it is."""
    if isinstance(value, slice):
        if value.step not in (None, 1):
            raise Error("steps has to be a slice of every step: a trace in which steps are missing is another trace")
        value = (value.start, value.stop)
    if isinstance(value, (list, tuple)):
        return ":".join("" if end is None else str(end) for end in value)
    return str(value)


# A name that begins with a dash would be taken for a flag.
def _as_word(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path


def _trace_file(trace: Trace, folder: Path) -> str:
    if isinstance(trace, RunData):
        return _as_word(str(trace.path))
    if isinstance(trace, (str, os.PathLike)):
        return _as_word(os.fspath(trace))
    matrix = np.ascontiguousarray(trace, dtype=np.float64)
    if matrix.ndim != 2:
        raise Error(f"run-times have to be a matrix, steps x workers, and this array has the shape {matrix.shape}")
    path = folder / "array.npy"
    np.save(path, matrix)
    return str(path)


def _json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _replay_of(result: dict[str, Any], rows: list[dict[str, str]]) -> Replay:
    counts: dict[str, Any] = {key: int(result[key]) for key in ("steps", "workers", "warmup", "measured_steps")}
    numbers: dict[str, Any] = {
        key: _number(result[key])
        for key in (
            "throughput_total",
            "throughput_median",
            "oracle_share_total",
            "oracle_share_median",
            "time_vs_sync",
            "cutoff_mean",
            "inclusion_min",
            "reviews_mean",
            "decision_us_p50",
            "decision_us_p99",
        )
    }
    return Replay(
        policy=result["policy"],
        objective=result["objective"],
        **counts,
        **numbers,
        cutoffs=np.array([int(row["cutoff"]) for row in rows]),
        elapsed=np.array([float(row["elapsed"]) for row in rows]),
        oracle_cutoffs=np.array([int(row["oracle_cutoff"]) for row in rows]),
        reasons=[row["reason"] for row in rows],
    )
