"""Checks in several threads at once: each gives what it gives alone, and leaves what it checks as it was."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

import gradproof
from gradproof.torch import gradcheck, turns

THREADS = 6


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Threads change places more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Twin(torch.autograd.Function):
    """x * w, with a gradient of w that is `factor` times the right one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(x, w)
        ctx.factor = factor
        return x * w

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, w = ctx.saved_tensors
        return grad * w, ctx.factor * grad * x, None


class Scale(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64))
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = Twin.apply(x, self.w, self.factor)
        return result.tanh()


def at_once(run: Callable[[int], object], count: int = THREADS) -> list[object]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def point(seed: int = 0, *shape: int) -> Tensor:
    return torch.randn(*(shape or (3,)), dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_threads_with_functions_of_their_own_in_a_new_process() -> None:
    program = """
import torch, gradproof
from concurrent.futures import ThreadPoolExecutor
x = torch.ones(5, 5, dtype=torch.float64)
with ThreadPoolExecutor(6) as pool:
    checked = pool.map(lambda i: gradproof.check(lambda x: (x @ x).tanh(), x, seed=i), range(6))
    print({str(one.verdict) for one in checked})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'RIGHT'}"


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "RIGHT"), (1.01, "WRONG")])
@pytest.mark.parametrize("way", ["module", "reseeded", "captured", "both"])
def test_a_module_that_threads_share(way: str, factor: float, verdict: str) -> None:
    net = nn.Sequential(nn.Linear(3, 3), Scale(factor)).double()
    x = point()
    params = tuple(net.parameters())  # not in a thread: another one may have put its own tensors there
    before = [(one, one.detach().clone()) for one in params]

    def run(i: int) -> str:
        if way == "captured" or (way == "both" and i % 2):
            return str(gradproof.check(lambda *_: net(x), params, seed=i).verdict)
        options: dict[str, Any] = {"randomness": "reseed"} if way == "reseeded" else {}
        return str(gradproof.check(net, x, seed=i, **options).verdict)

    assert set(at_once(run)) == {verdict}
    for (one, value), now in zip(before, net.parameters(), strict=True):
        assert now is one
        assert torch.equal(now, value)


def test_a_part_of_a_module_and_the_whole() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)).double()
    assert set(at_once(lambda i: gradproof.check(net if i % 2 else net[0], point(i), seed=i).ok)) == {True}


def test_the_drop_in_in_threads() -> None:
    net = nn.Linear(3, 2).double()
    x = point().requires_grad_()

    def run(_: int) -> bool:
        return gradcheck(lambda x, *_: net(x), (x, *net.parameters()), check_forward_ad=False) and gradcheck(
            torch.sin, (x,), check_forward_ad=True, check_batched_forward_grad=True
        )

    assert set(at_once(run)) == {True}


def test_a_function_whose_own_threads_check_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """In forward mode the outer check has the only dual level, and waits for the inner one."""
    monkeypatch.setattr(turns, "PATIENCE", 0.05)
    inner: list[gradproof.Result] = []

    def waits(x: Tensor) -> Tensor:
        if not inner and forward_ad._current_level >= 0:
            thread = threading.Thread(target=lambda: inner.append(gradproof.check(torch.sin, point(), seed=1)))
            thread.start()
            thread.join()
        return x.cos()

    assert gradproof.check(waits, point(), seed=1).ok
    assert inner[0].ok
    assert "another thread has been in forward mode" in str(inner[0])


def test_who_waits_long_for_a_module_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.05)
    net, entered, go = nn.Linear(2, 2).double(), threading.Event(), threading.Event()

    def blocked() -> None:
        with turns.Turn([net._parameters]):
            entered.set()
            go.wait(10)

    thread = threading.Thread(target=blocked)
    thread.start()
    entered.wait(10)
    threading.Timer(0.3, go.set).start()
    with pytest.warns(RuntimeWarning, match="another thread"):
        assert gradproof.check(net, point(0, 2, 2)).ok
    thread.join()
    assert not turns._HELD


def test_the_filters_of_warnings_are_left_as_they_were() -> None:
    before = list(warnings.filters)

    def checked(k: int) -> bool:
        x = torch.linspace(0.1, 1 + k, 40, dtype=torch.float64)
        return gradproof.check(lambda x: x.cumsum(0).sin(), x, effort="exhaustive", seed=k).ok

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(checked, range(4 * THREADS)))
    assert warnings.filters == before
