"""The plugin as a user of pytest meets it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from inner_runs import PLUGIN, SUITE, Run

from gradproof.render.json import loads

FIXTURE = """
    def test_right(gradproof):
        result = gradproof.check(Cube.apply, X)
        assert result.ok

    def test_wrong(gradproof):
        gradproof.check(wrong, X)
"""


def test_the_fixture_checks_and_fails(run: Run) -> None:
    result = run(FIXTURE)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            ">*gradproof.check(wrong, X)",
            "E*WRONG  wrong: 1 of 1 blocks disagree",
            "E*cause     the gradient of args[[]0] is 2 times what it should be (explains all 4 wrong entries)",
            "*gradproof*",
            "replay: pytest *::test_wrong -p gradproof_pytest -p no:cacheprovider --gradproof-seed=0",
            "gradproof: 2 programs checked, 1 wrong, * calls, * s",
            "FAILED *::test_wrong - WRONG  w*",
        ]
    )
    printed = result.stdout.str()
    assert "gradproof.errors" not in printed
    assert "gradproof/check.py" not in printed
    assert "gradproof_pytest.py" not in printed


PLAIN = """
    def test_right():
        gp.assert_gradients(Cube.apply, X)

    def test_wrong():
        gp.assert_gradients(wrong, X)

    def test_result():
        gp.check(wrong, X).raise_if_wrong()

    def test_assertion():
        assert gp.check(wrong, X).ok

    def test_expected():
        with pytest.raises(gp.GradcheckError):
            gp.assert_gradients(wrong, X)

    def test_late():
        import gradproof
        assert gradproof.check(torch.log, -X).verdict is gradproof.Verdict.UNDECIDED
"""


def test_plain_calls_are_recorded_and_shown_the_same_way(run: Run) -> None:
    result = run(PLAIN)
    result.assert_outcomes(passed=3, failed=3)
    result.stdout.fnmatch_lines(
        ["gradproof: 6 programs checked, 4 wrong (1 in passing tests), 1 undecided (1 in passing tests), * calls, * s"]
    )
    printed = result.stdout.str()
    assert "gradproof/check.py" not in printed
    assert "gradproof/result.py" not in printed
    # An assertion on a result shows one line of it, and the whole text below.
    assert "<WRONG  wrong: 1 of 1 blocks disagree>.ok" in printed
    assert len(re.findall(r"cause     the gradient of args\[0\] is 2 times", printed)) == 3
    assert printed.count("replay: pytest") == 3


def test_what_the_users_function_raises_keeps_the_users_frames(run: Run) -> None:
    result = run(
        """
    def broken(x):
        raise ValueError("inside")

    def test_broken(gradproof):
        gradproof.check(broken, X)

    def test_usage(gradproof):
        gradproof.check(Cube.apply, X, order=0)
"""
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            ">*gradproof.check(broken, X)",
            '>*raise ValueError("inside")',
            "E*ValueError: inside",
            ">*gradproof.check(Cube.apply, X, order=0)",
            "E*order=0 is not understood; write order=1*",
        ]
    )
    assert "torchprogram.py" not in result.stdout.str()
    full = run("\n    def test_broken(gradproof):\n        gradproof.check(1, X)\n", "--full-trace")
    assert "gradproof/check.py" in full.stdout.str()


SEEDS = """
    def test_seed(gradproof):
        print("fixture", gradproof.check(Cube.apply, X).seed, gp.check(Cube.apply, X).seed)
        print("own", gp.check(Cube.apply, X, seed=5).seed)
        print("effort", gp.check(Cube.apply, X).settings.effort, gp.check(Cube.apply, X, effort=3).settings.effort)
"""


def test_seed_and_effort_where_a_test_leaves_them_open(run: Run) -> None:
    run(SEEDS, "-s").stdout.fnmatch_lines(["*fixture 0 0", "own 5", "effort auto 3"])
    out = run(SEEDS, "-s", "--gradproof-seed=7", "--gradproof-effort=2").stdout
    out.fnmatch_lines(["*fixture 7 7", "own 5", "effort 2 3"])


def test_a_random_seed_is_named_with_the_command_that_replays_it(run: Run) -> None:
    result = run(FIXTURE, "--gradproof-seed=random", "--gradproof-effort=exhaustive", "-v")
    found = re.search(r"gradproof: seed (\d+) \(replay with --gradproof-seed=\1\)", result.stdout.str())
    assert found
    options = (f"--gradproof-seed={found[1]}", "--gradproof-effort=exhaustive")
    result.stdout.fnmatch_lines([f"replay: pytest *::test_wrong -p * {' '.join(options)}"])
    again = run(FIXTURE, *options)
    again.stdout.fnmatch_lines([f"E*replay    seed={found[1]}"])


def test_ini_settings(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeini(
        "[pytest]\ngradproof_seed = 11\ngradproof_effort = 3\ngradproof_json = out/report.json\n"
        "gradproof_replace_torch = true\n"
    )
    swapped = '"torch", torch.autograd.gradcheck is gp.torch.gradcheck, "effort"'
    out = run(SEEDS.replace('"effort"', swapped), "-s").stdout
    out.fnmatch_lines(["*fixture 11 11", "torch True effort 3 3"])
    assert len(loads((pytester.path / "out" / "report.json").read_text()).results) == 5


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--gradproof-seed=x", "--gradproof-seed=x is not understood; write a number such as 7, or random"),
        ("--gradproof-seed=\N{SUPERSCRIPT TWO}", "--gradproof-seed=\N{SUPERSCRIPT TWO} is not understood; write a num"),
        (
            "--gradproof-effort=\N{SUPERSCRIPT TWO}",
            "--gradproof-effort=\N{SUPERSCRIPT TWO} is not understood; write auto",
        ),
        ("--gradproof-effort=some", "--gradproof-effort=some is not understood; write auto, exhaustive, or a number"),
        ("--gradproof-effort=0", "--gradproof-effort=0 is not understood"),
        ("--gradproof-json=-", "a report of pytest goes to a file; write one for -, such as report.json"),
        ("--gradproof-json=.", ". is a folder; name a file in it, such as report"),
        ("--gradproof-html=/proc/report.html", "/proc/report.html cannot be written: "),
    ],
)
def test_options_that_are_not_understood(run: Run, option: str, words: str) -> None:
    result = run(FIXTURE, option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert words in result.stderr.str() + result.stdout.str()


def test_a_report_of_the_run(run: Run, pytester: pytest.Pytester) -> None:
    result = run(PLAIN + FIXTURE.replace("test_", "test_fixture_"), "--gradproof-json=out/report.json")
    result.stdout.fnmatch_lines(["gradproof: wrote out/report.json"])
    report = loads((pytester.path / "out" / "report.json").read_text())
    file = next(pytester.path.glob("test_*.py")).name
    assert [(one.name, one.verdict.value) for one in report.results][:3] == [
        (f"{file}::test_right > Cube.apply", "right"),
        (f"{file}::test_wrong > wrong", "wrong"),
        (f"{file}::test_result > wrong", "wrong"),
    ]
    words = "-p gradproof_pytest -p no:cacheprovider --gradproof-seed=0"
    assert report.results[1].source == f"cd {pytester.path} && pytest {file}::test_wrong {words}"
    assert report.source.startswith("pytest ")
    assert ("torch", __import__("torch").__version__) in report.environment


def test_a_report_that_cannot_be_written_is_told_beside_the_results(run: Run, pytester: pytest.Pytester) -> None:
    """By then all tests have run: their outcome is shown all the same, and the status says that a file is missing."""
    gone = """
    def test_gone(gradproof):
        import shutil
        gradproof.check(Cube.apply, (X, 3))
        shutil.rmtree("out")
        open("out", "w").close()
    """
    result = run(gone, "--gradproof-json=out/report.json")
    result.stdout.fnmatch_lines(["gradproof: 1 program checked*", "gradproof: out/report.json cannot be written: *"])
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_a_report_of_a_run_without_checks_is_not_right(run: Run, pytester: pytest.Pytester) -> None:
    for selected, verdict in (("nothing", "undecided"), ("test_right", "right")):
        run(FIXTURE, "--gradproof-json=report.json", "-k", selected)
        assert loads((pytester.path / "report.json").read_text()).verdict.value == verdict


def test_a_page_of_the_run(run: Run, pytester: pytest.Pytester) -> None:
    run(FIXTURE, "--gradproof-html=report.html", "--gradproof-json=report.json")
    assert "test_wrong &gt; wrong" in (pytester.path / "report.html").read_text("utf-8")
    assert loads((pytester.path / "report.json").read_text()).results[1].traces


def test_several_checks_of_one_test_have_names_of_their_own(run: Run, pytester: pytest.Pytester) -> None:
    tests = """
    @pytest.mark.parametrize("n", [1, 2])
    def test_many(gradproof, n):
        for _ in range(3):
            gradproof.check(torch.sin, X)
"""
    run(tests, "--gradproof-json=report.json")
    names = [one.name.partition("::")[2] for one in loads((pytester.path / "report.json").read_text()).results]
    assert names[:3] == ["test_many[1] > sin", "test_many[1] > sin #2", "test_many[1] > sin #3"]
    assert len(set(names)) == 6


UNITTEST = """
    import unittest

    class TestOld(unittest.TestCase):
        def test_right(self):
            gp.assert_gradients(Cube.apply, X)

        def test_wrong(self):
            gp.assert_gradients(wrong, X)
"""


def test_a_failure_of_unittest_is_said_once_and_plainly(run: Run) -> None:
    result = run(UNITTEST)
    result.assert_outcomes(passed=1, failed=1)
    printed = result.stdout.str()
    assert len(re.findall(r"^(?:E *)?WRONG  wrong: 1 of 1 blocks disagree", printed, re.MULTILINE)) == 1
    assert "gradproof.errors" not in printed
    assert "gradproof/check.py" not in printed
    result.stdout.fnmatch_lines(["E*WRONG  wrong: 1 of 1 blocks disagree", "replay: pytest *::TestOld::test_wrong *"])


SEARCH = """
    @pytest.mark.parametrize("tries", [3, 8])
    def test_search(tries):
        results = [gp.check(lambda x: wrong(x) * k, X) for k in range(1, tries + 1)]
        assert all(result.ok for result in results)
"""


def test_of_many_texts_the_last_is_shown(run: Run) -> None:
    printed = run(SEARCH).stdout.str()
    assert len(re.findall("^WRONG ", printed, re.MULTILINE)) == 3 + 1
    assert "the last of 8 checks that are not right (a report holds all):\n" in printed


def test_a_test_that_is_run_again_has_names_of_its_own(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "import pytest\nfrom _pytest.runner import runtestprotocol\n\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    for _ in range(2):\n"
        "        for report in runtestprotocol(item, nextitem=nextitem, log=False):\n"
        "            item.ihook.pytest_runtest_logreport(report=report)\n"
        "    return True\n"
    )
    run(FIXTURE, "--gradproof-json=report.json")
    names = [one.name.partition("::")[2] for one in loads((pytester.path / "report.json").read_text()).results]
    right, wrong = "test_right > Cube.apply", "test_wrong > wrong"
    assert names == [right, f"{right} #2", wrong, f"{wrong} #2"]


def test_listing_tests_leaves_an_old_report_alone(run: Run, pytester: pytest.Pytester) -> None:
    run(FIXTURE, "--gradproof-json=report.json")
    before = (pytester.path / "report.json").read_text()
    run(FIXTURE, "--gradproof-json=report.json", "--co")
    assert (pytester.path / "report.json").read_text() == before


def test_two_reports_cannot_share_a_file(run: Run, pytester: pytest.Pytester) -> None:
    result = run(FIXTURE, "--gradproof-json=report", f"--gradproof-html={pytester.path / 'report'}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "two reports cannot both go to report; name another file" in result.stderr.str() + result.stdout.str()


CONFTEST = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--factor", type=int, default=3)

@pytest.fixture
def factor(request):
    return request.config.getoption("--factor")
"""
CHOSEN = """
    def test_chosen(gradproof, factor):
        gradproof.check(Cube.apply, (X, factor))
"""


def test_a_replay_runs_the_test_as_it_was_run(
    pytester: pytest.Pytester, python: Callable[..., pytest.RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the options of the run, from its folder, and compared with the report."""
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\n")
    folder = pytester.mkdir("sub")
    pytester.makepyfile(**{"sub/test_sub": SUITE + CHOSEN})
    monkeypatch.chdir(folder)
    made = python(
        "-m",
        "pytest",
        "-q",
        "test_sub.py",
        "--factor",
        "6",
        *PLUGIN,
        "--gradproof-json=report.json",
        "--junitxml=x.xml",
    )
    assert made.ret == 1
    (stored,) = loads((folder / "report.json").read_text()).results
    words = "pytest test_sub.py::test_chosen --rootdir=.. --factor 6 -p gradproof_pytest --gradproof-seed=0"
    assert stored.source == f"cd {folder} && {words}"
    made.stdout.fnmatch_lines([f"replay: {words}"])
    monkeypatch.chdir(pytester.path)
    again = python("-m", "gradproof", "replay", "sub/report.json::test_chosen")
    assert (again.ret, again.outlines[-1]) == (1, "as in the report, which says WRONG")
    text = (folder / "report.json").read_text().replace("--factor 6", "--factor 3")
    (folder / "report.json").write_text(text)
    other = python("-m", "gradproof", "replay", "sub/report.json::test_chosen")
    other.assert_outcomes(passed=1)
    assert (other.ret, other.outlines[-1]) == (0, "not as in the report, which says WRONG: the check is RIGHT now")
    (folder / "report.json").write_text(text.replace("Cube.apply", "Square.apply"))
    gone = python("-m", "gradproof", "replay", "sub/report.json::test_chosen")
    missing = "the test made no check sub/test_sub.py::test_chosen > Square.apply"
    assert (gone.ret, gone.outlines[-1]) == (1, f"not as in the report, which says WRONG: {missing}")


def test_no_files_without_checks_and_no_word(run: Run, pytester: pytest.Pytester) -> None:
    result = run("\n    def test_nothing():\n        pass\n")
    assert "gradproof:" not in result.stdout.str()


def test_junit_of_pytest_holds_no_reports(run: Run, pytester: pytest.Pytester) -> None:
    run(FIXTURE, "--gradproof-json=report.json", "--junitxml=junit.xml")
    assert "gradproof-report" not in (pytester.path / "junit.xml").read_text()


def test_last_failed(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE + FIXTURE)
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1, failed=1)
    pytester.runpytest_inprocess(*PLUGIN, "--lf").assert_outcomes(failed=1)


NOTHING = """
import sys

def test_nothing():
    assert not {"gradproof", "torch", "jax", "numpy", "rich", "click"} & set(sys.modules)
"""


def test_nothing_is_loaded_before_it_is_used(
    pytester: pytest.Pytester, python: Callable[..., pytest.RunResult]
) -> None:
    pytester.makepyfile(NOTHING)
    done = python("-m", "pytest", *PLUGIN, "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1)


def installed(pytester: pytest.Pytester) -> None:
    """An installed gradproof, as far as pytest can see."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    (name, module), *others = project["project"]["entry-points"]["pytest11"].items()
    assert not others
    assert f"src/{module}.py" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    folder = pytester.mkdir("gradproof-0.dist-info")
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: gradproof\nVersion: 0\n")
    (folder / "entry_points.txt").write_text(f"[pytest11]\n{name} = {module}\n")


def test_the_entry_point_and_how_to_leave_it_out(
    pytester: pytest.Pytester, python: Callable[..., pytest.RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    installed(pytester)
    pytester.makepyfile("def test_fixture(gradproof):\n    assert gradproof.seed == 0\n")
    names = ("hypothesispytest", "jaxtyping", "xdist", "cacheprovider")
    others = [word for name in names for word in ("-p", f"no:{name}")]
    python("-m", "pytest", *others).assert_outcomes(passed=1)
    without = python("-m", "pytest", *others, "-p", "no:gradproof")
    without.assert_outcomes(errors=1)
    without.stdout.fnmatch_lines(["*fixture 'gradproof' not found"])


def test_the_inner_run_leaves_the_outer_one_alone(run: Run) -> None:
    import torch

    import gradproof_pytest

    before, checker = gradproof_pytest.host, torch.autograd.gradcheck
    run(FIXTURE, "--gradproof-replace-torch", "--gradproof-seed=9")
    assert gradproof_pytest.host is before
    assert torch.autograd.gradcheck is checker


@pytest.mark.slow
def test_with_xdist(run: Run, pytester: pytest.Pytester, python: Callable[..., pytest.RunResult]) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(SUITE + FIXTURE + PLAIN.replace("def test_", "def test_plain_"))
    options = ("-p", "xdist.plugin", "-n", "1", "--gradproof-seed=random", "--gradproof-json=report.json")
    result = python("-m", "pytest", *PLUGIN, "-p", "no:cacheprovider", *options)
    result.assert_outcomes(passed=4, failed=4)
    result.stdout.fnmatch_lines(
        ["gradproof: 8 programs checked, 5 wrong (1 in passing tests), 1 undecided (1 in passing tests), * calls, * s"]
    )
    report = loads((pytester.path / "report.json").read_text())
    assert len(report.results) == 8
    assert len({one.seed for one in report.results}) == 1
    assert any(name == "torch" for name, _ in report.environment)
    assert f"--gradproof-seed={report.results[0].seed}" in result.stdout.str()


def test_the_attribute_of_a_report_is_plain_data(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "import json\n\ndef pytest_runtest_logreport(report):\n"
        "    for one in getattr(report, 'gradproof_checks', ()):\n        print(json.dumps(one))\n"
    )
    printed = run(FIXTURE, "-s").stdout.str()
    found = [json.loads(line) for line in re.findall(r'(\{"name".*\})$', printed, re.MULTILINE)]
    assert [one["verdict"] for one in found] == ["right", "wrong"]
    assert Path(found[0]["name"].partition("::")[0]).suffix == ".py"
