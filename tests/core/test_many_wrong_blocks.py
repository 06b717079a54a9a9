"""One wrong operation in a network makes many blocks wrong: the worst are followed to an entry, the others told."""

from __future__ import annotations

import numpy as np
import pytest
from programs import HandProgram

from gradproof import Result, Settings, Verdict, check_program
from gradproof.program import Array

LEAVES, SIZE = 12, 2_000


def network(wrong: Array) -> HandProgram:
    """A sum of sines over twelve leaves; the claimed gradient is off by `wrong`, relative to the right one."""
    x = np.random.default_rng(3).standard_normal(LEAVES * SIZE)
    gradient = np.cos(x) * (1 + wrong)
    return HandProgram(
        lambda points: np.sin(points).sum(axis=1, keepdims=True),
        gradient[None],
        x,
        input_shapes=((SIZE // 10, 10),) * LEAVES,
        modes=("reverse",),
    )


def all_of(leaves: range) -> Array:
    wrong = np.zeros(LEAVES * SIZE)
    for leaf in leaves:
        wrong[leaf * SIZE : (leaf + 1) * SIZE] = 0.1 * np.random.default_rng(leaf).standard_normal(SIZE)
    return wrong


def run(wrong: Array, **options: object) -> Result:
    return check_program(network(wrong), Settings.validated(seed=1, effort=1, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(("detail", "followed", "evaluations"), [("summary", 3, 1_200), ("verdict", 1, 600)])
def test_the_worst_are_followed_and_the_others_called_wrong(detail: str, followed: int, evaluations: int) -> None:
    result = run(all_of(range(10)), detail=detail)
    assert [c.verdict for c in result.comparisons] == [Verdict.WRONG] * 10 + [Verdict.RIGHT] * 2
    assert sum(bool(c.found) for c in result.comparisons) == followed
    assert sum(c.unfollowed for c in result.comparisons) == 10 - followed
    assert not any(c.unlocated for c in result.comparisons)
    assert result.cost.evaluations <= evaluations
    assert len([f for f in result.findings if f.code == "mismatch"]) == 10


def test_right_everywhere_is_right() -> None:
    assert run(np.zeros(LEAVES * SIZE)).verdict is Verdict.RIGHT


def test_single_entries_of_few_blocks_are_each_found() -> None:
    wrong = np.zeros(LEAVES * SIZE)
    places = [(1, 17), (5, 1_234), (11, 1_999)]
    for leaf, offset in places:
        wrong[leaf * SIZE + offset] = 0.5
    result = run(wrong)
    found = {str(c.worst.place.input) for c in result.comparisons if c.worst is not None}
    assert found == {f"x{leaf}[{offset // 10}, {offset % 10}]" for leaf, offset in places}


def test_a_small_single_entry_is_found_beside_many_wrong_blocks() -> None:
    """A deviation that might be made of many small ones is no proof: its verdict depends on the entry."""
    wrong = all_of(range(10))
    wrong[10 * SIZE + 77] = 5e-5
    comparison = run(wrong).comparisons[10]
    assert comparison.verdict is Verdict.WRONG
    assert comparison.worst is not None
    assert str(comparison.worst.place.input) == "x10[7, 7]"


def test_hints_that_say_the_same_are_one_line_with_names() -> None:
    lines = str(run(all_of(range(10)))).splitlines()
    hints = [line for line in lines if line.strip().startswith("next")]
    assert len(hints) == 2
    assert "and 3 more are wrong" in hints[1]
    assert any(line.strip().startswith("... and 7 more: ") for line in lines)
    assert not any(line.strip().startswith("finding") for line in lines)
