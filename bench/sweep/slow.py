"""A random tenth of the sweep's checks beside torch's own slow mode: the same function at the same point, in turns."""

from __future__ import annotations

import contextlib
import itertools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.utils import _pytree as pytree

import gradproof
from bench.operators.cases import fraction_of
from bench.operators.measure import TimeIsUp, time_limit
from bench.table import Claim, number
from gradproof.cases import Call
from gradproof.selection import Selection
from gradproof.sweep.child import GIB, Limits, Lost
from gradproof.sweep.filters import Filter
from gradproof.sweep.judge import finder
from gradproof.sweep.plan import Terms
from gradproof.sweep.pool import Pool
from gradproof.sweep.row import Item
from gradproof.sweep.work import Listing, listed
from gradproof.sweep.worker import Started
from gradproof.torch.catalogue.entries import entries, is_variable

DTYPES = ("float64", "complex128")
CHOSEN = Selection(dtypes=DTYPES)
LIMIT = 60.0  # seconds of the processor that torch may take for one check; what it has taken by then counts
SHARE, SEED = 0.1, 11


@dataclass(frozen=True)
class Race:
    """Seconds of the processor for one check."""

    ours: float
    theirs: float
    given_up: bool


def slow_mode(say: Callable[[str], None], seconds: float = 3600.0) -> list[Claim]:
    """Both on the same random tenth of the checks, until they are done or the time is over."""
    tasks = _tasks()
    total = sum(map(len, tasks))
    until = time.monotonic() + seconds
    races: list[Race] = []
    with Pool("bench.sweep.slow:work", 2, Limits(seconds=10 * LIMIT, memory=8 * GIB)) as pool:
        for task in tasks:
            pool.put(task)
        due = time.monotonic() + 30
        for _, message in pool.run():
            if isinstance(message, Race):
                races.append(message)
            elif isinstance(message, Lost):
                say(f"lost at {message.label}: {message.code}")
            if time.monotonic() > due:
                due = time.monotonic() + 30
                say(f"{len(races)} of {total}: {_words(races)}")
            if time.monotonic() > until:
                break
    say(f"{len(races)} of {total}: {_words(races)}")
    ratio = sum(race.ours for race in races) / sum(race.theirs for race in races)
    what = f"Sweep: our time / torch's slow mode on {len(races):,} random checks of op_db, both orders"
    return [Claim(what, "≤ 0.1", number(ratio), ratio <= 0.1)]


def _words(races: list[Race]) -> str:
    ours, theirs = sum(race.ours for race in races), sum(race.theirs for race in races)
    given_up = sum(race.given_up for race in races)
    return f"ours {ours:.1f} s, torch {theirs:.1f} s ({given_up} given up after {LIMIT:g} s)"


def _tasks() -> list[tuple[Item, ...]]:
    """The chosen checks, those of an operator together, in random order: whatever part is done is a random one."""
    messages = listed(Listing("torch", Filter(selection=CHOSEN, orders=(1, 2))))
    items = [item for batch in messages if isinstance(batch, tuple) for item in batch]
    some = [item for item in items if fraction_of(f"{item.key.case}/{item.key.order}", SEED) < SHARE]
    grouped = itertools.groupby(some, key=lambda item: (item.traits.operator, item.traits.dtype))
    tasks = [tuple(found) for _, found in grouped]
    random.Random(SEED).shuffle(tasks)
    return tasks


def work(task: tuple[Item, ...]) -> Iterator[Started | Race]:
    for item in task:
        yield Started(item.key)
        yield _race(item)


def _race(item: Item) -> Race:
    terms = Terms()
    call = finder(item.key.catalogue, CHOSEN).find(item.key.case).make(terms.seed_of(item.key))
    theirs = _theirs(item, call)
    with contextlib.suppress(Exception):
        call.fn(*call.args, **call.kwargs)  # the first call of an operator pays for what it loads
    before = time.thread_time()
    with contextlib.suppress(Exception):
        gradproof.check(call.fn, call.args, call.kwargs, **{**call.options, **terms.options(item.key)})
    ours = time.thread_time() - before
    before = time.thread_time()
    given_up = False
    try:
        with time_limit(LIMIT), contextlib.suppress(Exception):
            theirs()
    except TimeIsUp:
        given_up = True
    return Race(ours, time.thread_time() - before, given_up)


def _theirs(item: Item, call: Call) -> Callable[[], object]:
    """Torch's checker on the same tensors in the same modes, without the checks that a sweep does not make."""
    leaves, tree = pytree.tree_flatten((call.args, call.kwargs))
    variables = tuple(leaf for leaf in leaves if is_variable(leaf))
    op = entries("op_db")[item.traits.operator]

    def fn(*tensors: Any) -> Any:
        given = iter(tensors)
        args, kwargs = pytree.tree_unflatten([next(given) if is_variable(one) else one for one in leaves], tree)
        outputs = pytree.tree_leaves(call.fn(*args, **kwargs))
        return tuple(one for one in outputs if isinstance(one, torch.Tensor))

    common = {
        "check_undefined_grad": False,
        "check_batched_grad": False,
        "nondet_tol": op.gradcheck_nondet_tol,
        "raise_exception": False,
    }
    if item.key.order == 1:
        return lambda: gradcheck(fn, variables, check_forward_ad=op.supports_forward_ad, **common)
    return lambda: gradgradcheck(fn, variables, check_fwd_over_rev=op.supports_fwgrad_bwgrad, **common)
