"""Check every example and write one page about them: `python examples/report.py report.html`."""

from __future__ import annotations

import sys

from demo import EXAMPLES

import gradproof


def main(path: str) -> None:
    results = [
        gradproof.check(one.function, one.arguments, order=one.order, seed=0, detail="plots") for one in EXAMPLES
    ]
    gradproof.Report(tuple(results), source=f"python examples/report.py {path}").to_html(path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "report.html")
