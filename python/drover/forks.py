"""Keeps the children of a worker's process, such as those of a DataLoader, from holding the worker's connections.

A connection ends when the last process that has it is gone. If a worker is killed, its children may live on for a
while, and the run would wait for the worker as long as they do.
"""

from __future__ import annotations

import os

# The connections of the run that is joined: what each descriptor is.
_connections: dict[int, str] = {}
_registered = False


def sockets() -> dict[int, str]:
    """The sockets that this process has open now, by descriptor."""
    found: dict[int, str] = {}
    try:
        descriptors = os.listdir("/proc/self/fd")
    except OSError:
        return found
    for name in descriptors:
        what = _what(int(name))
        if what.startswith("socket:"):
            found[int(name)] = what
    return found


def close_in_children(connections: dict[int, str]) -> None:
    """From here on processes that are forked close these, if they are still the same."""
    global _registered
    _connections.clear()
    _connections.update(connections)
    if not _registered:
        _registered = True
        os.register_at_fork(after_in_child=_close)


def _close() -> None:
    for descriptor, what in _connections.items():
        if _what(descriptor) == what:
            os.close(descriptor)
    _connections.clear()


def _what(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""
