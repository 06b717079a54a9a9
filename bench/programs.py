"""Random programs, right and with one rule altered: how often the answer is the right one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch

from bench.table import Claim, Part, Size, Table
from gradproof import Verdict
from tests.random_programs import CLEAR, draw, verdict


@dataclass(frozen=True)
class Kind:
    name: str
    dtype: torch.dtype
    large: bool
    kinks: bool
    count: int


KINDS = (
    Kind("float64, up to 216 elements", torch.float64, large=False, kinks=True, count=3000),
    Kind("float64, 2,000 to 40,000 elements", torch.float64, large=True, kinks=False, count=300),
    Kind("float32, up to 216 elements", torch.float32, large=False, kinks=True, count=1000),
    Kind("bfloat16, up to 216 elements", torch.bfloat16, large=False, kinks=True, count=500),
)
# Those below are for finding mistakes: no change was made with these in view.
FIRST = 30_000
# A quick run has this share of them.
QUICK = 0.05
# What may stay open.
UNDECIDED = 0.01


def run(size: Size, say: Callable[[str], None]) -> Part:
    table = Table(
        "Random programs",
        ("kind", "right", "RIGHT", "UNDECIDED", "WRONG", "wrong", "WRONG", "UNDECIDED", "RIGHT"),
        "one to eight operations at a random point; wrong: one gradient on the way is altered, and by it at least "
        f"{CLEAR:g} of the result",
    )
    rights, wrongs = Counter[Verdict](), Counter[Verdict]()
    for kind in KINDS:
        say(f"random programs: {kind.name}")
        right, wrong = _campaign(kind, int(kind.count * (QUICK if size == "quick" else 1.0)), say)
        answers = (Verdict.RIGHT, Verdict.UNDECIDED, Verdict.WRONG)
        table.add(
            kind.name,
            right.total(),
            *(right[one] for one in answers),
            wrong.total(),
            *(wrong[one] for one in answers[::-1]),
        )
        rights, wrongs = rights + right, wrongs + wrong
    alarms, missed = rights[Verdict.WRONG], wrongs[Verdict.RIGHT]
    share = rights[Verdict.UNDECIDED] / max(rights.total(), 1)
    return Part(
        [table],
        [
            Claim(
                f"{rights.total():,} right random programs, of seeds that no change was made for: false alarms",
                "0",
                str(alarms),
                alarms == 0,
            ),
            Claim("the same: UNDECIDED", f"≤ {UNDECIDED:.0%}", f"{share:.2%}", share <= UNDECIDED),
            Claim(f"{wrongs.total():,} of them with one rule altered: called RIGHT", "0", str(missed), missed == 0),
        ],
    )


def _campaign(kind: Kind, count: int, say: Callable[[str], None]) -> tuple[Counter[Verdict], Counter[Verdict]]:
    right, wrong = Counter[Verdict](), Counter[Verdict]()
    for seed in range(FIRST, FIRST + count):
        drawn = draw(seed, kind.dtype, large=kind.large, kinks=kind.kinks)
        if drawn is None:
            continue
        found = verdict(drawn.program, drawn, seed)
        right[found] += 1
        if found is not Verdict.RIGHT:
            say(f"{kind.name}, seed {seed}: {found} for a right program ({drawn.program})")
        if drawn.gap < CLEAR:
            continue
        found = verdict(drawn.wrong, drawn, seed)
        wrong[found] += 1
        if found is not Verdict.WRONG:
            say(f"{kind.name}, seed {seed}: {found} for {drawn.mistake} ({drawn.program})")
    return right, wrong
