"""The examples find the data sets that drover finds, say what to install, and run on generated data."""

from __future__ import annotations

import argparse
import difflib
import gzip
import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_run import PROGRAM, needs_program

torch = pytest.importorskip("torch")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "pytorch"


# By its folder, as for the scripts themselves. The package has a module of the same name, inside it.
@pytest.fixture(scope="module")
def data():
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield importlib.import_module("data")
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def models(data):
    return importlib.import_module("models")


def write_idx(path: Path, values: np.ndarray) -> None:
    head = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
    raw = head + values.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def make_mnist(folder: Path, ending: str = "") -> np.ndarray:
    folder.mkdir(parents=True)
    drawn = np.random.default_rng(3)
    pictures = drawn.integers(0, 256, (30, 28, 28))
    for part in ("train", "t10k"):
        write_idx(folder / f"{part}-images-idx3-ubyte{ending}", pictures)
        write_idx(folder / f"{part}-labels-idx1-ubyte{ending}", np.arange(30) % 10)
    return pictures


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_mnist_is_read_from_where_drover_keeps_it(
    data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    pictures = make_mnist(tmp_path / "drover" / "mnist", ending)
    images = data.load_images("mnist", None, False, (1, 28, 28))
    x, y = images.train[7]
    assert len(images.train) == len(images.test) == 30 and images.classes == 10
    assert y == 7 and np.array_equal(x[0].numpy(), pictures[7])
    prepared = images.prepare(images.train[:][0], torch.device("cpu"))
    assert abs(prepared.mean().item()) < 1e-3 and abs(prepared.std().item() - 1) < 1e-2


def test_the_default_places(data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data.place_of("cifar10") == tmp_path / ".local/share/drover/cifar10"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")  # is no folder by the rules of XDG
    assert data.place_of("mnist") == tmp_path / ".local/share/drover/mnist"
    assert data.place_of("mnist", "/data") == Path("/data/mnist")
    assert data.place_of("fashion-mnist") == Path("/usr/share/datasets/fashion-mnist")
    assert data.place_of("./mine") == Path("mine")


def test_cifar10_is_read_from_binary_batches(data, tmp_path: Path) -> None:
    records = np.random.default_rng(5).integers(0, 256, (12, 3073)).astype(np.uint8)
    records[:, 0] = np.arange(12) % 10
    folder = tmp_path / "cifar10"
    folder.mkdir()
    (folder / "data_batch_1.bin.gz").write_bytes(gzip.compress(records[:5].tobytes()))
    (folder / "data_batch_2.bin").write_bytes(records[5:10].tobytes())
    (folder / "test_batch.bin").write_bytes(records[10:].tobytes())
    images = data.load_images("cifar10", str(tmp_path), False, (3, 32, 32))
    assert len(images.train) == 10 and len(images.test) == 2
    x, y = images.train[6]
    assert y == 6 and np.array_equal(x.numpy().ravel(), records[6, 1:])
    (folder / "test_batch.bin").write_bytes(records[10:].tobytes()[:-1])
    with pytest.raises(SystemExit, match="truncated"):
        data.load_images("cifar10", str(tmp_path), False, (3, 32, 32))


def test_what_is_missing_is_reported_with_what_to_do(data, tmp_path: Path) -> None:
    for name, remedy in (
        ("mnist", "drover data get mnist"),
        ("cifar10", "drover data get cifar10"),
        ("fashion-mnist", "apt-get install dataset-fashion-mnist"),
        ("fmnist", "no data set of that name"),
    ):
        with pytest.raises(SystemExit, match=remedy) as reported:
            data.load_images(name, str(tmp_path / "none"), False, (1, 28, 28))
        assert "--generated" in str(reported.value)
    make_mnist(tmp_path / "mnist")
    with pytest.raises(SystemExit, match=r"this model needs \(3, 32, 32\)"):
        data.load_images("mnist", str(tmp_path), False, (3, 32, 32))
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(SystemExit, match="has no t10k-labels-idx1-ubyte"):
        data.load_images("mnist", str(tmp_path), False, (1, 28, 28))


def test_a_damaged_idx_file_is_reported(data, tmp_path: Path) -> None:
    file = tmp_path / "x"
    write_idx(file, np.zeros((4, 3, 3)))
    assert data.read_idx(file).shape == (4, 3, 3)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(SystemExit, match="truncated"):
        data.read_idx(file)
    file.write_bytes(b"something else")
    with pytest.raises(SystemExit, match="no IDX file"):
        data.read_idx(file)
    file.write_bytes(gzip.compress(b"a" * 1000)[:20])
    with pytest.raises(SystemExit, match="damaged"):
        data.read_idx(file)


def test_generated_pictures_are_the_same_for_a_seed_and_can_be_reported_apart(data) -> None:
    first, again, other = (data.load_images("", None, True, (1, 28, 28), seed) for seed in (1, 1, 2))
    x, y = first.train[:]
    assert torch.equal(x, again.train[:][0]) and not torch.equal(x, other.train[:][0])
    means = torch.stack([x[y == label].float().mean(0) for label in range(10)]).flatten(1)
    test_x, test_y = first.test[:]
    nearest = torch.cdist(test_x.float().flatten(1), means).argmin(1)
    assert (nearest == test_y).float().mean() > 0.8


def test_augmented_pictures_are_shifted_or_mirrored(data) -> None:
    torch.manual_seed(4)
    x = torch.zeros(200, 1, 32, 32, dtype=torch.uint8)
    x[:, 0, 16, 10] = 255
    moved = data.augment(x)
    assert moved.shape == x.shape and moved.dtype == x.dtype
    where = moved[:, 0].nonzero()
    assert len(where) == 200
    rows, columns = where[:, 1], where[:, 2]
    assert set((rows - 16).tolist()) == set(range(-4, 5))
    assert all(abs(column - 10) <= 4 or abs(column - 21) <= 4 for column in columns.tolist())
    assert (columns < 16).any() and (columns > 16).any()


def test_text_becomes_stretches_with_what_follows(data, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("abcdefghij" * 20)
    train, test, characters = data.load_text(str(tmp_path / "text"), False, 8)
    assert characters == 10 and len(train) == 22 and len(test) == 2
    x, y = train[1]
    assert x.tolist() == [8, 9, 0, 1, 2, 3, 4, 5] and y.tolist() == [9, 0, 1, 2, 3, 4, 5, 6]
    with pytest.raises(SystemExit, match="smaller --context"):
        data.load_text(str(tmp_path / "text"), False, 64)
    with pytest.raises(SystemExit, match="--text FILE"):
        data.load_text(None, False, 8)
    with pytest.raises(SystemExit, match="no text file"):
        data.load_text(str(tmp_path / "none"), False, 8)
    (tmp_path / "bytes").write_bytes(b"a\0b")
    with pytest.raises(SystemExit, match="zero bytes"):
        data.load_text(str(tmp_path / "bytes"), False, 8)
    assert len(data.load_text(None, True, 64)[0]) > 1000


def test_a_worker_goes_over_its_own_part(data, monkeypatch) -> None:
    args = argparse.Namespace(batch=2, seed=1)
    parts = []
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "2")
        loader = data.own_part(torch.utils.data.TensorDataset(torch.arange(8)), args)
        assert data.steps_in(loader, 1.5) == 3
        parts.append(torch.cat([batch for batch, in data.passes(loader, 1)]).tolist())
        assert len(list(data.passes(loader, 1.5))) == 3
    assert sorted(sum(parts, [])) == list(range(8))


def test_rates_rise_and_fall(data) -> None:
    rates = [data.cosine(step, 100, 1.0, warmup=10) for step in range(101)]
    assert rates[0] == pytest.approx(0.1) and max(rates) == rates[9] == pytest.approx(1.0)
    assert rates[-1] == pytest.approx(0.1) and all(a >= b for a, b in zip(rates[10:], rates[11:]))
    assert data.cosine(0, 1, 0.5, warmup=0) == 0.5


def test_models_have_the_sizes_that_they_say(models) -> None:
    assert models.parameters_in(models.small_cnn()) == 1_199_882
    assert models.parameters_in(models.resnet18()) == 11_173_962
    assert 95e6 < models.parameters_in(models.CharGpt(65, models.PRESETS["100m"])) < 105e6


def test_the_gpt_does_not_look_ahead(models) -> None:
    torch.manual_seed(1)
    model = models.CharGpt(20, models.Sizes(layers=2, heads=2, width=16, context=12)).eval()
    codes = torch.randint(0, 20, (1, 12))
    other = codes.clone()
    other[0, 7] = (codes[0, 7] + 1) % 20
    with torch.no_grad():
        before, after = model(codes), model(other)
    assert torch.allclose(before[0, :7], after[0, :7], atol=1e-6)
    assert not torch.allclose(before[0, 7:], after[0, 7:], atol=1e-6)
    assert model.out.weight is model.characters.weight


EXAMPLE_FLAGS = {
    "mnist_cnn": [],
    "mnist_vae": [],
    "mnist_gan": [],
    "cifar_resnet18": ["--width", "4", "--loaders", "1"],
    "char_gpt": ["--layers", "1", "--heads", "2", "--width", "16", "--context", "32"],
    "tied_lstm": ["--width", "16", "--context", "16"],
}


@pytest.mark.parametrize("name", EXAMPLE_FLAGS)
def test_the_two_forms_differ_in_a_few_lines(name: str) -> None:
    drover, ddp = (EXAMPLES.joinpath(f"{name}{form}.py").read_text().splitlines() for form in ("", "_ddp"))
    changed = [line for line in difflib.ndiff(ddp, drover) if line[0] in "+-"]
    assert len(changed) <= 6, "\n".join(changed)


@pytest.mark.parametrize("name", EXAMPLE_FLAGS)
def test_ddp_forms_run_on_generated_data(name: str, tmp_path: Path) -> None:
    # One process and a file to meet at: no port.
    script = (
        f"import sys, runpy; from torch import distributed as d; init = d.init_process_group\n"
        f"d.init_process_group = lambda backend: init(backend, init_method='file://{tmp_path}/meet', "
        f"rank=0, world_size=1)\n"
        f"sys.path.insert(0, {str(EXAMPLES)!r}); sys.argv = sys.argv[1:]\n"
        f"runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    flags = ["--generated", "--batch", "4", "--epochs", "0.004", "--save", tmp_path / "model.pt", *EXAMPLE_FLAGS[name]]
    done = subprocess.run(
        [sys.executable, "-c", script, EXAMPLES / f"{name}_ddp.py", *map(str, flags)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "steps, test loss" in done.stdout
    assert all(torch.isfinite(values).all() for values in torch.load(tmp_path / "model.pt").values())


def has_launch() -> bool:
    commands = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True).stdout if PROGRAM else ""
    return any(line.split()[:1] == ["launch"] for line in commands.splitlines())


@needs_program
@pytest.mark.skipif(not has_launch(), reason="this drover program has no launch")
@pytest.mark.parametrize("name", EXAMPLE_FLAGS)
def test_examples_run_under_launch(name: str, tmp_path: Path) -> None:
    flags = ["--generated", "--batch", "4", "--epochs", "0.008", "--save", tmp_path / "model.pt", *EXAMPLE_FLAGS[name]]
    done = subprocess.run(
        [
            PROGRAM,
            "launch",
            "--workers",
            "2",
            "--batch",
            "4",
            "--python",
            sys.executable,
            "--run-file",
            tmp_path / "run.db",
            EXAMPLES / f"{name}.py",
            *map(str, flags),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "steps, test loss" in done.stdout
    assert all(torch.isfinite(values).all() for values in torch.load(tmp_path / "model.pt").values())
