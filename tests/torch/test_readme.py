"""The README shows the example as it is in examples/readme.py, and the output that it really has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def block(marker: str) -> str:
    """The fenced block that follows `<!-- marker -->` in the README."""
    found = re.search(rf"<!-- {re.escape(marker)} -->\n```\w*\n(.*?)\n```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found, f"README.md has no block after <!-- {marker} -->"
    return found[1]


def settled(output: str) -> str:
    """The output without what another machine's speed and rounding change: the cost, and the digits of error bars."""
    output = re.sub(r"(?m)^  cost .*$", "  cost", output)
    return re.sub(r"\b\d\.\d(e[-+]\d\d)\b", r"*\1", output)


def test_the_example_is_the_file() -> None:
    assert block("code: examples/readme.py") == (ROOT / "examples" / "readme.py").read_text().strip()


def test_the_output_is_real() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "readme.py")], capture_output=True, text=True, check=True
    )
    assert settled(done.stdout.strip()) == settled(block("output: examples/readme.py"))


def test_settling_keeps_what_matters() -> None:
    line = "analytic 0.123456, numeric 0.234567 ± 1.2e-11\n  cost      3 pulls in 0.02 s\n  replay    seed=1"
    assert settled(line) == "analytic 0.123456, numeric 0.234567 ± *e-11\n  cost\n  replay    seed=1"
