"""Every contract of the native check: its wrong functions are caught with its code, their right twins are silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import rules
import torch
from rules import leaf, returns, scaled, two
from torch import Tensor

from gradproof import Finding, Verdict, check

CODES = {
    "nonlinear", "adjoint", "nondeterministic", "asymmetric", "impure", "attributes", "reuse", "undefined", "layout",
    "subset", "vmap", "opcheck",
}  # fmt: skip


def found(fn: Callable[..., Any], *args: Any, **options: Any) -> list[Finding]:
    """What the contracts say, remarks too; nothing else may be wrong."""
    result = check(fn, args, seed=1, **options)
    assert all(finding.code in CODES for finding in result.wrong), str(result)
    findings = [finding for finding in result.findings if finding.code in CODES]
    if all(finding.verdict is Verdict.RIGHT for finding in findings):
        assert result.ok, str(result)
    assert not any("could not be run" in note for note in result.notes), result.notes
    return findings


def caught(fn: Callable[..., Any], *args: Any, **options: Any) -> Finding:
    """The one thing that is wrong."""
    findings = [finding for finding in found(fn, *args, **options) if finding.verdict is Verdict.WRONG]
    assert len(findings) == 1, findings
    return findings[0]


def silent(fn: Callable[..., Any], *args: Any, **options: Any) -> None:
    assert found(fn, *args, **options) == []


COSTS = ("all", "none")
EFFORTS = pytest.mark.parametrize("effort", ["exhaustive", 1])


# ---- adjoint


@EFFORTS
@pytest.mark.parametrize("rule", [rules.SingleBackward, rules.SlightlyOffForward])
def test_modes_that_disagree_within_the_tolerance(rule: Any, effort: Any) -> None:
    finding = caught(rule.apply, leaf(3, 4), effort=effort)
    assert finding.code == "adjoint"
    assert finding.place.input is not None
    assert finding.place.input.path == "args[0]"


@EFFORTS
def test_modes_that_agree(effort: Any) -> None:
    silent(rules.Sine.apply, leaf(3, 4), effort=effort)


def test_modes_may_choose_different_slopes_at_a_kink() -> None:
    class Kink(rules.Sine):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x.abs()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return g * torch.where(x == 0, 1.0, x.sign())

        @staticmethod
        def jvp(ctx: Any, t: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return t * x.sign()

    silent(Kink.apply, torch.tensor([1.0, 0.0, -2.0], dtype=torch.float64))


# ---- repeatable


@EFFORTS
def test_a_backward_that_is_never_the_same(effort: Any) -> None:
    for fn in (lambda x: rules.Jittery.apply(x, 1e-7), rules.Counting.apply):
        assert caught(fn, leaf(4), effort=effort).code == "nondeterministic"
    silent(lambda x: rules.Jittery.apply(x, 0.0), leaf(4), effort=effort)


def test_the_spread_is_reported_and_tolerated_up_to_nondet_tol() -> None:
    fn = lambda x: rules.Jittery.apply(x, 1e-3)  # noqa: E731
    (remark,) = found(fn, leaf(4), nondet_tol=1e-2)
    assert (remark.code, remark.verdict) == ("nondeterministic", Verdict.RIGHT)
    assert "differ by up to" in remark.sentence
    strict = check(fn, leaf(4), nondet_tol=1e-6, seed=1)
    assert "nondeterministic" in [finding.code for finding in strict.wrong]


# ---- symmetric


@EFFORTS
def test_second_derivatives_that_are_not_symmetric(effort: Any) -> None:
    matrix = leaf(4, 4)
    zero = torch.zeros(4, dtype=torch.float64)
    for wrong in (True, False):
        quadratic = lambda x, wrong=wrong: rules.Quadratic.apply(x, matrix, wrong)  # noqa: E731
        rotated = lambda x, wrong=wrong: rules.Rotated.apply(x, wrong)  # noqa: E731
        for fn in (quadratic, rotated):
            if wrong:
                assert caught(fn, zero, order=2, effort=effort).code == "asymmetric"
            else:
                silent(fn, zero, order=2, effort=effort)
    silent(lambda x: (x.sin() * x.roll(1).exp()).sum(), leaf(4), order=3, effort=effort)


# ---- pure


@pytest.mark.parametrize("fn", [rules.square, rules.inside])
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("cotangent", "the backward of Square overwrites the incoming gradient"),
        ("saved", "the backward of Square overwrites saved tensor 1"),
        ("context", "the backward of Square overwrites ctx.kept"),
    ],
)
def test_a_backward_that_overwrites(fn: Any, how: str, words: str) -> None:
    findings = [one for one in found(fn(how), leaf(3)) if one.verdict is Verdict.WRONG]
    assert findings[0].code == "impure"
    assert findings[0].sentence == words
    silent(fn("right"), leaf(3))


@pytest.mark.parametrize("how", ["input", "data"])
def test_a_forward_that_overwrites_its_input_behind_autograds_back(how: str) -> None:
    finding = caught(rules.square(how), leaf(3))
    assert finding.code == "impure"
    assert str(finding.place) == "args[0]"


def test_an_operation_in_place_that_autograd_knows_of() -> None:
    silent(rules.square("marked"), leaf(3))
    silent(lambda x: x.mul_(2).sin_(), leaf(3))


class Counted(torch.nn.Module):
    """2x; `where` says what its backward counts in."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))
        self.weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
        self.where = where

    def forward(self, x: Tensor) -> Tensor:
        module = self

        class Count(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Tensor) -> Tensor:
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Tensor) -> Tensor:
                if module.where:
                    getattr(module, module.where).data.add_(1)
                return g * 2

        return Count.apply(x) * self.weight


@pytest.mark.parametrize(("where", "path"), [("calls", "buffers.calls"), ("weight", "params.weight")])
def test_a_backward_that_writes_into_its_module(where: str, path: str) -> None:
    module = Counted(where)
    wrong = check(module, (leaf(3),), contracts="pure", seed=1).wrong
    # A parameter that is overwritten is another factor of the next gradient.
    (finding,) = [one for one in wrong if not (where == "weight" and one.code == "mismatch")]
    assert (finding.code, finding.sentence) == ("impure", f"backward overwrites {path}")
    assert module.weight.item() == 1
    assert not module.get_buffer("calls").any()
    silent(Counted(""), leaf(3))


def test_torchs_own_functions_are_not_in_question() -> None:
    class Compiled(rules.Memory):
        __module__ = "torch._functorch._aot_autograd"

    result = check(lambda x: Compiled.apply(x, "forward"), leaf(3, 4), seed=1)
    assert result.ok, str(result)
    assert any("the graph holds no custom rule" in note for note in result.notes)


def test_running_statistics_are_no_fault() -> None:
    silent(torch.nn.BatchNorm1d(3).double(), leaf(5, 3))


# ---- attributes


@pytest.mark.parametrize("how", ["float32", "bfloat16"])
def test_a_gradient_that_loses_digits_on_the_way(how: str) -> None:
    result = check(returns(how), leaf(4), seed=1, tolerance=0.1)
    (finding,) = result.wrong
    assert finding.code == "attributes"
    assert how in finding.sentence
    silent(returns("right"), leaf(4))


def test_a_sparse_gradient_of_a_dense_input_is_remarked_on() -> None:
    (remark,) = found(returns("sparse"), leaf(4))
    assert (remark.code, remark.verdict) == ("attributes", Verdict.RIGHT)
    assert "sparse" in remark.sentence


@pytest.mark.parametrize("kind", [torch.nn.Embedding, torch.nn.EmbeddingBag])
def test_sparse_gradients_of_torchs_own_embeddings(kind: Any) -> None:
    options = {"mode": "sum"} if kind is torch.nn.EmbeddingBag else {}
    table = kind(10, 3, sparse=True, dtype=torch.float64, **options)
    silent(table, torch.tensor([[1, 2, 4]]))
    silent(table, torch.tensor([[1, 2, 4]]), effort=1)


def test_a_sparse_gradient_with_wrong_numbers() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, table: Tensor) -> Tensor:
            ctx.size = table.shape
            return table[1:3].clone()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return torch.sparse_coo_tensor(torch.tensor([[1, 2]]), 2 * g, ctx.size)

    result = check(Doubled.apply, leaf(4, 2), seed=1)
    assert result.verdict is Verdict.WRONG


@pytest.mark.parametrize("how", ["larger", "double"])
def test_what_the_engine_mends_is_remarked_on(how: str) -> None:
    (remark,) = found(returns(how), leaf(4, dtype=torch.float32))
    assert (remark.code, remark.verdict) == ("attributes", Verdict.RIGHT)


@pytest.mark.parametrize("narrow", [True, False])
def test_a_rule_that_goes_through_its_ctx_finds_what_it_has_put_there(narrow: bool) -> None:
    class Through(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.factor = 2 * x.detach()
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
            for factor in vars(ctx).values():
                g = g * factor
            return g.float() if narrow else g

    options: Any = {"contracts": "attributes", "effort": 1, "modes": "reverse", "tolerance": 1e-3}
    result = check(Through.apply, leaf(3), seed=1, **options)
    assert not any("left out" in note for note in result.notes)
    assert [finding.code for finding in result.wrong] == (["attributes"] if narrow else [])


# ---- reusable


def test_a_rule_that_remembers_another_call() -> None:
    finding = caught(rules.InAGlobal.apply, leaf(3))
    assert finding.code == "reuse"
    # Two digits of x: right where x has no more of them.
    x = torch.tensor([0.25, -1.5, 0.75], dtype=torch.float64)
    assert caught(rules.InTheClass.apply, x).code == "reuse"
    silent(rules.Sine.apply, leaf(3))


def remembering(what: Callable[[Tensor], Tensor], where: str) -> Any:
    """x times what forward saw of x; backward takes that from its own call, or from the last one."""
    last: list[Tensor] = []

    class Remembering(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.seen = what(x)
            last[:] = [ctx.seen]
            return x * ctx.seen

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
            return g * (last[0] if where == "global" else ctx.seen)

    return Remembering.apply


@pytest.mark.parametrize("what", [torch.sign, lambda x: x[:1].floor()])
def test_a_rule_that_remembers_little_of_another_call(what: Any) -> None:
    x = torch.tensor([1.02, -1.5, 0.75], dtype=torch.float64)
    assert caught(remembering(what, "global"), x, contracts="reusable", effort=1, modes="reverse").code == "reuse"
    silent(remembering(what, "ctx"), x, contracts="reusable", effort=1, modes="reverse")


def test_a_rule_that_remembers_where_rows_may_not_be_alike() -> None:
    def invertible(x: Tensor) -> Tensor:
        if torch.linalg.matrix_rank(x.detach()) < 2:
            raise ValueError("singular")
        return x

    silent(lambda x: rules.Sine.apply(invertible(x)), leaf(2, 2))
    assert caught(lambda x: rules.InAGlobal.apply(invertible(x)), leaf(2, 2)).code == "reuse"


@pytest.mark.parametrize("where", ["global", "ctx"])
def test_a_rule_that_remembers_a_call_that_gave_nan(where: str) -> None:
    """The call in between has rows that are alike, whose deviation is zero."""

    def slope(x: Tensor) -> Tensor:
        return (x - x.mean(0)).square().mean(0).rsqrt() * (x - x.mean(0)).square().mean(0).sqrt()

    rule = remembering(slope, where)
    if where == "ctx":
        silent(rule, leaf(4, 3), contracts="reusable", effort=1, modes="reverse")
    else:
        assert caught(rule, leaf(4, 3), contracts="reusable", effort=1, modes="reverse").code == "reuse"


# ---- undefined


@pytest.mark.parametrize("how", ["raises", "constant"])
def test_a_cotangent_that_is_not_there(how: str) -> None:
    finding = caught(two(how), leaf(3))
    assert finding.code == "undefined"
    if how == "raises":
        assert "the second cotangent is missing" in finding.sentence
    silent(two("right"), leaf(3))


def test_a_tangent_that_is_not_there() -> None:
    finding = caught(rules.product("wrong"), leaf(3), leaf(3, seed=1))
    assert finding.code == "undefined"
    assert str(finding.place) == "d out / d args[1]"
    silent(rules.product("right"), leaf(3), leaf(3, seed=1))


# ---- layout


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("forward", "the function gives another value when args[0] is transposed in memory"),
        ("saved", "the backward gives another gradient when args[0] is transposed in memory"),
        ("backward", "another gradient of args[0] when the incoming gradient is transposed in memory"),
        ("view", "backward raises RuntimeError when the incoming gradient is scattered in memory"),
        ("offset", "another gradient of args[0] when the incoming gradient is with a storage offset"),
        ("expanded", "another gradient of args[0] when the incoming gradient is expanded (stride 0)"),
        ("repeated", "the function gives another value when args[0] is expanded (stride 0)"),
    ],
)
def test_a_rule_that_reads_memory(how: str, words: str) -> None:
    finding = caught(rules.memory(how), leaf(3, 4))
    assert finding.code == "layout"
    assert words in finding.sentence


def test_a_rule_that_reads_channels_last_memory() -> None:
    assert "channels-last" in caught(rules.memory("channels"), leaf(2, 3, 4, 2)).sentence


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4, 2)])
def test_a_rule_that_reads_entries(shape: tuple[int, ...]) -> None:
    silent(rules.memory("right"), leaf(*shape))


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_a_point_where_rounding_decides_tells_nothing_about_memory(size: int) -> None:
    """Expanded, all rows are equal: the determinant is rounding, and the largest entry anybody's."""
    silent(lambda x: rules.memory("right")(torch.linalg.slogdet(x).logabsdet), leaf(size, size))
    silent(lambda x: rules.memory("right")(x).amax(0), leaf(size, size))
    finding = caught(lambda x: rules.memory("repeated")(x).amax(0), leaf(size, size))
    assert "another value when args[0] is expanded" in finding.sentence


@pytest.mark.parametrize("how", ["expanded", "right"])
def test_memory_matters_where_rows_that_are_alike_have_no_gradient(how: str) -> None:
    """NaN at the end of a domain, which is like any other NaN; or zero."""
    rule = rules.memory(how)
    for fn, x in (
        (torch.acosh, 1.001 + 0.01 * leaf(3, 4).abs()),
        (lambda x: (x - x.mean(0)).square(), leaf(4, 3)),
    ):
        through = lambda x, fn=fn: rule(fn(x))  # noqa: E731
        if how == "right":
            silent(through, x)
        else:
            assert "expanded (stride 0)" in caught(through, x).sentence


def test_the_input_to_blame_is_named() -> None:
    finding = caught(lambda x, y: x.exp() + rules.memory("forward")(y), leaf(3, 4), leaf(3, 4, seed=1))
    assert str(finding.place) == "args[1]"


def test_a_user_who_passes_another_layout_is_held_against_the_contiguous_one() -> None:
    result = check(rules.memory("forward"), leaf(4, 3).mT, seed=1)
    assert "layout" in [finding.code for finding in result.wrong]


# ---- subsets


def test_a_gradient_that_depends_on_who_else_requires_grad() -> None:
    inputs = leaf(3), leaf(3, seed=1), leaf(3, seed=2)
    alone = caught(scaled("index"), *inputs)
    assert (alone.code, str(alone.place)) == ("subset", "args[0]")
    assert "no gradient of args[0] when no other input requires grad" in alone.sentence
    others = caught(scaled("others"), *inputs)
    assert (others.code, str(others.place)) == ("subset", "args[0]")
    silent(scaled("right"), *inputs)


def test_leaving_one_out() -> None:
    class Pair(rules.Scaled):
        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            gradients = list(rules.Scaled.backward(ctx, g))
            if ctx.needs_input_grad[:3] == (True, True, False):
                gradients[1] = 2 * gradients[1]
            return tuple(gradients)

    inputs = leaf(3), leaf(3, seed=1), leaf(3, seed=2)
    finding = caught(lambda x, y, z: Pair.apply(x, y, z, "right"), *inputs)
    assert (finding.code, str(finding.place)) == ("subset", "args[1]")
    assert "when args[2] does not require grad" in finding.sentence


# ---- vmap


@pytest.mark.parametrize("how", ["row 0", "reversed", "in_dims"])
def test_a_wrong_vmap_rule(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    inputs = leaf(2, 2), leaf(2, 2, seed=1)
    silent(rules.Batched.apply, *inputs)
    monkeypatch.setattr(rules.Batched, "how", how)
    assert caught(rules.Batched.apply, *inputs).code == "vmap"


# ---- all together


def test_a_function_of_torchs_own_operators_is_silent_and_says_what_was_left_out() -> None:
    for fn in (torch.sin, lambda x: x.softmax(-1), torch.nn.Linear(4, 2).double()):
        silent(fn, leaf(3, 4))
    assert any("the graph holds no custom rule" in note for note in check(torch.sin, leaf(3)).notes)


def test_contracts_are_chosen_by_name() -> None:
    assert found(rules.memory("forward"), leaf(3, 4), contracts="none") == []
    assert found(rules.memory("forward"), leaf(3, 4), contracts=("pure", "subsets")) == []
    assert caught(rules.memory("forward"), leaf(3, 4), contracts="layout").code == "layout"


def test_a_large_program_pays_for_one_pull_unless_it_asks_for_more() -> None:
    x = leaf(512, 513)
    assert found(rules.memory("forward"), x) == []
    assert caught(rules.memory("forward"), x, contracts="layout").code == "layout"


def turning(wrong: float) -> Callable[[Tensor], Tensor]:
    """2 x, whose backward is wrong every other time."""
    calls = 0

    class Turning(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
            nonlocal calls
            calls += 1
            return (2.0 if calls % 2 else wrong) * g

    return Turning.apply  # type: ignore[no-any-return]


@pytest.mark.parametrize("shape", [(3, 4), (512, 513)])
def test_a_backward_that_alternates(shape: tuple[int, ...]) -> None:
    options: dict[str, Any] = {"effort": 1, "modes": "reverse", "contracts": "repeatable"}
    assert caught(turning(2.002), leaf(*shape), **options).code == "nondeterministic"
    assert found(turning(2.0), leaf(*shape), **options) == []


def test_a_large_program_with_a_rule_is_pulled_four_times() -> None:
    """Twice for its numbers, once under watch, and once more."""
    cost = check(turning(2.0), leaf(512, 513), seed=1, modes="reverse").cost
    assert (cost.evaluations, cost.pulls) == (3, 4)


def test_what_the_contracts_of_a_rule_cost() -> None:
    """Of pulls: one under watch, one after a call, one without cotangents, and three for layouts, with three calls. The
    call in between is one of those."""

    def more(fn: Any, *args: Any) -> tuple[int, int]:
        some, none = (check(fn, args, seed=1, effort=1, modes="reverse", contracts=names).cost for names in COSTS)
        return some.evaluations - none.evaluations, some.pulls - none.pulls

    # Without contracts, nobody pulls the combination of all cotangents.
    assert more(rules.OnceOnly.apply, leaf(3, 4)) == (3, 7)
    assert more(scaled("right"), leaf(3), leaf(3, seed=1), leaf(3, seed=2)) == (9, 13)


def test_the_budget_counts_here_too() -> None:
    result = check(rules.memory("forward"), leaf(2, 2), seed=1, budget=22, effort="exhaustive")
    assert any(note.startswith("contracts left out by the budget: ") for note in result.notes), result.notes
    assert sum((result.cost.evaluations, result.cost.pulls, result.cost.pushes)) <= 22


def test_a_function_with_forward_mode_alone() -> None:
    class Forward(torch.autograd.Function):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x.sin()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx: Any, t: Tensor) -> Tensor:
            return t * ctx.saved_tensors[0].cos()

    result = check(Forward.apply, leaf(3), seed=1)
    assert result.ok, str(result)
    assert any(note.startswith("contracts left out, because backward raised") for note in result.notes)


def test_the_world_is_left_as_it_was() -> None:
    x = leaf(3, 4).requires_grad_()
    kept, state = x.detach().clone(), torch.get_rng_state()
    check(rules.square("input"), x)
    check(lambda x: rules.Jittery.apply(x, 1e-7), x)
    assert torch.equal(x, kept)
    assert x.grad is None
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.is_grad_enabled()


# ---- around the rule: confined arguments, another function's derivative


INSIDE = pytest.mark.parametrize("options", [{"bounds": (-9, 9)}, {"expected_gradient_of": lambda x: 2 * x}], ids=list)


@INSIDE
def test_a_rule_is_held_to_its_contracts_whatever_is_around_it(options: dict[str, Any]) -> None:
    assert caught(lambda x: rules.Jittery.apply(x, 1e-7), leaf(4), **options).code == "nondeterministic"
    silent(lambda x: rules.Jittery.apply(x, 0.0), leaf(4), **options)


def test_contracts_call_a_confined_function_at_its_point_alone() -> None:
    x = torch.linspace(1.0, 2.0, 6, dtype=torch.float64).reshape(2, 3)
    seen: list[float] = []

    def fn(x: Tensor) -> Tensor:
        seen.extend(x.detach().flatten().tolist())
        return rules.OnceOnly.apply(x)

    result = check(fn, x, seed=1, bounds=(1.0, 2.0))
    assert result.ok, str(result)
    assert min(seen) >= 1.0
    assert max(seen) <= 2.0
    assert any("at another point: reusable, vmap" in note for note in result.notes)


# ---- a gradient that is not finite


def test_what_is_nan_at_every_cotangent_is_told_once() -> None:
    result = check(rules.Poisoned.apply, leaf(4), seed=1)
    assert [finding.code for finding in result.wrong] == ["nan-gradient"]
