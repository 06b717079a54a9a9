"""The seam, for torch: values, pull, push and gradient of a call at a point."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial

import numpy as np
import torch

from gradproof.batching import DIGITS, ELEMENTS, Known, Lane, Way, Work, outside
from gradproof.errors import Unsupported, first_line
from gradproof.program import Array, Every, Leaf, Skipped, Tally, read_only
from gradproof.routes import Route
from gradproof.torch.batchrules import REVERSE, Batching, Rows
from gradproof.torch.calls import Call, UserCall
from gradproof.torch.every import whole
from gradproof.torch.gradientcall import GradientCall
from gradproof.torch.graph import Graph, forwardless, trace
from gradproof.torch.leaves import is_strided, rows_of
from gradproof.torch.looping import evaluate_each, gives
from gradproof.torch.modes import forward, forward_along, reverse, reverse_copies
from gradproof.torch.purity import Modes, Purity, move_on, streams
from gradproof.torch.widening import unrounded, widened
from gradproof.torch.written import routes
from gradproof.unrounded import Unrounded

# Fewer rows than this run one by one: a batch of calls costs as much as some of them, one of reverse passes as one.
FEW, TWO = 8, 2
SHORTER = 4  # batches of reverse passes: in an operator without a batching rule, each row may copy all of them


class TorchProgram:
    """Implements `gradproof.program.Program`. An evaluation of a gradient program counts as one evaluation."""

    def __init__(self, call: Call, name: str, point: Array, tally: Tally, parent: TorchProgram | None = None) -> None:
        self.call, self.name, self.tally = call, name, tally
        self.parent, self._point = parent, point
        self.whole = Purity(call.modules, call.reading, call.held)  # around all that is done with the program
        self.scope: Modes = self.whole  # whoever uses the graph or the call does it in this scope
        self._shield: AbstractContextManager[None] = self.whole  # around what is only tried
        self.raised: Exception | None = None  # by the function, at a perturbed point
        self._refusal = Unsupported  # of forward mode
        self._graph_note = ""
        self._quiet: bool | None = None
        self._wide: TorchProgram | None = None
        self.pulled_alone: tuple[Array, Array] | None = None
        self.terms: tuple[float, ...] = ()  # see `sizes`
        self._reusable = True
        self.used = False  # whether a reverse pass has gone through the graph
        self.strided = not call.forms.by_input  # whether all gradients that were pulled alone are plain dense tensors
        with self.whole:
            self._trace()
            self._streams = streams(call.inputs.devices) if self.whole.moved() else ()
        self.draws = bool(self._streams)
        self._reversals = {name: by for name, by in REVERSE.items() if by or not self.draws}
        if not self.draws:
            self.scope, self._shield = Modes(call.modules, call.reading, call.held), nullcontext()
        self.inputs: tuple[Leaf, ...] = call.inputs.leaves
        self.outputs: tuple[Leaf, ...] = call.outputs.leaves
        self.skipped: tuple[Skipped, ...] = call.skipped
        self.point = read_only(point)
        self.value = read_only(value := call.outputs.vector(self.traced.values))
        most = max(1, ELEMENTS // max(1, point.size + value.size))
        roundoff = max(call.inputs.roundoff, call.outputs.roundoff)
        self._lanes = {
            "values": Lane("values", most, roundoff, TWO if parent else FEW, known=Known(point, self.value)),
            "pull": Lane("pull", max(1, most // SHORTER), roundoff, TWO, digits=DIGITS),
            "push": Lane("push", most, roundoff, TWO, digits=DIGITS),
        }
        if self._streams:
            self._lanes["values"].refuse("the function draws random numbers")
        for lane in self._lanes.values() if call.forms.reason else ():
            if not (lane.name == "push" and self._no_push) and not (lane.name == "pull" and call.forms.pulled_at_once):
                lane.refuse(call.forms.reason)
        for each in ("values" if parent else "pull", "pull") if call.hooked else ():
            self._lanes[each].refuse("there are hooks")  # what a hook keeps must not be a part of a batch

    @property
    def known(self) -> Known | None:
        """A cotangent that was pulled alone, and its gradient."""
        return self._lanes["pull"].known

    def remember(self, cotangent: Array, gradients: Sequence[torch.Tensor | None]) -> None:
        """Somebody has pulled a cotangent of all outputs alone: nobody else needs to."""
        result = self.call.inputs.vector(self.call.forms.gradients(gradients))
        self.pulled_alone = (cotangent, result)
        self._lanes["pull"].remember(cotangent[None], result[None])

    @property
    def pulled_twice(self) -> bool:
        """Whether it was pulled again in a batched pass that agrees with it to the last digits."""
        return self.known is not None and (lane := self._lanes["pull"]).exact and bool(self._reversals.get(lane.way))

    @property
    def graph(self) -> Graph:
        """The same, to be used. Some graphs serve only once: where a second use raises, `renewed` gives another one."""
        if not self._reusable:
            return self.renewed()
        self.used = True
        return self.traced

    def renewed(self) -> Graph:
        with self.scope:
            self._trace()
        self.used = True
        return self.traced

    @property
    def notes(self) -> tuple[str, ...]:
        lanes = [lane.note for lane in self._lanes.values()]
        sentences = [*lanes, self._graph_note, self.call.hooked, outside(self.raised)]
        return tuple([sentence for sentence in sentences if sentence])

    @property
    def alone(self) -> int:
        return self._lanes["values"].few - 1

    @property
    def batched(self) -> bool:
        return self._lanes["values"].works(self._point, self.value.size, self._evaluation())

    def _evaluation(self) -> Work:
        """Made anew each time: kept, it would hold the program, which then outlives its last user."""
        return Work((Way("vmap", self._values_many),), self._values_each, self._shield)

    def values(self, points: Array) -> Array:
        rows = rows_of(points, self._point.size)
        result = np.empty((len(rows), self.value.size))
        with self.scope:
            self._lanes["values"].run(rows, result, self._evaluation())
        return result

    def repeated_value(self) -> Array:
        """One more plain call at the point. If the first one drew random numbers, every stream is moved on before it:
        each seam call starts from the same random state, so nothing else would show that the function is random."""
        result = np.empty(self.value.size)
        with self.scope:
            move_on(self._streams)
            if self._quiet is not None or not self._same_without_graph(result):
                self._values_each(self._point[None].copy(), result[None])
        return result

    def pull(self, cotangents: Array) -> Array:
        rows, lane = rows_of(cotangents, self.value.size), self._lanes["pull"]
        if not self.traced.any_graph:
            self.tally.pulls += len(rows)
            return np.zeros((len(rows), self._point.size))
        self._refuse_dead_ends()
        result, many = np.empty((len(rows), self._point.size)), len(rows) >= lane.few
        with self.scope:
            move_on(self._streams)
            ways = [Way(name, partial(self._pull_many, by)) for name, by in self._reversals.items()] if many else []
            lane.run(rows, result, Work(tuple(ways), self._pull_each, self._shield))
        lane.remember(rows, result)
        return result

    def every_pull(self, more: Array) -> Every | None:
        if not (self._reusable and self.traced.any_graph):
            return None
        self._refuse_dead_ends()
        with self.scope:
            move_on(self._streams)
            rows = rows_of(more, self.value.size)
            ways = {name: partial(self._reverse_many, by) for name, by in self._reversals.items()}
            return whole(self._lanes["pull"], ways, (self.call.outputs, self.call.inputs), rows)

    def push(self, tangents: Array) -> Array:
        rows = rows_of(tangents, self._point.size)
        result = np.empty((len(rows), self.value.size))
        if self._no_push:
            raise self._refusal(self._no_push)
        try:
            with self.scope, torch.enable_grad():
                ways = (Way("vmap", self._push_many), Way("vmap of the tangents", self._push_tangents))
                self._lanes["push"].run(rows, result, Work(ways, self._push_each, self._shield))
        except Unsupported as unsupported:
            # Not itself: it holds on to the vectors of all calls that it came through.
            self._no_push, self._refusal = str(unsupported), type(unsupported)
            raise
        self._lanes["push"].remember(rows, result)
        return result

    @cached_property
    def _no_push(self) -> str:  # why there is no forward mode, as far as it is known
        return self.call.forms.no_push or forwardless(self.traced.written)

    def gradient(self, cotangent: Array) -> TorchProgram:
        self._refuse_dead_ends()
        point = np.concatenate([self._point, np.asarray(cotangent, dtype=np.float64).reshape(self.value.size)])
        return TorchProgram(GradientCall(self.call), f"gradient of {self.name}", point, self.tally, self)

    def gradient_at(self, cotangents: Sequence[torch.Tensor | None]) -> TorchProgram:
        """The same with a choice: one cotangent for each output. See `GradientCall`."""
        self._refuse_dead_ends()
        call = GradientCall(self.call, cotangents)
        return TorchProgram(call, f"gradient of {self.name}", call.point(self._point), self.tally, self)

    def of(self, call: UserCall) -> TorchProgram:
        """Another call at the same point."""
        return TorchProgram(call, self.name, self._point, self.tally)

    def widened(self) -> TorchProgram:
        if self._wide is None:
            self._wide = widened(self)
        return self._wide

    def unrounded(self) -> Unrounded[TorchProgram] | None:
        return unrounded(self)

    def routes(self) -> tuple[Route, ...]:
        return routes(self.traced, [leaf.path for leaf in self.inputs])

    def _refuse_dead_ends(self) -> None:
        """Only the graph of a gradient can have them."""
        if self.parent is not None and self.traced.dead_end:
            raise Unsupported(self.traced.dead_end)

    def _trace(self) -> None:
        self.traced = trace(self.call, self._point)
        self.tally.evaluations += 1

    def _values_many(self, rows: Array, into: Array) -> None:
        with torch.no_grad():
            self.call.outputs.write(self.call.many(self.call.inputs.tensors(rows)), into)
        self.tally.evaluations += len(rows)

    def _values_each(self, rows: Array, into: Array) -> None:
        if self._quiet is None and len(rows) >= FEW:  # some calls with a graph take no longer than to find out
            self._same_without_graph(np.empty(self.value.size))
        failed = evaluate_each(self.call, rows, into, "without" if self._quiet else "with")
        self.tally.evaluations += len(rows)
        self.raised = self.raised or failed

    def _same_without_graph(self, value: Array) -> bool:
        """See `gives`; `value` gets what it gives."""
        self.tally.evaluations += 1
        with self._shield:
            self._quiet = gives(self.call, self._point, min(2, self._lanes["values"].most), self.value, value)
        return self._quiet

    def _pull_many(self, batching: Batching | None, rows: Array, into: Array) -> None:
        self.call.inputs.write(self._reverse_many(batching, self.call.outputs.tensors(rows)), into)

    def _reverse_many(self, batching: Batching | None, cotangents: Rows) -> Sequence[torch.Tensor | None]:
        if batching is None:
            gradients = reverse_copies(self.call.many, self.traced.points, cotangents)
            self.tally.evaluations += cotangents[0].shape[0]
        else:
            graph = self.graph
            gradients = reverse(graph.values, graph.points, cotangents, batching=batching)
        self.tally.pulls += cotangents[0].shape[0]
        return self.call.forms.gradients(gradients)

    def _pull_each(self, rows: Array, into: Array) -> None:
        for row, target in zip(rows, into, strict=True):
            gradients = self._pull_one(row)
            self.strided &= all(one is None or is_strided(one) for one in gradients)
            self.call.inputs.write(self.call.forms.gradients(gradients), target)
            self.tally.pulls += 1

    def _pull_one(self, cotangent: Array) -> list[torch.Tensor | None]:
        used, graph = self.used and self._reusable, self.graph
        try:
            return reverse(graph.values, graph.points, self.call.outputs.tensors(cotangent))
        except Unsupported:
            raise
        except Exception as error:
            if not used:
                raise
            # Some graphs serve only once. If a new one does not help either, the error is the user's to see.
            graph = self.renewed()
            gradients = reverse(graph.values, graph.points, self.call.outputs.tensors(cotangent))
            self._reusable = False
            self._graph_note = f"pull: a new graph each time, because {first_line(error)}"
            return gradients

    def _push_many(self, rows: Array, into: Array) -> None:
        points = [leaf.detach().expand(len(rows), *leaf.shape).clone() for leaf in self.traced.points]
        self._pushed(forward(self.call.many, points, self.call.inputs.tensors(rows)), into)

    def _push_tangents(self, rows: Array, into: Array) -> None:
        self._pushed(forward_along(self.call.one, self.traced.points, self.call.inputs.tensors(rows)), into)

    def _pushed(self, tangents: Sequence[torch.Tensor | None], into: Array) -> None:
        self.call.outputs.write(tangents, into)
        self.tally.pushes += len(into)

    def run_dual(self, duals: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """The values of dual numbers; whoever calls has opened a dual level."""
        # Only a copy is of its form again: a dual number has lost its class.
        return self.call.one(self.call.forms.copies(duals) if self.call.forms.by_input else duals)

    def _push_each(self, rows: Array, into: Array) -> None:
        for row, target in zip(rows, into, strict=True):
            points = self.call.forms.copies([leaf.detach() for leaf in self.traced.points])
            tangents = forward(self.run_dual, points, self.call.forms.arguments(self.call.inputs.tensors(row)))
            self.call.outputs.write(tangents, target)
            self.tally.pushes += 1
