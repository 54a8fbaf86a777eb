"""A kernel as one core runs it: what its values decide, and how often all cores execute each operation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import assert_never

from ttexplore.ir.arithmetic.index import (
    Binary,
    BinarySymbol,
    CoreItem,
    CoreValue,
    Expression,
    Range,
    Select,
    Unary,
    UnarySymbol,
    Unknown,
    Variable,
    range_of,
)
from ttexplore.ir.kernel import Bind, Branch, Call, Kernel, Loop, Walk
from ttexplore.plan import CoreWork

# The name of a core's list of work items among its values.
LISTED = ""


def core_values(core: CoreWork, names: Collection[str]) -> tuple[object, ...]:
    """The values of a core with these names."""
    return tuple(core.listed if name == LISTED else core.values.get(name, 0) for name in sorted(names))


def _exactly(symbol: UnarySymbol | BinarySymbol, *operands: int | None) -> int | None:
    """An operation on numbers; None where it has no result, as a division by 0."""
    ranges: list[Range] = [(operand, operand) for operand in operands if operand is not None]
    result = range_of(symbol, ranges) if len(ranges) == len(operands) else None
    return None if result is None else int(result[0])


class CoreWalk(Walk):
    """Goes through a kernel as one core runs it. `used` are the variables that decided something since the start of
    the innermost loop, `asked` the values of the core that did: cores with the same ones do the same."""

    def __init__(self, kernel: Kernel, core: CoreWork) -> None:
        self.kernel, self.core = kernel, core
        self.known: dict[Variable, int] = {}
        self.bound: dict[Variable, Expression] = {}
        self.used: set[Variable] = set()
        self.asked: set[str] = set()

    def bind(self, bind: Bind) -> None:
        self.bound[bind.variable] = bind.value

    def variable(self, variable: Variable) -> int | None:
        """The value of a variable that no expression is bound to."""
        self.used.add(variable)
        return self.known.get(variable)

    def computed(self, e: Expression) -> int | None:
        """The value of an expression of loop variables, values of the core and what operations gave; None where it has
        none. What a choice does not take decides nothing."""
        match e:
            case Variable():
                return self.computed(self.bound[e]) if e in self.bound else self.variable(e)
            case CoreValue(name):
                self.asked.add(name)
                return self.core.values.get(name)
            case CoreItem(_, position):
                self.asked.add(LISTED)
                number = self.computed(position)
                return None if number is None else self.core.listed[number]
            case Binary(symbol, left, right):
                first = self.computed(left)
                if first is None or (symbol in ("and", "or") and bool(first) == (symbol == "or")):
                    return first
                return _exactly(symbol, first, self.computed(right))
            case Unary(symbol, operand):
                return _exactly(symbol, self.computed(operand))
            case Select(condition, chosen, otherwise):
                holds = self.computed(condition)
                return None if holds is None else self.computed(chosen if holds else otherwise)
            case int():
                return e
            case float() | Unknown():
                return None
            case _:
                assert_never(e)


@dataclass(frozen=True, slots=True)
class Executed:
    """How often an operation is executed, and the bytes that it moves; None if elements of tensors decide that. If
    `most`, it is at most that often."""

    times: int | None = 0
    bytes: int | None = 0
    most: bool = False

    def __add__(self, other: Executed) -> Executed:
        return Executed(_sum(self.times, other.times), _sum(self.bytes, other.bytes), self.most or other.most)

    def repeated(self, iterations: int | None) -> Executed:
        """As often, in each of several iterations; None if it is not known in how many."""
        return Executed(_product(self.times, iterations), _product(self.bytes, iterations), self.most)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _product(first: int | None, second: int | None) -> int | None:
    # Nothing, however often, is nothing.
    return 0 if first == 0 else None if first is None or second is None else first * second


Executions = dict[Call, Executed]


def executions(
    kernel: Kernel, cores: Collection[CoreWork], moved: Callable[[Call], Expression]
) -> Mapping[Call, Executed]:
    """How often all of some cores execute each operation of a kernel. `moved` says how many bytes one of them moves."""
    alike: list[tuple[frozenset[str], tuple[object, ...], Executions]] = []
    total: Executions = {}
    for core in cores:
        counts = next((counts for asked, values, counts in alike if core_values(core, asked) == values), None)
        if counts is None:
            walk = _OperationCounting(kernel, core, moved)
            walk.body(kernel.body)
            counts, asked = walk.counts, frozenset(walk.asked)
            alike.append((asked, core_values(core, asked), counts))
        _add(total, counts)
    return total


def _add(total: Executions, counts: Executions) -> None:
    for call, count in counts.items():
        total[call] = total.get(call, Executed()) + count


class _OperationCounting(CoreWalk):
    def __init__(self, kernel: Kernel, core: CoreWork, moved: Callable[[Call], Expression]) -> None:
        super().__init__(kernel, core)
        self.moved = moved
        self.counts: Executions = {}
        # Below a branch of which it is not known whether it is taken.
        self.most = False

    def call(self, call: Call) -> None:
        _add(self.counts, {call: Executed(1, self.computed(self.moved(call)), self.most)})

    def branch(self, branch: Branch) -> None:
        holds = self.computed(branch.condition)
        outside = self.most
        self.most = outside or holds is None
        if holds is None or holds:
            self.body(branch.then)
        if not holds:
            self.body(branch.otherwise)
        self.most = outside

    def loop(self, loop: Loop) -> None:
        iterations = self.computed(loop.extent) if loop.turns is None else loop.turns
        low = self.computed(loop.low)
        if iterations is None or low is None:
            _add(self.counts, {call: count.repeated(None) for call, count in self.iteration(loop, None).items()})
            return
        if iterations < 1:
            return
        outside, self.used = self.used, set()
        first = self.iteration(loop, low)
        if loop.variable in self.used:
            for number in range(low + 1, low + iterations):
                _add(first, self.iteration(loop, number))
        else:
            first = {call: count.repeated(iterations) for call, count in first.items()}
        _add(self.counts, first)
        self.used = outside | (self.used - {loop.variable})

    def iteration(self, loop: Loop, number: int | None) -> Executions:
        """What is executed in one iteration, whose number may not be known."""
        outside, self.counts = self.counts, {}
        self.known.pop(loop.variable, None)
        if number is not None:
            self.known[loop.variable] = number
        self.body(loop.body)
        counts, self.counts = self.counts, outside
        return counts
