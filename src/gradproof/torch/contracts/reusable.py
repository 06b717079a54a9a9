"""A rule belongs to one call: another call in between does not change what the first one's backward gives.

What backward needs is kept in ctx. Kept in a global, in the class or on `self`, it is that of the last call.
"""

from __future__ import annotations

from gradproof.program import Spot
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.contracts.pulls import spread
from gradproof.torch.contracts.subject import Subject

HINT = "Keep what backward needs in ctx (ctx.save_for_backward), not in a global, in the class or on self."


def check_reusable(subject: Subject) -> tuple[Finding, ...]:
    """Pull; call the function at another point; pull the first graph again."""
    before, after = subject.gradients, subject.second
    i = subject.first_differing(before, after)
    if i is None or subject.between is None:
        return ()
    if subject.first_differing(after, subject.third) is not None:
        return ()  # never the same: that is another contract's business
    path = subject.program.inputs[i].path
    sentence = (
        f"backward gives another gradient of {path} after the function has been called at another point (they differ "
        f"by up to {spread(before[i], after[i]):.3g}): it uses what a later call left behind"
    )
    return (Finding("reuse", Verdict.WRONG, Place(None, Spot(path)), sentence, HINT),)
