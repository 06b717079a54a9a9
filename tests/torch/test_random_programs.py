"""A sample of what `python -m bench programs` does at length."""

from __future__ import annotations

import pytest
import torch

from gradproof import Verdict
from tests.random_operations import EVERYTHING, WITHOUT_KINKS
from tests.random_programs import CLEAR, Kind, draw, verdict


@pytest.mark.parametrize(
    ("kind", "seeds"),
    [
        *((Kind(), range(first, first + 10)) for first in range(0, 60, 10)),
        *((Kind(torch.float32), range(first, first + 10)) for first in range(0, 20, 10)),
        (Kind(torch.bfloat16), range(10)),
        (Kind(torch.float64, WITHOUT_KINKS, large=True), range(6)),
        *((Kind(torch.float64, EVERYTHING), range(first, first + 10)) for first in range(0, 30, 10)),
        (Kind(torch.float32, EVERYTHING), range(10)),
        (Kind(torch.float64, EVERYTHING, order=2), range(10)),
    ],
)
def test_right_and_wrong_random_programs_are_told_apart(kind: Kind, seeds: range) -> None:
    wrong = 0
    for seed in seeds:
        drawn = draw(seed, kind)
        if drawn is None:
            continue
        assert verdict(drawn.program, drawn, seed) is Verdict.RIGHT, (seed, drawn.steps)
        if drawn.gap >= CLEAR:
            wrong += 1
            assert verdict(drawn.wrong, drawn, seed) is Verdict.WRONG, (seed, drawn.mistake, drawn.steps)
    assert wrong > len(seeds) // 4


def test_the_same_seed_draws_the_same_program() -> None:
    one, other = draw(7, Kind(operations=EVERYTHING)), draw(7, Kind(operations=EVERYTHING))
    assert one is not None
    assert other is not None
    assert (one.steps, one.mistake) == (other.steps, other.mistake)
    assert all(torch.equal(x, y) for x, y in zip(one.args, other.args, strict=True))
    assert one.gap == other.gap


# 467: a saturated value that falls off to nothing; 22148: waves between the steps; 22730: an output that is exactly
# zero because its terms cancel.
@pytest.mark.parametrize("seed", [467, 22148, 22730])
def test_programs_that_were_judged_wrongly_once(seed: int) -> None:
    drawn = draw(seed)
    assert drawn is not None
    assert verdict(drawn.program, drawn, seed) is Verdict.RIGHT, drawn.steps
    if drawn.gap >= CLEAR:
        assert verdict(drawn.wrong, drawn, seed) is Verdict.WRONG, drawn.mistake
