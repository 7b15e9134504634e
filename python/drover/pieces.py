"""Which tensors belong to a run.

Trained by the run: the parameters of the optimizers, each once, however many modules share it. Averaged by the run:
the running statistics of normalisation layers. All else (frozen parameters, other buffers) stays with the script; it
must be equal in all workers when they join.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator, Sequence

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from . import optimizers as reading
from .errors import JoinError


@dataclasses.dataclass(frozen=True)
class Piece:
    """One tensor of a run. `group`: which of all parameter groups it is in, from 1. `owner`: of which optimizer."""

    name: str
    tensor: torch.Tensor
    averaged: bool = False
    group: int = 0
    owner: int = -1

    @property
    def size(self) -> int:
        return self.tensor.numel()


class Pieces:
    """The pieces of the models, in the order in which modules were made, and a watch over them staying so."""

    def __init__(self, models: Sequence[nn.Module], optimizers: Sequence[torch.optim.Optimizer]) -> None:
        self._models = models
        self._optimizers = optimizers
        for model in models:
            _refuse_what_cannot_be_joined(model)
        for optimizer in optimizers:
            reading.check_supported(optimizer)
        self.trained = [
            Piece(name, parameter, group=group, owner=owner) for name, parameter, group, owner in self._trained()
        ]
        self.averaged = [Piece(name, buffer, averaged=True) for name, buffer in _running_statistics(models)]
        self._known = {id(piece.tensor) for piece in self.trained}
        self._groups = [len(optimizer.param_groups) for optimizer in optimizers]
        if not any(piece.tensor.requires_grad for piece in self.trained):
            raise JoinError("the optimizer has no parameter that requires a gradient: there is nothing to train.")

    @property
    def all(self) -> list[Piece]:
        return self.trained + self.averaged

    def digest_of_the_rest(self) -> str:
        """Of all parameters and buffers that the run neither trains nor averages: equal in all workers, or wrong."""
        known = self._known | {id(piece.tensor) for piece in self.averaged}
        digest = 0
        for name, tensor in _state(self._models):
            if id(tensor) not in known and not name.endswith("num_batches_tracked") and not tensor.is_sparse:
                values = tensor.detach().to("cpu").contiguous().reshape(-1).view(torch.uint8).numpy()
                digest = zlib.crc32(values, zlib.crc32(name.encode(), digest))
        return f"{digest:08x}"

    def check(self) -> None:
        """Raises RuntimeError if an optimizer has a parameter that the run does not know, or does what it cannot do."""
        for optimizer, groups in zip(self._optimizers, self._groups):
            reading.check_supported(optimizer, RuntimeError)
            if len(optimizer.param_groups) != groups:
                raise RuntimeError(
                    "a parameter group was added to the optimizer after the run was joined, so no other "
                    "worker knows of it. Add it before joining; its lr may be 0 for a while."
                )
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if id(parameter) not in self._known and parameter.numel() > 0:
                        raise RuntimeError(
                            f"a parameter of shape {tuple(parameter.shape)} was added or replaced in the "
                            "optimizer after the run was joined, so no other worker knows of it. Build, "
                            "load and move the model first, then join."
                        )
        for name, parameter in _named_parameters(self._models):
            if id(parameter) not in self._known and parameter.requires_grad and parameter.grad is not None:
                self._refuse_if_new(name, parameter)

    def _refuse_if_new(self, name: str, parameter: torch.Tensor) -> None:
        if id(parameter) not in self._untrained:
            raise RuntimeError(
                f"parameter '{name}' was added or replaced after the run was joined, so no other worker "
                "knows of it. Build, load and move the model first, then join."
            )

    def _trained(self) -> Iterator[tuple[str, torch.Tensor, int, int]]:
        places: dict[int, tuple[int, int]] = {}
        extra: list[tuple[str, torch.Tensor]] = []
        named = list(_named_parameters(self._models))
        in_models = {id(parameter) for _, parameter in named}
        group_number = 0
        for owner, optimizer in enumerate(self._optimizers):
            for group in optimizer.param_groups:
                group_number += 1
                for parameter in group["params"]:
                    if places.get(id(parameter), (0, owner))[1] != owner:
                        raise JoinError(
                            f"a parameter of shape {tuple(parameter.shape)} is in two optimizers. Give each "
                            "parameter to one of them."
                        )
                    if id(parameter) not in places and id(parameter) not in in_models:
                        extra.append((f"optimizer.{owner}.{len(extra)}", parameter))
                    places[id(parameter)] = (group_number, owner)
        self._untrained = {id(parameter) for _, parameter in named if id(parameter) not in places}
        for name, parameter in named + extra:
            if id(parameter) in places and parameter.numel() > 0:
                _refuse_what_cannot_be_trained(name, parameter)
                group, owner = places[id(parameter)]
                yield name, parameter, group, owner


def _prefixes(models: Sequence[nn.Module]) -> Iterator[tuple[str, nn.Module]]:
    for i, model in enumerate(models):
        yield (f"{i}." if len(models) > 1 else ""), model


def _named_parameters(models: Sequence[nn.Module]) -> Iterator[tuple[str, nn.Parameter]]:
    seen: set[int] = set()
    for prefix, model in _prefixes(models):
        for name, parameter in model.named_parameters():
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield prefix + name, parameter


def _state(models: Sequence[nn.Module]) -> Iterator[tuple[str, torch.Tensor]]:
    yield from _named_parameters(models)
    for prefix, model in _prefixes(models):
        for name, buffer in model.named_buffers():
            yield prefix + name, buffer


def _running_statistics(models: Sequence[nn.Module]) -> Iterator[tuple[str, torch.Tensor]]:
    seen: set[int] = set()
    for prefix, model in _prefixes(models):
        for path, module in model.named_modules():
            if isinstance(module, _NormBase):
                for name in ("running_mean", "running_var"):
                    buffer = getattr(module, name, None)
                    if buffer is not None and id(buffer) not in seen:
                        seen.add(id(buffer))
                        yield prefix + (f"{path}.{name}" if path else name), buffer


def _refuse_what_cannot_be_trained(name: str, parameter: torch.Tensor) -> None:
    if not parameter.is_floating_point():
        raise JoinError(
            f"parameter '{name}' is of type {parameter.dtype}; only real floating point numbers can be " "trained here."
        )
    if parameter.dtype == torch.float64:
        raise JoinError(
            f"parameter '{name}' is of type float64. The shards keep float32, so its precision would be "
            "lost. Use model.float() before the optimizer is made, or torch.set_default_dtype(torch.float32)."
        )


def _refuse_what_cannot_be_joined(model: nn.Module) -> None:
    if isinstance(model, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
        raise JoinError(
            f"the model is wrapped in {type(model).__name__}, which would average gradients as well. Give "
            "join() the module inside it (model.module), and leave the wrapper out."
        )
    for name, parameter in model.named_parameters():
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            raise JoinError(
                f"parameter '{name}' has no shape yet (a lazy module). Run the model forward once, then " "join."
            )
