"""Which cases of a catalogue are wanted, and what a catalogue may do to come to them sooner."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol, runtime_checkable

from gradproof.cases import Case, Catalogue


@dataclass(frozen=True, slots=True)
class Selection:
    """Operators by glob, dtypes and devices by name. Empty means all of them, or a catalogue's usual ones."""

    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()

    def wants(self, case: Case) -> bool:
        """A case that does not say its dtype is not of the dtype that was asked for."""
        traits = case.traits
        return (
            self.wants_operator(traits.operator or case.name)
            and (not self.dtypes or traits.dtype in self.dtypes)
            and (not self.devices or traits.device in self.devices)
        )

    def wants_operator(self, operator: str) -> bool:
        return not self.operators or any(fnmatchcase(operator, glob) for glob in self.operators)


EVERYTHING = Selection()


@runtime_checkable
class Narrowable(Protocol):
    """A catalogue that leaves out what is not wanted before it spends time on it."""

    def narrowed(self, selection: Selection) -> Catalogue: ...


@runtime_checkable
class Searchable(Protocol):
    """A catalogue that finds one case without going through those before it. KeyError: there is none."""

    def find(self, name: str) -> Case: ...
