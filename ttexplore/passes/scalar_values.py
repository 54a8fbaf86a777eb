"""Scalars that are operands: names of elements, scalar variables, and single elements of blocks."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tvm import ir, tirx

from ttexplore.ir.adapter import call
from ttexplore.ir.build import (
    allocation,
    arguments,
    constant,
    dtype_of,
    op_name,
    operation,
    parallel_nest,
    regions,
    scope_of,
    shape_of,
    statements,
    whole_region,
    with_nest,
)
from ttexplore.ir.dag import nodes_of, replaced, with_parts
from ttexplore.ir.dataflow import is_on_chip, is_parallel, loads_of, parallel_body
from ttexplore.ir.names import unused_name
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, rewrite_body, walk
from ttexplore.ops.op import UNWRITTEN
from ttexplore.passes.added_buffers import taken_names
from ttexplore.passes.loaded_blocks import LoadedBlocks
from ttexplore.passes.plain_elements import flattened

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def with_scalar_blocks(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with scalars that are operands in blocks of one element, computed like all other elements.

        sink = Sinks[bx]                             T.copy(Sinks[bx : bx + 1], sink)
        rate = T.alloc_var("float32")                rate = T.alloc_fragment((1,), "float32")
        rate = T.exp2(-5.0 - bx)              ==>    for i in T.Parallel(1):
                                                         rate[i] = T.exp2(-5.0 - bx)
        for i in T.Parallel(64):                     for i in T.Parallel(64):
            c[i] = a[i] * rate + sink                    c[i] = a[i] * rate[0] + sink[0]

        s[2] = a[63] + 1                      ==>    for i in T.Parallel(64):
                                                         a_chosen[i] = T.if_then_else(i == 63, a[i], 0)
                                                     T.reduce_sum(a_chosen, a_63, dim=0)
                                                     for i in T.Parallel(1):
                                                         s_value[i] = a_63[i] + 1
                                                     for i in T.Parallel(8):
                                                         s[i] = T.if_then_else(i == 2, s_value[0], s[i])

    Scalars that places, lengths or conditions depend on stay as they are.
    """
    scalars = _Scalars(function, firings)
    fired = len(firings.all)
    made = rewrite(_RULES, scalars)
    return made if len(firings.all) > fired else function


def is_variable(buffer: tirx.Buffer) -> bool:
    """Whether a buffer is a scalar variable of T.alloc_var."""
    return scope_of(buffer) == "local.var"


class _Scalars(Context):
    """`steering` are the names and variables that this pass leaves alone; `blocks` hold the others, `meanings` are the
    expressions that other names stand for."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.names = taken_names(function)
        self.steering = _steering(function)
        self.blocks: dict[ir.Expr, tirx.Buffer] = {}
        self.meanings: dict[ir.Expr, ir.Expr] = {}
        self.loaded = LoadedBlocks(function)
        # Blocks that are stored to element by element before anything is in them.
        self.begun = _begun(function)

    # Rules

    def seen(self, statement: tirx.Stmt) -> None:
        """Not a rule that changes statements."""
        if not self._in_nest():
            self.loaded.pass_by(statement, [*self.around])

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.AllocBuffer):
            return None
        buffer = statement.buffer
        if buffer in self.begun:
            kind = "int32" if "int" in dtype_of(buffer) else "float32"
            nothing = tirx.const(UNWRITTEN[kind] if dtype_of(buffer) != "uint8" else 0, dtype_of(buffer))
            return [statement, tirx.Evaluate(call("tl.fill", [whole_region(buffer), nothing]))]
        if not is_variable(buffer) or buffer in self.steering:
            return None
        dtype = _dtype_in_block(dtype_of(buffer))
        made = allocation(str(buffer.name), (1,), dtype, "local.fragment", statement.span)
        self.blocks[buffer] = made.buffer
        return [made]

    def name(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """A name for a value that has elements in it, or is no integer."""
        if not isinstance(statement, tirx.Bind) or statement.var in self.steering or self._in_nest():
            return None
        value, dtype = statement.value, str(statement.var.ty.dtype)
        if not self._has_elements(value):
            if "int" in dtype:
                return None
            if dtype == "bool":
                self.meanings[statement.var] = value
                return []
        if dtype in ("bfloat16", "float16") and not isinstance(value, ir.TensorLoad):
            # The value is rounded where it is stored, which is not here.
            made: list[tirx.Stmt] = []
            value = self._known(value)
            kept: dict[ir.Expr, ir.Expr] = {
                load: self._kept(str(load.source.name), load, made) for load in loads_of(value)
            }
            self.meanings[statement.var] = replaced(value, lambda part: kept.get(part, part))
            return made
        made = []
        self.meanings[statement.var] = self._kept(str(statement.var.name), value, made)
        return made

    def store(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """A store of one element outside of T.Parallel."""
        if not isinstance(statement, tirx.BufferStore) or not is_on_chip(statement.buffer) or self._in_nest():
            return None
        if statement.buffer in self.steering:
            return None
        made: list[tirx.Stmt] = []
        buffer = self.blocks.get(statement.buffer, statement.buffer)
        if len(shape_of(buffer)) > 2:
            return None
        value = statement.value
        if all(extent == 1 for extent in shape_of(buffer)):
            made.append(_filled(buffer, self._value(value, made)))
            return made
        if loads_of(self._known(value)):
            value = self._kept(f"{buffer.name}_value", value, made)
        else:
            value = self._value(value, made)
        indices = list(statement.indices)

        def chosen(at: list[ir.Var]) -> ir.Expr:
            return tirx.if_then_else(_is_at(at, indices, buffer), value, tirx.BufferLoad(buffer, at))

        made.append(parallel_nest(buffer, chosen))
        return made

    def branch(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """A branch that does no more than store to scalars."""
        if not isinstance(statement, tirx.IfThenElse) or self._in_nest() or not _is_of_scalars(statement):
            return None
        if any(one in self.steering for one in _given_values(statement)):
            return None
        return rewrite_body(flattened(statement), _RULES, self)

    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """Scalars that a T.Parallel uses."""
        if not is_parallel(statement) or self._in_nest():
            return None
        loops, body = parallel_body(statement)
        inside: set[ir.Expr] = {loop.loop_var for loop in loops}
        inside |= {one.var for one in body if isinstance(one, tirx.Bind)}
        written = {one.buffer for one in body if isinstance(one, tirx.BufferStore)}
        before: list[tirx.Stmt] = []
        made: list[tirx.Stmt] = []
        for one in body:
            match one:
                case tirx.Bind():
                    made.append(_like(one, self._value(one.value, before, inside, written)))
                case tirx.BufferStore():
                    made.append(_like(one, self._value(one.value, before, inside, written)))
                case _:
                    made.append(one)
        if all(one.same_as(other) for one, other in zip(body, made, strict=True)):
            return None
        return [*before, with_nest(loops, made)]

    def operation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """Operations on scalar variables, and fills with scalars."""
        if not op_name(statement).startswith("tl."):
            return None
        parts = arguments(statement)
        made: list[tirx.Stmt] = []
        for number, part in enumerate(parts):
            if isinstance(part, ir.TensorRegion) and part.source in self.blocks:
                parts[number] = tirx.BufferRegion(self.blocks[part.source], list(part.region))
        region = parts[0]
        if op_name(statement) == "tl.fill" and isinstance(region, ir.TensorRegion) and self._has_elements(parts[1]):
            target = region.source
            if len(target.ty.shape) > 2 or not is_on_chip(target):
                return None
            value = self._kept(f"{target.name}_value", parts[1], made)
            made.append(parallel_nest(target, lambda _: _stored(value, target)))
            return made
        if all(one.same_as(other) for one, other in zip(parts, arguments(statement), strict=True)):
            return None
        return [tirx.Evaluate(with_parts(operation(statement), parts), statement.span)]

    # Values

    def _in_nest(self) -> bool:
        return bool(self.around) and is_parallel(self.around[-1])

    def _has_elements(self, value: ir.Expr) -> bool:
        return any(isinstance(one, ir.TensorLoad) or one in self.meanings for one in nodes_of(value))

    def _known(self, value: ir.Expr) -> ir.Expr:
        """A value with the blocks in which scalars are."""

        def known(part: ir.Expr) -> ir.Expr:
            if part in self.meanings:
                return self.meanings[part]
            if isinstance(part, ir.TensorLoad) and part.source in self.blocks:
                return _element(self.blocks[part.source], dtype_of(part.source), part.span)
            return part

        return replaced(value, known)

    def _value(
        self, value: ir.Expr, made: list[tirx.Stmt], inside: Iterable[ir.Expr] = (),
        written: Iterable[tirx.Buffer] = (),
    ) -> ir.Expr:  # fmt: skip
        """A value with blocks of one element in place of scalars and of single elements of blocks; `made` gets the
        statements that fill these. Elements at the names `inside`, and those of blocks that are `written`, stay."""
        varying, stays = {*inside}, {*written}

        def chosen(part: ir.Expr) -> ir.Expr:
            if not _is_of_larger(part) or part.source in stays:
                return part
            if any(one in varying for index in part.indices for one in nodes_of(index)):
                return part
            if (again := self.loaded.element(part, [*self.around])) is not None:
                return again
            return _element(self._picked(part, made), dtype_of(part.source), part.span)

        return replaced(self._known(value), chosen)

    def _read_again(self, value: ir.Expr) -> ir.Expr:
        """An element of a tensor in place of one of a block that holds a part of it: one element is read at once."""
        again = self.loaded.element(value, [*self.around]) if _is_of_larger(value) else None
        return value if again is None else again

    def _kept(self, name: str, value: ir.Expr, made: list[tirx.Stmt]) -> ir.Expr:
        """The element of a new block that holds a value; `made` gets the statements that fill it."""
        dtype = str(value.ty.dtype)
        value = self._read_again(self._known(value))
        if _is_of_larger(value):
            return _element(self._picked(value, made, name), dtype, None)
        value = self._value(value, made)
        block = self._allocate(name, (1,), _dtype_in_block(dtype), made)
        made.append(_filled(block, value))
        return _element(block, dtype, None)

    def _picked(self, load: ir.TensorLoad, made: list[tirx.Stmt], name: str = "") -> tirx.Buffer:
        """A block of one element that holds an element of a larger one: a sum in which all others are zero."""
        source, dtype = load.source, dtype_of(load.source)
        shape, indices = shape_of(source), list(load.indices)
        chosen = self._allocate(f"{source.name}_chosen", shape, dtype, made)

        def value(at: list[ir.Var]) -> ir.Expr:
            return tirx.if_then_else(_is_at(at, indices, source), tirx.BufferLoad(source, at), tirx.const(0, dtype))

        made.append(parallel_nest(chosen, value))
        while shape != (1,):
            shape = shape[:-1] or (1,)
            sums = self._allocate((shape == (1,) and name) or f"{source.name}_element", shape, dtype, made)
            attrs = {"kind": "sum", "dim": len(shape_of(chosen)) - 1, "clear": 1}
            made.append(tirx.Evaluate(call("tl.reduce", [whole_region(chosen), whole_region(sums)], attrs)))
            chosen = sums
        return chosen

    def _allocate(self, name: str, shape: tuple[int, ...], dtype: str, made: list[tirx.Stmt]) -> tirx.Buffer:
        name = unused_name(name, self.names)
        self.names.add(name)
        block = allocation(name, shape, dtype, "local.fragment")
        made.append(block)
        return block.buffer


# The dtypes of blocks that hold scalars of dtypes that no block has.
_IN_BLOCK = {"bool": "uint8", "int8": "int32", "int16": "int32", "uint16": "int32", "int64": "int32"}


def _dtype_in_block(dtype: str) -> str:
    return _IN_BLOCK.get(dtype, dtype)


def _element(block: tirx.Buffer, dtype: str, span: ir.Span | None) -> ir.Expr:
    """The one element of a block, as a number of a dtype."""
    load = tirx.BufferLoad(block, [tirx.const(0, "int32")] * len(block.ty.shape), span)
    if dtype_of(block) == dtype:
        return load
    return tirx.NE(load, tirx.const(0, "uint8")) if dtype == "bool" else tirx.Cast(ir.PrimType(dtype), load)


def _is_of_larger(value: ir.Expr) -> TypeIs[ir.TensorLoad]:
    """Whether a value is an element of a block that only a choice among all elements can find."""
    return (
        isinstance(value, ir.TensorLoad)
        and is_on_chip(value.source)
        and len(value.indices) <= 2
        and not all(constant(index) == 0 for index in value.indices)
    )


def _stored(value: ir.Expr, block: tirx.Buffer) -> ir.Expr:
    """A value in the dtype of a block."""
    return value if str(value.ty.dtype) == dtype_of(block) else tirx.Cast(ir.PrimType(dtype_of(block)), value)


def _filled(block: tirx.Buffer, value: ir.Expr) -> tirx.Stmt:
    """The statement that puts a value into a block of one element."""
    if isinstance(value, ir.TensorLoad) and not is_on_chip(value.source) and dtype_of(block) == dtype_of(value.source):
        one = tirx.const(1, "int32")
        region = tirx.BufferRegion(value.source, [ir.Range.from_min_extent(index, one) for index in value.indices])
        return tirx.Evaluate(call("tl.copy", [region, whole_region(block)]))
    return parallel_nest(block, lambda at: _stored(_at(value, block, at), block))


def _at(value: ir.Expr, block: tirx.Buffer, at: list[ir.Var]) -> ir.Expr:
    """A value that reads the one element of a block at loop variables, as the store of it does."""
    own = tirx.BufferLoad(block, at)
    return replaced(value, lambda part: own if isinstance(part, ir.TensorLoad) and part.source.same_as(block) else part)


def _is_at(at: list[ir.Var], indices: list[ir.Expr], block: tirx.Buffer) -> ir.Expr:
    """Whether loop variables are at an element of a block."""
    tests = [tirx.EQ(one, index) for one, index, extent in zip(at, indices, shape_of(block), strict=True) if extent > 1]
    return functools.reduce(tirx.And, tests)


def _like(statement: tirx.Bind | tirx.BufferStore, value: ir.Expr) -> tirx.Stmt:
    """The statement with another value."""
    if value.same_as(statement.value):
        return statement
    if isinstance(statement, tirx.Bind):
        return tirx.Bind(statement.var, value, statement.span)
    return tirx.BufferStore(statement.buffer, value, list(statement.indices), statement.span)


def _is_of_scalars(branch: tirx.IfThenElse) -> bool:
    return all(
        isinstance(one, tirx.IfThenElse | tirx.Bind) or (isinstance(one, tirx.BufferStore) and is_on_chip(one.buffer))
        for one in walk(branch)
    )


def _given_values(branch: tirx.IfThenElse) -> list[ir.Var]:
    """The names and blocks that get values in a branch."""
    found = [one for one in walk(branch) if isinstance(one, tirx.Bind | tirx.BufferStore)]
    return [one.var if isinstance(one, tirx.Bind) else one.buffer for one in found]


def _steering(function: tirx.PrimFunc) -> set[ir.Expr]:
    """The names and blocks that places of blocks and elements, lengths of loops and conditions depend on."""
    waiting: list[ir.Expr] = []
    values: dict[ir.Expr, list[ir.Expr]] = {}
    for one in walk(function.body):
        match one:
            case tirx.For():
                waiting += [one.min, one.extent]
            case tirx.IfThenElse() if _is_of_scalars(one):
                # It steers what depends on it.
                for given in _given_values(one):
                    values.setdefault(given, []).append(one.condition)
            case tirx.IfThenElse() | tirx.While():
                waiting.append(one.condition)
            case tirx.Bind():
                values.setdefault(one.var, []).append(one.value)
            case tirx.BufferStore():
                values.setdefault(one.buffer, []).append(one.value)
                waiting.extend(one.indices)
            case tirx.Evaluate(value=ir.Call()):
                ranges = (part for region in regions(one) for part in region.region)
                waiting += (bound for part in ranges for bound in (part.min, part.extent))
            case _:
                pass
        if isinstance(one, tirx.Bind | tirx.BufferStore):
            waiting += (index for load in loads_of(one.value) for index in load.indices)
    found: set[ir.Expr] = set()
    while waiting:
        for one in nodes_of(waiting.pop()):
            holder = one.source if isinstance(one, ir.TensorLoad) else one
            if isinstance(holder, ir.Var) and holder not in found:
                found.add(holder)
                waiting.extend(values.get(holder, []))
    return found


def _begun(function: tirx.PrimFunc) -> set[tirx.Buffer]:
    """The blocks whose first statement stores one of several elements."""
    written: set[tirx.Buffer] = set()
    found: set[tirx.Buffer] = set()

    def look(body: tirx.Stmt, *, in_parallel: bool) -> None:
        for one in statements(body):
            match one:
                case tirx.For() | tirx.While():
                    look(one.body, in_parallel=in_parallel or is_parallel(one))
                case tirx.IfThenElse():
                    look(one.then_case, in_parallel=in_parallel)
                    if one.else_case is not None:
                        look(one.else_case, in_parallel=in_parallel)
                case tirx.BufferStore() if is_on_chip(one.buffer) and one.buffer not in written:
                    written.add(one.buffer)
                    if not in_parallel and shape_of(one.buffer) != (1,) * len(one.indices):
                        found.add(one.buffer)
                case tirx.Evaluate(value=ir.Call()):
                    written.update(region.source for region in regions(one))
                case _:
                    pass

    look(function.body, in_parallel=False)
    return found


_RULES = (
    StatementRule("what blocks hold", "What a block holds of a tensor is noted; nothing changes.", _Scalars.seen),
    StatementRule(
        "scalar in a block", "A scalar variable that is an operand is a block of one element.", _Scalars.allocation
    ),
    StatementRule("name in a block", "A name for a value of elements is a block of one element.", _Scalars.name),
    StatementRule(
        "single element stored", "A store of one element is a T.Parallel that keeps all others.", _Scalars.store
    ),
    StatementRule("choice of scalars", "A branch that stores to scalars chooses what they hold.", _Scalars.branch),
    StatementRule("scalars read", "A T.Parallel reads scalars in blocks of one element.", _Scalars.nest),
    StatementRule(
        "operand in a block", "Operations use the blocks of one element that hold scalars.", _Scalars.operation
    ),
)  # fmt: skip
