"""A worker's children do not hold its connections."""

import os
import socket

from drover import forks


def ended(connection):
    """Whether the other end of a connection is closed by all processes."""
    connection.settimeout(10)
    return connection.recv(1) == b""


def test_a_connection_ends_with_its_process_though_a_child_lives_on():
    before = forks.sockets()
    near, far = socket.socketpair()
    kept, kept_far = socket.socketpair()
    forks.close_in_children({fd: what for fd, what in forks.sockets().items() if fd == near.fileno()})
    assert near.fileno() in forks.sockets() and near.fileno() not in before
    child = os.fork()
    if child == 0:
        status = 0 if kept.fileno() in forks.sockets() and near.fileno() not in forks.sockets() else 1
        far.close()
        kept_far.recv(1)  # until the test has seen what it wants to see
        os._exit(status)
    near.close()
    assert ended(far)
    kept.send(b"x")
    assert os.waitpid(child, 0)[1] == 0
    forks.close_in_children({})


def test_a_descriptor_that_is_something_else_by_now_is_left_alone():
    near, far = socket.socketpair()
    forks.close_in_children({near.fileno(): "socket:[1]"})
    child = os.fork()
    if child == 0:
        os._exit(0 if near.fileno() in forks.sockets() else 1)
    assert os.waitpid(child, 0)[1] == 0
    forks.close_in_children({})
    far.close()
