"""`python -m bench.sweep [part ...]`: operators, slow-mode, cluster, disasters, kills, overhead."""

from __future__ import annotations

import os

# Before anything loads NumPy or torch, here and in all processes that are started.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import sys
import time
from functools import partial
from pathlib import Path

from bench.sweep import operators, robust, slow

DEFAULT_STORE = Path(".bench") / "sweep.db"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sweep", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help="which parts to run (all)")
    parser.add_argument("--store", type=Path, default=DEFAULT_STORE, help=f"of the operators ({DEFAULT_STORE})")
    parser.add_argument(
        "--shard", help="only this part of the operators, such as 1/20; the table goes beside the store"
    )
    parser.add_argument("--seconds", type=float, default=3600.0, help="that the slow mode may take (3600)")
    options = parser.parse_args()
    parts = {
        "disasters": robust.disasters,
        "overhead": robust.overhead,
        "kills": robust.kills,
        "cluster": robust.cluster,
        "operators": partial(operators.operators, store=options.store, shard=options.shard),
        "slow-mode": partial(slow.slow_mode, seconds=options.seconds),
    }
    unknown = set(options.parts) - set(parts)
    if unknown:
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    started = time.perf_counter()

    def say(line: str) -> None:
        print(f"{time.perf_counter() - started:6.0f} s  {line}", flush=True)

    claims = []
    for name in options.parts or parts:
        say(f"== {name}")
        for claim in parts[name](say):  # type: ignore[operator]
            claims.append(claim)
            say(f"{'holds' if claim.holds else 'FAILS'}: {claim.what}: {claim.measured} (aim {claim.promised})")
    return 0 if all(claim.holds for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
