"""One item in the worker: build the case from its name, check it, and put what was found into a row."""

from __future__ import annotations

import math
import random
import time
import traceback
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from gradproof.adapters import program_of
from gradproof.cases import Call
from gradproof.check import check_program
from gradproof.errors import Unsupported
from gradproof.result import Finding, Result, Verdict
from gradproof.sweep.catalogues import Finder, load
from gradproof.sweep.plan import Terms
from gradproof.sweep.row import Ending, Item, Row

LONGEST = 2000  # characters of a message or traceback


@lru_cache(maxsize=8)
def finder(catalogue: str) -> Finder:
    return Finder(load(catalogue))


def judge(item: Item, terms: Terms) -> Row:
    """Whatever the case raises is its row. Seeded, because functions may draw from the global streams."""
    started = time.perf_counter()
    seed = terms.seed_of(item.key)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the stream that cases may use
    try:
        call = finder(item.key.catalogue).find(item.key.case).make(seed)
        result = _checked(call, item, terms)
    except Unsupported as missing:
        return _row(item, Verdict.UNSUPPORTED, "unsupported", str(missing), started)
    except MemoryError as error:
        return _row(item, Verdict.ERROR, "memory", _said(error), started, Ending.TOO_MUCH_MEMORY)
    except Exception as error:  # noqa: BLE001 - the sweep goes on
        if _is_memory(error):
            return _row(item, Verdict.ERROR, "memory", _said(error), started, Ending.TOO_MUCH_MEMORY)
        row = _row(item, Verdict.ERROR, type(error).__name__, _said(error), started, Ending.RAISED)
        return row
    return row_of(item, result)


def _checked(call: Call, item: Item, terms: Terms) -> Result:
    options = dict(call.options)
    wrt = options.pop("wrt", None)
    return check_program(program_of(call.fn, call.args, call.kwargs, wrt), terms.settings(item.key, options))
