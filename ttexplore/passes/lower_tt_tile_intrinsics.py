"""C2: block operations become operations on 32x32 tiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import (
    allocation,
    arguments,
    attribute,
    dtype_of,
    loop,
    op,
    op_name,
    scope_of,
    shape_of,
    statements,
    variable,
    with_body,
    with_function_body,
)  # fmt: skip
from ttexplore.ir.dataflow import is_on_chip, is_parallel, loads_of, parallel_nest
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import stamp
from ttexplore.passes.regions import Bounds, page_region
from ttexplore.passes.staging import tile_grid
from ttexplore.plan import CircularBuffer, Plan
from ttexplore.target import Target

_BINARY = {tirx.Add: "add", tirx.Sub: "sub", tirx.Mul: "mul", tirx.Max: "max", tirx.Min: "min"}
_SFPU_BINARY = {
    "add": "add_binary_tile", "sub": "sub_binary_tile", "mul": "mul_binary_tile", "max": "binary_max_tile",
    "min": "binary_min_tile",
}  # fmt: skip
_SFPU_SCALAR = {
    "add": "add_unary_tile", "sub": "sub_unary_tile", "mul": "mul_unary_tile", "max": "unary_max_tile",
    "min": "unary_min_tile", "rsub": "rsub_unary_tile",
}  # fmt: skip
_UNARY_CALLS = {"tirx.exp": "exp_tile", "tirx.fabs": "abs_tile", "tirx.abs": "abs_tile"}
_COMMUTES = ("add", "mul", "max", "min")
ZEROS = "zeros"


def lower_tt_tile_intrinsics(program: Program, target: Target) -> Program:
    """Replace copies, products, fills and element-wise blocks by tile operations.

        T.gemm(A_shared, B_shared, C_local)  ==>  for k in range(1):
                                                      tt.matmul_block(A_shared, B_shared, k, k * 4, C_local[0], ...)
        C_local[i, j] = T.max(C_local[i, j], 0)  ==>  for t in range(16):
                                                          tt.relu_tile(C_local[t])
        T.copy(C_local, C_out)               ==>  for t in range(16):
                                                      tt.pack_tile(C_local[t], C_out, t)

    Buffers become blocks of tiles. Element-wise work runs on the FPU where both operands are bfloat16 blocks in
    circular buffers, else on the SFPU, which keeps float32 whole.
    """
    lowering = _Lowering(program)
    body = lowering.body(statements(program.kernel.body))
    body = [*lowering.allocations(), *lowering.prologue, *body]
    made = program.with_kernel(with_function_body(program.kernel, body))
    return made.with_plan(buffers=(*program.plan.buffers, *lowering.extra))


@dataclass
class _Lowering:
    program: Program
    tiles: dict[Any, Any] = field(default_factory=dict[Any, Any])
    made: list[Any] = field(default_factory=list[Any])
    prologue: list[Any] = field(default_factory=list[Any])
    extra: list[CircularBuffer] = field(default_factory=list[CircularBuffer])
    zeros: Any = None

    def __post_init__(self) -> None:
        self.plan: Plan = self.program.plan
        assert self.plan.compute is not None
        self.dst_dtype = "float32" if self.plan.compute.fp32_dest_acc_en else "bfloat16"
        self.bounds = Bounds()
        self.names: set[str] = set()
        self.orders = _orders(self.plan)

    # Buffers

    def allocations(self) -> list[Any]:
        return self.made

    def allocate(self, name: str, tiles: int, dtype: str, scope: str, span: Any) -> Any:
        unique, number = name, 1
        while unique in self.names:
            number += 1
            unique = f"{name}_{number}"
        self.names.add(unique)
        statement = allocation(unique, (tiles, 32, 32), dtype, scope, span)
        self.made.append(statement)
        return statement.buffer

    def temporary(self, like: Any) -> Any:
        """A DST array with a tile for each tile of `like`."""
        return self.allocate(f"{like.name}_value", self.count(like), self.dst_dtype, "tt.dst", None)

    def count(self, buffer: Any) -> int:
        return int(buffer.ty.shape[0]) if len(buffer.ty.shape) == 3 else _tile_count(buffer)

    # Statements

    def body(self, body: list[Any]) -> list[Any]:
        made: list[Any] = []
        for statement in body:
            self.bounds.enter(statement)
            try:
                parts = self.statement(statement)
            except Unsupported as error:
                raise error.at(span_of(statement)) from None
            for part in parts:
                stamp(part, statement.span)
            made += parts
        return made

    def statement(self, statement: Any) -> list[Any]:
        if isinstance(statement, tirx.AllocBuffer):
            buffer = statement.buffer
            dtype = dtype_of(buffer) if scope_of(buffer) == "tt.cb" else self.dst_dtype
            self.tiles[buffer] = self.allocate(
                str(buffer.name), _tile_count(buffer), dtype, scope_of(buffer), statement.span
            )
            return []
        if isinstance(statement, tirx.Bind):
            return [statement]
        if is_parallel(statement):
            return self.parallel(statement)
        if isinstance(statement, tirx.For):
            return [with_body(statement, self.body(statements(statement.body)))]
        match op_name(statement):
            case "tl.copy":
                return self.copy(statement)
            case "tl.fill":
                return self.fill(statement)
            case "tl.gemm":
                return self.gemm(statement)
            case name:
                raise Unsupported(f"no rule lowers {name or type(statement).__name__}")

    def copy(self, statement: Any) -> list[Any]:
        source, target = arguments(statement)
        if not is_on_chip(source.source):
            pages = page_region(source, self.plan.accessor(source.source.name), self.bounds, inside=True)
            cb = self.tiles[target.source]
            slots = (1, pages.columns) if self.orders[str(cb.name)] == "row_major" else (pages.rows, 1)
            return [
                op("read_block", source.source, cb, pages.first_page, pages.rows, pages.columns,
                   pages.row_stride_pages, *slots)
            ]  # fmt: skip
        if not is_on_chip(target.source):
            pages = page_region(target, self.plan.accessor(target.source.name), self.bounds, inside=True)
            cb = self.tiles[source.source]
            return [
                op(
                    "write_block",
                    cb,
                    target.source,
                    pages.first_page,
                    pages.rows,
                    pages.columns,
                    pages.row_stride_pages,
                )
            ]
        return self.on_chip_copy(statement, self.tiles[source.source], self.tiles[target.source], target.source)

    def on_chip_copy(self, statement: Any, source: Any, target: Any, target_block: Any) -> list[Any]:
        if attribute(statement, "transpose"):
            value = self.temporary(target)
            rows, columns = tile_grid(shape_of(target_block))
            return [
                self.each(rows * columns, lambda t: op(
                    "transpose_tile", source, tirx.floormod(t, columns) * rows + tirx.floordiv(t, columns), value, t
                )),
                *self.pack(value, target, target_block),
            ]  # fmt: skip
        if scope_of(source) == "tt.dst":
            if scope_of(target) == "tt.dst":
                return [self.each(self.count(target), lambda t: op("binary_max_tile", source, t, source, t, target, t))]
            return self.pack(source, target, target_block)
        value = target if scope_of(target) == "tt.dst" else self.temporary(target)
        copied = [self.each(self.count(target), lambda t: op("copy_tile", source, t, value, t))]
        return copied if value is target else [*copied, *self.pack(value, target, target_block)]

    def pack(self, value: Any, target: Any, target_block: Any) -> list[Any]:
        rows, columns = tile_grid(shape_of(target_block))
        if self.orders[str(target.name)] == "row_major":
            return [self.each(self.count(target), lambda t: op("pack_tile", value, t, target, t))]
        return [
            self.each(rows * columns, lambda t: op(
                "pack_tile", value, t, target, tirx.floormod(t, columns) * rows + tirx.floordiv(t, columns)
            ))
        ]  # fmt: skip

    def fill(self, statement: Any) -> list[Any]:
        region, value = arguments(statement)
        if not isinstance(value, tirx.FloatImm | tirx.IntImm):
            raise Unsupported(f"T.fill with {value}", hint="fill with a constant")
        target = self.tiles[region.source]
        into = target if scope_of(target) == "tt.dst" else self.temporary(target)
        made = [self.each(self.count(target), lambda t: op("fill_tile", into, t, float(value.value)))]
        return made if into is target else [*made, *self.pack(into, target, region.source)]

    def gemm(self, statement: Any) -> list[Any]:
        a, b, c = (region.source for region in arguments(statement))
        rows, depth = tile_grid(shape_of(a))
        columns = tile_grid(shape_of(c))[1]
        transpose = attribute(statement, "transpose_B")
        in0, in1, out = self.tiles[a], self.tiles[b], self.tiles[c]
        made: list[Any] = []
        if attribute(statement, "clear_accum"):
            made.append(self.each(self.count(out), lambda t: op("fill_tile", out, t, 0.0)))
        k = variable("kt")
        product = op("matmul_block", in0, in1, k, k * columns, out, 0, transpose, columns, rows, depth)
        made.append(loop(k, depth, [product]))
        return made

    def each(self, tiles: int, make: Any) -> Any:
        """A loop over the tiles of a block with one operation in it."""
        t = variable("t")
        return loop(t, tiles, [make(t)])

    # Element-wise blocks

    def parallel(self, statement: Any) -> list[Any]:
        _, body = parallel_nest(statement)
        made: list[Any] = []
        for store in body:
            parts = _Elementwise(self, store).lower()
            for part in parts:
                stamp(part, store.span)
            made += parts
        return made

    def zero_tile(self, span: Any) -> Any:
        """A circular buffer with one tile of zeros that the compute kernel fills once; `span` is its first use."""
        if self.zeros is None:
            value = self.allocate("zeros_value", 1, self.dst_dtype, "tt.dst", None)
            self.zeros = self.allocate(ZEROS, 1, "bfloat16", "tt.cb", None)
            name = str(self.zeros.name)
            self.orders[name] = "row_major"
            self.extra.append(
                CircularBuffer(
                    name, 1, 1, "Float16_b", "compute", "compute", reason="a row is broadcast by adding zeros"
                )
            )
            self.prologue = [
                self.each(1, lambda t: op("fill_tile", value, t, 0.0)),
                self.each(1, lambda t: op("pack_tile", value, t, self.zeros, t)),
            ]
            for one in self.prologue:
                stamp(one, span)
        return self.zeros


class _Elementwise:
    """Lowers one element-wise store. A value is a DST array: a temporary, or another block's own."""

    def __init__(self, lowering: _Lowering, store: Any) -> None:
        self.lowering, self.store = lowering, store
        self.target = lowering.tiles[store.buffer]
        self.made: list[Any] = []
        self.temporaries: list[Any] = []
        self.rows, self.columns = tile_grid(shape_of(store.buffer))
        self.remaining = _count_loads(store.value, store.buffer)

    def lower(self) -> list[Any]:
        in_dst = scope_of(self.target) == "tt.dst"
        value = self.value(self.store.value, self.target if in_dst else None)
        if in_dst:
            if not value.same_as(self.target):
                self.each(lambda t: op("binary_max_tile", value, t, value, t, self.target, t))
            return self.made
        if not any(value.same_as(one) for one in self.temporaries) and scope_of(value) != "tt.dst":
            raise Unsupported(f"{self.store.buffer.name} is given a value that is in no DST tile")
        return [*self.made, *self.lowering.pack(value, self.target, self.store.buffer)]

    def each(self, make: Any) -> None:
        self.made.append(self.lowering.each(self.rows * self.columns, make))

    def place(self, want: Any) -> Any:
        """Where a new value goes: the target once nothing reads its old value any more, else a new temporary."""
        if want is not None and self.remaining == 0:
            return want
        value = self.lowering.temporary(self.target)
        self.temporaries.append(value)
        return value

    def owned(self, value: Any, want: Any) -> bool:
        """Whether an operation may overwrite `value`."""
        if any(value.same_as(one) for one in self.temporaries):
            return True
        return want is not None and value.same_as(want) and self.remaining == 0

    def value(self, expression: Any, want: Any) -> Any:
        if isinstance(expression, tirx.Cast):
            return self.value(expression.value, want)
        if isinstance(expression, tirx.FloatImm | tirx.IntImm):
            out = self.place(want)
            self.each(lambda t: op("fill_tile", out, t, float(expression.value)))
            return out
        if isinstance(expression, ir.TensorLoad):
            return self.load(expression, want)
        if type(expression) in _BINARY:
            return self.binary(_BINARY[type(expression)], expression.a, expression.b, want)
        if isinstance(expression, ir.Call) and str(expression.op.name) in _UNARY_CALLS:
            return self.unary(_UNARY_CALLS[str(expression.op.name)], expression.args[0], want)
        what = str(expression.op.name) if isinstance(expression, ir.Call) else type(expression).__name__
        raise Unsupported(
            f"no rule lowers {what.rpartition('.')[2]} inside T.Parallel",
            hint="lowered are + - *, max, min, abs, exp, scalars and row vectors",
            span=span_of(self.store),
        )

    def load(self, expression: Any, want: Any) -> Any:
        source = self.lowering.tiles[expression.source]
        if self._is_row(expression):
            out = self.place(want)
            self._broadcast_row(source, out)
            return out
        if scope_of(source) == "tt.dst":
            if source.same_as(self.target):
                self.remaining -= 1
            return source
        out = self.place(want)
        self.each(lambda t: op("copy_tile", source, t, out, t))
        return out

    def _broadcast_row(self, source: Any, out: Any) -> None:
        if dtype_of(source) == "float32":
            self.each(lambda t: op("unary_bcast_row", source, self._column(t), out, t))
            return
        zeros = self.lowering.zero_tile(self.store.span)
        self.each(lambda t: op("add_tiles_bcast_rows", zeros, source, 0, self._column(t), out, t))

    def _column(self, t: Any) -> Any:
        return t if self.rows == 1 else tirx.floormod(t, self.columns)

    def _is_row(self, expression: Any) -> bool:
        return len(expression.indices) == 1 and len(self.store.indices) == 2

    def unary(self, name: str, inner: Any, want: Any) -> Any:
        value = self.mutable(self.value(inner, want), want)
        self.each(lambda t: op(name, value, t))
        return value

    def mutable(self, value: Any, want: Any) -> Any:
        """`value`, or a copy of it where it must stay as it is."""
        if self.owned(value, want):
            return value
        out = self.place(want)
        if not out.same_as(value):
            self.each(lambda t: op("binary_max_tile", value, t, value, t, out, t))
        return out

    def binary(self, name: str, a: Any, b: Any, want: Any) -> Any:
        a, b = _without_cast(a), _without_cast(b)
        if _is_number(a) and not _is_number(b):
            if name not in _COMMUTES:
                return self.scalar("rsub", b, a, want)
            a, b = b, a
        if _is_number(b):
            return self.scalar(name, a, b, want)
        fpu = self._fpu(name, a, b)
        if fpu is not None:
            # The product adds to DST, so it goes to a place that nothing else has used.
            out = self.place(None if name == "mul" else want)
            in0, in1 = (self.lowering.tiles[load.source] for load in (a, b))
            if fpu == "row":
                self.each(lambda t: op(f"{name}_tiles_bcast_rows", in0, in1, t, self._column(t), out, t))
            else:
                self.each(lambda t: op(f"{name}_tiles", in0, in1, t, t, out, t))
            return out
        left = self.value(a, want)
        right = self.value(b, None)
        if want is not None and self.remaining == 0:
            out = want
        elif any(left.same_as(one) for one in self.temporaries):
            out = left
        elif any(right.same_as(one) for one in self.temporaries):
            out = right
        else:
            out = self.place(None)
        self.each(lambda t: op(_SFPU_BINARY[name], left, t, right, t, out, t))
        return out

    def scalar(self, name: str, inner: Any, number: Any, want: Any) -> Any:
        value = self.mutable(self.value(inner, want), want)
        scalar = float(number.value)
        if name == "max" and scalar == 0.0:
            self.each(lambda t: op("relu_tile", value, t))
        else:
            self.each(lambda t: op(_SFPU_SCALAR[name], value, t, scalar))
        return value

    def _fpu(self, name: str, a: Any, b: Any) -> str | None:
        """Whether the FPU does it: on two bfloat16 blocks, or a block and a row."""
        if name not in ("add", "sub", "mul"):
            return None
        if not (isinstance(a, ir.TensorLoad) and isinstance(b, ir.TensorLoad)) or self._is_row(a):
            return None
        for load in (a, b):
            buffer = self.lowering.tiles[load.source]
            if scope_of(buffer) != "tt.cb" or dtype_of(buffer) != "bfloat16":
                return None
        return "row" if self._is_row(b) else "plain"


def _without_cast(expression: Any) -> Any:
    while isinstance(expression, tirx.Cast):
        expression = expression.value
    return expression


def _is_number(expression: Any) -> bool:
    return isinstance(expression, tirx.FloatImm | tirx.IntImm)


def _count_loads(expression: Any, buffer: Any) -> int:
    return sum(1 for load in loads_of(expression) if load.source.same_as(buffer))


def _tile_count(buffer: Any) -> int:
    rows, columns = tile_grid(shape_of(buffer))
    return rows * columns


def _orders(plan: Plan) -> dict[str, str]:
    """The tile order of each circular buffer, by name."""
    return {buffer.name: buffer.tile_order for buffer in plan.buffers}
