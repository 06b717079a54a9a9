"""The options that several commands have, each written once."""

from __future__ import annotations

from pathlib import Path

import click

FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
SECONDS = click.FloatRange(0, min_open=True)
GIB = click.FloatRange(0)
MOST_SECONDS = "Most processor seconds for one case (five times as many by the clock)."

EFFORT = click.option("--effort", metavar="HOW", help="auto, exhaustive, or a number of probes.")
MODES = click.option("--modes", metavar="MODES", help="reverse, forward, or reverse,forward. Default: all that exist.")
TOLERANCE = click.option("--tolerance", metavar="T", help="Accepted relative deviation. Default: from the dtype.")
SEED = click.option(
    "--seed", default="0", metavar="N", show_default=True, help="Of random numbers; random for a fresh one."
)
JSON = click.option("--json", type=FILE, help="Write the report as JSON (for show, replay and scripts).")
JUNIT = click.option("--junit", type=FILE, help="Write the report as JUnit XML, for CI systems.")
