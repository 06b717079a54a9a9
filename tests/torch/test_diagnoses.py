"""At least two wrong rules for every diagnosis, at small and large sizes; right twins are silent; the docs are true."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import torch

import gradproof
from gradproof import Budget, Verdict
from gradproof.contracts.side import SIDES
from gradproof.diagnose.nonlinear import HINTS
from tests.catalogue import CASES, Case, acceptable, diagnosed
from tests.wrong_rules import RULES, SOFTMAX, Rule

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "diagnoses.md"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_wrong_rule_gets_its_diagnosis(rule: Rule) -> None:
    result = gradproof.check(rule.function("wrong"), rule.args(), seed=3, **dict(rule.options))  # type: ignore[arg-type]
    assert result.verdict is Verdict.WRONG
    assert diagnosed(result) == {rule.code}, str(result)
    assert all(finding.hint == finding.diagnosis.hint for finding in result.wrong if finding.diagnosis)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_right_twin_is_silent(rule: Rule) -> None:
    result = gradproof.check(rule.function("right"), rule.args(), seed=3, **dict(rule.options))  # type: ignore[arg-type]
    assert result.verdict is Verdict.RIGHT, str(result)
    assert not diagnosed(result)


def test_every_diagnosis_has_two_wrong_rules() -> None:
    assert min(Counter(rule.code for rule in RULES).values()) >= 2
    source = "".join(file.read_text() for file in (ROOT / "src/gradproof/diagnose").glob("*.py"))
    named = {f"{side.vector}-{kind}" for side in SIDES for kind in HINTS if kind != "precision"}
    named |= set(re.findall(r'"((?:mean|one-of|sum|wrong|swapped|complex|extra)-[a-z-]+)"', source))
    assert named <= {rule.code for rule in RULES}


def test_probes_look_at_a_few_rows_and_columns_only() -> None:
    x = torch.randn(200, 200, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rule = next(rule for rule in RULES if rule.name == "transposed: (g * x.cos()).T")
    result = gradproof.check(rule.function("wrong"), x, seed=1)
    assert diagnosed(result) == {"transposed"}
    assert result.cost.evaluations < 310
    assert result.cost.pulls < 150


BIG = ((130, 130),)
LARGE = (
    Rule("factor", BIG, "x.sin()", "g * x.cos()", "g * x.cos()", jvp=("-dx * x.cos()", "dx * x.cos()")),
    Rule("shifted", BIG, "x.sin()", "g * x.cos()", "g * x.cos()", jvp=("(dx * x.cos()).roll(1, -1)", "dx * x.cos()")),
    Rule("region", BIG, "x.sin()", "g * x.cos()", "g * x.cos()", jvp=("dx * x.cos() * (x < 0)", "dx * x.cos()")),
    Rule("shifted", BIG, "x.sin()", "(g * x.cos()).roll(1, -1)", "g * x.cos()", torch.float32),
    Rule("region", BIG, "x.sin()", "g * x.cos() * (x < 1)", "g * x.cos()", torch.float32),
    Rule("swapped-inputs", BIG * 2, "x * y", "(g * x, g * y)", "(g * y, g * x)"),
    Rule("transposed", BIG * 2, "x @ y", "(g @ y, x.T @ g)", "(g @ y.T, x.T @ g)"),
    Rule("stale", BIG, "x.sin()", "g * (1.2 * x).cos()", "g * x.cos()"),
    Rule("rank-one", BIG, "x.softmax(-1)", "g * x.softmax(-1)", SOFTMAX),
    Rule(
        "dropped",
        ((40_000,),),
        "x[1:] * x[:-1]",
        "torch.cat([g * x[1:], g[-1:] * x[-2:-1]])",
        "torch.nn.functional.pad(g * x[1:], (0, 1)) + torch.nn.functional.pad(g * x[:-1], (1, 0))",
    ),
    Rule("sum-missing", ((300, 200), (200,)), "x * y", "(g * y, (g * x)[0])", "(g * y, (g * x).sum(0))"),
    Rule("mean-for-sum", ((300, 200), (200,)), "x * y", "(g * y, (g * x).mean(0))", "(g * y, (g * x).sum(0))"),
)


@pytest.mark.parametrize("rule", LARGE, ids=lambda rule: f"{rule.name} {rule.jvp or ''}")
def test_large_inputs_and_both_modes(rule: Rule) -> None:
    result = gradproof.check(rule.function("wrong"), rule.args(), seed=3)
    assert diagnosed(result) == {rule.code}, str(result)
    assert all(comparison.scope == "probes" for comparison in result.comparisons)
    assert gradproof.check(rule.function("right"), rule.args(), seed=3).ok
    if rule.jvp:
        said = [finding.diagnosis.sentence for finding in result.wrong if finding.diagnosis]
        assert all("reverse mode is right here, so the forward rule is to blame" in sentence for sentence in said)


NAMELESS = (
    ("x.tanh()", "g * (1 - x.tanh())"),
    ("x * x.sin()", "g * x.sin()"),
    ("x ** 3", "3 * g * x"),
    ("x.sin()", "g * x.sin()"),  # the derivative at a point, but one that is far away
    ("x.sin()", "g * (1 - x ** 2 / 2)"),  # right near zero, within the tolerance
    ("x.sin()", "g * torch.ones_like(x)"),
    ("x.cumprod(-1)", "g * x.cumprod(-1)"),
    ("torch.nn.functional.gelu(x)", "g * (1.702 * x).sigmoid()"),
)


@pytest.mark.parametrize("shape", [(8,), (5, 5), (120, 110)])
@pytest.mark.parametrize(("forward", "wrong"), NAMELESS)
def test_a_wrong_formula_gets_no_diagnosis(forward: str, wrong: str, shape: tuple[int, ...]) -> None:
    rule = Rule("none", (shape,), forward, wrong, wrong)
    result = gradproof.check(rule.function("wrong"), rule.args(), seed=3)
    assert result.verdict is Verdict.WRONG
    assert diagnosed(result) == set(), str(result)


def test_ones_and_zeros_are_not_taken_for_the_first_of_a_batch() -> None:
    for forward in ("x.relu()", "x.abs()", "x.clamp(-1, 1)"):
        for shape in ((8,), (4, 5), (120, 110)):
            rule = Rule("region", (shape,), forward, "g", "g")
            result = gradproof.check(rule.function("wrong"), rule.args(1), seed=0)
            assert diagnosed(result) <= {"region", "entry", "leaked"}, str(result)


def test_a_block_is_written_as_an_index() -> None:
    wrong = "torch.where((torch.arange(6) % 6 < 4)[:, None] & (torch.arange(5) == 3), 2.0, 1.0) * g * x.exp()"
    rule = Rule("block", ((3, 6, 5),), "x.exp()", wrong, "g * x.exp()")
    (finding,) = gradproof.check(rule.function("wrong"), rule.args(), modes="reverse", seed=0).wrong
    assert finding.diagnosis is not None
    assert "wrong only in args[0][:, 0:4, 3], where" in finding.diagnosis.sentence
    assert gradproof.check(rule.function("right"), rule.args(), modes="reverse", seed=0).ok


def test_two_places_of_an_axis_are_swapped_not_shifted() -> None:
    rule = next(rule for rule in RULES if rule.name == "permuted: (g * x.cos()).flip(1)")
    (finding,) = gradproof.check(rule.function("wrong"), rule.args(), seed=0).wrong
    assert finding.diagnosis is not None
    assert finding.diagnosis.sentence.startswith("the gradient of args[0] is swapped along axis 1")


def test_a_budget_ends_the_search_for_a_cause_not_the_verdict() -> None:
    x = torch.randn(200, 200, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rule = next(rule for rule in RULES if rule.name == "transposed: (g * x.cos()).T")
    spent = gradproof.check(rule.function("wrong"), x, seed=1, budget=Budget(calls=320))
    assert spent.verdict is Verdict.WRONG
    assert spent.cost.evaluations + spent.cost.pulls <= 320


SOME = CASES[::4]


@pytest.mark.parametrize(
    ("case", "n"),
    [pytest.param(case, n, id=f"{case.name}-{n}") for n in (16, 576, 25_600) for case in (CASES if n == 16 else SOME)],
)
def test_no_planted_mistake_gets_a_wrong_diagnosis(case: Case, n: int) -> None:
    if n not in case.sizes:
        pytest.skip("not at this size")
    subject = case.build(n, seed=2)
    result = gradproof.check(subject.fn, subject.args, seed=2)
    assert diagnosed(result) <= acceptable(case), str(result)


def test_nine_of_ten_planted_mistakes_get_a_diagnosis() -> None:
    found = 0
    for case in CASES:
        subject = case.build(16, seed=1)
        found += bool(diagnosed(gradproof.check(subject.fn, subject.args, seed=1)))
    assert found >= 0.9 * len(CASES)


def rows() -> list[str]:
    """The table of the docs: the first rule of each code, and what is said of it."""
    table = ["| code | function | wrong rule | what the report says |", "|---|---|---|---|"]
    for code in dict.fromkeys(rule.code for rule in RULES):
        rule = next(rule for rule in RULES if rule.code == code)
        result = gradproof.check(rule.function("wrong"), rule.args(), seed=3, **dict(rule.options))  # type: ignore[arg-type]
        said = next(finding.diagnosis.sentence for finding in result.wrong if finding.diagnosis)
        cells = [f"`{code}`", f"`{rule.forward}`", f"`{rule.blamed}`", said]
        table.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return table


def test_the_docs_show_what_is_said() -> None:
    text = DOCS.read_text()
    missing = [row for row in rows() if row not in text]
    assert not missing, "\n".join(["docs/diagnoses.md lacks these rows:", *missing])


@pytest.mark.parametrize(("factor", "what"), [(-1.0, "has the wrong sign"), (0.0, "is zero"), (3.0, "is 3 times")])
def test_one_of_two_parameters_is_named_where_a_factor_explains_it(factor: float, what: str) -> None:
    """As in a fit: many residuals, and few parameters."""
    t = torch.linspace(0.5, 2.0, 6, dtype=torch.float64)

    class Decay(torch.autograd.Function):
        @staticmethod
        def forward(ctx, p, factor):
            ctx.factor = factor
            ctx.save_for_backward(p)
            return p[0] * torch.exp(-p[1] * t)

        @staticmethod
        def backward(ctx, g):
            (p,) = ctx.saved_tensors
            e = torch.exp(-p[1] * t)
            return torch.stack([(g * e).sum(), -ctx.factor * p[0] * (g * t * e).sum()]), None

    p = torch.tensor([1.3, 0.7], dtype=torch.float64)
    assert gradproof.check(Decay.apply, (p, 1.0), seed=0).ok
    (finding,) = gradproof.check(Decay.apply, (p, factor), seed=0).wrong
    assert finding.diagnosis is not None
    assert f"wrong only at args[0][1], where it {what}" in finding.diagnosis.sentence
    assert "the other element agrees" in finding.diagnosis.sentence
