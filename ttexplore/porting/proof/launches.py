"""The launches with which a source is tried: sizes, and what they make of each of its parameters.

Sizes are all different, and so are blocks and the distances of rows, so that a parameter with another role shows. A
parameter that neither a length, a distance, a block nor a parameter of the skeleton accounts for is none.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ttexplore.porting.foreign.families import Attention, Family, Rope
from ttexplore.porting.foreign.marks import ForeignKernel, Parameter
from ttexplore.porting.foreign.places import Place, atoms, constant, distance, written
from ttexplore.porting.foreign.skeletons import Skeleton
from ttexplore.porting.foreign.values import Scalar, walk
from ttexplore.porting.proof.axes import (
    HALVES,
    INNER,
    OUTER,
    Group,
    IndexedAccess,
    Sizes,
    SourceAxes,
    axis_along,
    bound_of,
    whole_sizes,
)
from ttexplore.porting.proof.running import Launch

Kind = Literal["multiples of blocks", "odd sizes", "smaller than a block", "other multiples"]
KINDS: tuple[Kind, ...] = ("multiples of blocks", "odd sizes", "smaller than a block", "other multiples")
MULTIPLES = ("multiples of blocks", "other multiples")
# Blocks that a launch may choose, by the order of their names.
_BLOCKS = (8, 4, 2, 16, 32)
_THREADS = 32
# The threads of a block whose warps join what they have.
_OF_WARPS = (64, 96, 32, 128)
# The longest axis that is tried for a number of the source.
LONGEST = 2_100
# How many programs there are where each takes several blocks, by the kind: in some launches every one has several.
_PROGRAMS = (3, 1, 3, 2)
_VALUES = (0.75, 1.375, 0.4375, 1.8125, 0.625)
_OTHER_VALUES = (1.25, 0.3125, 2.5, 0.875, 1.5)
_NAME = re.compile(r"[A-Za-z_]\w*")
_WHOLE = re.compile(r" of \(\w+ // \w+\)$")
_DIGIT = re.compile(r"\((?:\d\)|blockIdx\.[xyz]) % (\w+)\)")
_PROGRAM = re.compile(r"(\d)\)|blockIdx\.([xyz])")


class Unaccounted(Exception):
    """Why it is not known how a kernel is launched."""


@dataclass(frozen=True, slots=True)
class PlacedTensor:
    """Where the elements of a tensor of the skeleton are in the array of the source: as an array of `shape`, each axis
    with its stride; `length` is that of the array."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    length: int


@dataclass(frozen=True, slots=True)
class TrialLaunch:
    """A launch: the sizes of the skeleton, the parameters of the source that are numbers, those of the skeleton, where
    the tensors lie, and how long arrays are that the skeleton has not."""

    kind: str
    sizes: Mapping[str, int]
    launch: Launch
    numbers: Mapping[str, int | float | bool | str]
    values: Mapping[str, float]
    layouts: Mapping[str, PlacedTensor]
    left_out: Mapping[str, int]
    # Of tensors of indices, how many there are to choose from.
    choices: Mapping[str, int] = field(default_factory=dict[str, int])


def launch_of(
    kernel: ForeignKernel,
    family: Family,
    skeleton: Skeleton,
    axes: SourceAxes,
    kind: Kind,
    odd: str = "",
    beyond: int = 0,
) -> TrialLaunch:
    """The launch to try with sizes of a kind, and one size that is `odd`: with more elements and, if there are not too
    many, more blocks than the number `beyond`. Raises Unaccounted."""
    return _Launching(kernel, family, skeleton, axes, kind, KINDS.index(kind), odd, beyond).launch()


def whole_blocks(axes: SourceAxes) -> tuple[str, ...]:
    """The sizes of which a loop of the source goes over whole blocks alone: ``K // B`` of them."""
    found_sizes: dict[str, None] = {}
    for access in axes.accesses:
        for group, sizes in zip(access.groups, access.axes, strict=True):
            if len(sizes) == 1 and any(kind == "k" and _WHOLE.search(name) for (kind, name, _), _ in group.strides):
                found_sizes[sizes[0].removeprefix(HALVES)] = None
    return tuple(found_sizes)


def vectors(axes: SourceAxes) -> dict[str, int]:
    """The sizes along which a source goes by vectors, with the numbers of elements of these."""
    return {
        whole_sizes(sizes)[-1]: int(width)
        for access in axes.accesses
        for group, sizes in zip(access.groups, access.axes, strict=True)
        for _, name, width in group.atoms
        if name == "lane"
    }


def sizes_of(skeleton: Skeleton) -> tuple[str, ...]:
    """The names of the sizes of a skeleton."""
    every = [size for shape in skeleton.shapes.values() for size in whole_sizes(shape)]
    return tuple(dict.fromkeys(every))


@dataclass
class _Launching:
    """The making of one launch."""

    kernel: ForeignKernel
    family: Family
    skeleton: Skeleton
    axes: SourceAxes
    kind: Kind
    number: int
    odd: str = ""
    beyond: int = 0
    values: dict[str, int | float | bool | str] = field(default_factory=dict[str, "int | float | bool | str"])
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    # The distances that may be larger.
    flexible: set[str] = field(default_factory=set[str])

    def launch(self) -> TrialLaunch:
        self.values |= self.kernel.constants
        # The elements of tensors are float32 where the source leaves their type open.
        self.values |= {p.name: "float32" for p in self.kernel.parameters if p.kind == "type"}
        self.choose_blocks()
        self.choose_variants()
        self.choose_sizes()
        self.cover_rows()
        for _ in range(4):
            self.solve_lengths()
        skeleton_values = self.choose_values()
        self.choose_strides()
        self.check_all()
        layouts = {access.tensor: self.layout(access) for access in self.axes.accesses}
        sizes = {name: size for name, size in self.sizes.items() if not name.endswith((OUTER, INNER))}
        grid, threads = self.grid(), self.threads()
        parameters = {p.name for p in self.kernel.parameters}
        return TrialLaunch(
            self.kind,
            sizes,
            Launch(grid, threads, 2**15 if threads else 0, is_reversed=self.number % 2 == 1),
            {name: value for name, value in self.values.items() if name in parameters},
            skeleton_values,
            layouts,
            {p.name: 2**14 for p in self.kernel.parameters if p.kind == "tensor" and p.name not in layouts},
            {name: self.extent(sizes) for group, sizes in self.groups for kind, name, _ in group.atoms if kind == "g"},
        )

    # Sizes

    @property
    def groups(self) -> list[tuple[Group, Sizes]]:
        """The groups of all accesses with their axes."""
        return [
            (group, sizes)
            for access in self.axes.accesses
            for group, sizes in zip(access.groups, access.axes, strict=True)
        ]

    def extent(self, sizes: Sizes) -> int:
        """How many indices an axis has; of a row in two halves, each half."""
        return math.prod(self.sizes[size] for size in whole_sizes(sizes))

    def steps(self, group: Group) -> list[tuple[str, ...]]:
        """The factors by which a group moves from block to block and from iteration to iteration, without its base."""
        return [tuple(_without(strides, group.base)) for (kind, _, _), strides in group.strides if kind in ("p", "k")]

    def choose_blocks(self) -> None:
        """Blocks that move along an axis may have any size."""
        names: dict[str, None] = {}
        for group, _ in self.groups:
            names.update(dict.fromkeys(name for name in group.base if name.startswith("blockDim.")))
            for step in self.steps(group):
                names.update(dict.fromkeys(name for name in step if not name.startswith("#")))
            if group.moves and _NAME.fullmatch(group.width):
                names[group.width] = None
        constants = {p.name for p in self.kernel.parameters if p.kind == "constant"}
        chosen = [name for name in names if name in constants or name.startswith("blockDim.")]
        for number, name in enumerate(chosen):
            self.values[name] = _BLOCKS[min(number, len(_BLOCKS) - 1)]
        if self.kernel.joins_warps and "blockDim.x" in self.values:
            self.values["blockDim.x"] = _OF_WARPS[self.number]

    def choose_variants(self) -> None:
        """Constants and numbers that decide a variant have values that give the one that was read."""
        conditions = [ast.parse(text, mode="eval").body for text in self.kernel.variants if _is_python(text)]
        names = {node.id for test in conditions for node in ast.walk(test) if isinstance(node, ast.Name)}
        parameters = {p.name for p in self.kernel.parameters}
        names = sorted((names & parameters) - self.values.keys())
        if not names:
            return
        candidates: list[object] = [True, False, 0, 1, 2, 3, 4, 16, 32, 64]
        candidates += [
            node.value
            for test in conditions
            for node in ast.walk(test)
            if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str)
        ]
        candidates += [f"not {names[0]}"]
        for chosen in itertools.islice(itertools.product(candidates, repeat=len(names)), 5_000):
            assumed = dict(zip(names, chosen, strict=True))
            if all(_holds(test, assumed) for test in conditions):
                self.values |= {n: v for n, v in assumed.items() if isinstance(v, bool | int | float | str)}
                return
        raise Unaccounted(f"no value of {', '.join(names)} gives the variant that was read")

    def factor(self, name: str) -> int | None:
        """The number that a factor of a stride is, None where it is not known yet."""
        if name.startswith("#"):
            return int(float(name[1:]))
        value = self.values.get(name)
        return int(value) if isinstance(value, int) else None

    def factors(self, names: Sequence[str]) -> int | None:
        numbers = [self.factor(name) for name in names]
        return None if any(number is None for number in numbers) else math.prod(n or 0 for n in numbers)

    def block_of(self, size: str) -> int:
        """The size of the blocks that move along an axis, 1 if there are none."""
        blocks = [1]
        for group, sizes in self.groups:
            # Of several axes as one, the last one has whole blocks, where nothing says where the tensor ends.
            along = whole_sizes(sizes)
            if along == (size,) or (along[-1] == size and not self.kernel.bounds):
                blocks += [self.factors(step) or 1 for step in self.steps(group)]
        return max(blocks)

    def exact(self, size: str) -> int | None:
        """How many indices an axis must have, because all of a block lie along it: any power of 2 if it is 0; None if
        there is no such block."""
        count: int | None = None
        for group, sizes in self.groups:
            if whole_sizes(sizes) != (size,) or group.moves or not group.width:
                continue
            bound = bound_of(self.kernel, group)
            length = None if bound is None else constant(bound)
            if length is not None:
                count = int(length)
            elif group.width.isdigit():
                count = int(group.width)
            elif bound is None:
                value = self.values.get(group.width)
                count = int(value) if isinstance(value, int) else count or 0
        return count

    def covered(self, size: str) -> bool:
        """Whether one block has all indices of an axis, and perhaps more."""
        return any(
            bool(group.width) and not group.moves and whole_sizes(sizes) == (size,) for group, sizes in self.groups
        )

    def digit(self, size: str) -> int | None:
        """The number that blocks along a part of an axis are counted up to, if the source has a number for it."""
        for group, sizes in self.groups:
            for (kind, name, _), _ in group.strides:
                digit = _DIGIT.fullmatch(name)
                if sizes == (size,) and kind == "p" and digit is not None and digit[1].isdigit():
                    return int(digit[1])
        return None

    def choose_sizes(self) -> None:
        self.choose_heads()
        names = sizes_of(self.skeleton)
        divided_sizes = {size for _, sizes in self.groups for size in sizes if size.endswith((OUTER, INNER))}
        used = set(self.sizes.values())
        # What a parameter says of one axis holds for the others of which it says it.
        lengths: dict[str, int] = {}
        # What has no choice comes first: sizes are different.
        for number, name in sorted(enumerate(names), key=lambda pair: (self.exact(pair[1]) is None, pair[0])):
            if name in self.sizes:
                continue
            if name + OUTER in divided_sizes:
                self.sizes[name + OUTER], inner = ((2, 3), (3, 2), (2, 2), (1, 3))[self.number]
                self.sizes[name + INNER] = self.digit(name + INNER) or inner
                self.sizes[name] = self.sizes[name + OUTER] * self.sizes[name + INNER]
                used.add(self.sizes[name])
                continue
            if equal := lengths.keys() & set(self.lengths_of(name)):
                self.sizes[name] = lengths[min(equal)]
                continue
            exact, block = self.exact(name), self.block_of(name)
            is_beyond = bool(self.beyond) and name == self.odd and not exact
            kind = "odd sizes" if name == self.odd else self.kind
            if name in whole_blocks(self.axes):
                kind = "other multiples" if kind == "other multiples" else "multiples of blocks"
            if is_beyond:
                size = self.size_beyond(name, block, is_power=exact == 0)
            elif exact is not None:
                size = exact or (16, 8, 4, 8)[self.number]
            elif self.covered(name) and kind in MULTIPLES:
                size = 16 if self.number == 0 else 4
            elif block == 1:
                size = ((3, 6, 10), (5, 7, 11), (2, 9, 5), (7, 3, 5))[self.number][number % 3]
            elif kind in MULTIPLES:
                size = block * ((3, 2, 4), (1, 3, 2))[kind == "other multiples"][number % 3]
            elif kind == "odd sizes":
                size = block * (2, 3, 2)[number % 3] + max(1, block // 2 - 1)
            else:
                size = max(1, block - 1 - number)
            is_free = exact is None and not is_beyond and kind != "smaller than a block"
            width = vectors(self.axes).get(name, 1)
            size = -(-size // width) * width
            while is_free and size in used:
                size += max(block, width) if kind in MULTIPLES else width if (size + width) % block else 2 * width
            used.add(size)
            self.sizes[name] = size
            lengths |= dict.fromkeys(self.lengths_of(name), size)

    def choose_heads(self) -> None:
        """Where heads of queries share one of keys, there are as many of them for each."""
        if isinstance(self.family, Attention) and self.family.group:
            group = self.family.group
            shared = int(group) if group.isdigit() else int(self.values.setdefault(group, (2, 3, 2, 1)[self.number]))
            self.sizes["key_heads"] = (3, 2, 1, 5)[self.number]
            self.sizes["heads"] = self.sizes["key_heads"] * shared

    def size_beyond(self, name: str, block: int, *, is_power: bool) -> int:
        """How many elements there are along the axis that goes beyond a number of the source."""
        if is_power:
            return 1 << self.beyond.bit_length()
        # Blocks may go along several axes as one.
        steps = [self.factors(step) or 1 for group, sizes in self.groups if name in sizes for step in self.steps(group)]
        size = max(block, *steps, 1) * (self.beyond + 1) + 1
        if size > LONGEST:
            size = self.beyond + 1
        is_multiple = self.kind == "multiples of blocks" or name in whole_blocks(self.axes)
        return -(-size // block) * block if is_multiple else size

    def lengths_of(self, size: str) -> Iterator[str]:
        """The parameters that are the length of an axis."""
        for index, length in self.kernel.bounds.items():
            along = axis_along(index, self.axes)
            ((product, scale), *rest) = length or frozenset({((), 0.0)})
            if along is not None and along[1] == (size,) and len(product) == scale == 1 and not rest:
                yield product[0][1]
        for group, sizes in self.groups:
            for (kind, name, _), _ in group.strides:
                if kind == "k" and sizes == (size,):
                    yield name.partition(" of ")[2]

    # The parameters of the source

    def cover_rows(self) -> None:
        """A block that does not move has all indices of its axis."""
        for group, sizes in self.groups:
            if not group.moves and _NAME.fullmatch(group.width) and group.width not in self.values:
                extent = self.extent(sizes)
                self.values[group.width] = 1 << max(0, extent - 1).bit_length()

    def solve_lengths(self) -> None:
        """What indices are compared with, and what loops go up to, are the lengths of their axes."""
        for index, length in self.kernel.bounds.items():
            along = axis_along(index, self.axes)
            if along is not None and along[0].moves and constant(length) is not None:
                raise Unaccounted(f"only elements up to {written(length)} are read or written")
            extent = self.extent_of_several(index) or (self.extent(along[1]) if along is not None else None)
            if extent is not None and len(length) == 1:
                ((product, scale),) = length
                self.equate([symbol[1] for symbol in product], extent, scale)
        for group, sizes in self.groups:
            for (kind, name, _), _ in group.strides:
                if kind == "k":
                    self.solve_loop(name.partition(" of ")[2], self.extent(sizes))
                if kind == "p" and " by " in name:
                    for count in self.kernel.block_counts:
                        self.equate(count.split("*"), self.extent(sizes), 1.0)
                digit = _DIGIT.fullmatch(name)
                if kind == "p" and digit is not None:
                    self.equate([digit[1]], self.extent(sizes), 1.0)
        if isinstance(self.family, Rope):
            for store in self.kernel.stores:
                shift = distance(store.place or frozenset())
                if len(shift) == 1:
                    ((product, scale),) = shift
                    self.equate([symbol[1] for symbol in product], self.sizes["half"], scale)

    def extent_of_several(self, index: Place) -> int | None:
        """How many elements the axes have together that an index goes along, None if it does not go along several."""
        moving = {atom[:2] for atom in atoms(index) if atom[0] != "s"}
        for access in self.axes.accesses:
            if len(access.groups) > 1 and moving == {atom[:2] for group in access.groups for atom in group.atoms}:
                return math.prod(self.extent(sizes) for sizes in access.axes)
        return None

    def equate(self, names: Sequence[str], number: int, scale: float) -> None:
        """Let a product of names be a number, if one of them has no value yet."""
        unknown = [name for name in names if self.factor(name) is None]
        factor = self.factors([name for name in names if name not in unknown]) or 1
        if len(unknown) == 1 and self.is_parameter(unknown[0]):
            quotient = number / (factor * scale)
            if quotient == int(quotient):
                self.values[unknown[0]] = int(quotient)

    def is_parameter(self, name: str) -> bool:
        return any(p.name == name and p.kind != "tensor" for p in self.kernel.parameters)

    def solve_loop(self, end: str, extent: int) -> None:
        count = re.fullmatch(r"(\w+)|\((\w+) (?:cdiv|//) \w+\)|\(-1\+(\w+)\+(\w+) // (\w+)\)", end)
        if count is None:
            return
        names = [name for name in count.groups() if name and self.is_parameter(name) and name not in self.values]
        if len(set(names)) == 1:
            self.values[names[0]] = extent

    def choose_values(self) -> dict[str, float]:
        """Parameters that are among the values are those of the skeleton."""
        names = [term.name for store in self.kernel.stores for term in walk(store.value) if isinstance(term, Scalar)]
        of_bias = self.family.bias.scalars if isinstance(self.family, Attention) and self.family.bias else ()
        pool = _OTHER_VALUES if self.number == 1 else _VALUES
        dtypes = {p.name: p.dtype for p in self.kernel.parameters if p.kind == "number"}
        values: dict[str, float] = {}
        for number, name in enumerate(dict.fromkeys([*names, *of_bias])):
            if not self.is_parameter(name) or name in self.kernel.lengths:
                continue
            if name in self.values:
                value = self.values[name]
            elif isinstance(self.family, Attention) and name not in of_bias:
                value = self.sizes["dim"] ** -0.5
            elif dtypes.get(name):
                # 1 and 0 for a bool
                value = (2 + number if dtypes[name] != "bool" else 1) - (self.number == 1)
            else:
                value = pool[number % len(pool)] + number // len(pool)
            self.values[name] = value
            is_scale = isinstance(self.family, Attention) and name not in of_bias
            if not is_scale and not isinstance(value, str):
                values[name] = float(value)
        return values

    def choose_strides(self) -> None:
        """Distances of rows leave gaps, but for the first launch."""
        pad = (0, 3, 1, 2)[self.number]
        for _ in range(3):
            for access in self.axes.accesses:
                span = 1
                for group, extent in self.from_inside(access):
                    unknown = list(dict.fromkeys(name for name in group.base if self.factor(name) is None))
                    if len(unknown) == 1 and self.is_stride(unknown[0]):
                        factor = self.factors([name for name in group.base if name != unknown[0]]) or 1
                        needed = -(-span // factor)
                        self.values[unknown[0]] = needed + (pad if span > 1 else 0)
                        self.flexible.add(unknown[0])
                    elif len(group.base) == 1 and group.base[0] in self.flexible:
                        name = group.base[0]
                        self.values[name] = max(self.factor(name) or 0, span + (pad if span > 1 else 0))
                    stride = self.factors(group.base) or 1
                    span = max(span, (extent - 1) * stride + span) if stride >= span else span * extent
        for access in self.axes.left_out:
            for group in access.groups:
                for name in group.base:
                    if self.factor(name) is None and self.is_stride(name):
                        self.values[name] = 64

    def is_stride(self, name: str) -> bool:
        return self.is_parameter(name) and name not in self.values

    def shape_of(self, access: IndexedAccess) -> tuple[int, ...]:
        """The shape of a tensor along the axes of an access."""
        return tuple(
            math.prod(self.sizes[size.removeprefix(HALVES)] * (2 if size.startswith(HALVES) else 1) for size in sizes)
            for sizes in access.axes
        )

    def from_inside(self, access: IndexedAccess) -> list[tuple[Group, int]]:
        """The groups of an access from the inner axes on, with their extents: neighbours first."""
        shape = self.shape_of(access)
        order = self.order(access)
        groups = [(access.groups[number], shape[number]) for number in reversed(order)]
        return sorted(groups, key=lambda pair: (bool(pair[0].base), self.factors(pair[0].base) or 0))

    def order(self, access: IndexedAccess) -> list[int]:
        """The groups in the order of the skeleton's axes."""
        sizes = self.skeleton.shapes[self.skeleton.names[access.tensor]]
        positions = {name: number for number, name in enumerate(sizes)}

        def position(axis: Sizes) -> float:
            name = axis[0]
            return positions.get(name.removesuffix(OUTER).removesuffix(INNER), 0) + (0.5 if name.endswith(INNER) else 0)

        return sorted(range(len(access.groups)), key=lambda number: position(access.axes[number]))

    def layout(self, access: IndexedAccess) -> PlacedTensor:
        order, shape = self.order(access), self.shape_of(access)
        strides: list[int] = []
        for number in order:
            stride = self.factors(access.groups[number].base)
            if stride is None:
                raise Unaccounted(f"it is not known how far apart the elements of {access.tensor} are")
            strides.append(stride)
        ordered_shape = tuple(shape[number] for number in order)
        inner = 1
        for stride, extent in reversed([*zip(strides, ordered_shape, strict=True)]):
            if extent > 1 and stride < inner:
                raise Unaccounted(f"elements of {access.tensor} lie in another order than in the skeleton")
            inner = stride if extent > 1 else inner
        span = 1
        for stride, extent in sorted(zip(strides, ordered_shape, strict=True)):
            if extent > 1 and stride < span:
                raise Unaccounted(f"elements of {access.tensor} would lie in one place")
            span += (extent - 1) * stride
        return PlacedTensor(ordered_shape, tuple(strides), span)

    def check_all(self) -> None:
        """Every parameter that is used must have a value by now."""
        for parameter in self.kernel.parameters:
            if parameter.kind == "tensor" or parameter.name in self.values:
                continue
            # A constant of the compiler may have any value, if it makes no difference, and so may what another variant
            # uses.
            if parameter.used and parameter.kind != "constant" and not self.kernel.variants:
                raise Unaccounted(_unaccounted(parameter))
            # There are several groups of blocks, of which the last one is smaller.
            is_group = parameter.name in self.kernel.group_sizes
            self.values[parameter.name] = ((2, 1, 3, 2) if is_group else (4, 8, 2, 16))[self.number]

    def grid(self) -> tuple[int, ...]:
        """As many blocks as the axes have."""
        counts: dict[int, dict[str, int]] = {}
        for group, sizes in self.groups:
            for (kind, name, _), strides in group.strides:
                if kind != "p":
                    continue
                match = _PROGRAM.search(name)
                if match is None:
                    continue
                axis = int(match[1]) if match[1] else "xyz".index(match[2])
                block = self.factors(_without(strides, group.base)) or 1
                count = -(-self.extent(sizes) // block)
                # Where a loop goes on by all blocks of the grid, there may be fewer.
                if " by " in name or any(f"gridDim.{'xyz'[axis]}" in factors for _, factors in group.strides):
                    count = _PROGRAMS[self.number]
                before = counts.setdefault(axis, {})
                before[name] = max(before.get(name, 1), count)
        # The number of a block itself counts all of them, whatever is made of it.
        plain = {
            axis: [n for name, n in of_axis.items() if _PROGRAM.fullmatch(name)] for axis, of_axis in counts.items()
        }
        return tuple(math.prod(plain.get(axis) or counts.get(axis, {}).values()) for axis in range(3))

    def threads(self) -> tuple[int, ...]:
        """The threads of a block, in CUDA."""
        counts: dict[int, int] = {}
        for group, sizes in self.groups:
            for number, ((kind, name, _), _) in enumerate(group.strides):
                match = re.search(r"threadIdx\.([xyz])", name)
                if kind != "r" or match is None:
                    continue
                step = next(iter(self.steps(group)), None) if number == 0 else None
                count = self.extent(sizes) if step is None else self.factors(step) or 1
                axis = "xyz".index(match[1])
                counts[axis] = max(counts.get(axis, 1), count)
        for axis, letter in enumerate("xyz"):
            value = self.values.get(f"blockDim.{letter}")
            if isinstance(value, int):
                counts[axis] = value
        return tuple(counts.get(axis, 1) for axis in range(3)) if counts else ()


def _unaccounted(parameter: Parameter) -> str:
    return f"no length, distance, block or value accounts for {parameter.name}"


def _without(names: Sequence[str], excluded: Sequence[str]) -> list[str]:
    remaining = list(names)
    for name in excluded:
        if name in remaining:
            remaining.remove(name)
    return remaining


def _is_python(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _holds(test: ast.expr, assumed: Mapping[str, object]) -> bool:
    try:
        return bool(_evaluated(test, assumed))
    except (TypeError, ValueError, KeyError, ZeroDivisionError):
        return False


def _evaluated(node: ast.expr, assumed: Mapping[str, object]) -> object:
    """A condition on constants. Raises ValueError for what it does not know."""
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return assumed[name]
        case ast.UnaryOp(ast.Not(), operand):
            return not _evaluated(operand, assumed)
        case ast.BoolOp(ast.And(), operands):
            return all(_evaluated(operand, assumed) for operand in operands)
        case ast.BoolOp(ast.Or(), operands):
            return any(_evaluated(operand, assumed) for operand in operands)
        case ast.BinOp(left_side, symbol, right_side) if type(symbol) in _ARITHMETIC:
            first, second = _evaluated(left_side, assumed), _evaluated(right_side, assumed)
            if isinstance(first, int) and isinstance(second, int):
                return _ARITHMETIC[type(symbol)](first, second)
            raise ValueError
        case ast.Compare(left_side, [symbol], [right_side]) if type(symbol) in _COMPARED:
            return _COMPARED[type(symbol)](_evaluated(left_side, assumed), _evaluated(right_side, assumed))
        case _:
            raise ValueError


_Operation = Callable[[Any, Any], Any]
_ARITHMETIC: dict[type[ast.operator], _Operation] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
}
_COMPARED: dict[type[ast.cmpop], _Operation] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.eq,
    ast.IsNot: operator.ne,
}
