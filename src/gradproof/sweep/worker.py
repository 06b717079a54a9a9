"""The process that runs the cases: whatever happens to it, whoever started it goes on.

It is told once what to do (`Hello`), and then takes tasks and sends what the work yields, each with the clock set back.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
# A limit of memory is set anew where it would be another one by this share of what a case may take.
ROUGHLY = 2.0**-6


@dataclass(frozen=True, slots=True)
class Hello:
    """`work`: `module:function`, from a task to an iterator of messages. `memory`: bytes that one case may take."""

    work: str
    memory: int
    parent: int


@dataclass(frozen=True, slots=True)
class Started:
    """Sent before each piece of work, so that the other side knows whom to blame if nothing more comes."""

    label: Hashable


@dataclass(frozen=True, slots=True)
class Next:
    """The same before a piece of work that follows from the message before: the other side need not be told."""


@dataclass(frozen=True, slots=True)
class Done:
    """No more messages; `trouble` is the traceback where the work itself failed."""

    trouble: str = ""


def main(descriptor: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the one who started us
    faulthandler.enable()
    warnings.simplefilter("ignore")
    connection = Connection(descriptor)
    with contextlib.suppress(EOFError, ConnectionError):
        hello: Hello = connection.recv()
        _die_with(hello.parent)
        module, _, name = hello.work.partition(":")
        work: Callable[[Any], Iterator[Any]] = getattr(importlib.import_module(module), name)
        while True:
            _answer(connection, work(connection.recv()), hello.memory)
    # What a case has started (threads, exit handlers) must not keep the process.
    sys.stdout.flush()
    os._exit(0)


def _answer(connection: Connection, messages: Iterator[Any], memory: int) -> None:
    """Work that fails, however it does, does not end the process: interrupts and exits come from a case as well. Only
    a connection that is gone does."""
    done = False
    while not done:
        try:
            message = next(messages, Done())
            packed = _packed(message)
        except BaseException:  # noqa: BLE001 - the same
            message = Done(traceback.format_exc())
            packed = _packed(message)
        if isinstance(message, (Started, Next)):
            _fresh_output()
            _ceiling.set(memory)
        if not isinstance(message, Next):
            connection.send_bytes(packed)
        done = isinstance(message, Done)


def _packed(message: object) -> bytes:
    """As `connection.send` does it, which looks up how to hand over sockets and the like for every object in it."""
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def _fresh_output() -> None:
    """The output of a case that went well is of no interest to the next one's."""
    sys.stdout.flush()
    with contextlib.suppress(OSError):
        if os.fstat(1).st_size:
            os.ftruncate(1, 0)


class _Ceiling:
    """A case may take so much more than the process has when it starts: an allocation beyond that fails at once, where
    the system would promise the memory and then kill somebody."""

    def __init__(self) -> None:
        self._statm = -1
        self._limit = 0

    def set(self, memory: int) -> None:
        if not memory or not sys.platform.startswith("linux"):
            return
        import resource

        if self._statm < 0:
            self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        wanted = int(os.pread(self._statm, 256, 0).split()[5]) * PAGE + memory
        if abs(wanted - self._limit) <= memory * ROUGHLY:
            return
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard < 0 else min(wanted, hard), hard))
            self._limit = wanted


_ceiling = _Ceiling()


def _die_with(parent: int) -> None:
    """A process that hangs must not outlive the sweep, however that ended."""
    if sys.platform.startswith("linux"):
        import ctypes

        death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
