"""Random programs, right and with one rule altered: how often the answer is the right one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch

from bench.table import Claim, Part, Size, Table
from gradproof import Verdict
from tests.random_operations import EVERYTHING, WITHOUT_KINKS
from tests.random_programs import CLEAR, Kind, draw, verdict


@dataclass(frozen=True)
class Campaign:
    name: str
    kind: Kind
    count: int


CAMPAIGNS = (
    Campaign("float64, up to 216 elements", Kind(), 3000),
    Campaign("float64, 2,000 to 40,000 elements", Kind(torch.float64, WITHOUT_KINKS, large=True), 300),
    Campaign("float32, up to 216 elements", Kind(torch.float32), 1000),
    Campaign("bfloat16, up to 216 elements", Kind(torch.bfloat16), 500),
    Campaign("all operations, float64", Kind(torch.float64, EVERYTHING), 500),
    Campaign("all operations, float32", Kind(torch.float32, EVERYTHING), 200),
    Campaign("all operations, float64, second derivatives", Kind(torch.float64, EVERYTHING, order=2), 100),
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
        "one to eight operations at a random point: elementwise, along a dimension, of two values; all operations: "
        "matrices, indices, padding, attention, complex numbers and parameters of modules as well; wrong: one rule on "
        f"the way is altered (of a gradient or of forward mode), and by it at least {CLEAR:g} of the result",
    )
    rights, wrongs = Counter[Verdict](), Counter[Verdict]()
    for campaign in CAMPAIGNS:
        say(f"random programs: {campaign.name}")
        right, wrong = _run(campaign, int(campaign.count * (QUICK if size == "quick" else 1.0)), say)
        answers = (Verdict.RIGHT, Verdict.UNDECIDED, Verdict.WRONG)
        table.add(
            campaign.name,
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


def _run(campaign: Campaign, count: int, say: Callable[[str], None]) -> tuple[Counter[Verdict], Counter[Verdict]]:
    right, wrong = Counter[Verdict](), Counter[Verdict]()
    for seed in range(FIRST, FIRST + count):
        drawn = draw(seed, campaign.kind)
        if drawn is None:
            continue
        found = verdict(drawn.program, drawn, seed)
        right[found] += 1
        if found is not Verdict.RIGHT:
            say(f"{campaign.name}, seed {seed}: {found} for a right program ({drawn.steps})")
        if drawn.gap < CLEAR:
            continue
        found = verdict(drawn.wrong, drawn, seed)
        wrong[found] += 1
        if found is not Verdict.WRONG:
            say(f"{campaign.name}, seed {seed}: {found} for {drawn.mistake} ({drawn.steps})")
    return right, wrong
