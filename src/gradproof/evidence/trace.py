"""One derivative at steps over many decades, for the plots of a report: it costs about thirty evaluations.

The derivative is the most telling one: the worst entry, else one at a kink, else the largest; after probes, a random
combination of all entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gradproof import precision
from gradproof.errors import BudgetSpent
from gradproof.evidence.gathered import Task
from gradproof.norms import dot, rms
from gradproof.picture import Trace
from gradproof.program import Array
from gradproof.reference.decades import Decades, decades, exponents, kinks
from gradproof.reference.field import Field, projected, single
from gradproof.reference.lepski import lepski
from gradproof.reference.steps import random_direction, scales, signed, step_exponent
from gradproof.result import Comparison, Entry, Finding, Place


@dataclass(frozen=True, slots=True)
class Subject:
    """A derivative: what the comparison said of it, and the path through it. A displacement of `unit` is one step."""

    name: str
    comparison: Comparison
    entry: Entry
    field: Field
    unit: Array
    length: float


def trace(
    task: Task, comparisons: Sequence[Comparison], findings: Sequence[Finding], generator: np.random.Generator
) -> tuple[Trace, ...]:
    """One trace, or none where there is nothing to trace, or no budget for it."""
    if not comparisons:
        return ()
    try:
        subject = next(_entries(task, comparisons, findings), None) or _probe(task, comparisons[0], generator)
        seen = decades(subject.field, subject.unit, exponents(precision.coarsest(task.reference.inputs)))
    except BudgetSpent:
        return ()
    return (_trace(task, subject, seen),)


def _trace(task: Task, subject: Subject, seen: Decades) -> Trace:
    entry, length = subject.entry, subject.length
    numeric, bar = entry.numeric, entry.bar
    if np.isnan(numeric):
        found = lepski([one[None] for one in seen.central[::-1]], [one[None] for one in seen.bar[::-1]])
        numeric, bar = float(found[0][0]) / length, float(found[1][0]) / length
    tolerance = entry.tolerance
    if np.isnan(tolerance):
        tolerance = task.tolerance.absolute + task.tolerance.relative * abs(numeric)
    claimed = entry.analytic * length
    with np.errstate(invalid="ignore"):
        left_over = [np.abs(one - seen.steps * claimed) for one in (seen.rise, seen.fall)]
    return Trace(
        subject=subject.name,
        order=subject.comparison.order,
        mode=subject.comparison.mode,
        analytic=entry.analytic,
        numeric=numeric,
        bar=bar,
        spread=entry.spread,
        tolerance=tolerance,
        steps=_upwards(seen.steps * length),
        slopes=_upwards(seen.central / length),
        bars=_upwards(seen.bar / length),
        right=_upwards(seen.right / length),
        left=_upwards(seen.left / length),
        remainders=_upwards(np.fmax(*left_over)),
        rounding=seen.rounding,
        kinks=tuple(one * length for one in kinks(seen)),
    )


def _upwards(numbers: Array) -> tuple[float, ...]:
    """Smallest step first."""
    return tuple(numbers[::-1].tolist())


def _entries(task: Task, comparisons: Sequence[Comparison], findings: Sequence[Finding]) -> Iterator[Subject]:
    """Single entries that are worth a trace, the most telling first."""
    found = [comparison for comparison in comparisons if comparison.worst is not None]
    for comparison in sorted(found, key=lambda one: one.excess, reverse=True):
        assert comparison.worst is not None
        yield _subject(task, comparison, comparison.worst)
    whole = [comparison for comparison in comparisons if comparison.scope == "entries" and comparison.entries]
    for finding in findings:
        place = finding.place
        for comparison in whole:
            if finding.code == "kink" and place.output and place.input and _holds(comparison, place):
                yield _subject(task, comparison, comparison.entry(place))
    strong = [(comparison, comparison.strongest) for comparison in comparisons]
    for comparison, strongest in sorted(strong, key=lambda one: -abs(one[1].numeric) if one[1] else 0.0):
        if strongest is not None:
            yield _subject(task, comparison, strongest)
    for comparison in whole:
        row, column = divmod(int(np.argmax(np.nan_to_num(np.abs(comparison.numeric)))), comparison.input.size)
        output, leaf = comparison.output, comparison.input
        place = Place(output.spot(output.start + row), leaf.spot(leaf.start + column))
        yield _subject(task, comparison, comparison.entry(place))


def _subject(task: Task, comparison: Comparison, entry: Entry) -> Subject:
    assert entry.place.output is not None
    assert entry.place.input is not None
    coordinate = comparison.input.coordinate(entry.place.input)
    scale = scales(task.reference.point, task.reference.inputs)[coordinate]
    unit = np.zeros(task.reference.point.size)
    unit[coordinate] = scale
    field = single(task.reference, comparison.output.coordinate(entry.place.output))
    return Subject(str(entry.place), comparison, entry, field, unit, float(scale))


def _probe(task: Task, comparison: Comparison, generator: np.random.Generator) -> Subject:
    """A random combination of all entries; a step is the typical displacement of a coordinate."""
    unit = random_direction(task.reference, task.steps, generator) * 2.0 ** -step_exponent(task.reference)
    cotangent = signed(generator, task.program.value.size)
    if comparison.mode == "reverse":
        slope = dot(task.program.pull(cotangent[None])[0], unit)
    else:
        slope = dot(task.program.push(unit[None])[0], cotangent)
    length = rms(unit)
    missing = float("nan")
    entry = Entry(Place(), slope / length, missing, missing, missing)
    name = "a random combination of all entries"
    return Subject(name, comparison, entry, projected(task.reference, cotangent), unit, length)


def _holds(comparison: Comparison, place: Place) -> bool:
    paths = (place.output.path if place.output else None, place.input.path if place.input else None)
    return paths == (comparison.output.path, comparison.input.path)
