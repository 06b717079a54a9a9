"""What is to be judged, and how: a program under the settings."""

from __future__ import annotations

import numpy as np

from gradproof.agreement import tolerance_for, tolerance_of_rule
from gradproof.bounds import limits_of
from gradproof.contracts.repeatable import Repeats
from gradproof.evidence.gathered import Task
from gradproof.metered import Metered
from gradproof.precision import DOUBLE, form_of
from gradproof.program import draws_of, offers_of
from gradproof.reference.complexstep import ComplexStep
from gradproof.reference.steps import coordinate_steps, fixed_steps
from gradproof.settings import MODES, Settings


def task_of(
    program: Metered,
    reference: Metered,
    repeats: Repeats,
    settings: Settings,
    order: int,
    generator: np.random.Generator,
) -> Task:
    steps = coordinate_steps(reference) if settings.step is None else fixed_steps(reference, settings.step)
    limits, rule = limits_of(program, settings.bounds), tolerance_of_rule(settings, program)
    steps = steps if limits is None else limits.shortened(steps)
    return Task(
        program,
        reference,
        settings.modes or tuple(mode for mode in MODES if mode in offers_of(program).modes),
        tolerance_for(rule, settings, program, reference),
        rule,
        order,
        generator,
        steps,
        repeats,
        settings.contracts,
        settings.nondet_tol,
        ComplexStep.of(reference, steps, settings.seed),
        limits,
        settings.detail,
    )


def shows_itself(program: Metered) -> bool:
    """Whether a function that gives other values the next time would leave a doubt in what is gathered: where its own
    values are compared, all of them, to many digits. One that is known to draw random numbers need not come so far."""
    offers = offers_of(program)
    plain = offers.stored is None and offers.complex_values is None
    return plain and not draws_of(program) and form_of(program) is DOUBLE
