"""Tensor subclasses, masked tensors and objects that only act like tensors (R23)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import is_tensor_like
from twins import F64, Checker, derived, fails, leaf, passes, square

from gradproof.torch import GradcheckError, gradcheck, gradgradcheck

MISMATCH = "Jacobian mismatch for output 0 with respect to input 0"


class Named(Tensor):
    """A subclass that torch carries through all operations."""


class Units(Tensor):
    """A subclass that looks into every call."""

    seen = 0

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen += 1
        return super().__torch_function__(func, types, args, kwargs or {})


def made(kind: type[Tensor], *shape: int) -> Tensor:
    return leaf(*shape).detach().as_subclass(kind).requires_grad_()


def test_subclasses_go_through(checker: Checker, fast: bool) -> None:
    for kind in (Named, Units):
        seen = []

        def fn(x: Tensor, seen: list[type] = seen) -> Tensor:
            seen.append(type(x))
            return x * x

        passes(checker.gradcheck, fn, made(kind, 3), fast_mode=fast)
        assert kind in seen
        fails(checker, MISMATCH, square(3.0), made(kind, 3), fast_mode=fast)


def test_parameters(checker: Checker, fast: bool) -> None:
    weight = torch.nn.Parameter(leaf(3).detach())
    passes(checker.gradcheck, lambda w: w * w, weight, fast_mode=fast)
    fails(checker, MISMATCH, square(3.0), weight, fast_mode=fast)


def test_subclasses_at_second_order(checker: Checker, fast: bool) -> None:
    passes(checker.gradgradcheck, lambda x: x**3, made(Named, 3), fast_mode=fast)


def test_a_subclass_as_output(checker: Checker, fast: bool) -> None:
    passes(checker.gradcheck, lambda x: (x * x).as_subclass(Named), leaf(3), fast_mode=fast)
    fails(checker, MISMATCH, lambda x: square(3.0)(x).as_subclass(Named), leaf(3), fast_mode=fast)


def test_a_subclass_with_a_method_of_its_own(checker: Checker, fast: bool) -> None:
    class Doubling(Tensor):
        def doubled(self) -> Tensor:
            return self * 2

    passes(checker.gradcheck, lambda x: x.doubled(), made(Doubling, 3), fast_mode=fast)


# ---- masked tensors

MASK = torch.tensor([True, False, True, True])


def masked(x: Tensor) -> Any:
    from torch.masked import as_masked_tensor

    return as_masked_tensor(x, MASK)


@pytest.mark.filterwarnings("ignore")  # torch calls its masked tensors a prototype
def test_masked_tensors_inside_the_function(checker: Checker, fast: bool) -> None:
    passes(checker.gradcheck, lambda x: masked(x).exp().to_tensor(1.0), leaf(4), fast_mode=fast)
    passes(checker.gradcheck, lambda x: masked(square(2.0)(x)).to_tensor(0.0), leaf(4), fast_mode=fast)
    fails(checker, MISMATCH, lambda x: masked(square(3.0)(x)).to_tensor(0.0), leaf(4), fast_mode=fast)


# ---- objects that act like tensors


class Like:
    """Not a tensor; forwards what torch does with it to the tensor inside, attributes included."""

    def __init__(self, data: Tensor) -> None:
        self.__dict__["data_inside"] = data

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__dict__["data_inside"], name)
        return _wrapping(found) if callable(found) else _wrap(found)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["data_inside"], name, _unwrap(value))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _wrapping(func)(*args, **(kwargs or {}))

    def __mul__(self, other: Any) -> Any:
        return torch.mul(self, other)

    def __add__(self, other: Any) -> Any:
        return torch.add(self, other)

    def __sub__(self, other: Any) -> Any:
        return torch.sub(self, other)

    def __truediv__(self, other: Any) -> Any:
        return torch.true_divide(self, other)

    def __getitem__(self, key: Any) -> Any:
        return _wrap(self.__dict__["data_inside"][_unwrap(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.__dict__["data_inside"][_unwrap(key)] = _unwrap(value)

    def __gt__(self, other: Any) -> Any:
        return torch.gt(self, other)

    def __len__(self) -> int:
        return len(self.__dict__["data_inside"])

    def __bool__(self) -> bool:
        return bool(self.__dict__["data_inside"])

    def __int__(self) -> int:
        return int(self.__dict__["data_inside"])

    def __index__(self) -> int:
        return int(self)


def _unwrap(value: Any) -> Any:
    if type(value) in (tuple, list):
        return type(value)(_unwrap(part) for part in value)
    return value.__dict__["data_inside"] if isinstance(value, Like) else value


def _wrap(value: Any) -> Any:
    if type(value) in (tuple, list):
        return type(value)(_wrap(part) for part in value)
    return Like(value) if type(value) is Tensor else value


def _wrapping(func: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return _wrap(func(*_unwrap(args), **{name: _unwrap(value) for name, value in kwargs.items()}))

    return call


def _likes() -> tuple[Like, Like]:
    a, b = Like(torch.tensor(5.0, dtype=F64)), Like(torch.tensor(6.0, dtype=F64))
    a.requires_grad = True
    b.requires_grad = True
    return a, b


def test_tensor_likes_are_let_through(checker: Checker, fast: bool) -> None:
    a, b = _likes()
    assert is_tensor_like(a)
    for check in (checker.gradcheck, checker.gradgradcheck):
        assert check(torch.add, (a, b), raise_exception=False, check_batched_grad=False, fast_mode=fast) in (
            True,
            False,
        )
    assert a.__dict__["data_inside"].item() == 5.0


def test_tensor_likes_are_judged(fast: bool) -> None:
    """torch lets them through, but its verdict is an accident of what the object does with its loops."""
    for check in (gradcheck, gradgradcheck):
        assert check(lambda a, b: a * a * b + b, _likes(), fast_mode=fast)

    def on_the_inside(fn: Callable[[Tensor], Tensor]) -> Callable[[Any, Any], Any]:
        return lambda a, b: torch.mul(_wrap(fn(_unwrap(a))), b)

    seen: list[type] = []

    def looked_at(a: Any, b: Any) -> Any:
        seen.append(type(a))
        return on_the_inside(square())(a, b)

    assert gradcheck(looked_at, _likes(), fast_mode=fast)
    assert set(seen) == {Like}
    with pytest.raises(GradcheckError, match=MISMATCH):
        gradcheck(on_the_inside(square(3.0)), _likes(), fast_mode=fast)
    forgets = derived(lambda x: x * x, lambda g, x: 2 * x.detach() * g)
    with pytest.raises(GradcheckError, match=MISMATCH):
        gradgradcheck(on_the_inside(forgets), _likes(), fast_mode=fast)


def test_a_tensor_like_beside_a_tensor(fast: bool) -> None:
    a, _ = _likes()
    x = leaf(3)
    assert gradcheck(lambda a, x, n: (torch.mul(a, x) * n, x.sum()), (a, x, 2), fast_mode=fast)
    with pytest.raises(GradcheckError, match=r"Numerical gradient|Jacobian mismatch"):
        gradcheck(lambda a, x: torch.mul(a.detach(), x), (a, x), fast_mode=fast)
