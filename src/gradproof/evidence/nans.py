"""What is not finite: values, gradients, or both. Two NaNs are never equal, and each is named by its place."""

from __future__ import annotations

import numpy as np

from gradproof.errors import Unsupported
from gradproof.evidence.gathered import Task
from gradproof.norms import all_finite
from gradproof.program import Array, Mask, leaf_at
from gradproof.reference.estimate import Kind, Kinds
from gradproof.result import Finding, Place, Verdict

HINT = "Move the point into the domain."


def not_finite(task: Task) -> tuple[Finding, ...]:
    """Outputs that are NaN or infinite at the point itself: nothing can be said of their derivatives."""
    program = task.program
    if all_finite(program.value):
        return ()
    findings = []
    for leaf in program.outputs:
        bad = np.flatnonzero(~np.isfinite(program.value[leaf.span]))
        if not bad.size:
            continue
        row = leaf.start + int(bad[0])
        spot, value = leaf.spot(row), program.value[row]
        more = f" (and {bad.size - 1} more outputs are not finite)" if bad.size > 1 else ""
        gradient = _gradient(task, row)
        broken = np.flatnonzero(~np.isfinite(gradient)) if gradient is not None else np.empty(0, dtype=np.intp)
        if broken.size:
            place = Place(spot, leaf_at(program.inputs, int(broken[0])).spot(int(broken[0])))
            assert gradient is not None
            sentence = f"{spot} is {value} at this point, and {place} is {gradient[broken[0]]}{more}"
            findings.append(Finding("nan-both", Verdict.UNDECIDED, place, sentence, HINT))
        else:
            sentence = f"{spot} is {value} at this point{more}"
            findings.append(Finding("nan-value", Verdict.UNDECIDED, Place(spot, None), sentence, HINT))
    return tuple(findings)


def _gradient(task: Task, row: int) -> Array | None:
    """Of one output, by reverse mode; None where there is none."""
    if "reverse" not in task.modes:
        return None
    try:
        return np.asarray(task.program.pull(np.eye(1, task.program.value.size, row))[0])
    except Unsupported:
        return None


def tainted(task: Task) -> Mask:
    """The inputs (N,) whose gradient is not finite because an output is not: 0 * NaN is NaN in every reverse pass."""
    bad = ~np.isfinite(task.program.value)
    if not bad.any() or "reverse" not in task.modes:
        return np.zeros(task.steps.size, dtype=bool)
    try:
        return np.asarray(~np.isfinite(task.program.pull(bad[None].astype(float))[0]))
    except Unsupported:
        return np.zeros(task.steps.size, dtype=bool)


def explained(mode: str, jacobian: Array, kinds: Kinds, value: Array) -> Mask:
    """The entries of an (N, M) Jacobian that are NaN only because another one is infinite: 0 * inf. Where the slope is
    unbounded, or the value not finite, every other entry of that input (reverse) or output (forward) is spoilt."""
    root = ~np.isfinite(jacobian) & ((kinds == Kind.STEEP) | ~np.isfinite(value))
    along = root.any(axis=1, keepdims=True) if mode == "reverse" else root.any(axis=0, keepdims=True)
    return np.asarray(np.isnan(jacobian) & along & (kinds != Kind.STEEP))
