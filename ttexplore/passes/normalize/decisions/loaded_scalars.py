"""Elements of tensors that decide branches, lengths of loops and places of blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeGuard

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import call, elements, span_of
from ttexplore.ir.arithmetic.limited import condition_of
from ttexplore.ir.arithmetic.sizes import constant_extents, extents_of
from ttexplore.ir.build import arguments, attribute, constant, op_name, runs, with_arguments, with_nest, with_value
from ttexplore.ir.dag import COMPARISON_TYPES, nodes_of, parts_of, replaced, same_expression, with_parts
from ttexplore.ir.dataflow import is_on_chip, is_parallel, loads_of, parallel_body
from ttexplore.ir.operations.atomics import ATOMIC
from ttexplore.ir.operations.quantified import Quantified, deciding_load, quantified_of
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, rewrite_body, walk
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.decisions.computed_decisions import check_decisions
from ttexplore.passes.normalize.decisions.loaded_blocks import Element, LoadedBlocks


def with_loaded_scalars(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with a name for each element of a tensor that decides something, read right before the statement.

    What a condition lets nobody ask for is read at the first element instead: `k < n and Mask[k]` reads Mask[0] where
    k is not less than n. An element of a block that holds a part of a tensor is an element of that tensor. Raises
    Unsupported where something depends on a name of what the chip computes.
    """
    rewritten = rewrite(_LOADED, _LoadedDecisions(function, firings))
    check_decisions(rewritten)
    return rewritten


def with_named_choices(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with a name for each condition of a T.Parallel that elements of tensors decide, alike for all of it: a
    name is compared as an int32, and so with any numbers, what T.Parallel computes is float32.

                                                              choice = T.Select(Count_value > 2000000, 1, 0)
        for i, j in T.Parallel(32, 32):                       for i, j in T.Parallel(32, 32):
            x[i, j] = T.if_then_else(                   ==>       x[i, j] = T.if_then_else(choice != 0, 1.0, x[i, j])
                Count_value > 2000000, 1.0, x[i, j])
    """
    names = [statement.var for statement in walk(function.body) if _is_number(statement)]
    return rewrite(_NAMED, _Choices(function, firings, names)) if names else function


def _is_number(statement: tirx.Stmt) -> TypeGuard[tirx.Bind]:
    """Whether a statement names an element of a tensor."""
    if not isinstance(statement, tirx.Bind) or (load := deciding_load(statement.value)) is None:
        return False
    return not is_on_chip(load.source)


class _Choices(Context):
    """`decided` are the names that depend on elements of tensors."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings, names: Iterable[ir.Var]) -> None:
        super().__init__(function, firings)
        self.decided = set[ir.Expr](names)
        for statement in walk(function.body):
            if isinstance(statement, tirx.Bind) and any(node in self.decided for node in nodes_of(statement.value)):
                self.decided.add(statement.var)

    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if self.is_in_nest or not is_parallel(statement):
            return None
        loops, body = parallel_body(statement)
        inside = {loop.loop_var for loop in loops} | {inner.var for inner in body if isinstance(inner, tirx.Bind)}
        bindings: list[tirx.Stmt] = []
        values: dict[ir.Expr, ir.Expr] = {}
        for value in (inner.value for inner in body if isinstance(inner, tirx.Bind | tirx.BufferStore)):
            for node in nodes_of(value):
                if node not in values and type(node) in COMPARISON_TYPES and self.is_decided(node, inside):
                    name = tirx.Var("choice", "int32")
                    bindings.append(tirx.Bind(name, tirx.Select(node, tirx.const(1, "int32"), tirx.const(0, "int32"))))
                    values[node] = tirx.NE(name, tirx.const(0, "int32"))
        return [*bindings, with_values(statement, values)] if bindings else None

    def is_decided(self, condition: ir.Expr, inside: Collection[ir.Expr]) -> bool:
        """Whether elements of tensors decide a comparison of whole numbers, for all elements alike."""
        nodes = nodes_of(condition)
        alike = not loads_of(condition) and not any(node in inside for node in nodes)
        return alike and any(node in self.decided for node in nodes) and all(
            str(operand.ty.dtype) == "int32" for operand in parts_of(condition)
        )  # fmt: skip


_NAMED = (
    StatementRule("choice", "A condition that is alike for all elements gets a name before them.", _Choices.nest),
)


def with_checked_places(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with a check before each place that elements of tensors decide, where it may be outside.

    The part of a block past the end of a tensor is read as zeros and never stored, as everywhere. An index of one
    element, and an element that is read, are checked at both ends.
    """
    if not any(
        isinstance(statement, tirx.Bind) and deciding_load(statement.value) is not None
        for statement in walk(function.body)
    ):
        return function
    return rewrite(_CHECKED, _DecidedIndices(function, firings))


def notes_on_decisions(function: tirx.PrimFunc) -> tuple[Note, ...]:
    """What the plan says of the decisions that are left to elements of tensors."""
    sources_of: dict[ir.Expr, list[str]] = {}
    tensors_of: dict[str, list[str]] = {}

    def sources(*values: ir.Expr) -> list[str]:
        return [name for value in values for node in nodes_of(value) for name in sources_of.get(node, [])]

    def decided(text: str, names: list[str]) -> None:
        tensors_of[text] = list(dict.fromkeys([*tensors_of.get(text, []), *names]))

    for node in walk(function.body):
        match node:
            case tirx.Bind() if (load := deciding_load(node.value)) is not None:
                sources_of[node.var] = [str(load.source.name), *sources(*load.indices)]
            case tirx.Bind():
                sources_of[node.var] = sources(node.value)
            case tirx.For():
                names = sources_of[node.loop_var] = sources(node.min, node.extent)
                decided("which branches and turns are taken, by the reader for all kernels of a core", names)
            case tirx.Evaluate() if runs(node, tl.COPY):
                for number, region in enumerate(arguments(node)):
                    assert isinstance(region, ir.TensorRegion)
                    names = sources(*(interval.min for interval in region.region))
                    if number and names:
                        text = f"where {region.source.name} is stored, which is checked when the kernel runs"
                        caveat = "; that no two blocks store to one place is up to the kernel"
                        decided(text if attribute(node, ATOMIC) else text + caveat, names)
                    elif names:
                        decided(f"where {region.source.name} is loaded, which is checked when the kernel runs", names)
            case _:
                pass
    return tuple(
        note("elements decide", tensors=" and ".join(names), decision=text)
        for text, names in tensors_of.items()
        if names
    )


def _decisions(statement: tirx.Stmt) -> list[ir.Expr]:
    match statement:
        case tirx.For() if is_parallel(statement):
            # The place of a block that a T.Parallel reads or stores; which element of it depends on no element.
            loops, body = parallel_body(statement)
            inside = {loop.loop_var for loop in loops} | {inner.var for inner in body if isinstance(inner, tirx.Bind)}
            deciding = [
                index for inner in body if isinstance(inner, tirx.Bind | tirx.BufferStore)
                for load in loads_of(inner.value) for index in load.indices
            ]  # fmt: skip
            deciding += [index for inner in body if isinstance(inner, tirx.BufferStore) for index in inner.indices]
            values = [inner.value for inner in body if isinstance(inner, tirx.BufferStore)]
            deciding += [condition for value in values if (condition := condition_of(value)) is not None]
            loads = [load for index in deciding for load in loads_of(index)]
            return [load for load in loads if not any(node in inside for node in nodes_of(load))]
        case tirx.For() if statement.kind != tirx.ForKind.THREAD_BINDING:
            return [statement.min, statement.extent]
        case tirx.IfThenElse():
            return [statement.condition]
        case tirx.Bind() if (load := deciding_load(statement.value)) is not None and not is_on_chip(load.source):
            return [*load.indices]
        case tirx.Bind():
            return [statement.value]
        case tirx.Evaluate() if op_name(statement) in tl.STATEMENTS:
            regions = [argument for argument in arguments(statement) if isinstance(argument, ir.TensorRegion)]
            return [
                bound
                for region in regions
                for interval in elements(region.region)
                for bound in (interval.min, interval.extent)
            ]
        case _:
            return []


class _ElementNames:
    """The names for the elements in one statement, and the statements that read them. `held` says which element of a
    tensor an element of a block is."""

    def __init__(self, element_of: Callable[[ir.TensorLoad], Element | None]) -> None:
        self.made: list[tirx.Stmt] = []
        self.held = element_of

    def of(self, e: ir.Expr, asked: ir.Expr | None = None) -> ir.Expr:
        """An expression with names in place of elements; `asked` is the condition under which anybody wants it."""
        if isinstance(e, ir.TensorLoad):
            indices = [self.of(index, asked) for index in e.indices]
            if is_on_chip(e.source):
                return self._in_block(tirx.BufferLoad(e.source, indices, e.span), asked)
            if asked is not None and loads_of(asked):
                # The reader does not know whether anybody asks for it, nor what depends on that.
                return tirx.BufferLoad(e.source, indices, e.span)
            if asked is not None:
                zero = tirx.const(0, "int32")
                indices = [
                    index if constant(index) is not None else tirx.Select(asked, index, zero) for index in indices
                ]
            element = tirx.BufferLoad(e.source, indices, e.span)
            for read in self.made:
                if isinstance(read, tirx.Bind) and same_expression(read.value, element):
                    return read.var
            name = tirx.Var(f"{e.source.name}_value", e.ty)
            self.made.append(tirx.Bind(name, element))
            return name
        if not loads_of(e):
            return e
        operands = parts_of(e)
        match e:
            case tirx.And() | tirx.Or():
                left = self.of(e.a, asked)
                holds = left if isinstance(e, tirx.And) else tirx.Not(left)
                return with_parts(e, [left, self.of(e.b, _both(asked, holds))])
            case tirx.Select():
                test = self.of(operands[0], asked)
                conditions = (test, tirx.Not(test))
            case ir.Call() if str(e.op.name).endswith(".if_then_else"):
                test = self.of(operands[0], asked)
                conditions = (test, tirx.Not(test))
            case _:
                return with_parts(e, [self.of(operand, asked) for operand in operands])
        sides = [self.of(operand, _both(asked, holds)) for operand, holds in zip(operands[1:], conditions, strict=True)]
        return with_parts(e, [test, *sides])

    def _in_block(self, e: ir.TensorLoad, asked: ir.Expr | None) -> ir.Expr:
        """An element of a block that holds a part of a tensor: an element of that tensor, 0 past its end."""
        element = self.held(e)
        if element is None:
            return e
        self.made += element.checked(asked)
        if not element.past:
            return self.of(element.value, asked)
        zero = tirx.const(0, str(e.ty.dtype))
        if any(constant(condition) == 1 for condition in element.past):
            return zero
        value: ir.Expr = element.value
        for past in element.past:
            value = tirx.Select(past, zero, value)
        name = tirx.Var(f"{e.source.name}_value", e.ty)
        self.made.append(tirx.Bind(name, self.of(value, asked)))
        return name


def _both(asked: ir.Expr | None, holds: ir.Expr) -> ir.Expr:
    return holds if asked is None else tirx.And(asked, holds)


class _LoadedDecisions(Context):
    """`held` are the blocks that hold a part of a tensor."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.held = LoadedBlocks(function)

    def seen(self, statement: tirx.Stmt) -> None:
        """Not a rule that changes statements."""
        if not self.is_in_nest:
            self.held.pass_by(statement, [*self.around])

    def quantified(self, block: Quantified, named: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
        """Whether elements of a block are true, as what the tensor holds from which it was loaded."""
        if is_on_chip(block.source):
            region = self.held.part(block, [*self.around], self.bounds)
            if region is None:
                name = str(block.source.name)
                raise Unsupported(
                    "L005",
                    f"{'T.all_of' if block.of_all else 'T.any_of'} of the block {name}, which is no copy of a block of "
                    "a tensor here: only the compute kernel knows it",
                    hint=f"ask before {name} changes, or ask the tensor: T.any_of(A[0:32, 0:32]); or choose elements "
                    "in T.Parallel: T.if_then_else",
                    span=span_of(block.first),
                )
            starts = [interval.min for interval in region.region]
            block = block.moved(region.source, starts, constant_extents(region))
        return block.moved(block.source, [named(index) for index in block.first.indices], block.extents).expression()

    def element(self, load: ir.TensorLoad) -> Element | None:
        """The element of a tensor that an element of a block is, if it is known."""
        return self.held.element(load, [*self.around], self.bounds)


def _loaded(context: _LoadedDecisions, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    if context.is_in_nest:
        return None
    needed = (load for value in _decisions(statement) for load in loads_of(value))
    if all(is_on_chip(load.source) and context.element(load) is None for load in needed):
        return None
    names = _ElementNames(context.element)
    named = names.of

    def inside(body: list[tirx.Stmt]) -> list[tirx.Stmt]:
        return rewrite_body(body, _LOADED, context)

    match statement:
        case tirx.For() if is_parallel(statement):
            decisions = _decisions(statement)
            values: dict[ir.Expr, ir.Expr] = {decision: named(decision) for decision in decisions}
            rewritten: tirx.Stmt = with_values(statement, values)
        case tirx.For():
            low, extent = named(statement.min), named(statement.extent)
            inner = context.inside(statement, inside)
            rewritten = tirx.For(
                inner.loop_var, low, extent, inner.kind, inner.body, inner.thread_binding, inner.annotations,
                inner.step, inner.span,
            )  # fmt: skip
        case tirx.IfThenElse():
            condition = named(statement.condition)
            inner = context.inside(statement, inside)
            rewritten = tirx.IfThenElse(condition, inner.then_case, inner.else_case, inner.span)
        case tirx.Bind() if (block := quantified_of(statement.value)) is not None:
            rewritten = with_value(statement, context.quantified(block, named))
        case tirx.Bind(value=ir.TensorLoad() as load) if not is_on_chip(load.source):
            indices = [named(index) for index in load.indices]
            rewritten = with_value(statement, tirx.BufferLoad(load.source, indices, load.span))
        case tirx.Bind():
            rewritten = with_value(statement, named(statement.value))
        case _:
            operands: list[ir.Expr] = []
            for operand in arguments(statement):
                if isinstance(operand, ir.TensorRegion):
                    ranges = [
                        ir.Range.from_min_extent(named(interval.min), named(interval.extent))
                        for interval in operand.region
                    ]
                    operand = tirx.BufferRegion(operand.source, ranges)
                operands.append(operand)
            rewritten = with_arguments(statement, operands)
    return [*names.made, rewritten]


def with_values(nest: tirx.For, values: dict[ir.Expr, ir.Expr]) -> tirx.Stmt:
    """A T.Parallel nest with names in place of elements that decide places."""

    def substituted(e: ir.Expr) -> ir.Expr:
        return replaced(e, lambda node: values.get(node, node))

    loops, body = parallel_body(nest)
    rewritten: list[tirx.Stmt] = []
    for inner in body:
        match inner:
            case tirx.Bind():
                rewritten.append(with_value(inner, substituted(inner.value)))
            case tirx.BufferStore():
                rewritten.append(
                    with_value(inner, substituted(inner.value), [substituted(index) for index in inner.indices])
                )
            case _:
                rewritten.append(inner)
    return with_nest(loops, rewritten)


_LOADED = (
    StatementRule(
        "what blocks hold", "What a block holds of a tensor is noted; nothing changes.", _LoadedDecisions.seen
    ),
    StatementRule(
        "number of a tensor",
        "An element of a tensor that decides something is read before it, and gets a name.",
        _loaded,
    ),
)


# Elements that are computed with in T.Parallel, where float32 holds all that becomes of them.
MAX_VALUE = 1 << 20


def _used_as_values(function: tirx.PrimFunc) -> set[ir.Expr]:
    """The names that what T.Parallel computes depends on, and those that these depend on."""
    needed: dict[ir.Expr, list[ir.Expr]] = {}
    waiting: list[ir.Expr] = []
    for node in walk(function.body):
        match node:
            case tirx.For() if is_parallel(node):
                for inner in parallel_body(node)[1]:
                    if isinstance(inner, tirx.Bind | tirx.BufferStore):
                        waiting += nodes_of(inner.value)
            case tirx.For():
                needed[node.loop_var] = [*nodes_of(node.min), *nodes_of(node.extent)]
            case tirx.Bind(value=tirx.Select() as chosen):
                # What is compared becomes no part of the value.
                needed[node.var] = [inner_node for side in parts_of(chosen)[1:] for inner_node in nodes_of(side)]
            case tirx.Bind():
                needed[node.var] = nodes_of(node.value)
            case _:
                pass
    used_names = set[ir.Expr]()
    while waiting:
        node = waiting.pop()
        if node not in used_names and isinstance(node, ir.Var):
            used_names.add(node)
            waiting += needed.get(node, [])
    return used_names


class _DecidedIndices(Context):
    """`decided` are the names that depend on elements of tensors."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.decided = set[ir.Expr]()
        self.values = _used_as_values(function)

    def depends(self, e: ir.Expr) -> bool:
        return any(node in self.decided for node in nodes_of(e))

    def name(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """A name, which may depend on elements, and be one."""
        if isinstance(statement, tirx.For) and (self.depends(statement.min) or self.depends(statement.extent)):
            self.decided.add(statement.loop_var)
        if not isinstance(statement, tirx.Bind):
            return None
        value = statement.value
        if not isinstance(value, ir.TensorLoad):
            if self.depends(value) or quantified_of(value) is not None:
                self.decided.add(statement.var)
            return None
        if is_on_chip(value.source):
            return None
        self.decided.add(statement.var)
        tests: list[ir.Expr] = []
        for index, length in zip(value.indices, extents_of(value.source), strict=True):
            tests += [index >= 0, index < length]
        before = self.checked("check_read", tests, statement)
        self.enter(statement)
        limits: list[ir.Expr] = []
        if statement.var in self.values and str(statement.var.ty.dtype) == "int32":
            limits = [statement.var >= -MAX_VALUE, statement.var <= MAX_VALUE]
        return [*before, statement, *self.checked("check_read", limits, statement)]

    def place(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not runs(statement, tl.COPY):
            return None
        checks: list[tirx.Stmt] = []
        for region, name in zip(arguments(statement), ("check_read", "check_write"), strict=True):
            assert isinstance(region, ir.TensorRegion)
            tests: list[ir.Expr] = []
            for interval, length in zip(region.region, extents_of(region.source), strict=True):
                if not is_on_chip(region.source) and self.depends(interval.min):
                    # Where nothing is stored, it is not stored anywhere.
                    start = interval.min >= 0
                    tests.append(
                        start if constant(interval.extent) is not None else tirx.Or(start, interval.extent <= 0)
                    )
                    tests += [interval.min < length] if constant(interval.extent) == 1 else []
            checks += self.checked(name, tests, statement)
        return [*checks, statement] if checks else None

    def checked(self, name: str, tests: list[ir.Expr], statement: tirx.Stmt) -> list[tirx.Stmt]:
        bindings: list[tirx.Stmt] = []
        for test in tests:
            if not self.bounds.proves(test):
                binding = tirx.Bind(tirx.Var("checked", "int32"), call(f"tt.{name}", [test], dtype="int32"))
                self.enter(binding)
                bindings.append(binding)
        return bindings


_CHECKED = (
    StatementRule(
        "check of an index",
        "An element that decides something is checked to be one of its tensor.",
        _DecidedIndices.name,
    ),
    StatementRule(
        "check of a place",
        "A place that elements of tensors decide is checked to lie in its tensor.",
        _DecidedIndices.place,
    ),
)
