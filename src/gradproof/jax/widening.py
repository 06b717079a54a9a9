"""A float64 copy of a program, and of what is derived from one: with the casts inside of it, or without."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradproof.batching import agree
from gradproof.copies import refuse_others, unsupported_in_double
from gradproof.errors import Unsupported
from gradproof.jax.calls import Call, UserCall
from gradproof.jax.casts import WithoutCasts, can_be_left_out, narrowest
from gradproof.jax.recipes import Recipe, operations, traced
from gradproof.jax.scope import Scope
from gradproof.precision import DOUBLE, SINGLE, form_of, of
from gradproof.unrounded import Unrounded

if TYPE_CHECKING:
    from gradproof.jax.jaxprogram import JaxProgram


def widened(program: JaxProgram) -> JaxProgram:
    """The program itself where its arguments are float64 already."""
    if program.origin is not None:
        wide = program.origin.program.widened()
        return program if wide is program.origin.program else _derived_like(program, wide)
    assert isinstance(program.call, UserCall)
    scope = Scope("on")
    with scope:
        call = program.call.widened()
    return program if call is None else _copied(program, call, scope)


def unrounded(program: JaxProgram) -> Unrounded[JaxProgram] | None:
    """See `gradproof.unrounded`."""
    if program.origin is not None:
        found = program.origin.program.unrounded()
        return found and replace(found, program=_derived_like(program, found.program))
    if type(program.call) is not UserCall or not can_be_left_out():
        return None
    wide = Scope("on")
    with wide:
        call = program.call.widened() or program.call.anew()
    try:
        native, kept = (narrowest(_jaxpr(*one)) for one in ((program.call, program.scope), (call, wide)))
    except Exception:  # noqa: BLE001  what cannot be traced may do anything inside
        return None
    if not (native or kept):
        return None
    # What a rule rounds to that is coarser than all that the function does is no part of the function.
    least = min(of(name).bits for name in (native, kept, form_of(program).name) if name)
    return Unrounded(_copied(program, call, WithoutCasts(least)), native or DOUBLE.name)


def _copied(program: JaxProgram, call: UserCall, scope: Scope) -> JaxProgram:
    wide = _in_double(program, call, scope)
    if not agree(wide.value, program.value, program.roundoff) and _is_stale(wide):
        wide.runs.shelf.renew()
        wide = _in_double(program, call, scope)
    if not agree(wide.value, program.value, program.roundoff):
        _refuse_other_draws(program.call, program.scope, call, scope)
    return wide


def _is_stale(wide: JaxProgram) -> bool:
    """Whether what was kept does something else than the function does now: else the narrow format is far off."""
    shelf, point = wide.runs.shelf, wide.runs.point
    if shelf.fresh:
        return False
    assert isinstance(wide.call, UserCall)
    try:
        with wide.scope:
            then = Recipe(shelf.family.one.trace(point).jaxpr)  # for arguments of this form it has been traced
            return not Recipe(traced(wide.call.anew().run, point)).same_as(then)
    except Exception:  # noqa: BLE001  what cannot be traced may be anything
        return True


def _refuse_other_draws(native: Call, scope: Scope, wide: UserCall, wider: Scope) -> None:
    """`jax.random` draws as many bits as its dtype has, which is by default the widest there is."""
    if isinstance(native, UserCall) and _drawn(native, scope) != _drawn(wide, wider):
        raise Unsupported("jax.random draws other numbers in 64-bit mode unless told the dtype")


def _drawn(call: UserCall, scope: Scope) -> list[Any]:
    try:
        found = operations(_jaxpr(call, scope))
    except Exception:  # noqa: BLE001  what cannot be traced may draw anything
        return []
    return [eqn.params.get("bit_width") for eqn in found if eqn.primitive.name == "random_bits"]


def _jaxpr(call: UserCall, scope: Scope) -> Any:
    with scope:
        return traced(call.anew().run, [array for _, array in call.start]).jaxpr


def _in_double(program: JaxProgram, call: UserCall, scope: Scope) -> JaxProgram:
    with unsupported_in_double():
        wide = program.of(call, scope)
    refuse_others(program.outputs, wide.outputs)
    if program.roundoff <= SINGLE.roundoff:
        _lean(wide, program)
    return wide


def _lean(wide: JaxProgram, native: JaxProgram) -> None:
    """What the native program has shown of a pull or a push suffices to believe in a batch here, which makes a plain
    call unnecessary: in float64 that would compile every operation by itself."""
    for name in ("pull", "push"):
        lane = wide.lanes[name]
        lane.native, lane.few = native.lanes[name], 1


def _derived_like(program: JaxProgram, wide: JaxProgram) -> JaxProgram:
    """From a wide program, as the given one is from its origin."""
    origin = program.origin
    assert origin is not None
    with unsupported_in_double():
        if origin.word == "linearized":
            return wide.linearized()
        direction = program.point[origin.program.point.size :]
        return wide.gradient(direction) if origin.word == "gradient" else wide.tangent(direction)
