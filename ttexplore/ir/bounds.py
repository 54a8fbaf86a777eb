"""What is known about the variables of a kernel: how far loops and block indices go, what names stand for."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import ir, tirx

from ttexplore.ir.build import statements
from ttexplore.ir.sizes import size_variables
from ttexplore.plan import SIZE_PREFIX

BLOCK_RANGES = "tt.block_ranges"
# Indices are computed in 32 bits: a T.dynamic size is less than this.
MAX_SIZE = 1 << 24


class Bounds:
    """What is known about the variables around a statement.

    `ranges` knows the loops, `proofs` also what the kernel's own variables stand for; page expressions are simplified
    with the first alone, so that they speak of the kernel's variables. A function whose launch grid is a loop over
    work items already says in an attribute how far each block index goes.
    """

    def __init__(self, function: Any) -> None:
        self.ranges = tvm.sym.Analyzer()
        self.proofs = tvm.sym.Analyzer()
        self.blocks: dict[Any, Any] = dict((function.attrs or {}).get(BLOCK_RANGES, {}))
        for size in size_variables(function):
            self._size(size)

    def enter(self, statement: Any) -> None:
        """Learn from a loop or a binding that the following statements are under."""
        if isinstance(statement, tirx.For):
            # Proofs compare expressions in their simplest form.
            span = ir.Range.from_min_extent(statement.min, self.ranges.simplify(statement.extent))
            self.ranges.bind(statement.loop_var, span, True)
            self.proofs.bind(statement.loop_var, span, True)
        elif isinstance(statement, tirx.Bind):
            if statement.var in self.blocks:
                extent = self.ranges.simplify(self.blocks[statement.var])
                self.proofs.bind(statement.var, ir.Range.from_min_extent(tirx.const(0, "int32"), extent), True)
            elif isinstance(statement.value, ir.Call) and str(statement.value.op.name) == "tt.core_value":
                if str(statement.value.args[0].value).startswith(SIZE_PREFIX):
                    self._size(statement.var)
            else:
                self.proofs.bind(statement.var, statement.value, True)

    def _size(self, variable: Any) -> None:
        self.proofs.bind(variable, ir.Range(tirx.const(1, "int32"), tirx.const(MAX_SIZE, "int32")), True)

    def proves(self, condition: Any) -> bool:
        """Whether a condition always holds."""
        return bool(self.proofs.can_prove(condition))

    def may_be_empty(self, loop: Any) -> bool:
        """Whether a loop that comes next can make no turn at all."""
        return not self.proves(loop.extent >= 1)


def empty_loops(function: Any) -> frozenset[Any]:
    """The variables of the loops of a kernel that may make no turn."""
    bounds, found = Bounds(function), set[Any]()

    def visit(body: Any) -> None:
        for statement in statements(body):
            if isinstance(statement, tirx.For) and bounds.may_be_empty(statement):
                found.add(statement.loop_var)
            bounds.enter(statement)
            if isinstance(statement, tirx.For):
                visit(statement.body)

    visit(function.body)
    return frozenset(found)
