"""A sweep on this machine: the catalogues are listed by one process each while the workers are already checking."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, replace

from gradproof.result import Verdict
from gradproof.sweep.child import SLACK, Limits, Lost, crash_line
from gradproof.sweep.judge import lost_row
from gradproof.sweep.plan import Plan, Terms
from gradproof.sweep.pool import Pool
from gradproof.sweep.row import PASSING, Ending, Item, Key, Row
from gradproof.sweep.work import WORK, Chunk, Listing
from gradproof.sweep.worker import Done

# Checks that a worker gets at a time: few enough that all workers are busy to the end.
CHUNK = 16


@dataclass(frozen=True, slots=True)
class Found:
    """More checks are known, and of these the verdicts of an earlier run; `complete`: there are no more."""

    checks: tuple[Key, ...] = ()
    earlier: tuple[Verdict, ...] = ()
    complete: bool = False


def rows(plan: Plan, finished: Mapping[Key, Verdict], jobs: int, limits: Limits) -> Generator[Row | Found, None, None]:
    """What comes, as it comes, of all checks that are not finished."""
    done: set[Key] = set()
    with Pool(WORK, jobs, limits) as pool:
        for catalogue in plan.catalogues:
            pool.put_aside(Listing(catalogue, plan.filter))
        pool.get_ready()
        for task, message in pool.run():
            if isinstance(task, Listing):
                yield from heard(task, message, plan.terms, finished, pool.put)
            elif (row := brought(task, message, done, pool.put_first)) is not None:
                done.add(row.item.key)
                yield row
            if isinstance(message, (Done, Lost)) and isinstance(task, Chunk):
                done.difference_update(item.key for item in task.items)
    yield Found(complete=True)


def heard(
    task: Listing, message: object, terms: Terms, finished: Mapping[Key, Verdict], put: Callable[[Chunk], None]
) -> Iterator[Row | Found]:
    """A message from a listing: new checks are cut into chunks."""
    if isinstance(message, tuple):
        new = [item for item in message if item.key not in finished]
        for start in range(0, len(new), CHUNK):
            put(Chunk(tuple(new[start : start + CHUNK]), terms, task.filter.selection))
        keys = tuple(item.key for item in message)
        yield Found(keys, tuple(finished[key] for key in keys if key in finished))
    elif isinstance(message, Lost) or (isinstance(message, Done) and message.trouble):
        yield unlisted(task, message, terms)


def unlisted(task: Listing, message: Lost | Done, terms: Terms) -> Row:
    """The catalogue's own row, where it could not be read to its end."""
    item = Item(Key(task.catalogue, task.catalogue, 0))
    if isinstance(message, Lost):
        sentence, output, seconds = f"the catalogue could not be read: {how(message)}", message.output, message.seconds
        return lost_row(item, terms, Ending.NOT_LISTED, message.code, sentence, seconds, output)
    raised = message.trouble.strip().rpartition("\n")[2].removeprefix("gradproof.errors.UsageError: ")
    sentence = f"the catalogue could not be read: {raised}"
    return lost_row(item, terms, Ending.NOT_LISTED, "listing", sentence, 0.0, message.trouble)


def brought(task: Chunk, message: object, done: Collection[Key], put_first: Callable[[Chunk], None]) -> Row | None:
    """The row that a message from a chunk brings: that of a check that is made, or of the one at which the process was
    lost. Then the checks behind it are put in again."""
    if isinstance(message, Row):
        return message
    lost = lost_by(message)
    if lost is None:
        return None
    row, rest = left_over(task, lost, done)
    if rest.items:
        put_first(rest)
    return row


def lost_by(message: object) -> Lost | None:
    """A process that goes on after an error of its own has lost the check that it was at, too."""
    if isinstance(message, Done) and message.trouble:
        return Lost(None, Ending.RAISED, "worker", 0.0, 0.0, message.trouble)
    return message if isinstance(message, Lost) else None


def left_over(task: Chunk, lost: Lost, done: Collection[Key]) -> tuple[Row | None, Chunk]:
    """The row of the check at which a process was lost, and the checks behind it. A process that was lost before any
    check, however often it is started again, would never get further: then it is the first one's row."""
    # They are made in their order, and a row says that the next one has begun.
    pending = [item for item in task.items if item.key not in done]
    culprit = next((item for item in pending if item.key == lost.label), pending[0] if pending else None)
    if culprit is None:
        return None, replace(task, items=())
    again = "; the same command tries it again" if lost.ending in PASSING else ""
    row = lost_row(culprit, task.terms, lost.ending, lost.code, how(lost) + again, lost.seconds, lost.output)
    rest = tuple(item for item in pending if item is not culprit)
    return replace(row, processor=lost.processor), replace(task, items=rest)


def how(lost: Lost) -> str:
    if lost.ending is Ending.TOO_LONG:
        limits = f"{lost.allowed:g} s of the processor or {SLACK * lost.allowed:g} s by the clock"
        return f"stopped after {lost.seconds:.0f} s, {lost.processor:.0f} s of them at work; it may take {limits}"
    if lost.ending is Ending.TOO_MUCH_MEMORY:
        return "it took more memory than it may"
    if lost.ending is Ending.KILLED:
        return f"the process was killed from outside ({lost.code}), perhaps for want of memory"
    if lost.ending is Ending.RAISED:
        return f"the worker failed: {lost.output.strip().rpartition(chr(10))[2]}"
    said = crash_line(lost.output)
    return f"the process ended with {lost.code}" + (f": {said[:200]}" if said else "")
