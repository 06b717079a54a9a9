"""Single derivatives that are missing, or that should not be there, among others that are right."""

from __future__ import annotations

import numpy as np

from gradproof.agreement import Mask
from gradproof.diagnose.exhibit import Exhibit
from gradproof.result import Diagnosis

FEWEST = 3


def dropped(exhibit: Exhibit) -> Diagnosis | None:
    """Some derivatives of an element are zero, others right: what is overwritten instead of added up looks so."""
    if exhibit.turned or not _mixed(exhibit, _unclaimed(exhibit)):
        return None
    return Diagnosis(
        "dropped",
        f"{_count(exhibit)} are zero that should not be, and {_others(exhibit)} are right",
        1.0,
        f"Look for terms that {exhibit.rule} overwrites where they must add up (an assignment by index, a scatter "
        "without add), or for a mask or an index that leaves them out.",
    )


def leaked(exhibit: Exhibit) -> Diagnosis | None:
    """Some derivatives of an element are not zero where the function does not depend on it, others right."""
    if exhibit.turned or not _mixed(exhibit, _absent(exhibit)):
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


def _mixed(exhibit: Exhibit, zero: Mask) -> bool:
    """Whether just these are wrong, of elements that have other derivatives as well, which are right."""
    off = exhibit.off
    if np.count_nonzero(off) < FEWEST or not zero[off].all():
        return False
    right = exhibit.telling & ~off
    mixed = right[:, off.any(axis=0)].any(axis=0)
    # A few may have no other; a sample may have missed those that are right.
    mostly = 2 * np.count_nonzero(mixed) >= mixed.size if exhibit.complete else mixed.any()
    return bool(np.count_nonzero(right) >= FEWEST and mostly)


def _count(exhibit: Exhibit) -> str:
    return f"{np.count_nonzero(exhibit.off):,} derivatives with respect to {exhibit.input.path}"


def _others(exhibit: Exhibit) -> str:
    return "the others" if exhibit.complete else "the others that were looked at"
