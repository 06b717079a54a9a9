"""Whether what looks wrong is rounding.

Where terms cancel, a derivative that is zero comes out as some roundings of theirs, which may be far more than any
tolerance that fits a zero. Such a number is another one at every point nearby, however near; a wrong derivative changes
as smoothly as a right one. And a function that is made of larger numbers does not move before they do: its slope seems
to be exactly zero where it is only small.
"""

from __future__ import annotations

import numpy as np

from gradproof.agreement import CLEAR, Mask
from gradproof.evidence.gathered import Task
from gradproof.norms import largest
from gradproof.precision import DOUBLE, coarsest
from gradproof.program import Array, Indices
from gradproof.reference.estimate import Estimate
from gradproof.reference.rounding import LARGER, LUCK, SMALL, trembling
from gradproof.reference.steps import signed
from gradproof.reference.surroundings import ordinary

# What is wrong may be so much larger than the difference between two points nearby.
FACTOR = 4.0
# Where more outputs have a derivative that looks wrong nothing is excused.
MOST = 64


def widen(task: Task, analytic: dict[str, Array], numeric: Estimate, wrong: Mask) -> None:
    """Make the bars of such entries (N, M) as wide as their rounding."""
    outputs = np.flatnonzero(wrong.any(axis=0))
    if not 0 < outputs.size <= MOST or coarsest(task.program.inputs + task.program.outputs) is not DOUBLE:
        return
    apart = np.maximum.reduce([numeric.distance(one) for one in analytic.values()])
    small = bool(np.all(apart[wrong] <= SMALL * largest(np.nan_to_num(numeric.value))))
    if not (small or _uncertain(task, apart, wrong, outputs)):
        return
    rounding = np.zeros_like(apart)
    if small:
        rounding = np.where(numeric.value == 0, LARGER * numeric.bar, 0.0)
    for output in outputs:
        unit = np.zeros(task.program.value.size)
        unit[output] = 1.0
        rounding[:, output] = np.maximum(rounding[:, output], FACTOR * trembling(task.program, unit, task.generator))
    excused = wrong & (apart <= rounding) & ordinary(numeric.kind)
    numeric.bar[excused] = np.maximum(numeric.bar, rounding / CLEAR)[excused]


def _uncertain(task: Task, apart: Array, wrong: Mask, outputs: Indices) -> bool:
    """Whether any of it may be rounding, from all outputs at once: a mistake mostly is not."""
    cotangent = np.zeros(task.program.value.size)
    cotangent[outputs] = signed(task.generator, outputs.size)
    room = LUCK * FACTOR * trembling(task.program, cotangent, task.generator)
    return bool((wrong & (apart <= room[:, None])).any())
