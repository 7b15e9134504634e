"""Distributed training that does not wait for slow machines.

A training script becomes a worker of a run with one line before its loop (see ``help(drover.join)``):

    run = drover.join(model, optimizer)
    for x, y in loader:
        ...                                      # zero_grad, forward, backward, optimizer.step(), as they were

and is started with ``drover launch --workers 4 script.py``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import Error, JoinError, Late, RunFailed, RunOver
from .join import join, rank, workers

if TYPE_CHECKING:
    from ._native import __version__
    from .checkpoint import load_checkpoint
    from .plots import plot_run
    from .run import Run
    from .runs import RunData, read_run
    from .tools import fit, policies, replay, simulate

__all__ = ["Error", "JoinError", "Late", "Run", "RunData", "RunFailed", "RunOver", "__version__", "fit", "join",
           "load_checkpoint", "plot_run", "policies", "rank", "read_run", "replay", "simulate", "workers"]

# Loaded when they are used: reading a run file does not need PyTorch, and training does not need matplotlib.
_LATER = {"Run": "run", "RunData": "runs", "read_run": "runs", "replay": "tools", "simulate": "tools", "fit": "tools",
          "policies": "tools", "plot_run": "plots", "load_checkpoint": "checkpoint", "__version__": "_native"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'drover' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
