"""Gradients on their way from a device: gathered into groups, copied asynchronously, reported to the run by a thread.

A copy for each small tensor would cost more than the copying itself, and waiting for copies would hold up the
backward pass. So gradients are gathered until about a megabyte is together; a group is sent as few contiguous
stretches with an event behind them; and one thread waits for events in order. What "the device" is, a `Lane` knows:
on CUDA it is drover.cuda.DeviceLane.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Protocol

import torch

from .parameters import Slot

GROUP_BYTES = 1 << 20

# Says that a tensor is in the run's buffer. The answer is whether the step is still open.
Announce = Callable[[int, int], bool]


class Event(Protocol):
    def synchronize(self) -> None:
        """Returns when everything sent before the event was recorded has arrived."""


class Lane(Protocol):
    def keep(self, slot: Slot, gradient: torch.Tensor) -> None:
        """Gathers a tensor on the device."""

    def send(self, stretches: list[tuple[int, int]]) -> Event:
        """Starts to copy these parts of what was gathered, (first, last) in floats, to the host's gradient buffer."""


class Staging:
    """A sink (drover.gradients) for gradients on a device."""

    def __init__(self, lane: Lane, group_bytes: int = GROUP_BYTES) -> None:
        self._lane = lane
        self._group_floats = group_bytes // 4
        self._group: dict[int, Slot] = {}
        self._announces: dict[int, Announce] = {}
        self._gathered = 0
        self._wanted = True
        self._samples = 0
        self._trouble: Exception | None = None
        self._sent: queue.SimpleQueue[tuple[Event, list[tuple[int, Announce]], int] | None] = queue.SimpleQueue()
        self._under_way = 0
        self._announced = threading.Condition()
        self._thread: threading.Thread | None = None

    def begin(self, samples: int) -> None:
        self._wanted, self._samples = True, samples

    def put(self, index: int, slot: Slot, values: torch.Tensor, announce: Announce) -> bool:
        """Takes a tensor. False: it is known by now that the step has closed, and the rest is not wanted."""
        if self._wanted:
            self._lane.keep(slot, values)
            self._group[index] = slot
            self._announces[index] = announce
            self._gathered += slot.last - slot.first
            if self._gathered >= self._group_floats:
                self._send_group()
        return self._wanted

    def drain(self) -> bool:
        """Sends what is left and returns when all that was taken has been reported: whether it was all wanted."""
        if self._wanted and self._group:
            self._send_group()
        self.discard()
        return self._wanted

    def discard(self) -> None:
        """Forgets what was taken and not sent, and returns when nothing is under way any more."""
        self._group, self._gathered = {}, 0
        self._announces.clear()
        with self._announced:
            self._announced.wait_for(lambda: self._under_way == 0)
        if self._trouble:
            trouble, self._trouble = self._trouble, None
            raise trouble

    def close(self) -> None:
        """Ends the thread. Nothing may be put afterwards."""
        if self._thread:
            self._sent.put(None)
            self._thread.join()
            self._thread = None

    def _send_group(self) -> None:
        if not self._thread:
            self._thread = threading.Thread(target=self._announce, name="drover-gradients", daemon=True)
            self._thread.start()
        # In the order in which they became ready.
        announces = [(index, self._announces.pop(index)) for index in self._group]
        arrived = self._lane.send(stretches(self._group))
        self._group, self._gathered = {}, 0
        with self._announced:
            self._under_way += 1
        self._sent.put((arrived, announces, self._samples))

    def _announce(self) -> None:
        while (item := self._sent.get()) is not None:
            arrived, announces, samples = item
            try:
                arrived.synchronize()
                for index, announce in announces:
                    if self._wanted and not announce(index, samples):
                        self._wanted = False
            except Exception as trouble:  # belongs to the thread that trains: announced by drain()
                self._trouble, self._wanted = trouble, False
            with self._announced:
                self._under_way -= 1
                self._announced.notify_all()


def stretches(group: dict[int, Slot]) -> list[tuple[int, int]]:
    """The least number of (first, last) that cover a group's tensors and nothing of others.

    Neighbours are one stretch, with the padding between them.
    """
    found: list[tuple[int, int]] = []
    previous = -2
    for index in sorted(group):
        slot = group[index]
        if index == previous + 1:
            found[-1] = (found[-1][0], slot.last)
        else:
            found.append((slot.first, slot.last))
        previous = index
    return found
