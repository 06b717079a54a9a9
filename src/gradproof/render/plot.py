"""A result as a matplotlib figure: heat map of the worst block, step ladder and Taylor remainder."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gradproof.errors import UsageError
from gradproof.picture import Trace
from gradproof.program import Array, Mask
from gradproof.render.text import worst_first
from gradproof.render.traces import has_ladder, has_remainder
from gradproof.result import Comparison, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOWEST, HIGHEST = -4.0, 4.0
# Below the tolerance blue, beyond it amber to red, with a clear step between them.
COLOURS = (
    (0.0, "#f0f3f5"),
    (0.3, "#c3d8e8"),
    (0.4999, "#7aaed6"),
    (0.5, "#f3c14f"),
    (0.7, "#dd5f2c"),
    (1.0, "#860d1a"),
)
BLUE, RED, GREEN, AMBER, PURPLE, GREY = "#1f5fa8", "#a11a1a", "#17653a", "#96690a", "#761d86", "#565e68"


def plot(result: Result) -> Figure:
    """One row of plots: the heat map of the worst block, and for each trace its ladder and its remainder."""
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError as missing:
        raise UsageError(
            'result.plot() needs matplotlib, which is not installed; run: pip install "gradproof[plot]"'
        ) from missing
    drawn = [one for one in worst_first(result) if one.picture().excess][:1]
    panels: list[tuple[Callable[[Axes, Trace], None], Trace]] = []
    for trace in result.traces:
        panels += [(ladder, trace), (taylor, trace)] if has_remainder(trace) else [(ladder, trace)]
    count = len(drawn) + len(panels)
    if not count:
        raise UsageError(f"there is nothing to plot: {result.name} has no comparisons (verdict {result.verdict})")
    figure: Figure = pyplot.figure(figsize=(5.2 * count, 4.2), layout="constrained")
    axes = [figure.add_subplot(1, count, 1 + k) for k in range(count)]
    for comparison in drawn:
        heat_map(axes[0], comparison)
    for place, (draw, trace) in zip(axes[len(drawn) :], panels, strict=True):
        draw(place, trace)
    figure.suptitle(f"{result.name}: {result.verdict}")
    return figure


def heat_map(axes: Axes, comparison: Comparison) -> None:
    """|analytic - numeric| in tolerances, on a logarithmic scale of colours."""
    colors = import_module("matplotlib.colors")
    picture = comparison.picture()
    with np.errstate(divide="ignore"):
        height = np.log10(np.array(picture.excess)).reshape(picture.grid)
    scale = colors.LinearSegmentedColormap.from_list("gradproof", COLOURS)
    rows, columns = picture.shape
    drawn = axes.imshow(
        np.clip(height, LOWEST, HIGHEST),
        cmap=scale,
        vmin=LOWEST,
        vmax=HIGHEST,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, columns - 0.5, rows - 0.5, -0.5),
    )
    bar = axes.figure.colorbar(drawn, ax=axes, ticks=[-4, -2, 0, 2, 4])
    bar.ax.set_yticklabels(["≤ 1e-4", "1e-2", "1", "1e2", "≥ 1e4"])
    bar.set_label("tolerances")
    axes.set_title(f"{comparison.mode}: {comparison.verdict}", fontsize="medium")
    axes.locator_params(integer=True)
    axes.set_xlabel(f"entry of {comparison.input.path}" if comparison.scope == "entries" else "probe")
    axes.set_ylabel(f"entry of {comparison.output.path}" if comparison.scope == "entries" else "")
    if comparison.scope == "probes":
        axes.set_yticks([])


def ladder(axes: Axes, trace: Trace) -> None:
    """How far the numeric slopes are from the analytic one, step by step."""
    side, base = ("analytic", trace.analytic) if np.isfinite(trace.analytic) else ("numeric", trace.numeric)
    steps = np.array(trace.steps)
    errors, bars = np.abs(np.array(trace.slopes) - base), np.array(trace.bars)
    known = _drawable(errors) & np.isfinite(bars)
    style: dict[str, Any] = {"fmt": "o-", "color": BLUE, "ecolor": GREY, "markersize": 3, "elinewidth": 0.8, "lw": 1}
    if known.any():
        lower = np.minimum(bars[known], 0.8 * errors[known])
        axes.errorbar(steps[known], errors[known], yerr=[lower, bars[known]], label=f"|slope − {side}|", **style)
    # At the border of a domain there is one side only.
    for name, colour in (("right", AMBER), ("left", PURPLE)) if trace.kinks or not has_ladder(trace) else ():
        errors = np.abs(np.array(getattr(trace, name)) - base)
        seen = _drawable(errors)
        if seen.any():
            axes.plot(steps[seen], errors[seen], color=colour, lw=1, label=f"from the {name}")
    if not axes.has_data():
        said = "the error is 0 at every step" if has_ladder(trace) else "no slope is finite around this point"
        axes.text(0.5, 0.5, said, color=GREY, transform=axes.transAxes, ha="center")
        axes.set(title=trace.subject, xticks=[], yticks=[])
        return
    if trace.tolerance > 0:
        axes.axhline(trace.tolerance, color=RED, ls="--", lw=1, label="tolerance")
    if trace.spread > 0:
        axes.axhline(trace.spread, color=AMBER, ls="-.", lw=1, label="kink's half-width")
    _finish(axes, trace, "error of the slope")


def taylor(axes: Axes, trace: Trace) -> None:
    """The Taylor remainder, with the slopes of a right and of a wrong derivative."""
    steps, left = np.array(trace.steps), np.array(trace.remainders)
    left = np.where(_drawable(left), left, np.nan)
    axes.plot(steps, left, "o-", color=BLUE, markersize=3, lw=1, label="remainder")
    clear = np.flatnonzero((left > 30 * trace.rounding) & (steps * 1024 <= steps[-1]))
    if clear.size:
        anchor = clear[-1]
        for power, colour, name in ((1, RED, "slope 1 (wrong)"), (2, GREEN, "slope 2 (right)")):
            axes.plot(steps, left[anchor] * (steps / steps[anchor]) ** power, "--", color=colour, lw=1, label=name)
    if trace.rounding > 0:
        axes.axhline(trace.rounding, color=GREY, ls=":", lw=1, label="rounding")
    seen = left[np.isfinite(left)]
    if seen.size:
        axes.set_ylim(max(min(seen.min(), trace.rounding or seen.min()), 1e-300) / 10, 10 * seen.max())
    _finish(axes, trace, "Taylor remainder")


def _drawable(numbers: Array) -> Mask:
    """What has a place on a logarithmic axis."""
    return np.isfinite(numbers) & (numbers > 0)


def _finish(axes: Axes, trace: Trace, label: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel(label)
    axes.set_title(trace.subject, fontsize="medium")
    axes.grid(visible=True, lw=0.4, alpha=0.5)
    for distance in trace.kinks:
        if distance > 0:
            axes.axvline(distance, color=AMBER, ls=":", lw=1.2, label="kink")
    if 0.0 in trace.kinks:
        axes.text(0.03, 0.95, "kink at the point", color=AMBER, transform=axes.transAxes, va="top")
    axes.legend(fontsize="small", loc="best")
