"""A run file that is read here says what `drover export` says of it, and nothing is disturbed by reading."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest
from small_run import needs_program, read_csv, run_program, simulate_into

from drover import runs
from drover.errors import Error


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate_into(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def tables(run_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    run_program("export", run_file, "--format", "csv", "--out", folder, "--quiet", "--force")
    return folder


def same(column: np.ndarray, cells: list[str]) -> bool:
    if column.dtype == object:
        return list(column) == cells
    numbers = np.array([float(cell) if cell else np.nan for cell in cells])
    return np.array_equal(column.astype(float), numbers, equal_nan=True)


@needs_program
@pytest.mark.parametrize("name", ["steps", "arrivals", "decisions", "abandoned", "evaluations", "events", "peers"])
def test_tables_are_those_of_the_csv_export(run_file: Path, tables: Path, name: str) -> None:
    table, exported = getattr(runs.read_run(run_file), name), read_csv(tables / f"{name}.csv")
    assert list(table) == list(exported)
    assert len(exported["step" if "step" in exported else next(iter(exported))]) > 0
    for column, cells in exported.items():
        assert same(table[column], cells), column


@needs_program
def test_header_and_settings_are_those_of_the_csv_export(run_file: Path, tables: Path) -> None:
    run, rows = runs.read_run(run_file), read_csv(tables / "run.csv")
    reported = dict(zip(rows["key"], rows["value"]))
    assert (run.run_id, run.started, run.outcome, run.reason) == tuple(
        reported[key] for key in ("run_id", "started", "outcome", "reason"))
    assert run.elapsed == float(reported["elapsed_seconds"])
    assert {f"setting {key}": value for key, value in run.settings.items()}.items() <= reported.items()
    assert run.environment["scenario"] == reported["environment scenario"]


@needs_program
def test_matrices_are_those_of_the_npy_export(run_file: Path, tmp_path: Path) -> None:
    run = runs.read_run(run_file)
    run_program("export", run_file, "--format", "npy", "--out", tmp_path / "times.npy", "--quiet")
    np.testing.assert_array_equal(run.run_times, np.load(tmp_path / "times.npy"))
    np.testing.assert_array_equal(run.bounds, np.load(tmp_path / "times.bounds.npy"))
    np.testing.assert_array_equal(run.censored, np.isfinite(run.bounds))
    assert run.censored.any() and not (run.censored & np.isfinite(run.run_times)).any()


@needs_program
def test_forecasts_are_in_order_of_arrival(run_file: Path) -> None:
    forecasts = runs.read_run(run_file).forecasts
    first = forecasts["step"] == forecasts["step"][0]
    assert list(forecasts["rank"][first]) == list(range(1, 13))
    assert (np.diff(forecasts["mean_seconds"][first]) >= 0).all()
    assert (forecasts["low_seconds"] <= forecasts["high_seconds"]).all()


@needs_program
def test_reading_leaves_no_trace(run_file: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(run_file, tmp_path))
    before = copy.read_bytes()
    runs.read_run(copy)
    assert copy.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [copy.name]


@needs_program
def test_a_killed_run_is_read_with_its_newest_rows_and_left_as_it_is(run_file: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(run_file, tmp_path / "going.db"))
    writer = sqlite3.connect(copy, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("UPDATE run SET outcome = 'running'")
    killed = [Path(shutil.copy(f"{copy}{ending}", tmp_path / f"killed.db{ending}")) for ending in ("", "-wal")]
    writer.close()
    before = [file.read_bytes() for file in killed]
    assert len(before[1]) > 0 and runs.read_run(killed[0]).outcome == "running"
    assert [file.read_bytes() for file in killed] == before


@needs_program
def test_a_run_that_is_being_written_is_read_as_of_one_moment(run_file: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(run_file, tmp_path))
    writer = sqlite3.connect(copy, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("UPDATE run SET outcome = 'running', elapsed_ns = NULL")
    writer.execute("BEGIN IMMEDIATE")  # the writer is in the middle of a step
    writer.execute("DELETE FROM steps WHERE step >= 50")
    assert len(runs.read_run(copy).steps["step"]) == 60
    writer.execute("COMMIT")  # and is not held up by the reader
    run = runs.read_run(copy)
    assert run.outcome == "running" and len(run.steps["step"]) == 50 and run.run_times.shape == (50, 12)
    assert run.elapsed == pytest.approx(run.steps["at_seconds"][-1] + run.steps["elapsed_seconds"][-1]
                                        - run.steps["at_seconds"][0])
    writer.close()


@needs_program
@pytest.mark.parametrize("version, words", [(3, "older drover (file format 3"), (6, "newer drover (file format 6")])
def test_other_formats_are_refused(run_file: Path, tmp_path: Path, version: int, words: str) -> None:
    copy = Path(shutil.copy(run_file, tmp_path))
    with sqlite3.connect(copy) as database:
        database.execute(f"PRAGMA user_version = {version}")
    database.close()
    with pytest.raises(Error) as refused:
        runs.read_run(copy)
    assert words in str(refused.value)


def test_what_is_no_run_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Error, match="there is no such file"):
        runs.read_run(tmp_path / "none.db")
    with pytest.raises(Error, match="it is a folder"):
        runs.read_run(tmp_path)
    text = tmp_path / "text.db"
    text.write_text("not a database, only a text that is long enough to be looked at as one" * 20)
    with pytest.raises(Error, match="not a database"):
        runs.read_run(text)
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(Error, match="killed before it began"):
        runs.read_run(empty)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    with pytest.raises(Error, match="not one that drover made"):
        runs.read_run(other)


@needs_program
def test_frames(run_file: Path) -> None:
    run = runs.read_run(run_file)
    pandas = pytest.importorskip("pandas")
    assert run.steps_frame().loss.iloc[3] == run.steps["loss"][3]
    assert run.run_times_frame().shape == (60, 12)
    assert isinstance(run.arrivals_frame().index, pandas.MultiIndex)
    for frame in (run.decisions_frame(), run.forecasts_frame(), run.evaluations_frame(), run.events_frame()):
        assert len(frame) > 0


@needs_program
def test_without_pandas_frames_say_what_is_missing(run_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Error, match="python3-pandas"):
        runs.read_run(run_file).steps_frame()
