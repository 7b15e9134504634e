"""What the scripts of test_launch.py share: a small task, and a place for results."""

import os
import pathlib

import torch
from torch import nn

OUT = pathlib.Path(os.environ.get("TEST_OUT", "."))
SIZE = 64

torch.set_num_threads(1)


def data():
    """`SIZE` samples of 5 numbers in 3 classes, always the same."""
    source = torch.Generator().manual_seed(5)
    x = torch.randn(SIZE, 5, generator=source)
    return x, (x @ torch.randn(5, 3, generator=source)).argmax(1)


def make_model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))


def make_optimizer(kind, model):
    parameters = model.parameters()
    if kind == "groups":
        groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.05, "weight_decay": 0.1}]
        return torch.optim.SGD(groups, lr=0.2, momentum=0.9, weight_decay=0.01)
    return {
        "momentum": lambda: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
        "nesterov": lambda: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True),
        "adam": lambda: torch.optim.Adam(parameters, lr=0.01, weight_decay=0.01),
        "adamw": lambda: torch.optim.AdamW(parameters, lr=0.01),
        "rmsprop": lambda: torch.optim.RMSprop(parameters, lr=0.01, momentum=0.5),
    }[kind]()


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x).float(), y)


def keep(run, model, **more):
    """Leaves a worker's results for the test."""
    torch.save({"state": model.state_dict(), "outcome": run.outcome, "step": run.step_number, **more},
               OUT / f"worker-{run.rank}.pt")
