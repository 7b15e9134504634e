"""Gradients on their way from a device: which groups, in which order, announced when. The device is made up."""

import threading

import pytest
import torch
from torch import nn

import fake_session
from drover.errors import Trouble
from drover.gradients import Direct, Gradients
from drover.parameters import Slot
from drover.pieces import Piece
from drover.staging import Staging, stretches

ZEROS = torch.zeros(16)


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
        slot.of(self.gathered).copy_(gradient)

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
    return [Slot(Piece(str(i), torch.zeros(size)), 16 * i, i) for i, size in enumerate(sizes)]


def test_neighbours_travel_together_and_others_are_left_alone():
    slots = slots_of(16, 3, 5, 7, 9)
    assert stretches({i: slots[i] for i in (4, 1, 0, 3)}) == [(0, 19), (48, 73)]
    assert stretches({2: slots[2]}) == [(32, 37)]


def test_groups_are_sent_when_large_enough_and_announced_in_order_when_they_have_arrived():
    slots = slots_of(16, 16, 16, 16, 16)
    lane, announced, news = HeldLane(80), [], threading.Condition()

    def tensor_ready(index, samples):
        with news:
            announced.append((index, samples, lane.host[16 * index].item()))
            news.notify_all()
        return True

    staging = Staging(lane, group_bytes=32 * 4)
    staging.begin(7)
    for index in (4, 3, 2, 1, 0):
        assert staging.put(index, slots[index], torch.full((16,), float(index + 1)), tensor_ready)
    assert [parts for parts, _ in lane.sent] == [[(48, 80)], [(16, 48)]] and announced == []
    lane.sent[1][1].happened.set()  # the second arrives first, and is not announced before the first
    lane.sent[0][1].happened.set()
    with news:
        assert news.wait_for(lambda: len(announced) == 4, 60)
    lane.held = False
    assert staging.drain() is True
    assert announced == [(index, 7, index + 1.0) for index in (4, 3, 2, 1, 0)]
    assert lane.sent[2][0] == [(0, 16)]
    staging.close()


def test_nothing_is_announced_after_the_step_has_closed():
    slots = slots_of(16, 16, 16)
    announced = []

    def tensor_ready(index, samples):
        announced.append(index)
        return index != 1

    staging = Staging(HeldLane(48, held=False), group_bytes=4)
    staging.begin(1)
    staging.put(2, slots[2], ZEROS, tensor_ready)
    staging.put(1, slots[1], ZEROS, tensor_ready)
    assert staging.drain() is False
    assert staging.put(0, slots[0], ZEROS, tensor_ready) is False
    assert staging.drain() is False and announced == [2, 1]
    staging.begin(1)  # the next step
    assert staging.put(2, slots[2], ZEROS, tensor_ready) is True
    assert staging.drain() is True and announced == [2, 1, 2]
    staging.close()


def test_what_is_discarded_is_not_sent():
    slots = slots_of(16, 16)
    lane, announced = HeldLane(32, held=False), []
    staging = Staging(lane)
    staging.begin(1)
    staging.put(0, slots[0], ZEROS, lambda index, samples: announced.append(index) or True)
    staging.discard()
    assert lane.sent == [] and staging.drain() is True and announced == []
    staging.close()


def test_trouble_of_the_thread_reaches_the_training_loop():
    def tensor_ready(index, samples):
        raise Trouble("lost")

    slots = slots_of(16)
    staging = Staging(HeldLane(16, held=False), group_bytes=4)
    staging.begin(1)
    staging.put(0, slots[0], ZEROS, tensor_ready)
    with pytest.raises(Trouble, match="lost"):
        staging.drain()
    staging.begin(1)
    staging.drain()
    staging.close()


@pytest.mark.parametrize("group_bytes", [4, 100, 1 << 20])
def test_a_model_trains_through_staging_as_it_does_without(group_bytes):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.BatchNorm1d(9), nn.Linear(9, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run, session = fake_session.join(model, optimizer)
    run._gradients.close()
    slots = run._slots
    lane = HeldLane(len(session.gradient), held=False)
    lane.host = torch.from_numpy(session.gradient)
    staging, direct = Staging(lane, group_bytes), Direct(lane.host)
    # The last layer is on the CPU, the rest on a device.
    sink_of = [direct if slot.name.startswith("3") else staging for slot in slots]
    run._gradients = Gradients(slots, [staging, direct], sink_of)
    alone = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.BatchNorm1d(9), nn.Linear(9, 2))
    alone.load_state_dict(model.state_dict())
    own = torch.optim.SGD(alone.parameters(), lr=0.1)
    with run:
        for late in (False, True, False):
            x = torch.randn(5, 6)
            session.late_from = 3 if late else 100
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            if late:
                assert session.finished[-1][0] is False
            else:
                own.zero_grad()
                alone(x).square().mean().backward()
                own.step()
                assert session.finished[-1][0] is True
    for name, value in alone.named_parameters():
        torch.testing.assert_close(model.state_dict()[name], value)
