"""The five answers, and which of several speaks for all."""

from __future__ import annotations

import enum
from collections.abc import Sequence


class Verdict(enum.Enum):
    """The answer, ordered by how loudly it must be said (`worst_of` takes the loudest)."""

    RIGHT = "right"
    UNSUPPORTED = "unsupported"
    UNDECIDED = "undecided"
    WRONG = "wrong"
    ERROR = "error"

    def __str__(self) -> str:
        return self.name


LOUDEST_FIRST = tuple(reversed(Verdict))
_LOUDNESS = {verdict: rank for rank, verdict in enumerate(Verdict)}


def worst_of(verdicts: Sequence[Verdict]) -> Verdict:
    if all(verdict is Verdict.RIGHT for verdict in verdicts):  # mostly, and to look up an enum takes longer
        return Verdict.RIGHT
    return max(verdicts, key=_LOUDNESS.__getitem__)
