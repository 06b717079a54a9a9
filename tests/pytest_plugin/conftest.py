"""pytest inside pytest: each test writes a small suite and runs it with the plugin."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from inner_runs import PLUGIN, SUITE, Run

import gradproof
import gradproof.render.json
import gradproof.torch.dropin.replace


@pytest.fixture(scope="session")
def loaded() -> None:
    """pytester forgets what an inner run loads, and parts of torch cannot be loaded twice: load what checks use."""
    for fn in (torch.sin, lambda x: x * x.detach()):
        str(gradproof.check(fn, torch.ones(2, 2, dtype=torch.float64), order=2, seed=0))


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, loaded: None) -> None:
    """Inner runs find this gradproof, and load no other plugins, some of which take seconds."""
    monkeypatch.setenv("PYTHONPATH", str(Path(gradproof.__file__).parents[1]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("CI", "BUILD_NUMBER"):  # pytest cuts its summary only where nobody but a person reads it
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """`run(tests, *options)`: the suite above and these tests, in this process."""

    def go(tests: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(SUITE + tests)
        return pytester.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", *options)

    return go


@pytest.fixture
def python(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """`python(*words)`: a fresh interpreter in the suite's folder."""
    return lambda *words: pytester.run(sys.executable, *words)
