"""Annotations of a kernel's schedule and of its tensors' layouts: checked here, applied by the passes.

Annotations are written inside the kernel (``T.annotate_tt_schedule(policy="strided")``), above it as decorators, or as
function calls on it (``annotate_tt_layout(kernel, {...})``). Each sets an option of a pass; options passed to
``explore`` take precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ttexplore.errors import TTExploreError, UsageError, shown, unknown
from ttexplore.given import named, plain, wholes
from ttexplore.ir.adapter import is_buffer
from ttexplore.language.guard.names import CURRENT
from ttexplore.language.tracer.builder import Annotation, current
from ttexplore.language.tracer.containers import is_mapping
from ttexplore.language.tracer.spans import caller_span
from ttexplore.layout_request import layout_request
from ttexplore.options import parse_options
from ttexplore.record import Span

# Keys that are options of the same names.
_OPTION_KEYS = (
    "chunk_k_tiles", "qk_chunk_tiles", "stages", "cb_depth", "cores", "core_offset", "core_ranges", "multicast",
    "loaded_by", "partials",
)  # fmt: skip
_SCHEDULE_KEYS = ("policy", "order", "rect", "stride", *_OPTION_KEYS)


# Schedules


def _schedule(schedule: Mapping[object, object], span: Span | None) -> list[Annotation]:
    for key in schedule:
        named("key of the schedule", key, _SCHEDULE_KEYS)
    options: dict[str, object] = {}
    policy, order = plain(schedule.get("policy")), plain(schedule.get("order"))
    if policy is not None:
        options["policy"] = "rectangular" if policy == "rect" else policy
    if order == "match_shard":
        options["policy"] = "match_shard"
    elif order is not None:
        options["order"] = order
    if (rect := schedule.get("rect")) is not None:
        first_y, first_x, rows, columns = wholes("rect", rect, 4)
        if (first_y, first_x) != (0, 0):
            raise UsageError(
                "U015",
                f"rect={(first_y, first_x, rows, columns)} leaves out the blocks before ({first_x}, {first_y})",
                hint="start at (0, 0): rect=(0, 0, rows, columns) is the rectangle of each core",
            )
        options |= {"policy": options.get("policy", "rectangular"), "rectangle": (columns, rows)}
    if (stride := schedule.get("stride")) is not None:
        first, step = wholes("stride", stride, 2)
        if first != 0:
            raise UsageError(
                "U015",
                f"stride={(first, step)} leaves out the first {first} work items",
                hint="start at 0: stride=(0, step) distributes the items over `step` cores",
            )
        options |= {"policy": options.get("policy", "strided"), "stride": step}
    options |= {key: schedule[key] for key in _OPTION_KEYS if schedule.get(key) is not None}
    return [Annotation(option, value, span=span) for option, value in parse_options(options).items()]


# The three annotations


def annotate_tt_schedule(*arguments: object, **values: object) -> Any:
    """Set how work items are distributed over the cores. Use it inside a kernel, as a decorator, or on a kernel with a
    dictionary.

    `policy`: contiguous, strided, rectangular (also ``rect``), balanced, block_linear, z_order, match_shard. `order`:
    row_major, column_major, z_order, block_linear(k), match_shard. `rect`: (0, 0, rows, columns), the rectangle of work
    items per core; `stride`: (0, number of cores over which the items are distributed); `chunk_k_tiles`: tiles along
    the summed dimension that are in flight at once; `qk_chunk_tiles`: tiles of the sequence of K and V that are;
    `stages`, `cb_depth`, `cores`, `core_offset`, `core_ranges`, `multicast`, `loaded_by`, `partials`: as the options.
    Raises UsageError for other keys and values.
    """
    return _annotate("annotate_tt_schedule", arguments, values, _schedule)


def annotate_tt_sharding(*arguments: object, **values: object) -> Any:
    """Set how tensors are sharded over cores: ``{A: T.TTShard(axis=0, placement="L1")}``.

    Use it inside a kernel, as a decorator (tensors given by name), or on a kernel. Raises UsageError for a name that is
    not a tensor of the kernel.
    """
    return _annotate("annotate_tt_sharding", arguments, values, _layouts)


def annotate_tt_layout(*arguments: object, **values: object) -> Any:
    """Set the memory and layout of tensors: ``{A: {"memory": "L1", "layout": "sharded"}}`` or
    ``(A, memory="L1", ...)``.

    Keys: memory (DRAM, L1), layout (interleaved, sharded), dtype (``"bfp8_b"`` for tiles of 1088 bytes in which 16
    numbers share an exponent; otherwise the tensor's own), tile_shape ([32, 32]), shard (height, width, block), grid,
    order (row_major, column_major, match_shard), nd_shard, page (tile, row), through (tilize, runs) for row pages. Use
    it inside a kernel, as a decorator, or on a kernel. Raises UsageError for other keys and values, Unsupported for a
    halo.
    """
    if arguments and (is_buffer(arguments[0]) or (isinstance(arguments[0], str) and values)):
        arguments, values = ({arguments[0]: dict(values)}, *arguments[1:]), {}
    return _annotate("annotate_tt_layout", arguments, values, _layouts)


def _layouts(layouts: Mapping[object, object], span: Span | None) -> list[Annotation]:
    requests: list[Annotation] = []
    for tensor, asked in layouts.items():
        name = str(tensor.name) if is_buffer(tensor) else tensor
        if not isinstance(name, str):
            raise UsageError(
                "U003", f"{shown(tensor)} is not a tensor", hint="pass a tensor of the kernel, or its name"
            )
        request = layout_request(name, asked, span)
        requests.append(Annotation("layouts", request, name, span))
        if request.order == "match_shard":
            requests += [Annotation("policy", "match_shard", span=span), Annotation("match", name, span=span)]
    return requests


def _annotate(
    callee: str, arguments: tuple[object, ...], values: dict[str, object],
    make: Callable[[Mapping[object, object], Span | None], list[Annotation]],
) -> object:  # fmt: skip
    kernel: object = None
    if arguments and not is_mapping(arguments[0]):
        kernel, arguments = arguments[0], arguments[1:]
    mapping: dict[object, object] = {}
    for argument in arguments:
        if not is_mapping(argument):
            raise UsageError(
                "U015", f"{callee} takes a dictionary, not {shown(argument)}", hint=f"write {callee}({{name: ...}})"
            )
        mapping |= dict(argument)
    mapping |= values
    if CURRENT.get() is not None and kernel is None:
        builder = current(f"T.{callee}")
        span = caller_span(builder.files) or builder.span
        try:
            builder.annotations += make(mapping, span)
        except TTExploreError as error:
            raise error.at(span) from None
        return None
    requests = make(mapping, None)
    if kernel is not None:
        return annotated(kernel, requests)

    def decorate(later: object) -> object:
        return annotated(later, requests)

    return decorate


def annotated(kernel: object, annotations: Iterable[Annotation]) -> object:
    """Return the kernel with more annotations. Raises UsageError unless `kernel` has been traced."""
    add = getattr(kernel, "annotated", None)
    if not callable(add):
        raise UsageError(
            "U015",
            f"{shown(kernel)} cannot be annotated from outside",
            hint="annotate a T.prim_func, or write the annotation inside the kernel",
        )
    return add(tuple(annotations))


def check_tensors(annotations: Iterable[Annotation], tensors: Iterable[str]) -> None:
    """Check that each annotation of a tensor names a parameter of the kernel. Raises UsageError at the annotation's
    line."""
    names = tuple(tensors)
    for annotation in annotations:
        if annotation.tensor and annotation.tensor not in names:
            raise unknown("tensor", annotation.tensor, names).at(annotation.span)
