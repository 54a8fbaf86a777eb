"""What only the first turn of a loop fills is filled before the loop."""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import ir, tirx

from ttexplore.ir.bounds import MAX_SIZE, Bounds
from ttexplore.ir.build import op_name, statements, variable, with_body, with_function_body
from ttexplore.ir.dag import replaced
from ttexplore.ir.rewrite import walk


def with_fills_before_loops(function: Any) -> Any:
    """The kernel without conditions that are true in the first turn of a loop, and guard nothing but fills.

        for k in range(n):              T.fill(c, 0)
            if k == 0:             ==>  for k in range(n):
                T.fill(c, 0)                T.gemm(a, b, c)
            T.gemm(a, b, c)

    Only where nothing in a turn touches the block before, and where the loop surely comes to a turn or the block holds
    nothing yet.
    """
    if not any(_guarded_fills(statement) for statement in walk(function.body)):
        return function
    mover = _Mover(Bounds(function))
    body = mover.body(statements(function.body), frozenset())
    return with_function_body(function, body) if mover.moved else function


class _Mover:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.moved = bounds, False

    def body(self, body: list[Any], touched: frozenset[Any]) -> list[Any]:
        """A sequence before which these variables, buffers among them, have been touched."""
        made: list[Any] = []
        for statement in body:
            may_be_empty = isinstance(statement, tirx.For) and self.bounds.may_be_empty(statement)
            self.bounds.enter(statement)
            used = _variables(statement)
            if isinstance(statement, tirx.For):
                serial = statement.kind == tirx.ForKind.SERIAL
                # Turns before have touched what any turn does.
                inner = self.body(statements(statement.body), touched | used if serial else touched)
                fills: list[Any] = []
                if serial:
                    fills, inner = self.taken_out(statement, inner, touched if may_be_empty else frozenset())
                statement = with_body(statement, inner)
                made += fills
            made.append(statement)
            if not isinstance(statement, tirx.AllocBuffer):
                touched |= used
        return made

    def taken_out(self, loop: Any, body: list[Any], kept: frozenset[Any]) -> tuple[list[Any], list[Any]]:
        """The fills of the first turn alone, without those of buffers among `kept`, and the rest of the body."""
        fills: list[Any] = []
        rest: list[Any] = []
        before: frozenset[Any] = frozenset()
        for statement in body:
            guarded = _guarded_fills(statement)
            buffers = {one.value.args[0].source for one in guarded}
            if guarded and not buffers & (before | kept) and self.is_first(statement.condition, loop):
                fills += guarded
                self.moved = True
            else:
                rest.append(statement)
                before |= _variables(statement)
        return fills, rest

    def is_first(self, condition: Any, loop: Any) -> bool:
        """Whether a condition holds in the first turn of a loop, and in no other."""
        later = variable("later")
        self.bounds.proofs.bind(later, ir.Range(tirx.const(1, "int32"), tirx.const(MAX_SIZE, "int32")))
        first, other = (
            replaced(condition, lambda one, at=at: at if one.same_as(loop.loop_var) else one)
            for at in (loop.min, loop.min + later)
        )
        return self.bounds.proves(first) and self.bounds.proves(tirx.Not(other))


def _guarded_fills(statement: Any) -> list[Any]:
    """The fills under a condition that guards nothing else; none where there is no such condition."""
    if not isinstance(statement, tirx.IfThenElse) or statement.else_case is not None:
        return []
    body = statements(statement.then_case)
    return body if all(op_name(one) == "tl.fill" for one in body) else []


def _variables(statement: Any) -> frozenset[Any]:
    found = set[Any]()
    tvm_ffi.structural_walk(statement, (ir.Var, found.add), order="pre")
    return frozenset(found)
