"""A TCP proxy that simulates a bad network."""

from __future__ import annotations

import socket
import threading
import time
from typing import Callable, List, Optional

_PIECE = 1 << 16


class Weather:
    """The state of the simulated network. One thread sets it; it applies to all connections."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._stalled = False
        self.delay = 0.0  # seconds for every piece
        self.rate = 0.0  # bytes/s of every connection; 0: no limit
        self._to_corrupt = 0

    def stall(self, on: bool) -> None:
        with self._changed:
            self._stalled = on
            self._changed.notify_all()

    def corrupt_next(self) -> None:
        with self._changed:
            self._to_corrupt += 1

    def pass_on(self, piece: bytes) -> bytes:
        """Waits as long as the piece takes, and returns it as it arrives."""
        with self._changed:
            while self._stalled:
                self._changed.wait(1.0)
            corrupted = self._to_corrupt > 0
            self._to_corrupt -= corrupted
        if self.delay or self.rate:
            time.sleep(self.delay + (len(piece) / self.rate if self.rate else 0.0))
        if not corrupted:
            return piece
        middle = len(piece) // 2
        return piece[:middle] + bytes([piece[middle] ^ 0x10]) + piece[middle + 1 :]


def _end(one: socket.socket) -> None:
    """Closes a socket and wakes threads that wait in it, which close() alone does not."""
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    one.close()


class _Pair:
    """A connection to the proxy, and the proxy's connection to the server."""

    def __init__(self, near: socket.socket, far: socket.socket, weather: Weather) -> None:
        self.near, self.far, self.weather = near, far, weather
        self.half_open = False
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while True:
                piece = source.recv(_PIECE)
                if not piece:
                    break
                piece = self.weather.pass_on(piece)
                if not self.half_open:
                    target.sendall(piece)
            if not self.half_open:
                target.shutdown(socket.SHUT_WR)
        except OSError:
            if not self.half_open:
                self.cut()

    def cut(self) -> None:
        _end(self.near)
        _end(self.far)

    def make_half_open(self) -> None:
        """The far end's connection is closed. The near end's stays open, and receives nothing more."""
        self.half_open = True
        _end(self.far)


class Proxy:
    """Accepts connections on `listener`, and forwards each to a connection that `connect` opens."""

    def __init__(self, listener: socket.socket, connect: Callable[[], socket.socket], weather: Weather) -> None:
        self._listener = listener
        self._connect = connect
        self._weather = weather
        self._lock = threading.Lock()
        self._pairs: List[_Pair] = []
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = self._reach()
            if far is None:
                _end(near)
                continue
            for each in (near, far):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._pairs.append(_Pair(near, far, self._weather))

    def _reach(self) -> Optional[socket.socket]:
        try:
            return self._connect()
        except OSError:
            return None

    def cut_all(self) -> None:
        for pair in self._take():
            pair.cut()

    def make_half_open(self) -> None:
        for pair in self._take(keep=True):
            pair.make_half_open()

    def _take(self, keep: bool = False) -> List[_Pair]:
        with self._lock:
            pairs = list(self._pairs)
            if not keep:
                self._pairs.clear()
            return pairs

    def close(self) -> None:
        self._closed = True
        _end(self._listener)
        self.cut_all()
