"""`python -m bench.lowprecision`: right and scaled gradients of PyTorch's operators in float32, bfloat16 and float16.

Right code must never be called WRONG, and at most 3 % of it UNDECIDED; a gradient that is off by 1 % in float32, or by
20 % in half precision, must always be WRONG.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import fnmatch
import multiprocessing
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

import gradproof
from bench.table import Table
from gradproof.torch.catalogue.entries import entries

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "complex64": torch.complex64,
}
# What the gradient of a wrong twin is multiplied by.
FACTORS = {"float32": 1.01, "complex64": 1.01, "bfloat16": 1.2, "float16": 1.2}
VERDICTS = ("RIGHT", "WRONG", "WRONG in float64 too", "UNDECIDED", "UNSUPPORTED", "raised", "timeout")
STRIDE = 13
STARTUP = 180.0  # seconds that a new process may take to load the database


@dataclass(frozen=True)
class Case:
    """One sample of one operator in one dtype; `factor` is what its gradient is multiplied by."""

    operator: str
    dtype: str
    sample: int = 0
    factor: float = 1.0

    def __str__(self) -> str:
        return self.operator + (f" #{self.sample}" if self.sample else "")


@dataclass(frozen=True)
class Outcome:
    verdict: str
    text: str
    seconds: float


class Scaled(torch.autograd.Function):
    """The identity, with a derivative of `factor` in both modes."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, factor: float) -> Tensor:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return g * ctx.factor, None

    @staticmethod
    def jvp(ctx: Any, dx: Tensor, _: None) -> Tensor:
        return dx * ctx.factor


def cases(dtype: str, pattern: str = "*", samples: int = 1) -> Iterator[Case]:
    """Of every operator that has a backward in this dtype."""
    for name, op in entries("op_db").items():
        has_backward = op.supports_autograd and DTYPES[dtype] in op.supported_backward_dtypes("cpu")
        if has_backward and fnmatch.fnmatch(name, pattern):
            yield from (Case(name, dtype, number) for number in range(samples))


def twins(right: Sequence[Case]) -> Iterator[Case]:
    """The same with scaled gradients, in an order that goes through the whole database first."""
    for first in range(STRIDE):
        for case in right[first::STRIDE]:
            yield Case(case.operator, case.dtype, case.sample, FACTORS[case.dtype])


def subject(case: Case) -> tuple[Callable[..., object], tuple[object, ...], dict[str, object]] | None:
    """The function and its arguments; None if the operator has no such sample."""
    op = entries("op_db")[case.operator]
    found = op.sample_inputs("cpu", DTYPES[case.dtype], requires_grad=True, small_inputs_only=True)
    telling = (one for one in found if any(x.requires_grad and x.numel() for x in _tensors(one)))
    sample = next(islice(telling, case.sample, None), None)
    if sample is None:
        return None

    def run(*args: object, **kwargs: object) -> object:
        if case.factor != 1.0:
            args = tuple(_scaled(one, case.factor) for one in args)
            kwargs = {name: _scaled(one, case.factor) for name, one in kwargs.items()}
        output = op.gradcheck_wrapper(op.get_op(), *args, **kwargs)
        finish = sample.output_process_fn_grad
        return output if finish is None else finish(output)

    return run, (sample.input, *sample.args), dict(sample.kwargs)


def judge(case: Case) -> Outcome | None:
    """What gradproof says; None if there is no such sample. What is WRONG is asked once more with the same numbers in
    float64."""
    torch.manual_seed(0)
    started = time.perf_counter()
    try:
        found = subject(case)
        if found is None:
            return None
        fn, args, kwargs = found
        result = gradproof.check(fn, args, kwargs, seed=0)
        verdict = str(result.verdict)
        if verdict == "WRONG" and case.factor == 1.0:
            verdict += " in float64 too" if str(_in_float64(fn, args, kwargs)) == "WRONG" else ""
        if any(finding.code == "vacuous" for finding in result.findings) and case.factor != 1.0:
            verdict = "zero" if verdict == "RIGHT" else verdict  # scaling it changes nothing
        return Outcome(verdict, str(result), time.perf_counter() - started)
    except Exception as error:  # noqa: BLE001 - whatever the operator raises is its outcome
        return Outcome("raised", f"{type(error).__name__}: {error}"[:500], time.perf_counter() - started)


def _in_float64(fn: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> gradproof.Verdict:
    wide = [torch.utils._pytree.tree_map_only(Tensor, _double, one) for one in (args, kwargs)]
    return gradproof.check(fn, *wide, seed=0).verdict


def _double(tensor: Tensor) -> Tensor:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    dtype = torch.complex128 if tensor.is_complex() else torch.float64
    return tensor.detach().to(dtype).requires_grad_(tensor.requires_grad)


def _tensors(sample: Any) -> Iterator[Tensor]:
    for argument in (sample.input, *sample.args, *sample.kwargs.values()):
        members = argument if isinstance(argument, (list, tuple)) else (argument,)
        yield from (x for x in members if isinstance(x, Tensor))


def _scaled(argument: Any, factor: float) -> Any:
    if isinstance(argument, (list, tuple)) and argument and all(isinstance(x, Tensor) for x in argument):
        return type(argument)(_scaled(x, factor) for x in argument)
    differentiable = isinstance(argument, Tensor) and (argument.is_floating_point() or argument.is_complex())
    return Scaled.apply(argument, factor) if differentiable else argument


def work(connection: Connection) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    entries("op_db")
    while True:
        connection.send(judge(connection.recv()))


class Worker:
    """A process that answers one case at a time, and is replaced when it does not."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.process: Any = None

    def judge(self, case: Case) -> Outcome | None:
        fresh = self.process is None
        if fresh:
            context = multiprocessing.get_context("spawn")
            self.connection, theirs = context.Pipe()
            self.process = context.Process(target=work, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
        self.connection.send(case)
        limit = self.limit + STARTUP * fresh
        try:
            if self.connection.poll(limit):
                answer: Outcome | None = self.connection.recv()
                return answer
        except (EOFError, ConnectionError):
            self.stop()
            return Outcome("raised", "the process ended", 0.0)
        self.stop()
        return Outcome("timeout", "", limit)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.lowprecision", description=__doc__)
    parser.add_argument("--dtype", default="float32,bfloat16,float16", help=f"of {', '.join(DTYPES)}")
    parser.add_argument("--ops", default="*", help="a glob")
    parser.add_argument("--samples", type=int, default=1, help="of each operator")
    parser.add_argument("--twins", type=int, default=30, help="operators whose gradients are scaled, of each dtype")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one case")
    parser.add_argument("--show", action="store_true", help="print the whole report of what is not RIGHT")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160)
    worker = Worker(options.limit)
    table = Table("Operators in low precision", ("dtype", "gradient", "cases", *VERDICTS))
    remarks, good = [], True
    for dtype in options.dtype.split(","):
        group: Iterable[Case] = list(cases(dtype, options.ops, options.samples))
        for name, expected in (("right", "RIGHT"), ("scaled", "WRONG")):
            answers = ((case, worker.judge(case)) for case in group)
            known = ((case, found) for case, found in answers if found is not None and found.verdict != "zero")
            outcomes = dict(islice(known, None if name == "right" else options.twins))
            counts = Counter(found.verdict for found in outcomes.values())
            table.add(dtype, name, len(outcomes), *(counts[verdict] for verdict in VERDICTS))
            for case, found in outcomes.items():
                if found.verdict != expected:
                    remarks.append(f"{dtype} {name}: {case} is {found.verdict} ({found.seconds:.1f} s)")
                    remarks += [f"    {line}" for line in found.text.splitlines()] if options.show else []
            if name == "right":
                group = twins([case for case, found in outcomes.items() if found.verdict == "RIGHT"])
                good &= counts["WRONG"] == 0 and counts["UNDECIDED"] <= 0.03 * len(outcomes)
            else:
                good &= counts["WRONG"] == len(outcomes)
    worker.stop()
    console.print(table)
    for line in remarks:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
