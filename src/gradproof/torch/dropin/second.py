"""gradgradcheck: the gradient map (x, w) -> J(x)^T w is checked like any other function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from gradproof.errors import Unsupported
from gradproof.reference.steps import signed
from gradproof.sizes import terms_of_gradient
from gradproof.torch.dropin.entry import as_tuple
from gradproof.torch.dropin.gradcheck import traced, verdict
from gradproof.torch.dropin.judge import Case
from gradproof.torch.dropin.options import Options, seed, verb_of_torch
from gradproof.torch.strides import with_gaps
from gradproof.torch.torchprogram import TorchProgram


@verb_of_torch
def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the second derivatives of `func` at `inputs` are right: True, or GradcheckError (False if not
    raise_exception). The arguments mean what they mean in `torch.autograd.gradgradcheck`; `eps`, `atol` and `rtol` left
    out are chosen as in `gradcheck`. See docs/torch-drop-in.md for what differs.
    """
    __tracebackhide__ = True
    _check_switches(check_fwd_over_rev, check_rev_over_rev, check_undefined_grad, check_batched_grad)
    options = Options(
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_batched_forward_grad=False,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=bool(masked),
    )
    program = traced(func, inputs, options)
    cotangents = _cotangents(program, grad_outputs, gen_non_contig_grad_outputs)
    try:
        gradient = program.gradient_at(cotangents)
    except Unsupported as missing:
        raise (missing.__cause__ or RuntimeError(str(missing))) from None
    gradient.terms = _terms(program, cotangents)
    return verdict(Case(func, gradient, options), raise_exception=raise_exception)


def _terms(program: TorchProgram, cotangents: Sequence[torch.Tensor | None]) -> tuple[float, ...]:
    """What the gradients are made of may cancel: see `sizes`."""
    return terms_of_gradient(program, program.call.outputs.vector(cotangents))


def _check_switches(forward: bool, reverse: bool, undefined: bool, batched: bool) -> None:  # noqa: FBT001
    if not (forward or reverse):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if undefined and not reverse:
        raise AssertionError("check_undefined_grad=True requires check_rev_over_rev to be True")
    if batched and not reverse:
        raise AssertionError("check_batched_grad=True requires check_rev_over_rev to be True")


def _cotangents(program: TorchProgram, grad_outputs: Any, scattered: bool) -> list[torch.Tensor | None]:  # noqa: FBT001
    """One for each output of the program; None for those that do not require grad. Random ones come from a generator of
    their own, so that the caller's random numbers stay what they were."""
    values = program.graph.values
    differentiable = [i for i, value in enumerate(values) if value.requires_grad]
    full: list[torch.Tensor | None] = [None] * len(values)
    if grad_outputs is None:
        vector = signed(np.random.default_rng(seed()), program.value.size)
        drawn: Sequence[torch.Tensor | None] = program.call.outputs.tensors(vector)
        for i in differentiable:
            one = drawn[i]
            assert one is not None
            if scattered and one.dim():
                one = with_gaps(one)
            full[i] = one.requires_grad_()
        return full
    for i, one in zip(differentiable, as_tuple(grad_outputs), strict=True):
        full[i] = one
    return full
