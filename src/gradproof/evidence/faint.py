"""Rows and columns so small beside others of their block that the check could not have seen them wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from gradproof.evidence.gathered import Task
from gradproof.evidence.lines import block_tolerances
from gradproof.evidence.scales import ROUNDINGS, rounding
from gradproof.evidence.tops import Tops
from gradproof.norms import rms
from gradproof.precision import DOUBLE
from gradproof.program import Array, Leaf, Mask
from gradproof.reference.estimate import Estimate
from gradproof.result import Finding, Place, Verdict


def faint_lines(task: Task, tops: Tops, numeric: Callable[[], Estimate]) -> tuple[Finding, ...]:
    """One remark for each leaf with such lines. The numeric side is asked for where there may be any: mostly not."""
    if not np.isfinite(task.tolerance.gross):
        return ()
    size, columns, rows = tops.size, tops.of_inputs(), tops.outputs
    lines = np.concatenate([columns, rows])
    if not ((lines > 0) & (lines <= task.tolerance.of_block * lines.max())).any():
        return ()
    measured, there = numeric(), _there(task, size)
    seen = there & _seen(size, measured, block_tolerances(task, measured))
    faint = np.asarray(there.any(axis=1) & ~seen.any(axis=1))
    there[faint] = False  # their rows are no matter of their own
    outputs = np.asarray(there.any(axis=0) & ~seen.any(axis=0))
    inward = [_remark(leaf, columns, faint, "argument") for leaf in task.program.inputs if faint[leaf.span].any()]
    outward = [_remark(leaf, rows, outputs, "output") for leaf in task.program.outputs if outputs[leaf.span].any()]
    return (*inward, *outward)


def _seen(size: Array, numeric: Estimate, tolerance: Array) -> Mask:
    """Where the opposite of an entry would have been called wrong, or is no question of size."""
    return np.asarray((2.0 * size > tolerance + numeric.bar) | (numeric.kind != 0))


def _there(task: Task, size: Array) -> Mask:
    """The entries that are more than rounding."""
    there = np.empty(size.shape, dtype=bool)
    for output in task.program.outputs:
        for leaf in task.program.inputs:
            block = (leaf.span, output.span)
            least = ROUNDINGS * DOUBLE.roundoff * rms(size[block]) + rounding(task, output, leaf)
            there[block] = size[block] > least
    return there


def _remark(leaf: Leaf, size: Array, faint: Mask, role: Literal["argument", "output"]) -> Finding:
    """Of the largest of them."""
    lines = leaf.start + np.flatnonzero(faint[leaf.span])
    spot = leaf.spot(int(lines[np.argmax(size[lines])]))
    more = f" (and {lines.size - 1} more)" if lines.size > 1 else ""
    return Finding(
        "vacuous",
        Verdict.RIGHT,
        Place(None, spot) if role == "argument" else Place(spot, None),
        f"this check proves little about {spot}{more}: a negated gradient would have passed too",
        f"Other entries of {leaf.path} have derivatives so much larger that these are lost beside them: use other "
        f"units, or make it an {role} of its own.",
    )
