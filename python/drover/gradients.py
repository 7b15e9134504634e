"""Gradients on their way to the shards, when optimizer.step() or clipping asks for them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from .parameters import Slot
from .staging import Staging

# Says that a tensor is in the run's buffer. The answer is whether the step is still open.
Announce = Callable[[int, int], bool]


class Sink(Protocol):
    """Takes tensors, and says so to the run when they are in its buffer."""

    def begin(self, samples: int) -> None: ...
    def put(self, index: int, slot: Slot, values: torch.Tensor, announce: Announce) -> bool: ...
    def drain(self) -> bool: ...
    def discard(self) -> None: ...
    def close(self) -> None: ...


class Direct:
    """A sink for tensors that can be copied into the run's buffer at once."""

    def __init__(self, flat: torch.Tensor) -> None:
        self._flat = flat
        self._wanted = True
        self._samples = 0

    def begin(self, samples: int) -> None:
        self._wanted, self._samples = True, samples

    def put(self, index: int, slot: Slot, values: torch.Tensor, announce: Announce) -> bool:
        if self._wanted:
            slot.of(self._flat).copy_(values)
            self._wanted = announce(index, self._samples)
        return self._wanted

    def drain(self) -> bool:
        return self._wanted

    def discard(self) -> None:
        pass

    def close(self) -> None:
        pass


class Gradients:
    """What a step pushes, each tensor by the sink of its device."""

    def __init__(self, slots: list[Slot], sinks: list[Sink], sink_of: list[Sink]) -> None:
        """`sink_of[i]` takes the tensor of `slots[i]`."""
        self._slots = slots
        self._sinks = sinks
        self._sink_of = sink_of

    def begin(self, samples: int) -> None:
        """What is put from here on has so many samples behind it."""
        for sink in self._sinks:
            sink.begin(samples)

    def put(self, index: int, values: torch.Tensor, announce: Announce) -> bool:
        """Pushes a tensor. False: the step has closed, and the rest is not wanted."""
        if values.is_sparse:
            values = values.to_dense()
        with torch.no_grad():
            return self._sink_of[index].put(index, self._slots[index], values, announce)

    def drain(self) -> bool:
        """Returns when the run knows of all that was put: whether it was all wanted."""
        return all([sink.drain() for sink in self._sinks])

    def discard(self) -> None:
        for sink in self._sinks:
            sink.discard()

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()


def make_sinks(slots: list[Slot], flat: torch.Tensor) -> tuple[list[Sink], list[Sink]]:
    """A sink for each device, and for each slot the sink that takes its gradient."""
    sinks: dict[Any, Sink] = {}

    def sink_for(slot: Slot) -> Sink:
        device = slot.tensor.device if slot.tensor.device.type == "cuda" else None
        if device not in sinks:
            if device is None:
                sinks[device] = Direct(flat)
            else:
                from .cuda import DeviceLane

                sinks[device] = Staging(DeviceLane([other for other in slots if other.tensor.device == device], flat))
        return sinks[device]

    sink_of = [sink_for(slot) for slot in slots]
    return list(sinks.values()), sink_of


def forget_broken_backward() -> None:
    """Frees what remains of a backward pass that ended by an exception.

    Its unfinished tasks stay in a queue of this thread, and hold on to the run's buffers, until the next backward pass
    throws them out. If there is none, that happens after Python has ended, and then freeing the buffers waits for ever.
    """
    with torch.enable_grad():
        torch.ones((), requires_grad=True).backward()


@contextlib.contextmanager
def asking_before_layers(call: Callable[[], None]) -> Iterator[None]:
    """Has `call` called before the forward pass of every leaf module.

    The hook is torch's global one, and not the modules' own: modules stay as they are for torch.save and torch.jit.
    """

    def hook(module: nn.Module, inputs: Any) -> None:
        if not module._modules and not _compiling():  # a compiled model is one piece: nothing can be asked inside it
            call()

    handle = register_module_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


class BackwardHooks:
    """Have `call` called after each gradient of a backward pass, while `active`."""

    def __init__(self, slots: list[Slot], call: Callable[[], None]) -> None:
        self.active = False

        def hook() -> None:
            if self.active:
                call()

        self._handles = [_after_accumulation(slot.tensor, hook) for slot in slots
                         if not slot.averaged and slot.tensor.requires_grad]

    def remove(self) -> None:
        for handle, *_ in self._handles:
            handle.remove()
        self._handles = []


def _after_accumulation(parameter: torch.Tensor, call: Callable[[], None]) -> tuple[Any, ...]:
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return (parameter.register_post_accumulate_grad_hook(lambda _: call()),)
    # Before torch 2.1: behind the graph's node that accumulates. It is made when asked for, and must be kept alive.
    with torch.enable_grad():
        view = parameter.expand_as(parameter)
    node = view.grad_fn.next_functions[0][0]
    return node.register_hook(lambda *_: call()), node


_compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
