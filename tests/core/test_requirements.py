"""What pyproject.toml promises to run with is what `make oldest` runs the tests with."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def lowest() -> dict[str, set[str]]:
    """The lower bounds of everything that users install; what is for developers alone has none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    everything = [
        *project["dependencies"],
        *(one for some in project["optional-dependencies"].values() for one in some),
    ]
    bounds: dict[str, set[str]] = {}
    for name, bound in (found.groups() for one in everything if (found := re.fullmatch(r"([\w-]+)>=([\d.]+)", one))):
        bounds.setdefault(name, set()).add(bound)
    return bounds


def test_the_oldest_pins_are_the_lower_bounds() -> None:
    oldest, bounds = pins("constraints-oldest.txt"), lowest()
    assert set(bounds) == set(oldest) - {"jaxlib"}  # which goes with jax
    for name, bound in bounds.items():
        assert len(bound) == 1, name
        assert f"{oldest[name]}.".startswith(f"{bound.pop()}."), name


def test_the_readme_names_the_bounds_of_the_frameworks() -> None:
    bounds = {name: bound.pop() for name, bound in lowest().items()}
    said = f"(torch {bounds['torch']}, JAX {bounds['jax']}, SciPy {bounds['scipy']} or newer)"
    assert said in (ROOT / "README.md").read_text()


def test_make_installs_newer_ones_by_default() -> None:
    current, oldest = pins("constraints.txt"), pins("constraints-oldest.txt")
    assert all(_numbers(current[name]) > _numbers(version) for name, version in oldest.items())


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
