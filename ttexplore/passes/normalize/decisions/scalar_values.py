"""Scalars that are operands: names of elements, scalar variables, and single elements of blocks."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from tvm import ir, tirx

from ttexplore.analysis.added_buffers import NewBuffers
from ttexplore.ir.adapter import call, choice_of
from ttexplore.ir.arithmetic.limited import condition_of
from ttexplore.ir.arithmetic.sizes import constant_extents
from ttexplore.ir.build import (
    allocation,
    arguments,
    constant,
    dtype_of,
    expressions_of,
    op_name,
    parallel_loops,
    parallel_nest,
    parallel_variables,
    regions,
    runs,
    scope_of,
    shape_of,
    whole_region,
    with_arguments,
    with_nest,
    with_value,
)
from ttexplore.ir.dag import nodes_of, replaced
from ttexplore.ir.dataflow import certain_loads, is_on_chip, loads_of, parallel_body
from ttexplore.ir.operations.atomics import updates
from ttexplore.ir.operations.quantified import quantified_of
from ttexplore.ir.rewrite import Firings, StatementRule, rewrite, rewrite_body, walk
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.blocks.plain_elements import flattened
from ttexplore.passes.normalize.decisions.loaded_blocks import LoadedBlocks


def with_scalar_blocks(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with scalars that are operands in blocks of one element, computed like all other elements.

        sink = Sinks[bx]                             T.copy(Sinks[bx : bx + 1], sink)
        rate = T.alloc_var("float32")                rate = T.alloc_fragment((1,), "float32")
        rate = T.exp2(-5.0 - bx)              ==>    for i in T.Parallel(1):
                                                         rate[i] = T.exp2(-5.0 - bx)
        for i in T.Parallel(64):                     for i in T.Parallel(64):
            c[i] = a[i] * rate + sink                    c[i] = a[i] * rate[0] + sink[0]

        s[2] = a[63] + 1                      ==>    for i in T.Parallel(1):
                                                         s[2] = a[63] + 1

        Out[bx] = s[0] * 2                    ==>    for i in T.Parallel(1):
                                                         element[i] = s[0] * 2
                                                     T.copy(element, Out[bx : bx + 1])

    Other passes choose elements of larger blocks, unless a block holds a part of a tensor, which has the element.
    Scalars that places, lengths or conditions depend on stay as they are.
    """
    return rewrite(_RULES, _Scalars(function, firings))


def is_variable(buffer: tirx.Buffer) -> bool:
    """Whether a buffer is a scalar variable of T.alloc_var."""
    return scope_of(buffer) == "local.var"


class _Scalars(NewBuffers):
    """`blocks` hold the names and variables that do not steer, `meanings` are the expressions that other names stand
    for."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.blocks: dict[ir.Expr, tirx.Buffer] = {}
        self.meanings: dict[ir.Expr, ir.Expr] = {}
        self.loaded = LoadedBlocks(function)

    @functools.cached_property
    def steering(self) -> set[ir.Expr]:
        """The names and variables that this pass leaves alone."""
        return steering(self.function)

    @functools.cached_property
    def unread(self) -> set[tirx.Buffer]:
        """What nothing reads."""
        return _unread(self.function)

    # Rules

    def seen(self, statement: tirx.Stmt) -> None:
        """Not a rule that changes statements."""
        if not self.is_in_nest:
            self.loaded.pass_by(statement, [*self.around])

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.AllocBuffer):
            return None
        buffer = statement.buffer
        if not is_variable(buffer) or buffer in self.steering:
            return None
        dtype = _dtype_in_block(dtype_of(buffer))
        scalar_block = allocation(str(buffer.name), (1,), dtype, "local.fragment", statement.span)
        self.blocks[buffer] = scalar_block.buffer
        return [scalar_block]

    def name(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """A name for a value that has elements in it, or is no integer."""
        if not isinstance(statement, tirx.Bind) or statement.var in self.steering or self.is_in_nest:
            return None
        value, dtype = statement.value, str(statement.var.ty.dtype)
        if quantified_of(value) is not None:
            # The reader makes the number, and hands it on.
            return None
        if not self._has_elements(value):
            if "int" in dtype:
                return None
            if dtype == "bool":
                self.meanings[statement.var] = value
                return []
        if dtype in ("bfloat16", "float16") and not isinstance(value, ir.TensorLoad):
            # The value is rounded where it is stored, which is not here.
            statements: list[tirx.Stmt] = []
            value = self._known(value)
            replacements: dict[ir.Expr, ir.Expr] = {
                load: self._kept(str(load.source.name), load, statements) for load in loads_of(value)
            }
            self.meanings[statement.var] = replaced(value, lambda node: replacements.get(node, node))
            return statements
        statements = []
        self.meanings[statement.var] = self._kept(str(statement.var.name), value, statements)
        return statements

    def store(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """A store of one element outside of T.Parallel."""
        if not isinstance(statement, tirx.BufferStore) or self.is_in_nest or statement.buffer in self.steering:
            return None
        before: list[tirx.Stmt] = []
        if not is_on_chip(statement.buffer):
            if updates(statement.value):
                # One turn: the work items that update an element take turns.
                update = with_value(statement, self._value(statement.value, before))
                return [*before, parallel_loops([tirx.Var("i", "int32")], [1], update)]
            return self.element(statement)
        buffer = self.blocks.get(statement.buffer, statement.buffer)
        value = self._value(statement.value, before)
        if all(extent == 1 for extent in shape_of(buffer)) and len(buffer.ty.shape) <= 2:
            return [*before, _filled(buffer, value)]
        return [*before, _once(tirx.BufferStore(buffer, value, list(statement.indices), statement.span))]

    def element(self, statement: tirx.BufferStore) -> list[tirx.Stmt]:
        """A store of one element of a tensor: of a block of one element."""
        tensor, unit_extent = statement.buffer, tirx.const(1, "int32")
        dtype = _dtype_in_block(dtype_of(tensor))
        element_block = self.allocate(f"{tensor.name}_element", (1,), dtype, span=statement.span)
        target = tirx.BufferRegion(tensor, [ir.Range.from_min_extent(at, unit_extent) for at in statement.indices])
        copy = tirx.Evaluate(call(tl.COPY.name, [whole_region(element_block.buffer), target]), statement.span)
        before: list[tirx.Stmt] = []
        value = self._value(statement.value, before)
        return [*before, element_block, _filled(element_block.buffer, value), copy]

    def branch(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """A branch that does no more than store to scalars."""
        if not isinstance(statement, tirx.IfThenElse) or self.is_in_nest or not _is_of_scalars(statement):
            return None
        if any(target in self.steering for target in _given_values(statement)):
            return None
        return rewrite_body([self._without_old(inner) for inner in flattened(statement)], _RULES, self)

    def _without_old(self, statement: tirx.Stmt) -> tirx.Stmt:
        """A store under a condition to what nothing reads needs no old value, which there need not be."""
        if not isinstance(statement, tirx.BufferStore) or statement.buffer not in self.unread:
            return statement

        def chosen(value: ir.Expr) -> ir.Expr:
            if isinstance(value, ir.TensorLoad) and value.source == statement.buffer:
                return tirx.const(0, dtype_of(statement.buffer))
            choice = choice_of(value)
            if choice is None:
                return value
            condition, then, otherwise = choice
            return tirx.if_then_else(condition, chosen(then), chosen(otherwise))

        return with_value(statement, chosen(statement.value))

    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """Scalars that a T.Parallel uses."""
        if not self.is_nest(statement):
            return None
        loops, body = parallel_body(statement)
        inside: set[ir.Expr] = {loop.loop_var for loop in loops}
        inside |= {inner.var for inner in body if isinstance(inner, tirx.Bind)}
        before: list[tirx.Stmt] = []
        rewritten: list[tirx.Stmt] = []
        for inner in body:
            match inner:
                case tirx.Bind() | tirx.BufferStore():
                    rewritten.append(with_value(inner, self._value(inner.value, before, inside)))
                case _:
                    rewritten.append(inner)
        if all(old.same_as(new) for old, new in zip(body, rewritten, strict=True)):
            return None
        return [*before, with_nest(loops, rewritten)]

    def operation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """Operations on scalar variables, and fills with scalars."""
        if op_name(statement) not in tl.STATEMENTS:
            return None
        operands = arguments(statement)
        statements: list[tirx.Stmt] = []
        for number, operand in enumerate(operands):
            if isinstance(operand, ir.TensorRegion) and operand.source in self.blocks:
                operands[number] = tirx.BufferRegion(self.blocks[operand.source], list(operand.region))
        region = operands[0]
        is_literal = isinstance(operands[1], tirx.FloatImm | tirx.IntImm) if runs(statement, tl.FILL) else True
        if not is_literal and isinstance(region, ir.TensorRegion):
            value = operands[1]
            if self._has_elements(value):
                value = self._kept(f"{region.source.name}_value", value, statements)
            return [*statements, _filled_with(region, value)]
        if all(new.same_as(old) for new, old in zip(operands, arguments(statement), strict=True)):
            return None
        return [with_arguments(statement, operands)]

    # Values

    def _has_elements(self, value: ir.Expr) -> bool:
        return any(isinstance(node, ir.TensorLoad) or node in self.meanings for node in nodes_of(value))

    def _known(self, value: ir.Expr) -> ir.Expr:
        """A value with the blocks in which scalars are."""

        def substitute(expr: ir.Expr) -> ir.Expr:
            if expr in self.meanings:
                return self.meanings[expr]
            if isinstance(expr, ir.TensorLoad) and expr.source in self.blocks:
                return _element(self.blocks[expr.source], dtype_of(expr.source), expr.span)
            return expr

        return replaced(value, substitute)

    def _value(self, value: ir.Expr, preceding: list[tirx.Stmt], inside: Iterable[ir.Expr] = ()) -> ir.Expr:
        """A value with elements of tensors in place of those of blocks that hold a part of one; `preceding` gets the
        checks that they are of the block. Elements at the names `inside` stay."""
        varying = {*inside}
        value = self._known(value)
        condition = condition_of(value)
        certain = {*certain_loads(value if condition is None else condition)}
        deciding = set[ir.Expr]() if condition is None else {*nodes_of(condition)}

        def read(expr: ir.Expr) -> ir.Expr:
            if not isinstance(expr, ir.TensorLoad) or not is_on_chip(expr.source):
                return expr
            if all(constant(index) == 0 for index in expr.indices):
                return expr
            if any(node in varying for index in expr.indices for node in nodes_of(index)):
                return expr
            names = [
                tirx.Bind(tirx.Var(f"{loads[0].source.name}_value", index.ty), index)
                for index in expr.indices
                if (loads := loads_of(index))
            ]
            var_of = {binding.value: binding.var for binding in names}
            indices = [var_of.get(index, index) for index in expr.indices]
            load = tirx.BufferLoad(expr.source, indices, expr.span) if names else expr
            element = self.loaded.element(load, [*self.around], self.bounds)
            # A place that numbers decide, and a number that decides something, are checked to lie in the tensor, which
            # the end of the block need not.
            if element is None or (element.past and (names or element.is_decided or expr in deciding)):
                return expr
            if not names and not element.is_decided:
                return element.value
            # Where nobody asks for an element, its index may be any.
            if element.checks and expr not in certain:
                return expr
            preceding.extend([*names, *element.checked()])
            return element.value

        return replaced(value, read)

    def _kept(self, name: str, value: ir.Expr, preceding: list[tirx.Stmt]) -> ir.Expr:
        """The element of a new block that holds a value; `preceding` gets the statements that fill it."""
        dtype = str(value.ty.dtype)
        block = self.allocate(name, (1,), _dtype_in_block(dtype))
        rewritten = self._value(value, preceding)
        preceding += [block, _filled(block.buffer, rewritten)]
        return _element(block.buffer, dtype, None)


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


def _stored(value: ir.Expr, block: tirx.Buffer) -> ir.Expr:
    """A value in the dtype of a block."""
    return value if str(value.ty.dtype) == dtype_of(block) else tirx.Cast(ir.PrimType(dtype_of(block)), value)


def _filled(block: tirx.Buffer, value: ir.Expr) -> tirx.Stmt:
    """The statement that puts a value into a block of one element."""
    if isinstance(value, ir.TensorLoad) and not is_on_chip(value.source) and dtype_of(block) == dtype_of(value.source):
        unit_extent = tirx.const(1, "int32")
        region = tirx.BufferRegion(
            value.source, [ir.Range.from_min_extent(index, unit_extent) for index in value.indices]
        )
        return tirx.Evaluate(call(tl.COPY.name, [region, whole_region(block)]))
    return parallel_nest(block, lambda at: _stored(_at(value, block, at), block))


def _filled_with(region: ir.TensorRegion, value: ir.Expr) -> tirx.Stmt:
    """The T.Parallel that stores a value to all elements of a region."""
    extents = constant_extents(region)
    axes = [axis for axis, extent in enumerate(extents) if extent != 1] or [len(extents) - 1]
    axis_vars = dict(zip(axes, parallel_variables(len(axes)), strict=True))
    indices = [
        interval.min if axis not in axis_vars else axis_vars[axis] if constant(interval.min) == 0
        else interval.min + axis_vars[axis]
        for axis, interval in enumerate(region.region)
    ]  # fmt: skip
    store = tirx.BufferStore(region.source, _stored(value, region.source), indices)
    return parallel_loops([*axis_vars.values()], [extents[axis] for axis in axes], store)


def _at(value: ir.Expr, block: tirx.Buffer, at: list[ir.Var]) -> ir.Expr:
    """A value that reads the one element of a block at loop variables, as the store of it does."""
    element = tirx.BufferLoad(block, at)
    return replaced(
        value, lambda node: element if isinstance(node, ir.TensorLoad) and node.source.same_as(block) else node
    )


def _once(store: tirx.BufferStore) -> tirx.Stmt:
    """The T.Parallel of one turn that stores an element."""
    variables = [tirx.Var(name, "int32") for name in "ij"[: len(store.indices)]]
    return parallel_loops(variables, [1] * len(variables), store)


def _is_of_scalars(branch: tirx.IfThenElse) -> bool:
    return all(
        isinstance(statement, tirx.IfThenElse | tirx.Bind)
        or (isinstance(statement, tirx.BufferStore) and is_on_chip(statement.buffer))
        for statement in walk(branch)
    )


def _given_values(branch: tirx.IfThenElse) -> list[ir.Var]:
    """The names and blocks that get values in a branch."""
    assignments = [statement for statement in walk(branch) if isinstance(statement, tirx.Bind | tirx.BufferStore)]
    return [assignment.var if isinstance(assignment, tirx.Bind) else assignment.buffer for assignment in assignments]


def _unread(function: tirx.PrimFunc) -> set[tirx.Buffer]:
    """What single elements are stored to, and nothing but such a store reads."""
    stored: set[tirx.Buffer] = set()
    used: set[tirx.Buffer] = set()
    for statement in walk(function.body):
        target = statement.buffer if isinstance(statement, tirx.BufferStore) else None
        if target is not None:
            stored.add(target)
        loads = (load for expression in expressions_of(statement) for load in loads_of(expression))
        used |= {load.source for load in loads if load.source != target}
        if isinstance(statement, tirx.Evaluate):
            used |= {region.source for region in regions(statement)}
    return stored - used


def steering(function: tirx.PrimFunc) -> set[ir.Expr]:
    """The names and blocks that places of blocks and elements, lengths of loops and conditions depend on."""
    waiting: list[ir.Expr] = []
    values: dict[ir.Expr, list[ir.Expr]] = {}
    for node in walk(function.body):
        if type(node) is tirx.For:
            waiting += [node.min, node.extent]
        elif type(node) is tirx.IfThenElse and _is_of_scalars(node):
            # It steers what depends on it.
            for target in _given_values(node):
                values.setdefault(target, []).append(node.condition)
        elif type(node) is tirx.IfThenElse or type(node) is tirx.While:
            waiting.append(node.condition)
        elif type(node) is tirx.Bind:
            values.setdefault(node.var, []).append(node.value)
        elif type(node) is tirx.BufferStore:
            values.setdefault(node.buffer, []).append(node.value)
            waiting.extend(node.indices)
            if (condition := condition_of(node.value)) is not None:
                waiting.append(condition)
        elif op_name(node):
            ranges = (interval for region in regions(node) for interval in region.region)
            waiting += (bound for interval in ranges for bound in (interval.min, interval.extent))
        if type(node) is tirx.Bind or type(node) is tirx.BufferStore:
            waiting += (index for load in loads_of(node.value) for index in load.indices)
    steering_values: set[ir.Expr] = set()
    while waiting:
        for node in nodes_of(waiting.pop()):
            holder = node.source if type(node) is ir.TensorLoad else node
            if type(holder) is ir.Var and holder not in steering_values:
                steering_values.add(holder)
                waiting.extend(values.get(holder, []))
    return steering_values


_RULES = (
    StatementRule("what blocks hold", "What a block holds of a tensor is noted; nothing changes.", _Scalars.seen),
    StatementRule(
        "scalar in a block", "A scalar variable that is an operand is a block of one element.", _Scalars.allocation
    ),
    StatementRule("name in a block", "A name for a value of elements is a block of one element.", _Scalars.name),
    StatementRule(
        "single element stored", "A store of one element is a T.Parallel of one turn.", _Scalars.store
    ),
    StatementRule("choice of scalars", "A branch that stores to scalars chooses what they hold.", _Scalars.branch),
    StatementRule("scalars read", "A T.Parallel reads scalars in blocks of one element.", _Scalars.nest),
    StatementRule(
        "operand in a block", "Operations use the blocks of one element that hold scalars.", _Scalars.operation
    ),
)  # fmt: skip
