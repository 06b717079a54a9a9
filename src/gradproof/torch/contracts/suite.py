"""Which contracts a torch function is held to, in what order, and what is left out.

The full set is for rules that people wrote. Where the graph holds torch's own operators alone, theirs are not in
question, and what one pull and one call show is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gradproof.contracts.suite import Kept, Terms
from gradproof.errors import first_line
from gradproof.result import Finding, Verdict
from gradproof.torch.contracts import registered, vmapped
from gradproof.torch.contracts.attributes import check_attributes
from gradproof.torch.contracts.layouts import check_layout
from gradproof.torch.contracts.pure import check_inputs, check_pure
from gradproof.torch.contracts.reentrant import check_repeatable
from gradproof.torch.contracts.reusable import check_reusable
from gradproof.torch.contracts.subject import Subject, slack_for
from gradproof.torch.contracts.subsets import MOST, check_subsets
from gradproof.torch.contracts.undefined import check_undefined
from gradproof.torch.torchprogram import TorchProgram


@dataclass(frozen=True, slots=True)
class Contract:
    """`price` is about how many calls and pulls it takes."""

    name: str
    check: Callable[[Subject], tuple[Finding, ...]]
    price: Callable[[Subject], int]
    applies: Callable[[Subject], bool] = lambda _: True


# Who fails one of these would seem to fail others.
FIRST = ("pure", "repeatable", "reusable")
# These need another point to call the function at.
AWAY = ("reusable", "vmap")
ONE_PULL = "contracts: those of one pull, because "
NO_RULE = "the graph holds no custom rule"
# For every function.
ALWAYS = (
    Contract("pure", check_pure, lambda _: 2),
    Contract("attributes", check_attributes, lambda _: 1),
    Contract("repeatable", check_repeatable, lambda _: 1),
)


def _for_rules(terms: Terms) -> tuple[Contract, ...]:
    """For functions with a rule that somebody wrote."""
    tests = registered.ALL if terms.by_hand else registered.QUICK
    return (
        Contract("reusable", check_reusable, lambda _: 2),
        Contract("undefined", check_undefined, lambda subject: 1 + 2 * len(subject.program.outputs)),
        Contract("layout", check_layout, lambda _: 9),
        Contract("subsets", check_subsets, _price_of_subsets, lambda subject: len(subject.program.inputs) > 1),
        Contract("vmap", vmapped.check_vmap, lambda _: 8, vmapped.applies),
        Contract("opcheck", partial(registered.check_registered, tests=tests), lambda _: 4, _has_operators(terms)),
    )


def _has_operators(terms: Terms) -> Callable[[Subject], bool]:
    """Asked for by name, they are looked for; else only those are known that the graph shows."""
    return lambda subject: terms.by_hand or registered.applies(subject)


def _price_of_subsets(subject: Subject) -> int:
    return 4 * min(len(subject.program.inputs), MOST)


def _enough(subject: Subject, terms: Terms) -> str:
    """Why the contracts of every function are enough."""
    if not subject.written:
        return NO_RULE
    return "the program is large; name the others to have them" if subject.large and not terms.by_hand else ""


def _no_pull(subject: Subject) -> str:
    """Why there is no reverse pass to look at."""
    try:
        _ = subject.first
    except Exception as error:  # noqa: BLE001  the core has met it too, and has said so
        return f"backward raised {type(error).__name__}: {first_line(error)}"
    return ""


def check_contracts(program: TorchProgram, terms: Terms) -> Kept:
    """Hold the program to all of them that are wanted and apply. A contract that cannot be run says so in a note."""
    twice = program.pulled_twice or (terms.repeated and program.strided)
    if twice and not (terms.by_hand or program.traced.written):
        return Kept(check_inputs(program), (f"{ONE_PULL}{NO_RULE}",))
    wanted = [contract for contract in ALWAYS if contract.name in terms.names]
    special = [contract for contract in _for_rules(terms) if contract.name in terms.names]
    if not (wanted or special) or not program.traced.any_graph:
        return Kept()
    program.terms = terms.made_of
    subject = Subject(
        program, terms.generator, slack_for(program, terms.tolerance.relative), terms.nondet_tol, terms.reach
    )
    away = [contract.name for contract in special if contract.name in AWAY and terms.reach == "point"]
    findings: list[Finding] = []
    notes: list[str] = []
    if special and (reason := _enough(subject, terms)):
        notes.append(f"{ONE_PULL}{reason}")
        special = [contract for contract in special if contract.name == "opcheck"]
    elif away:
        notes.append(f"contracts left out, because they call the function at another point: {', '.join(away)}")
        special = [contract for contract in special if contract.name not in away]
    dear: list[str] = []
    with program.scope:
        if terms.affords(1) and (reason := _no_pull(subject)):
            return Kept(notes=(f"contracts left out, because {reason}",))
        for contract in (*wanted, *special):
            if not contract.applies(subject):
                continue
            if not terms.affords(contract.price(subject)):
                dear.append(contract.name)
                continue
            try:
                found = contract.check(subject)
            except Exception as error:  # noqa: BLE001  the verdict on the numbers stands whatever happens here
                notes.append(f"contract {contract.name} could not be run: {type(error).__name__}: {first_line(error)}")
                continue
            findings += found
            if contract.name in FIRST and any(finding.verdict is Verdict.WRONG for finding in found):
                break  # what the others would compare is not the same twice
    if dear:
        notes.append(f"contracts left out by the budget: {', '.join(dear)}")
    return Kept(tuple(findings), tuple(notes))
