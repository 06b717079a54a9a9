"""All of op_db, and the table of verdicts that is checked in."""

from __future__ import annotations

import csv
import json
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from bench.table import Claim
from gradproof.result import Verdict, worst_of
from gradproof.sweep import sweep
from gradproof.sweep.progress import Progress
from gradproof.sweep.row import Row
from gradproof.sweep.store import Store
from gradproof.sweep.summary import operator_of

DATA = Path(__file__).parents[2] / "docs" / "data"
EXPLAINED = (Verdict.WRONG, Verdict.UNDECIDED, Verdict.ERROR)
MINUTES = 20
COMMAND = "gradproof sweep torch --dtype float64,complex128 --order 1,2 --jobs 2 --store torch.db"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Explanation:
    """A line of the file: globs of operator, dtype and code; orders; and why."""

    operator: str
    why: str
    dtype: str = "*"
    order: str = "*"
    code: str = "*"

    def explains(self, line: Line) -> bool:
        return (
            fnmatchcase(line.operator, self.operator)
            and fnmatchcase(line.dtype, self.dtype)
            and fnmatchcase(str(line.order), self.order)
            and fnmatchcase(line.code, self.code)
        )


@dataclass(frozen=True)
class Line:
    """One operator in one dtype and order. `code`: of the loudest rows; `full`: checks that looked at every entry."""

    operator: str
    dtype: str
    order: int
    verdict: Verdict
    code: str
    checks: int
    right: int
    full: int
    digits: float | None
    seconds: float


def lines_of(rows: Iterator[Row]) -> list[Line]:
    grouped: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[operator_of(row), row.item.traits.dtype, row.item.key.order].append(row)
    return [_line(*key, found) for key, found in sorted(grouped.items())]


def _line(operator: str, dtype: str, order: int, rows: list[Row]) -> Line:
    verdict = worst_of([row.verdict for row in rows])
    codes = Counter(row.code for row in rows if row.verdict is verdict)
    power = [json.loads(row.result)["power"] for row in rows]
    digits = [row.digits for row in rows if row.digits is not None and row.verdict is Verdict.RIGHT]
    return Line(
        operator, dtype, order, verdict, codes.most_common(1)[0][0], len(rows),
        sum(row.verdict is Verdict.RIGHT for row in rows), sum(not each or each["fraction"] == 1 for each in power),
        min(digits, default=None), sum(row.processor for row in rows),
    )  # fmt: skip


def write(lines: list[Line], versions: dict[str, str], command: str, file: Path) -> None:
    """The table, with the command and the versions in its first lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as stream:
        stream.write(f"# {command}\n")
        stream.writelines(f"# {name} {version}\n" for name, version in versions.items())
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["operator", "dtype", "order", "verdict", "code", "checks", "right", "full", "digits"])
        for line in lines:
            digits = "" if line.digits is None else f"{line.digits:.1f}"
            counts = (line.checks, line.right, line.full)
            writer.writerow([line.operator, line.dtype, line.order, line.verdict.value, line.code, *counts, digits])


def read(file: Path) -> list[Line]:
    """What `write` wrote; seconds are not kept."""
    with file.open(newline="", encoding="utf-8") as stream:
        rows = csv.DictReader(line for line in stream if not line.startswith("#"))
        return [
            Line(
                row["operator"], row["dtype"], int(row["order"]), Verdict(row["verdict"]), row["code"],
                int(row["checks"]), int(row["right"]), int(row["full"]), float(row["digits"] or "nan"), 0.0,
            )
            for row in rows
        ]  # fmt: skip


def explanations(file: Path) -> list[Explanation]:
    with file.open("rb") as stream:
        return [Explanation(**line) for line in tomllib.load(stream)["explanations"]]


def unexplained(lines: list[Line], known: list[Explanation]) -> list[Line]:
    loud = [line for line in lines if line.verdict in EXPLAINED]
    return [line for line in loud if not any(each.explains(line) for each in known)]


def operators(say: Say, store: Path, shard: str | None = None) -> list[Claim]:
    """The whole sweep into `store` (again: what is missing), the table, the explanations."""
    started = time.perf_counter()
    due = 0.0

    def show(progress: Progress) -> None:
        nonlocal due
        if time.perf_counter() > due:
            due = time.perf_counter() + 30
            say(" · ".join(progress.words()))

    swept = sweep("torch", dtype="float64,complex128", order="1,2", jobs=2, store=store, shard=shard, show=show)
    minutes = (time.perf_counter() - started) / 60
    claims = table(swept.store, say, DATA if shard is None else store.parent, shard)
    if shard is None and not swept.progress.earlier:
        held = minutes <= MINUTES
        claims.insert(0, Claim("Sweep of all of op_db on 2 cores, minutes", f"≤ {MINUTES}", f"{minutes:.1f}", held))
    return claims


def table(store: Store, say: Say, folder: Path, shard: str | None = None) -> list[Claim]:
    lines = lines_of(store.whole_rows())
    versions = json.loads(store.facts()["versions"])
    stem = f"torch-{versions['torch'].partition('+')[0]}-sweep"
    write(lines, versions, COMMAND if shard is None else f"{COMMAND} --shard {shard}", folder / f"{stem}.csv")
    known = explanations(DATA / f"{stem}.toml")
    missing = unexplained(lines, known)
    for line in missing:
        say(f"no line explains {line.operator} {line.dtype} order {line.order}: {line.verdict} {line.code}")
    stale = [each.operator for each in known if not any(each.explains(line) for line in lines)]
    say(f"explanations of nothing: {', '.join(stale) or 'none'}")
    work = sum(line.seconds for line in lines)
    checks, full = sum(line.checks for line in lines), sum(line.full for line in lines)
    say(f"{checks:,} checks, {full:,} of them of every entry; {work:,.0f} s of the processor")
    what = f"Sweep of op_db, {checks:,} checks: operators not right and not explained"
    return [Claim(what, "0", str(len(missing)), not missing)]
