"""join(): where the coordinator of a run is, and becoming a worker of it."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .errors import JoinError, Trouble

if TYPE_CHECKING:
    import torch

    from ._native import Session
    from .pieces import Piece
    from .run import Run

DEFAULT_PORT = 29600
HOW_TO_START = (
    "To start a run:  drover launch --workers 4 script.py\n"
    "or:              drover serve --workers 4\n"
    "  and then:      torchrun --nproc-per-node 4 script.py"
)


def join(model: torch.nn.Module, optimizer: torch.optim.Optimizer, *, address: str | None = None, token: str | None = None,
         rank: int | None = None, overlap: bool = True) -> Run:
    """Makes this process a worker of a run: from here on the model's parameters are the run's.

        with drover.join(model, optimizer) as run:
            for x, y in loader:
                with run.step(samples=len(y)):
                    optimizer.zero_grad()
                    loss = criterion(model(x), y)
                    loss.backward()
                    optimizer.step()

    All workers start from equal parameters: those of the first one that is asked. To go on from a file, load it before joining.

    Where the coordinator is: the arguments say; else DROVER_ADDRESS, DROVER_TOKEN (or DROVER_TOKEN_FILE) and DROVER_RANK, which `drover launch` sets; else
    torchrun's MASTER_ADDR and RANK, with DROVER_PORT (29600); else this machine. A token that nobody tells is read from the file that `drover serve` writes.

    `overlap`: gradients leave during the backward pass, and ``.grad`` is empty after it. Where gradients are looked at or changed before
    ``optimizer.step()``, by clipping or by a GradScaler, join with ``overlap=False``: then they leave in ``optimizer.step()``.

    Raises JoinError if there is no coordinator (it says where it looked), or if the model or the optimiser is not supported (it says what is).
    """
    from .run import Run

    def open_session(pieces: list[Piece], settings: dict[str, Any]) -> Session:
        place = find(os.environ, address, token, rank)
        from . import _native

        tensors = [_native.Tensor(piece.name, piece.size, piece.averaged, piece.rate, piece.decay) for piece in pieces]
        return _native.Session(address=place.address, token=place.token, rank=place.rank, tensors=tensors, optimizer=settings)

    try:
        return Run(model, optimizer, open_session, overlap)
    except Trouble as trouble:
        raise JoinError(f"{trouble}\n{find(os.environ, address, token, rank).looked}\n{HOW_TO_START}") from None


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a coordinator should be, and who this process is to it."""

    address: str
    token: str
    rank: int
    looked: str  # for people: how that became known


def find(environment: Mapping[str, str], address: str | None = None, token: str | None = None, rank: int | None = None) -> Place:
    """Where the coordinator is, by the arguments and the environment. Raises JoinError, naming every place that was looked at."""
    where, why_where = _address(environment, address)
    number, why_number = _rank(environment, rank)
    secret, why_secret = _token(environment, token, where)
    looked = f"Looked for at: {where} ({why_where}). Rank: {number} ({why_number}). Token: {why_secret}."
    if secret is None:
        raise JoinError(f"no run to join: there is no token for a coordinator at {where}.\n{looked}\n{HOW_TO_START}")
    return Place(where, secret, number, looked)


def _address(environment: Mapping[str, str], given: str | None) -> tuple[str, str]:
    if given:
        return given, "argument address"
    if told := environment.get("DROVER_ADDRESS"):
        return told, "DROVER_ADDRESS"
    port = environment.get("DROVER_PORT", str(DEFAULT_PORT))
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise JoinError(f"DROVER_PORT is '{port}', and should be a port: a number from 1 to 65535.")
    why_port = "DROVER_PORT" if "DROVER_PORT" in environment else "DROVER_PORT is not set"
    if host := environment.get("MASTER_ADDR"):
        return f"{host}:{port}", f"MASTER_ADDR, {why_port}"
    return f"127.0.0.1:{port}", f"no argument address, DROVER_ADDRESS and MASTER_ADDR are not set, {why_port}"


def _rank(environment: Mapping[str, str], given: int | None) -> tuple[int, str]:
    if given is not None:
        return given, "argument rank"
    for name in ("DROVER_RANK", "RANK"):
        if name in environment:
            if not environment[name].isdecimal():
                raise JoinError(f"{name} is '{environment[name]}', and should be a number from 0.")
            return int(environment[name]), name
    return 0, "DROVER_RANK and RANK are not set"


def _token(environment: Mapping[str, str], given: str | None, address: str) -> tuple[str | None, str]:
    if given:
        return given, "argument token"
    if told := environment.get("DROVER_TOKEN"):
        return told, "DROVER_TOKEN"
    if named := environment.get("DROVER_TOKEN_FILE"):
        return _read(pathlib.Path(named), "DROVER_TOKEN_FILE")
    looked = ["DROVER_TOKEN and DROVER_TOKEN_FILE are not set"]
    port = address.rpartition(":")[2]
    if port.isdecimal():
        folders = [environment.get("XDG_RUNTIME_DIR"), os.path.join(environment.get("HOME", os.path.expanduser("~")), ".cache")]
        for folder in filter(None, folders):
            token, why = _read(pathlib.Path(folder, "drover", f"token-{port}"), "the file of `drover serve`")
            if token:
                return token, why
            looked.append(why)
    return None, "; ".join(looked)


def _read(path: pathlib.Path, what: str) -> tuple[str | None, str]:
    try:
        token = path.read_text().strip()
    except OSError as error:
        return None, f"{what}, {path}: {error.strerror}"
    return token or None, f"{what}, {path}" + ("" if token else ": empty")
