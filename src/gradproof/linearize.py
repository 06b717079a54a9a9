"""All modes of one order. Linearisation is the forward mode of another view of the same program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradproof.errors import Unsupported
from gradproof.evidence.wording import unsupported
from gradproof.examine import examine
from gradproof.examined import Examined
from gradproof.metered import Metered
from gradproof.result import Verdict
from gradproof.settings import MODES, Settings


def examine_modes(program: Metered, settings: Settings, order: int, generator: np.random.Generator) -> Examined:
    if settings.modes is None or "linearize" not in settings.modes:
        return examine(program, settings, order, generator)
    plain = tuple(mode for mode in MODES if mode in settings.modes)
    examined = examine(program, replace(settings, modes=plain), order, generator) if plain else Examined()
    try:
        linearized = program.linearized()
    except Unsupported as missing:
        return examined.joined(Examined(findings=(unsupported("linearize mode", str(missing), Verdict.UNSUPPORTED),)))
    found = examine(linearized, replace(settings, modes=("forward",)), order, generator)
    named = tuple(replace(comparison, mode="linearize") for comparison in found.comparisons)
    return examined.joined(replace(found, comparisons=named))
