"""Cases found in files, packages and modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradproof.collect import Target, load
from gradproof.errors import UsageError

SMALL = "import gradproof\n\n\n@gradproof.case\ndef {name}():\n    return abs, {value}\n"


def names(text: str) -> list[str]:
    return [case.name for case in Target.parsed(text).cases()]


def test_a_file_in_the_order_of_definition(folder: Path) -> None:
    assert names("cases.py") == [
        "cases.py::right",
        "cases.py::wrong",
        "cases.py::undecided",
        "cases.py::broken",
        "cases.py::softmax[n=1,seed=0]",
        "cases.py::softmax[n=1,seed=1]",
        "cases.py::softmax[n=8,seed=0]",
        "cases.py::softmax[n=8,seed=1]",
    ]


def test_one_function_and_one_case(folder: Path) -> None:
    assert len(names("cases.py::softmax")) == 4
    assert names("cases.py::softmax[n=8,seed=1]") == ["cases.py::softmax[n=8,seed=1]"]


def test_a_module_by_name(folder: Path) -> None:
    assert names("cases::right") == ["cases::right"]


def test_a_file_of_a_package_may_import_its_neighbours(folder: Path) -> None:
    package = folder / "pkg" / "inner"
    package.mkdir(parents=True)
    (folder / "pkg" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "values.py").write_text("VALUE = 4.0\n")
    (package / "mine.py").write_text("from .values import VALUE\n" + SMALL.format(name="one", value="VALUE"))
    (case,) = Target.parsed("pkg/inner/mine.py").cases()
    assert case.make(0).args == 4.0
    assert names("pkg.inner.mine") == ["pkg.inner.mine::one"]


def test_a_file_may_import_what_lies_beside_it(folder: Path) -> None:
    (folder / "beside").mkdir()
    (folder / "beside" / "helper_of_cases.py").write_text("VALUE = 5.0\n")
    (folder / "beside" / "mine.py").write_text(
        "from helper_of_cases import VALUE\n" + SMALL.format(name="a", value="VALUE")
    )
    (case,) = Target.parsed("beside/mine.py").cases()
    assert case.make(0).args == 5.0


def test_two_files_of_the_same_name(folder: Path) -> None:
    for value, part in enumerate(("a", "b")):
        (folder / part).mkdir()
        (folder / part / "same.py").write_text(SMALL.format(name="case", value=value))
    made = [next(Target.parsed(f"{part}/same.py").cases()).make(0).args for part in ("a", "b", "a")]
    assert made == [0, 1, 0]
    assert load("a/same.py") is load("a/same.py")


def test_imported_cases_are_not_collected_twice(folder: Path) -> None:
    (folder / "more.py").write_text("from cases import right\n" + SMALL.format(name="own", value=1) + "alias = own\n")
    assert names("more.py") == ["more.py::own"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere.py", "there is no file 'nowhere.py'"),
        ("no.such.module", r"there is no module 'no.such.module' .*; write package.module or path/to/file.py"),
        ("syntax.py", r"syntax.py cannot be imported: SyntaxError: invalid syntax \(syntax.py, line 1\)$"),
        (
            "missing.py",
            r"missing.py cannot be imported: ModuleNotFoundError: .* 'nosuch' \(.*missing.py:1\)",
        ),
        ("cases.py::nothing", r"holds no case 'nothing'; it has right, wrong, undecided"),
        ("empty.py", r"(?s)holds no cases; write one:.*@gradproof.case"),
        ("empty.py::f", r"or look at one function: gradproof check empty.py:f --arg"),
        ("failing.py", r"failing.py cannot be imported: ZeroDivisionError: division by zero \(.*failing.py:2\)"),
        (".", r"\. is a folder; name a file: gradproof check cases\.py"),
    ],
)
def test_what_is_said_when_there_is_nothing(folder: Path, target: str, words: str) -> None:
    (folder / "empty.py").write_text("import gradproof\n")
    (folder / "failing.py").write_text("x = 0\ny = 1 / x\n")
    (folder / "syntax.py").write_text("def f(:\n")
    (folder / "missing.py").write_text("import nosuch\n")
    with pytest.raises(UsageError, match=words):
        names(target)


@pytest.mark.parametrize("mark", ["@gradproof.case", "@gradproof.case(order=2)"])
def test_two_cases_of_one_name(folder: Path, mark: str) -> None:
    """The second takes the place of the first; a function of the same name that is no case may go before."""
    function = "def sine():\n    return abs, 1.0\n"
    (folder / "once.py").write_text(f"import gradproof\n{function}{mark}\n{function}")
    assert [case.name for case in Target("once.py").cases()] == ["once.py::sine"]
    (folder / "twice.py").write_text(f"import gradproof\n{mark}\n{function}{mark}\n{function}")
    with pytest.raises(UsageError, match=r"twice.py holds two cases named sine \(lines 2 and 5\); give one another"):
        list(Target("twice.py").cases())


MADE = """
import gradproof


def made(value, name="one"):
    def one():
        return abs, value

    one.__name__ = name
    return gradproof.case(one)


a = made(1.0)
b = made(2.0{name})
"""
LOOP = """
import gradproof

for value in (1.0, 2.0):

    @gradproof.case
    def one():
        return abs, value
"""
LAMBDAS = """
import gradproof

a = gradproof.case(lambda: (abs, 1.0))
b = {other}gradproof.case(lambda: (abs, 2.0))
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MADE.format(name=""), r"two cases named one \(a and b from line 6\); give each a __name__ of its own, or"),
        (LOOP, r"two cases named one \(both from line 6\); give each a __name__ of its own, or"),
        (LAMBDAS.format(other=""), r"two cases named <lambda> \(lines 4 and 5\); write def NAME\(\): for each"),
    ],
)
def test_two_cases_of_one_name_however_they_were_made(folder: Path, text: str, words: str) -> None:
    (folder / "twice.py").write_text(text)
    for target in ("twice.py", "twice"):
        with pytest.raises(UsageError, match=rf"twice\.py holds {words}"):
            names(target)


def test_cases_that_a_factory_gave_names_of_their_own(folder: Path) -> None:
    (folder / "named.py").write_text(MADE.format(name=", name='other'"))
    assert names("named.py") == ["named.py::one", "named.py::other"]
    (folder / "single.py").write_text(LAMBDAS.format(other="None and "))
    assert names("single.py") == ["single.py::<lambda>"]


def test_a_folder_is_not_a_file(folder: Path) -> None:
    (folder / "pkg").mkdir()
    (folder / "pkg" / "cases.py").touch()
    for written in (".", "pkg", "pkg/"):
        with pytest.raises(UsageError, match=r"is a folder; name a file: gradproof check (pkg/)?cases\.py"):
            names(written)


def test_a_package_beside_is_a_module_with_cases_or_a_folder(folder: Path) -> None:
    for name, text in (("empty_one", ""), ("full_one", SMALL.format(name="one", value="4.0"))):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(text)
    assert names("full_one") == ["full_one::one"]
    assert callable(load("full_one").one)
    with pytest.raises(UsageError, match=r"empty_one is a folder; name a file: gradproof check empty_one/cases\.py"):
        names("empty_one")
