"""Recognisers on matrices: the right name for each mistake, none for a near miss, none for a coincidence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradproof.diagnose.exhibit import Exhibit
from gradproof.diagnose.recognise import blamed, recognise
from gradproof.diagnose.sight import Line, Rows, Whole, some_columns
from gradproof.norms import rms
from gradproof.program import Array, Leaf
from gradproof.result import Comparison, Diagnosis, Table, Verdict
from gradproof.settings import Tolerance

Shape = tuple[int, ...]
GRID: Shape = (4, 5)


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def exhibit(
    analytic: Array, numeric: Array, output: Shape, input: Shape, dtype: str = "float64", **more: object
) -> Exhibit:
    out, leaf = Leaf("out", output, dtype, 0), Leaf("args[0]", input, dtype, 0)
    return Exhibit(
        out,
        leaf,
        np.arange(out.size),
        np.arange(leaf.size),
        Whole(np.asarray(analytic, float)),
        Whole(np.asarray(numeric, float)),
        Tolerance(1e-5),
        rms(np.nan_to_num(numeric)),
        more.pop("point", draw(leaf.size, seed=9)),  # type: ignore[arg-type]
        more.pop("value", draw(out.size, seed=8)),  # type: ignore[arg-type]
        **more,  # type: ignore[arg-type]
    )


def code(analytic: Array, numeric: Array, output: Shape, input: Shape, **more: object) -> str | None:
    found = recognise(exhibit(analytic, numeric, output, input, **more))  # type: ignore[arg-type]
    if found is not None:
        assert 0.99 <= found.explained <= 1.0
        assert found.hint
    return found.code if found else None


def dense(output: Shape, input: Shape, seed: int = 0) -> Array:
    return draw(int(np.prod(output)), int(np.prod(input)), seed=seed)


def columns_by(change: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """The gradient (every row, in the shape of the input) changed."""
    return lambda jacobian: np.stack([change(row.reshape(GRID)).ravel() for row in jacobian])


def slid(row: Array) -> Array:
    result = np.zeros_like(row)
    result[:, 1:] = row[:, :-1]
    return result


def scaled_where(chosen: Callable[[Array], Array], factor: float) -> Callable[[Array], Array]:
    def change(row: Array) -> Array:
        row = row.copy()
        row[chosen(row)] *= factor
        return row

    return columns_by(change)


def index(*places: int | slice) -> Callable[[Array], Array]:
    def chosen(row: Array) -> Array:
        mask = np.zeros(row.shape, dtype=bool)
        mask[places] = True
        return mask

    return chosen


MISTAKES: list[tuple[str, Callable[[Array], Array]]] = [
    ("detached", np.zeros_like),
    ("factor", lambda j: -j),
    ("factor", lambda j: 2 * j),
    ("factor", lambda j: j / 4),
    ("factor", lambda j: 1.01 * j),
    ("shifted", columns_by(lambda g: np.roll(g, 1, -1))),
    ("shifted", columns_by(lambda g: np.roll(g, -1, 0))),
    ("shifted", columns_by(slid)),
    ("permuted", columns_by(lambda g: np.flip(g, 0))),
    ("permuted", columns_by(lambda g: g.ravel()[np.random.default_rng(3).permutation(20)])),
    ("permuted", columns_by(lambda g: g.ravel()[[1, 0, *range(2, 20)]])),
    ("permuted", columns_by(lambda g: g.ravel(order="F"))),
    ("mean-removed", columns_by(lambda g: g - g.mean())),
    ("mean-removed", columns_by(lambda g: g - g.mean(0))),
    ("offset", lambda j: j + 0.25),
    ("entry", scaled_where(index(2, 3), 1.05)),
    ("entry", scaled_where(index(0, slice(0, 2)), 0.0)),
    ("slice", scaled_where(index(1), 1.1)),
    ("slice", scaled_where(index(slice(None), 4), 0.0)),
    ("block", scaled_where(index(slice(1, 3), slice(1, 4)), -1.0)),
    ("output-entry", lambda j: np.vstack([j[:1] + draw(1, 20, seed=4), j[1:]])),
    ("output-slice", lambda j: np.vstack([1.5 * j[:6], j[6:]])),
    ("one-of-batch", lambda j: np.vstack([j.reshape(3, 6, 20).sum(0), np.zeros((12, 20))])),
    ("precision", lambda j: j.astype(np.float16).astype(float)),
]


@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_a_mistake_is_named(name: str, mistake: Callable[[Array], Array]) -> None:
    """A dense Jacobian of an output (3, 6) and an input (4, 5)."""
    numeric = dense((3, 6), GRID)
    assert code(mistake(numeric), numeric, (3, 6), GRID) == name


@pytest.mark.parametrize(("name", "mistake"), [m for m in MISTAKES if m[0] != "detached"])
def test_a_near_miss_is_not(name: str, mistake: Callable[[Array], Array]) -> None:
    """The same mistake with 3 % noise on top of every entry: no name explains that."""
    numeric = dense((3, 6), GRID)
    noise = 1.0 + 0.03 * draw(*numeric.shape, seed=5)
    assert code(mistake(numeric) * noise + 0.03 * draw(*numeric.shape, seed=6), numeric, (3, 6), GRID) is None


@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_the_same_from_a_few_rows_and_columns(name: str, mistake: Callable[[Array], Array]) -> None:
    """Analytic rows and numeric columns are all that is known; the probe of the rest is told by the whole."""
    numeric = dense((3, 6), GRID)
    analytic = mistake(numeric)
    full = exhibit(analytic, numeric, (3, 6), GRID)
    wrong = full.wrong

    def agrees(rows: Array, columns: Array) -> bool:
        return not wrong[~rows][:, ~columns].any()

    some = np.unique(np.concatenate([np.flatnonzero(wrong.any(axis=0))[:6], np.arange(20)[np.arange(20) % 5 != 2]]))
    rows = np.unique(np.concatenate([np.flatnonzero(wrong.any(axis=1))[:3], np.arange(18)[np.arange(18) % 6 != 4]]))
    part = Exhibit(
        full.output,
        full.input,
        rows,
        some,
        Rows({int(r): Line.of(analytic[r]) for r in rows}),
        some_columns({int(c): Line.of(numeric[:, c]) for c in some}),
        full.tolerance,
        full.scale,
        full.point,
        full.value,
        agrees_without=agrees,
    )
    found = recognise(part)
    general = {"mean-removed", "permuted", "shifted", "block"}  # of these a sample may show too little
    assert (found.code if found else None) in ({name, None} if name in general else {name})


@pytest.mark.parametrize("square", [(4, 4), (3, 5, 5)])
def test_a_transposed_gradient(square: Shape) -> None:
    numeric = dense((7,), square)
    analytic = np.stack([np.swapaxes(row.reshape(square), -1, -2).ravel() for row in numeric])
    assert code(analytic, numeric, (7,), square) == "transposed"
    assert code(analytic.T, numeric.T, square, (7,)) == "transposed"  # the cotangent is


def test_a_transposed_jacobian_and_one_that_is_symmetric() -> None:
    numeric = dense((6,), (6,))
    assert code(numeric.T, numeric, (6,), (6,)) == "transposed"
    symmetric = numeric + numeric.T
    assert code(symmetric + 0.1 * draw(6, 6, seed=2), symmetric, (6,), (6,)) is None


def test_a_mean_for_a_sum_over_a_broadcast_axis() -> None:
    """out[b, j] = x[b, j] * row[j]: every element of the row meets four outputs."""
    numeric = np.zeros((4, 5, 5))
    numeric[:, np.arange(5), np.arange(5)] = draw(4, 5)
    numeric = numeric.reshape(20, 5)
    assert code(numeric / 4, numeric, (4, 5), (5,)) == "mean-for-sum"
    assert code(numeric / 5, numeric, (4, 5), (5,)) == "factor"
    assert code(numeric / 3.3, numeric, (4, 5), (5,)) == "factor"
    assert code(np.where(np.arange(20)[:, None] < 5, numeric, 0), numeric, (4, 5), (5,)) == "sum-missing"


def test_a_sum_over_the_wrong_axis() -> None:
    x = draw(4, 4)
    right, wrong = np.zeros((4, 4, 4)), np.zeros((4, 4, 4))
    for i in range(4):
        for j in range(4):
            right[i, j, j], wrong[i, j, i] = x[i, j], x[i, j]
    assert code(wrong.reshape(16, 4), right.reshape(16, 4), (4, 4), (4,)) == "wrong-axis"
    wrong[0, 1, 3] += 0.1
    assert code(wrong.reshape(16, 4), right.reshape(16, 4), (4, 4), (4,)) is None


def test_values_of_one_batch_element_for_all() -> None:
    """out[b] = f(x[b]): the Jacobian is a block for each b, and all blocks are the first."""
    numeric, analytic = np.zeros((3, 4, 3, 4)), np.zeros((3, 4, 3, 4))
    for b in range(3):
        numeric[b, :, b], analytic[b, :, b] = draw(4, 4, seed=b), draw(4, 4, seed=0)
    assert code(analytic.reshape(12, 12), numeric.reshape(12, 12), (3, 4), (3, 4)) == "one-of-batch"


def test_a_mean_that_should_have_been_taken_off() -> None:
    right = dense((6,), GRID).reshape(6, *GRID)
    right -= right.mean(-1, keepdims=True)
    wrong = right + draw(6, 4, 1, seed=3)
    assert code(wrong.reshape(6, 20), right.reshape(6, 20), (6,), GRID) == "mean-kept"


def complex_blocks(count: int, sign: float) -> Array:
    result = np.zeros((count, 2, count, 2))
    for k, (a, b) in enumerate(draw(count, 2)):
        result[k, :, k] = [[a, -sign * b], [sign * b, a]]
    return result.reshape(2 * count, 2 * count)


def test_conjugates_and_complex_parts() -> None:
    numeric = complex_blocks(5, 1.0)
    options = {"dtype": "complex128"}
    assert code(complex_blocks(5, -1.0), numeric, (5,), (5,), **options) == "conjugate"
    imaginary = np.tile([1.0, -1.0], 5)
    assert code(numeric * imaginary, numeric, (5,), (5,), **options) == "conjugate"
    assert code(numeric * np.tile([1.0, 0.0], 5), numeric, (5,), (5,), **options) == "complex-part"
    assert code(numeric * np.tile([2.0, 1.0], 5), numeric, (5,), (5,), **options) == "complex-part"
    assert code(numeric * imaginary, numeric, (10,), (10,)) is None  # no complex numbers, no conjugate


def test_the_numbers_of_another_input() -> None:
    first, second = dense((6,), (4,)), dense((6,), (4,), seed=1)
    others = ((Leaf("args[1]", (4,), "float64", 4), Whole(second)),)
    assert code(second, first, (6,), (4,), others=others) == "swapped-inputs"
    assert code(second + 0.01, first, (6,), (4,), others=others) is None
    assert code(second, first, (6,), (4,)) is None


def test_regions_of_the_input() -> None:
    x = draw(20, seed=9)
    numeric = np.diag(draw(20))
    for chosen, text in (
        (x < 0, "where args[0] < 0"),
        (x > 0.5, "where args[0] > 0."),
        (np.abs(x) > 1, "where |args[0]| > 1"),
    ):
        found = recognise(exhibit(numeric * np.where(chosen, 1.1, 1.0), numeric, (20,), (20,), point=x))
        assert found is not None
        assert found.code == "region"
        assert text in found.sentence
        assert "1.1 times" in found.sentence


def test_a_region_holds_what_it_is_said_to_hold() -> None:
    """A threshold at a wrong element itself would leave it out: `|x| < 0` holds nothing."""
    x = draw(20, seed=9)
    x[[2, 7, 11, 15]] = 0.0
    numeric = np.diag(draw(20))
    for point, chosen, text in (
        (x, x == 0, "where args[0] is 0"),
        (np.abs(x), x == 0, "where args[0] is 0"),
        (np.where(x == 0, 1.0, 1.0 + np.abs(x)), x == 0, "where args[0] < 1."),
    ):
        found = recognise(exhibit(numeric * np.where(chosen, 1.1, 1.0), numeric, (20,), (20,), point=point))
        assert found is not None
        assert found.code == "region"
        assert text in found.sentence


def test_a_factor_close_to_one_is_told_from_it() -> None:
    numeric = np.diag(draw(20))
    analytic = numeric.copy()
    analytic[3, 3] *= 1.0001
    found = recognise(exhibit(analytic, numeric, (20,), (20,)))
    assert found is not None
    assert "at args[0][3], where it is 1.0001 times what it should be" in found.sentence


def test_elements_wrong_here_and_there_are_no_region() -> None:
    x = np.linspace(-1.0, 1.0, 20)
    chosen = np.isin(np.arange(20), [1, 4, 9, 10, 16])
    assert code(np.diag(np.where(chosen, 1.1, 1.0)), np.eye(20), (20,), (20,), point=x) is None


def test_an_extra_term() -> None:
    x = draw(20, seed=9)
    numeric = np.diag(draw(20))
    assert code(numeric + 0.1 * np.diag(x), numeric, (20,), (20,), point=x) == "extra-term"
    assert code(numeric + 0.1 * np.diag(np.sin(x)), numeric, (20,), (20,), point=x) is None


@pytest.mark.parametrize(
    ("analytic", "numeric"),
    [
        ([[1.3]], [[1.0]]),  # a factor that one entry shows
        ([[1.3, 1.3, 1.3]], [[1.0, 1.0, 1.0]]),  # equal numbers: a factor, an offset, anything
        ([[1.3, 2.0]], [[1.0, 2.0]]),  # one of two
        ([[2.0, 1.0]], [[1.0, 2.0]]),  # swapped, or just wrong
        ([[1.5, 0.3, 1.7]], [[1.0, 2.0, 3.0]]),
    ],
)
def test_few_numbers_tell_nothing(analytic: list[list[float]], numeric: list[list[float]]) -> None:
    claimed, measured = np.array(analytic), np.array(numeric)
    assert code(claimed, measured, (len(claimed),), (claimed.shape[1],)) is None


def test_what_is_not_known_is_not_looked_at() -> None:
    numeric = dense((3, 6), GRID)
    analytic = 2 * numeric
    numeric[3, 4] = np.nan  # a kink
    assert code(analytic, numeric, (3, 6), GRID) == "factor"
    assert code(np.full((3, 4), np.nan), np.ones((3, 4)), (3,), (4,)) is None


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([(3,), (4, 4), (2, 3, 3)]), st.sampled_from([(5,), (4, 4)]))
def test_random_errors_have_no_name(seed: int, input: Shape, output: Shape) -> None:
    generator = np.random.default_rng(seed + 20_000)
    numeric = dense(output, input, seed)
    analytic = numeric + generator.standard_normal(numeric.shape)
    assert code(analytic, numeric, output, input) is None


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30))
def test_random_entries_wrong_get_no_name_but_a_true_one(seed: int, count: int) -> None:
    """Some entries of a right Jacobian spoilt: whatever is said of where they are must be true."""
    generator = np.random.default_rng(seed)
    numeric = dense((6,), GRID, seed)
    analytic = numeric.copy().ravel()
    spoilt = generator.choice(analytic.size, count, replace=False)
    analytic[spoilt] *= generator.uniform(1.2, 2.0, count)
    found = recognise(exhibit(analytic.reshape(numeric.shape), numeric, (6,), GRID))
    if found is not None:
        rows, columns = np.unravel_index(spoilt, numeric.shape)
        assert found.code in {"entry", "output-entry"}
        assert len(set(columns if found.code == "entry" else rows)) <= 2


@pytest.mark.parametrize(
    ("factor", "name"),
    [
        (180 / np.pi, "180/π times"),
        (np.pi / 180, "π/180 times"),
        (np.log(10), "ln 10 times"),
        (1 / np.log(10), "1/ln 10 times"),
        (np.log(2), "ln 2 times"),
        (1 / np.log(2), "1/ln 2 times"),
        (2.304, "2.304 times"),
    ],
)
def test_units_of_angles_and_logarithms(factor: float, name: str) -> None:
    numeric = np.random.default_rng(0).standard_normal((6, GRID[0] * GRID[1]))
    found = recognise(exhibit(factor * numeric, numeric, (6,), GRID))
    assert found is not None
    assert found.code == "factor"
    assert f"is {name} what it should be" in found.sentence


def comparison(mode: str, verdict: Verdict) -> Comparison:
    block = np.eye(2)
    leaf = Leaf("args[0]", (2,), "float64", 0)
    return Comparison(
        1, mode, Leaf("out", (2,), "float64", 0), leaf, "entries", Table(block, block, block, block), verdict
    )


def test_one_mode_right_and_the_other_wrong() -> None:
    wrong, right = comparison("reverse", Verdict.WRONG), comparison("forward", Verdict.RIGHT)
    alone = blamed(None, wrong, (wrong, right))
    assert alone is not None
    assert alone.code == "reverse-only"
    other = blamed(Diagnosis("factor", "it is doubled", 1.0, ""), wrong, (wrong, right))
    assert other is not None
    assert other.code == "factor"
    assert "forward mode is right" in other.sentence
    both = comparison("forward", Verdict.WRONG)
    assert blamed(None, wrong, (wrong, both)) is None
    assert blamed(None, wrong, (wrong,)) is None


def mirrored(matrix: Array, n: int) -> Array:
    """Every row transposed, in the shape of a square input."""
    return np.swapaxes(matrix.reshape(-1, n, n), 1, 2).reshape(matrix.shape)


def symmetric_point(n: int) -> Array:
    a = draw(n, n)
    return np.asarray(a @ a.T + np.eye(n)).ravel()


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_symmetric_input_whose_gradient_is_right_along_symmetric_directions(n: int) -> None:
    numeric = np.where(np.tril(np.ones((n, n))).ravel() > 0, dense((3,), (n, n)), 0.0)  # one triangle is read
    analytic = 0.5 * (numeric + mirrored(numeric, n))
    point = symmetric_point(n)
    assert code(analytic, numeric, (3,), (n, n), point=point) == "symmetric-input"
    # In forward mode the tangent may be taken as it is: the sum over both triangles, read from one.
    weights = np.tril(np.full((n, n), 0.25), -1) + np.triu(np.full((n, n), 0.75), 1) + 0.5 * np.eye(n)
    assert code(weights.ravel() * 2 * analytic, numeric, (3,), (n, n), point=point) == "symmetric-input"


def test_other_mistakes_at_a_symmetric_point_are_not_excused() -> None:
    point, numeric = symmetric_point(4), np.tril(np.ones((4, 4))).ravel() * dense((3,), (4, 4))
    even = 0.5 * (numeric + mirrored(numeric, 4))
    assert code(1.01 * even, numeric, (3,), (4, 4), point=point) != "symmetric-input"
    assert code(even, numeric, (3,), (4, 4), point=draw(16)) != "symmetric-input"
    assert code(even, numeric, (3,), (16,), point=point) != "symmetric-input"
    full = dense((3,), (4, 4))
    assert code(mirrored(full, 4), full, (3,), (4, 4), point=point) == "transposed"
    assert code(full + draw(3, 16, seed=5), full, (3,), (4, 4), point=point) is None


def test_equal_values_are_no_further_evidence_for_a_region() -> None:
    """The diagonal of such a matrix is larger than the rest: that is no branch."""
    n = 4
    point = symmetric_point(n) + 4 * np.eye(n).ravel()
    numeric = dense((3,), (n, n))
    off = (1 - np.eye(n)).ravel()
    found = recognise(exhibit(numeric * (1 + off * draw(3, n * n, seed=4)), numeric, (3,), (n, n), point=point))
    assert found is not None
    assert "off the diagonal" in found.sentence
    small = point < np.sort(point)[2 * 5]  # five of ten different values: nothing that could not be by chance
    for shape, expected in (((n, n), None), ((n * n,), "region")):
        assert code(numeric * (1 + small * draw(3, n * n, seed=4)), numeric, (3,), shape, point=point) == expected


def test_others_agree_only_where_none_is_beyond_the_tolerance() -> None:
    numeric = np.diag(1.0 + np.arange(8.0))
    analytic = numeric.copy()
    analytic[2, 2] *= 1 + 2.5e-5
    assert code(analytic, numeric, (8,), (8,)) == "entry"
    analytic[5, 5] *= 1 + 1.5e-5
    assert code(analytic, numeric, (8,), (8,)) is None


def test_counts_are_those_of_the_comparison() -> None:
    numeric = draw(1, 40)
    numeric[0, :10] *= 1.5e-5 / np.abs(numeric[0, :10]).max()
    analytic = 2.0 * numeric
    wrong = int(np.count_nonzero(np.abs(analytic - numeric) > np.maximum(1e-5 * np.abs(numeric), 1e-5 * rms(numeric))))
    found = recognise(exhibit(analytic, numeric, (1,), (40,)))
    assert found is not None
    assert f"explains all {wrong} wrong entries" in found.sentence


def test_a_factor_on_numbers_of_one_size() -> None:
    """As of a dropout that forgot 1/(1 - p): a mask, and nothing else to tell a factor by."""
    numeric = np.diag((np.arange(12) % 3 > 0) / 0.7)
    found = recognise(exhibit(0.7 * numeric, numeric, (12,), (12,)))
    assert found is not None
    assert found.code == "factor"
    assert "0.7 times what it should be wherever it is not zero (explains all 8 wrong entries)" in found.sentence
    analytic = 0.7 * numeric
    analytic[1, 1] = numeric[1, 1]
    analytic[4, 4] = 0.9
    assert code(analytic, numeric, (12,), (12,)) != "factor"
