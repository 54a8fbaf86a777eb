"""Reading Triton kernels: Python's own syntax tree, and the values of tl.store."""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

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
    place: Place = NOWHERE
    strides: tuple[Place, ...] = ()


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
                case ast.ImportFrom(_, names):
                    # Libraries that wrap the language, such as triton_lang_extension.
                    language |= {one.asname or one.name for one in names if one.name.startswith("triton_lang")}
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
    # Decorators run on the host: what they call is no construct of the kernel, but that of triton itself.
    host = {id(node) for one in function.decorator_list for node in ast.walk(one)}
    for node in ast.walk(function):
        if id(node) in seen or (id(node) in host and isinstance(node, ast.Call)):
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
    loops: int = 0
    variants: Variants = field(default_factory=Variants)
    condition: str = ""
    partial: set[str] = field(default_factory=set[str])
    sizes: set[str] = field(default_factory=set[str])
    divided: set[tuple[Place, Place]] = field(default_factory=set[tuple[Place, Place]])

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
            self.function.name, self.function.lineno, tuple(self.stores), tuple(self.scalars), frozenset(self.lengths),
            self.unread(),
        )  # fmt: skip

    def bounded(self, condition: Value) -> bool:
        """Whether a condition holds inside of tensors; where that is a part of a row, all parts must be taken."""
        if not is_bound(condition) or not all(map(self.is_dense, walk(condition))):
            return False
        self.partial |= parts_of_lengths(condition)
        return True

    def is_dense(self, value: Value) -> bool:
        """Whether an index that is compared with a length goes from block to block by the size of a block."""
        if not isinstance(value, Index) or not self.sizes:
            return True
        inside = [one for one, _ in value.place if any(part[0] == "r" for part in one)]
        for product, factor in value.place:
            if inside and any(one[0] in ("p", "k") for one in product):
                names = {one[1] for one in product if one[0] == "s"} | ({f"{factor:g}"} if factor != 1 else set[str]())
                if names and not names & self.sizes:
                    return False
        return True

    def unread(self) -> str:
        """Why the kernel is not known: it goes over parts of rows, and not over the others."""
        found = {one.part for one in self.stores}
        left = next(iter(sorted(self.partial - found)), "")
        if left:
            return f"only elements up to {left} are read"
        # An index does not say how far it goes: a block and a part of it would be taken for the same.
        parts = [(one, other) for one in sorted(self.sizes) for other in self.sizes - {one} if one in _words(other)]
        return f"it goes over {parts[0][0]} and over {parts[0][1]} elements" if parts else ""

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
        """Of variants that a constant chooses, the first one; of blocks beyond the tensor, those that are there; what
        depends on other conditions has no value."""
        condition = self.value(test)
        if isinstance(condition, _Pointer | _Many):
            condition = Unread("a branch on addresses")
        if is_constant(condition):
            if then and isinstance(then[-1], ast.Return | ast.Raise) and condition not in self.variants.taken:
                self.variants.never(condition)
            self.run(then if self.variants.first(condition) else otherwise)
        elif self.bounded(condition):
            self.run(then)
        elif self.bounded(negated(condition)):
            self.run(otherwise)
            if any(not isinstance(one, ast.Return | ast.Pass) for one in then):
                self.sides(condition, then, [])
        else:
            self.sides(condition, then, otherwise)

    def sides(self, condition: Value, *branches: list[ast.stmt]) -> None:
        """Code that runs under a condition that is neither constant nor a bound: what it changes has no value."""
        on_elements = any(isinstance(one, Input | Reduced) for one in walk(condition))
        reason = "a branch on elements" if on_elements else "a branch on indices"
        before, stores = dict(self.known), len(self.stores)
        changed: set[str] = set()
        for body in branches:
            self.known = dict(before)
            self.run(body)
            changed |= {name for name, value in self.known.items() if value is not before.get(name)}
            if any(isinstance(one, ast.Return | ast.Break | ast.Continue) for part in body for one in ast.walk(part)):
                self.condition = reason
        self.known = before | {name: Unread(reason) for name in changed}
        self.stores[stores:] = [replace(one, value=Unread(reason)) for one in self.stores[stores:]]

    def loop(self, target: ast.expr | None, iterated: ast.expr | None, body: list[ast.stmt]) -> None:
        turn = UNKNOWN
        if target is not None:
            bounds = self.value(iterated) if iterated is not None else ZERO
            axes = axes_of(bounds) if not isinstance(bounds, _Pointer | _Many) else frozenset[str]()
            scalars = scalars_of(bounds) if not isinstance(bounds, _Pointer | _Many) else frozenset[str]()
            turn, at = self.turns(iterated)
            # Blocks of a loop over a row belong to the row; a persistent loop numbers blocks of the grid.
            self.assign(target, Index(frozenset({"p"}) if "p" in axes else frozenset({"k"}), scalars, at))
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
        self.loops += 1
        self.advance(before, turn, body)
        stores = len(self.stores)
        self.run(body)
        self.stores[stores:] = [stored_in_turns(one, turn) for one in self.stores[stores:]]
        self.loops -= 1
        for name, value in before.items():
            after = self.known[name]
            if isinstance(after, _Pointer):
                self.known[name] = after if after == value else replace(after, place=UNKNOWN)
                continue
            if isinstance(after, _Many) or isinstance(value, _Pointer | _Many):
                continue
            if isinstance(after, Index) and after != value:
                self.known[name] = replace(after, place=UNKNOWN)
                continue
            own = any(isinstance(one, Carried) and one.name == name for one in walk(after))
            if not own and after != value and any(isinstance(one, Product) for one in walk(after)):
                self.known[name] = Unread("the product of the last turn of a loop")
            elif (
                over_blocks and own and not any(isinstance(one, Product) for one in walk(after)) and not is_index(after)
            ):
                self.known[name] = Unread("a sum over blocks")
            else:
                self.known[name] = last_turn(after_loop(name, value, after), turn)
        for name in changed - before.keys():
            inside = self.known.get(name)
            if inside is not None and not isinstance(inside, _Pointer | _Many):
                self.known[name] = last_turn(inside, turn)

    def turns(self, iterated: ast.expr | None) -> tuple[Place, Place]:
        """The number of a turn of a loop, and what the loop's variable is in it."""
        match iterated:
            case ast.Call(func, arguments) if (self.names.in_language(func) or ast.unparse(func)) in (
                "range", "static_range",
            ) and arguments:  # fmt: skip
                given = [self.value(one) for one in arguments]
                found = [UNKNOWN if isinstance(one, _Pointer | _Many) else place_of(one) for one in given]
                start, end, step = (
                    (NOWHERE, found[0], places.number(1.0)) if len(found) == 1 else (*found, places.number(1.0))[:3]
                )
                if start and {one[0] for one in places.atoms(start)} == {"p"}:
                    # A persistent loop: another number of a block.
                    own = places.atom("p", f"{places.written(start)} by {places.written(step)}")
                    return own, own
                self.lengths |= places.length_of(end)
                return places.turns(self.loops, start, end, step)
            case _:
                return UNKNOWN, UNKNOWN

    def advance(self, before: Mapping[str, _Known], turn: Place, body: list[ast.stmt]) -> None:
        """Move addresses and indices that each turn of a loop moves by the same distance to the current turn."""
        moving = {name: value for name, value in before.items() if isinstance(value, _Pointer | Index)}
        if not moving:
            return
        known, stores, taken = dict(self.known), len(self.stores), list(self.variants.taken)
        self.run(body)
        after = self.known
        self.known = known
        del self.stores[stores:]
        self.variants.taken = taken
        for name, value in moving.items():
            moved = after.get(name)
            if not isinstance(moved, _Pointer | Index) or isinstance(moved, _Pointer) != isinstance(value, _Pointer):
                continue
            by = places.plus(moved.place, value.place, -1.0)
            fixed = all(one[0] in ("s", "p") for one in places.atoms(by))
            place = places.plus(value.place, places.times(turn, by)) if fixed and by else UNKNOWN if by else value.place
            self.known[name] = replace(value, place=place)

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
            case ast.IfExp(test, then, otherwise):
                condition = self.value(test)
                if isinstance(condition, _Pointer | _Many) or not is_constant(condition):
                    return Unread("a branch on elements or indices")
                return self.value(then if self.variants.first(condition) else otherwise)
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
                by = place_of(other) if name in ("+", "-") else UNKNOWN
                place = places.plus(pointer.place, by, -1.0 if name == "-" else 1.0)
                return replace(pointer, axes=axes, scalars=scalars, place=place)
        if isinstance(left, _Pointer | _Many) or isinstance(right, _Pointer | _Many):
            return Unread("arithmetic on addresses")
        made = operation(name, left, right)
        if name == "//":
            self.divided.add((place_of(left), place_of(right)))
        if name == "%" and isinstance(made, Index):
            return replace(made, place=places.remainder(place_of(left), place_of(right), self.divided))
        return made

    def subscript(self, value: _Known, indices: ast.expr) -> _Known:
        parts = indices.elts if isinstance(indices, ast.Tuple) else [indices]
        if isinstance(value, Index) and len(parts) == 2 and any(map(_is_none, parts)):
            axis = "r0" if _is_none(parts[1]) else "r1"
            axes = frozenset(axis if one == "r" else one for one in value.axes)
            return Index(axes, value.scalars, _along(value.place, axis))
        if len(parts) == 2 and any(map(_is_none, parts)) and not isinstance(value, _Pointer | _Many):
            axis = "r0" if _is_none(parts[1]) else "r1"
            return replaced(value, lambda one: _turned(one, axis))
        if isinstance(value, _Many) and isinstance(indices, ast.Constant) and isinstance(indices.value, int):
            return value.values[indices.value]
        return value

    def call(self, node: ast.Call) -> _Known:
        name = self.names.in_language(node.func)
        keywords = {one.arg: one.value for one in node.keywords if one.arg}
        if not name:
            return self.other_call(node, keywords)
        match name, node.args:
            case "program_id", _:
                return Index(frozenset({"p"}), frozenset(), places.atom("p", ast.unparse(node).partition("(")[2]))
            case "num_programs", _:
                return Index(frozenset({"p"}), frozenset(), places.atom("s", ast.unparse(node)))
            case "arange", [begin, *_]:
                known = self.value(begin) == ZERO
                size = self.value(node.args[-1])
                if not isinstance(size, _Pointer | _Many) and place_of(size) != UNKNOWN:
                    self.sizes.add(places.written(place_of(size)))
                return Index(frozenset({"r"}), frozenset(), places.atom("r", "r") if known else UNKNOWN)
            case "load", [address, *rest]:
                mask = self.masked(rest[0] if rest else keywords.get("mask"))
                other = rest[1] if len(rest) > 1 else keywords.get("other")
                beyond = None if other is None else self.value(other)
                found = self.loaded(self.value(address))
                if mask:
                    return Unread(mask)
                if isinstance(found, Input) and beyond is not None:
                    return replace(found, beyond=beyond.value if isinstance(beyond, Number) else float("nan"))
                return found
            case "store", [address, value, *rest]:
                mask = self.masked(rest[0] if rest else keywords.get("mask"))
                found = self.value(value)
                self.stored(self.value(address), Unread(mask) if mask else found)
                return ZERO
            case _, [address, *_] if name.startswith("atomic_"):
                self.stored(self.value(address), Unread(f"tl.{name}"))
                return Unread(f"tl.{name}")
            case "make_block_ptr" | "make_tensor_descriptor" | "_experimental_make_tensor_descriptor", _:
                given = dict(zip(("base", "shape", "strides", "offsets"), node.args, strict=False)) | keywords
                return self.blocks(self.value(given["base"]), given.get("strides"), given.get("offsets"))
            case "advance", [address, by]:
                return self.moved(self.value(address), by, fresh=False)
            case _, [address, at, *_] if name in _DESCRIPTOR_LOADS:
                return self.loaded(self.moved(self.value(address), at))
            case _, [address, value, at, *_] if name in _DESCRIPTOR_STORES:
                self.stored(self.moved(self.value(address), at), self.value(value))
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
                along = self.value(axis) if axis is not None else None
                if {"r0", "r1"} <= axes_of(inner) and along not in (Number(1.0), Number(-1.0)):
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
            case "range" | "static_range", arguments:
                return self.index_of(arguments)
            case "cdiv", [above, below]:
                index = self.index_of([above, below])
                found = [self.value(one) for one in (above, below)]
                known = [place_of(one) for one in found if not isinstance(one, _Pointer | _Many)]
                if len(known) < 2 or not isinstance(index, Index):
                    return index
                return replace(index, place=places.combined("cdiv", known[0], known[1]))
            case "trans", [value, *_]:
                inner = self.value(value)
                return inner if isinstance(inner, _Pointer | _Many) else Op("transposed", (inner,))
            case _, [value, *rest] if name in _SAME or _ROWS.get(name) == "conversion of dtypes":
                return self.converted(value, rest)
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
            case ast.Name("float") if node.args and isinstance(node.args[0], ast.Constant):
                return Number(float(node.args[0].value))  # pyright: ignore[reportArgumentType]
            case ast.Attribute(value, "to" | "cast"):
                return self.converted(value, node.args)
            case ast.Attribute(value, "load") if node.args:
                return self.loaded(self.moved(self.value(value), node.args[0]))
            case ast.Attribute(value, "store") if len(node.args) > 1:
                self.stored(self.moved(self.value(value), node.args[0]), self.value(node.args[1]))
                return ZERO
            case _:
                for one in node.args:
                    found = self.value(one)
                    if isinstance(found, _Pointer):
                        # What it does with an address is not known.
                        self.stored(found, Unread(ast.unparse(node.func)))
                return Unread(ast.unparse(node.func))

    def converted(self, node: ast.expr, to: list[ast.expr]) -> _Known:
        """A value in another dtype: the same, but for what whole numbers lose."""
        found = self.value(node)
        whole = any(re.match(r"u?int\d+$", self.names.in_language(one)) for one in to)
        if whole and not isinstance(found, _Pointer | _Many) and not is_index(found) and not is_constant(found):
            return Unread("a conversion to whole numbers")
        return found

    def extreme(self, name: str, arguments: list[ast.expr]) -> Value:
        values = [one for one in map(self.value, arguments) if not isinstance(one, _Pointer | _Many)]
        if all(map(is_constant, values)):
            return Scalar(f"{name}({', '.join(map(ast.unparse, arguments))})")
        return operation(name, *values) if values else Unread(name)

    def index_of(self, arguments: list[ast.expr]) -> Value:
        values = [one for one in map(self.value, arguments) if not isinstance(one, _Pointer | _Many)]
        axes = frozenset[str]().union(*(axes_of(one) for one in values))
        return Index(axes, frozenset[str]().union(*(scalars_of(one) for one in values)), UNKNOWN)

    def blocks(self, base: _Known, strides: ast.expr | None, offsets: ast.expr | None) -> _Known:
        """The address of a block of a tensor with these strides."""
        if not isinstance(base, _Pointer):
            return base
        made = replace(base, axes=base.axes | {"r0", "r1", "p"}, strides=tuple(self.parts(strides)))
        return self.moved(made, offsets) if offsets is not None else made

    def parts(self, node: ast.expr | None) -> list[Place]:
        found = self.value(node) if node is not None else Unread("nothing")
        values = found.values if isinstance(found, _Many) else (found,)
        return [UNKNOWN if isinstance(one, _Pointer | _Many) else place_of(one) for one in values]

    def moved(self, address: _Known, by: ast.expr, fresh: bool = True) -> _Known:
        """A block of a tensor at some rows and columns; if it is not `fresh`, so much further."""
        if not isinstance(address, _Pointer):
            return address
        steps = self.parts(by)
        # A descriptor that is a parameter has rows one after the other.
        strides = address.strides or (
            *(places.atom("s", f"{address.tensor} {n}") for n in steps[1:]),
            places.number(1.0),
        )
        place = address.place
        if len(steps) != len(strides):
            place = UNKNOWN
        for number, (step, stride) in enumerate(zip(steps, strides, strict=False)):
            own = "r" if len(steps) == 1 else f"r{number + 2 - len(steps)}"
            inside = places.plus(step, places.atom("r", own)) if fresh else step
            place = places.plus(place, places.times(inside, stride))
        return replace(address, axes=address.axes | {"r0", "r1", "p"}, place=place)

    def inlined(self, function: ast.FunctionDef, node: ast.Call, keywords: Mapping[str, ast.expr]) -> _Known:
        names = [one.arg for one in function.args.args]
        given = dict(zip(names, map(self.value, node.args), strict=False))
        given |= {name: self.value(value) for name, value in keywords.items()}
        inner = _Evaluation(
            function, self.functions, self.names, given, self.stores, self.scalars, self.lengths, None, self.depth + 1,
            self.loops, self.variants, self.condition, self.partial, self.sizes,
        )  # fmt: skip
        inner.run(function.body)
        return inner.returned if inner.returned is not None else ZERO

    def masked(self, mask: ast.expr | None) -> str:
        """Why it is not known which elements a mask lets through, empty if they are those inside of the tensor."""
        found = self.value(mask) if mask is not None else Number(1.0)
        if isinstance(found, _Pointer | _Many):
            return "a mask of addresses"
        if isinstance(found, Unread):
            return found.reason
        return "" if self.bounded(found) else "elements that a mask chooses"

    def loaded(self, address: _Known) -> Value:
        if not isinstance(address, _Pointer):
            return address if isinstance(address, Unread) else Unread("a load from what is no parameter")
        part = places.written(places.distance(address.place))
        element = Input(address.tensor, address.axes, "" if part == "0" else part, address.place)
        return read_back(element, self.stores)

    def stored(self, address: _Known, value: _Known) -> None:
        if isinstance(address, _Pointer):
            found = Unread("an address") if isinstance(value, _Pointer | _Many) else value
            found = Unread(self.condition) if self.condition else found
            part = places.written(places.distance(address.place))
            self.stores.append(Store(address.tensor, address.axes, found, "" if part == "0" else part, address.place))
        else:
            self.stores.append(Store("a tensor", frozenset(), Unread("an address that is no parameter")))

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
        if is_constant(checked[0]):
            return checked[1] if self.variants.first(checked[0]) else checked[2]
        if self.bounded(checked[0]) and (is_index(checked[1]) or _is_neutral(checked[2])):
            # A mask of the edge: what lies beyond it does not exist here.
            return checked[1]
        return operation("where", *checked)


def _axes(value: _Known | None) -> frozenset[str]:
    return frozenset() if value is None or isinstance(value, _Pointer | _Many) else axes_of(value)


def _is_neutral(value: Value) -> bool:
    return isinstance(value, Number) and value.value in (0.0, float("inf"), float("-inf"))


def _along(place: Place, axis: str) -> Place:
    """A place whose elements are rows or columns of a block."""
    return places.renamed(place, lambda one: ("r", axis, "") if one == ("r", "r", "") else one)


def _turned(value: Value, axis: str) -> Value | None:
    match value:
        case Input(place=place) if place is not None:
            axes = frozenset(axis if one == "r" else one for one in value.axes)
            return replace(value, axes=axes, place=_along(place, axis))
        case Index(place=place):
            axes = frozenset(axis if one == "r" else one for one in value.axes)
            return replace(value, axes=axes, place=_along(place, axis))
        case _:
            return None


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


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))
