"""Widen starts, bounds, conditions and indices, and numbers of tensors, in narrow integer types to int32.

TVM's proofs stop at a cast that may change its operand, such as a narrow cast of a block index or a loop variable, or
take it for a number that both types hold: of a cast of -1 to uint8, that there is none, so that anything follows.
Values that the kernel computes in a narrow type do not overflow (`integers` has checked), and a cast keeps the low
bits, so int32 arithmetic gives the same results.

    for k in range(T.int8(bx * 100), 4)    ==>    for k in range((bx * 100 + 128) % 256 - 128, 4)

Arithmetic on elements of tensors does wrap around; how often is known only when the kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.ir.adapter import elements
from ttexplore.ir.arithmetic.index import RANGES, WORD_BITS
from ttexplore.ir.build import arguments, op_name, regions, with_arguments, with_value
from ttexplore.ir.dag import folded, nodes_of, parts_of, replaced, with_parts
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, rewrite_body, walk
from ttexplore.ops import language as tl

_BITS = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16}


def with_wide_indices(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with region starts, loop bounds, conditions and indices of elements in int32."""
    if not any(_is_narrow(e) for statement in walk(function.body) for e in _indices(statement)):
        return function
    return rewrite([_WIDE], Context(function, firings))


def with_wide_numbers(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with arithmetic on names of elements in int32, wrapped around as in their own dtype.

        L_value = L[bx]                                L_value = L[bx]
        if L_value - 1 < 9:  # of uint8        ==>     if (T.int32(L_value) - 1) % 256 < 9:
        F_value = F[bx]                                F_value = F[bx]
        T.copy(A[F_value, 0], a)  # of bool    ==>     T.copy(A[T.int32(F_value), 0], a)

    What T.Parallel computes with elements of blocks wraps around there.
    """
    if not any(
        isinstance(statement, tirx.Bind) and isinstance(statement.value, ir.TensorLoad)
        for statement in walk(function.body)
    ):
        return function
    return rewrite([_NUMBERS], _IndexNames(function, firings))


def _indices(statement: tirx.Stmt) -> list[ir.Expr]:
    match statement:
        case tirx.For():
            return [statement.min, statement.extent]
        case tirx.IfThenElse():
            return [statement.condition]
        case tirx.Evaluate(value=ir.Call()):
            return [interval.min for region in regions(statement) for interval in elements(region.region)]
        case tirx.BufferStore():
            return [*elements(statement.indices), *_inner(statement.value)]
        case tirx.Bind():
            return _inner(statement.value)
        case _:
            return []


def _inner(value: ir.Expr) -> list[ir.Expr]:
    """The indices of elements in a value."""
    return [index for node in nodes_of(value) if isinstance(node, ir.TensorLoad) for index in elements(node.indices)]


def _is_narrow(e: ir.Expr) -> bool:
    """Whether an expression contains a cast to a narrow type and no elements."""
    nodes = nodes_of(e)
    narrow = any(isinstance(node, tirx.Cast) and str(node.ty.dtype) in _BITS for node in nodes)
    return narrow and not any(isinstance(node, ir.TensorLoad) for node in nodes)


def _widest(context: Context, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    if not any(map(_is_narrow, _indices(statement))):
        return None
    match statement:
        case tirx.For() | tirx.IfThenElse():
            inner = context.inside(statement, lambda body: rewrite_body(body, [_WIDE], context))
            return [_with_bounds(inner, _wide, _wide)]
        case tirx.BufferStore():
            return [with_value(statement, _with_wide_parts(statement.value), [_wide(i) for i in statement.indices])]
        case tirx.Bind():
            return [with_value(statement, _with_wide_parts(statement.value))]
        case _:
            return [
                with_arguments(statement, [_with_parts(argument, _wide, _same) for argument in arguments(statement)])
            ]


def _same(e: ir.Expr) -> ir.Expr:
    return e


def _with_bounds(
    statement: tirx.For | tirx.IfThenElse, number: Callable[[ir.Expr], ir.Expr], test: Callable[[ir.Expr], ir.Expr]
) -> tirx.For | tirx.IfThenElse:
    """A loop or branch with other bounds, or another condition; the same node if nothing changes."""
    if isinstance(statement, tirx.IfThenElse):
        condition = test(statement.condition)
        if condition.same_as(statement.condition):
            return statement
        return tirx.IfThenElse(condition, statement.then_case, statement.else_case, statement.span)
    low, extent = number(statement.min), number(statement.extent)
    if low.same_as(statement.min) and extent.same_as(statement.extent):
        return statement
    return tirx.For(
        statement.loop_var, low, extent, statement.kind, statement.body,
        statement.thread_binding, statement.annotations, statement.step, statement.span,
    )  # fmt: skip


def _with_wide_parts(value: ir.Expr) -> ir.Expr:
    def wide(expr: ir.Expr) -> ir.Expr:
        if not isinstance(expr, ir.TensorLoad):
            return expr
        return with_parts(expr, [_wide(index) for index in elements(expr.indices)])

    return replaced(value, wide)


_WIDE = StatementRule(
    "indices in int32", "Starts, bounds, conditions and indices in narrow integer types are computed in int32.", _widest
)


def _with_parts(
    argument: ir.Expr, start: Callable[[ir.Expr], ir.Expr], extent: Callable[[ir.Expr], ir.Expr]
) -> ir.Expr:
    """An argument of an operation; a region with other starts and extents."""
    if not isinstance(argument, ir.TensorRegion):
        return argument
    ranges = [ir.Range.from_min_extent(start(interval.min), extent(interval.extent)) for interval in argument.region]
    return tirx.BufferRegion(argument.source, ranges)


def _wide(e: ir.Expr) -> ir.Expr:
    return folded(e, _widened) if _is_narrow(e) else e


def _wrapped(e: ir.Expr, dtype: str) -> ir.Expr:
    """What a narrow dtype holds of a number in int32."""
    count = 1 << _BITS[dtype]
    if dtype.startswith("u"):
        return tirx.floormod(e, count)
    return tirx.floormod(e + count // 2, count) - count // 2


def _widened(e: ir.Expr, operands: list[ir.Expr]) -> ir.Expr:
    dtype = str(e.ty.dtype)
    match e:
        case tirx.Cast() if dtype in _BITS and str(operands[0].ty.dtype) == "int32":
            return _wrapped(operands[0], dtype)
        case tirx.Cast() if str(operands[0].ty.dtype) == dtype:
            return operands[0]
        case tirx.IntImm() if dtype in _BITS:
            return tirx.const(int(e.value), "int32")
        case ir.Call() if dtype in _BITS:
            return ir.Call(e.op, operands, attrs=e.attrs, span=e.span, ret_ty=operands[-1].ty)
        case _ if not operands:
            return tirx.Cast(ir.PrimType("int32"), e) if dtype in _BITS else e
        case _:
            return with_parts(e, operands)


# Numbers of tensors

# Operations whose result may not fit into the dtype of their operands, such as -128 // -1.
_LEAVING = (tirx.Add, tirx.Sub, tirx.Mul, tirx.LShift, tirx.BitwiseNot, tirx.FloorDiv, tirx.Div)


@dataclass(frozen=True)
class _Number:
    """An expression, and the same in int32; none for what is no arithmetic on whole numbers. `is_named` says whether it
    has names that the kernel gives outside of T.Parallel, `leaves` whether it may wrap around,
    or shift by places that there are not."""

    plain: ir.Expr
    wide: ir.Expr | None = None
    is_named: bool = False
    leaves: bool = False

    @property
    def value(self) -> ir.Expr:
        """The expression with what wraps around in int32, in its own dtype."""
        number = self.number
        dtype = str(self.plain.ty.dtype)
        return tirx.Cast(ir.PrimType(dtype), number) if str(number.ty.dtype) != dtype else number

    @property
    def number(self) -> ir.Expr:
        """The expression with what wraps around in int32."""
        return self.wide if self.is_wide and self.wide is not None else self.plain

    @property
    def is_wide(self) -> bool:
        """Whether it wraps around, and is known in int32."""
        return self.wide is not None and self.is_named and self.leaves


class _IndexNames(Context):
    """`given` are the names that the kernel gives outside of T.Parallel, `local` those within: they may be elements of
    blocks."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.given: set[ir.Expr] = set()
        self.local: set[ir.Expr] = set()
        # Names of numbers that wrap around, each with that of the number in int32.
        self.wide: dict[ir.Expr, ir.Var] = {}

    def statement(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """A statement whose numbers may wrap around, or shift by too many places, or are bools."""
        if isinstance(statement, tirx.Bind):
            (self.local if self.is_in_nest else self.given).add(statement.var)
        match statement:
            case tirx.For() | tirx.IfThenElse():
                rewritten = _with_bounds(statement, self.number, self.value)
                if rewritten is statement:
                    return None
                rewritten = self.inside(rewritten, lambda body: rewrite_body(body, [_NUMBERS], self))
            case tirx.BufferStore():
                rewritten = with_value(
                    statement, self.value(statement.value), [self.number(i) for i in statement.indices]
                )
            case tirx.Bind():
                meaning = folded(statement.value, self._meaning)
                if not self.is_in_nest and meaning.is_wide and str(statement.var.ty.dtype) in _BITS:
                    # TVM takes a cast for a number that both types hold.
                    name = self.wide[statement.var] = tirx.Var(str(statement.var.name), "int32", statement.var.span)
                    return [tirx.Bind(name, meaning.number, statement.span)]
                rewritten = with_value(statement, meaning.value)
            case tirx.Evaluate(value=ir.Call()) if op_name(statement) in tl.STATEMENTS:
                before = arguments(statement)
                operands = [_with_parts(argument, self.number, self.number) for argument in before]
                if all(new.same_as(old) for new, old in zip(operands, before, strict=True)):
                    return None
                rewritten = with_arguments(statement, operands)
            case _:
                return None
        return None if rewritten.same_as(statement) else [rewritten]

    def value(self, e: ir.Expr) -> ir.Expr:
        return folded(e, self._meaning).value

    def number(self, e: ir.Expr) -> ir.Expr:
        """A place or a length: no bool."""
        return _without_bool(folded(e, self._meaning).number)

    def _meaning(self, e: ir.Expr, operands: list[_Number]) -> _Number:
        dtype = str(e.ty.dtype)
        match e:
            case ir.TensorLoad():
                return _Number(_rebuilt(e, [_without_bool(operand.number) for operand in operands]))
            case ir.Var() if e in self.wide:
                return _Number(tirx.Cast(e.ty, self.wide[e]), self.wide[e], is_named=True, leaves=True)
            case ir.Var() if dtype in RANGES and e not in self.local:
                return _Number(e, _int32(e), is_named=e in self.given)
            case tirx.IntImm():
                return _Number(e, _int32(e))
            case tirx.LShift() | tirx.RShift() if operands[1].is_named:
                shifted = self._shifted(e, operands[0].wide, operands[1].wide)
                return _Number(
                    _rebuilt(e, [operand.value for operand in operands]), shifted, is_named=True, leaves=True
                )
            case _ if (
                operands
                and dtype in RANGES
                and (wide := _computed(e, [operand.wide for operand in operands])) is not None
            ):
                leaves = any(operand.leaves for operand in operands) or (dtype in _BITS and isinstance(e, _LEAVING))
                return _Number(e, wide, any(operand.is_named for operand in operands), leaves)
            case tirx.Cast():
                return _Number(_rebuilt(e, [operand.number for operand in operands]))
            case _:
                return _Number(_rebuilt(e, [operand.value for operand in operands]))

    def _shifted(self, e: tirx.LShift | tirx.RShift, number: ir.Expr | None, shift: ir.Expr | None) -> ir.Expr | None:
        """A shift that is defined for all places, as it is in NumPy and in PTX."""
        if shift is None:
            return None
        inside = tirx.And(shift >= 0, shift < WORD_BITS)
        if self.bounds.proves(inside):
            return _computed(e, [number, shift])
        shifted = _computed(e, [number, tirx.Select(inside, shift, tirx.const(WORD_BITS - 1, "int32"))])
        if shifted is None or isinstance(e, tirx.RShift):
            return shifted
        return tirx.Select(inside, shifted, tirx.const(0, shifted.ty))


def _without_bool(e: ir.Expr) -> ir.Expr:
    return tirx.Cast(ir.PrimType("int32"), e) if str(e.ty.dtype) == "bool" else e


def _rebuilt(e: ir.Expr, operands: list[ir.Expr]) -> ir.Expr:
    return e if all(a.same_as(b) for a, b in zip(parts_of(e), operands, strict=True)) else with_parts(e, operands)


def _int32(e: ir.Var | tirx.IntImm) -> ir.Expr:
    if str(e.ty.dtype) not in _BITS:
        return e
    return tirx.const(int(e.value), "int32") if isinstance(e, tirx.IntImm) else tirx.Cast(ir.PrimType("int32"), e)


def _computed(e: ir.Expr, operands: list[ir.Expr | None]) -> ir.Expr | None:
    """An operation on numbers in int32, wrapped around in its own dtype; None where that is not known."""
    wide_operands = [operand for operand in operands if operand is not None]
    if len(wide_operands) < len(operands):
        return None
    dtype = str(e.ty.dtype)
    match e:
        case tirx.Cast() if dtype == "bool":
            return tirx.NE(wide_operands[0], tirx.const(0, wide_operands[0].ty))
        case tirx.Cast() if dtype in _BITS:
            return _wrapped(_without_bool(wide_operands[0]), dtype)
        case tirx.Cast():
            return wide_operands[0] if str(wide_operands[0].ty.dtype) == dtype else tirx.Cast(e.ty, wide_operands[0])
        case ir.Call() if str(e.op.name).endswith(".if_then_else"):
            return ir.Call(e.op, wide_operands, attrs=e.attrs, span=e.span, ret_ty=wide_operands[-1].ty)
        case ir.Call():
            return None
        case _:
            rebuilt = with_parts(e, wide_operands)
            return _wrapped(rebuilt, dtype) if dtype in _BITS and isinstance(e, _LEAVING) else rebuilt


_NUMBERS = StatementRule(
    "numbers in int32", "Arithmetic on numbers of tensors in narrow types is computed in int32.", _IndexNames.statement
)
