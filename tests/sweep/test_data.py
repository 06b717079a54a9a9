"""The table of verdicts that is checked in: what is not right there has a line that explains it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.sweep.operators import DATA, Explanation, Line, explanations, lines_of, read, unexplained, write
from gradproof.cases import Traits
from gradproof.result import Verdict
from gradproof.sweep.row import Ending, Item, Key, Row

TABLES = sorted(DATA.glob("torch-*-sweep.csv"))
POWER = '{"power":{"fraction":1}}'


@pytest.mark.parametrize("file", TABLES, ids=lambda file: file.stem)
def test_every_operator_that_is_not_right_is_explained(file: Path) -> None:
    lines = read(file)
    assert len({line.operator for line in lines}) > 300
    assert unexplained(lines, explanations(file.with_suffix(".toml"))) == []


def test_there_is_a_table() -> None:
    assert TABLES


def row(number: int, verdict: Verdict, code: str = "", digits: float | None = 9.0) -> Row:
    item = Item(Key("torch", f"tan/float64/{number}", 1), Traits("tan", "torch", "float64", "cpu"))
    return Row(item, verdict, Ending.FINISHED, code, digits=digits, result=POWER)


def test_rows_become_lines_and_lines_a_file(tmp_path: Path) -> None:
    rows = [row(0, Verdict.RIGHT, digits=7.0), row(1, Verdict.WRONG, "mismatch", 1.0), row(2, Verdict.RIGHT)]
    (line,) = lines_of(iter(rows))
    assert line == Line("tan", "float64", 1, Verdict.WRONG, "mismatch", 3, 2, 3, 7.0, 0.0)
    write([line], {"torch": "1"}, "gradproof sweep", tmp_path / "t.csv")
    assert read(tmp_path / "t.csv") == [line]


def test_a_line_needs_an_explanation_that_fits() -> None:
    (line,) = lines_of(iter([row(1, Verdict.WRONG, "mismatch")]))
    assert unexplained([line], []) == [line]
    assert unexplained([line], [Explanation("ta*", "because")]) == []
    assert unexplained([line], [Explanation("tan", "because", order="2")]) == [line]
    assert unexplained([line], [Explanation("tan", "because", code="nan-gradient")]) == [line]
    assert unexplained([replace(line, verdict=Verdict.RIGHT)], []) == []
