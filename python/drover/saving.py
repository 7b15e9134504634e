"""Writing a model to a file that is whole or not there."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn


def own_state(model: nn.Module) -> dict[str, Any]:
    """The model's state_dict with tensors of its own.

    It does not change with the run, and saving one of them does not save the run's whole buffer.
    """
    return {name: value.detach().clone() if isinstance(value, torch.Tensor) else value
            for name, value in model.state_dict().items()}


def write_whole(state: Any, path: str | os.PathLike[str]) -> None:
    """torch.save() into a file beside `path`, which is then renamed: no reader ever sees half a file."""
    path = os.fspath(path)
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise
