"""Training through a run is training: what one process does alone, and what a script may do to it."""

import contextlib
import copy
import math
import os
import pathlib
import subprocess
import sys

import pytest
import torch
from torch import nn

import drover
import fake_session


def make_model():
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))


def make_batches(count, size=4):
    return [(torch.randn(size, 5), torch.randint(0, 3, (size,))) for _ in range(count)]


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), **{"lr": 0.1, **options})


def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def assert_equal(model, other, tolerance=1e-6):
    for (name, a), (_, b) in zip(model.state_dict().items(), other.state_dict().items()):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, msg=name)


@pytest.mark.parametrize("explicit", [True, False])
def test_equals_training_alone(explicit):
    model = make_model()
    alone = copy.deepcopy(model)
    batches = make_batches(20)
    optimizer, own = sgd(model, weight_decay=0.01), sgd(alone, weight_decay=0.01)
    run, session = fake_session.join(model, optimizer)
    with run:
        for x, y in batches:
            with run.step(samples=len(y)) if explicit else contextlib.nullcontext():
                train_step(model, optimizer, x, y)
            train_step(alone, own, x, y)
    assert_equal(model, alone)
    assert session.left == ""
    assert [finished[0:2] for finished in session.finished] == [(True, 4)] * 20


def test_parameters_are_views_during_the_run_and_their_own_afterwards():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with run:
        session.arrive(3.0)
        assert all((p == 3.0).all() for p in model.parameters())
    session.parameters[:] = 4.0
    assert all((p == 3.0).all() for p in model.parameters())


def test_the_end_of_the_run_ends_the_loop():
    model = make_model()
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer, steps=3)
    made = 0
    with run:
        while True:
            with run.step():
                train_step(model, optimizer, *make_batches(1)[0])
            made += 1
    assert made == 3 and run.over and run.outcome == "completed" and session.left == ""


def test_a_failed_run_is_an_error():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    session.outcome, session.reason = "failed", "shard 1 was lost"
    with pytest.raises(drover.RunFailed, match="shard 1 was lost"):
        with run, run.step():
            pass


def test_a_run_that_fails_while_leaving_is_an_error():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with pytest.raises(drover.RunFailed, match="shard 1 was lost"):
        with run:
            session.outcome, session.reason = "failed", "shard 1 was lost"


def test_a_process_that_was_late_last_can_end():
    """torch keeps what is left of the broken pass, with views of the run's buffers, and may free it too late."""
    script = """if True:
        import torch, fake_session
        model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(4)])
        run, session = fake_session.join(model, torch.optim.SGD(model.parameters(), lr=0.1))
        session.unwanted_after = 6
        with run, run.step():
            model(torch.randn(1, 4)).sum().backward()
    """
    path = os.pathsep.join([str(pathlib.Path(__file__).parent), str(pathlib.Path(drover.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": path}
    assert subprocess.run([sys.executable, "-c", script], env=environment, timeout=60).returncode == 0


def test_late_in_the_forward_pass():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    seen = []
    model[2].register_forward_hook(lambda *_: seen.append("last layer"))
    with run:
        session.unwanted_after = 2
        with run.step():
            model(torch.randn(1, 5))
            raise AssertionError("continues")
        assert seen == [] and [finished[0] for finished in session.finished] == [False]


def test_late_in_optimizer_step_and_at_the_end():
    model = make_model()
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer)
    with run:
        session.late_from = 2
        for _ in range(2):
            with run.step():
                train_step(model, optimizer, *make_batches(1)[0])
                raise AssertionError("continues")
    assert [finished[0] for finished in session.finished] == [False, False]


def test_the_model_can_be_evaluated_between_steps():
    """Outside steps no hook asks whether it is wanted, and gradients are the script's own."""
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with run:
        session.unwanted_after, session.asked = 0, 0
        model(torch.randn(1, 5)).sum().backward()
        assert model[0].weight.grad is not None and session.announced == []


def test_skip_and_steps_without_a_gradient_do_not_count():
    model = make_model()
    before = copy.deepcopy(model)
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer)
    with run:
        for _ in range(2):
            with run.step():
                continue
        with run.step():
            run.skip()
        with run.step():
            optimizer.step()  # without a gradient torch, too, does nothing
        optimizer.step()
    assert [finished[0] for finished in session.finished] == [False] * 4
    assert_equal(model, before)


def test_a_scaler_that_leaves_out_optimizer_step_skips_the_step():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with run, run.step():
        x, y = make_batches(1)[0]
        nn.functional.cross_entropy(model(x), y).backward()
    assert [finished[0] for finished in session.finished] == [False]


def test_errors_of_the_script_are_announced_and_propagate():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with pytest.raises(ZeroDivisionError):
        with run, run.step():
            1 / 0
    assert session.left == "ZeroDivisionError: division by zero"
    assert session.finished == []
    before = model[0].weight.detach().clone()
    session.parameters[:] = 9.0
    assert torch.equal(model[0].weight, before)


def test_interruption_is_announced_by_its_name():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with pytest.raises(KeyboardInterrupt):
        with run, run.step():
            raise KeyboardInterrupt
    assert session.left == "interrupted"


@pytest.mark.parametrize("code, announced", [(None, ""), (0, ""), (3, "exit 3")])
def test_exit(code, announced):
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with pytest.raises(SystemExit):
        with run:
            raise SystemExit(code)
    assert session.left == announced


def test_trouble_in_optimizer_step_is_run_failed():
    model = make_model()
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer)
    session.trouble = "the coordinator was lost"
    with pytest.raises(drover.RunFailed, match="the coordinator was lost"):
        with run, run.step():
            train_step(model, optimizer, *make_batches(1)[0])


def test_shared_frozen_and_unused_parameters():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.into = nn.Linear(4, 4, bias=False)
            self.again = nn.Linear(4, 4, bias=False)
            self.again.weight = self.into.weight
            self.frozen = nn.Linear(4, 4)
            self.frozen.requires_grad_(False)
            self.unused = nn.Linear(2, 2)

        def forward(self, x):
            return self.again(self.frozen(self.into(x)))

    model = Net()
    alone = copy.deepcopy(model)
    optimizer, own = sgd(model), sgd(alone)
    run, session = fake_session.join(model, optimizer)
    assert [piece.name for piece in session.pieces] == [
        "into.weight",
        "frozen.weight",
        "frozen.bias",
        "unused.weight",
        "unused.bias",
    ]
    x = torch.randn(3, 4)
    with run:
        for _ in range(3):
            with run.step():
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
            own.zero_grad()
            alone(x).square().mean().backward()
            own.step()
    assert_equal(model, alone)
    assert model.again.weight is model.into.weight


def test_accumulation():
    model = make_model()
    alone = copy.deepcopy(model)
    optimizer, own = sgd(model), sgd(alone)
    run, session = fake_session.join(model, optimizer)
    batches = make_batches(3)
    with run, run.step(samples=12):
        for x, y in batches[:2]:
            with run.no_sync():
                (nn.functional.cross_entropy(model(x), y) / 3).backward()
        assert session.announced == []
        (nn.functional.cross_entropy(model(batches[2][0]), batches[2][1]) / 3).backward()
        optimizer.step()
    (sum(nn.functional.cross_entropy(alone(x), y) for x, y in batches) / 3).backward()
    own.step()
    assert_equal(model, alone)


def test_steps_do_not_nest():
    model = make_model()
    run, _ = fake_session.join(model, sgd(model))
    with run, run.step():
        with pytest.raises(RuntimeError, match="inside run.step"):
            with run.step():
                pass


def test_a_model_moved_after_joining():
    model = make_model()
    optimizer = sgd(model)
    run, _ = fake_session.join(model, optimizer)
    with pytest.raises(RuntimeError, match="other memory"):
        with run, run.step():
            model.double()
            train_step(model, optimizer, make_batches(1)[0][0].double(), torch.zeros(4, dtype=torch.long))


def test_another_type_follows_float32_masters():
    dtype = torch.bfloat16
    model = make_model().to(dtype)
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer)
    masters = copy.deepcopy(model).float()
    with run:
        for x, y in make_batches(10):
            with run.step():
                train_step(model, optimizer, x.to(dtype), y)
            copied = copy.deepcopy(masters).to(dtype)
            nn.functional.cross_entropy(copied(x.to(dtype)), y).backward()
            with torch.no_grad():
                for p, q in zip(masters.parameters(), copied.parameters()):
                    p -= 0.1 * q.grad.float()
    assert model[0].weight.dtype == dtype
    assert_equal(model, masters.to(dtype))


def test_a_parameter_that_is_not_contiguous_keeps_its_layout():
    model = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    alone = copy.deepcopy(model)
    optimizer, own = sgd(model), sgd(alone)
    run, _ = fake_session.join(model, optimizer)
    x = torch.randn(2, 3, 5, 5)
    with run, run.step():
        model(x).square().mean().backward()
        optimizer.step()
    alone(x).square().mean().backward()
    own.step()
    assert model.weight.stride() == alone.weight.stride() != nn.Conv2d(3, 4, 3).weight.stride()
    assert_equal(model, alone)


def test_sparse_gradients():
    model = nn.Embedding(6, 3, sparse=True)
    alone = copy.deepcopy(model)
    optimizer, own = sgd(model), sgd(alone)
    run, _ = fake_session.join(model, optimizer)
    with run, run.step():
        model(torch.tensor([1, 4, 1])).square().sum().backward()
        optimizer.step()
    alone(torch.tensor([1, 4, 1])).square().sum().backward()
    own.step()
    assert_equal(model, alone)


def test_running_statistics_are_averaged():
    model = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))
    alone = copy.deepcopy(model)
    optimizer, own = sgd(model), sgd(alone)
    run, session = fake_session.join(model, optimizer)
    averaged = [piece.name for piece in session.pieces if piece.averaged]
    assert averaged == ["1.running_mean", "1.running_var"]
    with run:
        for x, y in make_batches(3):
            with run.step():
                train_step(model, optimizer, x, y)
            train_step(alone, own, x, y)
        session.arrive(2.0, session.offsets[-1])  # what other workers have seen
        run._parameters.show(run._values)
        assert (model[1].running_var == 2.0).all()
        model.train(False)
        train_step(model, optimizer, *make_batches(1)[0])
        alone[1].running_var.fill_(2.0)
    torch.testing.assert_close(model[1].running_mean, alone[1].running_mean)


def test_the_learning_rate_follows_a_scheduler_made_before_or_after(recwarn):
    for before in (True, False):
        model = make_model()
        alone = copy.deepcopy(model)
        optimizer, own = sgd(model), sgd(alone)
        schedule = lambda o: torch.optim.lr_scheduler.StepLR(o, 1, 0.5)  # noqa: E731
        scheduler = schedule(optimizer) if before else None
        run, session = fake_session.join(model, optimizer)
        scheduler, own_scheduler = scheduler or schedule(optimizer), schedule(own)
        with run:
            for x, y in make_batches(4):
                with run.step():
                    train_step(model, optimizer, x, y)
                scheduler.step()
                train_step(alone, own, x, y)
                own_scheduler.step()
        assert session.rate == pytest.approx(0.1 * 0.5**3)
        assert_equal(model, alone)
    assert not [warning for warning in recwarn if "lr_scheduler" in str(warning.message)]


def test_the_optimizer_is_itself_again_afterwards():
    model = make_model()
    optimizer = sgd(model)
    run, _ = fake_session.join(model, optimizer)
    with run:
        pass
    before = copy.deepcopy(model)
    train_step(model, optimizer, *make_batches(1)[0])
    assert "step" not in vars(optimizer)
    assert not torch.equal(model[0].weight, before[0].weight)
    assert not model[0]._forward_pre_hooks


def test_closures():
    model = make_model()
    alone = copy.deepcopy(model)
    optimizer, own = sgd(model), sgd(alone)
    run, _ = fake_session.join(model, optimizer)
    x, y = make_batches(1)[0]

    def closure():
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    with run, run.step():
        assert optimizer.step(closure).item() > 0
    train_step(alone, own, x, y)
    assert_equal(model, alone)


def test_report():
    model = make_model()
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer)
    with run:
        for known in (
            {},
            {"loss": torch.tensor(0.5), "correct": torch.tensor(3)},
            {"loss": 1, "correct": 2, "predictions": 9},
        ):
            with run.step(samples=5):
                train_step(model, optimizer, *make_batches(1)[0])
                run.report(**known)
    assert math.isnan(session.finished[0][2])
    assert session.finished[1:] == [(True, 5, 0.5, 3, 5), (True, 5, 1.0, 2, 9)]


def test_averaged_shows_the_average_and_then_the_parameters_again():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2).bfloat16())
    run, session = fake_session.join(model, sgd(model))
    with run:
        before = run.state_dict()
        session.average[:] = 0.25
        with pytest.raises(ZeroDivisionError):
            with run.averaged():
                assert all((p == 0.25).all() for p in model.parameters())
                assert (model[1].running_mean == 0.25).all()
                run.evaluated(loss=0.5, accuracy=0.75, samples=10)
                1 / 0
        assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
        assert session.evaluation == (0, 0.5, 0.75, 10)
        session.averages_kept = False
        with pytest.raises(drover.Error, match="keeps no snapshots"), run.averaged():
            pass
        session.averages_kept, session.outcome = True, "completed"
        with pytest.raises(drover.RunOver), run.averaged():
            pass


def test_save_and_load(tmp_path):
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    path = tmp_path / "model.pt"
    with run:
        state = run.state_dict()
        run.save(path)
        session.arrive(1.0)
        assert not (state["0.weight"] == 1.0).any()
    assert [file.name for file in tmp_path.iterdir()] == ["model.pt"]
    assert path.stat().st_size < 20_000
    other = make_model()
    other.load_state_dict(torch.load(path))
    assert torch.equal(other[0].weight, state["0.weight"])


def test_a_save_that_fails_leaves_the_old_file(tmp_path):
    from drover import saving

    path = tmp_path / "model.pt"
    saving.write_whole({"a": 1}, path)
    with pytest.raises(Exception):
        saving.write_whole({"a": lambda: None}, path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.pt"] and torch.load(path) == {"a": 1}


def test_batches_are_disjoint_and_follow_the_batch_size():
    from drover.data import Batches

    class Worker:
        def __init__(self, rank):
            self.rank, self.workers, self.batch_size, self.over = rank, 3, 4, False

    workers = [Worker(rank) for rank in range(3)]
    streams = [Batches(worker, 4, lambda first, count: list(range(first, first + count))) for worker in workers]
    first = [next(iter(stream)) for stream in streams]
    assert first == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]  # what one worker with 12 would see
    workers[1].batch_size = 6
    seen = sum(first, [])
    for worker, stream in zip(workers, streams):
        for _ in range(20):
            batch = next(iter(stream))
            assert len(batch) == worker.batch_size
            seen += batch
    assert len(set(seen)) == len(seen)
    workers[0].over = True
    assert list(streams[0]) == []


# --- plain loops


def test_the_second_optimizer_step_is_another_step():
    model = make_model()
    alone = copy.deepcopy(model)
    optimizer, own = sgd(model), sgd(alone)
    run, session = fake_session.join(model, optimizer)
    with run, run.step():
        for x, y in make_batches(2):
            train_step(model, optimizer, x, y)
            train_step(alone, own, x, y)
    assert_equal(model, alone)
    assert session.step == 2


def test_several_backward_passes_accumulate():
    model = make_model()
    alone = copy.deepcopy(model)
    optimizer, own = sgd(model), sgd(alone)
    run, session = fake_session.join(model, optimizer)
    for each, opt in ((model, optimizer), (alone, own)):
        torch.manual_seed(4)
        for x, y in make_batches(3):
            nn.functional.cross_entropy(each(x), y).backward()
        opt.step()
    run.leave()
    assert_equal(model, alone)


def test_gradients_stay_where_they_are():
    model = make_model()
    optimizer = sgd(model)
    run, _ = fake_session.join(model, optimizer)
    with run:
        nn.functional.cross_entropy(model(torch.randn(2, 5)), torch.tensor([0, 1])).backward()
        kept = [p.grad.clone() for p in model.parameters()]
        optimizer.step()
        assert all(torch.equal(p.grad, each) for p, each in zip(model.parameters(), kept))


def test_a_late_worker_continues_with_fresh_parameters():
    model = make_model()
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer)
    with run:
        session.late_from = 1
        loss = train_step(model, optimizer, *make_batches(1)[0])
        assert loss.item() > 0 and session.finished[-1][0] is False
        session.late_from = math.inf
        train_step(model, optimizer, *make_batches(1)[0])
        assert session.finished[-1][0] is True


def test_after_the_last_step_optimizer_step_ends_the_loop():
    model = make_model()
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer, steps=2)
    made = 0
    with pytest.raises(drover.RunOver, match="over after 2 steps"):
        while True:
            train_step(model, optimizer, *make_batches(1)[0])
            made += 1
    assert made == 2 and run.over


@pytest.mark.parametrize("called", ["torch", "imported", "run"])
def test_clipping_asks_the_run(called):
    from torch.nn.utils import clip_grad_norm_ as imported

    model = make_model()
    alone = copy.deepcopy(model)
    optimizer, own = sgd(model), sgd(alone)
    run, session = fake_session.join(model, optimizer)
    clip = {"torch": nn.utils.clip_grad_norm_, "imported": imported, "run": run.clip_grad_norm_}[called]
    x, y = make_batches(1)[0]
    with run:
        nn.functional.cross_entropy(model(x), y).backward()
        norm = clip(model.parameters(), 0.01)
        assert set(session.kinds.values()) == {"held"}
        assert clip(model.parameters(), math.inf).item() == pytest.approx(0.01, rel=1e-3)
        optimizer.step()
    nn.functional.cross_entropy(alone(x), y).backward()
    assert imported(alone.parameters(), 0.01).item() == pytest.approx(norm.item(), rel=1e-5)
    own.step()
    assert_equal(model, alone)


def test_a_gradient_changed_after_clipping_is_pushed_as_it_is():
    model = make_model()
    alone = copy.deepcopy(model)
    optimizer, own = sgd(model), sgd(alone)
    run, session = fake_session.join(model, optimizer)
    x, y = make_batches(1)[0]
    for each, opt in ((model, optimizer), (alone, own)):
        nn.functional.cross_entropy(each(x), y).backward()
        nn.utils.clip_grad_norm_(each.parameters(), 0.01)
        each[0].weight.grad.add_(1.0)
        opt.step()
    run.leave()
    assert_equal(model, alone)


def test_clipping_of_other_parameters_is_torchs_own():
    model, other = make_model(), make_model()
    run, session = fake_session.join(model, sgd(model))
    with run:
        other(torch.randn(1, 5)).sum().backward()
        assert nn.utils.clip_grad_norm_(other.parameters(), 0.5) > 0.5
        assert session.kinds == {}


def test_clipping_with_another_norm_is_refused():
    model = make_model()
    run, _ = fake_session.join(model, sgd(model))
    with run:
        model(torch.randn(1, 5)).sum().backward()
        with pytest.raises(ValueError, match="norm_type=1"):
            nn.utils.clip_grad_norm_(model.parameters(), 0.5, norm_type=1.0)


def test_clipping_by_value_is_refused_with_several_workers():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with run:
        model(torch.randn(1, 5)).sum().backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        session.workers = 2
        with pytest.raises(RuntimeError, match="clip_grad_value_"):
            nn.utils.clip_grad_value_(model.parameters(), 0.5)


def test_parameters_without_gradient_are_absent():
    model = nn.ModuleList([nn.Linear(2, 1), nn.Linear(2, 1)])
    optimizer = sgd(model, weight_decay=0.5)
    before = copy.deepcopy(model)
    run, session = fake_session.join(model, optimizer)
    with run:
        model[0](torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert torch.equal(model[1].weight, before[1].weight)
    assert not torch.equal(model[0].weight, before[0].weight)


def test_each_optimizer_steps_its_own_parameters():
    models = [nn.Linear(2, 1), nn.Linear(2, 1)]
    optimizers = [sgd(models[0]), sgd(models[1], lr=0.5)]
    before = copy.deepcopy(models)
    run, session = fake_session.join(models, optimizers)
    assert [piece.name for piece in session.pieces] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    with run:
        (models[0](torch.ones(1, 2)) + models[1](torch.ones(1, 2))).sum().backward()
        optimizers[1].step()
        assert torch.equal(models[0].weight, before[0].weight)
    torch.testing.assert_close(models[1].weight, before[1].weight - 0.5)


@pytest.mark.parametrize("write", [lambda p: p.data.clamp_(-0.01, 0.01), lambda p: nn.init.zeros_(p)])
def test_written_values_become_the_runs(write):
    model = make_model()
    alone = copy.deepcopy(model)
    optimizer, own = sgd(model), sgd(alone)
    run, session = fake_session.join(model, optimizer)
    x, y = make_batches(1)[0]
    for each, opt in ((model, optimizer), (alone, own)):
        for _ in range(2):
            write(each[0].weight)
            train_step(each, opt, x, y)
    run.leave()
    assert_equal(model, alone)


def test_written_values_that_come_too_late_are_refused_aloud():
    model = make_model()
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer)
    with run:
        nn.init.zeros_(model[0].weight)
        session.late_from = 0
        with pytest.raises(RuntimeError, match="0.weight came too late"):
            train_step(model, optimizer, *make_batches(1)[0])


def test_settings_are_read_at_every_step():
    model = make_model()
    optimizer = torch.optim.SGD(
        [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.5}], lr=0.1
    )
    run, session = fake_session.join(model, optimizer)
    with run:
        train_step(model, optimizer, *make_batches(1)[0])
        assert [group["rate"] for group in session.groups] == [0.1, 0.5]
        optimizer.param_groups[1].update(lr=0.2, momentum=0.9)
        train_step(model, optimizer, *make_batches(1)[0])
        assert session.groups[1] == {"kind": "momentum", "momentum": 0.9, "rate": 0.2, "weight_decay": 0}


def test_samples():
    model = make_model()
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer)
    with run:
        for say in (
            lambda: optimizer.step(),
            lambda: optimizer.step(samples=3),
            lambda: (run.samples(5), optimizer.step()),
        ):
            nn.functional.cross_entropy(model(torch.randn(2, 5)), torch.tensor([0, 1])).backward()
            say()
    assert [finished[1] for finished in session.finished] == [4, 3, 5]


def test_a_parameter_group_added_after_joining():
    model = make_model()
    optimizer = sgd(model)
    run, _ = fake_session.join(model, optimizer)
    with run:
        optimizer.add_param_group({"params": nn.Linear(3, 3).parameters()})
        with pytest.raises(RuntimeError, match="parameter group was added"):
            train_step(model, optimizer, *make_batches(1)[0])


def test_state_of_earlier_steps_is_refused():
    model = make_model()
    optimizer = sgd(model, momentum=0.9)
    train_step(model, optimizer, *make_batches(1)[0])
    with pytest.raises(drover.JoinError, match="state.clear"):
        fake_session.join(model, optimizer)
    optimizer.state.clear()
    fake_session.join(model, optimizer)


def test_a_second_join_names_the_cause():
    model = make_model()
    run, _ = fake_session.join(model, sgd(model))
    with run, pytest.raises(drover.Error, match="joined a run already"):
        fake_session.join(model, sgd(model))


def test_float64_is_refused():
    model = make_model().double()
    with pytest.raises(drover.JoinError, match="float64"):
        fake_session.join(model, sgd(model))


def test_a_model_can_be_saved_whole_and_scripted(tmp_path):
    model = make_model()
    run, _ = fake_session.join(model, sgd(model))
    with run:
        torch.save(model, tmp_path / "model.pt")
        assert torch.equal(torch.load(tmp_path / "model.pt")[0].weight, model[0].weight)
        scripted = torch.jit.script(model)
        assert torch.equal(scripted(torch.ones(1, 5)), model(torch.ones(1, 5)))


def test_batches_of_a_loader():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    session.workers, session.rank = 2, 1
    data = torch.utils.data.TensorDataset(torch.arange(20.0))
    with run:
        ordered = run.batches(torch.utils.data.DataLoader(data, batch_size=5))
        assert len(ordered) == 2 and [batch[0].tolist() for batch in ordered] == [[1, 3, 5, 7, 9], [11, 13, 15, 17, 19]]
        shuffled = run.batches(torch.utils.data.DataLoader(data, batch_size=5, shuffle=True))
        epochs = [sum((batch[0].tolist() for batch in shuffled), []) for _ in range(2)]
        assert epochs[0] != epochs[1] and all(len(set(epoch)) == 10 for epoch in epochs)
        session.outcome = "completed"
        assert list(ordered) == []
