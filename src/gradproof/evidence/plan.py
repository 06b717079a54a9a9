"""The automatic choice between looking at every entry and probing."""

from __future__ import annotations

from dataclasses import dataclass

from gradproof.evidence.colouring import Grouping, grouping_of
from gradproof.metered import Metered
from gradproof.precision import DOUBLE, form_of
from gradproof.program import offers_of
from gradproof.settings import Budget, Settings

# A full Jacobian is looked at when it has at most this many entries, and its columns and rows at most so many calls.
ENTRIES = 2**20
BATCHED_CALLS = 3 * 2**12
LOOPED_CALLS = 3 * 2**10
# Those of a column. Where the function runs in a narrow format, most columns climb the ladder, and a few of very many
# are unlucky there; a probe is measured once, and better.
COLUMN, NARROW_COLUMN = 4, 16
# One probe sees every entry; the chance that several errors cancel in it is about bar / error. Each further one
# multiplies that chance by itself, for two more evaluations.
PROBES = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """`probes` is 0 for an exhaustive check, which is one of stored entries where there is a `grouping` of columns;
    `reason` is said in the result."""

    probes: int
    reason: str
    grouping: Grouping | None = None


def plans(program: Metered, reference: Metered, settings: Settings) -> tuple[Plan, ...]:
    """What to do, one plan after the other, each better than the one before. Under a budget the cheap one comes first,
    so that there is an answer when the budget ends. The numeric side is that of `reference`."""
    entries = program.point.size * program.value.size
    shape = f"{program.value.size} x {program.point.size}"
    if isinstance(settings.effort, int):
        return (Plan(settings.effort, f"{_probes(settings.effort)} of the {shape} Jacobian, as asked"),)
    every = Plan(0, f"exhaustive: {_all(entries)} of the {shape} Jacobian")
    columns = (COLUMN if form_of(reference) is DOUBLE else NARROW_COLUMN) * program.point.size
    calls = columns + program.value.size
    stored = _stored(program, settings, shape) if entries > ENTRIES or calls > LOOPED_CALLS else None
    if settings.effort == "exhaustive":
        return (stored or every,)
    if stored is not None and program.affords(3 * (stored.grouping.count if stored.grouping else 0)):
        return (stored,)
    if entries > ENTRIES:
        why = "too many entries to visit one by one"
    elif calls > LOOPED_CALLS and (calls > BATCHED_CALLS or not program.batched):
        why = f"to visit every entry would take {calls} calls"
    elif not program.affords(2 * calls):
        why = f"the budget does not allow the {calls} calls of an exhaustive check"
    elif settings.budget == Budget():
        return (every,)
    else:
        return Plan(PROBES, f"{_probes(PROBES)} of the {shape} Jacobian"), every
    return (Plan(PROBES, f"{_probes(PROBES)} of the {shape} Jacobian ({why})"),)


def _stored(program: Metered, settings: Settings, shape: str) -> Plan | None:
    """The author's own sparse matrix, entry by entry, where its columns fall into few groups."""
    stored = offers_of(program).stored
    if stored is None or (settings.modes is not None and "reverse" not in settings.modes):
        return None
    grouping = grouping_of(stored(), program.inputs)
    if grouping is None:
        return None
    return Plan(
        0,
        f"every stored entry: {grouping.stored.values.size:,} of the {shape} Jacobian, whose columns move in "
        f"{grouping.count} group{'' if grouping.count == 1 else 's'}; any other entry would show",
        grouping,
    )


def _all(entries: int) -> str:
    return f"all {entries} entries" if entries != 1 else "the only entry"


def _probes(count: int) -> str:
    return "1 signed probe" if count == 1 else f"{count} signed probes"
