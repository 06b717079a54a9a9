"""PyTorch's operator databases, cut into groups: one operator, one dtype, one kind of check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from bench.operators.cases import Case, Check, Kind
from gradproof.torch.catalogue.entries import DTYPES as ALL_DTYPES
from gradproof.torch.catalogue.entries import Size, entries, is_skipped, is_variable, on_a_copy, samples

DATABASES = ("op_db", "custom_op_db", "autograd_function_db", "hop_db")
# PyTorch's own test of each kind, class and name: an entry's skips are filed under these.
TESTS: dict[Kind, tuple[str, str]] = {
    "grad": ("TestBwdGradients", "test_fn_grad"),
    "gradgrad": ("TestBwdGradients", "test_fn_gradgrad"),
    "forward": ("TestFwdGradients", "test_forward_mode_AD"),
    "fwgrad_bwgrad": ("TestFwdGradients", "test_fn_fwgrad_bwgrad"),
    "inplace_grad": ("TestBwdGradients", "test_inplace_grad"),
    "inplace_gradgrad": ("TestBwdGradients", "test_inplace_gradgrad"),
    "inplace_forward": ("TestFwdGradients", "test_inplace_forward_mode_AD"),
}
# The kinds that PyTorch's tests run on a database, where these are not all.
COVERED: dict[str, tuple[Kind, ...]] = {
    "custom_op_db": ("grad", "gradgrad", "inplace_grad"),
    "hop_db": ("grad", "gradgrad"),
}
DTYPES = {name: ALL_DTYPES[name] for name in ("float64", "complex128")}


@dataclass(frozen=True)
class Group:
    """The cases that share an operator, a dtype and a kind. Plain strings, so that it travels between processes."""

    database: str
    operator: str
    dtype: str
    kind: Kind
    size: Size = "small"

    def __str__(self) -> str:
        return f"{self.database}/{self.operator}/{self.dtype}/{self.kind}"

    def cases(self) -> Iterator[Case]:
        if self.database == "module_db":
            from bench.operators.modules import cases

            return cases(self)
        return _cases(self, entries(self.database)[self.operator])


def groups(databases: Sequence[str], dtypes: Sequence[str], kinds: Sequence[Kind], size: Size) -> Iterator[Group]:
    """All groups that PyTorch's gradient tests run on CPU, in the databases' order."""
    for database in databases:
        if database == "module_db":
            from bench.operators.modules import module_groups

            yield from module_groups(dtypes, kinds)
            continue
        for name, op in entries(database).items():
            for dtype in dtypes:
                if DTYPES[dtype] not in op.supported_backward_dtypes("cpu"):
                    continue
                for kind in (kind for kind in kinds if kind in COVERED.get(database, kinds)):
                    if _supports(op, kind) and not is_skipped(op, *TESTS[kind], DTYPES[dtype]):
                        yield Group(database, name, dtype, kind, size)


def _supports(op: Any, kind: Kind) -> bool:
    if kind.startswith("inplace_") and not (op.inplace_variant and op.supports_inplace_autograd):
        return False
    return bool(
        {
            "grad": op.supports_autograd,
            "gradgrad": op.supports_autograd and op.supports_gradgrad,
            "forward": op.supports_forward_ad,
            "fwgrad_bwgrad": op.supports_autograd and op.supports_fwgrad_bwgrad,
        }[kind.removeprefix("inplace_")]
    )


def _cases(group: Group, op: Any) -> Iterator[Case]:
    """One case for every sample."""
    dtype = DTYPES[group.dtype]
    inplace = group.kind.startswith("inplace_")
    variant = on_a_copy(op.get_inplace()) if inplace else op.get_op()
    checks = _checks(op, group.kind)
    if group.database == "autograd_function_db":
        checks = tuple(_unbatched(check) for check in checks)
    for number, sample in enumerate(samples(op, dtype, size=group.size)):
        if not (sample.broadcasts_input and inplace):
            subject = _Subject(op, variant, sample)
            if subject.variables:
                label = f"{number}" if group.size == "small" else f"full.{number}"
                yield Case(f"{group}/{label}", subject, subject.variables, checks)


def _checks(op: Any, kind: Kind) -> tuple[Check, ...]:
    common = {"check_grad_dtypes": True, "nondet_tol": op.gradcheck_nondet_tol}
    if kind in {"gradgrad", "inplace_gradgrad"}:
        second = common | {"check_batched_grad": op.check_batched_gradgrad}
        return tuple(Check("gradgradcheck", second | {"gen_non_contig_grad_outputs": odd}) for odd in (False, True))
    if kind == "fwgrad_bwgrad":
        second = common | {
            "check_fwd_over_rev": True,
            "check_rev_over_rev": False,
            "check_undefined_grad": False,
        }
        return tuple(Check("gradgradcheck", second | {"gen_non_contig_grad_outputs": odd}) for odd in (False, True))
    if kind in {"forward", "inplace_forward"}:
        batched = op.check_inplace_batched_forward_grad if kind == "inplace_forward" else op.check_batched_forward_grad
        forward = {"check_forward_ad": True, "check_backward_ad": False, "check_batched_forward_grad": batched}
        return (Check("gradcheck", common | forward),)
    return (Check("gradcheck", common | {"check_batched_grad": op.check_batched_grad}),)


def _unbatched(check: Check) -> Check:
    """For Functions written without a thought of vmap: their first verdict would be their only one."""
    batched = {name: False for name in check.settings if name.startswith("check_batched")}
    return Check(check.order, dict(check.settings) | batched)


class _Subject:
    """The operator as a function of the sample's differentiable tensors alone, in the order in which they stand."""

    def __init__(self, op: Any, variant: Callable[..., object], sample: Any) -> None:
        self.op, self.variant, self.sample = op, variant, sample
        self.arguments = (sample.input, *sample.args, *sample.kwargs.values())
        self.variables = tuple(x for argument in self.arguments for x in _members(argument) if is_variable(x))

    def __call__(self, *variables: object) -> object:
        given = iter(variables)

        def place(argument: object) -> object:
            if not _is_list(argument):
                return next(given) if is_variable(argument) else argument
            return [next(given) if is_variable(x) else x for x in _members(argument)]

        placed = [place(argument) for argument in self.arguments]
        positional = 1 + len(self.sample.args)
        keywords = dict(zip(self.sample.kwargs, placed[positional:], strict=True))
        output = self.op.gradcheck_wrapper(self.variant, *placed[:positional], **keywords)
        finish = self.sample.output_process_fn_grad
        return output if finish is None else finish(output)


def _is_list(argument: object) -> bool:
    return isinstance(argument, (list, tuple)) and bool(argument) and all(isinstance(x, Tensor) for x in argument)


def _members(argument: object) -> tuple[object, ...]:
    return tuple(argument) if _is_list(argument) else (argument,)  # type: ignore[arg-type]
