"""What a kernel may say about its schedule and its tensors' place: checked here, decided on by the passes.

The annotations stand in the kernel (``T.annotate_tt_schedule(policy="strided")``), above it as decorators, or are
functions of it (``annotate_tt_layout(kernel, {...})``). Each becomes an option of a pass; options that are given to
``explore`` win.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ttexplore.errors import Unsupported, UsageError, unknown
from ttexplore.ir.adapter import is_buffer
from ttexplore.language.builder import current
from ttexplore.language.names import CURRENT
from ttexplore.language.spans import caller_span
from ttexplore.record import Span

_SCHEDULE_KEYS = ("policy", "order", "rect", "stride", "chunk_k_tiles", "qk_chunk_tiles")
_LAYOUT_KEYS = (
    "memory", "layout", "dtype", "tile_shape", "shard", "grid", "order", "nd_shard", "halo", "page", "through",
)  # fmt: skip
_ND_SHARD_KEYS = (
    "axes", "grid", "shard_shape_elems", "order", "align_tiles", "projected_grid", "projected_shard_tiles",
)  # fmt: skip
_MEMORIES = ("DRAM", "L1")
_ORDERS = ("row_major", "column_major")
TILE = 32


@dataclass(frozen=True)
class TTShard:
    """How a tensor is cut into tiles and divided among cores: ``T.TTShard(axis=0, tiles=("rows", 32))``.

    `axis` is the dimension (or a tuple of them) that is divided; `tiles` names its tiles, whose edge is 32; `placement`
    is ``"DRAM"``, where the tiles are interleaved over the banks, or ``"L1"``, where each core holds a shard. `order`
    is the order in which shards go to the cores, `faces` the order inside of a tile, ``"16x16"``.

    Raises UsageError for other values, Unsupported for a tile that the chip does not have.
    """

    axis: int | tuple[int, ...]
    tiles: tuple[str | int, ...] = ("rows", "cols", TILE)
    placement: str = "DRAM"
    order: str = "row_major"
    faces: str = "16x16"

    def __post_init__(self) -> None:
        if not self.axes:
            raise UsageError("TTShard: no axis is given", hint="give a dimension, 0 is the first, or a tuple")
        _ints("TTShard: axis", self.axes)
        for part in self.tiles:
            if isinstance(part, int) and part != TILE:
                raise Unsupported(f"TTShard: tiles of {part}", hint=f"a tile is {TILE}x{TILE}")
            if isinstance(part, str) and part not in ("rows", "cols"):
                raise unknown("kind of tiles", part, ("rows", "cols"))
        one_of("placement", self.placement, _MEMORIES)
        one_of("order", self.order, _ORDERS)
        if self.faces != "16x16":
            raise Unsupported(f"TTShard: faces of {self.faces}", hint="the four faces of a tile are 16x16")

    @property
    def axes(self) -> tuple[int, ...]:
        return self.axis if isinstance(self.axis, tuple) else (self.axis,)


@dataclass(frozen=True)
class LayoutRequest:
    """What is asked for a tensor's layout; None where nothing is.

    `axes` are the dimensions to divide and `grid` into how many parts each, `shard_shape` the elements of a part along
    each of them. `shard` is the same by the SDK's names for two dimensions: height, width, block. `page` is what a page
    of the tensor is: a tile, or a row, and `through` how rows become tiles. `span` is the line that asks, None for an
    option.
    """

    memory: Literal["dram", "l1"] | None = None
    sharded: bool | None = None
    shard: Literal["height", "width", "block"] | None = None
    axes: tuple[int, ...] | None = None
    grid: tuple[int, ...] | None = None
    shard_shape: tuple[int, ...] | None = None
    aligned: bool = True
    order: Literal["row_major", "column_major", "match_shard"] | None = None
    projected_grid: tuple[int, ...] | None = None
    projected_shard_tiles: tuple[int, ...] | None = None
    dtype: str | None = None
    page: Literal["tile", "row"] | None = None
    through: Literal["tilize", "runs"] | None = None
    span: Span | None = None

    def merged(self, later: LayoutRequest) -> LayoutRequest:
        """This request, with what a later one asks for instead."""
        defaults = LayoutRequest()
        changes = {
            field.name: value
            for field in dataclasses.fields(self)
            if (value := getattr(later, field.name)) != getattr(defaults, field.name)
        }
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True)
class Annotation:
    """An option that the kernel itself asks for; `tensor` is empty for one that is about the whole kernel."""

    option: str
    value: Any
    tensor: str = ""
    span: Span | None = None


def one_of(what: str, given: Any, accepted: Iterable[str]) -> Any:
    """`given`, if it is one of the names. Raises UsageError."""
    if given not in (names := tuple(accepted)):
        raise unknown(what, given, names)
    return given


def _known(what: str, given: Iterable[str], accepted: tuple[str, ...]) -> None:
    for key in given:
        one_of(f"key of {what}", key, accepted)


def _ints(what: str, value: Any, count: int | None = None) -> tuple[int, ...]:
    """A tuple of positive ints. Raises UsageError."""
    made = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not made or not all(isinstance(one, int) and not isinstance(one, bool) for one in made):
        raise UsageError(f"{what} is {value!r}", hint="give integers")
    if count is not None and len(made) != count:
        raise UsageError(f"{what} is {value!r}", hint=f"give {count} integers")
    return made


# Layouts


def layout_request(tensor: str, given: Any, span: Span | None = None) -> LayoutRequest:
    """What is asked for `tensor`: a TTShard, a dictionary of layout keys, or ``"DRAM"`` or ``"L1"`` alone.

    Raises UsageError for unknown keys and values, Unsupported for halos and tiles that the chip does not have.
    """
    match given:
        case LayoutRequest():
            return given
        case TTShard():
            return _of_shard(given, span)
        case str():
            return LayoutRequest(one_of("memory", given.upper(), _MEMORIES).lower(), span=span)
        case Mapping():
            return _of_keys(tensor, dict(given), span)
        case _:
            raise UsageError(
                f"the layout of {tensor} is {given!r}", hint='give a TTShard, a dictionary, "DRAM" or "L1"'
            )


def _of_shard(given: TTShard, span: Span | None) -> LayoutRequest:
    if given.placement == "DRAM":
        if given.order != "row_major":
            raise Unsupported(
                f"tiles in DRAM in {given.order} order", hint="the SDK stores tiles row by row: leave order out"
            )
        return LayoutRequest("dram", False, span=span)
    order: Any = None if given.order == "row_major" else given.order
    return LayoutRequest("l1", True, axes=given.axes, order=order, span=span)


def _of_keys(tensor: str, given: dict[str, Any], span: Span | None) -> LayoutRequest:
    _known(f"the layout of {tensor}", given, _LAYOUT_KEYS)
    if given.get("halo"):
        raise Unsupported(
            f"the layout of {tensor} asks for a halo {given['halo']!r}",
            hint="shards do not overlap on this chip: read the neighbours' tiles through the tensor instead",
        )
    facts: dict[str, Any] = {}
    if (memory := given.get("memory")) is not None:
        facts["memory"] = one_of("memory", str(memory).upper(), _MEMORIES).lower()
    match one_of("layout", given.get("layout", "row_major"), ("interleaved", "sharded", *_ORDERS)):
        case "interleaved" | "sharded" as arrangement:
            facts["sharded"] = arrangement == "sharded"
        case "column_major":
            raise Unsupported(f"{tensor} in column_major order", hint="the SDK stores tiles row by row")
        case _:
            pass
    if tuple(given.get("tile_shape", (TILE, TILE))) != (TILE, TILE):
        raise Unsupported(f"tiles of {given['tile_shape']!r} for {tensor}", hint=f"a tile is {TILE}x{TILE}")
    if (shard := given.get("shard")) is not None:
        facts |= {"sharded": True, "shard": one_of("shard", shard, ("height", "width", "block"))}
    if (grid := given.get("grid")) is not None:
        facts["grid"] = _ints(f"the grid of {tensor}", grid)
    if (order := given.get("order")) is not None:
        facts["order"] = one_of("order", order, (*_ORDERS, "match_shard"))
    if (dtype := given.get("dtype")) is not None:
        facts["dtype"] = str(dtype)
    if (page := given.get("page")) is not None:
        facts["page"] = one_of("page", page, ("tile", "row"))
    if (through := given.get("through")) is not None:
        facts["through"] = one_of("through", through, ("tilize", "runs"))
    if (nd_shard := given.get("nd_shard")) is not None:
        facts |= {"sharded": True} | _of_nd_shard(tensor, nd_shard)
    if facts.get("sharded") and "memory" not in facts:
        facts["memory"] = "l1"
    return LayoutRequest(**facts, span=span)


def _of_nd_shard(tensor: str, given: Any) -> dict[str, Any]:
    what = f"nd_shard of {tensor}"
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} is {given!r}", hint="give a dictionary with axes and grid")
    _known(what, given, _ND_SHARD_KEYS)
    for needed in ("axes", "grid"):
        if needed not in given:
            raise UsageError(f"{what} has no {needed}", hint="nd_shard={'axes': [0, 1], 'grid': [2, 4]}")
    axes = _ints(f"{what}: axes", given["axes"])
    facts: dict[str, Any] = {"axes": axes, "grid": _ints(f"{what}: grid", given["grid"], len(axes))}
    if given.get("shard_shape_elems"):
        facts["shard_shape"] = _ints(f"{what}: shard_shape_elems", given["shard_shape_elems"])
    if (order := given.get("order")) is not None:
        if order == "block_linear":
            raise Unsupported(f"{what}: tiles in the order {order}", hint="tiles of a shard lie row by row")
        facts["order"] = one_of(f"order of {what}", order, (*_ORDERS, "match_shard"))
    facts["aligned"] = bool(given.get("align_tiles", True))
    for key in ("projected_grid", "projected_shard_tiles"):
        if given.get(key) is not None:
            facts[key] = _ints(f"{what}: {key}", given[key], 2)
    return facts


# Schedules


def _schedule(given: Mapping[str, Any], span: Span | None) -> list[Annotation]:
    _known("the schedule", given, _SCHEDULE_KEYS)
    options: dict[str, Any] = {}
    policy, order = given.get("policy"), given.get("order")
    if policy is not None:
        options["policy"] = "rectangular" if policy == "rect" else policy
    if order == "match_shard":
        options["policy"] = "match_shard"
    elif order is not None:
        options["order"] = order
    if (rect := given.get("rect")) is not None:
        first_y, first_x, rows, columns = _ints("rect", rect, 4)
        if (first_y, first_x) != (0, 0):
            raise UsageError(
                f"rect={tuple(rect)!r} leaves out the blocks before ({first_x}, {first_y})",
                hint="rect=(0, 0, rows, columns) is the rectangle that each core gets",
            )
        options |= {"policy": options.get("policy", "rectangular"), "rectangle": (columns, rows)}
    if (stride := given.get("stride")) is not None:
        first, step = _ints("stride", stride, 2)
        if first != 0:
            raise UsageError(
                f"stride={tuple(stride)!r} leaves out the first {first} work items",
                hint="stride=(0, step) deals them out to `step` cores",
            )
        options |= {"policy": options.get("policy", "strided"), "stride": step}
    for key in ("chunk_k_tiles", "qk_chunk_tiles"):
        if given.get(key) is not None:
            options["chunk_k_tiles"] = _ints(key, given[key], 1)[0]
    return [Annotation(option, value, span=span) for option, value in options.items()]


# The three annotations


def annotate_tt_schedule(*arguments: Any, **values: Any) -> Any:
    """Say how the work is divided among the cores: in a kernel, as a decorator, or of a kernel with a dictionary.

    `policy`: contiguous, strided, rectangular (also ``rect``), block_linear, z_order, match_shard. `order`: row_major,
    column_major, z_order, block_linear(k), match_shard. `rect`: (0, 0, rows, columns) of each core's rectangle;
    `stride`: (0, number of cores that deal the items out); `chunk_k_tiles` (also `qk_chunk_tiles`): tiles along the
    summed dimension that are on their way at once. Raises UsageError for anything else.
    """
    return _annotate("annotate_tt_schedule", arguments, values, lambda given, span: _schedule(given, span))


def annotate_tt_sharding(*arguments: Any, **values: Any) -> Any:
    """Say how tensors are divided among cores: ``{A: T.TTShard(axis=0, placement="L1")}``.

    In a kernel, as a decorator (tensors by name), or of a kernel. Raises UsageError for what is no tensor of it.
    """
    return _annotate("annotate_tt_sharding", arguments, values, _layouts)


def annotate_tt_layout(*arguments: Any, **values: Any) -> Any:
    """Say where tensors lie: ``{A: {"memory": "L1", "layout": "sharded"}}`` or ``(A, memory="L1", ...)``.

    Keys: memory (DRAM, L1), layout (interleaved, sharded), dtype (``"bfp8_b"`` for tiles of 1088 bytes in which 16
    numbers share an exponent, else the tensor's own), tile_shape ([32, 32]), shard (height, width, block), grid, order
    (row_major, column_major, match_shard), nd_shard, page (tile, row), through (tilize, runs) of rows. In a kernel,
    as a decorator, or of a kernel. Raises UsageError for other keys and values, Unsupported for a halo.
    """
    if arguments and (is_buffer(arguments[0]) or (isinstance(arguments[0], str) and values)):
        arguments, values = ({arguments[0]: dict(values)}, *arguments[1:]), {}
    return _annotate("annotate_tt_layout", arguments, values, _layouts)


def _layouts(given: Mapping[Any, Any], span: Span | None) -> list[Annotation]:
    made: list[Annotation] = []
    for tensor, asked in given.items():
        name = str(tensor.name) if is_buffer(tensor) else tensor
        if not isinstance(name, str):
            raise UsageError(f"{tensor!r} is no tensor", hint="give a tensor of the kernel or its name")
        request = layout_request(name, asked, span)
        made.append(Annotation("layouts", request, name, span))
        if request.order == "match_shard":
            made += [Annotation("policy", "match_shard", span=span), Annotation("match", name, span=span)]
    return made


def _annotate(
    what: str, arguments: tuple[Any, ...], values: dict[str, Any],
    make: Callable[[Mapping[Any, Any], Span | None], list[Annotation]],
) -> Any:  # fmt: skip
    kernel = None
    if arguments and not isinstance(arguments[0], Mapping):
        kernel, *arguments = arguments  # pyright: ignore[reportAssignmentType]
    given: dict[Any, Any] = {}
    for one in arguments:
        if not isinstance(one, Mapping):
            raise UsageError(f"{what} takes a dictionary, not {one!r}", hint=f"{what}({{name: ...}})")
        given |= dict(one)
    given |= values
    if CURRENT.get() is not None and kernel is None:
        builder = current(f"T.{what}")
        span = caller_span(builder.files) or builder.span
        builder.annotations += make(given, span)
        return None
    made = make(given, None)
    return annotated(kernel, made) if kernel is not None else lambda later: annotated(later, made)


def annotated(kernel: Any, annotations: Iterable[Annotation]) -> Any:
    """The kernel with more annotations. Raises UsageError for what is no kernel that is traced already."""
    add = getattr(kernel, "annotated", None)
    if not callable(add):
        raise UsageError(
            f"{kernel!r} cannot be annotated from outside",
            hint="annotate a T.prim_func, or write the annotation inside of the kernel",
        )
    return add(tuple(annotations))


def check_tensors(annotations: Iterable[Annotation], tensors: Iterable[str]) -> None:
    """Each annotation of a tensor names a parameter of the kernel. Raises UsageError at the annotation's line."""
    names = tuple(tensors)
    for one in annotations:
        if one.tensor and one.tensor not in names:
            raise unknown("tensor", one.tensor, names).at(one.span)
