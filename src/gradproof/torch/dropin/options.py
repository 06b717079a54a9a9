"""What the caller of gradcheck asked for, validated once and passed whole."""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import torch

from gradproof import precision
from gradproof.program import Program
from gradproof.settings import Effort, Settings, Tolerance
from gradproof.torch.forms import Meaning

# torch's numbers for double precision. They hold when the caller names one of the two tolerances.
ATOL = 1e-5
RTOL = 1e-3
# With neither named: the same, but the absolute part shrinks with the block's own scale, so that a gradient of size
# 1e-6 is still judged; what is left is room for the rounding of a gradient that is zero.
DEFAULT = Tolerance(relative=RTOL, absolute=1e-14, block=ATOL, ceiling=ATOL)


# What torch starts a process with, which is another number each time.
UNSEEDED = torch.initial_seed()


def seed() -> int:
    """Of all that is drawn in a check. It follows `torch.manual_seed` and is the same in every process without it, as
    suites of tests want it: `torch.initial_seed` reads the stream's seed and leaves the stream alone."""
    found = torch.initial_seed()
    return 0 if found == UNSEEDED else found % 2**32


@dataclass(frozen=True, slots=True)
class Options:
    """The keyword arguments of gradcheck. None for `eps`, `atol` and `rtol` means that they were left out."""

    eps: float | None
    atol: float | None
    rtol: float | None
    nondet_tol: float
    check_undefined_grad: bool
    check_grad_dtypes: bool
    check_batched_grad: bool
    check_batched_forward_grad: bool
    check_forward_ad: bool
    check_backward_ad: bool
    fast_mode: bool
    masked: bool

    def __post_init__(self) -> None:
        for name in ("eps", "atol", "rtol", "nondet_tol"):
            number = getattr(self, name)
            if number is not None and not (number > 0 if name == "eps" else number >= 0):
                raise ValueError(f"{name} must be a number {'>' if name == 'eps' else '>='} 0, got {number!r}")
        if not (self.check_forward_ad or self.check_backward_ad):
            raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
        if self.check_batched_grad and not self.check_backward_ad:
            raise AssertionError("check_batched_grad=True requires check_backward_ad to be True")
        if self.check_batched_forward_grad and not self.check_forward_ad:
            raise AssertionError("check_batched_forward_grad=True requires check_forward_ad to be True")

    @property
    def meaning(self) -> Meaning:
        return Meaning.MASKED if self.masked else Meaning.ALL

    def settings(self, program: Program, effort: Effort) -> Settings:
        """The same in the core's words."""
        modes = [
            mode for mode, asked in (("reverse", self.check_backward_ad), ("forward", self.check_forward_ad)) if asked
        ]
        step = None if self.eps is None else float(self.eps)
        return Settings.validated(
            modes=modes,
            effort=effort,
            tolerance=self.tolerance(program),
            step=step,
            nondet_tol=float(self.nondet_tol),
            contracts=("linear",),  # the others have their own place in torch's order
            detail="verdict",
            seed=seed(),
        )

    def tolerance(self, program: Program) -> Tolerance | None:
        """None where the core chooses: below double precision, with nothing named. A function that is allowed to
        jitter has no scale of its own to shrink to."""
        if self.atol is not None or self.rtol is not None or self.nondet_tol > 0:
            atol, rtol = (ATOL if self.atol is None else self.atol), (RTOL if self.rtol is None else self.rtol)
            return Tolerance(relative=float(rtol), absolute=float(atol), block=0.0)
        double = precision.form_of(program) is precision.DOUBLE
        return DEFAULT if double else None


P = ParamSpec("P")
R = TypeVar("R")


def verb_of_torch(verb: Callable[P, R]) -> Callable[P, R]:
    """Let a verb take `check_sparse_nnz`, which `masked` was called before torch 2.0, and put Python's random stream
    back after it: programs look after those of torch and NumPy alone. One frame, which warnings count on."""

    @functools.wraps(verb)
    def with_masked(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        if "check_sparse_nnz" in kwargs:
            older = kwargs.pop("check_sparse_nnz")
            warnings.warn(
                f"check_sparse_nnz is the older spelling of masked; write masked={older}", FutureWarning, stacklevel=2
            )
            if older is not None and kwargs.get("masked") not in (None, older):
                raise ValueError(f"check_sparse_nnz={older} contradicts masked={kwargs['masked']}; give masked alone")
            if older is not None:
                kwargs["masked"] = older
        state = random.getstate()
        try:
            return verb(*args, **kwargs)
        finally:
            random.setstate(state)

    return with_masked
