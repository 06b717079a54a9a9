"""The versions that a sweep's rows belong to. Packages are looked up, not loaded."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("numpy", "scipy", "torch", "jax", "jaxlib")


def installed() -> dict[str, str]:
    found = {"gradproof": own(), "python": platform.python_version(), "platform": platform.platform()}
    return found | {name: _version(name) for name in PACKAGES if _version(name)}


@cache
def own() -> str:
    """The release and a digest of the source, because the source changes more often than the release."""
    folder = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode() + file.read_bytes())
    return f"{_version('gradproof')}+{digest.hexdigest()[:12]}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
