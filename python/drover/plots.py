"""Pictures of a run.

    drover.plot_run("runs/20261116-061226-lenet.db", "run.png")     # four panels, as a file
    figure = drover.plot_run(run)                                   # to show: matplotlib.pyplot.show()

The panels are functions of their own that draw into axes of yours: plots.draw_cutoffs(run, axes), and so on.
Needs matplotlib.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import Error
from .runs import PathLike, RunData, read_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# One colour an idea, in all panels: what was observed, what it is compared with, what was not waited for, what was
# tested.
_INK, _GREY, _LEFT, _TEST, _BAND = "#1f3a5f", "#9aa1a9", "#d6604d", "#c27c0e", "#b9cde4"
_STYLE = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "legend.frameon": False,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}


def plot_run(run: RunData | PathLike, out: PathLike | None = None, *, step: int | None = None) -> "Figure":
    """One figure of four panels: run-times of all workers, how many gradients each step waited for, the loss against
    the clock, and the forecast of one step (`step`; by itself one in the middle) beside what was observed. `out` names
    a file to write, .png, .svg or .pdf."""
    matplotlib = _matplotlib()
    data = run if isinstance(run, RunData) else read_run(run)
    if not len(data.steps["step"]):
        raise Error(f"there is nothing to draw yet: no step is recorded in '{data.path}'")
    with matplotlib.rc_context(_STYLE):
        if out is None:
            from matplotlib import pyplot

            figure = pyplot.figure(figsize=(11, 6.6), layout="constrained")
        else:
            figure = matplotlib.figure.Figure(figsize=(11, 6.6), layout="constrained")
        (heat, cutoffs), (loss, forecast) = figure.subplots(2, 2)
        draw_run_times(data, heat)
        draw_cutoffs(data, cutoffs)
        draw_loss(data, loss)
        if len(data.forecasts["step"]):
            draw_forecast(data, forecast, step)
        else:
            draw_step_times(data, forecast)
        figure.suptitle(_headline(data), x=0.01, ha="left", fontsize=10, color="#333333")
        if out is not None:
            figure.savefig(os.fspath(out), dpi=130)
    return figure


def draw_run_times(run: RunData, axes: "Axes") -> None:
    """A heat map, steps by workers; a worker that was not waited for has another colour, since its run-time is not
    known."""
    matplotlib = _matplotlib()
    unit, scale = _unit(run.run_times)
    steps, known = run.steps["step"], run.run_times.T * scale
    extent = (steps[0] - 0.5, steps[-1] + 0.5, run.workers - 0.5, -0.5)
    how: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest", "extent": extent}
    finite = known[np.isfinite(known)]
    # From the quickest on, so that differences show; the slowest few do not decide the scale.
    low, high = np.percentile(finite, [0.5, 99.5]) if finite.size else (0.0, 1.0)
    image = axes.imshow(known, cmap="cividis", vmin=low, vmax=max(high, low * (1 + 1e-9) + 1e-12), **how)
    axes.set_title("run-times of the workers")
    if run.censored.any():
        mark = np.where(run.censored.T, 1.0, np.nan)
        axes.imshow(mark, cmap=matplotlib.colors.ListedColormap([_LEFT]), **how)
        share = run.censored.sum() / max(1, np.count_nonzero(run.censored | np.isfinite(run.run_times)))
        axes.text(
            1.0, 1.02, f"■ not waited for, {share:.1%}", color=_LEFT, transform=axes.transAxes, ha="right", va="bottom"
        )
    axes.set_xlabel("step")
    axes.set_ylabel("worker")
    axes.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(nbins=8, integer=True))
    axes.figure.colorbar(image, ax=axes, label=unit, pad=0.015, aspect=28)


def draw_cutoffs(run: RunData, axes: "Axes") -> None:
    """How many gradients each step was to wait for, how many were used, how many workers there were."""
    matplotlib = _matplotlib()
    steps = run.steps
    axes.plot(steps["step"], steps["alive"], color=_GREY, linewidth=1.0, label="alive")
    axes.step(steps["step"], steps["cutoff"], where="mid", color=_INK, linewidth=1.2, label="cutoff")
    uneven = steps["contributors"] != steps["cutoff"]
    if uneven.any():
        axes.plot(
            steps["step"][uneven],
            steps["contributors"][uneven],
            ".",
            color=_TEST,
            markersize=3,
            label="gradients used, if others",
        )
    axes.set_ylim(0, 1.08 * max(run.workers, steps["contributors"].max()))
    axes.set_xlim(steps["step"][0] - 0.5, steps["step"][-1] + 0.5)
    axes.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
    axes.set_title(f"gradients a step, policy {run.settings.get('policy', 'unknown')}")
    axes.set_xlabel("step")
    axes.legend(loc="lower right", ncol=3)


def draw_loss(run: RunData, axes: "Axes") -> None:
    """The loss in training, smoothed, and on the test data, against the clock."""
    steps, tests = run.steps, run.evaluations
    begin = steps["at_seconds"][0]
    unit, scale = _clock_unit(run.elapsed)
    clock = (steps["at_seconds"] + steps["elapsed_seconds"] - begin) * scale
    known = np.isfinite(steps["loss"])
    axes.set_title("loss")
    axes.set_xlabel(f"time, {unit}")
    if not known.any():
        axes.text(0.5, 0.5, "no loss was recorded", ha="center", va="center", color=_GREY, transform=axes.transAxes)
        return
    axes.plot(clock[known], steps["loss"][known], color=_GREY, linewidth=0.6, alpha=0.7, label="each step")
    axes.plot(clock[known], _smooth(steps["loss"][known]), color=_INK, linewidth=1.5, label="mean around it")
    shown = [steps["loss"][known]]
    if np.isfinite(tests["loss"]).any():
        axes.plot(
            (tests["at_seconds"] - begin) * scale,
            tests["loss"],
            "o-",
            color=_TEST,
            markersize=4,
            linewidth=1.0,
            label="test",
        )
        shown.append(tests["loss"][np.isfinite(tests["loss"])])
    low, high = min(each.min() for each in shown), max(np.percentile(each, 99.5) for each in shown)
    # Losses that fall by a factor of ten and more are easier to compare on a scale of factors.
    if low > 0 and high / low > 10:
        axes.set_yscale("log")
    else:
        # Space for the legend above; from 0 on, unless the loss falls by so little that nothing would be seen.
        axes.set_ylim(
            low - 0.1 * (high - low) if low > 0.5 * high else min(0.0, low), high + 0.2 * (high - low) + 1e-12
        )
    handles, labels = axes.get_legend_handles_labels()
    if np.isfinite(tests["accuracy"]).any():
        best = np.nanmax(tests["accuracy"])
        axes.text(
            1.0, 1.02, f"best test accuracy {best:.1%}", color=_TEST, transform=axes.transAxes, ha="right", va="bottom"
        )
    axes.legend(handles, labels, loc="upper right", ncol=3)


def draw_forecast(run: RunData, axes: "Axes", step: int | None = None) -> None:
    """When the gradients of one step were expected, in order of arrival, and when they came."""
    matplotlib = _matplotlib()
    predicted = np.unique(run.forecasts["step"])
    closed = predicted[np.isin(predicted, run.steps["step"])]
    if step is None:
        if not len(closed):
            raise Error(
                "no step of this run was decided by a forecast: its policy makes none, or it is still warming up"
            )
        step = int(closed[len(closed) // 2])
    if step not in closed:
        raise Error(
            f"step {step} was not decided by a forecast; "
            + (
                f"those that were are between {closed[0]} and {closed[-1]}"
                if len(closed)
                else "no step of this run was"
            )
        )
    row = int(np.searchsorted(run.steps["step"], step))
    unit, scale = _unit(run.run_times)
    mine = run.forecasts["step"] == step
    rank = run.forecasts["rank"][mine]
    mean, low, high = (run.forecasts[key][mine] * scale for key in ("mean_seconds", "low_seconds", "high_seconds"))
    axes.fill_between(rank, low, high, color=_BAND, linewidth=0, label="expected, 8 of 10")
    axes.plot(rank, mean, color=_INK, linewidth=1.2, label="expected")
    size = 4.0 if run.workers <= 40 else 2.0  # of many workers the dots make a line, and the band stays visible
    seen = np.sort(run.run_times[row][np.isfinite(run.run_times[row])]) * scale
    axes.plot(np.arange(1, len(seen) + 1), seen, "o", color=_TEST, markersize=size, label="came")
    bounds = np.sort(run.bounds[row][run.censored[row]]) * scale
    if len(bounds):
        axes.plot(
            len(seen) + np.arange(1, len(bounds) + 1),
            bounds,
            "^",
            markersize=size + 1,
            color=_LEFT,
            markerfacecolor="none",
            label="not waited for: later than this",
        )
    cutoff = run.steps["cutoff"][row]
    if np.isfinite(cutoff):
        axes.axvline(cutoff + 0.5, color=_GREY, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.annotate(
            f"cutoff {cutoff:.0f}",
            (cutoff + 0.5, 0.03),
            xycoords=("data", "axes fraction"),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            color="#555555",
        )
    axes.set_ylim(0, None)
    axes.set_title(f"step {step}: forecast and what came")
    axes.set_xlabel("gradients, in order of arrival")
    axes.set_ylabel(f"run-time, {unit}")
    axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
    axes.legend(loc="upper left")


def draw_step_times(run: RunData, axes: "Axes") -> None:
    """How long each step took. Shown where a policy makes no forecasts."""
    unit, scale = _unit(run.steps["elapsed_seconds"])
    took = run.steps["elapsed_seconds"] * scale
    axes.plot(run.steps["step"], took, color=_GREY, linewidth=0.6, label="each step")
    axes.plot(run.steps["step"], _smooth(took), color=_INK, linewidth=1.5, label="mean around it")
    axes.set_ylim(0, 1.25 * np.percentile(took, 99.5))
    axes.set_title("step time")
    axes.set_xlabel("step")
    axes.set_ylabel(unit)
    axes.legend(loc="upper right", ncol=2)


# --- small parts


def _headline(run: RunData) -> str:
    used, alive = run.steps["contributors"].sum(), np.nansum(run.steps["alive"])
    # A simulation is called by its scenario: its times are not real, and its file may have been a temporary one.
    name = f"{PurePath(run.settings['scenario']).stem}, simulated" if "scenario" in run.settings else run.path.name
    text = f"{name}:   {len(run.steps['step']):,} steps of {run.workers:,} workers in {run.elapsed:,.4g} s"
    if alive > 0:
        text += f", {used / alive:.1%} of the gradients used"
    return text if run.outcome == "completed" else f"{text}   ({run.outcome})"


def _smooth(values: np.ndarray) -> np.ndarray:
    """The mean over a window around each value, a thirtieth of all wide; narrower at the ends."""
    half = max(1, len(values) // 60)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    begin = np.maximum(np.arange(len(values)) - half, 0)
    end = np.minimum(np.arange(len(values)) + half + 1, len(values))
    return (sums[end] - sums[begin]) / (end - begin)


def _unit(seconds: np.ndarray) -> tuple[str, float]:
    known = seconds[np.isfinite(seconds)]
    return ("s", 1.0) if known.size and np.percentile(known, 90) >= 1.0 else ("ms", 1e3)


def _clock_unit(seconds: float) -> tuple[str, float]:
    if seconds >= 2 * 3600:
        return "hours", 1 / 3600
    return ("minutes", 1 / 60) if seconds >= 300 else ("seconds", 1.0)


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.colors
        import matplotlib.figure
        import matplotlib.ticker
    except ImportError as missing:
        raise Error(
            "a picture needs matplotlib, which is not installed: pip install matplotlib, or apt-get install "
            "python3-matplotlib"
        ) from missing
    return matplotlib
