"""`gradproof show` and `gradproof replay`."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_runs import Command


def test_show_prints_what_check_printed(command: Command) -> None:
    checked = command("check", "cases.py", "--json", "report.json")
    shown = command("show", "report.json")
    assert shown.status == 0
    for line in checked.out.splitlines():
        if line.startswith(("WRONG", "  reverse", "  cause", "  unclear", "  finding")):
            assert line in shown.out.splitlines()
    assert "8 cases: 5 right, 1 undecided, 1 wrong, 1 error in" in shown.out
    assert "torch 2." in shown.out


def test_show_one(command: Command) -> None:
    command("check", "cases.py", "--json", "report.json")
    shown = command("show", "report.json::cases.py::softmax[n=8,seed=1]").out
    assert shown.startswith("RIGHT  cases.py::softmax[n=8,seed=1]: ")
    assert "  power  " in shown


def test_show_as_junit(command: Command, folder: Path) -> None:
    command("check", "cases.py", "--json", "report.json", "--junit", "one.xml")
    command("show", "report.json", "--junit", "two.xml")
    assert (folder / "one.xml").read_text() == (folder / "two.xml").read_text()


def test_show_as_a_page_is_the_page_of_the_run(command: Command, folder: Path) -> None:
    command("check", "cases.py::right", "cases.py::wrong", "--json", "report.json", "--html", "one.html")
    command("show", "report.json", "--html", "two.html")
    one, two = ((folder / name).read_text("utf-8") for name in ("one.html", "two.html"))
    assert one == two
    command("show", "report.json::wrong", "--html", "part.html")
    assert "cases.py::right" not in (folder / "part.html").read_text("utf-8")


@pytest.mark.parametrize(("name", "status"), [("right", 0), ("wrong", 1), ("undecided", 3), ("softmax[n=8,seed=1]", 0)])
def test_replay_gives_the_same_numbers(command: Command, name: str, status: int) -> None:
    command("check", "cases.py", "--json", "report.json", "--seed", "5", "--order", "1", "-q")
    stored = command("show", f"report.json::cases.py::{name}").out.splitlines()
    ran = command("replay", f"report.json::cases.py::{name}")
    assert ran.status == status
    replayed = ran.out.splitlines()
    assert replayed[0].startswith("again: gradproof check ")
    assert "--order 1 --seed 5" in replayed[0]
    assert without_cost(replayed[1:-1]) == without_cost(stored[:-1])
    assert replayed[-1].startswith("as in the report, which says ")


def without_cost(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("  cost ")]


def test_replay_of_a_quick_look(command: Command) -> None:
    command("check", "cases.py:Cube.apply", "-a", "rand(3, low=1, high=2)", "-a", "6", "--json", "report.json")
    ran = command("replay", "report.json::Cube")
    assert ran.status == 1
    assert "as in the report, which says WRONG" in ran.out


def test_replay_after_the_mistake_was_mended(command: Command, folder: Path) -> None:
    import sys

    command("check", "cases.py::wrong", "--json", "report.json")
    cases = folder / "cases.py"
    cases.write_text(cases.read_text().replace("(X, 6)", "(X, 3)"))
    del sys.modules["cases"]
    ran = command("replay", "report.json::wrong")
    assert ran.status == 0
    assert "not as in the report, which says WRONG" in ran.out


def test_replay_of_one_case_that_has_become_several(command: Command, folder: Path) -> None:
    import sys

    command("check", "cases.py::wrong", "--json", "report.json")
    cases = folder / "cases.py"
    text = cases.read_text()
    at = text.index("def wrong(")
    start = text.rindex("@gradproof.case", 0, at)
    cases.write_text(f"{text[:start]}@gradproof.case(seeds=2)\ndef wrong(seed{text[at + len('def wrong(') :]}")
    del sys.modules["cases"]
    ran = command("replay", "report.json::wrong")
    assert ran.status == 2
    assert "that was one case and is 2 now" in ran.err
    assert "gradproof check 'cases.py::wrong[seed=0]'" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "nowhere.json"], "nowhere.json cannot be read: No such file"),
        (["show", "cases.py"], "cases.py: this is not JSON"),
        (["show", "other.json"], "no gradproof report"),
        (
            ["show", "report.json::nothing"],
            "there is no nothing in report.json; it has\n  report.json::cases.py::right",
        ),
        (["replay", "report.json"], "replay one of report.json; it has"),
        (["replay", "report.json::softmax"], "report.json::cases.py::softmax[n=1,seed=0]"),
        (["replay", "nameless.json::sine"], "sine does not say how it was obtained, as those of gradproof check"),
    ],
)
def test_what_is_said_when_it_cannot_be(command: Command, folder: Path, words: list[str], said: str) -> None:
    import torch

    import gradproof
    from gradproof.render import json

    command("check", "cases.py::right", "cases.py::softmax", "--json", "report.json")
    (folder / "other.json").write_text("{}")
    nameless = gradproof.Report((gradproof.check(torch.sin, torch.ones(1), seed=0),))
    (folder / "nameless.json").write_text(json.dumps(nameless).replace('"name":"sin"', '"name":"sine"'))
    ran = command(*words)
    assert ran.status == 2
    assert said in ran.err
    assert not ran.out


RULES = """
import numpy as np

import gradproof


@gradproof.case(params={"n": [1, 8]}, derivative={"jac": lambda x: np.diag(np.cos(x))})
def sine(n, rng):
    return np.sin, rng.standard_normal(n)


@gradproof.case(params={"n": [2, 8]}, derivative={"jac": lambda x: np.diag(2 * x**2)})
def power(n, rng):
    return lambda x: x**3, rng.standard_normal(n)
"""


def test_replay_of_a_sweep(command: Command, folder: Path) -> None:
    (folder / "rules.py").write_text(RULES)
    swept = ["sweep", "rules.py", "--jobs", "1", "--order", "1", "--effort", "3", "--tolerance", "1e-4", "--seed", "5"]
    command(*swept, "--json", "report.json")
    for name, status in (("sine[n=8]", 0), ("power[n=2]", 1)):
        stored = command("show", f"report.json::{name}").out.splitlines()
        ran = command("replay", f"report.json::{name}")
        assert ran.status == status
        replayed = ran.out.splitlines()
        words = f"--ops {name.partition('[')[0]} --order 1 --effort 3 --tolerance 0.0001 --seed 5"
        assert replayed[0] == f"again: gradproof sweep rules.py --case '{name}' {words}"
        assert without_cost(replayed[1:-1]) == without_cost(stored[:-1])
        assert replayed[-1].startswith("as in the report, which says ")
    (folder / "rules.py").write_text(RULES.replace("[2, 8]", "[3, 8]"))
    gone = command("replay", "report.json::power[n=2]")
    assert (gone.status, gone.err) == (2, "Error: rules.py has no case 'power[n=2]' any more\n")
