"""Groups of threads as one sequential program: what they wait for each other for is what circular buffers do here."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from math import prod

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import elements, identity, span_of, spans_of, to_tvm_spans, variables_of
from ttexplore.ir.build import (
    allocation,
    arguments,
    constant,
    dtype_of,
    op_name,
    runs,
    scope_of,
    sequence,
    shape_of,
    statements,
    when,
    with_arguments,
    with_body,
    with_function_body,
    with_value,
)
from ttexplore.ir.dag import replaced
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.operations.by_thread import is_asynchronous
from ttexplore.ir.operations.groups import (
    AT_BARRIERS,
    BARRIER_SCOPE,
    ThreadGroups,
    is_for_threads,
    thread_groups,
    without_barrier,
)
from ttexplore.ir.rewrite import Context, Firings, Rule, StatementRule, inherit_places, rewrite, walk
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.threads.order import check_order, ordered
from ttexplore.passes.normalize.threads.slots import slots_of
from ttexplore.passes.normalize.threads.trace import GroupTrace
from ttexplore.passes.normalize.threads.tree import (
    BranchItem,
    Item,
    Leaf,
    LoopItem,
    Tree,
    UndecidedError,
    refuse_threads,
)

_RULE = Rule(
    "thread groups",
    "Groups of threads that wait for each other at barriers become one sequence of statements, proved to give the same "
    "result.",
)


def with_one_sequence(function: tirx.PrimFunc, firings: Firings) -> tuple[tirx.PrimFunc, tuple[Note, ...]]:
    """The kernel without groups of threads, and notes for the plan about what became of them.

    The proof follows all groups through all turns: every two accesses to one place, one of which writes, must be
    ordered by barriers, and the sequence must have them in that order. Raises KernelError for races, for waits that
    never end and for phases that can be missed, Unsupported for groups that are no such sequence.
    """
    grouping = thread_groups(function)
    if grouping is None:
        return function, ()
    if len(grouping.groups) == 1 and not grouping.taken and not any(map(_needs_proof, walk(function.body))):
        # All threads do the same, in one order.
        return rewrite([_ALONE], _Alone(function, firings, grouping)), ()
    launch: list[tirx.For] = []
    body = statements(function.body)
    while len(body) == 1 and isinstance(body[0], tirx.For) and body[0].thread_binding is not None:
        launch.append(body[0])
        body = statements(body[0].body)
    traces = _traces(function, grouping, launch, body)
    tree = traces[0].tree
    items = ordered(traces)
    for trace in traces:
        check_order(items, trace)
    slots = slots_of(items, traces[0])
    for trace in traces[1:]:
        slots = {key: count for key, count in slots_of(items, trace).items() if key in slots}
    writer = _ItemWriter(function, tree, firings, slots)
    rewritten = writer.body(items)
    for loop in reversed(launch):
        rewritten = [with_body(loop, rewritten)]
    for statement in walk(function.body):
        if (
            is_for_threads(statement)
            or statement in grouping.taken
            or (isinstance(statement, tirx.Bind) and statement.var in grouping.names)
        ):
            firings.made(_RULE, statement, [])
    return with_function_body(function, rewritten), _notes(traces[0], slots)


def _needs_proof(statement: tirx.Stmt) -> bool:
    """Whether a statement is over later than the next one begins, or waits for that."""
    name = op_name(statement)
    if name in tl.STATEMENTS:
        return name in AT_BARRIERS - {tl.SYNC_THREADS.name} or is_asynchronous(statement)
    return isinstance(statement, tirx.AllocBuffer) and scope_of(statement.buffer) == BARRIER_SCOPE


class _Alone(Context):
    """A kernel whose threads all do the same."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings, grouping: ThreadGroups) -> None:
        super().__init__(function, firings)
        self.grouping = grouping


def _without_threads(context: _Alone, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    if isinstance(statement, tirx.Bind) and statement.var in context.grouping.names:
        return []
    if runs(statement, tl.SYNC_THREADS):
        return []
    refuse_threads(statement, context.grouping)
    return None


_ALONE = StatementRule(
    "one group of threads", "All threads wait for each other: there is one sequence.", _without_threads
)


# The indices of blocks that decide what groups do: for more blocks than this a proof takes too long.
_MOST_BLOCKS = 1024


def _traces(
    function: tirx.PrimFunc, grouping: ThreadGroups, launch: Sequence[tirx.For], body: Sequence[tirx.Stmt]
) -> list[GroupTrace]:
    """The runs of the groups: one, or one for each value of the block indices on which they depend."""
    blocks = {loop.loop_var: loop for loop in launch}
    chosen: list[ir.Var] = []
    while True:
        try:
            tree = Tree(body, grouping, chosen, [block for block in blocks if block not in chosen])
            break
        except UndecidedError as error:
            chosen.append(error.variable)
    extents: list[int] = []
    for variable in chosen:
        extent = constant(blocks[variable].extent)
        if extent is None:
            raise Unsupported(
                "L017",
                f"what groups of threads do depends on {variable.name}, of which the number is a run-time size",
                hint="pass sizes as arguments of the factory",
                span=span_of(blocks[variable]),
            )
        extents.append(extent)
    if prod(extents) > _MOST_BLOCKS:
        raise Unsupported(
            "L017",
            f"groups of threads that do something else in each of {prod(extents)} blocks",
            hint=f"explore smaller sizes, for {_MOST_BLOCKS} blocks at most",
            span=span_of(launch[0]),
        )
    traces: list[GroupTrace] = []
    for values in itertools.product(*map(range, extents)):
        traces.append(GroupTrace(tree, [*values, *[0] * (tree.numbers.slots - len(values))]))
        traces[-1].run()
    return traces


class _ItemWriter:
    """Writes items as statements of one sequence. `slots` are those of the blocks of which one slot is left."""

    def __init__(self, function: tirx.PrimFunc, tree: Tree, firings: Firings, slots: Mapping[int, int]) -> None:
        self.tree, self.firings, self.slots = tree, firings, slots
        # By their conditions, which guard items that are in them no more.
        self.branches = {
            identity(branch.condition): branch for branch in walk(function.body) if isinstance(branch, tirx.IfThenElse)
        }  # fmt: skip
        # What takes the place of variables, and of buffers with several slots.
        self.variables: dict[ir.Var, ir.Var] = {}
        self.buffers: dict[ir.Var, tirx.Buffer] = {}
        for alloc_buffer in tree.allocations:
            buffer = alloc_buffer.buffer
            if identity(buffer) in slots:
                new_allocation = allocation(
                    str(buffer.name), shape_of(buffer)[1:], dtype_of(buffer), scope_of(buffer), buffer.span
                )
                self.buffers[buffer] = new_allocation.buffer

    def body(self, items: Sequence[Item], depth: int = 0) -> list[tirx.Stmt]:
        """The statements of a body, `depth` of whose guards are around it already."""
        rewritten: list[tirx.Stmt] = []
        for guard, group in itertools.groupby(items, lambda item: item.guards[depth : depth + 1]):
            if not guard:
                for item in group:
                    rewritten += self.item(item, depth)
                continue
            (condition, holds), inner = guard[0], self.body([*group], depth + 1)
            if inner:
                test, branch = self.expression(condition), self.branches[identity(condition)]
                spans = dict.fromkeys((*spans_of(inner[0]), *spans_of(branch)))
                guarded = when(test if holds else tirx.Not(test), inner, to_tvm_spans([*spans]))
                rewritten += self.firings.made(_RULE, branch, [guarded])
        return rewritten

    def item(self, item: Item, depth: int) -> list[tirx.Stmt]:
        match item:
            case Leaf():
                return self.leaf(item.statement)
            case LoopItem():
                return self.loop(item)
            case BranchItem():
                statement = item.statement
                then = self.body(item.then, depth)
                otherwise = None if item.otherwise is None else self.body(item.otherwise, depth)
                if not then and not otherwise:
                    return []
                rewritten = when(self.expression(statement.condition), then, statement.span, otherwise=otherwise)
                return self.firings.made(_RULE, statement, [rewritten])
            case _:
                raise AssertionError(item)

    def loop(self, item: LoopItem) -> list[tirx.Stmt]:
        first, *rest = item.loops
        for loop in rest:
            self.variables[loop.loop_var] = first.loop_var
        body = self.body(item.body)
        if not body:
            return []
        annotations = dict(first.annotations)
        stages = max((self.slots.get(identity(buffer), 0) for buffer in self.filled(item)), default=0)
        if stages:
            annotations["num_stages"] = stages
        rewritten = tirx.For(
            first.loop_var, self.expression(first.min), self.expression(first.extent), first.kind, sequence(body),
            None, annotations, None, first.span,
        )  # fmt: skip
        for loop in rest:
            inherit_places(loop, [rewritten])
            self.firings.made(_RULE, loop, [])
        return self.firings.made(_RULE, first, [rewritten]) if rest or stages else [rewritten]

    def filled(self, item: LoopItem) -> list[tirx.Buffer]:
        """The buffers that copies in a loop fill, in none of the loops in it."""
        variables_ = {loop.loop_var for loop in item.loops}
        return [
            touch.buffer
            for number in item.leaves
            if (leaf := self.tree.leaves[number]).loops and leaf.loops[-1].loop_var in variables_
            for touch in leaf.accesses
            if touch.kind == "write"
        ]

    def leaf(self, statement: tirx.Stmt) -> list[tirx.Stmt]:
        if op_name(statement) in AT_BARRIERS:
            return []
        if isinstance(statement, tirx.AllocBuffer):
            if statement.buffer in self.buffers:
                new = tirx.AllocBuffer(self.buffers[statement.buffer], {}, statement.span)
                return self.firings.made(_RULE, statement, [new])
            return [statement]
        changes = self.variables.keys() | self.buffers.keys()
        if not is_asynchronous(statement) and not any(var in changes for var in variables_of(statement)):
            return [statement]
        return self.firings.made(_RULE, statement, [self.statement(statement)])

    def statement(self, statement: tirx.Stmt) -> tirx.Stmt:
        match statement:
            case tirx.Evaluate():
                if is_asynchronous(statement):
                    statement = without_barrier(statement)
                operands = arguments(statement)
                rewritten = [
                    self.region(operand) if isinstance(operand, ir.TensorRegion) else self.expression(operand)
                    for operand in operands
                ]
                return with_arguments(statement, rewritten)
            case tirx.Bind():
                return with_value(statement, self.expression(statement.value))
            case tirx.BufferStore():
                buffer, indices = statement.buffer, [self.expression(index) for index in statement.indices]
                if buffer in self.buffers:
                    buffer, indices = self.buffers[buffer], indices[1:]
                return tirx.BufferStore(buffer, self.expression(statement.value), indices, statement.span)
            case tirx.For():
                return with_body(statement, [self.statement(inner) for inner in statements(statement.body)])
            case tirx.IfThenElse():
                then, otherwise = (
                    None if case is None else [self.statement(inner) for inner in statements(case)]
                    for case in (statement.then_case, statement.else_case)
                )
                assert then is not None
                return when(self.expression(statement.condition), then, statement.span, otherwise=otherwise)
            case _:
                raise AssertionError(statement)

    def expression(self, expression: ir.Expr) -> ir.Expr:
        def rule(expr: ir.Expr) -> ir.Expr:
            if isinstance(expr, ir.TensorLoad) and expr.source in self.buffers:
                return tirx.BufferLoad(self.buffers[expr.source], elements(expr.indices)[1:], expr.span)
            return self.variables.get(expr, expr) if isinstance(expr, ir.Var) else expr

        return replaced(expression, rule)

    def region(self, region: ir.TensorRegion) -> ir.TensorRegion:
        ranges = [
            ir.Range.from_min_extent(self.expression(interval.min), self.expression(interval.extent))
            for interval in elements(region.region)
        ]
        if region.source in self.buffers:
            return tirx.BufferRegion(self.buffers[region.source], ranges[1:])
        return tirx.BufferRegion(region.source, ranges)


# Notes


def _notes(trace: GroupTrace, slots: Mapping[int, int]) -> tuple[Note, ...]:
    """What became of the groups, for the plan."""
    tree = trace.tree
    notes: list[Note] = []
    for number, group in enumerate(trace.grouping.groups):
        if work := _work(tree, number):
            notes.append(note("thread group", group=str(group), work=work))
    barriers: dict[str, list[str]] = {}
    for barrier in trace.barriers.values():
        says = [
            f"{state}: arriving is the {ends} of {', '.join(buffers)}, waiting its {begins}"
            for state, buffers, ends, begins in (
                ("full", barrier.full, "push", "cb_wait_front"),
                ("empty", barrier.empty, "pop", "cb_reserve_back"),
            )
            if buffers
        ]
        handed_over = "; ".join(says) or "nothing is handed over: one sequence does not need it"
        barriers.setdefault(handed_over, []).append(barrier.name)
    notes += [
        note("barrier", barriers=", ".join(names), hands_over=handed_over) for handed_over, names in barriers.items()
    ]
    for alloc_buffer in tree.allocations:
        count = slots.get(identity(alloc_buffer.buffer))
        if count is not None:
            notes.append(note("slots", buffer=str(alloc_buffer.buffer.name), slots=count))
    if len(trace.grouping.groups) > 1 or trace.barriers:
        steps = sum(len(steps) for steps in trace.done)
        notes.append(note("one sequence", steps=steps))
    return tuple(notes)


def _work(tree: Tree, group: int) -> str:
    """What a group does, as the kernels that do it here."""
    reads = computes = writes = False
    for leaf in tree.leaves:
        if group not in leaf.groups or op_name(leaf.statement) in AT_BARRIERS or not leaf.accesses:
            continue
        sides = [is_on_chip(touch.buffer) for touch in leaf.accesses]
        if runs(leaf.statement, tl.COPY) and not all(sides):
            reads, writes = reads or not sides[-2], writes or not sides[-1]
        else:
            computes = True
    facts = [
        text
        for does, text in (
            (reads, "load blocks: the reader"),
            (computes, "compute: the compute kernel"),
            (writes, "store: the writer"),
        )
        if does
    ]
    return "; ".join(facts)
