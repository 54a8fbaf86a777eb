"""Products of integers on the matrix unit, which multiplies and adds floating-point numbers.

The unit adds eight products at a time, and rounds each to 10 binary places below the largest sum of two exponents among
them (backends/emulator/runtime/fpu.cpp). So sums of integers are exact if no such sum is above 10. The exponent of an
element of int8 is up to 7, so that of a product up to 14: one factor is taken apart into 16 times a high part and a low
part, of 4 bits each, and both are multiplied. DST holds the sums exactly up to 2^24; the int32 accumulator adds up the
products of all blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.analysis.added_buffers import NewBuffers
from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import call, line_of, span_of
from ttexplore.ir.build import (
    arguments,
    attribute,
    dtype_of,
    parallel_nest,
    regions,
    runs,
    shape_of,
    whole_region,
)
from ttexplore.ir.rewrite import Firings, StatementRule, rewrite
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl
from ttexplore.ops.small import largest_magnitude
from ttexplore.plan import SMALL_WHOLES

# The largest exponent of a product beside which products of 1 are not cut.
LARGEST_EXPONENT = 10
# Up to where float32, and so DST, holds all integers.
LARGEST_SUM = 2**24
# The factor of the high part of an element that is taken apart.
_HIGH = 16


def with_products_of_numbers(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with products of integers as products of numbers that the matrix unit computes exactly.

    Raises Unsupported for sums that DST does not hold exactly, and for products of int32.
    """
    return rewrite([PRODUCT], _Products(function, firings))


def _is_of_integers(statement: tirx.Stmt) -> bool:
    if not runs(statement, tl.GEMM):
        return False
    a, b, c = (dtype_of(region.source) for region in regions(statement))
    return c == "int32" or (a in SMALL_WHOLES and b in SMALL_WHOLES)


@dataclass(frozen=True)
class _Factor:
    """An operand of a product: its place among the arguments, and the largest magnitude of an element."""

    place: int
    region: ir.TensorRegion
    largest: int

    @property
    def elements(self) -> int:
        rows, columns = shape_of(self.region.source)[-2:]
        return rows * columns


class _Products(NewBuffers):
    def product(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not _is_of_integers(statement):
            return None
        a, b, c = regions(statement)
        for operand in (a, b):
            if dtype_of(operand.source) not in SMALL_WHOLES:
                raise Unsupported(
                    "L009",
                    f"T.gemm into {c.source.name}, which is {dtype_of(c.source)}, with {operand.source.name}, which is "
                    f"{dtype_of(operand.source)}",
                    hint="multiply integers of at most 8 bits, or accumulate in float32: the matrix unit multiplies "
                    "numbers, and is exact only for small ones",
                    span=span_of(statement),
                )
        factors = [
            _Factor(position, operand, largest_magnitude(dtype_of(operand.source)))
            for position, operand in enumerate((a, b))
        ]
        depth = shape_of(a.source)[-2 if attribute(statement, "transpose_A") else -1]
        products: list[tuple[int, dict[int, ir.TensorRegion]]] = [(1, {})]
        statements: list[tirx.Stmt] = []
        largest = factors[0].largest * factors[1].largest
        if _exponents(a.source, b.source) > LARGEST_EXPONENT:
            split = min(reversed(factors), key=lambda candidate: candidate.elements)
            statements, high, low = self.taken_apart(split)
            products = [(_HIGH, {split.place: high}), (1, {split.place: low})]
            largest = (_HIGH - 1) * factors[1 - split.place].largest
        if depth * largest > LARGEST_SUM:
            raise Unsupported(
                "L009",
                f"T.gemm sums {depth} products of {dtype_of(a.source)} and {dtype_of(b.source)}, and DST holds only "
                f"sums up to {LARGEST_SUM} exactly",
                hint=f"sum at most {LARGEST_SUM // largest} products in one T.gemm, in a loop over blocks",
                span=span_of(statement),
            )
        sums: list[tuple[int, tirx.Buffer]] = []
        flags = {name: 1 for name in ("transpose_A", "transpose_B") if attribute(statement, name)}
        flags["clear_accum"] = 1
        for factor, replaced in products:
            suffix = "sum" if len(products) == 1 else "high" if factor > 1 else "low"
            into = self.allocate(f"{c.source.name}_{suffix}", shape_of(c.source), "float32")
            operands = [replaced.get(position, operand) for position, operand in enumerate(arguments(statement)[:2])]
            product = tirx.Evaluate(call(tl.GEMM.name, [*operands, whole_region(into.buffer)], flags), statement.span)
            statements += [into, product]
            sums.append((factor, into.buffer))
        return [*statements, _added(c.source, sums, clear=bool(attribute(statement, "clear_accum")))]

    def taken_apart(self, factor: _Factor) -> tuple[list[tirx.Stmt], ir.TensorRegion, ir.TensorRegion]:
        """The statements that split the elements of an operand, and the regions with their high and low parts."""
        source = factor.region.source
        high, low = (
            self.allocate(f"{source.name}_{suffix}", shape_of(source), "bfloat16") for suffix in ("high", "low")
        )
        number = ir.PrimType("float32")

        def full_value(at: list[ir.Var]) -> ir.Expr:
            return tirx.Cast(number, tirx.BufferLoad(source, at))

        def sixteenth(at: list[ir.Var]) -> ir.Expr:
            return tirx.floor(tirx.Mul(full_value(at), tirx.const(1 / _HIGH, "float32")))

        dtype = ir.PrimType("bfloat16")
        statements: list[tirx.Stmt] = [
            high, low,
            parallel_nest(high.buffer, lambda at: tirx.Cast(dtype, sixteenth(at))),
            parallel_nest(low.buffer, lambda at: tirx.Cast(
                dtype, tirx.Sub(full_value(at), tirx.Mul(sixteenth(at), tirx.const(float(_HIGH), "float32")))
            )),
        ]  # fmt: skip
        return statements, whole_region(high.buffer), whole_region(low.buffer)


def _added(target: tirx.Buffer, sums: list[tuple[int, tirx.Buffer]], *, clear: bool) -> tirx.Stmt:
    """The nest that adds sums, each times a factor, to an accumulator, or replaces what that holds."""
    dtype = ir.PrimType(dtype_of(target))

    def total(at: list[ir.Var]) -> ir.Expr:
        accumulated: ir.Expr | None = None if clear else tirx.BufferLoad(target, at)
        for factor, sum_buffer in sums:
            summand: ir.Expr = tirx.Cast(dtype, tirx.BufferLoad(sum_buffer, at))
            summand = tirx.Mul(summand, tirx.const(factor, dtype_of(target))) if factor != 1 else summand
            accumulated = summand if accumulated is None else tirx.Add(accumulated, summand)
        assert accumulated is not None
        return accumulated

    return parallel_nest(target, total)


PRODUCT = StatementRule(
    "product of integers", "A product of integers becomes products of numbers that the matrix unit sums up exactly.",
    _Products.product,
)  # fmt: skip


def note_on_product(statement: tirx.Stmt) -> Note:
    """What the plan says about a product of integers."""
    a, b, _ = (region.source for region in regions(statement))
    kind = "one product" if _exponents(a, b) <= LARGEST_EXPONENT else "two products"
    return note(kind, a=str(a.name), b=str(b.name), line=line_of(statement))


def _exponents(a: tirx.Buffer, b: tirx.Buffer) -> int:
    """The largest sum of the exponents of two elements."""
    return sum(largest_magnitude(dtype_of(buffer)).bit_length() - 1 for buffer in (a, b))
