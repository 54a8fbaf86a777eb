"""A kernel for groups of threads as a tree: loops, branches and statements, each with the groups that execute it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import elements, identity, span_of
from ttexplore.ir.arithmetic.expression import format_expression
from ttexplore.ir.arithmetic.index import (
    Binary,
    Expression,
    Variable,
    VariableNumbers,
    affine,
    compiled,
    convert,
    parts_of,
    placed,
    variables,
)
from ttexplore.ir.build import (
    arguments,
    constant,
    expressions_of,
    op_name,
    regions,
    scope_of,
    statements,
)
from ttexplore.ir.dataflow import AccessKind, is_parallel, loads_of, regions_used
from ttexplore.ir.operations.groups import AT_BARRIERS, BARRIER_SCOPE, ThreadGroups
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl

# The values of the loops around a statement, by slot.
Values = list[int]
# Whether a condition must hold, or must not.
Guard = tuple[ir.Expr, bool]
Groups = frozenset[int]
# Of an axis of a region: what its start has in it that is the same for all groups, and where it begins and ends; None
# is the whole axis.
Axis = tuple[tuple[tuple[Expression, int], ...], int, int] | None


@dataclass(eq=False)
class Item:
    """A part of the tree. `number` is its place in the kernel, `leaves` are the numbers of its statements."""

    number: int
    groups: Groups
    leaves: frozenset[int]
    guards: tuple[Guard, ...] = ()


@dataclass(eq=False)
class Leaf(Item):
    """A statement that is one step of its groups. `order` numbers all of them; `loops` are those around it."""

    statement: tirx.Stmt = field(kw_only=True)
    accesses: tuple[RegionAccess, ...] = ()
    loops: tuple[tirx.For, ...] = ()


@dataclass(eq=False)
class LoopItem(Item):
    """A loop, or several that go turn by turn."""

    loops: list[tirx.For] = field(kw_only=True)
    body: list[Item] = field(kw_only=True)


@dataclass(eq=False)
class BranchItem(Item):
    statement: tirx.IfThenElse = field(kw_only=True)
    then: list[Item] = field(kw_only=True)
    otherwise: list[Item] | None = None


@dataclass(frozen=True)
class RegionAccess:
    """What a statement reads or writes of a buffer: a function of the values of the loops gives the region."""

    buffer: tirx.Buffer
    kind: AccessKind
    region: Callable[[Values], tuple[Axis, ...]]


class UndecidedError(Exception):
    """What groups do depends on a block index."""

    def __init__(self, variable: ir.Var) -> None:
        super().__init__(str(variable.name))
        self.variable = variable


class Numbers:
    """The integers of a kernel as functions of the values of its loops. What names stand for is written out. `blocks`
    are block indices that could be values, too."""

    def __init__(self, blocks: Sequence[ir.Var]) -> None:
        self.blocks = blocks
        self.number = VariableNumbers()
        self._bound: dict[Variable, Expression] = {}
        self._slots: dict[Variable, int] = {}
        self._functions: dict[int, tuple[ir.Expr, Callable[[Values], int]]] = {}

    def slot(self, variable: ir.Var) -> int:
        """The place of a loop's variable, or of a block index that is chosen, among the values."""
        return self._slots.setdefault(self.number(variable), len(self._slots))

    @property
    def slots(self) -> int:
        return len(self._slots)

    def bind(self, variable: ir.Var, value: ir.Expr) -> None:
        self._bound[self.number(variable)] = self.text(value)

    def text(self, expression: ir.Expr) -> Expression:
        return placed(convert(expression, self.number), self._bound)

    def function(self, expressions: Sequence[Expression]) -> Callable[[Values], tuple[int, ...]] | None:
        """A function of the values; None for what depends on anything else."""
        return compiled(expressions, "v", {variable: f"v[{slot}]" for variable, slot in self._slots.items()})

    def value(self, expression: ir.Expr) -> Callable[[Values], int] | None:
        evaluator = self.function([self.text(expression)])
        return None if evaluator is None else lambda values: int(evaluator(values)[0])

    def decided(self, expression: ir.Expr, label: str, at: tirx.Stmt) -> Callable[[Values], int]:
        """The function that decides what groups do. Raises Unsupported for one that depends on anything but loops."""
        key = identity(expression)
        if key not in self._functions:
            evaluator = self.value(expression)
            if evaluator is None:
                used = variables(self.text(expression))
                for variable in self.blocks:
                    if self.number(variable) in used:
                        raise UndecidedError(variable)
                raise Unsupported(
                    "L017",
                    f"{label} {format_expression(expression)} of groups of threads is known only when the kernel runs",
                    hint="give loops of thread groups constant lengths: pass sizes as arguments of the factory",
                    span=span_of(at),
                )
            self._functions[key] = expression, evaluator
        return self._functions[key][1]

    def axis(self, start: Expression, extent: int) -> Callable[[Values], Axis]:
        """An axis of a region that starts there."""
        same: dict[Expression, int] = {}
        varying_sum: Expression = 0
        for term, factor in _terms(start).items():
            used = variables(term)
            if used and not any(variable in self._slots for variable in used) and not _has_unknown(term):
                same[term] = same.get(term, 0) + factor
            else:
                varying_sum = Binary("+", varying_sum, Binary("*", term, factor))
        evaluator = self.function([varying_sum])
        if evaluator is None:
            return lambda values: None
        key = tuple(sorted(((term, factor) for term, factor in same.items() if factor), key=str))

        def axis(values: Values) -> Axis:
            low = int(evaluator(values)[0])
            return key, low, low + extent

        return axis


def _has_unknown(e: Expression) -> bool:
    return not isinstance(e, int | Variable) and (not parts_of(e) or any(map(_has_unknown, parts_of(e))))


def _terms(e: Expression) -> dict[Expression, int]:
    """The factor of each part of a sum, that of 1 for its constant."""
    match e:
        case int():
            return {1: e}
        case Binary("+" | "-" as symbol):
            left, right = _terms(e.left), _terms(e.right)
            sign = 1 if symbol == "+" else -1
            return {term: left.get(term, 0) + sign * right.get(term, 0) for term in {**left, **right}}
        case Binary("*", int(scale), rest) | Binary("*", rest, int(scale)):
            return {term: factor * scale for term, factor in _terms(rest).items()}
        case _:
            return {e: 1}


# Reading


class Tree:
    """The body of a kernel's block. Raises Unsupported for statements that are no step of a group of threads."""

    def __init__(
        self, body: Sequence[tirx.Stmt], grouping: ThreadGroups, chosen: Sequence[ir.Var], blocks: Sequence[ir.Var]
    ) -> None:
        self.grouping = grouping
        self.numbers = Numbers(blocks)
        for variable in chosen:
            self.numbers.slot(variable)
        self.leaves: list[Leaf] = []
        self.allocations: list[tirx.AllocBuffer] = []
        self.count = 0
        self.items = self._body(body, grouping.all, ())

    def _body(self, body: Sequence[tirx.Stmt], groups: Groups, loops: tuple[tirx.For, ...]) -> list[Item]:
        return [item for statement in body for item in self._items(statement, groups, loops)]

    def _items(self, statement: tirx.Stmt, groups: Groups, loops: tuple[tirx.For, ...]) -> list[Item]:
        number = self.count
        self.count += 1
        match statement:
            case tirx.IfThenElse() if statement in self.grouping.taken:
                then_groups = self.grouping.taken[statement]
                otherwise = [] if statement.else_case is None else statements(statement.else_case)
                items: list[Item] = []
                for side, chosen in (
                    (statements(statement.then_case), then_groups),
                    (otherwise, self.grouping.all - then_groups),
                ):
                    if groups & chosen:
                        items += self._body(side, groups & chosen, loops)
                return items
            case tirx.IfThenElse():
                self.numbers.decided(statement.condition, "the condition", statement)
                then = self._body(statements(statement.then_case), groups, loops)
                otherwise = None
                if statement.else_case is not None:
                    otherwise = self._body(statements(statement.else_case), groups, loops)
                inner = _leaves([*then, *(otherwise or [])])
                return [BranchItem(number, groups, inner, statement=statement, then=then, otherwise=otherwise)]
            case tirx.For() if not is_parallel(statement):
                self.numbers.slot(statement.loop_var)
                for bound in (statement.min, statement.extent):
                    self.numbers.decided(bound, "the length", statement)
                body = self._body(statements(statement.body), groups, (*loops, statement))
                return [LoopItem(number, groups, _leaves(body), loops=[statement], body=body)]
            case tirx.Bind():
                self.numbers.bind(statement.var, statement.value)
                if statement.var in self.grouping.names:
                    return []
            case tirx.AllocBuffer():
                self.allocations.append(statement)
                if scope_of(statement.buffer) == BARRIER_SCOPE:
                    return []
            case tirx.BufferStore() | tirx.For():
                pass
            case tirx.Evaluate() if op_name(statement) in tl.STATEMENTS:
                if op_name(statement) in AT_BARRIERS:
                    for node in arguments(statement):
                        expression = node.indices[0] if isinstance(node, ir.TensorLoad) else node
                        self.numbers.decided(expression, "the barrier or parity", statement)
            case _:
                raise Unsupported(
                    "L017",
                    f"{type(statement).__name__} among groups of threads",
                    hint="write loops of constant length with range or T.Pipelined",
                    span=span_of(statement),
                )
        for node in walk(statement):
            refuse_threads(node, self.grouping)
        leaf = Leaf(
            number, groups, frozenset({len(self.leaves)}), statement=statement,
            accesses=tuple(self._accesses(statement)), loops=loops,
        )  # fmt: skip
        self.leaves.append(leaf)
        return [leaf]

    # What statements read and write

    def _accesses(self, statement: tirx.Stmt) -> Iterator[RegionAccess]:
        match statement:
            case tirx.Bind():
                yield from self._loads([statement.value], {})
            case tirx.BufferStore() | tirx.For():
                yield from self._elements(statement)
            case tirx.Evaluate() if op_name(statement) not in AT_BARRIERS:
                yield from self._operation(statement)
            case _:
                return

    def _operation(self, statement: tirx.Stmt) -> Iterator[RegionAccess]:
        blocks = regions(statement)
        values = [
            operand for operand in arguments(statement) if not isinstance(operand, ir.TensorRegion | ir.TensorLoad)
        ]
        starts = [interval.min for block in blocks for interval in elements(block.region)]
        yield from self._loads([*values, *starts], {})
        for block, kind in regions_used(statement):
            axes = [
                self.numbers.axis(self.numbers.text(interval.min), extent)
                if (extent := constant(interval.extent)) is not None else _whole
                for interval in elements(block.region)
            ]  # fmt: skip
            yield self._touch(block.source, kind, axes)

    def _elements(self, statement: tirx.Stmt) -> Iterator[RegionAccess]:
        inner = walk(statement)
        turns: dict[Variable, int | None] = {}
        for nested in inner:
            if isinstance(nested, tirx.For):
                turns[self.numbers.number(nested.loop_var)] = (
                    constant(nested.extent) if constant(nested.min) == 0 else None
                )
            elif isinstance(nested, tirx.Bind):
                self.numbers.bind(nested.var, nested.value)
        some = any(isinstance(nested, tirx.IfThenElse) for nested in inner)
        for nested in inner:
            values: list[ir.Expr] = []
            match nested:
                case tirx.BufferStore():
                    values = [nested.value, *nested.indices]
                    axes = [self._element_axis(index, turns) for index in elements(nested.indices)]
                    # Under a condition, or with gaps, some elements keep their values.
                    has_all = not some and all(self._is_dense(index, turns) for index in elements(nested.indices))
                    yield self._touch(nested.buffer, "write" if has_all else "update", axes)
                case tirx.Bind():
                    values = [nested.value]
                case tirx.IfThenElse():
                    values = [nested.condition]
                case tirx.For():
                    values = [nested.min, nested.extent]
                case _:
                    raise Unsupported(
                        "L003", "a T.Parallel of groups of threads holds more than stores",
                        hint="write the operation before or after it", span=span_of(nested),
                    )  # fmt: skip
            yield from self._loads(values, turns)

    def _loads(self, values: Sequence[ir.Expr], turns: dict[Variable, int | None]) -> Iterator[RegionAccess]:
        for value in values:
            for load in loads_of(value):
                yield self._touch(load.source, "read", [self._element_axis(i, turns) for i in elements(load.indices)])

    def _element_axis(self, index: ir.Expr, turns: dict[Variable, int | None]) -> Callable[[Values], Axis]:
        text = self.numbers.text(index)
        turn_vars = variables(text) & turns.keys()
        if not turn_vars:
            return self.numbers.axis(text, 1)
        terms = affine(text)
        if terms is None or any(turns[turn_var] is None or terms[turn_var] < 0 for turn_var in turn_vars):
            return _whole
        extent = 1 + sum(terms[turn_var] * ((turns[turn_var] or 1) - 1) for turn_var in turn_vars)
        return self.numbers.axis(placed(text, dict.fromkeys(turn_vars, 0)), extent)

    def _is_dense(self, index: ir.Expr, turns: dict[Variable, int | None]) -> bool:
        """Whether an index goes through all places between its first and its last."""
        text = self.numbers.text(index)
        turn_vars = variables(text) & turns.keys()
        terms = affine(text)
        return not turn_vars or (
            len(turn_vars) == 1 and terms is not None and all(terms[turn_var] == 1 for turn_var in turn_vars)
        )

    def _touch(self, buffer: tirx.Buffer, kind: AccessKind, axes: Sequence[Callable[[Values], Axis]]) -> RegionAccess:
        if scope_of(buffer) == BARRIER_SCOPE:
            raise Unsupported(
                "L017", f"the barrier {buffer.name} is used as a number", hint="wait for it with T.barrier_wait"
            )
        return RegionAccess(buffer, kind, lambda values: tuple([axis(values) for axis in axes]))


def _whole(values: Values) -> Axis:
    return None


def _leaves(items: Sequence[Item]) -> frozenset[int]:
    return frozenset[int]().union(*(item.leaves for item in items))


def refuse_threads(statement: tirx.Stmt, grouping: ThreadGroups) -> None:
    """Raises Unsupported for a statement that itself does something else in each thread."""
    if any(map(grouping.depends, expressions_of(statement))):
        raise Unsupported(
            "L001",
            "the index of a thread is used in more than the choice of a group of threads",
            hint="a Tensix core has no threads or warps: write the block with T.Parallel",
            span=span_of(statement),
        )
