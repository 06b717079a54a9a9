"""A program whose arguments stay where they belong: within bounds, and in spaces such as the symmetric matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradproof import precision
from gradproof.bounds import Bound, Limits, limits_of
from gradproof.errors import UsageError
from gradproof.paths import matching
from gradproof.program import Array, Leaf, Offers, Program, Skipped, Tally, offers_of
from gradproof.spaces import Numbers, Space


@dataclass(frozen=True, slots=True)
class Held:
    """An input leaf, and the space that it stays in."""

    leaf: Leaf
    space: Space

    def shaped(self, rows: Array) -> Numbers:
        """Coordinates (k, size) as arrays of the leaf's shape."""
        if self.leaf.is_complex:
            return np.ascontiguousarray(rows).view(np.complex128).reshape(-1, *self.leaf.shape)
        return rows.reshape(-1, *self.leaf.shape)

    def flat(self, arrays: Numbers) -> Array:
        kind = np.complex128 if self.leaf.is_complex else np.float64
        flat = np.ascontiguousarray(arrays, dtype=kind).reshape(len(arrays), -1)
        return flat.view(np.float64)

    def project(self, point: Array, rows: Array) -> Array:
        return self.flat(self.space.project(self.shaped(point[None])[0], self.shaped(rows)))

    def retract(self, point: Array, rows: Array) -> Array:
        origin = self.shaped(point[None])[0]
        return self.flat(self.space.retract(origin, self.space.project(origin, self.shaped(rows))))


@dataclass(frozen=True, slots=True)
class Confined:
    """Passes everything on to `inner`, but moves held leaves along their space, and evaluates nothing outside of it or
    of the bounds: such a row is NaN, as where a step leaves the domain."""

    inner: Program
    held: tuple[Held, ...]
    limits: Limits | None

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def inputs(self) -> tuple[Leaf, ...]:
        return self.inner.inputs

    @property
    def outputs(self) -> tuple[Leaf, ...]:
        return self.inner.outputs

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return self.inner.skipped

    @property
    def point(self) -> Array:
        return self.inner.point

    @property
    def value(self) -> Array:
        return self.inner.value

    @property
    def tally(self) -> Tally:
        return self.inner.tally

    @property
    def notes(self) -> tuple[str, ...]:
        own = tuple(f"{one.leaf.path} stays in {one.space!r}" for one in self.held)
        return own + self.inner.notes

    @property
    def batched(self) -> bool:
        """Not asked: an adapter may try it at points that lie outside."""
        return False

    @property
    def offers(self) -> Offers:
        """Complex points would lie outside, and stored entries of a Jacobian know nothing of tangents."""
        inner = offers_of(self.inner)
        return replace(inner, complex_values=None, stored=None if self.held else inner.stored)

    def values(self, points: Array) -> Array:
        inside = np.ones(len(points), dtype=bool)
        for one in self.held:
            span = one.leaf.span
            origin = self.point[span]
            points[:, span] = one.retract(origin, points[:, span] - origin)
            inside &= np.isfinite(points[:, span]).all(axis=1)
        if self.limits is not None:
            inside &= self.limits.inside(points)
        if inside.all():
            return self.inner.values(points)
        result = np.full((len(points), self.value.size), np.nan)
        if inside.any():
            result[inside] = self.inner.values(points[inside])
        return result

    def pull(self, cotangents: Array) -> Array:
        return self._projected(self.inner.pull(cotangents))

    def push(self, tangents: Array) -> Array:
        return self.inner.push(self._projected(np.array(tangents)))

    def repeated_value(self) -> Array:
        return self.inner.repeated_value()

    def gradient(self, cotangent: Array) -> Program:
        return self._around(self.inner.gradient(cotangent))

    def widened(self) -> Program:
        return self._around(self.inner.widened())

    def _around(self, inner: Program) -> Program:
        """The same confines for a program with the same inputs, and perhaps more."""
        by_path = {leaf.path: leaf for leaf in inner.inputs}
        held = tuple(Held(by_path[one.leaf.path], one.space) for one in self.held)
        return Confined(inner, held, None if self.limits is None else self.limits.padded(inner.point.size))

    def _projected(self, rows: Array) -> Array:
        for one in self.held:
            rows[:, one.leaf.span] = one.project(self.point[one.leaf.span], rows[:, one.leaf.span])
        return rows


def confined(program: Program, bounds: Sequence[Bound], spaces: Sequence[tuple[str, Space]]) -> Program:
    """The same program where nothing is confined."""
    if not bounds and not spaces:
        return program
    held = []
    for pattern, space in spaces:
        for path in matching(pattern, [leaf.path for leaf in program.inputs], "spaces"):
            leaf = next(leaf for leaf in program.inputs if leaf.path == path)
            one = Held(leaf, space)
            roundoff = precision.of(leaf.dtype).roundoff
            reason = space.refusal(one.shaped(program.point[None, leaf.span])[0], roundoff)
            if reason:
                raise UsageError(
                    f"{path} {reason}; so it is not in {space!r}: pass a point of that space, or leave {pattern!r} out "
                    "of spaces="
                )
            held.append(one)
    return Confined(program, tuple(held), limits_of(program, bounds))
