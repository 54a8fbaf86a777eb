"""Which elements of a tensor an address chooses: sums of products of indices, strides and numbers.

A place is a polynomial. Its atoms are numbers of blocks (``p``), elements of a block or threads (``r``), turns of loops
(``k``), parameters (``s``), what wraps around at a length (``w``), and what is not known (``?``). The skeletons know
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


def plus(left: Place, right: Place, sign: float = 1.0) -> Place:
    """The sum of two places, or their difference."""
    found = dict(left)
    for product, factor in right:
        found[product] = found.get(product, 0.0) + sign * factor
    return _limited(found)


def times(left: Place, right: Place) -> Place:
    """The product of two places."""
    found: dict[tuple[Atom, ...], float] = {}
    for one, factor in left:
        for other, second in right:
            product = tuple(sorted((*one, *other)))
            found[product] = found.get(product, 0.0) + factor * second
    return _limited(found)


def _limited(found: Mapping[tuple[Atom, ...], float]) -> Place:
    if len(found) > _MOST_PRODUCTS or any(len(one) > _MOST_ATOMS or abs(found[one]) > 2**53 for one in found):
        return UNKNOWN
    return frozenset((product, factor) for product, factor in found.items() if factor)


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
    kinds = {one[0] for one in atoms(left) | atoms(right)}
    if "?" in kinds or "w" in kinds:
        return UNKNOWN
    text = f"({written(left)} {name} {written(right)})"
    if len(text) > _LONGEST_NAME:
        return UNKNOWN
    if kinds <= {"s"}:
        return atom("s", text)
    if kinds <= {"s", "p"}:
        return atom("p", text)
    if name in ("//", "%") and _numbers_threads(left) and {one[0] for one in atoms(right)} <= {"s"}:
        # Warps of the whole grid, and threads in a warp.
        return atom("p" if name == "//" else "r", text)
    if name in ("//", "%") and _numbers_elements(left) and {one[0] for one in atoms(right)} == {"s"}:
        # Rows and columns of the elements of all blocks.
        return atom("r", text)
    thread = [one for one, factor in left if factor == 1.0]
    if name in ("//", "%") and {one[0] for one in atoms(right)} <= {"s"} and len(left) == len(thread) == 1:
        (product,) = thread
        if len(product) == 1 and product[0][0] == "r":
            # The two digits of the number of a thread.
            return atom("r", text)
    if name == "%" and len(right) == 1 and {one[0] for one in atoms(right)} == {"s"}:
        return plus(left, atom("w", written(right)))
    return UNKNOWN


def _numbers_threads(place: Place) -> bool:
    """Whether a place counts all threads of a grid along one axis."""
    return any(
        place
        == plus(times(atom("p", f"blockIdx.{axis}"), atom("s", f"blockDim.{axis}")), atom("r", f"threadIdx.{axis}"))
        for axis in "xy"
    )


def remainder(left: Place, right: Place, divided: set[tuple[Place, Place]]) -> Place:
    """What is left of a division. Of an index that was divided too, it is the second digit, as the column beside the
    row; otherwise it keeps an index inside of a tensor."""
    if _numbers_elements(left) and (left, right) not in divided:
        return plus(left, atom("w", written(right)))
    return combined("%", left, right)


def _numbers_elements(place: Place) -> bool:
    """Whether a place counts the elements of all blocks along one axis."""
    inside = [product for product, factor in place if factor == 1.0 and [one[0] for one in product] == ["r"]]
    blocks = [product for product, _ in place if sorted(one[0] for one in product) in (["p"], ["p", "s"])]
    return len(inside) == 1 and len(blocks) == 1 and len(place) == 2


def atoms(place: Place) -> set[Atom]:
    """The atoms of a place."""
    return {one for product, _ in place for one in product}


def constant(place: Place) -> float | None:
    """The number that a place is, None if it depends on anything."""
    if not place:
        return 0.0
    ((product, factor), *more) = place
    return None if product or more else factor


def written(place: Place) -> str:
    """A place as text: the same for equal places."""
    parts = sorted(
        "*".join([*(one[1] for one in product), *([f"{factor:g}"] if factor != 1 or not product else [])])
        for product, factor in place
    )
    return "+".join(parts) or "0"


def renamed(place: Place, change: Callable[[Atom], Atom]) -> Place:
    """A place with other atoms."""
    found: dict[tuple[Atom, ...], float] = {}
    for product, factor in place:
        made = tuple(sorted(map(change, product)))
        found[made] = found.get(made, 0.0) + factor
    return frozenset(found.items())


def moved_to(place: Place, written_at: tuple[Place, ...], read_at: tuple[Place, ...]) -> Place:
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
            indices = [one for one in product if one[0] in _INDICES]
            stride = tuple(one for one in product if one[0] not in _INDICES), factor
            if len(indices) != 1 or stride in strides or indices[0] in strides.values():
                return UNKNOWN
            strides[stride] = indices[0]
        found: dict[tuple[tuple[Atom, ...], float], Place] = {}
        for product, factor in right:
            indices = tuple(one for one in product if one[0] in _INDICES)
            stride = tuple(one for one in product if one[0] not in _INDICES), factor
            if len(indices) != 1 or stride in found:
                return UNKNOWN
            found[stride] = frozenset({(indices, 1.0)})
        if not found.keys() <= strides.keys():
            return UNKNOWN
        for stride, index in strides.items():
            if index in new:
                return UNKNOWN
            new[index] = found.get(stride, NOWHERE)
    made = NOWHERE
    for product, factor in place:
        part = number(factor)
        for one in product:
            part = times(part, new.get(one, frozenset({((one,), 1.0)})))
        made = plus(made, part)
    return made


def distance(place: Place) -> Place:
    """The part of a place that is the same for all blocks, threads and turns."""
    return frozenset((product, factor) for product, factor in place if all(one[0] == "s" for one in product))


def moves_with(place: Place, index: Place) -> bool:
    """Whether an address moves with an index by one stride: with all parts of it, and with nothing else of their
    kinds."""
    moving = [(product, factor) for product, factor in index if any(one[0] in _INDICES for one in product)]
    if len(moving) != len(index) or not moving:
        return False
    first, scale = moving[0]
    for product, factor in place:
        stride = _left(product, first)
        if stride is not None:
            ratio = factor / scale
            if {(tuple(sorted((*one, *stride))), own * ratio) for one, own in moving} <= place:
                return True
    return False


def turns(depth: int, start: Place, end: Place, step: Place) -> tuple[Place, Place]:
    """The number of a turn of a loop from `start` to `end`, and what the loop's variable is in it.

    The elements of a row are all visited only from the first one to a length on: other loops are not known.
    """
    length = plus(end, start, -1.0)
    if length and {one[0] for one in atoms(length)} <= {"s"}:
        # Wherever it begins: that is told by the places themselves.
        end, begins = length, True
    else:
        begins = not distance(start) and all(any(one[0] in ("r", "p") for one in product) for product, _ in start)
    whole = {one[0] for one in atoms(end)} <= {"s", "k"} and len(end) == 1
    whole = whole and all(len(product) == factor == 1 or (factor > 0 and not product) for product, factor in end)
    factor = ""
    if (divisor := _divisor(end)) is not None:
        factor = divisor
    elif constant(step) != 1.0:
        factor = written(step)
    if not whole or not begins:
        return UNKNOWN, UNKNOWN
    turn = atom("k", f"{depth} of {written(end)}", factor)
    return turn, plus(start, times(turn, step))


def is_count(end: Place) -> bool:
    """Whether a loop that ends there visits all that a parameter, or a product of such numbers, counts."""
    return len(end) == 1 and all(factor == 1 and {one[0] for one in product} == {"s"} for product, factor in end)


def length_of(end: Place) -> set[str]:
    """The parameter that a loop goes up to, if it is one."""
    names = {one[1] for one in atoms(end)}
    return names if len(end) == len(names) == 1 and end == atom("s", *names) else set()


def _divisor(end: Place) -> str | None:
    """What a number of turns was divided by."""
    names = [one[1] for one in atoms(end) if one[0] == "s"]
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
        for one, strides in self.strides.items():
            other = self.within(one)
            if other is None or (other[0] == "k" and one[0] != "k"):
                continue
            if not lengths & {*_without(strides, self.strides[other])}:
                inner[one] = other
        found: list[list[Atom]] = []
        for index in sorted(self.strides, key=lambda one: len(self.strides[one])):
            axis = next((one for one in found if inner.get(index) in one), None)
            if axis is None:
                found.append([index])
            else:
                axis.append(index)
        return found

    def blocks(self) -> frozenset[Atom]:
        """The numbers of blocks among them."""
        return frozenset(one for one in self.strides if one[0] == "p")

    def sharing(self, stride: str) -> frozenset[Atom]:
        """The indices that move by a stride."""
        return frozenset(one for one, strides in self.strides.items() if stride in strides)

    def largest(self, inside: frozenset[Atom], outside: frozenset[Atom]) -> frozenset[Atom]:
        """The largest set of indices that move by one stride, with all of `inside` and none of `outside`."""
        every = {stride for strides in self.strides.values() for stride in strides}
        sets = [self.sharing(one) for one in sorted(every)]
        return max((one for one in sets if inside <= one and not one & outside), key=len, default=frozenset[Atom]())


def steps(place: Place, wraps: bool = False) -> IndexStrides | str:
    """The indices of a place, or why they are not known."""
    strides: dict[Atom, tuple[str, ...]] = {}
    for product, factor in sorted(place, key=lambda one: (one[1], str(one))):
        indices = [one for one in product if one[0] in _INDICES]
        if any(one[0] == "?" for one in product):
            return "at indices that are not known"
        if any(one[0] == "w" for one in product):
            if not wraps:
                return "at indices that wrap around"
            continue
        if not indices:
            return "at a distance from its beginning"
        if factor < 0 or factor != int(factor):
            return "in reverse"
        if len(indices) > 1 or indices[0] in strides:
            return "at indices that are neither rows nor columns"
        names = [one[1] for one in product if one[0] == "s"] + ([f"#{factor:g}"] if factor != 1 else [])
        ((kind, _, needed),) = indices
        if kind == "k" and any(one not in names and f"#{one}" not in names for one in needed.split("*") if one):
            return "in a loop that does not visit all of them"
        if kind == "k" and "#" in "".join(names) and any(one.startswith("blockDim") for one in names):
            return "in a loop that does not visit all of them"
        strides[indices[0]] = tuple(sorted(names))
    if not strides:
        return "at one element"
    elements = [name for kind, name, _ in strides if kind == "r"]
    blocks = [found for (kind, name, _), found in strides.items() if kind == "r" and name in ("r0", "r1")]
    apart = len(set(blocks)) == len(blocks) and len(set(elements)) == len(elements)
    if not apart or not all(_is_axis(one, strides) for one in strides):
        return "at indices that are neither rows nor columns"
    found = IndexStrides(strides)
    begins = [one for one in strides if found.within(one) is None]
    if any(strides[one] == (one[2],) for one in begins):
        return "in blocks that overlap or leave gaps"
    if len({strides[one] for one in strides}) < len(strides) or not all(
        _is_pitch(strides[one], strides) for one in begins
    ):
        return "in blocks that overlap or leave gaps"
    return found


def _is_pitch(names: tuple[str, ...], strides: Mapping[Atom, tuple[str, ...]]) -> bool:
    """Whether a stride may be the distance of elements or rows: one, the names of sizes, or a number of them."""
    if any(re.match(r"(block|grid)Dim\.|tl\.num_programs", one) for one in names):
        return False
    numbers = [one for one in names if one.startswith("#")]
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


def _is_axis(one: Atom, strides: Mapping[Atom, tuple[str, ...]]) -> bool:
    """Whether a number of a block of threads goes with the threads of its own axis, if it moves by their number."""
    threads = {name.rpartition(".")[2] for name in strides[one] if name.startswith("blockDim.")}
    if one[0] != "p" or not one[1].startswith("blockIdx.") or not threads:
        return True
    inside = {name.rpartition(".")[2] for kind, name, _ in strides if kind == "r" and "threadIdx." in name}
    return threads == {one[1].rpartition(".")[2]} and (not inside or threads <= {each[:1] for each in inside})


def length_along(axis: list[Atom], every: frozenset[Atom], bounds: Mapping[Place, Place]) -> set[str] | str:
    """The lengths up to which the indices of an axis go, by loops, numbers of blocks and comparisons, those that are
    computed left out; or why not all indices below a length are there. `every` index of the place is known."""
    *_, (kind, name, size) = axis
    own, found = frozenset(axis), set[str]()
    end = name.partition(" of ")[2] if kind == "k" else ""
    digit = _DIGIT.fullmatch(name) if kind == "p" else None
    if digit is not None and digit[2] == "%":
        end = digit[3]
    divided = re.fullmatch(r"\((.+) (?:cdiv|//) (.+)\)", end)
    if divided is not None and (kind == "p" or divided[2] == size):
        # Rounded up, as K + B - 1 divided by B.
        terms = divided[1].split("+")
        names = [one for one in terms if one not in ("-1", size)]
        end = names[0] if len(terms) == 3 and len(names) == 1 else divided[1]
    found |= {end} if re.fullmatch(r"[A-Za-z_][\w.]*", end) else set[str]()
    for index, length in bounds.items():
        compared = frozenset(one for one in atoms(index) if one[0] in _INDICES)
        if compared and compared < own:
            return f"only a part of an index is compared with {written(length)}"
        if own <= compared and "blockDim." in written(length) and any(one[0] in ("p", "k") for one in own):
            return f"only elements up to {written(length)} are read"
        if own < compared <= every:
            return f"rows and columns together are compared with {written(length)}"
        if compared == own and re.fullmatch(r"[A-Za-z_][\w.]*", written(length)):
            found.add(written(length))
    return found


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
        other = "" if digit is None else f"({digit[1]} {'%' if digit[2] == '//' else '//'} {digit[3]})"
        if digit is None or not _PLAIN.fullmatch(digit[1]) or other not in names:
            return name.rstrip(")") if _PLAIN.fullmatch(name) else name
    return ""


def sizes_of_groups(place: Place, constants: Mapping[str, float]) -> set[tuple[str, str]]:
    """The numbers of threads by which an address moves from group to group, each with the axis of the threads."""
    found = steps(place, wraps=True)
    if isinstance(found, str):
        return set()
    sizes: set[tuple[str, str]] = set()
    for inner in found.indices:
        for outer in found.indices - {inner}:
            more = _without(found.strides[outer], found.strides[inner])
            follows = len(found.strides[outer]) == len(found.strides[inner]) + 1 and outer[0] in ("p", "k")
            if follows and inner[1].startswith("threadIdx.") and len(more) == 1:
                size = f"#{constants[more[0]]:g}" if more[0] in constants else more[0]
                sizes |= {(inner[1], size)} if size.startswith("#") else set[tuple[str, str]]()
    return sizes


def same(one: IndexStrides, other: IndexStrides) -> bool:
    """Whether two places with the same indices visit their tensors alike, but for the names of strides."""
    names: dict[str, str] = {}
    mine = {name for strides in one.strides.values() for name in strides}
    theirs = {name for strides in other.strides.values() for name in strides}
    for index, strides in one.strides.items():
        left, right = _without(strides, other.strides[index]), _without(other.strides[index], strides)
        if len(left) > 1 or len(left) != len(right):
            return False
        if left and ({left[0], right[0]} & mine & theirs or names.setdefault(left[0], right[0]) != right[0]):
            return False
        if left and (left[0].startswith("#") or right[0].startswith("#")):
            return False
    return len(set(names.values())) == len(names)


def _left(product: tuple[Atom, ...], factors: tuple[Atom, ...]) -> list[Atom] | None:
    """What is left of a product without some of its factors; None if it does not have them all."""
    left = list(product)
    for one in factors:
        if one not in left:
            return None
        left.remove(one)
    return left


def _without(strides: Iterable[str], others: Iterable[str]) -> list[str]:
    left = list(strides)
    for one in others:
        if one in left:
            left.remove(one)
    return left


def part_of_rows(whole: IndexStrides, part: IndexStrides) -> bool:
    """Whether `part` has one element for each row of `whole`: the same indices without one stride, that of the rows."""
    missing: set[tuple[str, ...]] = set()
    for index, strides in part.strides.items():
        if index[0] == "p":
            continue
        left, right = _without(whole.strides[index], strides), _without(strides, whole.strides[index])
        if len(left) != 1 or len(right) > 1:
            return False
        missing.add((*left, *right))
    return len(missing) <= 1


def part_of_columns(whole: IndexStrides, part: IndexStrides) -> bool:
    """Whether `part` has one element for each column of `whole`: the same strides, or without that of the columns."""
    missing: set[tuple[str, ...]] = set()
    for index, strides in part.strides.items():
        left, right = _without(whole.strides[index], strides), _without(strides, whole.strides[index])
        if len(left) > 1 or len(right) > 1 or any(one.startswith("#") for one in (*left, *right)):
            return False
        missing.add((*left, "|", *right))
    return len(missing) <= 1
