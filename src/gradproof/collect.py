"""Cases by where they are written: `file.py`, `pkg.mod`, either with `::name`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from gradproof.cases import DEFINED, MARK, Case, Recipe
from gradproof.errors import UsageError, said, where

EXAMPLE = """\
@gradproof.case
def cube():
    return Cube.apply, torch.linspace(-2, 2, 5, dtype=torch.float64)"""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to look, as the user wrote it: `source` is a file or a module, `name` a function or one case of it."""

    source: str
    name: str = ""

    @classmethod
    def parsed(cls, text: str) -> Target:
        source, _, name = text.partition("::")
        return cls(source, name)

    def cases(self) -> Iterator[Case]:
        """In the order of definition, each under its full name, `file.py::name[n=8,seed=1]`."""
        recipes = recipes_of(load(self.source))
        found = False
        for recipe in recipes:
            for case in recipe.cases():
                if self.name in ("", recipe.name, case.name):
                    found = True
                    yield Case(f"{self.source}::{case.name}", case.make)
        if not found:
            raise UsageError(self._nothing(recipes))

    def words(self, name: str) -> list[str]:
        """One case of it on the command line: its full name."""
        return [name]

    def _nothing(self, recipes: list[Recipe]) -> str:
        if not recipes and Path(self.source).is_dir():
            return _folder(self.source)
        if not recipes:
            look = f"\n\nor look at one function: gradproof check {self.source}:{self.name or 'name'} --arg 'randn(3)'"
            return f"{self.source} holds no cases; write one:\n\n{EXAMPLE}{look}"
        names = [case.name for recipe in recipes for case in recipe.cases()]
        return f"{self.source} holds no case {self.name!r}; it has {', '.join(names[:12])}{', ...' * (len(names) > 12)}"


def _folder(source: str) -> str:
    return f"{source} is a folder; name a file: gradproof check {Path(source) / 'cases.py'}"


def recipes_of(module: ModuleType) -> list[Recipe]:
    """The decorated functions that the module defines itself, in its order."""
    held = {name: getattr(value, MARK, None) for name, value in vars(module).items() if callable(value)}
    own = {
        one: name
        for name, one in reversed(held.items())  # the first name of each stays
        if isinstance(one, Recipe) and one.function.__module__ == module.__name__
    }
    _no_name_twice(module, own)
    return list(reversed(own))


def _no_name_twice(module: ModuleType, own: dict[Recipe, str]) -> None:
    """Of two cases with one name only one would be run. Python lets the second function of a name take the place of the
    first; functions that a factory makes, and lambdas, all have the same."""
    seen: dict[str, Recipe] = {}
    for recipe in dict.fromkeys([*getattr(module, DEFINED, ()), *reversed(own)]):
        other = seen.setdefault(recipe.name, recipe)
        if other is recipe:
            continue
        file = Path(getattr(module, "__file__", None) or module.__name__).name
        lines = [getattr(getattr(one.function, "__code__", None), "co_firstlineno", 0) for one in (other, recipe)]
        if lines[0] != lines[1]:
            cure = "write def NAME(): for each" if recipe.name == "<lambda>" else "give one another name"
            raise UsageError(f"{file} holds two cases named {recipe.name} (lines {lines[0]} and {lines[1]}); {cure}")
        both = " and ".join(own[one] for one in (other, recipe)) if other in own and recipe in own else "both"
        raise UsageError(
            f"{file} holds two cases named {recipe.name} ({both} from line {lines[0]}); give each a "
            "__name__ of its own, or write one case with params={'op': [...]}"
        )


def load(source: str) -> ModuleType:
    """Import a file by its path, or a module by its name. Both may import what lies beside them."""
    path = Path(source)
    if path.is_dir() and not (source.isidentifier() and (path / "__init__.py").is_file()):
        raise UsageError(_folder(source))
    if source.endswith(".py"):
        if not path.is_file():
            raise UsageError(f"there is no file {source!r}; write gradproof check path/to/cases.py")
        return _guarded(source, lambda: _of_file(path.resolve()))
    _importable(Path.cwd())
    return _guarded(source, lambda: importlib.import_module(source))


def _of_file(path: Path) -> ModuleType:
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file():  # a file of a package may use relative imports
        parts.insert(0, root.name)
        root = root.parent
    _importable(root)
    if len(parts) > 1:
        return importlib.import_module(".".join(parts))
    # By its own name, so that files beside it that import it get the same one; unless another has that name.
    for name in (parts[0], f"{parts[0]}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"):
        taken = sys.modules.get(name)
        if taken is None:
            break
        if getattr(taken, "__file__", None) == str(path):
            return taken
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _guarded(source: str, imported: Callable[[], ModuleType]) -> ModuleType:
    """What an import raises is the user's to mend: it is named with its line, without our frames."""
    try:
        return imported()
    except UsageError as refused:
        raise UsageError(f"{refused}{where(refused)}") from refused
    except KeyboardInterrupt:
        raise
    except BaseException as raised:
        if isinstance(raised, ModuleNotFoundError) and raised.name in (source, source.partition(".")[0]):
            raise UsageError(
                f"there is no module {source!r} to be imported from here; write package.module or path/to/file.py"
            ) from raised
        last = traceback.extract_tb(raised.__traceback__)[-1]
        inside = (
            "" if last.filename == __file__ or "importlib" in last.filename else f" ({last.filename}:{last.lineno})"
        )
        guard = "; put that under if __name__ == '__main__':" if isinstance(raised, SystemExit) else ""
        raise UsageError(f"{source} cannot be imported: {said(raised)}{inside}{guard}") from raised


def _importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
