"""C2: lower block operations to operations on tiles of 32 x 32."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import get_args

from tvm import ir, sym, tirx

from ttexplore.analysis.flows import sources_of
from ttexplore.analysis.regions import (
    BlockRegion,
    block_region,
    gathered_region,
    place_of,
    read_operation,
    rearrange_operation,
    write_operation,
)
from ttexplore.errors import Unsupported, UsageError
from ttexplore.ir.adapter import call, span_of
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.ir.build import (
    arguments,
    attribute,
    constant,
    dtype_of,
    loop,
    op,
    op_name,
    regions,
    runs,
    scope_of,
    shape_of,
    statements,
    variable,
    with_function_body,  # fmt: skip
)
from ttexplore.ir.dataflow import blocks, is_on_chip, is_parallel, loads_of, parallel_body
from ttexplore.ir.operations.gathers import is_rearranged
from ttexplore.ir.operations.quantified import Quantified, quantified_of
from ttexplore.ir.operations.reductions import Reduction, reduction_of, runs_on_fpu
from ttexplore.ir.operations.storage import tile_grid
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite_body, walk
from ttexplore.ops import language as tl
from ttexplore.ops.op import CB_SCOPE, DST_SCOPE
from ttexplore.ops.reduce import MOST_POOLED
from ttexplore.ops.scalars import READ_ANY, READ_NUMBER
from ttexplore.ops.small import is_small, largest_magnitude
from ttexplore.ops.storage import rounded
from ttexplore.options import Accuracy, Engine, Fidelity, fast_functions
from ttexplore.passes.lower_tt_tile_intrinsics.elementwise import lower_parallel, refuse_comparisons
from ttexplore.passes.lower_tt_tile_intrinsics.tile_storage import BLOCK, TileStorage
from ttexplore.plan import DATA_FORMATS, FORMAT_OF_DTYPE, SMALL_FLOATS, SMALL_WHOLES, Plan, Product
from ttexplore.target import Target


def lower_tt_tile_intrinsics(
    program: TirProgram, target: Target, *, eltwise: Engine, sfpu: str | Mapping[str, Accuracy]
) -> TirProgram:
    """Lower copies, products, fills and element-wise blocks to tile operations.

        T.gemm(A_shared, B_shared, C_local)  ==>  for k in range(1):
                                                      tt.matmul_block(A_shared, B_shared, k, k * 4, C_local[0], ...)
        C_local[i, j] = T.max(C_local[i, j], 0)  ==>  for t in range(16):
                                                          tt.relu_tile(C_local[t])
        T.copy(C_local, C_out)               ==>  for t in range(16):
                                                      tt.pack_tile(C_local[t], C_out, t)
        T.copy(A_shared_rows, A_shared)      ==>  tt.tilize(A_shared_rows, A_shared)
        T.reduce_max(S, m, dim=1)            ==>  for t in range(2):
                                                      tt.copy_tile(S, t * 2, m[t])
                                                  for t in range(2):
                                                      tt.copy_tile(S, t * 2 + 1, m_value[t])
                                                  for t in range(2):
                                                      tt.binary_max_tile(m[t], m_value[t], m[t])
                                                  for t in range(2):
                                                      tt.sfpu_reduce_max_row(m[t])

    The engines compute on tiles, so buffers become arrays of tiles and each block operation a loop over tiles. A value
    that occurs twice in a T.Parallel block is computed once.

    `eltwise` chooses the engine of element-wise operations. With ``auto``, sums, differences and products run on the
    FPU if both operands are bfloat16 blocks in circular buffers and the result is neither compared nor rounded, which
    could turn an error in the last bit into a large one. Otherwise they run on the SFPU, which computes in full
    float32. ``fpu`` and ``sfpu`` prefer one engine; with ``fpu``, elements of float32 are not compared with each other,
    because it cuts some of them to TF32. The plan records the reasons.

    With `sfpu` as ``fast``, or so for exp or exp2, these functions of the elements of a block have a faster form, which
    is up to 3.5 % off and multiplies by a positive number first:

        for i, j in T.Parallel(64, 64):                    ==>  for t in range(4):
            S[i, j] = T.exp2(S[i, j] * 0.125 - m[i] * 0.125)        tt.sub_binary_tile(S[t], m_value[t], S[t])
                                                                for t in range(4):
                                                                    tt.exp_fast_tile(S[t], 0.0866)

    A fast quotient is a product with a reciprocal. On Blackhole, the FPU takes the maxima of a row of tiles at once:

        T.reduce_max(S, m, dim=1)  ==>  for t in range(2):
                                            tt.reduce_block_max_row(S, ones, t * 4, 0, m[t], 4)

    Of what is the same for all elements of a row, as the factor by which online softmax corrects its sums, they stay
    exact: such errors would multiply, and there are few such tiles.
    """
    lowering = _Lowering(program, target, eltwise, fast_functions(sfpu))
    body = rewrite_body(statements(program.kernel.body), _RULES, lowering)
    storage, compute = lowering.storage, program.plan.compute
    assert compute is not None
    function = with_function_body(program.kernel, [*storage.made, *storage.prologue, *body])
    lowered = program.with_kernel(function, lowering.firings)
    return lowered.with_plan(
        buffers=(*program.plan.buffers, *storage.extra),
        products=tuple(lowering.products),
        sources=sources_of(function, program.plan.layouts),
        compute=dataclasses.replace(
            compute, reasons=(*compute.reasons, *lowering.reasons), fast=tuple(dict.fromkeys(lowering.approximated))
        ),
    )


# Up to how many tiles are joined by a statement each; more are joined in a loop.
_UNROLLED = 8

_JOINED = {
    ("sum", False): "add_binary_tile", ("max", False): "binary_max_tile", ("min", False): "binary_min_tile",
    ("sum", True): "add_int_tile", ("max", True): "binary_max_int32_tile", ("min", True): "binary_min_int32_tile",
}  # fmt: skip


@dataclass
class _Reduced:
    """The statements of one reduction. Tile `number` of those that become tile t of the result is tile
    t * `across` + `number` * `step` of the block."""

    storage: TileStorage
    reduction: Reduction
    statement: tirx.Stmt
    across: int = 1
    step: int = 1

    def on_fpu(self, block: tirx.Buffer, result: tirx.Buffer, depth: int, *, rows_at_once: bool) -> list[tirx.Stmt]:
        """`rows_at_once` says that the chip pools the maxima of a row of tiles in one operation."""
        name = f"reduce_{self.reduction.joining.pool}_{self.ending}"
        ones = self.storage.one_tile(DATA_FORMATS[FORMAT_OF_DTYPE[dtype_of(block)]].dtype, self.statement)

        def reduced(into: tirx.Buffer, number: ir.Expr | int) -> tirx.Stmt:
            return self.each(result, lambda t: op(name, block, ones, self.tile(t, number), 0, into, t))

        if self.reduction.joining.pool == "sum":
            # It adds to what the tile holds.
            return [
                self.each(result, lambda t: op("fill_tile", result, t, 0.0)),
                *self.turns(0, depth, lambda number: [reduced(result, number)]),
            ]
        if depth == 1:
            return [reduced(result, 0)]
        if rows_at_once and self.reduction.along_rows and depth <= MOST_POOLED:
            return [
                self.each(
                    result, lambda t: op("reduce_block_max_row", block, ones, self.tile(t, 0), 0, result, t, depth)
                )
            ]
        temporary = self.storage.temporary(result, "float32", self.statement)
        joined = self.each(result, lambda t: op("binary_max_tile", result, t, temporary, t, result, t))
        return [reduced(result, 0), *self.turns(1, depth, lambda number: [reduced(temporary, number), joined])]

    def on_sfpu(self, block: tirx.Buffer, result: tirx.Buffer, depth: int, dtype: str) -> list[tirx.Stmt]:
        pool, is_integer = self.reduction.joining.pool, dtype == "int32"
        suffix = "_int32" if is_integer else "" if self.storage.is_wide else "_bf16"

        def loaded(into: tirx.Buffer, number: ir.Expr | int) -> list[tirx.Stmt]:
            loads = [self.each(result, lambda t: op("copy_tile", block, self.tile(t, number), into, t))]
            if self.reduction.joining.of_magnitudes:
                loads.append(self.each(result, lambda t: op("abs_int32_tile" if is_integer else "abs_tile", into, t)))
            return loads

        body = loaded(result, 0)
        if depth > 1:
            temporary = self.storage.temporary(result, dtype, self.statement)
            name = _JOINED[pool, is_integer]
            joined = self.each(result, lambda t: op(name, result, t, temporary, t, result, t))
            body += self.turns(1, depth, lambda number: [*loaded(temporary, number), joined])
        body.append(self.each(result, lambda t: op(f"sfpu_reduce_{pool}_{self.ending}{suffix}", result, t)))
        return body

    @property
    def ending(self) -> str:
        return "row" if self.reduction.along_rows else "col"

    def tile(self, t: ir.Expr, number: ir.Expr | int) -> ir.Expr:
        return t * self.across + number * self.step

    def each(self, like: tirx.Buffer, make: Callable[[ir.Expr], tirx.Stmt]) -> tirx.Stmt:
        return self.storage.each(self.storage.count(like), make)

    def turns(self, first: int, end: int, make: Callable[[ir.Expr | int], list[tirx.Stmt]]) -> list[tirx.Stmt]:
        """What `make` makes for each number from `first` to before `end`: one after the other, or a loop."""
        if end - first <= _UNROLLED:
            return [statement for number in range(first, end) for statement in make(number)]
        iteration = variable("turn")
        return [loop(iteration, end - first, make(iteration + first if first else iteration))]


class _Lowering(Context):
    def __init__(self, program: TirProgram, target: Target, eltwise: Engine, fast: frozenset[str]) -> None:
        super().__init__(program.kernel, Firings())
        self.target, self.plan = target, program.plan
        self.eltwise: Engine = eltwise
        self.fast = fast
        self.reasons: list[str] = []
        self.approximated: list[str] = []
        self.products: list[Product] = []
        self.storage = TileStorage(self.plan, self.firings)
        self.tiles = self.storage.tiles
        self.rows = {buffer.name for buffer in self.plan.buffers if buffer.row_tiles}
        self.rounded = _read_by_others_than_packers(program.kernel)

    # Rules

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.AllocBuffer):
            return None
        dtype = dtype_of(statement.buffer)
        dtype = dtype if scope_of(statement.buffer) == CB_SCOPE else self.storage.in_dst(dtype)
        self.storage.add(statement, dtype)
        return []

    def load(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not runs(statement, tl.COPY):
            return None
        source, target = regions(statement)
        if is_on_chip(source.source):
            return None
        cb = self.tiles[target.source]
        block = self.region(source, target.source, write=False)
        return [read_operation(source.source, cb, block, self.storage.orders[str(cb.name)] == "column_major")]

    def gather(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not runs(statement, tl.GATHER):
            return None
        source, target = (region.source for region in regions(statement))
        name, cb = str(source.name), self.tiles[target]
        if is_rearranged(statement):
            turned = self.storage.orders[str(cb.name)] == "column_major"
            return [rearrange_operation(statement, self.tiles[source], cb, turned)]
        block = gathered_region(
            statement, self.plan.layout(name), self.plan.accessor(name), self.bounds, self.target.dram_alignment_bytes
        )
        return [read_operation(source, cb, block, self.storage.orders[str(cb.name)] == "column_major")]

    def store(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not runs(statement, tl.COPY):
            return None
        source, target = regions(statement)
        if is_on_chip(target.source):
            return None
        cb = self.tiles[source.source]
        return [write_operation(target.source, cb, self.region(target, source.source, write=True))]

    def number(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """An element of a tensor that decides something."""
        if not isinstance(statement, tirx.Bind):
            return None
        if (block := quantified_of(statement.value)) is not None:
            return [tirx.Bind(statement.var, self.quantified(block), statement.span)]
        load = statement.value
        if not isinstance(load, ir.TensorLoad):
            return None
        name = str(load.source.name)
        page, offset = place_of(load, self.plan.layout(name), self.plan.accessor(name), self.bounds)
        read = call(READ_NUMBER.ir_name, [load.source, page, offset], dtype=str(statement.var.ty.dtype))
        return [tirx.Bind(statement.var, read, statement.span)]

    def quantified(self, block: Quantified) -> ir.Expr:
        """What the reader tells of a block: the places of its elements are computed from their numbers in it."""
        index, count = variable("element"), math.prod(block.extents)
        self.bounds.counts(loop(index, count, []))
        indices = [
            self.bounds.ranges.simplify(low + tirx.floormod(tirx.floordiv(index, step), extent) if extent > 1 else low)
            for low, extent, step in zip(
                block.first.indices, block.extents,
                (math.prod(block.extents[axis + 1 :]) for axis in range(len(block.extents))), strict=True,
            )
        ]  # fmt: skip
        load = tirx.BufferLoad(block.source, indices, block.first.span)
        name = str(block.source.name)
        page, offset = place_of(load, self.plan.layout(name), self.plan.accessor(name), self.bounds)
        tests = [
            test for index, length in zip(indices, extents_of(block.source), strict=True)
            for test in (index >= 0, index < length) if not self.bounds.proves(test)
        ]  # fmt: skip
        inside = [functools.reduce(tirx.And, tests)] if tests else []
        return call(
            READ_ANY.ir_name, [block.source, page, offset, index, count, int(block.of_all), *inside], dtype="int32"
        )

    def copy(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not runs(statement, tl.COPY):
            return None
        source, target = regions(statement)
        return self.on_chip_copy(statement, self.tiles[source.source], self.tiles[target.source], target.source)

    def copy_tiles(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not runs(statement, tl.COPY_TILES):
            return None
        source, target = (region.source for region in regions(statement))
        starts = arguments(statement)[2:]
        if len(starts) == 1:
            # A vector is a row of tiles, or a column.
            zero = tirx.const(0, "int32")
            starts = [*starts, zero] if len(shape_of(target)) == 2 else [zero, *starts]
        block, out, storage = self.tiles[source], self.tiles[target], self.storage
        rows, columns = tile_grid(shape_of(source))
        across = tile_grid(shape_of(target))[1]

        def tile(t: ir.Var) -> ir.Expr:
            analyzer = sym.Analyzer()
            analyzer.bind(t, ir.Range.from_min_extent(tirx.const(0, "int32"), tirx.const(storage.count(out), "int32")))
            row = _nearest(tirx.floordiv(t, across), starts[0], rows, analyzer)
            return analyzer.simplify(row * columns + _nearest(tirx.floormod(t, across), starts[1], columns, analyzer))

        dtype = dtype_of(target)
        value = out if scope_of(out) == DST_SCOPE else storage.temporary(out, dtype, statement)
        copies = [storage.each(storage.count(out), lambda t: op("copy_tile", block, tile(t), value, t))]
        return copies if value is out else [*copies, *storage.pack(value, out, target)]

    def region(self, region: ir.TensorRegion, buffer: tirx.Buffer, *, write: bool) -> BlockRegion:
        """How a region of a tensor moves to or from an on-chip buffer."""
        name = str(region.source.name)
        return block_region(
            region, shape_of(buffer), self.plan.layout(name), self.plan.accessor(name), self.bounds,
            self.target.dram_alignment_bytes, write=write,
        )  # fmt: skip

    def on_chip_copy(
        self, statement: tirx.Stmt, source: tirx.Buffer, target: tirx.Buffer, target_block: tirx.Buffer
    ) -> list[tirx.Stmt]:
        storage, count = self.storage, self.storage.count(target)
        for name, rows in (("tilize", source), ("untilize", target)):
            if str(rows.name) in self.rows:
                return [op(name, source, target)]
        if attribute(statement, "transpose"):
            in_dst = scope_of(target) == DST_SCOPE
            value = target if in_dst else storage.temporary(target, dtype_of(source), statement)
            rows, columns = tile_grid(shape_of(target_block))
            turned = storage.each(count, lambda t: op(
                "transpose_tile", source, tirx.floormod(t, columns) * rows + tirx.floordiv(t, columns), value, t
            ))  # fmt: skip
            return [turned] if in_dst else [turned, *storage.pack(value, target, target_block)]
        kinds = (dtype_of(source), dtype_of(target))
        converted = "int32" in kinds and kinds[0] != kinds[1]
        if scope_of(target) != DST_SCOPE:
            if scope_of(source) == DST_SCOPE and not converted:
                return storage.pack(source, target, target_block)
            value = storage.temporary(target, kinds[1], statement)
            return [
                *self.to_dst(source, value),
                *storage.convert(value, *kinds),
                *storage.pack(value, target, target_block),
            ]
        moved = [*self.to_dst(source, target), *storage.convert(target, *kinds)]
        if storage.is_wide and target_block in self.rounded and FORMAT_OF_DTYPE[dtype_of(source)] != "Float16_b":
            moved.append(storage.each(count, lambda t: op("typecast_fp32_to_bf16_tile", target, t)))
        return moved

    def to_dst(self, source: tirx.Buffer, target: tirx.Buffer) -> list[tirx.Stmt]:
        """Copy a block to DST."""
        if scope_of(source) == DST_SCOPE:
            return [self.storage.move(source, target, dtype_of(source))]
        return [self.storage.each(self.storage.count(target), lambda t: op("copy_tile", source, t, target, t))]

    def fill(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not runs(statement, tl.FILL):
            return None
        (region,), value = regions(statement), arguments(statement)[1]
        assert isinstance(value, tirx.FloatImm | tirx.IntImm), "a T.Parallel stores values that the kernel computes"
        storage, target = self.storage, self.tiles[region.source]
        dtype = dtype_of(region.source)
        into = target if scope_of(target) == DST_SCOPE else storage.temporary(target, dtype, statement)
        name, number = "fill_tile", float(rounded(value.value, dtype))
        if dtype == "int32":
            name, number = "fill_int_tile", int(value.value)
        fills = [storage.each(storage.count(target), lambda t: op(name, into, t, number))]
        return fills if into is target else [*fills, *storage.pack(into, target, region.source)]

    def gemm(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not runs(statement, tl.GEMM):
            return None
        a, b, c = (region.source for region in regions(statement))
        rows, depth = tile_grid(shape_of(a))
        columns = tile_grid(shape_of(c))[1]
        transpose = attribute(statement, "transpose_B")
        in0, in1, out = self.tiles[a], self.tiles[b], self.tiles[c]
        _check_fidelity(self.plan, a, b)
        integers = next((operand for operand in (a, b, c) if dtype_of(operand) == "int32"), None)
        if integers is not None:
            raise Unsupported(
                "L009",
                f"T.gemm with {integers.name}, which is int32",
                hint="cast it to bfloat16: the matrix engine does not multiply integers",
            )
        assert self.plan.compute is not None
        fidelity = self.plan.compute.math_fidelity
        if {dtype_of(in0), dtype_of(in1)} <= {*SMALL_FLOATS} and fidelity != "LoFi":
            self.reasons.append(
                f"{in0.name} times {in1.name}: {fidelity}; LoFi multiplies all bits of float8, so it would give the "
                "same in less time"
            )
        lowered: list[tirx.Stmt] = []
        if attribute(statement, "clear_accum"):
            lowered.append(self.storage.each(self.storage.count(out), lambda t: op("fill_tile", out, t, 0.0)))
        self.products.append(
            Product(
                str(in0.name), str(in1.name), str(out.name), rows, depth, columns, bool(transpose), span_of(statement)
            )
        )
        k = variable("kt")
        product = op("matmul_block", in0, in1, k, k * columns, out, 0, transpose, columns, rows, depth)
        lowered.append(loop(k, depth, [product]))
        return lowered

    def reduce(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """The tiles of a row, or column, of the block become one tile, and the elements of each row, or column, of that
        one element. The FPU does both at once where it may; the SFPU first joins the tiles element by element."""
        reduction = reduction_of(statement)
        if reduction is None:
            return None
        source, target = (region.source for region in regions(statement))
        storage, block, out = self.storage, self.tiles[source], self.tiles[target]
        dtype, reducer = dtype_of(source), _Reduced(storage, reduction, statement)
        # Sums of 8 bits, and the magnitude of the least number, do not fit them.
        signed = dtype in ("int8", "int4") and reduction.joining.of_magnitudes
        if is_small(dtype_of(target)) and (dtype != dtype_of(target) or reduction.joining.pool == "sum" or signed):
            raise Unsupported(
                "L009",
                f"T.reduce_{reduction.kind} of {dtype} into {dtype_of(target)}",
                hint="reduce into a block of int32 or float32, and cast that in T.Parallel",
            )
        rows, columns = tile_grid(shape_of(source))
        depth, reducer.step = (columns, 1) if reduction.along_rows else (rows, columns)
        reducer.across = columns if reduction.along_rows else 1
        in_place = scope_of(out) == DST_SCOPE and dtype_of(out) == storage.in_dst(dtype)
        result = out if in_place else storage.temporary(out, dtype, statement)
        subject = f"{target.name}, the {reduction.kind} of {source.name}"
        on_fpu = runs_on_fpu(reduction, dtype, self.eltwise)
        if on_fpu:
            self.reasons.append(f"{subject}: FPU, which takes tiles of circular buffers as they are")
            # On Wormhole, what comes after it is then not always that of the chip.
            steps = reducer.on_fpu(block, result, depth, rows_at_once=self.target.arch == "blackhole")
        else:
            why = "as asked for" if self.eltwise == "sfpu" else "which keeps float32 whole"
            if not reduction.joining.fits_fpu or dtype == "int32":
                why = "the FPU has only sums and maxima of numbers"
            self.reasons.append(f"{subject}: SFPU, {why}")
            steps = reducer.on_sfpu(block, result, depth, dtype)
        if result is out:
            return steps
        if scope_of(out) == DST_SCOPE:
            return [*steps, storage.move(result, out, dtype), *storage.convert(out, dtype, dtype_of(target))]
        return [*steps, *storage.convert(result, dtype, dtype_of(target)), *storage.pack(result, out, target)]

    def parallel(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not is_parallel(statement):
            return None
        if self.eltwise == "fpu":
            refuse_comparisons(statement)
        lowered, reasons, approximated = lower_parallel(statement, self.storage, self.eltwise, self.rounded, self.fast)
        self.reasons += [reason for reason in reasons if reason not in self.reasons]
        self.approximated += approximated
        return lowered

    def rejection(self, statement: tirx.Stmt) -> None:
        if not isinstance(statement, tirx.Bind | tirx.For):
            raise Unsupported("L001", f"no rule lowers {op_name(statement) or type(statement).__name__}")


def fidelity_of_products(program: TirProgram) -> tuple[str, ...]:
    """What C2 reads: of the math fidelity, whether it is right for elements of few bits."""
    dtypes = {dtype_of(node.buffer) for node in walk(program.kernel.body) if isinstance(node, tirx.AllocBuffer)}
    return ("math_fidelity",) if dtypes & {*SMALL_FLOATS, *SMALL_WHOLES} else ()


def _check_fidelity(plan: Plan, a: tirx.Buffer, b: tirx.Buffer) -> None:
    """Raise UsageError if the passes of the FPU leave out bits of integers: the first takes 7 bits of an element of A
    and 5 of one of B, the second the others of B, the third those of A."""
    assert plan.compute is not None
    fidelity = plan.compute.math_fidelity
    for buffer, bits, needed in ((a, 7, 3), (b, 5, 2)):
        dtype = dtype_of(buffer)
        # -128 is a power of two: one bit.
        if dtype not in SMALL_WHOLES or largest_magnitude(dtype) <= 2**bits:
            continue
        if get_args(Fidelity).index(fidelity) + 1 < needed:
            raise UsageError(
                "U010",
                f"math_fidelity is {fidelity!r}, which leaves out bits of {buffer.name}, of {dtype}",
                hint=f"omit math_fidelity: exact products of these integers need {get_args(Fidelity)[needed - 1]}",
            )


_RULES = (
    StatementRule(BLOCK.name, BLOCK.sentence, _Lowering.allocation),
    StatementRule("load", "The reader moves a block of a tensor as tiles, or as parts of them.", _Lowering.load),
    StatementRule("gather", "The reader, or the writer, computes the place of each part of a block.", _Lowering.gather),
    StatementRule("number", "An element that decides something is read as a number.", _Lowering.number),
    StatementRule("store", "The writer moves a block to a tensor as tiles, or as parts of them.", _Lowering.store),
    StatementRule(
        "copy", "An on-chip copy goes through DST, tile by tile; one operation converts rows to tiles.", _Lowering.copy
    ),
    StatementRule("copy of tiles", "The tiles of a part of a block are copied by themselves.", _Lowering.copy_tiles),
    StatementRule("fill", "A fill writes its number to each tile in DST.", _Lowering.fill),
    StatementRule(
        "product", "A product is a sum, in DST, of products of a column of tiles and a row of tiles.", _Lowering.gemm
    ),
    StatementRule(
        "reduction",
        "A reduction joins tiles element by element, then the elements of each tile by rows or columns.",
        _Lowering.reduce,
    ),
    StatementRule(
        "element-wise", "Each operation of a T.Parallel block becomes a loop over tiles.", _Lowering.parallel
    ),
    StatementRule("rejection", "A statement that no rule lowers is rejected.", _Lowering.rejection),
)


def _nearest(index: ir.Expr, start: ir.Expr, count: int, analyzer: sym.Analyzer) -> ir.Expr:
    """The number of the tile at a distance of `start`, or of the nearest one that a block of `count` tiles has. The
    kernel's numbers are unsigned: what is subtracted is never more than there is."""
    first = constant(start)
    low = constant(analyzer.simplify(0 - start))
    if first is not None and first < 0:
        index = tirx.Max(index, tirx.const(-first, "int32")) - (-first)
    elif first is None and low is None and not analyzer.can_prove(start >= 0):
        back = analyzer.simplify(0 - start)
        index = tirx.Max(index, back) - back
    else:
        index = index + start
    return index if analyzer.can_prove(index < count) else tirx.Min(index, tirx.const(count - 1, "int32"))


def _read_by_others_than_packers(function: tirx.PrimFunc) -> set[tirx.Buffer]:
    """The bfloat16 blocks in DST that are read by anything other than a copy to a bfloat16 circular buffer: for those
    readers, the packer does not round."""
    read_buffers: set[tirx.Buffer] = set()

    def reads(buffer: tirx.Buffer) -> None:
        if scope_of(buffer) == DST_SCOPE and dtype_of(buffer) == "bfloat16":
            read_buffers.add(buffer)

    for statement in blocks(function.body):
        if is_parallel(statement):
            for store in parallel_body(statement)[1]:
                if isinstance(store, tirx.BufferStore | tirx.Bind):
                    for load in loads_of(store.value):
                        reads(load.source)
        elif runs(statement, tl.COPY):
            source, target = (region.source for region in regions(statement))
            if scope_of(target) != CB_SCOPE or dtype_of(target) != "bfloat16":
                reads(source)
    return read_buffers
