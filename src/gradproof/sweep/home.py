"""What a sweep starts with: versions, the source of its catalogues, the folder of its paths.

Whoever makes its checks must have the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gradproof.errors import UsageError
from gradproof.sweep.plan import Plan
from gradproof.sweep.sources import found_sources, sources_of
from gradproof.sweep.versions import installed

Pairs = tuple[tuple[str, str], ...]
# Login nodes and workers of a cluster rarely have the same kernel; it does not compute.
NOT_COMPARED = "platform"


@dataclass(frozen=True, slots=True)
class Home:
    """Plain words, to travel with every chunk. `sources`: the modules of each catalogue and their digests."""

    folder: str
    versions: Pairs
    sources: tuple[tuple[str, Pairs], ...]

    @classmethod
    def of(cls, plan: Plan) -> Home:
        folder = Path.cwd()
        sources = ((name, tuple(sources_of(name, folder).items())) for name in plan.catalogues)
        return cls(str(folder), tuple(installed().items()), tuple((name, found) for name, found in sources if found))

    def facts(self) -> dict[str, str]:
        """For the store: its rows belong to these."""
        return {"versions": json.dumps(dict(self.versions))} | {
            f"source of {name}": json.dumps(dict(digests)) for name, digests in self.sources
        }

    def expect(self) -> None:
        """Object, where checks are about to be made, to whatever is not as it was at home."""
        differences = _differences(self)
        if differences:
            raise UsageError(
                f"{_here()} is not like the sweep that asks it: {'; '.join(differences)}. Make it the same, or stop it"
            )

    def found(self) -> Path:
        """The folder of relative paths, as far as it exists here."""
        return Path(self.folder) if Path(self.folder).is_dir() else Path.cwd()


@lru_cache(maxsize=8)
def _differences(home: Home) -> list[str]:
    there, here = dict(home.versions), installed()
    names = [name for name in {**there, **here} if name != NOT_COMPARED]
    differences = [change(name, there, here) for name in names if there.get(name) != here.get(name)]
    folder = home.found()
    for catalogue, digests in home.sources:
        found = found_sources(catalogue, folder, dict(digests))
        if not found:
            differences.append(f"it does not find {catalogue} in {folder}")
            continue
        if found != dict(digests):
            differences.append(other_source(catalogue, dict(digests), found))
    return differences


def change(name: str, there: Mapping[str, str], here: Mapping[str, str]) -> str:
    return f"{name} {there.get(name, 'not installed')}, here {here.get(name, 'not installed')}"


def other_source(catalogue: str, before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """With the names of what it imports that is not the same in both; a few of them."""
    names = sorted(name for name in {**before, **now} if before.get(name) != now.get(name))
    if [f"{name.rpartition('.')[2]}.py" for name in names] == [Path(catalogue).name]:
        return f"another source of {catalogue}"
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"another source of {catalogue} ({shown})"


def _here() -> str:
    """Dask's name for a worker is the one that its user knows."""
    name = f"a worker on {socket.gethostname()} (process {os.getpid()})"
    if "distributed" in sys.modules:
        from distributed import get_worker

        with contextlib.suppress(ValueError):  # not in one
            name = f"the worker {get_worker().address} on {socket.gethostname()}"
    return name
