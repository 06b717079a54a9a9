"""The exceptions gradproof raises on purpose, and any exception in words."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradproof.program import Array, Leaf, Skipped
    from gradproof.result import Result

_PACKAGE = str(Path(__file__).parent)
LONGEST = 1000  # characters of a message that is passed on


class UsageError(ValueError):
    """The call cannot be carried out as written; the message shows what was passed and the corrected call."""


class NoDerivative(UsageError):
    """The arguments' framework does not differentiate, and no derivative was given."""


class OutputsChanged(UsageError):
    """The function returns outputs of another shape, dtype or structure at a nearby point.

    `kind` is "shape", "dtype" or "structure"; `before` and `after` describe it at the point and nearby;
    `nearby` is that other point, where it is known.
    """

    def __init__(self, message: str, kind: str, before: str, after: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.before = before
        self.after = after
        self.nearby: Array | None = None

    @classmethod
    def structure(cls, kept: Iterable[Leaf], skipped: Iterable[Skipped], now: Iterable[str]) -> OutputsChanged:
        """By the paths of what there was, and of what there is now."""
        before = ", ".join([*(one.path for one in kept), *(one.path for one in skipped)])
        after = ", ".join(now) or "nothing"
        return cls(
            f"the function returns another structure at a nearby point: {after} instead of {before}; return the same "
            "structure for all inputs",
            "structure",
            before,
            after,
        )


class Unsupported(Exception):
    """A mode or order that does not exist for this program; the reason is the message."""


class RuleRaised(Unsupported):
    """A rule that somebody wrote for a mode raises; the message says what, and where."""


class Refused(RuntimeError):
    """The framework does not take what a rule returned for a gradient: a number too few, another shape, no tensor."""


class Ended(Exception):
    """The check is over, or one part of it: nobody's failure, and for nobody on the way to swallow."""


class BudgetSpent(Ended):
    """The next batch of calls would exceed the user's budget."""


class GradcheckError(RuntimeError):
    """A gradient is wrong. `result` holds everything that was found."""

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result


class NonDifferentiableWarning(UserWarning):
    """The function has a kink at this point; its gradient is one of several valid ones."""


class UndecidedWarning(UserWarning):
    """The gradient agrees as far as could be told, which is less far than the tolerance asks for."""


def first_line(error: BaseException) -> str:
    """The first sentence or line of a message; those of frameworks run over whole screens."""
    line = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return line if len(line) <= 160 else line[:157] + "..."


def said(raised: BaseException) -> str:
    """What was raised, in words. The exit of a program says no more than its status."""
    if isinstance(raised, SystemExit):
        return f"it called sys.exit({'' if raised.code is None else repr(raised.code)})"
    name, text = type(raised).__name__, str(raised)
    return f"{name}: {text if len(text) <= LONGEST else text[:LONGEST] + '...'}" if text else name


def is_skip(raised: BaseException) -> bool:
    """Whether it means "not here", as `unittest.SkipTest` and what `pytest.skip` raises do."""
    # By name, so that neither is loaded for it. pytest's own says that it is from `builtins`.
    bases = {(kind.__module__, kind.__name__) for kind in type(raised).__mro__}
    return ("unittest.case", "SkipTest") in bases or {
        ("builtins", "Skipped"),
        ("_pytest.outcomes", "OutcomeException"),
    } <= bases


def where(raised: BaseException) -> str:
    """The innermost line that is the user's."""
    frames = [frame for frame in traceback.extract_tb(raised.__traceback__) if not frame.filename.startswith(_PACKAGE)]
    return f" ({frames[-1].filename}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""
