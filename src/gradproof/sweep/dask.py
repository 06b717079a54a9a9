"""A sweep on a `dask.distributed` cluster that is already there. Dask reschedules what a lost worker had."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor

from gradproof.errors import UsageError

PATIENCE = "20 s"


@contextlib.contextmanager
def executor(address: str) -> Iterator[Executor]:
    """`address`: of the scheduler, such as `tcp://10.0.0.1:8786`. gradproof must be installed on the workers."""
    try:
        from distributed import Client
    except ImportError as missing:
        raise UsageError(
            "--scheduler needs dask.distributed, which is not installed: pip install 'gradproof[cluster]'"
        ) from missing
    try:
        client = Client(  # type: ignore[no-untyped-call]
            address, timeout=PATIENCE, set_as_default=False
        )
    except (OSError, ValueError) as unreachable:
        raise UsageError(
            f"no Dask scheduler answers at {address!r} ({unreachable}); start one: dask scheduler"
        ) from None
    with client:
        # The same chunk may be run twice on purpose: after a kill it must not be taken from an older sweep's memory.
        yield client.get_executor(pure=False)  # type: ignore[no-untyped-call]
