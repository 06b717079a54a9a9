"""The language of `--arg`: what it makes, and all that it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradproof.arrays import arrays_of
from gradproof.cli.arguments import CONSTRUCTORS, FORMS, Reader
from gradproof.cli.request import DERIVATIVES
from gradproof.errors import UsageError
from gradproof.numpy.derivative import ONE_OF


def read(text: str, seed: int = 0) -> Any:
    return Reader(arrays_of("numpy"), seed).read(text)


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("randn(3, 4)", (3, 4), "float64"),
        ("randn((3, 4), dtype=float32)", (3, 4), "float32"),
        ("randn(5, dtype=complex128, scale=2)", (5,), "complex128"),
        ("randn()", (), "float64"),
        ("rand(4, dtype='float16')", (4,), "float16"),
        ("rand(2, dtype=torch.float32)", (2,), "float32"),
        ("zeros(0, 3)", (0, 3), "float64"),
        ("ones(2)", (2,), "float64"),
        ("full((2, 2), 0.5)", (2, 2), "float64"),
        ("full(3, 1+2j)", (3,), "complex128"),
        ("arange(5)", (5,), "int64"),
        ("arange(0, 1, 0.25)", (4,), "float64"),
        ("linspace(-1, 1, 7)", (7,), "float64"),
        ("eye(3)", (3, 3), "float64"),
        ("randint(0, 10, (2, 3))", (2, 3), "int64"),
        ("tensor([[1.0, 2.0]])", (1, 2), "float64"),
        ("array([1, 2, 3])", (3,), "int64"),
        ("array([True, False])", (2,), "bool"),
    ],
)
def test_arrays(text: str, shape: tuple[int, ...], dtype: str) -> None:
    made = read(text)
    assert made.shape == shape
    assert made.dtype == dtype


def test_values() -> None:
    np.testing.assert_array_equal(read("tensor([[1.5, -2.0]])"), [[1.5, -2.0]])
    np.testing.assert_array_equal(read("arange(2, 8, 3)"), [2, 5])
    drawn = read("rand(1000, low=2, high=3)")
    assert 2 <= drawn.min() < 2.1
    assert 2.9 < drawn.max() <= 3
    assert np.abs(read("randn(1000, dtype=complex128)").imag).max() > 1
    assert 4 < read("randn(10000, scale=5)").std() < 6


@pytest.mark.parametrize("text", ["0.5", "-2", "1e-3", "2+3j", "'mean'", "True", "None", "(1, 2)", "[]", "{'a': 1}"])
def test_literals(text: str) -> None:
    assert read(text) == eval(text)


def test_containers_hold_arrays() -> None:
    made = read("[randn(2), {'w': (eye(2), 3)}]")
    assert made[0].shape == (2,)
    assert made[1]["w"][0].shape == (2, 2)
    assert made[1]["w"][1] == 3


def test_a_seed_gives_the_same_numbers_and_arguments_differ() -> None:
    one, other = Reader(arrays_of("numpy"), 3), Reader(arrays_of("numpy"), 3)
    first, second = one.read("randn(4)"), one.read("randn(4)")
    np.testing.assert_array_equal(first, other.read("randn(4)"))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__import__('os').system('true')", "is not known"),
        ("().__class__.__bases__", "neither a literal nor one of the constructors"),
        ("randn.__globals__", "neither a literal"),
        ("randn(3).shape", "neither a literal"),
        ("(lambda: 1)()", "is not known"),
        ("[randn(2) for _ in range(3)]", "neither a literal"),
        ("f'{1}'", "neither a literal"),
        ("x", "x is neither a literal"),
        ("randn(x)", "x is neither a literal"),
        ("randn(*[1, 2])", "neither a literal"),
        ("randn(**{'scale': 2})", r"\*\* is not accepted|keyword"),
        ("{**{}}", r"\*\* is not accepted"),
        ("randn(3", "was never closed"),
        ("", "invalid syntax"),
        ("randn(2.5)", "sizes are whole numbers"),
        ("randn(-1)", "sizes are whole numbers"),
        ("randn(100000, 100000)", "more than 100,000,000 elements"),
        ("arange(1e12)", "not a number of elements"),
        ("linspace(0, 1, 10000000000)", "not a number of elements"),
        ("arange(0, 1, 0)", "a step that is not 0"),
        ("randn(3, width=2)", "unexpected keyword argument 'width'"),
        ("randn(3, parts=2)", "parts"),
        ("full(3)", "missing 1 required positional argument: 'value'"),
        ("randn(3, dtype=3)", "dtype=3 is not a name"),
        ("randn(3, dtype=float31)", "not one of NumPy's"),
        ("tensor(['a'])", "makes arrays of numbers"),
        ("tensor([[1], [1, 2]])", "inhomogeneous"),
    ],
)
def test_everything_else_is_refused_with_what_is_accepted(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as refused:
        read(text)
    if "NumPy's" not in reason:
        assert FORMS in str(refused.value)


def test_the_help_names_every_constructor() -> None:
    assert all(f"{name}(" in FORMS for name in CONSTRUCTORS)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    reader = Reader(arrays_of("torch"), 0)
    assert reader.read("randn(3)").dtype is torch.float64
    assert reader.read("ones(2, dtype=bfloat16)").dtype is torch.bfloat16
    with pytest.raises(UsageError, match="float31 is not one of torch's"):
        reader.read("randn(3, dtype=float31)")


def test_jax_arrays() -> None:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    try:
        reader = Reader(arrays_of("jax"), 0)
        assert reader.read("randn(3, dtype=float32)").dtype == "float32"
        assert reader.read("randn(3)").dtype == "float64"
        with pytest.raises(UsageError, match="float31 is not one of JAX's"):
            reader.read("randn(3, dtype=float31)")
    finally:
        jax.config.update("jax_enable_x64", before)


def test_a_framework_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"'fortran' is not installed; there is .*numpy"):
        arrays_of("fortran")


def test_the_derivatives_of_the_command_line_are_those_of_the_library() -> None:
    assert tuple(ONE_OF) == DERIVATIVES
