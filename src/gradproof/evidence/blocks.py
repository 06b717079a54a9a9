"""From whole-Jacobian arrays to one comparison for each (output leaf, input leaf), and the remarks they call for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.compare import Judgement, Mask, judge
from gradproof.evidence.gathered import Task
from gradproof.evidence.wording import kink_remark, stairs_remark
from gradproof.norms import largest, rms
from gradproof.program import Array, Leaf, leaf_at
from gradproof.reference.estimate import Estimate, Kind, Kinds
from gradproof.reference.steps import step_exponent
from gradproof.result import Comparison, Entry, Finding, Place, Power, Verdict

# How many of the wrong entries of a block are named; all are counted.
NAMED = 8


@dataclass(frozen=True, slots=True)
class Measured:
    """The numeric Jacobian and the tolerance of each of its entries, both (N, M)."""

    estimate: Estimate
    tolerance: Array


def comparisons_of(task: Task, analytic: dict[str, Array], measured: Measured) -> tuple[Comparison, ...]:
    """One comparison for each mode, output and input."""
    return tuple(
        _compare_block(task, mode, jacobian, measured, (output, leaf))
        for mode, jacobian in analytic.items()
        for output in task.program.outputs
        for leaf in task.program.inputs
    )


def _compare_block(task: Task, mode: str, jacobian: Array, measured: Measured, pair: tuple[Leaf, Leaf]) -> Comparison:
    output, leaf = pair
    block = (leaf.span, output.span)
    analytic, numeric, tolerance = jacobian[block], measured.estimate.block(*block), measured.tolerance[block]
    judgement = judge(analytic, numeric, tolerance)
    # NaN or inf in the value itself: nothing can be said of those outputs, and they are reported on their own.
    defined = np.isfinite(task.program.value[output.span])
    if not defined.all():
        judgement = Judgement(judgement.wrong & defined, judgement.undecided & defined)
    verdict, reason = Verdict.RIGHT, ""
    found: tuple[Entry, ...] = ()
    if judgement.wrong.any():
        verdict = Verdict.WRONG
        found = _entries(judgement.wrong, (analytic, numeric, tolerance), pair)
    elif judgement.undecided.any():
        doubtful = judgement.undecided & ~_negligible(task, numeric, pair)
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
        analytic=analytic.T,
        numeric=numeric.value.T,
        bar=numeric.bar.T,
        tolerance=tolerance.T,
        verdict=verdict,
        found=found,
        wrong=int(np.count_nonzero(judgement.wrong)),
        entries=analytic.size,
        reason=reason,
        spread=numeric.spread.T if numeric.kind.any() else None,
    )


def _negligible(task: Task, numeric: Estimate, pair: tuple[Leaf, Leaf]) -> Mask:
    """The bars that are narrow enough because the whole block is zero within them."""
    if (np.abs(numeric.value) > numeric.bar).any():
        return np.zeros(numeric.bar.shape, dtype=bool)
    return np.asarray(numeric.bar <= negligible(task, *pair))


def unimportant_changes(task: Task) -> Array:
    """A block of zeros has no scale to be judged by. It is good enough to know that moving the input by its own size
    changes the output by less than the tolerance: the change over one step that would do so, for each output (M,)."""
    result = np.empty(task.program.value.size)
    for output in task.program.outputs:
        result[output.span] = rms(task.program.value[output.span])
    result *= task.tolerance.finest * 2.0 ** step_exponent(task.reference)
    return result


def negligible(task: Task, output: Leaf, leaf: Leaf) -> Array:
    """The same as a derivative, for each entry of a block."""
    return np.asarray(unimportant_changes(task)[output.span] / task.steps[leaf.span, None])


def _reason(kinds: Kinds, task: Task) -> str:
    """Why entries stay undecided: the most frequent cause."""
    names = {Kind.EDGE: "domain", Kind.JUMP: "jump", Kind.KINK: "kink"}
    counts = np.bincount(kinds.ravel().astype(np.intp), minlength=len(Kind))
    commonest = Kind(int(np.argmax(counts)))
    low = task.reference.inputs and any(leaf.dtype not in ("float64", "complex128") for leaf in task.reference.inputs)
    return names.get(commonest, "precision" if low else "noise")


def _entries(mask: Mask, sides: tuple[Array, Estimate, Array], pair: tuple[Leaf, Leaf]) -> tuple[Entry, ...]:
    """The entries in `mask`, the worst first; `sides` are analytic, numeric and tolerance."""
    output, leaf = pair
    rows, columns = np.nonzero(mask)
    analytic, tolerance = sides[0][rows, columns], sides[2][rows, columns]
    numeric, bar, spread = (part[rows, columns] for part in (sides[1].value, sides[1].bar, sides[1].spread))
    with np.errstate(invalid="ignore"):
        excess = np.maximum(np.abs(analytic - numeric) - spread, 0.0) / (tolerance + bar + 1e-300)
    worst = np.argsort(-np.nan_to_num(excess, nan=np.inf, posinf=np.inf), kind="stable")[:NAMED]
    return tuple(
        Entry(
            Place(output.spot(output.start + int(columns[k])), leaf.spot(leaf.start + int(rows[k]))),
            float(analytic[k]),
            float(numeric[k]),
            float(bar[k]),
            float(tolerance[k]),
            float(spread[k]),
        )
        for k in worst
    )


def kinks_of(task: Task, numeric: Estimate) -> tuple[Finding, ...]:
    """Kinks and stairs where the gradient is one of several valid ones: worth saying, not a mistake."""
    if not numeric.kind.any():
        return ()
    findings = []
    for kind, remark in ((Kind.KINK, kink_remark), (Kind.STAIRS, stairs_remark)):
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
    worst, relative = 0.0, 0.0
    for output in task.program.outputs:
        for leaf in task.program.inputs:
            block = (leaf.span, output.span)
            top = largest(measured.estimate.value[block])
            if top > 0:
                error = float(np.max(measured.tolerance[block])) + float(np.max(measured.estimate.bar[block]))
                if error / top >= relative:
                    worst, relative = error, error / top
    return Power(worst, relative, 1.0) if relative > 0 else None
