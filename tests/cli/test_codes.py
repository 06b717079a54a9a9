"""`gradproof explain`: every code of the source is explained, and nothing else; the output is real."""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_runs import Command

import gradproof_pytest
from gradproof.codes import Code, Kind, codes, lookup
from gradproof.contracts.side import SIDES
from gradproof.errors import UsageError
from gradproof.result import Result
from tests.codes import PAGE, cut, page, ran
from tests.wrong_rules import RULES

SOURCE = Path(__file__).parents[2] / "src" / "gradproof"
# Findings whose code is not written where the finding is made: `wording.undecided` takes the reason of a comparison.
REASONS = {"noise", "precision", "domain", "slow", "steep", "stairs", "jump", "kink"}

# Causes that are no matter of one rule at any point: see tests/torch/test_named_rules.py, test_symmetric_inputs.py.
OF_MORE = {"rule", "symmetric-input"}


def literal_codes(tree: ast.AST, maker: str) -> Iterator[str]:
    """The first arguments, where they are written out, of calls of `maker`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == maker and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


@functools.cache
def source() -> tuple[ast.Module, ...]:
    return tuple(ast.parse(file.read_text()) for file in SOURCE.rglob("*.py"))


def in_source(maker: str) -> set[str]:
    return {code for tree in source() for code in literal_codes(tree, maker)}


def explained(kind: Kind) -> set[str]:
    return {code.code for code in codes() if code.kind is kind}


def test_every_finding_of_the_source_is_explained_and_nothing_else() -> None:
    assert explained(Kind.FINDING) == in_source("Finding") | REASONS | {side.code for side in SIDES}


def test_the_reasons_are_those_of_the_source() -> None:
    from gradproof.evidence.wording import UNDECIDED_HINTS

    assert set(UNDECIDED_HINTS) == REASONS | {"budget"}


def test_every_diagnosis_is_explained_and_nothing_else() -> None:
    assert in_source("Diagnosis") <= explained(Kind.DIAGNOSIS)
    # Of second derivatives written by hand: tests/numpy/test_second_order.py.
    hessians = {"hessian-triangle", "hessian-off-diagonal"}
    assert explained(Kind.DIAGNOSIS) == {rule.code for rule in RULES} | OF_MORE | hessians


def test_a_code_in_the_source_is_noticed() -> None:
    tree = ast.parse('x = Finding("brand-new", Verdict.WRONG)\ny = Finding(code, 1)\nz = Other("no")')
    assert list(literal_codes(tree, "Finding")) == ["brand-new"]


def named(code: Code) -> str:
    return f"{code.kind.value}-{code.code}"


@pytest.mark.parametrize("code", codes(), ids=named)
def test_an_explanation_has_all_its_parts(code: Code) -> None:
    assert code.text.startswith(f"# {code.code}\n\n")
    assert "\n" not in code.meaning
    assert code.meaning.endswith(".")
    assert len(code.advice) > 20
    assert code.output
    compile(code.example, code.code, "exec")


class Listener:
    """Hears of every check that an example makes."""

    seed = None
    effort = None
    detail = None

    def __init__(self) -> None:
        self.results: list[Result] = []

    def heard(self, result: Result) -> None:
        self.results.append(result)


def settled(output: str) -> str:
    """Without error bars and other tiny numbers, which differ between machines."""
    return re.sub(r"\b\d+(\.\d+)?e[-+]\d\d\b", "*", output)


@pytest.mark.parametrize("code", codes(), ids=named)
def test_the_example_has_this_code_and_this_output(code: Code, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    listener = Listener()
    monkeypatch.setattr(gradproof_pytest, "host", listener)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        output = cut(ran(code.example))
    assert settled(output) == settled(code.output), "if the change is meant, run: python -m tests.codes"
    findings = [finding for result in listener.results for finding in result.findings]
    if code.kind is Kind.DIAGNOSIS:
        assert code.code in {finding.diagnosis.code for finding in findings if finding.diagnosis}
    elif code.code not in ("error", "skipped"):  # these come from cases that no check came to
        assert code.code in {finding.code for finding in findings}


def test_the_page_of_the_docs_is_made_of_them() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m tests.codes"


def test_explain_one(command: Command) -> None:
    ran = command("explain", "stale")
    assert ran.status == 0
    assert ran.out.strip() == lookup("stale")[0].text.strip()


def test_a_name_that_two_share_is_explained_twice(command: Command) -> None:
    out = command("explain", "precision").out
    assert "which is too coarse to tell" in out
    assert "The gradient is rounded" in out


def test_explain_lists_all(command: Command) -> None:
    lines = command("explain").out.splitlines()
    assert len(lines) == len(codes()) + len(Kind)
    for code in codes():
        assert any(line.split(maxsplit=1) == [code.code, code.meaning] for line in lines)


def test_an_unknown_code(command: Command) -> None:
    ran = command("explain", "stail")
    assert ran.status == 2
    assert "there is no code 'stail'; try stale" in ran.err
    with pytest.raises(UsageError):
        lookup("")


def test_completion_scripts(command: Command) -> None:
    for shell, words in (("bash", "complete "), ("zsh", "compdef"), ("fish", "complete --no-files")):
        ran = command("completion", shell)
        assert ran.status == 0
        assert words in ran.out
        assert "_GRADPROOF_COMPLETE" in ran.out
    assert command("completion", "tcsh").status == 2
