"""Where a result was obtained: versions and machine, as (name, value) pairs."""

from __future__ import annotations

import platform
import sys

PACKAGES = ("numpy", "scipy", "torch", "jax", "jaxlib", "equinox")


def here() -> tuple[tuple[str, str], ...]:
    """Only packages that are loaded already are named: asking must not import a framework."""
    return (
        *_versions("gradproof"),
        ("python", platform.python_version()),
        ("platform", platform.platform()),
        *_versions(*PACKAGES),
    )


def _versions(*names: str) -> tuple[tuple[str, str], ...]:
    found = [(name, getattr(sys.modules.get(name), "__version__", None)) for name in names]
    return tuple((name, str(version)) for name, version in found if version is not None)
