"""T.any_of and T.all_of of blocks that hold no part of a tensor: the compute kernel looks at the elements."""

from __future__ import annotations

import math

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import allocation, dtype_of, loop, variable, when, with_value
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.operations.quantified import Quantified, quantified_of
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite
from ttexplore.passes.normalize.decisions.loaded_blocks import LoadedBlocks

# The elements of a computed block become blocks of their own.
_MOST_ELEMENTS = 256


def with_asked_blocks(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel whose T.any_of and T.all_of of blocks that are computed are loops over the elements.

                                                  answer = T.alloc_var("int32", init=0)
        holds = T.any_of(m)                       for i in T.serial(16):
                                         ==>          if m[i] != 0:
                                                          answer = 1
                                                  holds = answer

    Of blocks that hold a part of a tensor the reader makes one number. Raises Unsupported for too many elements.
    """
    return rewrite(_RULES, _AskedBlocks(function, firings))


class _AskedBlocks(Context):
    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.held = LoadedBlocks(function)

    def seen(self, statement: tirx.Stmt) -> None:
        """Not a rule that changes statements."""
        if not self.is_in_nest:
            self.held.pass_by(statement, [*self.around])

    def asked(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        block = quantified_of(statement.value) if isinstance(statement, tirx.Bind) else None
        if block is None or not is_on_chip(block.source):
            return None
        if self.held.part(block, [*self.around], self.bounds) is not None:
            return None
        assert isinstance(statement, tirx.Bind)
        return self.looped(statement, block)

    @staticmethod
    def looped(statement: tirx.Bind, block: Quantified) -> list[tirx.Stmt]:
        name, count = str(block.source.name), math.prod(block.extents)
        if count > _MOST_ELEMENTS:
            raise Unsupported(
                "L005",
                f"{'T.all_of' if block.of_all else 'T.any_of'} of {count:,} elements of {name}, which only the compute "
                f"kernel knows; at most {_MOST_ELEMENTS} are looked at one by one",
                hint=f"ask the tensor, or {name} before it changes; or reduce it: T.reduce_max(T.abs(...), r)",
                span=span_of(statement),
            )
        span, zero = statement.span, tirx.const(0, "int32")
        answer = allocation(f"{statement.var.name}_answer", (1,), "int32", "local.var", span)
        indices = [variable(f"element{axis}") for axis in range(len(block.extents))]
        load = tirx.BufferLoad(
            block.source, [low + index for low, index in zip(block.first.indices, indices, strict=True)], span
        )
        dtype = dtype_of(block.source)
        test: ir.Expr = load if dtype == "bool" else tirx.NE(load, tirx.const(0, dtype))
        decided = tirx.BufferStore(answer.buffer, tirx.const(1 - block.of_all, "int32"), [zero], span)
        nest: tirx.Stmt = when(tirx.Not(test) if block.of_all else test, [decided], span)
        for index, extent in reversed([*zip(indices, block.extents, strict=True)]):
            nest = loop(index, extent, [nest], span=span)
        first = tirx.BufferStore(answer.buffer, tirx.const(int(block.of_all), "int32"), [zero], span)
        return [answer, first, nest, with_value(statement, tirx.BufferLoad(answer.buffer, [zero]))]


_RULES = (
    StatementRule("what blocks hold", "What a block holds of a tensor is noted; nothing changes.", _AskedBlocks.seen),
    StatementRule(
        "elements of a computed block", "Whether any element of a computed block is true is found in a loop.",
        _AskedBlocks.asked,
    ),
)  # fmt: skip
