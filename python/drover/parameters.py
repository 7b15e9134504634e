"""How a model gets the values of a run's tensors: in place, or as copies.

The run keeps its parameters in one flat float32 buffer of host memory, which it fills before each step. A *placement*
shows such a buffer to the tensors of a model:

- contiguous float32 parameters on the CPU are views of the buffer (`InPlace`): nothing is ever copied;
- other types and devices get copies (`Copied`), and CUDA devices one copy for all their parameters together
  (drover.cuda).

The same placements show the moving average of the parameters to the model while it is evaluated.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Callable

import torch

from .pieces import Piece


class Slot:
    """A piece and where it begins in the flat buffers."""

    def __init__(self, piece: Piece, offset: int, index: int) -> None:
        self.index = index
        self.name = piece.name
        self.owner = piece.owner
        self.tensor = piece.tensor
        self.averaged = piece.averaged
        self.first = offset
        self.last = offset + piece.size

    def of(self, flat: torch.Tensor) -> torch.Tensor:
        """This tensor's part of a flat buffer, in this tensor's shape."""
        return flat[self.first : self.last].view(self.tensor.shape)


class Placement(abc.ABC):
    """Shows flat buffers to some of a model's tensors."""

    @abc.abstractmethod
    def show(self, flat: torch.Tensor) -> None:
        """The tensors have the values of `flat`. They may be views of it: it must not change while they are used."""

    def settle(self) -> None:
        """Returns when `flat` of the last show() may be written to, as far as copying from it is concerned."""

    def changed(self, flat: torch.Tensor) -> list[int]:
        """Which trained tensors have other values than the last show() of `flat` gave them, by index."""
        return []

    def hold(self) -> None:
        """Keeps what the tensors are now, as far as it is not in the run's buffer, until restore()."""

    def restore(self, flat: torch.Tensor) -> None:
        """The tensors are again as at hold(); `flat` is the run's buffer."""
        self.show(flat)

    def check(self) -> None:
        """Raises RuntimeError if a tensor has been given other memory than show() gave it."""

    def release(self) -> None:
        """The tensors keep their values, in memory of their own. Nothing is shown afterwards."""


class InPlace(Placement):
    """Parameters that are views of the buffer that is shown.

    `changed`: which tensors of that buffer are not as the shards have sent them, which only the session knows.
    """

    def __init__(self, slots: list[Slot], changed: Callable[[], list[int]]) -> None:
        self._slots = slots
        self._changed = changed
        self._shown: torch.Tensor | None = None
        self._where: list[int] = []

    def show(self, flat: torch.Tensor) -> None:
        if self._shown is not flat:
            self._shown = flat
            for slot in self._slots:
                slot.tensor.data = slot.of(flat)
            self._where = [slot.tensor.data_ptr() for slot in self._slots]

    def changed(self, flat: torch.Tensor) -> list[int]:
        return self._changed()

    def check(self) -> None:
        check_memory(self._slots, self._where)

    def release(self) -> None:
        for slot in self._slots:
            slot.tensor.data = slot.tensor.data.clone()
        self._where = []


class Copied(Placement):
    """Tensors of any type and device, each copied by itself."""

    def __init__(self, slots: list[Slot]) -> None:
        self._slots = slots

    def show(self, flat: torch.Tensor) -> None:
        with torch.no_grad():
            for slot in self._slots:
                slot.tensor.data.copy_(slot.of(flat))

    def changed(self, flat: torch.Tensor) -> list[int]:
        return [slot.index for slot in self._slots if not slot.averaged
                and not torch.equal(slot.tensor.data, slot.of(flat).to(slot.tensor.device, slot.tensor.dtype))]


class Parameters(Placement):
    """All tensors of a run, each in the placement that suits it."""

    def __init__(self, slots: list[Slot], buffers: list[torch.Tensor], changed: Callable[[], list[int]]) -> None:
        """`buffers`: everything that will be shown or pushed from, so that it can be made fit for fast copies.
        `changed`: see InPlace."""
        in_place = [slot for slot in slots if _can_be_view_of_the_runs(slot)]
        on_cuda = [slot for slot in slots if slot.tensor.is_cuda and slot.tensor.is_contiguous()]
        others = [slot for slot in slots if slot not in in_place and slot not in on_cuda]
        self._parts: list[Placement] = [InPlace(in_place, changed), Copied(others)]
        if on_cuda:
            from . import cuda

            self._parts.append(cuda.Pinned(buffers))
            for device in sorted({slot.tensor.device for slot in on_cuda}, key=str):
                self._parts.append(cuda.OnDevice([slot for slot in on_cuda if slot.tensor.device == device]))

    def show(self, flat: torch.Tensor) -> None:
        for part in self._parts:
            part.show(flat)

    def settle(self) -> None:
        for part in self._parts:
            part.settle()

    def changed(self, flat: torch.Tensor) -> list[int]:
        return [index for part in self._parts for index in part.changed(flat)]

    def hold(self) -> None:
        for part in self._parts:
            part.hold()

    def restore(self, flat: torch.Tensor) -> None:
        for part in self._parts:
            part.restore(flat)

    def check(self) -> None:
        for part in self._parts:
            part.check()

    def release(self) -> None:
        for part in reversed(self._parts):  # memory is unpinned when nothing is under way any more
            part.release()


def copiers_for(pieces: list[Piece]) -> int:
    """How many threads should copy what shards have published.

    Beside a model on the CPU there is no core to spare; beside one on a device, whose next parameters are on their way
    while it computes, one thread alone may be slower than the device is.
    """
    on_cpu = any(piece.tensor.device.type == "cpu" for piece in pieces)
    large = sum(piece.size for piece in pieces) > 4 << 20
    return 0 if on_cpu or not large else min(4, (os.cpu_count() or 1) // 4)


def check_memory(slots: list[Slot], where: list[int]) -> None:
    """Raises if a slot's tensor is not in the memory that it was given."""
    for slot, address in zip(slots, where):
        if slot.tensor.data_ptr() != address:
            raise RuntimeError(f"parameter '{slot.name}' has been given other memory since the run was joined (by "
                               "model.to(), .half() or an assignment to .data), so it no longer follows the run. "
                               "Build, load and move the model first, then join.")


def _can_be_view_of_the_runs(slot: Slot) -> bool:
    tensor = slot.tensor
    plain = tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous()
    # Running statistics change during the forward pass, and the run's buffer must not be written to.
    return plain and not slot.averaged
