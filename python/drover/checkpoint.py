"""Checkpoints of a run as PyTorch knows models.

``drover.load_checkpoint("checkpoints")`` gives a state_dict of the newest one that can be used. On a command line:

    python3 -m drover.checkpoint export checkpoints --out model.pt [--average]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import sys
import zlib
from typing import Any, Iterator

import torch

from .errors import Error
from .saving import write_whole

_FORMAT = "drover checkpoint 1"
_ALIGNMENT = 16  # floats: where tensors begin in the run's flat buffer


def load_checkpoint(path: str | os.PathLike[str], average: bool = False) -> dict[str, torch.Tensor]:
    """The parameters in a checkpoint, by name, for ``model.load_state_dict(..., strict=False)``.

    `path` is a folder of checkpoints, of which the newest that can be used is taken, or the folder of one. With
    `average` it is the averaged parameters of a run with ``--ema``. Everything is checked; raises drover.Error with the
    file that is damaged. What a run does not train or average (counters such as ``num_batches_tracked``) is not there.
    """
    return _tensors(*_newest(pathlib.Path(path)), average)


def _newest(path: pathlib.Path) -> tuple[pathlib.Path, dict[str, Any]]:
    if (path / "manifest.json").exists() or re.fullmatch(r"step-\d+", path.name):
        return path, _manifest(path)
    troubles = []
    steps = [folder for folder in path.glob("step-*") if re.fullmatch(r"step-\d+", folder.name)]
    for folder in sorted(steps, key=lambda folder: int(folder.name[5:]), reverse=True):
        try:
            manifest = _manifest(folder)
            for file in manifest["files"]:
                for _ in _arrays(folder, file):
                    pass
            return folder, manifest
        except Error as trouble:
            troubles.append(str(trouble))
    raise Error("; ".join([f"there is no checkpoint in {path} that can be used", *troubles]))


def _manifest(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
    except OSError:
        raise Error(f"there is no {path}, so it was never finished") from None
    except ValueError as trouble:
        raise Error(f"{path} is damaged: {trouble}") from None
    if manifest.get("format") != _FORMAT:
        raise Error(f"{path} is not of the format '{_FORMAT}'; perhaps a newer drover can read it")
    return manifest


def _arrays(folder: pathlib.Path, entry: dict[str, Any]) -> Iterator[tuple[str, int, torch.Tensor]]:
    """What each array of a file is, where it begins in the flat buffer, and its values."""
    path = folder / str(entry["name"])
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if size != entry["bytes"] or length > size - 8:
                raise Error(f"{path} is damaged: it has {size} bytes, and the manifest says {entry['bytes']}")
            text = file.read(length)
            if zlib.crc32(start + text) != int(entry["header_crc32"], 16):
                raise Error(f"{path} is damaged: the checksum of its header is wrong")
            header = json.loads(text)
            metadata = header.pop("__metadata__")
            for name, array in header.items():
                begin, end = array["data_offsets"]
                file.seek(8 + length + begin)
                values = bytearray(file.read(end - begin))
                if zlib.crc32(values) != int(metadata[f"crc32.{name}"], 16):
                    raise Error(f"{path} is damaged: the checksum of {name} is wrong")
                kind, place = name.rsplit(".", 1)
                yield kind, int(place), torch.frombuffer(values, dtype=torch.float32)
    except OSError as trouble:
        raise Error(f"cannot read {path}: {trouble.strerror}") from None


def _tensors(folder: pathlib.Path, manifest: dict[str, Any], average: bool) -> dict[str, torch.Tensor]:
    offsets, size = [], 0
    for tensor in manifest["tensors"]:
        offsets.append(size)
        size += (tensor["size"] + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    wanted = {"parameters": torch.zeros(size), "average": torch.zeros(size if average else 0)}
    averaged = False
    for entry in manifest["files"]:
        for kind, place, values in _arrays(folder, entry):
            if kind == "parameters" or (kind == "average" and average):
                wanted[kind][place : place + len(values)] = values
                averaged = averaged or kind == "average"
    if average and not averaged:
        raise Error(f"the run of {folder} kept no average of its parameters: that is done with --ema")
    result = {}
    for tensor, offset in zip(manifest["tensors"], offsets):
        if tensor["size"] == 0:  # only a name, see drover.join
            continue
        # Running statistics are averages already, and have no other.
        flat = wanted["average" if average and tensor["kind"] == "trained" else "parameters"]
        values = flat[offset : offset + tensor["size"]]
        result[tensor["name"]] = values.reshape(tensor["shape"]).clone()
    return result


def main(arguments: list[str] | None = None) -> int:
    """The command line above."""
    parser = argparse.ArgumentParser(prog="python3 -m drover.checkpoint", description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser("export", help="write the model of the newest checkpoint as a state_dict")
    export.add_argument("DIR", help="a folder of checkpoints, or one of them")
    export.add_argument("--out", required=True, metavar="MODEL.pt")
    export.add_argument("--average", action="store_true", help="the averaged parameters of a run with --ema")
    options = parser.parse_args(arguments)
    try:
        state = load_checkpoint(options.DIR, options.average)
    except Error as trouble:
        print(f"drover: {trouble}", file=sys.stderr)
        return 1
    write_whole(state, options.out)
    print(f"{options.out}: {len(state)} tensors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
