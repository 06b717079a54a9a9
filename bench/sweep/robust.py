"""Disasters, kills, the cluster and the overhead: what must hold whatever is swept."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.table import Claim
from gradproof.sweep import sweep
from gradproof.sweep.progress import Progress
from gradproof.sweep.row import Ending
from gradproof.sweep.run import Sweep
from gradproof.sweep.store import Store

TRIVIAL, DISASTERS, BROKEN = "bench.sweep.trivial", "bench.sweep.disasters", "bench.sweep.broken"
Say = Callable[[str], None]


def disasters(say: Say) -> list[Claim]:
    swept = sweep((DISASTERS, BROKEN), jobs=2, seconds=20, memory=2)
    rows = {row.item.key.case: row for row in swept.rows()}
    lost = {name: row for name, row in rows.items() if row.ending is not Ending.FINISHED}
    for name, row in lost.items():
        say(f"{name}: {row.ending}, {row.code}: {row.message[:100]}")
    expected = {
        "segfault": Ending.CRASHED, "abort": Ending.CRASHED, "endless": Ending.TOO_LONG, "asleep": Ending.TOO_LONG,
        "huge_tensor": Ending.TOO_MUCH_MEMORY, "huge_array": Ending.TOO_MUCH_MEMORY, "unimportable": Ending.RAISED,
        BROKEN: Ending.NOT_LISTED,
    }  # fmt: skip
    recorded = {name: row.ending for name, row in lost.items()} == expected
    return [
        Claim("Sweep: planted disasters recorded as what they are", "8 of 8", f"{len(lost)} of 8", recorded),
        Claim("Sweep: cases beside them finished", "10", str(len(rows) - len(lost)), len(rows) - len(lost) == 10),
    ]


def overhead(say: Say) -> list[Claim]:
    """Time outside of making and checking the cases, by one worker, start of the processes included; and how much the
    memory of the sweep grows over the run, the results going to a file."""
    before = time.perf_counter()
    own: list[int] = []

    def watch(progress: Progress) -> None:
        if progress.done % 500 == 0:
            own.append(_resident())

    with tempfile.TemporaryDirectory() as folder:
        swept = sweep(TRIVIAL, jobs=1, store=Path(folder) / "sweep.db", show=watch)
    seconds = time.perf_counter() - before
    share = 1 - swept.progress.checking / seconds
    growth = (own[-1] - own[len(own) // 4]) / 2**20
    say(f"{swept.progress.done:,} cases in {seconds:.0f} s, {swept.progress.checking:.0f} s of it in the cases")
    return [
        Claim(
            "Sweep of 10,000 trivial cases: time outside of making and checking them",
            "≤ 30 %",
            f"{100 * share:.0f} %",
            share <= 0.3,
        ),
        Claim(
            "Sweep of 10,000 trivial cases: memory of the sweep grows by", "≤ 20 MiB", f"{growth:.0f} MiB", growth <= 20
        ),
    ]


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def kills(say: Say, count: int = 50) -> list[Claim]:
    """The sweep itself is killed at random moments and started again; then the store is compared."""
    chance = random.Random(7)
    limit = 10_000  # enough for all of them to come before the end
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "sweep.db"
        code = f"from gradproof.sweep import sweep; sweep({TRIVIAL!r}, jobs=2, limit={limit}, store={str(store)!r})"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        killed = 0
        for number in range(count):
            before = _count(store)
            process = subprocess.Popen([sys.executable, "-c", code], env=environment)
            # Anywhere: while it starts and lists, or after some more rows, in a check or in a write.
            wanted = before + (0 if number % 5 == 0 else chance.randrange(1, 30))
            while process.poll() is None and _count(store) < wanted:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.5))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
            if number % 10 == 9:
                say(f"killed {killed} times; {_count(store)} of {limit} rows")
        final = sweep(TRIVIAL, jobs=2, limit=limit, store=store)
        same = contents(final.store) == contents(sweep(TRIVIAL, jobs=2, limit=limit).store)
    return [Claim(f"Sweep killed {killed} times and resumed: the store of an undisturbed run", "equal",
                  "equal" if same else "different", same and killed == count)]  # fmt: skip


def _count(path: Path) -> int:
    with Store(path) as store:
        return len(store.finished())


def contents(store: Store) -> list[tuple[object, ...]]:
    """Everything but the times."""
    found = []
    for row in store.whole_rows():
        result = json.loads(row.result)
        del result["cost"]["seconds"]
        found.append((row.item, row.verdict, row.ending, row.code, row.message, row.digits, row.calls, str(result)))
    return found


def cluster(say: Say, cases: int = 500) -> list[Claim]:
    """A scheduler and two workers as processes of their own; one worker is killed in the middle."""
    given = {"ops": "[a-m]*", "dtype": "float64", "limit": cases}
    local = _verdicts(sweep("torch", jobs=2, **given))  # type: ignore[arg-type]
    say(f"{len(local)} checks by --jobs 2")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        address, workers = _started(Path(folder), stack)
        once = threading.Event()

        def kill(progress: Progress) -> None:
            if progress.done > cases // 3 and not once.is_set():
                once.set()
                workers[0].send_signal(signal.SIGKILL)
                say(f"one of two workers killed after {progress.done} checks")

        remote = _verdicts(sweep("torch", scheduler=address, show=kill, **given))  # type: ignore[arg-type]
    alike = sum(remote.get(name) == verdict for name, verdict in local.items())
    holds = once.is_set() and alike == len(local) == len(remote)
    return [Claim(f"Sweep of {cases} cases on a Dask cluster, one of two workers killed: verdicts as by --jobs 2",
                  f"{len(local)}", f"{alike}", holds)]  # fmt: skip


def _verdicts(swept: Sweep) -> dict[str, str]:
    return {str(row.item.key): f"{row.verdict} {row.code}" for row in swept.rows()}


def _started(folder: Path, stack: ExitStack) -> tuple[str, list[subprocess.Popen[bytes]]]:
    from distributed import Client

    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    file = folder / "scheduler.json"

    def start(kind: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--scheduler-file", str(file), *words]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    local = ("--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder))
    workers = [start("worker", *local) for _ in range(2)]
    while not file.exists():
        time.sleep(0.1)
    address: str = json.loads(file.read_text())["address"]
    with Client(address, timeout="60 s", set_as_default=False) as client:
        client.wait_for_workers(2, timeout=120)
    return address, workers
