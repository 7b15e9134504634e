"""Data sets for the examples, from where `drover` keeps them, and the flags that all of the examples have.

    mnist, cifar10   $XDG_DATA_HOME/drover or ~/.local/share/drover: what `drover data get mnist` fetches
    fashion-mnist    /usr/share/datasets/fashion-mnist: Debian's package dataset-fashion-mnist
    a folder         with IDX files or CIFAR-10's binary batches, each gzip or plain

Only numpy and torch are needed. Pictures stay bytes until a mini-batch is made of them.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")


# --- flags


def flags(about: str | None, *, epochs: float, batch: int, rate: float) -> argparse.ArgumentParser:
    """A parser with the flags that all examples have."""
    parser = argparse.ArgumentParser(
        description=(about or "").split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--epochs", type=float, default=epochs, help="passes through the training data")
    parser.add_argument("--batch", type=int, default=batch, help="samples of one worker in one step")
    parser.add_argument("--lr", type=float, default=rate, help="learning rate")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--data-dir", help="folder of the data sets")
    parser.add_argument("--generated", action="store_true", help="use generated data: nothing to download")
    parser.add_argument("--save", help="write the trained model's state_dict to this file")
    return parser


def rank() -> int:
    """The number of this process among those that train together, as its launcher says."""
    return int(os.environ.get("RANK", "0"))


def device_of(name: str) -> torch.device:
    """`cuda` is the GPU of this worker: as many workers as there are GPUs have one each, more share them in turn."""
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise SystemExit(f"--device {name}: this PyTorch sees no GPU; use --device cpu")
    return (
        torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank())) % torch.cuda.device_count())
        if name == "cuda"
        else torch.device(name)
    )


def workers() -> int:
    """How many processes train together, as their launcher says."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def own_part(dataset: Dataset, args: argparse.Namespace, **options: Any) -> DataLoader:
    """A loader of the samples of this worker: a part of each epoch's permutation."""
    sampler = DistributedSampler(dataset, workers(), rank(), seed=args.seed)
    return DataLoader(dataset, args.batch, sampler=sampler, drop_last=True, **options)


def passes(loader: DataLoader, epochs: float) -> Iterator[Any]:
    """So many passes through a loader, each in an order of its own."""
    steps = steps_in(loader, epochs)
    for epoch in itertools.count():
        loader.sampler.set_epoch(epoch)
        for batch in loader:
            yield batch
            steps -= 1
            if steps == 0:
                return


def steps_in(loader: DataLoader, epochs: float) -> int:
    """How many steps so many passes are."""
    return max(1, round(epochs * len(loader)))


def save(model: torch.nn.Module, path: str | None) -> None:
    """Writes the state_dict, by rank 0; of the model inside a DistributedDataParallel."""
    if path and rank() == 0:
        torch.save(getattr(model, "module", model).state_dict(), path)


def cosine(step: int, steps: int, peak: float, warmup: int) -> float:
    """The learning rate of a step: rises to `peak` during the warm-up, then falls to a tenth of it."""
    if step < warmup:
        return peak * (step + 1) / warmup
    done = min(1.0, (step - warmup) / max(1, steps - warmup))
    return peak * (0.1 + 0.45 * (1.0 + math.cos(math.pi * done)))


# --- pictures


@dataclass(frozen=True)
class Images:
    """Pictures as bytes, and what makes numbers around 0 of them."""

    train: TensorDataset
    test: TensorDataset
    classes: int
    mean: torch.Tensor
    deviation: torch.Tensor

    def prepare(self, x: torch.Tensor, device: torch.device) -> torch.Tensor:
        return (x.to(device).float() - self.mean.to(device)) / self.deviation.to(device)


def load_images(name: str, folder: str | None, generated: bool, shape: tuple[int, int, int], seed: int = 1) -> Images:
    """`name` is mnist, fashion-mnist, cifar10 or a folder; ends the program with what to install if it is not there."""
    if generated:
        return _images(*_generate_images(shape, 4096, seed), *_generate_images(shape, 1024, seed, test=True))
    place = place_of(name, folder)
    if not place.is_dir():
        raise SystemExit(_missing(name, place))
    batches = sorted(file for file in place.iterdir() if file.name.startswith("data_batch_"))
    found = (
        [_read_cifar(batches), _read_cifar([_file(place, "test_batch.bin")])] if batches else _read_idx_folder(place)
    )
    (train_x, train_y), (test_x, test_y) = found
    if train_x.shape[1:] != shape:
        raise SystemExit(
            f"the pictures in {place} are {train_x.shape[1:]} (channels, height, width), and this model needs {shape}"
        )
    return _images(train_x, train_y, test_x, test_y)


def place_of(name: str, folder: str | None = None) -> Path:
    """Where a data set is looked for: as `drover train --data` does."""
    if name == "fashion-mnist":
        return Path(folder) / name if folder else FASHION_MNIST
    if name not in ("mnist", "cifar10"):
        return Path(name)
    if folder:
        return Path(folder) / name
    home = os.environ.get("XDG_DATA_HOME", "")
    return (Path(home) if home.startswith("/") else Path.home() / ".local/share") / "drover" / name


def augment(x: torch.Tensor) -> torch.Tensor:
    """Pictures shifted by up to four pixels, half of them mirrored, as is customary for CIFAR-10."""
    x = torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(3), x)
    padded = torch.nn.functional.pad(x, (4, 4, 4, 4))
    down, right = torch.randint(0, 9, (2, len(x)))
    rows = down[:, None] + torch.arange(x.shape[2])
    columns = right[:, None] + torch.arange(x.shape[3])
    pictures = torch.arange(len(x))[:, None, None]
    return padded.permute(0, 2, 3, 1)[pictures, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


@torch.no_grad()
def evaluate(model: torch.nn.Module, images: Images, device: torch.device) -> tuple[float, float]:
    """Mean loss and accuracy on the test pictures."""
    was_training = model.training
    model.eval()
    loss, right = 0.0, 0
    for first in range(0, len(images.test), 500):
        x, y = images.test[first : first + 500]
        guess, y = model(images.prepare(x, device)), y.to(device)
        loss += torch.nn.functional.cross_entropy(guess, y, reduction="sum").item()
        right += int((guess.argmax(1) == y).sum())
    model.train(was_training)
    return loss / len(images.test), right / len(images.test)


def _images(train_x: np.ndarray, train_y: np.ndarray, test_x: np.ndarray, test_y: np.ndarray) -> Images:
    some = train_x[:: max(1, len(train_x) // 5000)].astype(np.float32)
    mean, deviation = some.mean(axis=(0, 2, 3)), some.std(axis=(0, 2, 3)) + 1e-6

    def dataset(x: np.ndarray, y: np.ndarray) -> TensorDataset:
        return TensorDataset(torch.from_numpy(x), torch.from_numpy(y.astype(np.int64)))

    return Images(
        dataset(train_x, train_y),
        dataset(test_x, test_y),
        int(train_y.max()) + 1,
        torch.from_numpy(mean)[:, None, None],
        torch.from_numpy(deviation)[:, None, None],
    )


def _missing(name: str, place: Path) -> str:
    try_it = "or try the example with --generated"
    if name == "fashion-mnist":
        return f"fashion-mnist is not in {place}. Get it with: apt-get install dataset-fashion-mnist; {try_it}"
    if name in ("mnist", "cifar10"):
        return f"{name} is not in {place}. Get it with: drover data get {name}; {try_it}"
    return f"there is no folder {place}, and no data set of that name (mnist, fashion-mnist, cifar10); {try_it}"


def _file(folder: Path, *names: str) -> Path:
    for name in names:
        for candidate in (folder / name, folder / f"{name}.gz"):
            if candidate.is_file():
                return candidate
    raise SystemExit(f"{folder} has no {names[0]}, neither plain nor .gz: the data set is not complete")


def _bytes(file: Path) -> bytes:
    raw = file.read_bytes()
    try:
        return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (EOFError, OSError) as trouble:
        raise SystemExit(f"{file} is damaged ({trouble}); copy or download it again") from trouble


def read_idx(file: Path) -> np.ndarray:
    """An IDX file of bytes: two zeros, 8, the number of dimensions, their sizes, the bytes."""
    raw = _bytes(file)
    if len(raw) < 4 or raw[:3] != b"\0\0\x08":
        raise SystemExit(f"{file} is no IDX file of bytes")
    begin = 4 + 4 * raw[3]
    shape = tuple(np.frombuffer(raw[4:begin], ">u4").astype(int))
    if len(shape) != raw[3] or len(raw) - begin != math.prod(shape):
        raise SystemExit(f"{file} is truncated or does not fit its header; copy or download it again")
    return np.frombuffer(raw, np.uint8, offset=begin).reshape(shape).copy()


def _read_idx_folder(folder: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    parts = []
    for part in ("train", "t10k"):
        x = read_idx(_file(folder, f"{part}-images-idx3-ubyte", f"{part}-images.idx3-ubyte"))
        y = read_idx(_file(folder, f"{part}-labels-idx1-ubyte", f"{part}-labels.idx1-ubyte"))
        if x.ndim != 3 or len(x) != len(y):
            raise SystemExit(f"the {part} pictures and labels in {folder} do not belong together")
        parts.append((x[:, None], y))
    return parts


def _read_cifar(files: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Records of a label and 3 x 32 x 32 bytes."""
    parts = []
    for file in files:
        raw = np.frombuffer(_bytes(file), np.uint8)
        if len(raw) == 0 or len(raw) % 3073:
            raise SystemExit(f"{file} is truncated, or not of the binary version of CIFAR-10")
        parts.append(raw.reshape(-1, 3073))
    records = np.concatenate(parts)
    return records[:, 1:].reshape(-1, 3, 32, 32).copy(), records[:, 0].copy()


def _generate_images(
    shape: tuple[int, int, int], samples: int, seed: int, test: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Ten kinds of five round blots, each picture shifted a little and noisy."""
    channels, height, width = shape
    kinds = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    pictures = np.zeros((10, *shape))
    for picture in pictures.reshape(10, channels, height, width):
        for _ in range(5):
            row, column, radius = kinds.uniform(4, height - 4), kinds.uniform(4, width - 4), kinds.uniform(3, 7)
            blot = np.maximum(0.0, 180.0 * (1.0 - ((y - row) ** 2 + (x - column) ** 2) / radius**2))
            picture += blot * kinds.uniform(0.3, 1.0, size=(channels, 1, 1))
    drawn = np.random.default_rng((seed, 1 + test))
    labels = drawn.integers(0, 10, samples).astype(np.uint8)
    shifts = drawn.integers(-2, 3, (samples, 2))
    made = np.empty((samples, *shape), np.uint8)
    for i, (label, shift) in enumerate(zip(labels, shifts)):
        noisy = np.roll(pictures[label], shift, (1, 2)) + drawn.normal(0.0, 70.0, shape)
        made[i] = np.clip(noisy, 0, 255)
    return made, labels


# --- text


class Characters(Dataset):
    """A text as stretches of `context` characters, each with the character that follows every one of them."""

    def __init__(self, codes: torch.Tensor, context: int) -> None:
        if len(codes) <= context:
            raise SystemExit(
                f"the text has {len(codes)} characters, and a context of {context} needs more; take a longer text "
                "or a smaller --context"
            )
        self.codes, self.context = codes, context

    def __len__(self) -> int:
        return (len(self.codes) - 1) // self.context

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        part = self.codes[index * self.context : (index + 1) * self.context + 1].long()
        return part[:-1], part[1:]


def load_text(path: str | None, generated: bool, context: int, seed: int = 1) -> tuple[Characters, Characters, int]:
    """Training text, test text (the last tenth), and how many different bytes there are."""
    if generated:
        raw = _generate_text(seed)
    elif path is None:
        raise SystemExit("which text? Name a text file with --text FILE, or try the example with --generated")
    elif not Path(path).is_file():
        raise SystemExit(f"there is no text file {path}")
    else:
        raw = _bytes(Path(path))
    if not raw or b"\0" in raw:
        raise SystemExit(f"{path} is {'no text file: it holds zero bytes' if raw else 'empty'}")
    kinds, codes = np.unique(np.frombuffer(raw, np.uint8), return_inverse=True)
    split = len(codes) - len(codes) // 10
    tensor = torch.from_numpy(codes.astype(np.uint8))
    return Characters(tensor[:split], context), Characters(tensor[split:], context), len(kinds)


@torch.no_grad()
def evaluate_text(model: torch.nn.Module, text: Characters, device: torch.device, stretches: int = 200) -> float:
    """Mean loss of a character, over the first stretches of the test text."""
    was_training = model.training
    model.eval()
    losses = []
    for index in range(min(stretches, len(text))):
        codes, following = (part.to(device) for part in text[index])
        losses.append(torch.nn.functional.cross_entropy(model(codes[None])[0].float(), following).item())
    model.train(was_training)
    return sum(losses) / len(losses)


def _generate_text(seed: int, characters: int = 200_000) -> bytes:
    """Sentences of a made-up language in which only four words can follow each of its 32."""
    drawn = np.random.default_rng(seed)
    words = ["".join(drawn.choice(list("abcdefghijklmnopqrst"), drawn.integers(2, 7))) for _ in range(32)]
    follows = drawn.integers(0, 32, (32, 4))
    text, length, word, turn = [], 0, 0, 0
    for choice in drawn.integers(0, 4, characters // 3):
        text.append(words[word] + ("\n" if turn % 8 == 7 else " "))
        length += len(text[-1])
        word, turn = follows[word, choice], turn + 1
        if length >= characters:
            break
    return "".join(text)[:characters].encode()
