"""Whether what looks wrong is rounding.

Where terms cancel, a derivative that is zero comes out as some roundings of theirs, which may be far more than any
tolerance that fits a zero. Such a number is another one at every point nearby, however near; a wrong derivative changes
as smoothly as a right one. And a function that is made of larger numbers does not move before they do: its slope seems
to be exactly zero where it is only small.

The same may be true of the function: what is left of terms that cancel is rounding, and may yet be exactly linear in
another argument. The slope that this makes is another one at every point nearby, too.
"""

from __future__ import annotations

import numpy as np

from gradproof.agreement import CLEAR
from gradproof.evidence.gathered import Task
from gradproof.evidence.scales import lost
from gradproof.norms import largest
from gradproof.precision import DOUBLE, form_of
from gradproof.program import Array, Indices, Mask
from gradproof.reference.estimate import Estimate
from gradproof.reference.field import field_of
from gradproof.reference.rounding import LARGER, LUCK, SMALL, beside, extent, trembling
from gradproof.reference.steps import signed
from gradproof.reference.surroundings import ordinary
from gradproof.reference.tread import on_tread

# What is wrong may be so much larger than the difference between two points nearby.
FACTOR = 4.0
# Where more outputs have a derivative that looks wrong nothing is excused.
MOST = 64
# How often points nearby are drawn.
TIMES = 4
# Over how many first steps the slopes of the function are looked at.
LENGTHS = (1.0, 2.0**12)
# Of so many inputs one must lie on a tread.
FIRST = 4


def widen(task: Task, analytic: dict[str, Array], numeric: Estimate, wrong: Mask) -> None:
    """Make the bars of such entries (N, M) as wide as their rounding."""
    if form_of(task.program) is not DOUBLE:
        _on_treads(task, analytic, numeric, wrong)
    if not wrong.any():
        return
    apart = np.maximum.reduce([numeric.distance(one) for one in analytic.values()])
    wrong = wrong & ~_excused_zeros(task, numeric, wrong, apart)
    # What native numbers may be off by is asked elsewhere.
    if form_of(task.program) is not DOUBLE:
        return
    if not 0 < np.count_nonzero(wrong.any(axis=0)) <= MOST:
        return
    wrong = wrong & ~_excused_slopes(task, numeric, wrong, apart)
    outputs = np.flatnonzero(wrong.any(axis=0))
    if not outputs.size:
        return
    small = bool(np.all(apart[wrong] <= SMALL * largest(np.nan_to_num(numeric.value))))
    if not (small or _uncertain(task, apart, wrong, outputs)):
        return
    rounding = np.where(numeric.value == 0, LARGER * numeric.bar, 0.0) if small else np.zeros_like(apart)
    # A few points nearby may be rounded alike by luck: where they excuse anything, others are asked about the rest.
    left = wrong
    for _ in range(TIMES):
        for output in np.flatnonzero(left.any(axis=0)):
            found = _rounding_of(task, int(output), apart[:, output], left[:, output])
            rounding[:, output] = np.maximum(rounding[:, output], found)
        excused = wrong & (apart <= rounding) & ordinary(numeric.kind)
        left = wrong & ~excused
        if not (excused.any() and left.any()):
            break
    numeric.bar[excused] = np.maximum(numeric.bar, rounding / CLEAR)[excused]


def _rounding_of(task: Task, output: int, apart: Array, wrong: Mask) -> Array:
    """What the derivatives of one output may be off by (N,), of which some are wrong by so much."""
    unit = np.eye(1, task.program.value.size, output)[0]

    def all_of_it(trembles: Array) -> bool:
        return bool((apart[wrong] <= FACTOR * trembles[wrong]).all())

    return FACTOR * trembling(task.program, unit, task.generator, enough=all_of_it)


def _on_treads(task: Task, analytic: dict[str, Array], numeric: Estimate, wrong: Mask) -> None:
    """Zeros that are claimed, and that the numbers next to the point say as well: it cannot be told whether they are
    meant. Where the first inputs show none, the others are not asked."""
    if task.limits is not None:
        return
    zeros = wrong & ordinary(numeric.kind) & np.logical_and.reduce([one == 0 for one in analytic.values()])
    field = field_of(task.reference)
    excused = 0
    for asked, i in enumerate(np.flatnonzero(zeros.any(axis=1))):
        if asked == FIRST and not excused:
            return
        level = zeros[i] & on_tread(task.reference, field, int(i), numeric.value[i])
        numeric.bar[i, level] = np.maximum(numeric.bar[i], np.abs(numeric.value[i]))[level]
        excused += int(np.count_nonzero(level))


def _excused_zeros(task: Task, numeric: Estimate, wrong: Mask, apart: Array) -> Mask:
    """The same where the function does not move at all; says which."""
    excused: Mask = wrong & (numeric.value == 0)
    for leaf in task.program.inputs:
        if excused[leaf.span].any():
            excused[leaf.span] &= apart[leaf.span] <= lost(task, leaf)
    numeric.bar[excused] = np.maximum(numeric.bar, apart / CLEAR)[excused]
    return excused


def _excused_slopes(task: Task, numeric: Estimate, wrong: Mask, apart: Array) -> Mask:
    """The same for slopes of the function that are rounding; says which. Where a step moves it by no more than
    roundings of its arguments do, its slopes are looked at around them."""
    if not np.isfinite(apart[wrong]).any():  # rounding is finite
        return np.zeros_like(wrong)
    points = beside(task.reference.point, task.reference.inputs, task.generator)
    unsteady = LUCK * FACTOR * extent(task.reference.values(points))
    doubtful = wrong & (apart * task.steps[:, None] <= unsteady) & ordinary(numeric.kind)
    excused = np.zeros_like(wrong)
    for i in np.flatnonzero(doubtful.any(axis=1))[:MOST]:
        # What is noise at both ends of a step alone falls as the step grows: the ladder knows how to deal with that.
        rounding = FACTOR * np.minimum(*(extent(_slopes(task, points, i, length)) for length in LENGTHS))
        excused[i] = doubtful[i] & (apart[i] <= rounding)
        numeric.bar[i, excused[i]] = np.maximum(numeric.bar[i], rounding / CLEAR)[excused[i]]
    return excused


def _slopes(task: Task, points: Array, coordinate: int, length: float) -> Array:
    """Along one coordinate at each of the points, over so many steps."""
    move = np.zeros(task.steps.size)
    move[coordinate] = length * task.steps[coordinate]
    up, down = (task.reference.values(points + side * move) for side in (1.0, -1.0))
    return np.asarray((up - down) / (2.0 * move[coordinate]))


def _uncertain(task: Task, apart: Array, wrong: Mask, outputs: Indices) -> bool:
    """Whether any of it may be rounding, from all outputs at once: a mistake mostly is not."""
    cotangent = np.zeros(task.program.value.size)
    cotangent[outputs] = signed(task.generator, outputs.size)

    def any_of_it(trembles: Array) -> bool:
        return bool((wrong & (apart <= LUCK * FACTOR * trembles[:, None])).any())

    return any_of_it(trembling(task.program, cotangent, task.generator, enough=any_of_it))
