"""Scalars that each turn of a T.Parallel has of its own, as names of values."""

from __future__ import annotations

import functools

from tvm import ir, tirx

from ttexplore.errors import KernelError, TTExploreError, Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import arguments, constant, dtype_of, sequence, with_nest, with_value
from ttexplore.ir.dag import replaced, same_expression
from ttexplore.ir.dataflow import is_parallel, loads_of, parallel_body
from ttexplore.ir.operations.turns import stored_by_turns
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, walk
from ttexplore.ops.op import UNWRITTEN

_Place = tuple[tirx.Buffer, tuple[int, ...]]


def with_turn_values(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with names in place of scalars that a T.Parallel stores to.

        for i in T.Parallel(64):                   for i in T.Parallel(64):
            x = T.alloc_var("float32")
            x = a[i] * 2                     ==>       x = a[i] * 2
            x = x + 1                                  x_2 = x + 1
            c[i] = x                                   c[i] = x_2

    Raises KernelError where a turn reads what it has not stored, and Unsupported where something else reads it.
    """
    buffers: set[tirx.Buffer] = set()
    inner: set[tirx.Stmt] = set()
    for statement in walk(function.body):
        if is_parallel(statement) and statement not in inner:
            loops, body = parallel_body(statement)
            inner.update(loops)
            buffers |= stored_by_turns(loops, sequence(body))
    turn_buffers = frozenset(buffers)
    return rewrite(_RULES, _Turns(function, firings, turn_buffers)) if turn_buffers else function


class _Turns(Context):
    """`own` are the scalars that turns have of their own."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings, turn_buffers: frozenset[tirx.Buffer]) -> None:
        super().__init__(function, firings)
        self.own = turn_buffers

    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not self.is_nest(statement):
            return None
        loops, body = parallel_body(statement)
        iteration, rewritten = _ScalarValues(self.own), list[tirx.Stmt]()
        for inner in body:
            try:
                rewritten += iteration.statement(inner)
            except TTExploreError as error:
                raise error.at(span_of(inner)) from None
        return [with_nest(loops, rewritten)] if iteration.values else None

    def elsewhere(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """Outside of T.Parallel nothing is left of such a scalar."""
        if self.is_in_nest:
            return None
        match statement:
            case tirx.AllocBuffer() | tirx.BufferStore() if statement.buffer in self.own:
                return []
            case tirx.BufferStore() | tirx.Bind():
                self.refuse([statement.value])
            case tirx.Evaluate(value=ir.Call()):
                self.refuse(arguments(statement))
            case tirx.For() if not is_parallel(statement):
                self.refuse([statement.min, statement.extent])
            case tirx.IfThenElse():
                self.refuse([statement.condition])
            case _:
                pass
        return None

    def refuse(self, read: list[ir.Expr]) -> None:
        regions = [expression.source for expression in read if isinstance(expression, ir.TensorRegion)]
        for buffer in (*regions, *(load.source for expression in read for load in loads_of(expression))):
            if buffer in self.own:
                raise Unsupported(
                    "L003",
                    f"{buffer.name} is used outside of the T.Parallel that stores to it in each turn",
                    hint="each turn has its own: use a buffer with an element for each turn, and T.reduce it",
                )


class _ScalarValues:
    """What scalars hold in a turn, by buffer and indices, as the statements go by. `missing` are the conditions that
    hold together where nothing has been stored yet."""

    def __init__(self, turn_buffers: frozenset[tirx.Buffer]) -> None:
        self.own = turn_buffers
        self.values: dict[_Place, ir.Var] = {}
        self.missing: dict[_Place, list[ir.Expr]] = {}

    def statement(self, statement: tirx.Stmt) -> list[tirx.Stmt]:
        match statement:
            case tirx.AllocBuffer() if statement.buffer in self.own:
                return []
            case tirx.BufferStore() if statement.buffer in self.own:
                return [self.store(statement)]
            case tirx.BufferStore() | tirx.Bind():
                return [with_value(statement, self.value(statement.value))]
            case _:
                return [statement]

    def store(self, store: tirx.BufferStore) -> tirx.Stmt:
        element, value = _place(store.buffer, list(store.indices)), store.value
        conditions: list[ir.Expr] = []
        # A branch keeps what the scalar holds where its condition does not hold.
        while isinstance(value, ir.Call) and str(value.op.name).endswith(".if_then_else"):
            condition, then, otherwise = value.args
            if not isinstance(otherwise, ir.TensorLoad) or not otherwise.source.same_as(store.buffer):
                break
            if _place(otherwise.source, list(otherwise.indices)) != element:
                break
            conditions.append(self.value(condition))
            value = then
        dtype = dtype_of(store.buffer)
        old_value = self.values.get(element, tirx.const(UNWRITTEN["int32" if "int" in dtype else "float32"], dtype))
        value = _rounded(self.value(value))
        for condition in reversed(conditions):
            value = tirx.if_then_else(condition, value, old_value)
        missing = _still_missing(self.missing.get(element, []), conditions)
        if missing is None or (element in self.values and element not in self.missing):
            self.missing.pop(element, None)
        else:
            self.missing[element] = missing
        self.values[element] = tirx.Var(str(store.buffer.name), dtype)
        return tirx.Bind(self.values[element], value, store.span)

    def value(self, value: ir.Expr) -> ir.Expr:
        """A value with what scalars hold."""

        def substitute(expr: ir.Expr) -> ir.Expr:
            if not isinstance(expr, ir.TensorLoad) or expr.source not in self.own:
                return expr
            element = _place(expr.source, list(expr.indices))
            if element not in self.values or element in self.missing:
                raise KernelError(
                    "K006",
                    f"a turn of T.Parallel reads {expr.source.name} before it stores to it",
                    hint="each turn has its own: store to it first, on both sides of a branch",
                )
            return self.values[element]

        return replaced(value, substitute)


def _place(buffer: tirx.Buffer, indices: list[ir.Expr]) -> _Place:
    numbers = [constant(index) for index in indices]
    if None in numbers:
        raise Unsupported(
            "L003",
            f"T.Parallel keeps a value of each turn in {buffer.name}[{', '.join(map(str, indices))}]",
            hint="use constant indices, or a buffer with an element for each turn",
        )
    return buffer, tuple(number for number in numbers if number is not None)


def _still_missing(missing: list[ir.Expr], stored: list[ir.Expr]) -> list[ir.Expr] | None:
    """The conditions that hold together where nothing is stored after a store under conditions; None for nowhere."""
    more = [
        condition
        for condition in stored
        if not any(same_expression(condition, missing_condition) for missing_condition in missing)
    ]
    if not more:
        return None
    every = functools.reduce(tirx.And, more)
    return [*missing, every.a if isinstance(every, tirx.Not) else tirx.Not(every)]


def _rounded(value: ir.Expr) -> ir.Expr:
    """A value as a variable of its dtype holds it: names are not rounded."""
    dtype = str(value.ty.dtype)
    if dtype not in ("bfloat16", "float16") or isinstance(value, tirx.Cast | tirx.FloatImm):
        return value
    return tirx.Cast(value.ty, tirx.Cast(ir.PrimType("float32"), value))


_RULES = (
    StatementRule("value of a turn", "A scalar that T.Parallel stores to is a name in each turn.", _Turns.nest),
    StatementRule(
        "no scalar outside", "A scalar of the turns of T.Parallel needs no buffer.", _Turns.elsewhere
    ),
)  # fmt: skip
