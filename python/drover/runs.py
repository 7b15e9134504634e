"""Run files as NumPy arrays.

    run = drover.read_run("runs/20261116-061226-lenet.db")
    run.steps["loss"]                        # one number a step
    np.nanmedian(run.run_times, axis=0)      # by worker, of the run-times that are known
    run.censored.mean(axis=0)                # by worker: how often it was not waited for
    run.steps_frame()                        # as a pandas DataFrame

A run file may be read while its run continues: it is opened read-only, all of it is read as of one moment, and it is
closed again before `read_run` returns. Times are in seconds. docs/run-file.md explains every table.
"""

from __future__ import annotations

import os
import sqlite3
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Sequence, Union

import numpy as np

from .errors import Error

if TYPE_CHECKING:
    import pandas

# How a run file is marked, and the formats that are read here (src/store/schema.h). Before format 5 events had no
# cause, version or detail: only their text.
APPLICATION_ID = 0x44525652
FORMAT = 5
OLDEST_FORMAT = 4

# Columns by name, all of one length.
Table = dict[str, np.ndarray]
PathLike = Union[str, "os.PathLike[str]"]

_LOCK_SECONDS = 5.0
_ROWS_AT_ONCE = 65536


@dataclass(frozen=True, eq=False)
class RunData:
    """What a run file says of a run.

    `run_times` has a row for each row of `steps` and a column for each worker: seconds from the opening of the step to
    the arrival of the worker's gradient, also if it came late. NaN: not known. Where `censored` is true the worker was
    not waited for, and all that is known is that it took at least `bounds` (NaN everywhere else): never average those
    with the others: they are too small, and they belong to the slow workers.
    """

    path: Path
    run_id: str
    started: str
    command: str
    job: str
    outcome: str  # running, completed, interrupted or failed; a run that was killed stays running
    reason: str
    elapsed: float  # seconds of training
    settings: dict[str, str]
    environment: dict[str, str]
    steps: Table
    arrivals: Table
    decisions: Table
    forecasts: Table
    abandoned: Table
    evaluations: Table
    events: Table
    peers: Table
    workers: int
    run_times: np.ndarray = field(repr=False)
    censored: np.ndarray = field(repr=False)
    bounds: np.ndarray = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"RunData({str(self.path)!r}: {self.outcome}, {len(self.steps['step'])} steps x {self.workers} workers, "
            f"{self.elapsed:.4g} s, policy {self.settings.get('policy', 'unknown')})"
        )

    def steps_frame(self) -> "pandas.DataFrame":
        """One row a step."""
        return _pandas().DataFrame(self.steps).set_index("step")

    def arrivals_frame(self) -> "pandas.DataFrame":
        """One row a step and worker."""
        return _pandas().DataFrame(self.arrivals).set_index(["step", "worker"])

    def decisions_frame(self) -> "pandas.DataFrame":
        """One row a decision, with its reason; a step may have several, and the last one counts."""
        return _pandas().DataFrame(self.decisions)

    def forecasts_frame(self) -> "pandas.DataFrame":
        """One row a step and place in the order of arrival."""
        return _pandas().DataFrame(self.forecasts).set_index(["step", "rank"])

    def evaluations_frame(self) -> "pandas.DataFrame":
        """One row an evaluation on the test data."""
        return _pandas().DataFrame(self.evaluations).set_index("version")

    def events_frame(self) -> "pandas.DataFrame":
        """One row an event."""
        return _pandas().DataFrame(self.events)

    def run_times_frame(self) -> "pandas.DataFrame":
        """Steps by workers; NaN where a run-time is not known, also where only a lower bound is."""
        pandas = _pandas()
        return pandas.DataFrame(
            self.run_times,
            index=pandas.Index(self.steps["step"], name="step"),
            columns=pandas.RangeIndex(self.workers, name="worker"),
        )


def read_run(path: PathLike) -> RunData:
    """Reads a run file, of a run that has ended or of one that is still going."""
    file = Path(path)
    _check_there(file)
    database = _open(file)
    try:
        # One transaction: all tables are as of one moment, whatever is written meanwhile.
        database.execute("BEGIN")
        return _read(file, database)
    except sqlite3.Error as trouble:
        raise _cannot_read(file, str(trouble)) from trouble
    finally:
        database.close()


# --- opening


def _cannot_read(path: Path, why: str) -> Error:
    return Error(f"cannot read the run file '{path}': {why}")


def _check_there(path: Path) -> None:
    if path.is_dir():
        raise _cannot_read(path, "it is a folder; name one of the files in it")
    if not path.exists():
        raise _cannot_read(path, "there is no such file; run files are kept in runs/ unless a path says otherwise")


def _open(path: Path) -> sqlite3.Connection:
    address = path.absolute().as_uri()
    database = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=_LOCK_SECONDS, isolation_level=None)
    try:
        _check_marks(path, database)
        return database
    except sqlite3.OperationalError as trouble:
        database.close()
        if Path(f"{path}-journal").exists():
            raise _cannot_read(
                path, f"{trouble}. Its writer was killed in mid-write; 'drover runs {path}' repairs it"
            ) from trouble
        if os.access(path.parent, os.W_OK) or not os.access(path, os.R_OK):
            raise _cannot_read(path, str(trouble)) from trouble
    except sqlite3.DatabaseError as trouble:
        database.close()
        raise _cannot_read(path, str(trouble)) from trouble
    except Error:
        database.close()
        raise
    # In a read-only folder SQLite cannot make the file that coordinates readers with a writer; there is no writer
    # either.
    wal = Path(f"{path}-wal")
    if wal.exists() and wal.stat().st_size > 0:
        warnings.warn(
            f"the last part of the run is in '{wal}' and is not read, because the folder is read-only; copy both "
            "files to a folder you can write in, and read them there",
            stacklevel=3,
        )
    database = sqlite3.connect(f"{address}?immutable=1", uri=True, isolation_level=None)
    try:
        _check_marks(path, database)
    except sqlite3.DatabaseError as trouble:
        database.close()
        raise _cannot_read(path, str(trouble)) from trouble
    except Error:
        database.close()
        raise
    return database


def _check_marks(path: Path, database: sqlite3.Connection) -> None:
    # The tables are counted first: PRAGMAs alone do not look into the write-ahead log.
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    made_by = database.execute("PRAGMA application_id").fetchone()[0]
    version = _format(database)
    if tables == 0:
        raise _cannot_read(path, "it is empty; the run was killed before it began")
    if made_by != APPLICATION_ID:
        raise _cannot_read(path, "it is a database, but not one that drover made")
    if version < OLDEST_FORMAT:
        raise _cannot_read(
            path,
            f"it was written by an older drover (file format {version}, Python reads {OLDEST_FORMAT} to {FORMAT}); "
            f"'drover export {path} --format csv --out FOLDER' still makes tables of it",
        )
    if version > FORMAT:
        raise _cannot_read(
            path,
            f"it was written by a newer drover (file format {version}, this drover reads up to {FORMAT}); "
            "update drover",
        )


def _format(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


# --- tables

# How a column becomes an array. Nanoseconds become seconds; NULL becomes NaN.
_INT, _REAL, _SECONDS, _FLAG, _TEXT = "int", "real", "seconds", "flag", "text"
Column = tuple[str, str, str]  # name, SQL, kind

# Names are those of 'drover export --format csv'. The last decision of a step is the one that counted.
_STEPS: Sequence[Column] = [
    ("step", "s.step", _INT),
    ("at_seconds", "s.at_ns", _SECONDS),
    ("elapsed_seconds", "s.elapsed_ns", _SECONDS),
    ("cutoff", "d.cutoff", _REAL),
    ("alive", "d.alive", _REAL),
    ("contributors", "s.contributors", _INT),
    ("late", "s.late", _INT),
    ("refused", "s.refused", _INT),
    ("samples", "s.samples", _INT),
    ("loss", "s.loss", _REAL),
    ("accuracy", "s.accuracy", _REAL),
    ("learning_rate", "s.learning_rate", _REAL),
    ("last_worker", "s.last_worker", _INT),
    ("aggregate_seconds", "s.aggregate_ns", _SECONDS),
    ("closing_seconds", "s.closing_ns", _SECONDS),
    ("undecided_seconds", "s.undecided_ns", _SECONDS),
    ("signal", "s.signal", _REAL),
    ("noise", "s.noise", _REAL),
    ("noise_scale_samples", "s.noise_scale", _REAL),
    ("fresh_mean", "s.fresh_mean", _REAL),
    ("fresh_min", "s.fresh_min", _REAL),
    ("staleness_mean_steps", "s.staleness_mean", _REAL),
    ("staleness_max_steps", "s.staleness_max", _INT),
]
_STEPS_FROM = (
    "steps s LEFT JOIN (SELECT step, max(rowid) AS last FROM decisions GROUP BY step) l ON l.step = s.step "
    "LEFT JOIN decisions d ON d.rowid = l.last ORDER BY s.step"
)
_ARRIVALS: Sequence[Column] = [
    ("step", "step", _INT),
    ("worker", "worker", _INT),
    ("run_time_seconds", "run_time_ns", _SECONDS),
    ("censored", "censored", _FLAG),
    ("late", "late", _FLAG),
    ("compute_seconds", "compute_ns", _SECONDS),
    ("samples", "samples", _INT),
]
_DECISIONS: Sequence[Column] = [
    ("step", "step", _INT),
    ("at_seconds", "at_ns", _SECONDS),
    ("cutoff", "cutoff", _INT),
    ("alive", "alive", _INT),
    ("time_limit_seconds", "nullif(time_limit_ns, 0)", _SECONDS),
    ("reason", "reason", _TEXT),
]
_FORECASTS: Sequence[Column] = [
    ("step", "step", _INT),
    ("rank", "rank", _INT),
    ("mean_seconds", "mean_s", _REAL),
    ("low_seconds", "low_s", _REAL),
    ("high_seconds", "high_s", _REAL),
]
_ABANDONED: Sequence[Column] = [
    ("step", "step", _INT),
    ("worker", "worker", _INT),
    ("wasted_seconds", "wasted_ns", _SECONDS),
    ("restart_seconds", "restart_ns", _SECONDS),
    ("resumed_step", "resumed", _INT),
]
_EVALUATIONS: Sequence[Column] = [
    ("version", "version", _INT),
    ("at_seconds", "at_ns", _SECONDS),
    ("loss", "loss", _REAL),
    ("accuracy", "accuracy", _REAL),
    ("samples", "samples", _INT),
]
_EVENTS: Sequence[Column] = [
    ("at_seconds", "at_ns", _SECONDS),
    ("step", "step", _INT),
    ("kind", "kind", _TEXT),
    ("peer", "peer", _TEXT),
    ("text", "text", _TEXT),
    ("cause", "coalesce(cause, '')", _TEXT),
    ("version", "version", _REAL),
    ("detail", "coalesce(detail, '')", _TEXT),
]
_OLD_EVENTS = [*_EVENTS[:5], ("cause", "''", _TEXT), ("version", "NULL", _REAL), ("detail", "''", _TEXT)]
_PEERS: Sequence[Column] = [
    ("name", "p.name", _TEXT),
    ("host", "p.host", _TEXT),
    ("pid", "p.pid", _INT),
    ("memory_bytes", "m.bytes", _REAL),
]


def _read(path: Path, database: sqlite3.Connection) -> RunData:
    header = database.execute(
        "SELECT run_id, started, command, job, outcome, reason, coalesce(elapsed_ns, (SELECT "
        "max(at_ns + elapsed_ns) - min(at_ns) FROM steps), 0) FROM run"
    ).fetchone()
    if header is None:
        raise _cannot_read(path, "its table 'run' is empty")
    run_id, started, command, job, outcome, reason, elapsed_ns = header
    settings = dict(database.execute("SELECT key, value FROM settings ORDER BY key"))
    steps = _table(database, _STEPS, _STEPS_FROM)
    arrivals = _table(database, _ARRIVALS, "arrivals ORDER BY step, worker")
    workers = int(arrivals["worker"].max()) + 1 if len(arrivals["worker"]) else 0
    if settings.get("workers", "").isdigit():
        workers = max(workers, int(settings["workers"]))
    times, censored, bounds = _matrices(steps["step"], arrivals, workers)
    return RunData(
        path=path,
        run_id=run_id,
        started=started,
        command=command,
        job=job,
        outcome=outcome,
        reason=reason,
        elapsed=elapsed_ns / 1e9,
        settings=settings,
        environment=dict(database.execute("SELECT key, value FROM environment ORDER BY key")),
        steps=steps,
        arrivals=arrivals,
        decisions=_table(database, _DECISIONS, "decisions ORDER BY step, rowid"),
        forecasts=_table(database, _FORECASTS, "forecasts ORDER BY step, rank"),
        abandoned=_table(database, _ABANDONED, "abandoned ORDER BY rowid"),
        evaluations=_table(database, _EVALUATIONS, "evaluations ORDER BY rowid"),
        events=_table(database, _EVENTS if _format(database) >= 5 else _OLD_EVENTS, "events ORDER BY rowid"),
        peers=_table(database, _PEERS, "peers p LEFT JOIN memory m ON m.peer = p.name ORDER BY p.rowid"),
        workers=workers,
        run_times=times,
        censored=censored,
        bounds=bounds,
    )


def _table(database: sqlite3.Connection, columns: Sequence[Column], source: str) -> Table:
    rows = database.execute(f"SELECT {', '.join(sql for _, sql, _ in columns)} FROM {source}")
    parts: list[list[np.ndarray]] = [[] for _ in columns]
    for some in _batches(rows):
        for part, values, (_, _, kind) in zip(parts, zip(*some), columns):
            part.append(_array(values, kind))
    return {name: np.concatenate(part) if part else _array((), kind) for part, (name, _, kind) in zip(parts, columns)}


# A long run has millions of arrivals: as Python objects, only some of them at a time.
def _batches(rows: sqlite3.Cursor) -> Iterator[list[tuple[Any, ...]]]:
    while some := rows.fetchmany(_ROWS_AT_ONCE):
        yield some


def _array(values: Sequence[Any], kind: str) -> np.ndarray:
    if kind == _TEXT:
        return np.array(values, dtype=object)
    if kind == _FLAG:
        return np.array(values, dtype=bool)
    if kind == _INT:
        return np.array(values, dtype=np.int64)
    numbers = np.array(values, dtype=np.float64)  # None becomes NaN
    return numbers / 1e9 if kind == _SECONDS else numbers


def _matrices(steps: np.ndarray, arrivals: Table, workers: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shape = (len(steps), workers)
    times, bounds = np.full(shape, np.nan), np.full(shape, np.nan)
    censored = np.zeros(shape, dtype=bool)
    # A worker may have reported of a step that is not closed yet.
    reported = np.isin(arrivals["step"], steps)
    row, column = np.searchsorted(steps, arrivals["step"][reported]), arrivals["worker"][reported]
    cut, seconds = arrivals["censored"][reported], arrivals["run_time_seconds"][reported]
    times[row[~cut], column[~cut]] = seconds[~cut]
    bounds[row[cut], column[cut]] = seconds[cut]
    censored[row[cut], column[cut]] = True
    return times, censored, bounds


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as missing:
        raise Error(
            "a DataFrame needs pandas, which is not installed: pip install pandas, or apt-get install python3-pandas. "
            "The same numbers are NumPy arrays in run.steps, run.arrivals, run.run_times, ..."
        ) from missing
    return pandas
