"""Starts the run of a schedule and injects its faults."""

from __future__ import annotations

import os
import resource
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Optional, Set

from . import processes
from .network import SERVERS, Host, Link, Mirror
from .schedules import (
    CORRUPT,
    CUT,
    DELAY,
    FEW_FILES,
    HALF_OPEN,
    INTERRUPT,
    KILL,
    LINK,
    LINK_DOWN,
    LINK_SLOW,
    PAUSE,
    PROXY,
    SMALL_DISK,
    STALL,
    THROTTLE,
    WILD_CLOCK,
    Fault,
    Schedule,
)

PATIENCE = 100.0  # seconds after which a run that has not ended counts as hanging
APPEARS_WITHIN = 8.0  # seconds for a target that was killed just before and is being restarted
POLL_EVERY = 0.0005
PORT = 29600  # free, because the network namespace is new


@dataclass
class Hit:
    """A fault that was injected, and when, on the run's clock."""

    fault: Fault
    at: float
    targets: List[str]


@dataclass
class Outcome:
    statuses: Dict[str, int]  # of the commands that were started; negative: ended by that signal
    hung: Dict[str, str]  # processes that were still there after PATIENCE, and their states
    hits: List[Hit]
    missed: List[Fault]  # faults whose time had not come when the run was over
    left: Dict[str, str]  # processes that were still there after all commands had ended
    seconds: float = 0.0


@dataclass
class _Command:
    name: str
    process: subprocess.Popen
    children: List[int] = field(default_factory=list)  # all that were ever seen, in order


class BrokenRun:
    """A context manager: at its end all processes, mounts and namespaces of the run are gone."""

    def __init__(self, schedule: Schedule, drover: Path, tools: Path, keep_folder: bool = False) -> None:
        self.schedule, self._drover, self._tools = schedule, drover, tools
        self._keep_folder = keep_folder
        self.mark = secrets.token_hex(8)
        self.folder = Path(tempfile.mkdtemp(prefix="drover-faults-"))
        self.scratch = self.folder / "scratch"  # TMPDIR of the run
        self.work = self.folder / "work"  # where it runs
        self.commands: List[_Command] = []
        self.began: Optional[float] = None  # when the coordinator was started, on CLOCK_BOOTTIME
        self._undo: List[Callable[[], object]] = []
        self._hosts: List[Host] = []
        self._mirror: Optional[Mirror] = None
        self._link: Optional[Link] = None

    def __enter__(self) -> "BrokenRun":
        self.scratch.mkdir()
        self.work.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        processes.kill_marked(self.mark)
        for command in self.commands:
            command.process.wait()
        for undo in reversed(self._undo):
            undo()
        if not self._keep_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    # --- starting

    def _start(self, name: str, words: List[str], host: Optional[Host] = None, limit_files: int = 0) -> None:
        environment = dict(os.environ, TMPDIR=str(self.scratch), TERM="dumb", HOME=str(self.work))
        environment[processes.MARK] = self.mark
        if self.schedule.place == WILD_CLOCK:
            environment["LD_PRELOAD"] = str(self._tools / "realtime_shim.so")

        def limits() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit_files, limit_files))

        with open(self.folder / f"{name}.out", "wb") as out, open(self.folder / f"{name}.err", "wb") as err:
            process = subprocess.Popen(
                (host.words() if host else []) + [str(self._drover), *words],
                cwd=self.work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                preexec_fn=limits if limit_files else None,
            )
        self.commands.append(_Command(name, process))

    def start(self) -> None:
        schedule = self.schedule
        if schedule.job.tls:
            words = [str(self._drover), "keys", "make", "--out", "keys"]
            subprocess.run(words, cwd=self.work, check=True, capture_output=True)
        if schedule.place == SMALL_DISK:
            self._mount_disk()
        words = ["train", "--run-file", "run.db", *schedule.job.words()]
        if schedule.place in (PROXY, LINK):
            return self._start_on_two_hosts(words)
        self._start("launcher", words, limit_files=schedule.limit if schedule.place == FEW_FILES else 0)

    def _mount_disk(self) -> None:
        options = f"size={max(self.schedule.limit, 4096)}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "drover-faults", str(self.work)], check=True)
        self._undo.append(lambda: subprocess.run(["umount", "-l", str(self.work)], check=True))

    def _start_on_two_hosts(self, words: List[str]) -> None:
        for _ in range(2):
            host = Host()
            self._hosts.append(host)
            self._undo.append(host.close)
        servers, workers = self._hosts
        token = self.work / "token"
        token.touch(mode=0o600)
        token.write_text("a token that is only for this run\n")
        linked = self.schedule.place == LINK
        if linked:
            self._link = Link(servers, workers)
        else:
            self._mirror = Mirror(servers, workers)
            self._undo.append(self._mirror.close)
        address = SERVERS if linked else "127.0.0.1"
        common = words + ["--token-file", "token"] + ([] if self.schedule.job.tls else ["--insecure"])
        join = ["--coordinator", f"{address}:{PORT}"]
        self._start("coordinator", [*common, "--role", "coordinator", "--bind", address, "--port", str(PORT)], servers)
        for shard in range(self.schedule.job.shards):
            role = ["--role", "shard", "--rank", str(shard), "--bind", address]
            self._start(f"shard {shard}", [*common, *role, *join], servers)
        for worker in range(self.schedule.job.workers):
            self._start(f"worker {worker}", [*common, "--role", "worker", "--rank", str(worker), *join], workers)

    # --- observing

    def over(self) -> bool:
        return all(command.process.poll() is not None for command in self.commands)

    def _observe(self) -> int:
        """Records new child processes. Returns how many there have been."""
        for command in self.commands:
            for pid in processes.children_of(command.process.pid):
                if pid not in command.children:
                    command.children.append(pid)
                    if self.began is None:
                        self.began = processes.started_at(pid)
        return sum(len(command.children) for command in self.commands)

    def _pids(self) -> Dict[str, int]:
        self._observe()
        pids = {}
        for command in self.commands:
            pids["launcher"] = self.commands[0].process.pid
            for pid in command.children:
                name = processes.name_of(pid)
                if name and processes.alive(pid):
                    pids[name] = pid
        return pids

    def _wait(self, condition: Callable[[], bool], patience: float, every: float = POLL_EVERY) -> bool:
        deadline = time.monotonic() + patience
        while not condition():
            if self.over() or time.monotonic() > deadline:
                return False
            time.sleep(every)
        return True

    def _begun_step(self) -> int:
        """The step of the newest checkpoint that has been begun."""
        try:
            names = os.listdir(self.work / "kept")
        except OSError:
            return 0
        return max((int(name[5:]) for name in names if name.startswith("step-") and name[5:].isdigit()), default=0)

    # --- injecting faults

    def inject_faults(self) -> Outcome:
        began = time.monotonic()
        deadline = began + PATIENCE + sum(fault.seconds for fault in self.schedule.faults)
        hits, missed = [], []
        lasting: List[threading.Thread] = []
        for fault in self.schedule.faults:
            hit = self._inject_when_due(fault, lasting, deadline)
            (hits if hit else missed).append(hit or fault)
        for thread in lasting:
            thread.join()
        while not self.over() and time.monotonic() < deadline:
            self._observe()
            time.sleep(0.01)
        hung = processes.where_it_hangs(processes.marked(self.mark)) if not self.over() else {}
        taken = time.monotonic() - began
        # Remaining processes may be about to end: they notice a killed launcher only after seconds.
        patience = time.monotonic() + 10.0
        while not hung and processes.marked(self.mark) and time.monotonic() < patience:
            time.sleep(0.02)
        left = {} if hung else processes.where_it_hangs(processes.marked(self.mark))
        processes.kill_marked(self.mark)
        statuses = {command.name: command.process.wait() for command in self.commands}
        return Outcome(statuses, hung, hits, missed, left, taken)

    def _inject_when_due(self, fault: Fault, lasting: List[threading.Thread], deadline: float) -> Optional[Hit]:
        patience = max(0.0, deadline - time.monotonic())
        if fault.process is not None:
            wanted = fault.process
            reached = self._wait(lambda: self._observe() > wanted, patience)
        else:
            reached = self._wait(lambda: self._observe() >= 0 and self._begun_step() >= fault.step, patience)
        if not reached:
            return None
        time.sleep(fault.after_ms / 1000)
        at = processes.boot_time() - (self.began or processes.boot_time())
        targets = self._inject(fault, lasting)
        return Hit(fault, at, targets) if targets else None

    def _inject(self, fault: Fault, lasting: List[threading.Thread]) -> List[str]:
        if fault.process is not None:
            pid = [each for command in self.commands for each in command.children][fault.process]
            name = processes.name_of(pid) or f"process {fault.process}"
            return [name] if processes.send(pid, signal.SIGKILL) else []
        if fault.kind in (KILL, PAUSE, INTERRUPT):
            return self._hit_processes(fault, lasting)
        return self._hit_network(fault, lasting)

    def _hit_processes(self, fault: Fault, lasting: List[threading.Thread]) -> List[str]:
        wanted: Set[str] = set(fault.targets)
        self._wait(lambda: wanted <= set(self._pids()), APPEARS_WITHIN)
        pids = {name: pid for name, pid in self._pids().items() if name in wanted}
        number = {KILL: signal.SIGKILL, PAUSE: signal.SIGSTOP, INTERRUPT: signal.SIGINT}[fault.kind]
        hit = [name for name, pid in pids.items() if processes.send(pid, number)]
        if fault.kind == PAUSE and hit:

            def wake() -> None:
                time.sleep(fault.seconds)
                for pid in pids.values():
                    processes.send(pid, signal.SIGCONT)

            self._in_background(wake, lasting)
        return hit

    def _hit_network(self, fault: Fault, lasting: List[threading.Thread]) -> List[str]:
        mirror, link = self._mirror, self._link
        if mirror is not None:
            weather = mirror.weather
            if fault.kind in (CUT, HALF_OPEN):
                for proxy in mirror.proxies():
                    proxy.cut_all() if fault.kind == CUT else proxy.make_half_open()
                return ["connections"]
            if fault.kind == CORRUPT:
                weather.corrupt_next()
                return ["connections"]
            if fault.kind == STALL:
                self._for_a_while(fault, lambda: weather.stall(True), lambda: weather.stall(False), lasting)
            if fault.kind == DELAY:
                weather.delay = fault.amount
                self._for_a_while(fault, lambda: None, lambda: setattr(weather, "delay", 0.0), lasting)
            if fault.kind == THROTTLE:
                weather.rate = fault.amount
                self._for_a_while(fault, lambda: None, lambda: setattr(weather, "rate", 0.0), lasting)
            return ["connections"]
        if link is not None:
            begin, end = (link.set_down, link.set_up) if fault.kind == LINK_DOWN else (link.slow_down, link.speed_up)
            assert fault.kind in (LINK_DOWN, LINK_SLOW)
            self._for_a_while(fault, begin, end, lasting)
            return ["link"]
        raise AssertionError(f"the run of this schedule has no proxy or link: {fault}")

    def _for_a_while(
        self, fault: Fault, begin: Callable[[], object], end: Callable[[], object], lasting: List[threading.Thread]
    ) -> None:
        begin()

        def stop() -> None:
            time.sleep(fault.seconds)
            end()

        self._in_background(stop, lasting)

    @staticmethod
    def _in_background(work: Callable[[], None], lasting: List[threading.Thread]) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        lasting.append(thread)

    def logs(self) -> str:
        """The end of the error output of every command."""
        texts = []
        for command in self.commands:
            text = (self.folder / f"{command.name}.err").read_text(errors="replace")
            texts.append(f"--- {command.name}\n{text[-3000:]}")
        return "\n".join(texts)
