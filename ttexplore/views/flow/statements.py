"""The statements of a listing as a tree: what each reads and writes, and the loops and branches around it.

A listing of a program is all that a saved exploration has of it, and it is Python's syntax: the operations are those of
the table, whose operands say what they read and write.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import prod

from ttexplore.ops import FORMS, Op
from ttexplore.ops.op import CB_SCOPE, DST_SCOPE
from ttexplore.plan import TILE_COLUMNS, TILE_ROWS
from ttexplore.record import Line, Listing

_INDENT = 4


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a program: a tensor, which is a parameter, a block or circular buffer in L1, or tiles of DST."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: str

    @property
    def tiles(self) -> int:
        """How many tiles it has, the last two dimensions in tiles of 32 x 32."""
        if self.scope in (CB_SCOPE, DST_SCOPE) and self.shape[1:] == (TILE_ROWS, TILE_COLUMNS):
            return self.shape[0]
        extents = zip_longest(reversed(self.shape), (TILE_COLUMNS, TILE_ROWS), fillvalue=1)
        return prod(-(-extent // per_tile) for extent, per_tile in extents)


@dataclass(frozen=True, slots=True)
class FlowStatement:
    """A statement that touches memory. `line` is its line of the listing, from 0, `origin` its kernel line, 0 if that
    is not known; `operation` is that of the table, None for a statement of the kernel language. `times` is how often
    the loops of its own around it run it."""

    line: int
    origin: int
    word: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    operation: Op | None
    times: int = 1


@dataclass(frozen=True, slots=True)
class FlowBlock:
    """A loop or branch; `times` is the number of its iterations, None for one that is not a constant."""

    origin: int
    text: str
    body: tuple[FlowStatement | FlowBlock, ...]
    times: int | None

    @property
    def is_loop(self) -> bool:
        return self.text.startswith(("for ", "while "))


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a program with its memory by name; the tensors are its parameters."""

    stores: dict[str, Memory]
    body: tuple[FlowStatement | FlowBlock, ...]


def functions_of(listing: Listing) -> list[Function]:
    """The functions of a listing of a program; none for another text, as a saved exploration may have it."""
    starts = [number for number, line in enumerate(listing.lines) if line.text.startswith("def ")]
    ends = [*starts[1:], len(listing.lines)][: len(starts)]
    return [_function(listing.lines, start, end) for start, end in zip(starts, ends, strict=True)]


def every(body: Sequence[FlowStatement | FlowBlock]) -> Iterator[FlowStatement]:
    """All statements, in their order."""
    for item in body:
        if isinstance(item, FlowBlock):
            yield from every(item.body)
        else:
            yield item


def _function(lines: Sequence[Line], start: int, end: int) -> Function:
    head = lines[start].text
    stores: dict[str, Memory] = {}
    definition = _parsed(f"{head} pass")
    if isinstance(definition, ast.FunctionDef):
        for parameter in definition.args.args:
            match parameter.annotation:
                case ast.Call(args=[shape, ast.Constant(value=str(dtype))]):
                    stores[parameter.arg] = Memory(parameter.arg, _extents(shape), dtype, "tensor")
                case _:
                    pass
    body, _ = _body(lines, start + 1, end, 1, stores)
    return Function(stores, tuple(body))


def _body(
    lines: Sequence[Line], number: int, end: int, depth: int, stores: dict[str, Memory]
) -> tuple[list[FlowStatement | FlowBlock], int]:
    """The statements from a line on that are so deep, and the line after them."""
    body: list[FlowStatement | FlowBlock] = []
    while number < end:
        line = lines[number]
        text = line.text.strip()
        if text and (len(line.text) - len(line.text.lstrip())) // _INDENT < depth:
            break
        if text.startswith(("for ", "while ", "if ", "else:")):
            inner, after = _body(lines, number + 1, end, depth + 1, stores)
            if inner:
                body.append(FlowBlock(_origin(line), text.removesuffix(":"), tuple(inner), _iterations(text)))
            number = after
            continue
        statement = _statement(line, number, text, stores) if text else None
        if statement is not None:
            body.append(statement)
        number += 1
    return body, number


def _statement(line: Line, number: int, text: str, stores: dict[str, Memory]) -> FlowStatement | None:
    """What a line reads and writes; None for one that touches no memory."""
    tree = _parsed(text)
    match tree:
        case ast.Assign(
            targets=[ast.Name(name)],
            value=ast.Call(
                func=ast.Attribute(attr="alloc_buffer"),
                args=[shape, ast.Constant(value=str(dtype)), ast.Constant(value=str(scope))],
            ),
        ):
            stores[name] = Memory(name, _extents(shape), dtype, scope)
            return None
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(name))], value=value):
            reads = _stores(value, stores)
            return FlowStatement(number, _origin(line), _word(value), reads, (name,), None)
        case ast.Assign(value=ast.Call() as call) | ast.Expr(value=ast.Call() as call):
            return _call(line, number, call, stores)
        case _:
            return None


def _call(line: Line, number: int, call: ast.Call, stores: dict[str, Memory]) -> FlowStatement | None:
    name = ast.unparse(call.func)
    form = FORMS.get(name)
    reads: list[str] = []
    writes: list[str] = []
    if form is not None:
        for operand, value in zip(form.operands, call.args, strict=False):
            touched = _stores(value, stores) if operand.kind in ("cb", "dst", "tensor") else ()
            if operand.access in ("read", "update"):
                reads += touched[:1]
            if operand.access in ("write", "update"):
                writes += touched[:1]
        word = form.op.name
    else:
        regions = [touched[0] for value in call.args if (touched := _stores(value, stores))]
        if not regions:
            return None
        word = name.rpartition(".")[2]
        # An update of elements names its target first, every other statement last.
        at = 0 if "atomic" in word else len(regions) - 1
        writes.append(regions[at])
        cleared = any(keyword.arg in ("clear", "clear_accum") and _is_true(keyword.value) for keyword in call.keywords)
        joins = "atomic" in word or ("gemm" in word and not cleared)
        reads += [region for position, region in enumerate(regions) if position != at or joins]
    if not reads and not writes:
        return None
    return FlowStatement(
        number,
        _origin(line),
        word,
        tuple(dict.fromkeys(reads)),
        tuple(dict.fromkeys(writes)),
        form.op if form else None,
    )


def _is_true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and bool(value.value)


def _stores(value: ast.AST, stores: dict[str, Memory]) -> tuple[str, ...]:
    names = (node.id for node in ast.walk(value) if isinstance(node, ast.Name))
    return tuple(dict.fromkeys(name for name in names if name in stores))


_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
}


def _word(value: ast.expr) -> str:
    """What an expression computes last."""
    match value:
        case ast.Call(func=function):
            return ast.unparse(function).rpartition(".")[2].removesuffix("_then_else")
        case ast.BinOp(op=operator):
            return _OPERATORS.get(type(operator), "compute")
        case _:
            return "assign"


def _parsed(text: str) -> ast.stmt | None:
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # A saved exploration may have any text.
        return None
    return body[0] if body else None


def _extents(shape: ast.expr) -> tuple[int, ...]:
    extents = shape.elts if isinstance(shape, ast.Tuple) else [shape]
    return tuple(
        extent.value if isinstance(extent, ast.Constant) and isinstance(extent.value, int) else 1 for extent in extents
    )


def _iterations(text: str) -> int | None:
    """How often a loop with constant bounds runs."""
    head = _parsed(f"{text} pass")
    match head:
        case ast.For(iter=ast.Call(args=[ast.Constant(value=int(extent))])):
            return extent
        case ast.For(iter=ast.Call(args=[ast.Constant(value=int(extent)), ast.Constant(value=str())])):
            return extent
        case ast.For(iter=ast.Call(args=[ast.Constant(value=int(low)), ast.Constant(value=int(high))])):
            return high - low
        case _:
            return None


def _origin(line: Line) -> int:
    return line.origins[0].span.line if line.origins else 0
