"""A program that computes in float32 inside, whatever it is given, shown as what it is: a program of float32.

Kernels do so: they take float64, cast what they load and store what they have. No framework sees it happen. Small steps
of such a function are stairs, but between numbers of float32, and with the noise of float32, it is as good as any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradproof.precision import SINGLE
from gradproof.program import Array, Leaf, Offers, Program, alone_of, draws_of, offers_of, read_only
from gradproof.wrapped import Wrapped

DTYPES = {"float64": "float32", "complex128": "complex64"}


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
    def value(self) -> Array:
        return self.inner.value

    @property
    def notes(self) -> tuple[str, ...]:
        return self.inner.notes

    @property
    def batched(self) -> bool:
        return self.inner.batched

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
