"""The page as text: escaped by construction, the same from a stored report, and small."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import samples
from programs import HandProgram

import gradproof
from gradproof.render.html import page, write
from gradproof.render.html.markup import Markup, joined, tag, text_of
from gradproof.render.html.overview import headline
from gradproof.render.json import dumps, loads
from gradproof.result import Finding, Place, Report, Result, Verdict

EVIL = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\"'&"


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "<b> & </b>", tag("i", "x")) == "<p>&lt;b&gt; &amp; &lt;/b&gt;<i>x</i></p>"
    assert tag("a", title='"><script>') == '<a title="&quot;&gt;&lt;script&gt;"></a>'
    assert tag("td", None, ["a", ["b"]], class_="x", data_key="k", hidden="", id=None) == (
        '<td class="x" data-key="k" hidden>ab</td>'
    )
    assert isinstance(joined("x"), Markup)


def test_json_in_a_page_cannot_end_its_element() -> None:
    assert text_of({"a": "</script><!--&"}) == '{"a":"\\u003c/script\\u003e\\u003c!--\\u0026"}'
    assert "\n" not in text_of(["a\nb"])


def test_control_characters_and_lone_surrogates_are_shown_as_python_would() -> None:
    assert joined("a\x00b\x1b\ud800\nc") == "a\\x00b\\x1b\\ud800\nc"


def test_a_stored_report_gives_the_same_page() -> None:
    report = samples.report()
    assert page(loads(dumps(report))) == page(report)


def test_the_page_is_the_same_every_time() -> None:
    assert page(samples.report()) == page(samples.report())


class Scripts(HTMLParser):
    """Collects elements the way a browser splits them."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[dict[str, str | None]] = []
        self.addresses: list[str] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        if name == "script":
            self.scripts.append(found)
        self.addresses += [str(found[key]) for key in ("src", "href", "action") if key in found]
        assert not [key for key in found if key.startswith("on")], (name, found)


def evil() -> Report:
    """Everything that a user can name, named as badly as possible."""
    result = samples.scaled()
    wrong = result.comparisons[0]
    leaf = replace(wrong.input, path=EVIL)
    findings = tuple(
        replace(one, code=EVIL, sentence=EVIL, hint=EVIL, diagnosis=one.diagnosis and replace(one.diagnosis, code=EVIL))
        for one in result.findings
    )
    bad = replace(
        result,
        name=EVIL,
        source=EVIL,
        notes=(EVIL,),
        findings=findings,
        comparisons=(replace(wrong, input=leaf, output=replace(wrong.output, path=EVIL), reason=EVIL),),
        traces=tuple(replace(one, subject=EVIL) for one in result.traces),
    )
    return Report((bad, samples.right()), environment=((EVIL, EVIL),), source=EVIL)


def test_no_name_becomes_markup() -> None:
    found = Scripts()
    found.feed(page(evil()))
    types = [one.get("type") for one in found.scripts]
    assert types == ["text/plain", "text/plain", None, None]
    assert found.addresses == ["#programs"]


def test_nothing_is_taken_for_a_slot_of_the_template() -> None:
    named = replace(samples.right(), name="{{ plotly }} {{ nothing }}")
    assert "{{ plotly }} {{ nothing }}" in page(Report((named,)))


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    write(samples.report(), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == page(samples.report())


def test_without_plotly_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(gradproof.UsageError, match=r'pip install "gradproof\[html\]"'):
        page(samples.report())


def of(*verdicts: Verdict) -> Report:
    return Report(tuple(replace(samples.right(), verdict=verdict) for verdict in verdicts))


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ((), "No program was checked"),
        ((Verdict.RIGHT,), "The gradient is right"),
        ((Verdict.RIGHT, Verdict.RIGHT), "All 2 gradients are right"),
        ((Verdict.RIGHT, Verdict.WRONG), "1 of 2 programs is wrong"),
        ((Verdict.WRONG, Verdict.WRONG, Verdict.UNDECIDED), "2 of 3 programs are wrong, 1 cannot be told"),
        ((Verdict.WRONG,), "The gradient is wrong"),
        ((Verdict.ERROR,), "The program could not be checked"),
        ((Verdict.UNSUPPORTED, Verdict.UNSUPPORTED), "2 of 2 programs have no derivative to check"),
    ],
)
def test_the_whole_in_one_sentence(verdicts: tuple[Verdict, ...], expected: str) -> None:
    assert headline(of(*verdicts)) == expected
    assert f"<title>gradproof: {expected}</title>" in page(of(*verdicts))


def layer(seed: int) -> Result:
    """A layer of random size with three inputs, checked in both modes, sometimes wrong."""
    random = np.random.default_rng(seed)
    rows, columns = (int(one) for one in random.integers(3, 30, 2))
    weights, point = random.standard_normal((rows, columns)), random.uniform(0.1, 1.0, columns)
    claimed = weights * np.cos(point)
    claimed[0, 0] *= 1.0 if seed % 5 else 1.5
    shapes = tuple((part.size,) for part in np.array_split(point, 3))
    program = HandProgram(lambda x: np.sin(x) @ weights.T, claimed, point, input_shapes=shapes)
    return samples.checked(program, f"models.encoder.layer[{seed}].forward", detail="plots")


def thousand() -> Report:
    layers = [layer(seed) for seed in range(25)]
    return Report(
        tuple(replace(layers[k % 25], name=f"{layers[k % 25].name}[{k}]", source="run me") for k in range(1000))
    )


def test_a_block_where_the_function_is_not_finite_is_not_called_right() -> None:
    domain = samples.checked(samples.elementwise(np.log, lambda x: 1 / x, [-0.5, -1.5]), "log", detail="plots")
    assert domain.verdict is Verdict.UNDECIDED
    text = page(Report((domain,)))
    assert "(reverse): undecided" in text
    assert "(reverse): right" not in text
    assert 'class="plot ladder"' not in text  # nothing could be drawn
    fine = samples.checked(samples.elementwise(np.log, lambda x: 1 / x, [0.5, 1.5]), "log", detail="plots")
    text = page(Report((fine,)))
    assert "(reverse): right" in text
    assert 'class="plot ladder"' in text


def test_names_fold_between_their_parts_and_nothing_compared_is_no_deviation_of_zero() -> None:
    failed = replace(samples.right(), name="a/b.py::f[n=1,m=<2>]", comparisons=(), verdict=Verdict.ERROR)
    text = page(Report((failed,)))
    assert "a/<wbr>b.py::<wbr>f<wbr>[n=1,<wbr>m=&lt;2&gt;]</button>" in text
    assert '<td class="number" role="cell" data-label="Deviation">–</td>' in text


def test_an_error_has_a_page_too() -> None:
    raised = Finding("error", Verdict.ERROR, Place(), "ValueError: no such data", "Run the function by itself.")
    failed = replace(samples.right(), verdict=Verdict.ERROR, comparisons=(), findings=(raised,), power=None, traces=())
    text = page(Report((failed,)))
    assert "ValueError: no such data" in text
    assert "<figure" not in text


def test_a_thousand_programs_stay_under_15_megabytes() -> None:
    text = page(thousand())
    assert 5e6 < len(text.encode()) < 15e6
    assert len(re.findall(r"<tbody id=", text)) == 1000
