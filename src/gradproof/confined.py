"""A program whose arguments stay where they belong: within bounds, and in spaces such as the symmetric matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradproof import precision
from gradproof.bounds import Bound, Limits, limits_of
from gradproof.errors import UsageError
from gradproof.paths import matching
from gradproof.program import Array, Leaf, Offers, Program, linearized_of, offers_of
from gradproof.spaces import Numbers, Space
from gradproof.unrounded import Unrounded, unrounded_of
from gradproof.wrapped import Wrapped


@dataclass(frozen=True, slots=True)
class Held:
    """An input leaf, or the gradient with respect to it; the space that it stays in, and where."""

    leaf: Leaf
    space: Space
    origin: Array

    def shaped(self, rows: Array) -> Numbers:
        """Coordinates (k, size) as arrays of the leaf's shape."""
        if self.leaf.is_complex:
            return np.ascontiguousarray(rows).view(np.complex128).reshape(-1, *self.leaf.shape)
        return rows.reshape(-1, *self.leaf.shape)

    def flat(self, arrays: Numbers) -> Array:
        kind = np.complex128 if self.leaf.is_complex else np.float64
        flat = np.ascontiguousarray(arrays, dtype=kind).reshape(len(arrays), -1)
        return flat.view(np.float64)

    def project(self, rows: Array) -> Array:
        return self.flat(self.space.project(self.shaped(self.origin[None])[0], self.shaped(rows)))

    def retract(self, rows: Array) -> Array:
        point = self.shaped(self.origin[None])[0]
        return self.flat(self.space.retract(point, self.space.project(point, self.shaped(rows))))


@dataclass(frozen=True, slots=True)
class Confined(Wrapped):
    """Passes everything on to `inner`, but moves held leaves along their space, and evaluates nothing outside of it or
    of the bounds: such a row is NaN, as where a step leaves the domain."""

    held: tuple[Held, ...]
    limits: Limits | None
    gradients: tuple[Held, ...] = ()  # outputs that are derivatives with respect to a held input: tangents as well

    @property
    def value(self) -> Array:
        return _projected(self.inner.value[None].copy(), self.gradients)[0] if self.gradients else self.inner.value

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
            points[:, span] = one.retract(points[:, span] - one.origin)
            inside &= np.isfinite(points[:, span]).all(axis=1)
        if self.limits is not None:
            inside &= self.limits.inside(points)
        if inside.all():
            return _projected(self.inner.values(points), self.gradients)
        result = np.full((len(points), self.inner.value.size), np.nan)
        if inside.any():
            result[inside] = _projected(self.inner.values(points[inside]), self.gradients)
        return result

    def pull(self, cotangents: Array) -> Array:
        return _projected(self.inner.pull(_projected(cotangents.copy(), self.gradients)), self.held)

    def push(self, tangents: Array) -> Array:
        return _projected(self.inner.push(_projected(tangents.copy(), self.held)), self.gradients)

    def repeated_value(self) -> Array:
        return np.asarray(_projected(self.inner.repeated_value()[None].copy(), self.gradients)[0])

    def gradient(self, cotangent: Array) -> Program:
        inner = self.inner.gradient(cotangent)
        held = tuple(_elsewhere(one, inner.outputs, f"grad({one.leaf.path})") for one in self.held)
        return replace(replace(self, gradients=())._around(inner), gradients=held)

    def widened(self) -> Program:
        return self._around(self.inner.widened())

    def unrounded(self) -> Unrounded[Program] | None:
        found = unrounded_of(self.inner)
        return None if found is None else Unrounded(self._around(found.program), found.form)

    def linearized(self) -> Program:
        return self._around(linearized_of(self.inner))

    def _around(self, inner: Program) -> Confined:
        """The same confines for a program with the same inputs, and perhaps more."""
        return Confined(
            inner,
            tuple(_elsewhere(one, inner.inputs, one.leaf.path) for one in self.held),
            None if self.limits is None else self.limits.padded(inner.point.size),
            tuple(_elsewhere(one, inner.outputs, one.leaf.path) for one in self.gradients),
        )


def _elsewhere(held: Held, leaves: Sequence[Leaf], path: str) -> Held:
    return Held(next(leaf for leaf in leaves if leaf.path == path), held.space, held.origin)


def _projected(rows: Array, held: Sequence[Held]) -> Array:
    """In place, unless the rows are somebody else's."""
    if held and not rows.flags.writeable:
        rows = rows.copy()
    for one in held:
        rows[:, one.leaf.span] = one.project(rows[:, one.leaf.span])
    return rows


def confined(program: Program, bounds: Sequence[Bound], spaces: Sequence[tuple[str, Space]]) -> Program:
    """The same program where nothing is confined."""
    if not bounds and not spaces:
        return program
    held = []
    for pattern, space in spaces:
        for path in matching(pattern, [leaf.path for leaf in program.inputs], "spaces"):
            leaf = next(leaf for leaf in program.inputs if leaf.path == path)
            one = Held(leaf, space, program.point[leaf.span])
            roundoff = precision.of(leaf.dtype).roundoff
            reason = space.refusal(one.shaped(program.point[None, leaf.span])[0], roundoff)
            if reason:
                raise UsageError(
                    f"{path} {reason}; so it is not in {space!r}: pass a point of that space, or leave {pattern!r} out "
                    "of spaces="
                )
            held.append(one)
    return Confined(program, tuple(held), limits_of(program, bounds))
