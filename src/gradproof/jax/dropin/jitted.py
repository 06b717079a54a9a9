"""check_jitted: the native check of a JAX function, and that `jax.jit` changes neither values nor derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradproof.check import check_program
from gradproof.compare import tolerance_for
from gradproof.jax.adapter import program_of
from gradproof.jax.contracts.jitted import check_jitted as findings_of
from gradproof.recording import told
from gradproof.result import Result, worst_of
from gradproof.settings import Settings


def check_jitted(
    fn: Callable[..., Any],
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    wrt: str | Sequence[str] | None = None,
    **options: Any,
) -> Result:
    """Like `gradproof.check`, with the same options; a finding `jit` says where `jax.jit(fn)` differs from `fn`."""
    settings = Settings.validated(**options)
    program = program_of(fn, args, dict(kwargs or {}), wrt)
    result = check_program(program, settings)
    found = findings_of(program, np.random.default_rng(settings.seed), tolerance_for(settings, program))
    verdict = worst_of([result.verdict, *(finding.verdict for finding in found)])
    return told(replace(result, findings=result.findings + found, verdict=verdict))
