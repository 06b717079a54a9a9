"""The catalogue for sweeps: every function in every precision that is asked for, named `jax.numpy.sin/float32`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from gradproof.cases import Case, Traits
from gradproof.jax.catalogue.catalogue import DTYPES, JaxCatalogue
from gradproof.selection import EVERYTHING, Selection

USUAL_DTYPES = ("float64",)
DEVICE = "cpu"


@dataclass(frozen=True, slots=True)
class Functions:
    """All functions of `JaxCatalogue`."""

    selection: Selection = EVERYTHING

    def narrowed(self, selection: Selection) -> Functions:
        return Functions(selection)

    def cases(self) -> Iterator[Case]:
        if self.selection.devices and DEVICE not in self.selection.devices:
            return
        for dtype in self.selection.dtypes or USUAL_DTYPES:
            if dtype in DTYPES:
                yield from (case for case in _cases(dtype).values() if self.selection.wants(case))

    def find(self, name: str) -> Case:
        return _cases(name.rpartition("/")[2])[name]


@cache
def _cases(dtype: str) -> dict[str, Case]:
    found = {}
    for case in JaxCatalogue(dtype).cases():
        operator = case.name.partition("(")[0]
        traits = Traits(operator, operator.rpartition(".")[0] or "jax", dtype, DEVICE)
        found[f"{case.name}/{dtype}"] = Case(f"{case.name}/{dtype}", case.make, traits)
    return found
