"""The recognisers in order, the most specific first; the first that explains the numbers is believed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gradproof.diagnose import factors, hessian, moved, others, parts, sums, symmetry, terms
from gradproof.diagnose.exhibit import Exhibit
from gradproof.result import Comparison, Diagnosis, Verdict

Recogniser = Callable[[Exhibit], Diagnosis | None]


def _sideways(recogniser: Recogniser) -> Recogniser:
    """The same of the output's index."""
    return lambda exhibit: recogniser(exhibit.sideways())


RECOGNISERS: tuple[Recogniser, ...] = (
    factors.detached,
    factors.factor,
    factors.conjugate,
    factors.complex_part,
    hessian.halved,
    others.swapped_inputs,
    moved.moved,
    moved.transposed_jacobian,
    symmetry.symmetric_input,
    sums.wrong_axis,  # of ones, such as a bias, the sum of a transposed cotangent is the same
    _sideways(moved.moved),
    sums.one_of_batch,
    moved.permuted,
    _sideways(moved.permuted),
    sums.mean_kept,
    sums.mean_removed,
    others.offset,
    others.extra_term,
    others.rounded,
    terms.through_one_number,
    parts.part,
    terms.dropped,
    terms.leaked,
    factors.same_factor,
)


def _region(exhibit: Exhibit) -> Diagnosis | None:
    """No single elements: others beside them may be wrong that are lost in the noise."""
    found = parts.part(exhibit)
    return None if found is None or found.code.endswith("entry") else found


# Those that need few digits.
PLAIN: tuple[Recogniser, ...] = (
    factors.detached,
    factors.factor,
    factors.conjugate,
    others.swapped_inputs,
    moved.moved,
    moved.transposed_jacobian,
    _sideways(moved.moved),
    _region,
)


def recognise(exhibit: Exhibit) -> Diagnosis | None:
    """What kind of mistake it is, if one explains the numbers."""
    if not exhibit.wrong.any():
        return None
    with np.errstate(all="ignore"):
        for recogniser in PLAIN if exhibit.blur else RECOGNISERS:
            found = recogniser(exhibit)
            if found is not None:
                noise = f"; differences are only known to ±{exhibit.blur:.2g} here" if exhibit.blur else ""
                return replace(found, sentence=found.sentence + noise)
    return None


def blamed(
    diagnosis: Diagnosis | None, comparison: Comparison, all_of_them: tuple[Comparison, ...]
) -> Diagnosis | None:
    """Add which side is to blame, where the other mode was compared too and is right."""
    rivals = [
        c for c in all_of_them if c.mode != comparison.mode and (c.order, c.output, c.input) == _block(comparison)
    ]
    if not rivals or any(c.verdict is not Verdict.RIGHT for c in rivals):
        return diagnosis
    other = rivals[0].mode
    remark = f"{other} mode is right here, so the {comparison.mode} rule is to blame"
    if diagnosis is not None:
        return replace(diagnosis, sentence=f"{diagnosis.sentence}; {remark}")
    return Diagnosis(
        f"{comparison.mode}-only",
        remark,
        1.0,
        f"Compare the {comparison.mode} rule with the {other} rule, term by term.",
    )


def _block(comparison: Comparison) -> tuple[object, object, object]:
    return comparison.order, comparison.output, comparison.input
