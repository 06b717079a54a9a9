"""The command that makes one check of a sweep again: `gradproof replay` runs it, a page shows it."""

from __future__ import annotations

import re
import shlex

from gradproof.sweep.plan import Terms
from gradproof.sweep.row import Ending, Row


def again(row: Row, terms: Terms) -> str:
    """Empty for a catalogue that could not be listed: it has no such case."""
    if row.ending is Ending.NOT_LISTED:
        return ""
    key, traits = row.item.key, row.item.traits
    # The name alone would do; with these a large catalogue need not be read from its start, nor in all its formats.
    narrow = {"ops": traits.operator, "dtype": traits.dtype, "device": traits.device}
    given = {name: word for name, word in narrow.items() if re.fullmatch(r"[\w.:-]+", word)}
    given |= {"order": str(key.order)} if key.order else {}
    given |= {
        name: ",".join(words) for name, words in (("modes", terms.modes), ("contracts", terms.contracts)) if words
    }
    given |= {"effort": str(terms.effort)} if terms.effort is not None else {}
    given |= {"tolerance": repr(terms.tolerance)} if terms.tolerance is not None else {}
    options = {"case": key.case, **given, "seed": str(terms.seed)}
    return shlex.join(
        ["gradproof", "sweep", key.catalogue, *(w for name, v in options.items() for w in (f"--{name}", v))]
    )
