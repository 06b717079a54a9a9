"""The shape of the code: which way imports point, who may know a framework, how long things get, how fast it loads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "gradproof"
FILES = sorted(SOURCE.rglob("*.py"))

# A module may import from its own row and from the rows above it. A new module needs a place here.
LAYERS = (
    (
        "errors",
        "program",
        "cases",
        "selection",
        "streams",
        "environment",
        "collect",
        "arrays",
        "codes",
        "verdict",
        "testrun",
    ),
    (
        "precision",
        "settings",
        "norms",
        "sizes",
        "batching",
        "paths",
        "bounds",
        "spaces",
        "wrapped",
        "unrounded",
        "copies",
        "names",
        "quiet",
    ),
    ("picture", "routes"),
    ("table", "finding"),
    ("result", "metered", "confined", "around"),
    ("reference",),
    ("agreement",),
    ("contracts",),
    ("evidence",),
    ("diagnose", "audit", "examined", "tasks", "gathering"),
    ("examine", "adapters", "recording"),
    ("linearize",),
    ("surrogate",),
    ("check", "compare"),
    ("attempt",),
    ("render", "torch", "jax", "numpy", "sweep", "conformance"),
    ("__init__",),
    ("cli",),
    ("__main__",),
)
RANK = {module: rank for rank, row in enumerate(LAYERS) for module in row}
ADAPTERS = ("torch", "jax", "numpy")
# A framework's own interface and catalogue, on top of everything: they may use its adapter, the core and its texts.
ON_TOP = ("torch.dropin", "jax.dropin", "jax.catalogue", "numpy.problem")
# A framework's contracts judge what its adapter translates: they see the adapter, and the core up to its contracts.
CONTRACTS = ("torch.contracts", "jax.contracts", "numpy.contracts")
# An adapter translates; it never compares, picks a step or formats.
SEEN_BY_ADAPTERS = {
    "around",
    "batching",
    "cases",
    "copies",
    "errors",
    "names",
    "paths",
    "precision",
    "program",
    "quiet",
    "routes",
    "selection",
    "settings",
    "streams",
    "unrounded",
}
# Against the arrows, and only inside a function: a result prints itself, and `adapters` looks up who runs the function.
LAZY = {("result", "render"), ("adapters", "torch"), ("adapters", "jax"), ("adapters", "numpy")}
# Above the adapter, in the adapter's own folder.
ABOVE = (*ON_TOP, *CONTRACTS)


@dataclass(frozen=True)
class Import:
    """One import that happens at run time: the dotted name, and whether it waits until a function is called."""

    name: str
    lazy: bool


def imports(tree: ast.AST, package: str, lazy: bool = False) -> Iterator[Import]:
    """All imports below `tree`, except those that only the type checker sees."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base]).rstrip(".")
            yield from (Import(f"{base}.{alias.name}", lazy) for alias in node.names)
        else:
            yield from imports(node, package, lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def package_of(file: Path) -> str:
    return ".".join(["gradproof", *file.parent.relative_to(SOURCE).parts])


def module_of(file: Path) -> str:
    """The row's name: the top-level module or folder that the file belongs to. What sits above an adapter is no part of
    it."""
    parts = file.relative_to(SOURCE).parts
    folder = ".".join(parts[:2]).removesuffix(".py")
    return folder if folder in ABOVE else parts[0].removesuffix(".py")


def misdirected(module: str, tree: ast.AST, package: str = "gradproof") -> list[str]:
    """The imports of gradproof's own modules that this module must not have."""
    own = [found for found in imports(tree, package) if found.name.split(".")[0] == "gradproof"]
    return [found.name for found in own if not _allowed(module, found)]


def _allowed(module: str, found: Import) -> bool:
    parts = found.name.split(".")
    target = parts[1] if len(parts) > 1 and parts[1] in RANK else "__init__"
    if module in ADAPTERS and ".".join(parts[1:3]) in CONTRACTS:
        return False
    if target == module or (found.lazy and (module, target) in LAZY):
        return True
    framework = module.split(".", maxsplit=1)[0]
    if module in ON_TOP:
        return target in (framework, "render") or RANK[target] <= RANK["check"]
    if module in CONTRACTS:
        above = ".".join(parts[1:3]) in ON_TOP
        return not above and (target == framework or RANK[target] <= RANK["contracts"])
    if module in ADAPTERS:
        return target in SEEN_BY_ADAPTERS
    return target not in ADAPTERS and RANK[target] <= RANK[module]


def frameworks(tree: ast.AST) -> set[str]:
    """Frameworks that are named in any import, also one that only the type checker sees."""
    named = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.split(".")[0] for name in named} & {"torch", "jax", "jaxlib"}


def too_long(tree: ast.AST, most: int = 60) -> list[str]:
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [node.name for node in functions if (node.end_lineno or 0) - node.lineno + 1 - _described(node) > most]


def _described(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of its docstring: a public function with many options has a long one, and is no harder to read for it."""
    first = function.body[0]
    return (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(function, clean=False) is not None else 0


@pytest.fixture(params=FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def file(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_the_module_has_a_place_among_the_layers(file: Path) -> None:
    assert module_of(file) in {*RANK, *ABOVE}, "give the new module a row in LAYERS"


@pytest.mark.parametrize("package", ["evidence", "reference"])
def test_a_package_is_a_map_of_its_modules(package: str) -> None:
    """In its docstring, a line for each."""
    found = ast.get_docstring(ast.parse((SOURCE / package / "__init__.py").read_text())) or ""
    named = re.findall(r"^    (\w+)", found, re.MULTILINE)
    assert sorted(named) == sorted(file.stem for file in (SOURCE / package).glob("*.py") if file.stem != "__init__")


def test_the_page_on_architecture_names_what_exists() -> None:
    """Modules by their path, tests by their name."""
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    modules = re.findall(r"`([a-z]+(?:/[a-z]+)*\.py)`", page)
    assert modules
    assert [module for module in modules if not (SOURCE / module).exists()] == []
    tests = set(re.findall(r"`(test_\w+)`", page))
    assert tests
    defined = {
        name
        for file in SOURCE.parents[1].glob("tests/**/test_*.py")
        for name in [file.stem, *re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)]
    }
    assert tests <= defined, tests - defined


def test_imports_point_one_way(file: Path) -> None:
    assert misdirected(module_of(file), ast.parse(file.read_text()), package_of(file)) == []


def test_only_an_adapter_knows_its_framework(file: Path) -> None:
    assert frameworks(ast.parse(file.read_text())) <= {module_of(file).split(".")[0]}


def test_the_module_has_a_docstring(file: Path) -> None:
    assert ast.get_docstring(ast.parse(file.read_text()))


def test_the_module_is_at_most_300_lines(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= 300


def test_no_function_is_over_60_lines(file: Path) -> None:
    assert too_long(ast.parse(file.read_text())) == []


@pytest.mark.parametrize(
    ("module", "source", "bad"),
    [
        ("reference", "from gradproof.evidence import probes", ["gradproof.evidence.probes"]),
        ("reference", "from gradproof import check", ["gradproof.check"]),
        ("reference", "from gradproof.program import Array", []),
        ("reference", "def f():\n    import gradproof.check", ["gradproof.check"]),
        ("reference", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gradproof import check", []),
        ("result", "def f():\n    from gradproof.render.text import render", []),
        ("result", "from gradproof.render.text import render", ["gradproof.render.text.render"]),
        ("adapters", "from gradproof.torch import program", ["gradproof.torch.program"]),
        ("adapters", "def f():\n    from gradproof.torch import program", []),
        ("check", "def f():\n    from gradproof.torch import program", ["gradproof.torch.program"]),
        ("torch", "from gradproof.agreement import judge", ["gradproof.agreement.judge"]),
        ("torch", "from gradproof.program import Leaf", []),
        ("torch.dropin", "from gradproof.check import check_program", []),
        ("torch.dropin", "from gradproof.sweep import run", ["gradproof.sweep.run"]),
        ("jax.dropin", "from gradproof.check import check_program", []),
        ("jax.dropin", "from gradproof.torch import program", ["gradproof.torch.program"]),
        ("torch.contracts", "from gradproof.contracts.linear import check_linear", []),
        ("torch.contracts", "from gradproof.torch.graph import Graph", []),
        ("torch.contracts", "from gradproof.torch.dropin.judge import judge", ["gradproof.torch.dropin.judge.judge"]),
        ("torch.contracts", "from gradproof.check import check", ["gradproof.check.check"]),
        ("torch", "from gradproof.torch.contracts.pulls import pull", ["gradproof.torch.contracts.pulls.pull"]),
    ],
)
def test_a_misdirected_import_is_noticed(module: str, source: str, bad: list[str]) -> None:
    assert misdirected(module, ast.parse(source)) == bad


def test_a_relative_import_is_read_like_an_absolute_one() -> None:
    assert misdirected("reference", ast.parse("from ..check import check"), "gradproof.reference") == [
        "gradproof.check.check"
    ]
    assert misdirected("reference", ast.parse("from .steps import ladder"), "gradproof.reference") == []


def test_a_framework_is_noticed_wherever_it_is_imported() -> None:
    assert frameworks(ast.parse("def f():\n    from torch.nn import Module")) == {"torch"}
    assert frameworks(ast.parse("import jax.numpy as jnp")) == {"jax"}
    assert frameworks(ast.parse("from .torch import program")) == set()


def test_a_long_function_is_noticed() -> None:
    body = "\n".join(["    pass"] * 60)
    assert too_long(ast.parse(f"def f():\n{body}")) == ["f"]
    assert too_long(ast.parse(f"def f():\n{body[9:]}")) == []


HEAVY = """
torch jax scipy rich click plotly matplotlib dask distributed pandas multiprocessing sqlite3 asyncio unittest jsonschema
"""
# NumPy's own, and its dependencies', are not counted: nobody checks gradients without it.
LOAD = """
import numpy, sys
before = set(sys.modules)
import gradproof
print(*set(sys.modules) - before)
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that `import gradproof` brings along in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_gradproof_brings_no_heavy_package_along(loaded: set[str]) -> None:
    assert loaded & set(HEAVY.split()) == set()


def test_importing_gradproof_is_quick(loaded: set[str]) -> None:
    # Counted, not timed: other work on the machine changes every time. 140 modules take about 0.2 s.
    assert "gradproof.check" in loaded
    assert len(loaded) <= 140, sorted(loaded)


PUBLIC = """
check assert_gradients compare Result Verdict Finding Comparison Report Settings Tolerance Budget
GradcheckError UsageError Unsupported Program Leaf
"""


def test_all_public_names_exist() -> None:
    import gradproof

    assert set(PUBLIC.split()) <= set(gradproof.__all__)
    assert all(hasattr(gradproof, name) for name in gradproof.__all__)


ROOT = SOURCE.parents[1]


def test_contributing_has_a_line_for_every_module() -> None:
    layout = (ROOT / "CONTRIBUTING.md").read_text().split("## The layout")[1].split("```")[1]
    modules = {path.name + "/" * path.is_dir() for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert {name for name in modules - {"__pycache__/"} if name not in layout} == set()


@pytest.mark.parametrize("package", ["gradproof", "gradproof.torch", "gradproof.jax", "gradproof.numpy"])
def test_every_public_name_is_documented(package: str) -> None:
    pages = "".join((ROOT / "docs" / page).read_text() for page in ("api.md", "architecture.md"))
    tree = ast.parse((SOURCE.parent / package.replace(".", "/") / "__init__.py").read_text())
    values = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    names = {ast.literal_eval(one) for value in values for one in ast.walk(value) if isinstance(one, ast.Constant)}
    assert names
    assert {name for name in names if f"::: {package}.{name}\n" not in pages} == set()
