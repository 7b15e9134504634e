"""A schedule: a small job, what is done to it and when, and how it must end. A function of its seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import List, Optional, Tuple

# What is done to a process.
KILL, PAUSE, INTERRUPT = "kill", "pause", "interrupt"
# What is done to the network between workers and servers.
CUT, HALF_OPEN, STALL, DELAY, THROTTLE, CORRUPT = "cut", "half-open", "stall", "delay", "throttle", "corrupt"
LINK_DOWN, LINK_SLOW = "link-down", "link-slow"

# Where a run lives, beside the plain one of one launcher.
PLAIN, PROXY, LINK, SMALL_DISK, FEW_FILES, WILD_CLOCK = "plain", "proxy", "link", "disk", "files", "clock"


@dataclass(frozen=True)
class Job:
    """Every run has so few steps that it takes a second or two, and a checkpoint every few of them."""

    workers: int
    shards: int
    steps: int
    checkpoint_every: int
    delay_ms: int  # of every gradient: a step takes at least so long
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
    # The moment: so long after the n-th process was started, or after the checkpoint of a step was begun.
    born: Optional[int]
    step: int
    after_ms: float
    targets: Tuple[str, ...] = ()  # names of processes; with `born` it is the newborn
    seconds: float = 0.0  # how long it lasts, where it lasts
    amount: float = 0.0  # of a delay in seconds, of a rate in bytes a second

    def __str__(self) -> str:
        when = f"process {self.born}'s start" if self.born is not None else f"step {self.step}"
        whom = " of " + ", ".join(self.targets) if self.targets else ""
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind}{whom}{lasting}, {self.after_ms:.0f} ms after {when}"


@dataclass(frozen=True)
class Schedule:
    seed: int
    family: str
    job: Job
    faults: Tuple[Fault, ...]
    place: str = PLAIN
    limit: int = 0  # bytes of the disk, or descriptors
    may_end: Tuple[str, ...] = ("completed",)  # outcomes that are right
    same_parameters: bool = False  # as a run that nobody disturbs
    loses_no_step: bool = False

    def __str__(self) -> str:
        faults = "; ".join(str(each) for each in self.faults) or self.place
        return f"seed {self.seed} ({self.family}, {self.job.transport}): {faults}"


def _job(chance: random.Random, **fixed) -> Job:
    every = chance.choice([3, 5, 8])
    values = dict(
        workers=chance.randint(2, 4),
        shards=chance.randint(1, 3),
        steps=every * chance.randint(4, 7) + chance.choice([0, 1]),
        checkpoint_every=every,
        delay_ms=chance.choice([5, 15, 30]),
        transport=chance.choice(["shm", "uds", "tcp"]),
        deterministic=chance.random() < 0.5,
        optimizer=chance.choice(["sgd", "momentum", "adamw"]),
        save_model=chance.random() < 0.3,
    )
    values["tls"] = values["transport"] == "tcp" and chance.random() < 0.4
    values.update(fixed)
    return Job(**values)


def _at_a_step(chance: random.Random, job: Job, kind: str, targets: List[str], early=False, **more) -> Fault:
    begun = [*range(job.checkpoint_every, job.steps, job.checkpoint_every), job.steps]
    if early:
        begun = begun[: len(begun) // 2]
    return Fault(kind, None, chance.choice(begun), chance.choice([0, 0, 1, 5, 20, 60, 150]), tuple(targets), **more)


def _in_order(faults: List[Fault]) -> Tuple[Fault, ...]:
    return tuple(sorted(faults, key=lambda each: (each.born is None, each.born or 0, each.step, each.after_ms)))


def _servers(job: Job) -> List[str]:
    return ["coordinator", "evaluator"] + [f"shard {each}" for each in range(job.shards)]


def _members(job: Job) -> List[str]:
    return _servers(job) + [f"worker {each}" for each in range(job.workers)]


def _kills_of_servers(seed: int, chance: random.Random) -> Schedule:
    job = _job(chance, deterministic=True)
    faults = [_at_a_step(chance, job, KILL, [chance.choice(_servers(job))]) for _ in range(chance.randint(1, 3))]
    return Schedule(seed, "servers killed", job, _in_order(faults), same_parameters=True)


def _kills_with_standbys(seed: int, chance: random.Random) -> Schedule:
    """One of the two processes of a shard each time, far enough apart for the other to have everything by then."""
    job = _job(chance, deterministic=True, standby=True, delay_ms=30, steps=40, checkpoint_every=8)
    steps = chance.sample([8, 24, 40], chance.randint(1, 3))
    servers = lambda: [f"{chance.choice(['shard', 'standby'])} {each}" for each in range(job.shards)]  # noqa: E731
    faults = [
        Fault(KILL, None, step, chance.choice([0, 1, 5, 20, 60, 150]), tuple(chance.sample(servers(), chance.randint(1, job.shards))))
        for step in steps
    ]
    return Schedule(seed, "standbys", job, _in_order(faults), same_parameters=True, loses_no_step=True)


def _kills_of_anybody(seed: int, chance: random.Random) -> Schedule:
    job = _job(chance)
    faults = []
    for _ in range(chance.randint(1, 3)):
        members = _members(job)
        faults.append(_at_a_step(chance, job, KILL, chance.sample(members, chance.randint(1, len(members)))))
    return Schedule(seed, "anybody killed", job, _in_order(faults))


def _kills_at_birth(seed: int, chance: random.Random) -> Schedule:
    job = _job(chance)
    # The first is the coordinator: until it has made the run file there is nothing to go on with.
    first = chance.random() < 0.2
    births = {0} if first else set(chance.sample(range(1, len(_members(job)) + 2), chance.randint(1, 2)))
    faults = [Fault(KILL, each, 0, chance.choice([0, 0, 1, 2, 5, 10, 30])) for each in sorted(births)]
    may_end = ("completed", "failed", "none") if first else ("completed",)
    return Schedule(seed, "killed at birth", job, _in_order(faults), may_end=may_end)


def _pauses(seed: int, chance: random.Random) -> Schedule:
    job = _job(chance, deterministic=True)
    whom = lambda: chance.sample(_members(job), chance.randint(1, 2))  # noqa: E731
    faults = [
        _at_a_step(chance, job, PAUSE, whom(), seconds=chance.choice([0.05, 0.3, 1.0, 2.0]))
        for _ in range(chance.randint(1, 2))
    ]
    return Schedule(seed, "pauses", job, _in_order(faults), same_parameters=True)


def _long_pauses(seed: int, chance: random.Random) -> Schedule:
    """Longer than the silence after which somebody is taken for dead."""
    job = _job(chance)
    fault = _at_a_step(chance, job, PAUSE, [chance.choice(_members(job))], seconds=chance.choice([11.0, 14.0, 18.0]))
    return Schedule(seed, "long pauses", job, (fault,))


def _launcher_killed(seed: int, chance: random.Random) -> Schedule:
    job = _job(chance, save_model=False)
    faults = [_at_a_step(chance, job, KILL, ["launcher"])]
    if chance.random() < 0.5:
        faults.append(_at_a_step(chance, job, KILL, [chance.choice(_members(job))]))
    return Schedule(seed, "launcher killed", job, _in_order(faults), may_end=("completed", "failed", "running"))


def _interrupted(seed: int, chance: random.Random) -> Schedule:
    job = _job(chance, save_model=False)
    faults = [_at_a_step(chance, job, INTERRUPT, ["launcher"])]
    if chance.random() < 0.6:
        faults.append(_at_a_step(chance, job, KILL, [chance.choice(_members(job))]))
    may_end = ("interrupted", "completed", "running")
    return Schedule(seed, "interrupted", job, _in_order(faults), may_end=may_end)


def _two_hosts(chance: random.Random, tls: bool) -> Job:
    """Long enough for those who were cut off to come back: whoever comes when the run is over looks for it for a minute."""
    return _job(chance, transport="tcp", tls=tls, save_model=False, deterministic=False, delay_ms=30, steps=60)


def _weather(seed: int, chance: random.Random) -> Schedule:
    """Workers reach the servers only through a proxy, which does what a bad network does."""
    tls = chance.random() < 0.5
    job = _two_hosts(chance, tls)
    # A flipped bit within a gradient is noticed only where it is encrypted; TCP's own sums are for the others.
    kinds = [CUT, CUT, STALL, DELAY, THROTTLE] + ([CORRUPT] if tls else [])
    faults = []
    for _ in range(chance.randint(1, 3)):
        kind = chance.choice(kinds)
        amount = {DELAY: chance.choice([0.01, 0.1]), THROTTLE: chance.choice([2e5, 2e6])}.get(kind, 0.0)
        lasting = 0.0 if kind in (CUT, CORRUPT) else chance.choice([0.2, 1.0, 2.0])
        faults.append(_at_a_step(chance, job, kind, [], early=True, seconds=lasting, amount=amount))
    return Schedule(seed, "weather", job, _in_order(faults), place=PROXY)


def _half_open(seed: int, chance: random.Random) -> Schedule:
    job = _two_hosts(chance, tls=chance.random() < 0.3)
    return Schedule(seed, "half-open", job, (_at_a_step(chance, job, HALF_OPEN, [], early=True),), place=PROXY)


def _links(seed: int, chance: random.Random) -> Schedule:
    job = _two_hosts(chance, tls=False)
    kind = chance.choice([LINK_DOWN, LINK_SLOW])
    lasting = chance.choice([0.3, 2.0, 5.0, 13.0]) if kind == LINK_DOWN else chance.choice([1.0, 3.0])
    return Schedule(seed, "links", job, (_at_a_step(chance, job, kind, [], early=True, seconds=lasting),), place=LINK)


def _full_disk(seed: int, chance: random.Random) -> Schedule:
    """Run file and checkpoints on a disk that is full soon, or that has room for the run file alone. There may be none left to write
    down how the run ended."""
    job = _job(chance, deterministic=True, save_model=False)
    limit = chance.choice([0, 64 << 10, 256 << 10, 700 << 10, 1500 << 10])
    return Schedule(seed, "full disk", job, (), place=SMALL_DISK, limit=limit, may_end=("completed", "failed", "running", "none"))


def _few_files(seed: int, chance: random.Random) -> Schedule:
    job = _job(chance, save_model=False)
    limit = chance.choice([8, 12, 16, 20, 24, 32, 48])
    return Schedule(seed, "few files", job, (), place=FEW_FILES, limit=limit, may_end=("completed", "failed", "running", "none"))


def _wild_clock(seed: int, chance: random.Random) -> Schedule:
    # Without TLS: whether a certificate has expired is a question to the clock on the wall.
    job = _job(chance, deterministic=True, save_model=False, tls=False)
    faults = [_at_a_step(chance, job, KILL, [chance.choice(_servers(job))])] if chance.random() < 0.5 else []
    return Schedule(seed, "wild clock", job, tuple(faults), place=WILD_CLOCK, same_parameters=True)


# Families with their weights. The first end as they do whatever the machine is busy with, and soon.
_STEADY = [(_kills_of_servers, 5), (_kills_with_standbys, 4), (_pauses, 2), (_kills_of_anybody, 4), (_wild_clock, 1), (_full_disk, 1)]
_ALL = _STEADY + [
    (_kills_at_birth, 4),
    (_launcher_killed, 2),
    (_interrupted, 2),
    (_few_files, 1),
    (_weather, 4),
    (_half_open, 1),
    (_links, 2),
    (_long_pauses, 1),
]


def schedule_of(seed: int, steady: bool = False) -> Schedule:
    """`steady`: only what ends in the same way however slow the machine is, and soon."""
    chance = random.Random(f"drover faults {seed}")
    families = _STEADY if steady else _ALL
    family = chance.choices([each for each, _ in families], [weight for _, weight in families])[0]
    return family(seed, chance)
