"""What family of kernels a foreign kernel belongs to, by its values."""

from __future__ import annotations

from dataclasses import dataclass

from ttexplore.porting.foreign.marks import ForeignKernel
from ttexplore.porting.foreign.values import (
    ZERO,
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
    is_index,
    replaced,
    walk,
)


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
    row: str


Family = Gemm | Attention | Rope | Rowwise


@dataclass(frozen=True, slots=True)
class Outside:
    """Why a kernel belongs to no family."""

    reason: str


def family_of(kernel: ForeignKernel) -> Family | Outside:
    """The family of a kernel; otherwise, why it has none."""
    if kernel.unread:
        return Outside(kernel.unread)
    stores = tuple(_without_beginnings(one) for one in kernel.stores)
    stores = tuple(dict.fromkeys(stores))
    if not stores:
        return Outside("it stores nothing that could be followed to a tensor")
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
    return Rowwise(stores, _rowwise(stores))


# What can be written as an expression of elements.
_WRITTEN = {
    *(
        "+",
        "-",
        "*",
        "/",
        "<",
        "<=",
        ">",
        ">=",
        "==",
        "!=",
        "&",
        "|",
        "where",
        "max",
        "min",
        "exp",
        "exp2",
        "log",
        "log2",
    ),
    *("sqrt", "rsqrt", "sin", "cos", "abs", "tanh", "sigmoid", "erf", "floor", "ceil", "pow", "sinh", "cosh"),
}


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
                case Op(name) if name not in _WRITTEN:
                    return f"{store.tensor} is made of elements that are {name}, in a way that is not known"
                case Number(value) if value != value:
                    return f"{store.tensor} is made of a number that cannot be read"
                case _:
                    pass
    return ""


def _several_places(stores: tuple[Store, ...]) -> str:
    """A tensor of which elements at different places make one element, empty if there is none."""
    found: dict[str, set[str]] = {}
    for store in stores:
        for one in walk(store.value):
            if isinstance(one, Input):
                found.setdefault(one.tensor, set()).add(one.part)
    return next((tensor for tensor, parts in found.items() if len(parts) > 1), "")


def _shared(stores: tuple[Store, ...]) -> str:
    """A tensor that several different stores write to, empty if there is none."""
    tensors = [one.tensor for one in stores]
    return next((one for one in tensors if tensors.count(one) > 1), "")


def _without_beginnings(store: Store) -> Store:
    """A store without sums that begin at zero."""

    def change(value: Value) -> Value | None:
        match value:
            case Op("+", (Carried(_, initial), added)) if initial == ZERO and isinstance(added, Product):
                return added
            case _:
                return None

    return Store(store.tensor, store.axes, replaced(store.value, change), store.part)


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
            causal = any(
                isinstance(one, Op) and (one.name == "causal" or (one.name == "where" and is_index(_left(one))))
                for one in walk(outer.a)
            )
            left_out = tuple(dict.fromkeys(one.tensor for one in stores if one.tensor != store.tensor))
            return Attention(q, k, v, store, causal, left_out)
    return None


def _left(choice: Op) -> Value:
    match choice.arguments[0]:
        case Op(_, (left, _)):
            return left
        case other:
            return other


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
    others = {one for store in stores for one in walk(store.value) if isinstance(one, Input)} - {product.a, product.b}
    if any(len(one.axes & {"x", "y"}) == 1 for one in others):
        return Outside("its epilogue has a tensor of which it is not known whether rows or columns share it")
    if any(isinstance(one, Reduced) for store in stores for one in walk(store.value)):
        return Outside("the product is used in a way that is no epilogue")
    return Gemm(product, product.a, product.b, stores)


def _rope(stores: tuple[Store, ...]) -> Rope | None:
    """RoPE: ``x1 * c - x2 * s`` and ``x2 * c + x1 * s``, stored to one tensor."""
    minus = {one.tensor: found for one in stores if (found := _rotation(one.value, "-")) is not None}
    plus = {one.tensor: found for one in stores if (found := _rotation(one.value, "+")) is not None}
    if not minus or minus.keys() != plus.keys() or len(stores) != 2 * len(minus):
        return None
    factors = {(c, s) for _, c, s in minus.values()}
    if len(factors) > 1:
        return None
    c, s = factors.pop()
    if any(plus[out][0] != x or {plus[out][1], plus[out][2]} != {c, s} for out, (x, _, _) in minus.items()):
        return None
    return Rope(tuple((x, out) for out, (x, _, _) in minus.items()), c, s)


def _rotation(value: Value, sign: str) -> tuple[str, str, str] | None:
    match value:
        case Op(name, (Op("*", (Input(first), Input(c))), Op("*", (Input(second), Input(s))))) if name == sign:
            if first == second and len({first, c, s}) == 3:
                return first, c, s
        case Op("+", (left, Op("*", (Op("*", (Input() as x, Number(-1.0))), Input() as s)))) if sign == "-":
            return _rotation(Op("-", (left, Op("*", (x, s)))), "-")
        case _:
            pass
    return None


def _rowwise(stores: tuple[Store, ...]) -> str:
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
