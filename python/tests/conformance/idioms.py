"""Training idioms, each a loop as scripts have it: `python3 idioms.py NAME MODE OUT`.

MODE is "alone" (one process with the whole batch), "ddp" or "drover" (each worker has its part of the batch). What is
common to the modes is in `Place`; a loop knows nothing of it but where its data is. Every worker writes
OUT/NAME-RANK.pt.
"""

import copy
import math
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
BATCH = 12  # of all workers together; 1, 2 and 3 workers have equal parts
IDIOMS = {}


def idiom(function):
    IDIOMS[function.__name__] = function
    return function


class Place:
    """Where a loop runs."""

    def __init__(self, mode):
        self.mode = mode
        self.rank, self.workers, self.run = 0, 1, None
        if mode == "ddp":
            torch.distributed.init_process_group("gloo")
            self.rank, self.workers = torch.distributed.get_rank(), torch.distributed.get_world_size()
        if mode == "drover":
            import drover

            self.rank, self.workers = drover.rank(), drover.workers()

    def join(self, models, optimizers, **options):
        """The models to train with: wrapped for DDP, joined for Drover."""
        models, optimizers = list(models), list(optimizers)
        if self.mode == "ddp":
            return [
                nn.parallel.DistributedDataParallel(model, find_unused_parameters=True, **options) for model in models
            ]
        if self.mode == "drover":
            import drover

            self.run = drover.join(
                models if len(models) > 1 else models[0], optimizers if len(optimizers) > 1 else optimizers[0]
            )
        return models

    def part(self, *tensors):
        """This worker's part of a batch."""
        size = BATCH // self.workers
        parts = [tensor[self.rank * size : (self.rank + 1) * size] for tensor in tensors]
        return parts[0] if len(parts) == 1 else parts


def batches(count, inputs=5, classes=3, seed=5):
    source = torch.Generator().manual_seed(seed)
    for _ in range(count):
        x = torch.randn(BATCH, inputs, generator=source)
        yield x, torch.randint(0, classes, (BATCH,), generator=source)


def make_model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))


def simple_loop(place, model, optimizer, steps=8, each=lambda step: None):
    (joined,) = place.join([model], [optimizer])
    for step, batch in enumerate(batches(steps)):
        x, y = place.part(*batch)
        optimizer.zero_grad()
        F.cross_entropy(joined(x), y).backward()
        optimizer.step()
        each(step)


# --- optimizers and schedules


@idiom
def sgd(place):
    model = make_model()
    simple_loop(place, model, torch.optim.SGD(model.parameters(), lr=0.1))
    return model


@idiom
def momentum_and_decay(place):
    model = make_model()
    simple_loop(
        place, model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True)
    )
    return model


@idiom
def adamw_with_groups(place):
    model = make_model()
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1, "betas": (0.8, 0.9)},
        {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0, "lr": 0.03},
    ]
    simple_loop(place, model, torch.optim.AdamW(groups, lr=0.01))
    return model


@idiom
def rmsprop(place):
    model = make_model()
    simple_loop(place, model, torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.5, weight_decay=0.01))
    return model


@idiom
def one_cycle_changes_momentum(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.3, total_steps=10)
    simple_loop(place, model, optimizer, each=lambda step: schedule.step())
    return model


@idiom
def one_cycle_changes_betas(place):
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.03, total_steps=10)
    simple_loop(place, model, optimizer, each=lambda step: schedule.step())
    return model


@idiom
def cosine_with_two_rates(place):
    model = make_model()
    optimizer = torch.optim.SGD(
        [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.01}], lr=0.1
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10, eta_min=0.001)
    simple_loop(place, model, optimizer, each=lambda step: schedule.step())
    return model


@idiom
def settings_changed_by_hand(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def each(step):
        if step == 3:
            optimizer.param_groups[0].update(momentum=0.9, weight_decay=0.05, lr=0.02)

    simple_loop(place, model, optimizer, each=each)
    return model


@idiom
def rate_set_after_backward(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (joined,) = place.join([model], [optimizer])
    for step, batch in enumerate(batches(6)):
        x, y = place.part(*batch)
        optimizer.zero_grad()
        F.cross_entropy(joined(x), y).backward()
        optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
        optimizer.step()
    return model


@idiom
def closure(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (joined,) = place.join([model], [optimizer])
    for batch in batches(5):
        x, y = place.part(*batch)

        def compute():
            optimizer.zero_grad()
            loss = F.cross_entropy(joined(x), y)
            loss.backward()
            return loss

        assert optimizer.step(compute).item() > 0
    return model


# --- gradients


@idiom
def accumulation(place):
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    (joined,) = place.join([model], [optimizer])
    for step, batch in enumerate(batches(9)):
        x, y = place.part(*batch)
        (F.cross_entropy(joined(x), y) / 3).backward()
        if step % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
    return model


@idiom
def zeroed_in_place(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    (joined,) = place.join([model], [optimizer])
    for batch in batches(6):
        x, y = place.part(*batch)
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(joined(x), y).backward()
        optimizer.step()
    return model


@idiom
def step_left_out(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    (joined,) = place.join([model], [optimizer])
    for step, batch in enumerate(batches(8)):
        x, y = place.part(*batch)
        optimizer.zero_grad()
        F.cross_entropy(joined(x), y).backward()
        if step % 3 != 1:
            optimizer.step()
    return model


@idiom
def clipping(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    (joined,) = place.join([model], [optimizer])
    norms = []
    for batch in batches(6):
        x, y = place.part(*batch)
        optimizer.zero_grad()
        F.cross_entropy(joined(x), y).backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1))
        optimizer.step()
    model.norms = [float(norm) for norm in norms]
    return model


@idiom
def clipping_by_the_largest(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    (joined,) = place.join([model], [optimizer])
    for batch in batches(4):
        x, y = place.part(*batch)
        optimizer.zero_grad()
        F.cross_entropy(joined(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.01, norm_type=math.inf)
        optimizer.step()
    return model


@idiom
def clipping_in_parts(place):
    """Two optimizers, whose parameters are clipped apart before either steps (the seq2seq tutorial)."""
    torch.manual_seed(0)
    encoder, decoder = nn.Linear(5, 4), nn.Linear(4, 3)
    first, second = torch.optim.SGD(encoder.parameters(), lr=0.5), torch.optim.Adam(decoder.parameters(), lr=0.05)
    e, d = place.join([encoder, decoder], [first, second])
    for batch in batches(5):
        x, y = place.part(*batch)
        first.zero_grad()
        second.zero_grad()
        F.cross_entropy(d(torch.tanh(e(x))), y).backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), 0.05)
        nn.utils.clip_grad_norm_(decoder.parameters(), 0.05)
        first.step()
        second.step()
    return nn.ModuleList([encoder, decoder])


@idiom
def clipped_and_left_out(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    (joined,) = place.join([model], [optimizer])
    for step, batch in enumerate(batches(6)):
        x, y = place.part(*batch)
        optimizer.zero_grad()
        F.cross_entropy(joined(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        if step % 2:
            optimizer.step()
    return model


@idiom
def gradients_are_there_after_backward(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (joined,) = place.join([model], [optimizer])
    for batch in batches(3):
        x, y = place.part(*batch)
        optimizer.zero_grad()
        F.cross_entropy(joined(x), y).backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
        optimizer.step()
        assert all(p.grad is not None for p in model.parameters())
    return model


class Switch(nn.Module):
    """A model that uses one of its heads."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(5, 6)
        self.heads = nn.ModuleList([nn.Linear(6, 3) for _ in range(3)])

    def forward(self, x, head):
        return self.heads[head](torch.tanh(self.body(x)))


@idiom
def heads_without_gradient(place):
    """Weight decay and momentum leave parameters alone that had no gradient in the step."""
    torch.manual_seed(0)
    model = Switch()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=0.1)
    (joined,) = place.join([model], [optimizer])
    for step, batch in enumerate(batches(7)):
        x, y = place.part(*batch)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(joined(x, step % 2), y).backward()
        if place.mode == "ddp":  # which makes zeros of gradients that are not there
            for p in model.heads[1 - step % 2].parameters():
                p.grad = None
            for p in model.heads[2].parameters():
                p.grad = None
        optimizer.step()
    return model


@idiom
def frozen_for_a_while(place):
    torch.manual_seed(0)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    (joined,) = place.join([model], [optimizer])
    for step, batch in enumerate(batches(9)):
        x, y = place.part(*batch)
        if place.mode != "ddp":
            model[0].requires_grad_(not 3 <= step < 6)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(joined(x), y).backward()
        if place.mode == "ddp" and 3 <= step < 6:
            model[0].weight.grad = model[0].bias.grad = None
        optimizer.step()
    return model


@idiom
def tied_weights(place):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(7, 4)
            self.out = nn.Linear(4, 7, bias=False)
            self.out.weight = self.embed.weight

        def forward(self, tokens):
            return self.out(self.embed(tokens))

    torch.manual_seed(0)
    model = Tied()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    (joined,) = place.join([model], [optimizer])
    source = torch.Generator().manual_seed(1)
    for _ in range(6):
        tokens, following = place.part(
            torch.randint(0, 7, (BATCH,), generator=source), torch.randint(0, 7, (BATCH,), generator=source)
        )
        optimizer.zero_grad()
        F.cross_entropy(joined(tokens), following).backward()
        optimizer.step()
    assert model.out.weight is model.embed.weight
    return model


@idiom
def exception_in_a_step(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (joined,) = place.join([model], [optimizer])
    for step, batch in enumerate(batches(6)):
        x, y = place.part(*batch)
        try:
            optimizer.zero_grad()
            loss = F.cross_entropy(joined(x), y)
            if step == 2:
                raise RuntimeError("CUDA out of memory")
            loss.backward()
            optimizer.step()
        except RuntimeError as error:
            assert "out of memory" in str(error), error
    return model


# --- several optimizers


@idiom
def gan(place):
    torch.manual_seed(0)
    g = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 5))
    d = nn.Sequential(nn.Linear(5, 6), nn.LeakyReLU(0.2), nn.Linear(6, 1))
    opt_d = torch.optim.Adam(d.parameters(), lr=0.02, betas=(0.5, 0.999))
    opt_g = torch.optim.Adam(g.parameters(), lr=0.01, betas=(0.5, 0.999), weight_decay=0.1)
    net_g, net_d = place.join([g, d], [opt_g, opt_d])
    source = torch.Generator().manual_seed(2)
    for batch in batches(6):
        real, noise = place.part(batch[0], torch.randn(BATCH, 2, generator=source))
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        d.zero_grad()
        F.binary_cross_entropy_with_logits(net_d(real), ones).backward()
        fake = net_g(noise)
        F.binary_cross_entropy_with_logits(net_d(fake.detach()), zeros).backward()
        opt_d.step()
        g.zero_grad()
        F.binary_cross_entropy_with_logits(net_d(fake), ones).backward()
        opt_g.step()
    return nn.ModuleList([g, d])


@idiom
def two_optimizers_of_one_model(place):
    model = make_model()
    first = torch.optim.SGD(model[0].parameters(), lr=0.1, momentum=0.9)
    second = torch.optim.AdamW(model[2].parameters(), lr=0.01)
    (joined,) = place.join([model], [first, second])
    for step, batch in enumerate(batches(6)):
        x, y = place.part(*batch)
        first.zero_grad()
        second.zero_grad()
        F.cross_entropy(joined(x), y).backward()
        first.step()
        if step % 2:
            second.step()
    return model


# --- looking at the model, and writing into it


@idiom
def new_values_after_step(place):
    """Whatever looks at the model after optimizer.step() sees the new parameters."""
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (joined,) = place.join([model], [optimizer])
    kept = []
    for batch in batches(4):
        x, y = place.part(*batch)
        before = model[0].weight.clone()
        optimizer.zero_grad()
        F.cross_entropy(joined(x), y).backward()
        optimizer.step()
        after = model.state_dict()["0.weight"].clone()
        assert not torch.equal(before, after)
        assert torch.equal(copy.deepcopy(model)[0].weight, after)
        assert torch.equal(next(model.parameters()), after)
        kept.append(after)
    model.kept = kept
    return model


@idiom
def weights_clamped(place):
    """As in WGAN."""
    model = make_model()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.05)
    (joined,) = place.join([model], [optimizer])
    for batch in batches(6):
        x, y = place.part(*batch)
        optimizer.zero_grad()
        F.cross_entropy(joined(x), y).backward()
        optimizer.step()
        for p in model.parameters():
            p.data.clamp_(-0.2, 0.2)
    return model


@idiom
def best_weights_loaded_again(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    (joined,) = place.join([model], [optimizer])
    for step, batch in enumerate(batches(8)):
        if step == 2:
            best = copy.deepcopy(model.state_dict())
        if step == 5:
            model.load_state_dict(best)
        x, y = place.part(*batch)
        optimizer.zero_grad()
        F.cross_entropy(joined(x), y).backward()
        optimizer.step()
    return model


@idiom
def layer_initialised_again(place):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (joined,) = place.join([model], [optimizer])
    for step, batch in enumerate(batches(5)):
        if step == 2:
            nn.init.constant_(model[2].weight, 0.1)
        x, y = place.part(*batch)
        optimizer.zero_grad()
        F.cross_entropy(joined(x), y).backward()
        optimizer.step()
    return model


@idiom
def weights_loaded_on_rank_0_alone(place):
    model = make_model(seed=0 if place.rank == 0 else 100 + place.rank)
    simple_loop(place, model, torch.optim.SGD(model.parameters(), lr=0.1), steps=3)
    return model


@idiom
def saved_during_the_run(place):
    import io
    import pickle

    model = make_model()

    def each(step):
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        assert torch.equal(torch.load(file)[0].weight, model[0].weight)
        assert torch.equal(pickle.loads(pickle.dumps(model))[2].bias, model[2].bias)
        scripted = torch.jit.script(model)
        assert torch.equal(scripted(torch.ones(1, 5)), model(torch.ones(1, 5)))
        assert list(model[0].state_dict()) == ["weight", "bias"]

    simple_loop(place, model, torch.optim.SGD(model.parameters(), lr=0.1), steps=2, each=each)
    return model


@idiom
def running_statistics(place):
    """All workers have the same, after every step; their values are those of the workers' batches, averaged."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6, affine=False), nn.Linear(6, 3))
    seen = []

    def each(step):
        seen.append(model[1].running_mean.clone())

    simple_loop(place, model, torch.optim.SGD(model.parameters(), lr=0.0), steps=3, each=each)
    model.means = seen
    del model[1].running_var, model[1].num_batches_tracked
    return model


def main():
    name, mode, out = sys.argv[1:]
    place = Place(mode)
    model = IDIOMS[name](place)
    if place.run is not None:
        place.run.leave()
    kept = {key: value for key, value in vars(model).items() if key in ("norms", "kept", "means")}
    state = {key: value.clone() for key, value in model.state_dict().items()}
    torch.save({"state": state, **kept}, os.path.join(out, f"{name}-{place.rank}.pt"))


if __name__ == "__main__":
    main()
