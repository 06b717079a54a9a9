"""The catalogue of planted mistakes, at all sizes with many seeds; and what torch's own checker makes of it."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from unittest import mock

import torch

import gradproof
from bench.table import Claim, Part, Size, Table, number
from tests.catalogue import CASES, FUNCTIONS, LARGE, Case, Subject, acceptable, diagnosed, fault, twin

MILLION = 1_000_000
SIZES = (16, 576, 25_600, MILLION)
SEEDS = {"full": {16: 20, 576: 20, 25_600: 20, MILLION: 2}, "quick": {16: 2, 576: 1, 25_600: 1, MILLION: 0}}
# torch's slow mode at 576 elements takes as long as everything else here: a third of the cases tells enough.
TORCH_EVERY = {"full": 3, "quick": 12}


@dataclass(frozen=True)
class Job:
    """A case (a function's right twin when `wrong` is None), by its place in the catalogue, at one size."""

    wrong: int | None
    function: str
    n: int
    seeds: int
    torch_too: str

    def subject(self, seed: int) -> Subject:
        if self.wrong is None:
            return twin(FUNCTIONS[self.function], self.n, seed)
        return CASES[self.wrong].build(self.n, seed)

    @property
    def name(self) -> str:
        return f"{self.function}: right" if self.wrong is None else CASES[self.wrong].name


@dataclass(frozen=True)
class Outcome:
    job: Job
    faults: tuple[tuple[int, str], ...]  # (seed, what the checker got wrong)
    seconds: float
    named: tuple[tuple[int, str], ...] = ()  # (seed, the diagnosis: "right", "none", or the wrong codes)
    slow: str = ""
    fast: str = ""


def run(size: Size, say: Callable[[str], None]) -> Part:
    jobs = list(_jobs(size))
    checks = sum(job.seeds for job in jobs)
    say(f"{len(CASES)} wrong gradients, {len(FUNCTIONS)} right ones: {checks:,} checks")
    outcomes = _carried_out(jobs, say)
    tables = [_caught(outcomes), _diagnoses(outcomes), _torch(outcomes)]
    faults = _faults(outcomes)
    if faults.rows:
        tables.append(faults)
    return Part(tables, _claims(outcomes))


def _jobs(size: Size) -> Iterator[Job]:
    """Long ones first, so that no process is left with them at the end."""
    for n in reversed(SIZES):
        seeds = SEEDS[size][n]
        if not seeds:
            continue
        cases: tuple[Case, ...] = LARGE if n == MILLION else CASES
        for place, case in enumerate(CASES):
            if case in cases and n in case.sizes:
                asked = n < MILLION and place % TORCH_EVERY[size] == 0
                yield Job(place, case.function.name, n, seeds, _modes(n) if asked else "")
        for function in FUNCTIONS.values():
            if n in function.sizes:
                yield Job(None, function.name, n, seeds, _modes(n) if n < MILLION else "")


def _modes(n: int) -> str:
    """The full Jacobian of slow mode has 6.5e8 entries at 25,600 elements."""
    return "slow fast" if n <= 576 else "fast"


def _carried_out(jobs: list[Job], say: Callable[[str], None]) -> list[Outcome]:
    workers = min(os.cpu_count() or 1, 8)
    outcomes: list[Outcome] = []
    told = time.perf_counter()
    with ProcessPoolExecutor(workers, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        for done in as_completed([pool.submit(_carry_out, job) for job in jobs]):
            outcomes.append(done.result())
            if time.perf_counter() - told > 15:
                told = time.perf_counter()
                bad = sum(len(outcome.faults) for outcome in outcomes)
                say(f"{len(outcomes)} of {len(jobs)} jobs, {bad} faults so far")
    return outcomes


def _carry_out(job: Job) -> Outcome:
    faults, named = [], []
    started = time.perf_counter()
    for seed in range(job.seeds):
        subject = job.subject(seed)
        result = gradproof.check(subject.fn, subject.args, seed=seed)
        said = (
            fault(result, subject) if job.wrong is not None else "" if result.ok else f"false alarm: {result.verdict}"
        )
        if said:
            faults.append((seed, said))
        if job.wrong is not None:
            named.append((seed, _named(diagnosed(result), acceptable(CASES[job.wrong]))))
    seconds = (time.perf_counter() - started) / job.seeds
    answers = {mode: _torch_says(job.subject(0), mode) for mode in job.torch_too.split()}
    return Outcome(job, tuple(faults), seconds, tuple(named), answers.get("slow", ""), answers.get("fast", ""))


def _named(given: set[str], true: set[str]) -> str:
    wrong = given - true
    return ", ".join(sorted(wrong)) if wrong else "right" if given else "none"


@contextmanager
def _boolean_fast_mode() -> Iterator[None]:
    """A failing fast mode goes on to build the full Jacobian for its message; here only its answer counts."""
    module = sys.modules["torch.autograd.gradcheck"]
    with mock.patch.object(module, "_run_slow_mode_and_get_error", return_value=""):
        yield


def _torch_says(subject: Subject, mode: str) -> str:
    args = tuple(x.clone().requires_grad_() for x in subject.args)
    with _boolean_fast_mode():
        ok = torch.autograd.gradcheck(subject.fn, args, fast_mode=mode == "fast", raise_exception=False)
    return "right" if ok else "wrong"


def _caught(outcomes: list[Outcome]) -> Table:
    table = Table(
        "Planted mistakes: all seeds",
        (
            "elements",
            "wrong",
            "checks",
            "missed",
            "misplaced",
            "right",
            "checks",
            "false alarms",
            "median s",
            "longest s",
        ),
        "misplaced: called WRONG, but not the right leaf or index named",
    )
    for n in SIZES:
        wrong = [o for o in outcomes if o.job.n == n and o.job.wrong is not None]
        right = [o for o in outcomes if o.job.n == n and o.job.wrong is None]
        if not wrong:
            continue
        seconds = sorted(o.seconds for o in wrong + right)
        table.add(
            f"{n:,}", len(wrong), sum(o.job.seeds for o in wrong), _missed(wrong), _misplaced(wrong),
            len(right), sum(o.job.seeds for o in right), sum(len(o.faults) for o in right),
            number(seconds[len(seconds) // 2]), number(seconds[-1]),
        )  # fmt: skip
    return table


def _diagnoses(outcomes: list[Outcome]) -> Table:
    table = Table(
        "What kind of mistake it is said to be, by the kind it is",
        ("kind", "checks", "right", "none", "wrong", "which"),
        "which: cases without a diagnosis or with a wrong one",
    )
    kinds = defaultdict(list)
    for outcome in outcomes:
        if outcome.job.wrong is not None:
            kinds[CASES[outcome.job.wrong].kind].append(outcome)
    for kind, rows in sorted(kinds.items()):
        answers = Counter(said for o in rows for _, said in o.named)
        odd = sorted({o.job.name for o in rows for _, said in o.named if said != "right"})
        total = sum(answers.values())
        wrong = total - answers["right"] - answers["none"]
        table.add(kind, total, answers["right"], answers["none"], wrong, "; ".join(odd))
    return table


def _missed(outcomes: list[Outcome]) -> int:
    return sum(said.startswith("missed") for o in outcomes for _, said in o.faults)


def _misplaced(outcomes: list[Outcome]) -> int:
    return sum(not said.startswith("missed") for o in outcomes for _, said in o.faults)


def _torch(outcomes: list[Outcome]) -> Table:
    table = Table(
        "The same mistakes, one seed: caught by torch.autograd.gradcheck and by gradproof",
        (
            "elements",
            "torch slow",
            "torch fast_mode",
            "gradproof",
            "torch slow, false alarms",
            "torch fast, false alarms",
        ),
        "a sample of the cases; fast mode is asked only for its answer, not for its message (which takes the Jacobian)",
    )
    for n in SIZES[:-1]:
        asked = [o for o in outcomes if o.job.n == n and o.fast]
        wrong = [o for o in asked if o.job.wrong is not None]
        right = [o for o in asked if o.job.wrong is None]
        ours = sum(all(seed != 0 or not said.startswith("missed") for seed, said in o.faults) for o in wrong)

        def share(mode: str, rows: list[Outcome]) -> str:
            answers = Counter(getattr(o, mode) for o in rows)
            return f"{answers['wrong']} of {len(rows)}" if not answers[""] else "-"

        table.add(
            f"{n:,}", share("slow", wrong), share("fast", wrong), f"{ours} of {len(wrong)}",
            share("slow", right), share("fast", right),
        )  # fmt: skip
    return table


def _faults(outcomes: list[Outcome]) -> Table:
    table = Table("What the checker got wrong", ("case", "elements", "seeds", "what"))
    for outcome in sorted(outcomes, key=lambda o: (o.job.name, o.job.n)):
        kinds = defaultdict(list)
        for seed, said in outcome.faults:
            kinds[said.split(":")[0]].append((seed, said))
        for rows in kinds.values():
            table.add(outcome.job.name, outcome.job.n, len(rows), f"seed {rows[0][0]}: {rows[0][1]}")
    return table


def _claims(outcomes: list[Outcome]) -> list[Claim]:
    wrong = [o for o in outcomes if o.job.wrong is not None]
    right = [o for o in outcomes if o.job.wrong is None]
    missed, misplaced, alarms = _missed(wrong), _misplaced(wrong), sum(len(o.faults) for o in right)
    kinds = len({o.job.wrong for o in wrong})
    large = [o for o in wrong if o.job.n == 25_600 and o.fast]
    sizes = sorted({o.job.n for o in wrong})
    checks = sum(o.job.seeds for o in wrong)
    claims = [
        Claim(
            f"{kinds} wrong gradients, {sizes[0]} to {sizes[-1]:,} elements, {checks:,} checks: missed",
            "0",
            str(missed),
            missed == 0,
        ),
        Claim("the same: wrong leaf or wrong index named", "0", str(misplaced), misplaced == 0),
        Claim(
            f"their right twins, {sum(o.job.seeds for o in right):,} checks: false alarms",
            "0",
            str(alarms),
            alarms == 0,
        ),
    ]
    answers = Counter(said for o in wrong for _, said in o.named)
    share, false = answers["right"] / max(checks, 1), checks - answers["right"] - answers["none"]
    claims += [
        Claim("the same: the right kind of mistake named", "≥ 90 %", f"{100 * share:.1f} %", share >= 0.9),
        Claim("the same: a wrong kind named", "0", str(false), false == 0),
    ]
    if large:
        theirs = sum(o.fast == "wrong" for o in large)
        ours = sum(all(seed != 0 or not said.startswith("missed") for seed, said in o.faults) for o in large)
        claims.append(
            Claim(
                "caught at 25,600 elements: gradproof / torch `fast_mode`",
                "all",
                f"{ours} / {theirs} of {len(large)}",
                ours == len(large),
            )
        )
    return claims
