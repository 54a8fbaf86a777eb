"""What is known about the variables of a kernel: how far loops and block indices go, what names stand for."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import tvm
from tvm import ir, tirx

from ttexplore.ir.arithmetic.index import (
    INT32_LEAST,
    INT32_MOST,
    RANGES,
    Binary,
    Expression,
    Key,
    Range,
    Unary,
    Variable,
    VariableNumbers,
    close_range,
    convert,
    follows,
    is_binary,
    learn_loop,
    placed,
    tried,
    value_range,
    variables,
    where_all_hold,
)
from ttexplore.ir.arithmetic.shallow import is_large
from ttexplore.ir.arithmetic.sizes import bound_sizes, size_variables
from ttexplore.ir.branches import branch_condition
from ttexplore.ir.build import arguments, bound_form, constant, statements
from ttexplore.ir.dag import nodes_of, replaced, written_out
from ttexplore.ir.operations.quantified import quantified_of
from ttexplore.ops.op import CORE_VALUE
from ttexplore.ops.scalars import CHECK_READ, CHECK_WRITE

BLOCK_RANGES = "tt.block_ranges"
# The mark of a loop that may make no turn.
MAY_BE_EMPTY = "tt.may_be_empty"
# Indices are computed in 32 bits: a T.dynamic size is less than this.
MAX_SIZE = 1 << 24
MAX_INDEX = 1 << 30
# TVM's proofs try each form of a division and of what it divides: time doubles with each one inside another.
_PROVED_DEPTH = 16
# Names of any int32 in a condition that is proved.
_MOST_FULL = 4
_NARROW = ("int8", "uint8", "int16", "uint16")


def block_ranges(function: tirx.PrimFunc) -> dict[ir.Var, ir.Expr]:
    """Return the extent of each block index if the launch grid is a loop over work items; otherwise nothing."""
    ranges = function.attrs.get(BLOCK_RANGES)
    return {} if ranges is None else dict(ranges.items())


class Bounds:
    """What is known about the variables around a statement.

    `ranges` knows the loops, `proofs` also what the kernel's own variables stand for; page expressions are simplified
    with the first alone, so that they speak of the kernel's variables. A function whose launch grid is a loop over
    work items already says in an attribute how far each block index goes.
    """

    def __init__(self, function: tirx.PrimFunc) -> None:
        self.ranges = tvm.sym.Analyzer()
        self.proofs = tvm.sym.Analyzer()
        self.blocks, self.sizes = block_ranges(function), frozenset(bound_sizes(function))
        self.known = _VariableValues()
        # How many conditions held before each loop around the statement, and the limits of elements of tensors.
        self.before: list[int] = []
        self.limits: dict[ir.Expr, tuple[int, int]] = {}
        # What names stand for that proofs write out.
        self.names: dict[ir.Var, ir.Expr] = {}
        for size in size_variables(function):
            self._size(size)

    def enter(self, statement: tirx.Stmt) -> None:
        """Record a loop or binding that encloses the following statements."""
        if isinstance(statement, tirx.For):
            self.before.append(len(self.known.given))
            condition = branch_condition(statement)
            if condition is not None:
                self.holds(condition)
            self.counts(statement)
        elif isinstance(statement, tirx.Bind):
            if statement.var in self.blocks:
                extent = self.ranges.simplify(self.blocks[statement.var])
                self.proofs.bind(statement.var, ir.Range.from_min_extent(tirx.const(0, "int32"), extent), True)
                self.known.counts(statement.var, tirx.const(0, "int32"), extent)
            elif isinstance(statement.value, ir.Call) and str(statement.value.op.name) == CORE_VALUE:
                if statement.var in self.sizes:
                    self._size(statement.var)
            elif (form := bound_form(statement)) is not None and form.op in (CHECK_READ, CHECK_WRITE):
                self.holds(arguments(statement)[0])
            elif quantified_of(statement.value) is not None:
                self._limit(statement.var, 0, 1)
            elif form is not None or isinstance(statement.value, ir.TensorLoad):
                self._limit(statement.var, *RANGES.get(str(statement.var.ty.dtype), (INT32_LEAST, INT32_MOST)))
            elif str(statement.value.ty.dtype).startswith(("int", "uint", "bool")):
                self._name(statement.var, statement.value)

    def counts(self, loop: tirx.For) -> None:
        """Record how far the variable of a loop counts, which is known everywhere; the loop is not entered."""
        # Proofs compare expressions in their simplest form.
        extent = loop.extent
        if not isinstance(extent, tirx.IntImm):
            extent = self.ranges.simplify(extent)
            self.known.ends[loop.loop_var] = tirx.LT(loop.loop_var, loop.min + loop.extent)
        span = ir.Range.from_min_extent(loop.min, extent)
        self.ranges.bind(loop.loop_var, span, True)
        self.proofs.bind(loop.loop_var, span, True)
        self.known.counts(loop.loop_var, loop.min, loop.extent)

    def leave(self, statement: tirx.For) -> None:
        """Forget the conditions that hold in a loop; the ranges of loops' variables are known everywhere."""
        del self.known.given[self.before.pop() :]

    def holds(self, condition: ir.Expr) -> None:
        """A condition holds up to the end of the loop around."""
        self.known.given.append(condition)
        match condition:
            case tirx.GE(a=ir.Var() as variable) | tirx.LE(a=ir.Var() as variable) if variable in self.limits:
                least, most = self.limits[variable]
                limit = constant(condition.b)
                if limit is not None and isinstance(condition, tirx.GE):
                    least = max(least, limit)
                elif limit is not None:
                    most = min(most, limit)
                self._limit(variable, least, most)
            case _:
                pass

    def _limit(self, variable: ir.Var, least: int, most: int) -> None:
        """A name stands for an element of a tensor, which is between two numbers."""
        self.limits[variable] = least, most
        self.known.is_within(variable, least, most)
        if most - least < MAX_INDEX:
            low, count = tirx.const(least, "int32"), tirx.const(most - least + 1, "int32")
            self.proofs.bind(variable, ir.Range.from_min_extent(low, count), True)

    def _name(self, variable: ir.Var, value: ir.Expr) -> None:
        """A name stands for a whole number. Proofs write it out: of a large one only the range is known, and of one
        that may have wrapped around, which proofs do not know of, that of its dtype."""
        if any(map(_wraps_around, nodes_of(value))):
            self._limit(variable, *RANGES[str(variable.ty.dtype)])
            return
        if not is_large(self.proofs.simplify(value), _PROVED_DEPTH):
            self.proofs.bind(variable, value, True)
            self.known.stands_for(variable, value)
            self.names[variable] = value
            return
        bound = self.proofs.const_int_bound(value)
        if -MAX_INDEX <= bound.min_value <= bound.max_value <= MAX_INDEX:
            low, count = (
                tirx.const(number, "int32") for number in (bound.min_value, bound.max_value - bound.min_value + 1)
            )
            self.proofs.bind(variable, ir.Range.from_min_extent(low, count), True)
            self.known.counts(variable, low, count)

    def _size(self, variable: ir.Var) -> None:
        self.proofs.bind(variable, ir.Range(tirx.const(1, "int32"), tirx.const(MAX_SIZE, "int32")), True)
        self.known.counts(variable, tirx.const(1, "int32"), tirx.const(MAX_SIZE - 1, "int32"))

    def proves(self, condition: ir.Expr) -> bool:
        """Whether a condition always holds."""
        return self._can_prove(condition) or self.known.fulfil(condition) or self._proves_apart(condition)

    def proves_in_loops(self, condition: ir.Expr) -> bool:
        """Whether a condition always holds, also by what loops count to: the verifier knows less."""
        return self.proves(condition) or self.known.fulfil_together(condition)

    def is_seen_within(self, value: ir.Expr, length: int) -> bool:
        """Whether the ranges of its variables alone show that an index is one of an axis, as the verifier wants it."""
        limits = self.known.limits(value)
        return limits is not None and bool(limits[0] >= 0) and bool(limits[1] < length)

    def range(self, value: ir.Expr) -> tuple[int, int]:
        """The least and the greatest value that a whole number can have, as far as known."""
        proved = self.proofs.const_int_bound(value)
        least, most = int(proved.min_value), int(proved.max_value)
        if least >= -MAX_INDEX and most <= MAX_INDEX:
            return least, most
        # TVM does not look into choices.
        limits = self.known.range(value)
        return (least, most) if limits is None else (max(least, limits[0]), min(most, limits[1]))

    def simple_range(self, value: ir.Expr) -> tuple[int, int]:
        """The same of the value as proofs simplify it: bounds look at each variable for itself."""
        return self.range(value if is_large(value, _PROVED_DEPTH) else self.proofs.simplify(value))

    def is_multiple(self, value: ir.Expr, unit: int) -> bool:
        """Whether a number is always a multiple of another one."""
        rest = tirx.floormod(value, unit)
        return bool(self.proofs.can_prove(tirx.EQ(rest, tirx.const(0, rest.ty.dtype))))

    def _can_prove(self, condition: ir.Expr) -> bool:
        """Whether TVM proves a condition: what it says of the least int32 contradicts itself, so it must also prove the
        condition with that in place of names, and with 0."""
        if not self.proofs.can_prove(condition):
            return False
        if all(least > INT32_LEAST for least, _ in self.limits.values()):
            return True
        condition = written_out(condition, self.names)
        full = [
            node for node in nodes_of(condition)
            if self.limits.get(node, (0, 0))[0] == INT32_LEAST and node.ty.dtype == "int32"
        ]  # fmt: skip
        if len(full) > _MOST_FULL:
            return False
        least, zero = tirx.const(INT32_LEAST, "int32"), tirx.const(0, "int32")
        samples = [
            dict.fromkeys(some, least) for count in range(len(full)) for some in itertools.combinations(full, count + 1)
        ]
        try:
            return all(
                self.proofs.can_prove(replaced(condition, lambda node, values=values: values.get(node, node)))
                for values in (*samples, dict.fromkeys(full, zero))
            )
        except ValueError:
            # With such a number the arithmetic leaves int32, of which TVM makes no constants: nothing is proved.
            return False

    def _proves_apart(self, condition: ir.Expr) -> bool:
        """Prove ``least <= blocks - index``: TVM knows that an index is below the number of blocks, but not this."""
        simplified = self.proofs.simplify(condition)
        if not isinstance(simplified, tirx.LE | tirx.LT):
            return False
        least, difference = constant(simplified.a), simplified.b
        if least is None or not isinstance(difference, tirx.Sub):
            return False
        less = difference.b + (least - 1 if isinstance(simplified, tirx.LE) else least)
        return bool(self.proofs.can_prove(less < difference.a))

    def may_be_empty(self, loop: tirx.For) -> bool:
        """Whether the next loop may run zero times."""
        turns = constant(loop.extent)
        return not self.proves(loop.extent >= 1) if turns is None else turns < 1


def is_marked_empty(loop: tirx.For) -> bool:
    """Whether a loop is marked as one that may run zero times."""
    return MAY_BE_EMPTY in loop.annotations


class _VariableValues:
    """The values that variables can have, each for itself. TVM's proofs know little of minima, selects and bits."""

    def __init__(self) -> None:
        self.number = VariableNumbers()
        self.ranges: dict[Key, Range] = {}
        self.bound: dict[Variable, Expression] = {}
        # The conditions of the branches around.
        self.given: list[ir.Expr] = []
        # Of the variables of loops whose numbers of turns depend on other ones: their ranges alone do not say it.
        self.ends: dict[ir.Var, ir.Expr] = {}
        # What has been told since somebody asked: mostly TVM's own proofs are enough.
        self.told: list[tuple[ir.Var, ir.Expr, ir.Expr | None]] = []

    def counts(self, variable: ir.Var, start: ir.Expr, count: ir.Expr) -> None:
        """A variable counts up from a start."""
        self.told.append((variable, start, count))

    def is_within(self, variable: ir.Var, least: int, most: int) -> None:
        self.ranges[self.number(variable)] = (least, most)

    def stands_for(self, variable: ir.Var, value: ir.Expr) -> None:
        self.told.append((variable, value, None))

    def _learn(self, variable: ir.Var, start: ir.Expr, count: ir.Expr | None) -> None:
        if count is None:
            self.bound[self.number(variable)] = convert(start, self.number)
            return
        low, turns = (placed(convert(e, self.number), self.bound) for e in (start, count))
        learn_loop(self.ranges, self.number(variable), low, turns)

    def limits(self, value: ir.Expr) -> Range | None:
        """The least and the most that a value is, each variable for itself; None where that is not known."""
        return value_range(self._placed(value), self.ranges)

    def _placed(self, value: ir.Expr) -> Expression:
        for fact in self.told:
            self._learn(*fact)
        self.told.clear()
        return placed(convert(value, self.number), self.bound)

    def fulfil(self, condition: ir.Expr) -> bool:
        """Whether a condition holds for all values that its variables can have; False where that is not known."""
        return follows(*self._asked(condition), self.ranges)

    def fulfil_together(self, condition: ir.Expr) -> bool:
        """The same for the values that variables have together, with those that say how far loops count."""
        goal = self._placed(condition)
        ends = [end for variable, end in self.ends.items() if self.number(variable) in variables(goal)]
        for end in ends:
            goal = Binary("or", Unary("not", self._placed(end)), goal)
        return bool(ends) and tried(goal, self.ranges)

    def range(self, value: ir.Expr) -> tuple[int, int] | None:
        """The values that a number can have; None where that is not known."""
        asked, conditions = self._asked(value)
        limits = close_range(asked, where_all_hold(conditions, self.ranges))
        return None if limits is None else (int(np.min(limits[0])), int(np.max(limits[1])))

    def _asked(self, e: ir.Expr) -> tuple[Expression, list[Expression]]:
        """An expression, and the conditions around."""
        return self._placed(e), [placed(convert(condition, self.number), self.bound) for condition in self.given]


# C1 asks again about the function whose webs it has found.
@functools.lru_cache(maxsize=4)
def empty_loops(function: tirx.PrimFunc) -> frozenset[ir.Var]:
    """Return the variables of the loops that may run zero times."""
    bounds, empty = Bounds(function), set[ir.Var]()
    # What the bounds have not heard of: most loops have constant lengths.
    passed: list[tirx.Stmt] = []

    def visit(body: tirx.Stmt) -> None:
        for statement in statements(body):
            if type(statement) is not tirx.For:
                passed.append(statement)
                continue
            if constant(statement.extent) is None:
                for passed_loop in passed:
                    bounds.enter(passed_loop)
                passed.clear()
            if bounds.may_be_empty(statement):
                empty.add(statement.loop_var)
            before = len(passed)
            passed.append(statement)
            if statement.kind != tirx.ForKind.PARALLEL:
                visit(statement.body)
            if len(passed) > before and passed[before] is statement:
                del passed[before:]
            else:
                bounds.leave(statement)

    visit(function.body)
    return frozenset(empty)


def _wraps_around(e: ir.Expr) -> bool:
    """Whether an expression computes in a dtype that its result may leave."""
    return is_binary(e) and str(e.ty.dtype) in _NARROW
