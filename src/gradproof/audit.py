"""Would a wrong gradient have passed? Judge mutants of the analytic gradient against the same evidence."""

from __future__ import annotations

import numpy as np

from gradproof.program import Spot
from gradproof.result import Comparison, Finding, Place, Verdict

MUTANTS = (("zeroed", 0.0), ("negated", -1.0), ("doubled", 2.0), ("1 % larger", 1.01))


def survivors(comparison: Comparison) -> tuple[str, ...]:
    """The mutants of this block that would not be called wrong."""
    if _telling(comparison):
        return ()
    if not comparison.analytic.any():
        return tuple(name for name, _ in MUTANTS)  # they are all the same, and that passed
    with np.errstate(invalid="ignore", over="ignore"):
        slack = comparison.tolerance + comparison.bar
        if comparison.spread is not None:
            slack = slack + comparison.spread
        return tuple(
            name
            for name, factor in MUTANTS
            if not (np.abs(factor * comparison.analytic - comparison.numeric) > slack).any()
        )


def _telling(comparison: Comparison) -> bool:
    """Where an entry is a hundred times its slack, every mutant moves it beyond. In most blocks the largest is, and so
    are most sums."""
    top = comparison.strongest
    if top is not None:
        return abs(top.analytic) * 0.01 > top.tolerance + top.bar + abs(top.analytic - top.numeric)
    if comparison.scope != "probes" or comparison.spread is not None:
        return False
    slack = comparison.tolerance + comparison.bar + comparison.deviation
    return bool((np.abs(comparison.analytic) * 0.01 > slack).any())


def audit(comparisons: tuple[Comparison, ...]) -> tuple[Finding, ...]:
    """One finding for each input whose derivatives prove nothing, in all blocks of it that were judged right. Where
    another block of it is wrong, the check has proved something."""
    findings = []
    caught = {comparison.input.path for comparison in comparisons if comparison.verdict is Verdict.WRONG}
    for path in dict.fromkeys(c.input.path for c in comparisons if c.input.path not in caught):
        blocks = [c for c in comparisons if c.input.path == path and c.verdict is Verdict.RIGHT and c.entries]
        if not blocks or any(map(_telling, blocks)):
            continue
        passing = [survivors(block) for block in blocks]
        if not all(passing):
            continue
        common = [name for name, _ in MUTANTS if all(name in names for names in passing)]
        if common:
            # Nobody passed the cotangent of a gradient; the derivative with respect to it is the first one.
            own = not path.startswith("cotangent(")
            rounding = any(block.numeric.any() or block.analytic.any() for block in blocks)
            zero = ", whose derivative is zero within rounding" if all(b.vanishes for b in blocks) and rounding else ""
            findings.append(
                Finding(
                    "vacuous",
                    Verdict.RIGHT,
                    Place(None, Spot(path)) if own else Place(),
                    f"this check proves little about {path if own else 'the first derivative'}{zero}: a "
                    f"{' or '.join(filter(None, [', '.join(common[:-1]), common[-1]]))} gradient would have passed too",
                    "Choose a point where the derivative is not zero, or a narrower tolerance=.",
                )
            )
    return tuple(findings)
