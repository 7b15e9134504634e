"""A small recorded run and the program that made it, for the tests that need a real one."""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path

import pytest

PROGRAM = os.environ.get("DROVER_BIN", "")

needs_program = pytest.mark.skipif(not PROGRAM, reason="DROVER_BIN is not set: where the drover program is")

# Two workers of twelve are slow for a while, so that steps are cut short and workers are not waited for.
SCENARIO = """\
about = "two slow workers"
[job]
model = "mlp"
data = "generated"
generated_samples = 256
workers = 12
shards = 2
steps = 60
batch = 4
evaluate_every = 20
policy = "ecdf"
policy_warmup = 10
[run_time]
kind = "lognormal"
mean = 1.0
deviation = 0.2
[[slow]]
workers = "3-4"
factor = 3
steps = "20:40"
"""


def run_program(*words: str | os.PathLike[str]) -> str:
    """What `drover words...` prints."""
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def simulate_into(folder: Path) -> Path:
    """A run file in `folder`."""
    scenario, run_file = folder / "scenario.toml", folder / "run.db"
    scenario.write_text(SCENARIO)
    run_program("simulate", scenario, "--run-file", run_file, "--quiet")
    return run_file


def read_csv(path: Path) -> dict[str, list[str]]:
    """The columns of a CSV file, as text."""
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[place] for row in rows] for place, name in enumerate(header)}
