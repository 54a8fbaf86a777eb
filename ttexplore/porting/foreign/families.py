"""What family of kernels a foreign kernel belongs to, by its values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import LiteralString

from ttexplore.porting.foreign.attention import Bias, Unlike, read_attention
from ttexplore.porting.foreign.gathered import misplaced, with_rows
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
    is_over_row,
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
    """Softmax of the product of queries and keys, times values. `hidden` is what other scores are or, where it `adds`,
    what is added to them: as the exponent of a power of 2. `group` is how many heads of queries share one of keys, by
    its name or number, and `bias` what is added to scores."""

    q: Input
    k: Input
    v: Input
    out: Output
    causal: bool
    left_out: tuple[str, ...]
    hidden: float
    adds: bool
    group: str = ""
    bias: Bias | None = None
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
    if len(in_order(*(store.value for store in stores))) > MOST_VALUES:
        return Outside(f"what it stores is made of more than {MOST_VALUES:,} operations")
    if reason := beyond_edges(stores):
        return Outside(reason)
    for store in stores:
        if store.place is not None and (odd := unnumbered(atoms(store.place))):
            return Outside(f"it is not known that blocks that are numbered {odd} are all blocks, each once")
    if reason := contradicted(stores, kernel.bounds):
        return Outside(reason)
    if stride := _counted(stores) - kernel.lengths:
        return Outside(f"{min(stride)}, which counts elements, is one of its values")
    stores = tuple(replace(store, value=without_edges(store.value)) for store in stores)
    if any(_products(store.value) for store in stores):
        return _attention(stores, kernel.updates) or _gemm(stores)
    rope = _rope(stores, kernel.bounds)
    if rope is not None:
        return rope
    if unwritten := _unwritten(stores):
        return Outside(unwritten)
    for store in stores:
        if not any(isinstance(term, Input) for term in walk(store.value)):
            return Outside(f"{store.tensor} depends on no tensor")
    gathered = with_rows(stores)
    if isinstance(gathered, str):
        return Outside(gathered)
    if twice := _several_places(gathered):
        return Outside(f"it loads {twice} from several places")
    if shared := _shared(gathered):
        return Outside(f"it stores to {shared} in several places")
    placed = by_rows_and_columns(gathered)
    if isinstance(placed, str):
        return Outside(placed)
    if odd := misplaced(placed):
        return Outside(odd)
    row = "gathered rows" if any(term.by for term in _inputs(placed)) else _rowwise(placed)
    return Outside(odd) if (odd := _reshaped(placed)) else Rowwise(placed, row)


_LOGICAL = {"<", "<=", ">", ">=", "==", "!=", "&", "|", "not"}


def _unwritten(stores: tuple[Output, ...]) -> str:
    """Why a value cannot be written, empty if all can."""
    for store in stores:
        for term in walk(store.value):
            match term:
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
                    isinstance(side, Formula) and side.name in _LOGICAL for side in sides
                ):
                    return f"{store.tensor} is made of bits of numbers"
                case Number(value) if value != value:
                    return f"{store.tensor} is made of a number that cannot be read"
                case _:
                    pass
    return ""


def _counted(stores: tuple[Output, ...]) -> set[str]:
    """The values that distances between elements have too."""
    terms = [term for store in stores for term in walk(store.value)]
    placed = [
        access.place for access in (*stores, *(term for term in terms if isinstance(term, Input))) if access.place
    ]
    return {name for position in placed for kind, name, _ in atoms(position) if kind == "s"} & {
        term.name for term in terms if isinstance(term, Scalar)
    }


def _several_places(stores: tuple[Output, ...]) -> str:
    """A tensor of which elements at different places make one element, empty if there is none."""
    accesses: dict[str, set[tuple[str, Place | None, Input | None]]] = {}
    for store in stores:
        for term in walk(store.value):
            if isinstance(term, Input):
                accesses.setdefault(term.tensor, set()).add((term.part, term.place, term.by))
    return next((tensor for tensor, positions in accesses.items() if len(positions) > 1), "")


def _inputs(stores: tuple[Output, ...]) -> list[Input]:
    return [term for store in stores for term in walk(store.value) if isinstance(term, Input)]


def _reshaped(stores: tuple[Output, ...]) -> str:
    """Why a tensor has no shape, empty if all have: it is read by rows or columns, and written whole."""
    for store in stores:
        for term in walk(store.value):
            for written_store in stores:
                if isinstance(term, Input) and term.tensor == written_store.tensor and term.axes != written_store.axes:
                    return f"{term.tensor} is read by other indices than it is written"
    return ""


def _shared(stores: tuple[Output, ...]) -> str:
    """A tensor that several different stores write to, empty if there is none."""
    tensors = [store.tensor for store in stores]
    return next((tensor for tensor in tensors if tensors.count(tensor) > 1), "")


def _products(value: Value) -> list[MatMul]:
    return list(dict.fromkeys(term for term in walk(value) if isinstance(term, MatMul)))


def _attention(stores: tuple[Output, ...], updates: Mapping[str, Value]) -> Attention | Outside | None:
    """Attention: a product whose left side is made of an exponential of another product."""
    chained = [
        store for store in stores
        if any(isinstance(term, MatMul) and _products(term.a) for term in walk(store.value))
    ]  # fmt: skip
    if not chained:
        return None
    for store in stores:
        for term in walk(store.value):
            if isinstance(term, Unread):
                return Outside(f"{store.tensor} is made of {term.reason}, which has no equivalent in the table")
    if len(chained) > 1:
        return Outside("its products are those of attention, but not forward")
    (store,) = chained
    try:
        attention = read_attention(store, updates)
    except Unlike as unlike:
        return Outside(str(unlike))
    rest = [other_store for other_store in stores if other_store is not store]
    other_inputs = {
        operand.tensor for other_store in rest for operand in walk(other_store.value) if isinstance(operand, Input)
    }
    left_out = tuple(dict.fromkeys(other_store.tensor for other_store in rest))
    attention_tensors = {operand.tensor for operand in (store, attention.q, attention.k, attention.v)}
    if other_inputs - {attention.q.tensor, attention.k.tensor} or attention_tensors & {*left_out}:
        return Outside("its products are those of attention, but not forward")
    return Attention(
        attention.q,
        attention.k,
        attention.v,
        store,
        attention.causal,
        left_out,
        attention.hidden,
        attention.adds,
        attention.group,
        attention.bias,
    )


def _gemm(stores: tuple[Output, ...]) -> Gemm | Outside:
    products = list(dict.fromkeys(product for store in stores for product in _products(store.value)))
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
    if any(is_over_row(term) for store in stores for term in walk(store.value)):
        return Outside("the product is used in a way that is no epilogue")
    placed = of_product(stores, product.a, product.b, product.transposed)
    if isinstance(placed, str):
        return Outside(placed)
    if overwritten := {store.tensor for store in stores} & {product.a.tensor, product.b.tensor}:
        return Outside(f"{min(overwritten)} is a factor of the product that is stored to it")
    if odd := _reshaped(placed):
        return Outside(odd)
    return Gemm(product, product.a, product.b, placed)


def _rope(stores: tuple[Output, ...], bounds: Mapping[Place, Place]) -> Rope | None:
    """RoPE: ``x1 * c - x2 * s`` and ``x2 * c + x1 * s``, stored to one tensor.

    It assumes, and checks: x and the result have the same rows, and their second halves begin at the same distance;
    each row of x has a row of c and one of s, of the length of that distance, and each of its elements is rotated.
    """
    left = {
        store.tensor: (store, rotation) for store in stores if (rotation := _rotation(store.value, "-")) is not None
    }
    right = {
        store.tensor: (store, rotation) for store in stores if (rotation := _rotation(store.value, "+")) is not None
    }
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


def _halves_of(maybe_positions: list[Place | None], bounds: Mapping[Place, Place]) -> bool:
    """Whether results and x are stored and read in halves of rows, and c and s in rows of one half: the places of both
    results, of both halves of x, of c and of s."""
    positions = [position for position in maybe_positions if position is not None]
    if len(positions) < len(maybe_positions):
        return False
    # Half of a row further on.
    shift = plus(positions[3], positions[2], -1.0)
    half = len(shift) == 1 and all(len(product) == 1 and factor == 1 for product, factor in shift)
    begins = all(not distance(positions[number]) for number in (0, 2, 4, 5))
    if not half or not begins or shift != distance(shift) or plus(positions[1], positions[0], -1.0) != shift:
        return False
    sides = [steps(positions[number]) for number in (2, 0, 4, 5)]
    first = sides[0]
    if isinstance(first, str):
        return False
    elements = [index for index in first.indices if index[0] == "r"]
    rows = [index for index in first.indices if index[0] == "p"]
    if len(elements) != 1 or len(rows) != 1 or len(first.indices) != 2 or first.strides[elements[0]]:
        return False
    compared = [length for index, length in bounds.items() if elements[0] in atoms(index)]
    size = elements[0][2]
    if any(length != shift for length in compared) or (
        size != written(shift) and written(shift) in re.findall(r"\w+", size)
    ):
        return False
    return all(not isinstance(side, str) and side.indices == first.indices and same(first, side) for side in sides)


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
    values = [term for store in stores for term in walk(store.value)]
    reduced = [term for term in values if isinstance(term, Reduced)]
    if not reduced:
        return "scans" if any(map(is_over_row, values)) else "element-wise arithmetic"
    for term in values:
        match term:
            case Formula("/", (Formula("exp" | "exp2") as above, below)) if any(
                isinstance(term, Reduced) and term.kind == "sum" and term.value == above for term in walk(below)
            ):
                return "softmax"
            case Formula("sqrt" | "rsqrt", (inner,)) if any(
                isinstance(term, Reduced) and term.kind == "sum" and _is_square(term.value) for term in walk(inner)
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
