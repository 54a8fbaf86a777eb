"""Whether the tensors of a kernel are read and written as its skeleton does: whole, by rows, or by columns."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ttexplore.porting.foreign.places import (
    Atom,
    IndexStrides,
    Place,
    atoms,
    length_along,
    part_of_columns,
    part_of_rows,
    renamed,
    same,
    steps,
    written,
)
from ttexplore.porting.foreign.values import Formula, Input, Number, Output, Reduced, Value, in_order, replaced, walk

_FULL, _ROWS, _COLUMNS = frozenset({"r0", "r1"}), frozenset({"r0"}), frozenset({"r1"})
_UNKNOWN = "it is not known whether rows or columns share"


_NEUTRAL = {"sum": 0.0, "max": -math.inf, "min": math.inf}
_TRIALS = 4


def _counts_beyond(one: Reduced) -> bool:
    """Whether elements beyond the edge, which a mask leaves out, may change what is reduced: whether they have another
    value than one that adds nothing, whatever the elements inside are."""
    values = in_order(one.value, until=lambda part: part != one.value and isinstance(part, Reduced))
    masked = [part for part in values if isinstance(part, Input) and part.beyond is not None]
    if not masked and not any(isinstance(part, Formula) and part.name == "edge" for part in values):
        return False
    draw = random.Random(0)
    for _ in range(_TRIALS):
        found: dict[int, float] = {}
        for part in values:
            match part:
                case Number(value):
                    number = value
                case Input(beyond=float(value)):
                    number = value
                case Formula(name, arguments):
                    number = _applied(name, [found[id(each)] for each in arguments])
                case _:
                    number = draw.uniform(-3.0, 3.0)
            found[id(part)] = number
        beyond = found[id(one.value)]
        magnitude = one.kind == "max" and isinstance(one.value, Formula) and one.value.name == "abs" and beyond == 0
        if beyond != _NEUTRAL[one.kind] and not magnitude:
            return True
    return False


def _applied(name: str, values: list[float]) -> float:
    """What a function makes of numbers; NaN where it is not known."""
    try:
        match name, values:
            case "+", [left, right]:
                return left + right
            case "-", [left, right]:
                return left - right
            case "*", [left, right]:
                return left * right
            case "/", [left, right]:
                return left / right
            case "max" | "min", [left, right]:
                return max(left, right) if name == "max" else min(left, right)
            case "exp" | "exp2", [value]:
                return math.exp(value) if name == "exp" else 2.0**value
            case "abs", [value]:
                return abs(value)
            case "edge", [_, beyond]:
                return beyond
            case _:
                return math.nan
    except ArithmeticError:
        return math.nan


def beyond_edges(stores: tuple[Output, ...]) -> str:
    """Why elements beyond the edges of tensors count, empty if they do not."""
    for store in stores:
        for one in walk(store.value):
            if isinstance(one, Reduced) and _counts_beyond(one):
                return "what is beyond the edge is part of a reduction"
    return ""


def contradicted(stores: tuple[Output, ...], bounds: Mapping[Place, Place]) -> str:
    """Why lengths do not fit to each other, empty if they do: indices of an axis that end at two lengths, or rows that
    begin after the length of another axis."""
    compared = frozenset(written(one) for one in bounds.values())
    # Rows or columns of a block are numbered alike, alone and in a block.
    ends: dict[Place, Place] = {}
    for index, length in bounds.items():
        alone = renamed(index, lambda one: ("r", "r", one[2]) if one[1] in ("r0", "r1") else one)
        is_row = any(kind == "p" for kind, _, _ in atoms(index))
        if is_row and (other := ends.setdefault(alone, length)) != length:
            return f"it compares an index with {written(other)} and with {written(length)}"
    rows: list[tuple[str, str, str]] = []
    gaps: list[tuple[str, str]] = []
    lengths: set[str] = set()
    # What is compared may be read elsewhere from the chip, where another index stands for its own.
    for access in (*_accesses(stores), *(Input("what is compared", place=one) for one in bounds)):
        found = "nowhere" if access.place is None else steps(access.place, wraps=True)
        if isinstance(found, str):
            continue
        long: set[str] = set()
        pitches: set[str] = set()
        for axis in found.axes(compared):
            own = length_along(axis, found.indices, bounds)
            if isinstance(own, str):
                return own
            if len(own) > 1:
                return f"indices of {access.tensor} go up to {' and up to '.join(sorted(own))}"
            lengths |= own
            if any(not found.strides[one] for one in axis):
                long = own
            else:
                first = min((found.strides[one] for one in axis), key=len)
                pitches |= {*first} if len(first) == 1 else set[str]()
        rows += [(access.tensor, one, pitch) for one in long for pitch in pitches]
        if all(found.strides.values()) and access.place not in bounds:
            gaps += [(access.tensor, one) for one in pitches]
    for tensor, pitch in gaps:
        if pitch in lengths:
            return f"elements of {tensor} are read {pitch} elements after each other"
    for tensor, length, pitch in rows:
        if pitch in lengths and pitch != length:
            return f"rows of {tensor} have {length} elements, but begin {pitch} elements after each other"
    return ""


def by_rows_and_columns(stores: tuple[Output, ...]) -> tuple[Output, ...] | str:
    """The stores with tensors that are whole, rows or columns; otherwise, why it is not known what they are.

    What is reduced must be whole rows, one after the other in the tensor.
    """
    if all(one.place is None for one in _accesses(stores)):
        return stores
    reduced = any(isinstance(one, Reduced) for store in stores for one in walk(store.value))
    found = _steps(stores)
    if isinstance(found, str):
        return found
    whole = max(found.values(), key=lambda one: len(one.indices))
    every = frozenset[Atom]().union(*(one.indices for one in found.values()))
    if whole.indices != every:
        return f"{_UNKNOWN} its tensors"
    if digits := _half_of_threads(every):
        return f"not all of {digits} is used"
    if not any(not strides or (len(strides) == 1 and strides[0][0] != "#") for strides in whole.strides.values()):
        return "its tensors are read with gaps"
    if all(one.indices == every for one in found.values()) and not reduced:
        odd = next((access for access, one in found.items() if not same(whole, one)), None)
        return _with_axes(stores, dict.fromkeys(found, _FULL)) if odd is None else f"{odd[0]} is read in another order"
    rows = _rows_of(whole, [one.indices for one in found.values()], reduced)
    return rows if isinstance(rows, str) else _placed(stores, found, whole, rows, reduced)


def of_product(stores: tuple[Output, ...], a: Input, b: Input, transposed: bool) -> tuple[Output, ...] | str:
    """The stores of a product with tensors that are whole, rows or columns, if `a` has rows and `b` columns of it."""
    if a.place is None or b.place is None:
        return stores
    left, right = steps(a.place, wraps=True), steps(b.place, wraps=True)
    for tensor, one in ((a.tensor, left), (b.tensor, right)):
        if isinstance(one, str):
            return f"{tensor} is read {one}"
    assert not isinstance(left, str)
    assert not isinstance(right, str)
    if reason := _sizes(stores, left, right, transposed):
        return reason
    rest = tuple(replace(one, value=_without(one.value, (a, b))) for one in stores)
    found = _steps(rest)
    if isinstance(found, str):
        return found
    whole = max((found[_access(one)] for one in stores), key=lambda one: len(one.indices))
    of_a, of_b = left.blocks() & whole.blocks(), right.blocks() & whole.blocks()
    if of_a & of_b or left.blocks() != of_a or right.blocks() != of_b:
        return "several products are computed, or one of parts of K"
    if not of_a or not of_b:
        # One block of rows or columns: the elements tell.
        of_a, of_b = left.indices & whole.indices - right.indices, right.indices & whole.indices - left.indices
    if of_a | of_b < whole.blocks() or not of_a or not of_b:
        return "it is not known which blocks its product has"
    rows = whole.largest(of_a, of_b)
    if not rows or not _last(whole, whole.indices - rows) or not _one_row(whole, whole.indices - rows):
        return "the product is stored in another order"
    if _has(rows, "r1") or _has(whole.indices - rows, "r0"):
        return "the product is stored in another order"
    for one in (left, right):
        if not _whole_sum(one):
            return "the product is not summed over all of K"
    if (reason := _order(left, of_a, rows, False)) or (
        reason := _order(right, of_b, whole.indices - rows, not transposed)
    ):
        return f"a factor of the product is {reason}"
    of_depth = [frozenset(one for one in side.indices if one[0] == "k" or one[1] == axis) for side, axis in (
        (left, "r1"), (right, "r1" if transposed else "r0")
    )]  # fmt: skip
    end = " ".join(sorted({name.partition(" of ")[2] for kind, name, _ in of_depth[0] if kind == "k"}))
    factors = (
        TensorIndices(a.tensor, left, left.indices - of_depth[0], of_depth[0], end),
        TensorIndices(b.tensor, right, right.indices - of_depth[1], of_depth[1], end)
        if transposed
        else TensorIndices(b.tensor, right, of_depth[1], right.indices - of_depth[1]),
    )
    return _placed(stores, found, whole, rows, False, (a, b), factors)


@dataclass(frozen=True, slots=True)
class TensorIndices:
    """The indices of the rows and columns of a tensor; of a tensor with one axis, some are empty. `end` is where a loop
    over its columns ends, if one goes over them."""

    tensor: str
    steps: IndexStrides
    rows: frozenset[Atom]
    columns: frozenset[Atom]
    end: str = ""

    def stride(self, indices: frozenset[Atom]) -> tuple[str, ...]:
        """The distance of an element, or row, from the next one."""
        return min((self.steps.strides[one] for one in indices), key=len)

    def length(self, distance: str) -> str:
        """Where a loop over its columns ends, empty if that is at the distance of its rows."""
        return "" if distance in re.findall(r"\w+", self.end) else self.end


def distances(sides: Sequence[TensorIndices]) -> str:
    """Why distances contradict each other, empty if they do not.

    The distance of rows tells how many columns a tensor has: it is not that of elements, nor of rows of another length.
    """
    elements: dict[str, str] = {}
    rows: dict[str, TensorIndices] = {}
    sizes = {size for side in sides for kind, _, size in side.steps.indices if kind == "r"}
    for side in sides:
        inner = side.stride(side.columns or side.rows)
        outer = side.stride(side.rows) if side.rows and side.columns else None
        if outer == () and inner:
            return f"{side.tensor} is transposed"
        if outer is None and sizes & {*inner}:
            return f"{side.tensor} is read or written in blocks that leave gaps"
        if len(inner) == 1:
            elements[inner[0]] = side.tensor
        if outer is not None and len(outer) == 1 and not outer[0].startswith("#"):
            first = rows.setdefault(outer[0], side)
            if first.length(outer[0]) != side.length(outer[0]):
                return f"{outer[0]} is the distance of rows of {first.tensor} and of {side.tensor}, of other lengths"
    for name, side in rows.items():
        if side.end in rows and side.end != name:
            return f"rows of {side.tensor} have {side.end} elements, but begin {name} elements after each other"
    if both := elements.keys() & rows.keys():
        name = min(both)
        return f"{name} is the distance of elements of {elements[name]}, and of rows of {rows[name].tensor}"
    return ""


def _sizes(stores: tuple[Output, ...], a: IndexStrides, b: IndexStrides, transposed: bool) -> str:
    """Why the blocks of a product do not fit to each other, empty if they do or have no known sizes."""
    for store in stores:
        to = steps(store.place) if store.place is not None else "nowhere"
        if isinstance(to, str):
            return f"{store.tensor} is written {to}"
        rows, columns = ("r0", "r1") if transposed else ("r1", "r0")
        for one, name, other, second in ((a, "r0", to, "r0"), (b, rows, to, "r1"), (a, "r1", b, columns)):
            if _size(one, name) != _size(other, second):
                return "its blocks have different sizes"
        for side in (a, b, to):
            for index in side.indices:
                if index[0] == "r" and index[2] and not _follows(side, index):
                    return "its blocks do not follow each other"
    return ""


def _size(side: IndexStrides, name: str) -> str:
    return "".join(size for kind, axis, size in side.indices if (kind, axis) == ("r", name))


def _follows(side: IndexStrides, inner: Atom) -> bool:
    """Whether an index moves from block to block by the size of a block."""
    size = inner[2] if not inner[2].replace(".", "").isdigit() else f"#{inner[2]}"
    return tuple(sorted((*side.strides[inner], size))) in side.strides.values()


def _has(indices: frozenset[Atom], name: str) -> bool:
    """Whether elements of a block along this axis are among indices."""
    return any(one[:2] == ("r", name) for one in indices)


def _half_of_threads(indices: frozenset[Atom]) -> str:
    """A number of threads of which only one of two digits is used, empty if there is none."""
    names = {name for kind, name, _ in indices if kind in ("r", "p") and name.startswith("(") and "threadIdx" in name}
    names |= {name for kind, name, _ in indices if kind == "r" and name.startswith("(")}
    for name in names:
        other = name.replace(" // ", " % ") if " // " in name else name.replace(" % ", " // ")
        if other not in names:
            return name
    return ""


def _one_row(whole: IndexStrides, columns: frozenset[Atom]) -> bool:
    """Whether threads of a row are next to each other: none moves by a stride that others of the row do not have."""
    shared = frozenset[str].intersection(*(frozenset(whole.strides[one]) for one in columns))
    return all(
        set(whole.strides[one]) - shared <= {name for name in whole.strides[one] if name.startswith("#")}
        for one in columns
        if one[0] == "r"
    )


def _whole_sum(side: IndexStrides) -> bool:
    """Whether loops in loops over K visit all of it: the outer one moves by the length of the inner one."""
    turns = sorted((one for one in side.indices if one[0] == "k"), key=lambda one: one[1], reverse=True)
    for inner, outer in itertools.pairwise(turns):
        length = inner[1].partition(" of ")[2]
        if not {length, f"#{length}"} & set(side.strides[outer]):
            return False
    return True


def _order(side: IndexStrides, blocks: frozenset[Atom], own: frozenset[Atom], turns_first: bool) -> str:
    """Why a factor is not read by its rows, which are those of the product or (`turns_first`) of K; empty if it is."""
    turns = frozenset(one for one in side.indices if one[0] == "k")
    if not turns:
        return "not read in a loop over K"
    inner = frozenset(one for one in side.indices if one[1] in ("r0", "r1"))
    if side.indices - turns <= own:
        blocks = side.indices - turns
    elif not inner:
        return "made of rows or columns of other threads"
    by_blocks, by_turns = side.largest(blocks, turns), side.largest(turns, blocks)
    if inner:
        # The block says which of its sides goes with the loop.
        first = by_turns if turns_first else by_blocks
        if _has(first, "r1") or _has(by_blocks if turns_first else by_turns, "r0"):
            return "transposed"
    if len(by_blocks) == len(by_turns):
        return "" if inner and by_blocks else "read in an order that is not known"
    return "" if (len(by_turns) > len(by_blocks)) == turns_first else "transposed"


def _access(one: Input | Output) -> tuple[str, Place | None]:
    return one.tensor, one.place


def _accesses(stores: tuple[Output, ...]) -> list[Input | Output]:
    return [*stores, *(one for store in stores for one in walk(store.value) if isinstance(one, Input))]


def _without(value: Value, factors: tuple[Input, Input]) -> Value:
    """A value without the factors of the product."""
    return replaced(value, lambda one: _NOTHING if one in factors else None)


_NOTHING = Input("", place=None)


def _steps(stores: tuple[Output, ...]) -> dict[tuple[str, Place | None], IndexStrides] | str:
    found: dict[tuple[str, Place | None], IndexStrides] = {}
    for one in _accesses(stores):
        if one == _NOTHING:
            continue
        if one.place is None:
            return f"it is not known which elements of {one.tensor} it takes"
        made = steps(one.place)
        if isinstance(made, str):
            return f"{one.tensor} is {'written' if isinstance(one, Output) else 'read'} {made}"
        found[_access(one)] = made
    blocks = any(kind == "r" and name in ("r0", "r1") for one in found.values() for kind, name, _ in one.indices)
    if not blocks:
        return found
    # Rows and columns of blocks that were made without the other axis.
    whole = max(found.values(), key=lambda one: len(one.indices))
    settled: dict[tuple[str, Place | None], IndexStrides] = {}
    for access, one in found.items():
        plain = _has(one.indices, "r")
        choices = [_along(access[1], axis) for axis in ("r0", "r1")] if plain else [one]
        fits = [
            choice for choice in choices
            if choice is not None and choice.indices <= whole.indices
            and (part_of_rows(whole, choice) or part_of_columns(whole, choice) or not plain)
        ]  # fmt: skip
        if len(fits) > 1:
            # That whose block moves with it, or that of which there is one block.
            fits = [choice for choice in fits if _moves_with(whole, choice)]
        if len(fits) != 1:
            return f"{_UNKNOWN} {access[0]}"
        settled[access] = fits[0]
    return settled


def _moves_with(whole: IndexStrides, part: IndexStrides) -> bool:
    own = frozenset(one for one in part.indices if one[0] != "p")
    if not part.blocks():
        return not any(whole.sharing(stride) & whole.blocks() for one in own for stride in whole.strides[one])
    return any(
        whole.sharing(stride) >= own | part.blocks()
        and not whole.sharing(stride) & (whole.indices - own - part.blocks() - whole.blocks())
        for index in own
        for stride in whole.strides[index]
    )


def _along(place: Place | None, axis: str) -> IndexStrides | None:
    made = steps(renamed(place or frozenset(), lambda one: ("r", axis, one[2]) if one[:2] == ("r", "r") else one))
    return None if isinstance(made, str) else made


def _last(whole: IndexStrides, columns: frozenset[Atom]) -> bool:
    """Whether some index goes from column to column, one after the other or by a stride of its own."""
    rows = whole.indices - columns
    shared = {stride for one in rows for stride in whole.strides[one]}
    return any(not whole.strides[one] for one in columns) or (
        all(whole.strides[one] for one in rows)
        and any(
            not (set(whole.strides[one]) & shared) and not any(name.startswith("#") for name in whole.strides[one])
            for one in columns
        )
    )


def _rows_of(whole: IndexStrides, indices: list[frozenset[Atom]], reduced: bool) -> frozenset[Atom] | str:
    """The indices that choose a row; the others choose the element in it."""
    parts = {one for one in indices if one != whole.indices}
    sets = {stride: whole.sharing(stride) for strides in whole.strides.values() for stride in strides}
    choices = [*parts, *(whole.indices - one for one in parts)]
    if reduced and not parts:
        blocks = whole.blocks()
        choices = sorted((one | blocks for one in sets.values() if one & blocks), key=len, reverse=True)
    # Blocks have rows: what is reduced lies in one.
    for rows in sorted(choices, key=lambda one: bool((whole.indices - one) & whole.blocks())):
        columns = whole.indices - rows
        if reduced and columns & whole.blocks():
            continue
        blocks = frozenset(one for one in rows if one[0] == "p")
        apart = any(
            rows - blocks <= inside and inside & rows and not inside & columns for inside in sets.values()
        )  # fmt: skip
        # Blocks along a row are no rows, where a row has several.
        apart = apart and (rows <= blocks or not any(whole.within(one) in columns for one in blocks))
        apart = apart and not _has(rows, "r1") and not _has(columns, "r0")
        if rows and columns and apart and _last(whole, columns) and all(one in (rows, columns) for one in parts):
            return rows
    return "rows and columns of its tensors are not as they are here"


def _placed(
    stores: tuple[Output, ...], found: dict[tuple[str, Place | None], IndexStrides], whole: IndexStrides,
    rows: frozenset[Atom], reduced: bool, factors: tuple[Input, ...] = (), of_factors: tuple[TensorIndices, ...] = (),
) -> tuple[Output, ...] | str:  # fmt: skip
    axes: dict[tuple[str, Place | None], frozenset[str]] = {}
    for access, one in found.items():
        if one.indices == whole.indices:
            if not same(whole, one):
                return f"{access[0]} is read in another order"
            axes[access] = _FULL
        elif one.indices == rows and part_of_rows(whole, one):
            axes[access] = _ROWS
        elif one.indices == whole.indices - rows and part_of_columns(whole, one):
            axes[access] = _COLUMNS
        else:
            return f"{_UNKNOWN} {access[0]}"
    sides = [TensorIndices(access[0], one, rows & one.indices, one.indices - rows) for access, one in found.items()]
    if odd := distances([*sides, *of_factors]):
        return odd
    placed = _with_axes(stores, axes, factors)
    if reduced and any(kind == "r" for kind, _, _ in whole.indices - rows):
        alone = [one for store in stores for one in walk(store.value) if isinstance(one, Reduced) and not one.together]
        if alone:
            return "threads do not add up what each of them reduced"
    if reduced:
        for one in placed:
            if (_FULL if _is_full(one.value) else _ROWS) != one.axes:
                return f"{one.tensor} is not reduced over whole rows"
    elif not factors and any(one.axes != _FULL for one in placed):
        return "what it stores does not have all rows and columns"
    return placed


def _is_full(value: Value) -> bool:
    """Whether a value is one of an element, not of a row."""
    values = in_order(value, until=lambda one: isinstance(one, Reduced))
    return any(isinstance(one, Input) and "r1" in one.axes for one in values)


def _with_axes(
    stores: tuple[Output, ...], axes: dict[tuple[str, Place | None], frozenset[str]], factors: tuple[Input, ...] = ()
) -> tuple[Output, ...]:
    def change(value: Value) -> Value | None:
        if isinstance(value, Input) and value not in factors:
            return Input(value.tensor, axes[_access(value)], value.part)
        return None

    return tuple(Output(one.tensor, axes[_access(one)], replaced(one.value, change), one.part) for one in stores)
