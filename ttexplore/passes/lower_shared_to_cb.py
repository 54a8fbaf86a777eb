"""C1: give on-chip buffers their storage, in circular buffers or in DST."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tvm import ir, tirx

from ttexplore.ir.adapter import call, to_tvm_span
from ttexplore.ir.arithmetic.bounds import MAY_BE_EMPTY, empty_loops
from ttexplore.ir.build import (
    allocation,
    arguments,
    attributes,
    bind,
    constant,
    expressions_of,
    op_name,
    regions,
    runs,
    scope_of,
    sequence,
    shape_of,
    statements,
    variable,
    whole_region,
    with_body,
    with_function_body,
    with_nest,
)  # fmt: skip
from ttexplore.ir.dag import replaced
from ttexplore.ir.dataflow import is_on_chip, is_parallel, load_role, loads_of, parallel_body, regions_used
from ttexplore.ir.operations.storage import Staging, TileCopy
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Context, Firings, Rule, StatementRule, rewrite_body, walk
from ttexplore.ops import language as tl
from ttexplore.ops.op import CB_SCOPE, DST_SCOPE
from ttexplore.target import Target


def lower_shared_to_cb(program: TirProgram, target: Target) -> TirProgram:
    """Give every on-chip value its storage: a circular buffer, or DST.

        A_shared = T.alloc_buffer((128, 32), "float16", "shared.dyn")     A_shared = ... "bfloat16", "tt.cb"
        C_local = T.alloc_buffer((128, 128), "float32", "local.fragment") C_local = ... "float32", "tt.dst"
        T.copy(C_local, C[...])                                       ==> C_local_out = ... "tt.cb"
                                                                          T.copy(C_local, C_local_out)
                                                                          T.copy(C_local_out, C[...])

    A2 decided the storage from how each value is used; this pass carries the decision out. A buffer that holds several
    unrelated values, one after another, becomes several buffers. A copy of a value in DST moves up to the statement
    that makes the value, if nothing between them needs the buffer otherwise: then the value is packed from there, and
    need not come back into DST for the copy. Loops are rewritten to count from 0. Loops that may run zero iterations
    are marked, because values in DST must survive them.
    """
    kernel, staging = program.kernel, program.staging
    assert staging is not None, "A2 decides it"
    allocations = {
        name: allocation(
            name, buffer.shape, buffer.dtype, f"tt.{buffer.kind}", to_tvm_span(buffer.span) if buffer.span else None
        )
        for name, buffer in staging.buffers.items()
    }
    storage = _Storage(kernel, staging, {name: statement.buffer for name, statement in allocations.items()})
    body = _copied_early(rewrite_body(statements(kernel.body), _RULES, storage), storage.firings)
    for name, statement in allocations.items():
        original = storage.originals.get(name)
        storage.made(_BUFFER, None if original is None else storage.allocations.get(original), [statement])
    program = program.with_kernel(with_function_body(kernel, [*allocations.values(), *body]), storage.firings)
    return dataclasses.replace(program, staging=None)


@dataclass
class _BufferNames:
    """The new names of the buffers that one statement reads, by role, and writes."""

    reads: dict[tuple[tirx.Buffer, str], str] = field(default_factory=dict[tuple[tirx.Buffer, str], str])
    writes: dict[tirx.Buffer, str] = field(default_factory=dict[tirx.Buffer, str])


def _names(staging: Staging) -> dict[tirx.Stmt, _BufferNames]:
    names_of: dict[tirx.Stmt, _BufferNames] = defaultdict(_BufferNames)
    for (reader, buffer, role), name in staging.reads.items():
        names_of[reader].reads[(buffer, role)] = name
    for (writer, buffer), name in staging.writes.items():
        names_of[writer].writes[buffer] = name
    return names_of


def _originals(staging: Staging) -> dict[str, tirx.Buffer]:
    """For each new buffer, by name, the buffer of the kernel whose values it holds."""
    originals = {name: buffer for (_, buffer, _), name in staging.reads.items()}
    originals |= {name: buffer for (_, buffer), name in staging.writes.items()}
    copies = [copy for around in (staging.before, staging.after) for some in around.values() for copy in some]
    while missing := [(originals[a], b) for a, b, _ in copies if a in originals and b not in originals]:
        originals |= {name: buffer for buffer, name in missing}
    return originals


class _Storage(Context):
    """The storage of a kernel's values: the new `buffers` by name. `allocations` are those of the kernel itself."""

    def __init__(self, function: tirx.PrimFunc, staging: Staging, buffers: dict[str, tirx.Buffer]) -> None:
        super().__init__(function, Firings())
        self.staging, self.buffers = staging, buffers
        self.names, self.originals = _names(staging), _originals(staging)
        self.allocations: dict[tirx.Buffer, tirx.AllocBuffer] = {}
        self.empty = empty_loops(function)

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.AllocBuffer):
            return None
        self.allocations[statement.buffer] = statement
        return []

    def block(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if is_parallel(statement):
            lowered = _parallel(statement, self.names[statement], self.buffers)
        elif op_name(statement) in tl.STATEMENTS:
            lowered = _operation(statement, self.staging, self.buffers)
        else:
            return None
        before, after = (self.copies(statement, around) for around in (self.staging.before, self.staging.after))
        return [*before, lowered, *after]

    def copies(self, statement: tirx.Stmt, around: Mapping[tirx.Stmt, Sequence[TileCopy]]) -> list[tirx.Stmt]:
        copies = [_copy(self.buffers, *copy) for copy in around.get(statement, [])]
        return self.made(_STAGED, statement, copies) if copies else []

    def loop(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """Make a loop count from 0, so that its variable identifies the first iteration, and mark a loop that may run
        zero iterations; :func:`is_marked_empty` finds the mark.

            for k in range(first, last):  ==>  for k_turn in range(last - first):
                body                               k = first + k_turn
                                                   body
        """
        if not isinstance(statement, tirx.For) or statement.kind != tirx.ForKind.SERIAL:
            return None
        starts, marks = constant(statement.min) != 0, statement.loop_var in self.empty
        if not starts and not marks:
            return None
        iteration = tirx.Var(f"{statement.loop_var.name}_turn", statement.loop_var.ty) if starts else statement.loop_var
        inner = statements(self.inside(statement, lambda body: rewrite_body(body, _RULES, self)).body)
        if starts:
            inner = [bind(statement.loop_var, statement.min + iteration), *inner]
        annotations: dict[str, object] = {MAY_BE_EMPTY: 1} if marks else {}
        return [
            tirx.For(
                iteration, tirx.const(0, "int32"), statement.extent, statement.kind, sequence(inner),
                statement.thread_binding, dict(statement.annotations) | annotations, statement.step, statement.span,
            )
        ]  # fmt: skip


def _copied_early(body: Sequence[tirx.Stmt], firings: Firings) -> list[tirx.Stmt]:
    """A sequence in which each copy from DST to a circular buffer follows what makes its value."""
    moved: list[tirx.Stmt] = []
    for statement in body:
        if isinstance(statement, tirx.For) and not is_parallel(statement):
            statement = with_body(statement, _copied_early(statements(statement.body), firings))
        position = len(moved)
        if runs(statement, tl.COPY):
            source, target = (region.source for region in regions(statement))
            if scope_of(source) == DST_SCOPE and scope_of(target) == CB_SCOPE:
                position = _early(moved, source, target)
        if position < len(moved):
            firings.made(_EARLY, statement, [statement])
        moved.insert(position, statement)
    return moved


def _early(moved: Sequence[tirx.Stmt], source: tirx.Buffer, target: tirx.Buffer) -> int:
    """The place behind the last statement that makes the source of a copy or uses its target; the end without one."""
    for position in range(len(moved), 0, -1):
        used, written = _touched(moved[position - 1])
        if source in written or target in used:
            return position
    return len(moved)


def _touched(statement: tirx.Stmt) -> tuple[set[tirx.Buffer], set[tirx.Buffer]]:
    """The buffers that a statement uses, and those of them that it writes."""
    used: set[tirx.Buffer] = set()
    written: set[tirx.Buffer] = set()
    for nested in walk(statement):
        if isinstance(nested, tirx.BufferStore):
            written.add(nested.buffer)
        for region, kind in regions_used(nested):
            (used if kind == "read" else written).add(region.source)
        for value in expressions_of(nested):
            used.update(load.source for load in loads_of(value))
    return used | written, written


def _copy(buffers: dict[str, tirx.Buffer], source: str, target: str, transpose: bool) -> tirx.Stmt:
    regions = [whole_region(buffers[name]) for name in (source, target)]
    return tirx.Evaluate(call(tl.COPY.name, regions, {"transpose": 1} if transpose else None))


def _operation(statement: tirx.Stmt, staging: Staging, buffers: dict[str, tirx.Buffer]) -> tirx.Stmt:
    operation = tl.BLOCKS[op_name(statement)]
    values: list[ir.Expr] = []
    for position, argument in enumerate(arguments(statement)):
        if not isinstance(argument, ir.TensorRegion) or not is_on_chip(argument.source):
            values.append(argument)
            continue
        role = operation.regions[position]
        if position == operation.target:
            name = staging.writes[(statement, argument.source)]
        else:
            name = staging.reads[(statement, argument.source, role)]
        values.append(whole_region(buffers[name]))
    attrs = attributes(statement)
    # The operand buffer of a transposed A is transposed already.
    attrs.pop("transpose_A", None)
    return tirx.Evaluate(call(op_name(statement), values, attrs), statement.span)


def _parallel(statement: tirx.For, names: _BufferNames, buffers: dict[str, tirx.Buffer]) -> tirx.For:
    """The nest with new buffers in its loads and stores; a load of a value that the nest itself writes reads the
    buffer that the nest writes.

    Vectors in columns of tiles are blocks of one column: a nest over such vectors goes over this column, too.
    """
    loops, body = parallel_body(statement)
    variables = [axis_loop.loop_var for axis_loop in loops]
    around = [*loops]
    target_indices = variables
    if len(loops) == 1 and all(len(shape_of(buffers[name])) == 2 for name in names.writes.values()):
        (rows,) = loops
        column = variable("z")
        around.append(
            tirx.For(column, tirx.const(0, "int32"), tirx.const(1, "int32"), rows.kind, rows.body, span=rows.span)
        )
        target_indices = [*variables, column]

    def load(expression: ir.TensorLoad) -> ir.Expr:
        role = load_role(expression, variables)
        name = names.reads.get((expression.source, role)) or names.writes[expression.source]
        indices = list(expression.indices)
        rank = len(shape_of(buffers[name]))
        if role == "element":
            indices = [*target_indices]
        elif role == "scalar":
            indices = [tirx.const(0, "int32")] * rank
        elif role == "transposed":
            indices = [*variables]
        elif role == "column" and len(indices) == 1:
            # A column of tiles, transposed from the vector's row of tiles.
            indices = [*indices, tirx.const(0, "int32")]
        block_load = tirx.BufferLoad(buffers[name], indices, expression.span)
        return block_load if block_load.ty == expression.ty else tirx.Cast(expression.ty, block_load)

    def loaded(value: ir.Expr) -> ir.Expr:
        return replaced(value, lambda expr: load(expr) if isinstance(expr, ir.TensorLoad) else expr)

    def stored(inner: tirx.Stmt) -> tirx.Stmt:
        if isinstance(inner, tirx.Bind):
            return tirx.Bind(inner.var, loaded(inner.value), inner.span)
        assert isinstance(inner, tirx.BufferStore)
        buffer, value = buffers[names.writes[inner.buffer]], loaded(inner.value)
        value = value if value.ty == buffer.ty.dtype else tirx.Cast(buffer.ty.dtype, value)
        return tirx.BufferStore(buffer, value, target_indices, inner.span)

    return with_nest(around, [stored(inner) for inner in body])


_BUFFER = StatementRule(
    "storage", "Each value gets a circular buffer, or DST if only the compute kernel uses it.", _Storage.allocation
)
_EARLY = Rule("copy made early", "A copy of a value follows what makes the value, which is in DST there.")
_STAGED = Rule("copy through a buffer", "A block is copied through another circular buffer.")
_RULES = (
    _BUFFER,
    StatementRule("names of the storage", "A statement uses the storage of its values.", _Storage.block),
    StatementRule("count from 0", "A loop counts its iterations from 0.", _Storage.loop),
)
