"""The language of `--arg`: literals, containers, and a few constructors of arrays. It is parsed, never run as Python.

randn(3, 4)    rand(4, dtype=float32, low=1, high=2)    [zeros(2), {"w": eye(3)}]    0.5    "mean"    None
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gradproof.arrays import Arrays
from gradproof.errors import UsageError

Values = NDArray[Any]

FORMS = """\
  randn(3, 4)                     normal numbers; scale=2.0
  rand(4, dtype=float32)          between low=0.0 and high=1.0
  zeros(3)  ones(2, 2)  eye(3)    full((2, 3), 0.5)
  arange(0, 1, 0.1)               linspace(-1, 1, 5)
  randint(0, 10, (3,))            whole numbers, not differentiated
  tensor([1.0, 2.0])              the same as array([1.0, 2.0])
  0.5  2  "mean"  True  None      as they are
  [randn(3), randn(3)]            also in tuples and {"w": randn(3)}"""

# Far more than a quick look needs; a mistyped size must not fill the memory.
MOST = 10**8


class Reader:
    """Reads arguments one after another; the random ones come from one stream."""

    def __init__(self, arrays: Arrays, seed: int) -> None:
        self._arrays = arrays
        self._generator = np.random.default_rng(seed)

    def read(self, text: str) -> Any:
        """The argument that `text` describes."""
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError) as raised:
            raise UsageError(_message(text, str(raised).partition(" (")[0])) from None
        try:
            return self._value(tree)
        except (_Refused, ValueError, TypeError, OverflowError) as raised:
            raise UsageError(_message(text, str(raised))) from raised

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Call():
                return self._array(node)
            case ast.List(elts=parts):
                return [self._value(part) for part in parts]
            case ast.Tuple(elts=parts):
                return tuple(self._value(part) for part in parts)
            case ast.Dict(keys=keys, values=values):
                return {_literal(key): self._value(value) for key, value in zip(keys, values, strict=True)}
        return _literal(node)

    def _array(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name not in CONSTRUCTORS:
            _refuse(f"{name} is not known")
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        dtype = _dtype(named.pop("dtype")) if "dtype" in named else ""
        positional = [_literal(part) for part in node.args]
        options = {str(key): _literal(value) for key, value in named.items()}
        values = np.asarray(_built(name, self._generator, positional, options, complex_=dtype.startswith("complex")))
        if values.dtype.kind not in "biufc":
            _refuse(f"{name} makes arrays of numbers")
        return self._arrays.array(values, dtype or _DEFAULT.get(values.dtype.kind, values.dtype.name))


# By the kind of the values: the widest format, in which derivatives are known best.
_DEFAULT = {"f": "float64", "c": "complex128", "i": "int64", "u": "int64", "b": "bool"}


class _Refused(Exception):
    """Why the text is not in the language."""


def _refuse(reason: str) -> NoReturn:
    raise _Refused(reason)


def _message(text: str, reason: str) -> str:
    return f"--arg {text!r} is not understood: {reason}\nWhat is accepted:\n{FORMS}"


def _literal(node: ast.expr | None) -> Any:
    if node is None:
        _refuse("** is not accepted")
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        _refuse(f"{ast.unparse(node)} is neither a literal nor one of the constructors")


def _dtype(node: ast.expr) -> str:
    """`float32`, `"float32"`, `torch.float32`, `jnp.float32` all name the same."""
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(), attr=name):
            return name
        case ast.Constant(value=str(name)):
            return name
    _refuse(f"dtype={ast.unparse(node)} is not a name such as float32")


def _built(
    name: str, generator: np.random.Generator, positional: list[Any], options: Mapping[str, Any], *, complex_: bool
) -> Values:
    constructor = _randn_complex if name == "randn" and complex_ else CONSTRUCTORS[name]
    if name in _RANDOM:
        constructor = functools.partial(constructor, generator)
    try:
        return constructor(*positional, **options)
    except TypeError as raised:
        reason = str(raised).replace(f"_{name}()", f"{name}(...)")
        raise _Refused(reason) from raised


def _shape(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """`randn(3, 4)` and `randn((3, 4))` are the same."""
    listed = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in listed):
        _refuse(f"sizes are whole numbers >= 0, got {', '.join(map(repr, listed))}")
    if np.prod(listed, dtype=float) > MOST:
        _refuse(f"{' x '.join(map(str, listed))} is more than {MOST:,} elements")
    return listed


def _count(number: float) -> None:
    if not 0 <= number <= MOST:
        _refuse(f"{number:g} is not a number of elements between 0 and {MOST:,}")


def _randn(generator: np.random.Generator, *sizes: Any, scale: float = 1.0) -> Values:
    return scale * generator.standard_normal(_shape(sizes))


def _randn_complex(generator: np.random.Generator, *sizes: Any, scale: float = 1.0) -> Values:
    return _randn(generator, *sizes, scale=scale) + 1j * _randn(generator, *sizes, scale=scale)


def _rand(generator: np.random.Generator, *sizes: Any, low: float = 0.0, high: float = 1.0) -> Values:
    return generator.uniform(low, high, _shape(sizes))


def _randint(generator: np.random.Generator, low: int, high: int, *sizes: Any) -> Values:
    return generator.integers(low, high, _shape(sizes))


def _zeros(*sizes: Any) -> Values:
    return np.zeros(_shape(sizes))


def _ones(*sizes: Any) -> Values:
    return np.ones(_shape(sizes))


def _full(shape: Any, value: complex) -> Values:
    return np.full(_shape((shape,)), value)


def _eye(size: int) -> Values:
    return np.eye(_shape((size, size))[0])


def _arange(*numbers: float) -> Values:
    start, stop, step = {1: (0, *numbers, 1), 2: (*numbers, 1), 3: numbers}.get(len(numbers), (0, 0, 0))
    if step == 0:
        _refuse("arange takes stop, or start, stop and a step that is not 0")
    _count(max(0, (stop - start) / step))
    return np.arange(start, stop, step)


def _linspace(start: float, stop: float, count: int) -> Values:
    _count(count)
    return np.linspace(start, stop, count)


def _tensor(numbers: Any) -> Values:
    return np.array(numbers)


_RANDOM = ("randn", "rand", "randint")
CONSTRUCTORS: dict[str, Callable[..., Values]] = {
    "randn": _randn,
    "rand": _rand,
    "randint": _randint,
    "zeros": _zeros,
    "ones": _ones,
    "full": _full,
    "eye": _eye,
    "arange": _arange,
    "linspace": _linspace,
    "tensor": _tensor,
    "array": _tensor,
}
