"""Which elements of a tensor an address chooses: sums of products of indices, strides and numbers.

A place is a polynomial. Its atoms are numbers of blocks (``p``), elements of a block or threads (``r``), turns of loops
(``k``), parameters (``s``), elements of tensors (``g``), what wraps around at a length (``w``), and what is not
known (``?``). The skeletons know
rows and columns only, so each place must be one of a row, of a column or of an element of both: anything else, such as
a shifted, reversed, strided or transposed access, is said not to be known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

# The kind of an atom, its name, and for the turns of a loop the number that they must be multiplied with.
Atom = tuple[str, str, str]
# Products of atoms, each with its factor.
Place = frozenset[tuple[tuple[Atom, ...], float]]

UNKNOWN: Place = frozenset({((("?", "", ""),), 1.0)})
NOWHERE: Place = frozenset()
_INDICES = ("p", "r", "k")
# What addresses have at most, in characters and products: longer ones are not known.
_LONGEST_NAME = 400
_SHIFTS = tuple(map(float, range(31)))
_MASKS = tuple(2.0**bits - 1 for bits in range(1, 31))
_MOST_PRODUCTS = 64
_MOST_ATOMS = 12


def number(value: float) -> Place:
    """A place at a fixed distance."""
    return frozenset({((), value)}) if value else NOWHERE


def atom(kind: str, name: str, factor: str = "") -> Place:
    """A place that one index or parameter chooses."""
    return frozenset({(((kind, name, factor),), 1.0)})


def lane(count: str) -> Place:
    """The elements of a vector."""
    return atom("r", "lane", count)


def lanes(position: Place) -> float:
    """How many elements the vectors at a place have, 1 if there are none."""
    return next((float(size) for kind, name, size in atoms(position) if (kind, name) == ("r", "lane")), 1.0)


def plus(left: Place, right: Place, sign: float = 1.0) -> Place:
    """The sum of two places, or their difference."""
    factor_of = dict(left)
    for product, factor in right:
        factor_of[product] = factor_of.get(product, 0.0) + sign * factor
    return _limited(factor_of)


def times(left: Place, right: Place) -> Place:
    """The product of two places."""
    factor_of: dict[tuple[Atom, ...], float] = {}
    for left_atoms, factor in left:
        for right_atoms, second in right:
            product = tuple(sorted((*left_atoms, *right_atoms)))
            factor_of[product] = factor_of.get(product, 0.0) + factor * second
    return _limited(factor_of)


def _limited(factor_of: Mapping[tuple[Atom, ...], float]) -> Place:
    if len(factor_of) > _MOST_PRODUCTS or any(
        len(product) > _MOST_ATOMS or abs(factor_of[product]) > 2**53 for product in factor_of
    ):
        return UNKNOWN
    return frozenset((product, factor) for product, factor in factor_of.items() if factor)


def combined(name: str, left: Place, right: Place) -> Place:
    """What an operator makes of two places."""
    match name:
        case "+":
            return plus(left, right)
        case "-":
            return plus(left, right, -1.0)
        case "*":
            return times(left, right)
        case "<<" if (shift := constant(right)) in _SHIFTS:
            return times(left, number(2.0**shift))
        case ">>" if (shift := constant(right)) in _SHIFTS:
            return combined("//", left, number(2.0**shift))
        case "&" if (mask := constant(right)) in _MASKS:
            return combined("%", left, number(mask + 1))
        case "/":
            return UNKNOWN
        case _:
            return _other(name, left, right)


def _other(name: str, left: Place, right: Place) -> Place:
    kinds = {symbol[0] for symbol in atoms(left) | atoms(right)}
    if kinds & {"?", "w", "g"}:
        return UNKNOWN
    text = f"({written(left)} {name} {written(right)})"
    if len(text) > _LONGEST_NAME:
        return UNKNOWN
    if kinds <= {"s"}:
        # Parts of a length are told from it by their names; what caps or wraps a length is not known to be one.
        return atom("s", text) if name in ("//", "cdiv") and _divides_all(name, left, right) else UNKNOWN
    if kinds <= {"s", "p"}:
        return atom("p", text)
    if name in ("//", "%") and _numbers_threads(left) and {symbol[0] for symbol in atoms(right)} <= {"s"}:
        # Warps of the whole grid, and threads in a warp.
        return atom("p" if name == "//" else "r", text)
    if name in ("//", "%") and _numbers_elements(left) and {symbol[0] for symbol in atoms(right)} == {"s"}:
        # Rows and columns of the elements of all blocks.
        return atom("r", text)
    thread = [product for product, factor in left if factor == 1.0]
    if name in ("//", "%") and {symbol[0] for symbol in atoms(right)} <= {"s"} and len(left) == len(thread) == 1:
        (product,) = thread
        if len(product) == 1 and product[0][0] == "r":
            # The two digits of the number of a thread.
            return atom("r", text)
    if name == "%" and len(right) == 1 and {symbol[0] for symbol in atoms(right)} == {"s"}:
        return plus(left, atom("w", written(right)))
    return UNKNOWN


def _divides_all(name: str, left: Place, right: Place) -> bool:
    """Whether a division counts the whole parts of what parameters count, or those that all of it takes."""
    rounded_up = name == "//" and is_count(plus(plus(left, right, -1.0), number(1.0)))
    return constant(left) is not None or is_count(left) or rounded_up


def _numbers_threads(position: Place) -> bool:
    """Whether a place counts all threads of a grid along one axis."""
    return any(
        position
        == plus(times(atom("p", f"blockIdx.{axis}"), atom("s", f"blockDim.{axis}")), atom("r", f"threadIdx.{axis}"))
        for axis in "xy"
    )


def remainder(left: Place, right: Place, divided: set[tuple[Place, Place]]) -> Place:
    """What is left of a division. Of an index that was divided too, it is the second digit, as the column beside the
    row; otherwise it keeps an index inside of a tensor."""
    if _numbers_elements(left) and (left, right) not in divided:
        return plus(left, atom("w", written(right)))
    return combined("%", left, right)


def _numbers_elements(position: Place) -> bool:
    """Whether a place counts the elements of all blocks along one axis."""
    inside = [product for product, factor in position if factor == 1.0 and [symbol[0] for symbol in product] == ["r"]]
    blocks = [product for product, _ in position if sorted(symbol[0] for symbol in product) in (["p"], ["p", "s"])]
    return len(inside) == 1 and len(blocks) == 1 and len(position) == 2


def atoms(position: Place) -> set[Atom]:
    """The atoms of a place."""
    return {symbol for product, _ in position for symbol in product}


def constant(position: Place) -> float | None:
    """The number that a place is, None if it depends on anything."""
    if not position:
        return 0.0
    ((product, factor), *more) = position
    return None if product or more else factor


def written(position: Place) -> str:
    """A place as text: the same for equal places."""
    terms = sorted(
        "*".join([*(symbol[1] for symbol in product), *([f"{factor:g}"] if factor != 1 or not product else [])])
        for product, factor in position
    )
    return "+".join(terms) or "0"


def renamed(position: Place, change: Callable[[Atom], Atom]) -> Place:
    """A place with other atoms."""
    factor_of: dict[tuple[Atom, ...], float] = {}
    for product, factor in position:
        new_product = tuple(sorted(map(change, product)))
        factor_of[new_product] = factor_of.get(new_product, 0.0) + factor
    return frozenset(factor_of.items())


def moved_to(position: Place, written_at: tuple[Place, ...], read_at: tuple[Place, ...]) -> Place:
    """Where an element of an array comes from that was written at some indices and is read at others: each index is
    replaced with the one that has its stride."""
    if len(written_at) != len(read_at):
        return UNKNOWN
    new: dict[Atom, Place] = {}
    for left, right in zip(written_at, read_at, strict=True):
        if left == right:
            continue
        strides: dict[tuple[tuple[Atom, ...], float], Atom] = {}
        for product, factor in left:
            indices = [symbol for symbol in product if symbol[0] in _INDICES]
            stride = tuple(symbol for symbol in product if symbol[0] not in _INDICES), factor
            if len(indices) != 1 or stride in strides or indices[0] in strides.values():
                return UNKNOWN
            strides[stride] = indices[0]
        position_of: dict[tuple[tuple[Atom, ...], float], Place] = {}
        for product, factor in right:
            indices = tuple(symbol for symbol in product if symbol[0] in _INDICES)
            stride = tuple(symbol for symbol in product if symbol[0] not in _INDICES), factor
            if len(indices) != 1 or stride in position_of:
                return UNKNOWN
            position_of[stride] = frozenset({(indices, 1.0)})
        if not position_of.keys() <= strides.keys():
            return UNKNOWN
        for stride, index in strides.items():
            if index in new:
                return UNKNOWN
            new[index] = position_of.get(stride, NOWHERE)
    moved = NOWHERE
    for product, factor in position:
        term = number(factor)
        for symbol in product:
            term = times(term, new.get(symbol, frozenset({((symbol,), 1.0)})))
        moved = plus(moved, term)
    return moved


def distance(position: Place) -> Place:
    """The part of a place that is the same for all blocks, threads and turns."""
    return frozenset((product, factor) for product, factor in position if all(symbol[0] == "s" for symbol in product))


def moves_with(position: Place, index: Place) -> bool:
    """Whether an address moves with an index by one stride: with all parts of it, and with nothing else of their
    kinds."""
    moving = [(product, factor) for product, factor in index if any(symbol[0] in _INDICES for symbol in product)]
    if len(moving) != len(index) or not moving:
        return False
    first, scale = moving[0]
    for product, factor in position:
        stride = _left(product, first)
        if stride is not None:
            ratio = factor / scale
            if {
                (tuple(sorted((*index_product, *stride))), index_factor * ratio)
                for index_product, index_factor in moving
            } <= position:
                return True
    return False


def turns(depth: int, start: Place, end: Place, step: Place) -> tuple[Place, Place]:
    """The number of a turn of a loop from `start` to `end`, and what the loop's variable is in it.

    The elements of a row are all visited only from the first one to a length on: other loops are not known.
    """
    length = plus(end, start, -1.0)
    if length and {symbol[0] for symbol in atoms(length)} <= {"s"}:
        # Wherever it begins: that is told by the places themselves.
        end, begins = length, True
    else:
        begins = not distance(start) and all(any(symbol[0] in ("r", "p") for symbol in product) for product, _ in start)
    is_whole = {symbol[0] for symbol in atoms(end)} <= {"s", "k"} and len(end) == 1
    is_whole = is_whole and all(len(product) == factor == 1 or (factor > 0 and not product) for product, factor in end)
    factor = ""
    if (divisor := _divisor(end)) is not None:
        factor = divisor
    elif constant(step) != 1.0:
        factor = written(step)
    if not is_whole or not begins:
        return UNKNOWN, UNKNOWN
    iteration = atom("k", f"{depth} of {written(end)}", factor)
    return iteration, plus(start, times(iteration, step))


def is_count(end: Place) -> bool:
    """Whether a loop that ends there visits all that a parameter, or a product of such numbers, counts."""
    return len(end) == 1 and all(factor == 1 and {symbol[0] for symbol in product} == {"s"} for product, factor in end)


def length_of(end: Place) -> set[str]:
    """The parameter that a loop goes up to, if it is one."""
    names = {symbol[1] for symbol in atoms(end)}
    return names if len(end) == len(names) == 1 and end == atom("s", *names) else set()


def _divisor(end: Place) -> str | None:
    """What a number of turns was divided by."""
    names = [symbol[1] for symbol in atoms(end) if symbol[0] == "s"]
    for name in names:
        for operator in (" // ", " cdiv "):
            if operator in name and name.startswith("("):
                return name.rpartition(operator)[2].removesuffix(")")
    return None


@dataclass(frozen=True, slots=True)
class IndexStrides:
    """The indices that choose an element of a tensor, each with the strides that it is multiplied with."""

    strides: Mapping[Atom, tuple[str, ...]]

    @property
    def indices(self) -> frozenset[Atom]:
        return frozenset(self.strides)

    def within(self, outer: Atom) -> Atom | None:
        """The index that counts inside of what another one counts: that goes on by as many as it has values."""
        for inner, strides in self.strides.items():
            more = _without(self.strides[outer], strides)
            if inner != outer and len(strides) + 1 == len(self.strides[outer]) and len(more) == 1:
                extents = _extents(inner)
                if more[0] in extents if extents is not None else _counts_threads(more[0], inner, outer):
                    return inner
        return None

    def axes(self, lengths: frozenset[str]) -> list[list[Atom]]:
        """The indices of each axis, from the inner ones on: one counts inside of the next, unless that goes on by one
        of `lengths`, or by as many as a loop has turns, as rows do."""
        inner: dict[Atom, Atom] = {}
        for symbol, strides in self.strides.items():
            outer = self.within(symbol)
            if outer is None or (outer[0] == "k" and symbol[0] != "k"):
                continue
            if not lengths & {*_without(strides, self.strides[outer])}:
                inner[symbol] = outer
        axes: list[list[Atom]] = []
        for index in sorted(self.strides, key=lambda symbol: len(self.strides[symbol])):
            axis = next((group for group in axes if inner.get(index) in group), None)
            if axis is None:
                axes.append([index])
            else:
                axis.append(index)
        return axes

    def blocks(self) -> frozenset[Atom]:
        """The numbers of blocks among them."""
        return frozenset(index for index in self.strides if index[0] == "p")

    def sharing(self, stride: str) -> frozenset[Atom]:
        """The indices that move by a stride."""
        return frozenset(index for index, strides in self.strides.items() if stride in strides)

    def largest(self, inside: frozenset[Atom], outside: frozenset[Atom]) -> frozenset[Atom]:
        """The largest set of indices that move by one stride, with all of `inside` and none of `outside`."""
        every = {stride for strides in self.strides.values() for stride in strides}
        sets = [self.sharing(index) for index in sorted(every)]
        return max(
            (candidate for candidate in sets if inside <= candidate and not candidate & outside),
            key=len,
            default=frozenset[Atom](),
        )


def steps(position: Place, wraps: bool = False, gathers: bool = False) -> IndexStrides | str:
    """The indices of a place, or why they are not known. Elements of tensors are indices only if it `gathers`."""
    strides: dict[Atom, tuple[str, ...]] = {}
    kinds = (*_INDICES, "g") if gathers else _INDICES
    for product, factor in sorted(position, key=lambda term: (term[1], str(term))):
        indices = [symbol for symbol in product if symbol[0] in kinds]
        if any(symbol[0] == "?" or (symbol[0] == "g" and not gathers) for symbol in product):
            return "at indices that are not known"
        if any(symbol[0] == "w" for symbol in product):
            if not wraps:
                return "at indices that wrap around"
            continue
        if not indices:
            return "at a distance from its beginning"
        if factor < 0 or factor != int(factor):
            return "in reverse"
        if len(indices) > 1 or indices[0] in strides:
            return "at indices that are neither rows nor columns"
        names = [symbol[1] for symbol in product if symbol[0] == "s"] + ([f"#{factor:g}"] if factor != 1 else [])
        ((kind, _, needed),) = indices
        if kind == "k" and any(
            factor_name not in names and f"#{factor_name}" not in names
            for factor_name in needed.split("*")
            if factor_name
        ):
            return "in a loop that does not visit all of them"
        if kind == "k" and "#" in "".join(names) and any(factor_name.startswith("blockDim") for factor_name in names):
            return "in a loop that does not visit all of them"
        strides[indices[0]] = tuple(sorted(names))
    if not strides:
        return "at one element"
    elements = [name for kind, name, _ in strides if kind == "r"]
    blocks = [stride_names for (kind, name, _), stride_names in strides.items() if kind == "r" and name in ("r0", "r1")]
    apart = len(set(blocks)) == len(blocks) and len(set(elements)) == len(elements)
    if not apart or not all(_is_axis(index, strides) for index in strides):
        return "at indices that are neither rows nor columns"
    side = IndexStrides(strides)
    begins = [index for index in strides if side.within(index) is None]
    if any(strides[index] == (index[2],) for index in begins):
        return "in blocks that overlap or leave gaps"
    if len({strides[index] for index in strides}) < len(strides) or not all(
        _is_pitch(strides[index], strides) for index in begins
    ):
        return "in blocks that overlap or leave gaps"
    return side


def _is_pitch(names: tuple[str, ...], strides: Mapping[Atom, tuple[str, ...]]) -> bool:
    """Whether a stride may be the distance of elements or rows: one, the names of sizes, or a number of them."""
    if any(re.match(r"(block|grid)Dim\.|tl\.num_programs", name) for name in names):
        return False
    numbers = [name for name in names if name.startswith("#")]
    return not numbers or (len(names) == 1 and () in strides.values())


def _extents(index: Atom) -> set[str] | None:
    """How many values an index has, as factors of strides may name it; None if that is not known."""
    kind, name, size = index
    if kind == "k":
        length = name.partition(" of ")[2]
        return {length, f"#{length}"}
    if name.startswith("blockIdx."):
        return {name.replace("blockIdx", "gridDim")}
    if name.endswith("threadIdx.x") or name in ("threadIdx.y", "threadIdx.z"):
        return None
    digit = _DIGIT.fullmatch(name)
    if digit is not None:
        return {digit[3], f"#{digit[3]}"} if digit[2] == "%" else None
    if kind == "p":
        return {f"tl.num_programs({name}"} if re.fullmatch(r"\d+\)", name) else None
    return {size, f"#{size}"} if size else None


def _counts_threads(size: str, inner: Atom, outer: Atom) -> bool:
    """Whether a size may be the number of threads along an axis, or that of parts of them."""
    axis = inner[1].rpartition("threadIdx.")[2][:1]
    dimension = re.match(r"(block|grid)Dim\.(.)", size)
    if dimension is not None:
        return dimension[1] == "block" and dimension[2] == axis
    return "threadIdx." not in outer[1] and not (outer[1].startswith("blockIdx.") and outer[1][-1] != axis)


def _is_axis(index: Atom, strides: Mapping[Atom, tuple[str, ...]]) -> bool:
    """Whether a number of a block of threads goes with the threads of its own axis, if it moves by their number."""
    threads = {name.rpartition(".")[2] for name in strides[index] if name.startswith("blockDim.")}
    if index[0] != "p" or not index[1].startswith("blockIdx.") or not threads:
        return True
    inside = {name.rpartition(".")[2] for kind, name, _ in strides if kind == "r" and "threadIdx." in name}
    return threads == {index[1].rpartition(".")[2]} and (not inside or threads <= {each[:1] for each in inside})


def length_along(axis: list[Atom], every: frozenset[Atom], bounds: Mapping[Place, Place]) -> set[str] | str:
    """The lengths up to which the indices of an axis go, by loops, numbers of blocks and comparisons, those that are
    computed left out; or why not all indices below a length are there. `every` index of the place is known."""
    *_, (kind, name, size) = axis
    axis_indices, lengths = frozenset(axis), set[str]()
    end = name.partition(" of ")[2] if kind == "k" else ""
    digit = _DIGIT.fullmatch(name) if kind == "p" else None
    if digit is not None and digit[2] == "%":
        end = digit[3]
    divided = re.fullmatch(r"\((.+) (?:cdiv|//) (.+)\)", end)
    if divided is not None and (kind == "p" or divided[2] == size):
        # Rounded up, as K + B - 1 divided by B.
        terms = divided[1].split("+")
        names = [term for term in terms if term not in ("-1", size)]
        end = names[0] if len(terms) == 3 and len(names) == 1 else divided[1]
    lengths |= {end} if re.fullmatch(r"[A-Za-z_][\w.]*", end) else set[str]()
    for index, length in bounds.items():
        compared = frozenset(symbol for symbol in atoms(index) if symbol[0] in _INDICES)
        if compared and compared < axis_indices:
            return f"only a part of an index is compared with {written(length)}"
        if (
            axis_indices <= compared
            and "blockDim." in written(length)
            and any(symbol[0] in ("p", "k") for symbol in axis_indices)
        ):
            return f"only elements up to {written(length)} are read"
        if axis_indices < compared <= every:
            return f"rows and columns together are compared with {written(length)}"
        if compared == axis_indices and re.fullmatch(r"[A-Za-z_][\w.]*", written(length)):
            lengths.add(written(length))
    return lengths


_PLAIN = re.compile(r"\d+\)|blockIdx\.[xyz]|(\d+)\) by tl\.num_programs\(\1\)")
_DIGIT = re.compile(r"\((.+) (//|%) (.+?)\)")


def unnumbered(indices: Iterable[Atom]) -> str:
    """A number of a block that does not count all blocks one by one, empty if there is none: one that is computed, but
    for the two digits of a number."""
    names = [name for kind, name, _ in indices if kind == "p"]
    for name in names:
        if _PLAIN.fullmatch(name):
            continue
        digit = _DIGIT.fullmatch(name)
        complement = "" if digit is None else f"({digit[1]} {'%' if digit[2] == '//' else '//'} {digit[3]})"
        if digit is None or not _PLAIN.fullmatch(digit[1]) or complement not in names:
            return name.rstrip(")") if _PLAIN.fullmatch(name) else name
    return ""


def sizes_of_groups(position: Place, constants: Mapping[str, float]) -> set[tuple[str, str]]:
    """The numbers of threads by which an address moves from group to group, each with the axis of the threads."""
    side = steps(position, wraps=True)
    if isinstance(side, str):
        return set()
    sizes: set[tuple[str, str]] = set()
    for inner in side.indices:
        for outer in side.indices - {inner}:
            more = _without(side.strides[outer], side.strides[inner])
            follows = len(side.strides[outer]) == len(side.strides[inner]) + 1 and outer[0] in ("p", "k")
            if follows and inner[1].startswith("threadIdx.") and len(more) == 1:
                size = f"#{constants[more[0]]:g}" if more[0] in constants else more[0]
                sizes |= {(inner[1], size)} if size.startswith("#") else set[tuple[str, str]]()
    return sizes


def same(first: IndexStrides, second: IndexStrides) -> bool:
    """Whether two places with the same indices visit their tensors alike, but for the names of strides."""
    names: dict[str, str] = {}
    mine = {name for strides in first.strides.values() for name in strides}
    theirs = {name for strides in second.strides.values() for name in strides}
    for index, strides in first.strides.items():
        left, right = _without(strides, second.strides[index]), _without(second.strides[index], strides)
        if len(left) > 1 or len(left) != len(right):
            return False
        if left and ({left[0], right[0]} & mine & theirs or names.setdefault(left[0], right[0]) != right[0]):
            return False
        if left and (left[0].startswith("#") or right[0].startswith("#")):
            return False
    return len(set(names.values())) == len(names)


def _left(product: tuple[Atom, ...], factors: tuple[Atom, ...]) -> list[Atom] | None:
    """What is left of a product without some of its factors; None if it does not have them all."""
    remaining = list(product)
    for factor in factors:
        if factor not in remaining:
            return None
        remaining.remove(factor)
    return remaining


def _without(strides: Iterable[str], excluded: Iterable[str]) -> list[str]:
    remaining = list(strides)
    for name in excluded:
        if name in remaining:
            remaining.remove(name)
    return remaining


def part_of_rows(full_side: IndexStrides, part_side: IndexStrides) -> bool:
    """Whether `part_side` has an element for each row of `full_side`: its indices without the stride of the rows."""
    missing: set[tuple[str, ...]] = set()
    for index, strides in part_side.strides.items():
        if index[0] == "p":
            continue
        left, right = _without(full_side.strides[index], strides), _without(strides, full_side.strides[index])
        if len(left) != 1 or len(right) > 1:
            return False
        missing.add((*left, *right))
    return len(missing) <= 1


def part_of_columns(full_side: IndexStrides, part_side: IndexStrides) -> bool:
    """Whether `part_side` has an element for each column of `full_side`: its strides, or without the columns' one."""
    missing: set[tuple[str, ...]] = set()
    for index, strides in part_side.strides.items():
        left, right = _without(full_side.strides[index], strides), _without(strides, full_side.strides[index])
        if len(left) > 1 or len(right) > 1 or any(name.startswith("#") for name in (*left, *right)):
            return False
        missing.add((*left, "|", *right))
    return len(missing) <= 1
