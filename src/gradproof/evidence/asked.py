"""The cotangents and tangents for which derivatives in two formats are compared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gradproof.contracts.linear import loudness, mixed
from gradproof.evidence.gathered import Task, restricted
from gradproof.norms import rms
from gradproof.precision import of
from gradproof.program import Array, Leaf, Program
from gradproof.reference.steps import signed
from gradproof.sizes import size_of, sizes_of


@dataclass(frozen=True)
class Asked:
    """Cotangents or tangents (k, n), numbers of the leaves' own formats: `units`, the first so many unit vectors, and
    some `more`. The rows that ask for the same thing: in reverse mode each with the size of the values that they ask
    for."""

    units: int
    more: Array
    alike: tuple[slice, ...]
    sizes: tuple[float, ...] = ()

    @cached_property
    def rows(self) -> Array:
        return np.vstack([np.eye(self.units, self.more.shape[1]), self.more])


def cotangents(task: Task, probes: int) -> Asked:
    """Every single entry, or random ones, output by output; and a combination of all in two sizes that a threshold on
    the cotangent would fall between."""
    program, outputs = task.program, task.program.outputs
    count = program.value.size
    drawn = [signed(task.generator, count) for _ in range(probes)]
    quiet = loudness(program).quiet
    both = rounded(np.outer((1.0, quiet), mixed(count, task.generator)), outputs)
    if probes == 0:
        rows = both
        alike, sizes = [leaf.span for leaf in outputs], [size_of(program, leaf) for leaf in outputs]
    else:
        parts = np.vstack([restricted(one, leaf.span) for one in drawn for leaf in outputs])
        rows = np.vstack([rounded(parts, outputs), both])
        alike = _every(len(outputs), probes)
        sizes = [size_asked(rows[some], program) for some in alike]
    units = count if probes == 0 else 0
    single = [slice(k, k + 1) for k in range(units + len(rows) - 2, units + len(rows))]
    size = size_asked(both[:1], program)
    return Asked(units, rows, (*alike, *single), (*sizes, size, abs(quiet) * size))


def size_asked(cotangents: Array, program: Program) -> float:
    """Of the values that are asked for: one that is infinite counts only where it is."""
    rows, k = np.nonzero(cotangents)
    return rms(cotangents[rows, k] * sizes_of(program)[k])


def tangents(task: Task, probes: int) -> Asked:
    """The same for pushes: every single coordinate, or random ones, input by input."""
    program = task.program
    if probes == 0:
        none = np.empty((0, program.point.size))
        return Asked(program.point.size, none, tuple(leaf.span for leaf in program.inputs))
    drawn = [signed(task.generator, program.point.size) for _ in range(probes)]
    rows = np.vstack([restricted(one, leaf.span) for one in drawn for leaf in program.inputs])
    return Asked(0, rounded(rows, program.inputs), tuple(_every(len(program.inputs), probes)))


def _every(count: int, times: int) -> list[slice]:
    """Of `times` rounds through `count` leaves, the rows of each leaf."""
    return [slice(k, count * times, count) for k in range(count)]


def rounded(rows: Array, leaves: tuple[Leaf, ...]) -> Array:
    for leaf in leaves:
        rows[:, leaf.span] = of(leaf.dtype).round(rows[:, leaf.span])
    return rows
