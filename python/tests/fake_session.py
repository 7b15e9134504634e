"""A session without a run: one worker, whose gradients are applied by plain SGD with weight decay when a step ends.

It keeps a list of what it was announced (`announced`), and can be made late, over, or broken at a chosen moment.
"""

from __future__ import annotations

import math

import numpy

from drover.errors import Trouble

ALIGNMENT = 16  # floats; tensors begin at multiples of it, as in real sessions


class FakeSession:
    def __init__(self, pieces, settings, steps=1000):
        self.pieces, self.settings = pieces, settings
        self.offsets, size = [], 0
        for piece in pieces:
            self.offsets.append(size)
            size += -(-piece.size // ALIGNMENT) * ALIGNMENT
        self.parameters = numpy.zeros(size, numpy.float32)
        self.arrived = None  # what parameters were when the step began
        self.gradient = numpy.full(size, math.nan, numpy.float32)  # so that what was not written is noticed
        self.average = numpy.zeros(size, numpy.float32)
        self.groups = []
        self.steps, self.rank, self.workers, self.batch, self.seed = steps, 0, 1, 4, 7
        self.first_step = 0
        self.step = -1
        self.started = self.asked_to_stop = False
        self.left = None
        self.outcome, self.reason = "running", ""
        self.announced = []  # of the step: (index, samples), in order
        self.kinds = {}  # of the step, by index: "ready", "held", "absent" or "written"
        self.released = None  # scale and whether it is used, if something was held
        self.finished = []  # (finished, samples, loss, correct, predictions) of every step
        self.late_from = math.inf  # how many tensors of a step are taken before it closes
        self.unwanted_after = math.inf  # how often wanted() says yes in a step
        self.trouble = None  # raised when a tensor is announced
        self.averages_kept = True

    @property
    def samples(self):
        return self.step * self.batch, self.batch

    @property
    def over(self):
        return self.outcome != "running"

    @property
    def rate(self):
        return self.groups[0]["rate"]

    def part(self, index, flat):
        return flat[self.offsets[index] : self.offsets[index] + self.pieces[index].size]

    def arrive(self, value, first=0):
        """The run's parameters have this value, whatever was computed here."""
        self.parameters[first:] = value
        self.arrived = self.parameters.copy()

    def start(self):
        self.started = True

    def next_step(self):
        if self.step + 1 >= self.steps and not self.over:
            self.outcome = "completed"
        self.arrived = self.parameters.copy()
        if self.over:
            return None
        self.step += 1
        self.announced, self.kinds, self.released, self.asked = [], {}, None, 0
        return self.step

    def wanted(self):
        self.asked += 1
        return self.asked <= self.unwanted_after

    def _announce(self, index, samples, kind):
        if self.trouble:
            raise Trouble(self.trouble)
        assert index not in self.kinds, "announced twice"
        assert self.groups, "no settings yet"
        if len(self.announced) >= self.late_from:
            return False
        self.announced.append((index, samples))
        self.kinds[index] = kind
        return True

    def tensor_ready(self, index, samples):
        return self._announce(index, samples, "ready")

    def tensor_held(self, index, samples):
        return self._announce(index, samples, "held")

    def tensor_absent(self, index, samples):
        return self._announce(index, samples, "absent")

    def tensor_written(self, index):
        return self._announce(index, 1, "written")

    def expect_norm(self, tensors):
        self.expected = tensors

    def wait_for_norm(self):
        held = [self.part(index, self.gradient) for index, kind in self.kinds.items() if kind == "held"]
        assert len(held) == len(self.expected)
        return float(sum((each**2).sum() for each in held)), float(max(abs(each).max() for each in held))

    def release(self, scale, used):
        self.released = scale, used

    def changed_tensors(self):
        return [
            index
            for index, piece in enumerate(self.pieces)
            if not piece.averaged
            and not numpy.array_equal(self.part(index, self.parameters), self.part(index, self.arrived))
        ]

    def set_groups(self, groups):
        assert "ready" not in self.kinds.values(), "too late for this step"
        self.groups = [dict(group) for group in groups]

    def finish_step(self, finished, samples):
        self.finished.append((finished, samples, math.nan, 0, 0))
        if not finished:
            return
        assert sorted(self.kinds) == list(range(len(self.pieces))), "a tensor is missing"
        assert ("held" in self.kinds.values()) == (self.released is not None)
        for index, piece in enumerate(self.pieces):
            values, gradient, kind = (
                self.part(index, self.parameters),
                self.part(index, self.gradient),
                self.kinds[index],
            )
            if kind == "absent" or (kind == "held" and not self.released[1]):
                continue
            if piece.averaged or kind == "written":
                values[:] = gradient
                continue
            group = self.groups[piece.group - 1]
            scale = numpy.float32(self.released[0]) if kind == "held" else numpy.float32(1)
            values -= numpy.float32(group["rate"]) * (scale * gradient + numpy.float32(group["weight_decay"]) * values)

    def report(self, loss, correct, predictions):
        self.finished[-1] = self.finished[-1][:2] + (loss, correct, predictions)

    def ask_to_stop(self):
        self.asked_to_stop = True

    def fetch_average(self):
        if not self.averages_kept:
            raise Trouble("the run keeps no snapshots")
        return None if self.over else self.step

    def evaluated(self, version, loss, accuracy, samples):
        self.evaluation = (version, loss, accuracy, samples)

    def leave(self, reason=""):
        self.left = reason


def join(model, optimizer, **options):
    """A Run on a FakeSession, and the session."""
    from drover.run import Run

    made = []

    def open_session(pieces, settings):
        made.append(FakeSession(pieces.all, settings, **options))
        return made[0]

    models = model if isinstance(model, list) else [model]
    optimizers = optimizer if isinstance(optimizer, list) else [optimizer]
    return Run(models, optimizers, open_session), made[0]
