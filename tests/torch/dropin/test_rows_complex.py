"""Complex inputs and outputs (R7): all four combinations, the conjugate convention, and the part that is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad as fw
from twins import Checker, derived, fails, hooked, in_dual_level, leaf, passes

C128 = torch.complex128
MISMATCH = "Jacobian mismatch for output 0 with respect to input 0"
IMAGINARY = "While considering the imaginary part of complex {} only"
REAL = "While considering the real part of complex {} only"

RIGHT: dict[str, tuple[Callable[..., Any], Tensor]] = {
    "R to C": (lambda x: torch.complex(x.sin(), x.exp()), leaf(3)),
    "R to C by a constant": (lambda x: x * (1 + 2j), leaf(3)),
    "C to R": (torch.abs, leaf(3, dtype=C128)),
    "C to R, parts": (lambda z: (z.real, z.imag * 2, z.angle()), leaf(3, dtype=C128)),
    "C to C": (lambda z: z * z, leaf(3, dtype=C128)),
    "C to C, not holomorphic": (lambda z: z.conj() * z.real, leaf(3, dtype=C128)),
    "C to C, matrices": (lambda z: z @ z.mH, leaf(2, 2, dtype=C128)),
    "C to both": (lambda z: (z * 2, z.real), leaf(3, dtype=C128)),
    "C to C, no dimensions": (torch.exp, leaf(dtype=C128)),
    "C to C, empty": (torch.exp, leaf(0, dtype=C128)),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("check_forward_ad", [False, True])
def test_right_functions_pass(checker: Checker, fast: bool, name: str, check_forward_ad: bool) -> None:
    fn, x = RIGHT[name]
    passes(checker.gradcheck, fn, x, check_forward_ad=check_forward_ad, fast_mode=fast)


@pytest.mark.parametrize("check_forward_ad", [False, True])
def test_real_and_complex_inputs_together(checker: Checker, fast: bool, check_forward_ad: bool) -> None:
    inputs = leaf(3), leaf(3, dtype=C128), leaf(3, seed=1)
    options = {"check_forward_ad": check_forward_ad, "fast_mode": fast}
    passes(checker.gradcheck, lambda x, z, y: (torch.complex(x, y), x + 1, z * y, z.abs() * x), inputs, **options)


WRONG: dict[str, tuple[Callable[..., Any], Tensor, str]] = {
    "R to C, off in the real part": (hooked(lambda g: g * 1.1, lambda x: x * (1 + 0j)), leaf(3), REAL),
    "R to C, off in both": (hooked(lambda g: g + 0.01, lambda x: torch.complex(x, x)), leaf(3), IMAGINARY),
    "R to C, conjugate": (hooked(lambda g: g.conj(), lambda x: x * 2j), leaf(3), IMAGINARY),
    "C to R": (hooked(lambda g: g + 0.01, torch.real), leaf(3, dtype=C128), MISMATCH),
    "C to R, conjugate": (
        derived(lambda z: z.abs() ** 2, lambda g, z: 2 * g * z.conj()),
        leaf(3, dtype=C128),
        MISMATCH,
    ),
    "C to C, off in both": (hooked(lambda g: g + 0.01), leaf(3, dtype=C128), IMAGINARY),
    "C to C, conj forgotten": (derived(lambda z: z * z, lambda g, z: 2 * g * z), leaf(3, dtype=C128), IMAGINARY),
    "C to C, one entry": (
        derived(lambda z: z * 2, lambda g, z: 2 * g * torch.tensor([1, 1j, 1], dtype=C128)),
        leaf(3, dtype=C128),
        IMAGINARY,
    ),
    "C to C, off in the real part of the output": (
        derived(lambda z: z * 1, lambda g, z: torch.complex(g.real * 1.1, g.imag)),
        leaf(3, dtype=C128),
        REAL,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_functions_fail_and_the_part_is_named(checker: Checker, fast: bool, name: str) -> None:
    fn, x, words = WRONG[name]
    error = fails(checker, words.format("outputs"), fn, x, check_undefined_grad=False, fast_mode=fast)
    assert MISMATCH in str(error)


def test_a_wrong_jvp_names_the_part_of_the_inputs(checker: Checker, fast: bool) -> None:
    def spoiled(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def fn(z: Tensor) -> Tensor:
            if in_dual_level():
                value, tangent = fw.unpack_dual(z)
                z = fw.make_dual(value, change(tangent)) if tangent is not None else z
            return z * 2

        return fn

    z = leaf(2, dtype=C128)
    options = {"check_forward_ad": True, "check_undefined_grad": False, "fast_mode": fast}
    passes(checker.gradcheck, spoiled(lambda t: t), z, **options)
    forward = "Jacobian computed with forward mode mismatch for output 0 with respect to input 0"
    error = fails(checker, IMAGINARY.format("inputs"), spoiled(torch.conj), z, **options)
    assert forward in str(error)
    error = fails(checker, REAL.format("inputs"), spoiled(lambda t: torch.complex(t.real * 1.1, t.imag)), z, **options)
    assert forward in str(error)


def test_a_complex_output_in_second_place_is_named_alone(checker: Checker, fast: bool) -> None:
    def fn(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.sin(), hooked(lambda g: g * 1.1, lambda x: x * (1 + 1j))(x)

    words = "Jacobian mismatch for output 1 with respect to input 0"
    error = fails(checker, IMAGINARY.format("outputs"), fn, leaf(3), fast_mode=fast)
    assert words in str(error)

    def real_wrong(x: Tensor) -> tuple[Tensor, Tensor]:
        return hooked(lambda g: g * 1.1, torch.sin)(x), x * (1 + 1j)

    error = fails(checker, MISMATCH, real_wrong, leaf(3), fast_mode=fast)
    assert "part of complex" not in str(error).splitlines()[0]


def test_views_with_a_conjugate_bit(checker: Checker, fast: bool) -> None:
    z = leaf(3, dtype=C128).detach().conj().requires_grad_()
    assert z.is_conj()
    passes(checker.gradcheck, lambda z: z * (1 + 2j), z, fast_mode=fast)
    passes(checker.gradcheck, lambda z: z.resolve_conj().abs(), z, fast_mode=fast)


def test_a_view_of_the_parts(checker: Checker, fast: bool) -> None:
    passes(checker.gradcheck, lambda x: torch.view_as_real(torch.resolve_conj(x * 1j)), leaf(2), fast_mode=fast)
    passes(checker.gradcheck, torch.view_as_complex, leaf(3, 2), check_forward_ad=True, fast_mode=fast)
