"""One watched worker process, seen from the side that started it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

from gradproof.errors import UsageError
from gradproof.sweep.row import Ending
from gradproof.sweep.worker import PAGE, Done, Hello, Started

GIB = 2**30
# What a loaded framework takes, on top of what a case may.
OWN_MEMORY = 3 * GIB
# The signals of whoever has something against a process: an administrator, a batch system, a system without memory.
FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT")
SHOWN_OUTPUT = 4000
# Bytes of output that are looked through for the end that is shown; those from which on the rest is dropped.
READ_OUTPUT, MOST_OUTPUT = 2**16, 2**24
# How a process that is about to die announces why, before it tells where it was.
LAST_WORDS = ("Fatal Python error", "terminate called")
LOOK = 0.3  # seconds between two looks at its memory and time
# On a busy machine a case may take this many times its seconds by the clock; so may one that waits and does nothing.
SLACK = 5.0
SINGLE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
# What a check gives back stays with the process up to 512 MB: to get pages from the system anew for every vector of
# a large sample costs as much as the check. (The GNU C library reads these; others do not know them.)
KEEP_PAGES = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**29)}
# The path comes with it: the same packages and files must be found here as there.
BOOT = "import sys; sys.path[:] = eval(sys.argv[2]); from gradproof.sweep.worker import main; main(int(sys.argv[1]))"


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one case: seconds at work, bytes (0: none). `startup`: seconds more for the first task of a process."""

    seconds: float = 120.0
    memory: int = 4 * GIB
    startup: float = 120.0


@dataclass(frozen=True, slots=True)
class Lost:
    """The process ended, or had to be ended, at `label` (None: before any piece of work). `allowed`: the seconds of the
    processor that it had."""

    label: Hashable
    ending: Ending
    code: str
    seconds: float
    processor: float
    output: str
    allowed: float = 0.0


class Child:
    """A process that does `work` on one task after the other."""

    def __init__(self, work: str, limits: Limits, folder: Path = Path()) -> None:
        fcntl = _posix()
        self.limits = limits
        self.task: Any = None
        self.label: Hashable = None
        self.gone = False
        self._output = tempfile.TemporaryFile(mode="ab+", buffering=0)  # noqa: SIM115 - lives as long as the process
        # The mode does not reach the process, which would leave a hole for all that was cut off.
        fcntl.fcntl(self._output.fileno(), fcntl.F_SETFL, os.O_APPEND)
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(  # noqa: S603 - our own interpreter
            # As texts: a Path, which some put among them, does not print as a literal.
            [sys.executable, "-c", BOOT, str(theirs.fileno()), repr([str(one) for one in sys.path])],
            pass_fds=[theirs.fileno()],
            cwd=folder,
            process_group=0,  # its own, which ends with it: whatever a case starts is in there
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            env=os.environ | SINGLE_THREAD | KEEP_PAGES,
        )
        theirs.close()
        self.connection = Connection(ours.detach())
        self._send(Hello(work, limits.memory, os.getpid()))
        self.since = time.monotonic()
        self._allowed = limits.seconds + limits.startup
        self._looked = self._last = self._used = 0.0

    @property
    def idle(self) -> bool:
        return self.task is None

    def give(self, task: Any) -> None:
        self.task, self.label, self.since = task, None, time.monotonic()
        self._send(task)

    def _send(self, message: object) -> None:
        """To a process that has just died too: that shows when it is listened to."""
        with contextlib.suppress(ConnectionError):
            self.connection.send(message)

    def messages(self) -> Iterator[Any]:
        """What has come since; Done frees the child for the next task."""
        while not self.gone and self.connection.poll():
            try:
                message = self.connection.recv()
            except (EOFError, OSError):
                self.gone = True
                return
            self.since, self._allowed = time.monotonic(), self.limits.seconds
            if isinstance(message, Started):
                self.label = message.label
                continue
            if isinstance(message, Done):
                self.task, self.label = None, None
                yield message
                return
            yield message

    @property
    def trouble(self) -> Ending | None:
        """Why it must be ended."""
        if self.gone:
            return Ending.CRASHED
        if self.idle:
            return None
        now = time.monotonic()
        if now - self.since > SLACK * self._allowed:
            return Ending.TOO_LONG
        if now - self._looked < LOOK:
            return None
        self._looked = now
        self._shorten_output()
        if self.limits.memory and self.resident() > self.limits.memory + OWN_MEMORY:
            return Ending.TOO_MUCH_MEMORY
        return Ending.TOO_LONG if self._at_work() > self._allowed else None

    def _at_work(self) -> float:
        """Seconds of the processor since the last message, as far as they were seen."""
        used = self.processor()
        if self._last != self.since:
            self._last, self._used = self.since, used
        return used - self._used

    def processor(self) -> float:
        """Seconds that it has spent at work; 0 where the system does not say."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError, ValueError):
            return 0.0

    def resident(self) -> int:
        """Bytes of memory that it holds; 0 where the system does not say."""
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE
        except (OSError, IndexError):
            return 0

    def bury(self, ending: Ending) -> Lost:
        seconds, processor = time.monotonic() - self.since, self._at_work()
        if ending is Ending.CRASHED:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=5)
        code = {Ending.TOO_LONG: "timeout", Ending.TOO_MUCH_MEMORY: "memory"}.get(ending)
        label = self.label
        ours = self.process.poll() is None
        self._end()
        output = self._shown()
        self._output.close()
        if code is None:
            code = _cause(self.process.returncode)
        if "std::bad_alloc" in output:
            ending, code = Ending.TOO_MUCH_MEMORY, "memory"
        elif not ours and code in FROM_OUTSIDE:
            ending = Ending.KILLED
        return Lost(label, ending, code, seconds, processor, output, self._allowed)

    def _shorten_output(self) -> None:
        """A case that never stops printing must not fill the disk."""
        if os.fstat(self._output.fileno()).st_size > MOST_OUTPUT:
            end = self._last_output()
            self._output.truncate(0)
            self._output.write(end)

    def _last_output(self) -> bytes:
        file, size = self._output.fileno(), os.fstat(self._output.fileno()).st_size
        found = os.pread(file, READ_OUTPUT, max(0, size - READ_OUTPUT))  # the process moves the file's position
        return found if size <= READ_OUTPUT else found.partition(b"\n")[2] or found

    def _shown(self) -> str:
        return shown_of(self._last_output().decode("utf-8", "replace"))

    def stop(self) -> None:
        self._end()
        self._output.close()

    def _end(self) -> None:
        """And all that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.connection.close()


def _posix() -> ModuleType:
    """For what only such systems have: Windows imports this module too."""
    try:
        import fcntl
    except ImportError as missing:
        raise UsageError(
            "sweeps, --jobs, --seconds and --memory need Linux or macOS: processes are watched there; write gradproof "
            "check cases.py without them"
        ) from missing
    return fcntl


def shown_of(output: str) -> str:
    """The part of an output that tells what happened: from the last words of the process on, or else its end, in whole
    lines. The list of all extension modules, which Python adds, would leave no room for it."""
    text = "\n".join(line for line in output.split("\n") if not line.startswith("Extension modules:"))
    said = [place for words in LAST_WORDS if (place := text.find(words)) >= 0]
    if said:
        before = text.rfind("\n", 0, max(min(said) - SHOWN_OUTPUT // 4, 0)) + 1
        return text[before:][:SHOWN_OUTPUT]
    end = text[-SHOWN_OUTPUT:]
    return end if len(text) <= SHOWN_OUTPUT else end.partition("\n")[2] or end


def crash_line(output: str) -> str:
    """The one line of it that says most."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next((line for line in lines if any(words in line for words in LAST_WORDS)), lines[-1] if lines else "")


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit {code}"
