"""`gradproof.check` on torch, end to end, as a user calls it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Budget, GradcheckError, Result, UsageError, Verdict

RIGHT, WRONG, UNDECIDED = Verdict.RIGHT, Verdict.WRONG, Verdict.UNDECIDED


def draw(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=dtype, generator=generator)


def check(fn: Any, *args: Any, **options: Any) -> Result:
    options.setdefault("seed", 1)
    return gradproof.check(fn, args, **options)


class Cube(torch.autograd.Function):
    """x^3 with a backward that can itself be differentiated."""

    scale = 3.0

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @classmethod
    def slope(cls, x: Tensor) -> Tensor:
        return cls.scale * x * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * Cube.slope(x)


class Detached(Cube):
    """Right once, but the gradient does not know that it depends on x."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * Cube.slope(x.detach())


class WrongTwice(Cube):
    """Right once; the second derivative is that of another function."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        value = Cube.slope(x).detach()
        return g * (value + (x - x.detach()) * 5.0)


class OnceOnly(Cube):
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * Cube.slope(x)


@pytest.mark.parametrize("size", [5, 30_000])
@pytest.mark.parametrize(
    ("fn", "verdict"), [(torch.sin, RIGHT), (Cube.apply, RIGHT), (Detached.apply, WRONG), (WrongTwice.apply, WRONG)]
)
def test_second_order_tells_right_from_wrong(fn: Any, verdict: Verdict, size: int) -> None:
    assert check(fn, draw(size)).ok
    result = check(fn, draw(size), order=2)
    assert result.verdict is verdict
    if verdict is WRONG:
        assert {c.order for c in result.comparisons if c.verdict is WRONG} == {2}
        assert {f.place.input.path for f in result.wrong if f.place.input} == {"args[0]"}


def test_a_backward_that_exists_only_once_is_unsupported_at_order_two() -> None:
    assert check(OnceOnly.apply, draw(4)).ok
    assert check(OnceOnly.apply, draw(4), order=2).verdict is Verdict.UNSUPPORTED


def test_third_order() -> None:
    assert check(lambda x: x.sin() * x, draw(3), order=3).ok


def structured(batch: dict[str, Any], scale: float, *, bias: Tensor) -> dict[str, Any]:
    total = batch["w"] @ batch["x"][0] * scale + bias
    return {"y": total, "count": 3, "index": total.argmax(), "none": None, "mask": (total > 0).double()}


def test_any_structure_of_arguments_and_outputs() -> None:
    batch = {"w": draw(3, 4), "x": [draw(4, seed=1), "name"]}
    result = gradproof.check(structured, (batch, 2.0), {"bias": draw(3, seed=2)}, seed=1)
    assert result.ok
    assert {c.input.path for c in result.comparisons} == {"args[0]['w']", "args[0]['x'][0]", "kwargs['bias']"}
    assert {s.path for s in result.skipped} == {"out['count']", "out['index']", "out['none']"}
    only = gradproof.check(structured, (batch, 2.0), {"bias": draw(3, seed=2)}, wrt="kwargs['bias']")
    assert {c.input.path for c in only.comparisons} == {"kwargs['bias']"}


def test_a_detached_output_beside_a_right_one_is_found() -> None:
    result = check(lambda x: (2 * x, (3 * x).detach()), draw(3))
    assert result.verdict is WRONG
    causes = {(f.diagnosis.code, f.place.output.path) for f in result.wrong if f.place.output and f.diagnosis}
    assert causes == {("detached", "out[1]")}
    assert check(lambda x: (2 * x, torch.ones(2, dtype=x.dtype)), draw(3)).ok


class Scaled(torch.nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3).double()
        self.weight = torch.nn.Parameter(draw(3))
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        held = self.weight * self.factor
        return self.norm(x) * (self.weight + held - held.detach())


@pytest.mark.parametrize(("factor", "verdict"), [(0.0, RIGHT), (0.5, WRONG)])
def test_parameters_of_a_module_are_checked_and_its_buffers_left_alone(factor: float, verdict: Verdict) -> None:
    module = Scaled(factor)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    result = check(module, draw(5, 3))
    assert result.verdict is verdict
    assert {c.input.path for c in result.comparisons} >= {"params.weight", "params.norm.weight", "args[0]"}
    if verdict is WRONG:
        assert {f.place.input.path for f in result.wrong if f.place.input} == {"params.weight"}
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert module.training


class ConjugateForgotten(torch.autograd.Function):
    right = False

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        ctx.save_for_backward(z)
        return z * z

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (z,) = ctx.saved_tensors
        return g * 2 * z


class Conjugated(ConjugateForgotten):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (z,) = ctx.saved_tensors
        return g * 2 * z.conj()


@pytest.mark.parametrize("size", [4, 20_000])
def test_complex_functions_are_maps_of_pairs(size: int) -> None:
    z = torch.complex(draw(size), draw(size, seed=1))
    assert check(Conjugated.apply, z).ok
    wrong = check(ConjugateForgotten.apply, z)
    assert wrong.verdict is WRONG
    assert wrong.wrong[0].place.input is not None
    assert wrong.wrong[0].place.input.part in ("real", "imag")
    for fn in (torch.abs, torch.angle, lambda z: torch.fft.fft(z[:8]), lambda z: z.real * z.imag, torch.exp):
        assert check(fn, z).ok
    assert check(lambda x: torch.complex(x.sin(), x.cos()), draw(size)).ok


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize("size", [6, 40_000])
def test_low_precision_runs_right_and_wrong(dtype: torch.dtype, size: int) -> None:
    x = draw(size, dtype=torch.complex64 if dtype.is_complex else torch.float32).to(dtype)
    assert check(torch.tanh, x).ok

    class Negated(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return -2 * ctx.saved_tensors[0].conj() * g

    assert check(Negated.apply, x).verdict is WRONG


OVERLAPPING = draw(8)


@pytest.mark.parametrize(
    "x",
    [
        torch.tensor(0.7, dtype=torch.float64),
        torch.empty(0, 3, dtype=torch.float64),
        draw(4, 6).t(),
        draw(4, 6)[::2, 1:4],
        draw(3, 1).expand(3, 5),
        OVERLAPPING.unfold(0, 3, 1),
        draw(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    ],
    ids=["0-d", "empty", "transposed", "sliced", "expanded", "unfolded", "channels last"],
)
def test_inputs_of_any_layout(x: Tensor) -> None:
    assert check(torch.sin, x).ok
    if x.numel():
        assert check(lambda x: x.sin() + (3 * x).detach() - 3 * x.detach() + x - x.detach(), x).verdict is WRONG


def test_functions_that_work_in_place_are_checked_and_leave_the_input_alone() -> None:
    x = draw(5).requires_grad_()
    before = x.detach().clone()
    assert check(lambda x: x.mul_(2.0).sin_(), x).ok
    assert torch.equal(x, before)
    assert x.grad is None


def test_the_world_is_as_before_also_when_the_function_raises() -> None:
    x = draw(5)
    before = x.clone()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    expected = (torch.rand(1).item(), np.random.random(), random.random())  # noqa: NPY002

    def restless(x: Tensor) -> Tensor:
        torch.rand(3)
        np.random.random(3)  # noqa: NPY002
        random.random()
        torch.set_default_dtype(torch.float32)
        return x.sin()

    def failing(x: Tensor) -> Tensor:
        restless(x)
        x.zero_()
        raise KeyError("mine")

    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    try:
        assert check(restless, x).ok
        with pytest.raises(KeyError, match="mine") as raised:
            check(failing, x)
        assert raised.traceback[-1].name == "failing"
        assert torch.get_default_dtype() is torch.float64
        assert torch.is_grad_enabled()
        assert (torch.rand(1).item(), np.random.random(), random.random()) == expected  # noqa: NPY002
        assert torch.equal(x, before)
    finally:
        torch.set_default_dtype(torch.float32)


def test_ctrl_c_comes_out_and_leaves_nothing_changed() -> None:
    x = draw(50)
    before, calls = x.clone(), 0

    def interrupted(x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        torch.rand(1)
        if calls >= 4:
            raise KeyboardInterrupt
        return x * float(x[0].detach())

    state = torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        check(interrupted, x)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(x, before)


def test_dropout_is_named_instead_of_accused() -> None:
    result = check(lambda x: torch.nn.functional.dropout(x, 0.5), draw(20))
    assert result.verdict is UNDECIDED
    assert [f.code for f in result.findings] == ["random"]


def test_the_million_within_its_budget_of_calls() -> None:
    calls = {"forward": 0, "backward": 0}

    class Counted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            calls["forward"] += 1
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            calls["backward"] += 1
            return g * ctx.saved_tensors[0].cos()

    result = check(Counted.apply, draw(10**6), modes="reverse")
    assert result.ok
    assert calls["forward"] <= 40
    assert calls["backward"] <= 6
    assert result.cost.evaluations == calls["forward"]
    assert result.cost.pulls == calls["backward"]


def test_assert_gradients_raises_with_the_result() -> None:
    gradproof.assert_gradients(torch.sin, (draw(3),), seed=1)
    with pytest.raises(GradcheckError, match=r"d out\[0\] / d args\[0\]\[0\]") as raised:
        gradproof.assert_gradients(lambda x: x * x.detach(), (draw(1),), seed=1)
    assert raised.value.result is not None
    assert raised.value.result.verdict is WRONG
    with pytest.raises(GradcheckError):
        gradproof.assert_gradients(lambda x: torch.nn.functional.dropout(x, 0.5), (draw(20),))
    check(lambda x: torch.nn.functional.dropout(x, 0.5), draw(20)).raise_if_wrong()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gradproof.check(3, (draw(2),)), "the first argument must be the function"),
        (lambda: gradproof.check(torch.sin, (draw(2),), [1]), "kwargs must be a dict"),
        (lambda: gradproof.check(torch.mul, draw(2), draw(2)), r"got Tensor; write check\(fn, \(x, y\)\)"),
        (
            lambda: gradproof.check(torch.sin, draw(2), spaces={"args[0]": gradproof.spaces.Symmetric}),
            r"write spaces=\{'args\[0\]': gradproof.spaces.Symmetric\(\)",
        ),
        (lambda: gradproof.check(torch.sin, (torch.arange(3),)), "no floating or complex tensor"),
        (lambda: gradproof.check(torch.sin, (draw(2),), wrt="args[7]"), r"args\[0\]"),
        (lambda: gradproof.check(torch.sin, (draw(2),), effort="full"), "effort='auto', 'exhaustive'"),
        (lambda: gradproof.check(torch.sin, (draw(2),), modes="backward"), "modes='reverse'"),
        (lambda: gradproof.check(torch.sin, (draw(2),), budget=Budget(calls=0)), r"Budget\(calls=200\)"),
    ],
)
def test_bad_calls_say_what_to_write(call: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        call()


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda x: None, "out: None"),
        (lambda x: 3.0, "out: float, not a tensor"),
        (lambda x: x.argmax(), "out: int64 has no derivative"),
        (lambda x: (), "nothing"),
    ],
)
def test_a_function_that_returns_nothing_to_differentiate_is_not_right(returned: Any, words: str) -> None:
    result = gradproof.check(returned, draw(2), seed=1)
    assert result.verdict is Verdict.UNSUPPORTED
    assert [finding.code for finding in result.findings] == ["unsupported"]
    assert words in result.findings[0].sentence
    assert gradproof.check(lambda x: (returned(x), x.sin()), draw(2), seed=1).ok


def test_an_empty_output_is_right() -> None:
    assert gradproof.check(torch.sin, draw(0), seed=1).ok


def test_the_price_of_checking_beside_a_non_floating_argument() -> None:
    table = draw(6, 3)
    assert check(lambda w, index: w[index], table, torch.tensor([1, 4, 1])).ok


@pytest.mark.parametrize("count", [40])
def test_many_leaves_cost_a_few_calls_each(count: int) -> None:
    tensors = [draw(2000, seed=k) for k in range(count)]
    result = gradproof.check(lambda *parts: sum(p.sin().sum() for p in parts), tuple(tensors), seed=1, modes="reverse")
    assert result.ok
    assert result.cost.evaluations <= 8 * count
    wrong = gradproof.check(
        lambda *parts: sum(p.sin().sum() for p in parts) + (0.1 * parts[17][5]).detach() - 0.1 * parts[17][5],
        tuple(tensors),
        seed=1,
        modes="reverse",
    )
    assert {str(f.place.input) for f in wrong.wrong} == {"args[17][5]"}
