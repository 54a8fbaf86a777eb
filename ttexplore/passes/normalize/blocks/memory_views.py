"""Blocks that a kernel puts over the memory of others in another dtype: here each has memory of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import expressions_of, is_whole, op_name, regions, statements
from ttexplore.ir.dataflow import is_parallel, loads_of, regions_used
from ttexplore.ir.operations.groups import VIEW_OF
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.threads.parallel_races import stores_all

_Buffers = frozenset[tirx.Buffer]


def check_views(function: tirx.PrimFunc) -> None:
    """Raise Unsupported where a kernel may read through one block what it stored through another over its memory.

        b = T.view(a, (16, 64), "float32")    # over a block of (32, 64) in bfloat16
        T.copy(A, a)
        T.gemm(a, x, c)
        T.copy(c, b)                          # then T.gemm(a, x, c) reads parts of float32
        T.copy(b, C)

    Where each block is stored completely before it is read again, memory of its own changes nothing.
    """
    allocated = [statement for statement in walk(function.body) if isinstance(statement, tirx.AllocBuffer)]
    bases = {str(dict(statement.annotations).get(VIEW_OF, "")) for statement in allocated} - {""}
    memories: dict[str, set[tirx.Buffer]] = {base: set() for base in bases}
    for statement in allocated:
        base = str(dict(statement.annotations).get(VIEW_OF, statement.buffer.name))
        if base in memories:
            memories[base].add(statement.buffer)
    assert all(len(memory) > 1 for memory in memories.values()), "each view has a base"
    if memories:
        sharing = {buffer: frozenset(memory - {buffer}) for memory in memories.values() for buffer in memory}
        _Contents(sharing).after(function.body, frozenset())


class _Contents:
    """What the memory of blocks may hold. `sharing` are those over the memory of each."""

    def __init__(self, sharing: dict[tirx.Buffer, _Buffers]) -> None:
        self.sharing = sharing
        self.names: dict[ir.Var, ir.Expr] = {}

    def after(self, body: tirx.Stmt | Sequence[tirx.Stmt], foreign: _Buffers) -> _Buffers:
        """The blocks whose memory may hold what was stored through another one, after statements before which it does
        for `foreign`."""
        for statement in statements(body) if isinstance(body, tirx.Stmt) else body:
            match statement:
                case tirx.For() | tirx.While() if not is_parallel(statement):
                    before: _Buffers | None = None
                    while before != foreign:
                        before = foreign
                        self.read(statement, self.loaded(expressions_of(statement)), foreign)
                        foreign |= self.after(statement.body, foreign)
                case tirx.IfThenElse():
                    self.read(statement, self.loaded(expressions_of(statement)), foreign)
                    sides = [statement.then_case, *([] if statement.else_case is None else [statement.else_case])]
                    ends = [self.after(side, foreign) for side in sides]
                    foreign = foreign.union(*ends) if len(sides) == 1 else ends[0] | ends[1]
                case _:
                    foreign = self.after_block(statement, foreign)
        return foreign

    def after_block(self, statement: tirx.Stmt, foreign: _Buffers) -> _Buffers:
        if isinstance(statement, tirx.Bind):
            self.names[statement.var] = statement.value
        inner = [*walk(statement)] if is_parallel(statement) else [statement]
        reads = self.loaded(value for nested in inner for value in expressions_of(nested))
        writes = [
            nested.buffer for nested in inner if isinstance(nested, tirx.BufferStore) and nested.buffer in self.sharing
        ]
        complete = {buffer for buffer in writes if is_parallel(statement) and stores_all(statement, buffer, self.names)}
        if op_name(statement) in tl.BLOCKS:
            for region, kind in regions_used(statement):
                if region.source in self.sharing:
                    reads += [region.source] if kind != "write" else []
                    writes += [region.source] if kind != "read" else []
                    complete |= {region.source} if kind == "write" and is_whole(region) else set()
        elif op_name(statement):
            used = [region.source for region in regions(statement) if region.source in self.sharing]
            reads, writes = [*reads, *used], [*writes, *used]
        self.read(statement, reads, foreign)
        foreign -= complete
        return foreign.union(*(self.sharing[buffer] for buffer in writes))

    def loaded(self, values: Iterable[ir.Expr]) -> list[tirx.Buffer]:
        return [load.source for value in values for load in loads_of(value) if load.source in self.sharing]

    def read(self, statement: tirx.Stmt, reads: Sequence[tirx.Buffer], foreign: _Buffers) -> None:
        for buffer in reads:
            if buffer in foreign:
                (name, *_) = sorted(str(buffer_over.name) for buffer_over in self.sharing[buffer])
                raise Unsupported(
                    "L001",
                    f"reading {buffer.name}, whose memory may hold what was stored to {name} in another dtype,",
                    hint=f"store all of {buffer.name} before, or read the bits of elements with T.reinterpret",
                    span=span_of(statement),
                )
