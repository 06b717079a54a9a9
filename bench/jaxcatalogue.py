"""`python -m bench.jaxcatalogue [pattern ...]`: a verdict on every function of the JAX catalogue, in two precisions."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

from rich.console import Console

import gradproof
from bench.table import Table
from gradproof.cases import Case
from gradproof.jax.catalogue import JaxCatalogue

DTYPES = ("float64", "float32")
SEED = 0


@dataclass(frozen=True)
class Outcome:
    """What was said of one function in one precision; `why` is empty where it is right."""

    verdict: str
    seconds: float
    why: str = ""


def outcome(case: Case) -> Outcome:
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call = case.make(SEED)
            result = gradproof.check(call.fn, call.args, dict(call.kwargs), seed=SEED, **call.options)
    except Exception as error:  # noqa: BLE001  one function that does not run must not end the run
        return Outcome("RAISED", time.perf_counter() - started, f"{type(error).__name__}: {error}".splitlines()[0])
    loud = [finding for finding in result.findings if finding.verdict is result.verdict]
    why = "" if result.ok or not loud else f"{loud[0].sentence}"
    return Outcome(str(result.verdict), time.perf_counter() - started, why)


def chosen(dtype: str, patterns: list[str]) -> Iterator[Case]:
    for case in JaxCatalogue(dtype).cases():
        if not patterns or any(fnmatch(case.name, pattern) for pattern in patterns):
            yield case


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.jaxcatalogue", description=__doc__)
    parser.add_argument("patterns", nargs="*", help="names, such as 'jax.nn.*'; default: all")
    parser.add_argument("--dtype", choices=DTYPES, help="only this precision")
    parser.add_argument("--say", action="store_true", help="a line for each function as it is done")
    options = parser.parse_args()
    dtypes = [options.dtype] if options.dtype else list(DTYPES)
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = Table("The JAX catalogue", ("function", *dtypes, "seconds"))
    counts: dict[str, Counter[str]] = {dtype: Counter() for dtype in dtypes}
    for cases in zip(*(chosen(dtype, options.patterns) for dtype in dtypes), strict=True):
        outcomes = [outcome(case) for case in cases]
        for dtype, one in zip(dtypes, outcomes, strict=True):
            counts[dtype][one.verdict] += 1
            if one.why:
                console.print(f"{cases[0].name} {dtype}: {one.verdict}: {one.why}", highlight=False, soft_wrap=True)
        verdicts = [one.verdict for one in outcomes]
        table.add(cases[0].name, *verdicts, f"{sum(one.seconds for one in outcomes):.1f}")
        if options.say:
            console.print(f"{len(table.rows)} {' '.join(table.rows[-1])}", highlight=False)
    console.print(table)
    for dtype, count in counts.items():
        console.print(f"{dtype}: " + ", ".join(f"{number} {verdict}" for verdict, number in count.most_common()))
    return 1 if any(count["WRONG"] or count["RAISED"] for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
