"""Functions of float64 that compute in float32 inside, where nobody sees it, as kernels do: which they are, and the
same as functions of float32.

Rounding inside makes noise, but noise alone does not say so: a solver that stops at a tolerance has it too, and is
judged by more digits than float32 has. What a kernel does shows exactly. An argument that is cast when it is loaded may
move by less than half a spacing of float32, and nothing changes at all; a result that is computed in float32 is a
number of float32, wherever the arguments are.

Small steps of such a function are stairs. But between numbers of float32, and with the noise of float32, it is as good
as any of that format.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradproof.metered import Metered
from gradproof.norms import rms
from gradproof.precision import DOUBLE, SINGLE, form_of
from gradproof.program import Array, Leaf, Offers, Program, alone_of, draws_of, offers_of, read_only
from gradproof.reference.steps import signed
from gradproof.sizes import size_of, sizes_of
from gradproof.wrapped import Wrapped

# In spacings of float32: by less than half of one, and by two of these lengths, which is more.
SHORT = 0.4
# By so many, everything has moved.
FAR = 8.0
# By how much of its steps the value of such a function turns within these; a smooth one goes straight.
TURNS = 0.1
# Arguments that are asked one by one; the others together.
ONE_BY_ONE = 7
# Roundings of float64 that a change must be to be seen.
CLEARLY = 64.0

DTYPES = {"float64": "float32", "complex128": "complex64"}


def computes_in_single(program: Metered, generator: np.random.Generator) -> bool:
    """Of a function of float64: two evaluations where it is smooth."""
    if form_of(program) is not DOUBLE or not np.isfinite(program.value).all():
        return False
    point = SINGLE.round(program.point)
    spacing = SINGLE.spacing(point) * (point != 0)
    if not _turns(program, spacing):
        return False
    return _stores(program, point, spacing, generator) or _loads(program, point, spacing)


def _turns(program: Metered, spacing: Array) -> bool:
    """One evaluation after the other: vectors may be long."""
    here = program.values((program.point + SHORT * spacing)[None])[0]
    first = here - program.value
    second = program.values((program.point + 2.0 * SHORT * spacing)[None])[0] - here
    with np.errstate(invalid="ignore"):
        return bool((np.abs(second - first) > TURNS * (np.abs(first) + np.abs(second))).any())


def _stores(program: Metered, point: Array, spacing: Array, generator: np.random.Generator) -> bool:
    """Whether an output is of float32, at two points that are not, and moves between them."""
    moves = np.stack([signed(generator, point.size), signed(generator, point.size)])
    first, second = program.values(point + FAR * np.pi * moves * spacing)
    return any(
        bool((first[leaf.span] != second[leaf.span]).any())
        and all(np.array_equal(SINGLE.round(one[leaf.span]), one[leaf.span]) for one in (first, second))
        for leaf in program.outputs
        if size_of(program, leaf) == rms(program.value[leaf.span])  # the rounding of larger numbers has few digits
    )


def _loads(program: Metered, point: Array, spacing: Array) -> bool:
    """Whether an argument is read as float32: what moves it by less than a rounding changes nothing, what moves it by
    more does, and by so much that float64 would have shown the other."""
    starts = [leaf.start for leaf in program.inputs][: ONE_BY_ONE + 1]
    parts = [slice(*ends) for ends in zip(starts, [*starts[1:], point.size], strict=True)]
    seen = CLEARLY * DOUBLE.roundoff * sizes_of(program)
    for part in parts:
        points = np.repeat(point[None], 3, axis=0)
        points[:, part] += np.array([[0.0], [SHORT], [FAR]]) * spacing[part]
        here, near, far = program.values(points)
        expected = np.abs(far - here) * (SHORT / FAR)
        if np.array_equal(near, here) and (expected > seen).any():
            return True
    return False


@dataclass(frozen=True, slots=True)
class Narrowed(Wrapped):
    """Passes everything on to `inner`, but evaluates it at numbers of float32 alone. Its rule is asked where the user
    asks it: at the point itself, which is a rounding away."""

    @property
    def inputs(self) -> tuple[Leaf, ...]:
        return tuple(map(_narrow, self.inner.inputs))

    @property
    def outputs(self) -> tuple[Leaf, ...]:
        return tuple(map(_narrow, self.inner.outputs))

    @property
    def point(self) -> Array:
        return read_only(SINGLE.round(self.inner.point))

    @property
    def alone(self) -> int:
        return alone_of(self.inner)

    @property
    def draws(self) -> bool:
        return draws_of(self.inner)

    @property
    def offers(self) -> Offers:
        """A cast knows nothing of complex steps."""
        return replace(offers_of(self.inner), complex_values=None)

    def values(self, points: Array) -> Array:
        return self.inner.values(SINGLE.round(points))

    def pull(self, cotangents: Array) -> Array:
        return self.inner.pull(cotangents)

    def push(self, tangents: Array) -> Array:
        return self.inner.push(tangents)

    def repeated_value(self) -> Array:
        return self.inner.repeated_value()

    def gradient(self, cotangent: Array) -> Program:
        return Narrowed(self.inner.gradient(cotangent))

    def widened(self) -> Program:
        return self


def _narrow(leaf: Leaf) -> Leaf:
    return replace(leaf, dtype=DTYPES.get(leaf.dtype, leaf.dtype))
