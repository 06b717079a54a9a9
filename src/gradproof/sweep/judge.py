"""One item in the worker: build the case from its name, check it, and put what was found into a row."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import lru_cache

from gradproof.arrays import seeded
from gradproof.attempt import checked, ended, outcome
from gradproof.errors import LONGEST
from gradproof.result import Finding, Place, Result, Verdict
from gradproof.selection import EVERYTHING, Selection
from gradproof.sweep import kept
from gradproof.sweep.catalogues import Finder, load
from gradproof.sweep.plan import Terms
from gradproof.sweep.row import Ending, Item, Row

# What frameworks say when an allocation fails.
OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "RESOURCE_EXHAUSTED", "Unable to allocate")


@lru_cache(maxsize=8)
def finder(catalogue: str, selection: Selection = EVERYTHING) -> Finder:
    return Finder(load(catalogue, selection))


def judge(item: Item, terms: Terms, selection: Selection = EVERYTHING) -> Row:
    """Whatever the case raises is its row; an interrupt too, which nobody but the case sends to a worker."""
    started, processor = time.perf_counter(), time.process_time()
    seed = terms.seed_of(item.key)
    found = False
    try:
        # Made and run under seeded streams: functions may draw from the global ones.
        with seeded(seed):
            case = finder(item.key.catalogue, selection).find(item.key.case)
            found = True
            result = checked(case, seed, terms.options(item.key))
        # The time of a case is that of making and checking it.
        seconds = time.perf_counter() - started
        result = replace(result, name=str(item.key), cost=replace(result.cost, seconds=seconds))
        return row_of(item, result, Ending.FINISHED, time.process_time() - processor)
    except BaseException as raised:  # noqa: BLE001 - the sweep goes on
        seconds = time.perf_counter() - started
        finding = outcome(raised)
        if finding.verdict is Verdict.UNSUPPORTED and found:
            return row_of(item, _ended(item, terms, finding, seconds), Ending.FINISHED, seconds)
        memory = isinstance(raised, MemoryError) or any(words in str(raised) for words in OUT_OF_MEMORY)
        code, ending = ("memory", Ending.TOO_MUCH_MEMORY) if memory else (type(raised).__name__, Ending.RAISED)
        sentence = finding.sentence
        if not (found or memory):
            ending = Ending.NOT_FOUND
            sentence = f"the case was listed, but not found where it was to be checked: {sentence}"
        return lost_row(item, terms, ending, code, sentence, seconds)


def lost_row(
    item: Item, terms: Terms, ending: Ending, code: str, sentence: str, seconds: float, output: str = ""
) -> Row:
    """The row of a check that came to no verdict."""
    finding = Finding(code, Verdict.ERROR, Place(), sentence, "Run this case by itself.")
    return replace(row_of(item, _ended(item, terms, finding, seconds), ending, seconds), output=output)


def _ended(item: Item, terms: Terms, finding: Finding, seconds: float) -> Result:
    return ended(str(item.key), finding, terms.seed_of(item.key), terms.options(item.key), seconds)


def row_of(item: Item, result: Result, ending: Ending, processor: float) -> Row:
    loudest = next((finding for finding in result.findings if finding.verdict is result.verdict), None)
    if result.verdict is Verdict.RIGHT:
        loudest = None  # remarks of a right result are in its JSON
    known = [each.digits for each in result.comparisons if math.isfinite(each.digits)]
    cost = result.cost
    return Row(
        item,
        result.verdict,
        ending,
        loudest.code if loudest else "",
        _encodable(loudest.sentence[:LONGEST]) if loudest else "",
        _encodable(loudest.diagnosis.sentence) if loudest and loudest.diagnosis else "",
        min(known, default=None),
        cost.evaluations + cost.pulls + cost.pushes,
        cost.seconds,
        processor,
        kept.dumps(result),
    )


def _encodable(text: str) -> str:
    """Half of a character, which names of files may have, is shown as Python would: a store takes no such text."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
