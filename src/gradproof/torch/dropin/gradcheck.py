"""gradcheck: torch's signature and verdicts, gradproof's engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gradproof.errors import GradcheckError
from gradproof.recording import told
from gradproof.torch.adapter import program_of
from gradproof.torch.calls import UserCall
from gradproof.torch.dropin.entry import as_tuple, check_inputs, check_layouts, check_returned_tensors
from gradproof.torch.dropin.judge import Case, judge
from gradproof.torch.dropin.likes import without_likes
from gradproof.torch.dropin.options import Options, verb_of_torch
from gradproof.torch.forms import MKLDNN
from gradproof.torch.torchprogram import TorchProgram
from gradproof.torch.tree import flatten


@verb_of_torch
def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` at `inputs` are right: True, or GradcheckError (False if not raise_exception).

    The arguments mean what they mean in `torch.autograd.gradcheck`. `eps`, `atol` and `rtol` left out are chosen for
    the inputs: steps that fit their scale, and in double precision rtol=1e-3 and atol=1e-5 or 1e-5 of the gradient's
    own scale, whichever is less. See docs/torch-drop-in.md for what differs.
    """
    __tracebackhide__ = True
    options = Options(
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_batched_forward_grad=check_batched_forward_grad,
        check_forward_ad=check_forward_ad,
        check_backward_ad=check_backward_ad,
        fast_mode=fast_mode,
        masked=bool(masked),
    )
    program = traced(func, inputs, options)
    return verdict(Case(func, program, options), raise_exception=raise_exception)


def traced(func: Callable[..., Any], inputs: Any, options: Options) -> TorchProgram:
    """The program, from one call of the user's function; what that raises reaches the caller as it is."""
    __tracebackhide__ = True
    if not callable(func):
        raise TypeError(f"func must be callable: a {type(func).__name__} object is not callable")
    func, arguments = without_likes(func, as_tuple(inputs))
    check_inputs(arguments)
    program = program_of(func, arguments, meaning=options.meaning)
    call = program.call
    assert isinstance(call, UserCall)
    if options.check_forward_ad and any(point.layout is MKLDNN for point in program.graph.points):
        raise ValueError("MKLDNN inputs are not support for forward AD gradcheck. Pass dense inputs, or leave it out.")
    check_returned_tensors(call)
    check_layouts(call.layouts)
    if program.traced.writes:
        _call_with_leaves(program, arguments)
    return program


def _call_with_leaves(program: TorchProgram, arguments: tuple[Any, ...]) -> None:
    """The function writes into what it is given. In the user's own call autograd forbids that for leaves of the graph;
    so it does here."""
    found: list[tuple[str, Any]] = []
    flatten(arguments, "", found)
    if all(value.is_leaf for _, value in found if isinstance(value, torch.Tensor) and value.requires_grad):
        with program.scope, torch.enable_grad():
            program.call.one([point.detach().clone().requires_grad_() for point in program.graph.points])


def verdict(case: Case, *, raise_exception: bool) -> bool:
    __tracebackhide__ = True
    try:
        told(judge(case))
    except GradcheckError as failure:
        if failure.result is not None:
            told(failure.result)
        if raise_exception:
            raise
        return False
    return True
