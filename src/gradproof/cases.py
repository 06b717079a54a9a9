"""A case: something to check, by name, made only when its turn comes.

Case files, catalogues, the command line and sweeps all deal in these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Call:
    """A function and the arguments to check it at; `options` are keyword arguments of `gradproof.check`."""

    fn: Callable[..., Any]
    args: Any = ()
    kwargs: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of a case before it is made; empty where nothing is. Sweeps select by these and group by them."""

    operator: str = ""
    family: str = ""
    dtype: str = ""
    device: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """`name` is stable and unique in its catalogue. `make` builds the call, each time the same for the same seed."""

    name: str
    make: Callable[[int], Call]
    traits: Traits = Traits()


class Catalogue(Protocol):
    """Anything that yields cases lazily. One that is also `Narrowable` or `Searchable` saves a sweep work."""

    def cases(self) -> Iterator[Case]: ...
