"""The sample of the operators that `make bench` runs; `python -m bench.operators` runs all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.table import Part, Size

if TYPE_CHECKING:
    from bench.operators.run import Progress, Selection

# One case from each of this fraction of the groups: about two minutes, or a quarter of one.
SAMPLE = {"full": 0.05, "quick": 0.006}
EVERY = 20  # groups between two lines
LIMIT = 10.0  # seconds for one check


def run(size: Size, say: Callable[[str], None]) -> Part:
    # PyTorch's test support takes seconds to load: only when this part is run.
    from bench.operators.run import Selection

    return compare(Selection(sample=SAMPLE[size], most=1), say)


def compare(selection: Selection, say: Callable[[str], None]) -> Part:
    """The selection from scratch, in a store that nobody keeps."""
    from bench.operators.differences import read
    from bench.operators.measure import Effort
    from bench.operators.report import Report
    from bench.operators.run import run as run_selection
    from bench.operators.run import versions
    from bench.operators.store import Store

    said = 0

    def show(progress: Progress) -> None:
        nonlocal said
        if progress.groups_done >= said + EVERY:
            said = progress.groups_done
            say(f"{progress.groups_done} of {progress.groups} groups of operators")

    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "outcomes.sqlite", versions(selection.checkers))
        progress = run_selection(selection, store, effort=Effort(limit=LIMIT), show=show)
        report = Report(store.outcomes(), read())
        store.close()
    for line in progress.troubles:
        say(f"not judged: {line}")
    return Part(report.tables(), report.claims())
