"""Whole runs: `drover launch` with scripts as users write them. Skipped unless DROVER_BIN names the program."""

import os
import pathlib
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from conftest import BUILT, DROVER

pytestmark = pytest.mark.skipif(not DROVER, reason="DROVER_BIN is not set")

torch = pytest.importorskip("torch")
import launched  # noqa: E402

DEADLINE = 100  # seconds that no run should take
TRAIN = """
    import sys
    import torch, drover
    from launched import *

    x, y = data()
"""


def environment_for(folder):
    path = [str(pathlib.Path(__file__).parent), *sys.path]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DROVER_", "MASTER_", "RANK"))}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(filter(None, path + [str(BUILT)])),
        "TEST_OUT": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "HOME": str(folder),
        "OMP_NUM_THREADS": "1",
    }


def write_script(folder, text):
    script = folder / "script.py"
    script.write_text(textwrap.dedent(TRAIN) + textwrap.dedent(text))
    return script


class Launched:
    """What became of a launch."""

    def __init__(self, folder, done):
        self.folder, self.status, self.said = folder, done.returncode, done.stdout + done.stderr

    def worker(self, rank):
        path = self.folder / f"worker-{rank}.pt"
        assert path.exists(), self.said
        return torch.load(path)

    def asked(self, query):
        with sqlite3.connect(f"file:{self.folder / 'run.db'}?mode=ro", uri=True) as run:
            return run.execute(query).fetchall()

    def outcome(self):
        return self.asked("select outcome from run")[0][0]


def launch(folder, text, *flags, workers=2, steps=10, arguments=()):
    command = [
        DROVER,
        "launch",
        "--quiet",
        "--python",
        sys.executable,
        "--workers",
        workers,
        "--steps",
        steps,
        "--batch",
        8,
        "--seed",
        3,
        "--run-file",
        folder / "run.db",
        *flags,
        write_script(folder, text),
        *arguments,
    ]
    done = subprocess.run(
        [str(word) for word in command],
        env=environment_for(folder),
        cwd=folder,
        timeout=DEADLINE,
        capture_output=True,
        text=True,
    )
    return Launched(folder, done)


def assert_states_equal(a, b, tolerance=0.0):
    assert a.keys() == b.keys()
    for name, value in a.items():
        torch.testing.assert_close(value, b[name], rtol=tolerance, atol=tolerance, msg=name)


EQUALITY = """
    model = make_model()
    optimizer = make_optimizer(sys.argv[1], model)
    with drover.join(model, optimizer) as run:
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
        for batch in run.batches(SIZE):
            with run.step(samples=len(batch)):
                optimizer.zero_grad()
                loss = loss_of(model, x[batch], y[batch])
                loss.backward()
                optimizer.step()
                run.report(loss=loss)
            scheduler.step()
    keep(run, model)
"""


def alone(kind, seed=3, samples=16, steps=10):
    """The same training in this process."""
    from drover._native import sample_indices

    model = launched.make_model()
    optimizer = launched.make_optimizer(kind, model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
    x, y = launched.data()
    for step in range(steps):
        batch = sample_indices(seed, step * samples, samples, launched.SIZE)
        optimizer.zero_grad()
        launched.loss_of(model, x[batch], y[batch]).backward()
        optimizer.step()
        scheduler.step()
    return model.state_dict()


@pytest.mark.parametrize("kind", ["momentum", "nesterov", "adam", "adamw", "rmsprop", "groups"])
def test_equals_training_alone(tmp_path, kind):
    run = launch(tmp_path, EQUALITY, "--deterministic", arguments=[kind])
    assert run.status == 0, run.said
    assert_states_equal(run.worker(0)["state"], run.worker(1)["state"])
    assert_states_equal(run.worker(0)["state"], alone(kind), 1e-5)
    assert run.worker(0)["outcome"] == run.outcome() == "completed"


def test_deterministic_runs_are_equal_bit_for_bit(tmp_path):
    states = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        run = launch(tmp_path / name, EQUALITY, "--deterministic", workers=3, arguments=["adam"])
        states.append(run.worker(2)["state"])
    assert_states_equal(*states)


def test_workers_start_equal_whatever_their_seeds(tmp_path):
    run = launch(
        tmp_path,
        """
        model = make_model(seed=int(os.environ["DROVER_RANK"]))
        optimizer = make_optimizer("momentum", model)
        with drover.join(model, optimizer) as run:
            with run.step():
                first = run.state_dict()
                loss_of(model, x, y).backward()
                optimizer.step()
        keep(run, model, first=first)
    """,
        steps=1,
    )
    assert_states_equal(run.worker(0)["first"], run.worker(1)["first"])
    assert_states_equal(run.worker(0)["state"], run.worker(1)["state"])


LATE = """
    class WaitUntilUnwanted(torch.autograd.Function):
        @staticmethod
        def forward(context, value):
            return value.clone()

        @staticmethod
        def backward(context, gradient):
            while run.rank == 1 and run._session.wanted():
                pass
            return gradient

    model = make_model()
    optimizer = make_optimizer("momentum", model)
    finished = begun = 0
    with drover.join(model, optimizer) as run:
        while True:
            with run.step(samples=SIZE):
                begun += 1
                hidden = WaitUntilUnwanted.apply(model[1](model[0](x)))
                nn.functional.cross_entropy(model[2](hidden), y).backward()
                optimizer.step()
                finished += 1
            assert all(parameter.grad is None for parameter in model.parameters())
    keep(run, model, begun=begun, finished=finished)
"""


def test_late_work_is_aborted_in_the_middle_of_the_backward_pass(tmp_path):
    run = launch(tmp_path, LATE, "--policy", "static:0.5", steps=20)
    assert run.status == 0, run.said
    assert run.outcome() == "completed"
    assert run.worker(0)["finished"] >= 20
    assert run.worker(1)["finished"] == 0 and run.worker(1)["begun"] > 0


def test_a_worker_that_was_late_last_has_the_final_parameters_too(tmp_path):
    run = launch(tmp_path, LATE, "--policy", "static:0.5", steps=20)
    assert_states_equal(run.worker(0)["state"], run.worker(1)["state"])


GOES_WRONG = """
    model = make_model()
    optimizer = make_optimizer("momentum", model)
    with drover.join(model, optimizer) as run:
        while True:
            with run.step(samples=SIZE):
                loss_of(model, x, y).backward()
                if run.rank == 1 and run.step_number == 3:
                    {wrong}
                optimizer.step()
    keep(run, model)
"""


def test_a_killed_worker_is_lost_and_the_run_continues(tmp_path):
    run = launch(tmp_path, GOES_WRONG.format(wrong="os.kill(os.getpid(), 9)"))
    assert run.status == 1 and "the script of worker 1 failed: killed by signal 9" in run.said
    assert run.worker(0)["outcome"] == "completed" and run.worker(0)["step"] >= 9
    assert not (tmp_path / "worker-1.pt").exists()


COMES_AND_GOES = """
    import time
    lives = OUT / f"lives-{os.environ['DROVER_RANK']}"
    with lives.open("a") as file:
        file.write("x")
    model = make_model()
    optimizer = make_optimizer("momentum", model)
    with drover.join(model, optimizer) as run:
        while True:
            with run.step(samples=SIZE):
                loss_of(model, x, y).backward()
                if run.rank == 1:
                    if len(lives.read_text()) <= 4:
                        os.kill(os.getpid(), 9)
                    (OUT / "back").touch()
                elif not (OUT / "back").exists():
                    time.sleep(0.1)
                optimizer.step()
    keep(run, model)
"""


def test_a_script_that_is_backed_off_comes_back(tmp_path):
    run = launch(tmp_path, COMES_AND_GOES, "--supervise", steps=600)
    assert run.worker(0)["outcome"] == "completed" and run.worker(1)["outcome"] == "completed"
    assert run.asked("select count(*) from events where kind = 'backed-off'") == [(1,)]
    assert len((tmp_path / "lives-1").read_text()) == 5


def test_an_error_of_one_script_ends_that_worker_alone(tmp_path):
    run = launch(tmp_path, GOES_WRONG.format(wrong="raise ValueError('no such colour')"), "--allow-failures", 1)
    assert run.status == 0, run.said
    assert run.worker(0)["outcome"] == "completed" and run.worker(0)["step"] >= 9
    assert not (tmp_path / "worker-1.pt").exists()
    assert "ValueError: no such colour" in run.said
    assert any("ValueError: no such colour" in str(event) for event in run.asked("select * from events"))


def test_a_parameter_added_after_joining(tmp_path):
    wrong = "optimizer.add_param_group({{'params': nn.Linear(2, 2).parameters()}})"
    run = launch(tmp_path, GOES_WRONG.format(wrong=wrong.replace("{{", "{").replace("}}", "}")))
    assert run.worker(0)["outcome"] == "completed"
    assert "a parameter group was added to the optimizer after the run was joined" in run.said


def test_a_script_that_fails_everywhere_fails_the_run(tmp_path):
    run = launch(
        tmp_path,
        GOES_WRONG.format(wrong="pass")
        .replace("run.rank == 1 and", "")
        .replace("loss_of(model, x, y).backward()", "raise ValueError('no such colour')"),
    )
    assert run.status != 0
    assert run.said.count("ValueError: no such colour") >= 2


@pytest.mark.parametrize("shape", ["(5, 8 + rank)", "(5, 8) if rank else (8, 5)"])
def test_shapes_that_differ_between_workers(tmp_path, shape):
    run = launch(
        tmp_path,
        """
        rank = int(os.environ["DROVER_RANK"])

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.zeros(SHAPE))

            def forward(self, x):
                return x @ self.weight.reshape(5, -1)

        model = Net()
        optimizer = make_optimizer("momentum", model)
        try:
            with drover.join(model, optimizer) as run:
                while True:
                    with run.step():
                        model(x).sum().backward()
                        optimizer.step()
            keep(run, model)
        except drover.Error as error:
            (OUT / f"error-{rank}").write_text(f"{type(error).__name__}: {error}")
            raise
    """.replace(
            "SHAPE", shape
        ),
        steps=3,
    )
    errors = [path.read_text() for path in sorted(tmp_path.glob("error-*"))]
    refused = [error for error in errors if error.startswith("JoinError")]
    assert len(refused) == 1 and "model differs from that of the other processes" in refused[0], errors
    if len(errors) == 2:  # the run begins with the values of worker 0, which was refused
        assert "worker 0 was lost before it had sent the initial parameters" in errors[1], run.said
    else:
        assert len(list(tmp_path.glob("worker-*.pt"))) == 1, run.said  # the other one trains


def test_shared_frozen_unused_parameters_and_running_statistics(tmp_path):
    run = launch(
        tmp_path,
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.into = nn.Linear(5, 5, bias=False)
                self.again = nn.Linear(5, 5, bias=False)
                self.again.weight = self.into.weight
                self.frozen = nn.Linear(5, 5).requires_grad_(False)
                self.norm = nn.BatchNorm1d(5)
                self.unused = nn.Linear(2, 2)

            def forward(self, x):
                return self.norm(self.again(self.frozen(self.into(x))))

        def train(model, optimizer, rank, workers):
            optimizer.zero_grad()
            model(x[rank::workers]).square().mean().backward()
            optimizer.step()

        torch.manual_seed(1)
        model, own = Net(), Net()
        own.load_state_dict(model.state_dict())
        before = own.state_dict()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with drover.join(model, optimizer) as run:
            while True:
                with run.step(samples=SIZE // 2):
                    train(model, optimizer, run.rank, run.workers)
        optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
        train(own, optimizer, run.rank, run.workers)
        keep(run, model, before=before, own=own.state_dict())
    """,
        "--deterministic",
        steps=1,
    )
    (a, b) = run.worker(0), run.worker(1)
    for name, value in a["state"].items():
        if name == "norm.num_batches_tracked":
            continue
        torch.testing.assert_close(value, b["state"][name], rtol=0, atol=0, msg=name)
        torch.testing.assert_close(value, (a["own"][name] + b["own"][name]) / 2, msg=name)  # SGD is linear in gradients
    assert_states_equal(
        {k: v for k, v in a["state"].items() if k.startswith(("frozen", "unused"))},
        {k: v for k, v in a["before"].items() if k.startswith(("frozen", "unused"))},
    )


def test_accumulated_gradients(tmp_path):
    run = launch(
        tmp_path,
        """
        model = make_model()
        optimizer = make_optimizer("momentum", model)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
        with drover.join(model, optimizer) as run:
            for batch in run.batches(SIZE):
                with run.step(samples=len(batch)):
                    optimizer.zero_grad()
                    with run.no_sync():
                        (loss_of(model, x[batch[:4]], y[batch[:4]]) / 2).backward()
                    (loss_of(model, x[batch[4:]], y[batch[4:]]) / 2).backward()
                    optimizer.step()
                scheduler.step()
        keep(run, model)
    """,
        "--deterministic",
    )
    assert_states_equal(run.worker(1)["state"], alone("momentum"), 1e-5)


def test_clipped_gradients(tmp_path):
    run = launch(
        tmp_path,
        """
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        with drover.join(model, optimizer, overlap=False) as run:
            while True:
                with run.step(samples=SIZE):
                    loss_of(model, x, y).backward()
                    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
                    optimizer.step()
        keep(run, model, before=before)
    """,
        steps=1,
    )
    result = run.worker(0)
    moved = sum((result["state"][name] - value).square().sum() for name, value in result["before"].items()).sqrt()
    assert moved == pytest.approx(1e-3, rel=1e-2)


def test_another_type(tmp_path, kind="bfloat16"):
    run = launch(
        tmp_path,
        """
        kind = getattr(torch, sys.argv[1])
        model = make_model().to(kind)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        losses = []
        with drover.join(model, optimizer) as run:
            while True:
                with run.step(samples=SIZE):
                    loss = loss_of(model, x.to(kind), y)
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
        keep(run, model, losses=losses)
    """,
        "--deterministic",
        steps=30,
        arguments=[kind],
    )
    result = run.worker(0)
    assert result["losses"][-1] < result["losses"][0] / 2
    assert result["state"]["0.weight"].dtype == getattr(torch, kind)
    assert_states_equal(result["state"], run.worker(1)["state"])


def test_save_and_load(tmp_path):
    script = """
        model = make_model()
        saved = OUT / "model.pt"
        if saved.exists():
            model.load_state_dict(torch.load(saved))
        optimizer = make_optimizer("momentum", model)
        losses = []
        with drover.join(model, optimizer) as run:
            while True:
                with run.step(samples=SIZE):
                    loss = loss_of(model, x, y)
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
                if run.rank == 0 and run.step_number == 7:
                    run.save(saved)
        keep(run, model, losses=losses)
    """
    first = launch(tmp_path, script).worker(1)
    (tmp_path / "run.db").unlink()
    second = launch(tmp_path, script).worker(1)
    assert second["losses"][0] == pytest.approx(first["losses"][8], rel=1e-5)


def test_evaluating_the_average(tmp_path):
    run = launch(
        tmp_path,
        """
        model = make_model()
        optimizer = make_optimizer("momentum", model)
        seen = []
        with drover.join(model, optimizer) as run:
            while True:
                with run.step(samples=SIZE):
                    while run.rank == 1 and run.step_number == 7 and not (OUT / "evaluated").exists():
                        pass  # the run does not wait for the worker that evaluates
                    loss_of(model, x, y).backward()
                    optimizer.step()
                if run.rank == 0 and run.step_number == 6:
                    before = run.state_dict()
                    with run.averaged() as version, torch.no_grad():
                        loss = loss_of(model, x, y).item()
                        run.evaluated(loss=loss, accuracy=0.5, samples=SIZE)
                        seen.append((version, loss, any((run.state_dict()[n] != v).any() for n, v in before.items())))
                    assert all(torch.equal(run.state_dict()[n], v) for n, v in before.items())
                    (OUT / "evaluated").touch()
        keep(run, model, seen=seen)
    """,
        "--evaluate-every",
        2,
        "--ema",
        0.9,
    )
    assert run.status == 0, run.said
    ((version, loss, differs),) = run.worker(0)["seen"]
    assert version % 2 == 0 and version > 0 and differs
    assert [
        row
        for row in run.asked("select * from evaluations")
        if any(v == pytest.approx(loss) for v in row if isinstance(v, float))
    ]


def test_no_coordinator(tmp_path):
    script = write_script(
        tmp_path,
        """
        model = make_model()
        drover.join(model, make_optimizer("momentum", model))
    """,
    )
    done = subprocess.run(
        [sys.executable, script], env=environment_for(tmp_path), timeout=DEADLINE, capture_output=True, text=True
    )
    assert done.returncode == 1
    for part in ("JoinError", f"{tmp_path}/drover/token-29600", "127.0.0.1:29600", "drover launch", "drover serve"):
        assert part in done.stderr, done.stderr


def test_a_coordinator_that_is_gone(tmp_path):
    (tmp_path / "drover").mkdir()
    (tmp_path / "drover" / "token-29600").write_text("00" * 16 + "\nunix:@drover-gone\n")
    script = write_script(
        tmp_path,
        """
        model = make_model()
        drover.join(model, make_optimizer("momentum", model))
    """,
    )
    done = subprocess.run(
        [sys.executable, script], env=environment_for(tmp_path), timeout=DEADLINE, capture_output=True, text=True
    )
    assert done.returncode == 1
    for part in ("JoinError", "unix:@drover-gone", f"{tmp_path}/drover/token-29600", "drover launch"):
        assert part in done.stderr, done.stderr


def test_serve_and_workers_that_find_it(tmp_path):
    script = write_script(tmp_path, EQUALITY)
    environment = environment_for(tmp_path)
    serve = [
        DROVER,
        "serve",
        "--workers",
        "2",
        "--steps",
        "10",
        "--batch",
        "8",
        "--seed",
        "3",
        "--deterministic",
        "--run-file",
        str(tmp_path / "run.db"),
    ]
    server = subprocess.Popen(serve, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    workers = []
    try:
        for line in server.stderr:
            if "token" in line:
                break
        for rank in range(2):
            ranked = {**environment, "RANK": str(rank), "MASTER_ADDR": "localhost"}
            workers.append(subprocess.Popen([sys.executable, script, "momentum"], env=ranked))
        assert [worker.wait(DEADLINE) for worker in workers] == [0, 0]
        server.communicate(timeout=DEADLINE)
        assert server.returncode == 0
    finally:
        for process in [server, *workers]:
            process.kill()
            process.wait()
    assert_states_equal(torch.load(tmp_path / "worker-0.pt")["state"], alone("momentum"), 1e-5)


def test_a_run_ends_when_what_a_worker_evaluated_reaches_the_target(tmp_path):
    run = launch(
        tmp_path,
        """
        model = make_model()
        optimizer = make_optimizer("momentum", model)
        with drover.join(model, optimizer) as run:
            while True:
                with run.step():
                    model(x).square().mean().backward()
                    optimizer.step()
                if run.rank == 0 and run.step_number >= 5:
                    run.evaluated(loss=0.1, accuracy=0.9, samples=10)
        keep(run, model)
    """,
        "--stop-at",
        "accuracy=0.8",
        "--evaluate-every",
        2,
        steps=100_000,
    )
    assert run.status == 0, run.said
    assert run.outcome() == "completed"
    assert len(list(tmp_path.glob("worker-*.pt"))) == 2, run.said
    assert run.asked("select kind from events where kind = 'reached'"), run.asked("select * from events")


def test_a_worker_with_its_parameters_elsewhere_pulls_the_next_ones_while_it_computes(tmp_path):
    """What a GPU's worker does, on a CPU: each step sees one version, whole, and the last is the run's."""
    run = launch(
        tmp_path,
        """
        import numpy as np
        from drover import _native

        rank, sizes = int(os.environ["DROVER_RANK"]), [300_000, 70_000, 5]
        session = _native.Session(address=os.environ["DROVER_ADDRESS"], token=os.environ["DROVER_TOKEN"], rank=rank,
                                  tensors=[_native.Tensor(f"t{size}", size) for size in sizes],
                                  optimizer={"kind": "sgd", "rate": 0.5}, copiers=3)
        here, gradient = np.asarray(session.parameters), np.asarray(session.gradient)
        here[:] = 1.0
        parts = [slice(first, first + size) for first, size in zip(session.offsets, sizes)]
        expected = [1.0]
        session.start()
        while (step := session.next_step()) is not None:
            elsewhere = here.copy()
            assert step == len(expected) - 1
            session.pull_ahead()
            for index in reversed(range(len(parts))):
                assert (elsewhere[parts[index]] == expected[step]).all(), (step, index)
                gradient[parts[index]] = elsewhere[parts[index]] - (step + 2 * rank)
                assert session.tensor_ready(index, 8)
            session.finish_step(True, 8)
            expected.append(expected[step] - 0.5 * (expected[step] - (step + 1)))
        assert all((here[part] == expected[-1]).all() for part in parts)
        session.leave()
        (OUT / f"steps-{rank}").write_text(str(len(expected) - 1))
    """,
        "--shards",
        2,
        steps=40,
    )
    assert run.status == 0, run.said
    assert [(tmp_path / f"steps-{rank}").read_text() for rank in (0, 1)] == ["40", "40"], run.said


PLAIN = """
    model = make_model()
    optimizer = make_optimizer("momentum", model)
    run = drover.join(model, optimizer)
    for step in range(5):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        {change}
        optimizer.step()
    keep(run, model)
"""


def test_a_script_without_with_ends_the_run_and_the_last_checkpoint_is_written(tmp_path):
    run = launch(
        tmp_path, PLAIN.format(change=""), "--checkpoint", tmp_path / "kept", "--checkpoint-every", 1000, steps=100_000
    )
    assert run.status == 0, run.said
    assert run.outcome() == "completed"
    from drover import load_checkpoint

    state = load_checkpoint(tmp_path / "kept")
    assert_states_equal(dict(state), {name: run.worker(0)["state"][name] for name in state})
    assert run.asked("select count(*) from steps") == [(5,)]


def test_stop_ends_the_run_for_all_with_the_same_parameters(tmp_path):
    run = launch(
        tmp_path,
        """
        model = make_model()
        optimizer = make_optimizer("momentum", model)
        with drover.join(model, optimizer) as run:
            for step in range(100_000):
                optimizer.zero_grad()
                loss_of(model, x, y).backward()
                optimizer.step()
                if run.rank == 1 and step == 5:
                    run.stop()
        keep(run, model)
    """,
        steps=200_000,
    )
    assert run.status == 0, run.said
    assert 6 <= run.worker(0)["step"] == run.worker(1)["step"] <= 20
    assert_states_equal(run.worker(0)["state"], run.worker(1)["state"])


def test_a_worker_that_remains_does_not_train_alone(tmp_path):
    run = launch(
        tmp_path,
        """
        model = make_model()
        optimizer = make_optimizer("momentum", model)
        made = 0
        with drover.join(model, optimizer) as run:
            for step in range(5 if drover.rank() == 0 else 100_000):
                optimizer.zero_grad()
                loss_of(model, x, y).backward()
                optimizer.step()
                made += 1
        keep(run, model, made=made)
    """,
        steps=200_000,
    )
    assert run.status == 0, run.said
    assert 5 <= run.worker(1)["made"] <= 8


def test_the_end_of_a_plain_script_after_the_last_step(tmp_path):
    run = launch(tmp_path, PLAIN.format(change="").replace("range(5)", "range(1000)"), steps=3)
    assert run.status == 0, run.said
    assert "the run is over after 3 steps" in run.said
    assert run.outcome() == "completed"


def test_a_plain_script_that_fails_is_named(tmp_path):
    run = launch(
        tmp_path,
        PLAIN.format(change="if drover.rank() == 1 and step == 2: raise ValueError('no such colour')"),
        steps=100_000,
    )
    assert run.status == 1
    assert "the script of worker 1 failed: exited with status 1" in run.said
    assert any("ValueError: no such colour" in str(event) for event in run.asked("select * from events"))
    assert run.worker(0)["state"]


def test_untrained_values_that_differ_are_refused(tmp_path):
    run = launch(
        tmp_path,
        """
        model = make_model()
        model.register_buffer("table", torch.full((3,), float(drover.rank())))
        drover.join(model, make_optimizer("momentum", model))
    """,
    )
    assert run.status != 0 and "Load them in every worker" in run.said


def test_modules_run_with_m(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    script = write_script(tmp_path, PLAIN.format(change=""))
    script.rename(tmp_path / "package" / "train.py")
    command = [
        DROVER,
        "launch",
        "--quiet",
        "--python",
        sys.executable,
        "--workers",
        "2",
        "--run-file",
        tmp_path / "run.db",
        "-m",
        "package.train",
    ]
    done = subprocess.run(
        [str(word) for word in command],
        env=environment_for(tmp_path),
        cwd=tmp_path,
        timeout=DEADLINE,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "worker-1.pt").exists()


def test_launch_says_its_ranks_as_torchrun_does(tmp_path):
    ranks = "[os.environ[name] for name in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'DROVER_WORKERS')]"
    run = launch(
        tmp_path,
        PLAIN.format(change=f"assert {ranks} == [str(run.rank)] * 2 + ['3'] * 2 and drover.workers() == 3"),
        workers=3,
    )
    assert run.status == 0, run.said


def test_workers_with_the_same_gradient_are_named(tmp_path):
    run = launch(tmp_path, PLAIN.format(change="").replace("range(5)", "range(15)"), steps=100_000)
    assert run.status == 0 and run.said.count("all workers compute the same gradient") == 1, run.said


def test_a_killed_worker_with_loader_processes_is_noticed_at_once(tmp_path):
    run = launch(
        tmp_path,
        """
        import time

        class Slow(torch.utils.data.Dataset):
            def __len__(self):
                return 1000

            def __getitem__(self, index):
                if index > 3:
                    time.sleep(20)
                return x[index % SIZE], y[index % SIZE]

        model = make_model()
        optimizer = make_optimizer("momentum", model)
        run = drover.join(model, optimizer)
        loader = iter(torch.utils.data.DataLoader(Slow(), batch_size=2, num_workers=1))
        first = next(loader)
        began = time.monotonic()
        for step in range(5):
            optimizer.zero_grad()
            loss_of(model, *first).backward()
            if run.rank == 1 and step == 2:
                os.kill(os.getpid(), 9)
            optimizer.step()
        keep(run, model, took=time.monotonic() - began)
        os.kill(loader._workers[0].pid, 9)
        del loader
    """,
        "--allow-failures",
        2,
        steps=100_000,
    )
    assert run.worker(0)["took"] < 8, run.said
