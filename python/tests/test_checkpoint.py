"""Checkpoints of scripts' runs, and what Python reads of them. Needs the program (DROVER_BIN)."""

import json
import subprocess
import sys

import pytest

from conftest import DROVER

pytestmark = pytest.mark.skipif(not DROVER, reason="DROVER_BIN is not set")

torch = pytest.importorskip("torch")
import drover  # noqa: E402
import launched  # noqa: E402
from test_launch import assert_states_equal, environment_for, launch  # noqa: E402

# The script's own first values differ each time: those of the run count.
SCRIPT = """
    model = make_model(seed=int(sys.argv[1]))
    optimizer = make_optimizer("adamw", model)
    with drover.join(model, optimizer) as run:
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
        for _ in range(run.first_step):
            scheduler.step()
        numbers = []
        for batch in run.batches(SIZE):
            with run.step(samples=len(batch)) as step:
                optimizer.zero_grad()
                loss = loss_of(model, x[batch], y[batch])
                loss.backward()
                optimizer.step()
                numbers.append(step.number)
            scheduler.step()
    keep(run, model, numbers=numbers)
"""


def train(folder, steps, *flags, seed=0):
    folder.mkdir()
    run = launch(folder, SCRIPT, "--deterministic", *flags, steps=steps, arguments=[seed])
    assert run.status == 0, run.said
    return run.worker(0)


def test_a_script_continues_where_it_was(tmp_path):
    whole = train(tmp_path / "whole", 20)
    checkpoints = tmp_path / "ck"
    half = train(tmp_path / "half", 10, "--checkpoint", checkpoints, "--ema", 0.9)
    assert_states_equal(drover.load_checkpoint(checkpoints), half["state"])
    with_average = drover.load_checkpoint(checkpoints / "step-0000000010", average=True)
    assert not torch.equal(with_average["0.weight"], half["state"]["0.weight"])

    rest = train(tmp_path / "rest", 20, "--resume", checkpoints, "--ema", 0.9, "--shards", 3, seed=1)
    assert rest["numbers"] == list(range(10, 20))
    assert_states_equal(rest["state"], whole["state"])


def test_another_model_is_refused(tmp_path):
    train(tmp_path / "half", 4, "--checkpoint", tmp_path / "ck")
    other = tmp_path / "other"
    other.mkdir()
    run = launch(
        other,
        SCRIPT.replace("make_model(seed=int(sys.argv[1]))", "torch.nn.Linear(5, 3)"),
        "--resume",
        tmp_path / "ck",
        steps=8,
        arguments=[0],
    )
    assert run.status != 0
    assert "differs from that of the checkpoint" in run.said


def test_export_writes_a_state_dict(tmp_path):
    half = train(tmp_path / "half", 4, "--checkpoint", tmp_path / "ck")
    out = tmp_path / "model.pt"
    done = subprocess.run(
        [sys.executable, "-m", "drover.checkpoint", "export", tmp_path / "ck", "--out", out],
        env=environment_for(tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    model = launched.make_model(seed=9)
    model.load_state_dict(torch.load(out))
    assert_states_equal(model.state_dict(), half["state"])
    # The program's own file says the same, in the words of safetensors.
    plain = tmp_path / "model.safetensors"
    subprocess.run([DROVER, "checkpoint", "export", tmp_path / "ck", "--out", plain], check=True, capture_output=True)
    data = plain.read_bytes()
    length = int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + place for place in entry["data_offsets"])
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32)
        assert torch.equal(values.reshape(entry["shape"]), half["state"][name])


def test_damage_is_named(tmp_path):
    train(tmp_path / "half", 4, "--checkpoint", tmp_path / "ck")
    part = tmp_path / "ck" / "step-0000000004" / "shard-0.safetensors"
    good = part.read_bytes()
    for place in (9, len(good) - 1):
        part.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(drover.Error, match="shard-0.safetensors is damaged"):
            drover.load_checkpoint(tmp_path / "ck")
    part.write_bytes(good[:-4])
    with pytest.raises(drover.Error, match="shard-0.safetensors is damaged"):
        drover.load_checkpoint(tmp_path / "ck" / "step-0000000004")
    with pytest.raises(drover.Error, match="kept no average"):
        part.write_bytes(good)
        drover.load_checkpoint(tmp_path / "ck", average=True)
    with pytest.raises(drover.Error, match="no checkpoint"):
        drover.load_checkpoint(tmp_path)
