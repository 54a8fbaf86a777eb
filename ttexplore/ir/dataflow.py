"""Which value of an on-chip buffer each statement reads: reaching definitions over structured loops.

The buffers of a kernel are reused under one name; what matters for lowering is which write a read sees. Writes that
some read may both see form one *web*: the unit that gets storage. Names mean nothing here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeGuard, assert_never

from tvm import ir, tirx

from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import choice_of, identity, span_of
from ttexplore.ir.arithmetic.bounds import empty_loops
from ttexplore.ir.branches import branch_condition
from ttexplore.ir.build import constant, op_name, overwrites, regions, scope_of, shape_of, statements
from ttexplore.ir.dag import nodes_of, parts_of
from ttexplore.ops import language as tl
from ttexplore.record import Span

AccessKind = Literal["read", "write", "update"]


@dataclass(frozen=True)
class Access:
    """One buffer that a block statement touches. `role` says as what: ``source``, ``target``, ``A``, ``B``, ``C``,
    ``reduced``, ``tiles`` (some of its tiles are copied), and in a T.Parallel over (i, j) ``element`` (read at [i, j]),
    ``row`` ([j] or [0, j], the same for all rows), ``column`` ([i] or [i, 0]), ``scalar`` ([0] or [0, 0]),
    ``transposed`` ([j, i])."""

    buffer: tirx.Buffer
    kind: AccessKind
    role: str


@dataclass
class Web:
    """Writes of one buffer that share storage, with the reads that see them."""

    buffer: tirx.Buffer
    writes: list[tirx.Stmt] = field(default_factory=list[tirx.Stmt])
    reads: list[tuple[tirx.Stmt, str]] = field(default_factory=list[tuple[tirx.Stmt, str]])


def is_on_chip(buffer: tirx.Buffer) -> bool:
    return scope_of(buffer) not in ("global", "")


def is_parallel(statement: tirx.Stmt) -> TypeGuard[tirx.For]:
    return type(statement) is tirx.For and statement.kind == tirx.ForKind.PARALLEL


def blocks(body: tirx.Stmt) -> list[tirx.Stmt]:
    """All statements below `body` in pre-order, T.Parallel nests without what is in them."""
    flat: list[tirx.Stmt] = []
    waiting = statements(body)[::-1]
    while waiting:
        statement = waiting.pop()
        flat.append(statement)
        match statement:
            case tirx.For() | tirx.While() if not is_parallel(statement):
                waiting += statements(statement.body)[::-1]
            case tirx.IfThenElse():
                if statement.else_case is not None:
                    waiting += statements(statement.else_case)[::-1]
                waiting += statements(statement.then_case)[::-1]
            case _:
                pass
    return flat


def parallel_body(statement: tirx.Stmt) -> tuple[list[tirx.For], list[tirx.Stmt]]:
    """The loops of a T.Parallel nest and the statements in it: stores, and bindings of names to values."""
    loops: list[tirx.For] = []
    while is_parallel(statement):
        loops.append(statement)
        inner = statements(statement.body)
        if len(inner) != 1 or not is_parallel(inner[0]):
            return loops, inner
        statement = inner[0]
    return loops, []


def nest_of(statement: tirx.Stmt) -> tuple[list[tirx.For], list[tirx.BufferStore | tirx.Bind]]:
    """Like :func:`parallel_body`. Raises Unsupported for a nest that holds anything but stores and names."""
    loops, body = parallel_body(statement)
    body_statements: list[tirx.BufferStore | tirx.Bind] = []
    for inner in body:
        if type(inner) is tirx.BufferStore or type(inner) is tirx.Bind:
            body_statements.append(inner)
        else:
            raise _unsupported(inner)
    return loops, body_statements


def loads_of(expression: ir.Expr) -> list[ir.TensorLoad]:
    """The element loads in an expression, each once, in order."""
    return [node for node in nodes_of(expression) if type(node) is ir.TensorLoad]


def certain_loads(expression: ir.Expr) -> Iterator[ir.TensorLoad]:
    """The loads in an expression that no condition in it guards."""
    waiting, visited = [expression], set[int]()
    while waiting:
        node = waiting.pop()
        if identity(node) in visited:
            continue
        visited.add(identity(node))
        if type(node) is ir.TensorLoad:
            yield node
        guards = type(node) is tirx.And or type(node) is tirx.Or or choice_of(node) is not None
        waiting += parts_of(node)[:1] if guards else parts_of(node)


def accesses(statement: tirx.Stmt) -> list[Access]:
    """What a block statement (an operation or a T.Parallel nest) reads and writes.

    Raises Unsupported for statements that are no block statements.
    """
    if is_parallel(statement):
        return _parallel_accesses(statement)
    operation = tl.BLOCKS.get(op_name(statement))
    if operation is None or operation is tl.SCAN:
        raise _unsupported(statement)
    used = regions_used(statement)
    return [Access(region.source, kind, role) for (region, kind), role in zip(used, operation.regions, strict=True)]


def regions_used(statement: tirx.Stmt) -> list[tuple[ir.TensorRegion, AccessKind]]:
    """Each region of an operation of the kernel language, and how it uses it; none for operations without regions."""
    operation = tl.BLOCKS.get(op_name(statement))
    if operation is None:
        return []
    kind: AccessKind = "write" if overwrites(statement) else "update"
    return [
        (region, kind if number == operation.target else "read") for number, region in enumerate(regions(statement))
    ]


def _unsupported(statement: tirx.Stmt) -> Unsupported:
    match statement:
        case tirx.BufferStore() if scope_of(statement.buffer) == "local.var":
            return Unsupported(
                "L003",
                f"the variable {statement.buffer.name} decides places, lengths or branches, and changes as the kernel "
                "runs",
                hint="compute it from block and loop indices where it is used, such as A[t * 64, 0] in a loop over t",
                span=span_of(statement),
            )
        case tirx.BufferStore():
            construct = f"a store of single elements to {statement.buffer.name} outside T.Parallel"
            return Unsupported(
                "L003",
                construct,
                hint="put it into `for i, j in T.Parallel(...)`; write out the value of a scalar where it is used",
                span=span_of(statement),
            )
        case tirx.For():
            return Unsupported(
                "L001",
                "a loop inside T.Parallel is not lowered",
                hint="write the T.Parallel inside the loop, or unroll the loop",
                span=span_of(statement),
            )
        case tirx.While() | tirx.Break() | tirx.Continue():
            return control_refused(statement)
        case _:
            construct = op_name(statement) or type(statement).__name__
            return Unsupported(
                "L001",
                f"no rule lowers {construct}",
                hint="write it with T.copy, T.fill, T.clear, T.gemm, T.reduce, loops, and stores in T.Parallel",
                span=span_of(statement),
            )


def control_refused(statement: tirx.While | tirx.Break | tirx.Continue) -> Unsupported:
    """The refusal of a loop that finds out in its turns how many it takes, and of turns that are cut short."""
    span = span_of(statement)
    allowed = "n may come from block and loop indices, sizes and elements of input tensors"
    match statement:
        case tirx.While():
            return Unsupported(
                "L005",
                "`while`: how often it turns is only known when the kernel runs",
                hint=f"write `for t in range(n)`: {allowed}, as in range(N[bx])",
                span=span,
            )
        case tirx.Break():
            return Unsupported(
                "L005",
                "`break`: how often the loop turns is only known when the kernel runs",
                hint=f"write `for t in range(n)` with the turns that it takes: {allowed}, as in range(T.min(N[bx], 4))",
                span=span,
            )
        case tirx.Continue():
            return Unsupported(
                "L005",
                "`continue` in a loop of the kernel",
                hint="put the rest of the turn under the opposite condition: `if t != 1:` for `if t == 1: continue`",
                span=span,
            )
        case _:
            assert_never(statement)


def _parallel_accesses(statement: tirx.For) -> list[Access]:
    loops, body = parallel_body(statement)
    variables = [loop.loop_var for loop in loops]
    accessed: dict[tuple[tirx.Buffer, str], Access] = {}
    for store in body:
        if not isinstance(store, tirx.BufferStore | tirx.Bind):
            raise _unsupported(store)
        if isinstance(store, tirx.BufferStore) and not is_on_chip(store.buffer):
            raise Unsupported(
                "L003",
                f"T.Parallel stores to the tensor {store.buffer.name} directly",
                hint="store to an on-chip buffer and T.copy that to the tensor",
                span=span_of(store),
            )
        for load in loads_of(store.value):
            if not is_on_chip(load.source):
                raise Unsupported(
                    "L003",
                    f"T.Parallel reads the tensor {load.source.name} directly",
                    hint="T.copy the block into an on-chip buffer first",
                    span=span_of(store),
                )
            role = load_role(load, variables, span_of(store))
            _check_extents(load, loops, span_of(store))
            accessed.setdefault((load.source, role), Access(load.source, "read", role))
        if isinstance(store, tirx.Bind):
            continue
        if not same_indices(store.indices, variables):
            raise Unsupported(
                "L003",
                f"T.Parallel stores to {store.buffer.name} at indices other than its loop variables in order",
                hint="store at [i, j] of `for i, j in T.Parallel(...)`",
                span=span_of(store),
            )
        extents = [constant(loop.extent) for loop in loops]
        if list(shape_of(store.buffer)) != extents:
            raise Unsupported(
                "L003",
                f"T.Parallel covers {tuple(extents)} of {store.buffer.name}, whose shape is {shape_of(store.buffer)}",
                hint="cover the whole buffer",
                span=span_of(store),
            )
        before = accessed.get((store.buffer, "element"))
        kind: AccessKind = "update" if before is not None and before.kind != "write" else "write"
        accessed[store.buffer, "element"] = Access(store.buffer, kind, "element")
    written = {access.buffer for access in accessed.values() if access.kind != "read"}
    for access in accessed.values():
        if access.kind == "read" and access.buffer in written:
            raise Unsupported(
                "L003",
                f"one T.Parallel stores to {access.buffer.name} and reads it at other elements",
                hint="store to a second buffer, or use two T.Parallel nests",
                span=span_of(statement),
            )
    return list(accessed.values())


def same_indices(indices: Sequence[ir.Expr], variables: Sequence[ir.Var]) -> bool:
    return len(indices) == len(variables) and all(
        index.same_as(variable) for index, variable in zip(indices, variables, strict=True)
    )


def load_role(load: ir.TensorLoad, variables: Sequence[ir.Var], span: Span | None = None) -> str:
    """The role (see :class:`Access`) of a load in a T.Parallel over `variables`. Raises Unsupported at `span` for
    other indices."""
    indices = list(load.indices)
    if same_indices(indices, variables):
        return "element"
    if all(constant(index) == 0 for index in indices):
        return "scalar"
    if len(variables) == 2:
        row, column = variables
        for role, expected in (("row", [column]), ("column", [row]), ("transposed", [column, row])):
            if same_indices(indices, expected):
                return role
        if len(indices) == 2:
            if constant(indices[0]) == 0 and indices[1].same_as(column):
                return "row"
            if constant(indices[1]) == 0 and indices[0].same_as(row):
                return "column"
    raise Unsupported(
        "L003",
        f"{load.source.name}[{', '.join(str(index) for index in indices)}] in a T.Parallel over "
        f"({', '.join(str(variable.name) for variable in variables)})",
        hint="read [i, j], a vector at [j] or [i], one element at [0], or a block transposed at [j, i]; "
        "for a part of a block, T.copy it to a buffer of its own",
        span=span,
    )


def _check_extents(load: ir.TensorLoad, loops: Sequence[tirx.For], span: Span | None) -> None:
    """Raise KernelError where the loop variables leave the buffer."""
    for axis, (index, extent) in enumerate(zip(load.indices, shape_of(load.source), strict=True)):
        for loop in loops:
            length = constant(loop.extent)
            if index.same_as(loop.loop_var) and length is not None and length > extent:
                raise KernelError(
                    "K001",
                    f"{load.source.name} has {extent} elements along axis {axis}, but {loop.loop_var.name} reaches "
                    f"{length - 1}",
                    hint="make the buffer as large as the loop",
                    span=span,
                )


def _is_kept(buffer: tirx.Buffer, statement: tirx.Stmt) -> bool:
    """Whether a statement stores to a buffer where a condition holds, and leaves it as it is elsewhere."""
    if not is_parallel(statement):
        return False
    _, body = parallel_body(statement)
    choices = (
        choice_of(store.value) for store in body if isinstance(store, tirx.BufferStore) and store.buffer == buffer
    )
    return any(
        choice is not None and isinstance(choice[2], ir.TensorLoad) and choice[2].source == buffer for choice in choices
    )


def nothing_written(buffer: tirx.Buffer, statement: tirx.Stmt, *, branch: bool = False) -> KernelError:
    """The refusal of a statement that reads a buffer after a loop that may make no turn, or a branch, that alone writes
    it."""
    if branch:
        return KernelError(
            "K006",
            f"{buffer.name} is read here, and written only under a condition",
            hint=f"T.clear({buffer.name}) before the condition, or write all of it in `else`, too",
            span=span_of(statement),
        )
    return KernelError(
        "K006",
        f"{buffer.name} is read here, and written only in a loop that may make no turn",
        hint=f"T.clear({buffer.name}) before the loop, or give it a length of at least 1",
        span=span_of(statement),
    )


# The writes that reach a place, by buffer.
_State = dict[tirx.Buffer, frozenset[int]]
# A statement with a buffer that it writes; with one that it reads, and in which role.
_Write = tuple[tirx.Stmt, tirx.Buffer]
_Read = tuple[tirx.Stmt, tirx.Buffer, str]
# In place of a write: what a buffer holds after a loop that was its first to write it, and made no turn.
_NOTHING = -1
# The same after a branch.
_UNTAKEN = -2


@dataclass
class _Scan:
    """Reaching definitions while walking: a definition is the statement that writes, with its buffer. `empty` are the
    variables of the loops that may make no turn."""

    empty: frozenset[ir.Var]
    links: dict[int, int] = field(default_factory=dict[int, int])
    writes: list[_Write] = field(default_factory=list[_Write])
    ids: dict[_Write, int] = field(default_factory=dict[_Write, int])
    reads: dict[_Read, int] = field(default_factory=dict[_Read, int])
    accesses: dict[tirx.Stmt, list[Access]] = field(default_factory=dict[tirx.Stmt, list[Access]])
    # What each loop left behind, by what it found: loops inside of others find the same again and again.
    left: dict[tirx.For, list[tuple[_State, _State]]] = field(
        default_factory=dict[tirx.For, "list[tuple[_State, _State]]"]
    )

    def write_id(self, statement: tirx.Stmt, buffer: tirx.Buffer) -> int:
        key = (statement, buffer)
        if key not in self.ids:
            self.ids[key] = len(self.writes)
            self.links[len(self.writes)] = len(self.writes)
            self.writes.append(key)
        return self.ids[key]

    def root(self, write: int) -> int:
        while self.links[write] != write:
            write = self.links[write]
        return write

    def join(self, writes: frozenset[int]) -> int:
        roots = sorted({self.root(write) for write in writes})
        for root in roots[1:]:
            self.links[root] = roots[0]
        return roots[0]

    def body(self, body: tirx.Stmt, state: _State) -> _State:
        for statement in statements(body):
            state = self.statement(statement, state)
        return state

    def statement(self, statement: tirx.Stmt, state: _State) -> _State:
        if type(statement) is tirx.AllocBuffer or type(statement) is tirx.Bind:
            return state
        if type(statement) is tirx.For and not is_parallel(statement):
            transitions = self.left.setdefault(statement, [])
            for before, after in transitions:
                if before == state:
                    return after
            transitions.append((state, self.loop(statement, state)))
            return transitions[-1][1]
        after = dict(state)
        if statement not in self.accesses:
            self.accesses[statement] = accesses(statement)
        for access in self.accesses[statement]:
            if not is_on_chip(access.buffer):
                continue
            if access.kind != "write":
                reaching = state.get(access.buffer, frozenset())
                if not reaching and _is_kept(access.buffer, statement):
                    raise KernelError(
                        "K006",
                        f"{access.buffer.name} keeps what it holds where the condition does not hold, and nothing has "
                        "been written to it",
                        hint="give it a value before the condition, or in `else`, too",
                        span=span_of(statement),
                    )
                if not reaching:
                    raise KernelError(
                        "K006",
                        f"{access.buffer.name} is read before anything is written to it",
                        hint="T.copy, T.fill or T.clear it first",
                        span=span_of(statement),
                    )
                if missing := reaching & {_NOTHING, _UNTAKEN}:
                    raise nothing_written(access.buffer, statement, branch=_NOTHING not in missing)
                root = self.join(reaching)
                if access.kind == "read":
                    self.reads[(statement, access.buffer, access.role)] = root
            if access.kind != "read":
                write = self.write_id(statement, access.buffer)
                if access.kind == "update":
                    write = self.join(state[access.buffer] | {write})
                after[access.buffer] = frozenset({write})
        return after

    def loop(self, statement: tirx.For, state: _State) -> _State:
        after = self.body(statement.body, state)
        if branch_condition(statement) is not None:
            return {key: state.get(key, frozenset({_UNTAKEN})) | after[key] for key in after}
        # Once more with what the body leaves behind: what a later iteration sees.
        merged = {key: state.get(key, frozenset()) | after[key] - {_NOTHING, _UNTAKEN} for key in after}
        once = after
        after = self.body(statement.body, merged)
        # What one turn may leave unwritten, each turn may.
        after = {key: after[key] | once[key] & {_NOTHING, _UNTAKEN} for key in after}
        if statement.loop_var not in self.empty:
            return after
        return {key: state.get(key, frozenset({_NOTHING})) | after[key] for key in after}


# A2 asks several times about one function, which nothing changes.
@functools.lru_cache(maxsize=4)
def webs(function: tirx.PrimFunc) -> tuple[Web, ...]:
    """The webs of all on-chip buffers, in the order of their first write.

    Raises KernelError for reads of what was never written, Unsupported for statements that are no block statements.
    """
    scan = _Scan(empty_loops(function))
    scan.body(function.body, {})
    by_root: dict[int, Web] = {}
    for number, (statement, buffer) in enumerate(scan.writes):
        by_root.setdefault(scan.root(number), Web(buffer)).writes.append(statement)
    for (statement, _, role), write in scan.reads.items():
        by_root[scan.root(write)].reads.append((statement, role))
    return tuple(by_root.values())
