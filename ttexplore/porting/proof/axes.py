"""Which axes of a skeleton's tensors the indices of a source go along, by what was read of the source.

An access of the source has groups of indices, one for each axis: an index inside of a block, and the number of the
block or of the iteration. A tensor of the skeleton has axes of named sizes. Each group goes along one axis, or along
several that follow each other as one; of the outermost axis, two groups may each go along a part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ttexplore.porting.foreign.marks import ForeignKernel
from ttexplore.porting.foreign.places import Atom, Place, atoms, constant, distance, plus, steps
from ttexplore.porting.foreign.skeletons import Skeleton
from ttexplore.porting.foreign.values import Input, walk

# The sizes of an axis, to be multiplied: ``rows`` and ``columns``, or the parts ``rows outer`` and ``rows inner``.
Sizes = tuple[str, ...]
OUTER, INNER, HALVES = " outer", " inner", "2 * "
# How many ways to take the indices are tried.
_MOST_WAYS = 6


def whole_sizes(sizes: Sequence[str]) -> Sizes:
    """The sizes of an axis; of one in two halves, that of a half."""
    return tuple(size.removeprefix(HALVES) for size in sizes)


@dataclass(frozen=True, slots=True)
class Group:
    """The indices of one axis of an access, each with the factors of its stride, from the inner ones on."""

    strides: tuple[tuple[Atom, tuple[str, ...]], ...]

    @property
    def base(self) -> tuple[str, ...]:
        """The factors of the distance of neighbours."""
        return self.strides[0][1]

    @property
    def atoms(self) -> frozenset[Atom]:
        return frozenset(atom for atom, _ in self.strides)

    @property
    def width(self) -> str:
        """How many indices a block has, by its name or number; empty for what has no blocks."""
        kind, _, size = self.strides[0][0]
        return size if kind == "r" else ""

    @property
    def moves(self) -> bool:
        """Whether it goes from block to block, or from iteration to iteration."""
        return any(kind in ("p", "k") for (kind, _, _), _ in self.strides)

    @property
    def count(self) -> int | None:
        """How many indices there are, where numbers of the source alone say it."""
        counts = [name.partition(" of ")[2] if kind == "k" else width for (kind, name, width), _ in self.strides]
        return math.prod(map(int, counts)) if all(count.isdigit() for count in counts) else None


@dataclass(frozen=True, slots=True)
class IndexedAccess:
    """The groups of an access to a tensor of the source, and the sizes of the axes that they go along."""

    tensor: str
    groups: tuple[Group, ...]
    axes: tuple[Sizes, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceAxes:
    """The axes of each access, and the accesses to tensors that the skeleton has not."""

    accesses: tuple[IndexedAccess, ...]
    left_out: tuple[IndexedAccess, ...]


def accesses_of(kernel: ForeignKernel) -> list[IndexedAccess] | str:
    """The accesses of a kernel, each once; or why there is one that cannot be followed."""
    lengths = frozenset(parameter.name for parameter in kernel.parameters if parameter.kind == "number")
    found_accesses: dict[tuple[str, Place], IndexedAccess] = {}
    for store in kernel.stores:
        inputs = [(term.tensor, term.place) for term in walk(store.value) if isinstance(term, Input)]
        for tensor, position in [(store.tensor, store.place), *inputs]:
            if position is None:
                return f"it is not known where {tensor} is read or written"
            if (tensor, position) in found_accesses:
                continue
            moving = plus(position, distance(position), -1.0)
            side = steps(moving, wraps=True, gathers=True)
            if isinstance(side, str):
                if moving:
                    return f"{tensor} is read or written {side}"
                found_accesses[tensor, position] = IndexedAccess(tensor, ())
                continue
            groups = [Group(tuple((atom, side.strides[atom]) for atom in group)) for group in side.axes(lengths)]
            found_accesses[tensor, position] = IndexedAccess(tensor, tuple(_joined(groups)))
    return list(found_accesses.values())


def _joined(groups: list[Group]) -> list[Group]:
    """The groups, with blocks that have several iterations of a fixed number joined to these."""
    for inner in groups:
        (kind, name, _), strides = inner.strides[-1]
        count = name.partition(" of ")[2]
        for outer in groups:
            if kind == "k" and count.isdigit() and outer.base == tuple(sorted((*strides, f"#{count}"))):
                rest = [group for group in groups if group not in (inner, outer)]
                return [Group((*inner.strides, *outer.strides)), *rest]
    return groups


def ways(kernel: ForeignKernel, skeleton: Skeleton) -> Iterator[SourceAxes] | str:
    """The ways in which the indices may go along the axes, the likeliest first; or why there is none."""
    accesses = accesses_of(kernel)
    if isinstance(accesses, str):
        return accesses
    left_out = tuple(access for access in accesses if skeleton.names.get(access.tensor) not in skeleton.shapes)
    inside = [access for access in accesses if access not in left_out]
    options: list[list[IndexedAccess]] = []
    for access in inside:
        shape = skeleton.shapes[skeleton.names[access.tensor]]
        views = list(_views(access, shape))
        if not views:
            count = len(access.groups)
            return f"{access.tensor} has {count} indices, and {len(shape)} axes in the skeleton"
        options.append(views)
    return itertools.islice(_consistent(options, left_out), _MOST_WAYS)


def _views(access: IndexedAccess, shape: Sequence[str]) -> Iterator[IndexedAccess]:
    """The ways in which the groups of one access may go along the axes of a shape."""
    for way in dict.fromkeys((access, _apart(access))):
        count = len(way.groups)
        for axes in _divided(shape, count):
            for order in sorted(itertools.permutations(range(count)), key=lambda order: _order(way, order)):
                ordered = [axes[0]] * count
                for number, axis in enumerate(order):
                    ordered[number] = axes[axis]
                yield IndexedAccess(way.tensor, way.groups, tuple(ordered))


def _apart(access: IndexedAccess) -> IndexedAccess:
    """The access where each block of threads has a row of its own: threads along one axis, blocks along another."""
    groups: list[Group] = []
    for group in access.groups:
        (kind, name, width), base = group.strides[0]
        rest = group.strides[1:]
        threads = name.replace("threadIdx", "blockDim")
        if kind == "r" and len(rest) == 1 and rest[0][0][0] == "p" and rest[0][1] == tuple(sorted((*base, threads))):
            groups += [Group((((kind, name, width or threads), base),)), Group(rest)]
        else:
            groups.append(group)
    return IndexedAccess(access.tensor, tuple(groups))


def _order(access: IndexedAccess, order: tuple[int, ...]) -> tuple[bool, ...]:
    """What is likelier comes first: neighbours along the last axis, and loops along the last ones."""
    last = max(range(len(order)), key=lambda number: order[number], default=0)
    if not access.groups:
        return ()
    has_unit = any(not group.base for group in access.groups)
    group = access.groups[last]
    return (has_unit and bool(group.base), not group.moves and has_unit, any(kind == "p" for kind, _, _ in group.atoms))


def _divided(shape: Sequence[str], count: int) -> Iterator[tuple[Sizes, ...]]:
    """The axes of a shape as `count` ones: neighbours together, or the first one in two parts."""
    if count == len(shape) + 1 and shape:
        yield ((shape[0] + OUTER,), (shape[0] + INNER,), *((size,) for size in shape[1:]))
        return
    if not 0 < count <= len(shape):
        return
    for cuts in itertools.combinations(range(1, len(shape)), count - 1):
        bounds = (0, *cuts, len(shape))
        yield tuple(tuple(shape[begin:end]) for begin, end in itertools.pairwise(bounds))


def _consistent(
    options: Sequence[Sequence[IndexedAccess]],
    left_out: tuple[IndexedAccess, ...],
    chosen: tuple[IndexedAccess, ...] = (),
    axis_of: Mapping[object, Sizes] | None = None,
) -> Iterator[SourceAxes]:
    """The choices in which each block number, loop and block size goes along the same sizes everywhere."""
    if not options:
        yield SourceAxes(chosen, left_out)
        return
    for access in options[0]:
        known_axes = dict(axis_of or {})
        fits = True
        for group, sizes in zip(access.groups, access.axes, strict=True):
            keys: list[object] = [atom for atom in group.atoms if atom[0] in ("p", "k")]
            if not keys and group.width:
                keys = [group.width]
            # Each half of a row is an access of its own.
            along = whole_sizes(sizes)
            fits = fits and all(known_axes.setdefault(key, along) == along for key in keys)
        if fits:
            yield from _consistent(options[1:], left_out, (*chosen, access), known_axes)


def bound_of(kernel: ForeignKernel, group: Group) -> Place | None:
    """The length that the indices of a group are compared with."""
    for index, length in kernel.bounds.items():
        along = axis_along(index, SourceAxes((IndexedAccess("", (group,), (("",),)),), ()))
        if along is not None:
            return length
    return None


def limited_axis(kernel: ForeignKernel, axes: SourceAxes) -> tuple[str, int] | None:
    """An axis of which a source takes the first indices alone, however long the length is that it compares them with,
    and how many: a skeleton takes all."""
    for access in axes.accesses:
        for group, sizes in zip(access.groups, access.axes, strict=True):
            bound = bound_of(kernel, group)
            if group.count is not None and bound is not None and constant(bound) is None:
                return " * ".join(whole_sizes(sizes)), group.count
    return None


def axis_along(index: Place, axes: SourceAxes) -> tuple[Group, Sizes] | None:
    """The group whose indices a place is made of, and the axis that it goes along."""
    moving = {atom for atom in atoms(index) if atom[0] in ("p", "k")}
    inside = {atom[2] or atom[1] for atom in atoms(index) if atom[0] == "r"}
    for access in axes.accesses:
        for group, sizes in zip(access.groups, access.axes, strict=True):
            of_group = {atom for atom in group.atoms if atom[0] in ("p", "k")}
            widths = {atom[2] or atom[1] for atom in group.atoms if atom[0] == "r"}
            if of_group == moving and (moving or widths == inside):
                return group, sizes
    return None
