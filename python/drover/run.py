"""Run: a training script's part in a run, and Step: one step of it."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from . import optimizers, saving
from .data import Batches
from .errors import Error, Late, RunFailed, RunOver, Trouble, as_run_failed
from .gradients import Gradients, before_layers, make_sinks
from .optimizer_step import ReplacedStep
from .parameters import Parameters, Slot
from .pieces import Piece, Pieces

if TYPE_CHECKING:
    from ._native import Session

OpenSession = Callable[[list[Piece], dict[str, Any]], "Session"]


class Run:
    """What ``drover.join()`` returns: a context manager that holds the model's parameters to those of the run.

    Leaving the ``with`` block normally waits for the last step to close; the model then has the final parameters, in
    memory of its own. Leaving it by an exception tells the coordinator why; only this worker ends, and the run goes
    on without it.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, open_session: OpenSession,
                 overlap: bool = True) -> None:
        """Use drover.join(). `open_session` makes a session for the model's tensors and the optimiser's settings."""
        self._model = model
        self._optimizer = optimizer
        settings = optimizers.settings_of(optimizer)
        self._pieces = Pieces(model, optimizer)
        self._rate: float = settings["rate"]
        self._session = open_session(self._pieces.all, settings)
        self._values = torch.frombuffer(self._session.parameters, dtype=torch.float32)
        gradient = torch.frombuffer(self._session.gradient, dtype=torch.float32)
        slots = [Slot(piece, offset) for piece, offset in zip(self._pieces.all, self._session.offsets)]
        with torch.no_grad():
            for slot in slots:
                slot.of(self._values).copy_(slot.tensor)
        self._session.start()
        self._parameters = Parameters(slots, [self._values, gradient])
        self._parameters.show(self._values)
        sinks, sink_of = make_sinks(slots, gradient, self._session.tensor_ready)
        self._gradients = Gradients(slots, sinks, sink_of, overlap, self._before_first_gradient)
        self._layer_hooks = before_layers(model, self._ask_whether_wanted)
        self._replaced = ReplacedStep(optimizer, self._optimizer_step)
        self._step: Step | None = None
        self._step_number = 0
        self._batch_size: int = self._session.batch
        self._version: int | None = None
        self._left = False

    # -- training ----------------------------------------------------------------------------------

    def step(self, samples: int | None = None) -> Step:
        """``with run.step(samples=len(y)):`` around the forward pass, the backward pass and ``optimizer.step()``.

        Waits for the parameters of the next step. What is inside is left off in the middle, without an error, as soon
        as its gradient has become useless because the step has closed without it; the script goes on after the block.
        `samples`: how many the gradient is the mean of, by default `run.batch_size`. When the run is over this raises
        RunOver, which ends ``with drover.join(...)``.

        A block that computes no gradient (say, it continues with the next batch) counts as skipped.
        """
        if samples is not None and samples < 1:
            raise ValueError(f"run.step(samples={samples}): a gradient is the mean of at least one sample.")
        return Step(self, samples)

    def report(self, *, loss: Any = None, correct: Any = None, predictions: int | None = None) -> None:
        """Tells the run this step's mean loss and how many of its predictions were correct, to be recorded and shown.

        Tensors are read when the step ends, so that nothing waits for a device here. `predictions` is by default the
        step's samples.
        """
        self._current("report()").report(loss, correct, predictions)

    def skip(self) -> None:
        """Nothing of this step counts, unless it was sent before: call it before the backward pass.

        The block may go on to its end.
        """
        self._current("skip()").skipped = True

    def no_sync(self) -> contextlib.AbstractContextManager[None]:
        """Around all backward passes of a step but the last.

        Their gradients are added up in ``.grad``, and leave with those of the last one.
        """
        return self._gradients.no_sync()

    def batches(self, dataset_size: int) -> Batches:
        """Lists of indices for ``DataLoader(dataset, batch_sampler=run.batches(len(dataset)))``.

        Endless; no two workers get the same sample in an epoch; as long as `run.batch_size`, which follows the
        balance between workers.
        """
        from ._native import sample_indices

        if dataset_size < 1:
            raise ValueError(f"batches() of a data set of {dataset_size} samples: there is nothing to choose from")
        seed = self._session.seed
        return Batches(self, self._session.batch, lambda first, count: sample_indices(seed, first, count, dataset_size),
                       self._session.first_step)

    # -- evaluating and keeping --------------------------------------------------------------------

    @contextlib.contextmanager
    def averaged(self) -> Iterator[int]:
        """``with run.averaged():`` the model has the moving average of its parameters, which often generalises better.

        Only between steps. The run must keep snapshots: start it with ``--evaluate-every N``, and ``--ema 0.999`` for
        an average. Gives the version (number of steps) that the average is of. Raises RunOver when the run is over:
        the final parameters are in the model after the run.
        """
        if self._step:
            raise RuntimeError("run.averaged() inside run.step(): evaluate between steps.")
        try:
            version = self._session.fetch_average()
        except Trouble as trouble:
            raise Error(str(trouble)) from None
        if version is None:
            self._raise_how_it_ended()
        self._version = version
        self._parameters.hold()
        self._parameters.show(torch.frombuffer(self._session.average, dtype=torch.float32))
        try:
            yield version
        finally:
            self._parameters.settle()
            self._parameters.restore(self._values)

    def evaluated(self, *, loss: float, accuracy: float = math.nan, samples: int) -> None:
        """Records what was measured of the last ``averaged()``, or else of the parameters of the last step."""
        version = self._step_number if self._version is None else self._version
        with as_run_failed():
            self._session.evaluated(version, float(loss), float(accuracy), samples)

    def state_dict(self) -> dict[str, Any]:
        """The model's state_dict, as copies that no longer change."""
        return saving.own_state(self._model)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model's state_dict, for ``model.load_state_dict(torch.load(path))``: whole, or not at all.

        All workers have the same parameters: ``if run.rank == 0: run.save(path)``.
        """
        saving.write_whole(self.state_dict(), path)

    # -- what the run is ---------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """This worker's number, from 0."""
        return self._session.rank

    @property
    def workers(self) -> int:
        """How many workers the run has."""
        return self._session.workers

    @property
    def batch_size(self) -> int:
        """How many samples this worker should use in the next step: fewer if it is slow and the run is balanced."""
        return self._batch_size

    @property
    def first_step(self) -> int:
        """The step that the run began with: 0, or where it goes on from a checkpoint (``--resume``)."""
        return self._session.first_step

    @property
    def step_number(self) -> int:
        """The step that is being computed, or was last."""
        return self._step_number

    @property
    def over(self) -> bool:
        """Whether the run is over."""
        return self._left or self._session.over

    @property
    def outcome(self) -> str:
        """"running", "completed", "interrupted" or "failed"."""
        return self._session.outcome

    # -- beginning and end -------------------------------------------------------------------------

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> bool:
        done = kind is None or issubclass(kind, RunOver) or (isinstance(error, SystemExit) and not error.code)
        if done:
            self.leave()
        else:
            with contextlib.suppress(Error):  # the script's own error is the one to see
                self.leave(_reason(error))
        return kind is not None and issubclass(kind, RunOver)

    def leave(self, reason: str = "") -> None:
        """Ends this worker's part; ``with drover.join(...)`` does it.

        With a reason it leaves at once, and the run records why.
        """
        if self._left:
            return
        self._left = True
        try:
            with as_run_failed():
                self._parameters.settle()
                self._session.leave(reason)
            if not reason:
                self._parameters.show(self._values)
        finally:
            self._parameters.settle()
            self._parameters.release()
            self._gradients.close()
            self._replaced.put_back()
            for hook in self._layer_hooks:
                hook.remove()
        if not reason and self._session.outcome == "failed":
            raise RunFailed(self._session.reason)

    # -- called by Step and hooks ------------------------------------------------------------------

    def _begin(self, step: Step) -> int:
        """Waits for the parameters. Returns how many samples the step has, unless its script says otherwise."""
        if self._left:
            raise RunOver("this worker has left the run")
        if self._step:
            raise RuntimeError("run.step() inside run.step(): end one step before the next.")
        self._parameters.settle()
        with as_run_failed():
            number = self._session.next_step()
        if number is None:
            self._raise_how_it_ended()
        self._step, self._step_number, self._version = step, number, None
        self._batch_size = self._session.samples[1]
        self._parameters.show(self._values)
        return self._batch_size

    def _before_first_gradient(self) -> None:
        self._announce_rate()
        if self._parameters.elsewhere:
            self._parameters.settle()
            self._session.pull_ahead()

    def _announce_rate(self) -> None:
        """The learning rate of a step, which the shards must know before any gradient of it."""
        rate = self._pieces.rates.read(self._optimizer.param_groups)
        if rate != self._rate:
            self._rate = rate
            self._session.set_rate(rate)

    def _optimizer_step(self) -> None:
        if not self._current("optimizer.step()").skipped:
            self._check()
            with as_run_failed():
                self._gradients.push_rest()

    def _check(self) -> None:
        self._pieces.check()
        self._parameters.check()

    def _ask_whether_wanted(self) -> None:
        if self._step and not self._session.wanted():
            raise Late("the step closed during the forward pass")

    def _current(self, what: str) -> Step:
        if not self._step:
            raise RuntimeError(f"{what} outside a step: put it into `with run.step():`.")
        return self._step

    def _raise_how_it_ended(self) -> None:
        if self._session.outcome == "failed":
            raise RunFailed(self._session.reason)
        raise RunOver(self._session.reason or "the run is over")


class Step:
    """What run.step() returns."""

    def __init__(self, run: Run, samples: int | None) -> None:
        self._run = run
        self._samples = samples
        self._loss: Any = None
        self._correct: Any = None
        self._predictions: int | None = None
        self.skipped = False

    @property
    def number(self) -> int:
        return self._run.step_number

    def report(self, loss: Any, correct: Any, predictions: int | None) -> None:
        self._loss = loss.detach() if isinstance(loss, torch.Tensor) else loss
        self._correct = correct.detach() if isinstance(correct, torch.Tensor) else correct
        self._predictions = predictions

    def __enter__(self) -> Step:
        dealt = self._run._begin(self)
        if self._samples is None:
            self._samples = dealt
        self._run._gradients.begin(self._samples)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> bool:
        if kind is None:
            return self._finish()
        late = issubclass(kind, Late)
        self._abandon(quietly=not late)
        if isinstance(error, Trouble):  # out of a hook
            raise RunFailed(str(error)) from None
        return late

    def _finish(self) -> bool:
        run = self._run
        try:
            run._check()
            with as_run_failed():
                if not self.skipped and run._gradients.finish():
                    run._session.finish_step(True, self._samples, *self._told())
                    run._step = None
                    return False
        except Late:
            pass
        except BaseException:
            self._abandon(quietly=True)
            raise
        self._abandon(quietly=False)
        return False

    def _abandon(self, quietly: bool) -> None:
        """`quietly`: another error is on its way, which is the one to see."""
        run = self._run
        run._step = None
        with contextlib.suppress(*([Error] if quietly else [])), as_run_failed():
            run._gradients.abandon()
            run._session.finish_step(False, 0)

    def _told(self) -> tuple[float, int, int]:
        loss = math.nan if self._loss is None else float(self._loss)
        if self._correct is None:
            return loss, 0, 0
        return loss, int(self._correct), self._samples if self._predictions is None else self._predictions


def _reason(error: BaseException | None) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, SystemExit):
        return f"exit {error.code}"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
