"""optimizer.step(), replaced on one optimiser for as long as a run lasts: the shards do the update."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

# What learning rate schedulers of different versions of torch mark a step() with that they have wrapped to see it called.
_MARKS = ("_with_counter", "_wrapped_by_lr_sched")


class ReplacedStep:
    """Has `update` called instead of the optimiser's own arithmetic, and puts the old step() back when it is told to."""

    def __init__(self, optimizer: torch.optim.Optimizer, update: Callable[[], None]) -> None:
        self._optimizer = optimizer
        self._before = vars(optimizer).get("step")
        # Fused optimisers unscale gradients themselves; here a GradScaler must do it before they are pushed.
        self._scaling = vars(optimizer).get("_step_supports_amp_scaling")
        optimizer._step_supports_amp_scaling = False
        marks = [mark for mark in _MARKS if hasattr(optimizer.step, mark)]

        def step(self: torch.optim.Optimizer, closure: Callable[[], Any] | None = None) -> Any:
            """Pushes what is left of the gradient. The parameters have their new values in the next step."""
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            if marks:
                self._step_count = getattr(self, "_step_count", 0) + 1
                self._opt_called = True
            update()
            return loss

        for mark in marks:
            setattr(step, mark, True)
        optimizer.step = types.MethodType(step, optimizer)  # a method, so that later schedulers can wrap it

    def put_back(self) -> None:
        _restore(self._optimizer, "step", self._before)
        _restore(self._optimizer, "_step_supports_amp_scaling", self._scaling)


def _restore(owner: Any, name: str, value: Any) -> None:
    if value is None:
        vars(owner).pop(name, None)
    else:
        setattr(owner, name, value)
