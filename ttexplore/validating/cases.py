"""What a kernel is tried with: which of its arguments are sizes and dtypes, and the values that they get.

Names mean nothing: an argument is a size if the inputs of the kernel have another shape when it is doubled, and a dtype
if they have another dtype when it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ttexplore.errors import TTExploreError
from ttexplore.plan import FORMAT_OF_DTYPE, TILE_ROWS
from ttexplore.target import Target

# Shape and dtype of each input.
Inputs = tuple[tuple[tuple[int, ...], str], ...]
# What a kernel's inputs are for these arguments. Raises what the kernel raises.
Inspect = Callable[[Mapping[str, object]], Inputs]

_DTYPES = ("bfloat16", "float32")
# Elements of all inputs together, above which a large case would take the emulator too long.
MOST_ELEMENTS = 1 << 22
# What an odd size is beyond whole tiles: some rows of the first half of a tile, but not all of a face.
_BEYOND_TILES = 21


@dataclass(frozen=True, slots=True)
class Case:
    """One run: what it is `called`, the arguments that make it, and the target."""

    called: str
    arguments: Mapping[str, object]
    target: Target


@dataclass(frozen=True, slots=True)
class Roles:
    """The arguments that are sizes, with their values, and those that are dtypes."""

    sizes: Mapping[str, int]
    dtypes: Mapping[str, str]


def roles_of(arguments: Mapping[str, object], inspect: Inspect) -> Roles:
    """Which arguments are sizes and which are dtypes. Raises what the kernel raises with `arguments` as they are."""
    inputs = inspect(arguments)
    sizes: dict[str, int] = {}
    dtypes: dict[str, str] = {}

    def changes(name: str, value: object) -> Iterator[int]:
        """Which halves of the inputs, their shapes (0) and their dtypes (1), are others with another value."""
        try:
            changed = inspect({**arguments, name: value})
        except TTExploreError:
            return
        for half in (0, 1):
            if [tensor[half] for tensor in changed] != [tensor[half] for tensor in inputs]:
                yield half

    for name, value in arguments.items():
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            if 0 in changes(name, 2 * value):
                sizes[name] = value
        elif str(value) in FORMAT_OF_DTYPE and 1 in changes(
            name, next(dtype for dtype in _DTYPES if dtype != str(value))
        ):
            dtypes[name] = str(value)
    return Roles(sizes, dtypes)


def cases_of(arguments: Mapping[str, object], roles: Roles, inspect: Inspect, targets: Iterable[Target]) -> list[Case]:
    """The kernel as given, with tiny, odd and large sizes, one of them odd at a time, in each dtype, for each target.

    Tiny sizes are one tile, or 1 if they are smaller than a tile; odd ones end inside of a tile; large ones are twice
    those given, unless the inputs then have more than MOST_ELEMENTS.
    """
    sizes = roles.sizes
    shapes: dict[str, Mapping[str, int]] = {"as given": {}}
    shapes["tiny"] = {name: TILE_ROWS if size >= TILE_ROWS else 1 for name, size in sizes.items()}
    odd = {name: _odd(size) for name, size in sizes.items()}
    for name, size in odd.items() if len(sizes) > 1 else ():
        shapes[f"odd {name}"] = {name: size}
    shapes["odd"] = odd
    shapes["large"] = {name: 2 * size if size >= TILE_ROWS else size for name, size in sizes.items()}
    cases: list[Case] = []
    keys: set[str] = set()
    chips = list(targets)
    for dtype in _dtypes(roles):
        for called, shape in shapes.items():
            chosen = {**arguments, **shape, **dtype}
            key = repr(sorted(chosen.items(), key=lambda pair: pair[0]))
            if key in keys or (called == "large" and _elements(inspect, chosen) > MOST_ELEMENTS):
                continue
            keys.add(key)
            told = " ".join([called, *dict.fromkeys(dtype.values())])
            cases += [Case(told, chosen, chip) for chip in chips]
    return cases


def _odd(size: int) -> int:
    """A size near the given one that ends inside of a tile."""
    if size < TILE_ROWS:
        return size + 1
    return max(size - size % TILE_ROWS - TILE_ROWS, TILE_ROWS) + _BEYOND_TILES


def _dtypes(roles: Roles) -> list[dict[str, str]]:
    """The dtypes as given, and each other one for all arguments that have the same."""
    if not roles.dtypes:
        return [{}]
    of_inputs = list(dict.fromkeys(roles.dtypes.values()))
    dtypes = [dict(roles.dtypes)]
    for dtype in _DTYPES:
        if [dtype] != of_inputs:
            dtypes.append(dict.fromkeys(roles.dtypes, dtype))
    return dtypes


def _elements(inspect: Inspect, arguments: Mapping[str, object]) -> int:
    try:
        shapes = [shape for shape, _ in inspect(arguments)]
    except TTExploreError:
        # It is refused, which the table says.
        return 0
    total = 0
    for shape in shapes:
        count = 1
        for extent in shape:
            count *= extent
        total += count
    return total
