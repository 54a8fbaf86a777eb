"""Lower conditional fills: hoist those of a loop's first iteration, and turn others into element-wise selects."""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.ir.adapter import variables_of
from ttexplore.ir.arithmetic.bounds import MAX_SIZE
from ttexplore.ir.build import (
    arguments,
    is_whole,
    parallel_loops,
    regions,
    runs,
    shape_of,
    statements,
    variable,
    with_body,
    with_function_body,
)
from ttexplore.ir.dag import replaced
from ttexplore.ir.dataflow import accesses, is_parallel, loads_of, nothing_written
from ttexplore.ir.rewrite import Context, Firings, Rule, walk
from ttexplore.ops import language as tl


def without_guarded_fills(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel without conditions that guard only fills.

        for k in range(n):              T.fill(c, 0)
            if k == 0:             ==>  for k in range(n):
                T.fill(c, 0)                T.gemm(a, b, c)
            T.gemm(a, b, c)

    This requires that nothing in the iteration accesses the block before the fill, and that the loop is not empty or
    the block is still unwritten. For a block that has been written, other conditions become a select for each element:

        if k % 2 == 0:             ==>  for i, j in T.Parallel(64, 64):
            T.fill(c, 0)                    c[i, j] = T.if_then_else(k % 2 == 0, 0, c[i, j])

    An unwritten block is filled before a loop whose first iteration always fills it.
    """
    if not any(_guarded_fills(statement) for statement in walk(function.body)):
        return function
    mover = _Mover(function, firings)
    body = mover.body(statements(function.body), frozenset(), frozenset())
    return with_function_body(function, body) if mover.moved else function


_FIRST = Rule("fill before the loop", "A fill of the first iteration of a loop moves before the loop.")
_KNOWN = Rule("fill without a condition", "A condition that always holds is removed.")
_CHOICE = Rule("fill by choice", "A conditional fill selects, for each element, the fill value or the old value.")


class _Mover(Context):
    """`maybe` are the buffers that only a preceding, possibly empty, loop has filled."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.moved = False
        self.maybe: frozenset[ir.Var] = frozenset()

    def body(
        self, body: list[tirx.Stmt], touched: frozenset[ir.Var], initialized: frozenset[ir.Var]
    ) -> list[tirx.Stmt]:
        """Rewrite a sequence. Variables, buffers among them, in `touched` may have been accessed before it; those in
        `initialized` certainly have."""
        moved: list[tirx.Stmt] = []
        for statement in body:
            may_be_empty = isinstance(statement, tirx.For) and self.bounds.may_be_empty(statement)
            used = _variables(statement)
            if isinstance(statement, tirx.For):
                self.enter(statement)
                serial = statement.kind == tirx.ForKind.SERIAL
                inner, fills = statements(statement.body), list[tirx.Stmt]()
                if serial:
                    fills, inner = self.taken_out(
                        statement, inner, touched if may_be_empty else frozenset(), initialized
                    )
                filled = frozenset(map(_target, fills))
                maybe = self.maybe
                self.maybe -= filled
                if not is_parallel(statement):
                    # Earlier iterations have accessed whatever any iteration accesses.
                    inner = self.body(inner, touched | used if serial else touched, initialized | filled)
                else:
                    self.check_reads(statement)
                self.leave()
                if may_be_empty:
                    self.maybe |= maybe | filled
                moved += [*fills, with_body(statement, inner)]
            else:
                chosen = self.chosen(statement, initialized)
                for choice in chosen:
                    self.check_reads(choice)
                moved += chosen
            if isinstance(statement, tirx.Bind):
                self.enter(statement)
            if not isinstance(statement, tirx.AllocBuffer):
                touched |= used
                if not isinstance(statement, tirx.IfThenElse):
                    initialized |= used
        return moved

    def chosen(self, statement: tirx.Stmt, initialized: frozenset[ir.Var]) -> list[tirx.Stmt]:
        """A statement, without its condition if it guards only fills of buffers that have been written."""
        fills = _guarded_fills(statement)
        if not fills or type(statement) is not tirx.IfThenElse:
            return [statement]
        if self.bounds.proves(statement.condition):
            self.moved = True
            return self.made(_KNOWN, statement, fills)
        if self.bounds.proves(tirx.Not(statement.condition)):
            self.moved = True
            return []
        if not all(_target(fill) in initialized and _covers(fill) for fill in fills):
            return [statement]
        self.moved = True
        return self.made(_CHOICE, statement, [_choice(statement.condition, fill) for fill in fills])

    def check_reads(self, statement: tirx.Stmt) -> None:
        """Raise KernelError for a block statement that reads a buffer that may not have been filled."""
        if not self.maybe & _variables(statement):
            return
        for access in accesses(statement):
            if access.kind == "write":
                self.maybe -= {access.buffer}
            elif access.buffer in self.maybe:
                raise nothing_written(access.buffer, statement)

    def taken_out(
        self, loop: tirx.For, body: list[tirx.Stmt], fixed: frozenset[ir.Var], initialized: frozenset[ir.Var]
    ) -> tuple[list[tirx.Stmt], list[tirx.Stmt]]:
        """The fills to hoist before a loop, and the rest of its body. Fills of the first iteration are hoisted, except
        of buffers in `fixed`; fills that later iterations repeat are hoisted as a copy if their buffer is unwritten."""
        fills: list[tirx.Stmt] = []
        rest: list[tirx.Stmt] = []
        before: frozenset[ir.Var] = frozenset()
        for statement in body:
            guarded = _guarded_fills(statement)
            if guarded and type(statement) is tirx.IfThenElse:
                buffers = set(map(_target, guarded))
                needed = frozenset[ir.Var]().union(*map(_variables, guarded))
                movable = not buffers & fixed and not needed & (before | {loop.loop_var})
                if movable and self.is_first(statement.condition, loop):
                    fills += self.made(_FIRST, statement, guarded)
                    self.moved = True
                    continue
                if movable and not buffers <= initialized and self.comes_first(statement.condition, loop):
                    fills += self.made(_FIRST, statement, guarded)
            rest.append(statement)
            before |= _variables(statement)
        return fills, rest

    def comes_first(self, condition: ir.Expr, loop: tirx.For) -> bool:
        """Whether a condition holds in the first iteration of a loop."""
        return self.bounds.proves(replaced(condition, lambda node: loop.min if node.same_as(loop.loop_var) else node))

    def is_first(self, condition: ir.Expr, loop: tirx.For) -> bool:
        """Whether a condition holds in the first iteration of a loop only."""
        later = variable("later")
        self.bounds.proofs.bind(later, ir.Range(tirx.const(1, "int32"), tirx.const(MAX_SIZE, "int32")))
        later_condition = replaced(condition, lambda node: loop.min + later if node.same_as(loop.loop_var) else node)
        return self.comes_first(condition, loop) and self.bounds.proves(tirx.Not(later_condition))


def _choice(condition: ir.Expr, fill: tirx.Stmt) -> tirx.Stmt:
    """The T.Parallel nest that stores the value to each element of a block if the condition holds."""
    region, value = regions(fill)[0], arguments(fill)[1]
    axes = [variable(name) for name in ("i", "j")[: len(region.region)]]
    old_value = tirx.BufferLoad(region.source, axes)
    store = tirx.BufferStore(region.source, tirx.if_then_else(condition, value, old_value), axes, span=fill.span)
    return parallel_loops(axes, shape_of(region.source), store)


def _covers(fill: tirx.Stmt) -> bool:
    """Whether a fill covers its buffer, of one or two dimensions."""
    region = regions(fill)[0]
    return len(region.region) <= 2 and is_whole(region)


def _target(fill: tirx.Stmt) -> tirx.Buffer:
    return regions(fill)[0].source


def _guarded_fills(statement: tirx.Stmt) -> list[tirx.Stmt]:
    """The fills under a condition that guards nothing else and reads no elements; otherwise none."""
    if not isinstance(statement, tirx.IfThenElse) or statement.else_case is not None or loads_of(statement.condition):
        return []
    body = statements(statement.then_case)
    return body if all(runs(statement, tl.FILL) for statement in body) else []


def _variables(statement: tirx.Stmt) -> frozenset[ir.Var]:
    return frozenset(variables_of(statement))
