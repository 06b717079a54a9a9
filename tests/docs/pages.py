"""Runs the code of a documentation page and compares what it prints with what the page shows.

In a page, in order, sharing one namespace and one empty working directory:

- a `python` block runs; with `title="name.py"` it is written to that file instead;
- a `text` block right after a `python` block is what that printed;
- a `console` block holds commands (`$ ...`) and what they print (a last line `(status 1)` if they fail);
- `<!-- not run: why -->` before a block leaves it out.

`...` in an expected line stands for anything. `python -m tests.docs.pages docs/tutorial.md` writes what is printed now
into the page; read the difference before you keep it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^(?P<skip><!-- not run: [^\n]* -->\n)?(?P<indent>[ ]*)```(?P<info>[^\n]*)\n(?P<body>(?:[^\n]*\n)*?)[ ]*```[ ]*$",
    re.MULTILINE,
)
# What another machine changes: times, the last digits of small numbers, paths and versions.
UNSETTLED = (
    # Of a sweep: what is printed meanwhile, its time, and the columns digits, calls and seconds of its table.
    (re.compile(r"(?m)^\d+:\d\d  [\d,]+ of .*\n"), ""),
    (re.compile(r"\bin \d+:\d\d\b"), "in ..."),
    (re.compile(r"(?m)(?: │ +[\d,.]*){3} │$"), "..."),
    (re.compile(r"(?m)^( *cost ).*$"), r"\1..."),
    (re.compile(r"\b\d+(\.\d+)? ?s\b"), "... s"),
    (re.compile(r"\b\d(\.\d+)?(e[-+]\d\d)\b"), r"...\2"),
)


@dataclasses.dataclass(frozen=True)
class Shown:
    """Something that a page shows as printed, and what is printed now. `start` and `stop` are where it stands."""

    line: int
    start: int
    stop: int
    expected: str
    printed: str

    @property
    def holds(self) -> bool:
        return _pattern(self.expected).fullmatch(_settled(self.printed)) is not None


# Examples without the call, which its own test makes: tests/torch/contracts/test_docs.py.
ELSEWHERE = ROOT / "docs" / "contracts.md"


def pages() -> list[Path]:
    return [*sorted(set((ROOT / "docs").rglob("*.md")) - {ELSEWHERE}), ROOT / "README.md"]


def run(page: Path) -> list[Shown]:
    text = page.read_text()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        path = sys.path.copy()
        try:
            sys.path.insert(0, folder)
            return list(_shown(text, page))
        finally:
            sys.path[:] = path


def _shown(text: str, page: Path) -> Iterator[Shown]:
    space: dict[str, object] = {"__name__": "__main__"}
    printed: str | None = None
    for match in BLOCK.finditer(text):
        body, info = _dedent(match["body"], match["indent"]), match["info"].strip()
        line = text.count("\n", 0, match.start()) + 1
        if match["skip"]:
            printed = None
        elif info.startswith("python") and (title := re.search(r'title="([^"]+)"', info)):
            Path(title[1]).write_text(body + "\n")
            printed = None
        elif info == "python":
            printed = _executed(body, space, f"{page.name}:{line}")
        elif info.startswith("text") and printed is not None:
            yield Shown(line, match.start("body"), match.end("body"), body, printed.strip("\n"))
            printed = None
        elif info == "console":
            yield Shown(line, match.start("body"), match.end("body"), body, "\n".join(_commands(body)))
        else:
            printed = None


def _executed(body: str, space: dict[str, object], name: str) -> str:
    # Through a file, so that tracebacks and inspect find the lines.
    file = Path(f"block_{len(list(Path().glob('block_*.py')))}.py").absolute()
    file.write_text(body + "\n")
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            exec(compile(body, str(file), "exec"), space)
    except BaseException as error:
        error.add_note(f"in the block at {name}")
        raise
    return output.getvalue()


def _commands(body: str) -> Iterator[str]:
    """The commands of a block, each with what it prints."""
    environment = {
        # pytest shortens its summary only where nobody but a person reads it.
        **{name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")},
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "COLUMNS": "110",
        "TERM": "dumb",
    }
    for command in [line[2:] for line in body.splitlines() if line.startswith("$ ")]:
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, env=environment, check=False, timeout=240
        )
        yield f"$ {command}"
        yield from [line.rstrip() for line in (done.stdout + done.stderr).strip("\n").splitlines()]
        if done.returncode:
            yield f"(status {done.returncode})"


def _dedent(body: str, indent: str) -> str:
    return "\n".join(line.removeprefix(indent) for line in body.splitlines())


def _settled(text: str) -> str:
    for pattern, replacement in UNSETTLED:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def _pattern(expected: str) -> re.Pattern[str]:
    """A line of only `...` stands for any number of lines, elsewhere `...` stays within its line."""
    lines = [".*(?:\n.*)*?" if line.strip() == "..." else _line(line) for line in _settled(expected).splitlines()]
    return re.compile("\n".join(lines))


def _line(line: str) -> str:
    return "[^\n]*".join(re.escape(part) for part in line.split("..."))


def rewrite(page: Path) -> int:
    """Put what is printed now into the page where it differs; the number of places changed."""
    text = page.read_text()
    stale = [shown for shown in run(page) if not shown.holds]
    for shown in reversed(stale):
        text = text[: shown.start] + shown.printed + "\n" + text[shown.stop :]
    page.write_text(text)
    return len(stale)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {rewrite(Path(name).absolute())} places rewritten")  # noqa: T201
