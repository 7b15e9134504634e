"""Parameters and gradients on CUDA devices: few, large, asynchronous copies to and from pinned host memory."""

from __future__ import annotations

from typing import Any

import torch

from .parameters import Placement, Slot, check_memory
from .staging import Event


class Pinned(Placement):
    """Host buffers of a run, pinned in place, so that copies run beside computation.

    Where pinning is refused (a limit on locked memory) copies still work, only slower.
    """

    def __init__(self, buffers: list[torch.Tensor]) -> None:
        self._pointers: list[int] = []
        for buffer in buffers:
            size = buffer.numel() * buffer.element_size()
            if size and _succeeded(torch.cuda.cudart().cudaHostRegister(buffer.data_ptr(), size, 0)):
                self._pointers.append(buffer.data_ptr())

    def show(self, flat: torch.Tensor) -> None:
        pass

    def release(self) -> None:
        torch.cuda.synchronize()
        for pointer in self._pointers:
            torch.cuda.cudart().cudaHostUnregister(pointer)
        self._pointers.clear()


class OnDevice(Placement):
    """Parameters of one device: views of one flat buffer there for each type, filled by a single copy."""

    def __init__(self, slots: list[Slot]) -> None:
        self._slots = slots
        self._first = min(slot.first for slot in slots)
        self._last = max(slot.last for slot in slots)
        self._device = slots[0].tensor.device
        # Other types than float32 are converted on the device.
        types = {torch.float32} | {slot.tensor.dtype for slot in slots}
        self._flats = {kind: torch.zeros(self._last - self._first, dtype=kind, device=self._device) for kind in types}
        self._copied = torch.cuda.Event()
        self._held: dict[torch.dtype, torch.Tensor] = {}
        self._shown_digest = 0
        # Running statistics come last, and change in every forward pass.
        self._trained = max((slot.last - self._first for slot in slots if not slot.averaged), default=0)
        for slot in slots:
            flat = self._flats[slot.tensor.dtype]
            slot.tensor.data = flat[slot.first - self._first : slot.last - self._first].view(slot.tensor.shape)
        self._where = [slot.tensor.data_ptr() for slot in slots]

    def show(self, flat: torch.Tensor) -> None:
        arrived = self._flats[torch.float32]
        with torch.cuda.device(self._device), torch.no_grad():
            arrived.copy_(flat[self._first : self._last], non_blocking=True)
            self._copied.record()
            for kind, other in self._flats.items():
                if kind != torch.float32:
                    other.copy_(arrived)
        self._shown_digest = self._digest()

    def settle(self) -> None:
        self._copied.synchronize()

    def hold(self) -> None:
        # The run's buffer may be on its way to the next step already.
        self._held = {kind: flat.clone() for kind, flat in self._flats.items()}

    def restore(self, flat: torch.Tensor) -> None:
        for kind, kept in self._held.items():
            self._flats[kind].copy_(kept)
        self._held = {}
        self._shown_digest = self._digest()

    def changed(self, flat: torch.Tensor) -> list[int]:
        # One number for all, and only if it differs one for each tensor.
        if self._digest() == self._shown_digest:
            return []
        changed = []
        for slot in self._slots:
            if slot.averaged:
                continue
            expected = slot.of(flat).to(self._device).to(slot.tensor.dtype)
            if not torch.equal(slot.tensor.data, expected):
                changed.append(slot.index)
        return changed

    def _digest(self) -> int:
        """Of the bits of all trained parameters of this device, on the device."""
        with torch.cuda.device(self._device):
            total = 0
            for kind, flat in self._flats.items():
                bits = flat[: self._trained].view(torch.int32 if kind == torch.float32 else torch.int16)
                total += int(bits.sum(dtype=torch.int64).item())
            return total

    def check(self) -> None:
        check_memory(self._slots, self._where)

    def release(self) -> None:
        for slot in self._slots:
            slot.tensor.data = slot.tensor.data.clone()
        self._where = []


class DeviceLane:
    """A device's gradients, gathered there in the layout of the host's buffer, and copied to it on another stream."""

    def __init__(self, slots: list[Slot], host: torch.Tensor) -> None:
        self._host = host
        self._first = min(slot.first for slot in slots)
        self._device = slots[0].tensor.device
        size = max(slot.last for slot in slots) - self._first
        self._gathered = torch.zeros(size, dtype=torch.float32, device=self._device)
        self._stream = torch.cuda.Stream(self._device)

    def keep(self, slot: Slot, gradient: torch.Tensor) -> None:
        # On the stream that computed the gradient, whose memory may be used for something else as soon as this returns.
        part = self._gathered[slot.first - self._first : slot.last - self._first]
        part.view(gradient.shape).copy_(gradient)

    def send(self, stretches: list[tuple[int, int]]) -> Event:
        with torch.cuda.device(self._device):
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                for first, last in stretches:
                    gathered = self._gathered[first - self._first : last - self._first]
                    self._host[first:last].copy_(gathered, non_blocking=True)
                arrived = torch.cuda.Event(blocking=True)  # waits without keeping a core busy
                arrived.record()
        return arrived


def _succeeded(error: Any) -> bool:
    return int(error) == 0
