"""A session without a run: one worker, whose gradients are applied by plain SGD with weight decay when a step ends.

It keeps a list of what it was told (`told`), and can be made late, over, or broken at a chosen moment.
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
        self.gradient = numpy.full(size, math.nan, numpy.float32)  # so that what nobody wrote is noticed
        self.average = numpy.zeros(size, numpy.float32)
        self.rate = settings["rate"]
        self.steps, self.rank, self.workers, self.batch, self.seed = steps, 0, 1, 4, 7
        self.first_step = 0
        self.step = -1
        self.started = False
        self.left = None
        self.outcome, self.reason = "running", ""
        self.told = []  # of the step: (index, samples), in order
        self.finished = []  # (finished, samples, loss, correct, predictions) of every step
        self.late_from = math.inf  # how many tensors of a step are taken before it closes
        self.unwanted_after = math.inf  # how often wanted() says yes in a step
        self.trouble = None  # raised by tensor_ready
        self.averages_kept = True

    @property
    def samples(self):
        return self.step * self.batch, self.batch

    @property
    def over(self):
        return self.outcome != "running"

    def part(self, index, flat):
        return flat[self.offsets[index] : self.offsets[index] + self.pieces[index].size]

    def start(self):
        self.started = True

    def next_step(self):
        if self.step + 1 >= self.steps and not self.over:
            self.outcome = "completed"
        if self.over:
            return None
        self.step += 1
        self.told, self.asked = [], 0
        return self.step

    def wanted(self):
        self.asked += 1
        return self.asked <= self.unwanted_after

    def tensor_ready(self, index, samples):
        if self.trouble:
            raise Trouble(self.trouble)
        assert index not in [i for i, _ in self.told], "told twice"
        if len(self.told) >= self.late_from:
            return False
        self.told.append((index, samples))
        return True

    def set_rate(self, rate):
        assert self.told == [], "too late for this step"
        self.rate = rate

    def finish_step(self, finished, samples, loss=math.nan, correct=0, predictions=0):
        self.finished.append((finished, samples, loss, correct, predictions))
        if finished:
            assert sorted(i for i, _ in self.told) == list(range(len(self.pieces))), "a tensor is missing"
            for index, piece in enumerate(self.pieces):
                values, gradient = self.part(index, self.parameters), self.part(index, self.gradient)
                if piece.averaged:
                    values[:] = gradient
                else:
                    decay = numpy.float32(self.settings["weight_decay"] * piece.decay)
                    values -= numpy.float32(self.rate * piece.rate) * (gradient + decay * values)

    def fetch_average(self):
        if not self.averages_kept:
            raise Trouble("the run keeps no snapshots")
        return None if self.over else self.step

    def evaluated(self, version, loss, accuracy, samples):
        self.evaluation = (version, loss, accuracy, samples)

    def leave(self, reason=""):
        self.left = reason


def join(model, optimizer, overlap=True, **options):
    """A Run on a FakeSession, and the session."""
    from drover.run import Run

    made = []

    def open_session(pieces, settings):
        made.append(FakeSession(pieces, settings, **options))
        return made[0]

    return Run(model, optimizer, open_session, overlap), made[0]
