"""check() and assert_gradients(): the whole algorithm on one page.

A program is examined order by order. For each order: name random functions, take the reference in the widest format,
choose between every entry and probes, compare, ask whether a wrong gradient would have passed, and say the verdict.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from gradproof import recording
from gradproof.adapters import program_of
from gradproof.around import Around
from gradproof.audit import audit
from gradproof.confined import confined
from gradproof.errors import BudgetSpent, GradcheckError, Refused, Unsupported, UsageError
from gradproof.evidence.wording import budget_spent, no_outputs, not_taken, unsupported, worded
from gradproof.examined import Examined, consequence
from gradproof.linearize import examine_modes
from gradproof.metered import Metered
from gradproof.program import Program, offers_of, whole_of
from gradproof.reference.steps import signed
from gradproof.result import Cost, Result, Verdict, worst_of
from gradproof.settings import Budget, Detail, Effort, Randomness, Settings, Tolerance
from gradproof.sizes import terms_of
from gradproof.spaces import Space
from gradproof.surrogate import Surrogate


def check(
    fn: Callable[..., Any],
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    derivative: Any = None,
    wrt: str | Sequence[str] | None = None,
    modes: str | Sequence[str] | None = None,
    order: int = 1,
    effort: Effort = "auto",
    tolerance: float | Tolerance | None = None,
    seed: int | None = None,
    budget: int | Budget | None = None,
    detail: Detail = "summary",
    nondet_tol: float = 0.0,
    contracts: str | Sequence[str] = "all",
    bounds: Any = None,
    spaces: Mapping[str, Space] | None = None,
    output_map: Callable[..., Any] | None = None,
    randomness: Randomness = "detect",
    expected_gradient_of: Callable[..., Any] | None = None,
    lowest: int = 1,
) -> Result:
    """Tell whether the derivatives of `fn` at these arguments are right. Never raises for a wrong gradient.

    fn: any callable on torch tensors, JAX or NumPy arrays, or an `nn.Module`, whose named parameters are then checked
        too.
    args: one tensor, or a tuple or list of positional arguments: tensors, containers of tensors, other objects.
    kwargs: keyword arguments, by name; arrays in them are differentiated too, as `kwargs['x']`.
    derivative: what you wrote by hand for a function of NumPy arrays: `{"jac": jac}`, or `vjp`, `jvp`, `grad`, `hess`,
        `hessp`, several at once; see `gradproof.numpy`.
    wrt: paths of the inputs to differentiate, such as `"args[0]"`, `"params.*"`. Default: those that require grad,
        or all floating and complex ones when none does.
    modes: `"reverse"`, `"forward"`, or both, and `"linearize"` for JAX. Default: reverse and forward, as they exist.
    order: 1, or 2 to check second derivatives as well, and so on.
    effort: `"auto"`, `"exhaustive"` (every entry of the Jacobian), or a number of random probes (any size).
    tolerance: accepted deviation, relative to the larger of the entry and the rms of its block. Default: from the
        dtype, 1e-5 in double.
    seed: of the random directions. Default: a fresh one, printed (0 under pytest); the same seed gives the same result.
    budget: `Budget(calls=..., seconds=...)`, or a number of calls: the best verdict within it.
    detail: `"plots"` records the most telling derivative at many steps too, for the plots of a report (about thirty
        evaluations more); `"verdict"` skips the entry-by-entry comparison of a large Jacobian if random sums of its
        entries agree.
    nondet_tol: how far two runs of the function, or of its backward, may be apart (beyond rounding).
    contracts: properties to check beside the numbers, such as `("linear", "pure")`. Default: all that apply;
        `"none"` turns them off.
    bounds: (low, high) of all arguments, or of each by path; None is open. Nothing is evaluated outside.
    spaces: of arguments, by path: see `gradproof.spaces`. `{"args[0]": Symmetric()}` is perturbed symmetrically.
    output_map: applied to the outputs before anything is compared, as `output_map(*outputs)`: to remove
        ambiguities, such as the signs of eigenvectors.
    randomness: `"detect"` names a random function; `"reseed"` gives every call the same random numbers.
    expected_gradient_of: the function whose derivative `fn` is meant to have, where that is not `fn` itself: the
        identity for a straight-through estimator, a smooth one for a surrogate gradient.
    lowest: orders below it are passed over: `order=2, lowest=2` looks at second derivatives alone.
    """
    settings = Settings.validated(
        modes=modes,
        order=order,
        effort=recording.effort(effort),
        tolerance=tolerance,
        seed=recording.seed(seed),
        budget=budget,
        detail=recording.detail(detail),
        nondet_tol=nondet_tol,
        contracts=contracts,
        bounds=bounds,
        spaces=spaces,
        randomness=randomness,
        lowest=lowest,
    )
    state = random.getstate()  # adapters look after their frameworks' streams; this one belongs to none
    try:
        around = Around.asked(output_map, settings.randomness)
        program = program_of(fn, args, kwargs, wrt, derivative, around)
        if expected_gradient_of is not None:
            if not callable(expected_gradient_of):
                raise UsageError(
                    f"expected_gradient_of={expected_gradient_of!r} is not a function; write "
                    "expected_gradient_of=lambda x: x for a straight-through estimator"
                )
            program = Surrogate(program, program_of(expected_gradient_of, args, kwargs, wrt, derivative, around))
        result = check_program(program, settings)
        if not program.outputs:
            who = "the function" if output_map is None else "output_map"
            result = replace(result, verdict=Verdict.UNSUPPORTED, findings=(no_outputs(program.skipped, who),))
        return recording.told(result)
    finally:
        random.setstate(state)


def assert_gradients(
    fn: Callable[..., Any], args: Any = (), kwargs: Mapping[str, Any] | None = None, **options: Any
) -> None:
    """Like `check`, with the same options, but raises GradcheckError unless the verdict is RIGHT."""
    __tracebackhide__ = True
    result = check(fn, args, kwargs, **options)
    if not result.ok:
        raise GradcheckError(str(result), result)


def check_program(program: Program, settings: Settings) -> Result:
    """The same for a program made by any adapter."""
    started = time.perf_counter()
    if settings.order < offers_of(program).order:
        settings = replace(settings, order=offers_of(program).order)
    generator = np.random.default_rng(settings.seed)
    inner = confined(program, settings.bounds, settings.spaces)
    metered = Metered(inner, settings.budget, started, terms_of(program))
    with whole_of(program):
        examined = _by_order(metered, settings, generator)
    findings = examined.findings + worded(audit(examined.comparisons), offers_of(program).words)
    verdicts = [finding.verdict for finding in findings] + [comparison.verdict for comparison in examined.comparisons]
    if not verdicts:
        verdicts = [Verdict.UNSUPPORTED] if not examined.empty else [Verdict.RIGHT]
    tally = program.tally
    return Result(
        name=program.name,
        verdict=worst_of(verdicts),
        comparisons=examined.comparisons,
        findings=findings,
        skipped=program.skipped,
        notes=tuple(dict.fromkeys(examined.notes)),
        power=examined.power,
        cost=Cost(tally.evaluations, tally.pulls, tally.pushes, time.perf_counter() - started),
        seed=settings.seed,
        settings=settings,
        traces=examined.traces,
    )


def _by_order(metered: Metered, settings: Settings, generator: np.random.Generator) -> Examined:
    found: list[Examined] = []
    written_apart = settings.order > 1 and offers_of(metered).order > 1
    for order in range(1, settings.order + 1):
        try:
            if order > 1:
                metered = metered.gradient(signed(generator, metered.value.size))
            if order >= settings.lowest:
                examined = examine_modes(metered, settings, order, generator)
                if written_apart and any(lower.verdict is Verdict.WRONG for lower in found):
                    examined = consequence(examined)
                if examined.findings:  # the author may have a function of its own for each order
                    examined = replace(examined, findings=worded(examined.findings, offers_of(metered).words))
                found.append(examined)
        except BudgetSpent as spent:
            found.append(Examined(findings=(budget_spent(str(spent)),)))
            break
        except Refused as refused:
            found.append(Examined(findings=(not_taken(refused),)))
            break
        except Unsupported as missing:
            found.append(Examined(findings=(unsupported(f"order {order}", str(missing), Verdict.UNSUPPORTED),)))
            break
    return reduce(Examined.joined, found) if found else Examined()
