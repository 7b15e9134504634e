"""Which samples of a data set a worker trains on.

All workers share one endless stream of samples: each stretch of it as long as the data set is a new random
permutation, the same for all. The stream is dealt out in chunks of one mini-batch to the workers in turn, and each
takes its mini-batches from its own chunks one after the other. So no sample is used twice in an epoch, whichever
worker is fast, late, or given more to do than others; and N workers with B samples each see in a step what one would
see with N x B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler


class Position(Protocol):
    """What of a run decides which samples are next (drover.Run)."""

    @property
    def rank(self) -> int:
        ...

    @property
    def workers(self) -> int:
        ...

    @property
    def batch_size(self) -> int:
        ...

    @property
    def over(self) -> bool:
        ...


class Batches:
    """Endless lists of indices, for ``DataLoader(dataset, batch_sampler=run.batches(len(dataset)))``.

    Each list is as long as `run.batch_size` says when it is made. Iterating again continues where the last time
    ended; it ends with the run.
    """

    def __init__(self, run: Position, chunk: int, indices: Callable[[int, int], list[int]], begun: int = 0) -> None:
        """`chunk`: samples dealt to a worker at a time. `indices(first, count)`: that part of the stream.

        `begun`: so many steps were made before, in a run that continues from a checkpoint.
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


class LoaderBatches:
    """One worker's part of a DataLoader: going over it is an epoch, and ends early if the run is over.

    Every epoch is another permutation if the loader shuffles, the same for all workers, each of which has its own part.
    """

    def __init__(self, run: Position, loader: Any) -> None:
        self._run = run
        self._epoch = 0
        self._loader = loader
        if isinstance(getattr(loader, "sampler", None), DistributedSampler):
            self._sampler = loader.sampler
            return
        _refuse_what_has_no_parts(loader)
        self._sampler = DistributedSampler(
            loader.dataset,
            run.workers,
            run.rank,
            seed=0,
            drop_last=loader.drop_last,
            shuffle=isinstance(loader.sampler, RandomSampler),
        )
        kept = (
            "batch_size",
            "num_workers",
            "collate_fn",
            "pin_memory",
            "drop_last",
            "timeout",
            "worker_init_fn",
            "multiprocessing_context",
            "generator",
            "persistent_workers",
        )
        options = {name: getattr(loader, name) for name in kept}
        if loader.num_workers > 0:
            options["prefetch_factor"] = loader.prefetch_factor
        self._loader = DataLoader(loader.dataset, sampler=self._sampler, **options)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        self._sampler.set_epoch(self._epoch)
        self._epoch += 1
        for batch in self._loader:
            if self._run.over:
                return
            yield batch


def _refuse_what_has_no_parts(loader: Any) -> None:
    if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        raise ValueError(
            "run.batches() takes a torch DataLoader over a data set with a length, or that length. Give each "
            "worker its own part of other data by drover.rank() and drover.workers()."
        )
    if not isinstance(loader.sampler, (RandomSampler, SequentialSampler)) or loader.batch_size is None:
        raise ValueError(
            f"run.batches() cannot divide the batches of a {type(loader.sampler).__name__} among workers. Give "
            "the loader a DistributedSampler(dataset, drover.workers(), drover.rank())."
        )
