"""join(): where the coordinator of a run is, and becoming a worker of it."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import socket
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
    "  and then:      torchrun --nproc_per_node 4 script.py"
)


def join(model: torch.nn.Module, optimizer: torch.optim.Optimizer, *, address: str | None = None,
         token: str | None = None, rank: int | None = None, overlap: bool = True) -> Run:
    """Makes this process a worker of a run: from here on the model's parameters are the run's.

        with drover.join(model, optimizer) as run:
            for x, y in loader:
                with run.step(samples=len(y)):
                    optimizer.zero_grad()
                    loss = criterion(model(x), y)
                    loss.backward()
                    optimizer.step()

    All workers start from equal parameters: those of the first one that is asked. To go on from a file, load it
    before joining.

    Where the coordinator is: the arguments say; else DROVER_ADDRESS, DROVER_TOKEN (or DROVER_TOKEN_FILE) and
    DROVER_RANK, which `drover launch` sets; else torchrun's MASTER_ADDR and RANK, with DROVER_PORT (29600); else this
    machine. A token that nobody tells is read from the file that `drover serve` writes.

    `overlap`: gradients leave during the backward pass, and ``.grad`` is empty after it. Where gradients are looked
    at or changed before ``optimizer.step()``, by clipping or by a GradScaler, join with ``overlap=False``: then they
    leave in ``optimizer.step()``.

    Raises JoinError if there is no coordinator (it says where it looked), or if the model or the optimiser is not
    supported (it says what is).
    """
    from .run import Run

    def open_session(pieces: list[Piece], settings: dict[str, Any]) -> Session:
        place = find(os.environ, address, token, rank)
        from . import _native
        from .parameters import copiers_for

        # With its shape: workers whose shapes differ must not be taken for equal because their sizes are.
        tensors = [_native.Tensor(piece.name, piece.size, piece.averaged, piece.rate, piece.decay,
                                  list(piece.tensor.shape)) for piece in pieces]
        return _native.Session(address=place.address, token=place.token, rank=place.rank, tensors=tensors,
                               optimizer=settings, copiers=copiers_for(pieces))

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


@dataclasses.dataclass(frozen=True)
class Invitation:
    """What `drover serve` writes into a file for workers on its machine: the token and the address, a line each."""

    token: str | None
    address: str | None
    looked: str  # for people: what was read


def find(environment: Mapping[str, str], address: str | None = None, token: str | None = None,
         rank: int | None = None) -> Place:
    """Where the coordinator is, by the arguments and the environment.

    Raises JoinError, naming every place that was looked at.
    """
    told = address or environment.get("DROVER_ADDRESS")
    port, why_port = _port(environment, told)
    invitation = _invitation(environment, port)
    if told:
        where, why_where = told, "argument address" if address else "DROVER_ADDRESS"
    elif invitation.address and _is_here(environment.get("MASTER_ADDR")):
        where, why_where = invitation.address, invitation.looked
    elif host := environment.get("MASTER_ADDR"):
        where, why_where = f"{host}:{port}", f"MASTER_ADDR, {why_port}"
    else:
        where = f"127.0.0.1:{port}"
        why_where = f"no argument address, DROVER_ADDRESS and MASTER_ADDR are not set, {why_port}"
    number, why_number = _rank(environment, rank)
    secret, why_secret = _token(environment, token, invitation)
    looked = f"Looked for at: {where} ({why_where}). Rank: {number} ({why_number}). Token: {why_secret}."
    if secret is None:
        raise JoinError(f"no run to join: there is no token for a coordinator at {where}.\n{looked}\n{HOW_TO_START}")
    return Place(where, secret, number, looked)


def _port(environment: Mapping[str, str], address: str | None) -> tuple[str, str]:
    """The port that a run is known by on its machine."""
    if address and address.rpartition(":")[2].isdecimal():
        return address.rpartition(":")[2], "of the address"
    port = environment.get("DROVER_PORT", str(DEFAULT_PORT))
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise JoinError(f"DROVER_PORT is '{port}', and should be a port: a number from 1 to 65535.")
    return port, "DROVER_PORT" if "DROVER_PORT" in environment else "DROVER_PORT is not set"


def _is_here(host: str | None) -> bool:
    return host in (None, "", "localhost", "127.0.0.1", "::1", socket.gethostname())


def _rank(environment: Mapping[str, str], given: int | None) -> tuple[int, str]:
    if given is not None:
        return given, "argument rank"
    for name in ("DROVER_RANK", "RANK"):
        if name in environment:
            if not environment[name].isdecimal():
                raise JoinError(f"{name} is '{environment[name]}', and should be a number from 0.")
            return int(environment[name]), name
    return 0, "DROVER_RANK and RANK are not set"


def _token(environment: Mapping[str, str], given: str | None, invitation: Invitation) -> tuple[str | None, str]:
    if given:
        return given, "argument token"
    if told := environment.get("DROVER_TOKEN"):
        return told, "DROVER_TOKEN"
    return invitation.token, f"DROVER_TOKEN is not set; {invitation.looked}"


def _invitation(environment: Mapping[str, str], port: str) -> Invitation:
    """The one that DROVER_TOKEN_FILE names, or else what `drover serve` has left for a port."""
    if named := environment.get("DROVER_TOKEN_FILE"):
        return _read(pathlib.Path(named), "DROVER_TOKEN_FILE")
    home = environment.get("HOME", os.path.expanduser("~"))
    looked = ["DROVER_TOKEN_FILE is not set"]
    for folder in filter(None, [environment.get("XDG_RUNTIME_DIR"), os.path.join(home, ".cache")]):
        invitation = _read(pathlib.Path(folder, "drover", f"token-{port}"), "the file of `drover serve`")
        if invitation.token:
            return invitation
        looked.append(invitation.looked)
    return Invitation(None, None, "; ".join(looked))


def _read(path: pathlib.Path, what: str) -> Invitation:
    try:
        lines = path.read_text().split()
    except OSError as error:
        return Invitation(None, None, f"{what}, {path}: {error.strerror}")
    if not lines:
        return Invitation(None, None, f"{what}, {path}: empty")
    return Invitation(lines[0], lines[1] if len(lines) > 1 else None, f"{what}, {path}")
