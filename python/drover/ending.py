"""How a script that joined a run without `with` leaves it: when Python ends."""

from __future__ import annotations

import atexit
import os
import sys
from types import TracebackType
from typing import Protocol


class Leaving(Protocol):
    def leave(self, reason: str = "") -> None:
        ...


class Ending:
    """Leaves the run at the end of the process, and reports an exception that ends the script."""

    def __init__(self, run: Leaving) -> None:
        self._run = run
        self._process = os.getpid()
        self._reason = ""
        self._over = ""
        self._before = sys.excepthook
        sys.excepthook = self._on_exception
        atexit.register(self._on_exit)

    def note_over(self, text: str) -> None:
        """The script is about to end because the run is over, unless it catches RunOver."""
        self._over = text

    def cancel(self) -> None:
        """The run was left otherwise."""
        atexit.unregister(self._on_exit)
        if sys.excepthook == self._on_exception:
            sys.excepthook = self._before

    def _on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._reason = reason_of(error)
        self._before(kind, error, trace)

    def _on_exit(self) -> None:
        if os.getpid() != self._process:
            return
        if self._over:
            print(
                f"drover: {self._over}. The script ended in optimizer.step(): code that is to run after training "
                "belongs behind `with drover.join(...) as run:`, or loop over run.batches(loader)",
                file=sys.stderr,
            )
        self._run.leave(self._reason)


def reason_of(error: BaseException | None) -> str:
    """An exception in the words of a run's record."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, SystemExit):
        return f"exit {error.code}"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
