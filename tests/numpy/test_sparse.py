"""Sparse Jacobians: every stored entry, and the zeros around them, at any size and in few calls."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import jsonschema
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import gradproof
from bench.scipy import Counted, chain, chain_jac
from gradproof import Verdict
from gradproof.evidence.colouring import grouping_of
from gradproof.numpy import check_problem
from gradproof.program import Stored, leaves
from gradproof.render.html import page
from gradproof.render.json import dumps, loads, schema

N = 100_000
X = np.random.default_rng(0).standard_normal(N)


def changed(row: int, column: int, factor: float) -> Callable[[np.ndarray], Any]:
    """The Jacobian with one stored entry multiplied; by None: not stored at all."""

    def jac(x: np.ndarray) -> Any:
        found = chain_jac(x)
        hit = (found.row == row) & (found.col == column)
        assert hit.sum() == 1
        data = np.where(hit, factor * found.data, found.data)
        kept = ~hit if factor == 0.0 else slice(None)
        return sp.coo_matrix((data[kept], (found.row[kept], found.col[kept])), shape=found.shape)

    return jac


def check(fn: Any, jac: Any, x: Any = X, **options: Any) -> gradproof.Result:
    return gradproof.check(fn, x, derivative={"jac": jac}, **{"seed": 1, **options})


def places(result: gradproof.Result) -> set[str]:
    return {str(entry.place) for block in result.comparisons for entry in block.found}


def test_a_tridiagonal_jacobian_of_100_000_unknowns_takes_at_most_30_calls() -> None:
    fn, jac = Counted(chain), Counted(chain_jac)
    tracemalloc.start()
    result = check(fn, jac)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.verdict is Verdict.RIGHT
    assert fn.calls <= 30
    assert jac.calls <= 3  # once, and for the contracts at another point and again
    assert peak < 300e6  # the dense one would take 80 GB
    (block,) = result.comparisons
    assert block.scope == "pattern"
    assert block.entries == N * N
    assert block.numeric.size == 3 * N - 2
    assert (np.abs(block.analytic - block.numeric) <= block.bar).all()
    assert (block.bar <= block.tolerance).all()
    assert result.power is not None
    assert result.power.relative < 1e-4


def test_an_operator_s_matrix_is_read_off_it_and_its_columns_move_together() -> None:
    x = X[:300]
    fn = Counted(chain)
    result = check(fn, lambda x: aslinearoperator(chain_jac(x).tocsr()), x)
    assert result.verdict is Verdict.RIGHT
    assert fn.calls <= 16
    result = check(chain, lambda x: aslinearoperator(changed(150, 149, 0.0)(x).tocsr()), x)
    assert result.verdict is Verdict.WRONG
    assert places(result) == {"d out[150] / d args[0][149]"}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (499, 500), (19_999, 19_998)])
@pytest.mark.parametrize("factor", [1.01, 0.0])
def test_one_wrong_or_missing_entry_is_found(row: int, column: int, factor: float, seed: int) -> None:
    result = check(chain, changed(row, column, factor), X[:20_000], seed=seed)
    assert result.verdict is Verdict.WRONG
    assert places(result) == {f"d out[{row}] / d args[0][{column}]"}
    (block,) = result.comparisons
    assert block.wrong == 1
    true = chain_jac(X[:20_000]).tocsr()[row, column]
    assert block.found[0].analytic == pytest.approx(factor * true)
    assert block.found[0].numeric == pytest.approx(true, rel=1e-6)


@pytest.mark.parametrize("size", [0.5, 1e-3])
def test_dependencies_far_outside_of_the_pattern_are_found(size: float) -> None:
    def fn(x: np.ndarray) -> np.ndarray:
        y = chain(x)
        y[123] += size * x[99_000]
        y[40_000] -= size * x[3]
        return y

    result = check(fn, chain_jac)
    assert places(result) == {"d out[123] / d args[0][99000]", "d out[40000] / d args[0][3]"}


def test_several_dependencies_of_one_output_do_not_hide_each_other() -> None:
    def fn(x: np.ndarray) -> np.ndarray:
        y = chain(x)
        y[123] += x[99_000] + 0.5 * x[60_000] - 0.3 * x[30_003]
        return y

    result = check(fn, chain_jac)
    assert result.verdict is Verdict.WRONG
    assert places(result) <= {f"d out[123] / d args[0][{k}]" for k in (99_000, 60_000, 30_003)}
    assert places(result)


def test_a_jacobian_that_is_wrong_everywhere() -> None:
    result = check(chain, lambda x: 2 * chain_jac(x), X[:5000])
    (block,) = result.comparisons
    assert block.wrong > 0.99 * (3 * 5000 - 2)
    assert {finding.diagnosis.code for finding in result.wrong if finding.diagnosis} == {"factor"}


def test_a_stored_entry_that_should_be_zero() -> None:
    def jac(x: np.ndarray) -> Any:
        return (chain_jac(x) + sp.coo_matrix(([0.01], ([7], [9])), shape=(N, N))).tocoo()

    assert places(check(chain, jac)) == {"d out[7] / d args[0][9]"}


def test_entries_that_are_stored_twice_add_up() -> None:
    def jac(x: np.ndarray) -> Any:
        half = chain_jac(x)
        row, col = np.tile(half.row, 2), np.tile(half.col, 2)
        return sp.coo_matrix((np.tile(half.data / 2, 2), (row, col)), shape=(N, N))

    assert check(chain, jac).verdict is Verdict.RIGHT


def grid(x: np.ndarray) -> np.ndarray:
    """The five-point Laplacian of x^3 on a square."""
    side = int(np.sqrt(x.size))
    u = x.reshape(side, side) ** 3
    y = 4 * u
    y[1:] -= u[:-1]
    y[:-1] -= u[1:]
    y[:, 1:] -= u[:, :-1]
    y[:, :-1] -= u[:, 1:]
    return y.ravel()


def grid_jac(x: np.ndarray) -> Any:
    side = int(np.sqrt(x.size))
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(side, side))
    return ((sp.kron(sp.eye(side), line) + sp.kron(line, sp.eye(side))) @ sp.diags(3 * x**2)).tocsr()


def test_patterns_without_a_band() -> None:
    x = X[:10_000]
    right = check(grid, grid_jac, x)
    assert right.verdict is Verdict.RIGHT
    assert right.cost.evaluations <= 30
    # The same in another order of unknowns and equations.
    rows, columns = (np.random.default_rng(k).permutation(x.size) for k in (1, 2))
    back = np.argsort(columns)

    def fn(x: np.ndarray) -> np.ndarray:
        return grid(x[back])[rows]

    def jac(x: np.ndarray) -> Any:
        return grid_jac(x[back])[rows][:, columns]

    mixed = check(fn, jac, x[columns])
    assert mixed.verdict is Verdict.RIGHT
    assert mixed.cost.evaluations <= 60
    entry = int(jac(x[columns])[77].indices[0])

    def spoiled(x: np.ndarray) -> Any:
        found = jac(x).tolil()
        found[77, entry] *= 1.1
        return found

    assert places(check(fn, spoiled, x[columns])) == {f"d out[77] / d args[0][{entry}]"}


def test_blocks_of_several_leaves_keep_their_own_scales() -> None:
    n = 2000
    point = {"a": X[:n], "b": 1e6 * X[n : 2 * n]}

    def fn(p: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return p["a"] * p["b"], 1e-9 * p["b"] ** 2

    def jac(p: dict[str, np.ndarray]) -> Any:
        first = {"a": sp.diags(p["b"]), "b": sp.diags(p["a"])}
        return first, {"a": None, "b": sp.diags(2e-9 * p["b"])}

    def wrong(p: dict[str, np.ndarray]) -> Any:
        first, second = jac(p)
        data = 2e-9 * p["b"]
        data[11] *= 1.05
        return first, {**second, "b": sp.diags(data)}

    assert check(fn, jac, (point,)).verdict is Verdict.RIGHT
    assert places(check(fn, wrong, (point,))) == {"d out[1][11] / d args[0]['b'][11]"}


def test_complex_entries() -> None:
    z = X[:2000] + 1j * X[2000:4000]
    assert check(lambda z: z**2, lambda z: sp.diags(2 * z), z).verdict is Verdict.RIGHT
    wrong = check(lambda z: z**2, lambda z: sp.diags(2 * np.where(np.arange(2000) == 5, z.conj(), z)), z)
    assert {entry.place.input.index for block in wrong.comparisons for entry in block.found} == {(5,)}


def test_a_kink_is_no_mistake_and_a_wrong_slope_beside_it_is() -> None:
    x = X.copy()
    x[50] = 0.0
    everywhere = np.arange(N)

    def jac(at_kink: float) -> Any:
        slopes = np.where(everywhere == 50, at_kink, np.sign(x))
        return sp.coo_matrix((slopes, (everywhere, everywhere)), shape=(N, N))

    right = check(np.abs, jac(0.0), x)
    assert right.verdict is Verdict.RIGHT
    assert {finding.code for finding in right.findings} == {"kink"}
    assert check(np.abs, sp.diags(np.sign(x)), x).verdict is Verdict.RIGHT  # zero need not be stored
    assert places(check(np.abs, jac(1.5), x)) == {"d out[50] / d args[0][50]"}


@pytest.mark.parametrize("seed", range(4))
def test_kinks_that_add_up_in_one_output_hide_nothing(seed: int) -> None:
    """Moved together they may look like a slope; zero is a derivative of each of them."""
    n, kinks = 3000, [100, 200, 300]
    x = X[:n].copy()
    x[kinks] = 0.0

    def fn(x: np.ndarray) -> np.ndarray:
        y = np.sin(x)
        y[5] += np.sum(np.maximum(x[kinks], 0.0))
        return y

    def more(x: np.ndarray) -> np.ndarray:
        y = fn(x)
        y[5] += 0.3 * x[700]
        return y

    def jac(x: np.ndarray) -> Any:
        return sp.diags(np.cos(x))

    assert check(fn, jac, x, seed=seed).verdict is Verdict.RIGHT
    assert places(check(more, jac, x, seed=seed)) == {"d out[5] / d args[0][700]"}


def test_a_sparse_hessian() -> None:
    n, x = 20_000, X[:20_000]

    def hess(x: np.ndarray) -> Any:
        middle = 12 * x**2 + 2.0
        return sp.diags([np.full(n - 1, -1.0), middle, np.full(n - 1, -1.0)], [-1, 0, 1])

    def fn(x: np.ndarray) -> float:
        return float(np.sum(x**4) + np.sum(x**2) - np.sum(x[1:] * x[:-1]))

    def jac(x: np.ndarray) -> np.ndarray:
        g = 4 * x**3 + 2 * x
        g[1:] -= x[:-1]
        g[:-1] -= x[1:]
        return g

    right = check_problem(fn, x, jac=jac, hess=hess, seed=1)
    assert right.verdict is Verdict.RIGHT
    assert {block.scope for block in right.comparisons} == {"probes", "pattern"}

    def wrong(x: np.ndarray) -> Any:
        return hess(x) + sp.coo_matrix(([0.1], ([5], [6])), shape=(n, n))

    assert places(check_problem(fn, x, jac=jac, hess=wrong, seed=1)) == {"d grad(args[0])[5] / d args[0][6]"}


def test_a_full_row_is_probed_instead() -> None:
    n = 3000

    def fn(x: np.ndarray) -> np.ndarray:
        y = np.sin(x)
        y[0] = np.sum(x**2)
        return y

    def jac(x: np.ndarray) -> Any:
        found = sp.diags(np.cos(x)).tolil()
        found[0] = 2 * x
        return found.tocsr()

    result = check(fn, jac, X[:n])
    assert result.ok
    assert {block.scope for block in result.comparisons} == {"probes"}


def test_a_budget_that_is_too_small_is_probed_instead() -> None:
    assert {block.scope for block in check(chain, chain_jac, budget=7).comparisons} <= {"probes"}


def valid(stored: Stored, groups: np.ndarray) -> bool:
    """No output has two entries in one group."""
    pairs = stored.outputs * (int(groups.max()) + 1) + groups[stored.inputs]
    return np.unique(pairs).size == pairs.size


@pytest.mark.parametrize("density", [0.001, 0.01, 0.05])
def test_groups_share_no_output(density: float) -> None:
    found = sp.random(300, 500, density=density, random_state=1, format="coo")
    stored = Stored(found.row.astype(np.intp), found.col.astype(np.intp), found.data)
    grouping = grouping_of(stored, leaves([("a", (200,), "float64"), ("b", (300,), "float64")]))
    assert grouping is not None
    assert valid(stored, grouping.groups)
    assert grouping.count == grouping.groups.max() + 1
    assert set(grouping.groups[:200]).isdisjoint(grouping.groups[200:])


def test_an_empty_pattern_is_one_group() -> None:
    none = np.zeros(0, np.intp)
    grouping = grouping_of(Stored(none, none, np.zeros(0)), leaves([("x", (9,), "float64")]))
    assert grouping is not None
    assert grouping.count == 1
    nothing = sp.coo_matrix((5000, 5000))
    empty = check(np.ones_like, nothing, X[:5000])
    assert empty.verdict is Verdict.RIGHT
    assert {finding.code for finding in empty.findings} == {"vacuous"}
    assert check(np.sin, nothing, X[:5000]).verdict is Verdict.WRONG
    unclear = check(lambda x: 1e-3 * np.sin(1e13 * x), nothing, X[:5000])
    assert unclear.verdict is Verdict.UNDECIDED
    assert "what is not stored should be zero" in unclear.findings[0].sentence


@pytest.mark.parametrize(
    ("fn", "slope", "x"),
    [
        (lambda x: x**3, lambda x: 3 * x**2, np.zeros(1000)),
        (lambda x: np.where(x == X[5], 1e12, np.sin(x)), lambda x: np.where(x == X[5], 0.0, np.cos(x)), X[:1000]),
    ],
    ids=["flat", "large and constant"],
)
def test_zeros_that_no_difference_resolves_are_right_where_nothing_of_importance_happens(
    fn: Any, slope: Any, x: np.ndarray
) -> None:
    at = np.arange(1000) == 5
    still = np.where(at, fn(x), 0.0)

    def moved(by: float) -> Callable[[np.ndarray], np.ndarray]:
        return lambda y: np.where(at, still + by * (y - x), fn(y))

    def jac(y: np.ndarray) -> Any:
        return sp.diags(np.where(at, 0.0, slope(y))).tocsr()

    assert check(moved(0.0), jac, x).verdict is Verdict.RIGHT
    wrong = check(moved(1e6), jac, x)
    assert (wrong.verdict, places(wrong)) == (Verdict.WRONG, {"d out[5] / d args[0][5]"})


@pytest.mark.parametrize("seed", range(3))
def test_treads_that_slope_are_not_called_wrong(seed: int) -> None:
    """As of a solver that stops at a tolerance and was started from its argument: one look may end on a tread."""
    x = np.random.default_rng(seed).standard_normal(1000)

    def fn(x: np.ndarray) -> np.ndarray:
        return np.sin(x) + 1e-9 * np.modf(1e8 * x)[0]

    assert check(fn, lambda x: sp.diags(np.cos(x)).tocsr(), x).verdict is not Verdict.WRONG
    assert check(fn, lambda x: sp.diags(1.5 * np.cos(x)).tocsr(), x).verdict is Verdict.WRONG


def test_a_pattern_in_reports() -> None:
    results = tuple(
        check(chain, jac, X[:3000], detail="plots") for jac in (chain_jac, changed(499, 500, 1.5))
    )  # fmt: skip
    report = gradproof.Report(results)
    written = dumps(report)
    defined = {**schema()["$defs"]["comparison"], "$defs": schema()["$defs"]}
    for result in json.loads(written)["results"]:
        for comparison in result["comparisons"]:
            jsonschema.validate(comparison, defined)
    assert [result.comparisons[0].scope for result in loads(written).results] == ["pattern", "pattern"]
    assert "stored entries and zeros of 9,000,000 entries" in page(report)
