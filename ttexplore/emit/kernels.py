"""Emits the three kernels as C++ for the SDK's object API (ttnn 0.81.1), each line with its origins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, assert_never

import numpy as np

from ttexplore.errors import Unsupported
from ttexplore.ir.arithmetic.index import Binary, CoreItem, CoreValue, Expression, Variable, variables
from ttexplore.ir.arithmetic.words import CPP_TYPES, PRODUCT, RELATION, SUM, Word, Words, cpp, functions_of
from ttexplore.ir.core_walk import Executed, executions
from ttexplore.ir.kernel import (
    Allocation,
    Bind,
    Body,
    Branch,
    Call,
    FunctionReader,
    Loop,
    SourceLocation,
    Statement,
    Store,
    calls,
    uses,
    walk,
)  # fmt: skip
from ttexplore.ir.names import unused_name
from ttexplore.ops import OPS
from ttexplore.ops.functions import FUNCTIONS
from ttexplore.plan import KERNEL_ROLES, WORK_COUNTS, KernelRole, KernelSignature, Plan
from ttexplore.record import EmittedPart, Line, Listing, Origin, Work

_INDENT = "    "
_WIDTH = 120
_NO_TEXT = "please report the kernel: a pass did not replace this"
_DATAFLOW_HEADERS = (
    "api/dataflow/dataflow_api.h", "api/dataflow/dataflow_buffer.h", "api/dataflow/noc.h", "api/tensor/noc_traits.h",
)  # fmt: skip

# C++ keywords, and names of the SDK and of our own text, that a kernel's variables must not use.
_RESERVED_WORDS = """
    alignas alignof and and_eq asm assert auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast std struct switch template
    this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq unix linux noc kernel_main dst uint64_t int64_t uint32_t uint16_t uint8_t int32_t int16_t int8_t size_t
    TensorAccessor TensorAccessorArgs DataflowBuffer Noc Semaphore MATH PACK UNPACK ALWI NULL NAN INFINITY
    APPROX CB my_x my_y main float_bits write_index_tile floor_div floor_mod lesser greater INT32_MIN
    get_arg_val get_common_arg_val get_compile_time_arg_val next_compile_time_args_offset
"""
_OPERATION_WORDS = " ".join(
    text for op in OPS.values() if op.cpp for text in (op.name, op.cpp, op.init, op.uninit, *op.defines)
)
_RESERVED = frozenset([*_RESERVED_WORDS.split(), *re.findall(r"[A-Za-z_]\w*", re.sub(r"{\w*}", " ", _OPERATION_WORDS))])


@dataclass(frozen=True)
class _CircularBufferName:
    """A circular buffer in a template: its id, its DataflowBuffer and its page size."""

    id: str
    buffer: str
    page_bytes: str

    def __str__(self) -> str:
        return self.id


@dataclass
class _CppNames:
    """C++ names of variables: unique in the kernel, and different from the SDK's."""

    taken: set[str] = field(default_factory=lambda: set(_RESERVED))
    given: dict[Variable, str] = field(default_factory=dict[Variable, str])

    def fresh(self, preferred: str) -> str:
        base = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in preferred) or "value"
        base = f"v_{base}" if base[0].isdigit() or base[0] == "_" else base
        name = unused_name(base, self.taken)
        self.taken.add(name)
        return name

    def of(self, variable: Variable) -> str:
        if variable not in self.given:
            self.given[variable] = self.fresh(variable.name)
        return self.given[variable]


def _because_of(sites: Iterable[SourceLocation]) -> tuple[Origin, ...]:
    """The origins of a declaration: those of the statements that need it."""
    spans = {origin.span: None for site in sites for origin in site.origins()}
    return tuple(Origin(span, "derived") for span in spans)


def _takes(call: Call, name: str) -> bool:
    """Whether a tensor or buffer is an operand of the operation."""
    return any(buffer.name == name for buffer in call.buffers.values())


def _counts(call: Call, semaphore: int) -> bool:
    """Whether the operation uses a semaphore."""
    return any(operand.kind == "semaphore" and call.values[operand.name] == semaphore for operand in call.form.operands)


def emit_kernel(role: KernelRole, function: Any, plan: Plan) -> Listing:
    """The text of one kernel.

    Raises Unsupported for an operation or expression that has no C++ text.
    """
    return _Emitter(role, function, plan).listing()


def emitted_parts(functions: Mapping[str, Any], plan: Plan) -> tuple[EmittedPart, ...]:
    """What the lines of the three kernels are, and how often all cores execute the operations."""
    return tuple(emitted for role in KERNEL_ROLES for emitted in _Emitter(role, functions[role], plan).parts())


def operation_lines(functions: Mapping[str, Any], plan: Plan) -> dict[KernelRole, list[tuple[int, ...]]]:
    """The lines of the C++ of each operation, from 1, by their positions in each kernel."""
    return {role: _Emitter(role, functions[role], plan).operation_lines() for role in KERNEL_ROLES}


class _Emitter:
    def __init__(self, role: KernelRole, function: Any, plan: Plan) -> None:
        self.role, self.kernel, self.plan = role, FunctionReader().read(role, function), plan
        self.signature: KernelSignature = plan.kernel_signature(role)
        self.names = _CppNames()
        self.words = Words(self.kernel.sizes, self.kernel.blocks, self.kernel.bound_sizes)
        # The places that call our own functions.
        self.calling: dict[str, list[SourceLocation]] = {}
        # What the current C++ block has declared.
        self.declared: set[Variable] = set()
        self.lines: list[Line] = []
        # The lines, counted from the start of the kernel, of what has some.
        self.starts: dict[Call | Loop | Bind | str, list[int]] = {}
        self.headers: list[int] = []
        self.length = 0
        self.node = 0
        self.found = calls(self.kernel.body)
        # The variables that say how many work items the core has.
        self.work_counts = {
            stmt.variable
            for stmt in walk(self.kernel.body)
            if isinstance(stmt, Bind) and isinstance(stmt.value, CoreValue) and stmt.value.name in WORK_COUNTS
        }
        self.buffers = self._buffers()
        self.semaphores = {number: self.names.fresh(name) for number, name in plan.semaphores}
        self.tensors = {argument.of: self.names.fresh(argument.of) for argument in self.signature.common_runtime}

    def _buffers(self) -> dict[str, _CircularBufferName]:
        by_name = {buffer.name: buffer for buffer in self.plan.buffers}
        named = {buffer.name for call in self.found for buffer in call.buffers.values()}
        used = {name: buffer for name, buffer in by_name.items() if name in named}
        return {
            name: _CircularBufferName(
                self.names.fresh(f"cb_{name}"),
                self.names.fresh(f"{name}_buffer"),
                self.names.fresh(f"{name}_page_bytes"),
            )
            for name in sorted(used, key=lambda name: used[name].index or 0)
        }

    # Text

    def text(self, text: str, depth: int = 0, origins: tuple[Origin, ...] = (), node: int | None = None) -> None:
        self.lines.append(Line(_INDENT * depth + text if text else "", origins, node))

    def code(self, text: str, depth: int, origins: tuple[Origin, ...], work: Work = "controls") -> None:
        for line in _wrapped(_INDENT * depth + text):
            self.lines.append(Line(line, origins, self.node, work))
            # What is left of a line that is too long.
            work = ""
        self.node += 1

    def listing(self) -> Listing:
        if not self.found:
            self._header()
            self.text("// This program only moves data.")
            self.text("void kernel_main() {}")
            self.length = 1
            return Listing("cpp", tuple(self.lines), f"{self.role}.cpp")
        self.text("void kernel_main() {")
        self._prologue()
        self._body(self.kernel.body, 1, ())
        self.text("}")
        main, self.lines = self.lines, []
        self.length = len(main)
        # Now it is known which functions the text calls.
        self._header()
        return Listing("cpp", (*self.lines, *main), f"{self.role}.cpp")

    def parts(self) -> Iterator[EmittedPart]:
        """What the lines of the listing are."""
        lines = self.listing().lines
        first = len(lines) - self.length
        yield EmittedPart(self.role, (first + 1,), "start")
        yield from (EmittedPart(self.role, (number,), "header") for number in self.headers)
        assert self.plan.partition is not None
        cores = [core for core in self.plan.partition.cores if core.items]
        executed = executions(self.kernel, cores, self._moved)
        for subject, starts in self.starts.items():
            numbers = tuple(first + start for start in starts)
            match subject:
                case Call() if subject.phase:
                    pass
                case Call():
                    count = executed.get(subject, Executed())
                    counts = count.times, count.bytes, count.most
                    yield EmittedPart(self.role, numbers, "operation", subject.op.ir_name, *counts, _tiles(subject))
                case str():
                    yield EmittedPart(self.role, numbers, "buffer", subject)
                case Bind():
                    yield EmittedPart(self.role, numbers, "argument")
                case Loop():
                    yield EmittedPart(self.role, numbers, "work loop")

    def operation_lines(self) -> list[tuple[int, ...]]:
        """The lines of the listing of each operation in order; none for one without a text."""
        first = len(self.listing().lines) - self.length
        return [tuple(first + start for start in self.starts.get(call, ())) for call in self.found]

    def _moved(self, call: Call) -> Expression:
        """The bytes of a tensor that an operation moves."""
        if not any(operand.kind == "tensor" for operand in call.form.operands):
            return 0
        cb = next(operand.name for operand in call.form.operands if operand.kind == "cb")
        return call.values.get("count_bytes", self.plan.buffer(call.buffer(cb)).page_bytes)

    def _header(self) -> None:
        name, target = self.plan.kernel, self.plan.target
        self.text(f"// {self.role} of {name} for {target}, written by ttexplore.")
        for kind, arguments in (
            ("compile-time", self.signature.compile_time), ("common", self.signature.common_runtime),
            ("per core", self.signature.runtime),
        ):  # fmt: skip
            if arguments:
                self.text(f"// {kind} arguments: {', '.join(argument.name for argument in arguments)}")
        self.text("")
        headers: set[str] = set() if self.role == "compute" else set(_DATAFLOW_HEADERS)
        defines: set[str] = set()
        for call in self.found:
            headers.add(call.op.header)
            defines.update(call.op.defines)
        if self.role == "compute" and self.found:
            # common.h declares the arguments.
            headers |= {"api/compute/common.h", "api/dataflow/dataflow_buffer.h"}
        for macro in sorted(defines):
            self.text(f"#define {macro}")
        self.text("#include <cstdint>")
        for header in sorted(headers):
            self.headers.append(len(self.lines) + 1)
            self.text(f'#include "{header}"')
        self.text("")

        for name, text in FUNCTIONS.items():
            calling = [call.place for call in self.found if name in self._functions(call)]
            if needing := [*calling, *self.calling.get(name, [])]:
                for line in text.splitlines():
                    self.text(line, 0, _because_of(needing))
                self.text("")

    @staticmethod
    def _functions(call: Call) -> tuple[str, ...]:
        """Our own functions that the text of an operation calls."""
        if call.phase:
            return ()
        scalars = [call.values[operand.name] for operand in call.op.operands if operand.kind == "float"]
        computed = any(not isinstance(value, float) for value in scalars)
        return (*call.op.functions, "float_bits") if computed else call.op.functions

    def _prologue(self) -> None:
        previous = ""
        for argument in self.signature.compile_time:
            name = self.names.fresh(f"{argument.of}_args")
            offset = f"{previous}.next_compile_time_args_offset()" if previous else "0"
            tensor = self.tensors[argument.of]
            origins = _because_of(call.place for call in self.found if _takes(call, argument.of))
            self.text(f"constexpr auto {name} = TensorAccessorArgs<{offset}>();", 1, origins)
            self.text(f"const auto {tensor} = TensorAccessor({name}, {self._address(argument.of)});", 1, origins)
            previous = name
        self.words.declare(self.kernel.body)
        texts = [(call.place, self._call(call)) for call in self.found]
        allocated = {stmt.buffer.name: stmt.place for stmt in walk(self.kernel.body) if isinstance(stmt, Allocation)}
        # A pass's allocation has no line of its own: its origins are the statements that use it.
        origins_of_buffer = {
            name: _because_of([allocated[name]]) or _because_of(call.place for call in self.found if _takes(call, name))
            for name in self.buffers
        }
        for name, cb in self.buffers.items():
            self.text(f"constexpr uint32_t {cb.id} = {self.plan.buffer(name).index};", 1, origins_of_buffer[name])
        for name, cb in self.buffers.items():
            if any(re.search(rf"\b{cb.page_bytes}\b", text) for _, text in texts):
                size = self.plan.buffer(name).page_bytes
                self.text(f"constexpr uint32_t {cb.page_bytes} = {size};", 1, origins_of_buffer[name])
        for name, cb in self.buffers.items():
            if any(cb.buffer in text for _, text in texts):
                self._mark(name)
                self.text(f"DataflowBuffer {cb.buffer}({cb.id});", 1, origins_of_buffer[name])
        moving = [site for site, text in texts if "noc." in text]
        if self.role != "compute" and moving:
            self.text("Noc noc;", 1, _because_of(moving))
        for number, name in self.semaphores.items():
            using = [call.place for call in self.found if _counts(call, number)]
            if using:
                self.text(f"Semaphore<> {name}({number});", 1, _because_of(using))

    def _address(self, tensor: str) -> str:
        index = [argument.of for argument in self.signature.common_runtime].index(tensor)
        return f"get_common_arg_val<uint32_t>({index})"

    def _mark(self, subject: Call | Loop | Bind | str) -> None:
        """Remember that the text of something starts in the next line."""
        self.starts.setdefault(subject, []).append(len(self.lines) + 1)

    # Statements

    def _body(self, body: Body, depth: int, around: tuple[Origin, ...], inherited: tuple[Origin, ...] = ()) -> None:
        """The statements of a body; `inherited` are the origins of what is around them and has no text of its own."""
        for statement in body:
            self._statement(statement, depth, around, inherited)

    def _block(self, body: Body, depth: int, around: tuple[Origin, ...]) -> None:
        """The statements of a C++ block of their own."""
        declared, scope_names = self.declared, dict(self.names.given)
        self.declared = set()
        self._body(body, depth, around)
        self.declared = declared
        self.names.given.update(scope_names)

    def _declare(self, variable: Variable) -> str:
        """The name of a variable from here on. Iterations of a loop that a pass has peeled may stand in one C++ block;
        what they bind is one variable, but each needs a name of its own there."""
        if variable in self.declared:
            del self.names.given[variable]
        self.declared.add(variable)
        return self.names.of(variable)

    def _statement(
        self, statement: Statement, depth: int, around: tuple[Origin, ...], inherited: tuple[Origin, ...]
    ) -> None:
        site = statement.place
        origins = site.origins(around)
        spans = {origin.span for origin in origins}
        origins += tuple(Origin(origin.span, "derived") for origin in inherited if origin.span not in spans)
        match statement:
            case Loop():
                self._loop(statement, depth, origins)
            case Branch():
                test = self._text(self.words.condition(statement.condition, site), site)
                self.code(f"if ({test}) {{", depth, origins)
                self._block(statement.then, depth + 1, origins)
                if statement.has_else:
                    self.text("} else {", depth, origins)
                    self._block(statement.otherwise, depth + 1, origins)
                self.text("}", depth, origins)
            case Bind():
                if isinstance(statement.value, CoreValue | CoreItem):
                    self._mark(statement)
                self._bind(statement, depth, origins)
            case Call(result=None):
                self._mark(statement)
                self.code(f"{self._call(statement)};", depth, origins, statement.form.work)
            case Call():
                self._mark(statement)
                self._result(statement, depth, origins)
            case Store():
                raise Unsupported(
                    "L012", f"a store to {statement.tensor} has no C++ text", hint=_NO_TEXT, span=site.span
                )
            case Allocation():
                pass
            case _:
                assert_never(statement)

    def _loop(self, loop: Loop, depth: int, origins: tuple[Origin, ...]) -> None:
        name, site = self.names.of(loop.variable), loop.place
        low, end, kind = self.words.loop(loop)
        first = self._text(low, site)
        if loop.turns != 1:
            last = self._text(end, site, RELATION)
            if not self.work_counts.isdisjoint(variables(loop.end)):
                self._mark(loop)
            self.code(f"for ({CPP_TYPES[kind]} {name} = {first}; {name} < {last}; ++{name}) {{", depth, origins)
            self._block(loop.body, depth + 1, origins)
            self.text("}", depth, origins)
        elif uses(loop.body, loop.variable):
            self.code("{", depth, origins)
            qualifier = "constexpr" if low.symbol == "constant" else "const"
            self.code(f"{qualifier} {CPP_TYPES[kind]} {name} = {first};", depth + 1, origins)
            self._block(loop.body, depth + 1, origins)
            self.text("}", depth, origins)
        else:
            self._body(loop.body, depth, origins, origins)

    def _result(self, call: Call, depth: int, origins: tuple[Origin, ...]) -> None:
        kind = self.words.result(call)
        assert call.result is not None
        assert kind is not None
        name, type = self._declare(call.result), CPP_TYPES[kind]
        self.code(f"const {type} {name} = static_cast<{type}>({self._call(call)});", depth, origins, call.form.work)

    def _bind(self, bind: Bind, depth: int, origins: tuple[Origin, ...]) -> None:
        word, kind = self.words.bind(bind)
        match bind.value:
            case CoreValue(core_value):
                index = [argument.value_of for argument in self.signature.runtime].index(core_value)
                text = f"get_arg_val<{CPP_TYPES[kind]}>({index})"
            case CoreItem(_, position):
                first = [argument.source for argument in self.signature.runtime].index("core_list")
                argument_index = self._expression(Binary("+", first, position) if first else position, bind.place)
                text = f"get_arg_val<{CPP_TYPES[kind]}>({argument_index})"
            case _:
                assert word is not None
                text = self._text(word, bind.place)
        self.code(f"const {CPP_TYPES[kind]} {self._declare(bind.variable)} = {text};", depth, origins)

    def _expression(self, expression: Expression, site: SourceLocation, around: int = 0) -> str:
        """The text of an expression, for a uint32_t parameter of the SDK."""
        if isinstance(expression, int):
            return str(expression)
        return self._text(self.words.unsigned(expression, site), site, around)

    def _text(self, word: Word, site: SourceLocation, around: int = 0) -> str:
        for function in functions_of(word):
            self.calling.setdefault(function, []).append(site)
        return cpp(word, self.names.of, around)

    def _call(self, call: Call) -> str:
        if not call.form.cpp:
            raise Unsupported("L012", f"{call.name} has no C++ text", hint=_NO_TEXT, span=call.span)
        return call.form.cpp.format(**self._operands(call))

    def _operands(self, call: Call) -> dict[str, _CircularBufferName | str]:
        texts: dict[str, _CircularBufferName | str] = {}
        for operand in call.form.operands:
            name = operand.name
            match operand.kind:
                case "cb":
                    texts[name] = self.buffers[call.buffer(name)]
                case "dst":
                    texts[name] = self._expression(call.values[name], call.place)
                case "tensor":
                    texts[name] = self.tensors[call.buffer(name)]
                case "float":
                    texts[name] = self._bits(call.values[name], call.place)
                case "slot":
                    page_bytes = self.buffers[call.buffer(operand.of)].page_bytes
                    texts[name] = self._offset(call.values[name], page_bytes, call.place)
                case "semaphore":
                    texts[name] = self.semaphores[call.number(name)]
                case "condition":
                    texts[name] = self._text(self.words.condition(call.values[name], call.place), call.place)
                case "tile" | "page" | "int" | "flag":
                    around = SUM if f"+ {{{name}}}" in call.form.cpp else 0
                    value = call.values[name]
                    texts[name] = self._expression(value, call.place, around)
                    if isinstance(value, int) and value < 0 and f"= {{{name}}}" in call.form.cpp:
                        # Of a place before the start of a tensor, which is never read. Braces do not convert it.
                        texts[name] = self._text(self.words.unsigned(value, call.place), call.place)
        return texts

    def _bits(self, value: Expression, site: SourceLocation) -> str:
        """The bits of a float32, as the SDK takes scalars; whole numbers known only at run time are converted."""
        if not isinstance(value, float):
            # Its parameter is an int32_t, to which the argument is converted.
            return f"float_bits({self._text(self.words.word(value, site), site)})"
        return f"0x{int(np.float32(value).view(np.uint32)):08x}u"

    def _offset(self, slot: Expression, page_bytes: str, site: SourceLocation) -> str:
        match slot:
            case 0:
                return "0"
            case 1:
                return page_bytes
            case _:
                return f"{self._expression(slot, site, PRODUCT)} * {page_bytes}"


def _tiles(call: Call) -> int:
    """The tiles of a call, or the products of two tiles."""
    sizes = (call.values.get(name, 1) for name in ("rt_dim", "ct_dim"))
    return prod(size for size in sizes if isinstance(size, int))


def _wrapped(text: str) -> list[str]:
    """Break a long statement after commas."""
    if len(text) <= _WIDTH or ", " not in text:
        return [text]
    indent = text[: len(text) - len(text.lstrip())] + _INDENT
    lines, rest = list[str](), text
    while len(rest) > _WIDTH:
        cut = rest.rfind(", ", len(indent), _WIDTH)
        if cut < 0:
            break
        lines.append(rest[: cut + 1])
        rest = indent + rest[cut + 2 :]
    return [*lines, rest]
