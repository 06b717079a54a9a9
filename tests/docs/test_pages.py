"""Every page's code runs, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import pages


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: str(page.relative_to(pages.ROOT)))
def test_a_page_shows_what_its_code_prints(page: Path) -> None:
    for shown in pages.run(page):
        assert shown.holds, f"{page.name}, line {shown.line}, prints\n{shown.printed}\ninstead of\n{shown.expected}"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.md"


def test_a_page_that_shows_something_else_is_told(page: Path) -> None:
    page.write_text("```python\nx = 2\n```\n\n```python\nprint(x + 1)\n```\n\n```text\n4\n```\n")
    (shown,) = pages.run(page)
    assert not shown.holds
    assert (shown.line, shown.printed) == (9, "3")
    assert pages.rewrite(page) == 1
    assert page.read_text().endswith("```text\n3\n```\n")


def test_times_and_dots_stand_for_anything(page: Path) -> None:
    page.write_text("```python\nprint('0.3 s, 1.2e-11, 17 calls')\n```\n```text\n9.9 s, 3.4e-11, ... calls\n```\n")
    (shown,) = pages.run(page)
    assert shown.holds


@pytest.mark.parametrize(("calls", "fresh"), [(17, True), (18, False)])
def test_counts_of_calls_are_brought_up_to_date(page: Path, calls: int, fresh: bool) -> None:
    page.write_text(
        "```python\nprint('  cost      17 evaluations, 0 pulls, 0 pushes in 0.03 s')\n```\n"
        f"```text\n  cost      {calls} evaluations, 0 pulls, 0 pushes in 1.30 s\n```\n"
    )
    (shown,) = pages.run(page)
    assert shown.holds, "another machine may need other calls"
    assert shown.is_fresh == fresh


def test_rewriting_keeps_the_lines_that_hold(page: Path) -> None:
    code = "```python\nprint('0:11  1 of 2 so far\\nin 0.3 s\\n\\nversion 3\\n17 calls in 0.4 s')\n```\n"
    page.write_text(f"{code}```text\nin 9.9 s\n\nversion ...\n18 calls in 9.9 s\n```\n")
    assert pages.rewrite(page) == 1
    assert page.read_text() == f"{code}```text\nin 9.9 s\n\nversion ...\n17 calls in 0.4 s\n```\n"
    assert pages.rewrite(page) == 0


@pytest.mark.parametrize("shown", ["WRONG  f: 17 calls", "RIGHT  f: 17 calls\n(status 1)"])
def test_rewriting_changes_no_verdict_and_no_status(page: Path, shown: str) -> None:
    text = f"```python\nprint('RIGHT  f: 18 calls')\n```\n```text\n{shown}\n```\n"
    page.write_text(text)
    with pytest.raises(pages.LeftAlone, match="line 4 now ends otherwise"):
        pages.rewrite(page)
    assert page.read_text() == text


@pytest.mark.parametrize(
    ("wrong", "calls", "holds", "fresh"),
    [(2, "1,482", True, True), (3, "1,482", False, False), (2, "  482", True, False)],
)
def test_of_a_table_of_a_sweep_the_verdicts_must_hold(
    page: Path, wrong: int, calls: str, holds: bool, fresh: bool
) -> None:
    printed = "0:11  1 of 4 so far\n│ a │ 4 │ 2 │ 7.5 │ 1,482 │ 0.1 │\n4 checks: 2 wrong; 4 of them now, in 0:13"
    shown = f"│ a │ 4 │ {wrong} │ 7.1 │ {calls} │ 0.3 │\n4 checks: 2 wrong; 4 of them now, in 0:02"
    page.write_text(f"```python\nprint({printed!r})\n```\n```text\n{shown}\n```\n")
    (found,) = pages.run(page)
    assert (found.holds, found.is_fresh) == (holds, fresh)


def test_files_and_commands(page: Path) -> None:
    page.write_text(
        '```python title="five.py"\nimport sys\nprint(5)\nsys.exit(1)\n```\n\n```console\n$ python five.py\n5\n'
        "(status 1)\n```\n"
    )
    (shown,) = pages.run(page)
    assert shown.holds, shown


def test_a_block_that_raises_names_its_line(page: Path) -> None:
    page.write_text("words\n\n```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        pages.run(page)
    assert caught.value.__notes__ == ["in the block at page.md:3"]


def test_a_block_may_be_left_out_with_a_reason(page: Path) -> None:
    page.write_text("<!-- not run: needs a GPU -->\n```python\n1 / 0\n```\n")
    assert pages.run(page) == []
