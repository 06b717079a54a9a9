"""From whole-Jacobian arrays to one comparison for each (output leaf, input leaf), and the remarks they call for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.agreement import Judgement, judge
from gradproof.evidence.entries import measured_entry
from gradproof.evidence.gathered import Task, weakest
from gradproof.evidence.nans import explained
from gradproof.evidence.scales import absent, flat, slight, unimportant
from gradproof.evidence.wording import REASONS, REMARKS
from gradproof.norms import largest, rms
from gradproof.precision import DOUBLE, coarsest
from gradproof.program import Array, Leaf, Mask, leaf_at
from gradproof.reference.estimate import Estimate, Kind, Kinds
from gradproof.result import Comparison, Entry, Finding, Place, Power, Table, Verdict
from gradproof.table import vanishes

# How many of the wrong entries of a block are named; all are counted.
NAMED = 8


@dataclass(frozen=True, slots=True)
class Measured:
    """The numeric Jacobian and the tolerance of each of its entries, both (N, M)."""

    estimate: Estimate
    tolerance: Array


def comparisons_of(task: Task, analytic: dict[str, Array], measured: Measured) -> tuple[Comparison, ...]:
    """One comparison for each mode, output and input."""
    spoilt = {mode: _spoilt(task, mode, jacobian, measured) for mode, jacobian in analytic.items()}
    return tuple(
        _compare_block(task, mode, jacobian, measured, (output, leaf), spoilt[mode])
        for mode, jacobian in analytic.items()
        for output in task.program.outputs
        for leaf in task.program.inputs
    )


def _spoilt(task: Task, mode: str, jacobian: Array, measured: Measured) -> Mask | None:
    if np.isfinite(jacobian).all():
        return None
    return explained(mode, jacobian, measured.estimate.kind, task.program.value)


def _compare_block(
    task: Task, mode: str, jacobian: Array, measured: Measured, pair: tuple[Leaf, Leaf], spoilt: Mask | None
) -> Comparison:
    output, leaf = pair
    block = (leaf.span, output.span)
    analytic, numeric, tolerance = jacobian[block], measured.estimate.block(*block), measured.tolerance[block]
    judgement = judge(analytic, numeric, tolerance)
    # NaN or inf in the value itself: nothing can be said of those outputs, and they are reported on their own.
    defined = np.isfinite(task.program.value[output.span])
    if not defined.all():
        judgement = Judgement(judgement.wrong & defined, judgement.undecided & defined)
    if spoilt is not None:
        judgement = Judgement(judgement.wrong & ~spoilt[block], judgement.undecided & ~spoilt[block])
    verdict, reason = Verdict.RIGHT, ""
    found: tuple[Entry, ...] = ()
    if judgement.wrong.any():
        verdict = Verdict.WRONG
        found = _entries(judgement.wrong, (analytic, numeric, tolerance), pair)
    elif judgement.undecided.any():
        doubtful = judgement.undecided & ~_unimportant(task, analytic, numeric, pair)
        if doubtful.any():
            verdict = Verdict.UNDECIDED
            found = _entries(doubtful, (analytic, numeric, tolerance), pair)
            reason = _reason(numeric.kind[doubtful], task)
    return Comparison(
        order=task.order,
        mode=mode,
        output=output,
        input=leaf,
        scope="entries",
        source=Table(
            analytic.T, numeric.value.T, numeric.bar.T, tolerance.T, numeric.spread.T if numeric.kind.any() else None
        ),
        verdict=verdict,
        found=found,
        wrong=int(np.count_nonzero(judgement.wrong)),
        entries=analytic.size,
        reason=reason,
        strongest=_strongest((analytic, numeric, tolerance), pair) if verdict is Verdict.RIGHT else None,
    )


def _unimportant(task: Task, analytic: Array, numeric: Estimate, pair: tuple[Leaf, Leaf]) -> Mask:
    """The bars that are narrow enough because the whole block is zero within them, or for the scale of the block."""
    if (np.abs(numeric.value) > numeric.bar).any():
        enough, none = slight(task, *pair, numeric.value), absent(task, numeric.value, [analytic])
        narrow = np.zeros(numeric.bar.shape, dtype=bool) if enough is None else np.asarray(numeric.bar <= enough)
        return narrow if none is None else narrow | none & (numeric.bar <= task.tolerance.of_block * rms(numeric.value))
    narrow = np.asarray(numeric.bar <= unimportant(task, *pair))
    return narrow if narrow.all() else narrow | (numeric.bar <= flat(task, *pair))


def _reason(kinds: Kinds, task: Task) -> str:
    """Why entries stay undecided: the most frequent cause."""
    counts = np.bincount(kinds.ravel().astype(np.intp), minlength=len(Kind))
    commonest = Kind(int(np.argmax(counts)))
    return REASONS.get(commonest, "noise" if coarsest(task.reference.inputs) is DOUBLE else "precision")


def _entries(mask: Mask, sides: tuple[Array, Estimate, Array], pair: tuple[Leaf, Leaf]) -> tuple[Entry, ...]:
    """The entries in `mask`, the worst first; `sides` are analytic, numeric and tolerance."""
    rows, columns = np.nonzero(mask)
    analytic, tolerance = sides[0][rows, columns], sides[2][rows, columns]
    numeric, bar, spread = (part[rows, columns] for part in (sides[1].value, sides[1].bar, sides[1].spread))
    with np.errstate(invalid="ignore"):
        excess = np.maximum(np.abs(analytic - numeric) - spread, 0.0) / (tolerance + bar + 1e-300)
        # Nearly equal ones, as of a constant factor, stay in their order whatever the last digits say.
        rank = np.round(np.log2(np.nan_to_num(excess, nan=np.inf, posinf=np.inf) + 1e-300), 1)
    worst = np.argsort(-rank, kind="stable")[:NAMED]
    return tuple(_entry((int(rows[k]), int(columns[k])), sides, pair) for k in worst)


def _strongest(sides: tuple[Array, Estimate, Array], pair: tuple[Leaf, Leaf]) -> Entry | None:
    """The largest derivative of an ordinary block."""
    if not sides[0].size or sides[1].kind.any():
        return None
    where = divmod(int(np.argmax(np.abs(sides[1].value))), pair[0].size)
    return _entry(where, sides, pair)


def _entry(where: tuple[int, int], sides: tuple[Array, Estimate, Array], pair: tuple[Leaf, Leaf]) -> Entry:
    output, leaf = pair
    analytic, numeric, tolerance = sides
    place = Place(output.spot(output.start + where[1]), leaf.spot(leaf.start + where[0]))
    return measured_entry(place, where, analytic, numeric, tolerance)


def kinks_of(task: Task, numeric: Estimate) -> tuple[Finding, ...]:
    """Kinks and stairs where the gradient is one of several valid ones: worth saying, not a mistake."""
    if not numeric.kind.any():
        return ()
    findings = []
    for kind, remark in REMARKS.items():
        rows, columns = np.nonzero(numeric.kind == kind)
        if rows.size:
            output = leaf_at(task.program.outputs, int(columns[0]))
            leaf = leaf_at(task.program.inputs, int(rows[0]))
            place = Place(output.spot(int(columns[0])), leaf.spot(int(rows[0])))
            value, spread = numeric.value[rows[0], columns[0]], numeric.spread[rows[0], columns[0]]
            findings.append(remark(place, rows.size, float(value - spread), float(value + spread)))
    return tuple(findings)


def power_of(task: Task, measured: Measured) -> Power | None:
    """The smallest error of a single entry that would have been called wrong, in the worst-known entry."""
    seen = []
    for output in task.program.outputs:
        for leaf in task.program.inputs:
            block = (leaf.span, output.span)
            value, bar = measured.estimate.value[block], measured.estimate.bar[block]
            # What is zero within its bar has no size that an error could be a share of.
            if not vanishes(value, bar):
                seen.append((float(np.max(measured.tolerance[block])) + float(np.max(bar)), largest(value)))
    return weakest(seen, 1.0)
