"""A few rows and columns of a Jacobian that is too large to look at: what the recognisers need of it.

One pair of evaluations gives a whole column of the numeric side, one pull a whole row of the analytic side (one push a
column). The columns are those that bisection blamed, their neighbours along every axis, and a sample over the input's
values; the rows are those in which these columns matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from gradproof.contracts.side import FORWARD, REVERSE, Side
from gradproof.diagnose.exhibit import Exhibit, shaped
from gradproof.diagnose.moved import moves
from gradproof.diagnose.sight import Line, Rows, Sight, some_columns
from gradproof.evidence.gathered import Task
from gradproof.evidence.sums import part
from gradproof.norms import dot, rms
from gradproof.precision import DOUBLE, form_of
from gradproof.program import Indices, Leaf, Mask, Program
from gradproof.reference.field import CHUNK, field_of, projected
from gradproof.reference.glance import ENTRY, glance
from gradproof.reference.steps import random_direction, signed
from gradproof.result import Comparison

# How many columns are measured, and how many more where the analytic numbers of their rows turned out to be.
COLUMNS = 28
NEAR = 16
FOLLOWED = 8
ROWS = 32
# So many columns must hold another input's numbers before the others are measured.
TASTE = 3


def sampled(task: Task, comparison: Comparison) -> Exhibit | None:
    """The evidence around a block that a probe found wrong; None in a format in which two evaluations tell little."""
    if form_of(task.reference) is not DOUBLE:
        return None
    leaf, output = comparison.input, comparison.output
    places = [(one.place.output, one.place.input) for one in comparison.found]
    blamed = [(output.coordinate(j) - output.start, leaf.coordinate(i) - leaf.start) for j, i in places if j and i]
    columns = _columns(task, leaf, output, blamed)
    numeric = _measured(task, leaf, output, columns)
    rows = _rows(output, leaf, [row for row, _ in blamed], numeric)
    analytic: Sight
    if comparison.mode == "reverse":
        claims = _lines(task.program, REVERSE, output, leaf, rows)
        followed = [int(c) for line in claims.values() for c in line.top(2) if int(c) not in numeric]
        numeric.update(_measured(task, leaf, output, list(dict.fromkeys(followed))[:FOLLOWED]))
        analytic = Rows(claims)
    else:
        pushed = _lines(task.program, FORWARD, leaf, output, list(numeric))
        rows = list(dict.fromkeys([*rows, *(int(r) for line in pushed.values() for r in line.top(1))]))[:ROWS]
        analytic = some_columns(pushed)
    exhibit = Exhibit(
        output,
        leaf,
        np.array(sorted(rows), dtype=np.intp),
        np.array(sorted(numeric), dtype=np.intp),
        analytic,
        some_columns(numeric),
        task.tolerance,
        rms(np.array([rms(line.values) * np.sqrt(line.values.size / line.size) for line in numeric.values()])),
        task.program.point[leaf.span],
        task.program.value[output.span],
        comparison.mode,
        agrees_without=lambda rows, columns: _agrees(task, comparison, rows, columns),
    )
    return replace(exhibit, others=tuple(_others(task, exhibit)))


def _agrees(task: Task, comparison: Comparison, rows: Mask, columns: Mask) -> bool:
    """Whether a probe agrees that leaves out these offsets of the output and the input: no other entry is wrong."""
    leaf, output = comparison.input, comparison.output
    direction = part(random_direction(task.reference, task.steps, task.generator), leaf)
    cotangent = part(signed(task.generator, task.program.value.size), output)
    direction[0, leaf.span][columns] = 0.0
    cotangent[0, output.span][rows] = 0.0
    if comparison.mode == "reverse":
        terms = task.program.pull(cotangent)[0]
        terms *= direction[0]
    else:
        terms = task.program.push(direction)[0]
        terms *= cotangent[0]
    size, total = float(np.sqrt(dot(terms, terms))), float(np.sum(terms))
    del terms
    seen = glance(projected(task.reference, cotangent[0]), direction, ENTRY)
    allowed = task.tolerance.finest * size + float(seen.bar(np.full((1, 1), size))[0, 0])
    return bool(abs(total - seen.slope[0, 0]) <= allowed)


def _columns(task: Task, leaf: Leaf, output: Leaf, blamed: Sequence[tuple[int, int]]) -> list[int]:
    """Offsets in order of importance; of complex elements both parts."""
    width = leaf.width
    elements = [column // width for _, column in blamed]
    if elements:
        # Where the numbers of the first one would come from, if they only were in the wrong place.
        first = blamed[0][1]
        elements += [int(move.source[first]) // width for move in moves(leaf) if move.source[first] >= 0]
        elements += [blamed[0][0] // width] if output.size == leaf.size else []
    for _, column in blamed[:2]:
        elements += _around(column // width, leaf.shape, task.generator)
    count = leaf.size // width
    some = task.generator.choice(count, min(count, 1024), replace=False)
    values = task.program.point[leaf.span][::width]
    ranked = some[np.argsort(values[some], kind="stable")]
    spread = [int(ranked[round(q * (ranked.size - 1))]) for q in np.linspace(0.0, 1.0, 10)]
    # Neighbours alone would never show what is right elsewhere.
    near = list(dict.fromkeys(elements))[: NEAR // width + 2]
    elements = list(dict.fromkeys([*near, *spread, 0, count - 1]))[: COLUMNS // width + 2]
    return [element * width + part for element in elements for part in range(width)]


def _around(element: int, shape: tuple[int, ...], generator: np.random.Generator) -> Iterable[int]:
    """Neighbours along every axis, and two others in the same line."""
    index = [int(i) for i in np.unravel_index(element, shape)] if shape else []
    for axis, n in enumerate(shape):
        places = [index[axis] + 1, index[axis] - 1, *(int(k) for k in generator.integers(0, n, 2))]
        for place in places:
            if 0 <= place < n and place != index[axis]:
                yield int(np.ravel_multi_index([place if k == axis else i for k, i in enumerate(index)], shape))


def _rows(output: Leaf, leaf: Leaf, blamed: Sequence[int], numeric: dict[int, Line]) -> list[int]:
    """Rows that bisection blamed, the same in the first and the last element of the batch, those in which the columns
    are largest, and the same offsets as the columns where both leaves have the same size."""
    rows = list(blamed)
    if len(output.shape) > 1:
        per = output.size // output.shape[0]
        rows += [place for row in blamed for place in (row % per, output.size - per + row % per)]
    rows += [int(row) for line in numeric.values() for row in line.top(1)]
    if output.size == leaf.size:
        rows += list(numeric)[:8]
    rows += [int(row) for line in numeric.values() for row in line.top(3)]
    return list(dict.fromkeys(rows))[:ROWS]


def _measured(task: Task, leaf: Leaf, output: Leaf, columns: Sequence[int]) -> dict[int, Line]:
    """Numeric columns; NaN where the function bends like a kink."""
    field = field_of(task.reference)
    lines: dict[int, Line] = {}
    batch = max(1, field.rows // 2)
    for first in range(0, len(columns), batch):
        some = np.array(columns[first : first + batch]) + leaf.start
        steps = np.zeros((some.size, task.steps.size))
        steps[np.arange(some.size), some] = task.steps[some]
        seen = glance(field, steps, ENTRY)
        del steps
        for k, column in enumerate(some):
            # In place: at a million coordinates every vector counts.
            slope, limit = seen.slope[k, output.span], np.abs(seen.slope[k, output.span])
            np.maximum(limit, rms(slope), out=limit)
            limit *= ENTRY.bend
            limit += seen.floor[output.span]
            slope[~(seen.bend[k, output.span] <= limit)] = np.nan
            slope /= task.steps[column]
            lines[int(column) - leaf.start] = Line.of(slope)
        del seen, slope, limit
    return lines


def _lines(program: Program, side: Side, given: Leaf, made: Leaf, offsets: Sequence[int]) -> dict[int, Line]:
    """What the rule makes in one leaf of unit vectors at these offsets of another: rows by backward, columns by the
    forward rule."""
    lines: dict[int, Line] = {}
    size = side.size(program)
    batch = max(1, CHUNK // (program.point.size + program.value.size))
    for first in range(0, len(offsets), batch):
        some = offsets[first : first + batch]
        units = np.zeros((len(some), size))
        units[np.arange(len(some)), np.array(some) + given.start] = 1.0
        lines.update(zip(some, (Line.of(row[made.span]) for row in side.run(program, units)), strict=True))
    return lines


def _others(task: Task, exhibit: Exhibit) -> Iterable[tuple[Leaf, Sight]]:
    """Other inputs of the same shape, measured at the same offsets if the first few hold the analytic numbers."""
    wrong: Indices = exhibit.columns[exhibit.wrong.any(axis=0)]
    for leaf in task.program.inputs:
        if leaf.path == exhibit.input.path or shaped(leaf) != shaped(exhibit.input):
            continue
        taste = wrong[:TASTE]
        numeric = _measured(task, leaf, exhibit.output, [int(c) for c in taste])
        gap = np.abs(some_columns(numeric).at(exhibit.rows, taste) - exhibit.analytic.at(exhibit.rows, taste))
        if taste.size == TASTE and (gap <= exhibit.slack(exhibit.analytic.at(exhibit.rows, taste))).all():
            rest = [int(c) for c in exhibit.columns if int(c) not in numeric]
            numeric.update(_measured(task, leaf, exhibit.output, rest))
            yield leaf, some_columns(numeric)
