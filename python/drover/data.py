"""Which samples of a data set a worker trains on.

All workers share one endless stream of samples: each stretch of it as long as the data set is a new random
permutation, the same for all. The stream is dealt out in chunks of one mini-batch to the workers in turn, and each
takes its mini-batches from its own chunks one after the other. So no sample is used twice in an epoch, whoever is
fast, late, or given more to do than others; and N workers with B samples each see in a step what one would see with N
x B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol


class Position(Protocol):
    """What of a run decides which samples are next (drover.Run)."""

    @property
    def rank(self) -> int: ...
    @property
    def workers(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def over(self) -> bool: ...


class Batches:
    """Endless lists of indices, for ``DataLoader(dataset, batch_sampler=run.batches(len(dataset)))``.

    Each list is as long as `run.batch_size` says when it is made. Going over it again goes on where the last time
    ended; it ends with the run.
    """

    def __init__(self, run: Position, chunk: int, indices: Callable[[int, int], list[int]],
                 begun: int = 0) -> None:
        """`chunk`: samples dealt to a worker at a time. `indices(first, count)`: that part of the stream.

        `begun`: so many steps were made before, in a run that goes on from a checkpoint.
        """
        self._run = run
        self._chunk = chunk
        self._indices = indices
        self._taken = begun * chunk

    def __iter__(self) -> Iterator[list[int]]:
        while not self._run.over:
            yield self.take(self._run.batch_size)

    def take(self, count: int) -> list[int]:
        """The next `count` samples of this worker."""
        taken: list[int] = []
        while len(taken) < count:
            turn, within = divmod(self._taken, self._chunk)
            size = min(self._chunk - within, count - len(taken))
            first = (turn * self._run.workers + self._run.rank) * self._chunk + within
            taken += self._indices(first, size)
            self._taken += size
        return taken
