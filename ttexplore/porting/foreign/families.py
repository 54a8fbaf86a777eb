"""What family of kernels a foreign kernel belongs to, by its values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import LiteralString

from ttexplore.porting.foreign.attention import Unlike, read_attention
from ttexplore.porting.foreign.marks import ForeignKernel
from ttexplore.porting.foreign.places import Place, atoms, distance, plus, same, steps, unnumbered, written
from ttexplore.porting.foreign.rows import beyond_edges, by_rows_and_columns, contradicted, of_product
from ttexplore.porting.foreign.values import (
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
    in_order,
    walk,
    without_edges,
)
from ttexplore.porting.foreign.writing import WRITTEN

# How many operations and elements a skeleton is made of at most.
MOST_VALUES = 1_500


@dataclass(frozen=True, slots=True)
class Gemm:
    """A product of `a` and `b`, and `stores` in which it stands for the accumulator."""

    product: MatMul
    a: Input
    b: Input
    stores: tuple[Output, ...]
    row = "GEMM"


@dataclass(frozen=True, slots=True)
class Attention:
    """Softmax of the product of queries and keys, times values."""

    q: Input
    k: Input
    v: Input
    out: Output
    causal: bool
    left_out: tuple[str, ...]
    row = "attention, forward"


@dataclass(frozen=True, slots=True)
class Rope:
    """Two halves of each tensor `x`, rotated by `cos` and `sin`, in `out`: `pairs` of (x, out)."""

    pairs: tuple[tuple[str, str], ...]
    cos: str
    sin: str
    row = "RoPE"


@dataclass(frozen=True, slots=True)
class Rowwise:
    """Expressions of the elements of a row and of reductions over it."""

    stores: tuple[Output, ...]
    row: LiteralString


Family = Gemm | Attention | Rope | Rowwise


@dataclass(frozen=True, slots=True)
class Outside:
    """Why a kernel belongs to no family."""

    reason: str


def family_of(kernel: ForeignKernel) -> Family | Outside:
    """The family of a kernel; otherwise, why it has none."""
    if kernel.unread:
        return Outside(kernel.unread)
    stores = tuple(dict.fromkeys(kernel.stores))
    if not stores:
        return Outside("it stores nothing that could be followed to a tensor")
    if len(in_order(*(one.value for one in stores))) > MOST_VALUES:
        return Outside(f"what it stores is made of more than {MOST_VALUES:,} operations")
    if reason := beyond_edges(stores):
        return Outside(reason)
    for one in stores:
        if one.place is not None and (odd := unnumbered(atoms(one.place))):
            return Outside(f"it is not known that blocks that are numbered {odd} are all blocks, each once")
    if reason := contradicted(stores, kernel.bounds):
        return Outside(reason)
    if stride := _counted(stores) - kernel.lengths:
        return Outside(f"{min(stride)}, which counts elements, is one of its values")
    stores = tuple(replace(one, value=without_edges(one.value)) for one in stores)
    if any(_products(one.value) for one in stores):
        return _attention(stores, kernel.updates) or _gemm(stores)
    rope = _rope(stores, kernel.bounds)
    if rope is not None:
        return rope
    if unwritten := _unwritten(stores):
        return Outside(unwritten)
    for one in stores:
        if not any(isinstance(part, Input) for part in walk(one.value)):
            return Outside(f"{one.tensor} depends on no tensor")
    if twice := _several_places(stores):
        return Outside(f"it loads {twice} from several places")
    if shared := _shared(stores):
        return Outside(f"it stores to {shared} in several places")
    row = _rowwise(stores)
    placed = by_rows_and_columns(stores)
    if isinstance(placed, str):
        return Outside(placed)
    return Outside(odd) if (odd := _reshaped(placed)) else Rowwise(placed, row)


_LOGICAL = {"<", "<=", ">", ">=", "==", "!=", "&", "|"}


def _unwritten(stores: tuple[Output, ...]) -> str:
    """Why a value cannot be written, empty if all can."""
    for store in stores:
        for one in walk(store.value):
            match one:
                case Unread(reason):
                    return f"{store.tensor} is made of {reason}, which has no equivalent in the table"
                case Carried():
                    return f"{store.tensor} is carried from turn to turn of a loop in a way that is not known"
                case Index():
                    return f"{store.tensor} is made of indices"
                case Formula(name) if name not in WRITTEN:
                    return f"{store.tensor} is made of elements that are {name}, in a way that is not known"
                case Formula(name, arguments) if WRITTEN[name] != len(arguments):
                    return f"{store.tensor} is made of {name} of {len(arguments)} values"
                case Formula("&" | "|", sides) if not all(
                    isinstance(one, Formula) and one.name in _LOGICAL for one in sides
                ):
                    return f"{store.tensor} is made of bits of numbers"
                case Number(value) if value != value:
                    return f"{store.tensor} is made of a number that cannot be read"
                case _:
                    pass
    return ""


def _counted(stores: tuple[Output, ...]) -> set[str]:
    """The values that distances between elements have too."""
    parts = [one for store in stores for one in walk(store.value)]
    placed = [one.place for one in (*stores, *(part for part in parts if isinstance(part, Input))) if one.place]
    return {name for place in placed for kind, name, _ in atoms(place) if kind == "s"} & {
        one.name for one in parts if isinstance(one, Scalar)
    }


def _several_places(stores: tuple[Output, ...]) -> str:
    """A tensor of which elements at different places make one element, empty if there is none."""
    found: dict[str, set[tuple[str, Place | None]]] = {}
    for store in stores:
        for one in walk(store.value):
            if isinstance(one, Input):
                found.setdefault(one.tensor, set()).add((one.part, one.place))
    return next((tensor for tensor, parts in found.items() if len(parts) > 1), "")


def _reshaped(stores: tuple[Output, ...]) -> str:
    """Why a tensor has no shape, empty if all have: it is read by rows or columns, and written whole."""
    for store in stores:
        for one in walk(store.value):
            for other in stores:
                if isinstance(one, Input) and one.tensor == other.tensor and one.axes != other.axes:
                    return f"{one.tensor} is read by other indices than it is written"
    return ""


def _shared(stores: tuple[Output, ...]) -> str:
    """A tensor that several different stores write to, empty if there is none."""
    tensors = [one.tensor for one in stores]
    return next((one for one in tensors if tensors.count(one) > 1), "")


def _products(value: Value) -> list[MatMul]:
    return list(dict.fromkeys(one for one in walk(value) if isinstance(one, MatMul)))


def _attention(stores: tuple[Output, ...], updates: Mapping[str, Value]) -> Attention | Outside | None:
    """Attention: a product whose left side is made of an exponential of another product."""
    chained = [
        store for store in stores
        if any(isinstance(one, MatMul) and _products(one.a) for one in walk(store.value))
    ]  # fmt: skip
    if not chained:
        return None
    for store in stores:
        for one in walk(store.value):
            if isinstance(one, Unread):
                return Outside(f"{store.tensor} is made of {one.reason}, which has no equivalent in the table")
    if len(chained) > 1:
        return Outside("its products are those of attention, but not forward")
    (store,) = chained
    try:
        parts = read_attention(store, updates)
    except Unlike as unlike:
        return Outside(str(unlike))
    rest = [one for one in stores if one is not store]
    others = {part.tensor for one in rest for part in walk(one.value) if isinstance(part, Input)}
    left_out = tuple(dict.fromkeys(one.tensor for one in rest))
    own = {one.tensor for one in (store, parts.q, parts.k, parts.v)}
    if others - {parts.q.tensor, parts.k.tensor} or own & {*left_out}:
        return Outside("its products are those of attention, but not forward")
    return Attention(parts.q, parts.k, parts.v, store, parts.causal, left_out)


def _gemm(stores: tuple[Output, ...]) -> Gemm | Outside:
    products = list(dict.fromkeys(one for store in stores for one in _products(store.value)))
    if len(products) > 1:
        return Outside(f"it has {len(products)} products of different blocks")
    if twice := _several_places(stores):
        return Outside(f"it loads {twice} from several places")
    if shared := _shared(stores):
        return Outside(f"it stores several values to {shared}")
    product = products[0]
    if not isinstance(product.a, Input) or not isinstance(product.b, Input):
        return Outside("a factor of the product is computed in the kernel")
    if unwritten := _unwritten(stores):
        return Outside(unwritten)
    if any(isinstance(one, Reduced) for store in stores for one in walk(store.value)):
        return Outside("the product is used in a way that is no epilogue")
    placed = of_product(stores, product.a, product.b, product.transposed)
    if isinstance(placed, str):
        return Outside(placed)
    if overwritten := {one.tensor for one in stores} & {product.a.tensor, product.b.tensor}:
        return Outside(f"{min(overwritten)} is a factor of the product that is stored to it")
    if odd := _reshaped(placed):
        return Outside(odd)
    return Gemm(product, product.a, product.b, placed)


def _rope(stores: tuple[Output, ...], bounds: Mapping[Place, Place]) -> Rope | None:
    """RoPE: ``x1 * c - x2 * s`` and ``x2 * c + x1 * s``, stored to one tensor.

    It assumes, and checks: x and the result have the same rows, and their second halves begin at the same distance;
    each row of x has a row of c and one of s, of the length of that distance, and each of its elements is rotated.
    """
    left = {one.tensor: (one, found) for one in stores if (found := _rotation(one.value, "-")) is not None}
    right = {one.tensor: (one, found) for one in stores if (found := _rotation(one.value, "+")) is not None}
    if not left or left.keys() != right.keys() or len(stores) != 2 * len(left):
        return None
    factors = {(c, s) for _, (_, c, _, s) in left.values()}
    if len(factors) > 1:
        return None
    c, s = factors.pop()
    for out, (first, (x, _, y, _)) in left.items():
        second, (y_too, c_too, x_too, s_too) = right[out]
        # Of two sums either one may stand first.
        if (y_too, c_too, x_too, s_too) not in ((y, c, x, s), (x, s, y, c)):
            return None
        if not _halves_of([first.place, second.place, x.place, y.place, c.place, s.place], bounds):
            return None
    if len({c.tensor, s.tensor, *left, *(x.tensor for _, (x, _, _, _) in left.values())}) < 2 + len(left) * (
        1 if all(out == x.tensor for out, (_, (x, _, _, _)) in left.items()) else 2
    ):
        return None
    return Rope(tuple((x.tensor, out) for out, (_, (x, _, _, _)) in left.items()), c.tensor, s.tensor)


def _halves_of(found: list[Place | None], bounds: Mapping[Place, Place]) -> bool:
    """Whether results and x are stored and read in halves of rows, and c and s in rows of one half: the places of both
    results, of both halves of x, of c and of s."""
    places = [one for one in found if one is not None]
    if len(places) < len(found):
        return False
    # Half of a row further on.
    shift = plus(places[3], places[2], -1.0)
    half = len(shift) == 1 and all(len(product) == 1 and factor == 1 for product, factor in shift)
    begins = all(not distance(places[number]) for number in (0, 2, 4, 5))
    if not half or not begins or shift != distance(shift) or plus(places[1], places[0], -1.0) != shift:
        return False
    whole = [steps(places[number]) for number in (2, 0, 4, 5)]
    first = whole[0]
    if isinstance(first, str):
        return False
    elements = [one for one in first.indices if one[0] == "r"]
    rows = [one for one in first.indices if one[0] == "p"]
    if len(elements) != 1 or len(rows) != 1 or len(first.indices) != 2 or first.strides[elements[0]]:
        return False
    compared = [length for index, length in bounds.items() if elements[0] in atoms(index)]
    size = elements[0][2]
    if any(length != shift for length in compared) or (
        size != written(shift) and written(shift) in re.findall(r"\w+", size)
    ):
        return False
    return all(not isinstance(one, str) and one.indices == first.indices and same(first, one) for one in whole)


def _rotation(value: Value, sign: str) -> tuple[Input, Input, Input, Input] | None:
    match value:
        case Formula(
            name, (Formula("*", (Input() as x, Input() as c)), Formula("*", (Input() as y, Input() as s)))
        ) if name == sign:
            if x.tensor == y.tensor and len({x.tensor, c.tensor, s.tensor}) == 3:
                return x, c, y, s
        case Formula("+", (left, Formula("*", (Formula("*", (Input() as x, Number(-1.0))), Input() as s)))) if (
            sign == "-"
        ):
            return _rotation(Formula("-", (left, Formula("*", (x, s)))), "-")
        case _:
            pass
    return None


def _rowwise(stores: tuple[Output, ...]) -> LiteralString:
    values = [one for store in stores for one in walk(store.value)]
    reduced = [one for one in values if isinstance(one, Reduced)]
    if not reduced:
        return "element-wise arithmetic"
    for one in values:
        match one:
            case Formula("/", (Formula("exp" | "exp2") as above, below)) if any(
                isinstance(part, Reduced) and part.kind == "sum" and part.value == above for part in walk(below)
            ):
                return "softmax"
            case Formula("sqrt" | "rsqrt", (inner,)) if any(
                isinstance(part, Reduced) and part.kind == "sum" and _is_square(part.value) for part in walk(inner)
            ) and any(not isinstance(store.value, Reduced) and _is_full(store) for store in stores):
                return "RMS norm and layer norm"
            case _:
                pass
    return "reductions"


def _is_square(value: Value) -> bool:
    match value:
        case Formula("*", (left, right)):
            return left == right
        case _:
            return False


def _is_full(store: Output) -> bool:
    return bool(store.axes & {"r", "r1"})
