"""Registered custom operators keep what they registered: `torch.library.opcheck` on every one that the function calls.

By default its quick tests that bear on derivatives; named by hand, all of them (fake tensors and compilation too, which
take seconds the first time).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gradproof.errors import first_line
from gradproof.result import Finding, Place, Verdict
from gradproof.torch.contracts.subject import Subject
from gradproof.torch.graph import is_operator

QUICK = ("test_schema", "test_autograd_registration")
ALL = (*QUICK, "test_faketensor", "test_aot_dispatch_dynamic")
# torch's own operators, which it tests itself.
OWN = {"aten", "prim", "prims", "quantized", "mkldnn", "profiler", "inductor", "c10d", "_c10d_functional"}


def applies(subject: Subject) -> bool:
    """Whether there is an operator with a registered rule in the graph."""
    return any(map(is_operator, subject.written))


def check_registered(subject: Subject, tests: Sequence[str]) -> tuple[Finding, ...]:
    for used in _used(subject):
        outcome: dict[str, Any] = torch.library.opcheck(
            used.operator, used.args, used.kwargs, test_utils=tests, raise_exception=False
        )
        for test, said in outcome.items():
            if said != "SUCCESS":
                words = first_line(said) if isinstance(said, BaseException) else str(said)
                sentence = f"torch.library.opcheck finds {used.operator} wrong in {test}: {words}"
                hint = f"Run torch.library.opcheck({used.operator}, args) by itself; its message has the whole story."
                return (Finding("opcheck", Verdict.WRONG, Place(), sentence, hint),)
    return ()


@dataclass(frozen=True, eq=False, slots=True)
class Used:
    """A custom operator and the arguments that it was called with."""

    operator: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _used(subject: Subject) -> list[Used]:
    recorder = _Recorder()
    with recorder:
        subject.values_at([point.detach() for point in subject.program.traced.points])
    return list(recorder.found.values())


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the first call of every operator that is not torch's own."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: dict[Any, Used] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace not in OWN and func not in self.found:
            given = torch.utils._pytree.tree_map_only(Tensor, _leaf, (args, kwargs))
            self.found[func] = Used(func, *given)
        return func(*args, **kwargs)


def _leaf(tensor: Tensor) -> Tensor:
    copy = tensor.detach().clone()
    return copy.requires_grad_() if copy.is_floating_point() or copy.is_complex() else copy
