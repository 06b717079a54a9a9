"""PyTorch's module database: every module in training and evaluation, its tensors together and one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.testing._internal.common_utils import freeze_rng_state
from torch.utils import _pytree as pytree

from bench.operators.cases import Case, Check, Kind
from bench.operators.databases import DTYPES, Group, is_skipped

if TYPE_CHECKING:
    from torch.nn import Module

PHASES = {"train": True, "eval": False}


@cache
def _entries() -> dict[str, Any]:
    from torch.testing._internal.common_modules import module_db

    return {entry.name: entry for entry in module_db}


def module_groups(dtypes: Sequence[str], kinds: Sequence[Kind]) -> Iterator[Group]:
    for name, entry in _entries().items():
        for dtype in dtypes:
            for kind in kinds:
                supported = kind == "grad" or (kind == "gradgrad" and entry.supports_gradgrad)
                if supported and DTYPES[dtype] in entry.supported_dtypes("cpu") and _phases(entry, kind, dtype):
                    yield Group("module_db", name, dtype, kind)


def _phases(entry: Any, kind: Kind, dtype: str) -> list[str]:
    """Evaluation counts for itself only where the module behaves differently then."""
    return [
        phase
        for phase, training in PHASES.items()
        if (training or entry.train_and_eval_differ)
        and not is_skipped(entry, "TestModule", f"test_{kind}", DTYPES[dtype], training=training)
    ]


def cases(group: Group) -> Iterator[Case]:
    entry = _entries()[group.operator]
    order = "gradcheck" if group.kind == "grad" else "gradgradcheck"
    checks = (Check(order, {"check_batched_grad": True, "nondet_tol": 0.0}),)  # type: ignore[arg-type]
    for phase in _phases(entry, group.kind, group.dtype):
        # Modules draw their parameters while the samples are made.
        torch.manual_seed(0)
        samples = entry.module_inputs_func(
            entry, device="cpu", dtype=DTYPES[group.dtype], requires_grad=True, training=PHASES[phase]
        )
        for number, sample in enumerate(samples):
            if sample.forward_input is not None:
                for part, fn, inputs in _subjects(entry, sample, DTYPES[group.dtype], training=PHASES[phase]):
                    yield Case(f"{group}/{phase}.{number}.{part}", fn, inputs, checks)


def _subjects(
    entry: Any, sample: Any, dtype: torch.dtype, *, training: bool
) -> Iterator[tuple[str, Callable[..., object], tuple[object, ...]]]:
    """First everything that requires grad, then the inputs with one parameter (or keyword) at a time."""
    made = sample.constructor_input
    module: Module = entry.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
    args, kwargs = sample.forward_input.args, sample.forward_input.kwargs
    if entry.is_lazy:
        with torch.no_grad():
            module(*args, **kwargs)
    tensors = {name: x for name, x in kwargs.items() if isinstance(x, Tensor)}
    others = {name: x for name, x in kwargs.items() if name not in tensors}
    parameters = tuple(module.parameters())
    flat, shape = pytree.tree_flatten((tuple(args), parameters, tensors))

    def run(*leaves: object) -> object:
        new_args, _, new_tensors = pytree.tree_unflatten(leaves, shape)
        with freeze_rng_state():
            return pytree.tree_leaves(module(*new_args, **new_tensors, **others))

    yield "all", run, tuple(flat)
    switched = [x for x in (*parameters, *tensors.values()) if x.requires_grad]
    for number, chosen in enumerate(switched):
        for x in switched:
            x.requires_grad_(x is chosen)
        yield f"only{number}", run, tuple(flat)
    for x in switched:
        x.requires_grad_()
