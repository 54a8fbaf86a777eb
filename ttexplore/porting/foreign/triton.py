"""Reading Triton kernels: Python's own syntax tree, and the values of tl.store."""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ttexplore.errors import UsageError
from ttexplore.porting.foreign import places
from ttexplore.porting.foreign.gathered import followed, indices_of, place_with_index, without_indices
from ttexplore.porting.foreign.groups import grouped_blocks, with_digits
from ttexplore.porting.foreign.marks import ForeignKernel, Mark, Parameter, Reading
from ttexplore.porting.foreign.places import NOWHERE, UNKNOWN, Place
from ttexplore.porting.foreign.ranks import Ranks
from ttexplore.porting.foreign.values import (
    SCAN,
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
    inside,
    is_bound,
    is_constant,
    is_index,
    is_number_beyond,
    is_rounded,
    last_turn,
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
from ttexplore.porting.foreign.words import TRITON, TRITON_AROUND, by_name
from ttexplore.porting.foreign.work import DEEPEST, Refused, SourceWork, TooLarge, is_large, refuse_large, short
from ttexplore.record import Span

_ROWS = by_name(TRITON)
_AROUND = by_name(TRITON_AROUND)
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "pow",
    ast.BitAnd: "&", ast.BitOr: "|", ast.LShift: "<<", ast.RShift: ">>", ast.BitXor: "^",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "==",
    ast.IsNot: "!=",
}  # fmt: skip
# Functions of elements, by their names in TileLang.
_FUNCTIONS: dict[str, str] = {
    "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "sqrt": "sqrt", "sqrt_rn": "sqrt", "rsqrt": "rsqrt",
    "sin": "sin", "cos": "cos", "abs": "abs", "maximum": "max", "minimum": "min", "tanh": "tanh", "sigmoid": "sigmoid",
    "erf": "erf", "sinh": "sinh", "cosh": "cosh",
    "fdiv": "/", "div_rn": "/", "floor": "floor", "ceil": "ceil", "pow": "pow",
}  # fmt: skip
# Functions that give what they take: hints, conversions, shapes.
_SAME = {"multiple_of", "max_contiguous", "cast", "trans", "to", "advance"}
_DESCRIPTOR_LOADS = {"_experimental_descriptor_load", "load_tensor_descriptor"}
_DESCRIPTOR_STORES = {"_experimental_descriptor_store", "store_tensor_descriptor"}
_PYTHON = {*dir(builtins)}
# What binds names that do not stand in the text.
_BINDING = {
    "exec", "eval", "globals", "locals", "vars", "setattr", "delattr", "modules", "__import__", "__builtins__",
    "__dict__", "__globals__",
}  # fmt: skip
_TRUTHS = {"<", "<=", ">", ">=", "==", "!=", "&", "|", "not"}
# The dtypes that hold each index.
_LONG = re.compile(r"u?int(32|64)")
_DTYPE = re.compile(r"float(16|32)|bfloat16|float8\w+|u?int\d+|tf32")
_HALF = re.compile(r"b?float16")
_ROUNDING = Unread("a rounding to 16 bits")


@dataclass(frozen=True, slots=True)
class _Pointer:
    """An address in a tensor."""

    tensor: str
    axes: frozenset[str] = frozenset()
    scalars: frozenset[str] = frozenset()
    place: Place = NOWHERE
    strides: tuple[Place, ...] = ()
    blocks: tuple[str, ...] = ()
    shape: tuple[Place, ...] = ()
    # The element of a tensor that is an index in the place.
    by: Input | None = None


@dataclass(frozen=True, slots=True)
class _Many:
    """A tuple of values."""

    values: tuple[_Known, ...]


_Known = Value | _Pointer | _Many


def read_triton(source: str, file: str, work: SourceWork) -> Reading:
    """Read the kernels of a module. Raises UsageError for a text that is not Python."""
    try:
        with warnings.catch_warnings():
            # Of literals that Python warns about, messages would be those of a file that nobody knows.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError as error:
        line = error.lineno or 1
        raise UsageError(
            "U027", f"the source is not valid Python: {error.msg}", hint="give the whole text of the module",
            span=Span(file, line, error.offset or 1, line, (error.offset or 1) + 1),
        ) from error  # fmt: skip
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(
            "U027", "the source is not valid Python, or nests too deep", hint="give the text of the kernel alone"
        ) from error
    nodes = list(ast.walk(tree))
    names = _ModuleNames.of(tree, nodes)
    kernels = [node for node in nodes if isinstance(node, ast.FunctionDef) and names.is_kernel(node)]
    functions = {kernel.name: kernel for kernel in kernels}
    twice = {kernel.name for kernel in kernels if functions[kernel.name] is not kernel} | _bound_again(tree)
    binding = _binding(tree, nodes)
    # Marks of what is too large or nests too deep to be read are left out.
    large = {kernel.name for kernel in kernels if is_large(ast.walk(kernel))}
    readable = [kernel for kernel in kernels if kernel.name not in large and _depth(kernel) <= DEEPEST]
    marks = [mark for kernel in readable for mark in _marks(kernel, names, functions)]
    called = {
        node.func.id for kernel in readable for node in ast.walk(kernel)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }  # fmt: skip
    read: list[ForeignKernel] = []
    for kernel in kernels:
        if kernel.name not in called:
            defined = (
                {each.name for each in _called(kernel, functions)} & twice if kernel.name not in large else set[str]()
            )
            reason = f"{min(defined)} is defined more than once" if defined else ""
            reason = reason or binding
            unread_kernel = ForeignKernel(kernel.name, kernel.lineno, (), unread=reason)
            read.append(unread_kernel if reason else _TritonEvaluation(kernel, functions, names, work).kernel())
    return Reading("Triton", tuple(sorted(set(marks), key=lambda mark: (mark.line, mark.column))), tuple(read))


@dataclass(frozen=True)
class _ModuleNames:
    """What a module calls triton, triton.language and single functions of theirs."""

    triton: frozenset[str]
    language: frozenset[str]
    functions: Mapping[str, str]
    # Names that have a meaning here and to which the module gives another one.
    bound: frozenset[str] = frozenset()
    # Constants of the module.
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])

    @classmethod
    def of(cls, tree: ast.Module, nodes: list[ast.AST]) -> _ModuleNames:
        triton, language, functions = {"triton"}, {"tl"}, dict[str, str]()
        for node in nodes:
            match node:
                case ast.Import(names):
                    for alias in names:
                        if alias.name == "triton":
                            triton.add(alias.asname or alias.name)
                        elif alias.name == "triton.language" and alias.asname:
                            language.add(alias.asname)
                case ast.ImportFrom(module, names) if module and module.split(".")[0] == "triton":
                    for alias in names:
                        if module == "triton" and alias.name == "language":
                            language.add(alias.asname or alias.name)
                        else:
                            functions[alias.asname or alias.name] = alias.name
                case ast.ImportFrom(_, names):
                    # Libraries that wrap the language, such as triton_lang_extension.
                    language |= {alias.asname or alias.name for alias in names if alias.name.startswith("triton_lang")}
                case _:
                    pass
        bindings = _bindings(nodes)
        meant = triton | language | functions.keys() | {"range", "min", "max", "abs", "float"}
        bound = {name for name, count in bindings.items() if name in meant and count}
        numbers = {name: value for name, value in _numbers(tree).items() if bindings[name] == 1}
        return cls(frozenset(triton), frozenset(language), functions, frozenset(bound), numbers)

    def is_kernel(self, function: ast.FunctionDef) -> bool:
        paths = [
            self.path(decorator.func if isinstance(decorator, ast.Call) else decorator)
            for decorator in function.decorator_list
        ]
        return any(
            (len(path) == 2 and path[0] in self.triton and path[1] == "jit")
            or (len(path) == 1 and self.functions.get(path[0]) == "jit")
            for path in paths
        )

    def path(self, node: ast.AST) -> tuple[str, ...]:
        """``tl.math.exp2`` as ("tl", "math", "exp2"); empty for what is no dotted name."""
        match node:
            case ast.Name(name):
                return (name,)
            case ast.Attribute(value, attribute):
                path = self.path(value)
                return (*path, attribute) if path else ()
            case _:
                return ()

    def in_language(self, node: ast.AST) -> str:
        """The name in triton.language that a node is; empty for another node."""
        path = self.path(node)
        if not path or path[0] in self.bound or not set(path[1:-1]) <= _INNER | {"language"}:
            return ""
        if len(path) > 1 and path[0] in self.language:
            return path[-1]
        if len(path) > 2 and path[0] in self.triton and path[1] == "language":
            return path[-1]
        if len(path) == 1 and path[0] in self.functions:
            return self.functions[path[0]]
        return path[-1] if len(path) == 2 and path[0] in self.functions else ""


def _binding(tree: ast.Module, nodes: list[ast.AST]) -> str:
    """What may give names another meaning than the text says, empty if there is nothing: what binds names that are
    computed, and all names of a module after the first own one."""
    code_lines = [
        statement.lineno for statement in tree.body if not isinstance(statement, ast.Import | ast.ImportFrom | ast.Expr)
    ]
    for node in nodes:
        match node:
            case ast.Name(name) | ast.Attribute(_, name) if name in _BINDING:
                return f"{name} (line {node.lineno}) may give names another meaning"
            case ast.ImportFrom(_, [ast.alias("*")]) if node.lineno > min(code_lines, default=node.lineno):
                return f"an import of all names (line {node.lineno}) may give names another meaning"
            case _:
                pass
    return ""


def _bound_again(tree: ast.Module) -> set[str]:
    """The names that a module, outside of its functions and classes, binds more than once."""
    counts = collections.Counter[str]()
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                counts[name] += 1
            case _:
                counts.update(_bindings(list(ast.walk(statement))))
    return {name for name, count in counts.items() if count > 1}


def _bindings(nodes: list[ast.AST]) -> collections.Counter[str]:
    """How often a module binds each name, other than by importing it from triton."""
    counts = collections.Counter[str]()
    for node in nodes:
        match node:
            case ast.Import(names):
                counts.update(
                    alias.asname or alias.name.split(".")[0] for alias in names if alias.name.split(".")[0] != "triton"
                )
            case ast.ImportFrom(module, names) if not (module or "").startswith("triton"):
                counts.update(alias.asname or alias.name for alias in names if not alias.name.startswith("triton_lang"))
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                counts[name] += 1
            case ast.Name(name, ast.Store() | ast.Del()):
                counts[name] += 1
            case ast.Attribute(ast.Name(name), _, ast.Store() | ast.Del()):
                # A module with a part that is another one.
                counts[name] += 1
            case ast.Global(names) | ast.Nonlocal(names):
                counts.update(dict.fromkeys(names, 2))
            case ast.arg(name) | ast.ExceptHandler(_, str(name)) | ast.MatchAs(_, str(name)) | ast.MatchStar(str(name)):
                counts[name] += 1
            case _:
                pass
    return counts


def _numbers(tree: ast.Module) -> dict[str, float]:
    """The names to which the module assigns a number."""
    numbers: dict[str, float] = {}
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, value):
                inner = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
                called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
                sign = 1
                if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.USub):
                    sign, inner = -1, inner.operand
                match inner:
                    case ast.Constant(int() | float() as number) if abs(number) < 2**53 and (
                        called in ("", "tl.constexpr", "triton.language.constexpr")
                    ):
                        numbers[name] = sign * number
                    case _:
                        pass
            case _:
                pass
    return numbers


def _marks(function: ast.FunctionDef, names: _ModuleNames, functions: Mapping[str, ast.FunctionDef]) -> Iterator[Mark]:
    """The constructs of a kernel: what is of triton or its language, methods of blocks, and calls of what the file does
    not define."""
    visited: set[int] = set()
    parameters = {parameter.arg for parameter in function.args.args}
    # Decorators run on the host: what they call is no construct of the kernel, but that of triton itself.
    host = {id(node) for decorator in function.decorator_list for node in ast.walk(decorator)}
    for node in ast.walk(function):
        if id(node) in visited or (id(node) in host and isinstance(node, ast.Call)):
            continue
        match node:
            case ast.Attribute() if name := names.in_language(node):
                visited |= {id(descendant) for descendant in ast.walk(node)}
                yield _mark(node, ast.unparse(node), _ROWS.get(name, ""))
            case ast.Attribute() if (path := names.path(node)) and path[0] in names.triton:
                visited |= {id(descendant) for descendant in ast.walk(node)}
                yield _mark(node, ast.unparse(node), _AROUND.get(path[-1], ""))
            case ast.Call(ast.Attribute(_, method) as called) if not names.in_language(called) and not _host(
                called, names
            ):
                row = {"to": "conversion of dtypes", "load": "tensor descriptor", "store": "tensor descriptor"}.get(
                    method, _ROWS.get(method, "")
                )
                yield _mark(called, f".{method}", row, called.end_col_offset)
            case ast.Call(ast.Name(name)) if name not in _PYTHON and name not in functions and name not in parameters:
                function_name = names.functions.get(name)
                yield _mark(node.func, name, _ROWS.get(function_name or "", ""))
            case ast.Attribute(_, "T"):
                yield _mark(node, ".T", "transposed operand", node.end_col_offset)
            case ast.keyword("mask" | "other" | "boundary_check" | "padding_option" as word):
                yield _mark(node, f"{word}=", "edges and masks")
            case ast.keyword("num_stages" | "loop_unroll_factor" | "flatten" as word):
                yield _mark(node, f"{word}=", "software pipeline")
            case ast.keyword("num_warps" as word):
                yield _mark(node, f"{word}=", "threads and warps")
            case ast.keyword("warp_specialize" as word):
                yield _mark(node, f"{word}=", "specialized warps")
            case ast.Subscript(_, ast.Tuple(elements)) if any(_is_none(element) for element in elements):
                yield _mark(node, ast.unparse(node.slice), "broadcast of a row or column", node.slice.col_offset)
            case _:
                pass


def _host(node: ast.Attribute, names: _ModuleNames) -> bool:
    path = names.path(node)
    return bool(path) and path[0] in names.triton


def _mark(node: ast.expr | ast.keyword, text: str, row: str, column: int | None = None) -> Mark:
    return Mark(node.lineno, (node.col_offset if column is None else column) + 1, text, row)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


# The nodes that are understood, where nothing else is said of them.
_STATEMENTS = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.For, ast.If, ast.Return, ast.Pass,
)  # fmt: skip
_EXPRESSIONS = (
    ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call, ast.Constant, ast.Attribute, ast.Subscript,
    ast.Name, ast.List, ast.Tuple, ast.Slice, ast.keyword, ast.expr_context, ast.boolop, ast.operator, ast.unaryop,
    ast.cmpop,
)  # fmt: skip
# The keywords of functions that change nothing of what is computed here, or that are read.
_HINTS = {"cache_modifier", "eviction_policy", "volatile"}
_KEYWORDS: dict[str, set[str]] = {
    "load": {"mask", "other", "boundary_check", "padding_option", *_HINTS},
    "store": {"mask", "boundary_check", *_HINTS}, "program_id": {"axis"}, "num_programs": {"axis"},
    "dot": {"acc", "allow_tf32", "input_precision", "max_num_imprecise_acc", "out_dtype"},
    "sum": {"axis", "keep_dims"}, "max": {"axis", "keep_dims"}, "min": {"axis", "keep_dims"},
    "cumsum": {"axis"}, "zeros": {"shape", "dtype"}, "zeros_like": set(), "full": {"shape", "value", "dtype"},
    "range": {"num_stages", "loop_unroll_factor", "flatten", "warp_specialize", "disallow_acc_multi_buffer"},
    "make_block_ptr": {"base", "shape", "strides", "offsets", "block_shape", "order"},
    "make_tensor_descriptor": {"base", "shape", "strides", "block_shape"},
    "_experimental_make_tensor_descriptor": {"base", "shape", "strides", "block_shape"},
    "cast": {"dtype"}, "to": {"dtype"}, "expand_dims": {"axis"}, "trans": set(), "advance": {"offsets"},
}  # fmt: skip
# Functions that only the compiler or a debugger sees.
_NO_EFFECT = {"debug_barrier", "static_assert", "static_print", "device_print", "device_assert", "assume"}
_INNER = {"math", "extra", "cuda", "hip", "libdevice", "core", "standard"}


def _not_understood(function: ast.FunctionDef, names: _ModuleNames) -> Refused | None:
    """What of a kernel no rule understands, wherever it is; None if there is nothing."""
    arguments = function.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs or arguments.kwonlyargs:
        return Refused("a parameter with * or /", function.lineno)
    for decorator in function.decorator_list:
        path = names.path(decorator.func if isinstance(decorator, ast.Call) else decorator)
        hooks = any(isinstance(node, ast.keyword) and node.arg == "pre_hook" for node in ast.walk(decorator))
        if not path or hooks or not (path[0] in names.triton or path[0] in names.functions):
            return Refused(f"the decorator {short(decorator)}", decorator.lineno)
    pending: list[ast.AST] = [*reversed(function.body)]
    while pending:
        node = pending.pop()
        if not isinstance(node, _STATEMENTS + _EXPRESSIONS):
            return Refused(short(node), getattr(node, "lineno", function.lineno))
        match node:
            case ast.For(ast.Name(), _, _, []) | ast.Expr(ast.Call() | ast.Constant(str())):
                pass
            case ast.For() | ast.Expr():
                return Refused(short(node), node.lineno)
            case ast.AugAssign(target) if not isinstance(target, ast.Name):
                return Refused(short(node), node.lineno)
            case ast.AnnAssign(target, _, value) if not isinstance(target, ast.Name) or value is None:
                return Refused(short(node), node.lineno)
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                return Refused(short(node), node.lineno)
            case ast.Compare(_, operators) if len(operators) != 1 or type(operators[0]) not in _COMPARISONS:
                return Refused(short(node), node.lineno)
            case ast.BinOp(_, operator) | ast.AugAssign(_, operator) if type(operator) not in _OPERATORS:
                return Refused(short(node), node.lineno)
            case ast.UnaryOp(ast.Invert()):
                return Refused(short(node), node.lineno)
            case ast.Call(_, _, keywords) if not all(keyword.arg for keyword in keywords):
                return Refused(short(node), node.lineno)
            case ast.Name(name, ast.Store()) if name in names.bound:
                return Refused(f"the variable {name}", node.lineno)
            case _:
                pass
        pending += reversed(list(ast.iter_child_nodes(node)))
    shadowed = [parameter.arg for parameter in arguments.args if parameter.arg in names.bound]
    return Refused(f"the parameter {shadowed[0]}", function.lineno) if shadowed else None


@dataclass
class _TritonEvaluation:
    """The values of one kernel."""

    function: ast.FunctionDef
    functions: Mapping[str, ast.FunctionDef]
    names: _ModuleNames
    work: SourceWork
    known: dict[str, _Known] = field(default_factory=dict[str, "_Known"])
    stores: list[Output] = field(default_factory=list[Output])
    scalars: dict[str, None] = field(default_factory=dict[str, None])
    constants: set[str] = field(default_factory=set[str])
    lengths: set[str] = field(default_factory=set[str])
    returned: _Known | None = None
    left: bool = False
    depth: int = 0
    loops: int = 0
    branches: int = 0
    variants: Variants = field(default_factory=Variants)
    condition: str = ""
    partial: set[str] = field(default_factory=set[str])
    sizes: set[str] = field(default_factory=set[str])
    divided: set[tuple[Place, Place]] = field(default_factory=set[tuple[Place, Place]])
    bounds: dict[Place, Place] = field(default_factory=dict[Place, Place])
    updates: dict[str, Value] = field(default_factory=dict[str, Value])
    turned: set[str] = field(default_factory=set[str])
    # The lengths of the axes of tensors that blocks were made for, by the indices along them.
    shapes: dict[Place, Place] = field(default_factory=dict[Place, Place])
    defaults: dict[str, float] = field(default_factory=dict[str, float])
    block_counts: set[str] = field(default_factory=set[str])
    # The parameters that are converted to float32.
    rounded: set[str] = field(default_factory=set[str])
    # The dtypes of 16 bits that values have which are stored to tensors, or are factors of products, of no tensor.
    dtypes: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    # What the parameters are at first.
    tensors: dict[str, _Known] = field(default_factory=dict[str, "_Known"])

    def kernel(self) -> ForeignKernel:
        """Read the kernel; what is not understood is why it is unread."""
        self.work.begin()
        try:
            self.evaluate()
        except Refused as refusal:
            return ForeignKernel(self.function.name, self.function.lineno, (), unread=str(refusal))
        group_sizes = self.ungroup()
        return ForeignKernel(
            self.function.name, self.function.lineno, tuple(self.stores), tuple(self.scalars), frozenset(self.lengths),
            self.unread(), tuple(self.variants.texts), self.updates, self.bounds, self.defaults,
            self.parameters(), frozenset(self.block_counts), group_sizes=group_sizes,
        )  # fmt: skip

    def ungroup(self) -> frozenset[str]:
        """Number blocks by rows and columns where they are numbered by groups; the sizes of groups."""
        blocks = grouped_blocks(self.stores)
        stores = [with_digits(store, blocks) for store in self.stores] if blocks is not None else []
        bounds = {index: blocks.ungrouped(index) for index in self.bounds} if blocks is not None else {}
        if blocks is None or None in stores or None in bounds.values():
            return frozenset()
        self.stores = [store for store in stores if store is not None]
        self.bounds = {bounds[index] or index: length for index, length in self.bounds.items()}
        return frozenset({blocks.size})

    def parameters(self) -> tuple[Parameter, ...]:
        """What is known of each parameter of the kernel."""
        hints = {
            id(node.value)
            for node in ast.walk(self.function)
            if isinstance(node, ast.keyword) and node.arg in _KEYWORDS["range"] | _HINTS
        }
        used = {
            node.id
            for statement in self.function.body
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and id(node) not in hints
        }
        return tuple(
            Parameter(parameter.arg, self.kind(parameter.arg), self.dtype(parameter.arg), parameter.arg in used)
            for parameter in self.function.args.args
        )

    def dtype(self, name: str) -> str:
        """The dtype of a tensor: what is stored to it has it, or factors of products have; empty if that is open."""
        of_factors = {dtype for tensor, dtype in self.dtypes if not tensor}
        of_stores = {dtype for tensor, dtype in self.dtypes if tensor == name}
        if name in indices_of(self.stores):
            return "int32"
        dtypes = of_stores or of_factors
        return min(dtypes) if len(dtypes) == 1 and self.kind(name) == "tensor" else ""

    def kind(self, name: str) -> Literal["tensor", "constant", "number"]:
        """What a parameter stands for."""
        if isinstance(self.tensors.get(name), _Pointer):
            return "tensor"
        return "constant" if name in self.constants else "number"

    def evaluate(self) -> None:
        refuse_large(self.function.name, ast.walk(self.function), lambda: 0)
        for function in _called(self.function, self.functions):
            refuse_large(function.name, ast.walk(function), functools.partial(_depth, function))
            if refusal := _not_understood(function, self.names):
                raise refusal
            # What a function of the file is given is not known.
            parameters = [parameter.arg for parameter in self.function.args.args] if function is self.function else []
            Ranks(parameters, self.names.in_language, _FUNCTIONS).check(function.body)
        arguments = self.function.args
        self.constants |= {
            parameter.arg for parameter in arguments.args
            if parameter.annotation is not None and self.names.in_language(parameter.annotation) == "constexpr"
        }  # fmt: skip
        for parameter, default in zip(arguments.args[::-1], arguments.defaults[::-1], strict=False):
            number = self.default(parameter.arg, default)
            if number is not None:
                self.defaults[parameter.arg] = number
            default_value = self.value(default)
            if parameter.arg in self.constants and isinstance(default_value, Number | Scalar):
                self.variants.defaults[parameter.arg] = default_value
        pointers = _pointers(self.function, self.functions, self.names)
        for parameter in arguments.args:
            if parameter.arg in pointers:
                self.known[parameter.arg] = _Pointer(parameter.arg)
            else:
                self.known[parameter.arg] = Scalar(parameter.arg)
                if parameter.arg not in self.constants:
                    self.scalars[parameter.arg] = None
        self.tensors = dict(self.known)
        self.run(self.function.body)

    def default(self, name: str, node: ast.expr) -> float | None:
        """The number that a parameter is by default; None for a word or a dtype, which is no number."""
        default_value = self.value(node)
        match default_value:
            case Number(value) if math.isfinite(value):
                return value
            case Scalar(word) if word in self.constants:
                return None
            case _:
                raise Refused(f"the default {name}={short(node).strip('`')}", node.lineno)

    def bounded(self, condition: Value) -> bool:
        """Whether a condition holds inside of tensors; where that is a part of a row, all parts must be taken."""
        if not is_bound(condition) or not all(map(self.is_dense, walk(condition))):
            return False
        for index, length in bounds_of(condition):
            if self.bounds.setdefault(index, length) != length:
                raise TooLarge(
                    f"it compares an index with {places.written(self.bounds[index])} and with {places.written(length)}"
                )
        self.partial |= parts_of_lengths(condition)
        return True

    def is_dense(self, value: Value) -> bool:
        """Whether an index that is compared with a length goes from block to block by the size of a block."""
        if not isinstance(value, Index) or not self.sizes:
            return True
        inside = [product for product, _ in value.place if any(atom[0] == "r" for atom in product)]
        for product, factor in value.place:
            if inside and any(atom[0] in ("p", "k") for atom in product):
                names = {atom[1] for atom in product if atom[0] == "s"} | (
                    {f"{factor:g}"} if factor != 1 else set[str]()
                )
                if names and not names & self.sizes:
                    return False
        return True

    def unread(self) -> str:
        """Why the kernel is not known: it goes over parts of rows, and not over the others, or uses what has no value
        here."""
        stored_parts = {store.part for store in self.stores}
        missing = next(iter(sorted(self.partial - stored_parts)), "")
        if missing:
            return f"only elements up to {missing} are read"
        # An index does not say how far it goes: a block and a part of it would be taken for the same.
        nested_sizes = [
            (size, containing)
            for size in sorted(self.sizes)
            for containing in self.sizes - {size}
            if size in _words(containing)
        ]
        if nested_sizes:
            return f"it goes over {nested_sizes[0][0]} and over {nested_sizes[0][1]} elements"
        # A length that is the size of a block is one of the first block alone.
        for index, length in self.bounds.items():
            if places.written(length) in self.sizes and any(atom[0] in ("p", "k") for atom in places.atoms(index)):
                return f"only elements up to {places.written(length)} are read"
        if blocks := self.turned & self.sizes:
            return f"it goes over {min(blocks)} in a loop, and over as many elements of a block"
        parameters = {parameter.arg for parameter in self.function.args.args}
        counts = (self.sizes | set(map(places.written, self.bounds.values()))) - self.lengths
        counting = self.counting()
        if rounded := self.rounded & counting:
            return f"{min(rounded)}, which counts elements, is rounded to float32"
        indices = indices_of(self.stores)
        for store in self.stores:
            for term in without_indices(store.value):
                if isinstance(term, Input) and (term.tensor in indices or store.tensor in indices):
                    return f"{term.tensor} has whole numbers"
                if is_rounded(term):
                    return f"{store.tensor} is made of {_ROUNDING.reason}, which has no equivalent in the table"
                if isinstance(term, Formula) and _may_overflow(term, counting):
                    return f"a product of {min(scalars_of(term) & counting)}, which counts elements, may overflow"
                if names := overflowing(term):
                    return f"a product of {min(names)} with a large number may overflow"
                if isinstance(term, Scalar) and term.name not in parameters:
                    return f"what {term.name} is, is not known"
                if isinstance(term, Scalar) and term.name in counts:
                    return f"{term.name}, which counts elements, is one of its values"
                if isinstance(term, Scalar) and term.name in self.lengths and len(self.lengths) > 1:
                    return f"it is not known which of {', '.join(sorted(self.lengths))} is the length of a row"
        return ""

    def counting(self) -> set[str]:
        """The parameters that count elements: lengths, strides, sizes and numbers of blocks."""
        positions = [*self.bounds, *self.bounds.values(), *self.shapes, *self.shapes.values()]
        for store in self.stores:
            inputs = [term for term in walk(store.value) if isinstance(term, Input)]
            positions += [element.place for element in (store, *inputs) if element.place is not None]
        texts = [word for position in positions for symbol in places.atoms(position) for word in symbol[1:]]
        return self.lengths.union(*map(_words, [*texts, *self.sizes, *self.block_counts]))

    def run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.work.step()
            if self.left:
                return
            match statement:
                case ast.Assign(targets, value):
                    evaluated = self.value(value)
                    for target in targets:
                        self.assign(target, evaluated)
                case ast.AnnAssign(target, _, value) if value is not None:
                    self.assign(target, self.value(value))
                case ast.AugAssign(ast.Name(name) as target, operator, value):
                    if name not in self.known:
                        raise Refused(short(statement), statement.lineno)
                    added = self.value(value)
                    self.assign(target, self.combined(_OPERATORS[type(operator)], self.known[name], added))
                case ast.Expr(ast.Constant()) | ast.Pass():
                    pass
                case ast.Expr(ast.Call() as call):
                    self.effect(call)
                case ast.For(ast.Name() as target, iterated, inner):
                    self.loop(target, iterated, inner)
                case ast.If(test, then, otherwise):
                    self.branch(test, then, otherwise)
                case ast.Return(value):
                    if self.loops or self.branches:
                        raise Refused("a return that some elements take", statement.lineno)
                    self.returned = self.value(value) if value is not None else ZERO
                    self.left = True
                case _:
                    raise Refused(short(statement), statement.lineno)

    def effect(self, node: ast.Call) -> None:
        """A call as a statement: what it does must be known."""
        name = self.names.in_language(node.func)
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr == "store" and not name
        is_local_call = isinstance(node.func, ast.Name) and node.func.id in self.functions
        if name in _NO_EFFECT:
            return
        if name == "store" or name.startswith("atomic_") or name in _DESCRIPTOR_STORES or is_method or is_local_call:
            self.value(node)
        else:
            raise Refused(short(node), node.lineno)

    def branch(self, test: ast.expr, then: list[ast.stmt], otherwise: list[ast.stmt]) -> None:
        """Of variants that a constant chooses, the first one; of blocks beyond the tensor, those that are there; what
        depends on other conditions has no value."""
        condition = self.value(test)
        if isinstance(condition, _Pointer | _Many):
            raise Refused(short(test), test.lineno)
        if is_constant(condition):
            leaves = bool(then) and isinstance(then[-1], ast.Return)
            self.run(then if self.holds(condition, test, never=leaves) else otherwise)
        elif self.bounded(condition):
            self.run(then)
            if otherwise:
                raise Refused(short(test), test.lineno)
        elif self.bounded(negated(condition)):
            if [type(statement) for statement in then] != [ast.Return] or self.depth or self.loops or self.branches:
                raise Refused(short(test), test.lineno)
            self.run(otherwise)
        else:
            self.sides(condition, then, otherwise)

    def holds(self, condition: Value, test: ast.expr, never: bool = False) -> bool:
        """Whether a condition on constants of the kernel holds in the variant that is read."""
        match condition:
            case Formula("==" | "!=", (Scalar(), Scalar("None"))):
                # Whether an argument is given is known when the kernel is compiled.
                unknown = set[str]()
            case _:
                unknown = {term.name for term in walk(condition) if isinstance(term, Scalar)} - self.constants
        if unknown:
            raise Refused(f"a choice by {short(test)}, which is no constant,", test.lineno)
        holds = self.variants.holds(condition, ast.unparse(test), never)
        if holds is None:
            raise Refused(f"another choice by the constants of {short(test)}", test.lineno)
        return holds

    def sides(self, condition: Value, *branches: list[ast.stmt]) -> None:
        """Code that runs under a condition that is neither constant nor a bound: what it changes has no value."""
        on_elements = any(isinstance(term, Input | Reduced) for term in walk(condition))
        reason = "a branch on elements" if on_elements else "a branch on indices"
        before, stores = dict(self.known), len(self.stores)
        changed: set[str] = set()
        self.branches += 1
        for body in branches:
            self.known = dict(before)
            leaves = bool(body) and isinstance(body[-1], ast.Return) and body[-1].value is None
            if leaves and not self.depth and not self.loops:
                self.condition = self.condition or reason
            self.run(body[:-1] if leaves and self.condition else body)
            changed |= {name for name, value in self.known.items() if value is not before.get(name)}
        self.branches -= 1
        self.known = before | {name: Unread(reason) for name in changed}
        self.stores[stores:] = [replace(store, value=Unread(reason)) for store in self.stores[stores:]]

    def loop(self, target: ast.Name, iterated: ast.expr, body: list[ast.stmt]) -> None:
        bounds = self.value(iterated)
        if isinstance(bounds, _Pointer | _Many):
            raise Refused(short(iterated), iterated.lineno)
        axes, scalars = axes_of(bounds), scalars_of(bounds)
        iteration, at = self.turns(iterated)
        # Blocks of a loop over a row belong to the row; a persistent loop numbers blocks of the grid.
        self.assign(target, Index(frozenset({"p"}) if "p" in axes else frozenset({"k"}), scalars, at))
        changed = {
            node.id: None for statement in body for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }  # fmt: skip
        if target.id in changed and not _only_hints(target.id, body, self.names):
            raise Refused(f"the variable {target.id} of a loop, which it changes,", iterated.lineno)
        over_blocks = "p" in _axes(self.known.get(target.id))
        before = {name: self.known[name] for name in changed if name in self.known and name != target.id}
        for name, value in before.items():
            if not isinstance(value, _Pointer | _Many) and not is_index(value):
                self.known[name] = Carried(name, value)
        self.loops += 1
        self.advance(before, iteration, body)
        stores = len(self.stores)
        self.run(body)
        self.stores[stores:] = [stored_in_turns(store, iteration) for store in self.stores[stores:]]
        self.loops -= 1
        for name, value in before.items():
            update = self.known[name]
            if isinstance(update, Value):
                twice = self.updates.get(name, update) != update
                self.updates[name] = Unread("what several loops change") if twice else update
            self.known[name] = self.after(name, value, self.known[name], iteration, over_blocks)
        for name in changed.keys() - before.keys():
            last = self.known.get(name)
            if isinstance(last, _Pointer | _Many):
                self.known[name] = Unread("an address of the last turn of a loop")
            elif last is not None:
                self.known[name] = last_turn(last, iteration)
        # What the last turn had must not be taken for what another loop has.
        for name in (*changed, target.id):
            last = self.known.get(name)
            if isinstance(last, Index) and places.atoms(last.place) & places.atoms(iteration):
                self.known[name] = Unread("the last turn of a loop")
            if isinstance(last, _Pointer) and places.atoms(last.place) & places.atoms(iteration):
                self.known[name] = replace(last, place=UNKNOWN)

    def after(self, name: str, value: _Known, after: _Known, iteration: Place, over_blocks: bool) -> _Known:
        """What a variable holds after a loop that began with `value` and made `after` of it in its last turn."""
        if isinstance(after, _Pointer):
            return after if after == value else replace(after, place=UNKNOWN)
        if isinstance(after, _Many) or isinstance(value, _Pointer | _Many):
            return Unread("several values in a loop")
        if isinstance(after, Index) and after != value:
            return replace(after, place=UNKNOWN)
        if any(map(is_rounded, walk(after))):
            return _ROUNDING
        is_carried = any(isinstance(term, Carried) and term.name == name for term in walk(after))
        product = any(isinstance(term, MatMul) for term in walk(after))
        if not is_carried and after != value and product:
            return Unread("the product of the last turn of a loop")
        if over_blocks and is_carried and not product and not is_index(after):
            return Unread("a sum over blocks")
        return after_loop(name, value, after, iteration)

    def turns(self, iterated: ast.expr) -> tuple[Place, Place]:
        """The number of a turn of a loop, and what the loop's variable is in it."""
        match iterated:
            case ast.Call(func, arguments) if 0 < len(arguments) < 4 and (
                self.names.in_language(func) or ast.unparse(func)
            ) in ("range", "static_range"):
                range_arguments = [self.value(argument) for argument in arguments]
                positions = [
                    UNKNOWN if isinstance(argument, _Pointer | _Many) else place_of(argument)
                    for argument in range_arguments
                ]
                start, end, step = (
                    (NOWHERE, positions[0], places.number(1.0))
                    if len(positions) == 1
                    else (*positions, places.number(1.0))[:3]
                )
                if start and {atom[0] for atom in places.atoms(start)} == {"p"} and places.is_count(end):
                    # A persistent loop: another number of a block.
                    self.block_counts.add(places.written(end))
                    program_index = places.atom("p", f"{places.written(start)} by {places.written(step)}")
                    return program_index, program_index
                self.lengths |= places.length_of(end)
                iteration, at = places.turns(self.loops, start, end, step)
                if iteration != UNKNOWN:
                    self.turned |= {places.written(end)}
                    return iteration, at
            case _:
                pass
        raise Refused(f"the range of a loop, {short(iterated)},", iterated.lineno)

    def advance(self, before: Mapping[str, _Known], iteration: Place, body: list[ast.stmt]) -> None:
        """Move addresses and indices that each turn of a loop moves by the same distance to the current turn."""
        moving = {name: value for name, value in before.items() if isinstance(value, _Pointer | Index)}
        if not moving:
            return
        values, stores, variant_state = dict(self.known), len(self.stores), self.variants.state()
        self.run(body)
        after = self.known
        self.known = values
        del self.stores[stores:]
        self.variants.reset(variant_state)
        for name, value in moving.items():
            moved = after.get(name)
            if not isinstance(moved, _Pointer | Index) or isinstance(moved, _Pointer) != isinstance(value, _Pointer):
                self.known[name] = Unread(f"{name}, which a loop changes")
                continue
            by = places.plus(moved.place, value.place, -1.0)
            fixed = all(atom[0] in ("s", "p") for atom in places.atoms(by))
            position = (
                places.plus(value.place, places.times(iteration, by))
                if fixed and by
                else UNKNOWN
                if by
                else value.place
            )
            self.known[name] = replace(value, place=position)

    def assign(self, target: ast.expr, value: _Known) -> None:
        match target, value:
            case ast.Name(name), _:
                self.known[name] = value
            case ast.Tuple(elements) | ast.List(elements), _Many(values) if len(elements) == len(values):
                for element, element_value in zip(elements, values, strict=True):
                    self.assign(element, element_value)
            case _:
                raise Refused(short(target), target.lineno)

    def value(self, node: ast.expr) -> _Known:
        self.work.step()
        match node:
            case ast.Constant(bool() | int() as number) if abs(number) < 2**53:
                return Number(float(number))
            case ast.Constant(float() as number):
                return Number(number, is_float=True)
            case ast.Constant(str() | None as word):
                # What a constant of the kernel is compared with.
                self.constants.add(repr(word))
                return Scalar(repr(word))
            case ast.Name(name) if name in self.known:
                return self.known[name]
            case ast.Name(name) if name in self.names.numbers:
                number = self.names.numbers[name]
                return Number(float(number), isinstance(number, float))
            case ast.UnaryOp(ast.USub(), operand):
                inner = self.value(operand)
                if isinstance(inner, Number):
                    return Number(-inner.value, inner.is_float)
                return self.combined("*", Number(-1.0), inner)
            case ast.UnaryOp(ast.UAdd(), operand):
                return self.value(operand)
            case ast.UnaryOp(ast.Not(), operand):
                inner = self.value(operand)
                if isinstance(inner, _Pointer | _Many) or not is_constant(inner):
                    raise Refused(short(node), node.lineno)
                return negated(inner)
            case ast.BoolOp(operator, values):
                sides = [side for side in map(self.value, values) if not isinstance(side, _Pointer | _Many)]
                if len(sides) < len(values) or not all(is_constant(side) or _is_scalar(side) for side in sides):
                    raise Refused(short(node), node.lineno)
                name = "&" if isinstance(operator, ast.And) else "|"
                return functools.reduce(lambda so_far, side: Formula(name, (so_far, side)), sides)
            case ast.BinOp(left, operator, right):
                return self.combined(_OPERATORS[type(operator)], self.value(left), self.value(right))
            case ast.Compare(left, [operator], [right]):
                return self.compared(_COMPARISONS[type(operator)], self.value(left), self.value(right))
            case ast.IfExp(test, then, otherwise):
                condition = self.value(test)
                if isinstance(condition, _Pointer | _Many) or not is_constant(condition):
                    raise Refused(short(node), node.lineno)
                return self.value(then if self.holds(condition, test) else otherwise)
            case ast.Subscript(value, indices):
                return self.subscript(self.value(value), indices)
            case ast.Tuple(elements) | ast.List(elements):
                return _Many(tuple(map(self.value, elements)))
            case ast.Attribute(value, "T"):
                inner_value = self.value(value)
                if isinstance(inner_value, _Pointer | _Many):
                    raise Refused(short(node), node.lineno)
                return Formula("transposed", (inner_value,))
            case ast.Call():
                return self.call(node)
            case ast.Attribute(ast.Name(name), "dtype") if isinstance(inner_value := self.known.get(name), Input):
                self.constants.add(f"{inner_value.tensor}.dtype")
                return Scalar(f"{inner_value.tensor}.dtype")
            case ast.Attribute() if (path := self.names.path(node)) and self.is_fixed(path[0]):
                # A dtype, and what else the compiler knows.
                self.constants.add(ast.unparse(node))
                return Scalar(ast.unparse(node))
            case _:
                raise Refused(short(node), node.lineno)

    def is_fixed(self, name: str) -> bool:
        """Whether a name is a parameter that has its first value, or a module."""
        value = self.known.get(name)
        is_parameter = isinstance(value, _Pointer) and value.tensor == name and value.place == NOWHERE
        return (
            is_parameter or value == Scalar(name) or (value is None and name in self.names.language | self.names.triton)
        )

    def compared(self, name: str, left: _Known, right: _Known) -> Value:
        if isinstance(left, _Pointer | _Many) or isinstance(right, _Pointer | _Many):
            return Unread("a comparison of addresses")
        for operand, counterpart in ((left, right), (right, left)):
            # Elements of one row; with a number of the block they count all elements.
            if (
                is_index(operand)
                and axes_of(operand) & {"r", "r1"}
                and "p" not in axes_of(operand)
                and not is_index(counterpart)
            ):
                self.lengths |= scalars_of(counterpart)
        return operation(name, left, right)

    def combined(self, name: str, left: _Known, right: _Known) -> _Known:
        for pointer, offset in ((left, right), (right, left)):
            if isinstance(pointer, _Pointer) and not isinstance(offset, _Pointer | _Many):
                axes, scalars = pointer.axes | axes_of(offset), pointer.scalars | scalars_of(offset)
                step, index = place_with_index(offset)
                fits = name == "+" or (name == "-" and pointer is left and index is None)
                if not fits or (index is not None and pointer.by is not None):
                    step = UNKNOWN
                position = places.plus(pointer.place, step, -1.0 if name == "-" else 1.0)
                return replace(pointer, axes=axes, scalars=scalars, place=position, by=pointer.by or index)
        if isinstance(left, _Pointer | _Many) or isinstance(right, _Pointer | _Many):
            return Unread("arithmetic on addresses")
        if name in ("+", "-") and all(isinstance(side, Formula) and side.name in _TRUTHS for side in (left, right)):
            return Unread("arithmetic on single bits")
        if name == "pow" and isinstance(left, Number):
            return Unread("a power of a number")
        result = operation(name, left, right)
        if isinstance(result, Number) and any(isinstance(side, Number) and side.is_float for side in (left, right)):
            return replace(result, is_float=True)
        if name == "/" and isinstance(result, Index):
            return Unread("a fraction of an index")
        if name == "//":
            self.divided.add((place_of(left), place_of(right)))
        if name == "%" and isinstance(result, Index):
            return replace(result, place=places.remainder(place_of(left), place_of(right), self.divided))
        return result

    def subscript(self, value: _Known, indices: ast.expr) -> _Known:
        index_nodes = indices.elts if isinstance(indices, ast.Tuple) else [indices]
        full_slices = [
            isinstance(index_node, ast.Slice) and (index_node.lower, index_node.upper, index_node.step) == (None,) * 3
            for index_node in index_nodes
        ]
        if (
            len(index_nodes) == 2
            and isinstance(value, Value)
            and sum(full_slices) == 1
            and any(map(_is_none, index_nodes))
        ):
            axis = "r0" if _is_none(index_nodes[1]) else "r1"
            if isinstance(value, Index):
                if not axes_of(value) <= {"r", "p", "k"}:
                    raise Refused(f"an index of a block, {short(indices)},", indices.lineno)
                axes = frozenset(axis if name == "r" else name for name in value.axes)
                return Index(axes, value.scalars, _along(value.place, axis))
            if axis == "r1" and any(
                isinstance(term, Reduced) and {"r0", "r1"} <= axes_of(term) for term in walk(value)
            ):
                raise Refused(f"a value of a row as one of a column, {short(indices)},", indices.lineno)
            return replaced(value, lambda term: _turned(term, axis))
        match value, indices:
            case _Many(values), ast.Constant(int() as number) if 0 <= number < len(values):
                return values[number]
            case _:
                raise Refused(f"an index of a block, {short(indices)},", indices.lineno)

    def argument(self, node: ast.Call, position: int, name: str) -> ast.expr | None:
        """An argument of a function of the language, by its position or name."""
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        return node.args[position] if len(node.args) > position else keywords.get(name)

    def call(self, node: ast.Call) -> _Known:
        name = self.names.in_language(node.func)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            raise Refused(short(node), node.lineno)
        if not name:
            return self.other_call(node, keywords)
        odd = keywords.keys() - _KEYWORDS.get(name, set())
        if odd and (name in _KEYWORDS or name in _FUNCTIONS or name in _SAME):
            raise Refused(f"{min(odd)}= of tl.{name}", node.lineno)
        match name, node.args:
            case "program_id" | "num_programs", _:
                axis = self.argument(node, 0, "axis")
                number = self.value(axis) if axis is not None else None
                if not isinstance(number, Number) or number.value not in (0.0, 1.0, 2.0):
                    raise Refused(short(node), node.lineno)
                program_index = places.atom("p", f"{number.value:g})") if name == "program_id" else places.atom(
                    "s", f"tl.num_programs({number.value:g})"
                )  # fmt: skip
                return Index(frozenset({"p"}), frozenset(), program_index)
            case "arange", [begin, end]:
                size = self.value(end)
                if isinstance(size, _Pointer | _Many) or self.value(begin) != ZERO or place_of(size) == UNKNOWN:
                    raise Refused(short(node), node.lineno)
                text = places.written(place_of(size))
                self.sizes.add(text)
                return Index(frozenset({"r"}), frozenset(), places.atom("r", "r", text))
            case "load", [address, *_]:
                return self.load(node, self.value(address))
            case "store", [address, value, *_]:
                to = self.value(address)
                mask = self.masked(self.argument(node, 2, "mask"), to)
                stored_value = self.value(value)
                self.stored(to, Unread(mask) if mask else stored_value)
                return ZERO
            case _, [address, *_] if name.startswith("atomic_"):
                self.stored(self.value(address), Unread(f"tl.{name}"))
                return Unread(f"tl.{name}")
            case "make_block_ptr" | "make_tensor_descriptor" | "_experimental_make_tensor_descriptor", _:
                order = ["base", "shape", "strides", "offsets", "block_shape", "order"]
                order = (
                    order if name == "make_block_ptr" else [parameter for parameter in order if parameter != "offsets"]
                )
                supplied = dict(zip(order, node.args, strict=False)) | keywords
                if "base" not in supplied:
                    raise Refused(short(node), node.lineno)
                return self.blocks(self.value(supplied["base"]), supplied)
            case "advance", [address, by]:
                return self.moved(self.value(address), by, fresh=False)
            case _, [address, at] if name in _DESCRIPTOR_LOADS:
                return self.loaded(self.moved(self.value(address), at))
            case _, [address, value, at] if name in _DESCRIPTOR_STORES:
                self.stored(self.moved(self.value(address), at), self.value(value))
                return ZERO
            case "dot", _ if "out_dtype" in keywords and self.is_whole(keywords["out_dtype"]):
                return Unread("a product of whole numbers")
            case "dot", _ if "out_dtype" in keywords and self.is_half(keywords["out_dtype"]):
                return _ROUNDING
            case "dot", [a, b, *rest] if len(rest) < 2:
                return self.product(a, b, rest[0] if rest else keywords.get("acc"))
            case "sum" | "max" | "min", [value, *rest] if len(rest) < 2:
                return self.reduction(name, node, self.value(value))
            case "cumsum", [value, *rest] if len(rest) < 2:
                return self.scanned(node, self.value(value))
            case "zeros" | "zeros_like", supplied:
                dtype = keywords.get("dtype", supplied[1] if len(supplied) > 1 else None)
                return self.held_as(dtype) or Number(0.0, is_float=True)
            case "full", _:
                return self.filled(node)
            case "where", [condition, then, otherwise]:
                return self.chosen(self.value(condition), self.value(then), self.value(otherwise), condition)
            case "fma", [a, b, c]:
                return self.combined("+", self.combined("*", self.value(a), self.value(b)), self.value(c))
            case "range" | "static_range", arguments:
                return self.index_of(arguments)
            case "cdiv", [above, below]:
                return self.rounded_up(self.value(above), self.value(below), node)
            case "trans", [value]:
                inner = self.value(value)
                if isinstance(inner, _Pointer | _Many):
                    raise Refused(short(node), node.lineno)
                return Formula("transposed", (inner,))
            case "cast", _:
                value, to = self.argument(node, 0, "input"), self.argument(node, 1, "dtype")
                if value is None or to is None:
                    raise Refused(short(node), node.lineno)
                return self.converted(value, to)
            case (("multiple_of" | "max_contiguous"), [value, _]):
                return self.value(value)
            case _, [value] if re.fullmatch(r"b?float\d+", name):
                return self.converted(value, node.func)
            case _, arguments if name in _FUNCTIONS:
                values = [self.value(argument) for argument in arguments]
                if any(isinstance(operand, _Pointer | _Many) for operand in values):
                    raise Refused(short(node), node.lineno)
                return operation(
                    _FUNCTIONS[name], *[operand for operand in values if not isinstance(operand, _Pointer | _Many)]
                )
            case _:
                for argument in (*node.args, *keywords.values()):
                    if not isinstance(self.value(argument), Value) or name == "inline_asm_elementwise":
                        raise Refused(short(node), node.lineno)
                return Unread(f"tl.{name}")

    def load(self, node: ast.Call, address: _Known) -> Value:
        """tl.load with its mask, and what stands for elements that the mask leaves out."""
        mask, fill = self.argument(node, 1, "mask"), self.argument(node, 2, "other")
        reason = self.masked(mask, address)
        beyond = self.value(fill) if fill is not None else Number(float("nan"))
        loaded_value = self.loaded(address)
        if reason:
            return Unread(reason)
        if isinstance(loaded_value, Input) and mask is not None:
            return replace(loaded_value, beyond=beyond.value if isinstance(beyond, Number) else float("nan"))
        return loaded_value

    def reduction(self, name: str, node: ast.Call, inner: _Known) -> Value:
        axis = self.argument(node, 1, "axis")
        along = self.value(axis) if axis is not None else None
        if isinstance(inner, _Pointer | _Many) or (along is not None and not isinstance(along, Number)):
            raise Refused(short(node), node.lineno)
        axes = {*axes_of(inner)} & {"r", "r0", "r1"}
        if not axes and not any(
            isinstance(term, Unread) or (isinstance(term, Formula) and term.name == "edge") for term in walk(inner)
        ):
            return Unread("a reduction of one number for each element of a block")
        number = None if along is None else int(along.value)
        if axes == {"r0", "r1"} and number not in (1, -1):
            return Unread("a reduction over the rows of a block")
        if axes == {"r"} and number not in (None, 0, -1):
            raise Refused(short(node), node.lineno)
        if axes in ({"r0"}, {"r0", "r"}, {"r1"}) and number != 1:
            return Unread("a reduction over the rows of a block")
        if isinstance(inner, Reduced) and inner.kind == name and not inner.together:
            return replace(inner, together=True)
        if any(isinstance(term, Reduced) and not term.together for term in walk(inner)):
            return Unread("a reduction of what a loop has reduced for each element of a block")
        return Reduced(name, inner, together=True)

    def scanned(self, node: ast.Call, inner: _Known) -> Value:
        """Sums of the elements of a row up to each, along the last axis of a block that has all of the row."""
        axis = self.argument(node, 1, "axis")
        along = self.value(axis) if axis is not None else ZERO
        axes = {*axes_of(inner)} & {"r", "r0", "r1"} if isinstance(inner, Value) else set[str]()
        last = {frozenset({"r"}): (0.0, -1.0), frozenset({"r0", "r1"}): (1.0, -1.0)}.get(frozenset(axes), ())
        if not isinstance(inner, Value) or not isinstance(along, Number) or along.value not in last:
            raise Refused(short(node), node.lineno)
        if any(
            isinstance(term, Carried)
            or (isinstance(term, Input) and "k" in {atom[0] for atom in places.atoms(term.place or UNKNOWN)})
            for term in walk(inner)
        ):
            return Unread("sums of a part of a row up to each element")
        return Formula(SCAN, (inner,))

    def filled(self, node: ast.Call) -> _Known:
        value, dtype = self.argument(node, 1, "value"), self.argument(node, 2, "dtype")
        if value is None:
            raise Refused(short(node), node.lineno)
        fill = self.value(value)
        # Of whole numbers, others than those of indices are not read.
        return self.held_as(dtype) or (replace(fill, is_float=True) if isinstance(fill, Number) else fill)

    def rounded_up(self, above: _Known, below: _Known, node: ast.Call) -> Value:
        if isinstance(above, _Pointer | _Many) or isinstance(below, _Pointer | _Many):
            raise Refused(short(node), node.lineno)
        position = places.combined("cdiv", place_of(above), place_of(below))
        return Index(axes_of(above) | axes_of(below), scalars_of(above) | scalars_of(below), position)

    def other_call(self, node: ast.Call, keywords: Mapping[str, ast.expr]) -> _Known:
        match node.func:
            case ast.Name(name) if name in self.functions and name not in self.names.bound:
                return self.inlined(self.functions[name], node, keywords)
            case ast.Name("min" | "max" | "range" | "abs" as name) if not keywords and name not in self.names.bound:
                return self.index_of(node.args) if name == "range" else self.extreme(name, node.args)
            case ast.Name("float") if len(node.args) == 1 and not keywords and "float" not in self.names.bound:
                match node.args[0]:
                    case ast.Constant(int() | float() as number) if abs(number) < 2**53:
                        return Number(float(number), is_float=True)
                    case ast.Constant("inf" | "-inf" | "+inf" as word):
                        return Number(float(word))
                    case _:
                        raise Refused(short(node), node.lineno)
            case ast.Attribute(value, "to" | "cast") if len(node.args) == 1 and not keywords:
                return self.converted(value, node.args[0])
            case ast.Attribute(value, "load") if len(node.args) == 1 and not keywords:
                return self.loaded(self.moved(self.value(value), node.args[0]))
            case ast.Attribute(value, "store") if len(node.args) == 2 and not keywords:
                self.stored(self.moved(self.value(value), node.args[0]), self.value(node.args[1]))
                return ZERO
            case _:
                raise Refused(f"the function {ast.unparse(node.func)[:60]}", node.lineno)

    def is_whole(self, dtype: ast.expr) -> bool:
        return re.match(r"u?int\d+$", self.names.in_language(dtype)) is not None

    def is_half(self, dtype: ast.expr) -> bool:
        """Whether a dtype is one of floating-point numbers of 16 bits."""
        return _HALF.fullmatch(self.names.in_language(dtype)) is not None

    def converted(self, node: ast.expr, to: ast.expr) -> _Known:
        """A value in another dtype: the same, but for what whole numbers lose."""
        unconverted = self.value(node)
        if isinstance(unconverted, _Pointer | _Many):
            return Unread("a conversion of addresses")
        self.check_dtype(to)
        dtype = self.names.in_language(to)
        if dtype.startswith("float8"):
            return Unread("a conversion to 8 bits")
        is_truth = isinstance(unconverted, Formula) and unconverted.name in _TRUTHS
        if is_index(unconverted) and not is_truth and not _LONG.fullmatch(dtype):
            return Unread(f"an index in {short(to)}")
        if is_rounded(unconverted):
            return unconverted if Scalar(dtype) in unconverted.arguments else _ROUNDING
        if self.is_half(to) and not is_truth and not isinstance(unconverted, Unread):
            return Formula("rounded", (unconverted, Scalar(dtype)))
        if dtype == "float32":
            # A length is rounded.
            self.rounded |= scalars_of(unconverted) if is_constant(unconverted) else set[str]()
        if isinstance(unconverted, Input) and _LONG.fullmatch(dtype):
            # Of a tensor of whole numbers alone, this changes nothing.
            return Formula("whole", (unconverted,))
        return (
            Unread("a conversion to whole numbers") if self.is_whole(to) and not is_index(unconverted) else unconverted
        )

    def held_as(self, dtype: ast.expr | None) -> Unread | None:
        """Say why numbers of a dtype are not those of elements; None if they are, or no dtype is given."""
        if dtype is None:
            return None
        self.check_dtype(dtype)
        is_short = self.names.in_language(dtype).startswith("float8")
        if self.is_half(dtype):
            return _ROUNDING
        return Unread("numbers of 8 bits") if is_short else Unread("whole numbers") if self.is_whole(dtype) else None

    def check_dtype(self, to: ast.expr) -> None:
        """Refuse what is no dtype that is known, nor that of a tensor or a constant of the kernel."""
        path = self.names.path(to)
        is_known = _DTYPE.fullmatch(self.names.in_language(to)) is not None or path[-1:] in (
            ("dtype",),
            ("element_ty",),
        )
        if not is_known and not (len(path) == 1 and path[0] in self.constants):
            raise Refused(f"the dtype {short(to)}", to.lineno)

    def extreme(self, name: str, arguments: list[ast.expr]) -> Value:
        values = [value for value in map(self.value, arguments) if not isinstance(value, _Pointer | _Many)]
        if len(values) != 2 or len(arguments) != 2:
            raise Refused(f"the function {name}", arguments[0].lineno if arguments else self.function.lineno)
        if all(map(is_constant, values)):
            raise Refused(f"the function {name} of lengths or constants", arguments[0].lineno)
        return operation(name, *values)

    def index_of(self, arguments: list[ast.expr]) -> Value:
        values = [value for value in map(self.value, arguments) if not isinstance(value, _Pointer | _Many)]
        axes = frozenset[str]().union(*(axes_of(value) for value in values))
        return Index(axes, frozenset[str]().union(*(scalars_of(value) for value in values)), UNKNOWN)

    def blocks(self, base: _Known, supplied: Mapping[str, ast.expr]) -> _Known:
        """The address of a block of a tensor with these strides."""
        if not isinstance(base, _Pointer):
            return base
        blocks = self.value(supplied["block_shape"]) if "block_shape" in supplied else Unread("no shape")
        sizes = (
            [place_of(size) for size in blocks.values if isinstance(size, Value)] if isinstance(blocks, _Many) else []
        )
        strides, shape = tuple(self.parts(supplied.get("strides"))), tuple(self.parts(supplied.get("shape")))
        if not all(map(_is_length, shape)) or len(shape) != len(strides):
            return Unread("a block of a tensor whose shape is not known")
        if UNKNOWN in sizes or len(sizes) != len(strides) or len(sizes) > 2 or not sizes:
            return Unread("a block of a shape that is not known")
        self.sizes |= set(map(places.written, sizes))
        pointer = replace(
            base, axes=base.axes | {"r0", "r1", "p"}, strides=strides, blocks=tuple(map(places.written, sizes)),
            shape=shape,
        )  # fmt: skip
        return self.moved(pointer, supplied["offsets"]) if "offsets" in supplied else pointer

    def parts(self, node: ast.expr | None) -> list[Place]:
        node_value = self.value(node) if node is not None else Unread("nothing")
        values = node_value.values if isinstance(node_value, _Many) else (node_value,)
        return [UNKNOWN if isinstance(value, _Pointer | _Many) else place_of(value) for value in values]

    def moved(self, address: _Known, by: ast.expr, fresh: bool = True) -> _Known:
        """A block of a tensor at some rows and columns; if it is not `fresh`, so much further."""
        if not isinstance(address, _Pointer):
            return address
        steps = self.parts(by)
        # A descriptor that is a parameter has rows one after the other, and blocks of a shape that is not known.
        strides = address.strides or (
            *(places.atom("s", f"{address.tensor} {n}") for n in steps[1:]),
            places.number(1.0),
        )
        position = address.place
        if len(steps) != len(strides):
            position = UNKNOWN
        for number, (step, stride) in enumerate(zip(steps, strides, strict=False)):
            axis = "r" if len(steps) == 1 else f"r{number + 2 - len(steps)}"
            size = address.blocks[number] if number < len(address.blocks) else ""
            inside = places.plus(step, places.atom("r", axis, size)) if fresh else step
            if fresh and number < len(address.shape):
                index = places.plus(step, places.atom("r", "r", size))
                if self.shapes.setdefault(index, address.shape[number]) != address.shape[number]:
                    lengths = places.written(self.shapes[index]), places.written(address.shape[number])
                    raise Refused(f"an index that goes up to {lengths[0]} and to {lengths[1]}", by.lineno)
            position = places.plus(position, places.times(inside, stride))
        return replace(address, axes=address.axes | {"r0", "r1", "p"}, place=position)

    def inlined(self, function: ast.FunctionDef, node: ast.Call, keywords: Mapping[str, ast.expr]) -> _Known:
        if self.depth > 3:
            raise Refused(f"calls inside of each other, of {function.name},", node.lineno)
        arguments = [parameter.arg for parameter in function.args.args]
        bindings = dict(zip(arguments, map(self.value, node.args), strict=False))
        defaults = dict(zip(reversed(arguments), reversed(function.args.defaults), strict=False))
        if len(node.args) > len(arguments) or keywords.keys() & bindings.keys() or keywords.keys() - set(arguments):
            raise Refused(short(node), node.lineno)
        bindings |= {name: self.value(value) for name, value in keywords.items()}
        for name in arguments:
            if name not in bindings:
                if not isinstance(defaults.get(name), ast.Constant):
                    raise Refused(f"a call of {function.name} without {name}", node.lineno)
                bindings[name] = self.value(defaults[name])
        inner = replace(self, function=function, known=bindings, returned=None, left=False, depth=self.depth + 1)
        if self.loops or self.branches:
            # Its own statements may return.
            inner.loops, inner.branches = self.loops, self.branches
        inner.run_as_function()
        return inner.returned if inner.returned is not None else ZERO

    def run_as_function(self) -> None:
        """Run the body of a function that is called: it returns at its end alone, or where a constant says so."""
        *body, last = self.function.body
        self.run(body)
        if isinstance(last, ast.Return) and not self.left:
            self.returned = self.value(last.value) if last.value is not None else ZERO
            self.left = True
        elif not self.left:
            self.run([last])

    def masked(self, mask: ast.expr | None, address: _Known) -> str:
        """Why it is not known which elements a mask lets through, empty if they are those inside of the tensor."""
        if mask is None:
            return ""
        condition = self.value(mask)
        if isinstance(condition, _Pointer | _Many):
            return "a mask of addresses"
        if isinstance(condition, Unread):
            return condition.reason
        if not self.bounded(condition):
            return "elements that a mask chooses"
        if isinstance(address, _Pointer):
            for index, _ in bounds_of(condition):
                if not places.moves_with(followed(address.place, address.by), index):
                    return "elements that a mask of others chooses"
        return ""

    def loaded(self, address: _Known) -> Value:
        if not isinstance(address, _Pointer):
            return address if isinstance(address, Unread) else Unread("a load from what is no parameter")
        offset = places.written(places.distance(address.place))
        element = Input(address.tensor, address.axes, "" if offset == "0" else offset, address.place, by=address.by)
        return read_back(element, self.stores)

    def stored(self, address: _Known, value: _Known) -> None:
        if isinstance(address, _Pointer):
            stored_value = Unread("an address") if isinstance(value, _Pointer | _Many) else value
            self.dtypes |= _dtype_of(stored_value, address.tensor)
            stored_value = Unread(self.condition) if self.condition else _unrounded(stored_value)
            offset = places.written(places.distance(address.place))
            self.stores.append(
                Output(address.tensor, address.axes, stored_value, "" if offset == "0" else offset, address.place)
            )
        else:
            self.stores.append(Output("a tensor", frozenset(), Unread("an address that is no parameter")))

    def product(self, a: ast.expr, b: ast.expr, accumulator: ast.expr | None) -> Value:
        left, right = self.value(a), self.value(b)
        if isinstance(left, _Pointer | _Many) or isinstance(right, _Pointer | _Many):
            raise Refused("tl.dot of an address", a.lineno)
        beyond = [
            operand.beyond for operand in (left, right) if isinstance(operand, Input) and operand.beyond is not None
        ]
        if len(beyond) == 2 and not any(number == 0 or number != number for number in beyond):
            return Unread("a product of elements beyond the edge")
        left, right = self.factor(left), self.factor(right)
        transposed = False
        if isinstance(right, Formula) and right.name == "transposed":
            right, transposed = self.factor(right.arguments[0]), True
        # Beyond the edge of K, one zero is enough.
        product: Value = MatMul(self.factor(inside(left, ZERO)), self.factor(inside(right, ZERO)), transposed)
        before = self.value(accumulator) if accumulator is not None else ZERO
        if isinstance(before, _Pointer | _Many):
            raise Refused("tl.dot to an address", a.lineno)
        return operation("+", before, product)

    def factor(self, value: Value) -> Value:
        """A factor of a product without its last rounding to 16 bits: tensors have that dtype."""
        self.dtypes |= _dtype_of(value, "")
        return _unrounded(value)

    def chosen(self, condition: _Known, then: _Known, otherwise: _Known, node: ast.expr) -> Value:
        values = (condition, then, otherwise)
        if any(isinstance(value, _Pointer | _Many) for value in values):
            raise Refused("tl.where of addresses", node.lineno)
        checked = [value for value in values if not isinstance(value, _Pointer | _Many)]
        if is_constant(checked[0]):
            return checked[1] if self.holds(checked[0], node) else checked[2]
        if is_number_beyond(checked[2]) and self.bounded(checked[0]):
            # A mask of the edge: what lies beyond it does not exist here, but in a reduction it counts.
            return edge(checked[1], checked[2])
        return operation("where", *checked)


def _called(function: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef]) -> list[ast.FunctionDef]:
    """A kernel and the functions of the file that it calls, directly or not."""
    reached: dict[str, ast.FunctionDef] = {function.name: function}
    pending = [function]
    while pending:
        for node in ast.walk(pending.pop()):
            match node:
                case ast.Call(ast.Name(name)) if name in functions and name not in reached:
                    reached[name] = functions[name]
                    pending.append(functions[name])
                case _:
                    pass
    return list(reached.values())


def _depth(function: ast.FunctionDef) -> int:
    """How many nodes lie inside of each other."""
    deepest = 0
    pending: list[tuple[ast.AST, int]] = [(function, 1)]
    while pending:
        node, depth = pending.pop()
        deepest = max(deepest, depth)
        # What is deeper is refused: it need not be counted.
        if depth <= DEEPEST:
            pending += [(child, depth + 1) for child in ast.iter_child_nodes(node)]
    return deepest


def _only_hints(name: str, body: list[ast.stmt], names: _ModuleNames) -> bool:
    """Whether a variable is changed by hints to the compiler alone: ``i = tl.multiple_of(i, 16)``."""
    for statement in body:
        for node in ast.walk(statement):
            match node:
                case ast.Assign([ast.Name(assigned)], ast.Call(func, [ast.Name(same), *_])) if assigned == name == same:
                    if names.in_language(func) not in ("multiple_of", "max_contiguous"):
                        return False
                case ast.Assign(targets) if any(_stores(target, name) for target in targets):
                    return False
                case ast.AugAssign(target) | ast.AnnAssign(target) | ast.For(target) if _stores(target, name):
                    return False
                case _:
                    pass
    return True


def _stores(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))


def _is_scalar(value: Value) -> bool:
    """Whether a condition is about numbers of blocks alone."""
    return value.leaves <= {"Index", "Number", "Scalar"} and not axes_of(value) & {"r", "r0", "r1"}


def _axes(value: _Known | None) -> frozenset[str]:
    return frozenset() if value is None or isinstance(value, _Pointer | _Many) else axes_of(value)


def _along(position: Place, axis: str) -> Place:
    """A place whose elements are rows or columns of a block."""
    return places.renamed(position, lambda atom: ("r", axis, atom[2]) if atom[:2] == ("r", "r") else atom)


def _turned(value: Value, axis: str) -> Value | None:
    match value:
        case Input(place=place) if place is not None:
            axes = frozenset(axis if letter == "r" else letter for letter in value.axes)
            return replace(value, axes=axes, place=_along(place, axis) if value.by is None else UNKNOWN)
        case Index(place=place):
            axes = frozenset(axis if letter == "r" else letter for letter in value.axes)
            return replace(value, axes=axes, place=_along(place, axis))
        case _:
            return None


def _pointers(
    function: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef], names: _ModuleNames,
    found_before: dict[str, set[str]] | None = None,
) -> set[str]:  # fmt: skip
    """The parameters whose addresses are loaded from or stored to: those that the addresses are made of by additions,
    through assignments and calls. `found_before` are those of functions that were looked at, or are."""
    found_before = {} if found_before is None else found_before
    if function.name in found_before:
        return found_before[function.name]
    found_before[function.name] = set()
    parameters = {parameter.arg for parameter in function.args.args}
    sources: dict[str, set[str]] = {parameter: {parameter} for parameter in parameters}
    for _ in range(3):
        for node in ast.walk(function):
            match node:
                case ast.Assign([ast.Name(name)], value) | ast.AugAssign(ast.Name(name), _, value):
                    terms = _terms(value, sources)
                    sources[name] = sources.get(name, set()) | terms
                case _:
                    pass
    bases: list[set[str]] = []
    for node in ast.walk(function):
        match node:
            case ast.Call(func, [address, *_]) if names.in_language(func) in (
                "load", "store", "atomic_add", "make_block_ptr", "make_tensor_descriptor", "atomic_cas", "atomic_xchg",
                *_DESCRIPTOR_LOADS, *_DESCRIPTOR_STORES,
            ):  # fmt: skip
                bases.append(_terms(address, sources))
            case ast.Call(func, _, keywords) if names.in_language(func) in ("make_block_ptr", "make_tensor_descriptor"):
                for keyword in keywords:
                    if keyword.arg == "base":
                        bases.append(_terms(keyword.value, sources))
            case ast.Call(ast.Attribute(ast.Name() as base, "load" | "store")):
                bases.append(_terms(base, sources))
            case ast.Call(ast.Name(name), arguments, keywords) if name in functions and functions[name] is not function:
                inner = _pointers(functions[name], functions, names, found_before)
                argument_of = dict(
                    zip([parameter.arg for parameter in functions[name].args.args], arguments, strict=False)
                )
                argument_of |= {keyword.arg: keyword.value for keyword in keywords if keyword.arg}
                for parameter in inner & set(argument_of):
                    bases.append(_terms(argument_of[parameter], sources))
            case _:
                pass
    candidates = [_bases(function, base & parameters) for base in bases]
    # An address has one base; what else is added to it is a distance.
    alone = {name for candidate in candidates if len(candidate) == 1 for name in candidate}
    order = [parameter.arg for parameter in function.args.args]
    found_before[function.name] = alone | {
        min(candidate, key=order.index) for candidate in candidates if candidate and not candidate & alone
    }
    return found_before[function.name]


def _terms(value: ast.expr, sources: Mapping[str, set[str]]) -> set[str]:
    """The names that are added up to a value, without those in products."""
    match value:
        case ast.Name(name):
            return sources.get(name, set())
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            return _terms(left, sources) | _terms(right, sources)
        case ast.Call(_, [first, *_]):
            return _terms(first, sources)
        case ast.Subscript(inner) | ast.Attribute(inner):
            return _terms(inner, sources)
        case _:
            return set()


def _bases(function: ast.FunctionDef, candidates: set[str]) -> set[str]:
    """Of names that are added to addresses, those that are never multiplied, compared or divided: those are numbers."""
    numbers: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.BinOp(left, ast.Mult() | ast.Div() | ast.FloorDiv() | ast.Mod(), right) | ast.Compare(
                left, _, [right]
            ):
                numbers |= {side.id for side in (left, right) if isinstance(side, ast.Name)}
            case ast.Call(ast.Name("range" | "min" | "max"), arguments):
                numbers |= {argument.id for argument in arguments if isinstance(argument, ast.Name)}
            case _:
                pass
    return candidates - numbers


def _dtype_of(value: Value, tensor: str) -> set[tuple[str, str]]:
    """The tensor with the dtype of 16 bits that a value is rounded to at last, if it is."""
    dtype = value.arguments[-1] if is_rounded(value) else None
    return {(tensor, dtype.name)} if isinstance(dtype, Scalar) else set()


def _unrounded(value: Value) -> Value:
    """A value without its last rounding to 16 bits, where tensors and factors of products have that dtype."""
    return value.arguments[0] if is_rounded(value) else value


def _may_overflow(value: Formula, counting: set[str]) -> bool:
    """Whether a value is a product or power of numbers of elements, which may be too large for 32 bits."""
    if value.name not in ("*", "pow", "<<") or not is_constant(value) or not scalars_of(value) & counting:
        return False
    return value.name != "*" or not any(isinstance(factor, Number) for factor in value.arguments)


def _is_length(position: Place) -> bool:
    """Whether a place is a number, a parameter or a product of them, as the length of an axis is."""
    return len(position) == 1 and all(
        factor > 0 and all(kind == "s" and not name.startswith("(") for kind, name, _ in product)
        for product, factor in position
    )


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))
