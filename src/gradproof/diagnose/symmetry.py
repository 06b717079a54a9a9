"""A function of symmetric matrices that reads one triangle only, with the gradient that frameworks give it: symmetric.

Along symmetric directions both sides are the same; a single entry, moved alone, is not such a direction.
"""

from __future__ import annotations

import numpy as np

from gradproof.diagnose.exhibit import Exhibit, shaped
from gradproof.norms import largest
from gradproof.program import Array, Indices, Leaf
from gradproof.result import Diagnosis

FEWEST = 2
# A point is symmetric to rounding: A @ A.T is not always so to the last digit.
ROUNDING = 1e-12


def symmetric_input(exhibit: Exhibit) -> Diagnosis | None:
    """A + A^T = J + J^T over the indices of a symmetric (Hermitian) input, where A is symmetric or J knows one
    triangle only. A gradient that is only transposed has been recognised before."""
    leaf = exhibit.input
    if exhibit.turned or not is_symmetric(leaf, exhibit.point):
        return None
    partner, sign = _mirror(leaf)
    rows, columns, signs = exhibit.rows, exhibit.columns, sign[exhibit.columns]
    claimed, measured = exhibit.claimed, exhibit.measured
    mirrored = signs * exhibit.analytic.at(rows, partner[columns])
    seen = signs * exhibit.numeric.at(rows, partner[columns])
    known = np.isfinite(claimed + mirrored + measured + seen)
    if np.count_nonzero(known & exhibit.wrong) < FEWEST or (exhibit.complete and not known[exhibit.wrong].all()):
        return None
    slack = exhibit.slack(measured) + exhibit.slack(seen)
    if not (np.abs(claimed + mirrored - measured - seen) <= slack)[known].all():
        return None
    even = (np.abs(claimed - mirrored) <= slack)[known].all()
    if not (even or _one_triangle(exhibit, columns)):
        return None
    word, space = ("Hermitian", "Hermitian") if leaf.is_complex else ("symmetric", "Symmetric")
    return Diagnosis(
        "symmetric-input",
        f"{leaf.path} is {word}, and along {word} directions {exhibit.subject} is right: only single entries of it, "
        f"moved without their mirror images, give something else",
        1.0,
        f"If {leaf.path} is {word} wherever the function is used, pass spaces={{{leaf.path!r}: "
        f"gradproof.spaces.{space}()}}; if not, {exhibit.rule} lacks what single entries do.",
    )


def is_symmetric(leaf: Leaf, point: Array) -> bool:
    """Whether the numbers of a leaf are symmetric matrices, or Hermitian ones."""
    if len(leaf.shape) < 2 or leaf.shape[-1] != leaf.shape[-2] or leaf.shape[-1] < 2:
        return False
    partner, sign = _mirror(leaf)
    return largest(point - sign * point[partner]) <= ROUNDING * largest(point)


def _mirror(leaf: Leaf) -> tuple[Indices, Array]:
    """Of every coordinate that of its mirror image, and the sign it has there: imaginary parts are conjugate."""
    offsets = np.arange(leaf.size, dtype=np.intp).reshape(shaped(leaf))
    if not leaf.is_complex:
        return np.swapaxes(offsets, -1, -2).ravel(), np.ones(leaf.size)
    return np.swapaxes(offsets, -2, -3).ravel(), np.where(np.arange(leaf.size) % 2, -1.0, 1.0)


def _one_triangle(exhibit: Exhibit, columns: Indices) -> bool:
    """Whether the function does not depend on what is above the diagonal, or below."""
    shape = exhibit.input.shape
    index = np.unravel_index(columns // exhibit.input.width, shape)
    still = np.max(np.abs(np.nan_to_num(exhibit.measured)), axis=0) <= exhibit.slack(np.zeros(columns.size))
    return bool(still[index[-2] < index[-1]].all() or still[index[-2] > index[-1]].all())
