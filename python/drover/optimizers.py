"""A torch optimiser, read as settings for the shards, which do its work in its place.

Shards hold the momentum and the squares of gradients, one copy for all workers. They know the formulas of
``torch.optim`` for SGD, Adam, AdamW and RMSprop. Anything else is refused here, by name, rather than trained wrongly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from .errors import JoinError

SUPPORTED = (
    "Supported are SGD (momentum, nesterov, weight_decay), Adam, AdamW and RMSprop (momentum, weight_decay), "
    "with parameter groups that differ in lr and weight_decay only."
)

Group = dict[str, Any]

_MUST_AGREE = ("momentum", "nesterov", "betas", "eps", "alpha")
_MUST_BE_OFF = ("amsgrad", "maximize", "centered", "dampening")


class Rates:
    """The learning rate of the first group, and how many times as high every other group's is.

    The factors are fixed when a run is joined; schedulers may change all rates together.
    """

    def __init__(self, groups: list[Group]) -> None:
        rates = [float(group["lr"]) for group in groups]
        if rates[0] == 0:  # a warm-up from zero: schedulers remember where it leads
            rates = [float(group.get("initial_lr", group["lr"])) for group in groups]
        if rates[0] == 0 and any(rates):
            raise JoinError("the learning rate of the first parameter group is 0 and that of another is not. Put a group "
                            "with a learning rate first, or freeze the parameters (requires_grad_(False)).")
        self.factors = [rate / rates[0] if rates[0] else 1.0 for rate in rates]

    def read(self, groups: list[Group]) -> float:
        """The first group's rate now. Raises ValueError if another has gone its own way since."""
        first = float(groups[0]["lr"])
        for i, (group, factor) in enumerate(zip(groups, self.factors)):
            rate = float(group["lr"])
            if not math.isclose(rate, first * factor, rel_tol=1e-6, abs_tol=1e-12):
                raise ValueError(
                    f"parameter group {i} has a learning rate of {rate:g}, and {first * factor:g} was expected: {factor:g} "
                    f"times that of group 0, as when the run was joined. Schedulers may change all groups by one factor only.")
        return first


def settings_of(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The optimiser as the shards understand it. Raises JoinError, saying what is not supported and what is."""
    groups = optimizer.param_groups
    _refuse_what_is_unknown(optimizer, groups)
    settings = _KINDS[type(optimizer)](groups[0])
    settings["rate"] = float(groups[0]["lr"])
    settings["weight_decay"] = most_decay(groups)
    return settings


def most_decay(groups: list[Group]) -> float:
    """The weight decay that groups' own are told as fractions of."""
    return max(float(group["weight_decay"]) for group in groups)


def decay_factors(groups: list[Group]) -> list[float]:
    """Each group's weight decay as a fraction of the greatest."""
    most = most_decay(groups)
    return [float(group["weight_decay"]) / most if most else 1.0 for group in groups]


def _refuse_what_is_unknown(optimizer: torch.optim.Optimizer, groups: list[Group]) -> None:
    name = type(optimizer).__name__
    if type(optimizer) not in _KINDS:
        raise JoinError(f"{name} is not an optimiser that the shards know. {SUPPORTED}")
    for i, group in enumerate(groups):
        for option in _MUST_BE_OFF:
            if group.get(option):
                raise JoinError(f"{name} with {option}={group[option]} is not supported. {SUPPORTED}")
        if type(optimizer) is torch.optim.Adam and group.get("decoupled_weight_decay"):
            raise JoinError(f"Adam with decoupled_weight_decay is AdamW: use torch.optim.AdamW. {SUPPORTED}")
        for option in _MUST_AGREE:
            if group.get(option) != groups[0].get(option):
                raise JoinError(f"parameter group {i} of {name} has {option}={group[option]}, and group 0 has "
                                f"{groups[0].get(option)}. {SUPPORTED}")


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
    return {"kind": "rmsprop", "rms_decay": float(group["alpha"]), "rms_momentum": float(group["momentum"]),
            "epsilon": float(group["eps"])}


_KINDS: dict[type[torch.optim.Optimizer], Callable[[Group], dict[str, Any]]] = {
    torch.optim.SGD: _sgd,
    torch.optim.Adam: _adam("adam"),
    torch.optim.AdamW: _adam("adamw"),
    torch.optim.RMSprop: _rmsprop,
}
