"""Probes against torch's fast mode from 10^4 elements up: time, evaluations, memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn import functional

import gradproof
from bench.table import Claim, Part, Size, Table, number
from bench.timing import interleaved
from tests.catalogue import CASES, FUNCTIONS, fault, twin

SIZES = {"full": (10_000, 100_000, 1_000_000), "quick": (10_000, 100_000)}
MILLION = 1_000_000
ONE_ENTRY = "sin[0]: random entry 5 % off"
# A failing fast mode builds the full Jacobian to print it: 10^8 entries, several copies of 0.8 GB, about a minute.
TORCH_LIMIT = 10_000
TIMEOUT = 240.0


def run(size: Size, say: Callable[[str], None]) -> Part:
    right, right_claims = _right(size, say)
    wrong, wrong_claims = _wrong(size, say)
    cost, cost_claims = _cost(size, say)
    return Part([right, wrong, cost], right_claims + wrong_claims + cost_claims)


# ---- a right gradient


def _subjects(n: int) -> dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]]:
    side = round(n**0.5)
    generator = torch.Generator().manual_seed(n)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_()

    custom = twin(FUNCTIONS["sin"], n)
    return {
        "sin": (torch.sin, (normal(n),)),
        "softmax": (lambda x: x.softmax(-1), (normal(side, side),)),
        "layer_norm": (lambda x: functional.layer_norm(x, x.shape[-1:]), (normal(side, side),)),
        "logsumexp": (lambda x: x.logsumexp(0), (normal(n),)),
        "cumsum": (lambda x: x.cumsum(-1), (normal(side, side),)),
        "custom sin": (custom.fn, tuple(x.requires_grad_() for x in custom.args)),
    }


def _right(size: Size, say: Callable[[str], None]) -> tuple[Table, list[Claim]]:
    table = Table(
        "Probes, right gradient (milliseconds)",
        (
            "function",
            "elements",
            "torch fast",
            "ours, reverse",
            "ours, all modes",
            "ours / fast",
            "evaluations",
            "pulls",
        ),
        "torch's fast mode compares one number of one fixed probe",
    )
    ratios: list[float] = []
    for n in SIZES[size]:
        for name, (fn, args) in _subjects(n).items():
            result = gradproof.check(fn, args, modes="reverse", seed=0)
            if not result.ok:
                say(f"{name} {n}: gradproof says {result.verdict}")
            seconds = interleaved(
                {
                    "fast": lambda fn=fn, args=args: gradcheck(fn, args, fast_mode=True),
                    "ours": lambda fn=fn, args=args: gradproof.check(fn, args, modes="reverse", seed=0),
                    "all": lambda fn=fn, args=args: gradproof.check(fn, args, seed=0),
                },
                seconds=2.0 if size == "full" else 0.5,
                least=3,
            )
            ratio = seconds["ours"] / seconds["fast"]
            ratios.append(ratio)
            table.add(
                name, f"{n:,}", *(f"{1000 * seconds[key]:.1f}" for key in ("fast", "ours", "all")), number(ratio),
                result.cost.evaluations, result.cost.pulls,
            )  # fmt: skip
            say(f"{name} {n:,}: {ratio:.2f} times the cost of fast mode")
    claim = Claim(
        f"probes, right gradient, {SIZES[size][0]:,} to {SIZES[size][-1]:,} elements: cost against torch's fast mode",
        "≤ 1",
        f"median {number(median(ratios))}, worst {number(max(ratios))}",
        max(ratios) <= 1,
    )
    return table, [claim]


# ---- a wrong gradient


def _wrong(size: Size, say: Callable[[str], None]) -> tuple[Table, list[Claim]]:
    table = Table(
        "Probes, wrong gradient (seconds)",
        ("case", "elements", "torch fast", "torch's peak memory", "ours", "our peak memory", "torch / ours"),
        f"torch was given {TORCH_LIMIT:,} elements (fewer in a quick run); beyond that its Jacobian does not fit",
    )
    ratios = []
    case = "sin[0]: negated"
    sizes = (TORCH_LIMIT,) if size == "full" else (2_500,)
    for n in sizes:
        say(f"{case}, {n:,} elements: torch's fast mode fails and builds its Jacobian")
        ours, theirs = _worker("ours", case, n), _worker("torch", case, n)
        if ours is None:
            raise RuntimeError(f"gradproof did not finish {case} at {n} elements within {TIMEOUT} s")
        took = TIMEOUT if theirs is None else theirs["seconds"]
        ratios.append(took / ours["seconds"])
        more = "> " if theirs is None else ""
        memory = "?" if theirs is None else f"{theirs['bytes'] / 2**30:.1f} GB"
        table.add(
            case, f"{n:,}", f"{more}{took:.1f}", memory, *_shown(ours), more + number(ratios[-1]),
        )  # fmt: skip
    for n in (size_ for size_ in SIZES[size] if size_ > TORCH_LIMIT):
        say(f"{case}, {n:,} elements: gradproof alone")
        ours = _worker("ours", case, n)
        took, memory = (f"> {TIMEOUT:.0f}", "?") if ours is None else _shown(ours)
        table.add(case, f"{n:,}", "-", "-", took, memory, "-")
    claim = Claim(
        f"probes, wrong gradient, {sizes[-1]:,} elements: times faster than torch's fast mode",
        "≥ 100",
        number(min(ratios)),
        min(ratios) >= 100,
    )
    # The promise is about 10^4 elements and more; a quick run only shows that the measurement works.
    return table, [claim] if size == "full" else []


def _shown(found: dict[str, float]) -> tuple[str, str]:
    return f"{found['seconds']:.3f}", f"{found['bytes'] / 2**20:.1f} MB"


# glibc keeps large blocks that were freed, which then count as used. With this it hands them back at once, for torch
# and for us alike, so that the peak is what was in use.
RETURN_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "1000000"}


def _worker(tool: str, case: str, n: int) -> dict[str, float] | None:
    """In a process of its own, because memory is measured; None when it does not finish in time."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "bench.probes", tool, case, str(n)],
            capture_output=True,
            text=True,
            check=True,
            timeout=TIMEOUT,
            cwd=Path(__file__).parents[1],
            env=os.environ | RETURN_MEMORY,
        )
    except subprocess.TimeoutExpired:
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


# ---- what it costs to find one entry of a million


def _cost(size: Size, say: Callable[[str], None]) -> tuple[Table, list[Claim]]:
    n = MILLION if size == "full" else 100_000
    table = Table(
        f"Probes, {n:,} elements: what a check costs",
        ("gradient of sin", "verdict", "evaluations", "pulls", "seconds", "peak memory in vectors"),
    )
    say(f"sin on {n:,} elements, right and with one entry 5 % off")
    rows = {}
    for name, case in (("right", ""), ("one entry 5 % off", ONE_ENTRY)):
        found = _worker("ours", case, n)
        if found is None:
            raise RuntimeError(f"gradproof did not finish {name} at {n} elements within {TIMEOUT} s")
        rows[name] = found
        table.add(
            name, found["said"], found["evaluations"], found["pulls"], f"{found['seconds']:.2f}",
            f"{found['bytes'] / (8 * n):.1f}",
        )  # fmt: skip
    right, wrong = rows["right"], rows["one entry 5 % off"]
    vectors = wrong["bytes"] / (8 * n)
    return table, [
        Claim(
            f"sin on {n:,} elements: evaluations and pulls until RIGHT",
            "≤ 40 and ≤ 6",
            f"{right['evaluations']} and {right['pulls']}",
            right["evaluations"] <= 40 and right["pulls"] <= 6 and right["said"] == "RIGHT",
        ),
        Claim(
            f"one entry of {n:,} off by 5 %: evaluations until WRONG with its index",
            "≤ 200",
            f"{wrong['evaluations']} ({wrong['said']})",
            wrong["evaluations"] <= 200 and wrong["said"] == "WRONG, placed",
        ),
        # At fewer elements the fixed cost of a check weighs more than its vectors.
        *(
            [Claim("the same: peak extra memory in use, in vectors", "< 20", f"{vectors:.1f}", vectors < 20)]
            if n == MILLION
            else []
        ),
    ]


# ---- the process that is measured


def _memory(field: str) -> int:
    """Bytes, from the kernel: VmRSS is now, VmHWM the highest since `_forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _measured(tool: str, case_name: str, n: int) -> dict[str, object]:
    torch.set_num_threads(1)
    case = next((case for case in CASES if case.name == case_name), None)
    subject = case.build(n) if case else twin(FUNCTIONS["sin"], n)
    small = twin(FUNCTIONS["sin"], 1_024)
    gradproof.check(small.fn, small.args, effort=2, seed=0)  # loads whatever is loaded on first use
    _forget_peak()
    before = _memory("VmRSS")
    started = time.perf_counter()
    if tool == "torch":
        args = tuple(x.requires_grad_() for x in subject.args)
        ok = gradcheck(subject.fn, args, fast_mode=True, raise_exception=False)
        extra: dict[str, object] = {"said": "right" if ok else "wrong"}
    else:
        result = gradproof.check(subject.fn, subject.args, seed=0)
        said = str(result.verdict)
        if case and not fault(result, subject):
            said += ", placed"
        extra = {"said": said, "evaluations": result.cost.evaluations, "pulls": result.cost.pulls}
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "bytes": max(_memory("VmHWM") - before, 0), **extra}


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
