"""Without warnings: a framework may warn of what it batches slowly, but the user asked for no batch."""

from __future__ import annotations

import threading
import warnings

# Every warning, as `warnings.simplefilter("ignore")` writes it.
IGNORED = ("ignore", None, Warning, None, 0)


class Quiet:
    """As `warnings.catch_warnings`, but of several threads the first to enter changes the filters, and the last to
    leave puts them back: otherwise one would put back what another had changed. What is ignored leaves no trace, so
    nobody need be told that the filters are others, which would take longer than a small batch."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._filters, warnings.filters = warnings.filters, [IGNORED]
            self._inside += 1

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                warnings.filters = self._filters


QUIET = Quiet()
