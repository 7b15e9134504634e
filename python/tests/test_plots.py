"""Pictures are drawn of every kind of run, and say what is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from small_run import SCENARIO, needs_program, simulate_into

from drover import plots, tools
from drover.errors import Error
from drover.runs import read_run

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate_into(tmp_path_factory.mktemp("run"))


def titles(figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]


@needs_program
def test_four_panels_in_a_file(run_file: Path, tmp_path: Path) -> None:
    figure = plots.plot_run(run_file, tmp_path / "run.png", step=30)
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert titles(figure) == ["run-times of the workers", "gradients a step, policy ecdf", "loss",
                              "step 30: forecast and what came"]


@needs_program
def test_without_a_forecast_the_step_times_are_shown() -> None:
    figure = plots.plot_run(tools.simulate(SCENARIO, policy="sync", steps=8, evaluate_every=0).run)
    assert titles(figure)[-1] == "step time"
    matplotlib.pyplot.close(figure)


@needs_program
def test_a_replay_has_no_loss_and_is_drawn_all_the_same(run_file: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning):
        tools.replay(run_file, "ecdf", save=tmp_path / "replay.db")
    figure = plots.plot_run(tmp_path / "replay.db", tmp_path / "replay.svg")
    assert "no loss was recorded" in [text.get_text() for text in figure.axes[2].texts]


@needs_program
def test_a_step_that_was_not_predicted_is_reported(run_file: Path, tmp_path: Path) -> None:
    with pytest.raises(Error, match="step 3 was not decided by a forecast; those that were are between 10 and 59"):
        plots.plot_run(run_file, tmp_path / "run.png", step=3)


@needs_program
def test_without_matplotlib_it_says_so(run_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = read_run(run_file)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(Error, match="python3-matplotlib"):
        plots.plot_run(run)
