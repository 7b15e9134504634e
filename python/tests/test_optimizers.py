"""Optimisers of torch, as the shards are announced of them; and what is refused, with a reason."""

import pytest
import torch
from torch import nn

import fake_session
from drover import JoinError
from drover.optimizers import check_supported, settings_now


def layers():
    return nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))


@pytest.mark.parametrize("make, settings", [
    (lambda p: torch.optim.SGD(p, lr=0.5), {"kind": "sgd", "rate": 0.5, "momentum": 0.0, "weight_decay": 0.0}),
    (lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.9, weight_decay=0.1),
     {"kind": "momentum", "rate": 0.5, "momentum": 0.9, "weight_decay": 0.1}),
    (lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.9, nesterov=True),
     {"kind": "nesterov", "rate": 0.5, "momentum": 0.9, "weight_decay": 0.0}),
    (lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.95), eps=1e-6),
     {"kind": "adam", "rate": 0.01, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-6, "weight_decay": 0.0}),
    (lambda p: torch.optim.AdamW(p, lr=0.01),
     {"kind": "adamw", "rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01}),
    (lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9, momentum=0.5),
     {"kind": "rmsprop", "rate": 0.01, "rms_decay": 0.9, "rms_momentum": 0.5, "epsilon": 1e-8, "weight_decay": 0.0}),
])
def test_settings(make, settings):
    assert settings_now([make(layers().parameters())]) == [settings]


@pytest.mark.parametrize("make, why", [
    (lambda p: torch.optim.Adagrad(p), "Adagrad is not"),
    (lambda p: torch.optim.SGD(p, lr=1, momentum=0.9, dampening=0.1), "dampening=0.1"),
    (lambda p: torch.optim.SGD(p, lr=1, maximize=True), "maximize=True"),
    (lambda p: torch.optim.Adam(p, amsgrad=True), "amsgrad=True"),
    (lambda p: torch.optim.RMSprop(p, centered=True), "centered=True"),
])
def test_refusals_say_what_is_supported(make, why):
    with pytest.raises(JoinError, match=f"{why}.*Supported are SGD"):
        check_supported(make(list(layers().parameters())))


def test_groups_have_their_own_settings():
    model = layers()
    optimizer = torch.optim.SGD([{"params": model[0].parameters()},
                                 {"params": model[1].parameters(), "lr": 0.05, "weight_decay": 0.2}], lr=0.1,
                                weight_decay=0.1)
    run, session = fake_session.join(model, optimizer)
    with run:
        assert [piece.group for piece in session.pieces] == [1, 1, 2, 2]
        before = run.state_dict()
        model(torch.ones(1, 2)).sum().backward()
        gradients = [p.grad.clone() for p in model.parameters()]
        optimizer.step()
        for i, (value, p) in enumerate(zip(before.values(), model.parameters())):
            rate, decay = (0.1, 0.1) if i < 2 else (0.05, 0.2)
            torch.testing.assert_close(p.data, value - rate * (gradients[i] + decay * value))


@pytest.mark.parametrize("break_it, why", [
    (lambda m: (m, [torch.optim.SGD(m.parameters(), lr=1), torch.optim.SGD(m[0].parameters(), lr=1)]),
     "is in two optimizers"),
    (lambda m: (m.requires_grad_(False), torch.optim.SGD(m.parameters(), lr=1)), "nothing to train"),
    (lambda m: (nn.DataParallel(m), torch.optim.SGD(m.parameters(), lr=1)), "wrapped in DataParallel"),
])
def test_models_that_cannot_be_joined(break_it, why):
    with pytest.raises(JoinError, match=why):
        fake_session.join(*break_it(layers()))


def test_parameters_of_no_optimizer_and_of_no_model():
    model, scale = layers(), nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([*model[0].parameters(), scale], lr=0.1)
    run, session = fake_session.join(model, optimizer)
    assert [piece.name for piece in session.pieces] == ["0.weight", "0.bias", "optimizer.0.0"]
    before = model[1].weight.detach().clone()
    with run:
        (model(torch.ones(1, 2)).sum() * scale.sum()).backward()
        optimizer.step()
        assert torch.equal(model[1].weight, before) and not torch.equal(scale, torch.ones(2))
