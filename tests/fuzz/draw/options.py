"""Targets and options of the passes, given to the lowering or asked for by annotations of the kernel itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.fuzz.description import Allocate, Kernel, Schedule, Tensor, inputs, statements, unused
from tests.fuzz.draw.draft import SMALL_FLOATS
from tests.fuzz.draw.grids import Drawing
from tests.fuzz.meaning import INTEGERS
from tests.fuzz.traits import computes_bytes
from ttexplore.ops.block_float import GROUP
from ttexplore.target import TARGETS

_BLOCK_FLOAT = {"dtype": "bfp8_b"}
CORE_RANGES = ([((0, 0), (1, 1))], [((1, 1), (2, 1)), ((4, 3), (5, 4))], [((0, 0), (0, 0)), ((2, 2), (2, 4))])
_ORDERS = ("row_major", "column_major", "block_linear(2)", "z_order")


def _work_lists(drawing: Drawing, kernel: Kernel) -> dict[tuple[int, int], list[int]]:
    """Every item of the grid on one of up to three cores, in any order."""
    count = math.prod(map(kernel.number, kernel.grid))
    items, cores = drawing.some(range(count), count), drawing.number(1, min(3, count))
    return {(n, n): items[n::cores] for n in range(cores)}


def _layouts(drawing: Drawing, kernel: Kernel) -> dict[str, Any]:
    """Some of the tensors in L1, interleaved or in shards, or in shards over the banks of DRAM, or row-major, or in
    tiles of Bfp8_b."""
    kinds = ("height", "width", "block")
    places = (
        "L1",
        *({"memory": "L1", "shard": one} for one in kinds),
        *({"memory": "DRAM", "shard": one} for one in kinds[:2]),
        {"page": "row"},
        {"page": "row"},
        {"page": "row", "through": "runs"},
    )
    return {
        tensor.name: drawing.one([*places, *([_BLOCK_FLOAT] * 2 if _may_share_exponents(kernel, tensor) else [])])
        for tensor in drawing.some(kernel.tensors, drawing.number(1, min(2, len(kernel.tensors))))
    }


def _may_share_exponents(kernel: Kernel, tensor: Tensor) -> bool:
    """Whether a tensor may be Bfp8_b: numbers, and if it is an output, rows of whole groups."""
    whole_groups = all(one.shape(tensor)[-1] % GROUP == 0 for one in (kernel, kernel.later()))
    shares = tensor.dtype not in (*INTEGERS, *SMALL_FLOATS)
    return shares and (tensor in inputs(kernel) or whole_groups)


# Every option of the pipeline and values that it takes for a kernel; test_fuzz holds this against the passes.
OPTIONS: dict[str, Callable[[Drawing, Kernel], Any]] = {
    "policy": lambda drawing, _: drawing.one(
        ["contiguous", "strided", "rectangular", "balanced", "block_linear(2)", "z_order"]
    ),
    "order": lambda drawing, _: drawing.one(_ORDERS),
    "cores": lambda drawing, _: (drawing.number(1, 3), drawing.number(1, 3)),
    "core_offset": lambda drawing, _: (drawing.number(0, 3), drawing.number(0, 3)),
    "core_ranges": lambda drawing, _: drawing.one(CORE_RANGES),
    "work_lists": _work_lists,
    "multicast": lambda drawing, _: drawing.one(["all", "all", "auto", "off"]),
    "loaded_by": lambda drawing, _: drawing.one(["auto", "both", "both", "reader"]),
    "partials": lambda drawing, _: drawing.one(["noc", "auto", "dram"]),
    "stages": lambda drawing, _: drawing.number(1, 3),
    "accumulate": lambda drawing, _: drawing.one(["reload", "l1"]),
    "eltwise": lambda drawing, _: drawing.one(["auto", "fpu", "sfpu"]),
    "sfpu": lambda drawing, _: drawing.one(["exact", "fast", {"exp": "fast"}, {"div": "fast"}]),
    "accumulate_dtype": lambda drawing, _: drawing.one(["auto", "float32", "bfloat16"]),
    "dst_full_sync": lambda drawing, _: drawing.chance(2),
    "epilogue": lambda drawing, _: drawing.one(["fused", "separate"]),
    "subblock": lambda _, __: (1, 1),
    # `shards` draws these two together with layouts.
    "mode": lambda _, __: "global",
    "match": lambda _, __: None,
    # These name circular buffers and products; the corpus has them with other values.
    "cb_depth": lambda _, __: {},
    "chunk_k_tiles": lambda _, __: None,
    "qk_chunk_tiles": lambda _, __: None,
    "layouts": _layouts,
    "rectangle": lambda _, __: (3, 3),
    "stride": lambda drawing, _: drawing.number(1, 2),
    "math_fidelity": lambda drawing, _: drawing.one(["HiFi4", "HiFi3", "HiFi2", "LoFi"]),
}
# Options that say the same thing: where one is given, the others are not.
EXCLUSIVE = (
    ("policy", "work_lists"),
    ("order", "work_lists"),
    ("core_ranges", "cores"),
    ("core_ranges", "core_offset"),
    ("core_ranges", "work_lists"),
    ("cores", "work_lists"),
    ("core_offset", "work_lists"),
)
# What decides where work goes and tensors lie.
_PLACES = ("policy", "order", "cores", "core_offset", "core_ranges", "work_lists", "mode", "match", "layouts")


def scheduled(drawing: Drawing, kernel: Kernel, *, shards: bool) -> tuple[Kernel, Schedule]:
    """The kernel with annotations, a target, and a value for some of the options."""
    options: dict[str, Any] = _shards(drawing, kernel) if shards else {}
    for name, values in OPTIONS.items():
        excluded = any(name in pair and options.keys() & set(pair) for pair in EXCLUSIVE)
        excluded = excluded or (shards and name in _PLACES) or (name == "work_lists" and bool(kernel.sizes))
        if not excluded and drawing.chance(4):
            options[name] = values(drawing, kernel)
    if options.get("policy") in ("block_linear(2)", "z_order"):
        options.pop("order", None)
    if options.get("policy") == "balanced" and kernel.sizes:
        options.pop("policy")
    # These two belong to one policy each.
    if options.get("policy") != "rectangular":
        options.pop("rectangle", None)
    if options.get("policy") != "strided":
        options.pop("stride", None)
    # Rectangles of blocks, and shards in blocks, want one rectangle of cores; a stride wants as many cores.
    blocks = any(isinstance(one, dict) and one.get("shard") == "block" for one in options.get("layouts", {}).values())
    if (options.get("policy") == "rectangular" or blocks) and len(options.get("core_ranges", "1")) > 1:
        options.pop("core_ranges")
    if options.get("stride", 1) > math.prod(options.get("cores", (2, 1))):
        options.pop("stride")
    # Integers need a DST of 32 bits.
    whole = any(isinstance(one, Allocate) and one.dtype == "int32" for one in statements(kernel.body))
    if whole or computes_bytes(kernel):
        options.pop("accumulate_dtype", None)
    target = drawing.one(sorted(TARGETS, key=lambda name: name != "wormhole_n150"))
    if drawing.chance(3):
        options, lines = _annotated(drawing, options)
        kernel = replace(kernel, annotations=lines)
    return kernel, Schedule(target, options, few_buffers=drawing.chance(3))


def _shards(drawing: Drawing, kernel: Kernel) -> dict[str, Any]:
    """Some of the tensors in shards of the same cores, and the work on the shards of one of them."""
    names = [one.name for one in kernel.tensors if len(one.shape) == 2 and one not in unused(kernel)]
    held = [name for name in names if drawing.chance(2)] or names[-1:]
    if not held:
        return {}
    options: dict[str, Any] = {"cores": (drawing.number(1, 3), 1)}
    options["layouts"] = {name: {"shard": "height"} for name in held}
    options |= {"policy": "match_shard", "match": drawing.one(held)} if drawing.chance(2) else {}
    return options | ({"mode": "local_shard"} if drawing.chance(2) else {})


def _annotated(drawing: Drawing, options: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Options without those that annotations can ask for, and the lines that ask for them."""
    rest = dict(options)
    lines: list[str] = []
    asked: dict[str, Any] = {}
    if "match" not in rest:
        asked |= {name: rest.pop(name) for name in ("policy", "order") if name in rest}
        if "rectangle" in rest:
            columns, rows = rest.pop("rectangle")
            asked["rect"] = (0, 0, rows, columns)
        if "stride" in rest:
            asked["stride"] = (0, rest.pop("stride"))
    if asked:
        lines.append(f"T.annotate_tt_schedule({', '.join(f'{name}={value!r}' for name, value in asked.items())})")
    for name, place in rest.pop("layouts", {}).items():
        keys = {"memory": place} if isinstance(place, str) else place
        if keys.get("shard") == "height" and keys.get("memory", "L1") == "L1" and drawing.chance(2):
            lines.append(f'T.annotate_tt_sharding({{{name}: T.TTShard(axis=0, placement="L1")}})')
        else:
            lines.append(f"T.annotate_tt_layout({name}, {', '.join(f'{key}={one!r}' for key, one in keys.items())})")
    return rest, tuple(lines)
