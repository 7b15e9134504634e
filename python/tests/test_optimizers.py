"""Optimisers of torch, as the shards are told of them; and what is refused, with a reason."""

import pytest
import torch
from torch import nn

import fake_session
from drover import JoinError
from drover.optimizers import settings_of


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
    assert settings_of(make(layers().parameters())) == settings


@pytest.mark.parametrize("make, why", [
    (lambda p: torch.optim.Adagrad(p), "Adagrad is not"),
    (lambda p: torch.optim.SGD(p, lr=1, momentum=0.9, dampening=0.1), "dampening=0.1"),
    (lambda p: torch.optim.SGD(p, lr=1, maximize=True), "maximize=True"),
    (lambda p: torch.optim.Adam(p, amsgrad=True), "amsgrad=True"),
    (lambda p: torch.optim.RMSprop(p, centered=True), "centered=True"),
    (lambda p: torch.optim.SGD([{"params": p[:1]}, {"params": p[1:], "momentum": 0.5}], lr=1),
     "group 1 .*momentum=0.5"),
])
def test_refusals_say_what_is_supported(make, why):
    with pytest.raises(JoinError, match=f"{why}.*Supported are SGD"):
        settings_of(make(list(layers().parameters())))


def test_groups_are_factors_of_the_first():
    model = layers()
    optimizer = torch.optim.SGD([{"params": model[0].parameters()},
                                 {"params": model[1].parameters(), "lr": 0.05, "weight_decay": 0.2}], lr=0.1,
                                weight_decay=0.1)
    run, session = fake_session.join(model, optimizer)
    with run:
        assert session.settings["weight_decay"] == 0.2
        assert [(p.rate, p.decay) for p in session.pieces] == [(1.0, 0.5)] * 2 + [(0.5, 1.0)] * 2
        before = run.state_dict()
        with run.step():
            model(torch.ones(1, 2)).sum().backward()
            gradients = [session.part(i, session.gradient).copy() for i in range(4)]
            optimizer.step()
        with run.step():
            for i, (value, p) in enumerate(zip(before.values(), model.parameters())):
                rate, decay = (0.1, 0.1) if i < 2 else (0.05, 0.2)
                expected = value - rate * (torch.from_numpy(gradients[i]).view_as(value) + decay * value)
                torch.testing.assert_close(p.data, expected)


def test_groups_may_not_go_their_own_ways():
    model = layers()
    optimizer = torch.optim.SGD([{"params": model[0].parameters()}, {"params": model[1].parameters(), "lr": 0.05}], 0.1)
    run, session = fake_session.join(model, optimizer)
    with run:
        optimizer.param_groups[0]["lr"], optimizer.param_groups[1]["lr"] = 0.2, 0.1
        with run.step():
            model(torch.ones(1, 2)).sum().backward()
            assert session.rate == 0.2
        optimizer.param_groups[1]["lr"] = 0.05
        with pytest.raises(ValueError, match="parameter group 1 has a learning rate of 0.05, and 0.1 was expected"):
            with run.step():
                model(torch.ones(1, 2)).sum().backward()
        optimizer.param_groups[1]["lr"] = 0.1
        with run.step():
            model(torch.ones(1, 2)).sum().backward()


def test_a_warm_up_from_zero():
    model = layers()
    optimizer = torch.optim.SGD([{"params": model[0].parameters()}, {"params": model[1].parameters(), "lr": 0.3}], 0.1)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: epoch / 10)
    run, session = fake_session.join(model, optimizer)
    with run:
        assert session.settings["rate"] == 0.0
        assert [piece.rate for piece in session.pieces] == pytest.approx([1, 1, 3, 3])


@pytest.mark.parametrize("break_it, why", [
    (lambda m: (m, torch.optim.SGD(m[0].parameters(), lr=1)), "'1.weight' requires a gradient but is not in the opt"),
    (lambda m: (m[0], torch.optim.SGD(m.parameters(), lr=1)), "is not in the model"),
    (lambda m: (m.requires_grad_(False), torch.optim.SGD(m.parameters(), lr=1)), "nothing to train"),
    (lambda m: (nn.DataParallel(m), torch.optim.SGD(m.parameters(), lr=1)), "wrapped in DataParallel"),
])
def test_models_that_cannot_be_joined(break_it, why):
    with pytest.raises(JoinError, match=why):
        fake_session.join(*break_it(layers()))
