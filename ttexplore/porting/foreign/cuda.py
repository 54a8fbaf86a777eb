"""Reading CUDA C++ and ThunderKittens kernels: tree-sitter's syntax tree, and the values that are stored.

The grammar is that of the package tree-sitter-cuda, which the extra `port` installs.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import math
import re
import struct
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ttexplore.errors import UsageError
from ttexplore.optional import install_extra
from ttexplore.porting.foreign import places, warps
from ttexplore.porting.foreign.gathered import place_with_index, without_indices
from ttexplore.porting.foreign.marks import ForeignKernel, Mark, Parameter, Reading
from ttexplore.porting.foreign.places import NOWHERE, UNKNOWN, Place
from ttexplore.porting.foreign.values import (
    ZERO,
    Carried,
    Formula,
    Index,
    Input,
    MatMul,
    Number,
    Output,
    Reduced,
    Scalar,
    Unread,
    Value,
    Variants,
    after_loop,
    axes_of,
    bounds_of,
    edge,
    in_order,
    is_bound,
    is_constant,
    is_index,
    is_rounded,
    negated,
    operation,
    overflowing,
    parts_of_lengths,
    place_of,
    read_back,
    replaced,
    scalars_of,
    stored_in_turns,
    walk,
)
from ttexplore.porting.foreign.words import CUDA, KITTENS, by_name
from ttexplore.porting.foreign.work import Refused, SourceWork, TooLarge, is_large, refuse_large
from ttexplore.porting.foreign.writing import is_name
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
_ROUNDING = re.compile(r"^(__float2bfloat16|__float2half)(_rn)?$")
_CASTS = re.compile(r"^(reinterpret|const)_cast<")
_ELEMENTWISE = {"mul": "*", "add": "+", "sub": "-", "div": "/", "max": "max", "min": "min"}
_UNARY = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "abs")
# What is inside of a tile or fragment, and one of the numbers of an element such as float4.
_PARTS = re.compile(r"(\.(tiles|data)\b.*|\.x(?=\[).*|(?<=\])\.[xyzw])$")


# The nodes of functions that are understood, where nothing else is said of them.
_NODES = (
    "compound_statement expression_statement declaration if_statement else_clause for_statement return_statement "
    "comment init_declarator pointer_declarator array_declarator identifier field_identifier type_identifier auto "
    "primitive_type sized_type_specifier placeholder_type_specifier type_qualifier storage_class_specifier true false "
    "number_literal binary_expression unary_expression update_expression assignment_expression comma_expression "
    "call_expression argument_list parenthesized_expression condition_clause conditional_expression template_type "
    "subscript_expression subscript_argument_list field_expression pointer_expression cast_expression type_descriptor "
    "abstract_pointer_declarator template_function template_argument_list qualified_identifier namespace_identifier "
    "preproc_call preproc_directive preproc_arg ms_restrict_modifier"
)
_UNDERSTOOD = frozenset(_NODES.split(" "))
_OF_KITTENS = frozenset(
    {
        "template_method",
        "dependent_name",
        "initializer_list",
        "reference_declarator",
        "function_declarator",
        "parameter_list",
    }
)
# Types of which variables may be; the others are those of template parameters.
_TYPES = re.compile(
    r"(const |constexpr |unsigned |signed |extern |__shared__ )*"
    r"(float|double|half|__half|bfloat16|__nv_bfloat16|nv_bfloat16|float[24]|int|unsigned|long|long long|short|char|"
    r"bool|size_t|u?int\d+_t|uint|auto)"
)
# Where functions that are known are.
_NAMESPACES = {
    "", "std", "cuda", "cuda::std", "nvcuda::wmma", "wmma", "cg", "cooperative_groups", "kittens", "warp", "warpgroup",
    "group", "tma", "kittens::warp", "kittens::warpgroup", "kittens::group", "kittens::tma", "tma::cluster",
    "cuda::pipeline", "cuda::device",
}  # fmt: skip
# What orders threads, and changes no value.
_BARRIERS = {
    "__syncthreads", "__syncwarp", "sync", "wait", "arrive", "load_async_wait", "mma_async_wait", "__pipeline_commit",
    "__pipeline_wait_prior",
}  # fmt: skip


def _not_understood(function: Node, kittens: bool, file: _File) -> Refused | None:
    """What of a function no rule understands, wherever it is; None if there is nothing."""
    body = function.child_by_field_name("body")
    above = function.parent
    while above is not None:
        if above.type.startswith("preproc"):
            return Refused(f"a function inside of {_short(above)}", _line(above))
        above = above.parent
    for node in _nodes(function):
        if node.type == "ERROR" or node.is_missing:
            return Refused(_short(node) if _text(node).strip() else "a text that is no C++", _line(node))
        if node.child_count == 0 and _text(node) in file.macros:
            return Refused(f"the macro {_text(node)}", _line(node))
    understood = _UNDERSTOOD | _OF_KITTENS if kittens else _UNDERSTOOD
    for node in _nodes(body):
        if not node.is_named:
            continue
        above = node.parent.type
        fits = node.type in understood
        match node.type:
            case "update_expression" | "assignment_expression" | "comma_expression":
                fits = above in ("expression_statement", "comma_expression", "for_statement")
            case "storage_class_specifier":
                fits = _text(node) == "extern"
            case "type_qualifier":
                fits = _text(node) in ("const", "constexpr", "__restrict__", "__shared__")
            case "preproc_call":
                fits = _text(node).split()[:2] == ["#pragma", "unroll"]
            case "declaration" if not kittens:
                fits = _TYPES.fullmatch(_text(node.child_by_field_name("type"))) is not None
            case "expression_statement":
                (*_, inner) = node.named_children or (None,)
                fits = inner is not None and inner.type in (
                    "assignment_expression", "update_expression", "comma_expression", "call_expression",
                )  # fmt: skip
            case "call_expression":
                fits = fits and (above == "expression_statement" or not kittens or "allocate" in _text(node))
                arguments = node.child_by_field_name("arguments")
                is_cast = _CASTS.match(_text(node)) is not None
                fits = fits and not (is_cast and (arguments is None or len(arguments.named_children) != 1))
            case "binary_expression":
                fits = _text(node.child_by_field_name("operator")) in _BINARY
            case "unary_expression":
                fits = _text(node)[0] in "-+!"
            case _:
                pass
        if not fits:
            return Refused(_short(node), _line(node))
    return _shadowed(function) or _typed_again(function, file) or _changed(function, file) or _inexact(function, file)


# Shuffles, and what another lane has by them.
_SHUFFLES = {"__shfl_xor_sync": "shuffled", "__shfl_down_sync": "shuffled down"}
_SHUFFLED = frozenset(_SHUFFLES.values())
_BINARY = {"+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "<<", ">>", "&"}


# Shared memory of a block, where a kernel asks for no more.
_SHARED_BYTES = 48 * 1024


def _assigned(node: Node, file: _File) -> Iterator[tuple[str, Node]]:
    """The variables that code changes, also by way of a reference, and where; not those that a loop counts with."""
    for descendant in _nodes(node):
        if descendant.type in ("assignment_expression", "update_expression"):
            above = descendant.parent
            while above.type == "comma_expression":
                above = above.parent
            if above.type != "for_statement":
                side = "left" if descendant.type == "assignment_expression" else "argument"
                yield _path(_text(descendant.child_by_field_name(side))), descendant
        elif descendant.type == "call_expression":
            callee = file.functions.get(_last(_text(descendant.child_by_field_name("function"))))
            arguments = descendant.child_by_field_name("arguments")
            if callee is not None and arguments is not None:
                for (_, changes), argument in zip(_parameters(callee, "&"), arguments.named_children, strict=False):
                    if changes:
                        yield _path(_text(argument)), descendant


def _header(loop: Node) -> set[str]:
    """The variables of a loop's header."""
    clauses = [loop.child_by_field_name(side) for side in ("initializer", "condition", "update")]
    return {
        _text(node)
        for clause in clauses
        if clause is not None
        for node in _nodes(clause)
        if node.type == "identifier" and node.parent.type != "field_expression"
    }


def _changed(function: Node, file: _File) -> Refused | None:
    """A change of what a loop counts with, in its body; or of a parameter that is a whole number."""
    body = function.child_by_field_name("body")
    if _qualified(function, "__global__"):
        pointers = {name for name, pointer in _parameters(function) if pointer}
        parameters = {name for name in _types_of(function)} - pointers
        integers = parameters & _integers(function, file.aliases)
        for name, node in _assigned(body, file):
            if name in integers:
                return Refused(f"a change of the parameter {name}", _line(node))
    for loop in (node for node in _nodes(body) if node.type == "for_statement"):
        inner = loop.child_by_field_name("body")
        headers = _header(loop).union(*(_header(node) for node in _nodes(inner) if node.type == "for_statement"))
        for name, node in _assigned(inner, file):
            if name in headers:
                return Refused(f"a change of {name}, which a loop counts with,", _line(node))
    return None


def _inexact(function: Node, file: _File) -> Refused | None:
    """Numbers of 64 bits: double, and literals that are others in float32; and arrays larger than shared memory."""
    for node in _nodes(function):
        kind = file.aliases.get(_text(node), _text(node)) if node.child_count == 0 else ""
        if node.type in ("primitive_type", "type_identifier") and re.fullmatch(r"double\d?", kind):
            return Refused("double, which has no equivalent,", _line(node))
        if node.type == "identifier" and isinstance(number := file.constants.get(_text(node)), float):
            is_single = False
        elif node.type == "number_literal" and not re.fullmatch(r"0[xX].*|\d+[uUlL]*", _text(node)):
            number, is_single = _number(node), _text(node)[-1] in "fF"
        else:
            continue
        if abs(number) > _OF_MATH["FLT_MAX"] or (number and _single(number) == 0):
            return Refused(f"the number {_short(node)}, which float has not,", _line(node))
        if not is_single and _single(number) != number and _is_compared(node):
            return Refused(f"a comparison with {_short(node)}, which is a double,", _line(node))
    for node in _nodes(function.child_by_field_name("body")):
        if node.type == "array_declarator":
            size = _size_of_array(node, file)
            if size > _SHARED_BYTES:
                return Refused(f"{_short(node)} of {size} bytes, where a block has {_SHARED_BYTES},", _line(node))
    return None


def _single(number: float) -> float:
    return struct.unpack("f", struct.pack("f", number))[0]


def _is_compared(node: Node) -> bool:
    while node.parent is not None and node.parent.type in (
        "binary_expression", "unary_expression", "parenthesized_expression", "call_expression", "argument_list",
    ):  # fmt: skip
        node = node.parent
        if node.type == "binary_expression" and _text(node.child_by_field_name("operator")) in _COMPARING:
            return True
    return False


_COMPARING = {"<", "<=", ">", ">=", "==", "!="}


def _size_of_array(node: Node, file: _File) -> int:
    """The bytes of an array, 0 where they are not numbers."""
    elements, inner = 1.0, node
    while inner is not None and inner.type == "array_declarator":
        size = inner.child_by_field_name("size")
        elements *= (_computed(_text(size), file.constants) or 0) if size is not None else 0
        inner = inner.child_by_field_name("declarator")
    declaration = node
    while declaration.type != "declaration" and declaration.parent is not None:
        declaration = declaration.parent
    kind = _base(_text(declaration.child_by_field_name("type") or declaration))
    return int(elements) * (2 if _is_half(file.aliases.get(kind, kind)) else 4)


def _shadowed(function: Node) -> Refused | None:
    """A variable that has the name of one around it."""
    pending: list[tuple[Node, frozenset[str]]] = [
        (function.child_by_field_name("body"), frozenset(name for name, _ in _parameters(function)))
    ]
    while pending:
        node, visible = pending.pop()
        for child in node.named_children:
            if child.type == "declaration":
                for declarator in child.children_by_field_name("declarator"):
                    name = _root(_text(declarator.child_by_field_name("declarator") or declarator))
                    if name in visible:
                        return Refused(f"a second variable {name}", _line(child))
                    visible |= {name}
            elif child.type in ("compound_statement", "if_statement", "else_clause", "for_statement"):
                pending.append((child, visible))
    return None


def _typed_again(function: Node, file: _File) -> Refused | None:
    """A name that is declared with several types, in whatever blocks: names have one type in a function."""
    kinds: dict[str, tuple[str, bool]] = {}
    for name, (kind, _) in _types_of(function).items():
        is_whole = _CONVERTING.match(file.aliases.get(kind, kind)) is not None
        if name in file.constants and is_whole != isinstance(file.constants[name], int):
            return Refused(f"a second variable {name}", _line(function))
    for name, kind, target in _declared(function.child_by_field_name("body")):
        key = _base(kind), target.type == "pointer_declarator"
        is_unknown = name in kinds and key[0] == "auto"
        if name in file.variables or is_unknown or kinds.setdefault(name, key) != key:
            return Refused(f"a second variable {name}", _line(target))
    return None


def _declared(node: Node) -> Iterator[tuple[str, str, Node]]:
    """The variables that code declares, outside of functions in it, with their types and declarators."""
    pending = [node]
    while pending:
        descendant = pending.pop()
        if descendant.type == "declaration":
            for declarator in descendant.children_by_field_name("declarator"):
                target = (
                    declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
                )
                yield _root(_text(target)), _text(descendant.child_by_field_name("type")), target
        pending += [child for child in reversed(descendant.named_children) if child.type != "function_definition"]


def _unresolved(nodes: list[Node], constants: Mapping[str, float]) -> set[str]:
    """The macros of a file that are no numbers."""
    return {
        _text(node.child_by_field_name("name"))
        for node in nodes
        if node.type in ("preproc_def", "preproc_function_def")
    } - {*constants}


def _aliases(root: Node) -> dict[str, str]:
    """The other names that a file gives to types."""
    aliases: dict[str, str] = {}
    for child in root.named_children:
        if child.type in ("type_definition", "alias_declaration"):
            name = child.child_by_field_name("declarator") or child.child_by_field_name("name")
            kind = child.child_by_field_name("type")
            if name is not None and kind is not None:
                aliases[_text(name)] = aliases.get(_base(_text(kind)), _base(_text(kind)))
    return aliases


def read_cuda(source: str, file: str, work: SourceWork) -> Reading:
    """Read the kernels of a CUDA or ThunderKittens source. Raises UsageError for a text that is not CUDA C++, and
    if the packages of the extra `port` are not installed."""
    data = source.encode("utf-8")
    root = _parser().parse(data).root_node
    nodes = list(_nodes(root))
    definitions = [node for node in nodes if node.type == "function_definition"]
    device = [
        definition
        for definition in definitions
        if _qualified(definition, "__global__") or _qualified(definition, "__device__")
    ]
    error = next((node for node in nodes if node.type == "ERROR" or node.is_missing), None)
    if error is not None and not device:
        line, column = error.start_point[0] + 1, error.start_point[1] + 1
        raise UsageError(
            "U027", "the source is not valid CUDA C++, and has no kernel", hint="give the whole text of the file",
            span=Span(file, line, column, line, column + 1),
        )  # fmt: skip
    kittens = "kittens" in source
    defined = _defined(nodes)
    functions = {_name_of(definition): definition for definition in device}
    names = [_name_of(definition) for definition in definitions]
    rows = _KITTENS if kittens else _CUDA
    # Marks of what is too large to be read are left out.
    marks = [
        mark for definition in device if not is_large(_nodes(definition)) for mark in _marks(definition, rows, defined)
    ]
    marks += [_mark(node, "<<<>>>", rows["<<<>>>"]) for node in nodes if node.type == "kernel_call_syntax"]
    constants = _constants(root, nodes)
    ambiguous = {name for name in names if names.count(name) > 1 or name not in functions}
    file_of = _File(
        functions, ambiguous, constants, _unresolved(nodes, constants), _aliases(root),
        {name for name, *_ in _declared(root)},
    )  # fmt: skip
    kernels = [
        _CudaEvaluation(file_of, kittens, work).kernel(definition)
        for definition in device
        if _qualified(definition, "__global__")
    ]
    if not kernels and kittens:
        kernels = [
            ForeignKernel(
                _name_of(definition),
                _line(definition),
                (),
                unread="it is a part of a template of load, compute and store",
            )
            for definition in device[:1]
        ]
    marks = sorted(set(marks), key=lambda mark: (mark.line, mark.column))
    return Reading("ThunderKittens" if kittens else "CUDA", tuple(marks), tuple(kernels))


def parsed(source: str) -> Node:
    """The syntax tree of a source. Raises UsageError if the packages of the extra `port` are not installed."""
    return _parser().parse(source.encode("utf-8")).root_node


def _parser() -> Any:
    try:
        parser, grammar = importlib.import_module("tree_sitter"), importlib.import_module("tree_sitter_cuda")
    except ImportError as error:
        raise UsageError(
            "U027", f"reading CUDA and ThunderKittens needs the package {(error.name or '').replace('_', '-')}",
            hint=f"run {install_extra('port')}",
        ) from error  # fmt: skip
    return parser.Parser(parser.Language(grammar.language()))


def _nodes(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        descendant = pending.pop()
        yield descendant
        pending += reversed(descendant.children)


def _short(node: Node) -> str:
    return f"`{_text(node).splitlines()[0][:60]}`"


def _line(node: Node) -> int:
    return node.start_point[0] + 1


def _depth(node: Node) -> int:
    """How many nodes lie inside of each other."""
    deepest, pending = 0, [(node, 1)]
    while pending:
        descendant, depth = pending.pop()
        deepest = max(deepest, depth)
        pending += [(child, depth + 1) for child in descendant.named_children]
    return deepest


def _text(node: Node | None) -> str:
    """The text of a node; what cannot be parsed may lack one."""
    return "" if node is None else node.text.decode("utf-8", "replace")


def _qualified(function: Node, word: str) -> bool:
    return any(_text(child) == word for child in function.children)


def _declarator(function: Node) -> Node | None:
    return next((node for node in _nodes(function) if node.type == "function_declarator"), None)


def _name_of(function: Node) -> str:
    declarator = _declarator(function)
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    return _last(_text(name)) if name is not None else "kernel"


def _last(path: str) -> str:
    """The last name of a path, without template arguments."""
    return re.split(r"::|\.|->", re.sub(r"<.*", "", path, flags=re.S))[-1].strip()


def _defined(nodes: list[Node]) -> set[str]:
    """The names that a file defines: functions, types, template parameters."""
    names: set[str] = set()
    for node in nodes:
        match node.type:
            case "function_definition":
                names.add(_name_of(node))
            case (
                "struct_specifier"
                | "class_specifier"
                | "alias_declaration"
                | "enum_specifier"
                | "namespace_alias_definition"
            ):
                name = node.child_by_field_name("name")
                if name is not None:
                    names.add(_last(_text(name)))
            case "init_declarator" | "field_declaration" | "declaration" | "parameter_declaration":
                name = node.child_by_field_name("declarator")
                if name is not None:
                    names |= {
                        _text(identifier)
                        for identifier in _nodes(name)
                        if identifier.type in ("identifier", "field_identifier")
                    }
            case "type_definition" | "type_parameter_declaration" | "optional_type_parameter_declaration":
                names |= {_text(child) for child in node.children if child.type == "type_identifier"}
            case "preproc_def" | "preproc_function_def":
                names.add(_text(node.child_by_field_name("name")))
            case _:
                pass
    return names


def _constants(root: Node, nodes: list[Node]) -> dict[str, float]:
    """The macros and constants of a file that are numbers; whole ones, as C++ has them, are int."""
    constants: dict[str, float] = {}
    twice: set[str] = set()
    for child in root.named_children:
        is_macro = child.type == "preproc_def"
        kind = _text(child).split("=")[0] if child.type == "declaration" else ""
        for declarator in [child] if is_macro else child.children:
            if is_macro or (declarator.type == "init_declarator" and re.search(r"\bconst(expr)?\b", kind)):
                name = _text(declarator.child_by_field_name("name") or declarator.child_by_field_name("declarator"))
                value = declarator.child_by_field_name("value")
                # The parser takes what follows a comment for a text of its own.
                is_cut = is_macro and "/*" in _text(child) and not _text(child).endswith("\n")
                number = None if value is None or is_cut else _computed(_text(value), constants)
                # A macro is a text: outside of parentheses its parts belong to what is around it.
                is_single_token = (
                    value is not None and re.fullmatch(r"\s*([\w.]+|\w*\(.*\))\s*", _text(value)) is not None
                )
                is_whole = re.search(r"\b(unsigned|int|long|short|char|bool|size_t|u?int\d+_t)\b", kind) is not None
                twice |= {name} if name in constants else set[str]()
                if (
                    number is not None
                    and (is_single_token or not is_macro)
                    and (not is_whole or (float(number).is_integer() and 0 <= number <= _most(kind)))
                ):
                    # What is divided later goes by the type.
                    of_fractions = bool(_FRACTIONS & set(kind.split()))
                    constants[name] = int(number) if is_whole else float(number) if of_fractions else number
    gone = {
        _text(child)
        for node in nodes
        if node.type == "preproc_call" and _text(node).startswith("#undef")
        for child in node.children
    }
    return {name: number for name, number in constants.items() if name not in twice | gone}


def _dtype_of_whole(kind: str) -> str:
    """The dtype of a type of whole numbers."""
    bits = _bits_of_whole(kind)
    sign = "u" if re.search(r"\b(unsigned|size_t|uint\w*)\b", kind) else ""
    return "bool" if bits == 1 else f"{sign}int{bits}"


def _bits_of_whole(kind: str) -> int:
    """How many bits a type of whole numbers has."""
    names = {1: "bool", 8: "char|u?int8_t", 16: "short|u?int16_t", 64: "long|size_t|u?int64_t"}
    return next((bits for bits, name in names.items() if re.search(rf"\b({name})\b", kind)), 32)


def _most(kind: str) -> int:
    """The largest number that each constant of a type of whole numbers can be, signed or not."""
    bits = min(_bits_of_whole(kind), 32)
    return (1 << max(bits - 1, 1)) - 1


# Functions of constants, and the constants of <math.h> and <float.h>.
_OF_NUMBERS: Mapping[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log2": math.log2,
}  # fmt: skip
_OF_MATH: Mapping[str, float] = {
    "M_PI": math.pi, "M_SQRT2": math.sqrt(2), "M_SQRT1_2": math.sqrt(0.5), "M_2_SQRTPI": 2 / math.sqrt(math.pi),
    "M_LOG2E": math.log2(math.e), "M_LN2": math.log(2), "M_E": math.e,
    "INFINITY": math.inf, "FLT_MAX": 3.402823466e38, "FLT_EPSILON": 2.0**-23,
}  # fmt: skip


_LONGEST_CONSTANT = 200


def _computed(text: str, constants: Mapping[str, float]) -> float | None:
    """The value of an expression of numbers, an int if it is a whole one; None for another one."""

    def value(node: ast.expr) -> int | float:
        match node:
            case ast.Constant(int() | float() as number):
                return number
            case ast.Name(name):
                return constants[name] if name in constants else _OF_MATH[name]
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
                        quotient = abs(first) // abs(second)  # as C divides
                        return quotient if (first < 0) == (second < 0) else -quotient
                    case _:
                        return first / second
            case ast.Call(ast.Name(name), [argument]):
                return float(_OF_NUMBERS[name.removesuffix("f")](value(argument)))
            case _:
                raise ValueError(ast.dump(node))

    if len(text) > _LONGEST_CONSTANT or re.search(r"0[xXbB]|\d_|\*\*|//", text):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(re.sub(r"(?<=[\d.])[fF]\b", "", text.strip()), mode="eval")
        result = value(tree.body)
        if isinstance(result, int) and abs(result) >= 2**31:
            return None
    except (SyntaxError, ValueError, KeyError, ArithmeticError, RecursionError, MemoryError):
        return None
    return result if math.isfinite(result) else None


def _mark(node: Node, text: str, row: str) -> Mark:
    return Mark(node.start_point[0] + 1, node.start_point[1] + 1, text, row)


def _marks(function: Node, rows: Mapping[str, str], defined: set[str]) -> Iterator[Mark]:
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
                if any(child.type == "kernel_call_syntax" for child in node.children):
                    continue
                name = _last(_text(called))
                if (
                    name
                    and ("::" in _text(called) or name not in defined)
                    and not _PLAIN_TYPES.match(name)
                    and re.match(r"^\w+$", name)
                ):
                    row = "multicast" if "cluster" in _text(called).split("::") else rows.get(name, "")
                    yield _mark(called, re.sub(r"<.*", "", _text(called), flags=re.S), row)
            case "type_identifier":
                if text in defined or _PLAIN_TYPES.match(text) or _is_called(node):
                    continue
                yield _mark(node, text, rows.get(text, ""))
            case "gnu_asm_expression":
                code = _text(node)
                asm_row = next((row for word, row in rows.items() if "." in word and word in code), rows["asm"])
                yield _mark(node, "asm", asm_row)
            case "preproc_call" if _text(node).startswith("#pragma"):
                yield _mark(node, _text(node).strip(), rows["#pragma"])
            case _ if text.startswith("__") and node.type != "identifier" and text != "__launch_bounds__":
                yield _mark(node, text, rows.get(text, ""))
            case _:
                pass


def _is_called(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.type in ("call_expression", "template_function")


@dataclass(frozen=True)
class _File:
    """What a file defines: its functions on the GPU, names of several or other functions, its macros, and its variables
    outside of functions."""

    functions: Mapping[str, Node]
    ambiguous: set[str]
    constants: Mapping[str, float]
    macros: set[str]
    aliases: Mapping[str, str]
    variables: set[str]


@dataclass
class _CudaEvaluation:
    """The values of one kernel."""

    file: _File
    kittens: bool
    work: SourceWork
    known: dict[str, Value] = field(default_factory=dict[str, Value])
    tensors: dict[str, Input] = field(default_factory=dict[str, Input])
    stores: list[Output] = field(default_factory=list[Output])
    scalars: dict[str, None] = field(default_factory=dict[str, None])
    lengths: set[str] = field(default_factory=set[str])
    turning: str = ""
    columns: dict[str, bool] = field(default_factory=dict[str, bool])
    shapes: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
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
    # The variable of the loop around a statement that halves it, and whether it begins with half of the lanes; the
    # threads that conditions around a statement choose, what is in shared memory, and what warps of a block join.
    halved: str = ""
    over_lanes: bool = False
    chosen: list[str] = field(default_factory=list[str])
    shared: set[str] = field(default_factory=set[str])
    of_warps: set[str] = field(default_factory=set[str])
    # What the first thread alone has stored, what single threads have left in shared memory, and within how many
    # conditions on threads the loop is that a statement is in.
    stored_once: list[Output] = field(default_factory=list[Output])
    set_once: list[Value] = field(default_factory=list[Value])
    chosen_outside: int = 0
    within: str = ""
    branches: int = 0
    unsigned: set[str] = field(default_factory=set[str])
    # Parameters of the kernel that are whole numbers; those of them, and of functions, of fewer bits than an index.
    counting: set[str] = field(default_factory=set[str])
    narrow: set[str] = field(default_factory=set[str])
    types: dict[str, str] = field(default_factory=dict[str, str])
    # The types of the elements of tensors.
    elements: dict[str, str] = field(default_factory=dict[str, str])
    whole_tensors: set[str] = field(default_factory=set[str])
    bounds: dict[Place, Place] = field(default_factory=dict[Place, Place])
    templates: set[str] = field(default_factory=set[str])
    # How many elements the vectors that it mentions have.
    vectors: set[str] = field(default_factory=set[str])
    # The defaults of parameters, None for one that is not understood.
    of_template: dict[str, float | None] = field(default_factory=dict[str, "float | None"])
    defaults: dict[str, float | None] = field(default_factory=dict[str, "float | None"])

    def kernel(self, function: Node) -> ForeignKernel:
        """Read a kernel; what is not understood is why it is unread."""
        name, line = _name_of(function), _line(function)
        self.work.begin()
        try:
            self.evaluate(function)
        except Refused as refusal:
            return ForeignKernel(name, line, (), unread=str(refusal))
        # In indices, whole constants are sizes, which a skeleton has as parameters; in values they are numbers.
        self.stores = [replace(store, value=replaced(store.value, self.constant)) for store in self.stores]
        return ForeignKernel(
            name, line, tuple(self.stores), tuple(self.scalars), frozenset(self.lengths),
            self.unread() or self.unnamed(), tuple(self.variants.texts), bounds=self.bounds,
            defaults={name: default for name, default in self.defaults.items() if default is not None},
            parameters=tuple(self.parameters(function)),
            constants={name: value for name, value in self.file.constants.items() if isinstance(value, int)},
            has_types=True,
            joins_warps=bool(self.of_warps),
        )  # fmt: skip

    def parameters(self, function: Node) -> Iterator[Parameter]:
        """The parameters of a kernel and those of its template."""
        used = {_text(node) for node in _nodes(function.child_by_field_name("body")) if node.type == "identifier"}
        kinds = {name: self.file.aliases.get(kind, kind) for name, (kind, _) in _types_of(function).items()}
        for name, pointer in _parameters(function):
            dtype = _DTYPES.get(self.elements.get(name, ""), "")
            if _CONVERTING.match(kinds.get(name, "")):
                dtype = _dtype_of_whole(kinds[name])
            yield Parameter(name, "tensor" if pointer else "number", dtype, name in used)
        types = _types_of_template(function)
        for name in sorted(_templates(function)):
            yield Parameter(name, "type" if name in types else "constant", used=name in used)

    def is_element(self, kind: str, function: Node) -> bool:
        """Whether tensors may have elements of a type: a fraction, a number that is checked later, or a parameter."""
        return kind in _FRACTIONS or _CONVERTING.match(kind) is not None or kind in _templates(function)

    def evaluate(self, function: Node) -> None:
        name, line = _name_of(function), _line(function)
        if not is_name(name):
            raise Refused(f"the name {_short(_declarator(function))}", _line(function))
        refuse_large(name, _nodes(function), lambda: 0)
        for callee in self.called(function):
            refuse_large(_name_of(callee), _nodes(callee), partial(_depth, callee))
            if refusal := _not_understood(callee, self.kittens, self.file):
                raise refusal
        for name, pointer in _parameters(function):
            if pointer:
                self.tensors[name] = Input(name, place=None if self.kittens else NOWHERE)
                self.elements[name], simple = _types_of(function)[name]
                self.elements[name] = self.file.aliases.get(self.elements[name], self.elements[name])
                if not self.kittens and (not simple or not self.is_element(self.elements[name], function)):
                    raise Refused(f"the type of {name}", line)
            else:
                self.known[name] = Scalar(name)
                self.scalars[name] = None
        self.templates |= _templates(function)
        above = function.parent
        if above is not None and above.type == "template_declaration":
            self.of_template |= _defaults(above.child_by_field_name("parameters"), self.file)
        self.defaults |= _defaults(function, self.file)
        self.integers |= _integers(function, self.file.aliases) | self.templates | {
            name for name, value in self.file.constants.items() if isinstance(value, int)
        }  # fmt: skip
        self.counting |= self.scalars.keys() & self.integers
        self.unsigned |= _integers(function, self.file.aliases, unsigned=True)
        self.narrow |= _narrow(function, self.file.aliases)
        self.whole_tensors |= _whole_tensors(function)
        vectors = {name[-1] for names in _VECTORS.values() for name in names if _mentions(function, name)}
        self.vectors |= vectors
        self.run(function.child_by_field_name("body"))

    def called(self, function: Node) -> list[Node]:
        """A function and those of the file that it calls, directly or not."""
        functions, pending = {_name_of(function): function}, [function]
        while pending:
            for node in _nodes(pending.pop()):
                if node.type == "call_expression":
                    name = _last(_text(node.child_by_field_name("function")))
                    if name in self.file.ambiguous:
                        raise Refused(f"the function {name}", _line(node))
                    if name in self.file.functions and name not in functions:
                        functions[name] = self.file.functions[name]
                        pending.append(functions[name])
        return list(functions.values())

    def bounded(self, condition: Value) -> bool:
        """Whether a condition holds inside of tensors; where that is a part of a row, all parts must be taken. Of the
        first element of a vector, it holds for all of them, as tensors have whole vectors."""
        if self.vectors:
            condition = replaced(condition, self.of_vector)
        if not is_bound(condition):
            return False
        for index, length in bounds_of(condition):
            if self.bounds.setdefault(index, length) != length:
                raise TooLarge(
                    f"it compares an index with {places.written(self.bounds[index])} and with {places.written(length)}"
                )
        self.partial |= parts_of_lengths(condition)
        return True

    def of_vector(self, value: Value) -> Value | None:
        """All elements of a vector for the index of its first one."""
        if not isinstance(value, Index) or len(self.vectors) > 1 or places.lanes(value.place) > 1:
            return None
        (width,) = self.vectors
        is_first = value.place and all(factor == float(width) for _, factor in value.place)
        return replace(value, place=places.plus(value.place, places.lane(width))) if is_first else None

    def constant(self, value: Value) -> Value | None:
        if not isinstance(value, Scalar) or value.name in self.scalars:
            return None
        number = self.file.constants.get(value.name, _OF_MATH.get(value.name))
        return None if number is None else Number(float(number), isinstance(number, float))

    def unnamed(self) -> str:
        """Why the kernel is not known: a value has a name that is neither a parameter nor a constant of the file."""
        counts = set(map(places.written, self.bounds.values())) - self.lengths
        inputs = {term.tensor for store in self.stores for term in walk(store.value) if isinstance(term, Input)}
        dtypes = {
            tensor: _DTYPES[self.elements[tensor]]
            for tensor in sorted({*inputs, *(store.tensor for store in self.stores)})
            if self.elements.get(tensor) in _DTYPES
        }
        if len({*dtypes.values()}) > 1:
            listed = ", ".join(f"{tensor} {dtype}" for tensor, dtype in dtypes.items())
            return f"its tensors have several dtypes: {listed}"
        for store in self.stores:
            if store.tensor in self.whole_tensors or _CONVERTING.match(self.elements.get(store.tensor, "")):
                return f"{store.tensor} has whole numbers"
            for term in without_indices(store.value):
                if isinstance(term, Scalar) and term.name not in self.scalars:
                    return f"what {term.name} is, is not known"
                if isinstance(term, Scalar) and self.defaults.get(term.name, 0.0) is None:
                    return f"the default of {term.name} is not known"
                if isinstance(term, Formula) and term.name in ("*", "<<") and self.is_product_of_lengths(term):
                    return "a product of lengths is one of its values"
                if isinstance(term, Scalar) and term.name in counts:
                    return f"{term.name}, which counts elements, is one of its values"
                if isinstance(term, Scalar) and term.name in self.lengths and len(self.lengths) > 1:
                    return f"it is not known which of {', '.join(sorted(self.lengths))} is the length of a row"
                if isinstance(term, Input) and (
                    term.tensor in self.whole_tensors or _CONVERTING.match(self.elements.get(term.tensor, ""))
                ):
                    return f"{term.tensor} has whole numbers"
        return ""

    def is_product_of_lengths(self, product: Value) -> bool:
        """Whether whole parameters are multiplied with each other or a large number, perhaps beyond their type."""
        if overflowing(product) & self.integers:
            return True
        factors = product.arguments if isinstance(product, Formula) else ()
        return is_constant(product) and all(self.counting & scalars_of(factor) for factor in factors)

    def unread(self) -> str:
        """Why the kernel is not known: it goes over parts of rows, and not over the others."""
        stored_parts = {store.part for store in self.stores}
        missing = next(iter(sorted(self.partial - stored_parts)), "")
        inputs = [term for store in self.stores for term in walk(store.value) if isinstance(term, Input)]
        sizes: dict[str, set[str]] = {}
        for position in (*(access.place or NOWHERE for access in (*self.stores, *inputs)), *self.bounds):
            for axis, size in places.sizes_of_groups(position, self.file.constants):
                sizes.setdefault(axis, set()).add(size)
        several = [axis for axis, axis_sizes in sizes.items() if len(axis_sizes) > 1]
        if several:
            return f"its groups have different numbers of threads along {several[0]}"
        return f"only elements up to {missing} are read" if missing else ""

    def run(self, node: Node | None) -> None:
        if node is None:
            return
        self.work.step()
        match node.type:
            case "compound_statement" | "else_clause":
                for child in node.named_children:
                    self.run(child)
            case "expression_statement":
                for child in node.named_children:
                    self.effect(child)
            case "declaration":
                self.declare(node)
            case "if_statement":
                self.branch(node)
            case "for_statement":
                self.loop(node, node.child_by_field_name("initializer"))
            case "return_statement":
                is_free = self.depth and _is_last(node)
                if self.left or (not is_free and (self.loops or (self.branches and self.depth))):
                    raise Refused("a return that some elements take", _line(node))
                for child in node.named_children:
                    self.returned = self.value(child)
                self.left = True
            case "comment" | "preproc_call":
                pass
            case _:
                # The first part of a for statement is a statement or an expression.
                self.effect(node)

    def effect(self, node: Node) -> None:
        """An expression as a statement: what it does must be known."""
        if self.left:
            raise Refused("what follows a return", _line(node))
        if node.type == "call_expression":
            name = _last(_text(node.child_by_field_name("function")))
            if name in _BARRIERS and name not in self.file.functions:
                return
        if node.type == "comment":
            return
        self.value(node)

    def branch(self, node: Node) -> None:
        """Of variants that a constant chooses, the first one; of elements beyond the tensor, those that are there; what
        one thread does is done once; where elements decide, both sides are selected from."""
        condition = self.value(node.child_by_field_name("condition"))
        then, otherwise = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if is_constant(condition) and not self.is_argument(condition, node):
            left_before = self.left
            self.run(then if self.holds(condition, node, never=_leaves(then)) else otherwise)
            if self.left and not left_before and not self.depth:
                raise Refused("what follows a return", _line(node))
        elif self.kittens:
            raise Refused(f"a branch on {_short(node.child_by_field_name('condition'))}", _line(node))
        elif self.bounded(condition):
            self.run(then)
            self.leave()
            if otherwise is not None:
                self.other(condition, otherwise)
        elif self.bounded(negated(condition)):
            self.run(otherwise)
            self.leave()
            if not _leaves(then):
                self.other(condition, then)
            self.left = False
        elif threads := _threads(condition):
            first, within, before = len(self.stores), self.within, dict(self.known)
            self.within = _text(node.child_by_field_name("condition")).strip("()")
            self.chosen.append(warps.chosen_threads(condition))
            self.run(then)
            self.within, chosen = within, [*self.chosen]
            self.chosen.pop()
            reason = "elements that a condition on threads chooses"
            once = warps.is_first_thread(chosen)
            self.stores[first:] = [
                store
                if any(store is stored for stored in self.stored_once)
                else replace(store, value=warps.of_first_thread(store.value))
                if once and not threads & _threads_of(store.place)
                else _unread(store, reason)
                for store in self.stores[first:]
            ]
            self.stored_once += self.stores[first:] if once else []
            for name, value in self.known.items():
                step = self.halved and (reduction := _reduction_of(value)) is not None and reduction.together
                if value is not before.get(name) and not step and not any(value is shared for shared in self.set_once):
                    after = warps.after_branch(value, chosen, name in self.shared, self.written.get(name, ()))
                    self.known[name] = after or Unread(reason)
                    self.set_once += [after] if after is not None and name in self.shared else []
            if self.left:
                self.narrowed |= threads
            self.left = False
            if otherwise is not None:
                self.other(condition, otherwise)
        else:
            self.sides(condition, [side for side in (then, otherwise) if side is not None])

    def leave(self) -> None:
        """After a branch that the elements inside of the tensor take: if it ended with a return, what follows is not
        for them."""
        if self.left:
            self.condition = self.condition or "what follows a return"
        self.left = False

    def is_argument(self, condition: Value, node: Node) -> bool:
        """Whether a condition is about arguments: both sides are selected from."""
        names = {term.name for term in walk(condition) if isinstance(term, Scalar)}
        arguments = names & self.scalars.keys()
        if arguments and (names - arguments or arguments & self.counting):
            raise Refused(f"a choice by {_short(node.child_by_field_name('condition'))}", _line(node))
        return bool(arguments)

    def holds(self, condition: Value, node: Node, never: bool = False) -> bool:
        """Whether a condition on constants of the kernel holds in the variant that is read."""
        test = node.child_by_field_name("condition")
        unknown = {term.name for term in walk(condition) if isinstance(term, Scalar)} - self.templates
        if unknown:
            raise Refused(f"a choice by {_short(test)}, which is no constant,", _line(node))
        if any(term.name in self.of_template for term in walk(condition) if isinstance(term, Scalar)):
            number = _evaluated(condition, self.of_template)
            if number is None:
                raise Refused(f"a choice by {_short(test)}, whose default is not known,", _line(node))
            self.variants.tell(_text(test), bool(number))
            return bool(number)
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
        self.stores[first:] = [_unread(store, "a branch on indices") for store in self.stores[first:]]

    def sides(self, condition: Value, branches: list[Node]) -> None:
        """Code under a condition on elements, or on indices in a way that is not known: what it changes is selected."""
        on_elements = not is_index(condition) and not _only_indices(condition)
        reason = "a branch on elements" if on_elements else "a branch on indices"
        before, first = dict(self.known), len(self.stores)
        known_after: list[dict[str, Value]] = []
        stores: list[list[Output]] = []
        self.branches += 1
        for branch in branches:
            self.known = dict(before)
            self.run(branch)
            known_after.append(self.known)
            stores.append(self.stores[first:])
            del self.stores[first:]
        self.branches -= 1
        if self.left:
            self.condition = reason
        self.left = False
        then, otherwise = known_after[0], known_after[1] if len(known_after) > 1 else before
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
        if self.kittens and self.declared_tile(node, kind):
            return
        for declarator in node.children_by_field_name("declarator"):
            target = (
                declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
            )
            name = _root(_text(target))
            if _CONVERTING.match(kind):
                self.integers.add(name)
                self.unsigned |= {name} if _UNSIGNED.match(kind) else set[str]()
            elif _base(kind) == "auto" and declarator.type == "init_declarator":
                self.integers |= {name} if self.integral(declarator.child_by_field_name("value")) else set[str]()
            self.types[name] = kind
            self.shared |= {name} if "__shared__" in _text(node) else set[str]()
            if declarator.type != "init_declarator":
                if target.type not in ("array_declarator", "identifier"):
                    raise Refused(_short(declarator), _line(declarator))
                self.known[name] = Unread(f"{name}, which has no value yet")
                continue
            value = declarator.child_by_field_name("value")
            tensor = self.address(value) if self.is_address(value) else None
            if tensor is not None and (target.type == "pointer_declarator" or kind == "auto"):
                self.tensors[name] = tensor
            elif target.type == "identifier" and value.type != "initializer_list":
                self.known[name] = self.converted(self.value(value), kind)
            else:
                raise Refused(_short(declarator), _line(declarator))

    def declared_tile(self, node: Node, kind: str) -> bool:
        """A tile of ThunderKittens, or the allocator of its shared memory; whether it is one."""
        shape = re.fullmatch(r"[rs][tv]\w*<(\d+)(?:,\s*(\d+))?>", kind)
        if shape is None:
            return kind in ("shared_allocator", "alignment_dummy") or "alignment_dummy" in _text(node)
        for declarator in node.children_by_field_name("declarator"):
            name = _path(_text(declarator.child_by_field_name("declarator") or declarator))
            self.shapes[name] = float(shape[1]), float(shape[2] or 1)
            self.known[name] = Unread(f"{name}, which has no value yet")
            if declarator.type == "init_declarator" and f"allocate<{kind}>()" not in _text(declarator):
                raise Refused(_short(declarator), _line(declarator))
        return True

    def loop(self, node: Node, initializer: Node | None) -> None:
        turning, iteration, halved = self.turning, UNKNOWN, (self.halved, self.over_lanes)
        self.halved, self.over_lanes = _halved(node) if initializer is not None else ("", False)
        outside, self.chosen_outside = self.chosen_outside, len(self.chosen)
        if initializer is None:
            raise Refused("a loop without a variable", _line(node))
        begins: dict[str, Place] = {}
        if initializer is not None:
            self.run(initializer)
            for descendant in _nodes(initializer):
                if descendant.type in ("init_declarator", "assignment_expression"):
                    side = descendant.child_by_field_name(
                        "declarator" if descendant.type == "init_declarator" else "left"
                    )
                    name = _root(_text(side))
                    begins[name] = place_of(self.known.get(name, ZERO))
                    self.turning = self.turning if name in begins and len(begins) > 1 else name
            iteration, at = self.turns(node, begins)
            kinds = [_base(self.types[name]) for name in begins if name in self.types]
            if any(
                kind != "auto" and (kind == "bool" or not _CONVERTING.match(kind) or _range(kind)[1] < 2**31 - 1)
                for kind in kinds
            ):
                iteration = UNKNOWN
            if iteration == UNKNOWN and not self.halved:
                raise Refused("the range of a loop", _line(node))
            for name in begins:
                value = self.known.get(name, ZERO)
                axes = axes_of(value)
                self.known[name] = Index(axes if axes & {"p", "r"} else frozenset({"k"}), scalars_of(value), at[name])
            self.value(node.child_by_field_name("condition"))
        body = node.child_by_field_name("body")
        turning_subscript = re.compile(rf"\[[^\]]*\b{re.escape(self.turning or '?')}\b")
        changed = {path for descendant in _nodes(body) if (path := self.target(descendant, turning_subscript))}
        before = {name: self.known[name] for name in changed if name in self.known and not is_index(self.known[name])}
        moving: dict[str, Value] = {
            name: descendant for name in changed if isinstance(descendant := self.known.get(name), Index)
        }
        moving |= {name: self.tensors[name] for name in changed if name in self.tensors}
        for name, value in before.items():
            self.known[name] = Carried(name, value)
        self.loops += 1
        self.advance(moving, iteration, body)
        stores = len(self.stores)
        self.run(body)
        if len(self.stores) > stores and not self.kittens:
            for name in sorted(changed - self.tensors.keys() - begins.keys()):
                if name in before and not _begins_anew(name, body):
                    raise Refused(f"{name}, which goes on in a loop that stores,", _line(node))
        if iteration == UNKNOWN:
            for name, value in before.items():
                if not _is_step(value, self.known[name]):
                    raise Refused(f"what a loop over all threads makes of {name}", _line(node))
        self.stores[stores:] = [stored_in_turns(store, iteration) for store in self.stores[stores:]]
        self.loops -= 1
        if self.left:
            self.condition = self.condition or "a loop that is left"
        self.left = False
        for name, value in before.items():
            self.known[name] = _settled(name, value, self.known[name], iteration)
        for name, value in moving.items():
            after = self.tensors[name] if isinstance(value, Input) else self.known[name]
            if after != value and isinstance(after, Input):
                self.tensors[name] = replace(after, place=UNKNOWN)
            elif after != value and isinstance(after, Index):
                self.known[name] = replace(after, place=UNKNOWN)
        for name in {*begins, *changed}:
            # What the last turn had must not be taken for what another loop has.
            last = self.known.get(name)
            if isinstance(last, Index) and places.atoms(last.place) & places.atoms(iteration):
                self.known[name] = Unread("the last turn of a loop")
        for name in begins:
            if iteration == UNKNOWN:
                self.known[name] = Unread("the last turn of a loop")
        self.turning, (self.halved, self.over_lanes), self.chosen_outside = turning, halved, outside

    def turns(self, node: Node, begins: Mapping[str, Place]) -> tuple[Place, dict[str, Place]]:
        """The number of a turn of a loop, and what its variables, which begin at these places, are in it."""
        unknown = UNKNOWN, dict.fromkeys(begins, UNKNOWN)
        steps: dict[str, Place] = {}
        for update in _listed(node.child_by_field_name("update")):
            side = update.child_by_field_name("argument" if update.type == "update_expression" else "left")
            name = "" if side is None else _root(_text(side))
            if name not in begins or name in steps:
                return unknown
            if _mentions(update.child_by_field_name("right"), *begins):
                # Its steps are not all the same.
                return unknown
            if update.type == "update_expression":
                steps[name] = places.number(1.0) if "++" in _text(update) else UNKNOWN
            else:
                is_addition = _text(update.child_by_field_name("operator")) == "+="
                steps[name] = place_of(self.value(update.child_by_field_name("right"))) if is_addition else UNKNOWN
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
        if _mentions(condition.child_by_field_name("right"), *begins):
            return unknown
        end = place_of(self.value(condition.child_by_field_name("right")))
        start = begins[name]
        if operator == "<=":
            end = places.plus(end, places.number(1.0))
        if start and {atom[0] for atom in places.atoms(start)} == {"p"} and places.is_count(end):
            # A persistent loop: another number of a block.
            program_index = places.atom("p", f"{places.written(start)} by {places.written(steps[name])}")
            return program_index, {counter: program_index if counter == name else UNKNOWN for counter in begins}
        if not _strides(start, steps[name]):
            return unknown
        iteration, at = places.turns(self.loops, start, end, steps[name])
        self.lengths |= places.length_of(end)
        return iteration, {
            counter: at if counter == name else places.plus(begins[counter], places.times(iteration, steps[counter]))
            for counter in begins
        }

    def advance(self, moving: Mapping[str, Value], iteration: Place, body: Node) -> None:
        """Move addresses and indices that each turn of a loop moves by the same distance to the current turn."""
        if not moving:
            return
        values, tensors, stores = dict(self.known), dict(self.tensors), len(self.stores)
        variant_state, left_before, condition = self.variants.state(), self.left, self.condition
        self.run(body)
        self.left, self.condition = left_before, condition
        after: dict[str, Value] = self.known | self.tensors
        self.known, self.tensors = values, tensors
        self.variants.reset(variant_state)
        del self.stores[stores:]
        for name, value in moving.items():
            moved = after[name]
            if isinstance(value, Input) and isinstance(moved, Input) and value.place is not None:
                self.tensors[name] = replace(value, place=_advanced(value.place, moved.place or UNKNOWN, iteration))
            elif isinstance(value, Index) and isinstance(moved, Index):
                self.known[name] = replace(value, place=_advanced(value.place, moved.place, iteration))
            elif moved != value:
                raise Refused(f"what a loop makes of {name}", _line(body))

    def target(self, node: Node, subscript: re.Pattern[str] | None) -> str:
        """The variable that a node changes, unless each turn changes another element of it."""
        if node.type == "update_expression":
            return _path(_text(node.child_by_field_name("argument")))
        if node.type == "assignment_expression":
            target = _text(node.child_by_field_name("left"))
            return "" if subscript is not None and subscript.search(target) else _path(target)
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
            case "pointer_expression" | "parenthesized_expression":
                inner = [self.address(child) for child in node.named_children]
                return next((address for address in inner if address is not None), None)
            case "cast_expression":
                kind = _text(node.child_by_field_name("type"))
                return self.seen_as(self.address(node.child_by_field_name("value")), kind)
            case "call_expression" if _CASTS.match(_text(node)):
                kind = _text(node.child_by_field_name("function")).partition("<")[2].rpartition(">")[0]
                return self.seen_as(self.address(node.child_by_field_name("arguments").named_children[0]), kind)
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
                for pointer, offset in (sides, sides[::-1]):
                    base = self.address(pointer) if sign in "+-" and self.is_address(pointer) else None
                    if base is not None:
                        by = self.value(offset)
                        return _moved(base, [by if sign == "+" else operation("*", Number(-1.0), by)])
                return None
            case _:
                return None

    def seen_as(self, address: Input | None, kind: str) -> Input | None:
        """An address as one of another type: of several elements of the tensor's at once, or of unknown ones."""
        if address is None or "*" not in kind:
            return address
        element_type, base = self.elements.get(address.tensor, ""), self.file.aliases.get(_base(kind), _base(kind))
        if base in _VECTORS.get(element_type, ()) and address.place is not None and places.lanes(address.place) == 1:
            # All elements of a vector.
            return replace(address, place=places.plus(address.place, places.lane(base[-1])))
        fits = base == element_type or element_type in self.templates
        return address if fits else replace(address, place=UNKNOWN)

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
        value = self.known.get(path, Unread(path))
        written = self.written.get(path)
        reduction = _reduction_of(_plain(value))
        if isinstance(value, Carried) or reduction is not None:
            # What threads have added up is the first one's.
            indices = [place_of(index) for index in self.all_indices(node)]
            plain = _plain(value)
            if isinstance(plain, Reduced) and isinstance(plain.together, str):
                element = warps.element(plain, tuple(indices))
                if element is None:
                    raise Refused(f"an element of what warps have, {_short(node)},", _line(node))
                return element
            if reduction is not None and indices != [NOWHERE]:
                raise Refused(f"an element of a reduction, {_short(node)},", _line(node))
            return value
        if written is None:
            return value
        read = tuple(place_of(index) for index in self.all_indices(node))

        def change(value: Value) -> Value | None:
            match value:
                case Reduced():
                    return value
                case Input(place=place) if place is not None:
                    moved = places.moved_to(place, written, read)
                    return replace(value, place=moved if value.by is None or moved == place else UNKNOWN)
                case _:
                    return None

        return replaced(value, change)

    def all_indices(self, node: Node) -> list[Value]:
        """The indices of all axes."""
        values: list[Value] = []
        while node.type == "subscript_expression":
            values = [*self.indices(node), *values]
            node = node.child_by_field_name("argument")
        return values

    def indices(self, node: Node) -> list[Value]:
        arguments = node.child_by_field_name("indices")
        if arguments is None:
            return []
        if len(arguments.named_children) != 1:
            raise Refused(_short(node), _line(node))
        return [self.value(arguments.named_children[0])]

    def value(self, node: Node | None) -> Value:
        if node is None:
            return ZERO
        self.work.step()
        match node.type:
            case "number_literal":
                return Number(_number(node), is_float=not _WHOLE_LITERAL.fullmatch(_text(node)))
            case "identifier":
                name = _text(node)
                if name == "warpSize" and name not in self.known:
                    return Number(32.0)
                if name in self.known:
                    value = self.known[name]
                    return warps.element(value, ()) or value if isinstance(value, Reduced) else value
                if name in self.tensors or name not in {*self.templates, *self.file.constants, *_OF_MATH, *_ENDS}:
                    raise Refused(f"the name {name}", _line(node))
                return Scalar(name)
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
                if not re.search(r"\.[xyzw]$", path) and not self.kittens:
                    raise Refused(_short(node), _line(node))
                if path not in self.known and re.search(r"\.[xyzw]$", path):
                    # One of several elements at once.
                    lane = places.atom("w", path[-2:])
                    return replaced(self.known.get(path[:-2], Scalar(path)), lambda term: _in_lane(term, lane, 1.0))
                return self.known.get(path, Scalar(path))
            case "parenthesized_expression" | "condition_clause" | "cast_expression" | "init_declarator":
                inner = [child for child in node.named_children if child.type != "type_descriptor"]
                inner_value = self.value(inner[-1]) if inner else ZERO
                if node.type == "cast_expression":
                    kind = _text(node.child_by_field_name("type"))
                    if not _TYPES.fullmatch(kind) and kind not in self.templates:
                        raise Refused(_short(node), _line(node))
                    return self.converted(inner_value, kind)
                return inner_value
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
                if tensor is None and isinstance(self.known.get(_root(_text(node))), Scalar):
                    raise Refused(_short(node), _line(node))
                return self.read_again(node) if tensor is None else read_back(tensor, self.stores)
            case "assignment_expression":
                return self.assigned(node)
            case "comma_expression":
                return [self.value(child) for child in node.named_children][-1]
            case "call_expression":
                return self.call(node)
            case "true" | "false":
                return Number(float(node.type == "true"))
            case _:
                raise Refused(_short(node), _line(node))

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
        if node.type == "pointer_expression" and not self.kittens:
            raise Refused(_short(node), _line(node))
        inner = self.value(argument)
        match _text(node)[0]:
            case "-" if any(
                re.fullmatch(r"\d\w*[uU]\w*", _text(descendant)) or _text(descendant) in self.unsigned
                for descendant in _nodes(argument)
            ):
                return Unread("arithmetic on unsigned numbers")
            case "-":
                return (
                    Number(-inner.value, inner.is_float)
                    if isinstance(inner, Number)
                    else operation("*", Number(-1.0), inner)
                )
            case "!":
                return negated(inner)
            case "~":
                return Unread("~")
            case _:
                return inner

    def binary(self, node: Node) -> Value:
        name = _text(node.child_by_field_name("operator"))
        left, right = (self.value(node.child_by_field_name(side)) for side in ("left", "right"))
        self.check_whole(name, node, left, right)
        if name in "+-*/" and all(self.is_half(node.child_by_field_name(side)) for side in ("left", "right")):
            return self.rounded(operation(name, left, right))
        if name in ("%", "&"):
            self.refuse_lengths(node, left, right)
        if name == "+" and Number(0.0) in (left, right) and not (is_constant(left) and is_constant(right)):
            literal = node.child_by_field_name("left" if left == Number(0.0) else "right")
            if not is_index(left) and not is_index(right) and literal.type == "number_literal":
                # It makes 0.0 of -0.0.
                return Formula("+", (left, right))
        if name in ("<", "<=", ">", ">="):
            for operand, counterpart in ((left, right), (right, left)):
                # Elements of one row; with a number of the block they count all elements.
                if (
                    is_index(operand)
                    and "r" in axes_of(operand)
                    and "p" not in axes_of(operand)
                    and isinstance(counterpart, Scalar)
                ):
                    self.lengths.add(counterpart.name)
        if name == "/" and (is_index(left) or (self.kittens and is_constant(left) and is_constant(right))):
            # Coordinates and lengths are whole numbers.
            name = "//"
        counterpart = node.child_by_field_name("right")
        raw = self.known.get(_path(_text(counterpart))) if counterpart.type == "subscript_expression" else None
        if name == "+" and raw is not None and self.address(counterpart) is None and _plain(left) == _plain(raw):
            # A step of a reduction in shared memory.
            return self.halving("sum", left, node.child_by_field_name("left"), counterpart)
        is_whole = self.integral(node.child_by_field_name("left")) and self.integral(counterpart)
        is_negative = any(isinstance(operand, Number) and operand.value < 0 for operand in (left, right))
        if is_negative and is_whole and name in _OF_SIGNS and self.is_unsigned(node):
            return Unread("arithmetic on unsigned numbers")
        if name == "/" and is_whole:
            name = "//"
            if isinstance(left, Number) and isinstance(right, Number) and right.value:
                return Number(float(int(left.value / right.value)))
        result = self.arithmetic(name, node, left, right)
        if result is not None:
            return result
        for operand, step in ((left, right), (right, left)) if name == "+" else ():
            if isinstance(step, Formula) and step.name in _SHUFFLED and _plain(operand) == _plain(step.arguments[0]):
                return self.joined("sum", step, node)
        return operation({"&&": "&", "||": "|"}.get(name, name), left, right)

    def is_half(self, node: Node) -> bool:
        """Whether an expression is a number of 16 bits."""
        match node.type:
            case "identifier":
                return _is_half(self.file.aliases.get(kind := _base(self.types.get(_text(node), "")), kind))
            case "subscript_expression" | "pointer_expression":
                tensor = self.address(node if node.type == "subscript_expression" else node.named_children[-1])
                kind = (
                    self.elements.get(tensor.tensor, "")
                    if tensor is not None
                    else self.types.get(_path(_text(node)), "")
                )
                return _is_half(self.file.aliases.get(_base(kind), _base(kind)))
            case "parenthesized_expression" | "unary_expression":
                return self.is_half(node.named_children[-1])
            case "binary_expression":
                return all(self.is_half(node.child_by_field_name(side)) for side in ("left", "right"))
            case "conditional_expression":
                return self.is_half(node.child_by_field_name("consequence"))
            case "cast_expression" | "call_expression":
                return self.rounds(node) or (
                    _last(_text(node.child_by_field_name("function") or node)) in ("__ldg", "__ldcs", "__ldcg")
                    and any(
                        self.is_half_address(child) for child in node.child_by_field_name("arguments").named_children
                    )
                )
            case _:
                return False

    def rounded(self, value: Value) -> Value:
        """A value of 16 bits: what has no more is as it is, and so are small whole numbers."""
        match value:
            case Input(tensor=tensor) if _is_half(self.elements.get(tensor, "")):
                return value
            case Number(number) if abs(number) <= 256 and number.is_integer():
                return value
            case Unread() | Formula("rounded"):
                return value
            case _:
                return Formula("rounded", (value,))

    def is_half_address(self, node: Node) -> bool:
        tensor = self.address(node)
        return tensor is not None and _is_half(self.elements.get(tensor.tensor, ""))

    def rounds(self, node: Node) -> bool:
        """Whether a node converts to 16 bits."""
        if node.type == "cast_expression":
            kind = _base(_text(node.child_by_field_name("type")))
        elif node.type == "call_expression":
            function = _text(node.child_by_field_name("function"))
            cast = re.fullmatch(r"static_cast<([^<>]*)>", function)
            if cast is None:
                return _ROUNDING.match(function) is not None
            kind = _base(cast[1])
        else:
            return False
        return _is_half(self.file.aliases.get(kind, kind))

    def check_whole(self, name: str, node: Node, left: Value, right: Value) -> None:
        """Refuse an index that is compared or calculated with by way of a fraction, or of a number of few bits."""
        if self.kittens or not (is_index(left) or is_index(right)) or not operation(name, left, right).leaves <= {
            "Index", "Number", "Scalar",
        }:  # fmt: skip
            return
        for side in ("left", "right"):
            operand = node.child_by_field_name(side)
            few = next((token for token in _nodes(operand) if _text(token) in self.narrow), None)
            if few is not None:
                raise Refused(f"{_text(few)}, which has few bits, with an index", _line(node))
            if not self.integral(operand):
                raise Refused(f"an index as a fraction, {_short(node)},", _line(node))

    def refuse_lengths(self, node: Node, *operands: Value) -> None:
        """Refuse what a whole parameter is changed to by a choice: only whole lengths are known."""
        if all(map(is_constant, operands)) and self.counting & set[str]().union(*map(scalars_of, operands)):
            raise Refused(f"a choice of a length, {_short(node)},", _line(node))

    def arithmetic(self, name: str, node: Node, left: Value, right: Value) -> Value | None:
        """Why arithmetic on whole numbers is not that of numbers; None if it is."""
        sides = [node.child_by_field_name(side) for side in ("left", "right")]
        if name not in "+-*//%" or not all(map(self.integral, sides)) or is_index(operation(name, left, right)):
            return None
        if isinstance(result := operation(name, left, right), Number) and abs(result.value) >= 2**31:
            return Unread("a number that its type does not have")
        if self.is_unsigned(node):
            return None if name in "+*" else Unread("arithmetic on unsigned numbers")
        is_size = left.leaves <= {"Scalar", "Number"} and place_of(Formula(name, (left, right))) != UNKNOWN
        if name in ("//", "%") and not is_size:
            return Unread("a division of whole numbers")
        return None

    def is_unsigned(self, node: Node) -> bool:
        """Whether a part of an expression is an unsigned number."""
        words = {_text(token) for token in _nodes(node) if token.child_count == 0}
        return bool(words & self.unsigned) or any(re.fullmatch(r"\d\w*[uU][lL]*", word) for word in words)

    def step_of(self, to: Node, operator: str, right: Node) -> Value | None:
        """A step of a reduction in shared memory, which joins an element of an array with another one of it; None for
        what is none."""
        path = _path(_text(to))
        match right.type:
            case _ if operator == "+=":
                kind, source = "sum", right
            case "binary_expression" if operator == "=" and _text(right.child_by_field_name("operator")) == "+":
                kind = "sum"
                source = _joined(to, [right.child_by_field_name(side) for side in ("left", "right")])
            case "call_expression" if operator == "=":
                function = _text(right.child_by_field_name("function"))
                is_local = function in self.file.functions or function in self.known
                kind = "" if is_local else _FUNCTIONS.get(function, "")
                arguments = right.child_by_field_name("arguments").named_children
                source = _joined(to, arguments) if kind in ("max", "min") else None
            case _:
                return None
        if source is None or path not in self.known or self.address(to) is not None or not _same_array(to, source):
            return None
        return self.halving(kind, self.known[path], to, source)

    def halving(self, kind: str, value: Value, to: Node, source: Node) -> Value:
        """A step of a reduction in shared memory: ``if (t < s) part[t] += part[t + s]`` in a loop that halves s."""
        index = _text(to.child_by_field_name("indices")).strip("[]") if to.type == "subscript_expression" else ""
        halved_subscripts = [f"[{index} + {self.halved}]", f"[{index}+{self.halved}]"]
        at = [place_of(index) for index in self.all_indices(to)]
        fits = (
            self.halved
            and _text(source.child_by_field_name("indices")) in halved_subscripts
            and re.sub(r"\s", "", self.within) == re.sub(r"\s", "", f"{index}<{self.halved}")
            and at == [places.atom("r", "threadIdx.x")]
            and self.written.get(_path(_text(to))) == tuple(at)
        )
        if not fits:
            raise Refused(f"a sum of elements on the chip, {_short(source)},", _line(source))
        return _reduced(kind, value, together=True)

    def converted(self, value: Value, kind: str) -> Value:
        """A value as one of a type: the same, as far as the type has it."""
        kind = self.file.aliases.get(_base(kind), kind)
        base = _base(kind)
        if "fp8" in base:
            return Unread("a conversion to 8 bits")
        if _CONVERTING.match(base) is None:
            if base in _FRACTIONS and is_index(value):
                return Unread("an index as a fraction")
            return self.rounded(value) if _is_half(base) else value
        if base == "bool":
            if isinstance(value, Number):
                return Number(float(value.value != 0))
            return value if isinstance(value, Formula) and value.name in _LOGICAL else Unread("a conversion to bool")
        if self.kittens:
            return self.whole(value)
        lowest, highest = _range(base)
        if isinstance(value, Number):
            fits = math.isfinite(value.value) and lowest <= int(value.value) <= highest
            return self.whole(value) if fits else Unread("a number that its type does not have")
        element = self.elements.get(value.tensor, "") if isinstance(value, Input) else ""
        if _CONVERTING.match(element) and _bits_of_whole(base) >= max(_bits_of_whole(element), 32):
            return value
        return self.whole(value) if highest >= 2**31 - 1 else Unread("a conversion to numbers of few bits")

    def whole(self, value: Value) -> Value:
        """A value as a whole number."""
        if isinstance(value, Number):
            return Number(float(int(value.value))) if math.isfinite(value.value) else Unread("a number")
        if self.kittens or is_index(value) or (value.leaves <= {"Scalar", "Number"} and self.is_whole(value)):
            return value
        return Unread("a conversion to whole numbers")

    def is_whole(self, value: Value) -> bool:
        return all(
            term.value.is_integer() if isinstance(term, Number) else term.name in self.integers
            for term in walk(value)
            if isinstance(term, Number | Scalar)
        ) and not any(isinstance(term, Formula) and term.name == "/" for term in walk(value))

    def integral(self, node: Node) -> bool:
        """Whether an expression is a whole number."""
        match node.type:
            case "number_literal":
                return re.fullmatch(r"-?(0[xX][\da-fA-F]+|\d+)[uUlL]*", _text(node)) is not None
            case "true" | "false":
                return True
            case "identifier":
                return _text(node) in self.integers or _text(node) == "warpSize"
            case "field_expression":
                return _text(node.child_by_field_name("argument")) in _BUILT_IN
            case "parenthesized_expression":
                return bool(node.named_children) and self.integral(node.named_children[-1])
            case "unary_expression":
                return _text(node)[0] in "!~" or self.integral(node.child_by_field_name("argument"))
            case "binary_expression":
                sides = [node.child_by_field_name(side) for side in ("left", "right")]
                return _text(node.child_by_field_name("operator")) in _LOGICAL or all(map(self.integral, sides))
            case "conditional_expression":
                return all(self.integral(node.child_by_field_name(side)) for side in ("consequence", "alternative"))
            case "cast_expression":
                return _CONVERTING.match(_base(_text(node.child_by_field_name("type")))) is not None
            case "subscript_expression":
                return _path(_text(node)) in self.integers
            case "call_expression":
                return _last(_text(node.child_by_field_name("function"))) == "thread_rank" or self.is_whole_call(node)
            case _:
                return False

    def is_whole_call(self, node: Node) -> bool:
        """Whether what a function gives is a whole number."""
        text = _text(node.child_by_field_name("function"))
        argument_nodes = node.child_by_field_name("arguments").named_children
        if text in self.file.functions:
            return _CONVERTING.match(_base(_text(self.file.functions[text].child_by_field_name("type")))) is not None
        cast = re.fullmatch(r"static_cast<(.*)>", text)
        if cast is not None or not argument_nodes:
            return cast is not None and _CONVERTING.match(_base(cast[1])) is not None
        return _FUNCTIONS.get(_last(text)) in ("max", "min", "abs") and all(map(self.integral, argument_nodes))

    def conditional(self, node: Node) -> Value:
        if node.child_by_field_name("consequence") is None:
            raise Refused(_short(node), _line(node))
        condition = self.value(node.child_by_field_name("condition"))
        then, otherwise = (self.value(node.child_by_field_name(side)) for side in ("consequence", "alternative"))
        self.refuse_lengths(node, then, otherwise)
        if isinstance(then, Reduced) and then.together == warps.UNCHECKED:
            of_lanes = warps.of_lanes(condition, then, _beyond(otherwise))
            if of_lanes is None:
                raise Refused(f"what warps have, {_short(node)},", _line(node))
            return of_lanes
        if is_constant(condition) and not self.is_argument(condition, node):
            return then if self.holds(condition, node) else otherwise
        if self.bounded(condition) or self.bounded(negated(condition)):
            # Beyond the edge there are no elements.
            inside, beyond = (then, otherwise) if self.bounded(condition) else (otherwise, then)
            number = _beyond(beyond)
            for index, _ in bounds_of(condition if self.bounded(condition) else negated(condition)):
                if any(
                    isinstance(term, Input)
                    and term.place is not None
                    and _shares(term.place, index)
                    and not places.moves_with(term.place, index)
                    for term in walk(inside)
                ):
                    return Unread("elements that another index chooses")
            return Unread("elements beyond the edge") if number is None else edge(inside, Number(number))
        if _threads(condition):
            # What threads without an element add to a reduction.
            return Unread("a choice between threads")
        return operation("where", condition, then, otherwise)

    def assigned(self, node: Node) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = _text(node.child_by_field_name("operator"))
        step = self.step_of(left, operator, right)
        value = step or self.product_of(right, operator) or self.value(right)
        if self.kittens:
            raise Refused(_short(node), _line(node))
        tensor = self.address(left)
        path = _path(_text(left))
        if tensor is None and path.removesuffix(path[-2:] if re.search(r"\.[xyzw]$", path) else "") not in self.known:
            raise Refused(f"the name {path}", _line(node))
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
        if operator not in ("=", "+=", "-=", "*=", "/="):
            raise Refused(_short(node), _line(node))
        if operator == "/=" and self.integral(left) and self.integral(right):
            raise Refused(_short(node), _line(node))
        if operator != "=" and step is None:
            before = self.known.get(path, ZERO) if tensor is None else read_back(tensor, self.stores)
            if operator == "+=" and isinstance(value, Formula) and value.name in _SHUFFLED:
                if _plain(value.arguments[0]) != _plain(before):
                    raise Refused(_short(node), _line(node))
                value = self.joined("sum", value, node)
            else:
                value = operation(operator[:-1], before, value)
        if tensor is not None:
            self.store(tensor, value)
        else:
            value = self.converted(value, self.types.get(path, ""))
            if left.type == "subscript_expression":
                self.written[path] = tuple(place_of(index) for index in self.all_indices(left))
            self.known[path] = value
            if re.search(r"\.[xyzw]$", path) and not self.kittens:
                # One of several elements at once, which are made alike.
                vector, plain = self.known.get(path[:-2]), _one_for_all(value, path[-2:])
                fits = (
                    vector is None
                    or (isinstance(vector, Unread) and "no value yet" in vector.reason)
                    or vector == plain
                )
                self.known[path[:-2]] = plain if fits else Unread("several different elements")
        return value

    def product_of(self, right: Node, operator: str) -> Value | None:
        """A product of matrices: in a loop over k, products of elements are added up, of which each has an index that
        the other has not, besides k."""
        right = _unconverted(right)
        is_rounded = right.type == "binary_expression" and self.is_half(right)
        if is_rounded or any(map(self.rounds, _nodes(right))):
            return None
        if operator != "+=" or right.type != "binary_expression" or _text(right.child_by_field_name("operator")) != "*":
            return None
        sides = [_unconverted(right.child_by_field_name(side)) for side in ("left", "right")]
        if any(side.type != "subscript_expression" for side in sides):
            return None
        used = [{name for subscript in _subscripts(side) for name in _variables(subscript)} for side in sides]
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
        factors = self.value(sides[0]), self.value(sides[1])
        if all(isinstance(factor, Input) and factor.beyond not in (None, 0.0) for factor in factors):
            return Unread("a product of elements beyond the edge")
        return MatMul(*factors, inner[1])

    def call(self, node: Node) -> Value:
        called, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if any(child.type == "kernel_call_syntax" for child in node.children):
            raise Refused(_short(node), _line(node))
        argument_nodes = (
            [child for child in arguments.named_children if child.type != "comment"] if arguments is not None else []
        )
        name = _last(_text(called))
        # warp::load is not the function load of a template.
        if name in self.file.functions and "::" not in _text(called):
            return self.inlined(self.file.functions[name], argument_nodes, node)
        if name in self.known or name in self.tensors:
            raise Refused(f"a call of the variable {name}", _line(node))
        groups = re.sub(r"<.*?>", "", _text(called)).rpartition("::")[0]
        if groups not in _NAMESPACES or (called.type == "field_expression" and name != "thread_rank"):
            raise Refused(f"the function {_short(called)}", _line(node))
        is_of_32 = len(argument_nodes) == 4 and _text(argument_nodes[3]) in ("32", "warpSize")
        if name in _SHUFFLES and (len(argument_nodes) == 3 or is_of_32):
            return self.shuffled(_SHUFFLES[name], argument_nodes, node)
        if name == "mma_sync" and len(argument_nodes) == 4:
            a, b = (_path(_text(argument)) for argument in argument_nodes[1:3])
            product = MatMul(
                self.element(argument_nodes[1]), self.element(argument_nodes[2]), self.columns.get(b, False)
            )
            accumulated = (
                Unread("a transposed A")
                if a in self.columns
                else operation("+", self.value(argument_nodes[3]), product)
            )
            self.known[_path(_text(argument_nodes[0]))] = accumulated
            return accumulated
        if name == "fill_fragment" and len(argument_nodes) == 2:
            self.known[_path(_text(argument_nodes[0]))] = self.value(argument_nodes[1])
            return ZERO
        if name == "load_matrix_sync" and len(argument_nodes) > 1:
            self.known[_path(_text(argument_nodes[0]))] = self.element(argument_nodes[1])
            return ZERO
        if name == "store_matrix_sync" and len(argument_nodes) > 1:
            self.stored(argument_nodes[0], self.value(argument_nodes[1]))
            return ZERO
        if self.kittens:
            if not self.tile_call(name, argument_nodes, _text(called).split("::")[0]):
                raise Refused(f"the function {name}", _line(node))
            return ZERO
        if name in ("memcpy_async", "__pipeline_memcpy_async"):
            return self.copied(argument_nodes)
        if re.match(r"^make_(float|int|uint|double)\d$", name) and argument_nodes:
            # Several elements at once, which are made alike.
            values = [
                _one_for_all(self.value(argument), f".{letter}")
                for argument, letter in zip(argument_nodes, "xyzw", strict=False)
            ]
            return values[0] if len(set(values)) == 1 else Unread(f"{name}() of different elements")
        if name in ("fmaf", "fma", "__fmaf_rn") and len(argument_nodes) == 3:
            a, b, c = map(self.value, argument_nodes)
            return operation("+", operation("*", a, b), c)
        if name == "thread_rank":
            return Index(frozenset({"r", "x"}), frozenset(), places.atom("r", f"{_text(called)} threadIdx.x"))
        if name in _FUNCTIONS:
            values = [self.value(argument) for argument in argument_nodes]
            kind = _FUNCTIONS[name]
            if kind in ("max", "min", "abs"):
                self.refuse_lengths(node, *values)
            for operand, step in (values, values[::-1]) if kind in ("max", "min") and len(values) == 2 else ():
                if (
                    isinstance(step, Formula)
                    and step.name in _SHUFFLED
                    and _plain(operand) == _plain(step.arguments[0])
                ):
                    # Of what each thread has found.
                    return self.joined(kind, step, node)
            return operation(kind, *values)
        if _SAME.match(name) and argument_nodes:
            value = self.value(argument_nodes[0])
            # What is of 16 bits already is as it is.
            return self.rounded(value) if _ROUNDING.match(name) and not self.is_half(argument_nodes[0]) else value
        if name in ("__stcs", "__stcg", "__stwt") and len(argument_nodes) == 2:
            self.stored(argument_nodes[0], self.value(argument_nodes[1]))
            return ZERO
        cast = re.fullmatch(r"(static_cast|reinterpret_cast|const_cast)<([^<>]*)>", _text(called))
        if cast is not None and cast[1] == "static_cast" and len(argument_nodes) == 1:
            if not _TYPES.fullmatch(cast[2]) and cast[2] not in self.templates:
                raise Refused(_short(node), _line(node))
            return self.converted(self.value(argument_nodes[0]), cast[2])
        if name.startswith("atomic") and argument_nodes and (to := self.address(argument_nodes[0])) is not None:
            self.store(to, Unread(f"{name}()"))
            return Unread(f"{name}()")
        raise Refused(f"the function {name[:60]}", _line(node))

    def shuffled(self, name: str, argument_nodes: list[Node], node: Node) -> Value:
        """What another lane of a warp has, in a loop over all lanes."""
        value = self.value(argument_nodes[1])
        all_lanes = re.fullmatch(r"0x[fF]{8}[uU]?|FULL_MASK|-1", _text(argument_nodes[0])) is not None
        all_lanes = all_lanes and len(self.chosen) == self.chosen_outside
        if not self.halved or not self.over_lanes or _text(argument_nodes[2]) != self.halved or not all_lanes:
            raise Refused(_short(node), _line(node))
        return Formula(name, (value,))

    def joined(self, kind: str, step: Formula, node: Node) -> Value:
        """What lanes have after a step that joins theirs. Each thread has read elements of one row, in steps of the
        lanes of a warp or of all threads of a block."""
        value = _plain(step.arguments[0])
        if isinstance(value, Unread):
            return value
        moves = {
            atom[2] for term in walk(value) if isinstance(term, Input) and term.place is not None
            for atom in places.atoms(term.place) if atom[0] == "k"
        }  # fmt: skip
        joined = warps.joined(kind, value, moves.pop(), down=step.name == "shuffled down") if len(moves) == 1 else None
        if joined is None:
            raise Refused(_short(node), _line(node))
        if isinstance(joined, Reduced) and joined.together in (warps.OF_WARPS, warps.FIRST_OF_WARPS):
            self.of_warps.add(kind)
        return joined

    def copied(self, argument_nodes: list[Node]) -> Value:
        """A copy from a tensor to shared memory: the first address is where to."""
        for to, source in itertools.pairwise(argument_nodes):
            tensor = self.address(source)
            if tensor is not None:
                array = to.named_children[-1] if to.type == "pointer_expression" else to
                if array.type == "subscript_expression":
                    self.written[_path(_text(array))] = tuple(place_of(index) for index in self.all_indices(array))
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
        if self.elements.get(to.tensor, "float") != "float":
            value = _unrounded(value)
        if self.condition:
            value = Unread(self.condition)
        elif any(map(is_rounded, walk(value))):
            value = Unread("rounding to 16 bits before the store")
        elif self.narrowed & _threads_of(to.place):
            value = Unread("elements that a condition on threads chooses")
        self.stores.append(Output(to.tensor, to.axes, value, to.part, to.place))

    def inlined(self, function: Node, argument_nodes: list[Node], node: Node) -> Value:
        parameters = list(_parameters(function))
        named = _text(node.child_by_field_name("function"))
        if self.depth > 3 or len(parameters) != len(argument_nodes) or "<" in named:
            raise Refused(_short(node), _line(node))
        every = zip(_parameters(function, "*&"), argument_nodes, strict=True)
        changed = [_path(_text(argument)) for (_, changes), argument in every if changes]
        if len(set(changed)) < len(changed) or self.kittens:
            raise Refused(_short(node), _line(node))
        inner = replace(
            self, known={}, tensors={}, columns={}, shapes={}, written={}, shared=set(), returned=None, left=False,
            depth=self.depth + 1, turning="",
            integers=_integers(function, self.file.aliases) | {*self.file.constants} & self.integers,
            unsigned=_integers(function, self.file.aliases, unsigned=True),
            templates=self.templates | _templates(function),
            types={name: kind for name, (kind, _) in _types_of(function).items()},
        )  # fmt: skip
        for (name, pointer), argument in zip(parameters, argument_nodes, strict=True):
            tensor = self.address(argument) if self.is_address(argument) else None
            if tensor is not None and pointer:
                inner.tensors[name] = tensor
            elif pointer:
                raise Refused(_short(node), _line(node))
            else:
                inner.known[name] = self.converted(self.value(argument), inner.types[name])
                if self.integral(argument) and inner.types[name] in inner.templates:
                    raise Refused(_short(node), _line(node))
        given_values = dict(inner.known)
        inner.run(function.child_by_field_name("body"))
        self.condition = inner.condition
        for (name, changes), argument in zip(_parameters(function, "&"), argument_nodes, strict=True):
            value = inner.known.get(name)
            if changes and value is not None and value is not given_values.get(name):
                if argument.type != "identifier" or _text(argument) not in self.known:
                    raise Refused(_short(node), _line(node))
                if node.parent.type not in ("expression_statement", "init_declarator"):
                    # The order of such changes is not said.
                    raise Refused(_short(node), _line(node))
                self.known[_text(argument)] = self.converted(value, self.types.get(_text(argument), ""))
        kind = _text(function.child_by_field_name("type"))
        return self.converted(inner.returned, kind) if inner.returned is not None else ZERO

    def tile(self, tensor: str, tile: str, at: Node, group: str) -> Input:
        """The elements of a tensor that a tile has at some coordinates, which count tiles."""
        axes = frozenset({"r0", "r1", "p"})
        coordinates = [
            place_of(self.value(coordinate)) for coordinate in at.named_children if coordinate.type != "comment"
        ]
        if at.type != "initializer_list" or len(coordinates) != 4 or tile not in self.shapes:
            raise Refused(f"the coordinates {_short(at)}", _line(at))
        batch, depth, row, column = coordinates
        rows, columns = self.shapes[tile]
        # Each warp of a group has its own rows of a tile in registers.
        rows *= 4 if group == "warpgroup" and rows == 16 else 1
        if batch or depth:
            return Input(tensor, axes, "", UNKNOWN)
        down = places.plus(places.times(row, places.number(rows)), places.atom("r", "r0", f"{rows:g}"))
        right = places.plus(places.times(column, places.number(columns)), places.atom("r", "r1", f"{columns:g}"))
        return Input(tensor, axes, "", places.plus(places.times(down, places.atom("s", f"{tensor} row")), right))

    def tile_call(self, name: str, argument_nodes: list[Node], group: str) -> bool:
        """A function of ThunderKittens, which writes to its first argument. Whether it is one."""
        if name in _BARRIERS:
            return True
        if not argument_nodes:
            return False
        to = _path(_text(argument_nodes[0]))
        if name in ("load", "load_async", "store", "store_async") and len(argument_nodes) == 3:
            at = argument_nodes[2]
            if name.startswith("load"):
                self.known[to] = self.tile(_last(_path(_text(argument_nodes[1]))), to, at, group)
            else:
                tile = _path(_text(argument_nodes[1]))
                tile_input = self.tile(_last(to), tile, at, group)
                self.stores.append(
                    Output(_last(to), tile_input.axes, self.tile_of(argument_nodes[1]), "", tile_input.place)
                )
            return to in self.shapes or name.startswith("store")
        if to not in self.shapes:
            return False
        values = [self.tile_of(argument) for argument in argument_nodes[1:]]
        match name, values:
            case "load" | "store" | "copy" | "swap_layout", [value] if name != "store":
                self.known[to] = value
            case "zero", []:
                self.known[to] = ZERO
            case "neg_infty", []:
                self.known[to] = Number(float("-inf"))
            case "relu", [value]:
                self.known[to] = operation("max", value, ZERO)
            case (("row_sum" | "sum" | "row_max" | "max" | "row_min" | "min"), [value, *before]) if (
                name.startswith("row_") or len(values) == 1
            ):
                kind = name.removeprefix("row_")
                if len(before) > 1 or not name.startswith("row_"):
                    return False
                reduced = _reduced(kind, value, together=True)
                self.known[to] = operation("+" if kind == "sum" else kind, before[0], reduced) if before else reduced
            case _, [left, right] if name.removesuffix("_row") in _ELEMENTWISE:
                self.known[to] = operation(_ELEMENTWISE[name.removesuffix("_row")], left, right)
            case _, [value] if name in _UNARY:
                self.known[to] = operation(name, value)
            case (("mma_AB" | "mma_ABt" | "mm_AB" | "mm_ABt"), [left, right]):
                product: Value = MatMul(left, right, name.endswith("t"))
                self.known[to] = (
                    product if name.startswith("mm_") else operation("+", self.known.get(to, ZERO), product)
                )
            case _:
                return False
        return True

    def tile_of(self, node: Node) -> Value:
        path = _path(_text(node))
        if path in self.shapes:
            return self.known[path]
        if node.type == "number_literal":
            return self.value(node)
        raise Refused(f"the tile {_short(node)}", _line(node))


def _selected(condition: Value, then: list[Output], otherwise: list[Output]) -> list[Output]:
    """Stores of which a condition on elements chooses one; what only one side stores has no value."""
    chosen = [[(store.tensor, store.axes, store.part, store.place) for store in side] for side in (then, otherwise)]
    if chosen[0] != chosen[1]:
        return [_unread(store, "elements that a condition on them chooses") for store in (*then, *otherwise)]
    return [
        replace(then_store, value=operation("where", condition, then_store.value, else_store.value))
        for then_store, else_store in zip(then, otherwise, strict=True)
    ]


def _unread(store: Output, reason: str) -> Output:
    return replace(store, value=Unread(reason))


def _settled(name: str, initial: Value, update: Value, iteration: Place) -> Value:
    """The value after a loop; a reduction in steps is one reduction."""
    match update:
        case Reduced(kind, inner, together):
            reduced_value = replaced(
                inner, lambda term: initial if isinstance(term, Carried) and term.name == name else None
            )
            return _reduced(kind, reduced_value, together)
        case _:
            return after_loop(name, initial, update, iteration)


def _reduced(kind: str, value: Value, together: bool | str = False) -> Value:
    value = _plain(value)
    if isinstance(value, Reduced) and value.kind == kind:
        return replace(value, together=value.together or together)
    best = _reduction_of(value)
    if isinstance(value, Formula) and best is not None and best.kind == value.name == kind:
        # The number that each thread begins with is one of those of which all take the largest.
        return Formula(kind, (_reduced(kind, best, together), value.arguments[1]))
    return Reduced(kind, value, together)


def _reduction_of(value: Value) -> Reduced | None:
    """The reduction that a value is, or the larger or smaller one of it and a number; None for another value."""
    match value:
        case Reduced():
            return value
        case Formula("max" | "min", (Reduced() as reduction, initial)) if is_constant(initial):
            return reduction
        case _:
            return None


def _is_step(before: Value, after: Value) -> bool:
    """Whether a turn does nothing but join what threads have of their own, which none of them has of all."""
    plain = _plain(before)
    terms = in_order(plain, until=lambda term: isinstance(term, Reduced) and bool(term.together))
    if warps.is_join(plain, after):
        return True
    steps = [_reduced(kind, plain, together=True) for kind in ("sum", "max", "min")]
    return isinstance(after, Carried) or (any(isinstance(term, Input) for term in terms) and after in steps)


def _plain(value: Value) -> Value:
    while isinstance(value, Carried):
        value = value.initial
    return value


def _moved(base: Input, indices: list[Value]) -> Input:
    axes = base.axes.union(*(axes_of(index) for index in indices))
    if base.place is not None:
        position, by = base.place, base.by
        for shift in indices:
            step, index = place_with_index(shift)
            step = places.times(step, places.number(places.lanes(base.place)))
            position = places.plus(position, step if by is None or index is None else UNKNOWN)
            by = by or index
        offset = places.written(places.distance(position))
        return Input(base.tensor, axes, "" if offset == "0" else offset, position, by=by)
    part_names: set[str] = set()
    if not any(map(is_index, indices)):
        part_names = {term.name for index in indices for term in walk(index) if isinstance(term, Scalar)}
    return Input(base.tensor, axes, "+".join(sorted({*base.part.split("+"), *part_names} - {""})))


def _listed(node: Node | None) -> Iterator[Node]:
    """The expressions of a list with commas."""
    if node is not None and node.type == "comma_expression":
        for child in node.named_children:
            yield from _listed(child)
    elif node is not None:
        yield node


def _begins_anew(name: str, body: Node) -> bool:
    """Whether each iteration of a loop sets a variable, or elements of it, before it does anything else with them."""
    first = next(
        (
            node
            for node in _nodes(body)
            if node.type in ("assignment_expression", "identifier") and _mentions(node, name)
        ),
        None,
    )
    if first is None or first.type != "assignment_expression":
        return False
    left, right = first.child_by_field_name("left"), first.child_by_field_name("right")
    sets = _path(_text(left)) == name and _text(first.child_by_field_name("operator")) == "="
    is_always = left.type != "identifier" or first.parent.parent == body
    return sets and is_always and not any(_text(node) == name for node in _nodes(right))


def _mentions(node: Node | None, *paths: str) -> bool:
    """Whether code has one of some variables, or of what they are parts of."""
    roots = {path.split(".")[0] for path in paths}
    return node is not None and any(_text(descendant) in roots for descendant in _nodes(node))


def _is_half(kind: str) -> bool:
    return _DTYPES.get(kind) in ("float16", "bfloat16")


def _unrounded(value: Value) -> Value:
    """A value that is about to be stored, which rounds it."""
    match value:
        case Formula("rounded", (inner,)):
            return inner
        case Formula("where", (condition, then, otherwise)):
            return operation("where", condition, _unrounded(then), _unrounded(otherwise))
        case _:
            return value


def _advanced(before: Place, after: Place, iteration: Place) -> Place:
    by = places.plus(after, before, -1.0)
    if not by:
        return before
    fixed = all(atom[0] in ("s", "p") for atom in places.atoms(by))
    return places.plus(before, places.times(iteration, by)) if fixed else UNKNOWN


def _strides(start: Place, step: Place) -> bool:
    """Whether a loop that begins at the number of a thread goes on by the number of all threads, or of those of its
    block: the others visit what lies between."""
    names = {name for kind, name, _ in places.atoms(start) if kind in ("r", "p")}
    if not names:
        return True
    axes = {name[-1] for name in names}
    if axes != {"x"} or not names <= {"threadIdx.x", "blockIdx.x"}:
        return False
    threads = places.atom("s", "blockDim.x")
    if "blockIdx.x" in names:
        return step == places.times(threads, places.atom("s", "gridDim.x"))
    return step == threads or places.constant(step) is not None


def _leaves(node: Node | None) -> bool:
    """Whether code leaves the kernel or loop at its end."""
    if node is None:
        return False
    if node.type == "compound_statement":
        return bool(node.named_children) and _leaves(node.named_children[-1])
    return node.type in ("return_statement", "break_statement", "continue_statement")


def _is_last(node: Node) -> bool:
    """Whether a statement is the last one of a function, so that each of its calls comes to it."""
    body = node.parent
    is_body = body.parent is not None and body.parent.type == "function_definition"
    return is_body and [child for child in body.named_children if child.type != "comment"][-1] == node


def _only_indices(condition: Value) -> bool:
    return not any(isinstance(term, Input | Reduced | Carried | Unread | MatMul) for term in walk(condition))


def _threads(condition: Value) -> set[str]:
    """The numbers of threads that a condition is about, empty if it is about anything else."""
    if not _only_indices(condition):
        return set()
    axes = axes_of(condition)
    return {f"threadIdx.{axis}" for axis in axes & {"x", "y"}} if "p" not in axes else set()


def _threads_of(position: Place | None) -> set[str]:
    threads = {name for atom in places.atoms(position or NOWHERE) for name in re.findall(r"threadIdx\.\w", atom[1])}
    return threads | ({"threadIdx.y"} if "threadIdx.z" in threads else set())


def _one_for_all(value: Value, lane: str) -> Value:
    """One of the elements that are made at once, made as the others are of those with their number."""
    return replaced(value, lambda term: _in_lane(term, places.atom("w", lane), -1.0))


def _in_lane(value: Value, lane: Place, sign: float) -> Value | None:
    """One of the elements that are loaded at once, or (with -1) all of them."""
    match value:
        case Input(place=place) if place is not None:
            return replace(value, place=places.plus(place, lane, sign) if value.by is None else UNKNOWN)
        case _:
            return None


def _shares(position: Place, index: Place) -> bool:
    """Whether two places have an index in common."""
    return any(atom[0] in ("p", "r", "k") for atom in places.atoms(position) & places.atoms(index))


def _beyond(value: Value) -> float | None:
    """The number that stands for elements beyond the edge, None if that is not known."""
    match value:
        case Number(number):
            return number if abs(number) < 1e30 else math.copysign(math.inf, number)
        case Formula("*", (Number(-1.0), Scalar(name))) if name in _ENDS:
            return -math.inf
        case Scalar(name) if name in _ENDS:
            return math.inf
        case _:
            return None


_ENDS = {"INFINITY", "FLT_MAX", "CUDART_INF_F", "HUGE_VALF", "HUGE_VAL", "DBL_MAX"}


def _halved(node: Node) -> tuple[str, bool]:
    """The variable that a loop halves from half of the threads on down to 1, or from 16 lanes on, and whether it is of
    lanes; empty for another."""
    clauses = [_text(node.child_by_field_name(side) or node) for side in ("initializer", "condition", "update")]
    init, condition, update = (re.sub(r"\s+", " ", clause).strip("; ()") for clause in clauses)
    begin = re.fullmatch(r"(?:unsigned int|unsigned|int) (\w+) = (blockDim\.x ?(?:/ ?2|>> ?1)|16|warpSize ?/ ?2)", init)
    if begin is None or not re.fullmatch(rf"{begin[1]} ?(> ?0|>= ?1)", condition):
        return "", False
    is_halved = re.fullmatch(rf"{begin[1]} ?(>>= ?1|/= ?2)", update) is not None
    return (begin[1], not begin[2].startswith("blockDim")) if is_halved else ("", False)


def _templates(function: Node) -> set[str]:
    """The parameters of a template that are numbers or types."""
    above = function.parent
    if above is None or above.type != "template_declaration":
        return set()
    listed = above.child_by_field_name("parameters")
    return {_text(node) for node in _nodes(listed) if node.type in ("identifier", "type_identifier")}


def _types_of_template(function: Node) -> set[str]:
    """The parameters of a template that are types."""
    above = function.parent
    listed = above.child_by_field_name("parameters").named_children if above.type == "template_declaration" else ()
    declared = ("type_parameter_declaration", "optional_type_parameter_declaration")
    return {_text(node.named_children[0]) for node in listed if node.type in declared and node.named_children}


def _whole_tensors(function: Node) -> set[str]:
    """The parameters that are addresses of whole numbers."""
    declarator = _declarator(function)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    names: set[str] = set()
    for parameter in listed.named_children if listed is not None else ():
        if "*" in _text(parameter) and (
            _WHOLE.match(_text(parameter)) or re.match(r"(const )?bool\b", _text(parameter))
        ):
            names |= {_text(node) for node in _nodes(parameter) if node.type == "identifier"}
    return names


def _defaults(function: Node, file: _File) -> dict[str, float | None]:
    """The numbers that parameters have by themselves, as their types have them; None for what is not understood."""
    constants = {**file.constants, "true": 1, "false": 0}
    defaults: dict[str, float | None] = {}
    for parameter in _nodes(function):
        if parameter.type == "optional_parameter_declaration":
            kind = _base(_text(parameter.child_by_field_name("type")))
            number = _computed(_text(parameter.child_by_field_name("default_value")), constants)
            name = _text(parameter.child_by_field_name("declarator"))
            defaults[name] = None if number is None else _default_as(number, file.aliases.get(kind, kind))
    return defaults


def _evaluated(condition: Value, numbers: Mapping[str, float | None]) -> float | None:
    """A condition on the defaults of constants, None if it is about others or is not a comparison of them."""
    match condition:
        case Number(number):
            return number
        case Scalar(name):
            return numbers.get(name)
        case Formula("not", (inner,)):
            number = _evaluated(inner, numbers)
            return None if number is None else float(not number)
        case Formula("&" | "|" | "==" | "!=" | "<" | "<=" | ">" | ">=" as name, (first, second)):
            a, b = _evaluated(first, numbers), _evaluated(second, numbers)
            if a is None or b is None:
                return None
            results = {
                "&": bool(a and b), "|": bool(a or b), "==": a == b, "!=": a != b,
                "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b,
            }  # fmt: skip
            return float(results[name])
        case _:
            return None


def _default_as(number: float, kind: str) -> float | None:
    """A number as one of a type; None if the type has not this one, or is not known."""
    if kind == "bool":
        return float(number != 0)
    if _CONVERTING.match(kind):
        lowest, highest = _range(kind)
        return float(int(number)) if lowest <= int(number) <= highest else None
    if kind in ("float", "double"):
        return float(number) if abs(number) <= _OF_MATH["FLT_MAX"] else None
    # Types of 16 bits all have numbers of 8 digits, which need no rounding.
    is_exact = (math.frexp(number)[0] * 256).is_integer() and (number == 0 or 2.0**-14 <= abs(number) < 2.0**15)
    return float(number) if kind in _FRACTIONS and "fp8" not in kind and is_exact else None


def _types_of(function: Node) -> dict[str, tuple[str, bool]]:
    """The types of parameters, and whether they are those of values, or of addresses or arrays of values."""
    declarator = _declarator(function)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    types: dict[str, tuple[str, bool]] = {}
    for parameter in listed.named_children if listed is not None else ():
        names = [node for node in _nodes(parameter) if node.type == "identifier"]
        kind = parameter.child_by_field_name("type")
        if names and kind is not None:
            depth = sum(node.type in ("pointer_declarator", "array_declarator") for node in _nodes(parameter))
            types[_text(names[-1])] = _base(_text(kind)), depth < 2
    return types


def _base(kind: str) -> str:
    """A type without what says how its values are kept."""
    return " ".join(word for word in re.split(r"[\s&*]+", kind) if word not in _KEPT and word)


_KEPT = {"const", "constexpr", "volatile", "extern", "static", "__shared__", "__restrict__"}
# Types of fractions; other dtypes are those of the skeleton.
_FRACTIONS = {
    "float",
    "double",
    "half",
    "__half",
    "half_t",
    "bf16",
    "bfloat16",
    "__nv_bfloat16",
    "nv_bfloat16",
    "__bfloat16",
    "__nv_fp8_e4m3",
    "__nv_fp8_e5m2",
}
_DTYPES = {
    "float": "float32", "double": "float64", **dict.fromkeys(("half", "__half", "half_t"), "float16"),
    **dict.fromkeys(("bf16", "bfloat16", "__nv_bfloat16", "nv_bfloat16", "__bfloat16"), "bfloat16"),
}  # fmt: skip
_LOGICAL = {"<", "<=", ">", ">=", "==", "!=", "&", "|", "&&", "||", "not"}
# What depends on the signs of whole numbers.
_OF_SIGNS = {"<", "<=", ">", ">=", "==", "!=", "/", "%"}
_VECTORS: Mapping[str, tuple[str, ...]] = {
    "float": ("float2", "float3", "float4"), "double": ("double2",), "half": ("half2",), "__half": ("__half2", "half2"),
}  # fmt: skip
_BITS = {"char": 8, "uchar": 8, "short": 16, "ushort": 16, "long": 64, "size_t": 64}


def _range(kind: str) -> tuple[int, int]:
    """The least and the largest number of a type of whole numbers."""
    words = kind.split()
    named = re.search(r"(\d+)_t", kind)
    bits = int(named[1]) if named is not None else next((_BITS[word] for word in words if word in _BITS), 32)
    unsigned = _UNSIGNED.match(kind) is not None or kind in ("uchar", "ushort")
    return (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _parameters(function: Node, kinds: str = "*") -> Iterator[tuple[str, bool]]:
    """The parameters of a function, and whether each is a pointer (``*``) or reference (``&``)."""
    declarators = {"*": ("pointer_declarator", "array_declarator"), "&": ("reference_declarator",)}
    accepted = [declarator for kind in kinds for declarator in declarators[kind]]
    declarator = _declarator(function)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    for parameter in listed.named_children if listed is not None else ():
        if parameter.type in ("parameter_declaration", "optional_parameter_declaration"):
            names = [node for node in _nodes(parameter) if node.type == "identifier"]
            if names:
                yield (
                    _text(names[-1]),
                    any(node.type in accepted for node in _nodes(parameter)),
                )


_CONVERTING = re.compile(
    r"^(const |constexpr |volatile )*(bool|unsigned|signed|int|long|short|size_t|u?int\d+_t|char|uint)\b"
)


_WHOLE = re.compile(r"^(const |constexpr )*(unsigned|signed|int|long|short|size_t|u?int\d+_t|char|uint)\b")


_UNSIGNED = re.compile(r"^(const |constexpr )*(unsigned|size_t|uint)")


def _integers(function: Node, aliases: Mapping[str, str], unsigned: bool = False) -> set[str]:
    """The parameters and variables of a function that are whole numbers, or those that are `unsigned`."""
    kinds = {name: kind for name, (kind, _) in _types_of(function).items()}
    kinds |= {name: _base(kind) for name, kind, _ in _declared(function.child_by_field_name("body"))}
    pattern = _UNSIGNED if unsigned else _CONVERTING
    return {name for name, kind in kinds.items() if pattern.match(aliases.get(kind, kind))}


def _narrow(function: Node, aliases: Mapping[str, str]) -> set[str]:
    """The parameters that are whole numbers of fewer than 32 bits."""
    kinds = {name: aliases.get(kind, kind) for name, (kind, _) in _types_of(function).items()}
    addresses = {name for name, pointer in _parameters(function) if pointer}
    return {
        name
        for name, kind in kinds.items()
        if name not in addresses and _CONVERTING.match(kind) and (kind == "bool" or _range(kind)[1] < 2**31 - 1)
    }


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
    for node in _nodes(last):
        if node.type == "identifier" and _text(node) == turning:
            above = node.parent
            return not (above.type == "binary_expression" and _text(above.child_by_field_name("operator")) == "*")
    return False


def _variables(node: Node) -> Iterator[str]:
    """The variables of an index; threadIdx.x and threadIdx.y are two."""
    for descendant in _nodes(node):
        if descendant.type == "field_expression" or (
            descendant.type == "identifier" and descendant.parent.type != "field_expression"
        ):
            yield _text(descendant)


def _unconverted(node: Node) -> Node:
    """An expression without what converts its value to another dtype of fractions, and without parentheses."""
    while True:
        match node.type:
            case "parenthesized_expression":
                inner = node.named_children
            case "cast_expression" if not _CONVERTING.match(_text(node.child_by_field_name("type"))):
                inner = [node.child_by_field_name("value")]
            case "call_expression" if _SAME.match(_last(_text(node.child_by_field_name("function")))):
                inner = node.child_by_field_name("arguments").named_children
            case _:
                return node
        if len(inner) != 1:
            return node
        node = inner[0]


def _subscripts(node: Node) -> Iterator[Node]:
    while node is not None and node.type == "subscript_expression":
        yield node.child_by_field_name("indices")
        node = node.child_by_field_name("argument")


def _joined(target: Node, operands: list[Node]) -> Node | None:
    """What is joined with an element that stands among two operands, None if it does not."""
    rest = [operand for operand in operands if _text(operand) != _text(target)]
    return rest[0] if len(operands) == 2 and len(rest) == 1 else None


def _same_array(target: Node, addend: Node) -> bool:
    """Whether an element of an array is added to another one of it."""
    return (
        target.type == addend.type == "subscript_expression"
        and _path(_text(target)) == _path(_text(addend))
        and _text(target) != _text(addend)
    )


_WHOLE_LITERAL = re.compile(r"-?(0[xX][\da-fA-F]+|\d+)[uUlL]*")


def _number(node: Node) -> float:
    """A number of C++, as far as it is a decimal or hexadecimal one."""
    text = _text(node)
    if text.startswith("-") and not re.search(r"[uU]", text):
        return -_number_of(text[1:], node)
    return _number_of(text, node)


def _number_of(text: str, node: Node) -> float:
    if re.fullmatch(r"(0|[1-9]\d{0,14})[uU]?[lL]{0,2}", text):
        return float(text.rstrip("uUlL"))
    if re.fullmatch(r"0[xX][\da-fA-F]{1,12}[uU]?[lL]{0,2}", text):
        return float(int(text.rstrip("uUlL"), 16))
    if re.fullmatch(r"(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d{1,3})?[fFlL]?", text):
        number = float(text.rstrip("fFlL"))
        if math.isfinite(number):
            return number
    raise Refused(f"the number {_short(node)}", _line(node))
