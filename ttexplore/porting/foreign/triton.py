"""Reading Triton kernels: Python's own syntax tree, and the values of tl.store."""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

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
    scalars_of,
    walk,
)
from ttexplore.porting.foreign.words import TRITON, TRITON_AROUND, by_name
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
_SAME = {
    "multiple_of",
    "max_contiguous",
    "cast",
    "broadcast_to",
    "expand_dims",
    "reshape",
    "view",
    "trans",
    "to",
    "advance",
}
_DESCRIPTOR_LOADS = {"_experimental_descriptor_load", "load_tensor_descriptor"}
_DESCRIPTOR_STORES = {"_experimental_descriptor_store", "store_tensor_descriptor"}
_PYTHON = {*dir(builtins)}


@dataclass(frozen=True, slots=True)
class _Pointer:
    """An address in a tensor."""

    tensor: str
    axes: frozenset[str] = frozenset()
    scalars: frozenset[str] = frozenset()
    part: str = ""
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class _Many:
    """A tuple of values."""

    values: tuple[_Known, ...]


_Known = Value | _Pointer | _Many


def read_triton(source: str, file: str) -> Reading:
    """Read the kernels of a module. Raises UsageError for a text that is not Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        line = error.lineno or 1
        raise UsageError(
            "U027", f"the source is not valid Python: {error.msg}", hint="give the whole text of the module",
            span=Span(file, line, error.offset or 1, line, (error.offset or 1) + 1),
        ) from error  # fmt: skip
    names = _Names.of(tree)
    functions = {one.name: one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and names.is_kernel(one)}
    marks = [mark for one in functions.values() for mark in _marks(one, names, functions)]
    called = {
        node.func.id for one in functions.values() for node in ast.walk(one)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }  # fmt: skip
    kernels = tuple(_Evaluation(one, functions, names).kernel() for one in functions.values() if one.name not in called)
    return Reading("Triton", tuple(sorted(set(marks), key=lambda one: (one.line, one.column))), kernels)


@dataclass(frozen=True)
class _Names:
    """What a module calls triton, triton.language and single functions of theirs."""

    triton: frozenset[str]
    language: frozenset[str]
    functions: Mapping[str, str]

    @classmethod
    def of(cls, tree: ast.Module) -> _Names:
        triton, language, functions = {"triton"}, {"tl"}, dict[str, str]()
        for node in ast.walk(tree):
            match node:
                case ast.Import(names):
                    for one in names:
                        if one.name == "triton":
                            triton.add(one.asname or one.name)
                        elif one.name == "triton.language" and one.asname:
                            language.add(one.asname)
                case ast.ImportFrom(module, names) if module and module.split(".")[0] == "triton":
                    for one in names:
                        if module == "triton" and one.name == "language":
                            language.add(one.asname or one.name)
                        else:
                            functions[one.asname or one.name] = one.name
                case _:
                    pass
        return cls(frozenset(triton), frozenset(language), functions)

    def is_kernel(self, function: ast.FunctionDef) -> bool:
        return any(
            self.path(one.func if isinstance(one, ast.Call) else one)[-1:] == ("jit",)
            for one in function.decorator_list
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
        if len(path) > 1 and path[0] in self.language:
            return path[-1]
        if len(path) > 2 and path[0] in self.triton and path[1] == "language":
            return path[-1]
        if len(path) == 1 and path[0] in self.functions:
            return self.functions[path[0]]
        return path[-1] if len(path) == 2 and path[0] in self.functions else ""


def _marks(function: ast.FunctionDef, names: _Names, functions: Mapping[str, ast.FunctionDef]) -> Iterator[Mark]:
    """The constructs of a kernel: what is of triton or its language, methods of blocks, and calls of what the file does
    not define."""
    seen: set[int] = set()
    own = {one.arg for one in function.args.args}
    for node in ast.walk(function):
        if id(node) in seen:
            continue
        match node:
            case ast.Attribute() if name := names.in_language(node):
                seen |= {id(one) for one in ast.walk(node)}
                yield _mark(node, ast.unparse(node), _ROWS.get(name, ""))
            case ast.Attribute() if (path := names.path(node)) and path[0] in names.triton:
                seen |= {id(one) for one in ast.walk(node)}
                yield _mark(node, ast.unparse(node), _AROUND.get(path[-1], ""))
            case ast.Call(ast.Attribute(_, method) as called) if not names.in_language(called) and not _host(
                called, names
            ):
                row = {"to": "conversion of dtypes", "load": "tensor descriptor", "store": "tensor descriptor"}.get(
                    method, _ROWS.get(method, "")
                )
                yield _mark(called, f".{method}", row, called.end_col_offset)
            case ast.Call(ast.Name(name)) if name not in _PYTHON and name not in functions and name not in own:
                known = names.functions.get(name)
                yield _mark(node.func, name, _ROWS.get(known or "", ""))
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
            case ast.Subscript(_, ast.Tuple(elements)) if any(_is_none(one) for one in elements):
                yield _mark(node, ast.unparse(node.slice), "broadcast of a row or column", node.slice.col_offset)
            case _:
                pass


def _host(node: ast.Attribute, names: _Names) -> bool:
    path = names.path(node)
    return bool(path) and path[0] in names.triton


def _mark(node: ast.expr | ast.keyword, text: str, row: str, column: int | None = None) -> Mark:
    return Mark(node.lineno, (node.col_offset if column is None else column) + 1, text, row)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


@dataclass
class _Evaluation:
    """The values of one kernel."""

    function: ast.FunctionDef
    functions: Mapping[str, ast.FunctionDef]
    names: _Names
    known: dict[str, _Known] = field(default_factory=dict[str, "_Known"])
    stores: list[Store] = field(default_factory=list[Store])
    scalars: dict[str, None] = field(default_factory=dict[str, None])
    lengths: set[str] = field(default_factory=set[str])
    returned: _Known | None = None
    depth: int = 0

    def kernel(self) -> ForeignKernel:
        arguments = self.function.args
        constants = {
            one.arg for one in arguments.args
            if one.annotation is not None and self.names.in_language(one.annotation) == "constexpr"
        }  # fmt: skip
        pointers = _pointers(self.function, self.functions, self.names)
        for one in arguments.args:
            if one.arg in pointers:
                self.known[one.arg] = _Pointer(one.arg)
            else:
                self.known[one.arg] = Scalar(one.arg)
                if one.arg not in constants:
                    self.scalars[one.arg] = None
        self.run(self.function.body)
        return ForeignKernel(
            self.function.name, self.function.lineno, tuple(self.stores), tuple(self.scalars), frozenset(self.lengths)
        )

    def run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            match statement:
                case ast.Assign(targets, value):
                    found = self.value(value)
                    for target in targets:
                        self.assign(target, found)
                case ast.AnnAssign(ast.Name() as target, _, value) if value is not None:
                    self.assign(target, self.value(value))
                case ast.AugAssign(ast.Name(name) as target, operator, value):
                    added = self.value(value)
                    self.assign(
                        target, self.combined(_OPERATORS.get(type(operator), "?"), self.known.get(name, ZERO), added)
                    )
                case ast.Expr(value):
                    self.value(value)
                case ast.For(target, iterated, inner):
                    self.loop(target, iterated, inner)
                case ast.While(_, inner):
                    self.loop(None, None, inner)
                case ast.If(test, then, otherwise):
                    self.branch(test, then, otherwise)
                case ast.Return(value) if value is not None:
                    self.returned = self.value(value)
                case _:
                    pass

    def branch(self, test: ast.expr, then: list[ast.stmt], otherwise: list[ast.stmt]) -> None:
        """Both sides. Of variants that a constant chooses, the first one; of blocks beyond the tensor, those that are
        there; what depends on elements has no value."""
        condition = self.value(test)
        parts = [] if isinstance(condition, _Pointer | _Many) else [*walk(condition)]
        before, stores = dict(self.known), len(self.stores)
        self.run(then)
        after, stored = self.known, len(self.stores)
        self.known = dict(before)
        self.run(otherwise)
        if stored > stores and all(map(is_constant, parts)):
            # Variants that a constant chooses.
            del self.stores[stored:]
        on_elements = any(isinstance(one, Input | Reduced) for one in parts)
        for name in {*after, *self.known}:
            changed = name in before and (
                after.get(name) is not before[name] or self.known.get(name) is not before[name]
            )
            if on_elements and changed:
                self.known[name] = Unread("a branch on elements")
            elif name in after and (after[name] is not before.get(name) or name not in self.known):
                self.known[name] = after[name]

    def loop(self, target: ast.expr | None, iterated: ast.expr | None, body: list[ast.stmt]) -> None:
        if target is not None:
            bounds = self.value(iterated) if iterated is not None else ZERO
            axes = axes_of(bounds) if not isinstance(bounds, _Pointer | _Many) else frozenset[str]()
            scalars = scalars_of(bounds) if not isinstance(bounds, _Pointer | _Many) else frozenset[str]()
            # Blocks of a loop over a row belong to the row; a persistent loop numbers blocks of the grid.
            self.assign(target, Index(frozenset({"p"}) if "p" in axes else frozenset({"k"}), scalars))
        changed = {
            node.id
            for one in body
            for node in ast.walk(one)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        over_blocks = target is not None and isinstance(target, ast.Name) and "p" in _axes(self.known.get(target.id))
        before = {name: self.known[name] for name in changed if name in self.known}
        for name, value in before.items():
            if not isinstance(value, _Pointer | _Many) and not is_index(value):
                self.known[name] = Carried(name, value)
        self.run(body)
        for name, value in before.items():
            after = self.known[name]
            if isinstance(self.known.get(name), _Pointer | _Many) or isinstance(value, _Pointer | _Many):
                continue
            if isinstance(after, _Pointer | _Many):
                continue
            own = any(isinstance(one, Carried) and one.name == name for one in walk(after))
            if over_blocks and own and not any(isinstance(one, Product) for one in walk(after)) and not is_index(after):
                self.known[name] = Unread("a sum over blocks")
            else:
                self.known[name] = after_loop(name, value, after)

    def assign(self, target: ast.expr, value: _Known) -> None:
        match target, value:
            case ast.Name(name), _:
                self.known[name] = value
            case ast.Tuple(elements), _Many(values) if len(elements) == len(values):
                for one, part in zip(elements, values, strict=True):
                    self.assign(one, part)
            case ast.Tuple(elements), _:
                for one in elements:
                    self.assign(one, Unread("several values") if isinstance(value, _Pointer | _Many) else value)
            case _:
                pass

    def value(self, node: ast.expr) -> _Known:
        match node:
            case ast.Constant(int() | float() as number):
                return Number(float(number))
            case ast.Constant(str() | None as word):
                # What a constant of the kernel is compared with.
                return Scalar(repr(word))
            case ast.Name(name):
                return self.known.get(name, Scalar(name))
            case ast.UnaryOp(ast.USub(), operand):
                inner = self.value(operand)
                if isinstance(inner, Number):
                    return Number(-inner.value)
                return self.combined("*", Number(-1.0), inner)
            case ast.UnaryOp(ast.Not(), operand):
                inner = self.value(operand)
                return Number(0.0) if isinstance(inner, _Pointer | _Many) else operation("not", inner)
            case ast.BoolOp(operator, values):
                sides = [one for one in map(self.value, values) if not isinstance(one, _Pointer | _Many)] or [
                    Number(1.0)
                ]
                name = "&" if isinstance(operator, ast.And) else "|"
                return functools.reduce(lambda left, right: operation(name, left, right), sides)
            case ast.BinOp(left, operator, right):
                return self.combined(_OPERATORS.get(type(operator), "?"), self.value(left), self.value(right))
            case ast.Compare(left, [operator], [right]):
                return self.compared(_COMPARISONS.get(type(operator), "?"), self.value(left), self.value(right))
            case ast.IfExp(_, then, _):
                return self.value(then)
            case ast.Subscript(value, indices):
                return self.subscript(self.value(value), indices)
            case ast.Tuple(elements) | ast.List(elements):
                return _Many(tuple(map(self.value, elements)))
            case ast.Attribute(value, "T"):
                found = self.value(value)
                return Op("transposed", (found,)) if not isinstance(found, _Pointer | _Many) else found
            case ast.Call():
                return self.call(node)
            case _:
                return Scalar(ast.unparse(node)) if isinstance(node, ast.Attribute) else Unread(ast.unparse(node))

    def compared(self, name: str, left: _Known, right: _Known) -> Value:
        if isinstance(left, _Pointer | _Many) or isinstance(right, _Pointer | _Many):
            return Unread("a comparison of addresses")
        for one, other in ((left, right), (right, left)):
            # Elements of one row; with a number of the block they count all elements.
            if is_index(one) and axes_of(one) & {"r", "r1"} and "p" not in axes_of(one) and not is_index(other):
                self.lengths |= scalars_of(other)
        return operation(name, left, right)

    def combined(self, name: str, left: _Known, right: _Known) -> _Known:
        for pointer, other in ((left, right), (right, left)):
            if isinstance(pointer, _Pointer) and not isinstance(other, _Pointer | _Many):
                axes, scalars = pointer.axes | axes_of(other), pointer.scalars | scalars_of(other)
                # A parameter that is added alone is a distance: half of a row.
                part = "+".join(sorted({*pointer.part.split("+"), *_distances(other)} - {""}))
                return _Pointer(pointer.tensor, axes, scalars, part, pointer.transposed)
        if isinstance(left, _Pointer | _Many) or isinstance(right, _Pointer | _Many):
            return Unread("arithmetic on addresses")
        return operation(name, left, right)

    def subscript(self, value: _Known, indices: ast.expr) -> _Known:
        parts = indices.elts if isinstance(indices, ast.Tuple) else [indices]
        if isinstance(value, Index) and len(parts) == 2 and any(map(_is_none, parts)):
            axis = "r0" if _is_none(parts[1]) else "r1"
            return Index(frozenset(axis if one == "r" else one for one in value.axes), value.scalars)
        if isinstance(value, Input) and len(parts) == 2 and any(map(_is_none, parts)):
            axis = "r0" if _is_none(parts[1]) else "r1"
            return Input(value.tensor, frozenset(axis if one == "r" else one for one in value.axes), value.part)
        if isinstance(value, _Many) and isinstance(indices, ast.Constant) and isinstance(indices.value, int):
            return value.values[indices.value]
        return value

    def call(self, node: ast.Call) -> _Known:
        name = self.names.in_language(node.func)
        keywords = {one.arg: one.value for one in node.keywords if one.arg}
        if not name:
            return self.other_call(node, keywords)
        match name, node.args:
            case "program_id" | "num_programs", _:
                return Index(frozenset({"p"}))
            case "arange", _:
                return Index(frozenset({"r"}))
            case "load", [address, *_]:
                self.masked(node, keywords)
                return self.loaded(self.value(address))
            case "store", [address, value, *_]:
                self.masked(node, keywords)
                self.stored(self.value(address), self.value(value))
                return ZERO
            case _, [address, *_] if name.startswith("atomic_"):
                self.stored(self.value(address), Unread(f"tl.{name}"))
                return Unread(f"tl.{name}")
            case "make_block_ptr" | "make_tensor_descriptor" | "_experimental_make_tensor_descriptor", _:
                base = self.value(keywords["base"] if "base" in keywords else node.args[0])
                if isinstance(base, _Pointer):
                    return _Pointer(base.tensor, base.axes | {"r0", "r1", "p"}, base.scalars, base.part)
                return base
            case _, [address, *_] if name in _DESCRIPTOR_LOADS:
                return self.loaded(self.value(address))
            case _, [address, value, *_] if name in _DESCRIPTOR_STORES:
                self.stored(self.value(address), self.value(value))
                return ZERO
            case "dot", [a, b, *rest]:
                return self.product(a, b, rest[0] if rest else keywords.get("acc"))
            case "sum" | "max" | "min", [value, *_] if len(node.args) < 2 or not isinstance(
                self.value(node.args[1]), Input | Op
            ):
                inner = self.value(value)
                if isinstance(inner, _Pointer | _Many):
                    return Unread(f"tl.{name} of an address")
                axis = node.args[1] if len(node.args) > 1 else keywords.get("axis")
                if isinstance(axis, ast.Constant) and axis.value == 0 and {"r0", "r1"} <= axes_of(inner):
                    return Unread("a reduction over the rows of a block")
                already = isinstance(inner, Reduced) and inner.kind == name
                return inner if already else Reduced(name, inner)
            case "zeros" | "zeros_like", _:
                return ZERO
            case "full", [_, value, *_]:
                return self.value(value)
            case "where", [condition, then, otherwise]:
                return self.chosen(self.value(condition), self.value(then), self.value(otherwise))
            case "fma", [a, b, c]:
                return self.combined("+", self.combined("*", self.value(a), self.value(b)), self.value(c))
            case "range" | "cdiv" | "static_range", arguments:
                return self.index_of(arguments)
            case "trans", [value, *_]:
                inner = self.value(value)
                return inner if isinstance(inner, _Pointer | _Many) else Op("transposed", (inner,))
            case _, [value, *_] if name in _SAME or _ROWS.get(name) == "conversion of dtypes":
                return self.value(value)
            case _, arguments if name in _FUNCTIONS:
                values = [self.value(one) for one in arguments]
                if any(isinstance(one, _Pointer | _Many) for one in values):
                    return Unread(f"tl.{name} of an address")
                return operation(_FUNCTIONS[name], *[one for one in values if not isinstance(one, _Pointer | _Many)])
            case _:
                return Unread(f"tl.{name}")

    def other_call(self, node: ast.Call, keywords: Mapping[str, ast.expr]) -> _Known:
        match node.func:
            case ast.Name(name) if name in self.functions and self.depth < 4:
                return self.inlined(self.functions[name], node, keywords)
            case ast.Name("min" | "max" | "range" | "abs" as name):
                return self.index_of(node.args) if name == "range" else self.extreme(name, node.args)
            case ast.Name("float"):
                return Number(float("inf"))
            case ast.Attribute(value, "to" | "cast"):
                return self.value(value)
            case ast.Attribute(value, "load"):
                return self.loaded(self.value(value))
            case ast.Attribute(value, "store") if len(node.args) > 1:
                self.stored(self.value(value), self.value(node.args[1]))
                return ZERO
            case _:
                return Unread(ast.unparse(node.func))

    def extreme(self, name: str, arguments: list[ast.expr]) -> Value:
        values = [one for one in map(self.value, arguments) if not isinstance(one, _Pointer | _Many)]
        return operation(name, *values) if values else Unread(name)

    def index_of(self, arguments: list[ast.expr]) -> Value:
        values = [one for one in map(self.value, arguments) if not isinstance(one, _Pointer | _Many)]
        axes = frozenset[str]().union(*(axes_of(one) for one in values))
        return Index(axes, frozenset[str]().union(*(scalars_of(one) for one in values)))

    def inlined(self, function: ast.FunctionDef, node: ast.Call, keywords: Mapping[str, ast.expr]) -> _Known:
        names = [one.arg for one in function.args.args]
        given = dict(zip(names, map(self.value, node.args), strict=False))
        given |= {name: self.value(value) for name, value in keywords.items()}
        inner = _Evaluation(
            function, self.functions, self.names, given, self.stores, self.scalars, self.lengths, None, self.depth + 1
        )
        inner.run(function.body)
        return inner.returned if inner.returned is not None else ZERO

    def masked(self, node: ast.Call, keywords: Mapping[str, ast.expr]) -> None:
        del node
        if "mask" in keywords:
            self.value(keywords["mask"])

    def loaded(self, address: _Known) -> Value:
        if not isinstance(address, _Pointer):
            return address if isinstance(address, Unread) else Unread("a load from what is no parameter")
        return Input(address.tensor, address.axes, address.part)

    def stored(self, address: _Known, value: _Known) -> None:
        if isinstance(address, _Pointer):
            found = Unread("an address") if isinstance(value, _Pointer | _Many) else value
            self.stores.append(Store(address.tensor, address.axes, found, address.part))

    def product(self, a: ast.expr, b: ast.expr, accumulator: ast.expr | None) -> Value:
        left, right = self.value(a), self.value(b)
        if isinstance(left, _Pointer | _Many) or isinstance(right, _Pointer | _Many):
            return Unread("tl.dot of an address")
        transposed = False
        if isinstance(right, Op) and right.name == "transposed":
            right, transposed = right.arguments[0], True
        made: Value = Product(left, right, transposed)
        before = self.value(accumulator) if accumulator is not None else ZERO
        return made if isinstance(before, _Pointer | _Many) else operation("+", before, made)

    def chosen(self, condition: _Known, then: _Known, otherwise: _Known) -> Value:
        values = (condition, then, otherwise)
        if any(isinstance(one, _Pointer | _Many) for one in values):
            return Unread("tl.where of addresses")
        checked = [one for one in values if not isinstance(one, _Pointer | _Many)]
        if is_index(checked[1]):
            return checked[1]
        if _is_bound(checked[0]):
            # A mask of the edge: what lies beyond it does not exist here.
            return checked[1]
        return operation("where", *checked)


def _axes(value: _Known | None) -> frozenset[str]:
    return frozenset() if value is None or isinstance(value, _Pointer | _Many) else axes_of(value)


def _is_bound(condition: Value) -> bool:
    """Whether a condition compares indices with a length."""
    match condition:
        case Op("<" | "<=" | ">" | ">=", (left, right)):
            return is_index(left) != is_index(right) and not any(
                isinstance(one, Input | Reduced) for one in (*walk(left), *walk(right))
            )
        case Op("&", arguments):
            return all(map(_is_bound, arguments))
        case _:
            return False


def _distances(value: Value) -> set[str]:
    match value:
        case Scalar(name):
            return {name}
        case Op("+", arguments):
            return {name for one in arguments for name in _distances(one)}
        case _:
            return set()


def _pointers(function: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef], names: _Names) -> set[str]:
    """The parameters whose addresses are loaded from or stored to: those that the addresses are made of by additions,
    through assignments and calls."""
    parameters = {one.arg for one in function.args.args}
    sources: dict[str, set[str]] = {one: {one} for one in parameters}
    for _ in range(3):
        for node in ast.walk(function):
            match node:
                case ast.Assign([ast.Name(name)], value) | ast.AugAssign(ast.Name(name), _, value):
                    found = _terms(value, sources)
                    sources[name] = sources.get(name, set()) | found
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
                for one in keywords:
                    if one.arg == "base":
                        bases.append(_terms(one.value, sources))
            case ast.Call(ast.Attribute(ast.Name() as base, "load" | "store")):
                bases.append(_terms(base, sources))
            case ast.Call(ast.Name(name), arguments, keywords) if name in functions and functions[name] is not function:
                inner = _pointers(functions[name], functions, names)
                given = dict(zip([one.arg for one in functions[name].args.args], arguments, strict=False))
                given |= {one.arg: one.value for one in keywords if one.arg}
                for parameter in inner & set(given):
                    bases.append(_terms(given[parameter], sources))
            case _:
                pass
    candidates = [_bases(function, one & parameters) for one in bases]
    # An address has one base; what else is added to it is a distance.
    alone = {name for one in candidates if len(one) == 1 for name in one}
    order = [one.arg for one in function.args.args]
    return alone | {min(one, key=order.index) for one in candidates if one and not one & alone}


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
                numbers |= {one.id for one in (left, right) if isinstance(one, ast.Name)}
            case ast.Call(ast.Name("range" | "min" | "max"), arguments):
                numbers |= {one.id for one in arguments if isinstance(one, ast.Name)}
            case _:
                pass
    return candidates - numbers
