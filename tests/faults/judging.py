"""Checks what must hold of every run with faults. A violated rule is a finding, which is a sentence."""

from __future__ import annotations

import array
import json
import math
import os
import sqlite3
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Set

from . import processes
from .broken_run import BrokenRun, Outcome
from .schedules import FEW_FILES, INTERRUPT, KILL, PAUSE, PLAIN, SMALL_DISK, Schedule

_KILLED, _INTERRUPTED = -9, 130


@dataclass
class Verdict:
    findings: List[str] = field(default_factory=list)
    outcome: str = "none"  # as recorded; "none": there is no run file
    digest: str = ""
    next_step_after: List[float] = field(default_factory=list)  # seconds from a fault to the end of the next step
    steps_lost: List[int] = field(default_factory=list)  # by each restart
    came_back_after: List[float] = field(default_factory=list)  # seconds from a worker's loss until it rejoined


def judge(run: BrokenRun, outcome: Outcome, drover: Path, undisturbed: Optional[str]) -> Verdict:
    verdict = Verdict()
    schedule = run.schedule
    if outcome.hung:
        verdict.findings.append(f"the run hangs: {outcome.hung}")
    if outcome.left:
        verdict.findings.append(f"processes were not ended: {outcome.left}")
    run_id = _judge_run_file(run, outcome, drover, verdict)
    _judge_statuses(schedule, outcome, verdict)
    if schedule.place in (PLAIN,) or verdict.outcome == "completed":
        _judge_checkpoints(run, drover, verdict)
    _judge_remains(run, run_id, verdict)
    lost_workers = {name for hit in outcome.hits if hit.fault.kind == KILL for name in hit.targets if "worker" in name}
    if undisturbed and schedule.same_parameters and verdict.outcome == "completed" and not lost_workers:
        if verdict.digest != undisturbed:
            verdict.findings.append(
                f"the parameters differ from those of a run without faults: {verdict.digest}, not {undisturbed}"
            )
    return verdict


def _judge_statuses(schedule: Schedule, outcome: Outcome, verdict: Verdict) -> None:
    if verdict.outcome not in schedule.may_end:
        verdict.findings.append(f"the run ended as '{verdict.outcome}', not as {' or '.join(schedule.may_end)}")
    if outcome.hung:
        return
    head = next(iter(outcome.statuses))
    launcher_killed = any("launcher" in hit.targets for hit in outcome.hits if hit.fault.kind == KILL)
    interrupted = any(hit.fault.kind == INTERRUPT for hit in outcome.hits)
    permitted = {"completed": {0}, "interrupted": {_INTERRUPTED}, "failed": {1}, "running": {1}, "none": {1}}
    expected: Set[int] = permitted.get(verdict.outcome, set())
    if launcher_killed:
        expected = expected | {_KILLED}
    if interrupted:
        expected = expected | {_INTERRUPTED}
    if outcome.statuses[head] not in expected:
        verdict.findings.append(
            f"the {head} ended with {outcome.statuses[head]} although the run was '{verdict.outcome}'"
        )
    for name, status in outcome.statuses.items():
        if status < 0 and not launcher_killed:
            verdict.findings.append(f"{name} was ended by signal {-status}")
        elif name != head and status != 0 and verdict.outcome == "completed":
            verdict.findings.append(f"{name} ended with {status} although the run was completed")


# --- the run file


def _judge_run_file(run: BrokenRun, outcome: Outcome, drover: Path, verdict: Verdict) -> Optional[str]:
    path = run.work / "run.db"
    if not path.exists() or path.stat().st_size == 0:
        return None
    summary = subprocess.run([str(drover), "runs", str(path), "--json"], capture_output=True, text=True)
    if summary.returncode != 0:
        verdict.findings.append(f"the run file cannot be read: {summary.stderr.strip()}")
        return None
    # A copy: SQLite also writes when it reads, which fails on a full disk.
    copied = run.folder / "copy.db"
    for ending in ("", "-wal"):
        source = Path(str(path) + ending)
        if source.exists():
            Path(str(copied) + ending).write_bytes(source.read_bytes())
    database = sqlite3.connect(str(copied))
    try:
        trouble = database.execute("pragma integrity_check").fetchone()[0]
        if trouble != "ok":
            verdict.findings.append(f"the run file is damaged: {trouble}")
        run_id, verdict.outcome, digest, reason = database.execute(
            "select run_id, outcome, parameters_digest, reason from run"
        ).fetchone()
        verdict.digest = digest or ""
        steps = database.execute("select step, at_ns, contributors, loss from steps order by step").fetchall()
        _judge_steps(run.schedule, steps, verdict)
        if verdict.outcome == "failed" and not reason:
            verdict.findings.append("the run failed, and the run file does not say why")
        events = database.execute("select at_ns, step, kind, peer, version from events order by rowid").fetchall()
        _measure(run.schedule, outcome, steps, events, verdict)
        return run_id
    except sqlite3.Error as trouble:
        verdict.findings.append(f"the run file cannot be queried: {trouble}")
        return None
    finally:
        database.close()


def _judge_steps(schedule: Schedule, steps: list, verdict: Verdict) -> None:
    numbers = [step for step, _, _, _ in steps]
    if numbers != list(range(len(numbers))):
        verdict.findings.append(f"steps are missing in the record: {numbers}")
    if verdict.outcome == "completed" and len(numbers) != schedule.job.steps:
        verdict.findings.append(f"the record has {len(numbers)} steps, not {schedule.job.steps}")
    times = [at for _, at, _, _ in steps]
    if times != sorted(times):
        verdict.findings.append("time goes backwards in the record")
    for step, _, contributors, loss in steps:
        if contributors and (loss is None or not math.isfinite(loss)):
            verdict.findings.append(f"step {step} has no finite loss")
            break


def _measure(schedule: Schedule, outcome: Outcome, steps: list, events: list, verdict: Verdict) -> None:
    done_at = [at / 1e9 for _, at, _, _ in steps]
    for hit in outcome.hits:
        later = [at for at in done_at if at > hit.at]
        if later and hit.fault.kind in (KILL, PAUSE):
            verdict.next_step_after.append(min(later) - hit.at)
    resumed_from = 0
    lost: Dict[str, float] = {}
    before = 0
    for at, step, kind, peer, version in events:
        if kind == "restart":
            before = max(before, step)
        if kind == "resumed":
            resumed_from = version
            # The last step is always repeated, for the evaluation and the digest.
            verdict.steps_lost.append(max(0, min(before, schedule.job.steps - 1) - resumed_from))
            before = 0
        if kind == "lost" and peer.startswith("worker"):
            lost[peer] = at / 1e9
        if kind == "joined" and peer in lost:
            verdict.came_back_after.append(at / 1e9 - lost.pop(peer))
    if schedule.loses_no_step and any(verdict.steps_lost):
        verdict.findings.append(f"{max(verdict.steps_lost)} steps were lost, although a standby had them")


# --- checkpoints and the model


def _judge_checkpoints(run: BrokenRun, drover: Path, verdict: Verdict) -> None:
    kept = run.work / "kept"
    job = run.schedule.job
    if kept.exists():
        words = [str(drover), "checkpoint", "inspect", str(kept), "--json"]
        inspected = subprocess.run(words, capture_output=True, text=True)
        if inspected.returncode != 0:
            verdict.findings.append(f"checkpoints cannot be inspected: {inspected.stderr.strip()}")
            return
        found = json.loads(inspected.stdout)
        whole = [each for each in found if each["complete"]]
        if verdict.outcome == "completed" and run.schedule.place not in (SMALL_DISK, FEW_FILES):
            if not whole or max(each["step"] for each in whole) != job.steps:
                verdict.findings.append(f"the last checkpoint is not of the last step: {found}")
        if whole:
            newest = max(whole, key=lambda each: each["step"])
            for file in Path(newest["folder"]).glob("*.safetensors"):
                if not all_finite(file.read_bytes()):
                    verdict.findings.append(f"{file.name} of step {newest['step']} is not finite")
    if job.save_model and verdict.outcome == "completed" and not (run.work / "model.pt").exists():
        verdict.findings.append("the model was not saved")


def all_finite(safetensors: bytes) -> bool:
    """Whether all float32 values of the file are finite."""
    (length,) = struct.unpack_from("<Q", safetensors)
    header = json.loads(safetensors[8 : 8 + length])
    for name, tensor in header.items():
        if name == "__metadata__" or tensor["dtype"] != "F32":
            continue
        begin, end = (8 + length + at for at in tensor["data_offsets"])
        numbers = array.array("f", safetensors[begin:end])
        if sys.byteorder != "little":
            numbers.byteswap()
        # A sum of finite floats is finite in double precision; infinity and NaN propagate.
        if not math.isfinite(sum(numbers)):
            return False
    return True


# --- remaining files and sockets


def _judge_remains(run: BrokenRun, run_id: Optional[str], verdict: Verdict) -> None:
    if run_id and processes.unix_sockets(f"drover-{run_id}"):
        verdict.findings.append(f"sockets remain: {processes.unix_sockets(f'drover-{run_id}')}")
    scratch = os.listdir(run.scratch)
    if scratch:
        verdict.findings.append(f"temporary files remain: {scratch}")
    ours = [name for name in os.listdir("/dev/shm") if "drover" in name]
    if ours:
        verdict.findings.append(f"shared memory remains: {ours}")
    expected = {"run.db", "kept", "keys", "model.pt", "token"}
    if verdict.outcome in ("running", "none", "failed"):
        expected |= {"run.db-wal", "run.db-shm"}
    others = [name for name in os.listdir(run.work) if name not in expected]
    if verdict.outcome == "none":  # the coordinator was killed while it made the run file
        others = [name for name in others if not name.startswith("run.db.new-")]
    if others:
        verdict.findings.append(f"files remain: {others}")
    partial = [str(path.relative_to(run.work)) for path in run.work.glob("kept/*/*.partial")]
    if partial and verdict.outcome == "completed":
        verdict.findings.append(f"unfinished files remain: {partial}")
