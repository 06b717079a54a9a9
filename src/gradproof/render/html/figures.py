"""The numbers behind the plots of one program, as compact JSON; `plots.js` draws them when they come into view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

from gradproof.picture import HeatMap, Trace
from gradproof.render.text import worst_first
from gradproof.result import Comparison, Result

# Of the numbers of a trace; those of a picture are short already.
DIGITS, FEW_DIGITS = 9, 3
UNKNOWN = {"nan": None, "inf": "inf", "-inf": "-inf"}


def figures(blocks: Sequence[Comparison], traces: Sequence[Trace]) -> dict[str, Any]:
    return {"blocks": [block(one) for one in blocks], "traces": [trace(one) for one in traces]}


def shown(result: Result) -> list[Comparison]:
    """The blocks that have a picture, those that are not right first, the worst of them first of all. A single probe
    makes none."""
    return [one for one in worst_first(result) if len(one.picture().excess) > (one.scope == "probes")]


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
    pairs = zip(picture.analytic, picture.numeric, strict=True)
    return {
        "excess": plain(picture.excess),
        "analytic": plain(picture.analytic),
        "numeric": [0 if a == n else plain([n]) for a, n in pairs],
        "bar": repeated(plain(picture.bar)),
        "tolerance": repeated(plain(picture.tolerance)),
    }


def trace(one: Trace) -> dict[str, Any]:
    return {
        "subject": one.subject,
        "mode": one.mode,
        "order": one.order,
        **{name: short([getattr(one, name)], DIGITS)[0] for name in ("analytic", "numeric")},
        **{name: short([getattr(one, name)], FEW_DIGITS)[0] for name in ("bar", "spread", "tolerance", "rounding")},
        "steps": short(one.steps, FEW_DIGITS + 1),
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
    return one.analytic if isfinite(one.analytic) else one.numeric


def short(numbers: Iterable[float], digits: int) -> list[Any]:
    return plain(float(f"{one:.{digits}g}") for one in numbers)


def plain(numbers: Iterable[float]) -> list[Any]:
    """JSON knows neither NaN, which is null here, nor infinity, which is "inf" or "-inf"; whole numbers lose their
    ".0"."""
    return [
        (int(one) if one.is_integer() and abs(one) < 1e9 else one) if isfinite(one) else UNKNOWN[str(one)]
        for one in numbers
    ]


def repeated(numbers: list[Any]) -> list[Any]:
    """A list of one where all are the same."""
    return numbers[:1] if len(set(numbers)) == 1 else numbers
