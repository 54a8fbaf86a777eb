"""The tile buffers of a kernel during the lowering of blocks to tiles: its own, and those that C2 adds."""

from __future__ import annotations

from collections.abc import Callable

from tvm import ir, tirx

from ttexplore.ir.build import allocation, loop, op, scope_of, shape_of, variable
from ttexplore.ir.names import unused_name
from ttexplore.ir.operations.storage import tile_grid
from ttexplore.ir.rewrite import Firings, Rule
from ttexplore.ops.op import CB_SCOPE, DST_SCOPE
from ttexplore.plan import FORMAT_OF_DTYPE, CircularBuffer, KernelRole, Plan

BLOCK = Rule("buffers of tiles", "A block of elements becomes a block of 32x32 tiles.")
_VALUE = Rule("tiles of a value", "An intermediate value gets tiles of DST.")
_CONSTANT = Rule("tile of constants", "A tile of constants is filled once, before the work starts.")


class TileStorage:
    """Buffers of tiles, by the block buffer that they replace.

    `made` are the allocations, `prologue` the statements that fill constant tiles before the work starts, `extra` the
    circular buffers of constant tiles. `dst_dtype` is the dtype of floating-point values in DST.
    """

    def __init__(self, plan: Plan, firings: Firings) -> None:
        assert plan.compute is not None
        self.dst_dtype = "float32" if plan.compute.fp32_dest_acc_en else "bfloat16"
        self.firings = firings
        self.tiles: dict[tirx.Buffer, tirx.Buffer] = {}
        self.made: list[tirx.Stmt] = []
        self.prologue: list[tirx.Stmt] = []
        self.extra: list[CircularBuffer] = []
        self.names = {layout.name for layout in plan.layouts}
        self.orders: dict[str, str] = {buffer.name: buffer.tile_order for buffer in plan.buffers}
        self.constants: dict[str, tirx.Buffer] = {}
        self.uncut = {buffer.name for buffer in plan.buffers if buffer.unpack_to_dest}

    @property
    def is_wide(self) -> bool:
        """Whether DST holds float32."""
        return self.dst_dtype == "float32"

    def allocate(
        self, rule: Rule, source: tirx.Stmt | None, name: str, tiles: int, dtype: str, scope: str,
        span: ir.Span | None = None,
    ) -> tirx.Buffer:  # fmt: skip
        unique = unused_name(name, self.names)
        self.names.add(unique)
        statement = allocation(unique, (tiles, 32, 32), dtype, scope, span)
        self.made += self.firings.made(rule, source, [statement])
        return statement.buffer

    def add(self, statement: tirx.AllocBuffer, dtype: str) -> None:
        """Allocate the tiles of the block buffer that the statement allocates."""
        block = statement.buffer
        rows, columns = tile_grid(shape_of(block))
        self.tiles[block] = self.allocate(
            BLOCK, statement, str(block.name), rows * columns, dtype, scope_of(block), statement.span
        )

    def in_dst(self, dtype: str) -> str:
        """The dtype in which DST holds values of a dtype: int32, or the floating-point dtype of DST."""
        return "int32" if dtype == "int32" else self.dst_dtype

    def is_whole(self, buffer: tirx.Buffer) -> bool:
        """Whether a circular buffer is unpacked to DST as it is, which the FPU cannot read."""
        return str(buffer.name) in self.uncut

    def temporary(self, like: tirx.Buffer, dtype: str, source: tirx.Stmt | None) -> tirx.Buffer:
        """A new DST array for values of a dtype, with as many tiles as `like`; the statement `source` needs it."""
        return self.allocate(_VALUE, source, f"{like.name}_value", self.count(like), self.in_dst(dtype), DST_SCOPE)

    def move(self, source: tirx.Buffer, target: tirx.Buffer, dtype: str) -> tirx.Stmt:
        """The loop that copies values of a dtype within DST."""
        name = "bitwise_or_binary_tile" if dtype == "int32" else "binary_max_tile"
        return self.each(self.count(target), lambda t: op(name, source, t, source, t, target, t))

    def convert(self, array: tirx.Buffer, source: str, target: str) -> list[tirx.Stmt]:
        """The loop that converts DST in place between integers and floats; none between dtypes of the same kind."""
        if (source == "int32") == (target == "int32"):
            return []
        name = "typecast_int32_to_fp32_tile" if source == "int32" else "typecast_fp32_to_int32_tile"
        return [self.each(self.count(array), lambda t: op(name, array, t))]

    def count(self, buffer: tirx.Buffer) -> int:
        return shape_of(buffer)[0]

    def each(self, tiles: int, make: Callable[[ir.Var], tirx.Stmt]) -> tirx.Stmt:
        """A loop over the tiles of a block around one operation."""
        t = variable("t")
        return loop(t, tiles, [make(t)])

    def pack(self, value: tirx.Buffer, target: tirx.Buffer, target_block: tirx.Buffer) -> list[tirx.Stmt]:
        rows, columns = tile_grid(shape_of(target_block))
        if self.orders[str(target.name)] == "row_major":
            return [self.each(self.count(target), lambda t: op("pack_tile", value, t, target, t))]
        return [
            self.each(rows * columns, lambda t: op(
                "pack_tile", value, t, target, tirx.floormod(t, columns) * rows + tirx.floordiv(t, columns)
            ))
        ]  # fmt: skip

    # Constant tiles

    def zero_tile(self, source: tirx.Stmt | None) -> tirx.Buffer:
        """A circular buffer with one tile of zeros, filled once by the compute kernel; `source` is its first use."""
        return self._filled("zeros", 0.0, "bfloat16", "a row is broadcast by adding zeros", source)

    def one_tile(self, dtype: str, source: tirx.Stmt | None) -> tirx.Buffer:
        """A circular buffer with one tile of ones, filled once by the compute kernel; `source` is its first use. The
        FPU is less exact with operands of two formats."""
        name = "ones" if dtype == "bfloat16" else f"ones_{dtype}"
        return self._filled(name, 1.0, dtype, "the FPU reduces a tile with a factor for each element", source)

    def _filled(
        self, name: str, number: float, dtype: str, reason: str, source: tirx.Stmt | None
    ) -> tirx.Buffer:  # fmt: skip
        if name not in self.constants:
            value = self.allocate(_VALUE, source, f"{name}_value", 1, self.dst_dtype, DST_SCOPE)
            constant_buffer = self._constant(source, name, dtype, "compute", reason)
            self.prologue += self.firings.made(_CONSTANT, source, [
                self.each(1, lambda t: op("fill_tile", value, t, number)),
                self.each(1, lambda t: op("pack_tile", value, t, constant_buffer, t)),
            ])  # fmt: skip
        return self.constants[name]

    def index_tile(self, axis: int, source: tirx.Stmt | None) -> tirx.Buffer:
        """A circular buffer with one tile that holds the row index (axis 0) or column index (axis 1) of each element,
        0 to 31, which is exact in bfloat16. The reader writes it once; `source` is its first use."""
        name = ("row_numbers", "column_numbers")[axis]
        if name not in self.constants:
            numbers = self._constant(source, name, "bfloat16", "reader", f"expressions of the index along axis {axis}")
            self.prologue += self.firings.made(_CONSTANT, source, [op("index_block", numbers, axis)])
        return self.constants[name]

    def _constant(
        self, source: tirx.Stmt | None, name: str, dtype: str, producer: KernelRole, reason: str
    ) -> tirx.Buffer:  # fmt: skip
        constant_buffer = self.allocate(_CONSTANT, source, name, 1, dtype, CB_SCOPE)
        self.orders[str(constant_buffer.name)] = "row_major"
        data_format = FORMAT_OF_DTYPE[dtype]
        self.extra.append(
            CircularBuffer(str(constant_buffer.name), 1, 1, data_format, producer, "compute", reason=reason)
        )
        self.constants[name] = constant_buffer
        return constant_buffer
