"""A real browser for the tests of the HTML report, and the sample results of tests/render."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(TESTS / "render"), str(TESTS / "core")]

pytest.importorskip("plotly", reason="the HTML report needs plotly: pip install 'gradproof[html]'")
playwright = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser_path() -> str | None:
    """The browser that GRADPROOF_BROWSER names, or the first that is found."""
    named = os.environ.get("GRADPROOF_BROWSER")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    path = browser_path()
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on PATH; name one in GRADPROOF_BROWSER")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


class Watched:
    """A page, and all that went wrong on it."""

    def __init__(self, page: object) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: message.type in ("error", "warning") and self.errors.append(message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    @property
    def outside(self) -> list[str]:
        """Requests that left the file."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]


@pytest.fixture
def opened(browser: object) -> Iterator[Callable[..., Watched]]:
    """Open a file; options are those of a browser context, such as color_scheme and viewport."""
    contexts = []

    def open_file(path: Path, **options: object) -> Watched:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        watched = Watched(context.new_page())
        watched.page.goto(path.as_uri())
        return watched

    yield open_file
    for context in contexts:
        context.close()
