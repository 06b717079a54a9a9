"""A backward that is not linear is found whatever it depends on, at every size of the output, with every seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Verdict
from gradproof.settings import Effort
from gradproof.torch import gradcheck
from gradproof.torch.dropin import judge

Rule = Callable[[Tensor], Tensor]

WRONG: dict[str, Rule] = {
    "absolute": lambda g: 2 * g.abs(),
    "no negative ones": lambda g: 2 * g.clamp(min=0),
    "clipped to one": lambda g: 2 * g.clamp(-1, 1),
    "clipped where large": lambda g: 2 * g.clamp(-5e3, 5e3),
    "negative ones halved": lambda g: 2 * torch.where(g < 0, g / 2, g),
    "zero where small": lambda g: 2 * torch.where(g.abs() < 1e-3, 0.0, g),
    "another one where the sum is negative": lambda g: (2 + (g.sum() < 0)) * g,
    "clipped by the norm": lambda g: 2 * g / g.norm().clamp(min=1.0),
}
RIGHT: dict[str, Rule] = {
    "plain": lambda g: 2 * g,
    "through float64 and back": lambda g: (2 * g.to(torch.complex128)).real,
}
EFFORTS: tuple[Effort, ...] = ("auto", 1, 2)


def doubled(rule: Rule) -> Callable[[Tensor], Tensor]:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return rule(g)

    return Doubled.apply  # type: ignore[no-any-return]


def at(size: int) -> Tensor:
    return torch.linspace(-1.1, 1.3, size, dtype=torch.float64).requires_grad_()


# Of many cotangents some are small; a single one is not as small as that (see `contracts.linear`).
SMALL = "zero where small"


@pytest.mark.parametrize("size", [1, 2, 3, 17])
@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("name", [name for name in WRONG if name != SMALL])
def test_the_wrong_ones_are_found(name: str, effort: Effort, size: int) -> None:
    for seed in range(8):
        result = gradproof.check(doubled(WRONG[name]), at(size), effort=effort, seed=seed)
        assert result.verdict is Verdict.WRONG, f"seed {seed}: {result}"


@pytest.mark.parametrize("size", [17, 100])
@pytest.mark.parametrize("effort", EFFORTS)
def test_what_drops_small_ones_is_found_among_many(effort: Effort, size: int) -> None:
    test_the_wrong_ones_are_found(SMALL, effort, size)


@pytest.mark.parametrize("size", [1, 2, 3, 17])
@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("name", RIGHT)
def test_the_right_ones_pass(name: str, effort: Effort, size: int) -> None:
    for seed in range(8):
        assert gradproof.check(doubled(RIGHT[name]), at(size), effort=effort, seed=seed).ok


@pytest.mark.parametrize("size", [1, 17, 5_000, 100_000])
def test_a_cotangent_in_half_precision_is_called_so(size: int) -> None:
    """Unit vectors and powers of two come through as they are: a probe of many entries shows that something is off."""
    for seed in range(3 if size > 10_000 else 12):
        result = gradproof.check(doubled(lambda g: 2 * g.half().double()), at(size), seed=seed)
        (finding,) = [one for one in result.wrong if one.code == "nonlinear"]
        assert finding.diagnosis is not None, f"seed {seed}: {result}"
        assert finding.diagnosis.code == "precision"
        assert finding.diagnosis.sentence.endswith("is rounded to float16, and linear but for that")
        assert gradproof.check(doubled(lambda g: 2 * g.float().double()), at(size), seed=seed).ok


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("size", [1, 3, 17])
def test_the_drop_in_has_no_lucky_seed(size: int, fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(24):
        monkeypatch.setattr(judge, "seed", lambda seed=seed: seed)
        for name, rule in WRONG.items():
            if name == SMALL and size < 17:
                continue
            assert not gradcheck(doubled(rule), at(size), fast_mode=fast, raise_exception=False), (seed, name)
        for name, rule in RIGHT.items():
            assert gradcheck(doubled(rule), at(size), fast_mode=fast), (seed, name)


def rough(rule: Rule) -> Callable[[Tensor], Tensor]:
    """Twice its argument. The first entry of the gradient is only known to a tenth: it is never the same a rounding
    away."""

    def backward(g: Tensor) -> Tensor:
        noise = 0.1 * g.norm() * torch.sin(1e18 * g.sum())
        return torch.cat((2 * g[:1] + noise, rule(g[1:])))

    return doubled(backward)


@pytest.mark.parametrize("seed", range(8))
def test_the_entry_that_rounding_does_not_excuse_is_named(seed: int) -> None:
    def found(rule: Rule) -> list[str]:
        result = gradproof.check(rough(rule), at(3), modes="reverse", effort="exhaustive", seed=seed)
        return [str(one.place.input) for one in result.findings if one.code == "nonlinear"]

    assert found(lambda g: torch.stack((2 * g[0], 2 * g[1] + 1e-3 * g[1].abs()))) == ["args[0][2]"]
    assert found(RIGHT["plain"]) == []
