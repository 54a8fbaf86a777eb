"""A kernel as a value: operations with named operands, bindings, loops and branches, read from TIR once.

The verifier, the emitter and, from D3 on, the interpreter look at this; nothing else takes the nodes of reader, compute
and writer apart. Reading a field of a node costs about a microsecond, and statements are looked at many times.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import tvm
from tvm import ir, tirx

from ttexplore.errors import Unsupported, VerifyError
from ttexplore.ir.adapter import elements, identity, is_buffer, span_of
from ttexplore.ir.arithmetic.bounds import block_ranges
from ttexplore.ir.arithmetic.index import (
    RANGES,
    CoreItem,
    CoreValue,
    Expression,
    Variable,
    convert,
    placed,
    value_range,
    variables,
)  # fmt: skip
from ttexplore.ir.arithmetic.sizes import bound_sizes, size_variables
from ttexplore.ir.branches import branch_condition
from ttexplore.ir.build import arguments, bound_form, dtype_of, op_name, regions, scope_of, shape_of, statements
from ttexplore.ir.listing import origins_of
from ttexplore.ops import FORMS
from ttexplore.ops import language as tl
from ttexplore.ops.op import CB_SCOPE, DST_SCOPE, Form, Op, Phase
from ttexplore.plan import SIZE_PREFIX
from ttexplore.record import Origin, Span


@dataclass(frozen=True, slots=True, eq=False)
class SourceLocation:
    """Where in the user's file something comes from. It is looked up when somebody asks: for errors, and for text."""

    _node: tirx.Stmt | ir.Var

    @property
    def is_known(self) -> bool:
        return self._node.span is not None

    @property
    def span(self) -> Span | None:
        return span_of(self._node)

    def origins(self, around: tuple[Origin, ...] = ()) -> tuple[Origin, ...]:
        """The origins of a statement: its own, else, inferred, those of what is around it."""
        return origins_of(self._node, around)

    def __str__(self) -> str:
        return str(self._node)


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A tensor, a circular buffer or an array of tiles in DST, as the kernel holds it."""

    name: str
    scope: str
    dtype: str
    place: SourceLocation


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """An operation of the table: a call, an init or an uninit.

    `values` are its numbers by operand, of a dst operand the slot; `buffers` its tensors, circular buffers and, of dst
    operands, arrays. `result` is the name of the number that it gives, where it gives one, and `least` and `most` what
    that can be.
    """

    place: SourceLocation
    name: str
    form: Form
    values: Mapping[str, Expression]
    buffers: Mapping[str, Buffer]
    result: Variable | None = None
    least: int = 0
    most: int = 0

    @property
    def op(self) -> Op:
        return self.form.op

    @property
    def phase(self) -> Phase:
        return self.form.phase

    @property
    def span(self) -> Span | None:
        return self.place.span

    def buffer(self, operand: str) -> str:
        """The name of the buffer that an operand is."""
        return self.buffers[operand].name

    def number(self, operand: str) -> int:
        """An operand that is a constant."""
        value = self.values[operand]
        assert isinstance(value, int), value
        return value


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    place: SourceLocation
    buffer: Buffer
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """What a kernel that is not split stores to a tensor: start and length along each axis, where that is known."""

    place: SourceLocation
    tensor: str
    region: tuple[tuple[Expression, Expression], ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class Bind:
    place: SourceLocation
    variable: Variable
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop from `low` on to before `end`, over `extent` turns; `turns` is their number if it is constant.

    `names` are the operations below it, `tested` the variables of the conditions below it.
    """

    place: SourceLocation
    variable: Variable
    low: Expression
    extent: Expression
    end: Expression
    turns: int | None
    body: tuple[Statement, ...]
    names: frozenset[str]
    tested: frozenset[Variable]


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    place: SourceLocation
    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]
    has_else: bool


Statement = Call | Allocation | Store | Bind | Loop | Branch
Body = Sequence[Statement]


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A kernel: its statements, the circular buffers that its operations name, its tensors, the core values it reads.

    `sizes` are its parameters that are T.dynamic sizes, `bound_sizes` the names of those that the host gives to each
    core; `blocks` tells of a block index how many there are; `unplaced` is a statement that knows no kernel line, if
    there is one: what passes allocate needs none.
    """

    role: str
    body: tuple[Statement, ...]
    names: frozenset[str]
    buffers: Mapping[str, Buffer]
    tensors: tuple[str, ...]
    core_values: tuple[str, ...]
    sizes: tuple[Variable, ...]
    bound_sizes: frozenset[Variable]
    blocks: Mapping[Variable, Expression]
    unplaced: SourceLocation | None


def kernel_name(role: str) -> str:
    """A kernel in a message."""
    return "the compute kernel" if role == "compute" else f"the {role}"


# Reading


class FunctionReader:
    """Reads functions of one program, so that a variable is the same in all of them.

    With `sizes`, by core value, a kernel is read for these sizes: they stand where it names them.
    """

    def __init__(self) -> None:
        self.sizes: Mapping[str, int] = {}
        self.fixed: dict[Variable, Expression] = {}
        # By identity, as is what follows; `seen` keeps the variables, and so their numbers.
        self.numbers: dict[int, Variable] = {}
        self.seen: list[ir.Var] = []
        self.bound: dict[Variable, Expression] = {}
        self.simplifier = tvm.sym.Analyzer()
        # What passes did not touch is not read again.
        self.known: dict[int, Call | Bind | Allocation] = {}
        # Of loops, by role, also the operations, the variables of conditions and the circular buffers in them.
        self.loops: dict[tuple[str, int], tuple[Loop | Branch, set[str], set[Variable], dict[str, Buffer]]] = {}
        self.held: dict[int, Buffer] = {}
        # Of the kernel that is read.
        self.role, self.who = "kernel", kernel_name("kernel")
        self.buffers: dict[str, Buffer] = {}
        self.unplaced: SourceLocation | None = None

    def copy(self) -> FunctionReader:
        """A reader that has read the same functions, and goes on by itself."""
        duplicate = copy.copy(self)
        duplicate.fixed, duplicate.numbers, duplicate.seen = dict(self.fixed), dict(self.numbers), list(self.seen)
        duplicate.bound, duplicate.known, duplicate.held = dict(self.bound), dict(self.known), dict(self.held)
        duplicate.loops = dict(self.loops)
        return duplicate

    def variable(self, var: ir.Var) -> Variable:
        number = identity(var)
        variable = self.numbers.get(number)
        if variable is None:
            variable = self.numbers[number] = Variable(len(self.numbers), str(var.name))
            self.seen.append(var)
        return variable

    def read(self, role: str, function: tirx.PrimFunc) -> Kernel:
        """Raises VerifyError for an operand of the wrong kind, Unsupported for what is in no table."""
        self.role, self.who = role, kernel_name(role)
        self.buffers, self.unplaced = {}, None
        tensors: list[str] = []
        numbers: list[ir.Var] = []
        for param in elements(function.params):
            if (tensor := self.buffer(param)) is not None:
                tensors.append(tensor.name)
                continue
            numbers.append(param)
            if f"{SIZE_PREFIX}{param.name}" in self.sizes:
                self.fixed[self.variable(param)] = self.sizes[f"{SIZE_PREFIX}{param.name}"]
        body, names, _ = self.body(function.body)
        sizes = tuple(map(self.variable, size_variables(function))) if numbers else ()
        blocks = block_ranges(function)
        return Kernel(
            role, body, frozenset(names), self.buffers, tuple(tensors), tuple(dict.fromkeys(_core_values(body))), sizes,
            frozenset(map(self.variable, bound_sizes(function))),
            {self.variable(var): self.expression(count) for var, count in blocks.items()}, self.unplaced,
        )  # fmt: skip

    def place(self, statement: tirx.Stmt) -> SourceLocation:
        site = SourceLocation(statement)
        if not site.is_known:
            self.unplaced = self.unplaced or site
        return site

    def body(self, body: tirx.Stmt) -> tuple[tuple[Statement, ...], set[str], set[Variable]]:
        converted: list[Statement] = []
        names, tested = set[str](), set[Variable]()
        for statement in statements(body):
            if type(statement) is tirx.Evaluate:
                number = identity(statement)
                operation = self.known.get(number)
                if operation is None:
                    operation = self.evaluated(statement)
                    if isinstance(operation, Call):
                        self.known[number] = operation
                if isinstance(operation, Call):
                    names.add(operation.name)
                    for buffer in operation.buffers.values():
                        if buffer.scope == CB_SCOPE:
                            self.buffers[buffer.name] = buffer
                if operation is not None:
                    converted.append(operation)
            elif type(statement) is tirx.For:
                key = self.role, identity(statement)
                if key not in self.loops:
                    self.loops[key] = self.repeated(statement)
                repeated, inner_names, inner_tested, inner_buffers = self.loops[key]
                converted.append(repeated)
                names |= inner_names
                tested |= inner_tested
                self.buffers |= inner_buffers
            elif type(statement) is tirx.IfThenElse:
                condition, has_else = self.expression(statement.condition), statement.else_case is not None
                arms = [self.body(arm) for arm in (statement.then_case, statement.else_case) if arm is not None]
                converted.append(
                    Branch(self.place(statement), condition, arms[0][0], arms[1][0] if has_else else (), has_else)
                )
                names = names.union(*(arm_names for _, arm_names, _ in arms))
                tested = tested.union(variables(placed(condition, self.bound)), *(in_arm for _, _, in_arm in arms))
            elif type(statement) is tirx.BufferStore and scope_of(statement.buffer) == "global":
                converted.append(Store(self.place(statement), str(statement.buffer.name), None))
            elif type(statement) is tirx.Bind and (form := bound_form(statement)) is not None:
                operation = self.call(statement, form)
                names.add(operation.name)
                for buffer in operation.buffers.values():
                    if buffer.scope == CB_SCOPE:
                        self.buffers[buffer.name] = buffer
                converted.append(operation)
            elif type(statement) is tirx.Bind:
                number = identity(statement)
                operation = self.known.get(number)
                if operation is None:
                    operation = self.known[number] = self.named(statement)
                converted.append(operation)
            elif type(statement) is tirx.AllocBuffer:
                number = identity(statement)
                operation = self.known.get(number)
                if operation is None:
                    operation = self.known[number] = self.allocation(statement)
                converted.append(operation)
            elif self.role != "kernel":
                raise _no_text(type(statement).__name__, statement)
        return tuple(converted), names, tested

    def repeated(self, statement: tirx.For) -> tuple[Loop | Branch, set[str], set[Variable], dict[str, Buffer]]:
        """A loop, or the branch that it stands for, and what is in it."""
        around, self.buffers = self.buffers, {}
        inner, names, tested = self.body(statement.body)
        test = branch_condition(statement)
        if test is None:
            repeated = self.loop(statement, inner, frozenset(names), frozenset(tested))
        else:
            condition = self.expression(test)
            repeated = Branch(self.place(statement), condition, inner, (), has_else=False)
            tested |= variables(placed(condition, self.bound))
        within, self.buffers = self.buffers, around
        return repeated, names, tested, within

    def named(self, statement: tirx.Bind) -> Bind:
        bind = Bind(self.place(statement), self.variable(statement.var), self.expression(statement.value))
        self.bound[bind.variable] = bind.value
        # Conditions in them may name it.
        self.loops.clear()
        if isinstance(bind.value, CoreValue) and bind.value.name in self.sizes:
            self.fixed[bind.variable] = self.sizes[bind.value.name]
        return bind

    def loop(
        self, statement: tirx.For, body: tuple[Statement, ...], names: frozenset[str], tested: frozenset[Variable]
    ) -> Loop:
        low, extent = self.expression(statement.min), self.expression(statement.extent)
        interval = (extent, extent) if isinstance(extent, int) else value_range(extent, {})
        turns = None if interval is None else int(interval[0])
        extent = extent if turns is None else turns
        end = extent
        if low != 0:
            end = self.expression(self.simplifier.simplify(tirx.Add(statement.min, statement.extent)))
        variable = self.variable(statement.loop_var)
        return Loop(self.place(statement), variable, low, extent, end, turns, body, names, tested)

    def allocation(self, statement: tirx.AllocBuffer) -> Allocation:
        buffer = self.buffer(statement.buffer)
        assert buffer is not None
        site = SourceLocation(statement) if buffer.scope.startswith("tt.") else self.place(statement)
        return Allocation(site, buffer, shape_of(statement.buffer))

    def expression(self, e: ir.Expr) -> Expression:
        converted = convert(e, self.variable)
        return placed(converted, self.fixed) if self.fixed else converted

    def buffer(self, value: ir.Expr) -> Buffer | None:
        """What an argument that is a buffer holds; None for another argument."""
        if type(value) is not ir.Var:
            return None
        number = identity(value)
        buffer = self.held.get(number)
        if buffer is None and is_buffer(value):
            # Its place keeps the node, and so its number.
            buffer = self.held[number] = Buffer(
                str(value.name), scope_of(value), dtype_of(value), SourceLocation(value)
            )
        return buffer

    def evaluated(self, statement: tirx.Evaluate) -> Call | Store | None:
        name = op_name(statement)
        form = FORMS.get(name)
        if form is not None:
            return self.call(statement, form)
        if self.role != "kernel":
            raise _no_text(name or str(statement), statement)
        target = regions(statement)[1] if name == tl.COPY.name else None
        if target is None or scope_of(target.source) != "global":
            return None
        region = tuple((self.expression(axis.min), self.expression(axis.extent)) for axis in target.region)
        return Store(self.place(statement), str(target.source.name), region)

    def call(self, statement: tirx.Evaluate | tirx.Bind, form: Form) -> Call:
        operands, site = arguments(statement), self.place(statement)
        values: dict[str, Expression] = {}
        buffers: dict[str, Buffer] = {}
        if len(operands) not in form.arities:
            raise VerifyError(
                "V043",
                f"{self.who}: {form.name} has {len(operands)} arguments, but it takes {form.arities[-1]}",
                hint=f"its operands are {', '.join(operand.name for operand in form.operands)}",
                span=site.span,
            )
        for operand, value, slot, _ in form.given(operands):
            buffer, scope = self.buffer(value), _SCOPES.get(operand.kind)
            if scope is None:
                if buffer is not None:
                    raise VerifyError(
                        "V043",
                        f"{self.who}: {form.op.name} takes a number as {operand.name}, not the buffer {buffer.name}",
                        hint="give the operands in the order of the operation table",
                        span=site.span,
                    )
                values[operand.name] = self.expression(value)
                continue
            if buffer is None or buffer.scope != scope:
                raise VerifyError(
                    "V043",
                    f"{self.who}: {form.op.name} takes a {operand.kind} as {operand.name}, not {value}",
                    hint="give the operands in the order of the operation table",
                    span=site.span,
                )
            buffers[operand.name] = buffer
            if slot is not None:
                values[operand.name] = self.expression(slot)
        if type(statement) is not tirx.Bind:
            return Call(site, form.name, form, values, buffers)
        least, most = RANGES[str(statement.var.ty.dtype)]
        return Call(site, form.name, form, values, buffers, self.variable(statement.var), least, most)


_SCOPES = {"cb": CB_SCOPE, "dst": DST_SCOPE, "tensor": "global"}


def _no_text(construct: str, statement: tirx.Stmt) -> Unsupported:
    return Unsupported(
        "L012",
        f"{construct} cannot be written as C++",
        hint="a pass left an operation that it should have replaced: please report the kernel",
        span=span_of(statement),
    )


def _core_values(body: Body) -> Iterator[str]:
    """The values of its core that a kernel reads, in order."""
    for statement in walk(body):
        match statement:
            case Bind(value=CoreValue(name) | CoreItem(name)):
                yield name
            case _:
                pass


# Going through


def walk(body: Body) -> Iterator[Statement]:
    """All statements of a body and below it, in order."""
    for statement in body:
        yield statement
        match statement:
            case Loop():
                yield from walk(statement.body)
            case Branch():
                yield from walk(statement.then)
                yield from walk(statement.otherwise)
            case Call() | Allocation() | Store() | Bind():
                pass
            case _:
                assert_never(statement)


def calls(body: Body) -> list[Call]:
    """The operations in a body, in order."""
    collected: list[Call] = []
    _collect(body, collected)
    return collected


def giving(body: Body) -> list[Call]:
    """The operations in a body that give a number, in order. A run tells their numbers by their positions here."""
    return [call for call in calls(body) if call.result is not None]


def _collect(body: Body, collected: list[Call]) -> None:
    for statement in body:
        match statement:
            case Call():
                collected.append(statement)
            case Loop():
                _collect(statement.body, collected)
            case Branch():
                _collect(statement.then, collected)
                _collect(statement.otherwise, collected)
            case Allocation() | Store() | Bind():
                pass
            case _:
                assert_never(statement)


def alike(body: Body, other_body: Body, counts: Callable[[Statement], bool]) -> bool:
    """Whether two bodies have the very same operations in the same loops and branches, of the statements that count."""
    left, right = (list(filter(counts, side)) for side in (body, other_body))
    return len(left) == len(right) and all(_alike(*pair, counts) for pair in zip(left, right, strict=True))


def _alike(first: Statement, second: Statement, counts: Callable[[Statement], bool]) -> bool:
    if first is second:
        return True
    match first, second:
        case Loop(), Loop():
            same = (first.variable, first.low, first.extent) == (second.variable, second.low, second.extent)
            return same and alike(first.body, second.body, counts)
        case Branch(), Branch():
            arms = (first.then, second.then), (first.otherwise, second.otherwise)
            return first.condition == second.condition and all(alike(*both, counts) for both in arms)
        case Bind(), Bind():
            return (first.variable, first.value) == (second.variable, second.value)
        case _:
            return False


def uses(body: Body, variable: Variable) -> bool:
    """Whether a statement in a body names a variable."""
    return any(variable in variables(e) for statement in walk(body) for e in _expressions(statement))


def _expressions(statement: Statement) -> Sequence[Expression]:
    """What a statement computes itself."""
    match statement:
        case Call():
            return tuple(statement.values.values())
        case Bind(value=CoreItem(_, position)):
            return (position,)
        case Bind():
            return (statement.value,)
        case Loop():
            return statement.low, statement.extent
        case Branch():
            return (statement.condition,)
        case Store():
            return [e for span in statement.region or () for e in span]
        case Allocation():
            return ()
        case _:
            assert_never(statement)


class Walk:
    """Goes through the statements of a kernel in order, as they run; what each kind means is the subclass's."""

    def body(self, body: Body) -> None:
        for statement in body:
            match statement:
                case Call():
                    self.call(statement)
                case Loop():
                    self.loop(statement)
                case Branch():
                    self.branch(statement)
                case Bind():
                    self.bind(statement)
                case Allocation() | Store():
                    pass
                case _:
                    assert_never(statement)

    def call(self, call: Call) -> None:
        raise NotImplementedError

    def loop(self, loop: Loop) -> None:
        raise NotImplementedError

    def branch(self, branch: Branch) -> None:
        raise NotImplementedError

    def bind(self, bind: Bind) -> None:
        raise NotImplementedError
