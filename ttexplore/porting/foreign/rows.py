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
from ttexplore.porting.foreign.values import (
    Formula,
    Input,
    Number,
    Output,
    Reduced,
    Value,
    in_order,
    is_over_row,
    replaced,
    walk,
)

_FULL, _ROWS, _COLUMNS = frozenset({"r0", "r1"}), frozenset({"r0"}), frozenset({"r1"})
_UNKNOWN = "it is not known whether rows or columns share"


_NEUTRAL = {"sum": 0.0, "max": -math.inf, "min": math.inf}
_TRIALS = 4


def _counts_beyond(reduction: Reduced) -> bool:
    """Whether elements beyond the edge, which a mask leaves out, may change what is reduced: whether they have another
    value than one that adds nothing, whatever the elements inside are."""
    values = in_order(reduction.value, until=lambda term: term != reduction.value and isinstance(term, Reduced))
    masked = [term for term in values if isinstance(term, Input) and term.beyond is not None]
    if not masked and not any(isinstance(term, Formula) and term.name == "edge" for term in values):
        return False
    draw = random.Random(0)
    for _ in range(_TRIALS):
        numbers: dict[int, float] = {}
        for term in values:
            match term:
                case Number(value):
                    number = value
                case Input(beyond=float(value)):
                    number = value
                case Formula(name, arguments):
                    number = _applied(name, [numbers[id(each)] for each in arguments])
                case _:
                    number = draw.uniform(-3.0, 3.0)
            numbers[id(term)] = number
        beyond = numbers[id(reduction.value)]
        magnitude = (
            reduction.kind == "max"
            and isinstance(reduction.value, Formula)
            and reduction.value.name == "abs"
            and beyond == 0
        )
        if beyond != _NEUTRAL[reduction.kind] and not magnitude:
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
        for term in walk(store.value):
            if isinstance(term, Reduced) and _counts_beyond(term):
                return "what is beyond the edge is part of a reduction"
    return ""


def contradicted(stores: tuple[Output, ...], bounds: Mapping[Place, Place]) -> str:
    """Why lengths do not fit to each other, empty if they do: indices of an axis that end at two lengths, or rows that
    begin after the length of another axis."""
    compared = frozenset(written(bound) for bound in bounds.values())
    # Rows or columns of a block are numbered alike, alone and in a block.
    ends: dict[Place, Place] = {}
    for index, length in bounds.items():
        alone = renamed(index, lambda atom: ("r", "r", atom[2]) if atom[1] in ("r0", "r1") else atom)
        is_row = any(kind == "p" for kind, _, _ in atoms(index))
        if is_row and (first_length := ends.setdefault(alone, length)) != length:
            return f"it compares an index with {written(first_length)} and with {written(length)}"
    rows: list[tuple[str, str, str]] = []
    gaps: list[tuple[str, str]] = []
    lengths: set[str] = set()
    # What is compared may be read elsewhere from the chip, where another index stands for its own.
    for access in (*_accesses(stores), *(Input("what is compared", place=index) for index in bounds)):
        side = "nowhere" if access.place is None else steps(access.place, wraps=True)
        if isinstance(side, str):
            continue
        long: set[str] = set()
        pitches: set[str] = set()
        for axis in side.axes(compared):
            axis_lengths = length_along(axis, side.indices, bounds)
            if isinstance(axis_lengths, str):
                return axis_lengths
            if len(axis_lengths) > 1:
                return f"indices of {access.tensor} go up to {' and up to '.join(sorted(axis_lengths))}"
            lengths |= axis_lengths
            if any(not side.strides[index] for index in axis):
                long = axis_lengths
            else:
                first = min((side.strides[index] for index in axis), key=len)
                pitches |= {*first} if len(first) == 1 else set[str]()
        rows += [(access.tensor, length, pitch) for length in long for pitch in pitches]
        if all(side.strides.values()) and access.place not in bounds:
            gaps += [(access.tensor, pitch) for pitch in pitches]
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
    if all(access.place is None for access in _accesses(stores)):
        return stores
    reduced = any(is_over_row(term) for store in stores for term in walk(store.value))
    side_of = _steps(stores)
    if isinstance(side_of, str):
        return side_of
    full_side = max(side_of.values(), key=lambda side: len(side.indices))
    every = frozenset[Atom]().union(*(side.indices for side in side_of.values()))
    if full_side.indices != every:
        return f"{_UNKNOWN} its tensors"
    if digits := _half_of_threads(every):
        return f"not all of {digits} is used"
    if not any(not strides or (len(strides) == 1 and strides[0][0] != "#") for strides in full_side.strides.values()):
        return "its tensors are read with gaps"
    if all(side.indices == every for side in side_of.values()) and not reduced:
        odd = next((access for access, side in side_of.items() if not same(full_side, side)), None)
        return (
            _with_axes(stores, dict.fromkeys(side_of, _FULL)) if odd is None else f"{odd[0]} is read in another order"
        )
    rows = _rows_of(full_side, [side.indices for side in side_of.values()], reduced)
    return rows if isinstance(rows, str) else _placed(stores, side_of, full_side, rows, reduced)


def of_product(stores: tuple[Output, ...], a: Input, b: Input, transposed: bool) -> tuple[Output, ...] | str:
    """The stores of a product with tensors that are whole, rows or columns, if `a` has rows and `b` columns of it."""
    if a.place is None or b.place is None:
        return stores
    left, right = steps(a.place, wraps=True), steps(b.place, wraps=True)
    for tensor, side in ((a.tensor, left), (b.tensor, right)):
        if isinstance(side, str):
            return f"{tensor} is read {side}"
    assert not isinstance(left, str)
    assert not isinstance(right, str)
    if reason := _sizes(stores, left, right, transposed):
        return reason
    rest = tuple(replace(store, value=_without(store.value, (a, b))) for store in stores)
    side_of = _steps(rest)
    if isinstance(side_of, str):
        return side_of
    full_side = max((side_of[_access(store)] for store in stores), key=lambda side: len(side.indices))
    of_a, of_b = left.blocks() & full_side.blocks(), right.blocks() & full_side.blocks()
    if of_a & of_b or left.blocks() != of_a or right.blocks() != of_b:
        return "several products are computed, or one of parts of K"
    if not of_a or not of_b:
        # One block of rows or columns: the elements tell.
        of_a, of_b = left.indices & full_side.indices - right.indices, right.indices & full_side.indices - left.indices
    if of_a | of_b < full_side.blocks() or not of_a or not of_b:
        return "it is not known which blocks its product has"
    rows = full_side.largest(of_a, of_b)
    if not rows or not _last(full_side, full_side.indices - rows) or not _one_row(full_side, full_side.indices - rows):
        return "the product is stored in another order"
    if _has(rows, "r1") or _has(full_side.indices - rows, "r0"):
        return "the product is stored in another order"
    for side in (left, right):
        if not _whole_sum(side):
            return "the product is not summed over all of K"
    if (reason := _order(left, of_a, rows, False)) or (
        reason := _order(right, of_b, full_side.indices - rows, not transposed)
    ):
        return f"a factor of the product is {reason}"
    of_depth = [frozenset(index for index in side.indices if index[0] == "k" or index[1] == axis) for side, axis in (
        (left, "r1"), (right, "r1" if transposed else "r0")
    )]  # fmt: skip
    end = " ".join(sorted({name.partition(" of ")[2] for kind, name, _ in of_depth[0] if kind == "k"}))
    factors = (
        TensorIndices(a.tensor, left, left.indices - of_depth[0], of_depth[0], end),
        TensorIndices(b.tensor, right, right.indices - of_depth[1], of_depth[1], end)
        if transposed
        else TensorIndices(b.tensor, right, of_depth[1], right.indices - of_depth[1]),
    )
    return _placed(stores, side_of, full_side, rows, False, (a, b), factors)


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
        return min((self.steps.strides[index] for index in indices), key=len)

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
        for operand, name, counterpart, second in ((a, "r0", to, "r0"), (b, rows, to, "r1"), (a, "r1", b, columns)):
            if _size(operand, name) != _size(counterpart, second):
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
    return any(index[:2] == ("r", name) for index in indices)


def _half_of_threads(indices: frozenset[Atom]) -> str:
    """A number of threads of which only one of two digits is used, empty if there is none."""
    names = {name for kind, name, _ in indices if kind in ("r", "p") and name.startswith("(") and "threadIdx" in name}
    names |= {name for kind, name, _ in indices if kind == "r" and name.startswith("(")}
    for name in names:
        complement = name.replace(" // ", " % ") if " // " in name else name.replace(" % ", " // ")
        if complement not in names:
            return name
    return ""


def _one_row(full_side: IndexStrides, columns: frozenset[Atom]) -> bool:
    """Whether threads of a row are next to each other: none moves by a stride that others of the row do not have."""
    shared = frozenset[str].intersection(*(frozenset(full_side.strides[index]) for index in columns))
    return all(
        set(full_side.strides[index]) - shared <= {name for name in full_side.strides[index] if name.startswith("#")}
        for index in columns
        if index[0] == "r"
    )


def _whole_sum(side: IndexStrides) -> bool:
    """Whether loops in loops over K visit all of it: the outer one moves by the length of the inner one."""
    turns = sorted((index for index in side.indices if index[0] == "k"), key=lambda index: index[1], reverse=True)
    for inner, outer in itertools.pairwise(turns):
        length = inner[1].partition(" of ")[2]
        if not {length, f"#{length}"} & set(side.strides[outer]):
            return False
    return True


def _order(side: IndexStrides, blocks: frozenset[Atom], free_indices: frozenset[Atom], turns_first: bool) -> str:
    """Why a factor is not read by its rows, which are those of the product or (`turns_first`) of K; empty if it is."""
    turns = frozenset(index for index in side.indices if index[0] == "k")
    if not turns:
        return "not read in a loop over K"
    inner = frozenset(index for index in side.indices if index[1] in ("r0", "r1"))
    if side.indices - turns <= free_indices:
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


def _access(access: Input | Output) -> tuple[str, Place | None]:
    return access.tensor, access.place


def _accesses(stores: tuple[Output, ...]) -> list[Input | Output]:
    return [*stores, *(term for store in stores for term in walk(store.value) if isinstance(term, Input))]


def _without(value: Value, factors: tuple[Input, Input]) -> Value:
    """A value without the factors of the product."""
    return replaced(value, lambda term: _NOTHING if term in factors else None)


_NOTHING = Input("", place=None)


def _steps(stores: tuple[Output, ...]) -> dict[tuple[str, Place | None], IndexStrides] | str:
    side_of: dict[tuple[str, Place | None], IndexStrides] = {}
    for element in _accesses(stores):
        if element == _NOTHING:
            continue
        if element.place is None:
            return f"it is not known which elements of {element.tensor} it takes"
        side = steps(element.place)
        if isinstance(side, str):
            return f"{element.tensor} is {'written' if isinstance(element, Output) else 'read'} {side}"
        side_of[_access(element)] = side
    blocks = any(kind == "r" and name in ("r0", "r1") for side in side_of.values() for kind, name, _ in side.indices)
    if not blocks:
        return side_of
    # Rows and columns of blocks that were made without the other axis.
    full_side = max(side_of.values(), key=lambda side: len(side.indices))
    settled: dict[tuple[str, Place | None], IndexStrides] = {}
    for access, side in side_of.items():
        plain = _has(side.indices, "r")
        choices = [_along(access[1], axis) for axis in ("r0", "r1")] if plain else [side]
        fits = [
            choice for choice in choices
            if choice is not None and choice.indices <= full_side.indices
            and (part_of_rows(full_side, choice) or part_of_columns(full_side, choice) or not plain)
        ]  # fmt: skip
        if len(fits) > 1:
            # That whose block moves with it, or that of which there is one block.
            fits = [choice for choice in fits if _moves_with(full_side, choice)]
        if len(fits) != 1:
            return f"{_UNKNOWN} {access[0]}"
        settled[access] = fits[0]
    return settled


def _moves_with(full_side: IndexStrides, part_side: IndexStrides) -> bool:
    inner_indices = frozenset(index for index in part_side.indices if index[0] != "p")
    if not part_side.blocks():
        return not any(
            full_side.sharing(stride) & full_side.blocks()
            for index in inner_indices
            for stride in full_side.strides[index]
        )
    return any(
        full_side.sharing(stride) >= inner_indices | part_side.blocks()
        and not full_side.sharing(stride)
        & (full_side.indices - inner_indices - part_side.blocks() - full_side.blocks())
        for index in inner_indices
        for stride in full_side.strides[index]
    )


def _along(position: Place | None, axis: str) -> IndexStrides | None:
    side = steps(
        renamed(position or frozenset(), lambda atom: ("r", axis, atom[2]) if atom[:2] == ("r", "r") else atom)
    )
    return None if isinstance(side, str) else side


def _last(full_side: IndexStrides, columns: frozenset[Atom]) -> bool:
    """Whether some index goes from column to column, one after the other or by a stride of its own."""
    rows = full_side.indices - columns
    shared = {stride for index in rows for stride in full_side.strides[index]}
    return any(not full_side.strides[index] for index in columns) or (
        all(full_side.strides[index] for index in rows)
        and any(
            not (set(full_side.strides[index]) & shared)
            and not any(name.startswith("#") for name in full_side.strides[index])
            for index in columns
        )
    )


def _rows_of(full_side: IndexStrides, indices: list[frozenset[Atom]], reduced: bool) -> frozenset[Atom] | str:
    """The indices that choose a row; the others choose the element in it."""
    part_sets = {index_set for index_set in indices if index_set != full_side.indices}
    sets = {stride: full_side.sharing(stride) for strides in full_side.strides.values() for stride in strides}
    choices = [*part_sets, *(full_side.indices - index_set for index_set in part_sets)]
    if reduced and not part_sets:
        blocks = full_side.blocks()
        choices = sorted(
            (index_set | blocks for index_set in sets.values() if index_set & blocks), key=len, reverse=True
        )
    # Blocks have rows: what is reduced lies in one.
    for rows in sorted(choices, key=lambda index_set: bool((full_side.indices - index_set) & full_side.blocks())):
        columns = full_side.indices - rows
        if reduced and columns & full_side.blocks():
            continue
        blocks = frozenset(index for index in rows if index[0] == "p")
        apart = any(
            rows - blocks <= inside and inside & rows and not inside & columns for inside in sets.values()
        )  # fmt: skip
        # Blocks along a row are no rows, where a row has several.
        apart = apart and (rows <= blocks or not any(full_side.within(index) in columns for index in blocks))
        apart = apart and not _has(rows, "r1") and not _has(columns, "r0")
        if (
            rows
            and columns
            and apart
            and _last(full_side, columns)
            and all(index_set in (rows, columns) for index_set in part_sets)
        ):
            return rows
    return "rows and columns of its tensors are not as they are here"


def _placed(
    stores: tuple[Output, ...], side_of: dict[tuple[str, Place | None], IndexStrides], full_side: IndexStrides,
    rows: frozenset[Atom], reduced: bool, factors: tuple[Input, ...] = (), of_factors: tuple[TensorIndices, ...] = (),
) -> tuple[Output, ...] | str:  # fmt: skip
    axes: dict[tuple[str, Place | None], frozenset[str]] = {}
    for access, side in side_of.items():
        if side.indices == full_side.indices:
            if not same(full_side, side):
                return f"{access[0]} is read in another order"
            axes[access] = _FULL
        elif side.indices == rows and part_of_rows(full_side, side):
            axes[access] = _ROWS
        elif side.indices == full_side.indices - rows and part_of_columns(full_side, side):
            axes[access] = _COLUMNS
        else:
            return f"{_UNKNOWN} {access[0]}"
    sides = [
        TensorIndices(access[0], side, rows & side.indices, side.indices - rows) for access, side in side_of.items()
    ]
    if odd := distances([*sides, *of_factors]):
        return odd
    placed = _with_axes(stores, axes, factors)
    if reduced and any(kind == "r" for kind, _, _ in full_side.indices - rows):
        alone = [
            value
            for store in stores
            for value in walk(store.value)
            if isinstance(value, Reduced) and value.together is not True
        ]
        if alone:
            return "threads do not add up what each of them reduced"
    if reduced:
        for side in placed:
            if (_FULL if _is_full(side.value) else _ROWS) != side.axes:
                return f"{side.tensor} is not reduced over whole rows"
    elif not factors and any(store.axes != _FULL for store in placed):
        return "what it stores does not have all rows and columns"
    return placed


def _is_full(value: Value) -> bool:
    """Whether a value is one of an element, not of a row."""
    values = in_order(value, until=lambda term: isinstance(term, Reduced))
    return any(isinstance(term, Input) and "r1" in term.axes for term in values)


def _with_axes(
    stores: tuple[Output, ...], axes: dict[tuple[str, Place | None], frozenset[str]], factors: tuple[Input, ...] = ()
) -> tuple[Output, ...]:
    def change(value: Value) -> Value | None:
        if isinstance(value, Input) and value not in factors:
            index = None if value.by is None else change(value.by)
            by = index if isinstance(index, Input) else None
            return Input(value.tensor, axes[_access(value)], value.part, by=by)
        return None

    return tuple(
        Output(store.tensor, axes[_access(store)], replaced(store.value, change), store.part) for store in stores
    )
