"""Without warnings: a framework may warn of what it batches slowly, but the user asked for no batch."""

from __future__ import annotations

import threading
import warnings


class Quiet:
    """`warnings.catch_warnings`, but of several threads the first to enter changes the filters, and the last to leave
    puts them back: otherwise one would put back what another had changed."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._caught = warnings.catch_warnings(action="ignore")
                self._caught.__enter__()
            self._inside += 1

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._caught.__exit__(None, None, None)


QUIET = Quiet()
