"""JSON: valid by the published schema, strict, and the same report when it is read again."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import jsonschema
import numpy as np
import pytest
import samples

import gradproof
from gradproof.bounds import Bound
from gradproof.environment import here
from gradproof.errors import UsageError
from gradproof.picture import Digest, HeatMap, Trace, allotted, grid_for, heat_map, sparse_map
from gradproof.program import Leaf, Skipped, Spot
from gradproof.render.codec import Described
from gradproof.render.digest import TILES, digested
from gradproof.render.json import VERSION, dumps, loads, schema
from gradproof.result import Comparison, Cost, Diagnosis, Entry, Finding, Place, Power, Report, Result, Verdict
from gradproof.settings import Budget, Settings, Tolerance
from gradproof.spaces import Symmetric

TRACE = Trace(
    "d y0[0] / d x0[0]", 1, "reverse", 2.0, 1.0, 1e-9, 0.0, 1e-5, (1e-6, 1e-3), (1.0, 1.1), (1e-9, float("inf")),
    (1.0, 1.1), (1.0, float("nan")), (1e-6, 1e-3), 1e-16, (0.0,),
)  # fmt: skip


def strict(text: str) -> Any:
    """Parsed by the letter of the standard: NaN and Infinity are no JSON."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_samples_are_of_each_kind() -> None:
    verdicts = {result.name: result.verdict for result in samples.report().results}
    assert verdicts == {
        "linear": Verdict.RIGHT,
        "sine": Verdict.WRONG,
        "absolute": Verdict.RIGHT,
        "exponential": Verdict.WRONG,
        "noisy": Verdict.UNDECIDED,
        "large": Verdict.WRONG,
    }


def test_every_sample_is_valid_by_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    report = samples.report()
    traced = replace(report, results=(replace(report.results[0], traces=(TRACE,)), *report.results[1:]))
    jsonschema.validate(strict(dumps(traced)), schema())


def test_a_report_that_is_not_valid_is_noticed() -> None:
    data = strict(dumps(samples.report()))
    data["results"][0]["verdict"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema())


DESCRIBED = {
    "result": Result, "comparison": Comparison, "finding": Finding, "diagnosis": Diagnosis, "entry": Entry,
    "place": Place, "spot": Spot, "leaf": Leaf, "skipped": Skipped, "power": Power, "cost": Cost, "settings": Settings,
    "tolerance": Tolerance, "budget": Budget, "trace": Trace, "picture": HeatMap, "numbers": Digest, "bound": Bound,
    "described": Described,
}  # fmt: skip


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_schema_describes_every_field(name: str) -> None:
    own = [one.name for one in fields(DESCRIBED[name]) if one.init]
    written = ["numbers" if (name, one) == ("comparison", "source") else one for one in own]
    assert list(schema()["$defs"][name]["properties"]) == written, "add the new field to render/schema.json"


def test_a_report_reads_back_as_it_was() -> None:
    report = samples.report()
    text = dumps(report)
    loaded = loads(text)
    assert dumps(loaded) == text
    assert [str(result) for result in loaded.results] == [str(result) for result in report.results]
    assert (loaded.verdict, loaded.environment, loaded.source) == (report.verdict, report.environment, report.source)
    for original, again in zip(report.results, loaded.results, strict=True):
        assert (again.settings, again.cost, again.power) == (original.settings, original.cost, original.power)
        assert again.findings == original.findings
        assert (again.skipped, again.notes, again.source) == (original.skipped, original.notes, original.source)
        assert [one.verdict for one in again.comparisons] == [one.verdict for one in original.comparisons]


def test_numbers_that_json_does_not_know() -> None:
    result = samples.nan()
    worst = next(one.worst for one in result.comparisons if one.worst)
    again = loads(dumps(Report((replace(result, traces=(TRACE,)),)))).results[0]
    found = next(one.worst for one in again.comparisons if one.worst)
    assert np.isnan(worst.analytic)
    assert np.isnan(found.analytic)
    assert again.traces[0].bars == (1e-9, float("inf"))
    assert np.isnan(again.traces[0].left[1])
    assert again.settings == replace(result.settings)


@pytest.mark.parametrize(
    "options",
    [
        {"tolerance": 1e-4},
        {"tolerance": Tolerance(1e-4, 1e-8, block=0.0, ceiling=1.0)},
        {"budget": Budget(calls=200, seconds=2.5)},
        {"modes": "forward", "effort": "exhaustive"},
        {"effort": 3, "step": 1e-4},
    ],
)
def test_settings_read_back(options: dict[str, Any]) -> None:
    result = replace(samples.right(), settings=Settings.validated(seed=2**40, **options))
    assert loads(dumps(Report((result,)))).results[0].settings == result.settings


def test_what_json_cannot_hold_is_described() -> None:
    settings = Settings.validated(
        seed=1, bounds={"args[0]": (0, None), "args[1]": (np.zeros(2), np.ones(2))}, spaces={"args[2]": Symmetric()}
    )
    text = dumps(Report((replace(samples.right(), settings=settings),)))
    jsonschema.validate(strict(text), schema())
    loaded = loads(text)
    assert dumps(loaded) == text
    again = loaded.results[0].settings
    assert [repr(side) for bound in again.bounds for side in (bound.low, bound.high)] == [
        "0.0", "None", "array([0., 0.])", "array([1., 1.])",
    ]  # fmt: skip
    assert repr(again.spaces) == "(('args[2]', Symmetric()),)"


def test_the_environment_names_what_is_loaded() -> None:
    names = dict(here())
    assert names["numpy"] == np.__version__
    assert {"gradproof", "python", "platform"} <= set(names)
    assert Report((samples.right(),)).environment == here()


def test_a_report_takes_one_result_or_any_number_of_them() -> None:
    one, other = samples.right(), samples.scaled()
    assert Report(one).results == (one,)  # type: ignore[arg-type]
    assert Report([one, other]).results == (one, other)  # type: ignore[arg-type]
    assert str(Report((one, other))) == f"{one}\n\n{other}"


@pytest.mark.parametrize("given", ["result.json", 3, [samples.right(), None], Report(())])
def test_a_report_of_something_else_is_refused_with_the_corrected_call(given: object) -> None:
    with pytest.raises(UsageError, match=r"not of (str|int|NoneType|Report); write Report\(\(gradproof\.check"):
        Report(given)  # type: ignore[arg-type]


def test_a_stored_report_says_that_its_tables_are_gone() -> None:
    loaded = loads(dumps(samples.report())).results[1].comparisons[0]
    with pytest.raises(UsageError, match=r"comparison\.picture\(\)"):
        loaded.analytic.sum()
    assert loaded.picture() == samples.scaled().comparisons[0].picture()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no gradproof report"),
        ('{"format": "gradproof-report", "version": 99}', "reads up to 1; upgrade"),
        ('{"format": "gradproof-report", "version": "1"}', "its version must be a number, \"version\": 1, not '1'"),
        ('{"format": "gradproof-report"}', "its version must be a number"),
        ('{"format": "gradproof-report", "version": 1}', "has no 'results'"),
        ('{"format": "gradproof-report", "version": 1, "results": [{}]}', r"results\[0\] has no 'name'"),
        ('{"format": "gradproof-report", "version": 1, "results": [3]}', r"results\[0\] is not an object"),
        ('{"format": "gradproof-report", "version": 1, "results": {}}', "results is '{}'"),
    ],
)
def test_a_file_that_is_no_report(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        loads(text)


def test_a_wrong_type_is_named_with_its_place() -> None:
    data = strict(dumps(samples.report()))
    data["results"][1]["cost"]["pulls"] = "many"
    with pytest.raises(UsageError, match=r"results\[1\]\.cost\.pulls is 'many', not int"):
        loads(json.dumps(data))


def test_a_key_of_a_later_version_is_passed_over() -> None:
    data = strict(dumps(samples.report()))
    data["results"][0]["colour"] = "blue"
    assert loads(json.dumps(data)).results[0].name == "linear"
    assert VERSION == 1


def table(rows: int, columns: int, bad: tuple[int, int]) -> HeatMap:
    excess = np.zeros((rows, columns))
    excess[bad] = 1e5
    numeric = np.arange(float(rows * columns)).reshape(rows, columns)
    return heat_map(excess, (numeric + excess, numeric, np.ones_like(excess), np.ones_like(excess)))


@pytest.mark.parametrize("bad", [(0, 0), (517, 3), (999, 699)])
def test_one_bad_entry_stays_visible_in_a_large_table(bad: tuple[int, int]) -> None:
    picture = table(1000, 700, bad)
    assert picture.grid == (64, 64)
    worst = int(np.argmax(picture.excess))
    assert picture.entry(worst) == bad
    assert picture.numeric[worst] == bad[0] * 700 + bad[1]
    assert picture.analytic[worst] == picture.numeric[worst] + 1e5
    assert sum(one > 0 for one in picture.excess) == 1


def test_a_picture_is_reduced_further_without_losing_the_bad_entry() -> None:
    smaller = table(1000, 700, (517, 3)).within(20)
    assert np.prod(smaller.grid) <= 20
    assert smaller.entry(int(np.argmax(smaller.excess))) == (517, 3)
    assert smaller.within(20) is smaller
    assert table(5, 4, (1, 2)).whole


@pytest.mark.parametrize(("shape", "tiles", "grid"), [
    ((3, 4), 4096, (3, 4)), ((1, 1000), 4096, (1, 64)), ((1000, 1000), 4096, (64, 64)), ((1000, 1000), 100, (8, 8)),
    ((1, 1000), 10, (1, 8)), ((0, 5), 10, (0, 5)), ((7, 7), 0, (1, 1)),
])  # fmt: skip
def test_grids(shape: tuple[int, int], tiles: int, grid: tuple[int, int]) -> None:
    assert grid_for(shape, tiles) == grid


def test_small_pictures_leave_their_share_to_large_ones() -> None:
    assert allotted([4, 4, 4096], 4096) == 4088
    assert allotted([4096] * 4, 4096) == 1024
    assert allotted([4, 9], 4096) == 4096
    assert allotted([4096] * 100, 10) == 1


def test_a_large_report_keeps_smaller_pictures() -> None:
    big = table(1000, 1000, (7, 7))
    one = replace(samples.right().comparisons[0], source=Digest(9.0, 1e5, big), output=Leaf("y", (1000,), "float64", 0))
    one = replace(one, input=Leaf("x", (1000,), "float64", 0))
    wrong = replace(one, verdict=Verdict.WRONG)
    kept = digested(Report((replace(samples.right(), comparisons=(wrong, *[one] * 500)),))).results[0].comparisons
    sizes = [len(comparison.picture().excess) for comparison in kept]
    assert sizes[0] == 4096
    assert max(sizes[1:]) <= (TILES - 4096) // 500
    assert all(comparison.picture().entry(int(np.argmax(comparison.picture().excess))) == (7, 7) for comparison in kept)


@pytest.mark.parametrize("tiles", [4096, 20, 1])
@pytest.mark.parametrize("shape", [(1000, 700), (6, 5), (64, 64), (65, 3)])
def test_a_sparse_table_has_the_picture_of_the_dense_one(shape: tuple[int, int], tiles: int) -> None:
    random = np.random.default_rng(0)
    offsets = np.sort(random.choice(shape[0] * shape[1], 15, replace=False))
    dense = [np.zeros(shape) for _ in range(5)]
    sparse = [random.uniform(1.0, 2.0, 15) for _ in range(5)]
    for whole, some in zip(dense, sparse, strict=True):
        whole.ravel()[offsets] = some
    rows, columns = np.divmod(offsets, shape[1])
    expected = heat_map(dense[0], (dense[1], dense[2], dense[3], dense[4]), tiles)
    assert (
        sparse_map(sparse[0], (sparse[1], sparse[2], sparse[3], sparse[4]), (rows, columns), shape, tiles) == expected
    )


def test_an_empty_sparse_table() -> None:
    none, nowhere = np.zeros(0), np.zeros(0, int)
    picture = sparse_map(none, (none, none, none, none), (nowhere, nowhere), (100, 100))
    assert (picture.grid, max(picture.excess)) == ((64, 64), 0.0)


def test_an_entry_that_should_have_been_stored_is_in_the_picture() -> None:
    sparse = pytest.importorskip("scipy.sparse")

    def stretched(x: np.ndarray) -> np.ndarray:
        y = np.sin(x)
        y[7] += 0.3 * x[1900]
        return y

    def jac(x: np.ndarray) -> object:
        return sparse.csr_array(sparse.diags([np.cos(x)], [0]))

    result = gradproof.check(stretched, np.linspace(0.5, 1.5, 3000), derivative={"jac": jac}, seed=1)
    (block,) = result.comparisons
    assert block.scope == "pattern"
    for picture in (block.picture(), loads(dumps(Report((result,)))).results[0].comparisons[0].picture()):
        worst = int(np.argmax(picture.excess))
        assert picture.entry(worst) == (7, 1900)
        assert (picture.analytic[worst], picture.numeric[worst]) == (0.0, pytest.approx(0.3))


def test_a_report_of_nothing_tells_nothing() -> None:
    data = strict(dumps(Report(())))
    jsonschema.validate(data, schema())
    assert data["verdict"] == "undecided"
    assert set(data["counts"].values()) == {0}
    assert loads(dumps(Report(()))).verdict is Verdict.UNDECIDED
    assert Report((samples.right(),)).verdict is Verdict.RIGHT
