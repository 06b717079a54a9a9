"""The HTML report in a real browser: loads clean, sorts, filters, hovers, dark and light, keyboard, nothing runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import samples
from playwright.sync_api import expect
from test_page import EVIL, evil

from gradproof.render.html import write
from gradproof.result import Report

# A busy machine may take its time; no test waits for what does not come.
expect.set_options(timeout=30_000)

NAMES = ["sine", "exponential", "large", "noisy", "linear", "absolute"]  # the loudest verdict first


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("html") / "report.html"
    write(samples.report(), path)
    return path


def names(page: Any) -> list[str]:
    """Of those that are shown; what has just been moved is laid out with the next frame only."""
    return list(page.locator("#programs > tbody:not([hidden]) .opener").all_text_contents())


def program(page: Any, name: str) -> Any:
    return page.locator("tbody", has=page.get_by_role("button", name=name, exact=True))


def open_program(page: Any, name: str) -> Any:
    found = program(page, name)
    found.locator(".opener").click()
    return found


def draw_all(page: Any, found: Any) -> None:
    """Bring every figure into view and wait for its plot."""
    for figure in found.locator("figure").all():
        figure.scroll_into_view_if_needed()
        expect(figure.locator(".main-svg").first).to_be_visible()


def contrast(page: Any, selector: str) -> float:
    """The least contrast between text and background among these elements (WCAG's formula)."""
    return page.evaluate(
        """(selector) => {
            const light = (text) => {
                const parts = text.match(/[\\d.]+/g).slice(0, 3).map((one) => Number(one) / 255);
                const [r, g, b] = parts.map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const behind = (element) => {
                for (let one = element; one; one = one.parentElement) {
                    const colour = getComputedStyle(one).backgroundColor;
                    if (!/, 0\\)$|transparent/.test(colour)) return colour;
                }
                return "rgb(255, 255, 255)";
            };
            const found = [...document.querySelectorAll(selector)].filter((one) => one.getClientRects().length);
            return Math.min(...found.map((one) => {
                const pair = [light(getComputedStyle(one).color), light(behind(one))].sort((a, b) => b - a);
                return (pair[0] + 0.05) / (pair[1] + 0.05);
            }));
        }""",
        selector,
    )


def test_loads_and_draws_everything_without_an_error_or_a_request(report: Path, opened: Callable[..., Any]) -> None:
    watched = opened(report)
    expect(watched.page).to_have_title("gradproof: 3 of 6 programs are wrong, 1 cannot be told")
    assert names(watched.page) == NAMES
    for name in NAMES:
        draw_all(watched.page, open_program(watched.page, name))
    assert watched.page.locator("figure .main-svg").count() > len(NAMES)
    assert (watched.errors, watched.outside) == ([], [])


def test_plotly_waits_until_a_plot_is_wanted(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report).page
    assert page.evaluate("typeof window.Plotly") == "undefined"
    draw_all(page, open_program(page, "sine"))
    assert page.evaluate("typeof window.Plotly") == "object"


def test_shows_the_numbers_without_a_plot(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report).page
    found = open_program(page, "sine")
    expect(found.locator(".finding.wrong").first).to_contain_text("is 2 times what it should be")
    row = found.locator(".entries tbody tr").first
    expect(row).to_contain_text("d y0[0] / d x0[0]")
    expect(row).to_contain_text(re.compile(r"1\.91067.*0\.95534 ± .*100,000 tolerances"))
    expect(found.locator(".facts")).to_contain_text("cases.py::sine")
    expect(found.locator(".facts")).to_contain_text("seed=1")
    expect(page.locator(".about")).to_contain_text("numpy")


def test_sorts_by_every_column_and_says_so(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report).page
    head = page.get_by_role("columnheader", name="Program")
    button = head.get_by_role("button")
    button.click()
    assert names(page) == sorted(NAMES)
    assert head.get_attribute("aria-sort") == "ascending"
    button.click()
    assert names(page) == sorted(NAMES, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    page.get_by_role("columnheader", name="Deviation").get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "none"
    excess = [
        float(one)
        for one in page.locator("#programs > tbody").evaluate_all("(all) => all.map((one) => one.dataset.excess)")
    ]
    assert excess[0] == float("inf")
    assert excess == sorted(excess, reverse=True)
    page.get_by_role("columnheader", name="Verdict").get_by_role("button").click()
    ranks = page.locator("#programs > tbody").evaluate_all("(all) => all.map((one) => Number(one.dataset.rank))")
    assert ranks == sorted(ranks)


def test_filters_by_verdict_finding_and_text(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report).page
    shown = page.locator("#shown")
    expect(shown).to_have_text("6 shown")
    wrong = page.get_by_role("button", name=re.compile("wrong"))
    wrong.click()
    assert wrong.get_attribute("aria-pressed") == "true"
    assert names(page) == ["sine", "exponential", "large"]
    expect(program(page, "linear")).to_be_hidden()
    expect(shown).to_have_text("3 of 6 shown")
    page.get_by_role("combobox", name="Finding").select_option("nan-gradient")
    assert names(page) == ["exponential"]
    page.get_by_label("Text").fill("no such program")
    expect(page.locator("#none")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    assert names(page) == NAMES
    page.get_by_label("Text").fill("x0[1234]")
    expect(shown).to_have_text("1 of 6 shown")
    assert names(page) == ["large"]


def test_hovering_over_a_heat_map_shows_index_both_values_and_tolerances(
    report: Path, opened: Callable[..., Any]
) -> None:
    page = opened(report).page
    found = open_program(page, "sine")
    draw_all(page, found)
    plot = found.locator(".plot.heat")
    plot.scroll_into_view_if_needed()
    area = plot.locator(".nsewdrag").bounding_box()
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] / 2)
    hover = plot.locator(".hoverlayer")
    expect(hover).to_contain_text("d y0[1] / d x0[1]")
    expect(hover).to_contain_text("analytic 1.24322")
    expect(hover).to_contain_text(re.compile(r"numeric 0\.62161 ± .*100,000 tolerances \(of 6\.22e−6\)"))


def test_another_block_is_drawn_when_it_is_chosen(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report).page
    found = open_program(page, "absolute")
    draw_all(page, found)
    choice = found.locator("select.block")
    assert choice.locator("option").count() == 2
    choice.select_option("1")
    expect(choice).to_have_value("1")
    expect(found.locator("figure .says").first).to_contain_text("2 × 2 entries; none beyond the tolerance")


def test_traces_say_in_words_what_they_show(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report).page
    wrong, right, kink = (open_program(page, name) for name in ("sine", "linear", "absolute"))
    expect(wrong.locator("figure:has(.taylor)")).to_contain_text(re.compile("power 1.0 .*a wrong derivative"))
    expect(wrong.locator("figure:has(.ladder)")).to_contain_text("away from the analytic one")
    expect(right.locator("figure:has(.ladder)")).to_contain_text("come within")
    expect(kink.locator("figure:has(.ladder)")).to_contain_text("A kink lies at the point itself")
    expect(kink.locator(".ladder")).to_have_attribute("aria-label", re.compile("Error against step, d y0"))
    draw_all(page, kink)
    expect(kink.locator(".ladder")).to_contain_text("kink at the point")


def test_works_by_keyboard_alone(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report).page
    opener = page.get_by_role("button", name="sine", exact=True)
    opener.focus()
    page.keyboard.press("Enter")
    assert opener.get_attribute("aria-expanded") == "true"
    outline = opener.evaluate("(one) => getComputedStyle(one).outlineStyle")
    assert outline == "solid"
    plot = program(page, "sine").locator(".plot.heat")
    expect(plot.locator(".main-svg").first).to_be_visible()
    plot.focus()
    says = program(page, "sine").locator("figure .says").first
    page.keyboard.press("ArrowRight")
    expect(says).to_contain_text("d y0[0] / d x0[0]: analytic 1.91067")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(says).to_contain_text("d y0[1] / d x0[1]: analytic 1.24322")
    expect(plot.locator(".hoverlayer")).to_contain_text("d y0[1] / d x0[1]")
    opener.focus()
    page.keyboard.press("Space")
    assert opener.get_attribute("aria-expanded") == "false"
    page.get_by_role("columnheader", name="Program").get_by_role("button").press("Enter")
    assert names(page) == sorted(NAMES)


def test_what_a_screen_reader_meets(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report).page
    found = open_program(page, "sine")
    draw_all(page, found)
    assert page.get_by_role("table", name="Programs").count() == 1
    assert page.get_by_role("columnheader").count() >= 6
    assert page.get_by_role("rowheader", name="sine").count() == 1
    assert page.get_by_role("heading", level=1).inner_text().startswith("3 of 6")
    expect(found.locator(".plot.heat")).to_have_attribute("aria-label", re.compile("Heat map: 3 × 3 entries; 3 beyond"))
    unnamed = page.evaluate(
        "() => [...document.querySelectorAll('button, select, input')].filter((one) => "
        "!one.textContent.trim() && !one.labels?.length && !one.ariaLabel).length"
    )
    assert unnamed == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_follow_the_system_and_are_readable(
    scheme: str, report: Path, opened: Callable[..., Any]
) -> None:
    page = opened(report, color_scheme=scheme).page
    for name in ("sine", "noisy", "linear"):
        open_program(page, name)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) < 200) == (scheme == "dark")
    for selector in (
        ".badge",
        ".verdict",
        ".finding p",
        ".what",
        ".label",
        ".chip",
        "h1",
        "td",
        "dt",
        ".says",
        "summary",
    ):
        assert contrast(page, selector) >= 4.5, selector


def test_the_theme_can_be_chosen_and_the_plots_follow(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report, color_scheme="light").page
    found = open_program(page, "sine")
    draw_all(page, found)
    tick = found.locator(".plot.heat .xtick text").first
    before = tick.evaluate("(one) => getComputedStyle(one).fill")
    button = page.get_by_role("button", name="Theme")
    button.click()
    button.click()
    expect(button).to_have_text("Theme: dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", dark))) < 200
    expect(tick).not_to_have_css("fill", before)
    page.reload()
    expect(page.get_by_role("button", name="Theme")).to_have_text("Theme: dark")


def test_nothing_in_a_report_can_run(tmp_path: Path, opened: Callable[..., Any]) -> None:
    write(evil(), tmp_path / "evil.html")
    watched = opened(tmp_path / "evil.html")
    page = watched.page
    first = page.locator("tbody").first
    first.locator(".opener").click()
    draw_all(page, first)
    plot = first.locator(".plot.heat")
    area = plot.locator(".nsewdrag").bounding_box()
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] / 2)
    expect(plot.locator(".hoverlayer")).to_contain_text("</script>")
    assert first.locator(".opener").inner_text() == EVIL
    assert page.evaluate("window.hacked") is None
    assert page.locator("#programs img, #programs script, .about img").count() == 0
    assert (watched.errors, watched.outside) == ([], [])


def test_the_policy_stops_what_slips_through(report: Path, opened: Callable[..., Any]) -> None:
    """If a name ever became markup, the browser itself would refuse to run it, or to call home."""
    page = opened(report).page
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.hacked = 1";
            const image = document.createElement("img");
            image.setAttribute("onerror", "window.hacked = 2");
            image.src = "https://example.invalid/x.png";
            document.body.append(script, image);
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None


def test_a_narrow_screen_scrolls_down_only(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report, viewport={"width": 360, "height": 740}).page
    for name in NAMES:
        draw_all(page, open_program(page, name))
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360
    assert program(page, "sine").locator(".plot.heat .main-svg").first.bounding_box()["width"] <= 360


def test_nothing_is_cut_off_on_a_narrow_screen(report: Path, opened: Callable[..., Any]) -> None:
    """What has no room side by side stands in lines, each with the name of its column."""
    page = opened(report, viewport={"width": 360, "height": 740}).page
    found = open_program(page, "sine")
    found.locator("summary").click()
    wide = page.evaluate(
        """() => [...document.querySelectorAll("#programs td, #programs th, .scroll")]
            .filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 1).length"""
    )
    assert wide == 0
    numeric = found.locator(".entries td[data-label=Numeric]").first
    assert numeric.evaluate("(one) => getComputedStyle(one, '::before').content") == '"Numeric "'
    expect(found.locator("tr.row td[data-label=Calls]")).to_be_visible()
    page.get_by_role("columnheader", name="Seconds").get_by_role("button").click()
    assert page.get_by_role("columnheader", name="Seconds").get_attribute("aria-sort") == "descending"


def test_thousands_of_programs_are_sorted_at_once(tmp_path: Path, opened: Callable[..., Any]) -> None:
    """Only what is on the screen is laid out anew."""
    plain = samples.right()
    write(Report(tuple(replace(plain, name=f"one {k * 7919 % 5000:04}") for k in range(5000))), tmp_path / "many.html")
    page = opened(tmp_path / "many.html").page
    page.locator("button[data-key=name]").click()
    assert names(page)[0] == "one 0000"
    assert page.locator(".opener").last.evaluate("(one) => one.checkVisibility({contentVisibilityAuto: true})") is False
    seconds = page.evaluate(
        """() => {
            const start = performance.now();
            document.querySelector("button[data-key=name]").click();
            document.body.offsetHeight;
            return (performance.now() - start) / 1000;
        }"""
    )
    assert names(page)[0] == "one 4999"
    assert seconds < 2  # 0.2 s; a table that is laid out as a whole takes 3 s


def test_a_dark_page_is_printed_in_dark_ink(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report, color_scheme="dark").page
    for name in ("noisy", "linear"):
        open_program(page, name)
    found = open_program(page, "sine")
    draw_all(page, found)
    tick = found.locator(".plot.heat .xtick text").first
    before = tick.evaluate("(one) => getComputedStyle(one).fill")
    page.emulate_media(media="print")
    expect(tick).not_to_have_css("fill", before)
    for selector in (".badge", ".finding p", ".what", "h1", "td", "dt"):
        assert contrast(page, selector) >= 4.5, selector
    page.get_by_text("Theme").evaluate("() => { document.documentElement.dataset.theme = 'dark' }")
    assert contrast(page, "td") >= 4.5


def test_a_link_opens_its_program(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report).page
    page.goto(f"{report.as_uri()}#p1")
    page.reload()
    expect(program(page, "sine").locator(".entries")).to_be_visible()
    expect(program(page, "linear").locator("tr.more")).to_be_hidden()


def test_a_command_is_copied(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report, permissions=["clipboard-read", "clipboard-write"]).page
    found = open_program(page, "sine")
    found.get_by_role("button", name="Copy").click()
    expect(found.locator(".copy")).to_have_text(re.compile("Copied|Selected"))
    copied = page.evaluate("async () => getSelection().toString() || await navigator.clipboard.readText()")
    assert copied == "cases.py::sine"


def test_readable_without_scripts(report: Path, opened: Callable[..., Any]) -> None:
    page = opened(report, java_script_enabled=False).page
    expect(page.get_by_text("is 2 times what it should be").first).to_be_visible()
    expect(page.locator(".entries").first).to_be_visible()
