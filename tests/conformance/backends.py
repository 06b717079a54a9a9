"""The scenarios' view of NumPy, torch, JAX, and of a made-up framework of a third party."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradproof.cases import Call
from gradproof.conformance import Feature, Rule

EVERYTHING = frozenset(Feature)


def flat(value: Any) -> list[Any]:
    """The leaves of dicts, lists and tuples."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in flat(part)]
    return [value]


def like(value: Any, leaves: Iterator[Any]) -> Any:
    """The same structure with other leaves."""
    if isinstance(value, dict):
        return {key: like(part, leaves) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)([like(part, leaves) for part in value])
    return next(leaves)


class NumpyBackend:
    name = "NumPy"
    features = EVERYTHING
    xp = np

    def array(self, values: np.ndarray) -> Any:
        return values.copy()

    def numbers(self, array: Any) -> np.ndarray:
        return np.asarray(array)

    def constant(self, array: Any) -> Any:
        return array

    def call(self, rule: Rule, args: tuple[Any, ...]) -> Call:
        derivative: dict[str, Any] = {"vjp": lambda w, *a: rule.vjp(self, w, *a)}
        if rule.jvp is not None:
            jvp = rule.jvp
            derivative["jvp"] = lambda v, *a: jvp(self, v if len(args) > 1 else (v,), *a)
        if rule.hessp is not None:
            hessp = rule.hessp
            derivative["hessp"] = lambda x, p: hessp(self, p, x)
        return Call(lambda *a: rule.forward(self, *a), args, options={"derivative": derivative})


class TorchBackend:
    """Autograd does not let a function overwrite what its backward needs; tests/torch has cases where it may."""

    name = "torch"
    features = EVERYTHING - {Feature.IN_PLACE}

    def __init__(self) -> None:
        self.xp = importlib.import_module("torch")

    def array(self, values: np.ndarray) -> Any:
        return self.xp.from_numpy(values.copy())

    def numbers(self, array: Any) -> np.ndarray:
        return array.detach().resolve_conj().numpy()

    def constant(self, array: Any) -> Any:
        return array.detach()

    def call(self, rule: Rule, args: tuple[Any, ...]) -> Call:
        return Call(self._function(rule), args)

    def _function(self, rule: Rule) -> Any:
        backend = self

        def fn(*args: Any) -> Any:
            shape: list[Any] = []

            class Attached(self.xp.autograd.Function):
                @staticmethod
                def forward(ctx: Any, *leaves: Any) -> Any:
                    ctx.save_for_backward(*leaves)
                    ctx.save_for_forward(*leaves)
                    found = rule.forward(backend, *like(args, iter(leaves)))
                    shape.append(found)
                    return tuple(flat(found))

                @staticmethod
                def backward(ctx: Any, *cotangents: Any) -> Any:
                    w = like(shape[0], iter(cotangents))
                    return tuple(flat(rule.vjp(backend, w, *like(args, iter(ctx.saved_tensors)))))

            if rule.jvp is not None:
                jvp = rule.jvp

                def pushed(ctx: Any, *tangents: Any) -> Any:
                    return tuple(flat(jvp(backend, tangents, *like(args, iter(ctx.saved_tensors)))))

                Attached.jvp = staticmethod(pushed)
            outputs = Attached.apply(*flat(args))
            return like(shape[0], iter(outputs))

        return fn


class JaxBackend:
    """A function has one rule, from which JAX makes both modes, or a vjp alone."""

    name = "JAX"
    features = EVERYTHING - {Feature.IN_PLACE, Feature.RAISING, Feature.FORWARD}

    def __init__(self) -> None:
        self._jax = importlib.import_module("jax")
        self.xp = importlib.import_module("jax.numpy")

    def array(self, values: np.ndarray) -> Any:
        return self.xp.asarray(values)

    def numbers(self, array: Any) -> np.ndarray:
        return np.asarray(array)

    def constant(self, array: Any) -> Any:
        return self._jax.lax.stop_gradient(array)

    def call(self, rule: Rule, args: tuple[Any, ...]) -> Call:
        if rule.jvp is None:
            return Call(self._reverse(rule), args)
        fn, jvp = self._jax.custom_jvp(lambda *a: rule.forward(self, *a)), rule.jvp
        fn.defjvp(lambda a, v: (rule.forward(self, *a), jvp(self, v, *a)))
        return Call(fn, args)

    def _reverse(self, rule: Rule) -> Any:
        """JAX's cotangents and gradients are the conjugates of those of the real inner product."""
        conj = self.xp.conj
        fn = self._jax.custom_vjp(lambda *a: rule.forward(self, *a))

        def backward(a: Any, w: Any) -> Any:
            return self._jax.tree.map(conj, rule.vjp(self, self._jax.tree.map(conj, w), *a))

        fn.defvjp(lambda *a: (rule.forward(self, *a), a), backward)
        return fn


class BoxesBackend:
    name = "boxes"
    features = frozenset({Feature.FORWARD, Feature.RAISING})
    xp = np

    def array(self, values: np.ndarray) -> Any:
        boxes = importlib.import_module("boxes")
        return boxes.Box(values.copy()) if values.dtype.kind == "f" else values

    def numbers(self, array: Any) -> np.ndarray:
        return np.asarray(getattr(array, "numbers", array))

    def constant(self, array: Any) -> Any:
        return array

    def call(self, rule: Rule, args: tuple[Any, ...]) -> Call:
        boxes = importlib.import_module("boxes")
        jvp = rule.jvp
        return Call(
            boxes.Boxed(
                lambda *a: rule.forward(self, *a),
                lambda w, *a: rule.vjp(self, w, *a),
                None if jvp is None else lambda v, *a: jvp(self, v, *a),
            ),
            args,
        )
