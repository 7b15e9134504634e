"""A schedule: a small job, the faults to inject and when, and the permitted outcomes. A function of its seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import List, Optional, Tuple

# Faults of processes.
KILL, PAUSE, INTERRUPT = "kill", "pause", "interrupt"
# Faults of the network between workers and servers.
CUT, HALF_OPEN, STALL, DELAY, THROTTLE, CORRUPT = "cut", "half-open", "stall", "delay", "throttle", "corrupt"
LINK_DOWN, LINK_SLOW = "link-down", "link-slow"

# The environment of a run. PLAIN is one launcher on one host.
PLAIN, PROXY, LINK, SMALL_DISK, FEW_FILES, WILD_CLOCK = "plain", "proxy", "link", "disk", "files", "clock"


@dataclass(frozen=True)
class Job:
    """Runs are short, a second or two, and write a checkpoint every few steps."""

    workers: int
    shards: int
    steps: int
    checkpoint_every: int
    delay_ms: int  # of every gradient, and so the minimum time of a step
    transport: str
    deterministic: bool
    optimizer: str = "sgd"
    tls: bool = False
    save_model: bool = False
    standby: bool = False

    def words(self) -> List[str]:
        words = ["--model", "mlp", "--data", "generated", "--generated-samples", "512", "--batch", "8"]
        words += ["--workers", str(self.workers), "--shards", str(self.shards), "--steps", str(self.steps)]
        words += ["--slow", f"delay={self.delay_ms}ms", "--optimizer", self.optimizer, "--transport", self.transport]
        words += ["--supervise", "--checkpoint", "kept", "--checkpoint-every", str(self.checkpoint_every)]
        words += ["--standby"] if self.standby else []
        words += ["--deterministic"] if self.deterministic else []
        words += ["--save-model", "model.pt"] if self.save_model else []
        return words + (["--tls", "keys"] if self.tls else [])


@dataclass(frozen=True)
class Fault:
    kind: str
    # When: `after_ms` after the start of the n-th process, or after the checkpoint of `step` was begun.
    process: Optional[int]
    step: int
    after_ms: float
    targets: Tuple[str, ...] = ()  # names of processes; with `process` it is that one
    seconds: float = 0.0  # duration; 0: instantaneous
    amount: float = 0.0  # a delay in seconds, or a rate in bytes/s

    def __str__(self) -> str:
        when = f"the start of process {self.process}" if self.process is not None else f"step {self.step}"
        targets = " " + ", ".join(self.targets) if self.targets else ""
        duration = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind}{targets}{duration}, {self.after_ms:.0f} ms after {when}"


@dataclass(frozen=True)
class Schedule:
    seed: int
    family: str
    job: Job
    faults: Tuple[Fault, ...]
    place: str = PLAIN
    limit: int = 0  # size of the disk in bytes, or number of file descriptors
    may_end: Tuple[str, ...] = ("completed",)  # permitted outcomes
    same_parameters: bool = False  # the final parameters must be those of a run without faults
    loses_no_step: bool = False

    def __str__(self) -> str:
        faults = "; ".join(str(each) for each in self.faults) or self.place
        return f"seed {self.seed} ({self.family}, {self.job.transport}): {faults}"


def _job(draw: random.Random, **fixed) -> Job:
    every = draw.choice([3, 5, 8])
    values = dict(
        workers=draw.randint(2, 4),
        shards=draw.randint(1, 3),
        steps=every * draw.randint(4, 7) + draw.choice([0, 1]),
        checkpoint_every=every,
        delay_ms=draw.choice([5, 15, 30]),
        transport=draw.choice(["shm", "uds", "tcp"]),
        deterministic=draw.random() < 0.5,
        optimizer=draw.choice(["sgd", "momentum", "adamw"]),
        save_model=draw.random() < 0.3,
    )
    values["tls"] = values["transport"] == "tcp" and draw.random() < 0.4
    values.update(fixed)
    return Job(**values)


def _at_a_step(draw: random.Random, job: Job, kind: str, targets: List[str], early=False, **more) -> Fault:
    begun = [*range(job.checkpoint_every, job.steps, job.checkpoint_every), job.steps]
    if early:
        begun = begun[: len(begun) // 2]
    return Fault(kind, None, draw.choice(begun), draw.choice([0, 0, 1, 5, 20, 60, 150]), tuple(targets), **more)


def _in_order(faults: List[Fault]) -> Tuple[Fault, ...]:
    return tuple(sorted(faults, key=lambda each: (each.process is None, each.process or 0, each.step, each.after_ms)))


def _servers(job: Job) -> List[str]:
    return ["coordinator", "evaluator"] + [f"shard {each}" for each in range(job.shards)]


def _members(job: Job) -> List[str]:
    return _servers(job) + [f"worker {each}" for each in range(job.workers)]


def _kills_of_servers(seed: int, draw: random.Random) -> Schedule:
    job = _job(draw, deterministic=True)
    faults = [_at_a_step(draw, job, KILL, [draw.choice(_servers(job))]) for _ in range(draw.randint(1, 3))]
    return Schedule(seed, "servers killed", job, _in_order(faults), same_parameters=True)


def _kills_with_standbys(seed: int, draw: random.Random) -> Schedule:
    """Kills one of the two processes of a shard at a time. Between kills the new standby can receive everything."""
    job = _job(draw, deterministic=True, standby=True, delay_ms=30, steps=40, checkpoint_every=8)
    steps = draw.sample([8, 24, 40], draw.randint(1, 3))
    servers = lambda: [f"{draw.choice(['shard', 'standby'])} {each}" for each in range(job.shards)]  # noqa: E731
    faults = [
        Fault(
            KILL,
            None,
            step,
            draw.choice([0, 1, 5, 20, 60, 150]),
            tuple(draw.sample(servers(), draw.randint(1, job.shards))),
        )
        for step in steps
    ]
    return Schedule(seed, "standbys", job, _in_order(faults), same_parameters=True, loses_no_step=True)


def _kills_of_any(seed: int, draw: random.Random) -> Schedule:
    job = _job(draw)
    faults = []
    for _ in range(draw.randint(1, 3)):
        members = _members(job)
        faults.append(_at_a_step(draw, job, KILL, draw.sample(members, draw.randint(1, len(members)))))
    return Schedule(seed, "any process killed", job, _in_order(faults))


def _kills_at_start(seed: int, draw: random.Random) -> Schedule:
    job = _job(draw)
    # The first process is the coordinator. If it is killed before it has made the run file, the run cannot continue.
    first = draw.random() < 0.2
    starts = {0} if first else set(draw.sample(range(1, len(_members(job)) + 2), draw.randint(1, 2)))
    faults = [Fault(KILL, each, 0, draw.choice([0, 0, 1, 2, 5, 10, 30])) for each in sorted(starts)]
    may_end = ("completed", "failed", "none") if first else ("completed",)
    return Schedule(seed, "killed at start", job, _in_order(faults), may_end=may_end)


def _pauses(seed: int, draw: random.Random) -> Schedule:
    job = _job(draw, deterministic=True)
    targets = lambda: draw.sample(_members(job), draw.randint(1, 2))  # noqa: E731
    faults = [
        _at_a_step(draw, job, PAUSE, targets(), seconds=draw.choice([0.05, 0.3, 1.0, 2.0]))
        for _ in range(draw.randint(1, 2))
    ]
    return Schedule(seed, "pauses", job, _in_order(faults), same_parameters=True)


def _long_pauses(seed: int, draw: random.Random) -> Schedule:
    """Longer than the silence after which a peer counts as dead (node/heartbeat.h)."""
    job = _job(draw)
    fault = _at_a_step(draw, job, PAUSE, [draw.choice(_members(job))], seconds=draw.choice([11.0, 14.0, 18.0]))
    return Schedule(seed, "long pauses", job, (fault,))


def _launcher_killed(seed: int, draw: random.Random) -> Schedule:
    job = _job(draw, save_model=False)
    faults = [_at_a_step(draw, job, KILL, ["launcher"])]
    if draw.random() < 0.5:
        faults.append(_at_a_step(draw, job, KILL, [draw.choice(_members(job))]))
    return Schedule(seed, "launcher killed", job, _in_order(faults), may_end=("completed", "failed", "running"))


def _interrupted(seed: int, draw: random.Random) -> Schedule:
    job = _job(draw, save_model=False)
    faults = [_at_a_step(draw, job, INTERRUPT, ["launcher"])]
    if draw.random() < 0.6:
        faults.append(_at_a_step(draw, job, KILL, [draw.choice(_members(job))]))
    may_end = ("interrupted", "completed", "running")
    return Schedule(seed, "interrupted", job, _in_order(faults), may_end=may_end)


def _two_hosts(draw: random.Random, tls: bool) -> Job:
    """Long enough for cut-off workers to rejoin: one that comes after the end looks for a run for a minute."""
    return _job(draw, transport="tcp", tls=tls, save_model=False, deterministic=False, delay_ms=30, steps=60)


def _weather(seed: int, draw: random.Random) -> Schedule:
    """Workers reach the servers only through a proxy that simulates a bad network."""
    tls = draw.random() < 0.5
    job = _two_hosts(draw, tls)
    # Only with TLS is a flipped bit in a gradient detected. Without it, real corruption is left to TCP's checksums.
    kinds = [CUT, CUT, STALL, DELAY, THROTTLE] + ([CORRUPT] if tls else [])
    faults = []
    for _ in range(draw.randint(1, 3)):
        kind = draw.choice(kinds)
        amount = {DELAY: draw.choice([0.01, 0.1]), THROTTLE: draw.choice([2e5, 2e6])}.get(kind, 0.0)
        duration = 0.0 if kind in (CUT, CORRUPT) else draw.choice([0.2, 1.0, 2.0])
        faults.append(_at_a_step(draw, job, kind, [], early=True, seconds=duration, amount=amount))
    return Schedule(seed, "weather", job, _in_order(faults), place=PROXY)


def _half_open(seed: int, draw: random.Random) -> Schedule:
    job = _two_hosts(draw, tls=draw.random() < 0.3)
    return Schedule(seed, "half-open", job, (_at_a_step(draw, job, HALF_OPEN, [], early=True),), place=PROXY)


def _links(seed: int, draw: random.Random) -> Schedule:
    job = _two_hosts(draw, tls=False)
    kind = draw.choice([LINK_DOWN, LINK_SLOW])
    duration = draw.choice([0.3, 2.0, 5.0, 13.0]) if kind == LINK_DOWN else draw.choice([1.0, 3.0])
    return Schedule(seed, "links", job, (_at_a_step(draw, job, kind, [], early=True, seconds=duration),), place=LINK)


def _full_disk(seed: int, draw: random.Random) -> Schedule:
    """Run file and checkpoints on a disk that is soon full, or has space for the run file alone. The end may not fit:
    the record may say that the run is still running."""
    job = _job(draw, deterministic=True, save_model=False)
    limit = draw.choice([0, 64 << 10, 256 << 10, 700 << 10, 1500 << 10])
    return Schedule(
        seed, "full disk", job, (), place=SMALL_DISK, limit=limit, may_end=("completed", "failed", "running", "none")
    )


def _few_files(seed: int, draw: random.Random) -> Schedule:
    job = _job(draw, save_model=False)
    limit = draw.choice([8, 12, 16, 20, 24, 32, 48])
    return Schedule(
        seed, "few files", job, (), place=FEW_FILES, limit=limit, may_end=("completed", "failed", "running", "none")
    )


def _wild_clock(seed: int, draw: random.Random) -> Schedule:
    # Without TLS: the expiry of certificates is checked against the system clock.
    job = _job(draw, deterministic=True, save_model=False, tls=False)
    faults = [_at_a_step(draw, job, KILL, [draw.choice(_servers(job))])] if draw.random() < 0.5 else []
    return Schedule(seed, "wild clock", job, tuple(faults), place=WILD_CLOCK, same_parameters=True)


# Families with their weights. The steady ones end soon, and with the same outcome on a busy machine.
_STEADY = [
    (_kills_of_servers, 5),
    (_kills_with_standbys, 4),
    (_pauses, 2),
    (_kills_of_any, 4),
    (_wild_clock, 1),
    (_full_disk, 1),
]
_ALL = _STEADY + [
    (_kills_at_start, 4),
    (_launcher_killed, 2),
    (_interrupted, 2),
    (_few_files, 1),
    (_weather, 4),
    (_half_open, 1),
    (_links, 2),
    (_long_pauses, 1),
]


def schedule_of(seed: int, steady: bool = False) -> Schedule:
    """`steady`: only schedules that end soon, and with the same outcome on a slow machine."""
    draw = random.Random(f"drover faults {seed}")
    families = _STEADY if steady else _ALL
    family = draw.choices([each for each, _ in families], [weight for _, weight in families])[0]
    return family(seed, draw)
