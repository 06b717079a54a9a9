"""Sweeps: check a whole library of operators, on one machine or on a cluster. Loaded when it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from gradproof.settings import Effort

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from gradproof.sweep.filters import Shard
    from gradproof.sweep.progress import Progress
    from gradproof.sweep.run import Sweep

__all__ = ["sweep"]


def sweep(
    catalogue: str | Iterable[str],
    *,
    ops: str | Iterable[str] | None = None,
    dtype: str | Iterable[str] | None = None,
    device: str | Iterable[str] | None = None,
    case: str | None = None,
    order: int | str | Iterable[int] | None = None,
    modes: str | Iterable[str] | None = None,
    limit: int | None = None,
    shard: str | Shard | None = None,
    effort: Effort | None = None,
    tolerance: float | None = None,
    contracts: str | Iterable[str] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    executor: Executor | None = None,
    scheduler: str | None = None,
    store: str | Path | None = None,
    retry: str | Iterable[str] | None = None,
    seconds: float = 120.0,
    memory: float = 4.0,
    progress: Progress | None = None,
    show: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Check all cases of a catalogue. Never raises for a wrong gradient, nor for a case that crashes.

    catalogue: `"torch"`, `"torch.modules"`, `"torch.functions"`, `"path/to/cases.py"`, ..., or several of them.
    ops, dtype, device: globs and names, several with commas between them.
    case: the whole name of one case.
    order: `1`, `"1,2"`: a row for each. Default: as the cases say.
    modes, effort, tolerance, contracts, seed: as for `check`. Default: as the cases say.
    shard: `"3/8"`, the third of eight parts; limit: at most so many cases.
    jobs: processes on this machine (default: one for each core).
    executor: any `concurrent.futures.Executor` instead; scheduler: the address of a Dask scheduler.
    store: a file to write to, and to go on with if it has rows already. Default: memory.
    retry: which of those rows to make again, by verdict or ending: `"error"`, `"too long"`. What could not be loaded
        or was killed from outside is tried again anyway.
    seconds, memory: what one case may take, of the processor (and five times that by the clock) and in GiB (0: no
        limit).
    progress, show: where to count, and a function that is called with it after every row.
    """
    from gradproof.selection import Selection
    from gradproof.sweep import catalogues, filters
    from gradproof.sweep.child import GIB, Limits
    from gradproof.sweep.plan import Plan, Terms
    from gradproof.sweep.progress import Progress
    from gradproof.sweep.run import Means, swept

    selection = Selection(filters.words(ops), filters.words(dtype), filters.words(device))
    plan = Plan(
        tuple(dict.fromkeys(map(catalogues.known_as, filters.words(catalogue)))),
        filters.Filter(selection, filters.orders(order), filters.shard(shard), limit, case or ""),
        Terms(filters.words(modes) or None, effort, tolerance, filters.words(contracts) or None, seed),
        filters.retried(retry),
    )
    for spec in plan.catalogues:
        catalogues.expect(spec, selection)
    means = Means(Limits(seconds, int(memory * GIB)), jobs, executor, scheduler)
    return swept(plan, Path(store) if store is not None else None, means, progress or Progress(), show)
