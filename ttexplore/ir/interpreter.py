"""Running a program at any step, with NumPy and without lowering it.

Each function is translated once to a Python generator. Before the split one function runs core by core; after it
three of them share each core, and every blocking operation that cannot go on yields to the others. Protocols are
checked as they run. Values are float32, rounded where they are stored to the format of the buffer, or int32. Indices
are Python's integers; from where circular buffers are queues on they are words, signed or not, as in the C++.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from tvm import ir, tirx

from ttexplore.errors import BackendError, KernelError, Unsupported, VerifyError, refuse_cancelled
from ttexplore.ir.adapter import is_buffer, span_of
from ttexplore.ir.build import arguments, attribute, dtype_of, op_name, scope_of, shape_of, statements
from ttexplore.ir.dag import nodes_of, parts_of
from ttexplore.ir.functions import FUNCTIONS
from ttexplore.ir.index import WHOLE, CoreItem, CoreValue
from ttexplore.ir.kernel import (
    Allocation,
    Bind,
    Body,
    Branch,
    Call,
    Loop,
    Place,
    Reader,
    Statement,
    Store,
)  # fmt: skip
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import walk
from ttexplore.ir.sizes import bound_shape, size_variables
from ttexplore.ir.uncertain import Uncertain, lifted, value_of
from ttexplore.ir.words import PYTHON_FUNCTIONS, Word, Words, python
from ttexplore.ops import FORMS, OPS
from ttexplore.ops.block_float import GROUP, rounded_in_groups
from ttexplore.ops.integers import SMALL_INTEGERS, as_uint8, shifted_left, shifted_right
from ttexplore.ops.op import Form, Op, TileKind
from ttexplore.ops.storage import rounded as rounded_array
from ttexplore.plan import BLOCK_FLOAT, DATA_FORMATS, FACE, FORMAT_OF_DTYPE, CoreWork, Plan
from ttexplore.record import Span

# float32, or int32 where a buffer holds that.
Array = NDArray[Any]

rounded = lifted(rounded_array)

# What a place holds that nothing was written to: integers have no NaN.
_UNWRITTEN = {"float32": np.nan, "int32": -0x21524111}

# What a function is called in the text of a translated kernel: this and its name.
_FUNCTION = "f_"


@dataclass(frozen=True)
class Interpretation:
    """What a run gave: the output tensors in parameter order, in storage dtype, and the seconds it took; and how wrong
    rounding may make each element, if that was asked for."""

    outputs: tuple[NDArray[Any], ...]
    seconds: float
    errors: tuple[NDArray[np.float32], ...] = ()


def storage(dtype: str) -> Any:
    """The NumPy dtype of what the chip holds of a kernel dtype. Raises Unsupported where no tile format does."""
    if dtype not in FORMAT_OF_DTYPE:
        raise Unsupported("L009", f"{dtype} has no tile format", hint=f"use one of {', '.join(FORMAT_OF_DTYPE)}")
    bfloat16 = FORMAT_OF_DTYPE[dtype] == "Float16_b" and dtype != "uint8"
    return np.dtype(ml_dtypes.bfloat16 if bfloat16 else dtype)


def _in_format(array: Array, data_format: str | None) -> Array:
    """Numbers as a tile format holds them that is not their dtype's; as they are in others, or without one."""
    return rounded_in_groups(array) if data_format == BLOCK_FLOAT else array


def _error_in_format(array: Uncertain, data_format: str | None) -> NDArray[np.float32]:
    """The errors of what a tensor holds: numbers of a group with one exponent are as wrong as the largest of them."""
    if data_format != BLOCK_FLOAT:
        return array.error
    sizes = np.abs(array.value).reshape(-1, GROUP).max(axis=1, keepdims=True)
    return np.hypot(array.error, np.broadcast_to(sizes * array.unit, (len(sizes), GROUP)).reshape(array.shape))


def _held(dtype: str) -> TileKind:
    """In which dtype the interpreter holds what a kernel dtype stands for."""
    return "int32" if dtype == "int32" else "float32"


def _unwritten(shape: Sequence[int], dtype: str) -> Array:
    return np.full(shape, _UNWRITTEN[_held(dtype)], _held(dtype))


def interpret(
    functions: dict[str, Any], plan: Plan, inputs: Sequence[NDArray[Any]], roles: dict[str, str], *,
    turn_limit: int | None = None, time_limit_seconds: float = math.inf, cancel: threading.Event | None = None,
    unit: float | None = None,
) -> Interpretation:  # fmt: skip
    """Run a program. `inputs` are the input tensors in parameter order, `roles` says which tensors are which.

    With a `unit` of rounding, the error of each operation relative to its result, the errors of the outputs are found
    as well; only a program that has no tiles yet has them.

    `turn_limit` bounds the turns that the kernels of one core get; setting `cancel` ends the run before the next
    statement, as `time_limit_seconds` do. Raises KernelError for reads and writes outside of buffers, VerifyError for
    protocol faults and deadlocks, with the kernel's line, BackendError at the time limit, and Cancelled.
    """
    start = time.perf_counter()
    tensors = _tensors(functions, plan)
    names = sorted(tensors, key=lambda name: _position(name, plan, functions))
    # A tensor that no output depends on has left the functions, and keeps its place among the inputs.
    read = [name for name, role in roles.items() if role in ("input", "inout")]
    given = dict(zip(sorted(read, key=lambda name: _position(name, plan, functions)), inputs, strict=True))
    arrays: dict[str, Any] = {}
    formats = {layout.name: layout.data_format for layout in plan.layouts}
    for name in names:
        dtype, shape = tensors[name]
        if name in given:
            arrays[name] = _in_format(rounded(given[name], dtype).reshape(shape), formats.get(name))
        else:
            arrays[name] = _unwritten(shape, dtype)
    tiled = _is_tiled(functions)
    if tiled:
        # Nobody may lean on what lies in the padding of an output.
        arrays = {
            name: array.reshape(-1, array.shape[-1]) if plan.layout(name).page == "row"
            else tilize(array, 0 if roles[name] == "input" else _UNWRITTEN[str(array.dtype)])
            for name, array in arrays.items()
        }  # fmt: skip
    mode = _mode(functions)
    if unit is not None:
        assert not tiled, "errors are those of a kernel before its lowering"
        arrays = {name: Uncertain.stored(array, unit) for name, array in arrays.items()}
    programs = {role: _translate(role, function, mode) for role, function in functions.items()}
    # From D5 on the values share one DST buffer, which is used in sections.
    managed = any(name.startswith("tt.tile_regs_") for name in _names(functions))
    partition = plan.partition
    cores: Sequence[CoreWork | None] = (
        partition.cores if partition is not None and _has_core_values(functions) else [None]
    )
    limits = _Limits(start, time_limit_seconds, cancel, len(cores))
    for core in cores:
        machine = _Machine(
            plan,
            arrays,
            {n: d for n, (d, _) in tensors.items()},
            core,
            mode,
            turn_limit,
            managed,
            tiled,
            limits,
            unit,
        )
        # Infinities and NaN are results like any other.
        with np.errstate(all="ignore"):
            machine.run(programs)
        limits.ended += 1
    outputs: list[NDArray[Any]] = []
    errors: list[NDArray[np.float32]] = []
    for name in names:
        if roles[name] in ("output", "inout"):
            if unit is not None:
                errors.append(_error_in_format(arrays[name], formats.get(name)))
                arrays[name] = value_of(arrays[name])
            dtype, shape = tensors[name]
            tiles = tiled and plan.layout(name).page == "tile"
            array = untilize(arrays[name], shape) if tiles else arrays[name].reshape(shape)
            array = _in_format(array, formats.get(name))
            held = ml_dtypes.bfloat16 if formats.get(name) == BLOCK_FLOAT else storage(dtype)
            outputs.append(as_uint8(array) if dtype == "uint8" else array.astype(held))
    return Interpretation(tuple(outputs), time.perf_counter() - start, tuple(errors))


def runs_alike(program: Program, other: Program) -> bool:
    """Whether running both is the same run: the same functions, and the same facts of the plan, of those that a run
    looks at. Most passes that decide facts leave it so."""
    facts = (_facts(program.functions, one.plan) for one in (program, other))
    return program.shares_functions(other) and next(facts) == next(facts)


def _facts(functions: dict[str, Any], plan: Plan) -> tuple[Any, ...]:
    positions = {name: _position(name, plan, functions) for name in _tensors(functions, plan)}
    core_values = plan.partition if _has_core_values(functions) else None
    # Before there are tiles and kernels nothing else is looked at.
    machine = (plan.layouts, plan.buffers, plan.compute) if len(functions) > 1 or _is_tiled(functions) else ()
    formats = [layout.name for layout in plan.layouts if layout.data_format == BLOCK_FLOAT]
    return positions, plan.size_values, core_values, machine, formats


def tilize(array: Array, padding: float) -> Array:
    """(..., H, W) as tiles (pages, 32, 32), row-major, each matrix padded to whole tiles; a vector is one row."""
    height, width = (1, *array.shape)[-2:]
    rows, columns = -(-height // 32), -(-width // 32)
    padded = np.full((array.size // (height * width), rows * 32, columns * 32), padding, array.dtype)
    padded[:, :height, :width] = array.reshape(-1, height, width)
    return np.ascontiguousarray(padded.reshape(-1, rows, 32, columns, 32).transpose(0, 1, 3, 2, 4).reshape(-1, 32, 32))


def untilize(tiles: Array, shape: tuple[int, ...]) -> Array:
    """The tensor of `shape` that :func:`tilize` made the tiles from."""
    height, width = (1, *shape)[-2:]
    rows, columns = -(-height // 32), -(-width // 32)
    padded = tiles.reshape(-1, rows, columns, 32, 32).transpose(0, 1, 3, 2, 4).reshape(-1, rows * 32, columns * 32)
    return padded[:, :height, :width].reshape(shape)


def _tensors(functions: dict[str, Any], plan: Plan) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {
        str(p.name): (dtype_of(p), bound_shape(p, plan.size_values))
        for function in functions.values()
        for p in function.params
        if is_buffer(p)
    }


def _position(name: str, plan: Plan, functions: dict[str, Any]) -> int:
    for layout in plan.layouts:
        if layout.name == name:
            return layout.position
    return [str(p.name) for p in next(iter(functions.values())).params].index(name)


def _names(functions: dict[str, Any]) -> set[str]:
    return {op_name(s) for function in functions.values() for s in walk(function.body)}


def _is_tiled(functions: dict[str, Any]) -> bool:
    return any(name.startswith("tt.") for name in _names(functions))


def _has_core_values(functions: dict[str, Any]) -> bool:
    return any(
        isinstance(s, tirx.Bind) and isinstance(s.value, ir.Call) and str(s.value.op.name) == "tt.core_value"
        for function in functions.values()
        for s in walk(function.body)
    )


def _mode(functions: dict[str, Any]) -> str:
    if len(functions) == 1:
        return "sequential"
    return "queues" if {"tt.cb_push_back", "tt.cb_pop_front"} & _names(functions) else "channels"


# Translation


@dataclass(frozen=True)
class _Translated:
    role: str
    start: Callable[[Any], Generator[None, None, None]]


@dataclass
class _Lines:
    """The text of a function as a Python generator: its lines, the names of variables, and what its constants are."""

    role: str
    lines: list[str] = field(default_factory=list[str])
    values: dict[Any, str] = field(default_factory=dict[Any, str])
    constants: list[Any] = field(default_factory=list[Any])

    def constant(self, value: Any) -> str:
        self.constants.append(value)
        return f"K{len(self.constants) - 1}"

    def name(self, variable: Any) -> str:
        if variable not in self.values:
            self.values[variable] = f"v{len(self.values)}"
        return self.values[variable]

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def reach(self, place: Place, depth: int) -> None:
        self.emit(depth, f"m.reach({self.constant(place)})")

    def operation(self, form: Form, shown: Sequence[str], place: Place, depth: int) -> None:
        """An operation of the table, whose arguments have these texts."""
        op, given = form.op, ", ".join(shown)
        self.reach(place, depth)
        if form.phase:
            self.emit(depth, f"m.initialise({self.constant(form)}, [{given}])")
        elif op.engine == "block":
            self.emit(depth, f"m.convert_front({self.constant(op)}, {given})")
        elif op.meaning is not None:
            self.emit(depth, f"m.compute({self.constant(op)}, {given})")
        elif op.waits:
            self.emit(depth, f"while not m.{op.name}('{self.role}', {given}):")
            self.emit(depth + 1, "yield")
            self.reach(place, depth + 1)
        else:
            self.emit(depth, f"m.{op.name}({given})")


@dataclass
class _KernelWriter(_Lines):
    """Writes a kernel whose indices are words, as in the C++."""

    words: Words = field(default_factory=Words)

    def body(self, body: Body, depth: int) -> None:
        if not body:
            self.emit(depth, "pass")
        for statement in body:
            self.statement(statement, depth)

    def statement(self, statement: Statement, depth: int) -> None:
        place = statement.place
        match statement:
            case Allocation(_, buffer, shape):
                self.emit(depth, f"m.allocate('{buffer.name}', '{buffer.scope}', '{buffer.dtype}', {shape})")
            case Bind():
                self.reach(place, depth)
                self.emit(depth, f"{self.name(statement.variable)} = {self.bound(statement)}")
            case Branch():
                self.emit(depth, f"if {self.word(self.words.condition(statement.condition, place))}:")
                self.body(statement.then, depth + 1)
                if statement.has_else:
                    self.emit(depth, "else:")
                    self.body(statement.otherwise, depth + 1)
            case Loop():
                low, end, _ = self.words.loop(statement)
                self.emit(depth, f"for {self.name(statement.variable)} in range({self.word(low)}, {self.word(end)}):")
                self.reach(place, depth + 1)
                self.body(statement.body, depth + 1)
            case Call():
                self.operation(statement.form, self.arguments(statement), place, depth)
            case Store():
                raise _unknown(f"a store to {statement.tensor}", place)
            case _:
                assert_never(statement)

    def word(self, word: Word) -> str:
        return python(word, self.name)

    def bound(self, bind: Bind) -> str:
        word, _ = self.words.bind(bind)
        match bind.value:
            case CoreValue(name):
                return f"m.core_value('{name}')"
            case CoreItem(_, position):
                return f"m.core_item({self.word(self.words.unsigned(position, bind.place))})"
            case _:
                assert word is not None
                return self.word(word)

    def arguments(self, call: Call) -> list[str]:
        shown: list[str] = []
        for operand in call.form.operands:
            name = operand.name
            if name in call.buffers:
                shown.append(f"'{call.buffers[name].name}'")
            match call.values.get(name):
                case None:
                    continue
                case float(value):
                    shown.append(f"np.float32({value!r})" if math.isfinite(value) else f"np.float32('{value}')")
                case value if operand.kind == "float":
                    shown.append(self.word(self.words.signed(value, call.place)))
                case int(value):
                    shown.append(str(value))
                case value:
                    shown.append(self.word(self.words.unsigned(value, call.place)))
        return shown


@dataclass
class _Writer(_Lines):
    """Writes a function of TIR, whose indices are Python's integers."""

    shared: dict[Any, str] = field(default_factory=dict[Any, str])

    def share(self, e: Any, depth: int) -> None:
        """Give names to the parts that an expression holds more than once."""
        self.shared.clear()
        uses: dict[Any, int] = {}
        nodes = nodes_of(e)
        for one in nodes:
            for part in parts_of(one):
                uses[part] = uses.get(part, 0) + 1
        for one in nodes:
            if uses.get(one, 0) > 1 and parts_of(one):
                text = self.expression(one)
                self.shared[one] = f"s{len(self.shared)}"
                self.emit(depth, f"{self.shared[one]} = {text}")

    def expression(self, e: Any) -> str:
        if e in self.shared:
            return self.shared[e]
        if isinstance(e, tirx.Mod) or (isinstance(e, tirx.Div) and "float" not in str(e.ty.dtype)):
            word = "quotient" if isinstance(e, tirx.Div) else "rest"
            return f"truncated_{word}({self.expression(e.a)}, {self.divisor(e.b)})"
        binary = {
            tirx.Add: "+", tirx.Sub: "-", tirx.Mul: "*", tirx.FloorDiv: "//", tirx.FloorMod: "%", tirx.Div: "/",
            tirx.LT: "<", tirx.LE: "<=", tirx.GT: ">", tirx.GE: ">=", tirx.EQ: "==", tirx.NE: "!=", tirx.And: "&",
            tirx.Or: "|", tirx.BitwiseAnd: "&", tirx.BitwiseOr: "|", tirx.BitwiseXor: "^",
        }.get(type(e))  # fmt: skip
        if binary:
            right = self.divisor(e.b) if binary in ("//", "%") else self.expression(e.b)
            return f"({self.expression(e.a)} {binary} {right})"
        match e:
            case tirx.IntImm():
                # Whole numbers are int32 where nothing says otherwise; others wrap around in their own width.
                dtype = str(e.ty.dtype)
                return f"np.{dtype}({int(e.value)})" if dtype in SMALL_INTEGERS else str(int(e.value))
            case tirx.FloatImm():
                return f"np.float32({float(e.value)!r})" if np.isfinite(float(e.value)) else f"np.float32('{e.value}')"
            case ir.Var():
                return self.name(e)
            case tirx.Max() | tirx.Min():
                word = "maximum" if isinstance(e, tirx.Max) else "minimum"
                return f"np.{word}({self.expression(e.a)}, {self.expression(e.b)})"
            case tirx.Cast():
                dtype = str(e.ty.dtype)
                inner = self.expression(e.value)
                if "float" in dtype or dtype == "int32":
                    return f"rounded({inner}, '{dtype}')"
                if dtype in WHOLE:
                    return f"np.asarray({inner}).astype('int64')"
                # Of numbers the lowest bits of the integer.
                inner = f"rounded({inner}, 'int32')" if dtype in SMALL_INTEGERS else inner
                return f"converted({inner}, '{dtype}')"
            case tirx.Not():
                return f"np.logical_not({self.expression(e.a)})"
            case tirx.BitwiseNot():
                return f"np.invert({self.expression(e.a)})"
            case tirx.LShift() | tirx.RShift():
                word = "shifted_left" if isinstance(e, tirx.LShift) else "shifted_right"
                return f"{word}({self.expression(e.a)}, {self.expression(e.b)})"
            case tirx.Select():
                return self.choice(e, (e.condition, e.true_value, e.false_value))
            case ir.Call() if str(e.op.name).rpartition(".")[2] == "if_then_else":
                return self.choice(e, e.args)
            case ir.TensorLoad():
                indices = ", ".join(self.expression(index) for index in e.indices)
                return f"m.load('{e.source.name}', ({indices},))"
            case ir.Call() if (name := str(e.op.name).rpartition(".")[2]) in FUNCTIONS:
                return f"{_FUNCTION}{name}({', '.join(self.expression(a) for a in e.args)})"
            case ir.Call() if str(e.op.name) == "tt.core_value":
                return f"m.core_value('{e.args[0].value}')"
            case ir.Call() if str(e.op.name) == "tt.core_item":
                return f"m.core_item({self.expression(e.args[1])})"
            case _:
                what = str(e.op.name) if isinstance(e, ir.Call) else type(e).__name__
                raise _unknown(what, e)

    def divisor(self, e: Any) -> str:
        """Both sides of a choice are computed here: where it does not come to a division, anything will do for 0."""
        text = self.expression(e)
        return text if isinstance(e, tirx.IntImm) else f"np.where({text}, {text}, 1)"

    def choice(self, e: Any, parts: Sequence[Any]) -> str:
        text = f"np.where({', '.join(self.expression(part) for part in parts)})"
        # Of two numbers of Python NumPy makes int64.
        dtype = str(e.ty.dtype)
        return f"converted({text}, '{dtype}')" if dtype == "int32" or dtype in SMALL_INTEGERS else text

    def body(self, body: Any, depth: int) -> None:
        parts = statements(body)
        if not parts:
            self.emit(depth, "pass")
        for part in parts:
            self.statement(part, depth)

    def statement(self, s: Any, depth: int) -> None:
        match s:
            case tirx.AllocBuffer():
                b = s.buffer
                self.emit(depth, f"m.allocate('{b.name}', '{scope_of(b)}', '{dtype_of(b)}', {shape_of(b)})")
            case tirx.Bind():
                self.reach(Place(s), depth)
                self.share(s.value, depth)
                self.emit(depth, f"{self.name(s.var)} = {self.expression(s.value)}")
            case tirx.IfThenElse():
                self.emit(depth, f"if {self.expression(s.condition)}:")
                self.body(s.then_case, depth + 1)
                if s.else_case is not None:
                    self.emit(depth, "else:")
                    self.body(s.else_case, depth + 1)
            case tirx.For() if s.kind == tirx.ForKind.PARALLEL:
                self.parallel(s, depth)
            case tirx.For():
                low = self.expression(s.min)
                end = f"{low} + {self.expression(s.extent)}"
                self.emit(depth, f"for {self.name(s.loop_var)} in range({low}, {end}):")
                self.reach(Place(s), depth + 1)
                self.body(s.body, depth + 1)
            case tirx.BufferStore():
                self.store(s, depth)
            case tirx.Evaluate():
                self.evaluate(s, depth)
            case _:
                raise _unknown(type(s).__name__, s)

    def store(self, s: Any, depth: int) -> None:
        indices = ", ".join(self.expression(index) for index in s.indices)
        self.reach(Place(s), depth)
        self.share(s.value, depth)
        self.emit(depth, f"m.store('{s.buffer.name}', ({indices},), {self.expression(s.value)})")

    def parallel(self, s: Any, depth: int) -> None:
        loops: list[Any] = []
        while isinstance(s, tirx.For) and s.kind == tirx.ForKind.PARALLEL:
            loops.append(s)
            s = s.body
        for axis, one in enumerate(loops):
            shape = ", ".join("-1" if other == axis else "1" for other in range(len(loops)))
            low, extent = self.expression(one.min), self.expression(one.extent)
            self.emit(
                depth,
                f"{self.name(one.loop_var)} = np.arange({low}, {low} + {extent}, dtype=np.int32).reshape(({shape},))",
            )
        self.body(s, depth)

    def region(self, region: Any) -> str:
        parts = ", ".join(f"({self.expression(part.min)}, {self.expression(part.extent)})" for part in region.region)
        return f"('{region.source.name}', ({parts},))"

    def evaluate(self, s: Any, depth: int) -> None:
        name, values = op_name(s), arguments(s)
        if name in FORMS:
            shown = [f"'{v.name}'" if is_buffer(v) else self.expression(v) for v in values]
            self.operation(FORMS[name], shown, Place(s), depth)
            return
        if not name.startswith("tl.") or not hasattr(_Machine, name[3:]):
            raise _unknown(name if name.startswith("tt.") else f"T.{name[3:]}", s)
        self.reach(Place(s), depth)
        shown = [self.region(v) if isinstance(v, ir.TensorRegion) else self.expression(v) for v in values]
        flags = {k: attribute(s, k) for k in ("transpose_A", "transpose_B", "clear_accum", "transpose")}
        self.emit(depth, f"m.{name[3:]}({', '.join(shown)}, {self.constant(flags)})")


@lifted
def _converted(values: Any, dtype: str) -> Array:
    return np.asarray(values).astype(dtype)


def _unknown(what: str, at: Any) -> Unsupported:
    return Unsupported(
        "L001",
        f"the interpreter does not know {what}",
        hint="no rule lowers it either: the error of the exploration, ex.error, tells what to write instead",
        span=at.span if isinstance(at, Place) else span_of(at),
    )


def _translate(role: str, function: Any, mode: str) -> _Translated:
    sizes = size_variables(function)
    for parameter in function.params:
        if not is_buffer(parameter) and not any(parameter.same_as(size) for size in sizes):
            raise _unknown(f"the value of the parameter {parameter.name}", parameter)
    writer: _Writer | _KernelWriter
    if mode == "queues":
        kernel = Reader().read(role, function)
        writer = _KernelWriter(role, words=Words(kernel.sizes, kernel.blocks))
        for size in kernel.sizes:
            writer.emit(1, f"{writer.name(size)} = m.plan.size_values['{size.name}']")
        writer.body(kernel.body, 1)
    else:
        writer = _Writer(role)
        for size in sizes:
            writer.emit(1, f"{writer.name(size)} = m.plan.size_values['{size.name}']")
        writer.body(function.body, 1)
    text = "\n".join(["def kernel(m):", *writer.lines, "    return", "    yield"])
    scope: dict[str, Any] = {
        "np": np, "rounded": rounded, "converted": _converted, "shifted_left": lifted(shifted_left),
        "shifted_right": lifted(shifted_right),
        **{f"{_FUNCTION}{name}": lifted(meaning) for name, meaning in FUNCTIONS.items()},
        **{name: lifted(meaning) for name, meaning in PYTHON_FUNCTIONS.items()},
    }  # fmt: skip
    scope |= {f"K{index}": value for index, value in enumerate(writer.constants)}
    exec(compile(text, f"<{role} in the interpreter>", "exec"), scope)
    return _Translated(role, scope["kernel"])


# The machine


@dataclass
class _Queue:
    """A circular buffer: `pages` tiles, the positions where tiles are read and written next, and counts."""

    name: str
    pages: int
    dtype: str
    tiles: Array
    front: int = 0
    back: int = 0
    filled: int = 0
    reserved: int = 0
    waited: int = 0
    unread: bool = False
    unsent: bool = False
    shard_of: str = ""


@dataclass
class _Limits:
    """What ends a run before its time: `seconds` from `start` on, or `cancel`. `ended` of its `cores` have ended."""

    start: float
    seconds: float
    cancel: threading.Event | None
    cores: int
    ended: int = 0

    def check(self, core: CoreWork | None, place: Place) -> None:
        """Raises Cancelled, or BackendError where the time is over."""
        refuse_cancelled(self.cancel)
        if time.perf_counter() - self.start > self.seconds:
            where = "it was at this line"
            if core is not None:
                where = f"core ({core.x}, {core.y}) was at this line, {self.ended} of {self.cores} cores had ended"
            raise BackendError(
                "B003",
                f"the program did not end within the time limit of {self.seconds:g} seconds: {where}",
                hint="raise the time limit, run smaller sizes, or run the emulator, which is faster",
                span=place.span,
            )


class _Machine:
    """One core: its buffers, and the operations that the translated kernels call."""

    def __init__(
        self, plan: Plan, tensors: dict[str, Array], dtypes: dict[str, str], core: CoreWork | None, mode: str,
        turn_limit: int | None, managed: bool, tiled: bool, limits: _Limits, unit: float | None,
    ) -> None:  # fmt: skip
        self.plan, self.tensors, self.dtypes, self.core, self.mode = plan, tensors, dtypes, core, mode
        self.formats = {buffer.name: buffer.data_format for buffer in plan.buffers}
        self.turn_limit = turn_limit
        self.limits = limits
        self.unit = unit
        self.arrays: dict[str, Array] = {}
        # What tiles of DST hold, by array and index: nothing is known of those that were not touched.
        self.kinds: dict[tuple[str, int], TileKind] = {}
        self.queues: dict[str, _Queue] = {}
        self.blocks: dict[str, deque[Array]] = {}
        self.current: dict[str, Array] = {}
        self.at: Place | None = None
        self.role = ""
        self.waiting: dict[str, tuple[str, str, int, int, int, Place | None]] = {}
        self.managed, self.tiled = managed, tiled
        self.section = ""
        self.l1_accumulate = False
        self.engine: dict[str, Any] = {}
        self.started = False
        self.unwritten = False
        self.wide = plan.compute is None or plan.compute.fp32_dest_acc_en

    # Running

    def run(self, programs: dict[str, _Translated]) -> None:
        alive = {role: one.start(self) for role, one in programs.items()}
        turns = 0
        while alive:
            progress = False
            for role in list(alive):
                self.role = role
                self.waiting.pop(role, None)
                before = self.progress_mark()
                try:
                    next(alive[role])
                except StopIteration:
                    self._finished(role)
                    del alive[role]
                    progress = True
                else:
                    progress = progress or self.progress_mark() != before
            turns += 1
            if alive and not progress:
                raise self._deadlock(alive, programs)
            if self.turn_limit is not None and turns > self.turn_limit:
                raise VerifyError("V009", f"the kernels did not end within {self.turn_limit} turns", span=self.span)
        self._balanced()

    @property
    def span(self) -> Span | None:
        return None if self.at is None else self.at.span

    def reach(self, place: Place) -> None:
        """Come to a statement: what goes wrong from here on goes wrong there."""
        self.at = place
        self.limits.check(self.core, place)

    def progress_mark(self) -> tuple[int, ...]:
        queues = self.queues.values()
        return (
            sum(q.front + q.back + q.filled * 1009 + q.reserved * 31 + q.waited * 7 for q in queues),
            sum(len(blocks) for blocks in self.blocks.values()),
            self.moved,
        )

    moved = 0

    def _finished(self, role: str) -> None:
        if role == "writer" and self.unwritten:
            raise self.fault("V012", "the writer ends before its writes have arrived", "end with noc_write_barrier")

    def _shard(self, tensor: str) -> list[tuple[int, int]]:
        """The places of this core's shard of a tensor that hold a page, and the page."""
        assert self.core is not None, "a shard is some core's"
        pages = self.plan.layout(tensor).shard_pages((self.core.x, self.core.y))
        return [(slot, page) for slot, page in enumerate(pages) if page is not None]

    def _balanced(self) -> None:
        for queue in self.queues.values():
            if queue.shard_of and self.plan.layout(queue.shard_of).role != "input":
                for slot, page in self._shard(queue.shard_of):
                    self._set_page(queue.shard_of, page, queue.tiles[slot])
            if queue.filled:
                raise self.fault(
                    "V001",
                    f"{queue.name} still holds {queue.filled} tiles when all kernels have ended",
                    "pop as many tiles as are pushed",
                )

    def fault(self, code: str, message: str, hint: str) -> VerifyError:
        where = f" on core ({self.core.x}, {self.core.y})" if self.core is not None else ""
        kernel = f"{self.role}{where}: " if self.mode != "sequential" else ""
        return VerifyError(code, f"{kernel}{message}", hint=hint, span=self.span)

    def _deadlock(self, alive: dict[str, Any], programs: dict[str, Any]) -> VerifyError:
        lines: list[str] = []
        hint, span = "", None
        for role in alive:
            cb, what, need, have, capacity, at = self.waiting[role]
            line = at.span if at is not None else None
            lines.append(
                f"  the {role} waits to {what} {need} tiles of {cb}, has {have} of {capacity} "
                f"(line {line.line if line else '?'})"
            )
            producer = self._producer(cb)
            if what == "reserve" and not hint:
                hint = f"give {cb} more pages (stages), or let its consumer pop earlier"
                span = line
            elif what == "receive" and producer not in alive:
                hint = f"the {producer} has ended without pushing {need} more tiles of {cb}: a push is missing"
                span = line
        where = f"core ({self.core.x}, {self.core.y})" if self.core is not None else "the core"
        return VerifyError(
            "V009", f"deadlock on {where}:\n" + "\n".join(lines), hint=hint or "a push is missing", span=span
        )

    def _producer(self, cb: str) -> str:
        return next((b.producer for b in self.plan.buffers if b.name == cb), "")

    def core_value(self, name: str) -> int:
        assert self.core is not None
        return self.core.values[name]

    def core_item(self, position: int) -> int:
        assert self.core is not None
        if position >= len(self.core.listed):
            raise self.fault(
                "V040", f"work item {position} of a core that has {len(self.core.listed)}", "check the work count"
            )
        return self.core.listed[position]

    # Buffers

    def _stored(self, array: Array) -> Any:
        return array if self.unit is None else Uncertain.stored(array, self.unit)

    def allocate(self, name: str, scope: str, dtype: str, shape: tuple[int, ...]) -> None:
        if scope == "tt.cb" and self.mode != "sequential":
            if name not in self.queues and name not in self.blocks:
                plan = self.plan.buffer(name)
                if self.mode == "queues":
                    tiles = _unwritten((plan.pages, 32, 32), dtype)
                    self.queues[name] = _Queue(name, plan.pages, dtype, tiles, shard_of=plan.shard_of)
                    if plan.shard_of and self.plan.layout(plan.shard_of).role == "input":
                        for slot, page in self._shard(plan.shard_of):
                            tiles[slot] = self._page(plan.shard_of, page)
                else:
                    self.blocks[name] = deque()
                    self.current[name] = _unwritten(shape, dtype)
            self.dtypes = self.dtypes | {name: dtype}
            return
        # The tiles of DST hold numbers or the bits of integers, as the operations leave them.
        in_dst = self.tiled and scope == "tt.dst"
        array = _unwritten(shape, "float32" if in_dst else dtype)
        self.arrays[name] = self._stored(array)
        self.dtypes = self.dtypes | {name: dtype}

    def _array(self, name: str) -> Array:
        return self.arrays[name] if name in self.arrays else self.tensors[name]

    def load(self, name: str, indices: tuple[Any, ...]) -> Any:
        array, indices = self._array(name), tuple(map(value_of, indices))
        self._check_indices(name, array, indices)
        return array[indices].astype(np.uint8) if self.dtypes[name] == "uint8" else array[indices]

    def store(self, name: str, indices: tuple[Any, ...], value: Any) -> None:
        array, indices = self._array(name), tuple(map(value_of, indices))
        self._check_indices(name, array, indices)
        array[indices] = rounded(value, self.dtypes[name])

    def _check_indices(self, name: str, array: Array, indices: tuple[Any, ...]) -> None:
        for axis, (index, extent) in enumerate(zip(indices, array.shape, strict=True)):
            low, high = int(np.min(index)), int(np.max(index))
            if low < 0 or high >= extent:
                raise KernelError(
                    "K001",
                    f"{name} has {extent} elements along axis {axis}; "
                    f"index {high if high >= extent else low} is outside",
                    hint="check the index",
                    span=self.span,
                )

    def _view(self, region: tuple[str, tuple[tuple[int, int], ...]], rank: int = 1) -> Array:
        """The elements of a region, without its first axes of extent 1 as far as `rank` are left."""
        name, parts = region
        array = self._array(name)
        for axis, ((low, extent), length) in enumerate(zip(parts, array.shape, strict=True)):
            if low < 0 or low + extent > length:
                raise KernelError(
                    "K001",
                    f"{name} has {length} elements along axis {axis}; the region {low}:{low + extent} is outside",
                    hint="make the size a multiple of the block, or check the index",
                    span=self.span,
                )
        view = array[tuple(slice(low, low + extent) for low, extent in parts)]
        while view.ndim > rank and view.shape[0] == 1:
            view = view[0]
        return view

    # Kernel-level operations

    def copy(self, source: Any, target: Any, flags: dict[str, int]) -> None:
        """Copy a block. What lies outside of a tensor reads as zero, and is not stored."""
        values = self._padded(source) if source[0] in self.tensors else self._view(source)
        if flags["transpose"]:
            if values.ndim == 1:
                # A vector as a column: nothing else of the tiles is ever read.
                self._view(target, rank=2)[:, 0] = rounded(values, self.dtypes[target[0]])
                return
            values = values.T
        values = rounded(values, self.dtypes[target[0]])
        if target[0] not in self.tensors:
            into = self._view(target)
            into[...] = values.reshape(into.shape)
            return
        array, inside, part = self._inside(target)
        array[inside] = values.reshape([extent for _, extent in target[1]])[part]

    def _inside(self, region: Any) -> tuple[Array, tuple[slice, ...], tuple[slice, ...]]:
        """The part of a region inside of its tensor, as slices of the tensor and of the region."""
        name, parts = region
        array = self.tensors[name]
        inside: list[slice] = []
        part: list[slice] = []
        for (low, extent), length in zip(parts, array.shape, strict=True):
            first, end = min(max(low, 0), length), max(min(low + extent, length), 0)
            inside.append(slice(first, max(first, end)))
            part.append(slice(first - low, max(first, end) - low))
        return array, tuple(inside), tuple(part)

    def _padded(self, region: Any) -> Array:
        array, inside, part = self._inside(region)
        values = self._stored(np.zeros([extent for _, extent in region[1]], array.dtype))
        values[part] = array[inside]
        while values.ndim > 1 and values.shape[0] == 1:
            values = values[0]
        return values

    def fill(self, target: Any, value: Any, flags: dict[str, int]) -> None:
        self._view(target)[...] = rounded(value, self.dtypes[target[0]])

    def gemm(self, a: Any, b: Any, c: Any, flags: dict[str, int]) -> None:
        left, right, out = (self._view(part, rank=2) for part in (a, b, c))
        left = left.T if flags["transpose_A"] else left
        right = right.T if flags["transpose_B"] else right
        product = left @ right
        out[...] = rounded(product if flags["clear_accum"] else out + product, self.dtypes[c[0]])

    # Blocks

    def read_block(
        self, role: str, tensor: str, cb: str, page: int, rows: int, columns: int, stride: int, column_slots: int,
        row_slots: int, *guards: int,
    ) -> bool:  # fmt: skip
        exists = _existence(guards)

        def fill(block: Array) -> None:
            for r in range(rows):
                for c in range(columns):
                    tile = self._page(tensor, page + r * stride + c) if exists(r, c) else np.float32(0)
                    block[r * row_slots + c * column_slots] = tile

        return self._load_block(role, cb, fill)

    def read_strips(
        self, role: str, tensor: str, cb: str, page: int, stride: int, matrix_stride: int, row: int, column: int,
        rows: int, columns: int, unit: int, row_slots: int, column_slots: int, *guards: int,
    ) -> bool:  # fmt: skip
        exists, row_tiles = _existence(guards), self.plan.buffer(cb).row_tiles

        def fill(block: Array) -> None:
            block[...] = 0.0
            for r in range(0, rows, unit):
                for c in range(0, columns, FACE):
                    if exists(r, c):
                        strip = self._tensor_strip(tensor, page, stride, matrix_stride, row, column, r, c, unit)
                        if row_tiles:
                            first = _place_in_rows(r, c, row_tiles, row_slots, column_slots)
                            part = strip[0, : columns - c]
                            block.reshape(-1)[first : first + part.size] = part
                            continue
                        into, place = _strip(0, row_slots, 0, 0, 0, r, c, unit, column_slots)
                        block[into][place][:, : strip.shape[1]] = strip

        return self._load_block(role, cb, fill)

    def _load_block(self, role: str, cb: str, fill: Callable[[Array], None]) -> bool:
        plan = self.plan.buffer(cb)
        if self.mode != "channels":
            fill(self.arrays[cb])
            return True
        if len(self.blocks[cb]) >= plan.stages:
            return self._wait(role, cb, "reserve", plan.block_pages)
        block = _unwritten((plan.block_pages, 32, 32), self.dtypes[cb])
        fill(block)
        self.blocks[cb].append(block)
        self.moved += 1
        return True

    def write_block(
        self, role: str, cb: str, tensor: str, page: int, rows: int, columns: int, stride: int, *guards: int
    ) -> bool:
        block = self._stored_block(role, cb)
        if block is None:
            return False
        exists = _existence(guards)
        for r in range(rows):
            for c in range(columns):
                if exists(r, c):
                    self._set_page(tensor, page + r * stride + c, block[r * columns + c])
        return True

    def tilize(self, source: str, target: str) -> None:
        """A block of rows as tiles."""
        self._convert(OPS["tt.tilize_block"], source, target, self.plan.buffer(source).row_tiles)

    def untilize(self, source: str, target: str) -> None:
        """A block of tiles as rows."""
        self._convert(OPS["tt.pack_untilize_block"], source, target, self.plan.buffer(target).row_tiles)

    def _convert(self, op: Op, source: str, target: str, tiles: int) -> None:
        blocks = self.current if self.mode == "channels" else self.arrays
        assert op.meaning is not None
        for first in range(0, len(blocks[source]), tiles):
            made = op.meaning(blocks[source][first : first + tiles])
            blocks[target][first : first + tiles] = rounded(made, self.dtypes[target])

    def index_block(self, role: str, cb: str, axis: int) -> bool:
        """A tile of the row or column numbers of its elements."""
        tile = _index_tile(axis)
        if self.mode == "channels":
            if len(self.blocks[cb]) >= self.plan.buffer(cb).stages:
                return self._wait(role, cb, "reserve", 1)
            self.blocks[cb].append(tile[None].copy())
            self.moved += 1
        else:
            self.arrays[cb][0] = tile
        return True

    def write_index_tile(self, cb: str, slot: int, axis: int) -> None:
        self._put(cb, slot, _index_tile(axis))

    def write_strips(
        self, role: str, cb: str, tensor: str, page: int, stride: int, matrix_stride: int, row: int, column: int,
        rows: int, columns: int, unit: int, row_slots: int, column_slots: int, *guards: int,
    ) -> bool:  # fmt: skip
        block = self._stored_block(role, cb)
        if block is None:
            return False
        exists, row_tiles = _existence(guards), self.plan.buffer(cb).row_tiles
        for r in range(0, rows, unit):
            for c in range(0, columns, FACE):
                if exists(r, c):
                    strip = self._tensor_strip(tensor, page, stride, matrix_stride, row, column, r, c, unit)
                    if row_tiles:
                        first = _place_in_rows(r, c, row_tiles, row_slots, column_slots)
                        strip[0] = rounded(block.reshape(-1)[first : first + strip.shape[1]], self.dtypes[tensor])
                        continue
                    source, place = _strip(0, row_slots, 0, 0, 0, r, c, unit, column_slots)
                    strip[...] = rounded(block[source][place][:, : strip.shape[1]], self.dtypes[tensor])
        return True

    def _tensor_strip(
        self, tensor: str, page: int, stride: int, matrix_stride: int, row: int, column: int, r: int, c: int, unit: int
    ) -> Array:
        """The strip of a tensor, as a view, for row r and column c of a block; a row-major one's can end early."""
        if self.plan.layout(tensor).page == "row":
            number = page + r * matrix_stride + (row if matrix_stride else row + r) * stride
            return self._page(tensor, number)[None, column + c : column + c + FACE]
        number, inside = _strip(page, stride, matrix_stride, row, column, r, c, unit)
        return self._page(tensor, number)[inside]

    def _stored_block(self, role: str, cb: str) -> Array | None:
        """The block that the writer stores next; None where it has to wait for it."""
        if self.mode != "channels":
            return self.arrays[cb]
        if not self.blocks[cb]:
            self._wait(role, cb, "receive", self.plan.buffer(cb).block_pages)
            return None
        self.moved += 1
        return self.blocks[cb].popleft()

    def receive_block(self, role: str, cb: str, count: int) -> bool:
        if not self.blocks[cb]:
            return self._wait(role, cb, "receive", count)
        self.current[cb] = self.blocks[cb].popleft()
        self.moved += 1
        return True

    def send_block(self, role: str, cb: str, count: int) -> bool:
        if len(self.blocks[cb]) >= self.plan.buffer(cb).stages:
            return self._wait(role, cb, "reserve", count)
        self.blocks[cb].append(self.current[cb].copy())
        self.current[cb][...] = _UNWRITTEN[_held(self.dtypes[cb])]
        self.moved += 1
        return True

    def _wait(self, role: str, cb: str, what: str, need: int) -> bool:
        if self.mode == "queues":
            queue = self.queues[cb]
            have = queue.filled if what == "receive" else queue.pages - queue.filled
            self.waiting[role] = (cb, what, need, have, queue.pages, self.at)
        else:
            plan = self.plan.buffer(cb)
            have = len(self.blocks[cb]) * plan.block_pages
            have = have if what == "receive" else plan.pages - have
            self.waiting[role] = (cb, what, need, have, plan.pages, self.at)
        return False

    def _page(self, tensor: str, page: int) -> Array:
        self._check_page(tensor, page)
        return self.tensors[tensor][page]

    def _set_page(self, tensor: str, page: int, tile: Array) -> None:
        self._check_page(tensor, page)
        self.tensors[tensor][page] = rounded(tile, self.dtypes[tensor])

    def _check_page(self, tensor: str, page: int) -> None:
        pages = len(self.tensors[tensor])
        if not 0 <= page < pages:
            raise self.fault("V013", f"page {page} of {tensor}, which has {pages}", "check the index")

    # Circular buffers

    def cb_reserve_back(self, role: str, cb: str, count: int) -> bool:
        queue = self.queues[cb]
        if count > queue.pages:
            raise self.fault(
                "V007", f"{count} tiles of {cb} are reserved, which holds {queue.pages}", f"give {cb} more pages"
            )
        if queue.back + count > queue.pages:
            raise self.fault(
                "V008",
                f"reserving {count} tiles at {queue.back} of {cb} would straddle its end at {queue.pages}",
                "make the size a multiple of every push",
            )
        if queue.filled + count > queue.pages:
            return self._wait(role, cb, "reserve", count)
        queue.reserved = count
        return True

    def cb_push_back(self, cb: str, count: int) -> None:
        queue = self.queues[cb]
        if count > queue.reserved:
            raise self.fault(
                "V003", f"{count} tiles of {cb} are pushed, {queue.reserved} are reserved", "reserve them first"
            )
        if queue.unread:
            raise self.fault(
                "V011", f"{cb} is pushed before the reads into it have arrived", "put noc_read_barrier before it"
            )
        queue.back = (queue.back + count) % queue.pages
        queue.filled += count
        queue.reserved = 0

    def cb_wait_front(self, role: str, cb: str, count: int) -> bool:
        queue = self.queues[cb]
        if count > queue.pages:
            raise self.fault(
                "V007", f"{count} tiles of {cb} are waited for, which holds {queue.pages}", f"give {cb} more pages"
            )
        if queue.filled < count:
            return self._wait(role, cb, "receive", count)
        queue.waited = max(queue.waited, count)
        return True

    def cb_pop_front(self, cb: str, count: int) -> None:
        queue = self.queues[cb]
        if count > queue.waited:
            raise self.fault(
                "V004", f"{count} tiles of {cb} are popped, {queue.waited} were waited for", "wait for them first"
            )
        if queue.unsent:
            raise self.fault(
                "V012", f"{cb} is popped while it is still being written from", "put noc_writes_flushed before it"
            )
        for index in range(0 if queue.shard_of else count):
            queue.tiles[(queue.front + index) % queue.pages] = _UNWRITTEN[_held(queue.dtype)]
        queue.front = (queue.front + count) % queue.pages
        queue.filled -= count
        queue.waited -= count

    def noc_read_tile(self, tensor: str, page: int, cb: str, slot: int) -> None:
        self._put(cb, slot, self._page(tensor, page))
        self.queues[cb].unread = True

    def noc_write_tile(self, cb: str, slot: int, tensor: str, page: int) -> None:
        self._set_page(tensor, page, self._get(cb, slot))
        self.queues[cb].unsent = True
        self.unwritten = True

    def noc_read_part(
        self, tensor: str, page: int, offset: int, cb: str, slot: int, slot_offset: int, count: int
    ) -> None:  # fmt: skip
        element = DATA_FORMATS[self.formats[cb]].tile_bytes // 1024
        first, size = slot_offset // element, count // element
        self.queues[cb].unread = True
        if self.plan.buffer(cb).row_tiles:
            memory = self._rows_being_filled(cb, slot * 1024 + first, size)
            memory[...] = rounded(self._part(tensor, page, offset // element, size), self.dtypes[cb])
            return
        faces = _as_faces(self._tile_being_filled(cb, slot))
        faces[first : first + size] = self._part(tensor, page, offset // element, size)
        self._put(cb, slot, _from_faces(faces))

    def noc_write_part(
        self, cb: str, slot: int, slot_offset: int, tensor: str, page: int, offset: int, count: int
    ) -> None:  # fmt: skip
        element = DATA_FORMATS[self.formats[cb]].tile_bytes // 1024
        first, size = slot_offset // element, count // element
        self._part(tensor, page, offset // element, size)
        by_rows, array = self.plan.layout(tensor).page == "row", self.tensors[tensor][page]
        elements = array.copy() if by_rows else _as_faces(array)
        if self.plan.buffer(cb).row_tiles:
            given = self._rows_to_send(cb, slot * 1024 + first, size)
        else:
            given = _as_faces(self._get(cb, slot))[first : first + size]
        elements[offset // element : offset // element + size] = given
        self._set_page(tensor, page, elements if by_rows else _from_faces(elements))
        self.queues[cb].unsent = True
        self.unwritten = True

    def _part(self, tensor: str, page: int, first: int, size: int) -> Array:
        if self.plan.layout(tensor).page == "row":
            row = self._page(tensor, page)
            if first < 0 or first + size > row.size:
                raise self.fault(
                    "V013",
                    f"elements {first} to {first + size} of a row of {tensor}, which has {row.size}",
                    "check them",
                )
            return row[first : first + size]
        if first < 0 or first % 256 + size > 256 or first + size > 1024:
            raise self.fault(
                "V013", f"elements {first} to {first + size} of a page of {tensor}, which leave a face", "check them"
            )
        return _as_faces(self._page(tensor, page))[first : first + size]

    def _rows_being_filled(self, cb: str, first: int, size: int) -> Array:
        """Elements of memory from the place on that is filled next."""
        queue = self.queues[cb]
        if first < 0 or first + size > queue.reserved * 1024:
            raise self.fault(
                "V005",
                f"tile {(first + size - 1) // 1024} of {cb} is written, {queue.reserved} are reserved",
                "reserve more tiles",
            )
        return queue.tiles.reshape(-1)[queue.back * 1024 + first : queue.back * 1024 + first + size]

    def _rows_to_send(self, cb: str, first: int, size: int) -> Array:
        queue = self.queues[cb]
        if first < 0 or first + size > queue.waited * 1024:
            raise self.fault(
                "V005",
                f"tile {(first + size - 1) // 1024} of {cb} is read, {queue.waited} were waited for",
                "wait for more tiles",
            )
        return queue.tiles.reshape(-1)[queue.front * 1024 + first : queue.front * 1024 + first + size]

    def _tile_being_filled(self, cb: str, slot: int) -> Array:
        queue = self.queues[cb]
        if not 0 <= slot < queue.reserved:
            raise self.fault(
                "V005", f"tile {slot} of {cb} is written, {queue.reserved} are reserved", "reserve more tiles"
            )
        return queue.tiles[(queue.back + slot) % queue.pages]

    def noc_write_zeros(self, cb: str, slot: int) -> None:
        self._put(cb, slot, np.zeros((32, 32), np.float32))
        self.queues[cb].unread = True

    def noc_zeros_barrier(self) -> None:
        self.noc_read_barrier()

    def noc_read_barrier(self) -> None:
        for queue in self.queues.values():
            queue.unread = False

    def noc_writes_flushed(self) -> None:
        for queue in self.queues.values():
            queue.unsent = False

    def noc_write_barrier(self) -> None:
        self.noc_writes_flushed()
        self.unwritten = False

    def _get(self, cb: str, index: int) -> Array:
        if self.mode == "queues":
            queue = self.queues[cb]
            if not 0 <= index < queue.waited:
                raise self.fault(
                    "V005", f"tile {index} of {cb} is read, {queue.waited} were waited for", "wait for more tiles"
                )
            return queue.tiles[(queue.front + index) % queue.pages]
        return (self.current if self.mode == "channels" else self.arrays)[cb][index]

    def _rounded(self, cb: str, tile: Array) -> Array:
        """A tile as a circular buffer holds it."""
        return _in_format(rounded(tile, self.dtypes[cb]), self.formats.get(cb))

    def _put(self, cb: str, index: int, tile: Array) -> None:
        tile = self._rounded(cb, tile)
        if self.mode == "queues":
            queue = self.queues[cb]
            if not 0 <= index < queue.reserved:
                raise self.fault(
                    "V005", f"tile {index} of {cb} is written, {queue.reserved} are reserved", "reserve more tiles"
                )
            position = (queue.back + index) % queue.pages
            if self.l1_accumulate and self.role == "compute":
                tile = self._rounded(cb, queue.tiles[position] + tile)
            queue.tiles[position] = tile
            return
        (self.current if self.mode == "channels" else self.arrays)[cb][index] = tile

    # Compute

    def tile_regs_acquire(self) -> None:
        self._section("", "acquired")
        self.arrays["dst"][...] = 0.0
        self.kinds.clear()

    def tile_regs_commit(self) -> None:
        self._section("acquired", "committed")

    def tile_regs_wait(self) -> None:
        self._section("committed", "waited")

    def tile_regs_release(self) -> None:
        self._section("waited", "")
        self.arrays["dst"][...] = np.nan

    def _section(self, wanted: str, new: str) -> None:
        if self.section != wanted:
            raise self.fault(
                "V020",
                f"the DST section is {self.section or 'released'}, it should be {wanted or 'released'}",
                "the order is acquire, commit, wait, release",
            )
        self.section = new

    def convert_front(self, op: Op, source: str, target: str, tiles: int) -> None:
        """Rows at the front of a buffer to tiles, or tiles to rows: in DST sections of its own."""
        if self.started:
            self._check_engine(op, (source, target, tiles))
        if self.section:
            raise self.fault(
                "V021",
                f"{op.name} runs while DST is {self.section}, it should be released",
                "put it before tile_regs_acquire or after tile_regs_release",
            )
        assert op.meaning is not None
        made = op.meaning(np.stack([self._get(source, index) for index in range(tiles)]))
        for index, page in enumerate(made):
            self._put(target, index, page)

    def compute(self, op: Op, *values: Any) -> None:
        if self.started:
            self._check_engine(op, values)
        if op.name == "matmul_block":
            self._matmul_block(*values)
            return
        reads: list[Any] = []
        out: tuple[str, str, int] | None = None
        rest = iter(values)
        for operand in op.operands:
            value = next(rest)
            if operand.kind == "cb":
                if operand.access == "read":
                    reads.append((value, operand.name))
                else:
                    out = ("cb", value, 0)
            elif operand.kind == "tile":
                if out is not None and out[0] == "cb":
                    out = ("cb", out[1], value)
                else:
                    position = next(i for i, r in enumerate(reads) if isinstance(r, tuple) and r[1] == operand.of)
                    reads[position] = self._as_taken(op, self._get(reads[position][0], value), reads[position][0])
            elif operand.kind == "dst":
                index = next(rest)
                self._check_slot(op, value, index)
                if operand.access in ("read", "update"):
                    reads.append(self._in_dst(op, value, index))
                if operand.access in ("write", "update"):
                    out = ("dst", value, index)
            else:
                reads.append(np.float32(value) if operand.kind == "float" else int(value))
        assert op.meaning is not None
        assert out is not None
        result = op.meaning(*reads)
        kind, name, index = out
        if kind == "cb":
            wanted = _held(self.dtypes[name])
            if str(result.dtype) != wanted:
                raise self.fault(
                    "V045", f"{op.name} packs {result.dtype} to {name}, which holds {wanted}", "call a typecast before"
                )
            self._put(name, index, result)
            return
        if op.accumulates and self.section:
            result = self.arrays[name][index] + result
        integers = result.dtype == np.int32
        self.kinds[name, index] = "int32" if integers else "float32"
        self.arrays[name][index] = (
            result.view(np.float32) if integers else result if self.wide else rounded(result, "bfloat16")
        )

    def _in_dst(self, op: Op, name: str, index: int) -> Array:
        """A tile of DST as what it holds."""
        tile = self.arrays[name][index]
        known = self.kinds.get((name, index), op.takes)
        return self._as_taken(op, tile.view(np.int32) if known == "int32" else tile, f"slot {index} of DST")

    def _as_taken(self, op: Op, tile: Array, where: str) -> Array:
        if op.takes != "any" and str(tile.dtype) != op.takes:
            raise self.fault(
                "V045", f"{op.name} takes {op.takes}, {where} holds {tile.dtype}", "call a typecast before"
            )
        return tile

    def _check_slot(self, op: Op, buffer: str, index: int) -> None:
        tiles = len(self.arrays[buffer])
        if not 0 <= index < tiles:
            raise self.fault("V022", f"{op.name} uses slot {index} of DST, which has {tiles}", "use smaller sub-blocks")
        if self.managed:
            wanted = "waited" if op.engine == "pack" else "acquired"
            if self.section != wanted:
                raise self.fault(
                    "V021",
                    f"{op.name} runs while DST is {self.section or 'released'}, it should be {wanted}",
                    "acquire before computing; commit and wait before packing",
                )

    def _matmul_block(
        self, a: str, b: str, a_tile: int, b_tile: int, out: str, slot: int, transpose: int, columns: int, rows: int,
        depth: int,
    ) -> None:  # fmt: skip
        left = np.stack([self._get(a, a_tile + r * depth) for r in range(rows)])
        right = np.stack([self._get(b, b_tile + c) for c in range(columns)])
        self._check_slot(OPS["tt.matmul_block"], out, slot + rows * columns - 1)
        meaning = OPS["tt.matmul_block"].meaning
        assert meaning is not None
        total = self.arrays[out][slot : slot + rows * columns] + meaning(left, right, transpose)
        self.arrays[out][slot : slot + rows * columns] = total if self.wide else rounded(total, "bfloat16")
        self.kinds |= dict.fromkeys(((out, slot + tile) for tile in range(rows * columns)), "float32")

    def pack_l1_accumulate(self, enable: Any) -> None:
        self.l1_accumulate = bool(enable)

    # Engine state

    def _format(self, cb: str) -> tuple[str, bool]:
        plan = self.plan.buffer(cb)
        return plan.data_format, plan.unpack_to_dest

    def compute_startup(self, in0: str, in1: str, out: str) -> None:
        self.started = True
        self.engine = {"a": self._format(in0), "b": self._format(in1), "pack": self._format(out)}

    def compute_startup_matmul(self, in0: str, in1: str, out: str) -> None:
        self.compute_startup(in1, in0, out)

    def reconfig_source_a(self, old: str, new: str) -> None:
        self._reconfigure("a", old, new)

    def reconfig_source_b(self, old: str, new: str) -> None:
        self._reconfigure("b", old, new)

    def reconfig_pack(self, old: str, new: str) -> None:
        self._reconfigure("pack", old, new)

    def _reconfigure(self, part: str, old: str, new: str) -> None:
        if self.engine.get(part) != self._format(old):
            raise self.fault(
                "V032",
                f"the reconfiguration to {new} says that {old} is in force, which it is not",
                "name the buffer that is",
            )
        self.engine[part] = self._format(new)
        if part != "pack":
            self.engine.pop("fpu", None)

    def set_source_a(self, new: str) -> None:
        self.engine["a"] = self._format(new)
        self.engine.pop("fpu", None)

    def set_source_b(self, new: str) -> None:
        self.engine["b"] = self._format(new)
        self.engine.pop("fpu", None)

    def set_pack(self, new: str) -> None:
        self.engine["pack"] = self._format(new)

    def initialise(self, form: Form, values: list[Any]) -> None:
        op = form.op
        if form.phase == "uninit":
            self.engine.pop("fpu", None)
            return
        if op.engine == "sfpu":
            self.engine["sfpu"] = op.init
        else:
            numbers = tuple(int(value) for value in values if not isinstance(value, str))
            self.engine["fpu"] = (op.name, numbers)

    def _check_engine(self, op: Op, values: tuple[Any, ...]) -> None:
        given = _operand_values(op, values)
        for part, name in (("a", op.source_a), ("b", op.source_b), ("pack", op.packs)):
            if name and self.engine.get(part) != self._format(given[name]):
                what = "packer" if part == "pack" else f"unpacker (Src{part.upper()})"
                raise self.fault(
                    "V032",
                    f"{op.name}: the {what} is set to {self.engine.get(part)}, "
                    f"{given[name]} is {self._format(given[name])}",
                    "reconfigure the data format before it",
                )
        if op.init:
            engine = "sfpu" if op.engine == "sfpu" else "fpu"
            numbers = tuple(int(given[n]) for n in op.init_operands if not isinstance(given[n], str))
            wanted = op.init if engine == "sfpu" else (op.name, numbers)
            if self.engine.get(engine) != wanted:
                raise self.fault(
                    "V031", f"{op.name} runs under the init of {self.engine.get(engine)}", "put its own init before it"
                )


def _index_tile(axis: int) -> Array:
    numbers = np.arange(32, dtype=np.float32).reshape((-1, 1) if axis == 0 else (1, -1))
    return np.broadcast_to(numbers, (32, 32))


def _existence(guards: tuple[int, ...]) -> Callable[[int, int], bool]:
    """Whether a tile or strip of a block exists in the tensor, by its place in the block; see BlockRegion."""
    if not guards:
        return lambda r, c: True
    row, row_end, column, column_end, *condition = guards
    return lambda r, c: row + r < row_end and column + c < column_end and all(condition)


def _strip(
    page: int, stride: int, matrix_stride: int, row: int, column: int, r: int, c: int, unit: int, column_stride: int = 1
) -> tuple[int, tuple[slice, slice]]:
    """Page and place in it of the strip of a block that starts at its row r and column c."""
    # With a stride from matrix to matrix, each row of the block is the same row of another one.
    row_tile, first = divmod(row if matrix_stride else row + r, 32)
    column_tile, left = divmod(column + c, 32)
    number = page + r * matrix_stride + row_tile * stride + column_tile * column_stride
    return number, (slice(first, first + unit), slice(left, left + FACE))


def _place_in_rows(r: int, c: int, row_tiles: int, row_slots: int, column_slots: int) -> int:
    """Where an element of a block lies in a buffer of rows that are `row_tiles` tiles wide."""
    row_tile, row = divmod(r, 32)
    part, column = divmod(c, row_tiles * 32)
    slot = row_tile * row_slots + part * row_tiles * column_slots
    return slot * 1024 + row * row_tiles * 32 + column


def _as_faces(tile: Array) -> Array:
    """The 1024 elements of a tile in the order of memory: four faces, each row by row."""
    return tile.reshape(2, FACE, 2, FACE).transpose(0, 2, 1, 3).reshape(-1).copy()


def _from_faces(elements: Array) -> Array:
    return elements.reshape(2, 2, FACE, FACE).transpose(0, 2, 1, 3).reshape(32, 32)


def _operand_values(op: Op, values: tuple[Any, ...]) -> dict[str, Any]:
    rest = iter(values)
    found: dict[str, Any] = {}
    for operand in op.operands:
        found[operand.name] = next(rest)
        if operand.kind == "dst":
            found[operand.name] = next(rest)
    return found
