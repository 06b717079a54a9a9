"""From whole-Jacobian arrays to one comparison for each (output leaf, input leaf), and the remarks they call for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.compare import Judgement, Mask, judge
from gradproof.evidence.gathered import Task
from gradproof.evidence.wording import kink_remark
from gradproof.norms import rms
from gradproof.program import Array, Leaf, leaf_at
from gradproof.reference.estimate import Estimate, Kind, Kinds
from gradproof.reference.steps import step_exponent
from gradproof.result import Comparison, Entry, Finding, Place, Power, Verdict

# How many of the wrong entries of a block are named; all are counted.
NAMED = 8

# Of one block: analytic, numeric, bar, spread (None without kinks), tolerance.
Parts = tuple[Array, Array, Array, Array | None, Array]


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
    numeric = measured.estimate
    block = (leaf.span, output.span)
    plain = not numeric.kind.any()
    parts = (
        jacobian[block],
        numeric.value[block],
        numeric.bar[block],
        None if plain else numeric.spread[block],
        measured.tolerance[block],
    )
    judgement = judge(*parts)
    # NaN or inf in the value itself: nothing can be said of those outputs, and they are reported on their own.
    defined = np.isfinite(task.program.value[output.span])
    if not defined.all():
        judgement = Judgement(judgement.wrong & defined, judgement.undecided & defined)
    verdict, reason = Verdict.RIGHT, ""
    found: tuple[Entry, ...] = ()
    if judgement.wrong.any():
        verdict = Verdict.WRONG
        found = _entries(judgement.wrong, parts, output, leaf)
    elif judgement.undecided.any():
        doubtful = judgement.undecided & ~_negligible(task, numeric, output, leaf)
        if doubtful.any():
            verdict = Verdict.UNDECIDED
            found = _entries(doubtful, parts, output, leaf)
            reason = _reason(numeric.kind[block][doubtful], task)
    return Comparison(
        order=task.order,
        mode=mode,
        output=output,
        input=leaf,
        scope="entries",
        analytic=parts[0].T,
        numeric=parts[1].T,
        bar=parts[2].T,
        tolerance=parts[4].T,
        verdict=verdict,
        found=found,
        wrong=int(np.count_nonzero(judgement.wrong)),
        entries=parts[0].size,
        reason=reason,
        spread=None if parts[3] is None else parts[3].T,
    )


def _negligible(task: Task, numeric: Estimate, output: Leaf, leaf: Leaf) -> Mask:
    """The bars that are narrow enough because the whole block is zero within them."""
    block = (leaf.span, output.span)
    if (np.abs(numeric.value[block]) > numeric.bar[block]).any():
        return np.zeros(numeric.bar[block].shape, dtype=bool)
    return np.asarray(numeric.bar[block] <= negligible(task, output, leaf))


def negligible(task: Task, output: Leaf, leaf: Leaf) -> Array:
    """A block of zeros has no scale to be judged by. It is good enough to know that moving the input by its own size
    changes the output by less than the tolerance: the derivative that does so, for each input coordinate (N, 1)."""
    size = 2.0 ** -step_exponent(task.reference) * task.steps[leaf.span, None]
    return np.asarray(task.tolerance.relative * rms(task.program.value[output.span]) / size)


def _reason(kinds: Kinds, task: Task) -> str:
    """Why entries stay undecided: the most frequent cause."""
    names = {Kind.EDGE: "domain", Kind.JUMP: "jump", Kind.KINK: "kink"}
    counts = np.bincount(kinds.ravel().astype(np.intp), minlength=len(Kind))
    commonest = Kind(int(np.argmax(counts)))
    low = task.reference.inputs and any(leaf.dtype not in ("float64", "complex128") for leaf in task.reference.inputs)
    return names.get(commonest, "precision" if low else "noise")


def _entries(mask: Mask, parts: Parts, output: Leaf, leaf: Leaf) -> tuple[Entry, ...]:
    """The entries in `mask`, the worst first."""
    rows, columns = np.nonzero(mask)
    analytic, numeric, bar, spread, tolerance = (
        np.zeros(rows.size) if part is None else part[rows, columns] for part in parts
    )
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
    """Kinks where the gradient is a valid subgradient: worth saying, not a mistake."""
    if not numeric.kind.any():
        return ()
    rows, columns = np.nonzero(numeric.kind == Kind.KINK)
    if not rows.size:
        return ()
    output = leaf_at(task.program.outputs, int(columns[0]))
    leaf = leaf_at(task.program.inputs, int(rows[0]))
    place = Place(output.spot(int(columns[0])), leaf.spot(int(rows[0])))
    low = float(numeric.value[rows[0], columns[0]] - numeric.spread[rows[0], columns[0]])
    high = float(numeric.value[rows[0], columns[0]] + numeric.spread[rows[0], columns[0]])
    return (kink_remark(place, rows.size, low, high),)


def power_of(task: Task, measured: Measured) -> Power | None:
    """The smallest error of a single entry that would have been called wrong, in the worst-known entry."""
    worst, relative = 0.0, 0.0
    for output in task.program.outputs:
        for leaf in task.program.inputs:
            block = (leaf.span, output.span)
            value = measured.estimate.value[block]
            largest = max(float(np.max(value, initial=0.0)), -float(np.min(value, initial=0.0)))
            if largest > 0:
                error = float(np.max(measured.tolerance[block])) + float(np.max(measured.estimate.bar[block]))
                if error / largest >= relative:
                    worst, relative = error, error / largest
    return Power(worst, relative, 1.0) if relative > 0 else None
