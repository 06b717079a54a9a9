"""The source that a catalogue stands on: its own file, and the files that it imports, found without importing them.

The standard library, what lies in site-packages, gradproof and the frameworks are left out: those have versions.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import entry_points
from pathlib import Path

from gradproof.sweep.catalogues import BUILT_IN, GROUP
from gradproof.sweep.versions import PACKAGES

Digests = dict[str, str]
_FOREIGN = {"site-packages", "dist-packages"}
_STANDARD = tuple(f"{sysconfig.get_path(kind)}{os.sep}" for kind in ("stdlib", "platstdlib"))
_VERSIONED = {"gradproof", *PACKAGES}


def sources_of(spec: str, folder: Path) -> Digests:
    """Of all modules that this catalogue may load, by their names; relative paths are those of `folder`."""
    search = _search(spec, folder)
    found: Digests = {}
    waiting = [search.first] if search.first else []
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        file = search.file(name)
        if file is None or (name != search.first and not _is_own(file)):
            continue
        source = _read(file)
        if source is None:
            continue
        found[name] = source.digest
        package = name if file.stem == "__init__" else name.rpartition(".")[0]
        for imported in source.modules(package):
            if imported not in seen:
                seen.add(imported)
                waiting.append(imported)
    return dict(sorted(found.items()))


def found_sources(spec: str, folder: Path, names: Iterable[str]) -> Digests:
    """Of the modules of these names as they are found here, wherever that is."""
    search = _search(spec, folder)
    files = {name: search.file(name) for name in names}
    read = {name: _read(file) for name, file in files.items() if file is not None}
    return {name: source.digest for name, source in read.items() if source is not None}


@dataclass(frozen=True, slots=True)
class _Source:
    """`imports`: (level, module, names) as they are written."""

    digest: str
    imports: tuple[tuple[int, str, tuple[str, ...]], ...]

    def modules(self, package: str) -> Iterator[str]:
        """All that may be modules; packages come before what is in them."""
        for level, module, names in self.imports:
            base = module
            if level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - level + 1], module]).strip(".")
            for whole in (f"{base}.{name}".strip(".") for name in names) if names else (base,):
                parts = whole.split(".")
                yield from (".".join(parts[: count + 1]) for count in range(len(parts)))


def _read(file: Path) -> _Source | None:
    try:
        state = file.stat()
        return _parsed(file, state.st_mtime_ns, state.st_size)
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _parsed(file: Path, _changed: int, _size: int) -> _Source:
    text = file.read_bytes()
    imports: list[tuple[int, str, tuple[str, ...]]] = []
    if file.suffix == ".py":
        try:
            tree: ast.AST = ast.parse(text)
        except (SyntaxError, ValueError):  # told by whoever loads it
            tree = ast.Module([], [])
        # Those inside functions too: they run when a case does.
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imports += [(0, alias.name, ()) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                imports.append((node.level, node.module or "", tuple(alias.name for alias in node.names)))
    return _Source(hashlib.sha256(text).hexdigest()[:12], tuple(imports))


@dataclass
class _Search:
    """Modules by name, as a worker would find them: beside the catalogue first. `first` is the catalogue's own module,
    which may be a file of any name."""

    root: Path
    first: str = ""
    path: Path | None = None
    _specs: dict[str, ModuleSpec | None] = field(default_factory=dict)

    def file(self, name: str) -> Path | None:
        if name == self.first and self.path is not None:
            return self.path
        spec = self._spec(name)
        return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None

    def _spec(self, name: str) -> ModuleSpec | None:
        if name not in self._specs:
            self._specs[name] = self._found(name)
        return self._specs[name]

    def _found(self, name: str) -> ModuleSpec | None:
        parent = name.rpartition(".")[0]
        if parent:
            folders = self._folders(parent)
            return PathFinder.find_spec(name, folders) if folders else None
        if name in _VERSIONED:
            return None
        spec = PathFinder.find_spec(name, [str(self.root)])
        if spec is None and name not in sys.stdlib_module_names:
            # Editable installations have finders of their own.
            finders = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
            spec = next((one for find in finders if find and (one := find(name, None)) is not None), None)
        return spec

    def _folders(self, package: str) -> list[str]:
        spec = self._spec(package)
        if spec is None or spec.submodule_search_locations is None:
            return []
        parent, _, own = package.rpartition(".")
        if parent and not spec.has_location:  # a namespace asks for its parent to be loaded
            return [str(Path(folder) / own) for folder in self._folders(parent)]
        return list(spec.submodule_search_locations)


def _search(spec: str, folder: Path) -> _Search:
    importlib.invalidate_caches()  # files may be as new as the last look into their folder
    registered = {entry.name: entry.module for entry in entry_points(group=GROUP)}
    source = registered.get(spec, BUILT_IN.get(spec, spec)).partition(":")[0]
    if not source.endswith(".py"):
        return _Search(folder, source)
    path = folder / source
    if not path.is_file():
        return _Search(folder)
    root, parts = path.resolve().parent, [path.stem]
    while (root / "__init__.py").is_file():  # as `collect` does
        parts.insert(0, root.name)
        root = root.parent
    return _Search(root, ".".join(parts), path)


def _is_own(file: Path) -> bool:
    return not (_FOREIGN & set(file.parts) or str(file).startswith(_STANDARD))
