"""Print functions as listings: each line knows its statement and the kernel lines that it comes from."""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.ir.adapter import Node, is_buffer, spans_of
from ttexplore.ir.arithmetic.expression import format_expression
from ttexplore.ir.branches import branch_condition
from ttexplore.ir.build import arguments, attribute, bound_form, op_name, operation, scope_of, shape_of, statements
from ttexplore.ir.operations.reductions import reduction_of
from ttexplore.ir.program import TirProgram
from ttexplore.ops import FORMS
from ttexplore.ops import language as tl
from ttexplore.ops.op import CORE_VALUE, OperandArgument
from ttexplore.record import Line, Listing, Origin, Work

_INDENT = "    "


def program_listing(program: TirProgram, name: str = "") -> Listing:
    """All functions of a program, one after another."""
    printer = _Printer()
    for role, function in program.functions.items():
        if printer.lines:
            printer.lines.append(Line(""))
        printer.function(role if program.is_split else str(function.attrs["global_symbol"]), function)
    return Listing("tir", tuple(printer.lines), name)


def origins_of(statement: Node, around: tuple[Origin, ...]) -> tuple[Origin, ...]:
    """The origins of a statement: exact for the kernel's own, derived for a pass's, else those around it, inferred."""
    spans = spans_of(statement)
    if not spans:
        return tuple(Origin(origin.span, "inferred") for origin in around)
    return tuple(Origin(span, "exact" if _is_own(statement) else "derived") for span in spans)


def _is_own(statement: Node) -> bool:
    """Whether the statement is the kernel's own: passes make tt operations and variables without spans."""
    if isinstance(statement, tirx.For):
        return statement.loop_var.span is not None
    if isinstance(statement, tirx.Bind):
        return statement.var.span is not None
    if isinstance(statement, tirx.AllocBuffer):
        return not scope_of(statement.buffer).startswith("tt.")
    return not (isinstance(statement, tirx.Stmt) and op_name(statement).startswith("tt."))


def _parameter(parameter: ir.Var) -> str:
    if not is_buffer(parameter):
        return f"{parameter.name}: T.{parameter.ty.dtype}"
    extents = [str(extent) for extent in parameter.ty.shape]
    shape = f"({extents[0]},)" if len(extents) == 1 else f"({', '.join(extents)})"
    return f'{parameter.name}: T.Tensor({shape}, "{parameter.ty.dtype.dtype}")'


class _Printer:
    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.node = 0

    def function(self, name: str, function: tirx.PrimFunc) -> None:
        parameters = ", ".join(_parameter(p) for p in function.params)
        origins = tuple(Origin(span, "exact") for span in spans_of(function))
        self.lines.append(Line(f"def {name}({parameters}):", origins))
        self.body(function.body, 1, origins)

    def body(self, body: tirx.Stmt, depth: int, around: tuple[Origin, ...]) -> None:
        body_statements = statements(body)
        if not body_statements:
            self.lines.append(Line(_INDENT * depth + "pass", tuple(Origin(o.span, "inferred") for o in around)))
        for nested in body_statements:
            self.statement(nested, depth, around)

    def emit(self, text: str, depth: int, origins: tuple[Origin, ...], work: Work = "controls") -> None:
        self.lines.append(Line(_INDENT * depth + text, origins, self.node, work))
        self.node += 1

    def statement(self, statement: tirx.Stmt, depth: int, around: tuple[Origin, ...]) -> None:
        origins = origins_of(statement, around)
        match statement:
            case tirx.For() if (condition := branch_condition(statement)) is not None:
                self.emit(f"if {format_expression(condition)}:", depth, origins)
                self.body(statement.body, depth + 1, origins)
            case tirx.For():
                self.emit(f"for {statement.loop_var.name} in {_iterator(statement)}:", depth, origins)
                self.body(statement.body, depth + 1, origins)
            case tirx.IfThenElse():
                self.emit(f"if {format_expression(statement.condition)}:", depth, origins)
                self.body(statement.then_case, depth + 1, origins)
                if statement.else_case is not None:
                    self.lines.append(Line(_INDENT * depth + "else:", origins))
                    self.body(statement.else_case, depth + 1, origins)
            case tirx.While():
                self.emit(f"while {format_expression(statement.condition)}:", depth, origins)
                self.body(statement.body, depth + 1, origins)
            case _:
                self.emit(_simple(statement), depth, origins, _work(statement))


def _work(statement: tirx.Stmt) -> Work:
    """What a statement other than a loop or branch does for the kernel's own work."""
    match statement:
        case tirx.AllocBuffer():
            return "declarations"
        case tirx.Bind(value=ir.Call() as value) if value.op.name == CORE_VALUE:
            return "declarations"
        case tirx.Bind():
            form = bound_form(statement)
            return "controls" if form is None else form.work
        case _:
            form = FORMS.get(op_name(statement))
            return "computes" if form is None else form.work


def _iterator(statement: tirx.For) -> str:
    start, extent = format_expression(statement.min), format_expression(statement.extent)
    bounds = extent if start == "0" else f"{start}, {format_expression(statement.min + statement.extent)}"
    if statement.thread_binding is not None:
        return f'T.thread_binding({bounds}, "{statement.thread_binding.thread_tag}")'
    if statement.kind == tirx.ForKind.PARALLEL:
        return f"T.Parallel({bounds})"
    stages = dict(statement.annotations).get("num_stages")
    return f"T.Pipelined({bounds}, num_stages={int(stages)})" if stages is not None else f"range({bounds})"


def _simple(statement: tirx.Stmt) -> str:
    if isinstance(statement, tirx.AllocBuffer):
        buffer = statement.buffer
        return f'{buffer.name} = T.alloc_buffer({shape_of(buffer)}, "{buffer.ty.dtype.dtype}", "{scope_of(buffer)}")'
    if isinstance(statement, tirx.Bind):
        return f"{statement.var.name} = {format_expression(statement.value)}"
    if isinstance(statement, tirx.BufferStore):
        indices = ", ".join(format_expression(index) for index in statement.indices)
        return f"{statement.buffer.name}[{indices}] = {format_expression(statement.value)}"
    name = op_name(statement)
    if name in FORMS:
        return f"{name}({', '.join(map(_argument, FORMS[name].given(arguments(statement))))})"
    if name in tl.STATEMENTS:
        flags = [
            flag for flag in ("transpose_A", "transpose_B", "clear_accum", "transpose") if attribute(statement, flag)
        ]
        shown = [
            *(format_expression(argument) for argument in arguments(statement)),
            *(f"{flag}=True" for flag in flags),
        ]
        if (reduction := reduction_of(statement)) is not None:
            name = f"{name}_{reduction.kind}"
            shown += [f"dim={reduction.dim}", *([] if reduction.clear else ["clear=False"])]
        return f"T.{name[3:]}({', '.join(shown)})"
    if name:
        return format_expression(operation(statement))
    return str(statement).strip()


def _argument(argument: OperandArgument[ir.Expr]) -> str:
    text = format_expression(argument.value)
    return text if argument.slot is None else f"{text}[{format_expression(argument.slot)}]"
