"""`--gradproof-replace-torch`: suites written for torch's checker run on ours, with the same verdicts."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from inner_runs import PLUGIN

import gradproof.torch
from gradproof.torch.dropin.replace import replaced

SUITE = (Path(__file__).parent / "kornia_style.py").read_text()


@dataclass(frozen=True)
class Outcomes:
    """What became of each test, and all that was printed."""

    tests: dict[str, str]
    printed: str


def outcomes(pytester: pytest.Pytester, *options: str) -> Outcomes:
    """The suite is loaded afresh, as it binds torch's names when it is."""
    sys.modules.pop("test_kornia_style", None)
    result = pytester.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", "-v", "-W", "ignore", *options)
    printed = result.stdout.str()
    return Outcomes(dict(re.findall(r"::(\S+) (PASSED|FAILED|ERROR)", printed)), printed)


@pytest.mark.slow
def test_fifty_uses_have_the_same_verdicts(pytester: pytest.Pytester) -> None:
    importlib.import_module("torch.testing._internal.common_utils")  # once: an inner run would load it each time
    pytester.makepyfile(test_kornia_style=SUITE)
    theirs = outcomes(pytester)
    ours = outcomes(pytester, "--gradproof-replace-torch")
    assert len(theirs.tests) >= 45
    assert ours.tests == theirs.tests
    assert {name for name, outcome in ours.tests.items() if outcome != "PASSED"} == {"test_a_mistake_that_stays"}
    # Each use was ours: every one is counted, and none without the option.
    assert "gradproof:" not in theirs.printed
    found = re.search(r"gradproof: (\d+) programs checked, 14 wrong \(13 in passing tests\)", ours.printed)
    assert found
    assert int(found[1]) >= 50
    assert "E       Jacobian mismatch for output 0 with respect to input 0," in ours.printed
    assert "gradproof/torch" not in ours.printed


CONFTEST = """
from torch.autograd import gradcheck
import pytest

@pytest.fixture
def checker():
    return gradcheck
"""


def test_a_conftest_gets_ours_too(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(
        "import gradproof.torch\n\ndef test_ours(checker):\n    assert checker is gradproof.torch.gradcheck\n"
    )
    sys.modules.pop("conftest", None)
    pytester.runpytest_inprocess(*PLUGIN, "--gradproof-replace-torch").assert_outcomes(passed=1)


def test_everything_is_put_back() -> None:
    module = importlib.import_module("torch.autograd.gradcheck")
    names = ("gradcheck", "gradgradcheck", "GradcheckError")
    before = [getattr(module, name) for name in names] + [torch.autograd.gradcheck, torch.sparse.as_sparse_gradcheck]
    with contextlib.suppress(ZeroDivisionError), replaced():
        assert torch.autograd.gradcheck is gradproof.torch.gradcheck
        assert torch.autograd.gradgradcheck is gradproof.torch.gradgradcheck
        assert module.gradcheck is gradproof.torch.gradcheck
        assert module.GradcheckError is gradproof.GradcheckError
        raise ZeroDivisionError
    after = [getattr(module, name) for name in names] + [torch.autograd.gradcheck, torch.sparse.as_sparse_gradcheck]
    assert after == before


def test_without_torch(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makepyfile("def test_nothing():\n    pass\n")
    monkeypatch.setitem(sys.modules, "torch", None)
    result = pytester.runpytest_inprocess(*PLUGIN, "--gradproof-replace-torch")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--gradproof-replace-torch needs torch, which is not installed" in result.stderr.str() + result.stdout.str()
