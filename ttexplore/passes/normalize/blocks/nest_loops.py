"""The loops of a T.Parallel, counted in other ways."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm import ir, sym, tirx

from ttexplore.ir.build import constant, parallel_loops, parallel_variables, variable
from ttexplore.ir.dag import replaced
from ttexplore.ir.dataflow import is_parallel, parallel_body


@dataclass(frozen=True)
class _Joint:
    """Two loop variables as one: the outer one is a quotient of it, the inner one a rest."""

    outer: ir.Var
    inner: ir.Var
    joined: ir.Var
    extents: tuple[int, int]

    @property
    def values(self) -> dict[ir.Expr, ir.Expr]:
        length = tirx.const(self.extents[1], "int32")
        return {self.outer: tirx.floordiv(self.joined, length), self.inner: tirx.floormod(self.joined, length)}


@dataclass
class NestLoops:
    """The variables of a T.Parallel with their extents, and its body."""

    variables: list[ir.Var]
    extents: list[int]
    body: list[tirx.BufferStore | tirx.Bind]

    def join(self, outer: int, inner: int) -> None:
        """Make one variable of two."""
        a, b = self.variables[outer], self.variables[inner]
        joint = _Joint(a, b, variable(f"{a.name}_{b.name}"), (self.extents[outer], self.extents[inner]))
        self.variables[outer] = joint.joined
        self.extents[outer] *= self.extents[inner]
        del self.variables[inner], self.extents[inner]
        self.replace(joint.values)

    def reshape(self, shape: Sequence[int]) -> None:
        """Count along the axes of a block of as many elements."""
        new_variables = parallel_variables(len(shape))
        indices = indices_of_element(number_of_element(new_variables, shape), self.extents)
        values = dict(zip(self.variables, indices, strict=True))
        self.variables, self.extents = new_variables, [*shape]
        self.replace({**values})

    def replace(self, values: Mapping[ir.Expr, ir.Expr]) -> None:
        """Put what variables are now in their place."""
        analyzer = self.ranges()

        def rule(expr: ir.Expr) -> ir.Expr:
            if isinstance(expr, ir.TensorLoad):
                return tirx.BufferLoad(expr.source, [analyzer.simplify(index) for index in expr.indices], expr.span)
            return values.get(expr, expr)

        for number, statement in enumerate(self.body):
            value = replaced(statement.value, rule)
            if isinstance(statement, tirx.Bind):
                self.body[number] = tirx.Bind(statement.var, value, statement.span)
            else:
                indices = [analyzer.simplify(replaced(index, rule)) for index in statement.indices]
                self.body[number] = tirx.BufferStore(statement.buffer, value, indices, statement.span)

    def ranges(self) -> sym.Analyzer:
        analyzer = sym.Analyzer()
        for loop_var, extent in zip(self.variables, self.extents, strict=True):
            analyzer.bind(loop_var, ir.Range.from_min_extent(tirx.const(0, "int32"), tirx.const(extent, "int32")))
        return analyzer

    def made(self) -> tirx.Stmt:
        body = self.body[0] if len(self.body) == 1 else tirx.SeqStmt(self.body)
        return parallel_loops(self.variables, self.extents, body)


def loops_of_nest(statement: tirx.Stmt) -> NestLoops | None:
    """The loops of a whole T.Parallel of constant lengths that only stores, and names values; None for others."""
    if not is_parallel(statement):
        return None
    loops, body = parallel_body(statement)
    extents = [constant(loop.extent) for loop in loops]
    inside = [statement for statement in body if isinstance(statement, tirx.BufferStore | tirx.Bind)]
    if None in extents or len(inside) != len(body) or any(constant(loop.min) != 0 for loop in loops):
        return None
    return NestLoops([loop.loop_var for loop in loops], [extent for extent in extents if extent is not None], inside)


def number_of_element(indices: Sequence[ir.Expr], shape: Sequence[int]) -> ir.Expr:
    """The number of an element in a block of a shape, row by row."""
    number: ir.Expr = tirx.const(0, "int32")
    for index, length in zip(indices, shape, strict=True):
        number = number * length + index
    return number


def indices_of_element(number: ir.Expr, lengths: Sequence[int]) -> list[ir.Expr]:
    """The indices along axes of these lengths of an element with a number."""
    indices: list[ir.Expr] = []
    for axis, length in enumerate(lengths):
        index = tirx.floordiv(number, tirx.const(math.prod(lengths[axis + 1 :]), "int32"))
        indices.append(tirx.floormod(index, tirx.const(length, "int32")) if axis else index)
    return indices
