"""The HTML report of a thousand programs: its size, the time to make it, and the time in which a browser opens it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import torch

import gradproof
from bench.table import Claim, Part, Size, Table, number
from gradproof.render.html import page

COUNT = {"full": 1000, "quick": 200}
# Checked once each and repeated under other names: the page does not know.
DISTINCT = 25
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MEGABYTES, SECONDS = 15.0, 3.0
# When the page stands, and its filters and rows answer.
READY = "() => performance.getEntriesByType('navigation')[0].loadEventEnd"


def run(size: Size, say: Callable[[str], None]) -> Part:
    count = COUNT[size]
    say(f"checking {DISTINCT} layers")
    layers = [_layer(seed) for seed in range(DISTINCT)]
    named = (layers[k % DISTINCT] for k in range(count))
    report = gradproof.Report(tuple(replace(one, name=f"{one.name}[{k}]") for k, one in enumerate(named)))
    say(f"writing a page of {count} programs")
    started = time.perf_counter()
    text = page(report)
    made = time.perf_counter() - started
    megabytes = len(text.encode()) / 1e6
    table = Table("HTML report", ("programs", "MB", "s to make", "s to open"))
    fits = megabytes < MEGABYTES
    small = Claim(f"HTML report of {count:,} programs", f"< {MEGABYTES:g} MB", f"{megabytes:.1f} MB", fits)
    browser = os.environ.get("GRADPROOF_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None or find_spec("playwright") is None:
        table.note = "no browser was found"
        table.add(count, number(megabytes), number(made), "")
        return Part([table], [small])
    say("opening it")
    opened = _opened(text, browser)
    table.add(count, number(megabytes), number(made), number(opened))
    return Part([table], [small, Claim("... opens in", f"< {SECONDS:g} s", f"{opened:.2f} s", opened < SECONDS)])


def _layer(seed: int) -> gradproof.Result:
    """A small dense layer with its parameters; every fifth has a gradient that is 1 % too large."""
    torch.manual_seed(seed)
    sizes = torch.randint(2, 12, (3,)).tolist()
    weight, bias = torch.randn(sizes[2], sizes[1], dtype=torch.float64), torch.randn(sizes[2], dtype=torch.float64)
    factor = 1.01 if seed % 5 == 0 else 1.0

    def layer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        off = factor * weight - (factor - 1.0) * weight.detach()
        return torch.tanh(torch.nn.functional.linear(x, off, bias))

    x = torch.randn(sizes[0], sizes[1], dtype=torch.float64)
    return gradproof.check(layer, (x, weight, bias), seed=seed, detail="plots")


def _opened(text: str, browser: str) -> float:
    """Seconds until the page stands; the median of five, each in a fresh context."""
    from playwright.sync_api import sync_playwright

    times = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = Path(folder) / "report.html"
        file.write_text(text, encoding="utf-8")
        started = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for _ in range(5):
            context = started.new_context()
            tab = context.new_page()
            tab.goto(file.as_uri())
            times.append(float(tab.evaluate(READY)) / 1e3)
            context.close()
        started.close()
    return median(times)
