"""torch.nn.utils.clip_grad_norm_, for the parameters of a run.

Between backward() and optimizer.step() a worker has its own gradient, and clipping means the mean over all workers, as
in DistributedDataParallel. So torch's function is redirected to the run for as long as one is joined. Its code is
replaced, and not its name in the module, because scripts may have imported it already.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.nn.utils import clip_grad


class Clipper(Protocol):
    """A run that takes over clipping."""

    def clip_all_grad_norm(
        self, parameters: list[torch.Tensor], max_norm: float, norm_type: float, error_if_nonfinite: bool
    ) -> torch.Tensor | None:
        ...

    def refuse_clip_by_value(self, parameters: list[torch.Tensor]) -> None:
        ...


# The run that is joined, if any. One process has one.
_run: Clipper | None = None
_originals: dict[str, Callable[..., Any]] = {}


def redirect(run: Clipper) -> None:
    """From here on torch's functions ask the run."""
    global _run
    _run = run
    if not _originals:
        _originals["norm"] = _replace(clip_grad.clip_grad_norm_, _norm_stand_in)
        _originals["value"] = _replace(clip_grad.clip_grad_value_, _value_stand_in)


def restore(run: Clipper) -> None:
    """The run is left: torch's functions are their own again."""
    global _run
    if _run is run:
        _run = None


def clip_grad_norm(
    parameters: Any, max_norm: float, norm_type: float, error_if_nonfinite: bool, **options: Any
) -> torch.Tensor:
    """What torch.nn.utils.clip_grad_norm_ does while a run is joined."""
    tensors = _listed(parameters)
    if _run is not None:
        norm = _run.clip_all_grad_norm(tensors, float(max_norm), float(norm_type), error_if_nonfinite)
        if norm is not None:
            return norm
    return _originals["norm"](tensors, max_norm, norm_type, error_if_nonfinite, **options)


def clip_grad_value(parameters: Any, clip_value: float, **options: Any) -> None:
    """What torch.nn.utils.clip_grad_value_ does while a run is joined."""
    tensors = _listed(parameters)
    if _run is not None:
        _run.refuse_clip_by_value(tensors)
    _originals["value"](tensors, clip_value, **options)


def _listed(parameters: Any) -> list[torch.Tensor]:
    return [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)


# type: ignore[no-untyped-def]
def _norm_stand_in(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    import drover.clipping

    options = {} if foreach is None else {"foreach": foreach}
    return drover.clipping.clip_grad_norm(parameters, max_norm, norm_type, error_if_nonfinite, **options)


def _value_stand_in(parameters, clip_value, foreach=None):  # type: ignore[no-untyped-def]
    import drover.clipping

    options = {} if foreach is None else {"foreach": foreach}
    return drover.clipping.clip_grad_value(parameters, clip_value, **options)


def _replace(function: Any, stand_in: Any) -> Callable[..., Any]:
    """Gives `function` the code of `stand_in`, and returns what it was."""
    inner = inspect.unwrap(function)
    original = types.FunctionType(
        inner.__code__, inner.__globals__, inner.__name__, inner.__defaults__, inner.__closure__
    )
    original.__kwdefaults__ = inner.__kwdefaults__
    inner.__code__, inner.__defaults__, inner.__kwdefaults__ = stand_in.__code__, stand_in.__defaults__, None
    return original
