"""The examples of `gradproof explain`: run, cut to what matters, and written below their code.

`python -m tests.codes [CODE...]` does it for all codes or some, and writes docs/findings.md from them.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from itertools import takewhile
from pathlib import Path

from gradproof.codes import Code, Kind, codes
from gradproof.errors import GradcheckError

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "src" / "gradproof" / "codes"
PAGE = ROOT / "docs" / "findings.md"
# Lines of a result that say nothing about the finding, and differ between machines.
BESIDE = re.compile(r"  (power|checked|cost|replay|skipped) ")
# For tests/docs, which runs the code of pages.
ELSEWHERE = "<!-- not run: tests/cli/test_codes.py runs it -->"
HEAD = """\
# Findings and diagnoses

A **finding** is what a check saw, a **diagnosis** is what kind of mistake explains it. `gradproof explain CODE` prints
each of the following; results have them as `finding.code` and `finding.diagnosis.code`. The output is that of the code
above it, less the lines `power`, `checked`, `cost` and `replay`.

<!-- written by `python -m tests.codes` from src/gradproof/codes -->
"""


def ran(example: str) -> str:
    """What the example prints, or the message that ends it."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(example, "example.py", "exec"), {"__name__": "example"})
        except GradcheckError as raised:
            print(f"GradcheckError: {raised}")  # noqa: T201
    return printed.getvalue()


def cut(output: str) -> str:
    """Without the lines beside the point; remarks matter only where they are all there is."""
    lines = [line.rstrip() for line in output.splitlines() if not BESIDE.match(line)]
    if not output.startswith("RIGHT"):
        lines = list(takewhile(lambda line: not line.startswith("  remark "), lines))  # what comes next is about them
    return "\n".join(lines).strip() + "\n"


def written(code: Code) -> str:
    """The text of the file with the output as it is now."""
    text = re.sub(r"\n```text\n.*?^```\n", "", code.text, flags=re.DOTALL | re.MULTILINE).rstrip()
    return f"{text}\n\n```text\n{cut(ran(code.example))}```\n" if code.example else text + "\n"


def page() -> str:
    """docs/findings.md."""
    parts = [HEAD]
    for kind in Kind:
        listed = [code for code in codes() if code.kind is kind]
        parts.append(f"## {kind.plural.capitalize()}\n")
        rows = [f"| [`{code.code}`](#{anchor(code)}) | {code.meaning} |" for code in listed]
        parts.append("\n".join(["| code | meaning |", "|---|---|", *rows, ""]))
        for code in listed:
            body = code.text.partition("\n\n")[2].strip().replace("```python", f"{ELSEWHERE}\n```python")
            parts.append(f'<a id="{anchor(code)}"></a>\n\n### {code.code}\n\n{body}\n')
    return "\n".join(parts)


def anchor(code: Code) -> str:
    return f"{code.kind.value}-{code.code}"


def main(names: list[str]) -> None:
    for code in codes():
        if not names or code.code in names:
            (FOLDER / code.kind.plural / f"{code.code}.md").write_text(written(code), "utf-8")
    codes.cache_clear()
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
