"""From the word on the command line to a catalogue.

`torch`, `torch.modules`, `torch.functions`, `jax` and what third parties register under the entry point group
`gradproof.catalogues` (a callable that returns a catalogue); `path/to/cases.py`; `package.module` or
`package.module:name`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from gradproof.cases import Case, Catalogue
from gradproof.errors import UsageError
from gradproof.selection import Narrowable, Searchable, Selection

GROUP = "gradproof.catalogues"
BUILT_IN = {
    "torch": "gradproof.torch.catalogue:operators",
    "torch.modules": "gradproof.torch.catalogue:modules",
    "torch.functions": "gradproof.torch.catalogue:functions",
    "jax": "gradproof.jax.catalogue:operators",
}


def load(spec: str, selection: Selection = Selection()) -> Catalogue:  # noqa: B008 - a frozen value
    """The catalogue of this name, without what the selection leaves out where it can do that itself."""
    catalogue = _catalogue_of(_found(spec), spec)
    return catalogue.narrowed(selection) if isinstance(catalogue, Narrowable) else catalogue


def names() -> list[str]:
    """All catalogues that can be named without a path."""
    return sorted({*BUILT_IN, *(entry.name for entry in entry_points(group=GROUP))})


def _found(spec: str) -> Any:
    if spec.endswith(".py") or Path(spec).is_file():
        return _module_at(Path(spec))
    for entry in entry_points(group=GROUP):
        if entry.name == spec:
            return entry.load()
    module, _, name = BUILT_IN.get(spec, spec).partition(":")
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{module}.".startswith(f"{missing.name}."):
            raise  # the catalogue's module is there; something that it needs is not
        raise UsageError(
            f"there is no catalogue {spec!r}; write one of {', '.join(names())}, a file such as path/to/cases.py, "
            "or package.module:name"
        ) from missing
    return getattr(loaded, name) if name else loaded


def _module_at(path: Path) -> ModuleType:
    """A file, loaded under a name of its own, with its folder on the path like that of a script."""
    if not path.is_file():
        raise UsageError(f"there is no file {str(path)!r} to take cases from")
    name = f"gradproof_cases_{path.stem}"
    made = importlib.util.spec_from_file_location(name, path)
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    sys.modules[name] = module
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.append(folder)
    made.loader.exec_module(module)
    return module


def _catalogue_of(found: Any, spec: str) -> Catalogue:
    """A module has `cases()` or `CASES`; anything else is a catalogue, or makes one when called."""
    if isinstance(found, ModuleType):
        if callable(getattr(found, "cases", None)):
            return _Listed(found.cases)
        if hasattr(found, "CASES"):
            return _Listed(lambda: found.CASES)
        raise UsageError(f"{spec} holds no cases: it needs functions under @gradproof.case, cases() or CASES")
    catalogue = found() if callable(found) else found
    if not hasattr(catalogue, "cases"):
        raise UsageError(f"{spec} is not a catalogue: {type(catalogue).__name__} has no cases()")
    made: Catalogue = catalogue
    return made


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
