"""Arguments that stay within bounds and in spaces; outputs with gauge freedom; random functions on request."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from given_rules import with_backward

import gradproof
from gradproof import UsageError
from gradproof.result import Result, Verdict
from gradproof.spaces import (
    Hermitian,
    LowerTriangular,
    Orthogonal,
    PositiveDefinite,
    Projector,
    Simplex,
    Sparsity,
    Symmetric,
    UpperTriangular,
)

Tensor = torch.Tensor
DOUBLE = torch.float64


def drawn(*shape: int, dtype: torch.dtype = DOUBLE, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def guarded(low: float, high: float) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        if x.min() < low or x.max() > high:
            raise AssertionError(f"evaluated at {x.min()}, {x.max()}")
        return x.sin() * x + x.mean()

    return function


def on_the_border(size: int) -> Tensor:
    x = torch.rand(size, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    x[0], x[1], x[2], x[3] = 0.0, 1.0, 1e-9, 1 - 1e-7
    x[size // 2 :] = x[size // 2 :].round()
    return x


def refused(result: Result) -> bool:
    return any("fn raised" in note for note in result.notes)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("size", "effort"), [(8, "exhaustive"), (8, 2), (10_000, "auto")])
def test_nothing_is_evaluated_outside_of_the_bounds(size: int, effort: Any, order: int) -> None:
    result = gradproof.check(guarded(0, 1), on_the_border(size), bounds=(0, 1), effort=effort, order=order, seed=1)
    assert result.verdict is Verdict.RIGHT, str(result)
    assert not refused(result), result.notes


@pytest.mark.parametrize("place", [0, 1, 2, 3, 5, 7])
@pytest.mark.parametrize(("size", "effort"), [(8, "exhaustive"), (8, 1), (10_000, "auto")])
def test_a_wrong_gradient_within_bounds_is_found(size: int, effort: Any, place: int) -> None:
    inside = guarded(0, 1)

    def backward(x: Tensor, g: Tensor) -> Tensor:
        result = g * (x.cos() * x + x.sin()) + g.mean()
        result[place] += 0.1 * g[place]
        return result

    result = gradproof.check(
        with_backward(inside, backward), on_the_border(size), bounds={"args[0]": (0, 1)}, effort=effort, seed=1
    )
    assert result.verdict is Verdict.WRONG
    worst = result.comparisons[0].worst
    assert worst is not None
    assert str(worst.place) == f"d out[{place}] / d args[0][{place}]"
    assert not refused(result)


def test_bounds_of_one_argument_and_by_array() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        if (x < torch.tensor([0.0, 2.0], dtype=DOUBLE)).any():
            raise ValueError("outside")
        return x.sqrt() * y

    x, y = torch.tensor([1e-6, 2.0], dtype=DOUBLE), drawn(2)
    result = gradproof.check(function, (x, y), bounds={"args[0]": ([0.0, 2.0], None)}, seed=1)
    assert result.ok, str(result)
    assert not refused(result)


def test_a_float32_argument_on_a_bound_that_is_no_float32() -> None:
    result = gradproof.check(torch.exp, torch.tensor([0.1, 0.05]), bounds=(None, 0.1), seed=1)
    assert result.ok, str(result)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (3.0, "pair"),
        ((0, 1, 2), "pair"),
        ((1, 0), "no room"),
        (("a", 1), "no numbers"),
        ({"args[7]": (0, 1)}, "matches no"),
        ((0.5, None), r"args\[0\]\[0\] is 0.25, outside"),
        ({"args[0]": ([0.0] * 3, None)}, "shape"),
    ],
)
def test_bounds_that_are_not_understood(bounds: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        gradproof.check(torch.sin, torch.tensor([0.25, 0.75], dtype=DOUBLE), bounds=bounds)


def spd(n: int, dtype: torch.dtype = DOUBLE) -> Tensor:
    a = drawn(n, n, dtype=dtype)
    return a @ a.mH + torch.eye(n, dtype=dtype)


def orthogonal(rows: int, columns: int, dtype: torch.dtype = DOUBLE) -> Tensor:
    return torch.linalg.qr(drawn(rows, columns, dtype=dtype))[0]


def strictly_symmetric(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Refuses what is not symmetric to rounding, in single calls."""

    def checked(a: Tensor) -> Tensor:
        if not torch._C._functorch.is_batchedtensor(a):
            assert torch.allclose(a, a.mH, rtol=0, atol=1e-12), "not symmetric"
        return function(a)

    return checked


def stays_orthogonal(q: Tensor) -> Tensor:
    if not torch._C._functorch.is_batchedtensor(q):
        assert torch.allclose(q.mH @ q, torch.eye(q.shape[-1], dtype=q.dtype), rtol=0, atol=1e-12), "not orthogonal"
    return (q.mH @ torch.diag(torch.arange(1.0, q.shape[-2] + 1)).to(q.dtype) @ q).real.sin()


SIDE = drawn(4, 2)
RIGHT = {
    "cholesky": (torch.linalg.cholesky, spd(4), Symmetric()),
    "cholesky, complex": (torch.linalg.cholesky, spd(3, torch.complex128), Hermitian()),
    "log-determinant": (strictly_symmetric(torch.logdet), spd(5), PositiveDefinite()),
    "several matrices": (torch.linalg.eigvalsh, torch.stack([spd(3), spd(3) + 1]), Symmetric()),
    "eigenvalues, Hermitian": (strictly_symmetric(torch.linalg.eigvalsh), spd(4, torch.complex128), Hermitian()),
    "triangular solve": (
        lambda a: torch.linalg.solve_triangular(a, SIDE, upper=False),
        torch.linalg.cholesky(spd(4)),
        LowerTriangular(),
    ),
    "upper triangle": (
        lambda a: torch.linalg.solve_triangular(a, SIDE, upper=True),
        torch.linalg.cholesky(spd(4)).T.contiguous(),
        UpperTriangular(),
    ),
    "orthogonal": (stays_orthogonal, orthogonal(5, 5), Orthogonal()),
    "orthonormal columns": (stays_orthogonal, orthogonal(6, 3), Orthogonal()),
    "unitary": (stays_orthogonal, orthogonal(3, 3, torch.complex128), Orthogonal()),
    "simplex": (lambda p: -(p * p.log()).sum(-1), torch.softmax(drawn(3, 4), -1), Simplex()),
    "simplex along the first axis": (lambda p: (p * p).sum(0).log(), torch.softmax(drawn(3, 4), 0), Simplex(axis=0)),
    "sparsity": (lambda a: (a @ a).sin(), drawn(4, 4).tril(), Sparsity(np.tri(4))),
    "one's own": (lambda x: (x * x).sin(), drawn(5) - drawn(5).mean(), Projector(lambda d: d - d.mean())),
}


def in_space(name: str, **options: Any) -> Result:
    function, point, space = RIGHT[name]
    return gradproof.check(function, point, spaces={"args[0]": space}, seed=1, **options)


@pytest.mark.parametrize("effort", ["exhaustive", 2])
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_gradient_in_a_space_is_right(name: str, effort: Any) -> None:
    result = in_space(name, effort=effort)
    assert result.verdict is Verdict.RIGHT, str(result)
    assert not refused(result), result.notes


@pytest.mark.parametrize("name", ["cholesky", "orthogonal", "simplex"])
def test_second_derivatives_in_a_space(name: str) -> None:
    result = in_space(name, order=2)
    assert result.verdict is Verdict.RIGHT, str(result)
    assert not refused(result), result.notes


@pytest.mark.parametrize("effort", ["exhaustive", 1])
@pytest.mark.parametrize("name", RIGHT)
def test_a_wrong_gradient_in_a_space_is_wrong(name: str, effort: Any) -> None:
    """The gradient of the right function, 3 % too large: its tangent part is never zero here."""
    function, point, space = RIGHT[name]

    def backward(x: Tensor, g: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return 1.03 * torch.autograd.grad(function(x), x, g)[0]

    result = gradproof.check(with_backward(function, backward), point, spaces={"args[0]": space}, effort=effort, seed=1)
    assert result.verdict is Verdict.WRONG, str(result)


def test_the_place_of_a_wrong_entry_is_the_users_own() -> None:
    """Wrong at [2, 1] only, which shows there and at its mirror image."""
    a = spd(4)

    def backward(x: Tensor, g: Tensor) -> Tensor:
        result = g * x.inverse()
        result[2, 1] += 0.5 * g
        return result

    for effort in ("exhaustive", 1):
        result = gradproof.check(
            with_backward(torch.logdet, backward), a, spaces={"args[0]": Symmetric()}, effort=effort, seed=1
        )
        assert {str(entry.place) for entry in result.comparisons[0].found} <= {
            "d out / d args[0][1, 2]",
            "d out / d args[0][2, 1]",
        }
        assert result.comparisons[0].found


def test_a_function_that_reads_one_triangle_is_right_where_the_argument_stays_symmetric() -> None:
    """torch's gradient is that of the symmetric matrix; entry by entry it is another one."""
    a = spd(4)
    assert gradproof.check(torch.linalg.eigvalsh, a, seed=1).verdict is Verdict.WRONG
    assert gradproof.check(torch.linalg.eigvalsh, a, spaces={"args[0]": Symmetric()}, seed=1).ok


def test_a_large_argument_in_a_space() -> None:
    """20,000 coordinates: probes, and the wrong entry found."""
    p = torch.softmax(drawn(100, 200), -1)

    def backward(x: Tensor, g: Tensor) -> Tensor:
        result = -g[:, None] * (x.log() + 1)
        result[40, 7] *= 1.2
        return result

    entropy = RIGHT["simplex"][0]
    assert gradproof.check(entropy, p, spaces={"args[0]": Simplex()}, seed=1).ok
    result = gradproof.check(with_backward(entropy, backward), p, spaces={"args[0]": Simplex()}, seed=1)
    assert str(result.comparisons[0].found[0].place) == "d out[40] / d args[0][40, 7]"


def test_a_projector_with_its_own_way_back() -> None:
    """The unit sphere."""
    x = drawn(5) / drawn(5).norm()
    point = x.numpy()

    def back(origin: Any, tangent: Any) -> Any:
        reached = origin + tangent
        return reached / np.linalg.norm(reached)

    sphere = Projector(lambda d: d - point * (point @ d), back)

    def function(x: Tensor) -> Tensor:
        if not torch._C._functorch.is_batchedtensor(x):
            assert abs(float(x.detach().norm()) - 1) < 1e-12
        return x.sin()

    result = gradproof.check(function, x, spaces={"args[0]": sphere}, seed=1)
    assert result.ok, str(result)
    assert not refused(result)


@pytest.mark.parametrize(
    ("space", "point", "words"),
    [
        (Symmetric(), drawn(3, 3), "not symmetric"),
        (Symmetric(), drawn(3, 2), "not a square matrix"),
        (Hermitian(), drawn(3, 3, dtype=torch.complex128), "not Hermitian"),
        (PositiveDefinite(), -torch.eye(3, dtype=DOUBLE), "smallest eigenvalue is -1"),
        (LowerTriangular(), drawn(3, 3), "above the diagonal"),
        (UpperTriangular(), drawn(3, 3), "below the diagonal"),
        (Orthogonal(), drawn(3, 3), "not orthonormal"),
        (Orthogonal(), drawn(2, 3), "at least as many rows"),
        (Simplex(), drawn(3).abs(), "does not sum to 1"),
        (Simplex(), torch.tensor([1.0, 0.0], dtype=DOUBLE), "not positive"),
        (Sparsity([True, False]), torch.ones(2, dtype=DOUBLE), "outside of the mask"),
        (Sparsity([True]), torch.ones(2, dtype=DOUBLE), "the mask"),
        (Projector(lambda d: 2 * d), drawn(3), "not linear, idempotent"),
        (Projector(lambda d: d[:1]), drawn(3), "returns"),
    ],
)
def test_a_point_that_is_not_in_its_space_is_refused(space: Any, point: Tensor, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        gradproof.check(lambda x: x * x, point, spaces={"args[0]": space})


@pytest.mark.parametrize("spaces", [Symmetric(), {"args[0]": "symmetric"}, {0: Symmetric()}])
def test_spaces_that_are_not_understood(spaces: Any) -> None:
    with pytest.raises(UsageError, match=r"spaces=.*write spaces="):
        gradproof.check(torch.sin, drawn(2), spaces=spaces)


def test_eigenvectors_up_to_their_sign() -> None:
    """A function that picks another sign at every other call has no derivative; its absolute value has."""
    calls = 0

    def eigh(a: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal calls
        calls += 1
        values, vectors = torch.linalg.eigh(a)
        return values, vectors * (-1) ** calls

    def absolute(values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        return values, vectors.abs()

    spaces = {"args[0]": Symmetric()}
    assert not gradproof.check(eigh, spd(4), spaces=spaces, seed=1).ok
    assert gradproof.check(eigh, spd(4), spaces=spaces, output_map=absolute, seed=1).ok


def test_a_wrong_gradient_shows_through_the_output_map() -> None:
    """svd whose singular values come with a gradient that is 2 % too large."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return 1.02 * g

    def svd(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, s, v = torch.linalg.svd(a)
        return u, Scaled.apply(s), v

    def absolute(u: Tensor, s: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return u.abs(), s, v.abs()

    a = drawn(3, 3)
    assert gradproof.check(torch.linalg.svd, a, output_map=absolute, seed=1).ok
    result = gradproof.check(svd, a, output_map=absolute, seed=1)
    assert [c.output.path for c in result.comparisons if c.verdict is Verdict.WRONG] == ["out[1]"]


def test_an_output_map_of_a_module_keeps_its_parameters_and_leaves_the_module_alone() -> None:
    module = torch.nn.Linear(3, 2).double()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    result = gradproof.check(module, drawn(4, 3), output_map=torch.tanh, seed=1)
    assert result.ok
    assert {c.input.path for c in result.comparisons} == {"args[0]", "params.weight", "params.bias"}
    assert not module._forward_hooks
    assert not module._forward_pre_hooks
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert torch.equal(module(drawn(4, 3)), torch.nn.functional.linear(drawn(4, 3), module.weight, module.bias))


def test_an_output_map_that_is_no_function() -> None:
    with pytest.raises(UsageError, match=r"output_map='abs' is not a function"):
        gradproof.check(torch.sin, drawn(2), output_map="abs")  # type: ignore[arg-type]


def torch_dropout(x: Tensor) -> Tensor:
    return torch.dropout(x.sin(), 0.5, True)


def numpy_noise(x: Tensor) -> Tensor:
    return x.sin() * torch.from_numpy(np.random.standard_normal(x.shape))  # noqa: NPY002


def python_noise(x: Tensor) -> Tensor:
    return x.sin() * random.gauss(1.0, 0.5)


class Dropout(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(5, 5, dtype=DOUBLE)

    def forward(self, x: Tensor) -> Tensor:
        return torch.dropout(self.inner(x), 0.5, True)


RANDOM: dict[str, Callable[..., Any]] = {
    "torch": torch_dropout,
    "numpy": numpy_noise,
    "python": python_noise,
    "module": Dropout(),
}


@pytest.mark.parametrize("name", RANDOM)
def test_a_random_function_is_named_and_checkable_on_request(name: str) -> None:
    x = drawn(5)
    named = gradproof.check(RANDOM[name], x, seed=1)
    assert [finding.code for finding in named.findings] == ["random"]
    assert "randomness='reseed'" in named.findings[0].hint
    streams = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # type: ignore[union-attr]  # noqa: NPY002
    result = gradproof.check(RANDOM[name], x, randomness="reseed", seed=1)
    assert result.verdict is Verdict.RIGHT, str(result)
    assert torch.equal(torch.get_rng_state(), streams[0])
    assert (np.random.get_state()[1] == streams[1]).all()  # type: ignore[call-overload]  # noqa: NPY002
    assert random.getstate() == streams[2]


@pytest.mark.parametrize(("size", "order"), [(6, 1), (6, 2), (20_000, 1)])
def test_a_wrong_gradient_of_a_random_function_is_wrong(size: int, order: int) -> None:
    """Dropout whose backward draws another mask."""

    def function(x: Tensor) -> Tensor:
        return x * (torch.rand(x.shape, dtype=x.dtype) > 0.5)

    def backward(x: Tensor, g: Tensor) -> Tensor:
        return g * (torch.rand(x.shape, dtype=x.dtype) > 0.5)

    torch.manual_seed(0)
    right = gradproof.check(function, drawn(size), randomness="reseed", seed=1, order=order)
    assert right.verdict is Verdict.RIGHT, str(right)
    wrong = gradproof.check(with_backward(function, backward), drawn(size), randomness="reseed", seed=1)
    assert wrong.verdict is Verdict.WRONG, str(wrong)


def test_randomness_that_is_not_understood() -> None:
    with pytest.raises(UsageError, match="randomness='on' is not understood"):
        gradproof.check(torch.sin, drawn(2), randomness="on")  # type: ignore[arg-type]
