"""One case from its name to its result. Nothing that the case does ends the run: what it raises is a result too."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gradproof.arrays import seeded
from gradproof.cases import Case, expect_known
from gradproof.check import check
from gradproof.errors import Unsupported, UsageError, is_skip, said, where
from gradproof.result import Cost, Finding, Place, Result, Verdict
from gradproof.settings import Settings

HINT = "Call the function by itself at these arguments."


def attempt(case: Case, seed: int, options: Mapping[str, Any]) -> Result:
    """Make the case and check it. `options`, those of `gradproof.check`, win over the case's own."""
    started = time.perf_counter()
    try:
        with seeded(seed):  # a function that draws numbers draws the same ones when it is replayed
            result = checked(case, seed, options)
    except KeyboardInterrupt:
        raise
    except BaseException as raised:  # noqa: BLE001  a case may raise anything
        return ended(case.name, outcome(raised), seed, options, time.perf_counter() - started)
    return replace(result, name=case.name)


def checked(case: Case, seed: int, options: Mapping[str, Any]) -> Result:
    """The same, and what the case raises is the caller's."""
    call = case.make(seed)
    expect_known(call.options)
    return check(call.fn, call.args, call.kwargs, **{"seed": seed, **call.options, **options})


def outcome(raised: BaseException) -> Finding:
    """What a case that raised has come to."""
    if is_skip(raised):
        return Finding("skipped", Verdict.UNSUPPORTED, Place(), str(raised) or "no reason was given")
    if isinstance(raised, Unsupported):
        return Finding("unsupported", Verdict.UNSUPPORTED, Place(), str(raised))
    hint = "" if isinstance(raised, UsageError) else HINT  # its message ends with what to write
    return Finding("error", Verdict.ERROR, Place(), f"{said(raised)}{where(raised)}", hint)


def ended(name: str, finding: Finding, seed: int, options: Mapping[str, Any], seconds: float) -> Result:
    """The result of a case of which there is nothing else to tell."""
    known = {name: value for name, value in options.items() if name not in ("wrt", "seed")}
    return Result(
        name=name,
        verdict=finding.verdict,
        comparisons=(),
        findings=(finding,),
        skipped=(),
        notes=(),
        power=None,
        cost=Cost(0, 0, 0, seconds),
        seed=seed,
        settings=Settings.validated(seed=seed, **known),
    )
