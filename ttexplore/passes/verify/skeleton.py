"""What the verifier looks at: the statements of a kernel as plain Python values, read from TIR once.

Reading a field of a TIR node costs about a microsecond; the checks visit statements many times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm import tirx

from ttexplore.errors import VerifyError
from ttexplore.ir.adapter import is_buffer, span_of
from ttexplore.ir.build import arguments, op_name, scope_of, statements
from ttexplore.ir.index import (
    ANY_ITEM,
    Binary,
    CoreItem,
    CoreValue,
    Expression,
    Range,
    Variable,
    always,
    convert,
    placed,
    value_range,
    variables,
)  # fmt: skip
from ttexplore.ops import FORMS, OPS
from ttexplore.ops.op import Form, Op
from ttexplore.plan import SIZE_PREFIX, Plan
from ttexplore.record import Span


@dataclass(slots=True, eq=False)
class Call:
    """An operation: `op` of the table, and the values of its operands by name.

    A circular buffer or tensor is given by its name, a dst operand by the index (the buffer is in `dst`). `phase` is
    ``init`` or ``uninit`` for the configuration of `op`, else empty; `buffers` are its circular buffers by name. Of a
    T.copy and of a store of elements only the tensor that they write, ``target``, is kept.
    """

    node: Any
    name: str
    op: Op | None
    phase: str
    values: dict[str, Any]
    dst: dict[str, str]
    buffers: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def span(self) -> Span | None:
        return span_of(self.node)


@dataclass(slots=True, eq=False)
class Bind:
    node: Any
    variable: Variable
    value: Expression


@dataclass(slots=True, eq=False)
class Loop:
    """A loop from `low` on; `turns` is its constant length, else None."""

    node: Any
    variable: Variable
    low: Expression
    extent: Expression
    turns: int | None
    body: list[Any]
    # The names of the operations below it, and the variables of the conditions below it.
    names: frozenset[str] = frozenset()
    tested: frozenset[Variable] = frozenset()
    # Whether something below it works on DST.
    slots: bool = False


@dataclass(slots=True, eq=False)
class Branch:
    node: Any
    condition: Expression
    then: list[Any]
    otherwise: list[Any]


Statement = Call | Bind | Loop | Branch


def kernel_name(role: str) -> str:
    """A kernel in a message."""
    return "the compute kernel" if role == "compute" else f"the {role}"


@dataclass(slots=True)
class Skeleton:
    """A kernel: its statements, the buffers that it names in operations, its tensors, and the core values it reads."""

    role: str
    function: Any
    body: list[Statement]
    names: frozenset[str]
    buffers: dict[str, Any] = field(default_factory=dict[str, Any])
    tensors: tuple[str, ...] = ()
    core_values: tuple[str, ...] = ()


class Reader:
    """Reads functions of one program, so that a variable is the same in all of them."""

    def __init__(self) -> None:
        # What holds is proved for the sizes that the plan is bound to, by core value.
        self.sizes: Mapping[str, int] = {}
        self.fixed: dict[Variable, Expression] = {}
        self.numbers: dict[Any, Variable] = {}
        self.bound: dict[Variable, Expression] = {}
        # What passes did not touch is not read again.
        self.known: dict[Any, Call] = {}

    def variable(self, one: Any) -> Variable:
        found = self.numbers.get(one)
        if found is None:
            found = self.numbers[one] = Variable(len(self.numbers), str(one.name))
        return found

    def function(self, role: str, function: Any) -> Skeleton:
        """Raises VerifyError for an operand of the wrong kind."""
        self.who = kernel_name(role)
        self.buffers: dict[str, Any] = {}
        for one in function.params:
            if not is_buffer(one) and f"{SIZE_PREFIX}{one.name}" in self.sizes:
                self.fixed[self.variable(one)] = self.sizes[f"{SIZE_PREFIX}{one.name}"]
        body, names, _ = self.body(function.body)
        tensors = tuple(str(one.name) for one in function.params if is_buffer(one))
        values = tuple(dict.fromkeys(core_values(body)))
        return Skeleton(role, function, body, frozenset(names), self.buffers, tensors, values)

    def body(self, body: Any) -> tuple[list[Statement], set[str], set[Variable]]:
        made: list[Statement] = []
        names, tested = set[str](), set[Variable]()
        for statement in statements(body):
            kind = type(statement)
            if kind is tirx.Evaluate:
                call = self.known.get(statement)
                if call is None:
                    call = self.known[statement] = self.call(statement)
                self.buffers |= call.buffers
                names.add(call.name)
                made.append(call)
            elif kind is tirx.For:
                inner, inner_names, inner_tested = self.body(statement.body)
                extent = self.expression(statement.extent)
                found = value_range(extent, {})
                turns = None if found is None else int(found[0])
                extent = extent if turns is None else turns
                low, loop_variable = self.expression(statement.min), self.variable(statement.loop_var)
                made.append(
                    Loop(statement, loop_variable, low, extent, turns, inner, frozenset(inner_names),
                         frozenset(inner_tested), any(name in _ON_DST for name in inner_names))
                )  # fmt: skip
                names |= inner_names
                tested |= inner_tested
            elif kind is tirx.IfThenElse:
                condition = self.expression(statement.condition)
                then, then_names, then_tested = self.body(statement.then_case)
                otherwise: list[Statement] = []
                if statement.else_case is not None:
                    otherwise, other_names, other_tested = self.body(statement.else_case)
                    then_names, then_tested = then_names | other_names, then_tested | other_tested
                made.append(Branch(statement, condition, then, otherwise))
                names |= then_names
                tested |= then_tested | variables(placed(condition, self.bound))
            elif kind is tirx.BufferStore:
                if scope_of(statement.buffer) == "global":
                    made.append(Call(statement, "store", None, "", {"target": (str(statement.buffer.name), [])}, {}))
                    names.add("store")
            elif kind is tirx.Bind:
                bind = Bind(statement, self.variable(statement.var), self.expression(statement.value))
                self.bound[bind.variable] = bind.value
                if isinstance(bind.value, CoreValue) and bind.value.name in self.sizes:
                    self.fixed[bind.variable] = self.sizes[bind.value.name]
                made.append(bind)
        return made, names, tested

    def expression(self, e: Any) -> Expression:
        made = convert(e, self.variable)
        return placed(made, self.fixed) if self.fixed else made

    def call(self, statement: Any) -> Call:
        name = op_name(statement)
        form = FORMS.get(name)
        if form is not None:
            call = Call(statement, name, form.op, form.phase, {}, {})
            self.operands(call, form)
            return call
        call = Call(statement, name, None, "", {}, {})
        if name == "tl.copy":
            call.values["target"] = self.region(arguments(statement)[1])
        return call

    def region(self, region: Any) -> tuple[str, list[tuple[Expression, Expression]]] | None:
        """The tensor of a region with the start and length along each axis; None for an on-chip buffer."""
        if scope_of(region.source) != "global":
            return None
        parts = [(self.expression(part.min), self.expression(part.extent)) for part in region.region]
        return str(region.source.name), parts

    def operands(self, call: Call, form: Form) -> None:
        op, values = form.op, arguments(call.node)
        if len(values) not in form.arities:
            raise VerifyError(
                f"{self.who}: {call.name} has {len(values)} arguments, it takes {form.arities[-1]}",
                hint=f"its operands are {', '.join(operand.name for operand in form.operands)}",
                span=call.span,
            )
        for operand, value, slot, _ in form.given(values):
            scope = _SCOPES.get(operand.kind)
            if scope is not None:
                if not (is_buffer(value) and scope_of(value) == scope):
                    raise VerifyError(
                        f"{self.who}: {op.name} wants a {operand.kind} as {operand.name}, not {value}",
                        hint="give the operands in the order of the operation table",
                        span=call.span,
                    )
                name = str(value.name)
                if operand.kind == "dst":
                    call.dst[operand.name] = name
                    call.values[operand.name] = self.expression(slot)
                    continue
                call.values[operand.name] = name
                if operand.kind == "cb":
                    call.buffers[name] = value
            else:
                if is_buffer(value):
                    raise VerifyError(
                        f"{self.who}: {op.name} wants a number as {operand.name}, not the buffer {value.name}",
                        hint="give the operands in the order of the operation table",
                        span=call.span,
                    )
                call.values[operand.name] = self.expression(value)


_SCOPES = {"cb": "tt.cb", "dst": "tt.dst", "tensor": "global"}
_ON_DST = frozenset(
    name
    for name, op in OPS.items()
    if name.startswith("tt.tile_regs_") or op.engine == "block" or any(o.kind == "dst" for o in op.operands)
)


class Walk:
    """Goes through the statements of a kernel in order, as they run; what each kind means is the subclass's."""

    def body(self, body: list[Statement]) -> None:
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

    def call(self, call: Call) -> None:
        raise NotImplementedError

    def loop(self, loop: Loop) -> None:
        raise NotImplementedError

    def branch(self, branch: Branch) -> None:
        raise NotImplementedError

    def bind(self, bind: Bind) -> None:
        raise NotImplementedError


def calls(body: list[Statement]) -> list[Call]:
    """The operations in a body, in order."""
    found: list[Call] = []
    for statement in body:
        match statement:
            case Call():
                found.append(statement)
            case Loop():
                found += calls(statement.body)
            case Branch():
                found += calls(statement.then) + calls(statement.otherwise)
            case Bind():
                pass
    return found


def core_values(body: list[Statement]) -> list[str]:
    """The values of its core that a kernel reads, in order."""
    found: list[str] = []
    for statement in body:
        match statement:
            case Bind(value=CoreValue(name) | CoreItem(name)):
                found.append(name)
            case Loop():
                found += core_values(statement.body)
            case Branch():
                found += core_values(statement.then) + core_values(statement.otherwise)
            case Bind() | Call():
                pass
    return found


def core_ranges(plan: Plan) -> dict[Any, Range]:
    """The range of what all cores are given: from the least to the most that one is given."""
    cores = plan.partition.cores if plan.partition is not None else ()
    names = dict.fromkeys(name for core in cores for name in core.values)
    values = {name: [core.values.get(name, 0) for core in cores] for name in names}
    found: dict[Any, Range] = {CoreValue(name): (min(all_), max(all_)) for name, all_ in values.items()}
    if listed := [item for core in cores for item in core.listed]:
        found[ANY_ITEM] = (min(listed), max(listed))
    return found


def may_be_empty(loop: Loop, known: Mapping[Any, Range], bound: Mapping[Variable, Expression]) -> bool:
    """Whether a loop may make no turn, as far as ranges and what names stand for tell."""
    lengths = (loop.extent, placed(loop.extent, bound))
    return not any(always(Binary(">=", one, 1), known) for one in lengths)
