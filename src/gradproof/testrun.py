"""What the plugin of pytest says of a test run: the command that runs one of its tests again, its texts, its last line.

Nothing but words; the plugin loads it with the first check.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

SHOWN = 3  # texts of one test
# What a replay sets itself, what would write over a file of the run, and what chooses, counts or shows tests.
_VALUED = (
    "--gradproof-json", "--gradproof-html", "--gradproof-seed", "--gradproof-effort", "--junitxml", "--junit-xml",
    "--html", "--report-log", "--numprocesses", "--maxfail", "--durations", "-n", "-k",
)  # fmt: skip
_FLAGS = re.compile(
    r"-[qvxl]+|-r\w+|-n\w+|--(gradproof-replace-torch|lf|last-failed|ff|failed-first|nf|new-first|sw|stepwise|sw-skip|"
    r"stepwise-skip|exitfirst|quiet|verbose)"
)


def options(words: Sequence[str], tests: Sequence[str]) -> list[str]:
    """Of what followed `pytest`, all that decides how a test runs, without the `tests` that were named."""
    kept: list[str] = []
    left = list(tests)
    rest = iter(words)
    for word in rest:
        if word in _VALUED:
            next(rest, None)
        elif word in left:
            left.remove(word)
        elif word.partition("=")[0] not in _VALUED and not _FLAGS.fullmatch(word):
            kept.append(word)
    return kept


def command(test: str, root: Path, folder: Path, words: Sequence[str]) -> str:
    """What runs `test`, a name as pytest gives it under `root`, again from `folder`."""
    file, colons, name = test.partition("::")
    path = os.path.relpath(root / file, folder)
    rooted = any(word.partition("=")[0] == "--rootdir" for word in words) or root == folder
    where = [] if rooted else [f"--rootdir={os.path.relpath(root, folder)}"]
    return shlex.join(["pytest", f"{path}{colons}{name}", *where, *words])


def placed(command: str, folder: Path) -> str:
    """The same for somebody who is elsewhere."""
    return f"{shlex.join(['cd', str(folder)])} && {command}"


def parted(placed: str) -> tuple[Path | None, list[str]]:
    """The folder, where one is named, and the words of the command."""
    words = shlex.split(placed)
    return (Path(words[1]), words[3:]) if words[:1] == ["cd"] and words[2:3] == ["&&"] else (None, words)


def last(texts: list[str]) -> list[str]:
    """A few are shown, of many only the last: hypothesis makes a hundred before it has the smallest example."""
    if len(texts) <= SHOWN:
        return texts
    return [f"the last of {len(texts)} checks that are not right (a report holds all):", texts[-1]]


def say_it_plainly(longrepr: Any) -> None:
    """Take the name of the exception away from the front of our text."""
    prefix = "gradproof.errors.GradcheckError: "
    for entry in getattr(getattr(longrepr, "reprtraceback", None), "reprentries", ()):
        lines = getattr(entry, "lines", [])
        lines[:] = [line.replace(prefix, "", 1) if line.startswith("E ") else line for line in lines]
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = crash.message.removeprefix(prefix)


class Checked(Protocol):
    """What is counted of one check."""

    @property
    def verdict(self) -> str: ...
    @property
    def passed(self) -> bool: ...
    @property
    def calls(self) -> int: ...
    @property
    def seconds(self) -> float: ...


def summary(checks: Sequence[Checked]) -> str:
    """`gradproof: 52 programs checked, 3 wrong (1 in passing tests), 1,234 calls, 5.6 s`."""
    parts = [f"{len(checks)} program{'s' * (len(checks) != 1)} checked"]
    for verdict in ("wrong", "undecided", "unsupported", "error"):
        found = [check for check in checks if check.verdict == verdict]
        passing = sum(check.passed for check in found)
        parts += [f"{len(found)} {verdict}" + f" ({passing} in passing tests)" * bool(passing)] if found else []
    calls, seconds = sum(check.calls for check in checks), sum(check.seconds for check in checks)
    return f"gradproof: {', '.join([*parts, f'{calls:,} calls', f'{seconds:.1f} s'])}"
