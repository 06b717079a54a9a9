"""Every entry of the Jacobian. Arrays here are laid out input by input: row i holds d(all outputs) / d x_i."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradproof.compare import entry_tolerance, judge
from gradproof.evidence.blocks import Measured, comparisons_of, kinks_of, negligible, power_of
from gradproof.evidence.gathered import Gathered, Task
from gradproof.norms import rms
from gradproof.program import Array, Program
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.field import Field, field_of
from gradproof.reference.ladder import Goal, first_look, refine, second_opinion
from gradproof.result import Finding

# Wrong-looking columns beyond this many are taken at their first look once as many others were confirmed.
CONFIRMED = 32


def gather(task: Task, analytic: dict[str, Array], findings: tuple[Finding, ...]) -> Gathered:
    """Compare the Jacobians in `analytic` (mode -> (N, M) array) with the numeric one."""
    reference = task.reference
    field = field_of(reference)
    numeric = _first_jacobian(field, task.steps)
    measured = Measured(numeric, block_tolerances(task, numeric))
    if not _settled(measured, analytic):
        _improve(task, field, numeric, measured.tolerance)
        _confirm(task, field, numeric, analytic, measured.tolerance)
        measured = Measured(numeric, block_tolerances(task, numeric))
    return Gathered(
        comparisons_of(task, analytic, measured), findings + kinks_of(task, numeric), power_of(task, measured)
    )


def _settled(measured: Measured, analytic: dict[str, Array]) -> bool:
    """The ordinary end: every bar is well within the tolerance at the first look, and every deviation too."""
    numeric, tolerance = measured.estimate, measured.tolerance
    scratch = numeric.bar * 2.0
    if not (scratch <= tolerance).all():
        return False
    for jacobian in analytic.values():
        np.subtract(jacobian, numeric.value, out=scratch)
        np.abs(scratch, out=scratch)
        if not (scratch <= tolerance).all():
            return False
    return True


def columns(program: Program) -> Array:
    """The Jacobian by forward mode, as (N, M)."""
    return program.push(np.eye(program.point.size))


def block_tolerances(task: Task, numeric: Estimate) -> Array:
    """The tolerance of every entry, each block measured by its own size. At a kink the size is that of the interval;
    entries of which nothing is known do not count."""
    plain = not numeric.kind.any()
    result = np.empty_like(numeric.value)
    for output in task.program.outputs:
        for leaf in task.program.inputs:
            block = (leaf.span, output.span)
            size = numeric.value[block]
            if not plain:
                size = np.where(numeric.kind[block] <= Kind.KINK, np.abs(size) + numeric.spread[block], 0.0)
            result[block] = entry_tolerance(size, rms(size), task.tolerance)
    return result


def _displacements(steps: Array, coordinates: NDArray[np.intp]) -> Array:
    rows = np.zeros((len(coordinates), steps.size))
    rows[np.arange(len(coordinates)), coordinates] = steps[coordinates]
    return rows


def _first_jacobian(field: Field, steps: Array) -> Estimate:
    count, outputs = steps.size, field.value.size
    value = np.empty((count, outputs))
    bar = np.empty((count, outputs))
    inverse = 1.0 / steps[:, None]
    batch = max(1, field.rows // 4)
    for first in range(0, count, batch):
        rows = slice(first, min(first + batch, count))
        look = first_look(field, _displacements(steps, np.arange(rows.start, rows.stop))).slopes
        np.multiply(look.central, inverse[rows], out=value[rows])
        np.multiply(look.bar, inverse[rows], out=bar[rows])
    if not np.isfinite(bar).all():
        bar[~np.isfinite(bar)] = np.inf
        value[~np.isfinite(value)] = 0.0
    return Estimate.smooth(value, bar)


def _improve(task: Task, field: Field, numeric: Estimate, tolerance: Array) -> None:
    """Climb or descend the ladder for the columns whose bar is too wide for the tolerance."""
    steps = task.steps
    rows = _missed(task, numeric, tolerance)
    batch = max(1, field.rows // 6)
    for first in range(0, rows.size, batch):
        some = rows[first : first + batch]
        displacements = _displacements(steps, some)
        goal = Goal(0.5 * tolerance[some] * steps[some, None], 0.5 * task.tolerance.relative)
        better = refine(field, displacements, first_look(field, displacements), goal)
        numeric.put(some, better.scaled(1.0 / task.steps[some]))


def _missed(task: Task, numeric: Estimate, tolerance: Array) -> NDArray[np.intp]:
    """The columns with a bar too wide for the tolerance. A block of zeros does not count: an output that does not
    depend on an input at all has no scale of its own, and needs no better bar than the first look's."""
    result = np.zeros(len(numeric.value), dtype=bool)
    for output in task.program.outputs:
        for leaf in task.program.inputs:
            block = (leaf.span, output.span)
            if numeric.value[block].any() or (numeric.bar[block] > negligible(task, output, leaf)).any():
                result[leaf.span] |= (numeric.bar[block] > 0.5 * tolerance[block]).any(axis=1)
    return np.flatnonzero(result)


def _confirm(task: Task, field: Field, numeric: Estimate, analytic: dict[str, Array], tolerance: Array) -> None:
    """No entry is called wrong on one look: ask the ladder for a second opinion on the worst columns first."""
    asked = np.zeros(len(numeric.value), dtype=bool)
    batch = min(CONFIRMED, max(1, field.rows // 6))
    while True:
        excess = np.zeros(len(numeric.value))
        for jacobian in analytic.values():
            wrong = judge(jacobian, numeric.value, numeric.bar, numeric.spread, tolerance).wrong
            if wrong.any():
                deviation = np.where(wrong, np.abs(jacobian - numeric.value) / (tolerance + numeric.bar + 1e-300), 0.0)
                excess = np.fmax(excess, np.nan_to_num(deviation.max(axis=1), nan=np.inf))
        confirmed = np.count_nonzero(asked & (excess > 0))
        rows = np.flatnonzero((excess > 0) & ~asked)
        if confirmed >= CONFIRMED or not rows.size:
            return
        some = rows[np.argsort(-excess[rows], kind="stable")][:batch]
        asked[some] = True
        better = second_opinion(field, _displacements(task.steps, some), 0.5 * task.tolerance.relative)
        numeric.put(some, better.scaled(1.0 / task.steps[some]))
