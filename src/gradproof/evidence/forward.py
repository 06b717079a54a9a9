"""The Jacobian by forward mode: column by column, or several at a time where reverse mode has given it already.

That claim is not trusted. Every output must move by what its entries of reverse mode say together, to the last digits;
an entry of forward mode that is another would show. Where anything does, all columns are taken one by one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradproof.contracts.linear import loudness
from gradproof.contracts.side import FORWARD
from gradproof.evidence.gathered import Task
from gradproof.evidence.groups import groups_of
from gradproof.evidence.units import Units, units
from gradproof.precision import DOUBLE, form_of
from gradproof.program import Array

# By how many roundings the modes may differ, and still nothing be hidden in a group; and in all groups together.
ROUNDINGS, ALL = 64.0, 2.0**14
# Groups must be so many times fewer than columns to be worth while.
SAVING = 4


def columns(task: Task, reverse: Array | None) -> Units:
    """`reverse` itself if forward mode gives the same."""
    if reverse is not None and _same(task, reverse):
        return Units(reverse)
    found = units(task, FORWARD)
    if reverse is None or not np.array_equal(found.jacobian[:1], reverse[:1]):
        return found
    return replace(found, jacobian=reverse) if np.array_equal(found.jacobian, reverse) else found


def _same(task: Task, reverse: Array) -> bool:
    """Whether forward mode is reverse mode to the last digits, in random sums of columns; and, nearly so, of all of
    them, much larger and much smaller, with the other sign."""
    program, groups = task.program, groups_of(task.program.inputs)
    if form_of(program) is not DOUBLE or SAVING * groups.count > len(reverse):
        return False
    amounts, voices = groups.amounts(task.generator), loudness(program)
    factors = np.array([[voices.quiet], [-voices.loud]])
    rows = groups.rows(amounts)
    first = program.push(np.concatenate([factors * amounts, next(rows)]))
    pushed = np.concatenate([first[2:], *(program.push(some) for some in rows)])
    claimed = groups.sums(amounts, reverse)
    with np.errstate(invalid="ignore"):
        size = sizes(task, claimed)
        together = np.abs(first[:2] / factors - claimed.sum(axis=0)) <= ALL * DOUBLE.roundoff * size.sum(axis=0)
        return bool((np.abs(pushed - claimed) <= ROUNDINGS * DOUBLE.roundoff * size).all() and together.all())


def sizes(task: Task, claimed: Array) -> Array:
    """What the numbers of each group are judged by: themselves, and the rms of their output."""
    size = np.abs(claimed)
    for output in task.program.outputs:
        if output.size:
            part = size[:, output.span]
            np.maximum(part, np.sqrt(np.einsum("gj,gj->g", part, part) / output.size)[:, None], out=part)
    return size
