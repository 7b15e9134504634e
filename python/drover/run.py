"""Run: a training script's part in a run, and Step: an explicit step of it."""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import nn

from . import clipping, forks, optimizers, saving
from .data import Batches, LoaderBatches
from .ending import Ending, reason_of
from .errors import Error, Late, RunFailed, RunOver, ScriptOver, Trouble, as_run_failed
from .gradients import BackwardHooks, Gradients, asking_before_layers, forget_broken_backward, make_sinks
from .norms import HeldGradients
from .optimizer_step import ReplacedStep
from .parameters import Parameters, Slot
from .pieces import Pieces

if TYPE_CHECKING:
    from ._native import Session  # noqa: F401, named in a text below

OpenSession = Callable[[Pieces, dict[str, Any]], "Session"]

# The run that this process has joined; one at a time.
_joined: Run | None = None


class Run:
    """What ``drover.join()`` returns: a training loop's part in a run.

    Everything between two calls of ``optimizer.step()`` is a step. ``optimizer.step()`` updates the parameters with the
    mean gradient of the workers, and returns when the model has the new values.

    As a context manager it ends the worker's part at the end of the block; otherwise that happens when Python ends.
    """

    def __init__(
        self, models: Sequence[nn.Module], opts: Sequence[torch.optim.Optimizer], open_session: OpenSession
    ) -> None:
        """Use drover.join(). `open_session` makes a session for the tensors and the first group's settings."""
        if _joined is not None:
            raise Error(
                "this process has joined a run already. Give all models and optimizers to one call: "
                "drover.join([g, d], [opt_g, opt_d]); or leave the first run with run.leave()."
            )
        self._models = list(models)
        self._optimizers = list(opts)
        self._pieces = Pieces(self._models, self._optimizers)
        self._settings = optimizers.settings_now(self._optimizers)
        self._announced_settings: list[dict[str, Any]] = []
        self._session = open_session(self._pieces, self._settings[0])
        self._step_number = self._batch_size = 0
        self._block_number: int | None = None  # of the last explicit step, if it was the last one
        self._block: Step | None = None
        self._samples: int | None = None
        self._version: int | None = None
        self._reports: tuple[float, int, int] | None = None
        self._left = self._ended = False
        self._begin()

    def _begin(self) -> None:
        global _joined
        session = self._session
        self._values = torch.frombuffer(session.parameters, dtype=torch.float32)
        gradient = torch.frombuffer(session.gradient, dtype=torch.float32)
        self._slots = [
            Slot(piece, offset, index) for index, (piece, offset) in enumerate(zip(self._pieces.all, session.offsets))
        ]
        with torch.no_grad():
            for slot in self._slots:
                slot.of(self._values).copy_(slot.tensor)
        others = forks.sockets()
        session.start()
        forks.close_in_children({fd: what for fd, what in forks.sockets().items() if fd not in others})
        self._batch_size = session.batch
        sinks, sink_of = make_sinks(self._slots, gradient)
        self._gradients = Gradients(self._slots, sinks, sink_of)
        self._parameters = Parameters(self._slots, [self._values, gradient], session.changed_tensors)
        self._held = HeldGradients(self._slots, self._gradients, session)
        self._backward_hooks = BackwardHooks(self._slots, self._stop_if_unwanted)
        # A worker that continues has the run's parameters before its first forward pass.
        self._parameters.show(self._values)
        self._next_step()
        self._replaced = [
            ReplacedStep(optimizer, functools.partial(self._update, which))
            for which, optimizer in enumerate(self._optimizers)
        ]
        clipping.redirect(self)
        self._ending = Ending(self)
        _joined = self

    # -- training ----------------------------------------------------------------------------------

    def samples(self, count: int) -> None:
        """How many samples are behind this step's gradient: what it weighs in the mean over the workers.

        The same as ``optimizer.step(samples=count)``. Without either all workers count equally.
        """
        if count < 1:
            raise ValueError(f"run.samples({count}): a gradient is the mean of at least one sample.")
        self._samples = int(count)

    def clip_grad_norm_(
        self, parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
    ) -> torch.Tensor:
        """``torch.nn.utils.clip_grad_norm_`` of the mean gradient of all workers. Returns its norm.

        torch's own function does the same while a run is joined.
        """
        listed = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        norm = self.clip_all_grad_norm(listed, float(max_norm), float(norm_type), error_if_nonfinite)
        if norm is None:
            raise ValueError("run.clip_grad_norm_(): none of these parameters is trained by the run.")
        return norm

    def stop(self) -> None:
        """Ends the run for all workers, within the next few steps. The last parameters are the same for all."""
        if not self._ended and not self._left:
            self._session.ask_to_stop()

    def step(self, samples: int | None = None) -> Step:
        """``with run.step(samples=len(y)):`` around a step; not needed, unless slow workers are to be stopped.

        Inside the block a pass is aborted in the middle, without an error, as soon as its gradient has become useless
        because the step has closed without it; the script continues after the block, where ``.grad`` is None. When the
        run is over this raises RunOver, which ends ``with drover.join(...)``. A block without ``optimizer.step()``
        counts as skipped.
        """
        if samples is not None and samples < 1:
            raise ValueError(f"run.step(samples={samples}): a gradient is the mean of at least one sample.")
        return Step(self, samples)

    def report(self, *, loss: Any = None, correct: Any = None, predictions: int | None = None) -> None:
        """Records and shows this step's mean loss and how many of its predictions were correct.

        Before or after ``optimizer.step()``. `predictions` is by default the step's samples.
        """
        value = math.nan if loss is None else float(loss)
        right = 0 if correct is None else int(correct)
        counted = 0 if correct is None else predictions or self._last_samples
        if self._stepped_since_report:
            self._session.report(value, right, counted)
            self._reports = None
        else:
            self._reports = (value, right, counted)

    def skip(self) -> None:
        """Nothing of this step counts. Only inside ``with run.step():``; otherwise just do not call
        optimizer.step()."""
        if not self._block:
            raise RuntimeError("skip() outside a step: put it into `with run.step():`.")
        self._block.skipped = True

    def no_sync(self) -> contextlib.AbstractContextManager[None]:
        """For scripts written for DDP. Gradients accumulate in ``.grad`` until ``optimizer.step()`` in any case."""
        return contextlib.nullcontext()

    def batches(self, data: Any) -> Any:
        """Batches for this worker alone.

        ``for x, y in run.batches(loader):`` goes over this worker's part of a DataLoader: an epoch, like the loader
        itself, with a length; it ends earlier when the run is over. ``run.batches(len(dataset))`` is an endless batch
        sampler: lists of indices, as long as `run.batch_size`, which follows the balance between workers.
        """
        if not isinstance(data, int):
            return LoaderBatches(self, data)
        from ._native import sample_indices

        if data < 1:
            raise ValueError(f"batches() of a data set of {data} samples: there is nothing to choose from")
        seed = self._session.seed
        return Batches(
            self,
            self._session.batch,
            lambda first, count: sample_indices(seed, first, count, data),
            self._session.first_step,
        )

    # -- evaluating and keeping --------------------------------------------------------------------

    @contextlib.contextmanager
    def averaged(self) -> Iterator[int]:
        """``with run.averaged():`` the model has the moving average of its parameters, which often generalises better.

        Only between steps. The run must keep snapshots: start it with ``--evaluate-every N``, and ``--ema 0.999`` for
        an average. Gives the version (number of steps) that the average is of. Raises RunOver when the run is over:
        the final parameters are in the model after the run.
        """
        if self._block:
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
        """The model's state_dict, as copies that no longer change; of several models, those of the first."""
        return saving.own_state(self._models[0])

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
        """The step that the run began with: 0, or where it continues from a checkpoint (``--resume``)."""
        return self._session.first_step

    @property
    def step_number(self) -> int:
        """The number of the step that is being computed, from 0: how many updates the parameters have had.

        After a ``with run.step():`` block it is still that of the block, until the next step begins.
        """
        return self._step_number if self._block_number is None else self._block_number

    @property
    def over(self) -> bool:
        """Whether the run is over."""
        return self._left or self._ended or self._session.over

    @property
    def outcome(self) -> str:
        """ "running", "completed", "interrupted" or "failed"."""
        return self._session.outcome

    # -- beginning and end -------------------------------------------------------------------------

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        done = kind is None or issubclass(kind, RunOver) or (isinstance(error, SystemExit) and not error.code)
        if done:
            self.leave()
        else:
            with contextlib.suppress(Error):  # the script's own error is the one to see
                self.leave(reason_of(error))
        return kind is not None and issubclass(kind, RunOver)

    def leave(self, reason: str = "") -> None:
        """Ends this worker's part; ``with drover.join(...)`` and the end of Python do it.

        A script that is done ends the run for all workers. With a reason only this worker leaves, and the run records
        why.
        """
        global _joined
        if self._left:
            return
        self._left, _joined = True, None
        try:
            with as_run_failed():
                self._parameters.settle()
                self._session.leave(reason)
        finally:
            self._parameters.settle()
            self._parameters.release()
            self._gradients.close()
            self._backward_hooks.remove()
            forget_broken_backward()
            for replaced in self._replaced:
                replaced.put_back()
            clipping.restore(self)
            forks.close_in_children({})
            self._ending.cancel()
        if not reason and self._session.outcome == "failed":
            raise RunFailed(self._session.reason)

    # -- one optimizer.step() ----------------------------------------------------------------------

    def _update(self, which: int, samples: int | None) -> None:
        """The update of one optimizer's parameters."""
        block = self._block
        if block and block.skipped:
            return
        if not block:
            self._block_number = None
        if self._ended:
            self._raise_how_it_ended()
        if samples is not None:
            self.samples(samples)
        self._pieces.check()
        self._parameters.check()
        mine = {slot.index for slot in self._slots if slot.owner == which and slot.tensor.grad is not None}
        if not mine:
            return  # torch's optimizers, too, do nothing where there is no gradient
        with as_run_failed():
            self._push_written()
            if self._held.any() and not self._held.still_hold_for(mine):
                self._make_step(set())
            finished = self._make_step(mine)
        if block:
            block.stepped = True
            if not finished:
                raise Late("the step closed before this gradient was complete")

    def _make_step(self, mine: set[int], written: set[int] = frozenset()) -> bool:  # type: ignore[assignment]
        """A step of the run with the gradients, or written values, of some tensors. Returns whether they were in
        time."""
        session = self._session
        samples = self._samples or (self._block.samples if self._block else None) or session.samples[1]
        used = self._held.any() and bool(mine)
        self._announce_settings()
        self._gradients.begin(samples)
        wanted = True
        for slot in self._slots:
            if not wanted:
                break
            if self._held.has(slot.index):
                continue
            if slot.averaged or slot.index in written:
                announce = session.tensor_ready if slot.averaged else lambda index, _: session.tensor_written(index)
                wanted = self._gradients.put(slot.index, slot.tensor.data, announce)
            elif slot.index in mine:
                wanted = self._gradients.put(slot.index, slot.tensor.grad, session.tensor_ready)
            else:
                wanted = session.tensor_absent(slot.index, samples)
        wanted = self._gradients.drain() and wanted and not self._held.in_vain
        self._held.release(used)
        self._finish(wanted, samples)
        return wanted

    def _finish(self, wanted: bool, samples: int) -> None:
        self._gradients.discard()
        session = self._session
        session.finish_step(wanted, samples if wanted else 0)
        self._last_samples, self._stepped_since_report = samples, True
        if self._reports is not None:
            session.report(*self._reports)
            self._reports, self._stepped_since_report = None, False
        self._parameters.settle()
        self._samples = None
        self._next_step()

    _last_samples = 0
    _stepped_since_report = False

    def _next_step(self) -> None:
        """Waits for the parameters of the next step, and shows them to the model."""
        with as_run_failed():
            number = self._session.next_step()
        self._parameters.show(self._values)
        if number is None:
            self._ended = True
            if self._session.outcome == "failed":
                raise RunFailed(self._session.reason)
            self._step_number += 1
            return
        self._step_number, self._version = number, None
        self._batch_size = self._session.samples[1]

    def _push_written(self) -> None:
        """Values that the script has written into parameters since the last step become those of the run."""
        written = set(self._parameters.changed(self._values))
        if not written:
            return
        if not self._make_step(set(), written):
            names = ", ".join(self._slots[index].name for index in sorted(written)[:3])
            raise RuntimeError(
                f"values that the script has written into {names} came too late for the run, which has "
                "taken a step without them. Write them in all workers, or with a policy that waits for "
                "all (--policy sync)."
            )

    def _announce_settings(self) -> None:
        """The settings of a step, which the shards must know before anything of it."""
        settings = optimizers.settings_now(self._optimizers)
        if settings != self._announced_settings:
            self._announced_settings = settings
            self._session.set_groups(settings)

    # -- clipping ----------------------------------------------------------------------------------

    def clip_all_grad_norm(
        self, parameters: list[torch.Tensor], max_norm: float, norm_type: float, error_if_nonfinite: bool
    ) -> torch.Tensor | None:
        """What torch.nn.utils.clip_grad_norm_ does for these parameters; nothing if none belongs to the run."""
        known = {id(slot.tensor): slot.index for slot in self._slots if not slot.averaged}
        ours = [parameter for parameter in parameters if id(parameter) in known]
        if self._ended or self._left or not ours:
            return None
        if len(ours) < len(
            [parameter for parameter in parameters if parameter.grad is not None or id(parameter) in known]
        ):
            raise RuntimeError(
                "clip_grad_norm_ of parameters of which only some are trained by the run: the others have "
                "no gradient that all workers share. Clip them in a call of their own."
            )
        if norm_type not in (2.0, math.inf):
            raise ValueError(
                f"clip_grad_norm_ with norm_type={norm_type:g}: the workers can agree on norm 2 and on "
                "norm inf. Use one of them, or clip each worker's own gradient by hand."
            )
        indices = sorted({known[id(parameter)] for parameter in ours if parameter.grad is not None})
        if not indices:
            return torch.tensor(0.0)
        with as_run_failed():
            if not self._held.same(indices):
                self._push_written()
                if self._held.any():
                    self._make_step(set())  # what was clipped before, and is pushed as it is now
                samples = self._samples or (self._block.samples if self._block else None) or self._session.samples[1]
                self._announce_settings()
                self._gradients.begin(samples)
                self._held.push(indices, samples)
        return self._held.clip(max_norm, norm_type, error_if_nonfinite)

    def refuse_clip_by_value(self, parameters: list[torch.Tensor]) -> None:
        """Clipping the mean's values is not known to shards, and clipping each worker's own is something else."""
        known = {id(slot.tensor) for slot in self._slots}
        if self.workers > 1 and not self._ended and any(id(parameter) in known for parameter in parameters):
            raise RuntimeError(
                "clip_grad_value_ is meant for the mean gradient of all workers, which no worker has. Use "
                "clip_grad_norm_, or clip this worker's own gradient: p.grad.clamp_(-v, v)."
            )

    # -- called by Step and hooks ------------------------------------------------------------------

    def _stop_if_unwanted(self) -> None:
        if self._block and not self._session.wanted():
            raise Late("the step closed during this pass")

    def _forget_gradients(self) -> None:
        for slot in self._slots:
            slot.tensor.grad = None
        forget_broken_backward()

    def _abandon(self) -> None:
        """Ends a step without a gradient, and begins another."""
        self._forget_gradients()
        if not self._ended:
            with as_run_failed():
                self._held.release(False)
                self._finish(False, 0)

    def _raise_how_it_ended(self) -> NoReturn:
        if self._session.outcome == "failed":
            raise RunFailed(self._session.reason)
        text = f"the run is over after {self._step_number} steps"
        if self._session.reason:
            text += f": {self._session.reason}"
        self._ending.note_over(text)
        raise ScriptOver(text)


class Step:
    """What run.step() returns."""

    def __init__(self, run: Run, samples: int | None) -> None:
        self._run = run
        self._watch: contextlib.AbstractContextManager[None] | None = None
        self.samples = samples
        self.skipped = False
        self.stepped = False
        self.number = run._step_number

    def __enter__(self) -> Step:
        run = self._run
        if run._left:
            raise RunOver("this worker has left the run")
        if run._block:
            raise RuntimeError("run.step() inside run.step(): end one step before the next.")
        if run._ended:
            run._raise_how_it_ended()
        run._block, self.number, run._block_number = self, run._step_number, run._step_number
        run._backward_hooks.active = True
        self._watch = asking_before_layers(run._stop_if_unwanted)
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        run = self._run
        assert self._watch is not None
        self._watch.__exit__(None, None, None)
        run._backward_hooks.active = False
        run._block = None
        if self.stepped:  # what was to be done is done
            run._forget_gradients()
            return kind is not None and issubclass(kind, Late)
        if kind is None or issubclass(kind, Late):
            run._abandon()
            return kind is not None
        run._forget_gradients()  # a script that catches the error begins this step again
        if isinstance(error, Trouble):  # out of a hook
            raise RunFailed(str(error)) from None
        return False
