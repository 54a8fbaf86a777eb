"""Check that a circular buffer gets as many tiles as it gives, over all iterations and branches.

Both sides are kernels of one core, so both have the same number of work items: a loop over them runs equally often on
either side. That does not hold for tiles that one core pushes and another pops.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, assert_never

import numpy as np

from ttexplore.errors import VerifyError
from ttexplore.ir.arithmetic.index import (
    CoreItem,
    CoreValue,
    Expression,
    Key,
    Range,
    Unary,
    Variable,
    folded,
    parts_of,
    placed,
    show,
    value_range,
    variables,
)
from ttexplore.ir.kernel import Allocation, Bind, Body, Branch, Call, Kernel, Loop, Store, calls, kernel_name
from ttexplore.ops.protocol import CB_POP_FRONT, CB_PUSH_BACK
from ttexplore.plan import CircularBuffer, Plan
from ttexplore.record import Span

Factor = tuple[Literal["turns", "when"], Expression]
# A number of tiles: a coefficient for each product of loop lengths and conditions that are known only at run time.
Amount = dict[tuple[Factor, ...], Fraction | int]

_PUSH, _POP = CB_PUSH_BACK.ir_name, CB_POP_FRONT.ir_name
_COUNTED = frozenset({_PUSH, _POP})


def check_balance(kernels: Mapping[str, Kernel], plan: Plan) -> None:
    """Every buffer gets as many tiles as it gives, on every path. :func:`check_protocol` follows the buffers that one
    kernel both fills and empties."""
    totals = _totals(kernels)
    pushed, popped = totals[_PUSH], totals[_POP]
    for buffer in plan.buffers:
        if buffer.producer == buffer.consumer:
            continue
        pushes, pops = pushed.get(buffer.name, {}), popped.get(buffer.name, {})
        if pushes != pops:
            more = "pop all that is pushed" if _number(pushes) > _number(pops) else "push all that is popped"
            raise VerifyError(
                "V001",
                f"{buffer.name}: {kernel_name(buffer.producer)} pushes {_shown(pushes)}, "
                f"{kernel_name(buffer.consumer)} pops {_shown(pops)}",
                hint=f"{more}: the same number on every path",
                span=_first_span(kernels, buffer, pushes, pops),
            )


def _number(amount: Amount) -> Fraction:
    return Fraction(sum(amount.values()))


# More products are not shown in a message.
_MOST_SHOWN = 2


def _shown(amount: Amount) -> str:
    if not amount:
        return "no tiles"
    terms = [
        " x ".join([str(number), *(show(factor[1]) if factor[0] == "turns" else f"[{show(factor[1])}]"
                                   for factor in factors)])
        for factors, number in amount.items()
    ]  # fmt: skip
    if len(terms) > _MOST_SHOWN:
        terms = [*terms[:_MOST_SHOWN], "..."]
    return f"{' + '.join(terms)} tiles"


def _first_span(kernels: Mapping[str, Kernel], buffer: CircularBuffer, pushes: Amount, pops: Amount) -> Span | None:
    """The line of the side that moves more tiles, which certainly exists."""
    role, name = buffer.producer, _PUSH
    if _number(pops) > _number(pushes):
        role, name = buffer.consumer, _POP
    for call in calls(kernels[role].body):
        if call.name == name and call.buffer("cb") == buffer.name:
            return call.span
    return buffer.origin


def _totals(kernels: Mapping[str, Kernel]) -> dict[str, dict[str, Amount]]:
    """What the kernels push and pop, by operation and circular buffer."""
    totals: dict[str, dict[str, Amount]] = {name: {} for name in _COUNTED}
    for kernel in kernels.values():
        bound: dict[Variable, Expression] = {}
        if kernel.names & _COUNTED:
            _add_totals(kernel.body, [], [], bound, totals)
    return totals


def _add_totals(
    body: Body, loops: list[Loop], tests: list[Expression], bound: dict[Variable, Expression],
    totals: dict[str, dict[str, Amount]],
) -> None:  # fmt: skip
    # It is the same for all calls: what the loops and tests name is bound before the body.
    times: Amount | None = None
    for statement in body:
        match statement:
            case Call() if statement.name in _COUNTED:
                times = _times(loops, tests, bound) if times is None else times
                amount = totals[statement.name].setdefault(statement.buffer("cb"), {})
                for factors, number in times.items():
                    amount[factors] = amount.get(factors, 0) + number * statement.number("count")
                    if not amount[factors]:
                        del amount[factors]
            case Loop() if statement.names & _COUNTED:
                _add_totals(statement.body, [*loops, statement], tests, bound, totals)
            case Branch():
                _add_totals(statement.then, loops, [*tests, statement.condition], bound, totals)
                if statement.otherwise:
                    otherwise = Unary("not", statement.condition)
                    _add_totals(statement.otherwise, loops, [*tests, otherwise], bound, totals)
            case Bind():
                bound[statement.variable] = statement.value
            case Call() | Loop() | Allocation() | Store():
                pass
            case _:
                assert_never(statement)


# Loops of more turns than this are not counted turn by turn.
_MOST_TURNS = 1024


def _times(loops: list[Loop], tests: list[Expression], bound: dict[Variable, Expression]) -> Amount:
    """How often a statement in these loops runs under these conditions.

    The turns of a constant loop count one by one where lengths and conditions that are known only at run time depend on
    them: a kernel may have peeled some of them off.
    """
    constant = {
        loop.variable: range(loop.low, loop.low + loop.turns)
        for loop in loops
        if loop.turns is not None and isinstance(loop.low, int)
    }
    known_later: list[Factor] = []
    decidable: list[Expression] = []
    for test in tests:
        condition = placed(test, bound)
        if variables(condition) <= constant.keys() and not _is_of_core(condition):
            decidable.append(condition)
        else:
            known_later.append(("when", condition))
    for loop in loops:
        if loop.turns is None:
            known_later.append(("turns", placed(loop.extent, bound)))
    varying = sorted(set[Variable]().union(*(variables(e) for _, e in known_later)) & constant.keys())
    if math.prod(len(constant[variable]) for variable in varying) > _MOST_TURNS:
        varying = []
    rest = {variable: turns for variable, turns in constant.items() if variable not in varying}
    number: Fraction | int = 1
    for loop in loops:
        if loop.turns is not None and loop.variable not in varying:
            number *= loop.turns
    amount: Amount = {}
    for iteration in itertools.product(*(constant[variable] for variable in varying)):
        at = dict[Variable, Expression](zip(varying, iteration, strict=True))
        here: Fraction | int = number * _share([placed(test, at) for test in decidable], rest)
        factors: list[Factor] = []
        for kind, e in known_later:
            value = folded(placed(e, at))
            if isinstance(value, int):
                here *= value if kind == "turns" else int(value != 0)
            else:
                factors.append((kind, value))
        key = tuple(sorted(factors, key=str))
        if here:
            amount[key] = amount.get(key, 0) + here
    return amount


def _is_of_core(e: Expression) -> bool:
    """Whether an expression depends on what the host gives to each core, such as the list of its work items."""
    return isinstance(e, CoreItem | CoreValue) or any(map(_is_of_core, parts_of(e)))


def _share(tests: list[Expression], loops: Mapping[Variable, range]) -> Fraction | int:
    """The fraction of the iterations of some loops in which all tests hold."""
    if not tests:
        return 1
    involved = sorted(set[Variable]().union(*map(variables, tests)))
    axes = np.meshgrid(*[np.array(loops[variable]) for variable in involved], indexing="ij")
    ranges: dict[Key, Range] = {variable: (axis, axis) for variable, axis in zip(involved, axes, strict=True)}
    holds = np.ones(axes[0].shape if axes else (), bool)
    for test in tests:
        bounds = value_range(test, ranges)
        if bounds is None:
            raise VerifyError(
                "V016", f"the condition {show(test)} cannot be decided", hint="use loop variables and constants"
            )
        holds &= bounds[0] != 0
    return Fraction(int(holds.sum()), max(holds.size, 1))
