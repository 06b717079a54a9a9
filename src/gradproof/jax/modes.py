"""What JAX says when a mode does not exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gradproof.errors import Unsupported, first_line

# How JAX (0.5 to 0.10) says it, as far as the type of the exception does not tell.
_MISSING = {
    "forward": re.compile(
        r"forward-mode autodiff|do(es)? not support JVP|Forward-mode differentiation|not .*support.* forward|"
        r"gradient with respect to .* not supported"
    ),
    "reverse": re.compile(
        r"Reverse-mode differentiation|[Rr]everse-mode|do(es)? not support (JVP|VJP|transpose)|"
        r"Linearization failed|forward-mode autodiff|gradient with respect to .* not supported"
    ),
}


@contextmanager
def translated(mode: str, lacking: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turn JAX's 'there is no such rule' into Unsupported; other exceptions are the user's to see. `lacking`: whether
    the function holds something that has no such rule; in a `shard_map`, JAX 0.10 says so in no words of its own."""
    try:
        yield
    except Exception as error:
        if isinstance(error, NotImplementedError) or (
            isinstance(error, (TypeError, ValueError)) and _MISSING[mode].search(str(error))
        ):
            raise Unsupported(first_line(error)) from error
        rule = _transposing(error)
        if rule:
            reason = f"JAX cannot transpose the forward rule ({type(error).__name__} in {rule}): is it linear?"
            raise Unsupported(reason) from error
        if lacking():
            raise Unsupported(f"a custom_vjp function has no forward mode ({first_line(error)})") from error
        raise


def _transposing(error: Exception) -> str:
    """The rule of JAX's own that was transposing when it raised; no rule of a user's is in that package. Of an equation
    that is not linear they raise all kinds of exceptions, an AssertionError without a word among them."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not str(last.tb_frame.f_globals.get("__name__", "")).startswith("jax._src."):
        return ""
    name = last.tb_frame.f_code.co_name
    return name if "transpose" in name else ""


def frameless(missing: Unsupported) -> Unsupported:
    """The same, to be kept: the traceback of what JAX raised holds on to the vectors of all calls that it came
    through."""
    kept, cause = Unsupported(str(missing)), missing.__cause__
    if cause is not None:
        cause.__cause__ = cause.__context__ = None
        kept.__cause__ = cause.with_traceback(None)
    return kept
