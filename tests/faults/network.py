"""Network namespaces of this machine as hosts of a run, and a proxy or a link between two of them.

With proxies, both have only a loopback interface. For each port that is open at 127.0.0.1 on the servers' host, a
proxy listens at the same port on the workers' host, so that members use the same addresses as without the test.
"""

from __future__ import annotations

import ctypes
import socket
import subprocess
import threading
from typing import Callable, Dict, List, Optional, TypeVar

from .proxy import Proxy, Weather

T = TypeVar("T")
_NEW_NET = 0x40000000  # CLONE_NEWNET
_LISTENS = "0A"  # in /proc/net/tcp
SERVERS, WORKERS = "10.78.0.1", "10.78.0.2"  # where there is a link


def can_make_hosts() -> bool:
    """Whether namespaces can be made: that needs root, iproute2 and util-linux."""
    try:
        return subprocess.run(["unshare", "-n", "ip", "link", "set", "lo", "up"], capture_output=True).returncode == 0
    except OSError:
        return False


class Host:
    def __init__(self) -> None:
        # The namespace exists as long as a process is in it. This one exits when its input is closed.
        script = "ip link set lo up && echo up && exec cat"
        self._keeper = subprocess.Popen(
            ["unshare", "-n", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._keeper.stdout is not None
        if self._keeper.stdout.readline() != b"up\n":
            raise OSError("cannot make a network namespace (root and iproute2 are needed)")

    @property
    def pid(self) -> int:
        return self._keeper.pid

    def words(self) -> List[str]:
        """The prefix of a command that runs on this host."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net"]

    def run(self, *words: str) -> None:
        subprocess.run([*self.words(), *words], check=True, capture_output=True)

    def inside(self, work: Callable[[], T]) -> T:
        """Calls `work` on this host, in a new thread. A socket belongs to the host on which it was made."""
        results: List[T] = []
        troubles: List[BaseException] = []

        def move_and_work() -> None:
            try:
                with open(f"/proc/{self.pid}/ns/net") as namespace:
                    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _NEW_NET) != 0:
                        raise OSError(ctypes.get_errno(), "cannot enter a network namespace")
                results.append(work())
            except BaseException as trouble:  # raised again in the caller's thread
                troubles.append(trouble)

        thread = threading.Thread(target=move_and_work)
        thread.start()
        thread.join()
        if troubles:
            raise troubles[0]
        return results[0]

    def listening_ports(self) -> List[int]:
        ports = []
        with open(f"/proc/{self.pid}/net/tcp") as table:
            for line in table.readlines()[1:]:
                words = line.split()
                if words[3] == _LISTENS:
                    ports.append(int(words[1].rsplit(":", 1)[1], 16))
        return ports

    def close(self) -> None:
        assert self._keeper.stdin is not None and self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._keeper.wait()
        self._keeper.stdout.close()


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=None)


class Mirror:
    """Makes the listening ports of one host reachable on another, through proxies that share a Weather."""

    def __init__(self, servers: Host, workers: Host) -> None:
        self._servers, self._workers = servers, workers
        self.weather = Weather()
        self._proxies: Dict[int, Proxy] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stop.wait(0.01):
            ports = self._servers.listening_ports()
            for port in set(self._proxies) - set(ports):
                self._proxies.pop(port).close()
            for port in set(ports) - set(self._proxies):
                proxy = self._open(port)
                if proxy is not None:
                    self._proxies[port] = proxy

    def _open(self, port: int) -> Optional[Proxy]:
        try:
            listener = self._workers.inside(lambda: socket.create_server(("127.0.0.1", port)))
        except OSError:
            return None  # the previous proxy has not closed the port yet
        return Proxy(listener, lambda: self._servers.inside(lambda: _connect(port)), self.weather)

    def proxies(self) -> List[Proxy]:
        return list(self._proxies.values())

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self.weather.stall(False)
        for proxy in self._proxies.values():
            proxy.close()


class Link:
    """A virtual cable between two hosts."""

    def __init__(self, servers: Host, workers: Host) -> None:
        self._workers = workers
        servers.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", str(workers.pid))
        for host, address in ((servers, SERVERS), (workers, WORKERS)):
            host.run("ip", "address", "add", f"{address}/24", "dev", "eth0")
            host.run("ip", "link", "set", "eth0", "up")

    def set_down(self) -> None:
        self._workers.run("ip", "link", "set", "eth0", "down")

    def set_up(self) -> None:
        self._workers.run("ip", "link", "set", "eth0", "up")

    def slow_down(self) -> None:
        words = [
            "tc",
            "qdisc",
            "add",
            "dev",
            "eth0",
            "root",
            "tbf",
            "rate",
            "4mbit",
            "burst",
            "16kb",
            "latency",
            "200ms",
        ]
        self._workers.run(*words)

    def speed_up(self) -> None:
        self._workers.run("tc", "qdisc", "del", "dev", "eth0", "root")
