"""Modules as cases: every sample in training, and in evaluation where it differs,
named `nn.Linear/float64/train.0`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from gradproof.cases import Call, Case, Traits
from gradproof.selection import EVERYTHING, Selection
from gradproof.torch.catalogue.entries import DTYPES, USUAL_DEVICES, USUAL_DTYPES, entries

if TYPE_CHECKING:
    from torch.nn import Module

PHASES = {"train": True, "eval": False}


@dataclass(frozen=True)
class Modules:
    """All of `module_db`; parameters and inputs are checked together."""

    selection: Selection = EVERYTHING

    def narrowed(self, selection: Selection) -> Modules:
        return Modules(selection)

    def cases(self) -> Iterator[Case]:
        for name, entry in entries("module_db").items():
            if self.selection.wants_operator(name):
                for dtype in self.selection.dtypes or USUAL_DTYPES:
                    for device in self.selection.devices or USUAL_DEVICES:
                        if DTYPES.get(dtype) in entry.supported_dtypes(device):
                            yield from self._samples(entry, Traits(name, "nn", dtype, device))

    def _samples(self, entry: Any, traits: Traits) -> Iterator[Case]:
        for phase in phases(entry):
            for number, sample in enumerate(drawn(entry, traits.dtype, phase, traits.device)):
                if sample.forward_input is not None:
                    yield self._case(traits, phase, number)

    def find(self, name: str) -> Case:
        operator, dtype, label, *device = name.split("/")
        phase, number = label.split(".")
        return self._case(Traits(operator, "nn", dtype, device[0] if device else "cpu"), phase, int(number))

    def _case(self, traits: Traits, phase: str, number: int) -> Case:
        where = "" if traits.device == "cpu" else f"/{traits.device}"
        return Case(
            f"{traits.operator}/{traits.dtype}/{phase}.{number}{where}",
            lambda seed: _make(traits, phase, number, seed),
            traits,
        )


def _make(traits: Traits, phase: str, number: int, seed: int) -> Call:
    entry = entries("module_db")[traits.operator]
    with torch.random.fork_rng(devices=[]):
        sample = drawn(entry, traits.dtype, phase, traits.device, seed)[number]
        module = made(entry, sample, DTYPES[traits.dtype], phase)
    given = sample.forward_input
    return Call(module.to(traits.device), tuple(given.args), dict(given.kwargs))


def phases(entry: Any) -> list[str]:
    """Evaluation counts for itself only where the module behaves differently then."""
    return [phase for phase, training in PHASES.items() if training or entry.train_and_eval_differ]


def drawn(entry: Any, dtype: str, phase: str, device: str = "cpu", seed: int = 0) -> list[Any]:
    """Modules draw their parameters while the samples are made."""
    torch.manual_seed(seed)
    return list(
        entry.module_inputs_func(entry, device=device, dtype=DTYPES[dtype], requires_grad=True, training=PHASES[phase])
    )


def made(entry: Any, sample: Any, dtype: torch.dtype, phase: str) -> Module:
    constructor = sample.constructor_input
    module: Module = entry.module_cls(*constructor.args, **constructor.kwargs).to(dtype).train(PHASES[phase])
    if entry.is_lazy:
        with torch.no_grad():
            module(*sample.forward_input.args, **sample.forward_input.kwargs)
    return module
