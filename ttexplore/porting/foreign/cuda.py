"""Reading CUDA C++ and ThunderKittens kernels: tree-sitter's syntax tree, and the values that are stored.

The grammar is that of the package tree-sitter-cuda, which the extra `port` installs.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ttexplore.errors import UsageError
from ttexplore.porting.foreign import places
from ttexplore.porting.foreign.marks import ForeignKernel, Mark, Reading
from ttexplore.porting.foreign.places import NOWHERE, UNKNOWN, Place
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
    Variants,
    after_loop,
    axes_of,
    is_bound,
    is_constant,
    is_index,
    last_turn,
    negated,
    operation,
    parts_of_lengths,
    place_of,
    read_back,
    replaced,
    scalars_of,
    stored_in_turns,
    walk,
)
from ttexplore.porting.foreign.words import CUDA, KITTENS, by_name
from ttexplore.porting.foreign.work import DEEPEST, Refused, Work
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
    r"^(__float2bfloat16(_rn)?|__bfloat162float|__float2half(_rn)?|__half2float|__ldg|__ldcs|__ldcg|__float_to_tf32|float|T)$"
)
_CASTS = re.compile(r"^(reinterpret|static|const)_cast<")
_SHUFFLES = re.compile(r"^(__)?shfl_(down|xor)(_sync)?$")
_ELEMENTWISE = {"mul": "*", "add": "+", "sub": "-", "div": "/", "max": "max", "min": "min"}
_UNARY = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "abs")
# What is inside of a tile or fragment, and one of the numbers of an element such as float4.
_PARTS = re.compile(r"(\.(tiles|data)\b.*|\.x(?=\[).*|(?<=\])\.[xyzw])$")


def read_cuda(source: str, file: str, work: Work) -> Reading:
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
    constants = _constants(root)
    kernels: list[ForeignKernel] = []
    for one in device:
        if _qualified(one, "__global__"):
            kernels.append(_Evaluation(functions, kittens, work, constants=constants).kernel(one))
    if not kernels and kittens:
        # A template of load, compute and store functions, which the library's own kernel calls.
        kernels += _template(device, functions, work)
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


def _short(node: Node) -> str:
    return f"`{_text(node).splitlines()[0][:60]}`"


def _line(node: Node) -> int:
    return node.start_point[0] + 1


def _depth(node: Node) -> int:
    """How many nodes lie inside of each other."""
    deepest, pending = 0, [(node, 1)]
    while pending:
        one, depth = pending.pop()
        deepest = max(deepest, depth)
        pending += [(part, depth + 1) for part in one.named_children]
    return deepest


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


def _constants(root: Node) -> dict[str, float]:
    """The macros and constants of a file that are numbers."""
    found: dict[str, float] = {}
    for one in root.named_children:
        for part in [one] if one.type == "preproc_def" else one.children:
            if part.type in ("preproc_def", "init_declarator"):
                name = part.child_by_field_name("name") or part.child_by_field_name("declarator")
                value = part.child_by_field_name("value")
                number = None if value is None else _computed(_text(value), found)
                if number is not None:
                    found[_text(name)] = number
    return found


# Functions of constants, and the constants of <math.h> and <float.h>.
_OF_NUMBERS: Mapping[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log2": math.log2,
}  # fmt: skip
_OF_MATH: Mapping[str, float] = {
    "M_PI": math.pi, "M_SQRT2": math.sqrt(2), "M_SQRT1_2": math.sqrt(0.5), "M_2_SQRTPI": 2 / math.sqrt(math.pi),
    "M_LOG2E": math.log2(math.e), "M_LN2": math.log(2), "M_E": math.e,
    "INFINITY": math.inf, "FLT_MAX": 3.402823466e38, "FLT_EPSILON": 2.0**-23,
}  # fmt: skip


def _computed(text: str, known: Mapping[str, float]) -> float | None:
    """The value of an expression of numbers; None for another one."""

    def value(node: ast.expr) -> int | float:
        match node:
            case ast.Constant(int() | float() as number):
                return number
            case ast.Name(name):
                return known[name] if name in known else _OF_MATH[name]
            case ast.UnaryOp(ast.USub(), inner):
                return -value(inner)
            case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as operator, right):
                first, second = value(left), value(right)
                match operator:
                    case ast.Add():
                        return first + second
                    case ast.Sub():
                        return first - second
                    case ast.Mult():
                        return first * second
                    case _ if isinstance(first, int) and isinstance(second, int):
                        return int(first / second)  # as C divides
                    case _:
                        return first / second
            case ast.Call(ast.Name(name), [argument]):
                return float(_OF_NUMBERS[name.removesuffix("f")](value(argument)))
            case _:
                raise ValueError(ast.dump(node))

    try:
        return float(value(ast.parse(re.sub(r"(?<=[\d.])[fF]\b", "", text.strip()), mode="eval").body))
    except (SyntaxError, ValueError, KeyError, ArithmeticError):
        return None


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


def _template(device: list[Node], functions: Mapping[str, Node], work: Work) -> list[ForeignKernel]:
    """One kernel of all functions in the order of the text, which share what their arguments hold."""
    evaluation = _Evaluation(functions, True, work)
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
    work: Work
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
    loops: int = 0
    variants: Variants = field(default_factory=Variants)
    condition: str = ""
    partial: set[str] = field(default_factory=set[str])
    left: bool = False
    narrowed: set[str] = field(default_factory=set[str])
    integers: set[str] = field(default_factory=set[str])
    written: dict[str, tuple[Place, ...]] = field(default_factory=dict[str, tuple[Place, ...]])
    constants: Mapping[str, float] = field(default_factory=dict[str, float])
    templates: set[str] = field(default_factory=set[str])

    def kernel(self, function: Node) -> ForeignKernel:
        for name, pointer in _parameters(function):
            if pointer:
                self.tensors[name] = Input(name, place=None if self.kittens else NOWHERE)
            else:
                self.known[name] = Scalar(name)
                self.scalars[name] = None
        self.integers |= _integers(function)
        self.work.begin()
        if _depth(function) > DEEPEST:
            return ForeignKernel(_name_of(function), _line(function), (), unread=f"it nests more than {DEEPEST} deep")
        try:
            self.run(function.child_by_field_name("body"))
        except Refused as refusal:
            return ForeignKernel(_name_of(function), _line(function), (), unread=str(refusal))
        # In indices, whole constants are sizes, which a skeleton has as parameters; in values they are numbers.
        self.stores = [replace(one, value=replaced(one.value, self.constant)) for one in self.stores]
        return ForeignKernel(
            _name_of(function), _line(function), tuple(_halves(self.stores)), tuple(self.scalars),
            frozenset(self.lengths), self.unread() or self.unnamed(),
        )  # fmt: skip

    def bounded(self, condition: Value) -> bool:
        """Whether a condition holds inside of tensors; where that is a part of a row, all parts must be taken."""
        if not is_bound(condition):
            return False
        self.partial |= parts_of_lengths(condition)
        return True

    def constant(self, value: Value) -> Value | None:
        if not isinstance(value, Scalar) or value.name in self.scalars:
            return None
        number = self.constants.get(value.name, _OF_MATH.get(value.name))
        return None if number is None else Number(number)

    def unnamed(self) -> str:
        """Why the kernel is not known: a value has a name that is neither a parameter nor a constant of the file."""
        for one in self.stores:
            for part in walk(one.value):
                if isinstance(part, Scalar) and re.split(r"\W", part.name)[0] not in self.scalars:
                    return f"what {part.name} is, is not known"
        return ""

    def unread(self) -> str:
        """Why the kernel is not known: it goes over parts of rows, and not over the others."""
        found = {one.part for one in self.stores}
        left = next(iter(sorted(self.partial - found)), "")
        return f"only elements up to {left} are read" if left else ""

    def run(self, node: Node | None) -> None:
        if node is None:
            return
        self.work.step()
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
                self.branch(node)
            case "break_statement" | "continue_statement" | "goto_statement":
                self.left = True
            case "switch_statement":
                self.sides(Unread("a switch"), [node.child_by_field_name("body")])
            case "for_statement":
                self.loop(node, node.child_by_field_name("initializer"))
            case "while_statement" | "do_statement":
                self.loop(node, None)
            case "return_statement":
                for one in node.named_children:
                    self.returned = self.value(one)
                self.left = True
            case _:
                pass

    def branch(self, node: Node) -> None:
        """Of variants that a constant chooses, the first one; of elements beyond the tensor, those that are there; what
        one thread does is done once; where elements decide, both sides are selected from."""
        condition = self.value(node.child_by_field_name("condition"))
        then, otherwise = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if is_constant(condition) and not self.is_argument(condition, node):
            self.run(then if self.holds(condition, node, never=_leaves(then)) else otherwise)
            self.left = False
        elif self.kittens:
            # Groups of warps that load and compute: each does its part.
            before = dict(self.known)
            self.run(then)
            after, self.known = self.known, dict(before)
            self.run(otherwise)
            self.known |= {name: value for name, value in after.items() if value is not before.get(name)}
            self.left = False
        elif self.bounded(condition):
            self.run(then)
            self.left = False
            if otherwise is not None:
                self.other(condition, otherwise)
        elif self.bounded(negated(condition)):
            self.run(otherwise)
            if not _leaves(then):
                self.other(condition, then)
            self.left = False
        elif threads := _threads(condition):
            first = len(self.stores)
            self.run(then)
            reason = "elements that a condition on threads chooses"
            self.stores[first:] = [
                _unread(one, reason) if threads & _threads_of(one.place) else one for one in self.stores[first:]
            ]
            if self.left:
                self.narrowed |= threads
            self.left = False
            if otherwise is not None:
                self.other(condition, otherwise)
        else:
            self.sides(condition, [one for one in (then, otherwise) if one is not None])

    def is_argument(self, condition: Value, node: Node) -> bool:
        """Whether a condition is about arguments: both sides are selected from."""
        names = {one.name for one in walk(condition) if isinstance(one, Scalar)}
        arguments = names & self.scalars.keys()
        if arguments and (names - arguments or arguments & self.integers):
            raise Refused(f"a choice by {_short(node.child_by_field_name('condition'))}", _line(node))
        return bool(arguments)

    def holds(self, condition: Value, node: Node, never: bool = False) -> bool:
        """Whether a condition on constants of the kernel holds in the variant that is read."""
        test = node.child_by_field_name("condition")
        unknown = {one.name for one in walk(condition) if isinstance(one, Scalar)} - self.templates
        if unknown:
            raise Refused(f"a choice by {_short(test)}, which is no constant,", _line(node))
        holds = self.variants.holds(condition, _text(test), never)
        if holds is None:
            raise Refused(f"another choice by the constants of {_short(test)}", _line(node))
        return holds

    def other(self, condition: Value, node: Node) -> None:
        """The side of a branch that elements inside of the tensor never take: it stores nothing of theirs."""
        before, first = dict(self.known), len(self.stores)
        self.run(node)
        self.left = False
        for name, value in self.known.items():
            if value is not before.get(name) and not (
                isinstance(value, Number) and value.value in (0.0, float("-inf"))
            ):
                before[name] = Unread("a branch on indices")
        self.known = before
        self.stores[first:] = [_unread(one, "a branch on indices") for one in self.stores[first:]]

    def sides(self, condition: Value, branches: list[Node]) -> None:
        """Code under a condition on elements, or on indices in a way that is not known: what it changes is selected."""
        on_elements = not is_index(condition) and not _only_indices(condition)
        reason = "a branch on elements" if on_elements else "a branch on indices"
        before, first = dict(self.known), len(self.stores)
        known: list[dict[str, Value]] = []
        stores: list[list[Store]] = []
        for one in branches:
            self.known = dict(before)
            self.run(one)
            known.append(self.known)
            stores.append(self.stores[first:])
            del self.stores[first:]
        if self.left:
            self.condition = reason
        self.left = False
        then, otherwise = known[0], known[1] if len(known) > 1 else before
        self.known = before
        for name in {*then, *otherwise}:
            sides = then.get(name), otherwise.get(name)
            if sides[0] is not before.get(name) or sides[1] is not before.get(name):
                self.known[name] = (
                    operation("where", condition, sides[0], sides[1]) if sides[0] and sides[1] else Unread(reason)
                )
        self.stores += _selected(condition, stores[0], stores[1] if len(stores) > 1 else [])

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
                pointer = "*" in _text(one.child_by_field_name("declarator")) or kind == "auto" or self.kittens
                if tensor is not None and self.is_address(value) and pointer:
                    self.tensors[name] = tensor
                else:
                    self.known[name] = self.whole(found) if _WHOLE.match(kind) else found
            elif one.type == "identifier" and node.child_by_field_name("type") != one and not self.kittens:
                self.known[_text(one)] = Unread(f"{_text(one)}, which has no value yet")

    def loop(self, node: Node, initializer: Node | None) -> None:
        turning, turn = self.turning, UNKNOWN
        if initializer is not None:
            self.run(initializer)
            begins: dict[str, Place] = {}
            for one in _nodes(initializer):
                if one.type in ("init_declarator", "assignment_expression"):
                    side = one.child_by_field_name("declarator" if one.type == "init_declarator" else "left")
                    name = _root(_text(side))
                    begins[name] = place_of(self.known.get(name, ZERO))
                    self.turning = self.turning if name in begins and len(begins) > 1 else name
            turn, at = self.turns(node, begins)
            for name in begins:
                value = self.known.get(name, ZERO)
                axes = axes_of(value)
                self.known[name] = Index(axes if axes & {"p", "r"} else frozenset({"k"}), scalars_of(value), at[name])
            self.value(node.child_by_field_name("condition"))
        body = node.child_by_field_name("body")
        own = re.compile(rf"\[[^\]]*\b{re.escape(self.turning or '?')}\b") if initializer is not None else None
        changed = {path for one in _nodes(body) if (path := self.target(one, own))}
        before = {name: self.known[name] for name in changed if name in self.known and not is_index(self.known[name])}
        moving: dict[str, Value] = {name: one for name in changed if isinstance(one := self.known.get(name), Index)}
        moving |= {name: self.tensors[name] for name in changed if name in self.tensors}
        for name, value in before.items():
            self.known[name] = Carried(name, value)
        self.loops += 1
        self.advance(moving, turn, body)
        stores = len(self.stores)
        self.run(body)
        self.stores[stores:] = [stored_in_turns(one, turn) for one in self.stores[stores:]]
        self.loops -= 1
        if self.left:
            self.condition = self.condition or "a loop that is left"
        self.left = False
        for name, value in before.items():
            self.known[name] = last_turn(_settled(name, value, self.known[name]), turn)
        for name, value in moving.items():
            after = self.tensors[name] if isinstance(value, Input) else self.known[name]
            if after != value and isinstance(after, Input):
                self.tensors[name] = replace(after, place=UNKNOWN)
            elif after != value and isinstance(after, Index):
                self.known[name] = replace(after, place=UNKNOWN)
        self.turning = turning

    def turns(self, node: Node, begins: Mapping[str, Place]) -> tuple[Place, dict[str, Place]]:
        """The number of a turn of a loop, and what its variables, which begin at these places, are in it."""
        unknown = UNKNOWN, dict.fromkeys(begins, UNKNOWN)
        steps: dict[str, Place] = {}
        for one in _listed(node.child_by_field_name("update")):
            if one.type == "update_expression":
                name = _root(_text(one.child_by_field_name("argument")))
                steps[name] = places.number(1.0) if "++" in _text(one) else UNKNOWN
            elif one.type == "assignment_expression":
                known = _text(one.child_by_field_name("operator")) == "+="
                step = place_of(self.value(one.child_by_field_name("right"))) if known else UNKNOWN
                steps[_root(_text(one.child_by_field_name("left")))] = step
        condition = node.child_by_field_name("condition")
        while condition is not None and condition.type in ("condition_clause", "parenthesized_expression"):
            condition = condition.named_children[-1]
        if condition is None or condition.type != "binary_expression":
            return unknown
        name, operator = (
            _root(_text(condition.child_by_field_name("left"))),
            _text(condition.child_by_field_name("operator")),
        )
        if operator not in ("<", "<=") or name not in begins or not begins.keys() <= steps.keys():
            return unknown
        end = place_of(self.value(condition.child_by_field_name("right")))
        start = begins[name]
        if operator == "<=":
            end = places.plus(end, places.number(1.0))
        if (
            start
            and {one[0] for one in places.atoms(start)} == {"p"}
            and "p" not in {one[0] for one in places.atoms(end)}
        ):
            # A persistent loop: another number of a block.
            own = places.atom("p", f"{places.written(start)} by {places.written(steps[name])}")
            return own, {one: own if one == name else UNKNOWN for one in begins}
        turn, at = places.turns(self.loops, start, end, steps[name])
        self.lengths |= places.length_of(end)
        return turn, {
            one: at if one == name else places.plus(begins[one], places.times(turn, steps[one])) for one in begins
        }

    def advance(self, moving: Mapping[str, Value], turn: Place, body: Node) -> None:
        """Move addresses and indices that each turn of a loop moves by the same distance to the current turn."""
        if not moving:
            return
        known, tensors, stores = dict(self.known), dict(self.tensors), len(self.stores)
        taken, left, condition = self.variants.state(), self.left, self.condition
        self.run(body)
        self.left, self.condition = left, condition
        after: dict[str, Value] = self.known | self.tensors
        self.known, self.tensors = known, tensors
        self.variants.reset(taken)
        del self.stores[stores:]
        for name, value in moving.items():
            moved = after[name]
            if isinstance(value, Input) and isinstance(moved, Input) and value.place is not None:
                self.tensors[name] = replace(value, place=_advanced(value.place, moved.place or UNKNOWN, turn))
            elif isinstance(value, Index) and isinstance(moved, Index):
                self.known[name] = replace(value, place=_advanced(value.place, moved.place, turn))

    def target(self, node: Node, own: re.Pattern[str] | None) -> str:
        """The variable that a node changes, unless each turn changes another element of it."""
        if node.type == "update_expression":
            return _path(_text(node.child_by_field_name("argument")))
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
            case "call_expression" if _CASTS.match(_text(node)):
                return self.address(node.child_by_field_name("arguments").named_children[0])
            case "subscript_expression":
                inner = node.child_by_field_name("argument")
                base = self.address(inner)
                if base is not None and inner.type == "subscript_expression" and base.place is not None:
                    # Rows of a tensor of two dimensions.
                    base = replace(base, place=places.times(base.place, places.atom("s", f"columns of {base.tensor}")))
                return base and _moved(base, self.indices(node))
            case "binary_expression":
                sides = (node.child_by_field_name("left"), node.child_by_field_name("right"))
                sign = _text(node.child_by_field_name("operator"))
                for one, other in (sides, sides[::-1]):
                    base = self.address(one) if sign in "+-" and self.is_address(one) else None
                    if base is not None:
                        by = self.value(other)
                        return _moved(base, [by if sign == "+" else operation("*", Number(-1.0), by)])
                return None
            case _:
                return None

    def is_address(self, node: Node) -> bool:
        """Whether an expression is an address, and not an element at one."""
        match node.type:
            case "identifier":
                return _text(node) in self.tensors
            case "pointer_expression":
                return _text(node).startswith("&")
            case "parenthesized_expression" | "cast_expression":
                return self.is_address(node.named_children[-1])
            case "binary_expression":
                return any(self.is_address(node.child_by_field_name(side)) for side in ("left", "right"))
            case "call_expression" if _CASTS.match(_text(node)):
                return self.is_address(node.child_by_field_name("arguments").named_children[0])
            case _:
                return self.kittens

    def read_again(self, node: Node) -> Value:
        """An element of an array on the chip: what was written to the same element, perhaps by another thread."""
        path = _path(_text(node))
        found = self.known.get(path, Unread(path))
        written = self.written.get(path)
        if written is None or isinstance(found, Reduced | Carried):
            return found
        read = tuple(place_of(one) for one in self.all_indices(node))

        def change(one: Value) -> Value | None:
            match one:
                case Reduced():
                    return one
                case Input(place=place) if place is not None:
                    return replace(one, place=places.moved_to(place, written, read))
                case _:
                    return None

        return replaced(found, change)

    def all_indices(self, node: Node) -> list[Value]:
        """The indices of all axes."""
        found: list[Value] = []
        while node.type == "subscript_expression":
            found = [*self.indices(node), *found]
            node = node.child_by_field_name("argument")
        return found

    def indices(self, node: Node) -> list[Value]:
        arguments = node.child_by_field_name("indices")
        return [self.value(one) for one in arguments.named_children] if arguments is not None else []

    def value(self, node: Node | None) -> Value:
        if node is None:
            return ZERO
        self.work.step()
        match node.type:
            case "number_literal":
                return Number(_number(_text(node)))
            case "identifier":
                return self.known.get(_text(node), Scalar(_text(node)))
            case "field_expression":
                argument = _text(node.child_by_field_name("argument"))
                if argument in _BUILT_IN:
                    axis = "x" if _text(node.child_by_field_name("field")) == "x" else "y"
                    kind = _BUILT_IN[argument]
                    return Index(
                        frozenset({kind, axis}) if kind else frozenset(), frozenset(),
                        places.atom(kind or "s", _text(node)),
                    )  # fmt: skip
                path = _path(_text(node))
                if path not in self.known and re.search(r"\.[xyzw]$", path):
                    # One of several elements at once.
                    lane = places.atom("w", path[-2:])
                    return replaced(self.known.get(path[:-2], Scalar(path)), lambda one: _in_lane(one, lane, 1.0))
                return self.known.get(path, Scalar(path))
            case "parenthesized_expression" | "condition_clause" | "cast_expression" | "init_declarator":
                inner = [one for one in node.named_children if one.type != "type_descriptor"]
                found = self.value(inner[-1]) if inner else ZERO
                return self.whole(found) if _WHOLE.match(_text(node).lstrip("(")) and node.type[0] == "c" else found
            case "unary_expression" | "pointer_expression":
                return self.unary(node)
            case "update_expression":
                return self.updated(node)
            case "binary_expression":
                return self.binary(node)
            case "conditional_expression":
                return self.conditional(node)
            case "subscript_expression":
                tensor = self.address(node)
                return self.read_again(node) if tensor is None else read_back(tensor, self.stores)
            case "assignment_expression":
                return self.assigned(node)
            case "comma_expression":
                return [self.value(one) for one in node.named_children][-1]
            case "call_expression":
                return self.call(node)
            case "gnu_asm_expression":
                for one in _nodes(node):
                    if one.type == "identifier":
                        self.known[_text(one)] = Unread("inline assembly")
                return Unread("inline assembly")
            case "null" | "nullptr":
                return Scalar("NULL")
            case "true" | "false":
                return Number(float(node.type == "true"))
            case _:
                return Unread(_text(node)[:40])

    def updated(self, node: Node) -> Value:
        """``i++`` and the like: the value before, or after."""
        argument = node.child_by_field_name("argument")
        path, before = _path(_text(argument)), self.value(argument)
        if path in self.tensors:
            self.tensors[path] = replace(self.tensors[path], place=UNKNOWN)
            return Unread("an address that moves")
        after = operation("+" if "++" in _text(node) else "-", before, Number(1.0))
        self.known[path] = after
        return before if _text(node).endswith(("++", "--")) else after

    def unary(self, node: Node) -> Value:
        argument = node.child_by_field_name("argument")
        tensor = self.address(argument) if node.type == "pointer_expression" else None
        if tensor is not None:
            return read_back(tensor, self.stores)
        inner = self.value(argument)
        match _text(node)[0]:
            case "-":
                return Number(-inner.value) if isinstance(inner, Number) else operation("*", Number(-1.0), inner)
            case "!":
                return negated(inner)
            case "~":
                return Unread("~")
            case _:
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
        raw = self.known.get(_path(_text(other))) if other.type == "subscript_expression" else None
        if name == "+" and raw is not None and self.address(other) is None and _plain(left) == _plain(raw):
            # A step of a reduction in shared memory.
            return _reduced("sum", left, together=True)
        if name == "/" and self.integral(node.child_by_field_name("left")) and self.integral(other):
            name = "//"
            if isinstance(left, Number) and isinstance(right, Number) and right.value:
                return Number(float(int(left.value / right.value)))
        for one, step in ((left, right), (right, left)) if name == "+" else ():
            if isinstance(step, Op) and step.name == "shuffled" and _plain(one) == _plain(step.arguments[0]):
                return _reduced("sum", one, together=True)
        return operation({"&&": "&", "||": "|"}.get(name, name), left, right)

    def whole(self, value: Value) -> Value:
        """A value as a whole number: the same for those of tensors of whole numbers."""
        found = [one for one in walk(value) if isinstance(one, Input)]
        if self.kittens or all(one.tensor in self.integers for one in found):
            return value
        return Unread("a conversion to whole numbers")

    def integral(self, node: Node) -> bool:
        """Whether an expression is made of whole numbers alone."""
        leaves = [one for one in _nodes(node) if one.type in ("number_literal", "identifier")]
        if any(one.type in ("call_expression", "subscript_expression", "cast_expression") for one in _nodes(node)):
            return False
        return bool(leaves) and all(
            re.fullmatch(r"(0x[\da-fA-F]+|\d+)[uUlL]*", _text(one)) or _text(one) in self.integers for one in leaves
        )

    def conditional(self, node: Node) -> Value:
        condition = self.value(node.child_by_field_name("condition"))
        then, otherwise = (self.value(node.child_by_field_name(side)) for side in ("consequence", "alternative"))
        if is_constant(condition) and not self.is_argument(condition, node):
            return then if self.holds(condition, node) else otherwise
        if self.bounded(condition) or self.bounded(negated(condition)):
            # Beyond the edge there are no elements.
            inside, beyond = (then, otherwise) if self.bounded(condition) else (otherwise, then)
            return inside if _is_nothing(beyond) else Unread("elements beyond the edge")
        if _threads(condition):
            # What threads without an element add to a reduction.
            return then if _is_nothing(otherwise) else Unread("a choice between threads")
        return operation("where", condition, then, otherwise)

    def assigned(self, node: Node) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = _text(node.child_by_field_name("operator"))
        value = self.product_of(right, operator) or self.value(right)
        tensor = self.address(left)
        path = _path(_text(left))
        if left.type == "identifier" and path in self.tensors:
            # The address itself moves.
            by = self.address(right)
            if operator == "=" and by is not None:
                self.tensors[path] = by
            elif operator in ("+=", "-=") and self.tensors[path].place is not None:
                step = self.value(right)
                self.tensors[path] = _moved(
                    self.tensors[path], [step if operator == "+=" else operation("*", Number(-1.0), step)]
                )
            else:
                self.tensors[path] = replace(self.tensors[path], place=UNKNOWN)
            return ZERO
        if operator != "=":
            before = self.known.get(path, ZERO) if tensor is None else read_back(tensor, self.stores)
            if operator == "+=" and _same_array(left, right) and path in self.known:
                # A step of a reduction in shared memory.
                value = _reduced("sum", self.known[path], together=True)
            elif operator == "+=" and isinstance(value, Op) and value.name == "shuffled":
                value = _reduced("sum", value.arguments[0], together=True)
            else:
                value = operation(operator[:-1], before, value)
        if tensor is not None:
            self.store(tensor, value)
        elif ".tiles" in _text(left):
            # Parts of a register tile, such as the halves of a row.
            parts = self.tiles.setdefault(path, {})
            parts[_text(left).partition(".tiles")[2]] = value
            self.known[path] = Op("joined", tuple(parts.values())) if len(parts) > 1 else value
        else:
            if left.type == "subscript_expression":
                self.written[path] = tuple(place_of(one) for one in self.all_indices(left))
            self.known[path] = value
            if re.search(r"\.[xyzw]$", path) and not self.kittens:
                # One of several elements at once, which are made alike.
                whole, plain = self.known.get(path[:-2]), _one_for_all(value, path[-2:])
                fits = whole is None or (isinstance(whole, Unread) and "no value yet" in whole.reason) or whole == plain
                self.known[path[:-2]] = plain if fits else Unread("several different elements")
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
            values = [_one_for_all(self.value(one), f".{letter}") for one, letter in zip(given, "xyzw", strict=False)]
            return values[0] if len(set(values)) == 1 else Unread(f"{name}() of different elements")
        if name in ("fmaf", "fma", "__fmaf_rn") and len(given) == 3:
            a, b, c = map(self.value, given)
            return operation("+", operation("*", a, b), c)
        if name == "thread_rank":
            return Index(frozenset({"r", "x"}), frozenset(), places.atom("r", f"{_text(called)} threadIdx.x"))
        if name in _FUNCTIONS:
            values = [self.value(one) for one in given]
            kind = _FUNCTIONS[name]
            for one, step in (values, values[::-1]) if kind in ("max", "min") and len(values) == 2 else ():
                if isinstance(step, Op) and step.name == "shuffled" and _plain(one) == _plain(step.arguments[0]):
                    # Of what each thread has found.
                    return _reduced(kind, one, together=True)
            return operation(kind, *values)
        if _SAME.match(name) and given:
            return self.value(given[0])
        if name in ("__stcs", "__stcg", "__stwt") and len(given) == 2:
            self.stored(given[0], self.value(given[1]))
            return ZERO
        for one in given:
            if one.type in ("assignment_expression",):
                self.value(one)
            elif not self.kittens and one.type in ("pointer_expression", "identifier"):
                # What it does with what it gets the address of is not known.
                to = self.address(one)
                if to is not None:
                    self.store(to, Unread(f"{name}()"))
                elif _text(one).startswith("&"):
                    self.known[_path(_text(one))] = Unread(f"{name}()")
        return Unread(f"{name}()")

    def copied(self, given: list[Node]) -> Value:
        """A copy from a tensor to shared memory: the first address is where to."""
        for to, source in itertools.pairwise(given):
            tensor = self.address(source)
            if tensor is not None:
                array = to.named_children[-1] if to.type == "pointer_expression" else to
                if array.type == "subscript_expression":
                    self.written[_path(_text(array))] = tuple(place_of(one) for one in self.all_indices(array))
                self.known[_path(_text(to).lstrip("&"))] = tensor
                return ZERO
        return Unread("memcpy_async()")

    def element(self, node: Node) -> Value:
        return self.address(node) or self.value(node.named_children[-1] if node.type == "pointer_expression" else node)

    def stored(self, node: Node, value: Value) -> None:
        tensor = self.address(node)
        if tensor is not None:
            self.store(tensor, value)
        else:
            self.known[_path(_text(node).lstrip("&"))] = value

    def store(self, to: Input, value: Value) -> None:
        """A store of an element, unless a condition before decides which elements are stored."""
        if self.condition:
            value = Unread(self.condition)
        elif self.narrowed & _threads_of(to.place):
            value = Unread("elements that a condition on threads chooses")
        self.stores.append(Store(to.tensor, to.axes, value, to.part, to.place))

    def inlined(self, function: Node, given: list[Node]) -> Value:
        inner = _Evaluation(
            self.functions,
            self.kittens,
            self.work,
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
            self.loops,
            self.variants,
            self.condition,
            self.partial,
            False,
            self.narrowed,
            self.integers | _integers(function),
        )
        for (name, _), node in zip(_parameters(function), given, strict=False):
            tensor = self.address(node)
            if tensor is not None and self.is_address(node):
                inner.tensors[name] = tensor
            else:
                inner.known[name] = self.value(node)
        given_values = dict(inner.known)
        inner.run(function.child_by_field_name("body"))
        self.condition = inner.condition
        for (name, changes), node in zip(_parameters(function, "*&"), given, strict=False):
            value = inner.known.get(name)
            if changes and value is not None and value is not given_values.get(name):
                self.known[_path(_text(node))] = value
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
    chosen = [[(one.tensor, one.axes, one.part, one.place) for one in side] for side in (then, otherwise)]
    if chosen[0] != chosen[1]:
        return [_unread(one, "elements that a condition on them chooses") for one in (*then, *otherwise)]
    return [
        replace(one, value=operation("where", condition, one.value, other.value))
        for one, other in zip(then, otherwise, strict=True)
    ]


def _unread(store: Store, reason: str) -> Store:
    return replace(store, value=Unread(reason))


def _settled(name: str, initial: Value, update: Value) -> Value:
    """The value after a loop; a reduction in steps is one reduction."""
    match update:
        case Reduced(kind, inner, together):
            own = replaced(inner, lambda one: initial if isinstance(one, Carried) and one.name == name else None)
            return _reduced(kind, own, together)
        case _:
            return after_loop(name, initial, update)


def _reduced(kind: str, value: Value, together: bool = False) -> Value:
    value = _plain(value)
    if isinstance(value, Reduced) and value.kind == kind:
        return replace(value, together=value.together or together)
    return Reduced(kind, value, together)


def _plain(value: Value) -> Value:
    while isinstance(value, Carried):
        value = value.initial
    return value


def _moved(base: Input, indices: list[Value]) -> Input:
    axes = base.axes.union(*(axes_of(one) for one in indices))
    if base.place is not None:
        place = base.place
        for one in indices:
            place = places.plus(place, place_of(one))
        part = places.written(places.distance(place))
        return Input(base.tensor, axes, "" if part == "0" else part, place)
    parts: set[str] = set()
    if not any(map(is_index, indices)):
        parts = {one.name for index in indices for one in walk(index) if isinstance(one, Scalar)}
    return Input(base.tensor, axes, "+".join(sorted({*base.part.split("+"), *parts} - {""})))


def _listed(node: Node | None) -> Iterator[Node]:
    """The expressions of a list with commas."""
    if node is not None and node.type == "comma_expression":
        for one in node.named_children:
            yield from _listed(one)
    elif node is not None:
        yield node


def _advanced(before: Place, after: Place, turn: Place) -> Place:
    by = places.plus(after, before, -1.0)
    if not by:
        return before
    fixed = all(one[0] in ("s", "p") for one in places.atoms(by))
    return places.plus(before, places.times(turn, by)) if fixed else UNKNOWN


def _leaves(node: Node | None) -> bool:
    """Whether code leaves the kernel or loop at its end."""
    if node is None:
        return False
    if node.type == "compound_statement":
        return bool(node.named_children) and _leaves(node.named_children[-1])
    return node.type in ("return_statement", "break_statement", "continue_statement")


def _only_indices(condition: Value) -> bool:
    return not any(isinstance(one, Input | Reduced | Carried | Unread | Product) for one in walk(condition))


def _threads(condition: Value) -> set[str]:
    """The numbers of threads that a condition is about, empty if it is about anything else."""
    if not _only_indices(condition):
        return set()
    axes = axes_of(condition)
    return {f"threadIdx.{one}" for one in axes & {"x", "y"}} if "p" not in axes else set()


def _threads_of(place: Place | None) -> set[str]:
    found = {name for one in places.atoms(place or NOWHERE) for name in re.findall(r"threadIdx\.\w", one[1])}
    return found | ({"threadIdx.y"} if "threadIdx.z" in found else set())


def _one_for_all(value: Value, lane: str) -> Value:
    """One of the elements that are made at once, made as the others are of those with their number."""
    return replaced(value, lambda one: _in_lane(one, places.atom("w", lane), -1.0))


def _in_lane(value: Value, lane: Place, sign: float) -> Value | None:
    """One of the elements that are loaded at once, or (with -1) all of them."""
    match value:
        case Input(place=place) if place is not None:
            return replace(value, place=places.plus(place, lane, sign))
        case _:
            return None


def _is_nothing(value: Value) -> bool:
    """Whether a value adds nothing to a sum, or to a maximum."""
    match value:
        case Number(number):
            return number == 0 or abs(number) == float("inf") or number < -1e30
        case Op("*", (Number(-1.0), Scalar())) | Scalar():
            return True
        case _:
            return False


def _parameters(function: Node, kinds: str = "*") -> Iterator[tuple[str, bool]]:
    """The parameters of a function, and whether each is a pointer (``*``) or reference (``&``)."""
    wanted = {"*": ("pointer_declarator", "array_declarator"), "&": ("reference_declarator",)}
    accepted = [one for kind in kinds for one in wanted[kind]]
    declarator = _declarator(function)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    for one in listed.named_children if listed is not None else ():
        if one.type in ("parameter_declaration", "optional_parameter_declaration"):
            names = [part for part in _nodes(one) if part.type == "identifier"]
            if names:
                yield (
                    _text(names[-1]),
                    any(part.type in accepted for part in _nodes(one)),
                )


_WHOLE = re.compile(r"^(const )?(unsigned|signed|int|long|short|size_t|u?int\d+_t|char|uint)\b")


def _integers(function: Node) -> set[str]:
    """The parameters and variables of a function that are whole numbers."""
    found: set[str] = set()
    for one in _nodes(function):
        if one.type in ("parameter_declaration", "declaration") and _WHOLE.match(_text(one)):
            found |= {_text(part) for part in _nodes(one) if part.type == "identifier" and "*" not in _text(one)}
    return found


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
