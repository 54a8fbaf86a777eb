"""Random kernels and schedules.

A kernel is drawn phase by phase, as a user writes one: loads, element-wise blocks, matrix products, loops, stores. What
is drawn is meaningful: buffers are written before they are read, blocks do not overlap in an output, and values stay
where functions are defined and finite (their ranges are followed along).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.fuzz.description import (
    Allocate,
    Bind,
    Call,
    Constant,
    Copy,
    Expression,
    Fill,
    Gemm,
    Kernel,
    Load,
    Loop,
    Named,
    Parallel,
    Position,
    Region,
    Schedule,
    Statement,
    Store,
    Tensor,
    statements,
)
from tests.fuzz.meaning import OPERATIONS, Interval, Precision
from ttexplore.target import TARGETS

CORE_RANGES = ([((0, 0), (1, 1))], [((1, 1), (2, 1)), ((4, 3), (5, 4))], [((0, 0), (0, 0)), ((2, 2), (2, 4))])
_ORDERS = ("row_major", "column_major", "block_linear(2)", "z_order")


def _work_lists(kernel: Kernel) -> SearchStrategy[Any]:
    """Every item of the grid on one of up to three cores, in any order."""
    items = st.permutations(range(math.prod(kernel.grid)))
    cores = st.integers(1, min(3, math.prod(kernel.grid)))
    return st.builds(lambda items, cores: {(n, n): items[n::cores] for n in range(cores)}, items, cores)


def _layouts(kernel: Kernel) -> SearchStrategy[Any]:
    """One of the tensors in L1, interleaved or in shards."""
    places = st.sampled_from(["L1", {"memory": "L1", "shard": "height"}, {"memory": "L1", "shard": "width"}])
    return st.builds(lambda tensor, place: {tensor.name: place}, st.sampled_from(kernel.tensors), places)


# Every option of the pipeline and values that it takes for a kernel; test_fuzz holds this against the passes.
OPTIONS: dict[str, Callable[[Kernel], SearchStrategy[Any]]] = {
    "policy": lambda _: st.sampled_from(["contiguous", "strided", "rectangular", "block_linear(2)", "z_order"]),
    "order": lambda _: st.sampled_from(_ORDERS),
    "cores": lambda _: st.tuples(st.integers(1, 3), st.integers(1, 3)),
    "core_offset": lambda _: st.tuples(st.integers(0, 3), st.integers(0, 3)),
    "core_ranges": lambda _: st.sampled_from(CORE_RANGES),
    "work_lists": _work_lists,
    "stages": lambda _: st.integers(1, 3),
    "accumulate": lambda _: st.sampled_from(["reload", "l1"]),
    "eltwise": lambda _: st.sampled_from(["auto", "fpu", "sfpu"]),
    "accumulate_dtype": lambda _: st.sampled_from(["auto", "float32", "bfloat16"]),
    "dst_full_sync": lambda _: st.booleans(),
    "epilogue": lambda _: st.sampled_from(["fused", "separate"]),
    "subblock": lambda _: st.just((1, 1)),
    # These four want shards, products or circular buffers of a certain kind; the corpus has them with other values.
    "mode": lambda _: st.just("global"),
    "match": lambda _: st.none(),
    "cb_depth": lambda _: st.just({}),
    "chunk_k_tiles": lambda _: st.none(),
    "layouts": _layouts,
    "rectangle": lambda _: st.just((3, 3)),
    "stride": lambda _: st.just(1),
    "math_fidelity": lambda _: st.sampled_from(["HiFi4", "HiFi3", "HiFi2", "LoFi"]),
}
# Options that say the same thing: where one is given, the others are not.
EXCLUSIVE = (
    ("policy", "work_lists"),
    ("order", "work_lists"),
    ("core_ranges", "cores"),
    ("core_ranges", "core_offset"),
    ("core_ranges", "work_lists"),
    ("cores", "work_lists"),
    ("core_offset", "work_lists"),
)

# Operations of one operand, with what keeps their operand in the domain.
UNARY = (
    "abs", "exp", "negative", "exp2", "log", "log2", "sqrt", "rsqrt", "reciprocal", "sigmoid", "tanh", "erf", "sin",
    "cos", "floor", "ceil", "round", "float32", "bfloat16",
)  # fmt: skip
BINARY = ("add", "subtract", "multiply", "max", "min", "divide")
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
DTYPES = ("bfloat16", "float32", "float16")
LARGEST_BLOCK_TILES = 4
LARGEST_VALUE = 1e4

_EXACT = Precision(0.0, 0.0, 60, keeps_more=False)


@st.composite
def cases(draw: DrawFn) -> tuple[Kernel, Schedule]:
    """A kernel, a target, and a value for some of the options."""
    kernel = _Draft(draw).kernel()
    options: dict[str, Any] = {}
    for name, values in OPTIONS.items():
        excluded = any(name in pair and options.keys() & set(pair) for pair in EXCLUSIVE)
        if draw(st.integers(0, 3)) == 3 and not excluded:
            options[name] = draw(values(kernel))
    if options.get("policy") in ("block_linear(2)", "z_order"):
        options.pop("order", None)
    # These two belong to one policy each.
    if options.get("policy") != "rectangular":
        options.pop("rectangle", None)
    if options.get("policy") != "strided":
        options.pop("stride", None)
    if options.get("policy") == "rectangular" and len(options.get("core_ranges", "1")) > 1:
        options.pop("core_ranges")
    target = draw(st.sampled_from(sorted(TARGETS, key=lambda name: name != "wormhole_n150")))
    return kernel, Schedule(target, options)


@dataclass(frozen=True)
class _Axis:
    """One axis of the grid of blocks: the text of the block's number, and how many blocks there are."""

    text: str
    count: int


@dataclass(frozen=True)
class _Buffer:
    name: str
    shape: tuple[int, ...]
    dtype: str


class _Draft:
    """A kernel as it is being drawn."""

    def __init__(self, draw: DrawFn) -> None:
        self.draw = draw
        self.tensors: list[Tensor] = []
        self.stored: set[str] = set()
        self.body: list[Statement] = []
        self.buffers: dict[str, _Buffer] = {}
        self.ranges: dict[str, Interval] = {}
        self.unstored: dict[str, None] = {}
        self.loops: list[_Axis] = []
        self.names = 0

    # Drawing

    def one(self, values: Any) -> Any:
        return self.draw(st.sampled_from(list(values)))

    def chance(self, of: int) -> bool:
        """True once in `of` times; simplest is False."""
        return self.draw(st.integers(0, of - 1)) == of - 1

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    # The kernel

    def kernel(self) -> Kernel:
        self.grid = self._draw_grid()
        self.block = self._draw_block()
        if self.chance(8):
            self.fill()
        else:
            self.load(self.block)
        phases = [
            self.load_block,
            self.parallel,
            self.store,
            self.vector,
            self.products,
            self.loop,
            self.move,
            self.fill,
        ]
        for _ in range(self.number(0, 5)):
            self.one(phases)()
        for name in [one for one in self.defined(self.block) if one in self.unstored]:
            if not self.stored or self.chance(2):
                self.store_buffer(name)
        if not self.stored:
            self.store_buffer((self.defined(self.block) or [self.load(self.block)])[0])
        return Kernel(self.grid, tuple(self.tensors), tuple(self.body))

    def _draw_grid(self) -> tuple[int, ...]:
        rank = self.one([1, 2, 3])
        extents = tuple(self.number(1, 3) for _ in range(rank))
        self.is_vector = rank == 1 and self.chance(4)
        column, row, deep = (
            _Axis(name, extent) for name, extent in zip(("bx", "by", "bz"), (*extents, 1, 1), strict=False)
        )
        self.leading: list[_Axis] = [deep] if rank == 3 else []
        if rank == 1:
            row = _Axis("0", 1)
            if extents[0] % 2 == 0 and self.chance(3):
                row, column = _Axis("bx // 2", extents[0] // 2), _Axis("bx % 2", 2)
        if self.chance(3):
            row, column = column, row
        self.row, self.column = row, column
        return extents

    def _draw_block(self) -> tuple[int, ...]:
        columns = self.number(1, 3)
        if self.is_vector:
            self.row, self.column = _Axis("0", 1), _Axis("bx", self.grid[0])
            return (32 * columns,)
        rows = self.number(1, max(1, min(3, LARGEST_BLOCK_TILES // columns)))
        return (32 * rows, 32 * columns)

    # Statements

    def add(self, statement: Statement) -> None:
        self.body.append(statement)
        _follow(statement, self.ranges)
        match statement:
            case Copy(_, target):
                self.unstored[target.name] = None
            case Fill(buffer) | Gemm(_, _, buffer):
                self.unstored[buffer] = None
            case Parallel():
                for one in statement.body:
                    if isinstance(one, Store):
                        self.unstored[one.buffer] = None
            case _:
                pass

    def allocate(self, shape: tuple[int, ...], dtype: str, scope: Literal["shared", "fragment"], letter: str) -> str:
        buffer = _Buffer(self.name(letter), shape, dtype)
        self.buffers[buffer.name] = buffer
        self.body.append(Allocate(buffer.name, shape, dtype, scope))
        return buffer.name

    def target(self, shape: tuple[int, ...], dtype: str, letter: str) -> str:
        """A buffer to write to: a new one, or one that has been written before."""
        fitting = [one.name for one in self.buffers.values() if one.shape == shape]
        if fitting and self.chance(4):
            return self.one(fitting)
        scope: Literal["shared", "fragment"] = self.one(["shared", "fragment"])
        return self.allocate(shape, dtype, scope, letter)

    def defined(self, shape: tuple[int, ...]) -> list[str]:
        """The buffers of a shape that hold something."""
        return [one.name for one in self.buffers.values() if one.shape == shape and one.name in self.ranges]

    # Tensors

    def input(self, shape: tuple[int, ...], dtype: str) -> str:
        fitting = [t.name for t in self.tensors if t.shape == shape and t.name not in self.stored and t.dtype == dtype]
        if fitting and self.chance(3):
            return self.one(fitting)
        values: Any = self.one(["coarse", "coarse", "positive", "normal"])
        tensor = Tensor(self.name("A"), shape, dtype, values)
        self.tensors.append(tensor)
        self.ranges[tensor.name] = _range(*{"coarse": (-2, 2), "positive": (0.5, 2), "normal": (-4, 4)}[values])
        return tensor.name

    def placed(
        self, block: tuple[int, ...], axes: list[_Axis], *, output: bool
    ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """A tensor's shape and where in it the block starts; outputs have a place for every block."""
        leading = [*self.leading, *self.loops] if len(block) == 2 else []
        if not output:
            leading = [axis for axis in leading if not self.chance(3)]
            axes = [self.elsewhere(axis) if self.chance(4) else axis for axis in axes]
        shape = [axis.count for axis in leading] + [
            axis.count * extent for axis, extent in zip(axes, block, strict=True)
        ]
        starts = [axis.text for axis in leading]
        starts += [_scaled(axis.text, extent) for axis, extent in zip(axes, block, strict=True)]
        return tuple(shape), tuple(starts)

    def elsewhere(self, axis: _Axis) -> _Axis:
        """Another place along an axis, for inputs."""
        match self.number(0, 2):
            case 0:
                return _Axis("0", 1)
            case 1:
                return _Axis(str(self.number(0, 1)), 2)
            case _:
                return axis if axis.count == 1 else _Axis(f"({axis.text} + 1) % {axis.count}", axis.count)

    def region(self, tensor: str, block: tuple[int, ...], starts: tuple[str, ...]) -> Region:
        shape = next(one.shape for one in self.tensors if one.name == tensor)
        extents = (1,) * (len(starts) - len(block)) + block
        if shape == block and self.chance(2):
            return Region(tensor, starts, extents, "whole")
        return Region(tensor, starts, extents, "slice" if self.chance(4) else "index")

    def whole(self, buffer: str) -> Region:
        shape = self.buffers[buffer].shape
        return Region(buffer, ("0",) * len(shape), shape, "whole")

    def load(self, block: tuple[int, ...], axes: list[_Axis] | None = None, letter: str = "s") -> str:
        if axes is None:
            axes = [self.row, self.column][-len(block) :]
        dtype = self.one(DTYPES)
        shape, starts = self.placed(block, axes, output=False)
        tensor = self.input(shape, dtype)
        buffer = self.target(block, self.one(DTYPES) if self.chance(4) else dtype, letter)
        self.add(Copy(self.region(tensor, block, starts), self.whole(buffer)))
        return buffer

    # Phases

    def load_block(self) -> None:
        self.load(self.block)

    def vector(self) -> None:
        """A vector that element-wise blocks broadcast along rows or columns."""
        if not self.is_vector:
            axis = self.number(0, 1)
            self.load((self.block[1 - axis],), [(self.column, self.row)[axis]], "v")

    def fill(self) -> None:
        buffer = self.target(self.block, self.one(DTYPES), "f")
        self.add(Fill(buffer, self.number(-4, 4) / 2))

    def move(self) -> None:
        """A copy from one on-chip buffer to another."""
        source = self.one(self.defined(self.block) or [None])
        if source is not None:
            target = self.target(self.block, self.one(DTYPES), "m")
            if target != source:
                self.add(Copy(self.whole(source), self.whole(target)))

    def store(self) -> None:
        for name in self.defined(self.block)[-1:]:
            self.store_buffer(name)

    def store_buffer(self, name: str) -> None:
        if len(self.stored) == 3:
            return
        shape, starts = self.placed(self.block, [self.row, self.column][-len(self.block) :], output=True)
        dtype = self.buffers[name].dtype if self.chance(2) else self.one(DTYPES)
        tensor = Tensor(self.name("C"), shape, dtype)
        self.tensors.append(tensor)
        self.stored.add(tensor.name)
        self.add(Copy(self.whole(name), self.region(tensor.name, self.block, starts)))
        self.unstored.pop(name, None)
        self.unstored.pop(tensor.name, None)

    def loop(self) -> None:
        """Phases in a loop; its variable becomes an index of the tensors that they touch."""
        if self.loops:
            return
        outside, ranges, before = self.body, dict(self.ranges), dict(self.buffers)
        tensors, stored, unstored = list(self.tensors), set(self.stored), dict(self.unstored)
        axis = _Axis(self.name("k"), self.number(2, 3))
        self.body, self.loops = [], [axis]
        self.load(self.block)
        phases = [self.parallel, self.load_block, self.vector, self.products, self.store, self.move]
        for _ in range(self.number(1, 3)):
            self.one(phases)()
        inside, self.body, self.loops = self.body, outside, []
        allocations = [one for one in inside if isinstance(one, Allocate)]
        rest = tuple(one for one in inside if not isinstance(one, Allocate))
        made = Loop(axis.text, axis.count, self.number(1, 3) if self.chance(2) else None, rest)
        follow = dict(ranges) | {t.name: self.ranges[t.name] for t in self.tensors if t.name in self.ranges}
        _follow(made, follow)
        if all(_is_tame(one) for one in follow.values()):
            self.body += [*allocations, made]
            self.ranges = follow
            self.forget(made)
        else:
            self.ranges, self.buffers = ranges, before
            self.tensors, self.stored, self.unstored = tensors, stored, unstored

    def forget(self, loop: Loop) -> None:
        """Let nothing use a block that the loop loads, and is refused after it, or overwrites in every turn."""
        for one in statements(loop.body):
            match one:
                case Copy(_, target):
                    overwritten = [target.name]
                case Fill(buffer):
                    overwritten = [buffer]
                case Parallel():
                    stores = [store for store in one.body if isinstance(store, Store)]
                    overwritten = [store.buffer for store in stores if store.buffer not in _loads(store.value, {})]
                case _:
                    overwritten = []
            for name in overwritten:
                if name in self.buffers:
                    self.ranges.pop(name, None)
                    self.unstored.pop(name, None)

    def products(self) -> None:
        """A matrix product over a loop, into a new accumulator or one that holds something."""
        if self.is_vector:
            return
        rows, columns = self.block
        depth, turns = 32 * self.number(1, 2), self.number(1, 3)
        held = [n for n in self.defined(self.block) if self.buffers[n].dtype == "float32"]
        if held and self.chance(3):
            into, cleared = self.one(held), True
        else:
            into = self.allocate(self.block, self.one(["float32", "float32", "bfloat16"]), "fragment", "c")
            cleared = False
        clear_in_gemm = not cleared and turns == 1 and not self.loops and self.chance(3)
        if not cleared and not clear_in_gemm:
            self.add(Fill(into, 0.0))
        axis = _Axis(self.name("k"), turns)
        outside, self.body = self.body, []
        a, transpose_a = self.factor(rows, depth, self.row, axis)
        b, transpose_b = self.factor(columns, depth, self.column, axis, turned=True)
        self.body.append(Gemm(a, b, into, transpose_a, transpose_b, clear_in_gemm))
        if self.chance(5) and not clear_in_gemm:
            self.body.append(Gemm(a, b, into, transpose_a, transpose_b))
        inside, self.body = self.body, outside
        self.body += [one for one in inside if isinstance(one, Allocate)]
        rest = tuple(one for one in inside if not isinstance(one, Allocate))
        made = Loop(axis.text, turns, self.number(1, 3) if self.chance(2) else None, rest)
        self.add(made)
        self.forget(made)
        self.unstored[into] = None

    def factor(self, length: int, depth: int, place: _Axis, axis: _Axis, *, turned: bool = False) -> tuple[str, bool]:
        """An operand of a product: `length` x `depth`, stored so, or (`turned`) the other way; transposed sometimes."""
        transpose = self.chance(3)
        ways = (depth, length) if transpose != turned else (length, depth)
        axes = [axis, place] if transpose != turned else [place, axis]
        existing = [n for n in self.defined(ways) if axis.count == 1]
        if existing and self.chance(2):
            return self.one(existing), transpose
        return self.load(ways, axes, "s"), transpose

    def parallel(self) -> None:
        """An element-wise block with one to three stores."""
        variables = ("i", "j")[-len(self.block) :] if not self.is_vector else ("i",)
        body: list[Bind | Store] = []
        self.values: dict[str, tuple[Expression, set[str]]] = {}
        for _ in range(self.number(1, 3)):
            expression = self.expression(variables, self.number(1, 3))
            if self.chance(5):
                name = self.name("x")
                body.append(Bind(name, expression))
                self.values[name] = (expression, _loads(expression, self.values))
                continue
            dtype = self.one(DTYPES)
            scope_target = self.target(self.block, dtype, "r")
            body.append(Store(scope_target, expression))
            # A name stands for an expression: it is gone once what it reads has changed.
            self.values = {n: v for n, v in self.values.items() if scope_target not in v[1]}
            trial = dict(self.ranges)
            _follow(Parallel(variables, self.block, tuple(body)), trial)
            self.ranges[scope_target] = trial[scope_target]
        if not any(isinstance(one, Store) for one in body):
            target = self.target(self.block, self.one(DTYPES), "r")
            body.append(Store(target, self.leaf(variables)))
        while body and isinstance(body[-1], Bind):
            body.pop()
        self.add(Parallel(variables, self.block, tuple(body)))

    # Expressions

    def expression(self, variables: tuple[str, ...], depth: int) -> Expression:
        if depth == 0 or self.chance(4):
            return self.leaf(variables)
        if self.chance(6):
            # Both sides of one dtype, as the language wants it.
            sides = [Call("float32", (self.expression(variables, depth - 1),)) for _ in range(2)]
            return Call("select", (self.condition(variables, depth - 1), *sides))
        if self.chance(4):
            name = self.one(UNARY)
            return self.tame(Call(name, (self.guarded(name, self.expression(variables, depth - 1)),)))
        name = self.one(BINARY)
        left, right = self.expression(variables, depth - 1), self.expression(variables, depth - 1)
        if isinstance(left, Constant) and isinstance(right, Constant):
            left = self.load_element(variables) or left
        return self.tame(Call(name, (left, self.guarded(name, right))))

    def condition(self, variables: tuple[str, ...], depth: int) -> Expression:
        """A comparison of numbers or of indices, or several."""
        if depth > 0 and self.chance(4):
            name = self.one(["and", "or", "not"])
            sides = 1 if name == "not" else 2
            return Call(name, tuple(self.condition(variables, depth - 1) for _ in range(sides)))
        if self.chance(2):
            sides = (self.position(variables), self.position(variables))
        else:
            sides = (self.load_element(variables) or Constant(0.0), self.expression(variables, depth))
            if isinstance(sides[0], Constant):
                return Call(self.one(COMPARISONS[:2]), (self.position(variables), self.position(variables)))
        return Call(self.one(COMPARISONS), sides)

    def position(self, variables: tuple[str, ...]) -> Expression:
        """A whole number of loop variables and block indices; the first has always a loop variable in it."""
        variable = self.one(variables)
        axes = [axis.text for axis in (self.row, self.column, *self.loops) if axis.text.isidentifier()]
        match self.number(0, 2):
            case 1 if axes:
                return Position(f"{variable} + {self.one(axes)} * 32")
            case 2:
                return Position(f"{variable} * {self.number(2, 3)} + {self.number(0, 40)}")
            case _:
                return Position(variable)

    def leaf(self, variables: tuple[str, ...]) -> Expression:
        if self.chance(4):
            return Constant(self.number(-8, 8) / 4)
        if self.values and self.chance(3):
            return Named(self.one(self.values))
        if not self.is_vector and self.chance(3):
            rows, columns = (self.defined((extent,)) for extent in self.block)
            ways = [(n, variables[1:]) for n in columns] + [(n, variables[:1]) for n in rows]
            ways += [(n, ("0",)) for n in dict.fromkeys([*rows, *columns])]
            if ways:
                return Load(*self.one(ways))
        return self.load_element(variables) or Constant(1.0)

    def load_element(self, variables: tuple[str, ...]) -> Expression | None:
        defined = self.defined(self.block)
        return Load(self.one(defined), variables) if defined else None

    def range_of(self, expression: Expression) -> Interval:
        bound = {name: _value_range(value, self.ranges, {}) for name, (value, _) in self.values.items()}
        return _value_range(expression, self.ranges, bound)

    def guarded(self, name: str, operand: Expression) -> Expression:
        """`operand`, kept in the domain of the operation."""
        known = self.range_of(operand)
        match name:
            case "exp" | "exp2" if known.high > 5:
                return Call("min", (operand, Constant(4.0)))
            case "log" | "log2" | "rsqrt" | "reciprocal" | "divide" if known.low < 0.25:
                return Call("max", (operand, Constant(0.5)))
            case "sqrt" if known.low < 0:
                return Call("abs", (operand,))
            case "sin" | "cos" if known.size > 16:
                return Call("min", (Call("max", (operand, Constant(-4.0))), Constant(4.0)))
            case _:
                return operand

    def tame(self, expression: Expression) -> Expression:
        """`expression`, scaled down where it may become large."""
        return expression if self.range_of(expression).size <= 1000 else Call("multiply", (expression, Constant(2**-8)))


def _scaled(text: str, extent: int) -> str:
    if text.isdigit():
        return str(int(text) * extent)
    is_product = "%" not in text and "//" not in text
    return f"{text} * {extent}" if is_product else f"({text}) * {extent}"


# Ranges


def _range(low: float, high: float) -> Interval:
    return Interval(np.float64((low + high) / 2), np.float64(low), np.float64(high))  # pyright: ignore


def _joined(one: Interval, other: Interval) -> Interval:
    return _range(float(min(one.low, other.low)), float(max(one.high, other.high)))


def _is_tame(interval: Interval) -> bool:
    return bool(np.isfinite(interval.size)) and float(interval.size) <= LARGEST_VALUE


def _value_range(expression: Expression, ranges: dict[str, Interval], named: dict[str, Interval]) -> Interval:
    match expression:
        case Load(buffer, _):
            return ranges[buffer]
        case Constant(value):
            return _range(value, value)
        case Named(name):
            return named[name]
        case Call(name, arguments):
            with np.errstate(all="ignore"):
                return OPERATIONS[name].meaning(_EXACT, *(_value_range(one, ranges, named) for one in arguments))
        case _:
            return _range(-128, 128)


def _loads(expression: Expression, named: dict[str, tuple[Expression, set[str]]]) -> set[str]:
    match expression:
        case Load(buffer, _):
            return {buffer}
        case Named(name):
            return named[name][1] if name in named else set()
        case Call(_, arguments):
            return set[str]().union(*(_loads(one, named) for one in arguments))
        case _:
            return set()


def _follow(statement: Statement, ranges: dict[str, Interval]) -> None:
    """What the statement does to the ranges of buffers and tensors."""
    match statement:
        case Copy(source, target):
            ranges[target.name] = _joined(ranges[source.name], _range(0, 0))
        case Fill(buffer, value):
            ranges[buffer] = _range(value, value)
        case Gemm(a, b, c, _, _, clear):
            bound = 64.0 * float(ranges[a].size) * float(ranges[b].size)
            old = _range(0, 0) if clear or c not in ranges else ranges[c]
            ranges[c] = _range(float(old.low) - bound, float(old.high) + bound)
        case Parallel():
            named: dict[str, Interval] = {}
            for one in statement.body:
                found = _value_range(one.value, ranges, named)
                if isinstance(one, Bind):
                    named[one.name] = found
                else:
                    ranges[one.buffer] = found
        case Loop():
            for _ in range(statement.extent):
                for one in statement.body:
                    _follow(one, ranges)
        case Allocate():
            pass


__all__ = ["OPTIONS", "cases"]
