"""Elements that Python keeps in a name: each has the value it had when it was read, whatever is stored before its use.

Reading an element gives an expression, which TIR evaluates in the statement that contains it. If the element's buffer
has been written in between, the element is bound to a name where it was read.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import identity, span_of
from ttexplore.ir.dag import LEAVES, parts_of, replaced
from ttexplore.language.tracer.views import Views
from ttexplore.ops import language as tl

Frame = list[tirx.Stmt]


@dataclass
class _ElementRead:
    """An element that was read: the list of statements, the position in it, how many elements were read before, how
    often its buffer had been written, and the number of enclosing loops. `variable` is its name, once it has one."""

    load: ir.TensorLoad
    frame: Frame
    position: int
    number: int
    version: int
    depth: int
    variable: ir.Var | None = None

    @property
    def buffer(self) -> tirx.Buffer:
        return self.load.source


class Reads:
    """All elements that a kernel has read so far, and how often each buffer has been written, by itself or by a view of
    it."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._reads: dict[int, _ElementRead] = {}
        self._versions: dict[int, int] = {}
        # For each list of statements the names to be put into it, which is done once: when it is complete.
        self._names: dict[int, list[tuple[int, tirx.Bind]]] = {}
        # For each loop around: the versions where it began, and the elements from before it that it uses.
        self._loops: list[tuple[dict[int, int], list[_ElementRead]]] = []

    def __len__(self) -> int:
        return len(self._reads)

    def add(self, load: ir.TensorLoad, frame: Frame) -> None:
        version = self._version(load.source)
        read = _ElementRead(load, frame, len(frame), len(self._reads), version, len(self._loops))
        self._reads[identity(load)] = read

    def enter_loop(self) -> None:
        self._loops.append((dict(self._versions), []))

    def leave_loop(self) -> None:
        """Raises KernelError if an iteration uses an element read before the loop and also writes to it: the next
        iteration would use the new value."""
        before, used = self._loops.pop()
        for read in used:
            if self._version(read.buffer) != before.get(self._address(read.buffer), 0):
                raise KernelError(
                    "K014",
                    f"{read.buffer.name} is read before a loop that writes to it, and used in the loop",
                    hint="give the element a name before the loop: x = a[i, j]",
                    span=span_of(read.load),
                )

    def settled(self, statement: tirx.Stmt, frames: list[Frame]) -> tirx.Stmt:
        """The statement with names in place of elements that have been written since they were read."""
        match statement:
            case tirx.BufferStore():
                old = [statement.value, *statement.indices]
                new = self._each_kept(old, frames)
                self._write(statement.buffer)
                return statement if new is old else tirx.BufferStore(statement.buffer, new[0], new[1:], statement.span)
            case tirx.Bind():
                value = self.kept(statement.value, frames)
                return statement if value is statement.value else tirx.Bind(statement.var, value, statement.span)
            case tirx.Evaluate() if isinstance(statement.value, ir.Call):
                return self._settled_call(statement, statement.value, frames)
            case tirx.For():
                low, extent = (self.kept(bound, frames) for bound in (statement.min, statement.extent))
                if low.same_as(statement.min) and extent.same_as(statement.extent):
                    return statement
                return tirx.For(
                    statement.loop_var, low, extent, statement.kind, statement.body, statement.thread_binding,
                    statement.annotations, statement.step, statement.span,
                )  # fmt: skip
            case _:
                # Allocations and jumps have no operands; those of branches and `while` are settled where they begin.
                return statement

    def _settled_call(self, statement: tirx.Evaluate, call: ir.Call, frames: list[Frame]) -> tirx.Evaluate:
        old = call.args[:]
        new = self._each_kept(old, frames)
        for written in [old[tl.BLOCKS[call.op.name].target]] if call.op.name in tl.BLOCKS else old:
            if isinstance(written, ir.TensorRegion):
                self._write(written.source)
        if new is old:
            return statement
        settled_call = ir.Call(call.op, new, attrs=call.attrs, span=call.span, ret_ty=call.ty)
        return tirx.Evaluate(settled_call, statement.span)

    def _write(self, buffer: tirx.Buffer) -> None:
        self._versions[self._address(buffer)] = self._version(buffer) + 1

    def _address(self, buffer: tirx.Buffer) -> int:
        return identity(self._views.base_of(buffer))

    def _version(self, buffer: tirx.Buffer) -> int:
        return self._versions.get(self._address(buffer), 0)

    def _each_kept(self, old: list[ir.Expr], frames: list[Frame]) -> list[ir.Expr]:
        new = [self.kept(operand, frames) for operand in old]
        return old if all(a is b for a, b in zip(old, new, strict=True)) else new

    def kept(self, expression: ir.Expr, frames: list[Frame], since: int = 0) -> ir.Expr:
        """The expression with names for the elements that have been written since they were read, and for the first
        `since` elements that the kernel has read. Raises KernelError if one was read in a loop or branch that has
        ended."""
        if type(expression) in LEAVES:
            return expression
        if isinstance(expression, ir.TensorRegion):
            old = [bound for axis_range in expression.region[:] for bound in (axis_range.min, axis_range.extent)]
            new = self._each_kept(old, frames)
            if new is old:
                return expression
            ranges = [ir.Range.from_min_extent(low, extent) for low, extent in zip(new[::2], new[1::2], strict=True)]
            return tirx.BufferRegion(expression.source, ranges)
        for load in reversed(_loads(expression)):
            address = identity(load)
            read = self._reads.get(address)
            if read is None:
                continue
            if read.number < since or read.version != self._version(read.buffer):
                expression = _with_name(expression, load, self._named(read, frames))
            else:
                for _, used in self._loops[read.depth :]:
                    used.append(read)
        return expression

    def _named(self, read: _ElementRead, frames: list[Frame]) -> ir.Var:
        if read.variable is None:
            if not any(frame is read.frame for frame in frames):
                raise KernelError(
                    "K014",
                    f"an element of {read.buffer.name} is used after the loop or branch in which it was read",
                    hint="keep it in T.alloc_var or a buffer",
                    span=span_of(read.load),
                )
            read.variable = tirx.Var(f"{read.buffer.name}_before", read.load.ty, read.load.span)
            bind = tirx.Bind(read.variable, self._views.element(read.load), read.load.span)
            self._names.setdefault(id(read.frame), []).append((read.position, bind))
        return read.variable

    def named(self, frame: Frame) -> list[tuple[int, tirx.Bind]]:
        """The names of elements in a list of statements, each with the number of statements before it."""
        return self._names.get(id(frame), [])

    def put_names(self, frame: Frame) -> None:
        """Insert the names into a complete list of statements."""
        names = sorted(self._names.pop(id(frame), []), key=lambda name: name[0], reverse=True)
        ordered: Frame = []
        for position, statement in enumerate(frame):
            while names and names[-1][0] == position:
                ordered.append(names.pop()[1])
            ordered.append(statement)
        frame[:] = [*ordered, *(bind for _, bind in reversed(names))]


def _with_name(expression: ir.Expr, load: ir.TensorLoad, name: ir.Var) -> ir.Expr:
    return replaced(expression, lambda node: name if node.same_as(load) else node)


def _loads(expression: ir.Expr) -> list[ir.TensorLoad]:
    """The elements in an expression, each once; elements in the indices of others come first."""
    loads: dict[int, ir.TensorLoad] = {}
    visited: set[int] = set()
    # True: those in its indices have been found.
    todo: list[tuple[ir.Expr, bool]] = [(expression, False)]
    while todo:
        node, is_done = todo.pop()
        if is_done and isinstance(node, ir.TensorLoad):
            loads[identity(node)] = node
        elif isinstance(node, ir.Var | tirx.IntImm | tirx.FloatImm) or identity(node) in visited:
            continue
        else:
            visited.add(identity(node))
            if isinstance(node, ir.TensorLoad):
                todo.append((node, True))
            todo += [(child, False) for child in parts_of(node)]
    return list(loads.values())
