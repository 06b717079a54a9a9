"""Runs the code of a documentation page and compares what it prints with what the page shows.

In a page, in order, sharing one namespace and one empty working directory:

- a `python` block runs; with `title="name.py"` it is written to that file instead;
- a `text` block right after a `python` block is what that printed;
- a `console` block holds commands (`$ ...`) and what they print (a last line `(status 1)` if they fail);
- `<!-- not run: why -->` before a block leaves it out.

`...` in an expected line stands for anything. Counts of calls, and batches, are those of the machine that a page was
written on: how far a doubt leads depends on the last digits that a processor rounds to.

`python -m tests.docs.pages` writes what is printed now into all pages (or those named: `docs/tutorial.md`). A line that
holds stays as it is, times included. A page on which something raises, or a verdict or an exit status has changed, is
left alone and named: that is for a person to look at. Read the difference before you keep it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
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
# What a sweep prints meanwhile.
PROGRESS = re.compile(r"(?m)^\d+:\d\d  [\d,]+ of .*\n")
# What a rewrite must not change.
OUTCOME = re.compile(r"\b(?:RIGHT|WRONG|UNDECIDED|UNSUPPORTED|ERROR|Traceback|\w*Warning|warnings?)\b|\(status \d+\)")
# What another machine changes: times, the last digits of small numbers, paths and versions.
UNSETTLED = (
    (PROGRESS, ""),
    # Of a sweep: its time, and the columns digits and seconds of its table.
    (re.compile(r"\bin \d+:\d\d\b"), "in ..."),
    (re.compile(r"(?m) │ +[\d.]* │( +[\d,]*) │ +[\d,.]* │$"), r" │... │\1 │..."),
    (re.compile(r"(?m)^(gradproof [\d.]+, python ).*$"), r"\1..."),
    (re.compile(r"\b\d+(\.\d+)? ?s\b"), "... s"),
    (re.compile(r"± [\d.]+e-1\d\b"), "± ..."),  # a bar of no more than rounding
    (re.compile(r"\b\d(\.\d+)?(e[-+]\d\d)\b"), r"...\2"),
)
# What a page shows as it was written, though another machine may count otherwise.
COUNTED = (
    (re.compile(r"(?m)^( *cost ).*$"), r"\1..."),
    (re.compile(r"(?m)(^ *checked .*); values: \w+"), r"\1"),
    (re.compile(r"(?m) │\.\.\. │ +[\d,]* │\.\.\.$"), " │... │... │..."),
)


@dataclasses.dataclass(frozen=True)
class Shown:
    """Something that a page shows as printed, and what is printed now. `match` is the block in the page."""

    line: int
    match: re.Match[str]
    expected: str
    printed: str

    @property
    def holds(self) -> bool:
        return _matches(_counted(self.expected), _counted(self.printed))

    @property
    def is_fresh(self) -> bool:
        """It holds, and so do the counts of calls."""
        return _matches(_settled(self.expected), _settled(self.printed))

    @property
    def refreshed(self) -> str:
        """The block as it is printed now; of what holds in it, as it was shown."""
        if self.is_fresh:
            return self.match["body"]
        shown, now = self.expected.splitlines(), PROGRESS.sub("", self.printed).splitlines()
        wild = [(line, re.compile(_line(_settled(line)))) for line in shown if "..." in line and line.strip() != "..."]
        same = [next((line for line, pattern in wild if pattern.fullmatch(_settled(one))), one) for one in now]
        runs = difflib.SequenceMatcher(None, [_settled(one) for one in shown], [_settled(one) for one in same], False)
        for run in reversed(runs.get_matching_blocks()):
            now[run.b : run.b + run.size] = shown[run.a : run.a + run.size]
        return "".join(f"{self.match['indent']}{line}".rstrip() + "\n" for line in now)


class LeftAlone(Exception):
    """Why a page is not rewritten."""


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
            yield Shown(line, match, body, printed.strip("\n"))
            printed = None
        elif info == "console":
            yield Shown(line, match, body, "\n".join(_commands(body)))
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


def _counted(text: str) -> str:
    text = _settled(text)
    for pattern, replacement in COUNTED:
        text = pattern.sub(replacement, text)
    return text


def _matches(expected: str, printed: str) -> bool:
    """A line of only `...` stands for any number of lines, elsewhere `...` stays within its line."""
    lines = [".*(?:\n.*)*?" if line.strip() == "..." else _line(line) for line in expected.splitlines()]
    return re.fullmatch("\n".join(lines), printed) is not None


def _line(line: str) -> str:
    return "[^\n]*".join(re.escape(part) for part in line.split("..."))


def rewrite(page: Path) -> int:
    """Put what is printed now into the page where it differs; the number of blocks changed."""
    text = before = page.read_text()
    stale = [shown for shown in run(page) if not shown.is_fresh]
    for shown in reversed(stale):
        if OUTCOME.findall(shown.expected) != OUTCOME.findall(shown.printed):
            raise LeftAlone(f"line {shown.line} now ends otherwise:\n{shown.printed}")
        text = text[: shown.match.start("body")] + shown.refreshed + text[shown.match.end("body") :]
    if page.read_text() != before:
        raise LeftAlone("has been edited while its code ran; run this again")
    page.write_text(text)
    return len(stale)


if __name__ == "__main__":
    left = 0
    for page in [Path(name).absolute() for name in sys.argv[1:]] or pages():
        try:
            print(f"{page.name}: {rewrite(page)} blocks rewritten", flush=True)  # noqa: T201
        except Exception as why:  # noqa: BLE001 - whatever the code of a page raises
            left += 1
            print(f"{page.name}: NOT rewritten. {type(why).__name__}: {why}", *getattr(why, "__notes__", ()))  # noqa: T201
    sys.exit(left > 0)
