"""A report into the files that were asked for, in each of its forms."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from gradproof.errors import UsageError
from gradproof.render import json, junit
from gradproof.result import Report


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
                raise UsageError(f"{path} is a folder; name a file in it, such as {path / 'report'}")
            if path is not None:
                _try(path)
        if self.html is not None and find_spec("plotly") is None:
            raise UsageError(f"{self.html} is drawn with plotly, which is not installed; pip install 'gradproof[html]'")

    def write(self, report: Report) -> tuple[Path, ...]:
        """All that were asked for; which they were. One that fails does not keep the others from being written."""
        forms = ((self.json, json.dumps), (self.junit, junit.dumps), (self.html, _page))
        written: list[Path] = []
        refused: list[OSError] = []
        for path, rendered in forms:
            if path is not None:
                try:
                    path.write_text(rendered(report), "utf-8")
                    written.append(path)
                except OSError as raised:
                    refused.append(raised)
        if refused:
            others = f"; wrote {', '.join(map(str, written))}" if written else ""
            raise UsageError(f"the report cannot be written: {refused[0]}{others}") from refused[0]
        return tuple(written)


def _page(report: Report) -> str:
    from gradproof.render.html import page

    return page(report)


def _try(path: Path) -> None:
    """Open it for writing, and leave it as it was."""
    existed = path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
        if not existed:
            path.unlink()
    except OSError as raised:
        reason = f"{path} cannot be written: {raised.strerror}"
        raise UsageError(f"{reason}; give a file in a folder that can be written, such as {path.name}") from raised
