"""The errors of the package, and how trouble of the native module becomes one of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

try:
    from ._native import Trouble
except ImportError:  # not built, or for another Python: join() says so when it is needed

    class Trouble(RuntimeError):  # type: ignore[no-redef]
        """What the native module raises when the run, or the way to it, is broken."""


class Error(Exception):
    """Whatever this package raises because of a run."""


class JoinError(Error):
    """The run could not be joined. The message says where it was looked for, and what to try."""


class RunFailed(Error):
    """The run ended because something broke; the message says what."""


class Late(Error):
    """The gradient being computed is no longer wanted: its step has closed without it.

    Raised inside forward and backward passes, and swallowed by ``with run.step():``. Code that catches every
    exception there should let this one through.
    """


class RunOver(Error):
    """The run has made all its steps, or was stopped.

    Raised by ``run.step()``, and swallowed by ``with drover.join(...)``, so that the training loop simply ends.
    """


class ScriptOver(RunOver, SystemExit):
    """RunOver out of ``optimizer.step()``: a script that does not catch it ends with status 0."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = 0


@contextlib.contextmanager
def as_run_failed() -> Iterator[None]:
    """Raises RunFailed for trouble with the run."""
    try:
        yield
    except Trouble as trouble:
        raise RunFailed(str(trouble)) from None
