"""The sizes that entries are judged by: of a block of the Jacobian, and of a change that does not matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from gradproof.evidence.gathered import Task, distinct
from gradproof.norms import dot, rms
from gradproof.precision import DOUBLE, Precision, form_of
from gradproof.program import Array, Leaf, Mask, Program
from gradproof.reference.field import TINY
from gradproof.reference.steps import scales, signed, step_exponent
from gradproof.sizes import size_of, unit_of

T = TypeVar("T", float, Array)

# Roundings that a derivative which is zero may consist of; half precision, which rounds at the end, has fewer.
ROUNDINGS = 64.0
# What differences can resolve at best, of value over input.
FINEST = 2.0**20 * DOUBLE.roundoff
# A bar of such a share of a derivative leaves no doubt about its sign: see `agreement.CLEAR`.
SIGNED = 0.5
# So many times its own size, which is rounded down, an input that moves by half of that or more changes its sign.
BEYOND_ZERO = 4.0


def block_scales(task: Task, analytic: dict[str, Array]) -> dict[str, Array]:
    """For each input leaf, the rms of its block for every output (M,): the smallest that any mode claims. What is
    nothing but rounding, as where terms cancel, claims to be zero."""
    result: dict[str, Array] = {}
    program, jacobians, form = task.program, distinct(analytic), form_of(task.program)
    values = [(output.span, size_of(program, output)) for output in program.outputs]
    for leaf in program.inputs:
        row, rounded = np.zeros(program.value.size), least(program, leaf, form)
        for span, value in values:
            size = min([rms(one[leaf.span, span]) for one in jacobians], default=0.0)
            row[span] = size if size > rounded * value or form is not DOUBLE else 0.0
        result[leaf.path] = row
    return result


def unimportant_changes(task: Task, lengths: Array) -> Array:
    """A block of zeros has no scale to be judged by. It is good enough to know that moving the input by its own size,
    or by one if it is tiny, changes the output by less than the tolerance: the change over steps of these lengths,
    (k, 1) or (M,), that would do so, for each output (M,), or (k, M) where they differ."""
    sizes = np.empty(task.program.value.size)
    for output in task.program.outputs:
        sizes[output.span] = size_of(task.program, output)
    sizes *= task.tolerance.finest
    usual = 2.0 ** step_exponent(task.reference)
    return sizes * (np.where(lengths < TINY, lengths, usual) if lengths.min(initial=usual) < TINY else usual)


def unimportant_of(task: Task, size: T) -> T:
    """The same over a usual step, of a value of this size."""
    return task.tolerance.finest * 2.0 ** step_exponent(task.reference) * size


def resolved_of(task: Task, size: T) -> T:
    """What differences resolve of it at best."""
    return FINEST * 2.0 ** step_exponent(task.reference) * size


def is_tiny(task: Task, leaf: Leaf) -> bool:
    """Whether steps of its own size may move nothing: see `Field.limits`."""
    return bool(task.steps[leaf.span].max(initial=0.0) < TINY)


def swings(task: Task, leaf: Leaf, reach: float = 1.0) -> Array:
    """How far each output gets (M,), by the rms of its leaf, when an input moves by its own size, or `reach` times
    that, one way or the other; 0 where that leads out of the domain, 1 where zero stays zero and has no size at all.
    This is the size of an output whose value happens to be zero or small at the point, as where a power is flat; it
    takes two evaluations, so it is for entries that could not be told otherwise."""
    reference = task.reference
    result = np.zeros(reference.value.size)
    with np.errstate(all="ignore"):
        for moved in _both_ways(task, leaf, reach * scales(reference.point, reference.inputs)) - reference.value:
            for output in reference.outputs:
                result[output.span] = np.fmax(result[output.span], rms(moved[output.span]))
    result[(result == 0) & (reference.value == 0)] = 1.0
    return np.where(np.isfinite(result), result, 0.0)


def lost(task: Task, leaf: Leaf) -> Array:
    """How large a derivative by an input may be (M,) that is lost in the rounding of an output which does not move at
    all, as it does not where its value is rounded to zero. That value says nothing of its size: what becomes of it as
    the input moves does, up to where its sign is another one. 0 where it moves over the steps of the input."""
    with np.errstate(all="ignore"):
        still = (_both_ways(task, leaf, task.steps) == task.reference.value).all(axis=0)
    if not still.any():
        return np.zeros(still.size)
    size = np.maximum(swings(task, leaf), swings(task, leaf, BEYOND_ZERO))
    return np.where(still, least(task.program, leaf, form_of(task.reference)) * size, 0.0)


def _both_ways(task: Task, leaf: Leaf, lengths: Array) -> Array:
    """The values (2, M) where an input has moved by these lengths, in a direction and in the opposite one."""
    way = np.zeros(task.steps.size)
    way[leaf.span] = signed(np.random.default_rng(0), leaf.size) * lengths[leaf.span]
    return task.reference.values(task.reference.point + np.stack([way, -way]))


def rounding(task: Task, output: Leaf, leaf: Leaf) -> float:
    """What the analytic side may be off by at any entry of a block: some roundings of value over input. It matters
    where the true derivatives are zero and have no size of their own."""
    return least(task.program, leaf, form_of(task.program)) * size_of(task.program, output)


def least(program: Program, leaf: Leaf, form: Precision) -> float:
    """The same for a value of size one."""
    return min(ROUNDINGS, form.roundings) * form.roundoff / unit_of(program, leaf.span)


def unimportant(task: Task, output: Leaf, leaf: Leaf) -> Array:
    """The same as a derivative, for each entry of a block."""
    steps = task.steps[leaf.span, None]
    return np.asarray(unimportant_changes(task, steps)[..., output.span] / steps)


def slight(task: Task, output: Leaf, leaf: Leaf, numeric: Array) -> Array | None:
    """The same for derivatives that are small beside value over input, as where a function is saturated: they need to
    be known to a part of their size, so that no sign is overlooked. None where the caller has said how well they must
    be known."""
    if task.tolerance.given:
        return None
    change = resolved_of(task, size_of(task.program, output))
    return np.asarray(np.minimum(change / task.steps[leaf.span, None], SIGNED * rms(numeric)))


def granted(task: Task, size: Array, leaf: Leaf) -> Array:
    """How far sums of these sizes may be off: an absolute tolerance counts as at the entry that shows least."""
    allowed = task.tolerance.finest * size
    if task.tolerance.absolute and leaf.size:
        allowed = allowed + 0.25 * task.tolerance.absolute * float(np.min(task.steps[leaf.span]))
    return np.asarray(allowed)


def unimportant_change(task: Task, known: tuple[float, float], size: float, output: Leaf, leaf: Leaf) -> float:
    """As for exhaustive blocks: what is zero within its bar, and by a tiny input claims to be no more than rounding,
    needs to be known only against the value's own size. `known`: a sum and its bar; `size`: that of what is claimed."""
    numeric, bar = known
    if abs(numeric) > bar:
        return 0.0
    steps, ways = task.steps[leaf.span], math.sqrt(max(output.size, 1))
    if is_tiny(task, leaf) and size > rounding(task, output, leaf) * math.sqrt(dot(steps, steps)) * ways:
        return 0.0
    value = size_of(task.program, output) * ways
    if not is_tiny(task, leaf):
        return unimportant_of(task, value)
    return task.tolerance.finest * float(steps.max(initial=0.0)) * value


def slight_change(task: Task, size: float, output: Leaf) -> float:
    """As for exhaustive blocks: what is small beside value over input needs to be known to a part of its size."""
    if task.tolerance.given:
        return 0.0
    value = size_of(task.program, output) * math.sqrt(max(output.size, 1))
    return min(resolved_of(task, value), SIGNED * size)


def flat(task: Task, output: Leaf, leaf: Leaf) -> Array:
    """The same for each entry of a block, by what becomes of the output as the input moves, not by its value."""
    return np.asarray(unimportant_of(task, swings(task, leaf)[output.span]) / task.steps[leaf.span, None])


def absent(task: Task, numeric: Array, claimed: Sequence[Array]) -> Mask | None:
    """The entries of a block that are exactly zero on all sides; None where they are judged like any other.

    A tolerance with a ceiling grants less to a large block than its scale would. Rounding of large values over a step
    may be more than that, whatever the step: an entry over which nothing moves needs to be known to the scale alone.
    """
    if not np.isfinite(task.tolerance.ceiling):
        return None
    return np.asarray(np.logical_and.reduce([numeric == 0, *(one == 0 for one in claimed)]))
