"""Requests for a tensor's layout, by annotations and the option `layouts`: checked here, decided by A1."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from ttexplore.errors import Unsupported, UsageError, shown
from ttexplore.given import dictionary, flag, named, plain, wholes, wrong
from ttexplore.record import Span

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
    """How a tensor is tiled and distributed over cores: ``T.TTShard(axis=0, tiles=("rows", 32))``.

    `axis` is the dimension, or a tuple of dimensions, that is divided; `tiles` names its tiles, whose edge is 32;
    `placement` is ``"DRAM"`` (tiles interleaved over the banks) or ``"L1"`` (one shard per core). `order` is the order
    in which shards are assigned to cores, `faces` the format within a tile, always ``"16x16"``.

    Raises UsageError for other values, Unsupported for tiles that the chip does not support.
    """

    axis: int | tuple[int, ...]
    tiles: tuple[str | int, ...] = ("rows", "cols", TILE)
    placement: str = "DRAM"
    order: str = "row_major"
    faces: str = "16x16"

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", plain(self.axis))
        if not self.axes:
            raise UsageError("U010", "TTShard: no axis is given", hint="give a dimension, 0 is the first, or a tuple")
        wholes("TTShard: axis", self.axes)
        tiles = plain(self.tiles)
        if not isinstance(tiles, list | tuple):
            raise wrong("TTShard: tiles", tiles, f'a tuple, for example ("rows", "cols", {TILE})')
        for tile in cast(Iterable[Any], tiles):
            if isinstance(tile, int) and tile != TILE:
                raise Unsupported(
                    "L014", f"TTShard: tiles of {tile} are not supported", hint=f"use tiles of {TILE}x{TILE}"
                )
            if not isinstance(tile, int):
                named("kind of tiles", tile, ("rows", "cols"))
        named("placement", self.placement, _MEMORIES)
        named("order", self.order, _ORDERS)
        if plain(self.faces) != "16x16":
            raise Unsupported(
                "L014", f"TTShard: faces of {shown(self.faces)} are not supported", hint="use faces of 16x16"
            )

    @property
    def axes(self) -> tuple[int, ...]:
        return self.axis if isinstance(self.axis, tuple) else (self.axis,)


@dataclass(frozen=True)
class LayoutRequest:
    """A request for a tensor's layout; fields that it leaves open are None.

    `axes` are the dimensions to divide, `grid` the number of parts along each, `shard_shape` the elements of a part
    along each. `shard` is the same for two dimensions, by the SDK's names: height, width, block. `page` is the kind of
    the tensor's pages, tile or row, and `through` the way in which rows become tiles. `span` is the line of the
    annotation, None for an option.
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
        """This request, overridden by a later one."""
        defaults = vars(LayoutRequest())
        changes = {name: value for name, value in vars(later).items() if value != defaults[name]}
        return dataclasses.replace(self, **changes)


def layout_request(tensor: str, request: object, span: Span | None = None) -> LayoutRequest:
    """Parse the request for `tensor`: a TTShard, a dictionary of layout keys, or ``"DRAM"`` or ``"L1"`` alone.

    Raises UsageError for unknown keys and values, Unsupported for halos and for tiles that the chip does not support.
    """
    match request:
        case LayoutRequest():
            return request
        case TTShard():
            return _of_shard(request, span)
        case str():
            return LayoutRequest(_memory(request), span=span)
        case Mapping():
            keys = dictionary(f"the layout of {tensor}", cast(object, request), "keys", '{"memory": "L1"}')
            return _of_keys(tensor, keys, span)
        case _:
            raise wrong(f"the layout of {tensor}", request, 'a TTShard, a dictionary, "DRAM" or "L1"')


def _memory(memory: object) -> Any:
    return named("memory", memory.upper() if isinstance(memory, str) else memory, _MEMORIES).lower()


def _of_shard(shard: TTShard, span: Span | None) -> LayoutRequest:
    if shard.placement == "DRAM":
        if shard.order != "row_major":
            raise Unsupported(
                "L014",
                f"tiles in DRAM cannot be stored in {shard.order} order",
                hint="omit order: the SDK stores tiles row by row",
            )
        return LayoutRequest("dram", False, span=span)
    order: Any = None if shard.order == "row_major" else shard.order
    return LayoutRequest("l1", True, axes=shard.axes, order=order, span=span)


def _of_keys(tensor: str, keys: dict[str, Any], span: Span | None) -> LayoutRequest:
    _known(f"the layout of {tensor}", keys, _LAYOUT_KEYS)
    if keys.get("halo"):
        raise Unsupported(
            "L014",
            f"the layout of {tensor} requests a halo, {shown(keys['halo'])}, but shards cannot overlap on this chip",
            hint="read the neighbours' tiles through the tensor instead",
        )
    facts: dict[str, Any] = {}
    if (memory := keys.get("memory")) is not None:
        facts["memory"] = _memory(memory)
    match named("layout", keys.get("layout", "row_major"), ("interleaved", "sharded", *_ORDERS)):
        case "interleaved" | "sharded" as arrangement:
            facts["sharded"] = arrangement == "sharded"
        case "column_major":
            raise Unsupported(
                "L014",
                f"{tensor} cannot be stored in column_major order",
                hint="omit layout: the SDK stores tiles row by row",
            )
        case _:
            pass
    if wholes(f"tile_shape of {tensor}", keys.get("tile_shape", (TILE, TILE))) != (TILE, TILE):
        raise Unsupported(
            "L014",
            f"{tensor} requests tiles of {shown(keys['tile_shape'])}, which are not supported",
            hint=f"use tiles of {TILE}x{TILE}",
        )
    if (shard := keys.get("shard")) is not None:
        facts |= {"sharded": True, "shard": named("shard", shard, ("height", "width", "block"))}
    if (grid := keys.get("grid")) is not None:
        facts["grid"] = wholes(f"the grid of {tensor}", grid, least=1)
    if (order := keys.get("order")) is not None:
        facts["order"] = named("order", order, (*_ORDERS, "match_shard"))
    if (dtype := keys.get("dtype")) is not None:
        facts["dtype"] = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", shown(dtype))
    if (page := keys.get("page")) is not None:
        facts["page"] = named("page", page, ("tile", "row"))
    if (through := keys.get("through")) is not None:
        facts["through"] = named("through", through, ("tilize", "runs"))
    if (nd_shard := keys.get("nd_shard")) is not None:
        facts |= {"sharded": True} | _of_nd_shard(tensor, nd_shard)
    if facts.get("sharded") and "memory" not in facts:
        facts["memory"] = "l1"
    return LayoutRequest(**facts, span=span)


def _of_nd_shard(tensor: str, shard: object) -> dict[str, Any]:
    noun = f"nd_shard of {tensor}"
    shard = dictionary(noun, shard, "keys", "{'axes': [0, 1], 'grid': [2, 4]}")
    _known(noun, shard, _ND_SHARD_KEYS)
    for needed in ("axes", "grid"):
        if needed not in shard:
            raise UsageError(
                "U015", f"{noun} lacks the key {needed}", hint="write nd_shard={'axes': [0, 1], 'grid': [2, 4]}"
            )
    axes = wholes(f"{noun}: axes", shard["axes"])
    facts: dict[str, Any] = {"axes": axes, "grid": wholes(f"{noun}: grid", shard["grid"], len(axes), least=1)}
    if (elements := shard.get("shard_shape_elems")) is not None and elements != []:
        facts["shard_shape"] = wholes(f"{noun}: shard_shape_elems", elements, least=1)
    if (order := shard.get("order")) is not None:
        if order == "block_linear":
            raise Unsupported(
                "L014",
                f"{noun}: the order {order} is not supported",
                hint="omit order: the tiles of a shard are stored row by row",
            )
        facts["order"] = named(f"order of {noun}", order, (*_ORDERS, "match_shard"))
    facts["aligned"] = flag(f"{noun}: align_tiles", shard.get("align_tiles", True))
    for key in ("projected_grid", "projected_shard_tiles"):
        if shard.get(key) is not None:
            facts[key] = wholes(f"{noun}: {key}", shard[key], 2)
    return facts


def _known(noun: str, keys: Iterable[str], accepted: tuple[str, ...]) -> None:
    for key in keys:
        named(f"key of {noun}", key, accepted)
