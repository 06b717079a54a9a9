"""`gradproof check`: verdicts into statuses, right and wrong twins, what is shown and what is written."""

from __future__ import annotations

import inspect
import io
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path

import pytest
from command_runs import CASES, Command
from rich.console import Console

import gradproof
from gradproof.cases import OPTIONS
from gradproof.cli.display import Detail, shown
from gradproof.errors import UsageError
from gradproof.render import json
from gradproof.render.files import Files
from gradproof.result import Report, Verdict


@pytest.mark.parametrize(
    ("name", "status", "first"),
    [("right", 0, "RIGHT"), ("wrong", 1, "WRONG"), ("undecided", 3, "UNDECIDED"), ("broken", 1, "ERROR")],
)
def test_the_status_is_the_verdict(command: Command, name: str, status: int, first: str) -> None:
    ran = command("check", f"cases.py::{name}")
    assert ran.status == status
    assert ran.out.startswith(f"{first}  cases.py::{name}: ")


def test_the_whole_file(command: Command) -> None:
    ran = command("check", "cases.py")
    lines = ran.out.splitlines()
    assert ran.status == 1
    assert lines[0].startswith("[1/8] RIGHT  cases.py::right: ")
    assert "WRONG  cases.py::wrong: 1 of 1 blocks disagree" in lines
    assert "  cause     the gradient of args[0] is 2 times what it should be (explains all 4 wrong entries)" in lines
    assert any(line.startswith("  finding   ValueError: no such data (") and "cases.py:" in line for line in lines)
    assert lines[-1].startswith("8 cases: 5 right, 1 undecided, 1 wrong, 1 error in ")


def test_undecided_is_louder_than_right_and_wrong_louder_than_both(command: Command) -> None:
    assert command("check", "cases.py::right", "cases.py::undecided").status == 3
    assert command("check", "cases.py::undecided", "cases.py::wrong").status == 1


def test_a_case_is_run_once_however_often_it_is_named(command: Command) -> None:
    assert command("check", "cases.py::right", "cases.py::right").out.count("cases.py::right") == 1


def test_quiet_and_verbose(command: Command) -> None:
    quiet = command("check", "-q", "cases.py::right", "cases.py::wrong").out
    assert "RIGHT" not in quiet
    assert "WRONG  cases.py::wrong" in quiet
    loud = command("check", "-v", "cases.py::right", "cases.py::softmax").out
    assert loud.count("  checked   ") == 5


def test_fail_fast(command: Command) -> None:
    ran = command("check", "-x", "cases.py", "--json", "report.json")
    assert ran.status == 1
    assert "2 cases: 1 right, 1 wrong in" in ran.out
    assert "; 6 not run" in ran.out
    assert [result.name for result in stored().results] == ["cases.py::right", "cases.py::wrong"]


def stored(path: str = "report.json") -> json.Report:
    return json.loads(Path(path).read_text("utf-8"))


def test_files(command: Command) -> None:
    ran = command("check", "cases.py", "--json", "out/report.json", "--junit", "out/junit.xml", "--seed", "7")
    assert "wrote out/report.json" in ran.out
    report = stored("out/report.json")
    assert [result.verdict.value for result in report.results][:4] == ["right", "wrong", "undecided", "error"]
    assert all(result.seed == 7 for result in report.results)
    assert report.results[1].source == "gradproof check cases.py::wrong --seed 7"
    assert report.results[-1].source == "gradproof check 'cases.py::softmax[n=8,seed=1]' --seed 7"
    suite = ET.parse("out/junit.xml").getroot()
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["8", "1", "1", "1"]


def test_a_page(command: Command, folder: Path) -> None:
    ran = command("check", "cases.py", "--html", "out/report.html", "--json", "report.json")
    assert "wrote out/report.html" in ran.out
    page = (folder / "out" / "report.html").read_text("utf-8")
    assert "cases.py::softmax[n=8,seed=1]" in page
    assert "gradproof check cases.py::wrong --seed 0" in page
    assert stored().results[1].traces  # what the plots are drawn from
    assert command("show", "report.json", "--html", "again.html").status == 0
    assert "cases.py::wrong" in (folder / "again.html").read_text("utf-8")


def test_options_win_over_those_of_the_case(command: Command) -> None:
    command("check", "cases.py::softmax[n=8,seed=0]", "--json", "report.json")
    assert stored().results[0].settings.order == 2
    words = ["--order", "1", "--effort", "2", "--modes", "reverse", "--tolerance", "1e-3", "--budget", "500,20s"]
    command("check", "cases.py::softmax[n=8,seed=0]", "--json", "report.json", *words)
    settings = stored().results[0].settings
    assert (settings.order, settings.effort, settings.modes) == (1, 2, ("reverse",))
    assert settings.tolerance is not None
    assert settings.tolerance.relative == 1e-3
    assert (settings.budget.calls, settings.budget.seconds) == (500, 20.0)


def test_a_random_seed_is_printed_and_used_by_all(command: Command) -> None:
    command("check", "cases.py::softmax", "--seed", "random", "--json", "report.json")
    assert len({result.seed for result in stored().results}) == 1


def test_random_functions_repeat_themselves(command: Command, folder: Path) -> None:
    imports = "import gradproof\nfrom torch import ones\nfrom torch.nn.functional import dropout\n"
    (folder / "noise.py").write_text(imports + "@gradproof.case\ndef noise():\n    return dropout, ones(9)\n")
    first, second = (command("check", "noise.py", "--seed", "3").out.splitlines()[1] for _ in range(2))
    assert "two calls at the same point differ" in first
    assert first == second


def test_a_quick_look(command: Command) -> None:
    ran = command("check", "torch:softmax", "--arg", "randn(2, 3)", "--kwarg", "dim=1", "--json", "report.json")
    assert ran.status == 0
    assert ran.out.startswith("RIGHT  torch:softmax(randn(2, 3), dim=1): ")
    words = "gradproof check torch:softmax --arg 'randn(2, 3)' --kwarg dim=1 --framework torch --seed 0"
    assert stored().results[0].source == words
    assert "all 36 entries of the 6 x 6 Jacobian" in ran.out
    assert "the only entry of the 1 x 1 Jacobian" in command("check", "torch:sin", "-a", "randn(1)").out


def test_a_quick_look_at_a_wrong_function_of_a_file(command: Command) -> None:
    assert command("check", "cases.py:Cube.apply", "-a", "rand(3, low=1, high=2)", "-a", "3").status == 0
    ran = command("check", "cases.py:Cube.apply", "-a", "rand(3, low=1, high=2)", "-a", "6")
    assert ran.status == 1
    assert "is 2 times what it should be" in ran.out


BY_HAND = """
import numpy as np


def cube(x):
    return x**3


def right(x):
    return np.diag(3 * x**2)


def wrong(x):
    return np.diag(2 * x**2)
"""


def test_a_quick_look_at_a_derivative_by_hand(command: Command, folder: Path) -> None:
    (folder / "hand.py").write_text(BY_HAND)
    assert command("check", "hand.py:cube", "-a", "rand(3, low=1, high=2)", "--derivative", "jac=right").status == 0
    words = ["check", "hand.py:cube", "-a", "rand(3, low=1, high=2)", "--derivative", "jac=hand.py:wrong"]
    assert command(*words, "--json", "report.json").status == 1
    assert "--derivative jac=hand.py:wrong --framework numpy" in stored().results[0].source
    assert "as in the report, which says WRONG" in command("replay", "report.json::cube").out


def test_a_quick_look_at_a_jax_function(command: Command) -> None:
    pytest.importorskip("jax")
    ran = command("check", "jax.numpy:tanh", "-a", "randn(3, dtype=float32)", "--framework", "jax")
    assert ran.status == 0
    assert ran.out.startswith("RIGHT  jax.numpy:tanh(randn(3, dtype=float32)): ")


BAD_VALUES = [
    ("check", "--effort some", "write --effort auto, exhaustive, or a number of probes: --effort 4"),
    ("check", "--effort -3", "write --effort auto"),
    ("check", "--order 0", "write --order 1, or --order 2 for second derivatives too"),
    ("check", "--order two", "write --order 1, or --order 2 for second derivatives too"),
    ("check", "--modes sideways", "write --modes reverse, forward, or reverse,forward"),
    ("check", "--budget lots", "write --budget 200 (calls), 2.5s, or 200,2.5s"),
    ("check", "--budget 0s", "write --budget 200 (calls), 2.5s, or 200,2.5s"),
    ("check", "--seed x", "write --seed 7, or --seed random"),
    ("check", "--seed -1", "write --seed 7, or --seed random"),
    ("check", "--tolerance -1", "write --tolerance 1e-4 (relative, and >= 0)"),
    ("check", "--tolerance nan", "write --tolerance 1e-4 (relative, and >= 0)"),
    ("check", "--tolerance little", "write --tolerance 1e-4 (relative, and >= 0)"),
    ("sweep", "--order 1;2", "write --order 1, 2, or 1,2 for a verdict on each"),
    ("sweep", "--order 0", "write --order 1, 2, or 1,2 for a verdict on each"),
    ("sweep", "--effort some", "write --effort auto"),
    ("sweep", "--modes sideways", "write --modes reverse"),
    ("check", "--randomness never", "write --randomness detect, or --randomness reseed"),
    ("sweep", "--tolerance -1", "write --tolerance 1e-4"),
    ("sweep", "--contracts linea", "write --contracts all, none, or some of linear,adjoint,"),
    ("sweep", "--shard 9of8", "write --shard 3/8 for the third of eight"),
    ("sweep", "--shard third", "write --shard 3/8 for the third of eight"),
    ("sweep", "--seed x", "write --seed 7, or --seed random"),
]


@pytest.mark.parametrize(("verb", "option", "said"), BAD_VALUES)
def test_a_value_that_is_not_understood_is_told_as_it_was_written(
    command: Command, folder: Path, verb: str, option: str, said: str
) -> None:
    (folder / "cases.py").write_text("raise RuntimeError('this is not to be loaded')\n")
    ran = command(verb, "cases.py", *option.split())
    assert ran.status == 2
    assert ran.err.startswith(f"Error: {option} is not understood; {said}")
    assert not ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["torch", "--dtype", "float46"], "torch has no dtype 'float46'; write dtype float64, complex128, float32, "),
        (["jax", "--dtype", "float64,f32"], "jax has no dtype 'f32'; write dtype float64, "),
        (["torch.modules", "--device", "gpu"], "torch.modules has no device 'gpu'; write device cpu, cuda, "),
        (["jax", "--device", "cuda:0"], "jax has no device 'cuda:0'; write device cpu"),
        (["torchh"], "there is no catalogue 'torchh'; write one of jax, torch, "),
        (["nosuch.package"], "there is no catalogue 'nosuch.package'; write one of "),
        (["nosuch:name"], "there is no catalogue 'nosuch:name'; write one of "),
        (["nowhere.py"], "there is no catalogue 'nowhere.py'; write one of "),
        (["."], "there is no catalogue '.'; write one of "),
        (["cases.py", "--seconds", "0"], "Invalid value for '--seconds'"),
        (["cases.py", "--memory", "-1"], "Invalid value for '--memory'"),
        (["cases.py", "--limit", "0"], "Invalid value for '--limit'"),
        (["cases.py", "--jobs", "0"], "Invalid value for '--jobs'"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused_before_anything_is_loaded(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.setattr(import_module("gradproof.sweep.local"), "Pool", None)  # no process is started
    ran = command("sweep", *words)
    assert ran.status == 2
    assert said in ran.err
    assert not ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check"], "Missing argument 'TARGET...'"),
        (["check", "nowhere.py"], "there is no file 'nowhere.py'"),
        (["check", "cases.py::nothing"], "holds no case 'nothing'"),
        (
            ["check", "cases.py", "--arg", "randn(3)"],
            "cases.py is a file of cases; write gradproof check cases.py:NAME",
        ),
        (["check", "cases.py:Cube.nothing"], "cases.py has no Cube.nothing"),
        (["check", "cases.py:Cub.apply"], "cases.py has no Cub.apply (did you mean Cube?)"),
        (["check", "cases.py:X"], "cases.py:X is of type Tensor, not a function; write gradproof check cases.py:name"),
        (["check", "torch:sin", "--arg", "randn(n)"], "What is accepted:"),
        (["check", "torch:sin", "--arg", "randn(3)", "--kwarg", "dim"], "--kwarg 'dim' is not understood"),
        (
            ["check", "torch:sin", "--derivative", "jac"],
            "--derivative 'jac' is not understood",
        ),
        (["check", "torch:sin"], "torch:sin is given no argument; write gradproof check torch:sin --arg 'randn(3)'"),
        (["check", "cases.py:right"], "right is a case; write gradproof check cases.py::right"),
        (
            ["check", "numpy:sin", "-a", "randn(3)", "--derivative", "jacobian=cos"],
            "--derivative jacobian=cos is not understood; write --derivative jac=cos, or another of jac, grad, vjp",
        ),
        (
            ["check", "numpy:sin", "-a", "randn(3)"],
            "NumPy does not differentiate sin; name the derivative that you wrote: --derivative jac=NAME",
        ),
        (
            ["check", "numpy:sin", "-a", "randn(3)", "--derivative", "jac=cos", "--framework", "torch"],
            "leave out one of --derivative and --framework",
        ),
        (["check", "."], ". is a folder; name a file: gradproof check cases.py"),
        (["check", "--json", "-", "--junit", "-", "cases.py"], "two reports cannot both go to standard output"),
        (["check", "--json", "a", "--html", "./a", "cases.py"], "two reports cannot both go to a; name another file"),
        (["check", "cases.py", "--jobs", "two"], "Invalid value for '--jobs'"),
        (["check", "cases.py", "--jobs", "0"], "Invalid value for '--jobs'"),
        (["check", "cases.py", "--seconds", "0"], "Invalid value for '--seconds'"),
        (["check", "cases.py", "--memory", "-1"], "Invalid value for '--memory'"),
        (["check", "cases.py", "--json", "."], "is a directory"),
        (["check", "cases.py", "--json", "cases.py/report.json"], "cannot be written"),
        (["check", "cases.py", "--junit", "/proc/report.xml"], "/proc/report.xml cannot be written: "),
        (["sweep", "cases.py", "--store", "cases.py/sweep.db"], "cases.py/sweep.db cannot be written: "),
        (["check", "cases.py", "--framework", "fortran"], "Invalid value for '--framework'"),
        (["chekc"], "No such command 'chekc'"),
    ],
)
def test_a_command_that_is_not_understood(command: Command, words: list[str], said: str) -> None:
    ran = command(*words)
    assert ran.status == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_report_that_cannot_be_written_does_not_keep_the_others_from_it(folder: Path) -> None:
    files = Files(json=folder / "cases.py" / "report.json", junit=folder / "junit.xml")
    with pytest.raises(UsageError, match=r"report\.json cannot be written: .*; wrote .*junit\.xml"):
        files.write(Report(()))
    assert ET.parse(folder / "junit.xml").getroot().tag == "testsuites"


def test_a_terminal_without_our_signs_is_no_error(folder: Path) -> None:
    words = [sys.executable, "-m", "gradproof", "check", "cases.py::wrong"]
    ran = subprocess.run(words, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}, check=False)
    assert ran.returncode == 1, ran.stderr
    assert b"WRONG  cases.py::wrong" in ran.stdout
    assert b" ? " in ran.stdout  # for the sign of the error bar


@pytest.mark.parametrize("words", [["check", "cases.py", "--jobs", "2"], ["sweep", "cases.py"]])
def test_a_system_without_watched_processes_is_told(
    command: Command, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    ran = command(*words)
    assert (ran.status, "need Linux or macOS" in ran.err) == (2, True)


def test_trying_a_file_leaves_it_as_it_was(folder: Path) -> None:
    (folder / "old.json").write_text("old")
    Files(json=folder / "old.json", junit=folder / "new.xml").prepare()
    assert (folder / "old.json").read_text() == "old"
    assert not (folder / "new.xml").exists()


def test_a_mistaken_call_is_told_once_and_an_exception_has_a_next_step(command: Command, folder: Path) -> None:
    (folder / "whole.py").write_text(
        "import torch\nimport gradproof\n@gradproof.case\ndef odd():\n    return torch.sin, 3\n"
    )
    ran = command("check", "whole.py")
    assert ran.status == 1
    assert "UsageError: no floating or complex tensor among the arguments" in ran.out
    assert "  next " not in ran.out
    assert "  next      Arrays are written --arg 'randn(3)'" in command("check", "torch:sin", "-a", "3").out
    assert "  next      Call the function by itself" in command("check", "cases.py::broken").out


def test_an_unknown_option_of_a_case_is_told_when_the_file_is_read(command: Command, folder: Path) -> None:
    text = "import gradproof\n@gradproof.case({option})\ndef odd():\n    return abs, 1.0\n"
    (folder / "odd.py").write_text(text.format(option="ordr=2"))
    ran = command("check", "odd.py")
    assert (ran.status, ran.out) == (2, "")
    assert f"Error: there is no option 'ordr'; write order= ({folder / 'odd.py'}:2, in <module>)" in ran.err
    returned = "gradproof.Call(abs, 1.0, options={'tol': 1})"
    (folder / "late.py").write_text(text.format(option="").replace("abs, 1.0", returned))
    ran = command("check", "late.py")
    assert ran.status == 1
    assert "there is no option 'tol'; take one of derivative, wrt, " in ran.out


def test_the_options_of_a_case_are_those_of_check() -> None:
    parameters = inspect.signature(gradproof.check).parameters.values()
    assert tuple(one.name for one in parameters if one.kind is one.KEYWORD_ONLY) == OPTIONS


def test_help_has_examples(command: Command) -> None:
    ran = command("check", "--help")
    assert ran.status == 0
    assert 'gradproof check mylib.ops:gelu --arg "randn(3, 4)"' in ran.out


def test_a_terminal_gets_a_bar_and_the_same_results(command: Command) -> None:
    command("check", "cases.py", "--json", "report.json")
    results = stored().results
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    assert list(shown(iter(results), len(results), Detail.LINES, screen)) == list(results)
    printed = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "━" in printed
    assert "8/8" in printed
    assert all(result.name in printed for result in results)


WORKERS = """
import os
import signal

import numpy as np

import gradproof


def right_jac(x):
    return np.diag(np.cos(x))


def wrong_jac(x):
    return np.diag(np.sin(x))


@gradproof.case(params={"n": [1, 2]}, derivative={"jac": right_jac})
def right(n):
    return np.sin, np.ones(n)


@gradproof.case(derivative={"jac": wrong_jac})
def wrong():
    return np.sin, np.ones(2)


@gradproof.case
def crashes():
    os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_several_processes_give_the_same_and_one_that_dies_takes_only_its_case(command: Command, folder: Path) -> None:
    (folder / "many.py").write_text(WORKERS)
    ran = command("check", "many.py", "-j", "2", "--json", "report.json")
    assert ran.status == 1
    report = stored()
    assert [(result.name, result.verdict) for result in report.results] == [
        ("many.py::right[n=1]", Verdict.RIGHT),
        ("many.py::right[n=2]", Verdict.RIGHT),
        ("many.py::wrong", Verdict.WRONG),
        ("many.py::crashes", Verdict.ERROR),
    ]
    assert report.results[3].findings[0].sentence.startswith("the process ended with SIGSEGV: Fatal Python error")
    assert report.results[3].source == "gradproof check many.py::crashes --jobs 2 --seed 0"
    assert report.results[2].source == "gradproof check many.py::wrong --seed 0"
    alone = command("check", "many.py::wrong")
    together = [line for line in ran.out.splitlines() if line.startswith(("WRONG", "  reverse", "  cause"))]
    assert together == [line for line in alone.out.splitlines() if line.startswith(("WRONG", "  reverse", "  cause"))]


def test_fail_fast_in_several_processes(command: Command, folder: Path) -> None:
    (folder / "many.py").write_text(WORKERS)
    ran = command("check", "many.py::wrong", "many.py::right", "-j", "2", "-x", "--json", "report.json")
    assert ran.status == 1
    assert stored().verdict is Verdict.WRONG
    assert "many.py::wrong" in [result.name for result in stored().results]


GREEDY = """
import numpy as np

import gradproof


def jac(x):
    return np.diag(np.cos(x))


def for_ever(x):
    while True:
        pass


def greedy(x):
    return np.sin(x) + np.ones(2**30)[:1]


@gradproof.case(derivative={"jac": jac})
def right():
    return np.sin, np.ones(2)


@gradproof.case(derivative={"jac": jac})
def hangs():
    return for_ever, np.ones(2)


@gradproof.case(derivative={"jac": jac})
def hungry():
    return greedy, np.ones(2)
"""


def test_a_case_beyond_its_limits_is_ended_and_the_others_go_on(command: Command, folder: Path) -> None:
    (folder / "greedy.py").write_text(GREEDY)
    ran = command("check", "greedy.py::hungry", "greedy.py::right", "--memory", "0.5", "--json", "report.json")
    assert ran.status == 1
    hungry, right = stored().results
    assert "Unable to allocate 8.00 GiB" in hungry.findings[0].sentence
    assert right.verdict is Verdict.RIGHT
    ran = command("check", "greedy.py::hangs", "greedy.py::right", "--seconds", "1", "--json", "report.json")
    assert ran.status == 1
    hangs, right = stored().results
    sentence = hangs.findings[0].sentence
    assert re.fullmatch(r"stopped after \d+ s: over the limit of --seconds 1 \(processor\) or 5 s \(clock\)", sentence)
    assert hangs.findings[0].hint == "Run it alone: gradproof check greedy.py::hangs --seconds 60"
    assert (hangs.verdict, right.verdict) == (Verdict.ERROR, Verdict.RIGHT)
    ran = command("replay", "report.json::hangs")
    assert (ran.status, ran.out.splitlines()[-1]) == (1, "as in the report, which says ERROR")
    assert ran.out.startswith("again: gradproof check greedy.py::hangs --seconds 1 --jobs 2 --seed 0\n")


def test_one_case_in_several_processes_is_watched_too(command: Command, folder: Path) -> None:
    (folder / "many.py").write_text(WORKERS)
    ran = command("check", "many.py::crashes", "-j", "2", "--json", "report.json")
    assert ran.status == 1
    assert "the process ended with SIGSEGV" in ran.out
    ran = command("replay", "report.json::crashes")
    assert (ran.status, ran.out.splitlines()[-1]) == (1, "as in the report, which says ERROR")
    assert command("check", "many.py::right[n=1]", "-j", "2").status == 0


MANY = """
import numpy as np

import gradproof

made = []


class Value:
    def __init__(self, n):
        self.n = n

    def __str__(self):
        made.append(self.n)
        return str(self.n)


@gradproof.case(params={"n": [Value(n) for n in range(40)]}, derivative={"jac": lambda x: 2 * np.eye(1)})
def right(n):
    return lambda x: 2 * x, np.ones(1)
"""


def test_cases_are_listed_a_few_times_however_many_there_are(command: Command, folder: Path) -> None:
    (folder / "many.py").write_text(MANY)
    assert command("check", "many.py", "-q").status == 0
    assert len(sys.modules["many"].made) <= 3 * 40


START = """
import sys
import gradproof.cli
print(*{"torch", "jax", "scipy", "rich", "pytest"}.intersection(sys.modules))
"""


def test_the_command_line_loads_no_framework_before_it_needs_one() -> None:
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "gradproof", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("gradproof 0.")


EXITS = """
import sys

import numpy as np

import gradproof


def leaves(x):
    sys.exit({code})


@gradproof.case
def exits():
    leaves(np.ones(2))


@gradproof.case(derivative={{"jac": lambda x: 2 * np.eye(2)}})
def right():
    return lambda x: 2 * x, np.ones(2)


@gradproof.case(derivative={{"jac": lambda x: 3 * np.eye(2)}})
def wrong():
    return lambda x: 2 * x, np.ones(2)
"""


@pytest.mark.parametrize(("code", "said"), [("0", "sys.exit(0)"), ("", "sys.exit()"), ("'bye'", "sys.exit('bye')")])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_case_that_exits_ends_itself_alone(command: Command, folder: Path, code: str, said: str, jobs: str) -> None:
    (folder / "exits.py").write_text(EXITS.format(code=code))
    assert command("check", "exits.py", "-j", jobs, "--json", "report.json").status == 1
    verdicts = {result.name.partition("::")[2]: result.verdict for result in stored().results}
    assert verdicts == {"exits": Verdict.ERROR, "right": Verdict.RIGHT, "wrong": Verdict.WRONG}
    (finding,) = stored().results[0].findings
    assert finding.sentence.startswith(f"it called {said} ({folder / 'exits.py'}:10, in leaves)")


SKIPS = """
import unittest

import numpy as np
import pytest

import gradproof


class Stop(BaseException):
    pass


@gradproof.case
def skips():
    pytest.skip("no GPU")


@gradproof.case
def skips_too():
    raise unittest.SkipTest("no GPU")


@gradproof.case(derivative={"jac": lambda x: 2 * np.eye(2)})
def right():
    return lambda x: 2 * x, np.ones(2)


@gradproof.case
def stops():
    raise Stop("here")
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_case_may_skip_itself_and_no_exception_ends_the_run(command: Command, folder: Path, jobs: str) -> None:
    (folder / "skips.py").write_text(SKIPS)
    ran = command("check", "skips.py", "-j", jobs, "--json", "report.json")
    assert (ran.status, len(stored().results)) == (1, 4)
    assert "UNSUPPORTED  skips.py::skips: skipped\n  missing   no GPU\n" in ran.out
    assert [one.findings[0].code for one in stored().results if one.findings] == ["skipped", "skipped", "error"]
    assert stored().results[3].findings[0].sentence.startswith(f"Stop: here ({folder / 'skips.py'}:")


def test_what_is_skipped_does_not_count_beside_what_ran(command: Command, folder: Path) -> None:
    (folder / "skips.py").write_text(SKIPS)
    assert command("check", "skips.py::skips", "skips.py::right").status == 0
    assert command("check", "skips.py::skips", "skips.py::skips_too").status == 3


def test_a_file_that_skips_cannot_be_imported(command: Command, folder: Path) -> None:
    (folder / "whole.py").write_text("import pytest\n\npytest.importorskip('nosuch')\n")
    ran = command("check", "whole.py")
    assert ran.status == 2
    assert "whole.py cannot be imported: Skipped: could not import 'nosuch'" in ran.err


def test_a_file_that_exits_cannot_be_imported(command: Command, folder: Path) -> None:
    (folder / "exits.py").write_text(EXITS.format(code=0) + "\n\nsys.exit(0)\n")
    ran = command("check", "exits.py")
    assert ran.status == 2
    assert "exits.py cannot be imported: it called sys.exit(0) (" in ran.err
    assert "put that under if __name__ == '__main__':" in ran.err
    (folder / "guarded.py").write_text(EXITS.format(code=0) + "\n\nif __name__ == '__main__':\n    sys.exit(0)\n")
    assert command("check", "guarded.py::right").status == 0


def test_what_a_framework_defines_is_given_its_arrays(command: Command) -> None:
    pytest.importorskip("jax")
    ran = command("check", "jax.numpy:tanh", "-a", "randn(3)")
    assert (ran.status, ran.out.partition(":")[0]) == (0, "RIGHT  jax.numpy")
    other = command("check", "jax.numpy:tanh", "-a", "randn(3)", "--framework", "torch")
    assert other.status == 1
    assert "Arrays are written --arg 'randn(3)', and are those of torch; --framework names another." in other.out


def test_the_next_step_is_an_option_where_that_decides(command: Command, folder: Path) -> None:
    budget = "--budget", "1"
    assert "next      Allow more calls or seconds in --budget.\n" in command("check", "cases.py::right", *budget).out
    ran = command("check", "torch:sin", "-a", "randn(3)", *budget)
    assert "the budget (1 call) does not allow " in ran.out
    assert "next      Allow more calls or seconds in --budget.\n" in ran.out
    (folder / "noisy.py").write_text("import torch\n\ndef noisy(x):\n    return x + torch.rand(())\n")
    noisy = "noisy.py:noisy", "-a", "randn(3)"
    assert "next      Pass --randomness reseed, use eval mode" in command("check", *noisy).out
    assert command("check", *noisy, "--randomness", "reseed").status == 0
    mine = "@gradproof.case(budget=gradproof.Budget(calls=1))\ndef right"
    (folder / "mine.py").write_text(CASES.replace("@gradproof.case\ndef right", mine))
    assert "next      Allow more calls or seconds in budget=.\n" in command("check", "mine.py::right").out


def test_a_report_on_standard_output_stands_there_alone(command: Command, folder: Path) -> None:
    ran = command("check", "cases.py::right", "cases.py::wrong", "--json", "-")
    assert [result.verdict for result in json.loads(ran.out).results] == [Verdict.RIGHT, Verdict.WRONG]
    assert "2 cases: 1 right, 1 wrong in" in ran.err
    assert not (folder / "-").exists()
    ran = command("check", "cases.py::right", "cases.py::wrong", "--json", "report.json")
    assert "2 cases: 1 right, 1 wrong in" in ran.out
    assert not ran.err


CHATTY = """
import os

import numpy as np

import gradproof

print("loaded")


def twice(x):
    print("python")
    os.write(1, b"system\\n")
    return 2 * x


@gradproof.case(derivative={"jac": lambda x: 2 * np.eye(1)})
def chatty():
    return twice, np.ones(1)
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_a_case_prints_does_not_come_into_a_report(command: Command, folder: Path, jobs: str) -> None:
    (folder / "chatty.py").write_text(CHATTY)
    ran = command("check", "chatty.py", "--json", "-", "-j", jobs)
    assert json.loads(ran.out).verdict is Verdict.RIGHT
    assert "loaded\n" in ran.err
    if jobs == "1":
        assert {"python", "system"} <= set(ran.err.splitlines())
        assert {"python", "system"} <= set(command("check", "chatty.py", "--json", "report.json").out.splitlines())
