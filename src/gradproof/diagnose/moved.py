"""The right numbers in the wrong places: transposed, shifted, flipped, swapped, permuted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradproof.diagnose.exhibit import Exhibit, Fit, extent, fit, shaped, union
from gradproof.program import Array, Indices, Leaf
from gradproof.result import Diagnosis

# Fewer wrong entries than this may fit by chance; so may fewer numbers that were found in another place.
FEWEST = 3
MATCHES = 4


@dataclass(frozen=True, slots=True)
class Move:
    """`source[c]` is the offset from which offset c got its numbers; -1 where from none."""

    code: str
    text: str
    source: Indices


def transposed_jacobian(exhibit: Exhibit) -> Diagnosis | None:
    """The operator itself in place of its adjoint: A[r, c] = J[c, r]."""
    if exhibit.output.size != exhibit.input.size or exhibit.turned:
        return None
    both = union(exhibit.rows, exhibit.columns)
    found = _placed(exhibit, exhibit.numeric.at(both, both).T, both, both)
    if found is None:
        return None
    sentence = (
        f"the Jacobian of {exhibit.output.path} with respect to {exhibit.input.path} is transposed: the operator "
        f"itself is applied where its adjoint should be, or a factor lacks its transpose ({extent(exhibit, found)})"
    )
    return Diagnosis("transposed", sentence, found.explained, f"Transpose the linear map in {exhibit.rule}.")


def moved(exhibit: Exhibit) -> Diagnosis | None:
    """One of the usual permutations of a leaf's index."""
    for move in moves(exhibit.input):
        columns = union(exhibit.columns, _inverse(move.source)[exhibit.columns])
        found = _placed(exhibit, exhibit.numeric.at(exhibit.rows, move.source[columns]), columns, exhibit.rows)
        if found is not None:
            return _diagnosis(exhibit, move, found)
    return None


@np.errstate(invalid="ignore")
def _placed(exhibit: Exhibit, predicted: Array, columns: Indices, rows: Indices) -> Fit | None:
    """The fit of a move. In a sample most of the places that are wrong may be unknown on one side: what counts then is
    how many numbers turned up in their new place."""
    found = fit(exhibit, predicted, columns, rows)
    if found is None or exhibit.complete:
        return found if found is not None and found.wrong >= FEWEST else None
    claimed, measured = exhibit.analytic.at(rows, columns), exhibit.numeric.at(rows, columns)
    there = np.abs(claimed - predicted) <= exhibit.slack(predicted)
    there &= (np.abs(predicted) > exhibit.slack(np.zeros(1))) & ~(np.abs(claimed - measured) <= exhibit.slack(measured))
    return Fit(found.explained, int(np.count_nonzero(there))) if np.count_nonzero(there) >= MATCHES else None


def _diagnosis(exhibit: Exhibit, move: Move, found: Fit) -> Diagnosis:
    return Diagnosis(
        move.code,
        f"{exhibit.subject} is {move.text} ({extent(exhibit, found)})",
        found.explained,
        {
            "transposed": f"Look for a transpose that is missing, or one too many, in {exhibit.rule}.",
            "shifted": f"Look for an index that is off by one in {exhibit.rule}: a slice, a roll, a padding.",
            "permuted": f"Look at the order of elements in {exhibit.rule}: a flip, a sort, a gather or a reshape.",
        }[move.code],
    )


def moves(leaf: Leaf) -> Iterator[Move]:
    """Permutations of the elements; real and imaginary parts stay together."""
    grid = np.arange(leaf.size).reshape(shaped(leaf))
    axes = [axis for axis, n in enumerate(leaf.shape) if n > 1]
    for first in axes:
        for second in axes:
            if first < second and leaf.shape[first] == leaf.shape[second]:
                text = "transposed" if len(leaf.shape) == 2 else f"transposed (axes {first} and {second})"
                yield Move("transposed", text, np.swapaxes(grid, first, second).ravel())
    for axis in axes:
        along = "" if len(leaf.shape) == 1 else f" along axis {axis}"
        two = leaf.shape[axis] == 2
        if two:  # which a step around the end swaps
            yield Move("permuted", f"swapped{along}", np.flip(grid, axis).ravel())
        for step in (1, -1):
            text = f"shifted by one{along}"
            if not two:
                yield Move("shifted", text, np.roll(grid, step, axis).ravel())
            yield Move("shifted", text, _slid(grid, step, axis).ravel())
        if not two:
            yield Move("permuted", f"reversed{along}", np.flip(grid, axis).ravel())
    if leaf.size > 2 and len(axes) > 1 and not leaf.is_complex:
        yield Move("shifted", "shifted by one in the flat order", np.roll(grid.ravel(), 1))
        yield Move("shifted", "shifted by one in the flat order", np.roll(grid.ravel(), -1))
        text = "in the wrong memory order (row-major for column-major)"
        yield Move("permuted", text, grid.ravel(order="F").copy())
        yield Move("permuted", text, _inverse(grid.ravel(order="F")))


def _slid(grid: Indices, step: int, axis: int) -> Indices:
    """A shift that does not wrap around; what comes in at the end is not foreseen."""
    result = np.roll(grid, step, axis)
    edge = [slice(None)] * grid.ndim
    edge[axis] = slice(0, 1) if step > 0 else slice(-1, None)
    result[tuple(edge)] = -1
    return result


def _inverse(source: Indices) -> Indices:
    result = np.full(source.size, -1, dtype=np.intp)
    where = np.flatnonzero(source >= 0)
    result[source[where]] = where
    return result


def permuted(exhibit: Exhibit) -> Diagnosis | None:
    """Any other order: every wrong column holds the numbers of another one."""
    wrong = exhibit.columns[exhibit.wrong.any(axis=0)]
    if wrong.size < 2 or (wrong.size > 2 and not exhibit.complete):
        return None
    source = _matched(exhibit, wrong)
    if source is None:
        return None
    predicted = exhibit.numeric.at(exhibit.rows, source[exhibit.columns])
    found = fit(exhibit, predicted)
    # Two columns of one number each are swapped by chance more easily than columns of many.
    if found is None or found.wrong < 2 or (found.wrong < MATCHES and exhibit.columns.size < 8):
        return None
    if not exhibit.right_elsewhere(np.isin(np.arange(exhibit.input.size), wrong)):
        return None
    if wrong.size == 2:
        spots = " and ".join(str(exhibit.input.spot(exhibit.input.start + int(c))) for c in wrong)
        move = Move("permuted", f"swapped between {spots}", source)
    else:
        move = Move("permuted", f"permuted: {wrong.size} elements hold the numbers of others", source)
    return _diagnosis(exhibit, move, found)


def _matched(exhibit: Exhibit, wrong: Indices) -> Indices | None:
    """Where the wrong columns got their numbers from, if each is found once: matched by a random weighting of rows."""
    if not exhibit.known.all():
        return None
    weights = np.random.default_rng(0).standard_normal(exhibit.rows.size)
    with np.errstate(invalid="ignore"):
        claimed = weights @ exhibit.analytic.at(exhibit.rows, wrong)
        measured = weights @ exhibit.numeric.at(exhibit.rows, wrong)
    order, other = np.argsort(claimed), np.argsort(measured)
    source = np.arange(exhibit.input.size)
    source[wrong[order]] = wrong[other]
    if wrong.size > 2 and np.unique(np.round(measured, 12)).size < wrong.size:
        return None
    return None if (source[wrong] == wrong).any() else source
