"""Gradients on their way from a device: which groups, in which order, told when. The device is made up."""

import threading

import pytest
import torch
from torch import nn

import fake_session
from drover.errors import Late, Trouble
from drover.gradients import Direct, Gradients
from drover.parameters import Slot
from drover.pieces import Piece
from drover.staging import Staging, stretches


class HeldEvent:
    """Happens when the test says so."""

    def __init__(self):
        self.happened = threading.Event()

    def synchronize(self):
        assert self.happened.wait(60)


class HeldLane:
    """Copies arrive only when their event happens, as on a device."""

    def __init__(self, size, held=True):
        self.host, self.gathered = torch.zeros(size), torch.zeros(size)
        self.sent, self.held = [], held

    def keep(self, slot, gradient):
        slot.of(self.gathered).copy_(torch.zeros(()) if gradient is None else gradient)

    def send(self, parts):
        lane, event = self, HeldEvent()
        taken = [(first, last, self.gathered[first:last].clone()) for first, last in parts]
        self.sent.append((parts, event))

        class Arrival:
            def synchronize(self):
                if lane.held:
                    event.synchronize()
                for first, last, values in taken:
                    lane.host[first:last] = values

        return Arrival()


def slots_of(*sizes):
    return [Slot(Piece(str(i), torch.zeros(size)), 16 * i) for i, size in enumerate(sizes)]


def test_neighbours_travel_together_and_others_are_left_alone():
    slots = slots_of(16, 3, 5, 7, 9)
    assert stretches({i: slots[i] for i in (4, 1, 0, 3)}) == [(0, 19), (48, 73)]
    assert stretches({2: slots[2]}) == [(32, 37)]


def test_groups_are_sent_when_large_enough_and_told_in_order_when_they_have_arrived():
    slots = slots_of(16, 16, 16, 16, 16)
    lane, told, news = HeldLane(80), [], threading.Condition()

    def tensor_ready(index, samples):
        with news:
            told.append((index, samples, lane.host[16 * index].item()))
            news.notify_all()
        return True

    staging = Staging(lane, tensor_ready, group_bytes=32 * 4)
    staging.begin(7)
    for index in (4, 3, 2, 1, 0):
        assert staging.put(index, slots[index], torch.full((16,), float(index + 1)))
    assert [parts for parts, _ in lane.sent] == [[(48, 80)], [(16, 48)]] and told == []
    lane.sent[1][1].happened.set()  # the second arrives first, and is not told before the first
    lane.sent[0][1].happened.set()
    with news:
        assert news.wait_for(lambda: len(told) == 4, 60)
    lane.held = False
    assert staging.drain() is True
    assert told == [(index, 7, index + 1.0) for index in (4, 3, 2, 1, 0)]
    assert lane.sent[2][0] == [(0, 16)]
    staging.close()


def test_nothing_is_told_after_the_step_has_closed():
    slots = slots_of(16, 16, 16)
    told = []

    def tensor_ready(index, samples):
        told.append(index)
        return index != 1

    staging = Staging(HeldLane(48, held=False), tensor_ready, group_bytes=4)
    staging.begin(1)
    staging.put(2, slots[2], None)
    staging.put(1, slots[1], None)
    assert staging.drain() is False
    assert staging.put(0, slots[0], None) is False
    assert staging.drain() is False and told == [2, 1]
    staging.begin(1)  # the next step
    assert staging.put(2, slots[2], None) is True
    assert staging.drain() is True and told == [2, 1, 2]
    staging.close()


def test_what_is_discarded_is_not_sent():
    slots = slots_of(16, 16)
    lane, told = HeldLane(32, held=False), []
    staging = Staging(lane, lambda index, samples: told.append(index) or True)
    staging.begin(1)
    staging.put(0, slots[0], None)
    staging.discard()
    assert lane.sent == [] and staging.drain() is True and told == []
    staging.close()


def test_trouble_of_the_thread_reaches_who_trains():
    def tensor_ready(index, samples):
        raise Trouble("lost")

    slots = slots_of(16)
    staging = Staging(HeldLane(16, held=False), tensor_ready, group_bytes=4)
    staging.begin(1)
    staging.put(0, slots[0], None)
    with pytest.raises(Trouble, match="lost"):
        staging.drain()
    staging.begin(1)
    staging.drain()
    staging.close()


@pytest.mark.parametrize("group_bytes", [4, 100, 1 << 20])
def test_a_model_trains_through_staging_as_it_does_without(group_bytes):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.BatchNorm1d(9), nn.Linear(9, 2))
    run, session = fake_session.join(model, torch.optim.SGD(model.parameters(), lr=0.1))
    run._gradients.close()
    slots = [Slot(piece, offset) for piece, offset in zip(session.pieces, session.offsets)]
    lane = HeldLane(len(session.gradient), held=False)
    lane.host = torch.from_numpy(session.gradient)
    staging, direct = Staging(lane, session.tensor_ready, group_bytes), Direct(lane.host, session.tensor_ready)
    # The last layer is on the CPU, the rest on a device.
    sink_of = [direct if slot.name.startswith("3") else staging for slot in slots]
    run._gradients = Gradients(slots, [staging, direct], sink_of, True, lambda: None)
    alone = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.BatchNorm1d(9), nn.Linear(9, 2))
    alone.load_state_dict(model.state_dict())
    own = torch.optim.SGD(alone.parameters(), lr=0.1)
    with run:
        for late in (False, True, False):
            x = torch.randn(5, 6)
            session.late_from = 3 if late else 100
            with run.step():
                model(x).square().mean().backward()
            if late:
                assert session.finished[-1][0] is False
            else:
                own.zero_grad()
                alone(x).square().mean().backward()
                own.step()
                assert session.finished[-1][0] is True
    for name, value in alone.named_parameters():
        torch.testing.assert_close(model.state_dict()[name], value)


def test_late_is_raised_by_the_hook_after_the_news():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    run, session = fake_session.join(model, torch.optim.SGD(model.parameters(), lr=0.1))
    run._gradients.close()
    slots = [Slot(piece, offset) for piece, offset in zip(session.pieces, session.offsets)]
    lane = HeldLane(len(session.gradient), held=False)
    session.late_from = 0
    staging = Staging(lane, session.tensor_ready, group_bytes=4)
    gradients = Gradients(slots, [staging], [staging] * len(slots), True, lambda: None)
    gradients.begin(1)
    y = model[0](torch.randn(1, 4)).sum()
    first = model[1](torch.randn(1, 4)).sum()
    with pytest.raises(Late):
        first.backward()
        staging.drain()  # the news is here
        y.backward()
    gradients.abandon()
    gradients.close()
