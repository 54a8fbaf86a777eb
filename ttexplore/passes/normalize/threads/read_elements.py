"""Elements of blocks and tensors that are read outside of T.Parallel: their indices must lie inside."""

from __future__ import annotations

import itertools

from tvm import ir, sym, tirx

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import span_of, with_variables
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.ir.build import constant, expressions_of
from ttexplore.ir.dag import nodes_of, written_out
from ttexplore.ir.dataflow import certain_loads, is_parallel, loads_of
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite

# An index is tried at the ends of at most so many loops together.
_MOST_LOOPS = 4


def check_elements(function: tirx.PrimFunc) -> None:
    """Raise KernelError where a kernel reads an element outside of a block or a tensor in a turn that its loops
    certainly make.

    Reads under a condition, and indices that depend on what is known only when the kernel runs, are left to the
    reference. In T.Parallel, the passes that read blocks there check indices.
    """
    rewrite([_CHECKED], _ElementReads(function, Firings()))


class _ElementReads(Context):
    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.names: dict[ir.Var, ir.Expr] = {}

    def check(self, statement: tirx.Stmt) -> None:
        if isinstance(statement, tirx.Bind):
            self.names[statement.var] = statement.value
        loads = [load for expr in expressions_of(statement) for load in certain_loads(expr)]
        if not loads:
            return
        loops = [statement for statement in self.around if isinstance(statement, tirx.For)]
        if len(loops) < len(self.around) or any(map(is_parallel, (*loops, statement))):
            return
        ends: dict[ir.Var, tuple[int, int]] = {}
        for loop in loops:
            low, extent = constant(loop.min), constant(loop.extent)
            if low is None or extent is None or extent < 1:
                return
            ends[loop.loop_var] = low, low + extent - 1
        for load in loads:
            self.check_load(load, ends, statement)

    def check_load(self, load: ir.TensorLoad, ends: dict[ir.Var, tuple[int, int]], statement: tirx.Stmt) -> None:
        for axis, (index, length) in enumerate(zip(load.indices, extents_of(load.source), strict=True)):
            expanded = written_out(index, self.names)
            if not isinstance(length, int) or loads_of(expanded):
                continue
            used = [node for node in nodes_of(expanded) if isinstance(node, ir.Var)]
            if len(used) > _MOST_LOOPS or any(loop_var not in ends for loop_var in used):
                continue
            for corner in itertools.product(*(ends[loop_var] for loop_var in used)):
                reached = _value(expanded, dict(zip(used, corner, strict=True)))
                if reached is not None and not 0 <= reached < length:
                    raise KernelError(
                        "K001",
                        f"{load.source.name} has {length} elements along axis {axis}, but this index "
                        + (f"reaches {reached}" if used else f"is {reached}"),
                        hint="check the index and the lengths of the loops around" if used else "check the index",
                        span=span_of(load) or span_of(statement),
                    )


def _value(index: ir.Expr, values: dict[ir.Var, int]) -> int | None:
    """The value of an index in one turn of the loops around; None for one that is no number then."""
    # A load names its buffer by a variable, too.
    named = with_variables(index, lambda var: tirx.const(values[var], "int32") if var in values else var)
    return constant(sym.Analyzer().simplify(named))


def _check(context: _ElementReads, statement: tirx.Stmt) -> None:
    context.check(statement)


_CHECKED = StatementRule(
    "element read", "Elements that are read lie in their block or tensor; nothing changes.", _check
)
