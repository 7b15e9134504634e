"""What Python is reported of replays, simulations and fits is what the program says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from small_run import SCENARIO, needs_program, run_program, simulate_into

from drover import tools
from drover.errors import Error
from drover.runs import read_run


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate_into(tmp_path_factory.mktemp("run"))


@pytest.fixture
def times() -> np.ndarray:
    """30 steps of 6 workers, one of which is slow."""
    drawn = np.random.default_rng(7).lognormal(0.0, 0.1, size=(30, 6))
    drawn[:, 2] *= 4.0
    return drawn


@needs_program
def test_a_replay_of_an_array_is_that_of_its_file(times: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "times.npy", times)
    reported = json.loads(
        run_program(
            "replay", "--trace", tmp_path / "times.npy", "--policy", "ecdf", "--policy-warmup", "5", "--json", "--quiet"
        )
    )
    result = tools.replay(times, "ecdf", policy_warmup=5)
    for key in (
        "steps",
        "workers",
        "throughput_total",
        "oracle_share_total",
        "time_vs_sync",
        "cutoff_mean",
        "inclusion_min",
    ):
        assert getattr(result, key) == reported[key], key
    assert tools.replay(tmp_path / "times.npy", "ecdf", policy_warmup=5).cutoff_mean == reported["cutoff_mean"]


@needs_program
def test_arrays_of_a_replay_agree_with_the_run_times(times: np.ndarray) -> None:
    sync, oracle = tools.replay(times, ["sync", "oracle"], policy_warmup=0)
    assert (sync.policy, oracle.policy) == ("sync", "oracle")
    assert (sync.cutoffs == 6).all() and len(sync.reasons) == 30
    np.testing.assert_allclose(sync.elapsed, times.max(axis=1), atol=1e-8)
    ordered = np.sort(times, axis=1)
    best = np.argmax(np.arange(1, 7) / ordered, axis=1) + 1
    np.testing.assert_array_equal(oracle.cutoffs, best)
    np.testing.assert_array_equal(sync.oracle_cutoffs, best)
    np.testing.assert_allclose(oracle.elapsed, ordered[np.arange(30), best - 1], atol=1e-8)


@needs_program
def test_float32_transposed_and_partial_arrays_can_be_replayed(times: np.ndarray) -> None:
    gaps = times.astype(np.float32).T.copy().T
    gaps[3, 1] = np.nan
    assert tools.replay(gaps, "sync", policy_warmup=0, steps=slice(2, 12)).steps == 10
    assert tools.replay(gaps, "sync", policy_warmup=0, steps=(20, None)).steps == 10
    assert tools.replay(gaps, "sync", policy_warmup=0, steps="5:").steps == 25


@needs_program
def test_a_run_is_replayed_with_a_warning_of_its_lower_bounds(run_file: Path) -> None:
    with pytest.warns(UserWarning, match="only lower bounds"):
        by_path = tools.replay(run_file, "mad")
    with pytest.warns(UserWarning, match="only lower bounds"):
        by_data = tools.replay(read_run(run_file), "mad")
    assert by_path.workers == by_data.workers == 12
    np.testing.assert_array_equal(by_path.cutoffs, by_data.cutoffs)


@needs_program
def test_what_the_program_refuses_is_reported_in_its_words(times: np.ndarray) -> None:
    with pytest.raises(Error, match="(?s)drover replay:.*ecdf"):
        tools.replay(times, "ecdff")
    with pytest.raises(Error, match="Did you mean '--min-contributors'"):
        tools.replay(times, "ecdf", min_contributor=2)
    with pytest.raises(Error, match="no such file"):
        tools.replay("none.csv", "ecdf")


def test_what_makes_no_sense_is_reported_before_anything_runs(times: np.ndarray) -> None:
    with pytest.raises(Error, match="give a list"):
        tools.replay(times, "sync,ecdf")
    with pytest.raises(Error, match="needs a policy"):
        tools.replay(times, [])
    with pytest.raises(Error, match=r"steps x workers.*\(30,\)"):
        tools.replay(times[:, 0], "ecdf")
    with pytest.raises(Error, match="'json' is not for use here"):
        tools.replay(times, "ecdf", json=True)
    with pytest.raises(Error, match="slice of every step"):
        tools.replay(times, "ecdf", steps=slice(0, 10, 2))


@needs_program
def test_a_simulation_of_text_is_that_of_its_file(run_file: Path, tmp_path: Path) -> None:
    result = tools.simulate(SCENARIO)
    file = read_run(run_file)
    assert result.summary["outcome"] == result.run.outcome == "completed"
    np.testing.assert_array_equal(result.run.steps["loss"], file.steps["loss"])
    np.testing.assert_array_equal(result.run.run_times, file.run_times)
    assert not result.run.path.exists()  # the caller did not ask to keep it
    kept = tools.simulate(run_file.parent / "scenario.toml", run_file=tmp_path / "kept.db", policy="sync", steps=5)
    assert kept.run.path == tmp_path / "kept.db" and kept.run.path.exists()
    assert len(kept.run.steps["step"]) == 5 and kept.run.settings["policy"] == "sync"
    with pytest.raises(Error, match="kept.db"):
        tools.simulate(SCENARIO, run_file=tmp_path / "kept.db")


@needs_program
def test_a_flag_can_be_taken_back_from_a_scenario() -> None:
    lively = SCENARIO.replace("[job]", "[job]\nlive = true")
    assert tools.simulate(lively, steps=2).run.settings["live"] == "true"
    assert tools.simulate(lively, steps=2, live=False).run.settings["live"] == "false"


@needs_program
def test_a_fit_leaves_a_model_that_can_be_used(times: np.ndarray, run_file: Path, tmp_path: Path) -> None:
    fitted = tools.fit(np.tile(times, (4, 1)), out=tmp_path / "a.model", iterations=20, emission="shared")
    assert (fitted.steps, fitted.workers, fitted.emission) == (120, 6, "shared")
    assert fitted.model.exists() and len(fitted.curve["iteration"]) == len(fitted.curve["train_elbo"]) > 0
    assert any(row["kept"] for row in fitted.forecasts)
    assert tools.replay(times, fitted.policy).policy.startswith("bayes")
    runs = tools.fit([run_file, read_run(run_file)], out=tmp_path / "b.model", iterations=5, emission="shared")
    assert runs.steps == 120 and runs.workers == 12


@needs_program
def test_policies_are_those_of_the_program() -> None:
    listed = tools.policies()
    assert {"sync", "ecdf", "bayes", "oracle"} <= {policy.name for policy in listed}
    assert all(policy.summary for policy in listed)


def make_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_program_is_found_by_name_and_then_in_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "__file__", str(tmp_path / "tree" / "python" / "drover" / "tools.py"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("DROVER_BIN", raising=False)
    with pytest.raises(Error) as missing:
        tools.find_program()
    for place in ("DROVER_BIN (not set)", str(tmp_path / "tree" / "drover"), str(tmp_path / "path"), "make"):
        assert place in str(missing.value)
    in_path = make_program(tmp_path / "path" / "drover")
    assert tools.find_program() == str(in_path)
    in_tree = make_program(tmp_path / "tree" / "drover")
    assert tools.find_program() == str(in_tree)
    named = make_program(tmp_path / "elsewhere" / "drover")
    monkeypatch.setenv("DROVER_BIN", str(named))
    assert tools.find_program() == str(named)
    monkeypatch.setenv("DROVER_BIN", str(tmp_path / "none"))
    with pytest.raises(Error, match="DROVER_BIN is '.*none'"):
        tools.find_program()
