"""Training through a run is training: what one process does alone, and what a script may do to it."""

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


@pytest.mark.parametrize("overlap", [True, False])
def test_equals_training_alone(overlap):
    model = make_model()
    alone = copy.deepcopy(model)
    batches = make_batches(20)
    optimizer, own = sgd(model, weight_decay=0.01), sgd(alone, weight_decay=0.01)
    run, session = fake_session.join(model, optimizer, overlap)
    with run:
        for x, y in batches:
            with run.step(samples=len(y)):
                train_step(model, optimizer, x, y)
            train_step(alone, own, x, y)
    assert_equal(model, alone)
    assert session.left == ""
    assert [finished[0:2] for finished in session.finished] == [(True, 4)] * 20


def test_gradients_leave_during_backward_last_layer_first():
    model = make_model()
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer)
    with run, run.step(samples=2):
        x, y = make_batches(1)[0]
        nn.functional.cross_entropy(model(x), y).backward()
        assert [index // 2 for index, _ in session.told] == [1, 1, 0, 0]
        assert {samples for _, samples in session.told} == {2}
        assert all(p.grad is None for p in model.parameters())


def test_without_overlap_gradients_leave_with_optimizer_step():
    model = make_model()
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer, overlap=False)
    alone = copy.deepcopy(model)
    x, y = make_batches(1)[0]
    with run, run.step():
        nn.functional.cross_entropy(model(x), y).backward()
        assert session.told == []
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        assert norm > 0.01
        optimizer.step()
        assert len(session.told) == 4
    own = sgd(alone)
    nn.functional.cross_entropy(alone(x), y).backward()
    nn.utils.clip_grad_norm_(alone.parameters(), 0.01)
    own.step()
    assert_equal(model, alone)


def test_parameters_are_views_during_the_run_and_their_own_afterwards():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with run:
        session.parameters[:] = 3.0
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


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_late_in_the_backward_pass(taken):
    """What is left is not computed, .grad is empty, and the next step works."""
    model = make_model()
    alone = copy.deepcopy(model)
    optimizer, own = sgd(model), sgd(alone)
    run, session = fake_session.join(model, optimizer)
    first, second = make_batches(2)
    reached = []
    with run:
        session.late_from = taken
        with run.step():
            nn.functional.cross_entropy(model(first[0]), first[1]).backward()
            reached.append("after backward")
        assert reached == [] and len(session.told) == taken
        assert session.finished[-1][0] is False
        assert all(p.grad is None for p in model.parameters())
        session.late_from = math.inf
        with run.step():
            train_step(model, optimizer, *second)
    train_step(alone, own, *second)
    assert_equal(model, alone)


def test_a_process_that_was_late_last_can_end():
    """torch keeps what is left of the broken pass, with views of the run's buffers, and may free it too late."""
    script = """if True:
        import torch, fake_session
        model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(4)])
        run, session = fake_session.join(model, torch.optim.SGD(model.parameters(), lr=0.1))
        session.late_from = 0
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
            raise AssertionError("goes on")
        assert seen == [] and session.finished == [(False, 0, pytest.approx(math.nan, nan_ok=True), 0, 0)]


def test_late_in_optimizer_step_and_at_the_end():
    model = make_model()
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer, overlap=False)
    with run:
        session.late_from = 2
        for _ in range(2):
            with run.step():
                train_step(model, optimizer, *make_batches(1)[0])
                raise AssertionError("goes on")
    assert [finished[0] for finished in session.finished] == [False, False]


def test_the_model_can_be_evaluated_between_steps():
    """Outside steps nobody asks whether it is wanted, and gradients are the script's own."""
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with run:
        session.unwanted_after, session.asked = 0, 0
        model(torch.randn(1, 5)).sum().backward()
        assert model[0].weight.grad is not None and session.told == []


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
    assert [finished[0] for finished in session.finished] == [False] * 4
    assert_equal(model, before)


def test_a_scaler_that_leaves_out_optimizer_step_skips_the_step():
    model = make_model()
    run, session = fake_session.join(model, sgd(model), overlap=False)
    with run, run.step():
        x, y = make_batches(1)[0]
        nn.functional.cross_entropy(model(x), y).backward()
    assert [finished[0] for finished in session.finished] == [False]


def test_errors_of_the_script_are_told_and_propagate():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with pytest.raises(ZeroDivisionError):
        with run, run.step():
            1 / 0
    assert session.left == "ZeroDivisionError: division by zero"
    assert session.finished[-1][0] is False
    before = model[0].weight.detach().clone()
    session.parameters[:] = 9.0
    assert torch.equal(model[0].weight, before)


def test_interruption_is_told_by_its_name():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with pytest.raises(KeyboardInterrupt):
        with run, run.step():
            raise KeyboardInterrupt
    assert session.left == "interrupted"


@pytest.mark.parametrize("code, told", [(None, ""), (0, ""), (3, "exit 3")])
def test_exit(code, told):
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    with pytest.raises(SystemExit):
        with run:
            raise SystemExit(code)
    assert session.left == told


def test_trouble_in_a_hook_is_run_failed():
    model = make_model()
    run, session = fake_session.join(model, sgd(model))
    session.trouble = "the coordinator was lost"
    with pytest.raises(drover.RunFailed, match="the coordinator was lost"):
        with run, run.step():
            train_step(model, sgd(model), *make_batches(1)[0])


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
    assert [piece.name for piece in session.pieces] == ["into.weight", "unused.weight", "unused.bias"]
    x = torch.randn(3, 4)
    with run:
        for _ in range(3):
            with run.step():
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
        assert session.told == []
        (nn.functional.cross_entropy(model(batches[2][0]), batches[2][1]) / 3).backward()
        optimizer.step()
    (sum(nn.functional.cross_entropy(alone(x), y) for x, y in batches) / 3).backward()
    own.step()
    assert_equal(model, alone)


def test_a_gradient_only_from_the_accumulated_passes_is_not_lost():
    model = nn.ModuleList([nn.Linear(2, 1, bias=False), nn.Linear(2, 1, bias=False)])
    optimizer = sgd(model, lr=1.0)
    before = model[0].weight.detach().clone()
    run, _ = fake_session.join(model, optimizer)
    with run, run.step():
        with run.no_sync():
            model[0](torch.ones(1, 2)).sum().backward()
        model[1](torch.ones(1, 2)).sum().backward()
    torch.testing.assert_close(model[0].weight, before - 1)


def test_a_second_backward_pass_says_what_to_do():
    model = make_model()
    run, _ = fake_session.join(model, sgd(model))
    with pytest.raises(RuntimeError, match="run.no_sync()"):
        with run, run.step():
            for _ in range(2):
                model(torch.randn(1, 5)).sum().backward()


def test_a_second_optimizer_step_says_what_to_do():
    model = make_model()
    optimizer = sgd(model)
    run, _ = fake_session.join(model, optimizer, overlap=False)
    with pytest.raises(RuntimeError, match="twice in one run.step"):
        with run, run.step():
            for _ in range(2):
                train_step(model, optimizer, *make_batches(1)[0])


@pytest.mark.parametrize("call", [lambda run, optimizer: optimizer.step(), lambda run, optimizer: run.report(loss=1.0),
                                  lambda run, optimizer: run.skip()])
def test_what_belongs_into_a_step(call):
    model = make_model()
    optimizer = sgd(model)
    run, _ = fake_session.join(model, optimizer)
    with run, pytest.raises(RuntimeError, match="outside a step"):
        call(run, optimizer)


def test_steps_do_not_nest():
    model = make_model()
    run, _ = fake_session.join(model, sgd(model))
    with run, run.step():
        with pytest.raises(RuntimeError, match="inside run.step"):
            with run.step():
                pass


def test_a_parameter_added_after_joining():
    model = make_model()
    optimizer = sgd(model)
    run, session = fake_session.join(model, optimizer)
    with pytest.raises(RuntimeError, match="'added.weight' was added"):
        with run, run.step():
            model.add_module("added", nn.Linear(3, 3))
            train_step(model, optimizer, *make_batches(1)[0])
    assert session.finished[-1][0] is False


def test_a_model_moved_after_joining():
    model = make_model()
    optimizer = sgd(model)
    run, _ = fake_session.join(model, optimizer)
    with pytest.raises(RuntimeError, match="other memory"):
        with run, run.step():
            model.double()
            train_step(model, optimizer, make_batches(1)[0][0].double(), torch.zeros(4, dtype=torch.long))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_types_follow_float32_masters(dtype):
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
        session.parameters[session.offsets[-1] :] = 2.0  # what other workers have seen
        with run.step():
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
        for known in ({}, {"loss": torch.tensor(0.5), "correct": torch.tensor(3)},
                      {"loss": 1, "correct": 2, "predictions": 9}):
            with run.step(samples=5):
                train_step(model, optimizer, *make_batches(1)[0])
                run.report(**known)
    assert math.isnan(session.finished[0][2])
    assert session.finished[1:] == [(True, 5, 0.5, 3, 5), (True, 5, 1.0, 2, 9)]


def test_averaged_shows_the_average_and_then_the_parameters_again():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2).double())
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
        assert session.evaluation == (-1, 0.5, 0.75, 10)
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
        session.parameters[:] = 1.0
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
