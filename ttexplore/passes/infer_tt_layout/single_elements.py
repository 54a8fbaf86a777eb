"""Reject single elements of tensors and blocks that decide something, and that not all kernels of a core know.

A0 has given a name to each element of a tensor that decides a branch, a length or a place: the reader hands such
numbers on. What goes through scalar variables or blocks, or differs in each turn of a T.Parallel, is rejected at its
use.
"""

from __future__ import annotations

from collections.abc import Iterable

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import elements, is_buffer, span_of
from ttexplore.ir.arithmetic.index import RANGES
from ttexplore.ir.branches import branch_condition
from ttexplore.ir.build import arguments, dtype_of, op_name, scope_of, statements
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import control_refused, is_on_chip, is_parallel, loads_of
from ttexplore.ir.operations.quantified import deciding_load
from ttexplore.ops import language as tl
from ttexplore.record import Span

_AS_A_BLOCK = "copy {} into an on-chip buffer with T.copy, and read that buffer inside T.Parallel"
_IN_ITS_TURN = (
    "the variable {} may change from turn to turn: read the element in the turn of the loop that uses it, right there "
    "or under a name"
)
_CHOOSE = _AS_A_BLOCK + ": T.if_then_else selects elements"
_CONSTANT_GRID = "launch a constant number of blocks"
_CONSTANT_LENGTH = "use a constant length, and mask extra elements with T.if_then_else"


def refuse_single_elements(function: tirx.PrimFunc) -> None:
    """Raise Unsupported at the first statement that needs an element of a tensor as a scalar."""
    _ScalarElements().look(function.body)


class _ScalarElements:
    """Walks the statements of a kernel in order."""

    def __init__(self) -> None:
        # Names and scalar variables that hold an element, each with its tensor and the line of the assignment.
        self.held: dict[ir.Var, tuple[str, Span | None]] = {}

    def look(self, body: tirx.Stmt) -> None:
        self._body(body, in_parallel=False)
        for holder, (tensor, span) in self.held.items():
            raise _value(tensor, span, _IN_ITS_TURN.format(holder.name) if is_buffer(holder) else "")

    def _body(self, body: tirx.Stmt, *, in_parallel: bool) -> None:
        for statement in statements(body):
            span = span_of(statement)
            match statement:
                case tirx.For():
                    is_grid = statement.kind == tirx.ForKind.THREAD_BINDING
                    subject = "the launch grid" if is_grid else "the length of a loop"
                    hint = _CONSTANT_GRID if is_grid else _CONSTANT_LENGTH
                    if branch_condition(statement) is not None:
                        subject, hint = "a condition", _CHOOSE
                    self._control(subject, hint, [statement.min, statement.extent], span)
                    self._body(statement.body, in_parallel=in_parallel or is_parallel(statement))
                case tirx.While():
                    raise control_refused(statement)
                case tirx.IfThenElse():
                    self._control("a condition", _CHOOSE, [statement.condition], span)
                    self._body(statement.then_case, in_parallel=in_parallel)
                    if statement.else_case is not None:
                        self._body(statement.else_case, in_parallel=in_parallel)
                case tirx.Bind() if not in_parallel and _is_read(statement):
                    self._number(statement)
                case tirx.Bind():
                    self._places(loads_of(statement.value), span)
                    self._hold(statement.var, self._element(statement.value, direct=not in_parallel), span)
                case tirx.BufferStore():
                    self._places([*loads_of(statement.value), statement], span)
                    if not in_parallel:
                        self._store(statement, span)
                case tirx.Evaluate() if op_name(statement) in tl.STATEMENTS:
                    self._operation(statement, span)
                case _:
                    # Other statements have no operands from the kernel.
                    pass

    def _number(self, statement: tirx.Bind) -> None:
        """An element that decides something: A0 has given it a name."""
        load = deciding_load(statement.value)
        assert load is not None
        dtype = dtype_of(load.source)
        if dtype not in RANGES:
            raise Unsupported(
                "L013",
                f"an element of {load.source.name}, which is {dtype}, decides a branch, a length or a place",
                hint="use integers or bool: the processors that move data have no floating-point unit",
                span=span_of(statement),
            )
        self._places([load], span_of(statement))

    def _store(self, statement: tirx.BufferStore, span: Span | None) -> None:
        name = self._element(statement.value)
        if scope_of(statement.buffer) == "local.var":
            self._hold(statement.buffer, name, span)
        elif not is_on_chip(statement.buffer):
            raise Unsupported(
                "L003",
                f"a store of single elements to {statement.buffer.name} outside T.Parallel",
                hint="store where block and loop indices say: which cores write an element must be known",
                span=span,
            )
        elif name:
            raise _value(name, span)

    def _operation(self, statement: tirx.Stmt, span: Span | None) -> None:
        for argument in arguments(statement):
            if not isinstance(argument, ir.TensorRegion):
                if name := self._element(argument):
                    raise _value(name, span)
                continue
            for interval in elements(argument.region):
                for bound in (interval.min, interval.extent):
                    name = self._element(bound) or _on_chip_element(bound)
                    if name:
                        raise _place(name, span)

    def _control(self, subject: str, hint: str, values: Iterable[ir.Expr], span: Span | None) -> None:
        for value in values:
            if name := self._element(value):
                raise Unsupported(
                    "L013",
                    f"{subject} depends on an element of {name}, which is known only at run time",
                    hint=hint.format(name),
                    span=span,
                )

    def _places(self, accesses: Iterable[ir.TensorLoad | tirx.BufferStore], span: Span | None) -> None:
        """Raise Unsupported for a load or a store with elements of tensors as indices."""
        for access in accesses:
            for index in access.indices:
                if name := self._element(index):
                    raise _place(name, span)

    def _hold(self, holder: ir.Var, name: str, span: Span | None) -> None:
        if name:
            self.held.setdefault(holder, (name, span))

    def _element(self, value: ir.Expr, *, direct: bool = True) -> str:
        """The tensor whose element the value needs, or "". Without `direct`, only elements in names and scalar
        variables count, because T.Parallel reports the tensors that it reads itself."""
        for node in nodes_of(value):
            holder = node.source if type(node) is ir.TensorLoad else node
            if type(holder) is ir.Var and holder in self.held:
                return self.held[holder][0]
            if direct and type(node) is ir.TensorLoad and not is_on_chip(node.source):
                return str(node.source.name)
        return ""


def _is_read(statement: tirx.Bind) -> bool:
    load = deciding_load(statement.value)
    return load is not None and not is_on_chip(load.source)


def _on_chip_element(value: ir.Expr) -> str:
    return next((str(load.source.name) for load in loads_of(value) if scope_of(load.source) != "local.var"), "")


def _place(name: str, span: Span | None) -> Unsupported:
    return Unsupported(
        "L013",
        f"the position of a read or write depends on an element of {name} that not all kernels know",
        hint="use elements of tensors right where they decide, such as A[S[bx] * 32, 0], or a name for one; not in a "
        "variable or a block, and not one for each turn of a T.Parallel",
        span=span,
    )


def _value(name: str, span: Span | None, hint: str = "") -> Unsupported:
    hint = hint or _AS_A_BLOCK.format(name)
    return Unsupported("L013", f"an element of {name} is used as a scalar", hint=hint, span=span)
