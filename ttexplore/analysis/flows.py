"""What flows into each tensor that a kernel of tiles stores: inputs, and the operations that round most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast, get_args

from tvm import ir, tirx

from ttexplore.ir.adapter import is_buffer, operation_name
from ttexplore.ir.build import arguments, constant, shape_of, statements
from ttexplore.ir.dag import nodes_of
from ttexplore.ops import FORMS
from ttexplore.plan import OperationKind, Sources, TensorLayout

# What a value is computed from: the names of inputs, and kinds of operations.
_Marks = frozenset[tuple[str, str]]
_State = dict[ir.Var, _Marks]
_NOTHING: _Marks = frozenset()


def sources_of(function: tirx.PrimFunc, layouts: Sequence[TensorLayout]) -> tuple[Sources, ...]:
    """What flows into each tensor that a kernel stores, after step C2: its statements are those of tiles, in the order
    in which they are executed. `layouts` are those of the tensors.

    A block that is overwritten as a whole holds nothing of what it held before; of all others, something may be left.
    """
    tensors = {str(tensor.name): tensor for tensor in function.params if is_buffer(tensor)}
    state: _State = {
        tensors[layout.name]: frozenset({("input", layout.name)}) for layout in layouts if layout.role != "output"
    }
    _flow(statements(function.body), state)
    flows: list[Sources] = []
    for layout in layouts:
        if layout.role != "input":
            marks = state.get(tensors[layout.name], _NOTHING)
            inputs = tuple(name for name in tensors if ("input", name) in marks)
            kinds = tuple(kind for kind in get_args(OperationKind) if ("operation", kind) in marks)
            flows.append(Sources(layout.name, inputs, kinds))
    return tuple(flows)


def _flow(body: Iterable[tirx.Stmt], state: _State, loop: tirx.For | None = None) -> None:
    """Execute statements on what buffers, tensors and names hold; `loop` is the loop of a statement that is alone in
    it."""
    for statement in body:
        match statement:
            case tirx.For() | tirx.While():
                _turns(statement, state)
            case tirx.IfThenElse():
                without = dict(state)
                _flow(statements(statement.then_case), state, loop)
                _flow(statements(statement.else_case) if statement.else_case is not None else (), without, loop)
                _join(state, without)
            case tirx.Bind():
                state[statement.var] = _of_operation(statement, state, loop) | _read(statement.value, state)
            case tirx.BufferStore():
                state[statement.buffer] = state.get(statement.buffer, _NOTHING) | _read(statement.value, state)
            case tirx.Evaluate():
                _of_operation(statement, state, loop)
            case _:
                pass


def _turns(loop: tirx.For | tirx.While, state: _State) -> None:
    """Execute any number of turns of a loop, or at least one where that many are certain."""
    body = statements(loop.body)
    extent = constant(loop.extent) if isinstance(loop, tirx.For) else None
    inside = loop if isinstance(loop, tirx.For) and len(body) == 1 else None
    while True:
        before = dict(state)
        _flow(body, state, inside)
        after = dict(state)
        _join(state, before)
        if state == before:
            break
    if extent:
        state.clear()
        state.update(after)


def _join(state: _State, joined: _State) -> None:
    for key, marks in joined.items():
        state[key] = state.get(key, _NOTHING) | marks


def _read(expression: ir.Expr, state: _State) -> _Marks:
    """What the names and elements in an expression are computed from."""
    used = [node.source if isinstance(node, ir.TensorLoad) else node for node in nodes_of(expression)]
    return _NOTHING.union(*(state.get(node, _NOTHING) for node in used if isinstance(node, ir.Var)))


def _of_operation(statement: tirx.Evaluate | tirx.Bind, state: _State, loop: tirx.For | None) -> _Marks:
    """Execute an operation of the table; what it reads, which is what its result is computed from."""
    form = FORMS.get(operation_name(statement.value)) if isinstance(statement.value, ir.Call) else None
    if form is None:
        return _NOTHING
    read: _Marks = frozenset(("operation", kind) for kind in form.op.kinds)
    written: list[tuple[ir.Var, bool]] = []
    for operand, value, slot, _ in form.given(arguments(statement)):
        if operand.access in ("write", "update"):
            assert isinstance(value, ir.Var), "buffers and tensors are written"
            is_fresh = operand.access == "write" and not form.op.accumulates
            is_whole = is_fresh and slot is not None and _is_whole(value, slot, loop)
            written.append((value, is_whole))
        if operand.access != "write":
            read |= _read(value, state)
    for buffer, is_whole in written:
        state[buffer] = read if is_whole else read | state.get(buffer, _NOTHING)
    return read


def _is_whole(buffer: ir.Var, slot: ir.Expr, loop: tirx.For | None) -> bool:
    """Whether all turns of a loop, if there is one, together write all tiles of a block."""
    tiles = shape_of(cast(tirx.Buffer, buffer))[0]
    return tiles == 1 or (loop is not None and slot.same_as(loop.loop_var) and constant(loop.extent) == tiles)
