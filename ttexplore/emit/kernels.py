"""The three kernels as C++ of the SDK's object API (ttnn 0.81.1), each line with its origins."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import is_buffer, span_of
from ttexplore.ir.build import arguments, constant, op_name, statements
from ttexplore.ir.listing import origins_of
from ttexplore.ir.names import unused_name
from ttexplore.ir.nodes import AllocBuffer, Bind, Evaluate, FloatImm, For, IfThenElse, uses
from ttexplore.ir.rewrite import walk
from ttexplore.ir.words import CPP_TYPES, PRODUCT, RELATION, SUM, Word, Words, cpp, functions_of
from ttexplore.ops import FORMS, OPS
from ttexplore.ops.functions import FUNCTIONS
from ttexplore.ops.op import Form, Op
from ttexplore.plan import CircularBuffer, KernelRole, KernelSignature, Plan
from ttexplore.record import Line, Listing, Origin

_INDENT = "    "
_WIDTH = 120
_NO_TEXT = "a pass left what only an earlier step has: please report the kernel"
_DATAFLOW_HEADERS = (
    "api/dataflow/dataflow_api.h", "api/dataflow/dataflow_buffer.h", "api/dataflow/noc.h", "api/tensor/noc_traits.h",
)  # fmt: skip

# C++ keywords and names of the SDK and of our own text that a kernel's variable must not take.
_RESERVED_WORDS = """
    alignas alignof and and_eq asm assert auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast std struct switch template
    this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq noc kernel_main dst uint64_t int64_t uint32_t uint16_t uint8_t int32_t int16_t int8_t size_t
    TensorAccessor TensorAccessorArgs DataflowBuffer Noc Semaphore MATH PACK UNPACK ALWI NULL NAN INFINITY
    APPROX CB my_x my_y main float_bits write_index_tile floor_div floor_mod lesser greater INT32_MIN
    get_arg_val get_common_arg_val get_compile_time_arg_val next_compile_time_args_offset
"""
_OPERATION_WORDS = " ".join(
    text
    for known in OPS.values()
    if known.cpp
    for text in (known.name, known.cpp, known.init, known.uninit, *known.defines)
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
class _Names:
    """C++ names of variables: unique in the kernel, and none of the SDK's."""

    taken: set[str] = field(default_factory=lambda: set(_RESERVED))
    given: dict[Any, str] = field(default_factory=dict[Any, str])

    def fresh(self, wanted: str) -> str:
        base = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in wanted) or "value"
        base = f"v_{base}" if base[0].isdigit() or base[0] == "_" else base
        name = unused_name(base, self.taken)
        self.taken.add(name)
        return name

    def of(self, variable: Any) -> str:
        if variable not in self.given:
            self.given[variable] = self.fresh(str(variable.name))
        return self.given[variable]


def _because_of(statements: Iterable[Any]) -> tuple[Origin, ...]:
    """The origins of a declaration that these statements need."""
    spans = {origin.span: None for statement in statements for origin in origins_of(statement, ())}
    return tuple(Origin(span, "derived") for span in spans)


def _takes(statement: Any, name: str) -> bool:
    """Whether a tensor or buffer is an operand of the statement."""
    return any(is_buffer(value) and str(value.name) == name for value in arguments(statement))


def emit_kernel(role: KernelRole, function: Any, plan: Plan) -> Listing:
    """The text of one kernel.

    Raises Unsupported for an operation or expression that has no C++ text.
    """
    return _Emitter(role, function, plan).listing()


class _Emitter:
    def __init__(self, role: KernelRole, function: Any, plan: Plan) -> None:
        self.role, self.function, self.plan = role, function, plan
        self.signature: KernelSignature = plan.kernel_signature(role)
        self.names = _Names()
        self.words = Words(function)
        # The statements whose text calls a function of our own.
        self.calling: dict[str, list[Any]] = {}
        self.lines: list[Line] = []
        self.node = 0
        self.found = [s for s in walk(function.body) if op_name(s)]
        self.buffers = self._buffers()
        self.tensors = {argument.of: self.names.fresh(argument.of) for argument in self.signature.common_runtime}

    def _buffers(self) -> dict[str, _CircularBufferName]:
        used: dict[str, CircularBuffer] = {}
        for statement in self.found:
            for value in arguments(statement):
                if is_buffer(value) and str(value.name) in {b.name for b in self.plan.buffers}:
                    used[str(value.name)] = self.plan.buffer(str(value.name))
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

    def code(self, text: str, depth: int, origins: tuple[Origin, ...]) -> None:
        for part in _wrapped(_INDENT * depth + text):
            self.lines.append(Line(part, origins, self.node))
        self.node += 1

    def listing(self) -> Listing:
        if not self.found:
            self._header()
            self.text("// This program only moves data.")
            self.text("void kernel_main() {}")
            return Listing("cpp", tuple(self.lines), f"{self.role}.cpp")
        self.text("void kernel_main() {")
        self._prologue()
        self._body(statements(self.function.body), 1, ())
        self.text("}")
        main, self.lines = self.lines, []
        # Which functions the text calls is known now.
        self._header()
        return Listing("cpp", (*self.lines, *main), f"{self.role}.cpp")

    def _header(self) -> None:
        name, target = self.plan.kernel, self.plan.target
        self.text(f"// {self.role} of {name} for {target}, written by ttexplore.")
        for what, given in (
            ("compile-time", self.signature.compile_time), ("common", self.signature.common_runtime),
            ("per core", self.signature.runtime),
        ):  # fmt: skip
            if given:
                self.text(f"// {what} arguments: {', '.join(argument.name for argument in given)}")
        self.text("")
        headers: set[str] = set() if self.role == "compute" else set(_DATAFLOW_HEADERS)
        defines: set[str] = set()
        for statement in self.found:
            known = self._known(statement)
            if known is not None:
                headers.add(known.header)
                defines.update(known.defines)
        if self.role == "compute" and self.found:
            # common.h declares the arguments.
            headers |= {"api/compute/common.h", "api/dataflow/dataflow_buffer.h"}
        for macro in sorted(defines):
            self.text(f"#define {macro}")
        self.text("#include <cstdint>")
        for header in sorted(headers):
            self.text(f'#include "{header}"')
        self.text("")

        for name, text in FUNCTIONS.items():
            calling = [statement for statement in self.found if name in self._functions(statement)]
            if needing := [*calling, *self.calling.get(name, [])]:
                for line in text.splitlines():
                    self.text(line, 0, _because_of(needing))
                self.text("")

    def _functions(self, statement: Any) -> tuple[str, ...]:
        """The functions of our own that the text of an operation calls."""
        form = FORMS.get(op_name(statement))
        if form is None or form.phase:
            return ()
        known = form.op
        # Scalars come last, so that what DST operands take two of does not matter.
        scalars = sum(operand.kind == "float" for operand in known.operands)
        computed = any(not isinstance(value, FloatImm) for value in arguments(statement)[-scalars:] if scalars)
        return (*known.functions, "float_bits") if computed else known.functions

    def _known(self, statement: Any) -> Op | None:
        form = FORMS.get(op_name(statement))
        return None if form is None else form.op

    def _prologue(self) -> None:
        previous = ""
        for argument in self.signature.compile_time:
            name = self.names.fresh(f"{argument.of}_args")
            offset = f"{previous}.next_compile_time_args_offset()" if previous else "0"
            tensor = self.tensors[argument.of]
            origins = _because_of(one for one in self.found if _takes(one, argument.of))
            self.text(f"constexpr auto {name} = TensorAccessorArgs<{offset}>();", 1, origins)
            self.text(f"const auto {tensor} = TensorAccessor({name}, {self._address(argument.of)});", 1, origins)
            previous = name
        self.words.declare(self.function.body)
        calls = [(statement, self._call(statement)) for statement in self.found]
        allocated = {str(one.buffer.name): one for one in walk(self.function.body) if isinstance(one, AllocBuffer)}
        # What a pass allocated has no line of its own: it is there for the statements that use it.
        origins_of_buffer = {
            name: _because_of([allocated[name]]) or _because_of(one for one in self.found if _takes(one, name))
            for name in self.buffers
        }
        for name, cb in self.buffers.items():
            self.text(f"constexpr uint32_t {cb.id} = {self.plan.buffer(name).index};", 1, origins_of_buffer[name])
        for name, cb in self.buffers.items():
            if any(cb.page_bytes in text for _, text in calls):
                size = self.plan.buffer(name).page_bytes
                self.text(f"constexpr uint32_t {cb.page_bytes} = {size};", 1, origins_of_buffer[name])
        for name, cb in self.buffers.items():
            if any(cb.buffer in text for _, text in calls):
                self.text(f"DataflowBuffer {cb.buffer}({cb.id});", 1, origins_of_buffer[name])
        moving = [statement for statement, text in calls if "noc." in text]
        if self.role != "compute" and moving:
            self.text("Noc noc;", 1, _because_of(moving))

    def _address(self, tensor: str) -> str:
        index = [argument.of for argument in self.signature.common_runtime].index(tensor)
        return f"get_common_arg_val<uint32_t>({index})"

    # Statements

    def _body(self, body: list[Any], depth: int, around: tuple[Origin, ...]) -> None:
        for statement in body:
            self._statement(statement, depth, around)

    def _statement(self, statement: Any, depth: int, around: tuple[Origin, ...]) -> None:
        origins = origins_of(statement, around)
        if isinstance(statement, For):
            self._loop(statement, depth, origins)
        elif isinstance(statement, IfThenElse):
            test = self._text(self.words.condition(statement.condition), statement)
            self.code(f"if ({test}) {{", depth, origins)
            self._body(statements(statement.then_case), depth + 1, origins)
            if statement.else_case is not None:
                self.text("} else {", depth, origins)
                self._body(statements(statement.else_case), depth + 1, origins)
            self.text("}", depth, origins)
        elif isinstance(statement, Bind):
            self._bind(statement, depth, origins)
        elif isinstance(statement, Evaluate):
            self.code(f"{self._call(statement)};", depth, origins)
        elif not isinstance(statement, AllocBuffer):
            raise Unsupported(f"{type(statement).__name__} has no C++ text", hint=_NO_TEXT, span=span_of(statement))

    def _loop(self, statement: Any, depth: int, origins: tuple[Origin, ...]) -> None:
        name, body = self.names.of(statement.loop_var), statements(statement.body)
        low, end, kind = self.words.loop(statement)
        first = self._text(low, statement)
        if constant(statement.extent) != 1:
            last = self._text(end, statement, RELATION)
            self.code(f"for ({CPP_TYPES[kind]} {name} = {first}; {name} < {last}; ++{name}) {{", depth, origins)
            self._body(body, depth + 1, origins)
            self.text("}", depth, origins)
        elif uses(statement.body, statement.loop_var):
            self.code("{", depth, origins)
            known = "constexpr" if low.symbol == "constant" else "const"
            self.code(f"{known} {CPP_TYPES[kind]} {name} = {first};", depth + 1, origins)
            self._body(body, depth + 1, origins)
            self.text("}", depth, origins)
        else:
            self._body(body, depth, origins)

    def _bind(self, statement: Any, depth: int, origins: tuple[Origin, ...]) -> None:
        name, value = self.names.of(statement.var), statement.value
        word, kind = self.words.bind(statement)
        if word is not None:
            text = self._text(word, statement)
        elif str(value.op.name) == "tt.core_value":
            index = [argument.of for argument in self.signature.runtime].index(str(value.args[0].value))
            text = f"get_arg_val<{CPP_TYPES[kind]}>({index})"
        else:
            first = [argument.source for argument in self.signature.runtime].index("core_list")
            text = f"get_arg_val<{CPP_TYPES[kind]}>({self._expression(first + value.args[1], statement)})"
        self.code(f"const {CPP_TYPES[kind]} {name} = {text};", depth, origins)

    def _expression(self, expression: Any, statement: Any, around: int = 0) -> str:
        """The text of an expression where the SDK takes a uint32_t."""
        number = constant(expression)
        if number is not None:
            return str(number)
        return self._text(self.words.unsigned(expression), statement, around)

    def _text(self, word: Word, statement: Any, around: int = 0) -> str:
        for function in functions_of(word):
            self.calling.setdefault(function, []).append(statement)
        return cpp(word, lambda variable: self.names.of(self.words.of(variable)), around)

    def _call(self, statement: Any) -> str:
        form = FORMS.get(op_name(statement))
        if form is None or not form.cpp:
            what = op_name(statement) or statement
            raise Unsupported(f"{what} has no C++ text", hint=_NO_TEXT, span=span_of(statement))
        return form.cpp.format(**self._operands(form, statement))

    def _operands(self, form: Form, statement: Any) -> dict[str, Any]:
        texts: dict[str, Any] = {}
        for operand, value, slot, _ in form.given(arguments(statement)):
            match operand.kind:
                case "cb":
                    texts[operand.name] = self.buffers[str(value.name)]
                case "dst":
                    texts[operand.name] = self._expression(slot, statement)
                case "tensor":
                    texts[operand.name] = self.tensors[str(value.name)]
                case "float":
                    texts[operand.name] = self._bits(value, statement)
                case "slot":
                    texts[operand.name] = self._offset(value, texts[operand.of].page_bytes, statement)
                case "tile" | "page" | "int" | "flag":
                    around = SUM if f"+ {{{operand.name}}}" in form.cpp else 0
                    texts[operand.name] = self._expression(value, statement, around)
        return texts

    def _bits(self, value: Any, statement: Any) -> str:
        """The bits of a float32 as the SDK wants scalars; a whole number that is no constant is converted."""
        if not isinstance(value, FloatImm):
            # Its parameter is an int32_t: it converts what it is given.
            return f"float_bits({self._text(self.words.word(value), statement)})"
        return f"0x{int(np.float32(value.value).view(np.uint32)):08x}u"

    def _offset(self, slot: Any, page_bytes: str, statement: Any) -> str:
        match constant(slot):
            case 0:
                return "0"
            case 1:
                return page_bytes
            case _:
                return f"{self._expression(slot, statement, PRODUCT)} * {page_bytes}"


def _wrapped(text: str) -> list[str]:
    """A statement that is too long, broken after commas."""
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
