"""Whether what looks wrong is the rounding of the analytic side.

Where terms cancel, a derivative that is zero comes out as some roundings of theirs, which may be far more than any
tolerance that fits a zero. Such a number is small beside other derivatives of the same function, and another one at
every point nearby, however near; a wrong derivative changes as smoothly as a right one.
"""

from __future__ import annotations

import contextlib

import numpy as np

from gradproof.agreement import CLEAR, Mask
from gradproof.evidence.gathered import Task
from gradproof.norms import largest
from gradproof.precision import DOUBLE, coarsest
from gradproof.program import Array, Indices
from gradproof.reference.estimate import Estimate

# So many roundings of the largest derivative, at most.
ROUNDINGS = 2**24
# How many points nearby, and how far away they are relative to each coordinate. (Not roundings away: that of a phase of
# 1e4 is another one only where it has gone round.)
POINTS, FAR, NEAR = 8, 2.0**-5, 2.0**-8
# Between the nearer points derivatives differ by NEAR / FAR of what they do between the others; rounding by no less.
STEADY = 4.0
# What is wrong may be so much larger than the difference between two of those points.
FACTOR = 4.0
# Where more outputs have a derivative that looks wrong nothing is excused.
MOST = 64


def widen(task: Task, analytic: dict[str, Array], numeric: Estimate, wrong: Mask) -> None:
    """Make the bars of such entries (N, M) as wide as their rounding."""
    outputs = np.flatnonzero(wrong.any(axis=0))
    if not 0 < outputs.size <= MOST or coarsest(task.program.inputs + task.program.outputs) is not DOUBLE:
        return
    apart = np.maximum.reduce([numeric.distance(one) for one in analytic.values()])
    if not np.all(apart[wrong] <= ROUNDINGS * DOUBLE.roundoff * largest(np.nan_to_num(numeric.value))):
        return
    rounding = np.zeros_like(apart)
    with contextlib.suppress(Exception):  # a point nearby may lie outside of the domain
        far, near = (_spread(task, outputs, away).T for away in (FAR, NEAR))
        rounding[:, outputs] = np.where(far <= STEADY * near, FACTOR * np.minimum(far, near), 0.0)
    excused = wrong & (apart <= rounding)
    numeric.bar[excused] = np.maximum(numeric.bar, rounding / CLEAR)[excused]


def _spread(task: Task, outputs: Indices, away: float) -> Array:
    """How much the gradients of some outputs (k, N) differ between points nearby."""
    size = task.steps.size
    rows = np.zeros((POINTS, outputs.size, size + task.program.value.size))
    moves = away * task.generator.uniform(-1.0, 1.0, (POINTS, 1, size))
    rows[:, :, :size] = task.program.point * (1.0 + moves)
    rows[:, np.arange(outputs.size), size + outputs] = 1.0
    program = task.program.gradient(rows[0, 0, size:])
    seen = program.values(rows.reshape(-1, rows.shape[2])).reshape(POINTS, outputs.size, size)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(np.ptp(seen, axis=0), posinf=0.0))
