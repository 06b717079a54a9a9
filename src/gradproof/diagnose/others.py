"""Numbers of another input, a term too many, a format too narrow."""

from __future__ import annotations

import numpy as np

from gradproof import precision
from gradproof.diagnose.exhibit import Exhibit, Fit, extent, fit
from gradproof.diagnose.factors import common_ratio
from gradproof.norms import rms
from gradproof.result import Diagnosis

FEWEST = 3


def swapped_inputs(exhibit: Exhibit) -> Diagnosis | None:
    """The numbers of another input of the same size."""
    for leaf, numeric in exhibit.others:
        if leaf.size != exhibit.input.size or leaf.is_complex != exhibit.input.is_complex:
            continue
        found = fit(exhibit, numeric.at(exhibit.rows, exhibit.columns))
        if found is not None and found.wrong >= FEWEST:
            return Diagnosis(
                "swapped-inputs",
                f"{exhibit.subject} holds the numbers that belong to {leaf.path} ({extent(exhibit, found)})",
                found.explained,
                f"Look at the order in which {exhibit.rule} returns its results.",
            )
    return None


def offset(exhibit: Exhibit) -> Diagnosis | None:
    """The same number added to every entry."""
    gap = (exhibit.claimed - exhibit.measured)[exhibit.known]
    if gap.size < 2 * FEWEST or np.ptp(exhibit.measured[exhibit.known]) <= 10 * float(exhibit.slack(np.zeros(1))[0]):
        return None
    found = fit(exhibit, exhibit.measured + float(np.mean(gap)))
    if found is None or found.wrong < 2 * FEWEST:
        return None
    return Diagnosis(
        "offset",
        f"{exhibit.subject} is off by the same {np.mean(gap):.6g} in every entry ({extent(exhibit, found)})",
        found.explained,
        f"Look for a constant that {exhibit.rule} adds: a regulariser, an epsilon, a buffer that was not cleared.",
    )


def extra_term(exhibit: Exhibit) -> Diagnosis | None:
    """A multiple of the input itself added to its derivative, element by element."""
    if exhibit.turned or exhibit.input.shape != exhibit.output.shape or exhibit.input.is_complex:
        return None
    if exhibit.output.is_complex:
        return None
    own = exhibit.rows[:, None] == exhibit.columns
    if (exhibit.wrong & ~own).any():
        return None
    values = np.where(own, exhibit.point[exhibit.columns], 0.0)
    gap = (exhibit.claimed - exhibit.measured)[exhibit.wrong]
    ratio = common_ratio(gap, values[exhibit.wrong])
    if ratio is None:
        return None
    found = fit(exhibit, exhibit.measured + ratio * values)
    if found is None or found.wrong < 2 * FEWEST:
        return None
    return Diagnosis(
        "extra-term",
        f"{exhibit.subject} is off by {ratio:.6g} times {exhibit.input.path} itself ({extent(exhibit, found)})",
        found.explained,
        f"Look for a term in {exhibit.rule} that does not belong there: a penalty, a decay.",
    )


def rounded(exhibit: Exhibit) -> Diagnosis | None:
    """Right to the rounding of a narrower format than that of the leaf."""
    claimed, measured = exhibit.claimed[exhibit.telling], exhibit.measured[exhibit.telling]
    wrong = int(np.count_nonzero(exhibit.wrong))
    if claimed.size < 4 or wrong < 2:
        return None
    format_ = precision.coarsest((exhibit.input, exhibit.output))
    gap = np.abs(claimed - measured) / np.maximum(np.abs(measured), 1e-3 * rms(measured))
    for narrow in (precision.BRAIN, precision.HALF, precision.SINGLE):
        # Numbers that fit the format exactly leave no doubt; a few roundings on the way are granted.
        if narrow.roundoff <= format_.roundoff or not np.array_equal(narrow.round(claimed), claimed):
            continue
        found = Fit(1.0, wrong, int(np.count_nonzero(exhibit.off)))
        if np.max(gap) <= 8 * narrow.roundoff and np.unique(np.abs(claimed)).size >= 4:
            return Diagnosis(
                "precision",
                f"{exhibit.subject} is right to the rounding of {narrow.name}, and every number is one of "
                f"that format: it was computed there ({extent(exhibit, found)})",
                1.0,
                f"Look for a cast to {narrow.name} in {exhibit.rule}; or pass a tolerance= that grants its rounding.",
            )
    return None
