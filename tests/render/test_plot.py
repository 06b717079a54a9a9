"""result.plot(): what the axes hold, not how they look."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
import samples

from gradproof.errors import UsageError
from gradproof.render.json import dumps, loads
from gradproof.result import Report, Result, Verdict

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _closed() -> object:
    yield
    pyplot.close("all")


def panels(result: Result) -> list[object]:
    """The axes with a y label of their own, from left to right; colour bars come after all of them."""
    return [one for one in result.plot().axes if one.get_label() != "<colorbar>"]


def test_a_wrong_result_shows_heat_map_ladder_and_remainder() -> None:
    heat, ladder, taylor = panels(samples.scaled())
    shown = heat.images[0].get_array()
    assert shown.shape == (3, 3)
    assert (np.diag(shown) == 4.0).all()
    assert shown[0, 1] == -4.0
    assert heat.get_ylabel() == "entry of y0"
    assert {line.get_label() for line in ladder.lines} >= {"tolerance"}
    assert ladder.get_xscale() == ladder.get_yscale() == "log"
    (remainder,) = [line for line in taylor.lines if line.get_label() == "remainder"]
    assert len(remainder.get_xdata()) == 17
    assert {line.get_label() for line in taylor.lines} >= {"slope 1 (wrong)", "slope 2 (right)"}


def test_a_kink_is_marked() -> None:
    _, ladder, _ = panels(samples.at_a_kink())
    assert [text.get_text() for text in ladder.texts] == ["kink at the point"]
    assert {line.get_label() for line in ladder.lines} >= {"from the right", "from the left", "kink's half-width"}


def test_without_traces_there_is_the_heat_map_alone() -> None:
    assert len(panels(replace(samples.scaled(), traces=()))) == 1


@pytest.mark.parametrize("name", ["linear", "sine", "absolute", "exponential", "noisy", "large"])
def test_every_sample_draws_also_when_it_was_stored(name: str) -> None:
    report = loads(dumps(samples.report()))
    (result,) = [one for one in report.results if one.name == name]
    figure = result.plot()
    figure.canvas.draw()
    assert figure.get_suptitle() == f"{name}: {result.verdict}"


def test_nothing_to_plot() -> None:
    empty = replace(samples.right(), comparisons=(), traces=(), verdict=Verdict.UNSUPPORTED)
    with pytest.raises(UsageError, match="nothing to plot: linear has no comparisons"):
        empty.plot()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(UsageError, match=r'pip install "gradproof\[plot\]"'):
        samples.right().plot()


def test_a_report_writes_itself(tmp_path: object) -> None:
    report = Report((samples.right(),))
    report.to_json(tmp_path / "new" / "report.json")
    assert dumps(loads((tmp_path / "new" / "report.json").read_text())) == dumps(report)
    pytest.importorskip("plotly")
    report.to_html(tmp_path / "newer" / "folder" / "report.html")
    assert "The gradient is right" in (tmp_path / "newer" / "folder" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("slopes", "sides", "said", "labels"),
    [
        (np.nan, np.nan, ["no slope is finite around this point"], set()),
        (np.nan, 3.0, [], {"from the right", "tolerance"}),
        (1.0, 1.0, ["the error is 0 at every step"], set()),
        (3.0, 3.0, [], {"|slope − analytic|", "tolerance"}),
    ],
)
def test_what_is_finite_and_positive_is_drawn(slopes: float, sides: float, said: list[str], labels: set[str]) -> None:
    """As at the border of a domain, and beyond it."""
    trace = samples.scaled().traces[0]
    many = (slopes,) * len(trace.steps)
    right, left = (sides,) * len(many), (np.nan,) * len(many)
    odd = replace(trace, analytic=1.0, slopes=many, right=right, left=left, remainders=(np.inf,) * len(many))
    figure = replace(samples.scaled(), traces=(odd,)).plot()
    figure.canvas.draw()
    ladder = next(one for one in figure.axes if one.get_title() == trace.subject)
    assert [text.get_text() for text in ladder.texts] == said
    shown = ladder.get_legend()
    assert {text.get_text() for text in shown.get_texts()} == labels if shown else not labels
