"""torch optimisers, read as settings for the shards, which do the update in their place.

Shards hold the momentum and the squares of gradients, one copy for all workers. They know the formulas of
``torch.optim`` for SGD, Adam, AdamW and RMSprop. Anything else is refused here, by name. Settings are read again at
every step, for each parameter group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .errors import JoinError

SUPPORTED = "Supported are SGD (momentum, nesterov, weight_decay), Adam, AdamW and RMSprop (momentum, weight_decay)."

Group = dict[str, Any]

_MUST_BE_OFF = ("amsgrad", "maximize", "centered", "dampening")


def check_supported(optimizer: torch.optim.Optimizer, error: type[Exception] = JoinError) -> None:
    """Raises `error` if shards cannot do what the optimizer does now, and says what they can do."""
    name = type(optimizer).__name__
    if type(optimizer) not in _KINDS:
        raise error(f"{name} is not an optimiser that the shards know. {SUPPORTED}")
    for group in optimizer.param_groups:
        for option in _MUST_BE_OFF:
            if group.get(option):
                raise error(f"{name} with {option}={group[option]} is not supported. {SUPPORTED}")
        if type(optimizer) is torch.optim.Adam and group.get("decoupled_weight_decay"):
            raise error(f"Adam with decoupled_weight_decay is AdamW: use torch.optim.AdamW. {SUPPORTED}")
    if any(optimizer.state.values()):
        raise error(
            f"this {name} has momentum or other state of earlier steps, which the shards cannot take over. Join "
            "before the first step. To continue a run with its momentum use `--checkpoint` and `--resume`; "
            "to continue without it, call `optimizer.state.clear()`."
        )


def settings_of(optimizer: torch.optim.Optimizer, group: Group) -> dict[str, Any]:
    """One parameter group as it is now, as the shards understand it."""
    settings = _KINDS[type(optimizer)](group)
    settings["rate"] = float(group["lr"])
    settings["weight_decay"] = float(group["weight_decay"])
    return settings


def settings_now(optimizers: list[torch.optim.Optimizer]) -> list[dict[str, Any]]:
    """All groups of all optimizers, in order."""
    return [settings_of(optimizer, group) for optimizer in optimizers for group in optimizer.param_groups]


def _sgd(group: Group) -> dict[str, Any]:
    momentum = float(group["momentum"])
    kind = "nesterov" if group["nesterov"] else "momentum" if momentum else "sgd"
    return {"kind": kind, "momentum": momentum}


def _adam(kind: str) -> Callable[[Group], dict[str, Any]]:
    def read(group: Group) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        return {"kind": kind, "beta1": float(beta1), "beta2": float(beta2), "epsilon": float(group["eps"])}

    return read


def _rmsprop(group: Group) -> dict[str, Any]:
    return {
        "kind": "rmsprop",
        "rms_decay": float(group["alpha"]),
        "rms_momentum": float(group["momentum"]),
        "epsilon": float(group["eps"]),
    }


_KINDS: dict[type[torch.optim.Optimizer], Callable[[Group], dict[str, Any]]] = {
    torch.optim.SGD: _sgd,
    torch.optim.Adam: _adam("adam"),
    torch.optim.AdamW: _adam("adamw"),
    torch.optim.RMSprop: _rmsprop,
}
