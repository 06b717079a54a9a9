"""The numbers behind the plots of one program, as compact JSON; `plots.js` draws them when they come into view."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from gradproof.picture import HeatMap, Trace
from gradproof.result import Comparison, Result, Verdict

# In a page numbers are for reading.
DIGITS, FEW_DIGITS = 6, 3


def figures(result: Result) -> dict[str, Any]:
    return {
        "blocks": [block(one) for one in shown(result)],
        "traces": [trace(one) for one in result.traces],
    }


def shown(result: Result) -> list[Comparison]:
    """The blocks that have a picture, those that are not right first, the worst of them first of all."""
    drawn = [one for one in result.comparisons if one.picture().excess]
    return sorted(drawn, key=lambda one: (one.verdict is Verdict.RIGHT, -one.excess))


def block(comparison: Comparison) -> dict[str, Any]:
    picture = comparison.picture()
    return {
        "output": [comparison.output.path, comparison.output.shape, int(comparison.output.is_complex)],
        "input": [comparison.input.path, comparison.input.shape, int(comparison.input.is_complex)],
        "scope": comparison.scope,
        "shape": picture.shape,
        "grid": picture.grid,
        "offset": picture.offset,
        **numbers(picture),
    }


def numbers(picture: HeatMap) -> dict[str, Any]:
    """The numeric side is left out where it reads as the analytic one does, as in most entries."""
    analytic, numeric = short(picture.analytic, DIGITS), short(picture.numeric, DIGITS)
    return {
        "excess": short(picture.excess, FEW_DIGITS),
        "analytic": analytic,
        "numeric": [0 if a == n else [n] for a, n in zip(analytic, numeric, strict=True)],
        "bar": repeated(short(picture.bar, 2)),
        "tolerance": repeated(short(picture.tolerance, 2)),
    }


def trace(one: Trace) -> dict[str, Any]:
    return {
        "subject": one.subject,
        "mode": one.mode,
        "order": one.order,
        **{name: scalar(getattr(one, name), 9) for name in ("analytic", "numeric")},
        **{name: scalar(getattr(one, name), 3) for name in ("bar", "spread", "tolerance", "rounding")},
        "steps": short(one.steps, 4),
        # The plot shows how far the slopes are from the claimed one: a difference that rounding must not touch.
        "errors": short([abs(slope - base(one)) for slope in one.slopes], FEW_DIGITS),
        "bars": short(one.bars, FEW_DIGITS),
        "right": short([abs(slope - base(one)) for slope in one.right], FEW_DIGITS),
        "left": short([abs(slope - base(one)) for slope in one.left], FEW_DIGITS),
        "remainders": short(one.remainders, FEW_DIGITS),
        "kinks": short(one.kinks, FEW_DIGITS),
    }


def base(one: Trace) -> float:
    """What slopes are held against: the analytic side, or where that is no number, the numeric one."""
    return one.analytic if math.isfinite(one.analytic) else one.numeric


def short(numbers: Iterable[float], digits: int) -> list[Any]:
    return [scalar(one, digits) for one in numbers]


def scalar(number: float, digits: int) -> float | int | str | None:
    """JSON knows neither NaN, which is null here, nor infinity, which is "inf" or "-inf"."""
    if math.isnan(number):
        return None
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    rounded = float(f"{number:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e9 else rounded


def repeated(numbers: list[Any]) -> list[Any]:
    """A list of one where all are the same."""
    return numbers[:1] if len(set(numbers)) == 1 else numbers
