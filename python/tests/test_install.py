"""`pip install .` into an environment of its own gives a package and a program that find each other."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from small_run import PROGRAM, needs_program

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = """\
import pathlib
import sys

import drover
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with drover.join(model, optimizer) as run:
    for _ in range(5):
        with run.step(samples=4):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).mean().backward()
            optimizer.step()
pathlib.Path("reported").write_text(f"{sys.prefix}\\n{drover.__file__}\\n{run.step_number}\\n")
"""


def done(*words: str | os.PathLike[str], **environment: str) -> str:
    """What a command prints, which knows nothing of the package that is tested elsewhere."""
    known = {key: value for key, value in os.environ.items() if not key.startswith(("DROVER_", "PYTHON", "PIP_"))}
    ended = subprocess.run(
        [str(word) for word in words],
        env={**known, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def make_environment(folder: pathlib.Path) -> pathlib.Path:
    """A virtual environment with the PyTorch of this Python. Returns its Python."""
    try:
        # pip is that of this Python, too: a new one would have to be unpacked first.
        done(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", folder)
        done(folder / "bin" / "python", "-c", "import pip, torch")
    except AssertionError as trouble:
        pytest.skip(f"no virtual environment with pip and PyTorch (python3-venv, python3-pip): {trouble}")
    return folder / "bin" / "python"


@needs_program
def test_an_installed_program_runs_scripts_with_the_package_installed_beside_it(tmp_path, monkeypatch):
    environment = tmp_path / "environment"
    python = make_environment(environment)
    done(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--no-cache-dir",
        "--disable-pip-version-check",
        PROJECT,
        DROVER_BUILD_DIR=str(pathlib.Path(PROGRAM).resolve().parent),
    )

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    (elsewhere / "script.py").write_text(SCRIPT)
    done(environment / "bin" / "drover", "launch", "--workers", "1", "--run-file", "run.db", "script.py")
    prefix, package, last = (elsewhere / "reported").read_text().split()
    assert pathlib.Path(prefix) == environment
    assert pathlib.Path(package).is_relative_to(environment)
    assert last == "4"

    # The package finds the program, too, and reads what it wrote.
    reported = done(
        python,
        "-c",
        "import drover; print(len(drover.policies()) > 5, len(drover.read_run('run.db').steps['loss']))",
        PATH="/usr/bin:/bin",
    )
    assert reported.split() == ["True", "5"]
