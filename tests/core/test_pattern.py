"""Which inputs share no output."""

from __future__ import annotations

import numpy as np
import pytest

from gradproof.evidence.pattern import pattern_of
from gradproof.program import Array, leaves


def blocks(count: int, side: int) -> Array:
    return np.kron(np.eye(count), np.random.default_rng(1).uniform(1, 2, (side, side)))


def valid(jacobian: Array, groups: np.ndarray) -> bool:
    """No output depends on two inputs of a group."""
    members = np.zeros((groups.max() + 1, groups.size))
    members[groups, np.arange(groups.size)] = 1
    return bool(((jacobian != 0) @ members.T <= 1).all())


def banded(size: int, width: int) -> Array:
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return np.where(distance <= width, 1.0, 0.0)


@pytest.mark.parametrize(
    ("jacobian", "most"),
    [(np.eye(50), 1), (blocks(12, 5), 5), (banded(60, 2), 7), (np.eye(40)[:, ::-1].copy(), 1), (np.zeros((9, 20)), 1)],
    ids=["diagonal", "blocks", "band", "reversed", "zero"],
)
def test_groups_share_no_output(jacobian: Array, most: int) -> None:
    pattern = pattern_of((jacobian.T,), leaves([("x", (jacobian.shape[1],), "float64")]))
    assert pattern is not None
    assert valid(jacobian, pattern.groups)
    assert pattern.count <= most


@pytest.mark.parametrize("jacobian", [np.ones((6, 6)), np.ones((1, 40)), np.tri(30)], ids=["full", "row", "triangle"])
def test_there_is_no_pattern_where_it_would_save_little(jacobian: Array) -> None:
    assert pattern_of((jacobian.T,), leaves([("x", (jacobian.shape[1],), "float64")])) is None


def test_groups_do_not_mix_leaves_and_count_what_any_mode_claims() -> None:
    first, second = np.eye(8, 16), np.eye(8, 16, 8)
    both = leaves([("x", (8,), "float64"), ("y", (8,), "float64")])
    pattern = pattern_of((first.T, second.T), both)
    assert pattern is not None
    assert pattern.count == 2
    assert set(pattern.groups[:8]).isdisjoint(pattern.groups[8:])
    assert valid(first + second, pattern.groups)
