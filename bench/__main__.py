"""`python -m bench [--quick] [--readme] [part ...]`: run parts of the bench, print their tables, update the README."""

from __future__ import annotations

import os

# One thread for everybody: the ratios then say how much work is done, not how it is spread. Read on import of NumPy
# and torch, and inherited by the processes that the parts start.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import importlib
import platform
import sys
import time
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from bench.table import Claim, Part, Table

PARTS = ("calibration", "catalogue", "programs", "speed", "probes", "contracts", "operators", "scipy", "jax", "report")
# The module of a part, where it has another name.
MODULES = {"jax": "jaxspeed"}
README = Path(__file__).parents[1] / "README.md"
OPENING, CLOSING = "<!-- bench -->", "<!-- /bench -->"


def main() -> int:
    options = _options()
    torch.set_num_threads(1)
    # Without a terminal rich assumes 80 columns and would fold the tables.
    console = Console(width=None if sys.stdout.isatty() else 140)
    started = time.perf_counter()

    def say(line: str) -> None:
        console.print(f"[dim]{time.perf_counter() - started:6.0f} s  {line}[/dim]", highlight=False)

    claims: list[Claim] = []
    for name in options.parts or PARTS:
        say(f"== {name}")
        part: Part = importlib.import_module(f"bench.{MODULES.get(name, name)}").run(
            "quick" if options.quick else "full", say
        )
        for table in part.tables:
            console.print(table)
        claims += part.claims
    console.print(_summary(claims))
    say(f"done on {_machine()}")
    if options.readme:
        _write_readme(claims)
        say(f"wrote {README}")
    return 0 if all(claim.holds for claim in claims) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"which parts to run: {', '.join(PARTS)} (all)")
    parser.add_argument("--quick", action="store_true", help="a sample that takes about two minutes")
    parser.add_argument("--readme", action="store_true", help=f"replace what stands between {OPENING} and {CLOSING}")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.readme and (options.quick or options.parts):
        parser.error("--readme wants the whole bench: leave out --quick and the names of parts")
    return options


def _summary(claims: list[Claim]) -> Table:
    table = Table("Summary", ("what", "aim", "measured", "holds"))
    for claim in claims:
        table.add(claim.what, claim.promised, claim.measured, "yes" if claim.holds else "NO")
    return table


def _machine() -> str:
    return (
        f"{platform.machine()}, one thread, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, torch {torch.__version__.split('+')[0]}"
    )


def _write_readme(claims: list[Claim]) -> None:
    text = README.read_text()
    before, _, rest = text.partition(OPENING)
    _, found, after = rest.partition(CLOSING)
    if not found:
        raise SystemExit(f"{README} has no {OPENING} ... {CLOSING}")
    lines = ["", "| what | aim | measured |", "|---|---|---|"]
    lines += [f"| {claim.what} | {claim.promised} | {claim.measured} |" for claim in claims]
    lines += ["", f"Measured by `make bench` on {_machine()}.", ""]
    README.write_text(before + OPENING + "\n".join(lines) + CLOSING + after)


if __name__ == "__main__":
    sys.exit(main())
