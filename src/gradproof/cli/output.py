"""Reports into files, and verdicts into exit statuses."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from gradproof.errors import UsageError
from gradproof.render import json, junit
from gradproof.result import Report, Verdict

RIGHT, WRONG, USAGE, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130
STATUS = {
    Verdict.RIGHT: RIGHT,
    Verdict.WRONG: WRONG,
    Verdict.ERROR: WRONG,
    Verdict.UNDECIDED: UNDECIDED,
    Verdict.UNSUPPORTED: UNDECIDED,
}


def status(report: Report) -> int:
    """0 right, 1 wrong or an error, 3 undecided."""
    return STATUS[report.verdict]


@dataclass(frozen=True, slots=True)
class Files:
    """Where a report goes to, in each form; None: nowhere."""

    json: Path | None = None
    html: Path | None = None
    junit: Path | None = None

    def prepare(self) -> None:
        """Find out before a long run what would fail after it."""
        for path in (self.json, self.html, self.junit):
            if path is not None and path.is_dir():
                raise UsageError(f"{path} is a folder; write a file in it: {path / 'report'}.json")
            if path is not None:
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                except OSError as raised:
                    raise UsageError(f"{path} cannot be written: {raised}") from raised
        if self.html is not None and find_spec("plotly") is None:
            raise UsageError("--html draws with plotly, which is not installed; pip install 'gradproof[html]'")

    def write(self, report: Report) -> tuple[Path, ...]:
        """All that were asked for; which they were."""
        if self.json is not None:
            self.json.write_text(json.dumps(report), "utf-8")
        if self.junit is not None:
            self.junit.write_text(junit.dumps(report), "utf-8")
        if self.html is not None:
            from gradproof.render.html import page

            self.html.write_text(page(report), "utf-8")
        return tuple(path for path in (self.json, self.junit, self.html) if path is not None)
