"""At least two wrong rules for every diagnosis, at small and large sizes; right twins are silent; the docs are true."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import torch

import gradproof
from gradproof import Budget, Verdict
from tests.catalogue import CASES, Case, acceptable, diagnosed
from tests.wrong_rules import RULES, Rule

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
    named = set(re.findall(r'"((?:cotangent|mean|one|sum|wrong|swapped|complex|extra)-[a-z-]+)"', source))
    assert named <= {rule.code for rule in RULES}


def test_probes_look_at_a_few_rows_and_columns_only() -> None:
    x = torch.randn(200, 200, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rule = next(rule for rule in RULES if rule.name == "transposed: (g * x.cos()).T")
    result = gradproof.check(rule.function("wrong"), x, seed=1)
    assert diagnosed(result) == {"transposed"}
    assert result.cost.evaluations < 300
    assert result.cost.pulls < 150


def test_a_budget_ends_the_search_for_a_cause_not_the_verdict() -> None:
    x = torch.randn(200, 200, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rule = next(rule for rule in RULES if rule.name == "transposed: (g * x.cos()).T")
    spent = gradproof.check(rule.function("wrong"), x, seed=1, budget=Budget(calls=260))
    assert spent.verdict is Verdict.WRONG
    assert spent.cost.evaluations + spent.cost.pulls <= 260


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
        shown = rule.jvp[0] if rule.jvp and code == "forward-only" else rule.wrong
        cells = [f"`{code}`", f"`{rule.forward}`", f"`{shown}`", said]
        table.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return table


def test_the_docs_show_what_is_said() -> None:
    text = DOCS.read_text()
    missing = [row for row in rows() if row not in text]
    assert not missing, "\n".join(["docs/diagnoses.md lacks these rows:", *missing])
