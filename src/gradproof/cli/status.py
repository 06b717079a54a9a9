"""Verdicts into exit statuses."""

from __future__ import annotations

from gradproof.render.text import was_skipped
from gradproof.result import Report, Verdict

RIGHT, WRONG, USAGE, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130
STATUS = {
    Verdict.RIGHT: RIGHT,
    Verdict.WRONG: WRONG,
    Verdict.ERROR: WRONG,
    Verdict.UNDECIDED: UNDECIDED,
    Verdict.UNSUPPORTED: UNDECIDED,
}


def status(report: Report) -> int:
    """0 right, 1 wrong or an error, 3 undecided. A case that was skipped on purpose does not count beside others."""
    return STATUS[Report(tuple(result for result in report.results if not was_skipped(result))).verdict]
