"""Are the error bars honest? Seeded draws of (function, point, scale, precision) with known derivatives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.numpy_program import Formula, NumpyProgram, Rows
from bench.table import Claim, Part, Size, Table, number
from gradproof.program import Array
from gradproof.reference import steps
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.field import field_of
from gradproof.reference.ladder import estimate

DRAWS = {"full": 12_000, "quick": 2_000}
Random = np.random.Generator


@dataclass(frozen=True)
class Family:
    """Draws a formula and a point for it."""

    name: str
    draw: Callable[[Random], tuple[Formula, Array]]


def _line(name: str, f: Callable[[Rows], Rows], slope: Callable[[Rows], Rows]) -> Formula:
    """A function of one number."""
    return Formula(name, f, lambda x, d: slope(x) * d)


def _anywhere(
    name: str, f: Callable[[Rows], Rows], slope: Callable[[Rows], Rows], low: float, high: float, *, side: str = "both"
) -> Family:
    """A function at x = ±10^[low, high], as it stands."""

    def draw(random: Random) -> tuple[Formula, Array]:
        sign = 1.0 if side == "positive" else random.choice((-1.0, 1.0))
        return _line(name, f, slope), np.array([sign * 10.0 ** random.uniform(low, high)])

    return Family(name, draw)


def _rescaled(name: str, f: Callable[[Rows], Rows], slope: Callable[[Rows, Rows], Rows], size: int = 1) -> Family:
    """A * f(x / L), with A and L powers of two between 1e-8 and 1e8, at x of size L: exact scaling in any format."""

    def draw(random: Random) -> tuple[Formula, Array]:
        height, length = np.exp2(random.integers(-26, 27, size=2))
        formula = Formula(
            name,
            lambda x: f(x / x.dtype.type(length)) * x.dtype.type(height),
            lambda x, d: slope(x / length, d / length) * height,
        )
        return formula, length * random.uniform(-2, 2, size=size)

    return Family(f"A {name}(x/L)", draw)


def _solved(x: Rows) -> Rows:
    """The square root by bisection of [0, 4] to 1e-8: piecewise constant below that."""
    low, high = np.zeros_like(x), np.full_like(x, 4)
    for _ in range(28):
        middle = (low + high) / 2
        low, high = np.where(middle * middle < x, middle, low), np.where(middle * middle < x, high, middle)
    return (low + high) / 2


def _in_single(x: Rows) -> Rows:
    """A float64 function that computes in float32 inside: its rounding is far coarser than its format."""
    return np.sin(x.astype(np.float32)).astype(x.dtype)


def _softmax(x: Rows) -> Rows:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _column(x: Rows) -> Rows:
    return x[..., None]


FAMILIES = (
    _anywhere("x²", lambda x: x * x, lambda x: 2 * x, -8, 8),
    _anywhere("x³", lambda x: x * x * x, lambda x: 3 * x * x, -8, 8),
    _anywhere("log", np.log, lambda x: 1 / x, -8, 8, side="positive"),
    _anywhere("sqrt", np.sqrt, lambda x: 0.5 / np.sqrt(x), -8, 8, side="positive"),
    _anywhere("1/x", lambda x: 1 / x, lambda x: -1 / (x * x), -8, 8),
    _anywhere("arctan", np.arctan, lambda x: 1 / (1 + x * x), -8, 8),
    _anywhere("hypot(x, 1)", lambda x: np.hypot(x, x.dtype.type(1)), lambda x: x / np.hypot(x, 1), -8, 8),
    _anywhere("log1p", np.log1p, lambda x: 1 / (1 + x), -8, 8, side="positive"),
    _anywhere("sin", np.sin, np.cos, -8, 2),
    _anywhere("exp", np.exp, np.exp, -8, 1),
    _anywhere("tanh", np.tanh, lambda x: 1 / np.cosh(x) ** 2, -8, 0.7),
    _anywhere("sqrt by bisection", _solved, lambda x: 0.5 / np.sqrt(x), 0, 0.5, side="positive"),
    _anywhere("sin in float32", _in_single, np.cos, 0, 0.5),
    _rescaled("sin", np.sin, lambda x, d: np.cos(x) * d),
    _rescaled("exp", np.exp, lambda x, d: np.exp(x) * d),
    _rescaled("exp∘sin", lambda x: np.exp(np.sin(x)), lambda x, d: np.exp(np.sin(x)) * np.cos(x) * d),
    _rescaled("x/(1+x²)", lambda x: x / (1 + x * x), lambda x, d: (1 - x * x) / (1 + x * x) ** 2 * d),
    _rescaled("sin(8x)", lambda x: np.sin(8 * x), lambda x, d: 8 * np.cos(8 * x) * d),
    _rescaled("30 + sin", lambda x: 30 + np.sin(x), lambda x, d: np.cos(x) * d),
    _rescaled(
        "rosenbrock",
        lambda x: _column((1 - x[..., 0]) ** 2 + 100 * (x[..., 1] - x[..., 0] ** 2) ** 2),
        lambda x, d: -2 * (1 - x[0]) * d[0] + 200 * (x[1] - x[0] ** 2) * (d[1] - 2 * x[0] * d[0]),
        2,
    ),
    _rescaled(
        "norm",
        lambda x: _column(np.sqrt((x * x).sum(-1))),
        lambda x, d: (x * d).sum() / np.sqrt((x * x).sum()),
        5,
    ),
    _rescaled(
        "logsumexp",
        lambda x: _column(np.log(np.exp(x).sum(-1))),
        lambda x, d: (np.exp(x) * d).sum() / np.exp(x).sum(),
        6,
    ),
    _rescaled("softmax", _softmax, lambda x, d: _softmax(x) * (d - (_softmax(x) * d).sum()), 4),
    _rescaled(
        "product",
        lambda x: _column(x.prod(-1)),
        lambda x, d: sum(d[i] * np.prod(np.delete(x, i)) for i in range(len(x))),
        4,
    ),
)


def _estimated(program: NumpyProgram, random: Random) -> tuple[Estimate, Array]:
    """Along the coordinate if there is one, along a random direction if there are several; and the exact slope."""
    lengths = steps.coordinate_steps(program)
    displacement = lengths if lengths.size == 1 else steps.random_direction(program, lengths, random)
    return estimate(field_of(program), displacement[None]), displacement


def _draws(size: Size) -> dict[tuple[str, str], list[tuple[float, float, float, int]]]:
    """(true error, bar, |true slope|, evaluations) of every output, by family and format."""
    found: dict[tuple[str, str], list[tuple[float, float, float, int]]] = defaultdict(list)
    for number_of_draw in range(DRAWS[size]):
        random = np.random.default_rng((2024, number_of_draw))
        family = FAMILIES[number_of_draw % len(FAMILIES)]
        dtype = ("float64", "float32")[number_of_draw // len(FAMILIES) % 2]
        formula, point = family.draw(random)
        program = NumpyProgram(formula, point, dtype)
        outcome, displacement = _estimated(program, random)
        truth = program.exact(displacement)
        calls = program.tally.evaluations
        # From the nearest valid slope: on stairs there are two, on a tread and across.
        errors = outcome.distance(truth[None].astype(float))[0]
        for error, bar, exact in zip(errors, outcome.bar[0], truth, strict=True):
            found[family.name, dtype].append((float(error), float(bar), abs(float(exact)), calls))
    return found


def _calibration(size: Size) -> Part:
    table = Table(
        "Calibration: is the true error within the error bar?",
        ("function", "format", "draws", "beyond the bar", "median bar/error", "median digits", "no answer", "calls"),
        "digits: -log10(bar / |slope|); no answer: the bar is wider than the slope",
    )
    found = _draws(size)
    everything = [row for rows in found.values() for row in rows]
    groups = dict(sorted(found.items()))
    for dtype in ("float64", "float32"):
        groups["all", dtype] = [row for (_, its), rows in found.items() if its == dtype for row in rows]
    groups["all", "both"] = everything
    for (name, dtype), rows in groups.items():
        beyond, ratio, digits, silent, calls = _figures(rows)
        table.add(
            name, dtype, len(rows), f"{beyond:.2%}", number(ratio), f"{digits:.1f}", f"{silent:.2%}", f"{calls:.0f}"
        )
    beyond, ratio, _, silent, _ = _figures(everything)
    return Part(
        [table],
        [
            Claim(
                f"error bars, {len(everything):,} draws: true error beyond the bar",
                "< 1 %",
                f"{beyond:.2%}",
                beyond < 0.01,
            ),
            Claim("error bars: median bar / true error", "≤ 100", number(ratio), ratio <= 100),
        ],
    )


def _figures(rows: list[tuple[float, float, float, int]]) -> tuple[float, float, float, float, float]:
    error, bar, slope, calls = np.array(rows).T
    beyond = float(np.mean(~(error <= bar)))
    ratio = float(np.median(bar / np.maximum(error, 1e-300)))
    digits = float(np.median(-np.log10(np.maximum(bar, 1e-300) / np.maximum(slope, 1e-300))))
    silent = float(np.mean(~(bar < slope)))
    return beyond, ratio, digits, silent, float(np.median(calls))


# ---- the hard cases of the literature, one by one


def _noise(x: Rows, size: float) -> Rows:
    """The same number for the same x, and unrelated ones next to it: what an iterative solver leaves behind."""
    return size * (np.modf(np.abs(np.sin(x * 1e9)) * 43758.5453)[0] * 2 - 1)


@dataclass(frozen=True)
class Hard:
    name: str
    f: Callable[[Rows], Rows]
    at: float
    truth: float  # the derivative at the rounded point; nan where there is none
    dtype: str = "float64"


def _exp_sin(dtype: str) -> Hard:
    at = float(np.dtype(dtype).type(0.7))
    return Hard("exp(sin x) at 0.7", lambda x: np.exp(np.sin(x)), at, float(np.exp(np.sin(at)) * np.cos(at)), dtype)


HARD = (
    Hard("x² at 1e8", lambda x: x * x, 1e8, 2e8),
    Hard("log at 1e-8", np.log, 1e-8, 1e8),
    Hard("sin at 1 + noise 1e-6", lambda x: np.sin(x) + _noise(x, 1e-6), 1.0, float(np.cos(1.0))),
    Hard("relu at 1e-7", lambda x: np.maximum(x, 0), 1e-7, 1.0),
    Hard("relu at -1e-7", lambda x: np.maximum(x, 0), -1e-7, 0.0),
    Hard("sin(100 x) at 1", lambda x: np.sin(100 * x), 1.0, float(100 * np.cos(100.0))),
    _exp_sin("float64"),
    _exp_sin("float32"),
    _exp_sin("float16"),
    Hard("|x| at 0", np.abs, 0.0, float("nan")),
    Hard("relu at 0", lambda x: np.maximum(x, 0), 0.0, float("nan")),
    Hard("sqrt at 1e-12", np.sqrt, 1e-12, 0.5e6),
    Hard("sqrt at 0", np.sqrt, 0.0, float("inf")),
    Hard("x^1.5 at 0", lambda x: x**1.5, 0.0, 0.0),
    Hard("sqrt(2) by bisection to 1e-8", _solved, 2.0, float(0.5 / np.sqrt(2.0))),
    Hard("1e6 + x at 0.3", lambda x: 1e6 + x, 0.3, 1.0),
    Hard("1e6 + sin x at 0.3", lambda x: 1e6 + np.sin(x), 0.3, float(np.cos(0.3))),
    Hard("1e-9 sin x at 0.3", lambda x: 1e-9 * np.sin(x), 0.3, float(1e-9 * np.cos(0.3))),
    Hard("1 + 1e-9 sin x at 0.3", lambda x: 1 + 1e-9 * np.sin(x), 0.3, float(1e-9 * np.cos(0.3))),
    Hard("constant 3", lambda x: 0 * x + 3, 0.3, 0.0),
    Hard("sin at 1e8", np.sin, 1e8, float(np.cos(np.longdouble(1e8)))),
    Hard("step at 0.3 (jump)", lambda x: np.where(x < 0.3, 0.0, 1.0), 0.3, float("nan")),
    Hard("x² sin(1/x) at 1e-3", lambda x: x * x * np.sin(1 / x), 1e-3, float(2e-3 * np.sin(1e3) - np.cos(1e3))),
    Hard("floor-quantised sin, 1e-5", lambda x: np.floor(np.sin(x) * 1e5) / 1e5, 1.0, float(np.cos(1.0))),
    Hard("exp at 50", np.exp, 50.0, float(np.exp(50.0))),
    Hard(
        "1/x at 1e-3, float32", lambda x: 1 / x, float(np.float32(1e-3)), -1 / float(np.float32(1e-3)) ** 2, "float32"
    ),
    Hard("x² at 1e9, float32", lambda x: x * x, 1e9, 2e9, "float32"),
)


def _hard_cases() -> Part:
    table = Table(
        "Hard cases: value ± bar against the truth",
        ("case", "format", "value", "± bar", "± spread", "true error", "kind", "within", "calls"),
        "spread: half the distance between left and right slope at a kink; within: |error| ≤ bar + spread",
    )
    failures = []
    for case in HARD:
        formula = Formula(case.name, case.f, lambda x, d: 0 * x * d)
        program = NumpyProgram(formula, np.array([case.at]), case.dtype)
        outcome, displacement = _estimated(program, np.random.default_rng(0))
        value, bar, spread = (
            float(array[0, 0] / abs(displacement[0])) for array in (outcome.value, outcome.bar, outcome.spread)
        )
        value *= float(np.sign(displacement[0]))
        kind = Kind(int(outcome.kind[0, 0])).name.lower()
        error = abs(value - case.truth)
        known = np.isfinite(case.truth)
        within = ("yes" if min(error, abs(error - spread)) <= bar else "NO") if known else "-"
        if within == "NO":
            failures.append(case.name)
        table.add(
            case.name, case.dtype, f"{value:.8g}", f"{bar:.1e}", f"{spread:.1e}" if spread else "",
            f"{error:.1e}" if known else "none exists", kind, within, program.tally.evaluations,
        )  # fmt: skip
    return Part(
        [table],
        [
            Claim(
                f"error bars, {len(HARD)} hard cases: true error beyond the bar",
                "none",
                ", ".join(failures) or "none",
                not failures,
            )
        ],
    )


def run(size: Size, say: Callable[[str], None]) -> Part:
    say(f"{DRAWS[size]:,} draws over {len(FAMILIES)} functions")
    draws = _calibration(size)
    hard = _hard_cases()
    return Part(draws.tables + hard.tables, draws.claims + hard.claims)
