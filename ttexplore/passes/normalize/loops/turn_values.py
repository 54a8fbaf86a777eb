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
    found: set[tirx.Buffer] = set()
    inner: set[tirx.Stmt] = set()
    for one in walk(function.body):
        if is_parallel(one) and one not in inner:
            loops, body = parallel_body(one)
            inner.update(loops)
            found |= stored_by_turns(loops, sequence(body))
    own = frozenset(found)
    return rewrite(_RULES, _Turns(function, firings, own)) if own else function


class _Turns(Context):
    """`own` are the scalars that turns have of their own."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings, own: frozenset[tirx.Buffer]) -> None:
        super().__init__(function, firings)
        self.own = own

    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not self.is_nest(statement):
            return None
        loops, body = parallel_body(statement)
        turn, made = _ScalarValues(self.own), list[tirx.Stmt]()
        for one in body:
            try:
                made += turn.statement(one)
            except TTExploreError as error:
                raise error.at(span_of(one)) from None
        return [with_nest(loops, made)] if turn.values else None

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
        regions = [one.source for one in read if isinstance(one, ir.TensorRegion)]
        for buffer in (*regions, *(load.source for one in read for load in loads_of(one))):
            if buffer in self.own:
                raise Unsupported(
                    "L003",
                    f"{buffer.name} is used outside of the T.Parallel that stores to it in each turn",
                    hint="each turn has its own: use a buffer with an element for each turn, and T.reduce it",
                )


class _ScalarValues:
    """What scalars hold in a turn, by buffer and indices, as the statements go by. `missing` are the conditions that
    hold together where nothing has been stored yet."""

    def __init__(self, own: frozenset[tirx.Buffer]) -> None:
        self.own = own
        self.values: dict[_Place, ir.Var] = {}
        self.missing: dict[_Place, list[ir.Expr]] = {}

    def statement(self, one: tirx.Stmt) -> list[tirx.Stmt]:
        match one:
            case tirx.AllocBuffer() if one.buffer in self.own:
                return []
            case tirx.BufferStore() if one.buffer in self.own:
                return [self.store(one)]
            case tirx.BufferStore() | tirx.Bind():
                return [with_value(one, self.value(one.value))]
            case _:
                return [one]

    def store(self, one: tirx.BufferStore) -> tirx.Stmt:
        place, value = _place(one.buffer, list(one.indices)), one.value
        conditions: list[ir.Expr] = []
        # A branch keeps what the scalar holds where its condition does not hold.
        while isinstance(value, ir.Call) and str(value.op.name).endswith(".if_then_else"):
            condition, then, other = value.args
            if not isinstance(other, ir.TensorLoad) or not other.source.same_as(one.buffer):
                break
            if _place(other.source, list(other.indices)) != place:
                break
            conditions.append(self.value(condition))
            value = then
        dtype = dtype_of(one.buffer)
        kept = self.values.get(place, tirx.const(UNWRITTEN["int32" if "int" in dtype else "float32"], dtype))
        value = _rounded(self.value(value))
        for condition in reversed(conditions):
            value = tirx.if_then_else(condition, value, kept)
        missing = _still_missing(self.missing.get(place, []), conditions)
        if missing is None or (place in self.values and place not in self.missing):
            self.missing.pop(place, None)
        else:
            self.missing[place] = missing
        self.values[place] = tirx.Var(str(one.buffer.name), dtype)
        return tirx.Bind(self.values[place], value, one.span)

    def value(self, value: ir.Expr) -> ir.Expr:
        """A value with what scalars hold."""

        def known(part: ir.Expr) -> ir.Expr:
            if not isinstance(part, ir.TensorLoad) or part.source not in self.own:
                return part
            place = _place(part.source, list(part.indices))
            if place not in self.values or place in self.missing:
                raise KernelError(
                    "K006",
                    f"a turn of T.Parallel reads {part.source.name} before it stores to it",
                    hint="each turn has its own: store to it first, on both sides of a branch",
                )
            return self.values[place]

        return replaced(value, known)


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
    more = [one for one in stored if not any(same_expression(one, other) for other in missing)]
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
