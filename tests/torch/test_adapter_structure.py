"""The torch adapter: structures, paths, selection, dtypes and layouts."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from gradproof.errors import UsageError
from gradproof.torch import program_of


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


@dataclasses.dataclass
class Box:
    weight: torch.Tensor
    label: str = "box"


class Plain:
    """Not a structure: goes through by reference."""

    def __init__(self) -> None:
        self.factor = 3.0


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape) + 1))


def paths(leaves: Any) -> list[str]:
    return [leaf.path for leaf in leaves]


def test_paths_read_like_python() -> None:
    plain = Plain()

    def fn(a: Any, pair: Pair, box: Box, other: Plain, *, bias: torch.Tensor, deep: Any) -> Any:
        assert other is plain
        assert type(pair) is Pair
        assert type(box) is Box
        assert type(deep) is collections.OrderedDict
        total = a["w"].sum() + a["list"][0].sum() + pair.left.sum() * pair.right.sum() + box.weight.sum() + bias.sum()
        return {"y": total * other.factor, "rest": [deep["k"].sin(), None, 3], "name": box.label}

    program = program_of(
        fn,
        ({"w": draw(2), "list": [draw(3)]}, Pair(draw(1), draw(2)), Box(draw(2)), plain),
        {"bias": draw(1), "deep": collections.OrderedDict(k=draw(2))},
    )
    assert paths(program.inputs) == [
        "args[0]['w']",
        "args[0]['list'][0]",
        "args[1].left",
        "args[1].right",
        "args[2].weight",
        "kwargs['bias']",
        "kwargs['deep']['k']",
    ]
    assert paths(program.outputs) == ["out['y']", "out['rest'][0]"]
    assert {skipped.path: skipped.reason for skipped in program.skipped} == {
        "out['rest'][1]": "None",
        "out['rest'][2]": "int, not a tensor",
        "out['name']": "str, not a tensor",
    }
    assert program.values(program.point[None] * 1.5).shape == (1, 3)
    assert program.batched
    assert program.inputs[-1].stop == program.point.size


def test_return_types_of_torch_and_integer_outputs() -> None:
    program = program_of(lambda x: torch.max(x, 0), draw(3, 2))
    assert paths(program.outputs) == ["out.values"]
    assert [(s.path, s.reason) for s in program.skipped] == [("out.indices", "int64 has no derivative")]
    assert program.pull(np.eye(2)).sum() == 2


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (draw(2), ["args[0]"]),
        ((draw(2),), ["args[0]"]),
        ([draw(2)], ["args[0]"]),
        ({"w": draw(2)}, ["args[0]['w']"]),
        (Pair(draw(2), draw(2)), ["args[0].left", "args[0].right"]),
        (Box(draw(2)), ["args[0].weight"]),
    ],
)
def test_what_counts_as_one_argument(args: Any, expected: list[str]) -> None:
    def fn(*given: Any) -> torch.Tensor:
        (arg,) = given
        if isinstance(arg, dict):
            return arg["w"] * 2
        if isinstance(arg, torch.Tensor):
            return arg * 2
        return 2 * (arg.left if isinstance(arg, Pair) else arg.weight)

    assert paths(program_of(fn, args).inputs) == expected


def test_default_is_what_requires_grad_else_everything_floating() -> None:
    a, b, index = draw(2), draw(2), torch.tensor([0, 1])

    def fn(a: torch.Tensor, b: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return a[index] * b

    assert paths(program_of(fn, (a, b, index)).inputs) == ["args[0]", "args[1]"]
    assert paths(program_of(fn, (a, b.clone().requires_grad_(), index)).inputs) == ["args[1]"]


def test_parameters_of_a_module() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)).double()
    module[0].weight.requires_grad_(False)
    x = draw(4, 2)
    every = ["args[0]", "params.0.bias", "params.1.weight", "params.1.bias"]
    assert paths(program_of(module, x).inputs) == every
    assert paths(program_of(module, (x.clone().requires_grad_(),)).inputs) == every
    assert paths(program_of(module, x, wrt="params").inputs) == [f"params.{n}" for n, _ in module.named_parameters()]
    assert paths(program_of(module, x, wrt="params.*.weight").inputs) == ["params.0.weight", "params.1.weight"]
    program = program_of(module, x)
    assert program.name == "Sequential"
    np.testing.assert_allclose(program.value, module(x).detach().numpy().ravel())


@pytest.mark.parametrize(
    ("wrt", "expected"),
    [
        ("args[0]", ["args[0]['w']", "args[0]['v']"]),
        ("args[0]['w']", ["args[0]['w']"]),
        ("*['?']", ["args[0]['w']", "args[0]['v']"]),
        (("args[1]", "*'v'*"), ["args[0]['v']", "args[1]"]),
        ("args", ["args[0]['w']", "args[0]['v']", "args[1]", "args[10]"]),
        ("args[1]", ["args[1]"]),
    ],
)
def test_patterns(wrt: Any, expected: list[str]) -> None:
    args = ({"w": draw(1), "v": draw(1)}, draw(1), *[0] * 8, draw(1))
    program = program_of(lambda d, x, *rest: d["w"] * d["v"] * x * rest[-1], args, wrt=wrt)
    assert paths(program.inputs) == expected


def test_wrong_use_is_explained() -> None:
    with pytest.raises(UsageError, match=r"wrt='args\[7\]' matches no .*available: args\[0\], args\[1\]"):
        program_of(torch.add, (draw(1), draw(1)), wrt="args[7]")
    with pytest.raises(UsageError, match=r"no floating or complex tensor among the arguments .*gradproof.check"):
        program_of(lambda n: n, (torch.tensor(1),))
    with pytest.raises(UsageError, match=r"is not understood; write a path"):
        program_of(torch.sin, draw(1), wrt=3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"fn must be callable"):
        program_of(draw(1), torch.sin)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"args\[0\] requires grad but is .* no coordinates; build it inside"):
        program_of(torch.sin, torch.nested.nested_tensor([draw(3), draw(2)], requires_grad=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_each_call_sees_the_leafs_own_dtype(dtype: torch.dtype) -> None:
    seen = set()

    def fn(x: torch.Tensor) -> torch.Tensor:
        seen.add(x.dtype)
        return x * x

    x = draw(3, 2, dtype=torch.float64).to(dtype)
    program = program_of(fn, x)
    np.testing.assert_array_equal(program.point, x.double().numpy().ravel())
    rows = np.stack([program.point, program.point + 0.25])
    expected = torch.from_numpy(rows).to(dtype).square().double().numpy()
    np.testing.assert_array_equal(program.values(rows), expected)
    np.testing.assert_allclose(program.pull(np.eye(6)), np.diag(2 * program.point), rtol=1e-2)
    assert seen == {dtype}
    assert program.outputs[0].dtype == str(dtype).removeprefix("torch.")


@pytest.mark.parametrize(
    "x",
    [
        draw(),
        draw(0, 3),
        draw(3, 4).t(),
        draw(3, 8)[:, ::3],
        draw(3, 1).expand(3, 4),
        draw(7).unfold(0, 3, 2),
        draw(2, 3, dtype=torch.complex128).conj(),
        torch.imag(draw(4, dtype=torch.complex128).conj()),  # has torch's lazy negation
    ],
    ids=["0-d", "empty", "transposed", "strided", "expanded", "unfolded", "conj", "neg"],
)
def test_any_layout(x: torch.Tensor) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).mul_(x.clone())

    before = x.clone()
    program = program_of(fn, x)
    logical = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
    np.testing.assert_array_equal(program.point, logical.reshape(-1).resolve_neg().numpy())
    for count in (1, 3):
        rows = np.repeat(program.point[None], count, axis=0)
        np.testing.assert_allclose(program.values(rows), np.repeat(program.value[None], count, axis=0))
        assert program.pull(np.ones((count, program.value.size))).shape == (count, program.point.size)
        assert program.push(np.ones((count, program.point.size))).shape == (count, program.value.size)
    assert torch.equal(x, before)


def test_output_without_coordinates_at_all() -> None:
    program = program_of(lambda x: (x > 0, "text"), draw(3))
    assert program.outputs == ()
    assert program.values(np.zeros((4, 3))).shape == (4, 0)
    assert program.pull(np.zeros((2, 0))).shape == (2, 3)
    assert program.push(np.zeros((2, 3))).shape == (2, 0)


def test_a_detached_output_is_a_coordinate_with_zero_derivatives() -> None:
    program = program_of(lambda x: (x * 2, x.detach() * 3), draw(2))
    assert paths(program.outputs) == ["out[0]", "out[1]"]
    expected = np.array([[2, 0, 0, 0], [0, 2, 0, 0]]).T
    np.testing.assert_array_equal(program.pull(np.eye(4)), expected)
    np.testing.assert_array_equal(program.values(program.point[None])[0, 2:], 3 * program.point)


@pytest.mark.parametrize(
    ("fn", "name"),
    [
        (torch.sin, "sin"),
        (lambda x: x * 1, "<lambda>"),
        (torch.nn.Tanh(), "Tanh"),
    ],
)
def test_names(fn: Any, name: str) -> None:
    assert program_of(fn, draw(1)).name == name


def test_shape_that_depends_on_the_values_is_refused_with_both_shapes() -> None:
    program = program_of(lambda x: {"y": x[x > 0]}, torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64))
    with pytest.raises(UsageError, match=r"out\['y'\] has shape \(2,\) float64 .* shape \(3,\) float64"):
        program.values(np.ones((2, 3)))
    program = program_of(lambda x: x if x[0] > 0 else (x, x), torch.ones(1, dtype=torch.float64))
    with pytest.raises(UsageError, match=r"another structure.*out\[0\], out\[1\] instead of out;"):
        program.values(-np.ones((1, 1)))
