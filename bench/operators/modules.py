"""PyTorch's module database: every module in training and evaluation, its tensors together and one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.common_utils import freeze_rng_state
from torch.utils import _pytree as pytree

from bench.operators.cases import Case, Check, Kind
from bench.operators.databases import DTYPES, Group
from gradproof.torch.catalogue.entries import entries, is_skipped
from gradproof.torch.catalogue.modules import PHASES, drawn, made, phases


def module_groups(dtypes: Sequence[str], kinds: Sequence[Kind]) -> Iterator[Group]:
    for name, entry in entries("module_db").items():
        for dtype in dtypes:
            for kind in kinds:
                supported = kind == "grad" or (kind == "gradgrad" and entry.supports_gradgrad)
                if supported and DTYPES[dtype] in entry.supported_dtypes("cpu") and _phases(entry, kind, dtype):
                    yield Group("module_db", name, dtype, kind)


def _phases(entry: Any, kind: Kind, dtype: str) -> list[str]:
    return [
        phase
        for phase in phases(entry)
        if not is_skipped(entry, "TestModule", f"test_{kind}", DTYPES[dtype], training=PHASES[phase])
    ]


def cases(group: Group) -> Iterator[Case]:
    entry = entries("module_db")[group.operator]
    order = "gradcheck" if group.kind == "grad" else "gradgradcheck"
    checks = (Check(order, {"check_batched_grad": True, "nondet_tol": 0.0}),)  # type: ignore[arg-type]
    for phase in _phases(entry, group.kind, group.dtype):
        for number, sample in enumerate(drawn(entry, group.dtype, phase)):
            if sample.forward_input is not None:
                for part, fn, inputs in _subjects(entry, sample, DTYPES[group.dtype], phase):
                    yield Case(f"{group}/{phase}.{number}.{part}", fn, inputs, checks)


def _subjects(
    entry: Any, sample: Any, dtype: torch.dtype, phase: str
) -> Iterator[tuple[str, Callable[..., object], tuple[object, ...]]]:
    """First everything that requires grad, then the inputs with one parameter (or keyword) at a time."""
    module = made(entry, sample, dtype, phase)
    args, kwargs = sample.forward_input.args, sample.forward_input.kwargs
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
