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
    op_name,
    sequence,
    shape_of,
    statements,
    variable,
    whole_region,
    with_function_body,
    with_nest,
)  # fmt: skip
from ttexplore.ir.dag import replaced
from ttexplore.ir.dataflow import is_on_chip, is_parallel, load_role, parallel_body
from ttexplore.ir.operations.storage import Staging, TileCopy
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Context, Firings, Rule, StatementRule, rewrite_body
from ttexplore.ops import language as tl
from ttexplore.target import Target


def lower_shared_to_cb(program: TirProgram, target: Target) -> TirProgram:
    """Give every on-chip value its storage: a circular buffer, or DST.

        A_shared = T.alloc_buffer((128, 32), "float16", "shared.dyn")     A_shared = ... "bfloat16", "tt.cb"
        C_local = T.alloc_buffer((128, 128), "float32", "local.fragment") C_local = ... "float32", "tt.dst"
        T.copy(C_local, C[...])                                       ==> C_local_out = ... "tt.cb"
                                                                          T.copy(C_local, C_local_out)
                                                                          T.copy(C_local_out, C[...])

    A2 decided the storage from how each value is used; this pass carries the decision out. A buffer that holds several
    unrelated values, one after another, becomes several buffers. Loops are rewritten to count from 0. Loops that may
    run zero iterations are marked, because values in DST must survive them.
    """
    kernel, staging = program.kernel, program.staging
    assert staging is not None, "A2 decides it"
    made = {
        name: allocation(name, one.shape, one.dtype, f"tt.{one.kind}", to_tvm_span(one.span) if one.span else None)
        for name, one in staging.buffers.items()
    }
    storage = _Storage(kernel, staging, {name: statement.buffer for name, statement in made.items()})
    body = rewrite_body(statements(kernel.body), _RULES, storage)
    for name, statement in made.items():
        original = storage.originals.get(name)
        storage.made(_BUFFER, None if original is None else storage.allocations.get(original), [statement])
    program = program.with_kernel(with_function_body(kernel, [*made.values(), *body]), storage.firings)
    return dataclasses.replace(program, staging=None)


@dataclass
class _BufferNames:
    """The new names of the buffers that one statement reads, by role, and writes."""

    reads: dict[tuple[tirx.Buffer, str], str] = field(default_factory=dict[tuple[tirx.Buffer, str], str])
    writes: dict[tirx.Buffer, str] = field(default_factory=dict[tirx.Buffer, str])


def _names(staging: Staging) -> dict[tirx.Stmt, _BufferNames]:
    found: dict[tirx.Stmt, _BufferNames] = defaultdict(_BufferNames)
    for (reader, buffer, role), name in staging.reads.items():
        found[reader].reads[(buffer, role)] = name
    for (writer, buffer), name in staging.writes.items():
        found[writer].writes[buffer] = name
    return found


def _originals(staging: Staging) -> dict[str, tirx.Buffer]:
    """For each new buffer, by name, the buffer of the kernel whose values it holds."""
    found = {name: buffer for (_, buffer, _), name in staging.reads.items()}
    found |= {name: buffer for (_, buffer), name in staging.writes.items()}
    copies = [one for around in (staging.before, staging.after) for some in around.values() for one in some]
    while missing := [(found[a], b) for a, b, _ in copies if a in found and b not in found]:
        found |= {name: buffer for buffer, name in missing}
    return found


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
            made = _parallel(statement, self.names[statement], self.buffers)
        elif op_name(statement) in tl.STATEMENTS:
            made = _operation(statement, self.staging, self.buffers)
        else:
            return None
        before, after = (self.copies(statement, one) for one in (self.staging.before, self.staging.after))
        return [*before, made, *after]

    def copies(self, statement: tirx.Stmt, around: Mapping[tirx.Stmt, Sequence[TileCopy]]) -> list[tirx.Stmt]:
        found = [_copy(self.buffers, *one) for one in around.get(statement, [])]
        return self.made(_STAGED, statement, found) if found else []

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
        turn = tirx.Var(f"{statement.loop_var.name}_turn", statement.loop_var.ty) if starts else statement.loop_var
        inner = statements(self.inside(statement, lambda body: rewrite_body(body, _RULES, self)).body)
        if starts:
            inner = [bind(statement.loop_var, statement.min + turn), *inner]
        annotations: dict[str, object] = {MAY_BE_EMPTY: 1} if marks else {}
        return [
            tirx.For(
                turn, tirx.const(0, "int32"), statement.extent, statement.kind, sequence(inner),
                statement.thread_binding, dict(statement.annotations) | annotations, statement.step, statement.span,
            )
        ]  # fmt: skip


def _copy(buffers: dict[str, tirx.Buffer], source: str, target: str, transpose: bool) -> tirx.Stmt:
    regions = [whole_region(buffers[name]) for name in (source, target)]
    return tirx.Evaluate(call(tl.COPY.name, regions, {"transpose": 1} if transpose else None))


def _operation(statement: tirx.Stmt, staging: Staging, buffers: dict[str, tirx.Buffer]) -> tirx.Stmt:
    operation = tl.BLOCKS[op_name(statement)]
    made: list[ir.Expr] = []
    for position, part in enumerate(arguments(statement)):
        if not isinstance(part, ir.TensorRegion) or not is_on_chip(part.source):
            made.append(part)
            continue
        role = operation.regions[position]
        if position == operation.target:
            name = staging.writes[(statement, part.source)]
        else:
            name = staging.reads[(statement, part.source, role)]
        made.append(whole_region(buffers[name]))
    attrs = attributes(statement)
    # The operand buffer of a transposed A is transposed already.
    attrs.pop("transpose_A", None)
    return tirx.Evaluate(call(op_name(statement), made, attrs), statement.span)


def _parallel(statement: tirx.For, names: _BufferNames, buffers: dict[str, tirx.Buffer]) -> tirx.For:
    """The nest with new buffers in its loads and stores; a load of a value that the nest itself writes reads the
    buffer that the nest writes.

    Vectors in columns of tiles are blocks of one column: a nest over such vectors goes over this column, too.
    """
    loops, body = parallel_body(statement)
    variables = [one.loop_var for one in loops]
    around = [*loops]
    places = variables
    if len(loops) == 1 and all(len(shape_of(buffers[name])) == 2 for name in names.writes.values()):
        (rows,) = loops
        column = variable("z")
        around.append(
            tirx.For(column, tirx.const(0, "int32"), tirx.const(1, "int32"), rows.kind, rows.body, span=rows.span)
        )
        places = [*variables, column]

    def load(expression: ir.TensorLoad) -> ir.Expr:
        role = load_role(expression, variables)
        name = names.reads.get((expression.source, role)) or names.writes[expression.source]
        indices = list(expression.indices)
        rank = len(shape_of(buffers[name]))
        if role == "element":
            indices = [*places]
        elif role == "scalar":
            indices = [tirx.const(0, "int32")] * rank
        elif role == "transposed":
            indices = [*variables]
        elif role == "column" and len(indices) == 1:
            # A column of tiles, transposed from the vector's row of tiles.
            indices = [*indices, tirx.const(0, "int32")]
        made = tirx.BufferLoad(buffers[name], indices, expression.span)
        return made if made.ty == expression.ty else tirx.Cast(expression.ty, made)

    def loaded(value: ir.Expr) -> ir.Expr:
        return replaced(value, lambda part: load(part) if isinstance(part, ir.TensorLoad) else part)

    def stored(one: tirx.Stmt) -> tirx.Stmt:
        if isinstance(one, tirx.Bind):
            return tirx.Bind(one.var, loaded(one.value), one.span)
        assert isinstance(one, tirx.BufferStore)
        buffer, value = buffers[names.writes[one.buffer]], loaded(one.value)
        value = value if value.ty == buffer.ty.dtype else tirx.Cast(buffer.ty.dtype, value)
        return tirx.BufferStore(buffer, value, places, one.span)

    return with_nest(around, [stored(one) for one in body])


_BUFFER = StatementRule(
    "storage", "Each value gets a circular buffer, or DST if only the compute kernel uses it.", _Storage.allocation
)
_STAGED = Rule("copy through a buffer", "A block is copied through another circular buffer.")
_RULES = (
    _BUFFER,
    StatementRule("names of the storage", "A statement uses the storage of its values.", _Storage.block),
    StatementRule("count from 0", "A loop counts its iterations from 0.", _Storage.loop),
)
