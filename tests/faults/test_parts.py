"""Tests of the parts of tools/faults without a run: schedules, the proxy, reading checkpoints."""

import json
import socket
import struct
import time
import unittest

from .judging import all_finite
from .proxy import Proxy, Weather
from .schedules import KILL, PAUSE, schedule_of

_SEEDS = range(1, 400)
_DEADLINE = 20.0


class Schedules(unittest.TestCase):
    def test_are_functions_of_their_seeds(self):
        for seed in _SEEDS:
            self.assertEqual(schedule_of(seed), schedule_of(seed))
        self.assertGreater(len({str(schedule_of(seed)) for seed in _SEEDS}), 380)

    def test_have_existing_targets_and_steps_with_a_checkpoint(self):
        for seed in _SEEDS:
            schedule = schedule_of(seed)
            job = schedule.job
            names = {"launcher", "coordinator", "evaluator"}
            names |= {f"shard {each}" for each in range(job.shards)} | {f"worker {each}" for each in range(job.workers)}
            names |= {f"standby {each}" for each in range(job.shards)} if job.standby else set()
            for fault in schedule.faults:
                self.assertLessEqual(set(fault.targets), names, schedule)
                if fault.process is None:
                    self.assertTrue(fault.step == job.steps or fault.step % job.checkpoint_every == 0, schedule)
                    self.assertLessEqual(fault.step, job.steps, schedule)

    def test_do_not_kill_a_process_more_often_than_it_is_restarted(self):
        for seed in _SEEDS:
            kills = [name for fault in schedule_of(seed).faults if fault.kind == KILL for name in fault.targets]
            self.assertLessEqual(max((kills.count(name) for name in kills), default=0), 5)

    def test_steady_ones_have_short_pauses_and_kill_no_worker_if_parameters_are_compared(self):
        for seed in _SEEDS:
            schedule = schedule_of(seed, steady=True)
            for fault in schedule.faults:
                if fault.kind == PAUSE:
                    self.assertLess(fault.seconds, 3.0)
                elif schedule.same_parameters:
                    self.assertFalse([name for name in fault.targets if "worker" in name], schedule)

    def test_cover_every_family(self):
        self.assertEqual(len({schedule_of(seed).family for seed in _SEEDS}), 14)


class ProxyTest(unittest.TestCase):
    def setUp(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.weather = Weather()
        listener = socket.create_server(("127.0.0.1", 0))
        address, behind = listener.getsockname(), self.server.getsockname()
        self.proxy = Proxy(listener, lambda: socket.create_connection(behind), self.weather)
        self.near = socket.create_connection(address, timeout=_DEADLINE)
        self.far, _ = self.server.accept()
        self.far.settimeout(_DEADLINE)

    def tearDown(self):
        self.weather.stall(False)
        self.proxy.close()
        for each in (self.near, self.far, self.server):
            each.close()

    def test_forwards_bytes_and_the_end_in_both_directions(self):
        self.near.sendall(b"there")
        self.assertEqual(self.far.recv(10), b"there")
        self.far.sendall(b"and back")
        self.assertEqual(self.near.recv(10), b"and back")
        self.near.close()
        self.assertEqual(self.far.recv(10), b"")

    def test_corrupts_one_bit_once(self):
        self.weather.corrupt_next()
        self.near.sendall(b"\0\0\0\0")
        self.assertEqual(sorted(self.far.recv(10)), [0, 0, 0, 0x10])
        self.near.sendall(b"\0\0")
        self.assertEqual(self.far.recv(10), b"\0\0")

    def test_forwards_nothing_while_it_stalls(self):
        self.weather.stall(True)
        self.near.sendall(b"later")
        self.far.settimeout(0.05)
        with self.assertRaises(socket.timeout):
            self.far.recv(10)
        self.far.settimeout(_DEADLINE)
        self.weather.stall(False)
        self.assertEqual(self.far.recv(10), b"later")

    def test_limits_the_rate(self):
        self.weather.rate = 1000.0
        began = time.monotonic()
        self.near.sendall(b"x" * 100)
        self.assertEqual(self.far.recv(200), b"x" * 100)
        self.assertGreaterEqual(time.monotonic() - began, 0.1)

    def test_cuts_both_ends(self):
        self.near.sendall(b"a")
        self.far.recv(1)
        self.proxy.cut_all()
        for each in (self.near, self.far):
            self.assertEqual(each.recv(10), b"")

    def test_a_half_open_connection_is_closed_at_one_end_and_silent_at_the_other(self):
        self.near.sendall(b"a")
        self.far.recv(1)
        self.proxy.make_half_open()
        self.assertEqual(self.far.recv(10), b"")
        self.near.sendall(b"are you there?")
        self.near.settimeout(0.05)
        with self.assertRaises(socket.timeout):
            self.near.recv(10)


def _safetensors(*numbers: float) -> bytes:
    data = struct.pack(f"<{len(numbers)}f", *numbers)
    header = json.dumps({"w": {"dtype": "F32", "shape": [len(numbers)], "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


class Checkpoints(unittest.TestCase):
    def test_are_finite_or_not(self):
        self.assertTrue(all_finite(_safetensors(1.0, -3e38, 3e38)))
        self.assertFalse(all_finite(_safetensors(1.0, float("nan"))))
        self.assertFalse(all_finite(_safetensors(float("inf"), float("-inf"))))


if __name__ == "__main__":
    unittest.main()
