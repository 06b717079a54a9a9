"""torch's reverse and forward mode, and what it says when one of them does not exist."""

from __future__ import annotations

import functools
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from torch.autograd import forward_ad

from gradproof.errors import OutputsChanged, Refused, RuleRaised, Unsupported, first_line, where
from gradproof.torch.batchrules import Batching, ByRules, at_once_in_autograd
from gradproof.torch.state import as_called
from gradproof.torch.turns import duals_in_turn

_TORCH = str(Path(torch.__file__).parent)

# How torch (2.x) says that a mode does not exist, as far as the type of the exception does not tell.
_NO_REVERSE = re.compile(
    r"once_differentiable|must implement either the backward|derivative for .* is not implemented|"
    r"not implemented for '|(don't|does not) support automatic differentiation|not differentiable twice|"
    r"double.?backward|second.?order|do not have strides|arguments from the '(Sparse|Mkldnn)|"
    r"unsupported (tensor layout|combination of layouts)|expected sparse coordinate tensor layout but got"
)
_REENTRANT = "torch.utils.checkpoint is incompatible with .grad()"
# How it says that a rule returned what cannot be a gradient.
_REFUSED = re.compile(
    r"returned an invalid gradient at index|returned an incorrect number of gradients|expected Variable or None \(got|"
    r"returned a gradient different than None at position"
)
_NO_JVP = "must implement the jvp function"  # nobody must: it is said to users who did not ask for forward mode
_NO_FORWARD = re.compile(
    r"jvp is not implemented|forward (mode )?AD|forward-mode|setup_context|functorch|"
    r"ZeroTensors are immutable",
    re.IGNORECASE,
)


def reverse(
    values: Sequence[torch.Tensor],
    points: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor | None],
    *,
    create_graph: bool = False,
    retain_graph: bool = True,
    batching: Batching | None = None,
) -> list[torch.Tensor | None]:
    """J^T w through the graph that made `values` from `points`, of any layout. Where no value depends on it: None.
    A value whose cotangent is None is left out. With a `batching` the cotangents are rows of a batch."""
    pairs = [(value, w) for value, w in zip(values, cotangents, strict=True) if value.requires_grad and w is not None]
    if not pairs:
        return [None] * len(points)
    kept, given = zip(*pairs, strict=True)

    run = partial(gradients_of, kept, points, create_graph=create_graph, retain_graph=retain_graph)

    def pull(given: Sequence[torch.Tensor]) -> Sequence[torch.Tensor | None]:
        return as_called(values, partial(run, given))

    try:
        return list(as_called(values, partial(run, given))) if batching is None else batching(pull, given)
    except (NotImplementedError, RuntimeError) as error:
        if _NO_REVERSE.search(str(error)):
            raise Unsupported(first_line(error)) from error
        if _REENTRANT in str(error):
            raise Unsupported("checkpoint(use_reentrant=True) has only .backward(); set use_reentrant=False") from error
        if _REFUSED.search(str(error)):
            raise Refused(f"torch refuses what backward returned: {first_line(error)}") from error
        raise


def reverse_copies(
    run: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]],
    points: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor],
) -> list[torch.Tensor | None]:
    """The same for a batch of w, each with a copy of the point: an operator whose reverse pass has no batching rule may
    have one of its own. `run` runs a batch, in which rows are independent: one reverse pass serves all."""
    with ByRules(), torch.enable_grad():
        copies = [one.detach().expand(cotangents[0].shape[0], *one.shape).clone().requires_grad_() for one in points]
        values = run([one.clone() for one in copies])  # the function may overwrite what it gets
    return reverse(values, copies, cotangents, retain_graph=False)


def gradients_of(
    values: Sequence[torch.Tensor],
    points: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor],
    *,
    create_graph: bool = False,
    retain_graph: bool = True,
) -> Sequence[torch.Tensor | None]:
    """`torch.autograd.grad`, without the questions that it asks about its arguments, which take longer than the pass
    through a small graph: here they are tensors, of matching shapes."""
    engine = getattr(torch.autograd.graph, "_engine_run_backward", None)  # as of torch 2.13
    allow_unused = True
    if engine is not None and {type(one) for one in (*values, *points)} == {torch.Tensor}:
        found: Sequence[torch.Tensor | None] = engine(
            tuple(values),
            tuple(cotangents),
            retain_graph,
            create_graph,
            tuple(points),
            allow_unused,
            accumulate_grad=False,
        )
        return found
    return torch.autograd.grad(
        values, points, cotangents, create_graph=create_graph, retain_graph=retain_graph, allow_unused=allow_unused
    )


@duals_in_turn
def forward(
    run: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]],
    points: Sequence[torch.Tensor],
    tangents: Sequence[torch.Tensor],
) -> list[torch.Tensor | None]:
    """J u. Where a value has no tangent: None."""
    _load_rules()
    try:
        with forward_ad.dual_level():
            duals = [_dual(x, u) for x, u in zip(points, tangents, strict=True)]
            return [_tangent(value) for value in run(duals)]
    except OutputsChanged as changed:  # by the dual numbers alone: the point is the same
        raise Unsupported(f"with dual numbers {first_line(changed)}") from changed
    except MemoryError:
        raise
    except Exception as error:  # whatever it is, the other mode has its say
        if _NO_JVP in str(error):
            raise Unsupported("a custom Function has no jvp") from error
        if isinstance(error, NotImplementedError) or _NO_FORWARD.search(str(error)):
            raise Unsupported(first_line(error)) from error
        raise _raised(error) from error


def _raised(error: Exception) -> Unsupported:
    """By a rule of torch's, or by one that somebody wrote."""
    written = any(
        frame.name == "jvp" and not frame.filename.startswith(_TORCH)
        for frame in traceback.extract_tb(error.__traceback__)
    )
    kind = RuleRaised if written else Unsupported
    return kind(f"it raised {type(error).__name__}: {first_line(error)}{where(error)}")


def forward_along(
    run: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]],
    points: Sequence[torch.Tensor],
    tangents: Sequence[torch.Tensor],
) -> Sequence[torch.Tensor | None]:
    """J u for a batch of u at one point: an operator without a batching rule needs none for its value."""
    with ByRules():
        return at_once_in_autograd(
            lambda row: forward(run, [point.detach().clone() for point in points], row), tangents
        )


@functools.cache
def _load_rules() -> None:
    """The first dual number in a process makes torch load some of its rules, and warn (2.13) of how it does so. That is
    not for the user to hear."""
    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.simplefilter("ignore")
        _dual(torch.zeros(()), torch.zeros(()))


def _dual(point: torch.Tensor, tangent: torch.Tensor) -> torch.Tensor:
    """A tangent that is a part of something else would be what torch says a view must be a view of."""
    if tangent._is_view():
        tangent = tangent.clone()
    dual: torch.Tensor = forward_ad.make_dual(point, tangent)  # type: ignore[no-untyped-call]
    return dual


def _tangent(value: torch.Tensor) -> torch.Tensor | None:
    tangent: torch.Tensor | None = forward_ad.unpack_dual(value).tangent  # type: ignore[no-untyped-call]
    return tangent
