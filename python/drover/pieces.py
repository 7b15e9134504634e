"""Which tensors of a model belong to a run.

Trained by the run: the parameters that require a gradient, each once, however many modules share it. Averaged by the run: the running
statistics of normalisation layers. All else (frozen parameters, other buffers) stays with the script, untouched.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from . import optimizers
from .errors import JoinError


@dataclasses.dataclass(frozen=True)
class Piece:
    """One tensor of a run. `rate` and `decay` multiply the run's learning rate and weight decay."""

    name: str
    tensor: torch.Tensor
    averaged: bool = False
    rate: float = 1.0
    decay: float = 1.0

    @property
    def size(self) -> int:
        return self.tensor.numel()


class Pieces:
    """A model's pieces, in the order in which modules were made, and a watch over the model staying so."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        _refuse_what_cannot_be_joined(model)
        self._model = model
        self._optimizer = optimizer
        self.rates = optimizers.Rates(optimizer.param_groups)
        decays = optimizers.decay_factors(optimizer.param_groups)
        group_of = {parameter: i for i, group in enumerate(optimizer.param_groups) for parameter in group["params"]}
        self.trained = [Piece(name, parameter, False, self.rates.factors[group_of[parameter]], decays[group_of[parameter]])
                        for name, parameter in _trainable(model) if _checked(name, parameter, group_of)]
        self.averaged = [Piece(name, buffer, averaged=True) for name, buffer in _running_statistics(model)]
        self._known = {id(piece.tensor) for piece in self.trained}
        if not self.trained:
            raise JoinError("the model has no parameter that requires a gradient: there is nothing to train.")
        self.check()

    @property
    def all(self) -> list[Piece]:
        return self.trained + self.averaged

    def check(self) -> None:
        """Raises if the model or the optimiser has got a parameter that the run does not know."""
        names = {id(parameter): name for name, parameter in _trainable(self._model)}
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad and id(parameter) not in names:
                    raise JoinError(f"the optimiser has a parameter of shape {tuple(parameter.shape)} that is not in the model. "
                                    "Give join() a module that holds every module with parameters, for example "
                                    "torch.nn.ModuleList([model, criterion]).")
        for parameter, name in names.items():
            if parameter not in self._known:
                raise RuntimeError(f"parameter '{name}' was added, replaced or unfrozen after the run was joined, so no other worker "
                                   "knows of it. Build, load and move the model first, then join.")


def _trainable(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.numel() > 0:
            yield name, parameter


def _running_statistics(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for path, module in model.named_modules():
        if isinstance(module, _NormBase):
            for name in ("running_mean", "running_var"):
                buffer = getattr(module, name, None)
                if buffer is not None:
                    yield f"{path}.{name}" if path else name, buffer


def _checked(name: str, parameter: nn.Parameter, group_of: dict[torch.Tensor, int]) -> bool:
    if parameter not in group_of:
        raise JoinError(f"parameter '{name}' requires a gradient but is not in the optimiser, so it would never be trained. Add it to "
                        "the optimiser, or freeze it with requires_grad_(False).")
    if not parameter.is_floating_point():
        raise JoinError(f"parameter '{name}' is of type {parameter.dtype}; only floating point ones can be trained here.")
    return True


def _refuse_what_cannot_be_joined(model: nn.Module) -> None:
    if isinstance(model, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
        raise JoinError(f"the model is wrapped in {type(model).__name__}, which would average gradients as well. Give join() the module "
                        "inside it (model.module), and leave the wrapper out.")
    for name, parameter in model.named_parameters():
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            raise JoinError(f"parameter '{name}' has no shape yet (a lazy module). Run the model forward once, then join.")
