"""join(): where the coordinator of a run is, and becoming a worker of it."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .errors import JoinError, Trouble

if TYPE_CHECKING:
    import torch

    from ._native import Session
    from .pieces import Pieces
    from .run import Run

DEFAULT_PORT = 29600
_REST = "untrained parameters and buffers"
HOW_TO_START = (
    "To start a run:  drover launch --workers 4 script.py\n"
    "or:              drover serve --workers 4\n"
    "  and then:      torchrun --nproc_per_node 4 script.py"
)


def join(
    model: torch.nn.Module | Sequence[torch.nn.Module],
    optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
    *,
    address: str | None = None,
    token: str | None = None,
    rank: int | None = None,
    overlap: bool | None = None,
) -> Run:
    """Makes this process a worker of a run. The training loop stays as it is:

        run = drover.join(model, optimizer)
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()

    ``optimizer.step()`` updates the parameters with the mean gradient of all workers, and returns when the model has
    the new values. Several models and optimizers: ``join([g, d], [opt_g, opt_d])``.

    All workers start from the values of rank 0, which they have when this returns.

    Where the coordinator is: the arguments say; else DROVER_ADDRESS, DROVER_TOKEN (or DROVER_TOKEN_FILE) and
    DROVER_RANK, which `drover launch` sets; else torchrun's MASTER_ADDR and RANK, with DROVER_PORT (29600); else this
    machine. Without a token the one in the file that `drover serve` writes is used.

    `overlap` has no effect any more; it is accepted for older scripts.

    Raises JoinError if there is no coordinator (it says where it looked), or if the model or the optimizer is not
    supported (it says what is).
    """
    from .run import Run

    models = [model] if not isinstance(model, Sequence) else list(model)
    opts = [optimizer] if not isinstance(optimizer, Sequence) else list(optimizer)
    if not models or not opts:
        raise JoinError("join() needs at least one model and one optimizer.")

    def open_session(pieces: Pieces, settings: dict[str, Any]) -> Session:
        place = find(os.environ, address, token, rank)
        from . import _native
        from .parameters import copiers_for

        # With its shape: workers whose shapes differ must not be taken for equal because their sizes are.
        tensors = [
            _native.Tensor(piece.name, piece.size, piece.averaged, shape=list(piece.tensor.shape), group=piece.group)
            for piece in pieces.all
        ]
        tensors.append(_native.Tensor(f"{_REST} {pieces.digest_of_the_rest()}", 0))
        return _native.Session(
            address=place.address,
            token=place.token,
            rank=place.rank,
            tensors=tensors,
            optimizer=settings,
            copiers=copiers_for(pieces.all),
        )

    try:
        return Run(models, opts, open_session)
    except Trouble as trouble:
        if _REST in str(trouble):
            raise JoinError(
                f"{trouble}\nParameters that are not trained and buffers have other values here than in the "
                "other workers. Load them in every worker, or make them after the same torch.manual_seed(). "
                "Only trained parameters and running statistics are sent from rank 0."
            ) from None
        raise JoinError(f"{trouble}\n{find(os.environ, address, token, rank).looked}\n{HOW_TO_START}") from None


def rank() -> int:
    """This process's number among the workers, from 0; also before join()."""
    return _rank(os.environ, None)[0]


def workers() -> int:
    """How many workers were started; also before join(). 1 if nothing says."""
    for name in ("DROVER_WORKERS", "WORLD_SIZE"):
        if os.environ.get(name, "").isdecimal():
            return int(os.environ[name])
    return 1


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a coordinator should be, and the rank of this process."""

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


def find(
    environment: Mapping[str, str], address: str | None = None, token: str | None = None, rank: int | None = None
) -> Place:
    """Where the coordinator is, by the arguments and the environment.

    Raises JoinError, naming every place that was looked at.
    """
    reported = address or environment.get("DROVER_ADDRESS")
    port, why_port = _port(environment, reported)
    invitation = _invitation(environment, port)
    if reported:
        where, why_where = reported, "argument address" if address else "DROVER_ADDRESS"
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
    if reported := environment.get("DROVER_TOKEN"):
        return reported, "DROVER_TOKEN"
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
