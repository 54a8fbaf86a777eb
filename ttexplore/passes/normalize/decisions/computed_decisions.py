"""Reject names of what the chip computes where they decide something: the other kernels of a core do not know it."""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.arithmetic.limited import condition_of
from ttexplore.ir.build import dtype_of, expressions_of, op_name, regions, scope_of, statements
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import is_on_chip, is_parallel, parallel_body
from ttexplore.ir.rewrite import bodies
from ttexplore.ops import language as tl


def check_decisions(function: tirx.PrimFunc) -> None:
    """Raise Unsupported at the first statement that needs a number which only the compute kernel knows.

        v = T.if_then_else(x[0, 0] > 0, F[1], 2)
        if v > 2:                                   # the reader does not know v

    Elements of tensors, and of blocks that hold a part of one, have names of their own by now: what is left of a name
    are elements that are computed.
    """
    _ComputedDecisions().body(statements(function.body))


class _ComputedDecisions:
    def __init__(self) -> None:
        # Names, each with the element of a block that it depends on.
        self.computed: dict[ir.Expr, ir.TensorLoad] = {}

    def element(self, e: ir.Expr) -> ir.TensorLoad | None:
        """An element on the chip that an expression depends on, by way of a name or not."""
        for node in nodes_of(e):
            if isinstance(node, ir.TensorLoad) and is_on_chip(node.source):
                return node
            if node in self.computed:
                return self.computed[node]
        return None

    def named(self, e: ir.Expr) -> ir.TensorLoad | None:
        nodes = nodes_of(e) if self.computed else ()
        return next((self.computed[node] for node in nodes if node in self.computed), None)

    def body(self, body: list[tirx.Stmt]) -> None:
        for statement in body:
            if isinstance(statement, tirx.Bind):
                if (element := self.element(statement.value)) is not None:
                    self.computed[statement.var] = element
            elif is_parallel(statement):
                self.nest(statement)
            else:
                self.statement(statement)
                for inner in bodies(statement):
                    self.body(statements(inner))

    def statement(self, statement: tirx.Stmt) -> None:
        match statement:
            case tirx.IfThenElse():
                decision, values = "a condition around operations on blocks", [statement.condition]
            case tirx.For():
                decision, values = "the length of a loop", [statement.min, statement.extent]
            case tirx.Evaluate() if op_name(statement) in tl.STATEMENTS:
                decision = "the place of a block"
                values = [
                    bound
                    for region in regions(statement)
                    for interval in region.region
                    for bound in (interval.min, interval.extent)
                ]
            case _:
                return
        for value in values:
            if (element := self.named(value)) is not None:
                raise refused(decision, element, statement)

    def nest(self, nest: tirx.Stmt) -> None:
        for statement in parallel_body(nest)[1]:
            condition = condition_of(statement.value) if isinstance(statement, tirx.BufferStore) else None
            if condition is not None and (element := self.element(condition)) is not None:
                raise refused("a condition around a store to a tensor", element, statement)
            for value in expressions_of(statement):
                if (element := self.named(value)) is not None:
                    raise refused("a number in T.Parallel that also decides something", element, statement)


def refused(decision: str, load: ir.TensorLoad, statement: tirx.Stmt) -> Unsupported:
    """The refusal of a decision by what the chip computes."""
    is_variable = scope_of(load.source) == "local.var"
    holder = f"the variable {load.source.name}" if is_variable else f"an element of the block {load.source.name}"
    value = load.source.name if is_variable else f"{load.source.name}[...]"
    # What such variables are set to by other decisions is known, where no other dtype rounds it or wraps around.
    has_other_dtype = is_variable and dtype_of(load.source) not in ("int32", "bool")
    variables = ' or variables of int32, T.alloc_var("int32", init=0)' if has_other_dtype else ""
    return Unsupported(
        "L005",
        f"{decision} depends on {holder}, which only the compute kernel knows",
        hint=f"decide by block indices, loop indices and elements of input tensors{variables}; or choose elements in "
        f"T.Parallel: T.if_then_else({value} > 0, new, old)",
        span=span_of(statement),
    )
