"""From the word on the command line to a catalogue.

`torch`, `torch.modules`, `torch.functions`, `jax` and what third parties register under the entry point group
`gradproof.catalogues` (a callable that returns a catalogue); `path/to/cases.py` or `package.module`, either with
`:name`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from gradproof import collect, precision
from gradproof.cases import Case, Catalogue, Recipe
from gradproof.errors import UsageError
from gradproof.selection import EVERYTHING, Narrowable, Searchable, Selection

GROUP = "gradproof.catalogues"
BUILT_IN = {
    "torch": "gradproof.torch.catalogue:operators",
    "torch.modules": "gradproof.torch.catalogue:modules",
    "torch.functions": "gradproof.torch.catalogue:functions",
    "jax": "gradproof.jax.catalogue:Functions",
}


# Where the cases of a framework can run.
DEVICES = {"torch": ("cpu", "cuda", "mps", "xpu", "hpu", "mtia", "xla"), "jax": ("cpu",)}


def known_as(spec: str) -> str:
    """The one name of a catalogue, however its file was written: `./rules.py` and its whole path are `rules.py` here.
    One that is not below this folder goes by its whole path."""
    source, colon, name = spec.partition(":")
    if not source.endswith(".py"):
        return spec
    below = Path(os.path.relpath(source))
    return f"{os.path.abspath(source) if below.parts[0] == os.pardir else below.as_posix()}{colon}{name}"


def load(spec: str, selection: Selection = EVERYTHING) -> Catalogue:
    """The catalogue of this name, without what the selection leaves out where it can do that itself."""
    catalogue = _catalogue_of(_found(spec), spec)
    return catalogue.narrowed(selection) if isinstance(catalogue, Narrowable) else catalogue


def expect(spec: str, selection: Selection = EVERYTHING) -> None:
    """Object to a word that cannot be a catalogue, or has no such cases, without loading anything: what is in a package
    is looked for by the listing."""
    if spec not in names():
        source = spec.partition(":")[0]
        package = source.partition(".")[0]
        if source.endswith(".py") or not ("." in spec or ":" in spec):
            found = Path(source).is_file()
        else:
            found = bool(package) and (package in sys.modules or bool(find_spec(package)) or Path(package).exists())
        if not found:
            raise _unknown(spec)
    if spec in BUILT_IN:
        for kind, asked, known in (
            ("dtype", selection.dtypes, precision.NAMES),
            ("device", selection.devices, DEVICES[spec.partition(".")[0]]),
        ):
            unknown = [word for word in asked if word.partition(":")[0] not in known]
            if unknown:
                raise UsageError(f"{spec} has no {kind} {unknown[0]!r}; write {kind} {', '.join(known)}")


def _unknown(spec: str) -> UsageError:
    return UsageError(
        f"there is no catalogue {spec!r}; write one of {', '.join(names())}, a file such as path/to/cases.py, or "
        "package.module:name"
    )


def names() -> list[str]:
    """All catalogues that can be named without a path."""
    return sorted({*BUILT_IN, *(entry.name for entry in entry_points(group=GROUP))})


def _found(spec: str) -> Any:
    for entry in entry_points(group=GROUP):
        if entry.name == spec:
            return entry.load()
    source, colon, name = BUILT_IN.get(spec, spec).partition(":")
    if spec in BUILT_IN and find_spec(spec.partition(".")[0]) is None:
        raise UsageError(f"the catalogue {spec!r} needs {spec.partition('.')[0]}, which is not installed")
    if not _exists(source):
        raise _unknown(spec)
    module = collect.load(source)
    return getattr(module, name) if colon else module


def _exists(source: str) -> bool:
    """Whether there is such a file or module. What is wrong with it is told when it is loaded."""
    if source.endswith(".py"):
        return Path(source).is_file()
    try:
        return find_spec(source) is not None
    except ModuleNotFoundError:
        return False


def _catalogue_of(found: Any, spec: str) -> Catalogue:
    """A module has functions under `@gradproof.case`, `cases()` or `CASES`; anything else is a catalogue, or makes one
    when called."""
    if isinstance(found, ModuleType):
        if callable(getattr(found, "cases", None)):
            return _Listed(found.cases)
        if hasattr(found, "CASES"):
            return _Listed(lambda: found.CASES)
        return _Listed(lambda: (case for recipe in _recipes(found, spec) for case in recipe.cases()))
    catalogue = found() if callable(found) else found
    if not hasattr(catalogue, "cases"):
        raise UsageError(f"{spec} is not a catalogue: {type(catalogue).__name__} has no cases()")
    made: Catalogue = catalogue
    return made


def _recipes(module: ModuleType, spec: str) -> list[Recipe]:
    recipes = collect.recipes_of(module)
    if not recipes:
        raise UsageError(f"{spec} holds no cases: it needs functions under @gradproof.case, cases() or CASES")
    return recipes


@dataclass(frozen=True)
class _Listed:
    """The cases that a module has."""

    source: Callable[[], Iterable[Case]]

    def cases(self) -> Iterator[Case]:
        return iter(self.source())


@dataclass
class Finder:
    """Cases by name. Where the catalogue cannot search, it is read once from start to end, as far as needed."""

    catalogue: Catalogue
    _seen: dict[str, Case] = field(default_factory=dict)
    _rest: Iterator[Case] | None = None

    def find(self, name: str) -> Case:
        if isinstance(self.catalogue, Searchable):
            return self.catalogue.find(name)
        if self._rest is None:
            self._rest = self.catalogue.cases()
        if name not in self._seen:
            for case in self._rest:
                self._seen[case.name] = case
                if case.name == name:
                    break
        return self._seen[name]
