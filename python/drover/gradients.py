"""Gradients leave for the shards while the backward pass is still computing others.

A hook behind each parameter copies its gradient into the run's buffer as soon as it is complete, and says that it is
there. The answer may be that the step has closed meanwhile; then the hook raises `Late`, which ends the backward
pass. Hooks before the leaf modules do the same for the forward pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import nn

from .errors import Late
from .parameters import Slot
from .staging import Staging


class Sink(Protocol):
    """Takes gradients, and tells the run when they are in its buffer."""

    def begin(self, samples: int) -> None: ...
    def put(self, index: int, slot: Slot, gradient: torch.Tensor | None) -> bool: ...
    def drain(self) -> bool: ...
    def discard(self) -> None: ...
    def close(self) -> None: ...


class Direct:
    """A sink for gradients that can be copied into the run's buffer at once."""

    def __init__(self, flat: torch.Tensor, tensor_ready: Callable[[int, int], bool]) -> None:
        self._flat = flat
        self._tensor_ready = tensor_ready
        self._wanted = True
        self._samples = 0

    def begin(self, samples: int) -> None:
        self._wanted, self._samples = True, samples

    def put(self, index: int, slot: Slot, gradient: torch.Tensor | None) -> bool:
        if self._wanted:
            part = slot.of(self._flat)
            part.zero_() if gradient is None else part.copy_(gradient)
            self._wanted = self._tensor_ready(index, self._samples)
        return self._wanted

    def drain(self) -> bool:
        return self._wanted

    def discard(self) -> None:
        pass

    def close(self) -> None:
        pass


class Gradients:
    """What has been pushed of a step's gradient, and what has not."""

    def __init__(self, slots: list[Slot], sinks: list[Sink], sink_of: list[Sink], overlap: bool,
                 before_first: Callable[[], None]) -> None:
        """`sink_of[i]` takes the gradient of `slots[i]`; `before_first` is called before a step's first one leaves."""
        self._slots = slots
        self._before_first = before_first
        self._sinks = sinks
        self._sink_of = sink_of
        self._overlap = overlap
        self._open = False
        self._held = False
        self._complete = False
        self._pushed: set[int] = set()
        self._hooks: list[_Handles] = []
        if overlap:
            for index, slot in enumerate(slots):
                if not slot.averaged:
                    self._hooks.append(after_accumulation(slot.tensor, lambda i=index: self._accumulated(i)))

    def begin(self, samples: int) -> None:
        self._pushed.clear()
        self._open, self._complete = True, False
        for sink in self._sinks:
            sink.begin(samples)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients are not pushed but accumulate in .grad."""
        before, self._held = self._held, True
        try:
            yield
        finally:
            self._held = before

    def push_rest(self) -> None:
        """Pushes what no hook has pushed. Raises Late; RuntimeError if it was called in this step before."""
        if self._complete:
            raise RuntimeError("optimizer.step() was called twice in one run.step(). Each step is one update: put the "
                               "second into a step of its own, or accumulate gradients with run.no_sync() and call it "
                               "once.")
        if not self._pushed and all(slot.averaged or slot.tensor.grad is None for slot in self._slots):
            return  # torch's optimisers, too, do nothing where there is no gradient
        self._complete = True
        with torch.no_grad():
            for index, slot in enumerate(self._slots):
                if index not in self._pushed:
                    self._push(index, slot.tensor.data if slot.averaged else slot.tensor.grad)

    def finish(self) -> bool:
        """Ends the step. True: a whole gradient is with the run, in time. False: nothing was computed.

        Raises Late.
        """
        if self._pushed and not self._complete:
            self.push_rest()
        if not all([sink.drain() for sink in self._sinks]):
            raise Late("the step closed before this gradient was complete")
        self._open = False
        return self._complete

    def abandon(self) -> None:
        """Ends the step without a gradient."""
        self._open = False
        for slot in self._slots:
            slot.tensor.grad = None
        forget_broken_backward()
        for sink in self._sinks:
            sink.discard()

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()
        for sink in self._sinks:
            sink.close()

    def _accumulated(self, index: int) -> None:
        if not self._open or self._held:
            return
        if index in self._pushed:
            raise RuntimeError(f"parameter '{self._slots[index].name}' got a second gradient in one step. To "
                               "accumulate gradients over several backward passes, put all but the last into "
                               "`with run.no_sync():`, or join with overlap=False.")
        with torch.no_grad():
            self._push(index, self._slots[index].tensor.grad)

    def _push(self, index: int, gradient: torch.Tensor | None) -> None:
        slot = self._slots[index]
        if not self._pushed:
            self._before_first()
        self._pushed.add(index)
        if gradient is not None and gradient.is_sparse:
            gradient = gradient.to_dense()
        wanted = self._sink_of[index].put(index, slot, gradient)
        if self._overlap:
            slot.tensor.grad = None
        if not wanted:
            raise Late("the step closed while this gradient was being computed")


def make_sinks(slots: list[Slot], flat: torch.Tensor,
               tensor_ready: Callable[[int, int], bool]) -> tuple[list[Sink], list[Sink]]:
    """A sink for each device, and for each slot the sink that takes its gradient."""
    sinks: dict[Any, Sink] = {}

    def sink_for(slot: Slot) -> Sink:
        device = slot.tensor.device if slot.tensor.device.type == "cuda" else None
        if device not in sinks:
            if device is None:
                sinks[device] = Direct(flat, tensor_ready)
            else:
                from .cuda import DeviceLane

                lane = DeviceLane([other for other in slots if other.tensor.device == device], flat)
                sinks[device] = Staging(lane, tensor_ready)
        return sinks[device]

    sink_of = [sink_for(slot) for slot in slots]
    return list(sinks.values()), sink_of


def forget_broken_backward() -> None:
    """Frees what a backward pass has left behind that ended by an exception.

    Its unfinished tasks stay in a queue of this thread, and hold on to the run's buffers, until the next backward pass
    throws them out. If there is none, that happens after Python has ended, and then freeing the buffers waits for ever.
    """
    torch.ones((), requires_grad=True).backward()


class _Handles:
    """Several things that keep a hook alive, removed as one."""

    def __init__(self, handle: Any, *kept: Any) -> None:
        self._handle, self._kept = handle, kept

    def remove(self) -> None:
        self._handle.remove()
        self._kept = ()


def after_accumulation(parameter: torch.Tensor, call: Callable[[], None]) -> _Handles:
    """Has `call` called whenever a backward pass has added to the parameter's .grad."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return _Handles(parameter.register_post_accumulate_grad_hook(lambda _: call()))
    # Before torch 2.1: behind the graph's node that accumulates. It is made when asked for, and must be kept alive.
    with torch.enable_grad():
        view = parameter.expand_as(parameter)
    node = view.grad_fn.next_functions[0][0]
    return _Handles(node.register_hook(lambda *_: call()), node)


def before_layers(model: nn.Module, call: Callable[[], None]) -> list[Any]:
    """Has `call` called before the forward pass of every leaf module. Returns handles to remove()."""

    def hook(module: nn.Module, inputs: Any) -> None:
        if not _compiling():  # a compiled model is one piece: nothing can be asked inside it
            call()

    return [module.register_forward_pre_hook(hook) for module in model.modules()
            if not any(True for _ in module.children()) and not isinstance(module, torch.jit.ScriptModule)]


_compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
