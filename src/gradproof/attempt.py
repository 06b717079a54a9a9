"""One case from its name to its result. Nothing that the case does ends the run: what it raises is a result too."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gradproof.arrays import seeded
from gradproof.cases import Case, expect_known
from gradproof.check import check
from gradproof.errors import UsageError, is_skip, said, where
from gradproof.result import Cost, Finding, Place, Result, Verdict
from gradproof.settings import Settings

HINT = "Call the function by itself at these arguments."


def attempt(case: Case, seed: int, options: Mapping[str, Any]) -> Result:
    """Make the case and check it. `options`, those of `gradproof.check`, win over the case's own."""
    started = time.perf_counter()
    try:
        with seeded(seed):  # a function that draws numbers draws the same ones when it is replayed
            call = case.make(seed)
            expect_known(call.options)
            result = check(call.fn, call.args, call.kwargs, **{"seed": seed, **call.options, **options})
    except KeyboardInterrupt:
        raise
    except BaseException as raised:  # noqa: BLE001  a case may raise anything
        if is_skip(raised):
            return _skipped(case.name, str(raised), seed, options, time.perf_counter() - started)
        sentence = f"{said(raised)}{where(raised)}"
        hint = "" if isinstance(raised, UsageError) else HINT  # its message ends with what to write
        return failed(case.name, sentence, seed, options, time.perf_counter() - started, hint)
    return replace(result, name=case.name)


def _skipped(name: str, reason: str, seed: int, options: Mapping[str, Any], seconds: float) -> Result:
    """The result of a case that does not want to run here."""
    finding = Finding("skipped", Verdict.UNSUPPORTED, Place(), reason or "no reason was given")
    result = failed(name, "", seed, options, seconds)
    return replace(result, verdict=finding.verdict, findings=(finding,))


def failed(name: str, sentence: str, seed: int, options: Mapping[str, Any], seconds: float, hint: str = HINT) -> Result:
    """The result of a case that came to no verdict."""
    known = {name: value for name, value in options.items() if name not in ("wrt", "seed")}
    return Result(
        name=name,
        verdict=Verdict.ERROR,
        comparisons=(),
        findings=(Finding("error", Verdict.ERROR, Place(), sentence, hint),),
        skipped=(),
        notes=(),
        power=None,
        cost=Cost(0, 0, 0, seconds),
        seed=seed,
        settings=Settings.validated(seed=seed, **known),
    )
