"""Worker processes that are watched: one that dies, hangs or eats memory is replaced, and what it died of is told."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Self

from gradproof.sweep.child import Child, Limits, Lost
from gradproof.sweep.worker import Done

TICK = 0.5  # seconds between two looks at the limits


class Pool:
    """`work` on every task that is put in, also on those that are put in while `run` is going on.

    `run` yields (task, message) for all that the work yields, (task, Done) at its end, and (task, Lost) instead of
    Done where the process was lost: whoever reads may put in the rest of that task again. They start in `folder`.
    """

    def __init__(
        self,
        work: str,
        jobs: int,
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
        folder: Path = Path(),
    ) -> None:
        self._work, self._jobs, self.limits, self._folder = work, jobs, limits, folder
        self._waiting: deque[Any] = deque()
        self._children: list[Child] = []
        self._aside: list[Child] = []

    def put(self, task: Any) -> None:
        self._waiting.append(task)

    def put_first(self, task: Any) -> None:
        self._waiting.appendleft(task)

    def put_aside(self, task: Any) -> None:
        """To be done at once, by a process of its own that ends with the task."""
        child = Child(self._work, self.limits, self._folder)
        child.give(task)
        self._aside.append(child)

    def get_ready(self) -> None:
        """Start the processes now: they load what they need while the first task is being found."""
        while len(self._children) < self._jobs:
            self._children.append(Child(self._work, self.limits, self._folder))

    def run(self) -> Iterator[tuple[Any, Any]]:
        """Until nothing is left to do; the processes then wait for more."""
        while self._assign():
            wait([each.connection for each in self._busy], timeout=TICK)
            for child in self._busy:
                task = child.task
                for message in child.messages():
                    if isinstance(message, Done):
                        self._release(child)
                    yield task, message
                trouble = child.trouble
                if trouble is not None:
                    self._remove(child)
                    lost: Lost = child.bury(trouble)
                    yield task, lost

    @property
    def _busy(self) -> list[Child]:
        return [each for each in (*self._children, *self._aside) if not each.idle]

    def _assign(self) -> bool:
        """Give work to whoever is free. False: there is no more, and nobody is at work."""
        for child in [each for each in self._children if each.idle]:
            if self._waiting:
                if child.process.poll() is not None:
                    self._remove(child)
                    child.stop()
                else:
                    child.give(self._waiting.popleft())
        while self._waiting and len(self._children) < self._jobs:
            child = Child(self._work, self.limits, self._folder)
            self._children.append(child)
            child.give(self._waiting.popleft())
        return bool(self._busy)

    def _release(self, child: Child) -> None:
        """A process that has come to hold much memory is replaced before it is in anybody's way."""
        bloated = self.limits.memory and child.resident() > self.limits.memory
        if child in self._aside or bloated:
            self._remove(child)
            child.stop()

    def _remove(self, child: Child) -> None:
        (self._aside if child in self._aside else self._children).remove(child)

    def close(self) -> None:
        for child in (*self._children, *self._aside):
            child.stop()
        self._children.clear()
        self._aside.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
