"""The kernel being traced: a stack of statement frames, and what the kernel has requested."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeGuard, overload

from tvm import ir, sym, tirx

from ttexplore.errors import KernelError, Unsupported, shown
from ttexplore.ir.adapter import OPERATORS, Number, call, is_buffer, to_expr, to_tvm_span
from ttexplore.ir.arithmetic.shallow import refuse_deep, shallow
from ttexplore.ir.build import allocation
from ttexplore.ir.dag import parts_of
from ttexplore.ir.names import unused_name
from ttexplore.ir.operations.atomics import as_update
from ttexplore.ir.operations.groups import BARRIER_SCOPE
from ttexplore.language.guard.clocks import Watch
from ttexplore.language.guard.names import CURRENT, HINT_CONSTANT_SIZES, NotLowered
from ttexplore.language.guard.standins import StandIn
from ttexplore.language.guard.state import LostName, Snapshot
from ttexplore.language.tracer.containers import items_of
from ttexplore.language.tracer.dtypes import dtype_name, held, integer_range, number_of
from ttexplore.language.tracer.elements import Reads
from ttexplore.language.tracer.spans import caller_place, caller_span
from ttexplore.language.tracer.views import Views
from ttexplore.language.tracer.wide_tensors import narrow_element
from ttexplore.notes import Note, note
from ttexplore.record import Span

if TYPE_CHECKING:
    from typing_extensions import TypeIs

# Ends the tracing of a kernel whose text has changed again.

# What a kernel's Python is inside of: a loop that becomes TIR, one that Python runs now, a branch that is decided
# when the kernel runs, or the call of a macro or of a function inside of the kernel.
Enclosing = Literal["tir", "python", "branch", "call", "function"]
# A number of the kernel language: known now, or when the kernel runs.
Value = float | ir.Expr
Integer = int | ir.Expr


def sequence(statements: list[tirx.Stmt], span: ir.Span | None = None) -> tirx.Stmt:
    """Join statements into one; an empty list becomes the statement that does nothing."""
    if not statements:
        return tirx.Evaluate(tirx.const(0, "int32"), span)
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(statements, span)


def is_dynamic(value: object) -> TypeIs[ir.Expr | tirx.expr.EqualOp | tirx.expr.NotEqualOp]:
    """Whether a value is known only when the kernel runs."""
    return isinstance(value, ir.Expr | tirx.expr.EqualOp | tirx.expr.NotEqualOp)


@overload
def plain(value: ir.Expr | tirx.expr.EqualOp | tirx.expr.NotEqualOp) -> ir.Expr: ...
@overload
def plain(value: object) -> object: ...
def plain(value: object) -> object:
    """Convert TVM's deferred comparisons to expressions, and NumPy scalars and zero-dimensional arrays to Python
    numbers; return other values unchanged. Raises KernelError for a name without a value."""
    if isinstance(value, LostName):
        raise value.refuse()
    if isinstance(value, tirx.expr.EqualOp | tirx.expr.NotEqualOp):
        return type(value)(*comparable(plain(value.a), plain(value.b)), value.span).asobject()
    return number_of(value)


def comparable(first: Any, second: Any) -> tuple[Any, Any]:
    """The sides of a comparison. A narrow integer that is compared with a number out of its range is an int32."""
    for value, number in ((first, second), (second, first)):
        if isinstance(value, ir.Expr) and isinstance(number, int) and str(value.ty) in _NARROW:
            low, high = integer_range(str(value.ty))
            if not low <= number <= high:
                wide = tirx.Cast(_INT32, value)
                return (wide, number) if value is first else (number, wide)
        elif isinstance(value, ir.Expr) and isinstance(number, int) and str(value.ty) in ("uint32", "uint64"):
            constant(number, str(value.ty))
    return first, second


_NARROW = ("uint8", "int8", "uint16", "int16")


def is_constant(value: object) -> TypeIs[tirx.IntImm | tirx.FloatImm]:
    """Whether a value is a constant expression."""
    return isinstance(value, tirx.IntImm | tirx.FloatImm)


def condition(value: object) -> ir.Expr:
    """Convert a value to a TIR condition; a number is true unless it is 0. Raises KernelError for values that are
    neither numbers nor expressions."""
    value = plain(value)
    if isinstance(value, bool):
        return tirx.const(value, "bool")
    number = element(value, "a condition")
    return number if str(number.ty.dtype) == "bool" else tirx.NE(number, tirx.const(0, number.ty))


def element(value: object, context: str) -> ir.Expr:
    """Convert a scalar to a TIR expression. Raises KernelError for blocks and for values that are not numbers."""
    value = plain(value)
    if is_buffer(value) or isinstance(value, ir.TensorRegion):
        name = value.name if is_buffer(value) else value.source.name
        raise KernelError(
            "K008",
            f"{context} works on elements, but {name} is a block",
            hint=f"write {name}[i, j] inside `for i, j in T.Parallel(...)`",
        )
    if not isinstance(value, int | float | ir.Expr):
        refuse_unknown(value, f"an operand of {context}")
        raise KernelError(
            "K008",
            f"{context} works on numbers, not on {described(value)}",
            hint="pass a number, an element such as a[i, j], or an expression of these",
        )
    return to_expr(value)


def index_of(name: str, value: object) -> ir.Expr:
    """Convert an index of a tensor or buffer to a TIR expression. Raises KernelError unless it is an integer."""
    index = element(value, f"an index of {name}")
    if "float" in str(index.ty.dtype):
        raise KernelError(
            "K003",
            f"an index of {name} has the dtype {index.ty.dtype}",
            hint='indices are integers: divide with //, or cast: T.cast(x, "int32")',
        )
    return tirx.Cast(_INT32, index) if str(index.ty.dtype) == "bool" else narrow_element(index)


def _check_stored(buffer: tirx.Buffer, indices: list[ir.Expr]) -> None:
    """Raise KernelError for a store that a constant index puts outside. A read may be what a choice does not take."""
    for axis, (index, extent) in enumerate(zip(indices, buffer.ty.shape, strict=True)):
        if not isinstance(index, tirx.IntImm) or not isinstance(extent, tirx.IntImm):
            continue
        if not 0 <= int(index.value) < int(extent.value):
            raise KernelError(
                "K001",
                f"a store to {buffer.name} at {int(index.value)} along dimension {axis}, whose extent is "
                f"{int(extent.value)}",
                hint="indices count from 0, and none is negative",
            )


def is_integer(value: object) -> TypeGuard[Integer]:
    """Whether a value is a Python integer or an integer expression."""
    return isinstance(value, int) or (
        isinstance(value, ir.Expr) and ir.is_prim_expr(value) and "float" not in str(value.ty.dtype)
    )


def whole(value: Integer) -> ir.Expr:
    """Convert a loop start or bound to int32, the type of loops and indices: a narrower type would wrap around when a
    block's extent is added, and TVM has no loops of it."""
    e = to_expr(value)
    dtype = str(e.ty.dtype)
    return tirx.Cast(_INT32, e) if dtype.startswith(("int", "uint", "bool")) and dtype != "int32" else e


_INT32 = ir.PrimType("int32")


def described(value: object) -> str:
    return "None" if value is None else f"{shown(value)} ({type(value).__name__})"


def refuse_unknown(value: object, description: str) -> None:
    """Raise an error for a value from a module that is not installed, or for a name that is not lowered."""
    if isinstance(value, StandIn):
        raise value.refuse(description)
    if isinstance(value, NotLowered):
        raise unsupported(f"{description} that is {value!r}", value.hint)


@dataclass(frozen=True)
class AllocationRequest:
    """A request for on-chip memory; it becomes a buffer when it is assigned to a name."""

    shape: tuple[int, ...]
    dtype: str
    scope: str
    initial: object = None

    def make(self, builder: Builder, name: str) -> tirx.Buffer:
        span = builder.tvm_span()
        name = builder.unused(name)
        statement = allocation(name, self.shape, self.dtype, self.scope, span)
        builder.emit(statement)
        buffer = statement.buffer
        if self.initial is not None:
            builder.store(buffer, (0,), self.initial)
        return buffer


@dataclass(frozen=True)
class TensorSpec:
    """The type of a tensor: the annotation of a parameter, an output created by T.empty, or a tensor that the kernel
    allocates for its launches. It is checked where it is used."""

    shape: object
    dtype: object
    output: bool = False
    allocated: bool = False

    def make(self, builder: Builder, name: str) -> tirx.Buffer:
        # What a list holds, or what has two names, is one tensor all the same; parameters may share an annotation.
        is_new = self.output or self.allocated
        if is_new and id(self) in builder.made:
            return builder.made[id(self)][1]
        shape, dtype = tensor_shape_of(self.shape, name), dtype_name(self.dtype)
        for extent in shape:
            if isinstance(extent, ir.Var):
                builder.size(extent)
        name, is_wide = builder.unused(name), dtype == "int64" and not is_new
        if is_wide:
            builder.notes.append(note("wide tensor", tensor=name))
        buffer = tirx.decl_buffer(
            list(shape), "int32" if is_wide else dtype, name=name, scope="global", span=builder.tvm_span()
        )
        if is_wide:
            builder.wide_tensors.add(buffer)
        (builder.allocated if self.allocated else builder.parameters).append(buffer)
        if self.output:
            builder.outputs.append(buffer)
        if is_new:
            builder.made[id(self)] = self, buffer
        return buffer


def tensor_shape_of(shape: object, callee: str) -> tuple[int | ir.Var, ...]:
    """A tensor's shape as ints and T.dynamic variables, whose values are known when the kernel runs.

    Raises the errors of :func:`shape_of`.
    """
    extents = items_of(shape)
    sizes = shape_of([1 if isinstance(extent, ir.Var) else extent for extent in extents], callee)
    return tuple(
        dimension if isinstance(dimension, ir.Var) else extent for dimension, extent in zip(extents, sizes, strict=True)
    )


def shape_of(shape: object, callee: str) -> tuple[int, ...]:
    """A shape as plain ints. Raises KernelError for invalid shapes, Unsupported for sizes not known at compile time."""
    sizes = items_of(shape)
    extents: list[int] = []
    for extent in sizes:
        if isinstance(extent, tirx.IntImm):
            extent = int(extent.value)
        refuse_unknown(extent, f"a size of {callee}")
        if isinstance(extent, ir.Expr):
            raise unsupported(
                f"{callee} with the size {extent}, which is not known at compile time,", HINT_CONSTANT_SIZES
            )
        if not isinstance(extent, SupportsIndex) or isinstance(extent, bool):
            raise KernelError(
                "K004", f"{callee}: {shown(extent)} is not a valid extent", hint="write the shape as a tuple of ints"
            )
        if int(extent) < 1:
            raise KernelError(
                "K004", f"{callee}: the shape {shown(sizes)} has no elements", hint="use extents of 1 or more"
            )
        extents.append(int(extent))
    return tuple(extents)


@dataclass(frozen=True)
class Annotation:
    """An option that the kernel itself sets; `tensor` is empty if it applies to the whole kernel."""

    option: str
    value: object
    tensor: str = ""
    span: Span | None = None


@dataclass(frozen=True)
class Begun:
    """The start of a launch: how many notes and annotations the kernel had before it."""

    notes: int
    annotations: int


@dataclass(frozen=True)
class ConditionOperand:
    """The left side of `and` or `or`, or the condition of `x if c else y`, during its evaluation. `index` is its place,
    `emitted` the number of statements before it, `state` the Python state before it if a call may change that."""

    index: int
    value: object
    emitted: int
    state: Snapshot | None


@dataclass
class Builder:
    """The kernel being traced. `constants` are the values of T.const names, `files` the display names of the code files
    in which it runs, `span` the statement being traced, `calls` the enclosing macro calls, `begun` where each frame but
    the first began, `allocated` the tensors that the kernel allocates itself, `blocks` the block indices of the launch
    being traced."""

    constants: dict[str, object] = field(default_factory=dict[str, object])
    files: dict[str, str] = field(default_factory=dict[str, str])
    frames: list[list[tirx.Stmt]] = field(default_factory=lambda: [[]])
    parameters: list[ir.Var] = field(default_factory=list[ir.Var])
    allocated: list[tirx.Buffer] = field(default_factory=list[tirx.Buffer])
    launches: list[Begun] = field(default_factory=list[Begun])
    # The tensors that the kernel's statements make, by the identity of what they are made of, which is kept alive.
    made: dict[int, tuple[TensorSpec, tirx.Buffer]] = field(default_factory=dict[int, "tuple[TensorSpec, tirx.Buffer]"])
    outputs: list[object] = field(default_factory=list[object])
    sizes: list[ir.Var] = field(default_factory=list[ir.Var])
    enclosing: list[Enclosing] = field(default_factory=list[Enclosing])
    calls: list[Span] = field(default_factory=list[Span])
    notes: list[Note] = field(default_factory=list[Note])
    annotations: list[Annotation] = field(default_factory=list[Annotation])
    begun: list[Span | None] = field(default_factory=list[Span | None])
    buffer_names: set[str] = field(default_factory=set[str])
    blocks: tuple[ir.Var, ...] = ()
    # The threads of a block along each axis; none where they are no numbers.
    threads: tuple[int, ...] = ()
    # What the threads join their values to, in each scope of a reducer around.
    reducing: list[str] = field(default_factory=list[str])
    is_in_parallel: bool = False
    views: Views = field(init=False)
    reads: Reads = field(init=False)
    reducers: dict[tirx.Buffer, str] = field(default_factory=dict[tirx.Buffer, str])
    # The blocks in the memory of a GPU's matrix unit.
    tensor_memory: set[tirx.Buffer] = field(default_factory=set[tirx.Buffer])
    # The tensors that the kernel takes for int64.
    wide_tensors: set[tirx.Buffer] = field(default_factory=set[tirx.Buffer])
    watch: Watch = field(default_factory=Watch)
    # How many statements the kernel has given, to tell whether an expression gave some.
    emitted: int = 0
    # Calls that only statements can execute, and where they were made, until one does.
    waiting: list[tuple[ir.Call, Callable[[], Span | None]]] = field(
        default_factory=list["tuple[ir.Call, Callable[[], Span | None]]"]
    )
    span: Span | None = None
    operands: list[ConditionOperand] = field(default_factory=list[ConditionOperand])

    # The loops traced so far, and the block indices: variables, starts and extents.
    counted: list[tuple[ir.Var, Integer, Integer]] = field(default_factory=list[tuple[ir.Var, Integer, Integer]])

    def __post_init__(self) -> None:
        self.views = Views(self.named_values)
        self.reads = Reads(self.views)

    def size(self, variable: ir.Var) -> None:
        """Record a T.dynamic size of a tensor. Raises KernelError if another size has the same name."""
        for size_variable in self.sizes:
            if size_variable.same_as(variable):
                return
            if size_variable.name == variable.name:
                raise KernelError(
                    "K013",
                    f"two sizes are named {variable.name}",
                    hint=f"make T.dynamic({str(variable.name)!r}) once and reuse the result",
                )
        self.sizes.append(variable)

    def begin_launch(self, blocks: Sequence[ir.Var], threads: object) -> None:
        """Start a launch with these block indices, and threads in a block. Its buffers may have the names of those in
        other launches."""
        extents = items_of(threads)
        self.threads = tuple(extent for extent in extents if isinstance(extent, int))
        if len(self.threads) != len(extents):
            self.threads = ()
        self.launches.append(Begun(len(self.notes), len(self.annotations)))
        self.blocks = tuple(blocks)
        self.buffer_names = {str(buffer.name) for buffer in [*self.parameters, *self.allocated]}

    def tvm_span(self) -> ir.Span | None:
        """The span of the statement being traced, followed by the macro calls that it is in, innermost first."""
        if self.span is None:
            return None
        statement_span = to_tvm_span(self.span)
        return (
            ir.SequentialSpan([statement_span, *map(to_tvm_span, reversed(self.calls))])
            if self.calls
            else statement_span
        )

    def leave_out(self, feature: str, kind: str = "hint") -> None:
        """Record that something without effect on this machine was left out."""
        here = caller_span(self.files)
        self.notes.append(note(kind, at=None if here is None else str(here), what=feature))

    def unused(self, name: str) -> str:
        """A unique name for a new buffer: its name in the kernel, with a number if that is taken."""
        unique = unused_name(name, self.buffer_names)
        self.buffer_names.add(unique)
        return unique

    def emit(self, statement: tirx.Stmt) -> None:
        """Append a statement. Elements in it have the values they had when they were read."""
        refuse_deep(_expressions_of(statement))
        if isinstance(statement, tirx.Evaluate) and isinstance(statement.value, ir.Call):
            self.execute(statement.value)
        self.emitted += 1
        self.frames[-1] += self.views.based(self.reads.settled(statement, self.frames), self.unused)

    def execute(self, call: ir.Call) -> None:
        """Record that a statement executes a call, or that another call stands for it."""
        self.waiting = [(pending, span_of) for pending, span_of in self.waiting if not pending.same_as(call)]

    def check_executed(self) -> None:
        """Check that statements execute all calls that only they can: those of a function that is not part of the
        kernel would be lost. Raises KernelError for the first other one."""
        for lost, span_of in self.waiting:
            raise KernelError(
                "K010",
                f"no statement of the kernel executes this T.{str(lost.op.name).rpartition('.')[2]}",
                hint="decorate the function that calls it with @T.macro, or make the call a statement of its own",
                span=span_of(),
            )

    def read(self, buffer: tirx.Buffer, indices: tuple[object, ...]) -> ir.TensorLoad:
        """The element ``buffer[indices]`` as it is now. Raises KernelError for a wrong rank or index."""
        check_rank(buffer, indices)
        index_exprs = [self.reads.kept(index_of(buffer.name, index), self.frames) for index in indices]
        load = tirx.BufferLoad(buffer, index_exprs)
        self.reads.add(load, self.frames[-1])
        return load

    def named_values(self) -> sym.Analyzer:
        """An analyzer that knows the integers bound to names so far, and how far loops count."""
        analyzer = sym.Analyzer()
        for variable, start, extent in self.counted:
            if not isinstance(extent, int) or extent > 0:
                analyzer.bind(variable, ir.Range.from_min_extent(whole(start), whole(extent)))
        names = (bind for frame in self.frames for _, bind in self.reads.named(frame))
        for binding in itertools.chain(*self.frames, names):
            if isinstance(binding, tirx.Bind) and "int" in str(binding.var.ty.dtype):
                analyzer.bind(binding.var, binding.value)
        return analyzer

    @contextlib.contextmanager
    def frame(self, finish: Callable[[tirx.Stmt], tirx.Stmt | None]) -> Generator[None]:
        """Collect the statements emitted inside the `with` block as one body, then emit `finish` of it, if there is
        such a statement."""
        span = self.span
        with self.collect() as body:
            yield
        self.span = span
        statement = finish(sequence(body, self.tvm_span()))
        if statement is not None:
            self.emit(statement)

    @contextlib.contextmanager
    def collect(self) -> Generator[list[tirx.Stmt]]:
        """Collect the statements emitted inside the `with` block. Raises KernelError if an exception has left an inner
        body unfinished: the rest of the kernel would be lost."""
        body: list[tirx.Stmt] = []
        self.frames.append(body)
        self.begun.append(self.span)
        depth = len(self.begun)
        yield body
        if len(self.begun) != depth:
            raise KernelError(
                "K014",
                "an exception leaves a kernel loop or a branch and is caught outside it",
                hint="catch it where it is raised: the body is traced once, for all iterations",
                span=self.begun[depth],
            )
        self.reads.put_names(self.frames.pop())
        self.begun.pop()

    @contextlib.contextmanager
    def inside(self, enclosing: Enclosing) -> Generator[None]:
        self.enclosing.append(enclosing)
        try:
            yield
        finally:
            self.enclosing.pop()

    @contextlib.contextmanager
    def inside_loop(self, kind: tirx.ForKind) -> Generator[None]:
        """The body of a loop: `is_in_parallel` says whether it is one of T.Parallel, or in one."""
        before = self.is_in_parallel
        self.is_in_parallel |= kind == tirx.ForKind.PARALLEL
        try:
            yield
        finally:
            self.is_in_parallel = before

    def store(self, buffer: tirx.Buffer, indices: tuple[object, ...], value: object) -> None:
        """Emit ``buffer[indices] = value``. Raises KernelError for a wrong rank, for a slice, or if the value is a
        block."""
        dtype = buffer.ty.dtype
        check_rank(buffer, indices)
        if any(isinstance(index, slice) for index in indices):
            raise KernelError("K003", f"{buffer.name}: a slice cannot be assigned", hint="use T.copy or T.fill")
        value = plain(value)
        if isinstance(value, int | float):
            stored = constant(value, str(dtype.dtype))
        else:
            stored = element(value, f"storing to {buffer.name}")
            if stored.ty != dtype:
                stored = tirx.Cast(dtype, stored, self.tvm_span())
        index_exprs = [index_of(buffer.name, index) for index in indices]
        if buffer in self.reducers:
            stored = as_update(self.reducers[buffer], tirx.BufferLoad(buffer, index_exprs), stored)
        stored = self.shallow(str(buffer.name), stored)
        _check_stored(buffer, index_exprs)
        self.emit(tirx.BufferStore(buffer, stored, index_exprs, self.tvm_span()))

    def bind(self, name: str, value: object) -> object:
        """The value that a kernel name has after ``name = value``."""
        value = plain(value)
        if isinstance(value, AllocationRequest) or (
            isinstance(value, TensorSpec) and (value.output or value.allocated)
        ):
            return value.make(self, name)
        if (
            self.blocks
            and isinstance(value, ir.Expr)
            and ir.is_prim_expr(value)
            and not isinstance(value, ir.Var | tirx.IntImm | tirx.FloatImm)
            and not _is_short_scalar(value)
            and not _is_barrier(value)
        ):
            return self._bound(name, self.shallow(name, value))
        return value

    def _bound(self, name: str, value: ir.Expr) -> ir.Var:
        variable = tirx.Var(name, value.ty, self.tvm_span())
        self.emit(tirx.Bind(variable, value, self.tvm_span()))
        return variable

    def shallow(self, name: str, value: ir.Expr) -> ir.Expr:
        """A value to be stored or named; parts of a deep or large value get names of their own."""
        return (
            shallow(value, lambda subexpression: self._bound(self.unused(f"{name}_part"), subexpression))
            if self.blocks
            else value
        )


def _expressions_of(statement: tirx.Stmt) -> list[ir.Expr]:
    """The expressions of a statement that cannot be split into named parts."""
    match statement:
        case tirx.For():
            return [statement.min, statement.extent]
        case tirx.IfThenElse() | tirx.While():
            return [statement.condition]
        case tirx.BufferStore():
            return list(statement.indices)
        case tirx.Evaluate() if isinstance(statement.value, ir.Call):
            values = statement.value.args[:]
            regions = [operand for operand in values if isinstance(operand, ir.TensorRegion)]
            return [
                *(operand for operand in values if not isinstance(operand, ir.TensorRegion)),
                *(
                    bound
                    for region in regions
                    for axis_range in region.region[:]
                    for bound in (axis_range.min, axis_range.extent)
                ),
            ]
        case _:
            return []


def _is_barrier(value: ir.Expr) -> bool:
    """Whether a value is a barrier: its name stands for it, not for a number."""
    return isinstance(value, ir.TensorLoad) and value.source.ty.storage_scope == BARRIER_SCOPE


# A name for more than this many parts gets a statement of its own.
_SHORT = 40


def _is_short_scalar(value: ir.Expr) -> bool:
    """Whether a value is a number or condition that depends on indices alone: it is the same wherever its name is used,
    and values computed per element have no names outside the element loop."""
    if "int" in str(value.ty.dtype):
        return False
    todo, count = [value], 0
    while todo:
        node = todo.pop()
        count += 1
        if isinstance(node, ir.TensorLoad) or count > _SHORT:
            return False
        if isinstance(node, ir.Var) and "int" not in str(node.ty.dtype):
            return False
        todo += parts_of(node)
    return True


def check_rank(buffer: tirx.Buffer, indices: tuple[object, ...]) -> None:
    """Raises KernelError unless there is one index per dimension of `buffer`."""
    rank = len(buffer.ty.shape)
    if len(indices) != rank:
        raise KernelError(
            "K003",
            f"{buffer.name} has {rank} dimension{'s' if rank != 1 else ''} and is indexed with {len(indices)}",
            hint="give one index for each dimension",
        )


def constant(value: float, dtype: str) -> tirx.IntImm | tirx.FloatImm:
    """A constant of `dtype`, rounded to it. Raises KernelError if an integer dtype cannot hold the number."""
    if "int" not in dtype:
        return tirx.const(held(value, dtype), dtype)
    if isinstance(value, float) and not value.is_integer():
        raise KernelError(
            "K008", f"{value} is not an integer, as {dtype} needs", hint="cast it: int(...) or T.cast(value, dtype)"
        )
    low, high = integer_range(dtype)
    if not low <= value <= high:
        raise KernelError(
            "K008",
            f"{value} does not fit {dtype}, which holds {low} to {high}",
            hint='cast the other operand to a wider dtype, such as T.cast(x, "int32"), or cast the number itself',
        )
    return tirx.const(int(value), dtype)


@dataclass(frozen=True)
class LoopNest:
    """A loop nest of the kernel language over `extents`; only one axis may have a `start` and a `step`. With `waves`,
    the number of blocks and the index of one, it is over the places that this block takes, which `wave` counts."""

    extents: tuple[Integer, ...]
    kind: tirx.ForKind
    start: Integer = 0
    step: int = 1
    annotations: dict[str, object] = field(default_factory=dict[str, object])
    waves: tuple[Integer, Integer] | None = None
    wave: ir.Var | None = None

    def __iter__(self) -> Iterator[Any]:
        raise KernelError(
            "K010",
            "plain Python iterates over a kernel loop",
            hint="write `for k in T.serial(n):` as a statement of its own",
        )


@dataclass(frozen=True)
class SchedulerTiles:
    """The condition of a loop over the tiles of a scheduler, which hears of the loop's variables and of its end.
    `waves` and `wave` are those of :class:`Loop`."""

    extents: tuple[Integer, ...]
    waves: tuple[Integer, Integer]
    wave: ir.Var
    enter: Callable[[Builder, tuple[ir.Var, ...]], None]
    leave: Callable[[], None]

    def __bool__(self) -> bool:
        raise KernelError(
            "K010", "the condition of a tile scheduler is known only when the kernel runs",
            hint="write while sched.valid(): as a statement of its own",
        )  # fmt: skip


@dataclass(frozen=True)
class Grid:
    """The launch grid of T.Kernel. `threads` is the GPU's block size, kept as an annotation."""

    extents: tuple[Integer, ...]
    threads: object


def traced_now() -> Builder | None:
    """The builder of the kernel being traced, or None outside a kernel."""
    builder = CURRENT.get()
    return builder if isinstance(builder, Builder) else None


def current(callee: str) -> Builder:
    """The builder of the kernel being traced. Raises KernelError outside a kernel, naming `callee` as the caller."""
    builder = traced_now()
    if builder is None:
        raise KernelError(
            "K005",
            f"{callee} works only inside a kernel",
            hint="use it in a @T.prim_func or @tilelang.jit function, and trace that with ttexplore.explore",
        )
    return builder


def statement_call(
    op_name: str, operands: Sequence[Number | str], attributes: Mapping[str, object] | None = None
) -> ir.Call:
    """The call of an operation, for a statement of the kernel: if none executes it, the trace is refused."""
    operation, builder = call(op_name, operands, attributes), traced_now()
    if builder is not None:
        builder.waiting.append((operation, caller_place(builder.files)))
    return operation


def unsupported(feature: str, hint: str = "") -> Unsupported:
    return Unsupported("L001", f"{feature} is not lowered", hint=hint)


@contextlib.contextmanager
def tracing(builder: Builder) -> Generator[Builder]:
    """Make `builder` the current one, and use the operators of the kernel language."""
    # It needs this module's functions.
    from ttexplore.language.tracer.arithmetic import operator

    token, operators = CURRENT.set(builder), OPERATORS.set(operator)
    try:
        yield builder
    finally:
        builder.watch.stop()
        OPERATORS.reset(operators)
        CURRENT.reset(token)
