"""Operators as cases: one for each sample, named `sin/float64/3`; `sin/float64/3.inplace` is the in-place variant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from gradproof.cases import Call, Case, Traits
from gradproof.selection import EVERYTHING, Selection
from gradproof.torch.catalogue.entries import (
    DTYPES,
    USUAL_DEVICES,
    USUAL_DTYPES,
    entries,
    is_skipped,
    is_variable,
    on_a_copy,
    samples,
)

INPLACE = ".inplace"


@dataclass
class Operators:
    """The operators of these databases that have derivatives."""

    databases: tuple[str, ...]
    selection: Selection = EVERYTHING
    _reader: _Reader | None = field(default=None, repr=False, compare=False)

    def narrowed(self, selection: Selection) -> Operators:
        return replace(self, selection=selection, _reader=None)

    def cases(self) -> Iterator[Case]:
        for database in self.databases:
            for name, op in entries(database).items():
                if op.supports_autograd and self.selection.wants_operator(name):
                    for dtype in self.selection.dtypes or USUAL_DTYPES:
                        for device in self.selection.devices or USUAL_DEVICES:
                            if DTYPES.get(dtype) in op.supported_backward_dtypes(device):
                                yield from self._samples(op, Traits(name, family_of(op.name), dtype, device))

    def _samples(self, op: Any, traits: Traits) -> Iterator[Case]:
        inplace = _has_inplace(op, traits)
        for number, sample in enumerate(samples(op, DTYPES[traits.dtype], traits.device)):
            if _has_variables(sample):
                yield self._case(traits, str(number))
                if inplace and not sample.broadcasts_input:  # what grows by broadcasting cannot be written back
                    yield self._case(traits, f"{number}{INPLACE}")

    def find(self, name: str) -> Case:
        operator, dtype, label, *device = name.split("/")
        op = self._entry(operator)
        return self._case(Traits(operator, family_of(op.name), dtype, device[0] if device else "cpu"), label)

    def _case(self, traits: Traits, label: str) -> Case:
        where = "" if traits.device == "cpu" else f"/{traits.device}"
        return Case(f"{traits.operator}/{traits.dtype}/{label}{where}", lambda _seed: self._make(traits, label), traits)

    def _entry(self, operator: str) -> Any:
        return next(entries(each)[operator] for each in self.databases if operator in entries(each))

    def _make(self, traits: Traits, label: str) -> Call:
        """PyTorch seeds its samples itself, and so the seed of the sweep does not change them."""
        op = self._entry(traits.operator)
        number = int(label.removesuffix(INPLACE))
        if self._reader is None or self._reader.traits != traits or self._reader.position > number:
            self._reader = _Reader(traits, samples(op, DTYPES[traits.dtype], traits.device))
        sample = self._reader.at(number)
        variant = on_a_copy(op.get_inplace()) if label.endswith(INPLACE) else op.get_op()
        options = {"nondet_tol": op.gradcheck_nondet_tol} if op.gradcheck_nondet_tol else {}
        return Call(
            _subject(op, variant, sample, traits.device), (sample.input, *sample.args), dict(sample.kwargs), options
        )


@dataclass
class _Reader:
    """The samples of one operator and dtype, read forward: cases come in order, and each sample is drawn once."""

    traits: Traits
    drawn: Iterator[Any]
    position: int = 0  # the number of `last`, or of the next where there is no last
    last: Any = None

    def at(self, number: int) -> Any:
        while self.last is None or self.position < number:
            self.position += self.last is not None
            self.last = next(self.drawn)
        return self.last


def _subject(op: Any, variant: Callable[..., Any], sample: Any, device: str) -> Callable[..., Any]:
    """The operator as PyTorch's gradient tests call it: wrapped where its argument must stay, say, triangular."""
    seeding = _seeding_the_processor_only if device == "cpu" else nullcontext

    def run(*args: Any, **kwargs: Any) -> Any:
        with seeding():
            output = op.gradcheck_wrapper(variant, *args, **kwargs)
        finish = sample.output_process_fn_grad
        return output if finish is None else finish(output)

    run.__name__ = run.__qualname__ = op.full_name
    return run


@contextmanager
def _seeding_the_processor_only() -> Iterator[None]:
    """Random operators are seeded at every call. To seed the devices that are not in use as well takes longer than the
    operator, as PyTorch notes down the whole stack for each of them, for ever."""
    every, torch.manual_seed = torch.manual_seed, torch.default_generator.manual_seed
    try:
        yield
    finally:
        torch.manual_seed = every


def _has_variables(sample: Any) -> bool:
    return any(map(is_variable, pytree.tree_leaves((sample.input, sample.args, sample.kwargs))))


def _has_inplace(op: Any, traits: Traits) -> bool:
    """PyTorch says by its skips where it has no such variant for a dtype."""
    if not (op.inplace_variant and op.supports_inplace_autograd):
        return False
    return not is_skipped(op, "TestBwdGradients", "test_inplace_grad", DTYPES[traits.dtype])


def family_of(operator: str) -> str:
    """`linalg` for `linalg.svd`; plain operators are torch's."""
    return operator.rpartition(".")[0] or "torch"
