"""The processes of a run, from /proc: which exist, when they were started, and their states."""

from __future__ import annotations

import os
import signal
import time
from typing import Dict, List, Optional, Set

MARK = "DROVER_FAULTS_RUN"  # in the environment of every process of a run, to find them


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def children_of(pid: int) -> List[int]:
    """Oldest first."""
    return [int(each) for each in _read(f"/proc/{pid}/task/{pid}/children").split()]


def name_of(pid: int) -> str:
    """ "drover worker 1" -> "worker 1"; the kernel keeps 15 letters. Empty: it has no name yet, or has ended."""
    name = _read(f"/proc/{pid}/comm").strip()
    if not name.startswith("drover "):
        return ""
    word, *number = name[len("drover ") :].split()
    for whole in ("coordinator", "evaluator", "shard", "standby", "worker"):
        if whole.startswith(word):
            return " ".join([whole, *number])
    return name[len("drover ") :]


def state_of(pid: int) -> str:
    """R, S, T, Z, ...; empty: there is no such process."""
    stat = _read(f"/proc/{pid}/stat")
    return stat.rsplit(")", 1)[1].split()[0] if ")" in stat else ""


def alive(pid: int) -> bool:
    return state_of(pid) not in ("", "Z", "X")


def started_at(pid: int) -> Optional[float]:
    """Its start time on CLOCK_BOOTTIME, to a hundredth of a second."""
    stat = _read(f"/proc/{pid}/stat")
    if ")" not in stat:
        return None
    return int(stat.rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")


def boot_time() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def marked(mark: str) -> Set[int]:
    """All processes that were started with this mark, and their children."""
    wanted = f"{MARK}={mark}"
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and wanted in _read(f"/proc/{entry}/environ").split("\0") and alive(int(entry)):
            found.add(int(entry))
    return found


def send(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def kill_marked(mark: str) -> None:
    for pid in marked(mark):
        send(pid, signal.SIGKILL)


def unix_sockets(part: str) -> List[str]:
    """Names of sockets on this machine that have `part` in them."""
    return [line.split()[-1] for line in _read("/proc/net/unix").splitlines() if part in line.split()[-1]]


def where_it_hangs(pids: Set[int]) -> Dict[str, str]:
    return {f"{pid} {name_of(pid) or 'drover'}": f"{state_of(pid)} in {_read(f'/proc/{pid}/wchan')}" for pid in pids}
