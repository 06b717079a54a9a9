"""What every code of a finding or a diagnosis means: one Markdown file each, named after the code.

To add one, write `findings/<code>.md` or `diagnoses/<code>.md`: a heading, the meaning in one line, a paragraph on what
to do, and an example in Python. `python -m tests.codes` runs the example, puts its output below it, and writes
docs/findings.md anew.
"""

from __future__ import annotations

import difflib
import enum
import functools
import re
from dataclasses import dataclass
from importlib import resources

from gradproof.errors import UsageError


class Kind(enum.Enum):
    """A finding is what was seen; a diagnosis is its cause."""

    FINDING = "finding"
    DIAGNOSIS = "diagnosis"

    @property
    def plural(self) -> str:
        return {"finding": "findings", "diagnosis": "diagnoses"}[self.value]


@dataclass(frozen=True, slots=True)
class Code:
    """One code; `text` is all of its file."""

    code: str
    kind: Kind
    text: str

    @property
    def meaning(self) -> str:
        """The first paragraph: one line."""
        return self.text.split("\n\n")[1].strip()

    @property
    def advice(self) -> str:
        """What to do: all between the meaning and the example."""
        return "\n\n".join(self.text.partition("\n```")[0].split("\n\n")[2:]).strip()

    @property
    def example(self) -> str:
        return self._block("python")

    @property
    def output(self) -> str:
        return self._block("text")

    def _block(self, language: str) -> str:
        found = re.search(rf"^```{language}\n(.*?)^```$", self.text, re.DOTALL | re.MULTILINE)
        return found[1] if found else ""


@functools.cache
def codes() -> tuple[Code, ...]:
    """All of them: findings, then diagnoses, by name."""
    found = []
    for kind in Kind:
        folder = resources.files("gradproof.codes") / kind.plural
        names = sorted(file.name.removesuffix(".md") for file in folder.iterdir() if file.name.endswith(".md"))
        found += [Code(name, kind, (folder / f"{name}.md").read_text("utf-8")) for name in names]
    return tuple(found)


def lookup(code: str) -> tuple[Code, ...]:
    """The meanings of a code; a finding and a diagnosis may share a name."""
    found = tuple(one for one in codes() if one.code == code.strip().lower())
    if not found:
        names = sorted({one.code for one in codes()})
        near = difflib.get_close_matches(code, names, n=3) or names
        raise UsageError(f"there is no code {code!r}; try {', '.join(near)}, or gradproof explain for all of them")
    return found
