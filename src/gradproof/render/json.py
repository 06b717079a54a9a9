"""A report as JSON and back: `docs/json-schema.md` describes it, `schema.json` beside this file checks it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources
from os import PathLike
from typing import Any

from gradproof.environment import here
from gradproof.errors import UsageError
from gradproof.render.codec import decode, encode
from gradproof.render.digest import digested
from gradproof.render.writing import put
from gradproof.result import Report, Verdict

FORMAT = "gradproof-report"
# Raised when a reader of the older version would misread the newer one; a new key alone does not raise it.
VERSION = 1


def dumps(report: Report) -> str:
    """The report as one line of strict JSON. Tables are reduced to pictures; everything else comes back whole."""
    return json.dumps(document(report), allow_nan=False, separators=(",", ":"))


def write(report: Report, path: str | PathLike[str]) -> None:
    """The same to a file, in folders that are made where they are missing."""
    put(dumps(report), path)


def document(report: Report) -> dict[str, Any]:
    """The same as plain dicts and lists."""
    head = {"format": FORMAT, "version": VERSION, "verdict": report.verdict.value, "counts": _counts(report)}
    body: dict[str, Any] = encode(digested(report))
    return {**head, **body, "environment": dict(report.environment)}


def loads(text: str) -> Report:
    """The report that `dumps` wrote. It renders as the original does; only the full tables are gone."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"this is not JSON ({error}); pass a file that gradproof wrote with --json") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UsageError(f'this is JSON, but no gradproof report: it has no "format": "{FORMAT}"')
    version = data.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise UsageError(f'the report is damaged: its version must be a number, "version": {VERSION}, not {version!r}')
    if not 1 <= version <= VERSION:
        raise UsageError(f"the report has version {version!r}, and this gradproof reads up to {VERSION}; upgrade it")
    environment = data.get("environment")
    pairs = [[name, value] for name, value in environment.items()] if isinstance(environment, dict) else environment
    report: Report = decode(Report, {**data, "environment": pairs})
    return report


def merged(texts: Iterable[str], source: str) -> Report:
    """One report of many. Where they were obtained is told by the first: this process may have loaded nothing."""
    stored = [loads(text) for text in texts]
    results = tuple(result for one in stored for result in one.results)
    return Report(results, stored[0].environment if stored else here(), source)


def schema() -> dict[str, Any]:
    """The JSON schema of this version."""
    text = (resources.files("gradproof.render") / "schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _counts(report: Report) -> dict[str, int]:
    """How many results have each verdict: what a script asks first."""
    return {verdict.value: sum(result.verdict is verdict for result in report.results) for verdict in Verdict}
