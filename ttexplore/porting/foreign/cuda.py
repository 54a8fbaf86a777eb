"""Reading CUDA C++ and ThunderKittens kernels: tree-sitter's syntax tree, and the values that are stored.

The grammar is that of the package tree-sitter-cuda, which the extra `port` installs.
"""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ttexplore.errors import UsageError
from ttexplore.porting.foreign.marks import ForeignKernel, Mark, Reading
from ttexplore.porting.foreign.values import (
    ZERO,
    Carried,
    Index,
    Input,
    Number,
    Op,
    Product,
    Reduced,
    Scalar,
    Store,
    Unread,
    Value,
    after_loop,
    axes_of,
    is_constant,
    is_index,
    operation,
    replaced,
    scalars_of,
    walk,
)
from ttexplore.porting.foreign.words import CUDA, KITTENS, by_name
from ttexplore.record import Span

_CUDA = by_name(CUDA)
_KITTENS = _CUDA | by_name(KITTENS)
# Nodes of the parser have no types of their own.
Node = Any

_BUILT_IN = {"threadIdx": "r", "blockIdx": "p", "blockDim": "", "gridDim": "", "warpSize": ""}
_PLAIN_TYPES = re.compile(
    r"^(size_t|u?int\d*_t|uint|auto|ptrdiff_t|uchar|ushort|ulong|bool|std|reinterpret_cast|static_cast|const_cast|typeof|"
    r"decltype|sizeof|numeric_limits|uintptr_t)$"
)
_FUNCTIONS = {
    "expf": "exp", "exp": "exp", "__expf": "exp", "exp2f": "exp2", "exp2": "exp2", "logf": "log", "log": "log",
    "log2f": "log2", "log2": "log2", "sqrtf": "sqrt", "sqrt": "sqrt", "rsqrtf": "rsqrt", "rsqrt": "rsqrt",
    "sinf": "sin",
    "cosf": "cos", "tanhf": "tanh", "tanh": "tanh", "fabsf": "abs", "fabs": "abs", "abs": "abs", "erff": "erf",
    "fmaxf": "max", "fmax": "max", "max": "max", "fminf": "min", "fmin": "min", "min": "min", "__fdividef": "/",
    "powf": "pow", "pow": "pow",
}  # fmt: skip
# Functions that give what they take.
_SAME = re.compile(
    r"^(__float2bfloat16|__bfloat162float|__float2half(_rn)?|__half2float|__ldg|__float_to_tf32|float|T)$"
)
_SHUFFLES = re.compile(r"^(__)?shfl_(down|xor)(_sync)?$")
_ELEMENTWISE = {"mul": "*", "add": "+", "sub": "-", "div": "/", "max": "max", "min": "min"}
_UNARY = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "abs")
# What is inside of a tile or fragment, and one of the numbers of an element such as float4.
_PARTS = re.compile(r"(\.(tiles|data)\b.*|\.x(?=\[).*|(?<=\])\.[xyzw])$")


def read_cuda(source: str, file: str) -> Reading:
    """Read the kernels of a CUDA or ThunderKittens source. Raises UsageError for a text that is not CUDA C++, and
    if the packages of the extra `port` are not installed."""
    data = source.encode("utf-8")
    root = _parser().parse(data).root_node
    definitions = [one for one in _nodes(root) if one.type == "function_definition"]
    device = [one for one in definitions if _qualified(one, "__global__") or _qualified(one, "__device__")]
    error = next((one for one in _nodes(root) if one.type == "ERROR" or one.is_missing), None)
    if error is not None and not device:
        line, column = error.start_point[0] + 1, error.start_point[1] + 1
        raise UsageError(
            "U027", "the source is not valid CUDA C++, and has no kernel", hint="give the whole text of the file",
            span=Span(file, line, column, line, column + 1),
        )  # fmt: skip
    kittens = "kittens" in source
    own = _defined(root)
    functions = {_name_of(one): one for one in device}
    rows = _KITTENS if kittens else _CUDA
    marks = [mark for one in device for mark in _marks(one, rows, own)]
    marks += [_mark(one, "<<<>>>", rows["<<<>>>"]) for one in _nodes(root) if one.type == "kernel_call_syntax"]
    kernels: list[ForeignKernel] = []
    for one in device:
        if _qualified(one, "__global__"):
            kernels.append(_Evaluation(functions, kittens).kernel(one))
    if not kernels and kittens:
        # A template of load, compute and store functions, which the library's own kernel calls.
        kernels += _template(device, functions)
    marks = sorted(set(marks), key=lambda one: (one.line, one.column))
    return Reading("ThunderKittens" if kittens else "CUDA", tuple(marks), tuple(kernels))


def _parser() -> Any:
    try:
        parser, grammar = importlib.import_module("tree_sitter"), importlib.import_module("tree_sitter_cuda")
    except ImportError as error:
        raise UsageError(
            "U027", f"reading CUDA and ThunderKittens needs the package {(error.name or '').replace('_', '-')}",
            hint="install the extra port: pip install 'ttexplore[port]'",
        ) from error  # fmt: skip
    return parser.Parser(parser.Language(grammar.language()))


def _nodes(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        one = pending.pop()
        yield one
        pending += reversed(one.children)


def _text(node: Node) -> str:
    return node.text.decode("utf-8", "replace")


def _qualified(function: Node, word: str) -> bool:
    return any(_text(one) == word for one in function.children)


def _declarator(function: Node) -> Node | None:
    return next((one for one in _nodes(function) if one.type == "function_declarator"), None)


def _name_of(function: Node) -> str:
    found = _declarator(function)
    name = found.child_by_field_name("declarator") if found is not None else None
    return _last(_text(name)) if name is not None else "kernel"


def _last(path: str) -> str:
    """The last name of a path, without template arguments."""
    return re.split(r"::|\.|->", re.sub(r"<.*", "", path, flags=re.S))[-1].strip()


def _defined(root: Node) -> set[str]:
    """The names that a file defines: functions, types, template parameters."""
    found: set[str] = set()
    for one in _nodes(root):
        match one.type:
            case "function_definition":
                found.add(_name_of(one))
            case (
                "struct_specifier"
                | "class_specifier"
                | "alias_declaration"
                | "enum_specifier"
                | "namespace_alias_definition"
            ):
                name = one.child_by_field_name("name")
                if name is not None:
                    found.add(_last(_text(name)))
            case "init_declarator" | "field_declaration" | "declaration" | "parameter_declaration":
                name = one.child_by_field_name("declarator")
                if name is not None:
                    found |= {_text(part) for part in _nodes(name) if part.type in ("identifier", "field_identifier")}
            case "type_definition" | "type_parameter_declaration" | "optional_type_parameter_declaration":
                found |= {_text(part) for part in one.children if part.type == "type_identifier"}
            case "preproc_def" | "preproc_function_def":
                found.add(_text(one.child_by_field_name("name")))
            case _:
                pass
    return found


def _mark(node: Node, text: str, row: str) -> Mark:
    return Mark(node.start_point[0] + 1, node.start_point[1] + 1, text, row)


def _marks(function: Node, rows: Mapping[str, str], own: set[str]) -> Iterator[Mark]:
    """The constructs of a function on the GPU: words of the language, calls and types that the file does not define."""
    for node in _nodes(function):
        text = _text(node) if node.child_count == 0 else ""
        match node.type:
            case "launch_bounds":
                yield _mark(node, "__launch_bounds__", rows["__launch_bounds__"])
            case "field_expression" if _text(node.child_by_field_name("argument")) in _BUILT_IN:
                yield _mark(node, _text(node), rows[_text(node.child_by_field_name("argument"))])
            case "call_expression":
                called = node.child_by_field_name("function")
                if any(one.type == "kernel_call_syntax" for one in node.children):
                    continue
                name = _last(_text(called))
                if (
                    name
                    and ("::" in _text(called) or name not in own)
                    and not _PLAIN_TYPES.match(name)
                    and re.match(r"^\w+$", name)
                ):
                    row = "multicast" if "cluster" in _text(called).split("::") else rows.get(name, "")
                    yield _mark(called, re.sub(r"<.*", "", _text(called), flags=re.S), row)
            case "type_identifier":
                if text in own or _PLAIN_TYPES.match(text) or _is_called(node):
                    continue
                yield _mark(node, text, rows.get(text, ""))
            case "gnu_asm_expression":
                code = _text(node)
                found = next((row for word, row in rows.items() if "." in word and word in code), rows["asm"])
                yield _mark(node, "asm", found)
            case "preproc_call" if _text(node).startswith("#pragma"):
                yield _mark(node, _text(node).strip(), rows["#pragma"])
            case _ if text.startswith("__") and node.type != "identifier" and text != "__launch_bounds__":
                yield _mark(node, text, rows.get(text, ""))
            case _:
                pass


def _is_called(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.type in ("call_expression", "template_function")


def _template(device: list[Node], functions: Mapping[str, Node]) -> list[ForeignKernel]:
    """One kernel of all functions in the order of the text, which share what their arguments hold."""
    evaluation = _Evaluation(functions, kittens=True)
    later: list[Node] = []
    for one in device:
        stores, known = len(evaluation.stores), dict(evaluation.known)
        evaluation.run(one.child_by_field_name("body"))
        if any(isinstance(store.value, Scalar | Unread) for store in evaluation.stores[stores:]):
            # It stores what a later function of the text computes.
            del evaluation.stores[stores:]
            evaluation.known = known
            later.append(one)
    for one in later:
        evaluation.run(one.child_by_field_name("body"))
    if not evaluation.stores:
        return []
    return [ForeignKernel("kernel", device[0].start_point[0] + 1, tuple(_halves(evaluation.stores)))]


def _halves(stores: list[Store]) -> Iterator[Store]:
    for one in stores:
        match one.value:
            case Op("joined", values):
                for value in values:
                    yield Store(one.tensor, one.axes, value, one.part)
            case _:
                yield one


@dataclass
class _Evaluation:
    """The values of one kernel."""

    functions: Mapping[str, Node]
    kittens: bool
    known: dict[str, Value] = field(default_factory=dict[str, Value])
    tensors: dict[str, Input] = field(default_factory=dict[str, Input])
    stores: list[Store] = field(default_factory=list[Store])
    scalars: dict[str, None] = field(default_factory=dict[str, None])
    lengths: set[str] = field(default_factory=set[str])
    turning: str = ""
    columns: dict[str, bool] = field(default_factory=dict[str, bool])
    tiles: dict[str, dict[str, Value]] = field(default_factory=dict[str, dict[str, Value]])
    returned: Value | None = None
    depth: int = 0

    def kernel(self, function: Node) -> ForeignKernel:
        for name, pointer in _parameters(function):
            if pointer:
                self.tensors[name] = Input(name)
            else:
                self.known[name] = Scalar(name)
                self.scalars[name] = None
        self.run(function.child_by_field_name("body"))
        return ForeignKernel(
            _name_of(function), function.start_point[0] + 1, tuple(_halves(self.stores)), tuple(self.scalars),
            frozenset(self.lengths),
        )  # fmt: skip

    def run(self, node: Node | None) -> None:
        if node is None:
            return
        match node.type:
            case "compound_statement" | "else_clause" | "case_statement":
                for one in node.named_children:
                    self.run(one)
            case "expression_statement":
                for one in node.named_children:
                    self.value(one)
            case "declaration":
                self.declare(node)
            case "if_statement":
                self.value(node.child_by_field_name("condition"))
                self.branch(node)
            case "for_statement":
                self.loop(node, node.child_by_field_name("initializer"))
            case "while_statement" | "do_statement":
                self.loop(node, None)
            case "return_statement":
                for one in node.named_children:
                    self.returned = self.value(one)
            case _:
                pass

    def branch(self, node: Node) -> None:
        condition = self.value(node.child_by_field_name("condition"))
        before = dict(self.known)
        first = len(self.stores)
        self.run(node.child_by_field_name("consequence"))
        after, second = dict(self.known), len(self.stores)
        self.known = dict(before)
        self.run(node.child_by_field_name("alternative"))
        if is_constant(condition):
            if second > first:
                # Variants that a constant chooses: the first one.
                del self.stores[second:]
        elif any(isinstance(one, Input | Reduced | Carried | Unread | Product) for one in walk(condition)):
            self.stores[first:] = _selected(condition, self.stores[first:second], self.stores[second:])
        for name, value in after.items():
            if value is not before.get(name):
                self.known[name] = value
            if value is not before.get(name) and any(isinstance(one, Input | Reduced) for one in walk(condition)):
                self.known[name] = Unread("a branch on elements")

    def declare(self, node: Node) -> None:
        kind = _text(node.child_by_field_name("type"))
        if "col_major" in kind:
            # A fragment of columns: of B, the transposed one.
            for one in node.named_children[1:]:
                self.columns[_path(_text(one))] = "matrix_b" in kind
        for one in node.named_children:
            if one.type == "init_declarator":
                name = _root(_text(one.child_by_field_name("declarator")).strip("*& "))
                value = one.child_by_field_name("value")
                found = self.value(value)
                tensor = self.address(value)
                if tensor is not None and value.type != "subscript_expression":
                    self.tensors[name] = tensor
                else:
                    self.known[name] = found

    def loop(self, node: Node, initializer: Node | None) -> None:
        turning = self.turning
        if initializer is not None:
            self.run(initializer)
            for one in _nodes(initializer):
                if one.type == "init_declarator":
                    name = _root(_text(one.child_by_field_name("declarator")))
                    value = self.known.get(name, ZERO)
                    axes = axes_of(value)
                    self.known[name] = Index(axes if axes & {"p", "r"} else frozenset({"k"}), scalars_of(value))
                    self.turning = name
            self.value(node.child_by_field_name("condition"))
        body = node.child_by_field_name("body")
        own = re.compile(rf"\[[^\]]*\b{re.escape(self.turning or '?')}\b") if initializer is not None else None
        changed = {path for one in _nodes(body) if (path := self.target(one, own))}
        before = {name: self.known[name] for name in changed if name in self.known and not is_index(self.known[name])}
        for name, value in before.items():
            self.known[name] = Carried(name, value)
        self.run(body)
        for name, value in before.items():
            self.known[name] = _settled(name, value, self.known[name])
        self.turning = turning

    def target(self, node: Node, own: re.Pattern[str] | None) -> str:
        """The variable that a node changes, unless each turn changes another element of it."""
        if node.type == "assignment_expression":
            left = _text(node.child_by_field_name("left"))
            if own is not None and own.search(left):
                return ""
            return _path(_text(node.child_by_field_name("left")))
        if node.type == "call_expression":
            arguments = node.child_by_field_name("arguments")
            name = _last(_text(node.child_by_field_name("function")))
            if (
                arguments is not None
                and arguments.named_children
                and (self.kittens or name in ("mma_sync", "fill_fragment"))
            ):
                return _path(_text(arguments.named_children[0]))
        return ""

    def address(self, node: Node) -> Input | None:
        """The tensor that an address lies in, with the indices of the address."""
        match node.type:
            case "identifier":
                return self.tensors.get(_text(node))
            case "pointer_expression" | "parenthesized_expression" | "cast_expression":
                inner = [self.address(one) for one in node.named_children]
                return next((one for one in inner if one is not None), None)
            case "subscript_expression":
                base = self.address(node.child_by_field_name("argument"))
                return base and _moved(base, self.indices(node))
            case "binary_expression":
                sides = (node.child_by_field_name("left"), node.child_by_field_name("right"))
                for one, other in (sides, sides[::-1]):
                    base = self.address(one)
                    if base is not None:
                        return _moved(base, [self.value(other)])
                return None
            case _:
                return None

    def indices(self, node: Node) -> list[Value]:
        arguments = node.child_by_field_name("indices")
        return [self.value(one) for one in arguments.named_children] if arguments is not None else []

    def value(self, node: Node | None) -> Value:
        if node is None:
            return ZERO
        match node.type:
            case "number_literal":
                return Number(_number(_text(node)))
            case "identifier":
                return self.known.get(_text(node), Scalar(_text(node)))
            case "field_expression":
                argument = _text(node.child_by_field_name("argument"))
                if argument in _BUILT_IN:
                    axis = "x" if _text(node.child_by_field_name("field")) == "x" else "y"
                    return Index(frozenset({_BUILT_IN[argument], axis}) if _BUILT_IN[argument] else frozenset())
                path = _path(_text(node))
                if path not in self.known and re.search(r"\.[xyzw]$", path):
                    # One of several elements at once.
                    path = path[:-2]
                return self.known.get(path, Scalar(path))
            case "parenthesized_expression" | "condition_clause" | "cast_expression" | "init_declarator":
                inner = [one for one in node.named_children if one.type != "type_descriptor"]
                return self.value(inner[-1]) if inner else ZERO
            case "unary_expression" | "pointer_expression":
                return self.unary(node)
            case "update_expression":
                return self.value(node.child_by_field_name("argument"))
            case "binary_expression":
                return self.binary(node)
            case "conditional_expression":
                return self.conditional(node)
            case "subscript_expression":
                tensor = self.address(node)
                if tensor is not None:
                    return tensor
                self.indices(node)
                return self.known.get(_path(_text(node)), Unread(_path(_text(node))))
            case "assignment_expression":
                return self.assigned(node)
            case "comma_expression":
                return [self.value(one) for one in node.named_children][-1]
            case "call_expression":
                return self.call(node)
            case "true" | "false":
                return Number(float(node.type == "true"))
            case _:
                return Unread(_text(node)[:40])

    def unary(self, node: Node) -> Value:
        argument = node.child_by_field_name("argument")
        tensor = self.address(argument)
        if tensor is not None:
            return tensor
        inner = self.value(argument)
        if _text(node).startswith("-"):
            return Number(-inner.value) if isinstance(inner, Number) else operation("*", Number(-1.0), inner)
        return inner

    def binary(self, node: Node) -> Value:
        name = _text(node.child_by_field_name("operator"))
        left, right = (self.value(node.child_by_field_name(side)) for side in ("left", "right"))
        if name in ("<", "<=", ">", ">="):
            for one, other in ((left, right), (right, left)):
                # Elements of one row; with a number of the block they count all elements.
                if is_index(one) and "r" in axes_of(one) and "p" not in axes_of(one) and isinstance(other, Scalar):
                    self.lengths.add(other.name)
        if name == "/" and is_index(left):
            name = "//"
        other = node.child_by_field_name("right")
        if (
            name == "+"
            and other.type == "subscript_expression"
            and self.address(other) is None
            and _plain(left) == _plain(right)
        ):
            # A step of a reduction in shared memory.
            return _reduced("sum", left)
        return operation({"&&": "&", "||": "|"}.get(name, name), left, right)

    def conditional(self, node: Node) -> Value:
        condition = self.value(node.child_by_field_name("condition"))
        then, otherwise = (self.value(node.child_by_field_name(side)) for side in ("consequence", "alternative"))
        inside = not any(isinstance(one, Input | Reduced | Carried | Unread) for one in walk(condition))
        return then if inside else operation("where", condition, then, otherwise)

    def assigned(self, node: Node) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = _text(node.child_by_field_name("operator"))
        value = self.product_of(right, operator) or self.value(right)
        tensor = self.address(left)
        path = _path(_text(left))
        if operator != "=":
            before = tensor or self.known.get(path, ZERO)
            if operator == "+=" and _same_array(left, right) and path in self.known:
                # A step of a reduction in shared memory.
                value = _reduced("sum", self.known[path])
            elif operator == "+=" and isinstance(value, Op) and value.name == "shuffled":
                value = _reduced("sum", value.arguments[0])
            else:
                value = operation(operator[:-1], before, value)
        if tensor is not None:
            self.stores.append(Store(tensor.tensor, tensor.axes, value, tensor.part))
        elif ".tiles" in _text(left):
            # Parts of a register tile, such as the halves of a row.
            parts = self.tiles.setdefault(path, {})
            parts[_text(left).partition(".tiles")[2]] = value
            self.known[path] = Op("joined", tuple(parts.values())) if len(parts) > 1 else value
        else:
            self.known[path] = value
        return value

    def product_of(self, right: Node, operator: str) -> Value | None:
        """A product of matrices: in a loop over k, products of elements are added up, of which each has an index that
        the other has not, besides k."""
        while right.type in ("call_expression", "parenthesized_expression", "cast_expression") and right.named_children:
            # Conversions of the product.
            inner = right.child_by_field_name("arguments") or right
            right = inner.named_children[-1] if inner.named_children else inner
            if right.type == "argument_list":
                return None
        if operator != "+=" or right.type != "binary_expression" or _text(right.child_by_field_name("operator")) != "*":
            return None
        sides = [_element_of(right.child_by_field_name(side)) for side in ("left", "right")]
        if not all(sides):
            return None
        used = [{name for part in _subscripts(side) for name in _variables(part)} for side in sides]
        if self.turning not in used[0] & used[1] or used[0] == used[1]:
            return None
        if not used[0] - used[1] or not used[1] - used[0]:
            return Unread("a sum of products whose indices are not known")
        inner = [_runs_along(side, self.turning) for side in sides]
        if not inner[0] and inner[1]:
            # B * A is the same product of elements.
            sides, inner = sides[::-1], inner[::-1]
        if not inner[0]:
            return Unread("a transposed A")
        return Product(self.value(sides[0]), self.value(sides[1]), inner[1])

    def call(self, node: Node) -> Value:
        called, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if any(one.type == "kernel_call_syntax" for one in node.children):
            return ZERO
        given = [one for one in arguments.named_children if one.type != "comment"] if arguments is not None else []
        name = _last(_text(called))
        # warp::load is not the function load of a template.
        if name in self.functions and "::" not in _text(called) and self.depth < 4:
            return self.inlined(self.functions[name], given)
        if _SHUFFLES.match(name):
            place = 1 if name.startswith("__") else 0
            return Op("shuffled", (self.value(given[place]),)) if len(given) > place else Unread(name)
        if name == "mma_sync" and len(given) == 4:
            a, b = (_path(_text(one)) for one in given[1:3])
            product = Product(self.element(given[1]), self.element(given[2]), self.columns.get(b, False))
            made = Unread("a transposed A") if a in self.columns else operation("+", self.value(given[3]), product)
            self.known[_path(_text(given[0]))] = made
            return made
        if name == "fill_fragment" and len(given) == 2:
            self.known[_path(_text(given[0]))] = self.value(given[1])
            return ZERO
        if name == "load_matrix_sync" and len(given) > 1:
            self.known[_path(_text(given[0]))] = self.element(given[1])
            return ZERO
        if name == "store_matrix_sync" and len(given) > 1:
            self.stored(given[0], self.value(given[1]))
            return ZERO
        if self.kittens and self.tile_call(name, given):
            return ZERO
        if name in ("memcpy_async", "__pipeline_memcpy_async"):
            return self.copied(given)
        if re.match(r"^make_(float|int|uint|double)\d$", name) and given:
            # Several elements at once, which are made alike.
            values = [self.value(one) for one in given]
            return values[0] if len(set(values)) == 1 else Unread(f"{name}() of different elements")
        if name in ("fmaf", "fma", "__fmaf_rn") and len(given) == 3:
            a, b, c = map(self.value, given)
            return operation("+", operation("*", a, b), c)
        if name in _FUNCTIONS:
            return operation(_FUNCTIONS[name], *map(self.value, given))
        if _SAME.match(name) and given:
            return self.value(given[0])
        for one in given:
            if one.type in ("assignment_expression",):
                self.value(one)
        return Unread(f"{name}()")

    def copied(self, given: list[Node]) -> Value:
        """A copy from a tensor to shared memory: the first address is where to."""
        for to, source in itertools.pairwise(given):
            tensor = self.address(source)
            if tensor is not None:
                self.known[_path(_text(to).lstrip("&"))] = tensor
                return ZERO
        return Unread("memcpy_async()")

    def element(self, node: Node) -> Value:
        return self.address(node) or self.value(node.named_children[-1] if node.type == "pointer_expression" else node)

    def stored(self, node: Node, value: Value) -> None:
        tensor = self.address(node)
        if tensor is not None:
            self.stores.append(Store(tensor.tensor, tensor.axes, value, tensor.part))
        else:
            self.known[_path(_text(node).lstrip("&"))] = value

    def inlined(self, function: Node, given: list[Node]) -> Value:
        inner = _Evaluation(
            self.functions,
            self.kittens,
            {},
            {},
            self.stores,
            self.scalars,
            self.lengths,
            self.turning,
            {},
            {},
            None,
            self.depth + 1,
        )
        for (name, _), node in zip(_parameters(function), given, strict=False):
            tensor = self.address(node)
            if tensor is not None and node.type != "subscript_expression":
                inner.tensors[name] = tensor
            else:
                inner.known[name] = self.value(node)
        inner.run(function.child_by_field_name("body"))
        return inner.returned if inner.returned is not None else ZERO

    def tile_call(self, name: str, given: list[Node]) -> bool:
        """A function of ThunderKittens, which writes to its first argument. Whether it is one."""
        if not given:
            return False
        to = _path(_text(given[0]))
        values = [self.known.get(_path(_text(one)), self.value(one)) for one in given[1:]]
        match name, values:
            case "load" | "load_async", [source, *places]:
                path = _path(_text(given[1]))
                self.known[to] = Input(_last(path)) if places and path not in self.known else source
            case "store" | "store_async", [value, _, *_]:
                self.stores.append(Store(_last(to), frozenset(), value))
            case "store" | "store_async" | "copy" | "swap_layout" | "swap_layout_inplace", [value]:
                self.known[to] = value
            case "zero", _:
                self.known[to] = ZERO
            case "neg_infty", _:
                # Of a part of the scores: what a causal mask hides.
                held = self.known.get(to)
                self.known[to] = (
                    Number(float("-inf")) if held is None or isinstance(held, Number) else Op("causal", (held,))
                )
            case "make_causal", [value, *_]:
                self.known[to] = Op("causal", (value,))
            case "relu", [value]:
                self.known[to] = operation("max", value, ZERO)
            case (("row_sum" | "sum" | "row_max" | "max" | "row_min" | "min"), [value, *before]) if (
                name.startswith("row_") or len(values) == 1
            ):
                kind = name.removeprefix("row_")
                reduced = _reduced(kind, value)
                self.known[to] = operation("+" if kind == "sum" else kind, before[0], reduced) if before else reduced
            case _, [left, right] if name.removesuffix("_row").removesuffix("_col") in _ELEMENTWISE:
                self.known[to] = operation(_ELEMENTWISE[name.removesuffix("_row").removesuffix("_col")], left, right)
            case _, [value] if name in _UNARY:
                self.known[to] = operation(name, value)
            case (("mma_AB" | "mma_ABt" | "mm_AB" | "mm_ABt"), [left, right, *_]):
                made: Value = Product(left, right, name.endswith("t"))
                self.known[to] = made if name.startswith("mm_") else operation("+", self.known.get(to, ZERO), made)
            case _ if name.startswith(("mma_At", "mm_At")):
                self.known[to] = Unread(f"{name}()")
            case _:
                return False
        return True


def _selected(condition: Value, then: list[Store], otherwise: list[Store]) -> list[Store]:
    """Stores of which a condition on elements chooses one; what only one side stores has no value."""
    places = [[(one.tensor, one.axes, one.part) for one in side] for side in (then, otherwise)]
    if places[0] != places[1]:
        return [_unread(one) for one in (*then, *otherwise)]
    return [
        Store(one.tensor, one.axes, operation("where", condition, one.value, other.value), one.part)
        for one, other in zip(then, otherwise, strict=True)
    ]


def _unread(store: Store) -> Store:
    return Store(store.tensor, store.axes, Unread("elements that a condition on them chooses"), store.part)


def _settled(name: str, initial: Value, update: Value) -> Value:
    """The value after a loop; a reduction in steps is one reduction."""
    match update:
        case Reduced(kind, inner):
            own = replaced(inner, lambda one: initial if isinstance(one, Carried) and one.name == name else None)
            return _reduced(kind, own)
        case _:
            return after_loop(name, initial, update)


def _reduced(kind: str, value: Value) -> Value:
    value = _plain(value)
    return value if isinstance(value, Reduced) and value.kind == kind else Reduced(kind, value)


def _plain(value: Value) -> Value:
    while isinstance(value, Carried):
        value = value.initial
    return value


def _moved(base: Input, indices: list[Value]) -> Input:
    axes = base.axes.union(*(axes_of(one) for one in indices))
    parts: set[str] = set()
    if not any(map(is_index, indices)):
        parts = {one.name for index in indices for one in walk(index) if isinstance(one, Scalar)}
    return Input(base.tensor, axes, "+".join(sorted({*base.part.split("+"), *parts} - {""})))


def _parameters(function: Node) -> Iterator[tuple[str, bool]]:
    """The parameters of a function, and whether each is a pointer."""
    declarator = _declarator(function)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    for one in listed.named_children if listed is not None else ():
        if one.type in ("parameter_declaration", "optional_parameter_declaration"):
            names = [part for part in _nodes(one) if part.type == "identifier"]
            if names:
                yield (
                    _text(names[-1]),
                    any(part.type in ("pointer_declarator", "array_declarator") for part in _nodes(one)),
                )


def _root(text: str) -> str:
    return _path(text.strip("*& ()"))


def _path(text: str) -> str:
    """The path of a variable, without indices and what is inside of a tile: ``args.input.a`` of ``args.input.a[0]``."""
    text = re.sub(r"\s+|^\(+|reinterpret_cast<[^()]*>\(", "", text).strip("*&()")
    text = _PARTS.sub("", text.replace("->", "."))
    while (shorter := re.sub(r"\[[^\[\]]*\]", "", text)) != text:
        text = shorter
    return text.removeprefix("args.").strip("()")


def _runs_along(side: Node, turning: str) -> bool:
    """Whether a variable moves along the rows of an array: it is part of the last index, and not multiplied there."""
    last = next(_subscripts(side))
    for one in _nodes(last):
        if one.type == "identifier" and _text(one) == turning:
            above = one.parent
            return not (above.type == "binary_expression" and _text(above.child_by_field_name("operator")) == "*")
    return False


def _variables(node: Node) -> Iterator[str]:
    """The variables of an index; threadIdx.x and threadIdx.y are two."""
    for one in _nodes(node):
        if one.type == "field_expression" or (one.type == "identifier" and one.parent.type != "field_expression"):
            yield _text(one)


def _element_of(node: Node) -> Node | None:
    """The one element of an array in an expression that converts it, if it is one."""
    found = [
        one for one in _nodes(node) if one.type == "subscript_expression" and one.parent.type != "subscript_expression"
    ]
    plain = not any(
        one.type == "binary_expression" and one.parent.type != "subscript_argument_list" and not _within(one, found)
        for one in _nodes(node)
    )
    return found[0] if len(found) == 1 and plain else None


def _within(node: Node, outer: list[Node]) -> bool:
    return any(one.start_byte <= node.start_byte and node.end_byte <= one.end_byte for one in outer)


def _subscripts(node: Node) -> Iterator[Node]:
    while node is not None and node.type == "subscript_expression":
        yield node.child_by_field_name("indices")
        node = node.child_by_field_name("argument")


def _same_array(left: Node, right: Node) -> bool:
    """Whether an element of an array is added to another one of it."""
    return (
        left.type == right.type == "subscript_expression"
        and _path(_text(left)) == _path(_text(right))
        and _text(left) != _text(right)
    )


def _number(text: str) -> float:
    try:
        return float(int(text.rstrip("uUlL"), 0))
    except ValueError:
        pass
    try:
        return float(text.rstrip("fFlL"))
    except ValueError:
        return float("nan")
