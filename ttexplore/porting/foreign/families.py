"""What family of kernels a foreign kernel belongs to, by its values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import LiteralString

from ttexplore.porting.foreign.marks import ForeignKernel
from ttexplore.porting.foreign.places import Place, atoms, distance, plus, same, steps
from ttexplore.porting.foreign.rows import beyond_edges, by_rows_and_columns, of_product
from ttexplore.porting.foreign.values import (
    Carried,
    Index,
    Input,
    Number,
    Op,
    Product,
    Reduced,
    Store,
    Unread,
    Value,
    in_order,
    is_index,
    place_of,
    walk,
    without_edges,
)
from ttexplore.porting.foreign.writing import WRITTEN

# How many operations and elements a skeleton is made of at most.
MOST_VALUES = 1_500


@dataclass(frozen=True, slots=True)
class Gemm:
    """A product of `a` and `b`, and `stores` in which it stands for the accumulator."""

    product: Product
    a: Input
    b: Input
    stores: tuple[Store, ...]
    row = "GEMM"


@dataclass(frozen=True, slots=True)
class Attention:
    """Softmax of the product of queries and keys, times values."""

    q: Input
    k: Input
    v: Input
    out: Store
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

    stores: tuple[Store, ...]
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
    stores = tuple(replace(one, value=without_edges(one.value)) for one in stores)
    if any(_products(one.value) for one in stores):
        return _attention(stores) or _gemm(stores)
    rope = _rope(stores)
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
    return Outside(placed) if isinstance(placed, str) else Rowwise(placed, row)


_LOGICAL = {"<", "<=", ">", ">=", "==", "!=", "&", "|"}


def _unwritten(stores: tuple[Store, ...]) -> str:
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
                case Op(name) if name not in WRITTEN:
                    return f"{store.tensor} is made of elements that are {name}, in a way that is not known"
                case Op("&" | "|", sides) if not all(isinstance(one, Op) and one.name in _LOGICAL for one in sides):
                    return f"{store.tensor} is made of bits of numbers"
                case Number(value) if value != value:
                    return f"{store.tensor} is made of a number that cannot be read"
                case _:
                    pass
    return ""


def _several_places(stores: tuple[Store, ...]) -> str:
    """A tensor of which elements at different places make one element, empty if there is none."""
    found: dict[str, set[tuple[str, Place | None]]] = {}
    for store in stores:
        for one in walk(store.value):
            if isinstance(one, Input):
                found.setdefault(one.tensor, set()).add((one.part, one.place))
    return next((tensor for tensor, parts in found.items() if len(parts) > 1), "")


def _shared(stores: tuple[Store, ...]) -> str:
    """A tensor that several different stores write to, empty if there is none."""
    tensors = [one.tensor for one in stores]
    return next((one for one in tensors if tensors.count(one) > 1), "")


def _products(value: Value) -> list[Product]:
    return list(dict.fromkeys(one for one in walk(value) if isinstance(one, Product)))


def _attention(stores: tuple[Store, ...]) -> Attention | Outside | None:
    """Attention: a product whose left side is made of an exponential of another product."""
    for store in stores:
        for outer in _products(store.value):
            exponents = [one for one in walk(outer.a) if isinstance(one, Op) and one.name in ("exp", "exp2")]
            inner = list(dict.fromkeys(found for one in exponents for found in _products(one)))
            # What carries values from turn to turn has the same product several times.
            sides = list(dict.fromkeys((_input(one.a), _input(one.b)) for one in inner))
            if not sides:
                continue
            q, k = sides[0]
            v = _input(outer.b)
            if q is None or k is None or v is None or len(sides) > 1:
                return Outside("an exponential of a product is multiplied, but not as in attention forward")
            others = {one for part in exponents for one in walk(part) if isinstance(one, Input)} - {q, k}
            elsewhere = [one for other in stores if other != store for one in _products(other.value)]
            if any(one.tensor not in (q.tensor, k.tensor, v.tensor) for one in others) or any(
                (_input(one.a), _input(one.b)) not in (sides[0], (None, v)) for one in elsewhere
            ):
                return Outside("its products are those of attention, but not forward")
            masks = [one for one in walk(outer.a) if isinstance(one, Op) and one.name in ("causal", "where")]
            if reason := _unlike_attention(store, outer, exponents, masks):
                return Outside(reason)
            causal = bool(masks)
            left_out = tuple(dict.fromkeys(one.tensor for one in stores if one.tensor != store.tensor))
            return Attention(q, k, v, store, causal, left_out)
    return None


def _unlike_attention(store: Store, outer: Product, exponents: list[Op], masks: list[Op]) -> str:
    """Why the weights of a product are not those of softmax, empty if they are."""
    if isinstance(outer.b, Op):
        return "its values are computed in the kernel"
    names = {one.name for part in exponents for one in walk(part) if isinstance(one, Op)}
    if odd := names - {"exp", "exp2", "+", "-", "*", "/", "max", "where", "causal", "transposed", *_COMPARED}:
        return f"its scores are changed by {sorted(odd)[0]}"
    if not all(one.name == "causal" or _is_causal(one) for one in masks):
        return "its scores are masked, but not as in causal attention"
    for one in walk(store.value):
        if isinstance(one, Unread):
            return f"{store.tensor} is made of {one.reason}, which has no equivalent in the table"
    running = any(isinstance(one, Carried) for part in exponents for one in walk(part))
    match store.value:
        case Op("/", (above, below)):
            last = _last_product(above, running)
            if last is None or last.b != outer.b:
                return "its sum of values is not that of attention"
            sums = [one for one in walk(below) if isinstance(one, Reduced) and one.kind == "sum"]
            return "" if any(one.value == last.a for one in sums) else "it is divided by another sum"
        case _:
            return "its sum of values is not divided by that of the weights"


def _last_product(value: Value, running: bool) -> Product | None:
    """The product that is added to a sum, which is rescaled before where the largest score is still `running`."""
    match value:
        case Op("+", (Op("*", (left, right)), Product() as last)):
            sides = (left, right)
            scaled = any(isinstance(one, Op) and one.name in ("exp", "exp2") for one in sides)
            return last if scaled and any(isinstance(one, Carried) for one in sides) else None
        case Product() if not running:
            return value
        case _:
            return None


_COMPARED = {"<", "<=", ">", ">=", "&"}


def _is_causal(mask: Op) -> bool:
    """Whether a mask hides the columns behind that of the row."""
    match mask.arguments:
        case (Op(">=" | "<=" as name, (left, right)), _, Number(hidden)):
            row, column = (left, right) if name == ">=" else (right, left)
            hides = hidden < -1e4 and is_index(row) and is_index(column)
            places = [place_of(one) for one in (row, column)]
            sides = [{one[1] for one in atoms(place)} & {"r0", "r1"} for place in places]
            fixed = any(not product for place in places for product, _ in place)
            return hides and sides == [{"r0"}, {"r1"}] and not fixed
        case _:
            return False


def _input(value: Value) -> Input | None:
    """The tensor whose elements a value has, perhaps transposed or scaled by a number."""
    match value:
        case Input():
            return value
        case Op("transposed", (inner,)):
            return _input(inner)
        case Op("*", (left, right)):
            found = [one for one in (_input(left), _input(right)) if one is not None]
            return found[0] if len(found) == 1 else None
        case _:
            return None


def _gemm(stores: tuple[Store, ...]) -> Gemm | Outside:
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
    return Gemm(product, product.a, product.b, placed)


def _rope(stores: tuple[Store, ...]) -> Rope | None:
    """RoPE: ``x1 * c - x2 * s`` and ``x2 * c + x1 * s``, stored to one tensor."""
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
        if (y_too, c_too, x_too, s_too) not in ((y, c, x, s), (x, s, y, c)) or not _halves_of(
            first, second, x, y, c, s
        ):
            return None
    return Rope(tuple((x.tensor, out) for out, (_, (x, _, _, _)) in left.items()), c.tensor, s.tensor)


def _halves_of(first: Store, second: Store, x: Input, y: Input, c: Input, s: Input) -> bool:
    """Whether `x` and `y` are halves of rows, the results are stored to such halves, and `c` and `s` begin at rows."""
    found = [one.place for one in (first, second, x, y, c, s)]
    if None in found:
        return all(one is None for one in found)
    places = [one for one in found if one is not None]
    # Half of a row further on; both tensors may have strides of their own.
    shift = plus(places[3], places[2], -1.0)
    starts = [distance(one) for one in places]
    half = len(shift) == 1 and all(product and factor == 1 for product, factor in shift) and shift == distance(shift)
    return (
        half
        and plus(places[1], places[0], -1.0) == shift
        and not (starts[0] or starts[2] or starts[4] or starts[5])
        and not isinstance(by_rows_and_columns((replace(first, value=x),)), str)
        # Rows of cos and sin may be shared by rows of x.
        and _alike(places[4], places[5])
    )


def _alike(one: Place, other: Place) -> bool:
    left, right = steps(one), steps(other)
    if isinstance(left, str) or isinstance(right, str):
        return False
    return left.indices == right.indices and same(left, right)


def _rotation(value: Value, sign: str) -> tuple[Input, Input, Input, Input] | None:
    match value:
        case Op(name, (Op("*", (Input() as x, Input() as c)), Op("*", (Input() as y, Input() as s)))) if name == sign:
            if x.tensor == y.tensor and len({x.tensor, c.tensor, s.tensor}) == 3:
                return x, c, y, s
        case Op("+", (left, Op("*", (Op("*", (Input() as x, Number(-1.0))), Input() as s)))) if sign == "-":
            return _rotation(Op("-", (left, Op("*", (x, s)))), "-")
        case _:
            pass
    return None


def _rowwise(stores: tuple[Store, ...]) -> LiteralString:
    values = [one for store in stores for one in walk(store.value)]
    reduced = [one for one in values if isinstance(one, Reduced)]
    if not reduced:
        return "element-wise arithmetic"
    for one in values:
        match one:
            case Op("/", (Op("exp" | "exp2") as above, below)) if any(
                isinstance(part, Reduced) and part.kind == "sum" and part.value == above for part in walk(below)
            ):
                return "softmax"
            case Op("sqrt" | "rsqrt", (inner,)) if any(
                isinstance(part, Reduced) and part.kind == "sum" and _is_square(part.value) for part in walk(inner)
            ) and any(not isinstance(store.value, Reduced) and _is_full(store) for store in stores):
                return "RMS norm and layer norm"
            case _:
                pass
    return "reductions"


def _is_square(value: Value) -> bool:
    match value:
        case Op("*", (left, right)):
            return left == right
        case _:
            return False


def _is_full(store: Store) -> bool:
    return bool(store.axes & {"r", "r1"})
