"""Silence while batches are tried: nothing of it is left for the user's own warnings."""

from __future__ import annotations

import threading
import warnings

import pytest

from gradproof.quiet import QUIET


def _warn() -> None:
    warnings.warn("from the same line each time", UserWarning, stacklevel=1)


def test_inside_nothing_is_heard_and_afterwards_everything_is() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with QUIET, QUIET:
            _warn()
        with pytest.raises(UserWarning, match="from the same line"):
            _warn()


def test_who_has_heard_a_warning_does_not_hear_it_again_and_who_has_not_does() -> None:
    """A filter that shows each warning once keeps what it has shown; what was ignored was not shown."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        with QUIET:
            _warn()
        assert not heard
        _warn()
        assert len(heard) == 1
        with QUIET:
            _warn()
        _warn()
        assert len(heard) == 1


def test_filters_are_put_back_by_the_last_thread_to_leave() -> None:
    before, inside, leave = warnings.filters, threading.Event(), threading.Event()

    def other() -> None:
        with QUIET:
            inside.set()
            leave.wait(10.0)

    thread = threading.Thread(target=other)
    with QUIET:
        thread.start()
        assert inside.wait(10.0)
    assert warnings.filters is not before
    leave.set()
    thread.join()
    assert warnings.filters is before


def test_what_raises_inside_puts_them_back_too() -> None:
    before = warnings.filters
    with pytest.raises(ValueError, match="batch"), QUIET:
        raise ValueError("batch")
    assert warnings.filters is before
