"""Lower element-wise blocks to operations on tiles, with one loop over the tiles of the block per value.

`expressions` translates expressions into the values of `tile_values`; this module chooses the engine, the order and the
storage of each value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import ir, sym, tirx

from ttexplore.analysis.expressions import ExpressionReader
from ttexplore.analysis.tile_values import COMPARISONS, JUMPING, BlockRead, Value, ValueGraph
from ttexplore.errors import TTExploreError, Unsupported
from ttexplore.ir.adapter import span_of, with_variables
from ttexplore.ir.arithmetic.deep import Deep, deep
from ttexplore.ir.build import dtype_of, op, scope_of, shape_of, variable
from ttexplore.ir.dag import COMPARISON_TYPES, nodes_of, parts_of
from ttexplore.ir.dataflow import loads_of, nest_of
from ttexplore.ir.operations.storage import tile_grid
from ttexplore.ir.rewrite import Rule
from ttexplore.ops import OPS
from ttexplore.ops.op import CB_SCOPE, DST_SCOPE
from ttexplore.ops.sfpu import FAST_ERROR
from ttexplore.options import Engine
from ttexplore.passes.lower_tt_tile_intrinsics.tile_storage import TileStorage
from ttexplore.plan import FORMAT_OF_DTYPE, SMALL_FLOATS, SMALL_WHOLES

_FPU = ("add", "sub", "mul")
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*"}

# SFPU operations that are not named `<name>_binary_tile` or `<name>_unary_tile`.
_BINARY_NAMES = {
    "max": "binary_max", "min": "binary_min", "pow": "power_binary", "max_int32": "binary_max_int32",
    "min_int32": "binary_min_int32", "shift_left": "binary_left_shift", "shift_right": "binary_right_shift",
    **{f"{name}_int32": f"{name}_int" for name in ("add", "sub", "mul", *COMPARISONS)},
    **{f"bit_{name}": f"bitwise_{name}_binary" for name in ("and", "or", "xor")},
}  # fmt: skip
_SCALAR_NAMES = {
    "max": "unary_max",
    "min": "unary_min",
    "pow": "power",
    "exp_fast": "exp_fast",
    **{c: f"unary_{c}" for c in COMPARISONS},
}
_UNARY_NAMES = {"to_bfloat16": "typecast_fp32_to_bf16", "bit_not": "bitwise_not"}
# What makes integers of numbers or the reverse: the operation, and what it makes.
_CONVERSIONS = {
    "to_int32": ("typecast_fp32_to_int32_tile", "int32"), "to_float32": ("typecast_int32_to_fp32_tile", "float32"),
    "bits_of": ("reinterpret_fp32_to_int32_tile", "int32"), "of_bits": ("reinterpret_int32_to_fp32_tile", "float32"),
}  # fmt: skip
_LEAVES = ("number", "scalar", "integer", "whole", "axis", "load")
_BROADCASTS = {"row": "rows", "column": "cols", "scalar": "scalar"}


_LOAD = Rule("operand", "A tile of a circular buffer is unpacked to DST; a row, column or element is broadcast.")
_NUMBER = Rule("number", "A number fills a tile of DST.")
_INDEX = Rule("index", "The index of a row or column is copied from a tile that holds these indices.")
_ON_FPU = Rule("operation of the FPU", "The FPU reads two circular buffers and writes the result to DST.")
_ON_SFPU = Rule("operation of the SFPU", "The SFPU computes on tiles in DST.")
_CAST = Rule("cast", "Floats in DST are converted to integers, or integers to floats.")
_MOVE = Rule("value kept apart", "A value is copied within DST to the tiles that hold it.")
_PACK = Rule("pack", "The packer moves the tiles of a result from DST to a circular buffer.")


def refuse_comparisons(statement: tirx.Stmt) -> None:
    """Refuse comparisons of elements of float32 with each other where the FPU is to compute. It cuts to TF32 what it
    gets, and the SFPU does not: what is equal in the kernel, as a maximum and the element that it is, is not there.
    Raises Unsupported."""
    for store in nest_of(statement)[1]:
        for node in nodes_of(store.value):
            if type(node) in COMPARISON_TYPES and all(
                any(dtype_of(load.source) == "float32" for load in loads_of(side)) for side in parts_of(node)
            ):
                raise Unsupported(
                    "L002",
                    "a comparison of elements of float32 with each other, with eltwise='fpu', which cuts some of them",
                    hint="leave out eltwise='fpu'",
                    span=span_of(store),
                )


def lower_parallel(
    statement: tirx.Stmt,
    storage: TileStorage,
    engine: Engine,
    rounded: set[tirx.Buffer],
    fast: frozenset[str] = frozenset(),
) -> tuple[list[tirx.Stmt], list[str], list[str]]:
    """The tile loops of a T.Parallel nest, the reasons for the choice of engines, and the blocks with fast functions.

    `rounded` are the blocks in DST that must be rounded to their dtype, because not only the packer reads them. `fast`
    are the functions that may be less accurate.
    """
    lowering = _NestLowering(statement, storage, engine, rounded, fast)
    return lowering.lower(), lowering.reasons, lowering.approximated


@dataclass(frozen=True)
class _Store:
    statement: tirx.BufferStore
    value: int


class _NestLowering:
    """The lowering of one nest: its values, their engines and their storage."""

    def __init__(
        self,
        statement: tirx.Stmt,
        storage: TileStorage,
        engine: Engine,
        rounded: set[tirx.Buffer],
        fast: frozenset[str],
    ) -> None:
        self.storage, self.engine, self.rounded = storage, engine, rounded
        loops, self.body = nest_of(statement)
        variables = [axis_loop.loop_var for axis_loop in loops]
        block = next(statement.buffer for statement in self.body if isinstance(statement, tirx.BufferStore))
        self.rows, self.columns = tile_grid(shape_of(block))
        self.like = storage.tiles[block]
        # A vector is a row of tiles, or a matrix of one column.
        is_matrix = len(variables) == 2 and shape_of(block)[1] > 1
        self.graph = ValueGraph(is_wide=storage.is_wide)
        self.reader = ExpressionReader(
            self.graph, variables[0] if len(variables) == 2 else None, variables[-1], variable("tile_row"),
            variable("tile_column"), sym.Analyzer(), fast=fast if is_matrix else frozenset(),
        )  # fmt: skip
        self.stores: list[_Store] = []
        self.uses: dict[int, int] = {}
        self.users: dict[int, list[int]] = {}
        self.needs: dict[int, int] = {}
        self.jumped: set[int] = set()
        # `places` maps values to the DST arrays that hold them, `holders` DST arrays to values.
        self.places: dict[int, tirx.Buffer] = {}
        self.holders: dict[tirx.Buffer, int] = {}
        self.temporaries: set[tirx.Buffer] = set()
        self.reasons: list[str] = []
        self.approximated: list[str] = []
        self.made: list[tirx.Stmt] = []
        # The store that is being lowered.
        self.source: tirx.Stmt | None = None

    def lower(self) -> list[tirx.Stmt]:
        for store in self.body:
            try:
                self.read(store)
            except TTExploreError as error:
                raise error.at(span_of(store)) from None
        self.count()
        lowered: list[tirx.Stmt] = []
        for store in self.stores:
            self.made, self.source = [], store.statement
            self.write(store)
            lowered += self.made
        return lowered

    # Reading

    def read(self, store: tirx.BufferStore | tirx.Bind) -> None:
        if isinstance(store, tirx.Bind):
            self.reader.bind(store)
            return
        buffer, reader = store.buffer, self.reader
        value = reader.value(store.value)
        if reader.multiplies_reciprocals:
            self.because(f"{buffer.name}: quotients as products with reciprocals, as requested")
        match dtype_of(buffer):
            case "bfloat16":
                value = self.graph.make("to_bfloat16", value)
            case "int32":
                value = self.graph.make("to_int32", value)
            case dtype if dtype in SMALL_WHOLES:
                # They are stored as bfloat16.
                value = self.graph.make("to_float32", value)
            case dtype if dtype in SMALL_FLOATS:
                value = self.graph.make(f"to_{dtype}", value)
            case _:
                pass
        if not self.storage.is_wide and self.graph.has_int32():
            raise Unsupported("L002", "integers in 16-bit DST", hint="leave accumulate_dtype out")
        # Later loads see the value after conversion to the dtype of the buffer.
        reader.store(buffer, value)
        if self._is_rounded_later(buffer):
            value = self._without_rounding(value)
        self.stores.append(_Store(store, value))

    def _is_rounded_later(self, buffer: tirx.Buffer) -> bool:
        """Whether the packer rounds the values of a block."""
        return dtype_of(buffer) == "bfloat16" and (scope_of(buffer) == CB_SCOPE or buffer not in self.rounded)

    def _without_rounding(self, value: int) -> int:
        node = self.graph[value]
        return node.operands[0] if node.op == "to_bfloat16" else value

    def count(self) -> None:
        """Count the uses of each value that a store needs, and find the operands of discontinuous operations."""
        waiting = [store.value for store in self.stores]
        for value in waiting:
            self.uses[value] = self.uses.get(value, 0) + 1
        reached: set[int] = set()
        while waiting:
            value = waiting.pop()
            if value in reached:
                continue
            reached.add(value)
            for operand in self.graph[value].operands:
                self.uses[operand] = self.uses.get(operand, 0) + 1
                self.users.setdefault(operand, []).append(value)
                waiting.append(operand)
        for value in sorted(reached, reverse=True):
            node = self.graph[value]
            if node.op in JUMPING or value in self.jumped:
                self.jumped.update(node.operands)
            if node.load is not None:
                array = self.storage.tiles[node.load.buffer]
                if scope_of(array) == DST_SCOPE:
                    self.places[value] = array
                    self.holders[array] = value

    # Writing

    def write(self, store: _Store) -> None:
        target = self.storage.tiles[store.statement.buffer]
        if scope_of(target) != DST_SCOPE:
            array = deep(self.place(store.value, None))
            self.done(store.value)
            self.fire(_PACK, self.storage.pack(array, target, store.statement.buffer))
            return
        array = deep(self.place(store.value, target))
        self.done(store.value)
        if array.same_as(target):
            self.holders[target] = store.value
            return
        old = self.holders.get(target)
        if old is not None and self.uses.get(old, 0):
            saved = self.new(None, dtype_of(target))
            self.move(target, saved, dtype_of(target))
            self.keep(old, saved)
        self.move(array, target, dtype_of(target))
        self.holders.pop(target, None)

    # The following functions run under `deep`, because values may be nested a thousand levels deep.

    def place(self, value: int, want: tirx.Buffer | None) -> Deep[tirx.Buffer]:
        """The DST array that holds a value. A new value goes to `want` if the old value of `want` is dead."""
        if value in self.places:
            return self.places[value]
        if want is not None and dtype_of(want) != self.storage.in_dst(self._dtype(value)):
            want = None
        node = self.graph[value]
        if node.op in _LEAVES:
            out = self.new(want, self._dtype(value))
            self.leaf(node, out)
            return out
        out = yield self.computed(value, node, want)
        self.keep(value, out)
        return out

    def leaf(self, node: Value, out: tirx.Buffer) -> None:
        """Fill a DST array with a value that is not the result of an operation."""
        if node.load is not None:
            self.loaded(node.load, out)
            return
        match node.op:
            case "number" | "integer":
                self.filled(node.constant, out)
            case "scalar" | "whole":
                self.filled(self.graph.scalars[node.place], out, whole=node.op == "whole")
            case "axis":
                numbers = self.storage.index_tile(node.place, self.source)
                self.each(_INDEX, lambda t: op("copy_tile", numbers, 0, out, t))
            case _:
                raise ValueError(f"{node.op} is not a leaf")

    def filled(self, number: ir.Expr | float, out: tirx.Buffer, *, whole: bool = False) -> None:
        name = "fill_int_tile" if whole or isinstance(number, int) else "fill_tile"
        self.each(_NUMBER, lambda t: op(name, out, t, self._scalar(number, t)))

    def loaded(self, load: BlockRead, out: tirx.Buffer) -> None:
        """A tile of a circular buffer, copied for each use: this costs less than keeping the tile in DST."""
        role, source = load.role, self.storage.tiles[load.buffer]
        if role == "element":
            self.each(_LOAD, lambda t: op("copy_tile", source, t, out, t))
        elif role == "row" and FORMAT_OF_DTYPE[dtype_of(source)] == "Float16_b":
            # unary_bcast of a row is wrong on the chip for bfloat16 with 32-bit DST.
            zeros = self.storage.zero_tile(self.source)
            self.each(_LOAD, lambda t: op("add_tiles_bcast_rows", zeros, source, 0, self._tile(load, t), out, t))
        else:
            name = {"row": "unary_bcast_row", "column": "unary_bcast_col", "scalar": "unary_bcast_scalar"}[role]
            self.each(_LOAD, lambda t: op(name, source, self._tile(load, t), out, t))

    def _dtype(self, value: int) -> str:
        return "int32" if self.graph.is_int32(value) else "float32"

    def computed(self, value: int, node: Value, want: tirx.Buffer | None) -> Deep[tirx.Buffer]:
        if node.op in _CONVERSIONS:
            return (yield self.converted(node, want))
        fpu = self.fpu_form(value, node)
        if fpu is not None:
            return self.on_fpu(node, *fpu, want)
        scalars = [operand for operand in node.operands if self.graph.is_scalar(operand)]
        if len(scalars) == len(node.operands):
            scalars = scalars[1:]
        operands = [operand for operand in node.operands if operand not in scalars]
        if len(operands) == 1 and self._has_scalar_form(node, operands[0]):
            return (yield self.in_place(node, operands[0], scalars, want))
        return (yield self.on_several(value, node, want))

    def converted(self, node: Value, want: tirx.Buffer | None) -> Deep[tirx.Buffer]:
        """A conversion between integers and floats, in an array of its own: an array has one dtype throughout."""
        (operand,) = node.operands
        name, after = _CONVERSIONS[node.op]
        before = self._dtype(operand)
        out = self.new(want, after)
        if operand in self.places or self.graph[operand].op not in _LEAVES:
            array = yield self.place(operand, None)
            self.move(array, out, before)
        else:
            self.leaf(self.graph[operand], out)
        self.done(operand)
        self.each(_CAST, lambda t: op(name, out, t))
        return out

    @staticmethod
    def _has_scalar_form(node: Value, operand: int) -> bool:
        if node.op in ("where", "div"):
            return False
        return node.op != "pow" or node.operands[0] == operand

    def in_place(self, node: Value, operand: int, scalars: list[int], want: tirx.Buffer | None) -> Deep[tirx.Buffer]:
        """An operation that overwrites its operand with its result."""
        out = yield self.changeable(operand, want)
        name = self._name(node, operand)
        if node.op == "exp_fast":
            assert isinstance(self.source, tirx.BufferStore)
            self.approximated.append(str(self.source.buffer.name))
            self.because(f"{self.source.buffer.name}: fast exponential, as requested, up to {FAST_ERROR:.1%} off")
        numbers = [self._number(scalar) for scalar in scalars]
        for scalar in scalars:
            self.done(scalar)
        self.each(_ON_SFPU, lambda t: op(name, out, t, *(self._scalar(number, t) for number in numbers)))
        return out

    def on_several(self, value: int, node: Value, want: tirx.Buffer | None) -> Deep[tirx.Buffer]:
        """An operation on two or three DST tiles with a separate result tile."""
        operands = list(dict.fromkeys(node.operands))
        if node.op == "mul" and len(operands) == 1:
            out = yield self.changeable(operands[0], want, twice=True)
            self.each(_ON_SFPU, lambda t: op("square_tile", out, t))
            return out
        # The operand that needs most of DST comes first, while DST is empty.
        first = max(operands, key=self._need)
        arrays = {first: (yield self.place(first, want))}
        for operand in operands:
            if operand != first:
                arrays[operand] = yield self.place(operand, None)
        for operand in node.operands:
            self.done(operand)
        out = self._result(value, operands, arrays, want)
        if node.op == "where":
            name = "where_tile" if self.storage.is_wide else "where_bf16_tile"
        else:
            name = f"{_BINARY_NAMES.get(node.op, f'{node.op}_binary')}_tile"
        self.each(
            _ON_SFPU,
            lambda t: op(name, *(argument for operand in node.operands for argument in (arrays[operand], t)), out, t),
        )
        return out

    def _result(
        self, value: int, operands: list[int], arrays: dict[int, tirx.Buffer], want: tirx.Buffer | None
    ) -> tirx.Buffer:
        if want is not None and not self._is_needed(want):
            return want
        for operand in operands:
            if self._dtype(operand) == self._dtype(value) and self._may_change(operand, arrays[operand], None):
                return arrays[operand]
        return self.new(None, self._dtype(value))

    def on_fpu(self, node: Value, first: int, second: int, role: str, want: tirx.Buffer | None) -> tirx.Buffer:
        for operand in node.operands:
            self.done(operand)
        # A product accumulates in DST, so it needs an array that holds no other value.
        out = self.new(None if node.op == "mul" else want, "float32")
        in0, in1 = (self.storage.tiles[self.graph.loaded(operand).buffer] for operand in (first, second))
        name = f"{node.op}_tiles" if role == "element" else f"{node.op}_tiles_bcast_{_BROADCASTS[role]}"
        tile = self.graph.loaded(second)
        self.each(_ON_FPU, lambda t: op(name, in0, in1, t, t if role == "element" else self._tile(tile, t), out, t))
        return out

    # The engine

    def fpu_form(self, value: int, node: Value) -> tuple[int, int, str] | None:
        """The two loads, and the role of the second, if the FPU computes an operation; otherwise None."""
        if node.op not in _FPU:
            return None
        a, b = node.operands
        if node.op != "sub" and self._role(a) in _BROADCASTS:
            a, b = b, a
        if self._role(a) != "element" or self._role(b) not in ("element", *_BROADCASTS):
            return None
        subject = f"{self._load_name(a)} {_SYMBOLS[node.op]} {self._load_name(b)}"
        if self.engine == "sfpu":
            self.because(f"{subject}: SFPU, as requested")
            return None
        buffers = [self.storage.tiles[self.graph.loaded(operand).buffer] for operand in (a, b)]
        formats = {FORMAT_OF_DTYPE[dtype_of(buffer)] for buffer in buffers}
        if self.engine == "fpu" and formats == {"Float32"} and not any(map(self.storage.is_whole, buffers)):
            self.because(f"{subject}: FPU, as requested, which cuts float32 to 10 bits of mantissa")
            return a, b, self._role(b)
        if formats != {"Float16_b"}:
            self.because(f"{subject}: SFPU, which keeps float32 exact; the FPU would cut it to 10 bits of mantissa")
            return None
        if value in self.jumped and self.engine == "auto" and self.storage.is_wide:
            self.because(
                f"{subject}: SFPU, because the result is compared or rounded, and the last bits of the FPU are inexact"
            )
            return None
        role = self._role(b)
        name = f"{node.op}_tiles" if role == "element" else f"{node.op}_tiles_bcast_{_BROADCASTS[role]}"
        cycles, sfpu_cycles = OPS[f"tt.{name}"].cycles, OPS[f"tt.{node.op}_binary_tile"].cycles
        self.because(
            f"{subject}: FPU, because both are bfloat16 circular buffers ({cycles} cycles per tile; "
            f"the SFPU would take {sfpu_cycles} and two copies)"
        )
        return a, b, role

    def because(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)

    def _role(self, value: int) -> str:
        load = self.graph[value].load
        return "" if load is None or value in self.places else load.role

    def _load_name(self, value: int) -> str:
        load = self.graph.loaded(value)
        return f"{load.buffer.name}" if load.role == "element" else f"{load.buffer.name} ({load.role})"

    def _name(self, node: Value, operand: int) -> str:
        if len(node.operands) == 1:
            return f"{_UNARY_NAMES.get(node.op, node.op)}_tile"
        if node.op == "clamp":
            return "clamp_tile"
        if node.op == "sub" and node.operands[0] != operand:
            return "rsub_unary_tile"
        return f"{_SCALAR_NAMES.get(node.op, f'{node.op}_unary')}_tile"

    # Places

    def new(self, want: tirx.Buffer | None, dtype: str) -> tirx.Buffer:
        if want is not None and not self._is_needed(want):
            self.holders.pop(want, None)
            return want
        temporary = self.storage.temporary(self.like, dtype, self.source)
        self.temporaries.add(temporary)
        return temporary

    def keep(self, value: int, array: tirx.Buffer) -> None:
        self.places[value] = array
        self.holders[array] = value
        self._forget_needs(value)

    def done(self, value: int) -> None:
        self.uses[value] -= 1

    def _is_needed(self, array: tirx.Buffer) -> bool:
        holder = self.holders.get(array)
        return holder is not None and self.uses.get(holder, 0) > 0

    def _may_change(self, value: int, array: tirx.Buffer, want: tirx.Buffer | None) -> bool:
        """Whether an operation may overwrite an array, after the use of `value` has been counted."""
        if not (array in self.temporaries or (want is not None and array.same_as(want))):
            return False
        return value not in self.places or not self.uses[value]

    def changeable(self, value: int, want: tirx.Buffer | None, *, twice: bool = False) -> Deep[tirx.Buffer]:
        """An array that holds a value and may be overwritten."""
        array = yield self.place(value, want)
        for _ in range(1 + twice):
            self.done(value)
        if self._may_change(value, array, want):
            return array
        out = self.new(want, self._dtype(value))
        self.move(array, out, self._dtype(value))
        return out

    def move(self, source: tirx.Buffer, target: tirx.Buffer, dtype: str) -> None:
        if not source.same_as(target):
            self.fire(_MOVE, [self.storage.move(source, target, dtype)])

    def _need(self, value: int) -> int:
        """The DST tiles that computing a value takes (Sethi-Ullman numbers); values in DST take none."""
        waiting = [value]
        while waiting:
            pending = waiting[-1]
            operands = [operand for operand in set(self.graph[pending].operands) if not self.graph.is_scalar(operand)]
            unknown = [operand for operand in operands if operand not in self.needs]
            if pending in self.needs:
                waiting.pop()
            elif pending in self.places:
                self.needs[pending] = 0
            elif self.graph.is_scalar(pending) or self.graph[pending].op == "load":
                self.needs[pending] = 1
            elif unknown:
                waiting += unknown
            else:
                needs = sorted((self.needs[operand] for operand in operands), reverse=True)
                self.needs[pending] = max((need + rank for rank, need in enumerate(needs)), default=1)
        return self.needs[value]

    def _forget_needs(self, value: int) -> None:
        """Discard the needs of all values that depend on this one, which is in DST now."""
        waiting = [value]
        while waiting:
            pending = waiting.pop()
            if self.needs.pop(pending, None) is not None:
                waiting += self.users.get(pending, ())

    # Tiles

    def each(self, rule: Rule, make: Callable[[ir.Var], tirx.Stmt]) -> None:
        self.fire(rule, [self.storage.each(self.rows * self.columns, make)])

    def fire(self, rule: Rule, replacements: list[tirx.Stmt]) -> None:
        if replacements:
            self.made += self.storage.firings.made(rule, self.source, replacements)

    def _tile(self, load: BlockRead, t: ir.Var) -> ir.Expr | int:
        """The tile of a broadcast operand for tile t of the block."""
        if load.role == "row":
            return self._tile_column(t)
        if load.role == "column":
            across = tile_grid(shape_of(load.buffer))[1]
            row = self._tile_row(t)
            return row if across == 1 else row * across
        return 0

    def _tile_row(self, t: ir.Var) -> ir.Expr:
        return t if self.columns == 1 else tirx.floordiv(t, self.columns)

    def _tile_column(self, t: ir.Var) -> ir.Expr:
        return t if self.rows == 1 else tirx.floormod(t, self.columns)

    def _number(self, value: int) -> ir.Expr | float:
        node = self.graph[value]
        return node.constant if node.op == "number" else self.graph.scalars[node.place]

    def _scalar(self, number: ir.Expr | float, t: ir.Var) -> ir.Expr | float:
        """A scalar operand for tile t: a number, or an integer expression."""
        if isinstance(number, float | int):
            return number
        substitutes: dict[ir.Var, ir.Expr] = {
            self.reader.tile_row: self._tile_row(t),
            self.reader.tile_column: self._tile_column(t),
        }
        return with_variables(number, lambda var: substitutes.get(var, var))
