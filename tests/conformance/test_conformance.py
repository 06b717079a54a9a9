"""One suite for all adapters: they differ in code, not in tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import backends
import pytest

from gradproof import adapters
from gradproof.conformance import Failure, Scenario, scenarios
from gradproof.numpy.numpyprogram import NumpyProgram

BACKENDS = {
    "numpy": (backends.NumpyBackend, "numpy"),
    "torch": (backends.TorchBackend, "torch"),
    "jax": (backends.JaxBackend, "jax"),
    "boxes": (backends.BoxesBackend, "boxes"),
}
CASES = [
    pytest.param(name, scenario, id=f"{name}-{scenario}", marks=[pytest.mark.slow] * ("1,000,000" in scenario.name))
    for name in BACKENDS
    for scenario in scenarios()
]


@pytest.fixture
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    make, module = BACKENDS[request.param]
    if importlib.util.find_spec(module) is None or (module == "jax" and "jax" not in adapters.BUILT_IN):
        pytest.skip(f"{module} is not there")
    if module == "jax":
        from gradproof.jax.scope import enable_x64

        with enable_x64(True):
            yield make()
        return
    if module == "boxes":  # as an entry point would add it
        import boxes

        known = (("boxes", lambda: boxes), *adapters._known())
        monkeypatch.setattr(adapters, "_known", lambda: known)
    yield make()


@pytest.mark.parametrize(("backend", "scenario"), CASES, indirect=["backend"])
def test_an_adapter_conforms(backend: Any, scenario: Scenario) -> None:
    if scenario.missing(backend):
        pytest.skip(scenario.missing(backend))
    scenario.run(backend)


# ---- the suite itself: adapters with one mistake each are caught


def by_name(name: str) -> Scenario:
    return next(scenario for scenario in scenarios() if scenario.name == name)


MISTAKES: dict[str, tuple[str, Any]] = {
    "batches equal loops": ("values", lambda real: lambda self, points: real(self, points)[::-1]),
    "pull is the adjoint of push": ("pull", lambda real: lambda self, rows: 2 * real(self, rows)),
    "pull of complex numbers": (
        "pull",
        lambda real: lambda self, rows: real(self, rows) * [1, -1, 1, -1, 1, -1, 1, -1],
    ),
    "work is counted": ("values", lambda real: lambda self, points: real(self, points[:1])),
    "the same value again": ("repeated_value", lambda real: lambda self: real(self) + 1e-9),
    "steps out of the domain": ("values", lambda real: lambda self, points: real(self, abs(points))),
    "one argument": ("pull", lambda real: lambda self, rows: -real(self, rows)),
    "the gradient is a program": ("gradient", lambda real: lambda self, w: self),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_adapter_with_a_mistake_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, spoil = MISTAKES[name]
    monkeypatch.setattr(NumpyProgram, method, spoil(getattr(NumpyProgram, method)))
    with pytest.raises(Failure):
        by_name(name).run(backends.NumpyBackend())


def test_an_adapter_that_mistakes_complex_numbers_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends.NumpyBackend, "call", _conjugated(backends.NumpyBackend.call))
    with pytest.raises(Failure):
        by_name("complex to complex").run(backends.NumpyBackend())


def _conjugated(real: Any) -> Any:
    def call(self: Any, rule: Any, args: Any) -> Any:
        vjp = rule.vjp
        return real(self, replace(rule, vjp=lambda b, w, *a: vjp(b, w.conj(), *a)), args)

    return call


def test_an_adapter_that_changes_its_arguments_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaking(self: Any, row: Any, fixed: Any = None) -> Any:
        return tuple(value for _, value in self._named), {}

    from gradproof.numpy.calls import Call

    monkeypatch.setattr(Call, "arguments", leaking)
    with pytest.raises(Failure):
        by_name("nothing is changed").run(backends.NumpyBackend())


def test_every_scenario_has_a_name_of_its_own() -> None:
    names = [scenario.name for scenario in scenarios()]
    assert len(set(names)) == len(names) >= 30
