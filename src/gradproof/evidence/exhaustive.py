"""Every entry of the Jacobian. Arrays here are laid out input by input: row i holds d(all outputs) / d x_i."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradproof.agreement import judge
from gradproof.evidence.alone import glance_alone
from gradproof.evidence.blocks import Measured, comparisons_of, kinks_of, power_of
from gradproof.evidence.faint import faint_lines
from gradproof.evidence.gathered import Gathered, Task
from gradproof.evidence.glanced import NONE, Glanced
from gradproof.evidence.jitter import widen
from gradproof.evidence.lines import block_tolerances, wanted_tolerances
from gradproof.evidence.scales import absent, unimportant
from gradproof.evidence.sure import gather_sure
from gradproof.evidence.ties import check_ties, ties_of
from gradproof.evidence.together import glance_together
from gradproof.evidence.tops import Tops
from gradproof.norms import rms
from gradproof.precision import DOUBLE, coarsest
from gradproof.program import Array, Mask
from gradproof.reference.estimate import Estimate, Goal
from gradproof.reference.field import Field, field_of
from gradproof.reference.ladder import first_look, refine, second_opinion
from gradproof.reference.noise import Rung
from gradproof.reference.surroundings import hidden_kinks, ordinary, unfolded
from gradproof.result import Finding, Verdict

# Wrong-looking columns are taken at their first look once this many others were confirmed; or some of the same input,
# if those were all that was asked about: then no look has been misleading there.
CONFIRMED, ALIKE = 32, 4


def gather(task: Task, analytic: dict[str, Array], findings: tuple[Finding, ...]) -> Gathered:
    """Compare the Jacobians in `analytic` (mode -> (N, M) array) with the numeric one."""
    field = field_of(task.reference, task.exact)
    if task.detail == "verdict":
        field = replace(field, smoothed=False)
    glanced = _glance(task, field, analytic)
    doubtful = glanced.doubtful
    if not doubtful.size:
        return gather_sure(task, analytic, glanced, findings)
    task.repeats.ask()
    numeric = glanced.block(slice(0, task.steps.size), slice(0, field.value.size))
    looked = _look(field, task.steps, numeric, doubtful)
    wanted = Measured(numeric, wanted_tolerances(task, numeric, analytic))
    improved = _improve(task, field, analytic, wanted, looked)
    measured = Measured(numeric, block_tolerances(task, numeric))
    if _confirm(task, field, analytic, measured, looked) + improved:
        _unfold(task, field, analytic, measured)
        measured = Measured(numeric, block_tolerances(task, numeric))
        widen(task, analytic, numeric, _wrong(analytic, measured))
        measured = Measured(numeric, block_tolerances(task, numeric))
    ties = ties_of(numeric)
    if ties:
        claimed = {mode: [one[tie.coordinates, tie.output] for tie in ties] for mode, one in analytic.items()}
        findings += check_ties(task, field, ties, claimed)
    comparisons = comparisons_of(task, analytic, measured)
    findings += kinks_of(task, numeric)
    if analytic and all(one.verdict is Verdict.RIGHT for one in comparisons):
        tops = Tops.of(next(iter(analytic.values())), task.program.outputs)
        findings += faint_lines(task, tops, lambda: numeric)
    return Gathered(comparisons, findings, power_of(task, measured), analytic)


def _glance(task: Task, field: Field, analytic: dict[str, Array]) -> Glanced:
    """Several columns at a time where that can be done; each by itself where it cannot, or leaves a doubt."""
    if analytic and coarsest(task.reference.inputs) is DOUBLE:
        together = glance_together(task, field, analytic)
        if together is not None:
            return together
    return glance_alone(task, field, analytic)


def _displacements(steps: Array, coordinates: NDArray[np.intp]) -> Array:
    rows = np.zeros((len(coordinates), steps.size))
    rows[np.arange(len(coordinates)), coordinates] = steps[coordinates]
    return rows


@dataclass(frozen=True, slots=True)
class _Looked:
    """The first look at some columns, in order; None if they were too many to keep it."""

    coordinates: NDArray[np.intp]
    look: Rung | None

    def at(self, field: Field, displacements: Array, coordinates: NDArray[np.intp]) -> Rung:
        """That at these, anew if it has to be."""
        if self.look is None or not np.isin(coordinates, self.coordinates).all():
            return first_look(field, displacements)
        return self.look.of_rows(np.searchsorted(self.coordinates, coordinates))


def _look(field: Field, steps: Array, numeric: Estimate, coordinates: NDArray[np.intp]) -> _Looked:
    """The first look of the ladder, for some columns."""
    batch = max(1, field.rows // 4)
    whole: Rung | None = None
    for first in range(0, coordinates.size, batch):
        some = coordinates[first : first + batch]
        rung = first_look(field, _displacements(steps, some))
        whole = rung if coordinates.size <= batch else None
        look, bar = rung.slopes, rung.slopes.bar
        known = np.isfinite(bar)
        value = look.central if known.all() else np.where(known, look.central, 0.0)
        bar = bar if known.all() else np.where(known, bar, np.inf)
        numeric.put(some, Estimate.smooth(value, bar).scaled(1.0 / steps[some]))
    return _Looked(coordinates, whole)


def _improve(task: Task, field: Field, analytic: dict[str, Array], measured: Measured, looked: _Looked) -> int:
    """Climb or descend the ladder for the columns whose bar is too wide for the tolerance; says how many there were."""
    steps, numeric, tolerance = task.steps, measured.estimate, measured.tolerance
    rows = _missed(task, analytic, measured)
    batch = max(1, field.rows // 6)
    for first in range(0, rows.size, batch):
        some = rows[first : first + batch]
        displacements = _displacements(steps, some)
        goal = Goal(0.5 * tolerance[some] * steps[some, None], 0.5 * task.tolerance.relative)
        better = refine(field, displacements, looked.at(field, displacements, some), goal)
        numeric.put(some, better.scaled(1.0 / steps[some]))
    return rows.size


def _missed(task: Task, analytic: dict[str, Array], measured: Measured) -> NDArray[np.intp]:
    """The columns with a bar too wide for the tolerance. A block of zeros does not count: an output that does not
    depend on an input at all has no scale of its own, and needs no better bar than the first look's."""
    numeric, tolerance = measured.estimate, measured.tolerance
    result = np.zeros(len(numeric.value), dtype=bool)
    for output in task.program.outputs:
        for leaf in task.program.inputs:
            block = (leaf.span, output.span)
            value, bar = numeric.value[block], numeric.bar[block]
            if value.any() or (bar > unimportant(task, output, leaf)).any():
                wide = bar > 0.5 * tolerance[block]
                none = absent(task, value, [one[block] for one in analytic.values()]) if wide.any() else None
                if none is not None:
                    wide &= ~(none & (bar <= 0.5 * task.tolerance.of_block * rms(value)))
                result[leaf.span] |= wide.any(axis=1)
    return np.flatnonzero(result)


def _confirm(task: Task, field: Field, analytic: dict[str, Array], measured: Measured, looked: _Looked) -> int:
    """No entry is called wrong on one look: ask the ladder for a second opinion on the worst columns first. Says of how
    many columns it was asked."""
    numeric, tolerance = measured.estimate, measured.tolerance
    asked = np.zeros(len(numeric.value), dtype=bool)
    while (some := _doubted(task, _excess(analytic, measured), asked)).size:
        some = some[: max(1, field.rows // 6)]
        asked[some] = True
        goal = Goal(0.5 * tolerance[some] * task.steps[some, None], 0.5 * task.tolerance.relative)
        displacements = _displacements(task.steps, some)
        better = second_opinion(field, displacements, looked.at(field, displacements, some), goal)
        numeric.put(some, better.scaled(1.0 / task.steps[some]))
    return int(np.count_nonzero(asked))


def _excess(analytic: dict[str, Array], measured: Measured) -> Array:
    """How far each column is off, at worst, in terms of what it may be off by; 0 where nothing is wrong."""
    numeric, tolerance = measured.estimate, measured.tolerance
    excess = np.zeros(len(numeric.value))
    for jacobian in analytic.values():
        wrong = judge(jacobian, numeric, tolerance).wrong
        if wrong.any():
            with np.errstate(invalid="ignore"):
                slack = tolerance + numeric.bar + 1e-300
                deviation = np.where(wrong, np.abs(jacobian - numeric.value) / slack, 0.0)
            excess = np.fmax(excess, np.nan_to_num(deviation.max(axis=1), nan=np.inf))
    return excess


def _doubted(task: Task, excess: Array, asked: Mask) -> NDArray[np.intp]:
    """The columns to ask about next, the worst ones of every input first."""
    wrong = excess > 0
    if np.count_nonzero(asked & wrong) >= CONFIRMED:
        return NONE
    found = [NONE]
    for leaf in task.program.inputs:
        answers = np.count_nonzero(asked[leaf.span])
        if answers < ALIKE or not wrong[leaf.span][asked[leaf.span]].all():
            rows = leaf.start + np.flatnonzero(wrong[leaf.span] & ~asked[leaf.span])
            found.append(rows[np.argsort(-excess[rows], kind="stable")][: max(ALIKE, answers)])
    return np.concatenate(found)[:CONFIRMED]


def _unfold(task: Task, field: Field, analytic: dict[str, Array], measured: Measured) -> None:
    """What is still wrong may be a kink that does not show along its coordinate, as at a tie of three in a sort."""
    numeric, steps = measured.estimate, task.steps
    wrong = _wrong(analytic, measured)
    if not wrong.any() or task.limits is not None or coarsest(task.reference.inputs) is not DOUBLE:
        return
    wrong &= hidden_kinks(field, steps) & ordinary(numeric.kind)
    for coordinate in np.flatnonzero(wrong.any(axis=1))[:CONFIRMED]:
        row = np.array([coordinate])
        found = numeric.of_rows(row).scaled(steps[row])
        numeric.put(row, unfolded(field, int(coordinate), steps, found).scaled(1.0 / steps[row]))


def _wrong(analytic: dict[str, Array], measured: Measured) -> Mask:
    """In any mode."""
    judged = [judge(one, measured.estimate, measured.tolerance).wrong for one in analytic.values()]
    return np.asarray(np.logical_or.reduce(judged))
