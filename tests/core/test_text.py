"""What the user reads, against gold text. The results are built by hand, so that only the rendering is tested."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from rich.console import Console

from gradproof.program import Leaf, Skipped, Spot
from gradproof.render.text import LISTED, number, panel, render, with_bar
from gradproof.result import Comparison, Cost, Diagnosis, Entry, Finding, Place, Power, Result, Table, Verdict
from gradproof.settings import Settings

NOWHERE = Place()


def leaf(path: str, shape: tuple[int, ...] = (4,), dtype: str = "float64") -> Leaf:
    return Leaf(path, shape, dtype, 0)


def entry(
    place: Place, analytic: float = 2.0, numeric: float = 1.0, bar: float = 1.2e-11, spread: float = 0.0
) -> Entry:
    return Entry(place, analytic, numeric, bar, tolerance=1e-5, spread=spread)


def comparison(output: Leaf, input: Leaf, *found: Entry, verdict: Verdict | None = None, **more: object) -> Comparison:
    numeric = np.array([1.0, 2.0])
    fields: dict[str, object] = {
        "order": 1,
        "mode": "reverse",
        "output": output,
        "input": input,
        "scope": "entries",
        "source": Table(numeric * (1 + 1e-9), numeric, np.full(2, 1e-11), np.full(2, 1e-5)),
        "verdict": verdict or (Verdict.WRONG if found else Verdict.RIGHT),
        "found": found,
        "wrong": len(found),
        "entries": 16,
    }
    return Comparison(**{**fields, **more})  # type: ignore[arg-type]


def result(verdict: Verdict, *comparisons: Comparison, **more: object) -> Result:
    fields: dict[str, object] = {
        "name": "scale",
        "verdict": verdict,
        "comparisons": comparisons,
        "findings": (),
        "skipped": (),
        "notes": ("exhaustive: all 16 entries",),
        "power": Power(error=1.2e-5, relative=1.1e-5, fraction=1.0),
        "cost": Cost(evaluations=34, pulls=4, pushes=1, seconds=0.0123),
        "seed": 123,
        "settings": Settings.validated(seed=123),
    }
    return Result(**{**fields, **more})  # type: ignore[arg-type]


def wrong_entry() -> Result:
    place = Place(Spot("out", (3,)), Spot("args[0]", (2,)))
    finding = Finding(
        "scaled", Verdict.WRONG, place, "The analytic value is 2.0 times the numeric one.", "Look for a 2."
    )
    right = comparison(leaf("out"), leaf("args[1]"))
    wrong = comparison(leaf("out"), leaf("args[0]"), entry(place))
    return result(Verdict.WRONG, right, wrong, findings=(finding,))


def wrong_pairs(count: int) -> Result:
    comparisons = [
        comparison(leaf("out"), leaf(f"args[{i}]"), entry(Place(Spot("out", (0,)), Spot(f"args[{i}]", (i,))), 2.0 + i))
        for i in range(count)
    ]
    return result(Verdict.WRONG, *comparisons)


def coloured(shown: Result, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(panel(shown))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().rstrip().splitlines())


def test_one_wrong_entry() -> None:
    assert render(wrong_entry()) == (
        "WRONG  scale: 1 of 2 blocks disagree\n"
        "  reverse   d out[3] / d args[0][2]: 1 of 16 entries wrong\n"
        "            analytic 2.00000, numeric 1.00000 ± 1.2e-11, tolerance 1.0e-05\n"
        "  finding   The analytic value is 2.0 times the numeric one.\n"
        "  next      Look for a 2.\n"
        "  power     would have caught any single-entry error above 1.2e-05 (1.1e-05 of the largest)\n"
        "  checked   exhaustive: all 16 entries\n"
        "  cost      34 evaluations, 4 pulls, 1 push in 0.01 s\n"
        "  replay    seed=123"
    )


def test_the_cause_stands_between_the_numbers_and_the_next_step() -> None:
    place = Place(Spot("out", (3,)), Spot("args[0]", (2,)))
    cause = Diagnosis("factor", "the gradient of args[0] is 2 times what it should be", 1.0, "Look for a 2.")
    findings = [
        Finding("mismatch", Verdict.WRONG, place, "the reverse derivative is wrong", cause.hint, cause),
        Finding("mismatch", Verdict.WRONG, place, "the forward derivative is wrong", cause.hint, cause),
    ]
    shown = result(Verdict.WRONG, comparison(leaf("out"), leaf("args[0]"), entry(place)), findings=tuple(findings))
    assert render(shown).splitlines()[2:6] == [
        "            analytic 2.00000, numeric 1.00000 ± 1.2e-11, tolerance 1.0e-05",
        "  cause     the gradient of args[0] is 2 times what it should be",
        "  next      Look for a 2.",
        "  power     would have caught any single-entry error above 1.2e-05 (1.1e-05 of the largest)",
    ]


def test_many_wrong_pairs_take_a_line_each_worst_first_and_the_rest_share_one() -> None:
    text = render(wrong_pairs(11)).splitlines()
    assert text[0] == "WRONG  scale: 11 of 11 blocks disagree"
    assert text[1] == (
        "  reverse   d out[0] / d args[10][10]: 1 of 16 entries wrong, "
        "analytic 12.0000, numeric 1.0000 ± 1.2e-11, tolerance 1.0e-05"
    )
    assert [line.split("d args[")[1].split("]")[0] for line in text[1 : 1 + LISTED]] == [
        str(i) for i in range(10, 2, -1)
    ]
    assert text[1 + LISTED] == "            ... and 3 more: out / args[2], out / args[1], out / args[0]"
    assert len(text) == 1 + LISTED + 1 + 4


def test_as_many_pairs_as_fit_leave_no_rest_line() -> None:
    text = render(wrong_pairs(LISTED))
    assert "more:" not in text
    assert all(f"d args[{i}]" in text for i in range(LISTED))


def test_the_modes_and_orders_of_one_pair_are_told_apart() -> None:
    place = Place(Spot("grad(args[0])", (0,)), Spot("args[0]", (1,)))
    blocks = [
        comparison(leaf("grad(args[0])"), leaf("args[0]"), entry(place), mode=mode, order=2)
        for mode in ("reverse", "forward")
    ]
    text = render(result(Verdict.WRONG, *blocks))
    assert "  reverse   d grad(args[0])[0] / d args[0][1] (order 2): 1 of 16 entries wrong\n" in text
    assert "  forward   d grad(args[0])[0] / d args[0][1] (order 2): 1 of 16 entries wrong\n" in text


def test_a_nan_gradient_is_the_worst() -> None:
    nan = comparison(leaf("out"), leaf("b"), entry(Place(Spot("out"), Spot("b", (0,))), math.nan))
    large = comparison(leaf("out"), leaf("a"), entry(Place(Spot("out"), Spot("a", (0,))), 1e9))
    text = render(result(Verdict.WRONG, large, nan)).splitlines()
    assert "d b[0]" in text[1]
    assert text[2] == "            analytic nan, numeric 1.00000 ± 1.2e-11, tolerance 1.0e-05"
    assert "d a[0]" in text[3]


def test_a_wrong_probe_without_an_entry_says_so() -> None:
    block = comparison(
        leaf("out"), leaf("args[0]"), verdict=Verdict.WRONG, scope="probes", reason="the budget is spent"
    )
    assert render(result(Verdict.WRONG, block)).splitlines()[1:3] == [
        "  reverse   d out / d args[0]: a random combination of all entries disagrees",
        "            the budget is spent",
    ]


def test_a_broken_property_without_a_wrong_number() -> None:
    finding = Finding("nonlinear", Verdict.WRONG, NOWHERE, "pull is not linear in the cotangent.", "Multiply by it.")
    text = render(result(Verdict.WRONG, comparison(leaf("out"), leaf("x")), findings=(finding,)))
    assert text.startswith("WRONG  scale: the numbers agree, but 1 property of a derivative failed\n")
    assert "  finding   pull is not linear in the cotangent.\n  next      Multiply by it.\n" in text


def test_a_finding_names_its_place_where_several_are_possible() -> None:
    place = Place(Spot("out", (0,)), Spot("args[1]", (1,)))
    findings = (
        Finding("negated", Verdict.WRONG, place, "the sign is wrong."),
        Finding("negated", Verdict.WRONG, place, f"the sign at {place} is wrong."),
    )
    text = render(result(Verdict.WRONG, *wrong_pairs(2).comparisons, findings=findings))
    assert "  finding   d out[0] / d args[1][1]: the sign is wrong.\n" in text
    assert "  finding   the sign at d out[0] / d args[1][1] is wrong.\n" in text


def test_complex_parts_are_named() -> None:
    block = leaf("args[0]", (2, 2), "complex128")
    place = Place(Spot("out"), block.spot(5))
    text = render(result(Verdict.WRONG, comparison(leaf("out"), block, entry(place))))
    assert "d out / d args[0][1, 0].imag: 1 of 16 entries wrong" in text


def test_right() -> None:
    shown = result(Verdict.RIGHT, comparison(leaf("out"), leaf("a")), comparison(leaf("out"), leaf("b")))
    assert render(shown) == (
        "RIGHT  scale: 2 blocks agree to 8 digits\n"
        "  power     would have caught any single-entry error above 1.2e-05 (1.1e-05 of the largest)\n"
        "  checked   exhaustive: all 16 entries\n"
        "  cost      34 evaluations, 4 pulls, 1 push in 0.01 s\n"
        "  replay    seed=123"
    )


def test_right_with_a_kink_and_a_skipped_output() -> None:
    kink = Finding(
        "kink", Verdict.RIGHT, Place(input=Spot("args[0]", (1,))), "a kink; the value is between the slopes."
    )
    shown = result(
        Verdict.RIGHT,
        comparison(leaf("out[0]"), leaf("args[0]")),
        findings=(kink,),
        skipped=(Skipped("out[1]", "integer"), Skipped("out[2]", "None")),
    )
    assert render(shown).splitlines()[:3] == [
        "RIGHT  scale: 1 block agrees to 8 digits",
        "  remark    args[0][1]: a kink; the value is between the slopes.",
        "  skipped   out[1]: integer; out[2]: None",
    ]


def test_many_remarks_are_cut_short() -> None:
    kinks = tuple(Finding("kink", Verdict.RIGHT, Place(input=Spot("x", (i,))), "a kink.") for i in range(50))
    text = render(result(Verdict.RIGHT, comparison(leaf("out"), leaf("x")), findings=kinks))
    assert text.count("a kink.") == 4
    assert "            ... and 46 more like this\n" in text


def test_a_wrong_value_at_a_kink_shows_the_valid_interval() -> None:
    place = Place(Spot("out", (0,)), Spot("x", (0,)))
    block = comparison(leaf("out"), leaf("x"), entry(place, analytic=3.0, numeric=0.0, bar=2e-9, spread=1.0))
    assert (
        "            analytic 3.00000, a kink that allows -1.00000 to 1.00000 ± 2.0e-09, tolerance 1.0e-05"
        in render(result(Verdict.WRONG, block)).splitlines()
    )


def test_undecided() -> None:
    place = Place(Spot("out", (1,)), Spot("x", (0,)))
    block = comparison(
        leaf("out"),
        leaf("x", dtype="float16"),
        entry(place, analytic=1.02, numeric=1.0, bar=0.034),
        verdict=Verdict.UNDECIDED,
        reason="precision",
    )
    finding = Finding("precision", Verdict.UNDECIDED, place, "float16 is too coarse here.", "Give x as float64.")
    shown = result(Verdict.UNDECIDED, block, comparison(leaf("out"), leaf("y")), findings=(finding,), power=None)
    assert render(shown) == (
        "UNDECIDED  scale: 1 of 2 blocks cannot be told\n"
        "  reverse   d out[1] / d x[0]: cannot be told (precision): "
        "analytic 1.02000, numeric 1.000 ± 0.034, tolerance 1.0e-05\n"
        "  next      Give x as float64.\n"
        "  checked   exhaustive: all 16 entries\n"
        "  cost      34 evaluations, 4 pulls, 1 push in 0.01 s\n"
        "  replay    seed=123"
    )


def test_undecided_without_a_block_gives_the_finding() -> None:
    finding = Finding("budget", Verdict.UNDECIDED, NOWHERE, "stopped before a verdict.", "Allow more calls.")
    text = render(result(Verdict.UNDECIDED, findings=(finding,), power=None)).splitlines()
    assert text[:3] == [
        "UNDECIDED  scale: cannot be told",
        "  unclear   stopped before a verdict.",
        "  next      Allow more calls.",
    ]


def test_a_finding_that_only_repeats_its_block_leaves_its_hint() -> None:
    place = Place(Spot("out", (3,)), Spot("args[0]", (2,)))
    block = comparison(leaf("out"), leaf("args[0]"), entry(place))
    told = Finding("mismatch", Verdict.WRONG, place, "wrong, as listed above.", "Look there.")
    text = render(result(Verdict.WRONG, block, findings=(told,)))
    assert "as listed above" not in text
    assert "  next      Look there.\n" in text
    elsewhere = Finding("mismatch", Verdict.WRONG, NOWHERE, "wrong, somewhere.")
    assert "  finding   wrong, somewhere.\n" in render(result(Verdict.WRONG, block, findings=(elsewhere,)))


def test_the_same_remark_is_made_once() -> None:
    remark = Finding("unsupported", Verdict.RIGHT, NOWHERE, "no forward mode.")
    text = render(result(Verdict.RIGHT, comparison(leaf("out"), leaf("x")), findings=(remark, remark)))
    assert text.count("no forward mode.") == 1


def test_notes_are_cut_where_they_start_to_explain() -> None:
    notes = ("2 signed probes", "values: one by one, because a batch raised " + 100 * "x")
    text = render(result(Verdict.RIGHT, comparison(leaf("out"), leaf("x")), notes=notes))
    assert "  checked   2 signed probes; values: one by one\n" in text


def test_an_entry_found_by_bisection_is_not_a_count_of_all() -> None:
    place = Place(Spot("out", (3,)), Spot("x", (3,)))
    block = comparison(leaf("out"), leaf("x"), entry(place), scope="probes", entries=10**12)
    assert ": at least 1 of 1,000,000,000,000 entries wrong\n" in render(result(Verdict.WRONG, block))


def test_a_missing_mode_is_a_line_of_its_own() -> None:
    finding = Finding("mode", Verdict.UNSUPPORTED, NOWHERE, "forward mode: no jvp here.")
    text = render(result(Verdict.RIGHT, comparison(leaf("out"), leaf("x")), findings=(finding,)))
    assert "  missing   forward mode: no jvp here.\n" in text


@pytest.mark.parametrize("shown", [wrong_entry(), wrong_pairs(11)], ids=["one", "many"])
def test_the_panel_says_the_same_as_the_text(shown: Result) -> None:
    assert coloured(shown) == render(shown)


def test_paths_and_names_are_never_markup() -> None:
    nasty = "args[0]['[red]x[/red]'][/bold]"
    block = comparison(leaf("out"), leaf(nasty), entry(Place(Spot("out"), Spot(nasty, (1,)))))
    shown = result(Verdict.WRONG, block, name="[link=x]f[/link]", skipped=(Skipped("out[b]", "[i]text[/i]"),))
    assert f"d out / d {nasty}[1]: 1 of 16" in coloured(shown)
    assert coloured(shown) == render(shown)


def test_a_narrow_terminal_loses_nothing() -> None:
    words = " ".join(coloured(wrong_entry(), width=40).split())
    assert words == " ".join(render(wrong_entry()).split())


@pytest.mark.parametrize(
    ("value", "bar", "expected"),
    [
        (1.0, 1.2e-3, "1.0000 ± 0.0012"),
        (-123.456, 0.12, "-123.46 ± 0.12"),
        (4.2e-9, 3.3e-15, "4.2000000e-09 ± 3.3e-15"),
        (1234.5, 56.0, "1234 ± 56"),
        (0.0, 1e-9, "0 ± 1.0e-09"),
        (1e-12, 0.5, "1e-12 ± 0.50"),
        (math.nan, 1e-9, "nan ± 1.0e-09"),
        (2.0, math.inf, "2.0000000000000000 ± inf"),
        (2.0, 0.0, "2.0000000000000000 ± 0"),
    ],
)
def test_value_with_bar(value: float, bar: float, expected: str) -> None:
    assert with_bar(value, bar, -16) == expected


def test_numbers_that_differ_look_different() -> None:
    place = Place(Spot("out"), Spot("x"))
    close = comparison(leaf("out"), leaf("x"), entry(place, 1.0000000321, 1.0000000123))
    assert "analytic 1.0000000321, numeric 1.0000000123 ± 1.2e-11" in render(result(Verdict.WRONG, close))


def test_number_cuts_at_the_place() -> None:
    assert number(math.pi, -3) == "3.142"
    assert number(math.pi * 1e8, 6) == "3.14e+08"
