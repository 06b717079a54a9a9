"""Somebody around a check who wants to know of it: a test run. It also says what seed, effort and detail to take where
the caller leaves them open.

The plugin of pytest imports nothing of gradproof, so it does not register here. It is looked up: a module of `HOSTS`
that is loaded, and whose `host` is not None.
"""

from __future__ import annotations

import sys
from typing import Protocol, cast

from gradproof.result import Result
from gradproof.settings import Detail, Effort

HOSTS = ("gradproof_pytest",)


class Host(Protocol):
    """Whoever runs checks. None: no opinion."""

    seed: int | None
    effort: Effort | None
    detail: Detail | None

    def heard(self, result: Result) -> None: ...


def _host() -> Host | None:
    for name in HOSTS:
        found = getattr(sys.modules.get(name), "host", None)
        if found is not None:
            return cast(Host, found)
    return None


def seed(given: int | None) -> int | None:
    """The caller's, or else the host's."""
    host = _host()
    return host.seed if given is None and host is not None else given


def effort(given: Effort) -> Effort:
    """The caller's; where that is "auto", the host's."""
    host = _host()
    return host.effort if given == "auto" and host is not None and host.effort is not None else given


def detail(given: Detail) -> Detail:
    """The caller's; where that is "summary", the host's: a page needs what plots show."""
    host = _host()
    return host.detail if given == "summary" and host is not None and host.detail is not None else given


def told(result: Result) -> Result:
    """The same result; the host has heard of it."""
    host = _host()
    if host is not None:
        host.heard(result)
    return result
