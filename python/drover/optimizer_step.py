"""optimizer.step(), replaced on one optimizer for as long as a run lasts: the shards do the update."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

# What learning rate schedulers, of different versions of torch, mark a step() with that they have wrapped.
_MARKS = ("_with_counter", "_wrapped_by_lr_sched")


class ReplacedStep:
    """Has `update` called instead of the optimizer's own arithmetic, until the old step() is put back."""

    def __init__(self, optimizer: torch.optim.Optimizer, update: Callable[[int | None], None]) -> None:
        """`update` is given the number of samples behind the gradient, if the script says it."""
        self._optimizer = optimizer
        self._before = vars(optimizer).get("step")
        # Fused optimizers unscale gradients themselves; here a GradScaler must do it before they are pushed.
        self._scaling = vars(optimizer).get("_step_supports_amp_scaling")
        optimizer._step_supports_amp_scaling = False
        marks = [mark for mark in _MARKS if hasattr(optimizer.step, mark)]

        def step(self: torch.optim.Optimizer, closure: Callable[[], Any] | None = None, *,
                 samples: int | None = None) -> Any:
            """Updates the parameters with the mean gradient of all workers, and returns when they have their values."""
            loss = None
            for hook in getattr(self, "_optimizer_step_pre_hooks", {}).values():
                hook(self, (), {})
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            if marks:
                self._step_count = getattr(self, "_step_count", 0) + 1
                self._opt_called = True
            update(samples)
            for hook in getattr(self, "_optimizer_step_post_hooks", {}).values():
                hook(self, (), {})
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
