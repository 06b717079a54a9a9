"""Terms of a derivative that are left out, or too many.

A term through a single number: forward divides by a sum or a norm, and backward takes that number for a constant. What
such a term adds to the Jacobian is the product of two vectors: how the outputs depend on the number, and how the number
depends on the inputs. There may be one number for all, or one for every row of a batch, each with its own outputs and
inputs.

Or single derivatives are missing, or should not be there, among others that are right.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradproof.diagnose.exhibit import Exhibit, extent, fit
from gradproof.program import Array, Indices, Mask
from gradproof.result import Diagnosis

# Rows and columns of an exhibit.
Group = tuple[Indices, Indices]

# Fewer single derivatives may be zero for other reasons.
SEVERAL = 3
# So many entries must be foretold by others, not counting those that they are foretold from.
FEWEST = 4
# Vectors that differ by no more than this have the same direction.
ALIKE = 1e-4


def through_one_number(exhibit: Exhibit) -> Diagnosis | None:
    """What is wrong is a product of two vectors, and the Jacobian there is none."""
    if exhibit.turned or not exhibit.known.all():
        return None
    for groups in (list(_joined(exhibit.wrong)), list(_vectors(exhibit))):
        found = _explained(exhibit, groups)
        if found is not None:
            return found
    return None


def _explained(exhibit: Exhibit, groups: list[Group]) -> Diagnosis | None:
    gap = exhibit.claimed - exhibit.measured
    predicted, foretold, scaled = exhibit.measured.copy(), 0, True
    for rows, columns in groups:
        block = np.ix_(rows, columns)
        product = _product(gap[block])
        predicted[block] += product
        if not _is_product(exhibit, exhibit.measured[block]):
            strong = np.count_nonzero(np.abs(product) > exhibit.slack(exhibit.measured[block]))
            foretold += max(int(strong) - rows.size - columns.size + 1, 0)
            scaled = scaled and _along(product, exhibit.value[exhibit.rows[rows]])
    found = fit(exhibit, predicted) if foretold >= FEWEST else None
    if found is None:
        return None
    out = exhibit.output.path
    number = f"each of {len(groups)} groups" if exhibit.complete else "each group"
    each = f", in {number} of elements," if len(groups) > 1 else ""
    if scaled:
        what = f"{out} times one vector: what {out} is scaled by is taken for a constant, or its term is wrong"
        numbers = "a normaliser, a norm, a variance"
    else:
        what = "the product of two vectors: a term through a single number on the way is missing or wrong"
        numbers = "a norm, a mean, a variance, one score of many"
    return Diagnosis(
        "rank-one",
        f"{exhibit.subject} is off{each} by {what} ({extent(exhibit, found)})",
        found.explained,
        f"Look for a number on the way ({numbers}) whose own derivative {exhibit.rule} leaves out.",
    )


def _vectors(exhibit: Exhibit) -> Iterator[Group]:
    """Outputs along the last axis, which may share their inputs with others: weights are those of the whole batch."""
    width = (exhibit.output.shape or (1,))[-1] * exhibit.output.width
    owner = exhibit.rows // width
    for one in np.unique(owner):
        rows = np.flatnonzero(owner == one)
        columns = np.flatnonzero(exhibit.wrong[rows].any(axis=0))
        if columns.size:
            yield rows, columns


def _joined(wrong: Mask) -> Iterator[Group]:
    """Rows and columns that wrong entries join, directly or through others."""
    left: Mask = np.asarray(wrong.any(axis=1))
    while left.any():
        rows: Mask = np.zeros(left.size, dtype=bool)
        rows[np.argmax(left)] = True
        while True:
            columns = wrong[rows].any(axis=0)
            joined = np.asarray(wrong[:, columns].any(axis=1))
            if np.array_equal(joined, rows):
                break
            rows = joined
        left &= ~rows
        yield np.flatnonzero(rows), np.flatnonzero(columns)


def _product(block: Array) -> Array:
    """The product of the row and the column that meet in the largest entry, with that entry as it is."""
    row, column = np.unravel_index(int(np.argmax(np.abs(block))), block.shape)
    pivot = block[row, column]
    return np.asarray(np.outer(block[:, column], block[row] / pivot)) if pivot else np.zeros_like(block)


def _is_product(exhibit: Exhibit, block: Array) -> bool:
    return bool((np.abs(block - _product(block)) <= exhibit.slack(block)).all())


def _along(product: Array, values: Array) -> bool:
    """Whether the columns of a product have the direction of these values, and there are enough of them to tell."""
    column = product[:, int(np.argmax(np.abs(product)) % product.shape[1])]
    sizes = float(np.linalg.norm(column) * np.linalg.norm(values))
    return values.size > 2 and abs(float(column @ values)) >= (1.0 - ALIKE) * sizes > 0.0


def dropped(exhibit: Exhibit) -> Diagnosis | None:
    """Some derivatives are zero, others right: what is overwritten instead of added up looks so."""
    if exhibit.turned or not _alone(exhibit, _unclaimed(exhibit)):
        return None
    return Diagnosis(
        "dropped",
        f"{_count(exhibit)} are zero that should not be, and {_others(exhibit)} are right",
        1.0,
        f"Look for terms that {exhibit.rule} overwrites where they must add up (an assignment by index, a scatter "
        "without add), or for a mask or an index that leaves them out.",
    )


def leaked(exhibit: Exhibit) -> Diagnosis | None:
    """Some derivatives are not zero where the function does not depend on the input, others right."""
    if exhibit.turned or not _alone(exhibit, _absent(exhibit)):
        return None
    return Diagnosis(
        "leaked",
        f"{_count(exhibit)} are not zero although {exhibit.output.path} does not depend on it there, and "
        f"{_others(exhibit)} are right",
        1.0,
        f"Look for a mask, a padding or a bound of an index that forward has and {exhibit.rule} has not.",
    )


def patchy(exhibit: Exhibit) -> bool:
    """Whether it is one of the two, so that no element as a whole is to blame."""
    return _mixed(exhibit, _unclaimed(exhibit)) or _mixed(exhibit, _absent(exhibit))


def _unclaimed(exhibit: Exhibit) -> Mask:
    return np.asarray(exhibit.claimed == 0)


def _absent(exhibit: Exhibit) -> Mask:
    return np.asarray(np.abs(exhibit.measured) <= exhibit.slack(np.zeros_like(exhibit.measured)))


def _alone(exhibit: Exhibit, zero: Mask) -> bool:
    """Whether just these are wrong. What else could be wrong with whole elements of a sample, one cannot know."""
    off = exhibit.off
    if np.count_nonzero(off) < SEVERAL or not zero[off].all():
        return False
    enough = np.count_nonzero(exhibit.telling & ~off) >= SEVERAL
    return bool(enough and (exhibit.complete or _others_of_the_same(exhibit).any()))


def _mixed(exhibit: Exhibit, zero: Mask) -> bool:
    """Whether just these are wrong, of elements that have other derivatives as well, which are right."""
    if not _alone(exhibit, zero):
        return False
    mixed = _others_of_the_same(exhibit)
    # A few may have no other; a sample may have missed those that are right.
    return not exhibit.complete or bool(2 * np.count_nonzero(mixed) >= mixed.size)


def _others_of_the_same(exhibit: Exhibit) -> Mask:
    """Which of the elements with wrong derivatives have right ones too."""
    right = exhibit.telling & ~exhibit.off
    return np.asarray(right[:, exhibit.off.any(axis=0)].any(axis=0))


def _count(exhibit: Exhibit) -> str:
    return f"{np.count_nonzero(exhibit.off):,} derivatives with respect to {exhibit.input.path}"


def _others(exhibit: Exhibit) -> str:
    return "the others" if exhibit.complete else "the others that were looked at"
