"""Comparisons of elements of tensors with index values that float32 does not hold."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection

from tvm import ir, sym, tirx

from ttexplore.analysis.expressions import LARGEST_INDEX
from ttexplore.ir.arithmetic.index import INT32_MOST
from ttexplore.ir.build import constant, dtype_of
from ttexplore.ir.dag import COMPARISON_TYPES, nodes_of, parts_of, replaced, with_parts, written_out
from ttexplore.ir.dataflow import is_on_chip, loads_of, parallel_body
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, walk
from ttexplore.passes.normalize.decisions.loaded_blocks import LoadedBlocks
from ttexplore.passes.normalize.decisions.loaded_scalars import MAX_VALUE, with_values

# What is added to an index (1), or taken away from it (-1).
_Term = tuple[ir.Expr, int]


def with_compared_indices(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel that compares the loop variables of a T.Parallel with what is left of an element of a tensor.

                                                        limit = T.min(T.max(T.max(Sizes[bx], -1) - k * 64, -1), 64)
        for i, j in T.Parallel(64, 64):                 for i, j in T.Parallel(64, 64):
            x[i, j] = T.if_then_else(             ==>       x[i, j] = T.if_then_else(
                k * 64 + j < Sizes[bx], x[i, j], 0)             j < limit, x[i, j], 0)

    Only where the index value may be one that float32 does not hold. The element, which a block may hold, is the same
    for all of the T.Parallel. Between one less than the index value can be and one more, it compares as before, and
    int32 holds the difference: what is taken away from the element is not negative, or is not too far from 0.
    """
    return rewrite(_RULES, _ComparedIndices(function, firings))


class _ComparedIndices(Context):
    @functools.cached_property
    def loaded(self) -> LoadedBlocks:
        return LoadedBlocks(self.function)

    @functools.cached_property
    def names(self) -> dict[ir.Var, ir.Expr]:
        """What names stand for."""
        return {node.var: node.value for node in walk(self.function.body) if isinstance(node, tirx.Bind)}

    def passed(self, statement: tirx.Stmt) -> None:
        """Not a rule that changes statements."""
        if not self.is_in_nest:
            self.loaded.pass_by(statement, [*self.around])

    def range(self, value: ir.Expr) -> tuple[int, int]:
        """The least and the greatest value of a number on which a limit depends: elements of tensors are checked then
        to be no greater than MAX_VALUE."""

        def limited(e: ir.Expr) -> ir.Expr:
            if not isinstance(e, ir.TensorLoad):
                return e
            element = tirx.Var("element", e.ty)
            self.bounds.enter(tirx.Bind(element, e))
            if dtype_of(e.source) == "int32":
                self.bounds.holds(element >= -MAX_VALUE)
                self.bounds.holds(element <= MAX_VALUE)
            return element

        return self.bounds.range(replaced(written_out(value, self.names), limited))

    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not self.is_nest(statement):
            return None
        loops, body = parallel_body(statement)
        values = [inner.value for inner in body if isinstance(inner, tirx.Bind | tirx.BufferStore)]
        candidates = [
            node for value in values for node in nodes_of(value) if type(node) in COMPARISON_TYPES and loads_of(node)
        ]
        if not candidates:
            return None
        for loop in loops:
            self.bounds.counts(loop)
        names = {inner.var: inner.value for inner in body if isinstance(inner, tirx.Bind)}
        inside = {loop.loop_var for loop in loops}
        limits: list[tirx.Stmt] = []
        comparisons: dict[ir.Expr, ir.Expr] = {}
        for node in candidates:
            sides = self.limited([written_out(side, names) for side in parts_of(node)], inside, limits)
            if sides is not None:
                comparisons[node] = with_parts(node, sides)
        return [*limits, with_values(statement, comparisons)] if limits else None

    def limited(
        self, sides: list[ir.Expr], inside: Collection[ir.Expr], limits: list[tirx.Stmt]
    ) -> list[ir.Expr] | None:
        """The sides of a comparison with a name for the limit, whose statement is added to `limits`."""
        for number, (index, compared) in enumerate((sides, sides[::-1])):
            element = self.element(compared, inside)
            if element is None or loads_of(index) or str(index.ty.dtype) != "int32":
                continue
            terms = _terms(sym.Analyzer().simplify(index))
            varying, alike = list[_Term](), list[_Term]()
            for term in terms:
                varies = constant(term[0]) is not None or any(node in inside for node in nodes_of(term[0]))
                (varying if varies else alike).append(term)
            if not varying or not alike or max(map(abs, self.range(index))) <= LARGEST_INDEX:
                continue
            varying_sum, alike_sum = _sum(varying), _sum(alike)
            least, most = self.bounds.range(varying_sum)
            ends = self.range(index), self.range(alike_sum)
            is_near = sum(max(map(abs, interval)) for interval in ends) < INT32_MOST
            if max(-least, most) >= LARGEST_INDEX or not (is_near or self.is_natural(alike_sum)):
                continue
            below, above = tirx.const(min(least, 0) - 1, "int32"), tirx.const(most + 1, "int32")
            limit = tirx.Var("limit", "int32")
            # int32 holds the difference: a lesser element compares as the one here does, and so does a greater one.
            if is_near:
                low, high = (tirx.const(end, "int32") for end in (ends[0][0] - 1, ends[0][1] + 1))
                difference = tirx.Min(tirx.Max(element, low), high) - alike_sum
            else:
                difference = tirx.Max(element, below) - alike_sum
            limits.append(tirx.Bind(limit, tirx.Min(tirx.Max(difference, below), above)))
            return [varying_sum, limit] if number == 0 else [limit, varying_sum]
        return None

    def is_natural(self, value: ir.Expr) -> bool:
        """Whether a number is not negative, by what is known of its variables or by the branches around."""
        if self.bounds.range(value)[0] >= 0:
            return True
        analyzer = sym.Analyzer()
        with contextlib.ExitStack() as scopes:
            for branch in self.around:
                if isinstance(branch, tirx.IfThenElse) and branch.else_case is None:
                    scopes.enter_context(analyzer.constraint_scope(branch.condition))
            return analyzer.can_prove(value >= 0)

    def element(self, value: ir.Expr, inside: Collection[ir.Expr]) -> ir.Expr | None:
        """The element of a tensor that nobody changes, the same in all of a T.Parallel, that a value is."""
        if not isinstance(value, ir.TensorLoad):
            return None
        if is_on_chip(value.source):
            element = self.loaded.element(value, [*self.around], self.bounds)
            if element is None or element.checks or element.past or not isinstance(element.value, ir.TensorLoad):
                return None
            value = element.value
        nodes = [node for index in value.indices for node in nodes_of(index)]
        changes = value.source in self.loaded.changed or any(
            node in inside or isinstance(node, ir.TensorLoad) for node in nodes
        )
        return value if dtype_of(value.source) == "int32" and not changes else None


def _terms(value: ir.Expr) -> list[_Term]:
    """What an index value adds (1) and takes away (-1)."""
    if not isinstance(value, tirx.Add | tirx.Sub):
        return [(value, 1)]
    sign = -1 if isinstance(value, tirx.Sub) else 1
    return [*_terms(value.a), *((term, sign * inner) for term, inner in _terms(value.b))]


def _sum(terms: list[_Term]) -> ir.Expr:
    total: ir.Expr | None = None
    for term, sign in sorted(terms, key=lambda term: -term[1]):
        total = (term if sign > 0 else -term) if total is None else total + term if sign > 0 else total - term
    assert total is not None
    return total


_RULES = (
    StatementRule(
        "what blocks hold", "What a block holds of a tensor is noted; nothing changes.", _ComparedIndices.passed
    ),
    StatementRule(
        "limit of an index",
        "What is left of an element, for what a T.Parallel adds to an index, gets a name.",
        _ComparedIndices.nest,
    ),
)
