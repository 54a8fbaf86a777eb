"""Kernels as Python: each function is translated once, to a generator that yields what it waits for."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, assert_never

import numpy as np
from numpy.typing import ArrayLike
from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import Node, is_buffer, span_of
from ttexplore.ir.arithmetic.functions import FUNCTIONS, TO_WHOLE
from ttexplore.ir.arithmetic.index import WHOLE, CoreItem, CoreValue, Variable, is_binary
from ttexplore.ir.arithmetic.limited import condition_of, full_extents, is_limited
from ttexplore.ir.arithmetic.limited import value_of as stored_value
from ttexplore.ir.arithmetic.sizes import size_variables
from ttexplore.ir.arithmetic.uncertain import Elements, Uncertain, lifted, value_of
from ttexplore.ir.arithmetic.words import PYTHON_FUNCTIONS, Word, Words, python
from ttexplore.ir.build import (
    arguments,
    attribute,
    bound_form,
    constant,
    dtype_of,
    op_name,
    regions,
    runs,
    scope_of,
    sequence,
    shape_of,
    statements,
    text_of,
)
from ttexplore.ir.dag import nodes_of, parts_of
from ttexplore.ir.interpreter.arrays import Array, held, rounded, unrounded
from ttexplore.ir.interpreter.groups import GROUP_STATEMENTS
from ttexplore.ir.interpreter.machine import Core, Mode
from ttexplore.ir.interpreter.operations import operation
from ttexplore.ir.interpreter.scheduling import Kernel as Running
from ttexplore.ir.interpreter.statements import STATEMENTS, Flags
from ttexplore.ir.kernel import (
    Allocation,
    Bind,
    Body,
    Branch,
    Call,
    FunctionReader,
    Loop,
    SourceLocation,
    Statement,
    Store,
)  # fmt: skip
from ttexplore.ir.operations.atomics import ATOMICS, plain
from ttexplore.ir.operations.cut_loops import cut_to_blocks
from ttexplore.ir.operations.gathers import GATHERS, gathered_block
from ttexplore.ir.operations.groups import COUNTS
from ttexplore.ir.operations.quantified import Quantified, quantified_of
from ttexplore.ir.operations.reductions import reduction_of
from ttexplore.ir.operations.scans import scan_of
from ttexplore.ir.operations.scattered import turn_by_turn
from ttexplore.ir.operations.turns import stored_by_turns
from ttexplore.ir.rewrite import bodies
from ttexplore.ops import FORMS
from ttexplore.ops import language as tl
from ttexplore.ops.integers import SMALL_INTEGERS, shifted_left, shifted_right
from ttexplore.ops.op import CORE_ITEM, CORE_VALUE, UNWRITTEN, Form
from ttexplore.ops.scalars import READ_ANY
from ttexplore.ops.small import numpy_dtype, rounded_to
from ttexplore.plan import SMALL_WHOLES

Named = TypeVar("Named")
# What a function is called in the text of a translated kernel: this and its name.
_FUNCTION = "f_"


# A check runs what several steps share, and the kernel itself more than once.
@functools.lru_cache(maxsize=16)
def translate(role: str, function: tirx.PrimFunc, mode: Mode, *, rounds: bool = True) -> Callable[[Core], Running]:
    """What starts a function on a core. Where it does not `round`, casts between floating-point dtypes change nothing.
    Raises Unsupported for what the interpreter does not know."""
    sizes = size_variables(function)
    for parameter in function.params:
        if not is_buffer(parameter) and not any(parameter.same_as(size) for size in sizes):
            raise _unknown(f"the value of the parameter {parameter.name}", parameter)
    writer: TirWriter | _KernelWriter
    if mode == "queues":
        kernel = FunctionReader().read(role, function)
        writer = _KernelWriter(words=Words(kernel.sizes, kernel.blocks, kernel.bound_sizes))
        for size in kernel.sizes:
            writer.emit(1, f"{writer.name(size)} = core.plan.size_values['{size.name}']")
        writer.body(kernel.body, 1)
    else:
        writer = TirWriter()
        for size in sizes:
            writer.emit(1, f"{writer.name(size)} = core.plan.size_values['{size.name}']")
        writer.body(function.body, 1)
    text = "\n".join(["def kernel(core):", "    reach = core.where.reach", *writer.lines, "    return", "    yield"])
    return compiled(text, f"{role} in the interpreter", writer.constants, rounds=rounds)


def compiled(text: str, name: str, constants: Sequence[object], *, rounds: bool = True) -> Callable[..., Any]:
    """The function `kernel` of a text in which these are K0, K1, ..."""
    scope: dict[str, Any] = {
        "np": np, "rounded": rounded if rounds else _unrounded, "converted": _converted,
        "reinterpreted": _reinterpreted, "quantified": _quantified, "one_of": _one_of,
        "turns": _turns, "shifted_left": lifted(shifted_left), "shifted_right": lifted(shifted_right),
        **{f"{_FUNCTION}{name}": lifted(meaning, to_whole=name in TO_WHOLE) for name, meaning in FUNCTIONS.items()},
        **{name: lifted(meaning) for name, meaning in PYTHON_FUNCTIONS.items()},
    }  # fmt: skip
    scope |= {f"K{index}": value for index, value in enumerate(constants)}
    exec(compile(text, f"<{name}>", "exec"), scope)
    return scope["kernel"]


# NumPy's own has no type for arrays that carry their errors.
_where: Callable[..., Any] = np.where


def _one_of(condition: Any, chosen: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """One of two values, of which only the one that is chosen is computed, where one condition is for all elements."""
    if isinstance(condition, bool | np.bool_):
        return chosen() if condition else otherwise()
    return _where(condition, chosen(), otherwise())


def _quantified(values: Any, of_all: bool) -> int:
    truths = value_of(values)
    return int(np.all(truths) if of_all else np.any(truths))


def _unrounded(values: Any, dtype: str) -> Elements:
    return rounded(values, unrounded(dtype))


# More turns of a `while` than a kernel that ends takes.
_MOST_TURNS = 1 << 16


def _turns(holds: Callable[[], object], statement: tirx.While) -> Iterator[int]:
    """The turns of a loop for as long as its condition holds. Raises Unsupported for a loop that does not end."""
    for iteration in range(_MOST_TURNS):
        if not holds():
            return
        yield iteration
    raise Unsupported(
        "L005",
        f"`while` has not ended after {_MOST_TURNS:,} turns",
        hint="change what its condition reads in each turn, such as t += 1 for `while t < n`",
        span=span_of(statement),
    )


@dataclass
class _GeneratorText(Generic[Named]):
    """The text of a function as a Python generator: its lines, the names of variables, and what its constants are."""

    lines: list[str] = field(default_factory=list[str])
    values: dict[Named, str] = field(default_factory=dict[Named, str])
    constants: list[object] = field(default_factory=list[object])

    def constant(self, value: object) -> str:
        self.constants.append(value)
        return f"K{len(self.constants) - 1}"

    def name(self, variable: Named) -> str:
        if variable not in self.values:
            self.values[variable] = f"v{len(self.values)}"
        return self.values[variable]

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def reach(self, site: SourceLocation, depth: int) -> None:
        self.emit(depth, f"reach({self.constant(site)})")

    def operation(self, form: Form, shown: Sequence[str], site: SourceLocation, depth: int, result: str = "") -> None:
        """An operation of the table, whose arguments have these texts; `result` is the name of what it gives."""
        call = f"{self.constant(operation(form))}({', '.join(['core', *shown])})"
        self.reach(site, depth)
        if form.op.has_result:
            self.emit(depth, f"while not isinstance({result} := {call}, int):")
            self.emit(depth + 1, f"yield {result}")
            self.reach(site, depth + 1)
            return
        if not form.op.waits:
            self.emit(depth, call)
            return
        self.emit(depth, f"while (wait := {call}) is not None:")
        self.emit(depth + 1, "yield wait")
        self.reach(site, depth + 1)


@dataclass
class _KernelWriter(_GeneratorText[Variable]):
    """Writes a kernel whose indices are words, as in the C++."""

    words: Words = field(default_factory=Words)
    # The loops around a statement, and how many operations gave a number before it.
    loops: tuple[Variable, ...] = ()
    giving: int = 0

    def body(self, body: Body, depth: int) -> None:
        if not body:
            self.emit(depth, "pass")
        for statement in body:
            self.statement(statement, depth)

    def statement(self, statement: Statement, depth: int) -> None:
        site = statement.place
        match statement:
            case Allocation(_, buffer, shape):
                self.emit(depth, f"core.allocate('{buffer.name}', '{buffer.scope}', '{buffer.dtype}', {shape})")
            case Bind():
                self.reach(site, depth)
                self.emit(depth, f"{self.name(statement.variable)} = {self.bound(statement)}")
            case Branch():
                self.emit(depth, f"if {self.word(self.words.condition(statement.condition, site))}:")
                self.body(statement.then, depth + 1)
                if statement.has_else:
                    self.emit(depth, "else:")
                    self.body(statement.otherwise, depth + 1)
            case Loop():
                low, end, _ = self.words.loop(statement)
                self.emit(depth, f"for {self.name(statement.variable)} in range({self.word(low)}, {self.word(end)}):")
                self.reach(site, depth + 1)
                outside, self.loops = self.loops, (*self.loops, statement.variable)
                self.body(statement.body, depth + 1)
                self.loops = outside
            case Call():
                result = ""
                if statement.result is not None:
                    self.words.result(statement)
                    result = self.name(statement.result)
                self.operation(statement.form, self.arguments(statement), site, depth, result)
                if result:
                    turns = "".join(f"{self.name(variable)}, " for variable in self.loops)
                    self.emit(depth, f"core.gave({self.giving}, ({turns}), {result})")
                    self.giving += 1
            case Store():
                raise _unknown(f"a store to {statement.tensor}", site)
            case _:
                assert_never(statement)

    def word(self, word: Word) -> str:
        return python(word, self.name)

    def bound(self, bind: Bind) -> str:
        word, _ = self.words.bind(bind)
        match bind.value:
            case CoreValue(name):
                return f"core.core_value('{name}')"
            case CoreItem(_, position):
                return f"core.core_item({self.word(self.words.unsigned(position, bind.place))})"
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
                case value if operand.kind == "condition":
                    shown.append(self.word(self.words.condition(value, call.place)))
                case value if operand.kind == "float":
                    shown.append(self.word(self.words.signed(value, call.place)))
                case int(value):
                    shown.append(str(value))
                case value:
                    shown.append(self.word(self.words.unsigned(value, call.place)))
        return shown


_SYMBOLS: dict[type[ir.Expr], str] = {
    tirx.Add: "+", tirx.Sub: "-", tirx.Mul: "*", tirx.FloorDiv: "//", tirx.FloorMod: "%", tirx.Div: "/",
    tirx.LT: "<", tirx.LE: "<=", tirx.GT: ">", tirx.GE: ">=", tirx.EQ: "==", tirx.NE: "!=", tirx.And: "&",
    tirx.Or: "|", tirx.BitwiseAnd: "&", tirx.BitwiseOr: "|", tirx.BitwiseXor: "^",
}  # fmt: skip


@dataclass
class TirWriter(_GeneratorText[ir.Var]):
    """Writes a function of TIR, whose indices are Python's integers."""

    shared: dict[ir.Expr, str] = field(default_factory=dict[ir.Expr, str])
    # In a T.Parallel: which elements the branches around a statement choose, "" for all.
    chosen: str = ""
    in_parallel: bool = False
    # How many loops of a nest of T.Parallel are around a statement, and how many there are in the deepest place.
    axes: tuple[int, int] = (0, 0)
    # Whether the T.Parallel has one iteration.
    is_single: bool = False
    # The buffers of which each turn of the T.Parallel has its own.
    of_turns: frozenset[tirx.Buffer] = frozenset()

    def share(self, e: ir.Expr, depth: int) -> None:
        """Give names to the parts that an expression holds more than once."""
        self.shared.clear()
        uses: dict[ir.Expr, int] = {}
        nodes = nodes_of(e)
        for node in nodes:
            for operand in parts_of(node):
                uses[operand] = uses.get(operand, 0) + 1
        for node in nodes:
            if uses.get(node, 0) > 1 and parts_of(node):
                text = self.expression(node)
                self.shared[node] = f"s{len(self.shared)}"
                self.emit(depth, f"{self.shared[node]} = {text}")

    def expression(self, e: ir.Expr) -> str:
        if e in self.shared:
            return self.shared[e]
        if isinstance(e, tirx.Mod) or (isinstance(e, tirx.Div) and "float" not in str(e.ty.dtype)):
            word = "quotient" if isinstance(e, tirx.Div) else "rest"
            return f"truncated_{word}({self.expression(e.a)}, {self.divisor(e.b)})"
        if is_binary(e) and (binary := _SYMBOLS.get(type(e))):
            right = self.divisor(e.b) if binary in ("//", "%") else self.expression(e.b)
            return f"({self.expression(e.a)} {binary} {right})"
        match e:
            case tirx.IntImm():
                # Whole numbers are int32 where nothing says otherwise; others wrap around in their own width.
                dtype = str(e.ty.dtype)
                numpy_name = numpy_dtype(dtype).name if dtype in SMALL_INTEGERS else ""
                return f"np.{numpy_name}({int(e.value)})" if numpy_name else str(int(e.value))
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
                    return f"converted({inner}, 'int64')"
                # Of numbers the lowest bits of the integer.
                inner = f"rounded({inner}, 'int32')" if dtype in SMALL_INTEGERS else inner
                return f"converted({inner}, '{dtype}')"
            case tirx.Not() | tirx.BitwiseNot() if str(e.ty.dtype) == "bool":
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
                if e.source in self.of_turns:
                    return f"{self.name(e.source)}.get(({indices},), {_unwritten(e.source)})"
                return f"core.load('{e.source.name}', ({indices},))"
            case ir.Call() if (block := quantified_of(e)) is not None:
                return f"quantified({self.elements_of(block)}, {block.of_all})"
            case ir.Call() if (name := str(e.op.name).rpartition(".")[2]) in FUNCTIONS:
                return f"{_FUNCTION}{name}({', '.join(self.expression(a) for a in e.args)})"
            case ir.Call() if str(e.op.name) in ATOMICS:
                return self.expression(plain(e))
            case ir.Call() if str(e.op.name).rpartition(".")[2] == "reinterpret":
                before, after = (str(expr.ty.dtype) for expr in (e.args[0], e))
                return f"reinterpreted({self.expression(e.args[0])}, '{before}', '{after}')"
            case ir.Call() if str(e.op.name) == CORE_VALUE:
                return f"core.core_value('{text_of(e.args[0])}')"
            case ir.Call() if str(e.op.name) == CORE_ITEM:
                return f"core.core_item({self.expression(e.args[1])})"
            case _:
                construct = str(e.op.name) if isinstance(e, ir.Call) else type(e).__name__
                raise _unknown(construct, e)

    def elements_of(self, block: Quantified) -> str:
        """The elements of a block, 0 for those outside of its tensor."""
        return f"core.load('{block.source.name}', {self.places_of(block)})"

    def places_of(self, block: Quantified) -> str:
        starts = map(self.expression, block.first.indices)
        ranges = (f"{low} + np.arange({count})" for low, count in zip(starts, block.extents, strict=True))
        return f"np.ix_({', '.join(ranges)})"

    def divisor(self, e: ir.Expr) -> str:
        """Both sides of a choice are computed here: where it does not come to a division, anything will do for 0."""
        text = self.expression(e)
        return text if isinstance(e, tirx.IntImm) else f"np.where({text}, {text}, 1)"

    def choice(self, e: ir.Expr, operands: Sequence[ir.Expr]) -> str:
        condition, chosen, otherwise = (self.expression(operand) for operand in operands)
        text = f"np.where({condition}, {chosen}, {otherwise})"
        if self.is_single:
            # The element of the other side, which nobody asks for, may be outside of its block.
            text = f"one_of({condition}, lambda: {chosen}, lambda: {otherwise})"
        # Of two numbers of Python NumPy makes int64.
        dtype = str(e.ty.dtype)
        return f"converted({text}, '{dtype}')" if dtype == "int32" or dtype in SMALL_INTEGERS else text

    def body(self, body: tirx.Stmt, depth: int) -> None:
        body_statements = statements(body)
        if not body_statements:
            self.emit(depth, "pass")
        for nested in body_statements:
            self.statement(nested, depth)

    def statement(self, s: tirx.Stmt, depth: int) -> None:
        match s:
            case tirx.AllocBuffer() if COUNTS in (annotations := dict(s.annotations)):
                counts = [int(count) for count in annotations[COUNTS]]
                self.emit(depth, f"core.meetings.allocate('{s.buffer.name}', {counts})")
            case tirx.AllocBuffer():
                b = s.buffer
                self.emit(depth, f"core.allocate('{b.name}', '{scope_of(b)}', '{dtype_of(b)}', {shape_of(b)})")
            case tirx.Bind() if (form := bound_form(s)) is not None:
                if form.op is READ_ANY:
                    index, count = (arguments(s)[slot] for slot in (3, 4))
                    assert isinstance(index, ir.Var)
                    self.emit(depth, f"{self.name(index)} = np.arange({self.expression(count)})")
                self.operation(form, self.given(s), SourceLocation(s), depth, self.name(s.var))
            case tirx.Bind() if isinstance(s.value, ir.TensorLoad) and _is_whole(s.value) and not self.in_parallel:
                # It decides places and branches: what no element says decides nothing.
                self.reach(SourceLocation(s), depth)
                indices = ", ".join(self.expression(index) for index in s.value.indices)
                self.emit(depth, f"{self.name(s.var)} = core.number('{s.value.source.name}', ({indices},))")
            case tirx.Bind():
                self.reach(SourceLocation(s), depth)
                self.share(s.value, depth)
                self.emit(depth, f"{self.name(s.var)} = {self.expression(s.value)}")
            case tirx.IfThenElse() if self.in_parallel:
                self.branches(s, depth)
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
                self.reach(SourceLocation(s), depth + 1)
                self.body(s.body, depth + 1)
            case tirx.While():
                test = f"lambda: {self.expression(s.condition)}"
                self.emit(depth, f"for _ in turns({test}, {self.constant(s)}):")
                self.reach(SourceLocation(s), depth + 1)
                self.body(s.body, depth + 1)
            case tirx.BufferStore():
                self.store(s, depth)
            case tirx.Evaluate():
                self.evaluate(s, depth)
            case _:
                raise _unknown(type(s).__name__, s)

    def store(self, s: tirx.BufferStore, depth: int) -> None:
        indices = ", ".join(self.expression(index) for index in s.indices)
        self.reach(SourceLocation(s), depth)
        self.share(s.value, depth)
        if s.buffer in self.of_turns:
            value, name = f"rounded({self.expression(s.value)}, '{dtype_of(s.buffer)}')", self.name(s.buffer)
            if self.chosen:
                value = f"np.where({self.chosen}, {value}, {name}.get(({indices},), {_unwritten(s.buffer)}))"
            self.emit(depth, f"{name}[({indices},)] = {value}")
            return
        conditions = [self.chosen] if self.chosen else []
        if (condition := condition_of(s.value)) is not None:
            conditions.append(self.expression(condition))
        chosen = f", {functools.reduce(_both, conditions)}" if conditions else ""
        self.emit(
            depth, f"core.store('{s.buffer.name}', ({indices},), {self.expression(stored_value(s.value))}{chosen})"
        )

    def branches(self, s: tirx.IfThenElse, depth: int) -> None:
        """Both branches of a condition in T.Parallel, each for the elements that it is for."""
        around, test_name = self.chosen, f"c{len(self.lines)}"
        self.reach(SourceLocation(s), depth)
        self.share(s.condition, depth)
        self.emit(depth, f"{test_name} = {self.expression(s.condition)}")
        for body, holds in ((s.then_case, test_name), (s.else_case, f"np.logical_not({test_name})")):
            if body is not None:
                self.chosen = _both(around, holds) if around else holds
                self.body(body, depth)
        self.chosen = around

    def parallel(self, s: tirx.Stmt, depth: int) -> None:
        if isinstance(s, tirx.For) and not self.in_parallel:
            s = cut_to_blocks(s) or s
            if (turns := turn_by_turn(s)) is not None:
                self.body(sequence(turns), depth)
                return
        loops: list[tirx.For] = []
        while isinstance(s, tirx.For) and s.kind == tirx.ForKind.PARALLEL:
            loops.append(s)
            s = s.body
        outer = self.in_parallel, self.of_turns, self.axes, self.is_single
        # Conditions may stand between the loops: all have as many axes as the deepest one.
        around, deepest = self.axes if self.in_parallel else (0, len(loops) + _parallel_axes(s))
        for axis, node in enumerate(loops, around):
            shape = ", ".join("-1" if dimension == axis else "1" for dimension in range(deepest))
            low, extent = self.expression(node.min), self.expression(node.extent)
            self.emit(
                depth,
                f"{self.name(node.loop_var)} = np.arange({low}, {low} + {extent}, dtype=np.int32).reshape(({shape},))",
            )
        self.in_parallel, self.axes = True, (around + len(loops), deepest)
        self.is_single = (self.is_single or not around) and all(constant(loop.extent) == 1 for loop in loops)
        self.of_turns |= stored_by_turns(loops, s)
        for node in sorted(self.of_turns - outer[1], key=lambda buffer: str(buffer.name)):
            self.emit(depth, f"{self.name(node)} = {{}}")
        self.body(s, depth)
        self.in_parallel, self.of_turns, self.axes, self.is_single = outer

    def region(self, region: ir.TensorRegion) -> str:
        spans = ", ".join(f"({self.expression(axis.min)}, {self.expression(axis.extent)})" for axis in region.region)
        return f"('{region.source.name}', ({spans},))"

    def given(self, s: tirx.Stmt) -> list[str]:
        """The arguments of an operation of the table."""
        return [f"'{v.name}'" if is_buffer(v) else self.expression(v) for v in arguments(s)]

    def gathered(self, s: tirx.Evaluate, depth: int) -> None:
        """The rows and columns of a block as the two variables of an operation that computes places from them."""
        block = gathered_block(s)
        for variable, extent, shape in zip(block.variables, block.shape, ("-1, 1", "1, -1"), strict=True):
            self.emit(depth, f"{self.name(variable)} = np.arange({extent}).reshape({shape})")

    def evaluate(self, s: tirx.Evaluate, depth: int) -> None:
        name, values = op_name(s), arguments(s)
        if name in GROUP_STATEMENTS:
            self.reach(SourceLocation(s), depth)
            shown = [
                f"'{v.source.name}', {self.expression(v.indices[0])}" if isinstance(v, ir.TensorLoad)
                else self.expression(v) for v in values
            ]  # fmt: skip
            self.emit(depth, f"yield from {self.constant(GROUP_STATEMENTS[name])}({', '.join(['core', *shown])})")
            return
        if name in GATHERS:
            self.gathered(s, depth)
        if name in FORMS:
            self.operation(FORMS[name], self.given(s), SourceLocation(s), depth)
            return
        if name not in STATEMENTS:
            raise _unknown(name if name.startswith("tt.") else f"T.{name[3:]}", s)
        self.reach(SourceLocation(s), depth)
        shown = [self.region(v) if isinstance(v, ir.TensorRegion) else self.expression(v) for v in values]
        how = (bool(attribute(s, flag)) for flag in ("transpose", "transpose_A", "transpose_B", "clear_accum"))
        flags = reduction_of(s) or scan_of(s) or Flags(*how, whole=_stored_from(s))
        self.emit(depth, f"{self.constant(STATEMENTS[name])}(core, {', '.join(shown)}, {self.constant(flags)})")


def _parallel_axes(body: tirx.Stmt) -> int:
    """How many loops of T.Parallel are inside each other, in the deepest place."""
    inner = [
        (isinstance(s, tirx.For) and s.kind == tirx.ForKind.PARALLEL) + max(map(_parallel_axes, bodies(s)), default=0)
        for s in statements(body)
    ]
    return max(inner, default=0)


def _is_whole(value: ir.Expr) -> bool:
    return not str(value.ty.dtype).startswith(("float", "bfloat"))


def _stored_from(s: tirx.Evaluate) -> tuple[int, ...]:
    """The extents of a region that holds the whole of a block, where a copy stores a part of it."""
    if not runs(s, tl.COPY) or not is_limited(regions(s)[1]):
        return ()
    source, target = regions(s)
    return tuple(full_extents(target, shape_of(source.source)) or ())


def _unwritten(buffer: tirx.Buffer) -> str:
    return f"np.full((), {UNWRITTEN[held(dtype_of(buffer))]!r})".replace("nan", "np.nan")


def _converted(values: Any, dtype: str) -> Any:
    return _cast(values != 0 if dtype == "bool" and isinstance(values, Uncertain) else values, dtype)


@lifted
def _cast(values: ArrayLike, dtype: str) -> Array:
    array = rounded_to(values, dtype) if dtype in SMALL_WHOLES else np.asarray(values)
    return array.astype(numpy_dtype(dtype))


@lifted
def _reinterpreted(values: ArrayLike, before: str, after: str) -> Array:
    return np.asarray(values).astype(numpy_dtype(before)).view(numpy_dtype(after))


def _both(first: str, second: str) -> str:
    return f"np.logical_and({first}, {second})"


def _unknown(construct: str, at: Node | SourceLocation) -> Unsupported:
    return Unsupported(
        "L001",
        f"the interpreter does not know {construct}",
        hint="no rule lowers it either: see the exploration's error, ex.error, for what to write instead",
        span=at.span if isinstance(at, SourceLocation) else span_of(at),
    )
