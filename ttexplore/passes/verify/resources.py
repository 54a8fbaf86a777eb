"""Check that the plan fits the chip, is consistent, and matches the kernels.

All cores have the same circular buffers, and no core writes to the L1 of another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ttexplore.analysis.core_resources import check_l1, tensors_in_l1
from ttexplore.control import look_around
from ttexplore.errors import VerifyError
from ttexplore.ir.kernel import Kernel, kernel_name
from ttexplore.ir.program import TirProgram
from ttexplore.plan import BLOCK_FLOAT, DATA_FORMATS, FORMAT_OF_DTYPE, CircularBuffer, Partition, Plan
from ttexplore.target import Target


def check_plan(program: TirProgram, target: Target) -> None:
    """Check the plan alone. Raises VerifyError, or ResourceError for L1."""
    plan = program.plan
    if plan.buffers:
        check_l1(plan.buffers, target, tensors_in_l1(program), decided=bool(plan.signature))
        _buffers(plan, target)
    compute = plan.compute
    if compute is not None:
        tiles = target.dst_tiles(compute.fp32_dest_acc_en, compute.dst_full_sync_en)
        if compute.dst_tiles != tiles:
            raise VerifyError(
                "V044",
                f"the plan says that DST holds {compute.dst_tiles} tiles; {target.name} holds {tiles} in this mode",
                hint="use the number of the target",
            )
    _accessors(plan)


def _buffers(plan: Plan, target: Target) -> None:
    indices: dict[int, CircularBuffer] = {}
    for buffer in plan.buffers:
        if buffer.index is None:
            continue
        if not 0 <= buffer.index < target.circular_buffers:
            raise VerifyError(
                "V044",
                f"{buffer.name} has the number {buffer.index}; {target.name} has {target.circular_buffers} circular "
                "buffers",
                hint=f"use a number from 0 to {target.circular_buffers - 1}",
                span=buffer.origin,
            )
        first_buffer = indices.setdefault(buffer.index, buffer)
        if first_buffer is not buffer and _memory(buffer) != _memory(first_buffer):
            raise VerifyError(
                "V044",
                f"{first_buffer.name} and {buffer.name} both have the number {buffer.index}",
                hint="give each circular buffer its own number, unless one kernel fills both, one empties "
                "both, and they have the same pages",
                span=buffer.origin,
            )


def _memory(buffer: CircularBuffer) -> tuple[object, ...]:
    """What buffers have in common that may share a number; :func:`check_protocol` and
    :func:`check_handshake` check that their blocks do."""
    ways = (("compute", "compute"), ("compute", "writer"), ("reader", "compute"))
    if (buffer.producer, buffer.consumer) not in ways or buffer.shard_of:
        return (buffer.name,)
    pages = buffer.block_pages, buffer.stages, buffer.row_tiles
    return buffer.producer, buffer.consumer, buffer.data_format, buffer.unpack_to_dest, *pages


def _accessors(plan: Plan) -> None:
    for accessor in plan.accessors:
        layout = plan.layout(accessor.tensor)
        expected = DATA_FORMATS[layout.data_format].tile_bytes
        if layout.page == "row":
            expected = layout.shape[-1] * layout.element_bytes
        if accessor.page_bytes != expected:
            raise VerifyError(
                "V044",
                f"a page of {accessor.tensor} is {accessor.page_bytes} bytes in the plan; a {layout.page} of "
                f"{layout.data_format} is {expected}",
                hint="use the page size of the format",
            )
        stride = 1
        for extent, page_stride in zip(reversed(accessor.tile_grid), reversed(accessor.page_strides), strict=True):
            if page_stride != stride:
                raise VerifyError(
                    "V044",
                    f"{accessor.tensor} is a grid of {accessor.tile_grid} tiles; the page strides in the plan are "
                    f"{accessor.page_strides}",
                    hint=f"use a stride of {stride} pages for the axis of {extent} tiles",
                )
            stride *= extent
        if accessor.pages != stride:
            raise VerifyError(
                "V044",
                f"{accessor.tensor} has {accessor.pages} pages in the plan; {accessor.tile_grid} tiles are {stride}",
                hint="count one page for each tile",
            )


def check_partition(partition: Partition, target: Target) -> None:
    """Every work item is done once, by a core that exists and has all arguments. Raises VerifyError."""
    columns, rows = target.compute_grid
    cores = set[tuple[int, int]]()
    for core in partition.cores:
        if not (0 <= core.x < columns and 0 <= core.y < rows):
            raise VerifyError(
                "V041",
                f"core ({core.x}, {core.y}) has work; {target.name} has {columns}x{rows} cores",
                hint="use cores of the grid",
            )
        if (core.x, core.y) in cores:
            raise VerifyError(
                "V040",
                f"core ({core.x}, {core.y}) has two entries in the partition",
                hint="merge them: each core has one entry with all its items",
            )
        cores.add((core.x, core.y))
        values = {*core.values, *(("work_items",) if partition.form == "list" else ())}
        if missing := [name for name in partition.arguments if name not in values]:
            raise VerifyError(
                "V042",
                f"core ({core.x}, {core.y}) has no {missing[0]}, which the kernels read",
                hint=f"give every core {', '.join(partition.arguments)}",
            )
    done, strange = bytearray(partition.work_items), set[int]()
    for core in partition.cores:
        look_around()
        again = _mark(partition.items_of(core), done, strange)
        if again is not None:
            first_core = next(work for work in partition.cores if again in partition.items_of(work))
            raise VerifyError(
                "V040",
                f"work item {again} is done by core ({first_core.x}, {first_core.y}) and by core ({core.x}, {core.y})",
                hint="assign each item to one core",
            )
    missing = done.find(0)
    if missing >= 0 or strange:
        wrong = missing if missing >= 0 else max(strange)
        fault = "is done by no core" if missing >= 0 else "does not exist"
        raise VerifyError(
            "V040",
            f"work item {wrong} {fault}: the cores do {done.count(1) + len(strange)} items of {partition.work_items}",
            hint="choose the starts and counts of the cores so that they cover each item once",
        )


def _mark(items: Sequence[int], done: bytearray, strange: set[int]) -> int | None:
    """Mark the items of a core as done, or add them to `strange` where they do not exist; one that was done before, if
    there is any."""
    if isinstance(items, range) and items and 0 <= items[0] <= items[-1] < len(done):
        at = slice(items.start, items.stop, items.step)
        first = done[at].find(1)
        done[at] = b"\1" * len(items)
        return items[first] if first >= 0 else None
    for item in items:
        exists = 0 <= item < len(done)
        if done[item] if exists else item in strange:
            return item
        if exists:
            done[item] = 1
        else:
            strange.add(item)
    return None


def check_formats(kernels: Mapping[str, Kernel], plan: Plan) -> None:
    """The kernels use each circular buffer in the data format of the plan. Raises VerifyError."""
    formats = {buffer.name: buffer for buffer in plan.buffers}
    for role, kernel in kernels.items():
        for name, buffer in kernel.buffers.items():
            # In the IR, a block float has the dtype that can hold its numbers.
            if name in formats and not _holds(formats[name].data_format, buffer.dtype):
                raise VerifyError(
                    "V032",
                    f"{kernel_name(role)} holds {buffer.dtype} in {name}; the plan says {formats[name].data_format}",
                    hint="use the same format in both: the page size follows from it",
                    span=buffer.place.span or formats[name].origin,
                )


def _holds(data_format: str, dtype: str) -> bool:
    if data_format == BLOCK_FLOAT:
        return dtype == DATA_FORMATS[data_format].dtype
    return data_format == FORMAT_OF_DTYPE.get(dtype)


def check_arguments(kernels: Mapping[str, Kernel], plan: Plan) -> None:
    """Each kernel gets exactly the arguments that it reads, in the order in which it reads them."""
    for role, kernel in kernels.items():
        if plan.partition is not None:
            for name in kernel.core_values:
                for core in plan.partition.cores:
                    if name not in core.values and not (name == "work_items" and len(core.listed) == core.items):
                        raise VerifyError(
                            "V042",
                            f"{kernel_name(role)} reads the core value {name}, "
                            f"which core ({core.x}, {core.y}) does not have",
                            hint="give it to every core in the partition",
                        )
        if not plan.signature:
            continue
        signature = next(
            (kernel_signature for kernel_signature in plan.signature if kernel_signature.kernel == role), None
        )
        if signature is None:
            raise VerifyError("V042", f"{kernel_name(role)} has no signature", hint="give every kernel a signature")
        # A shard that is a circular buffer needs no address.
        in_place = {buffer.shard_of for buffer in plan.buffers}
        tensors = tuple(name for name in kernel.tensors if name not in in_place)
        addresses = [argument.of for argument in signature.common_runtime if argument.source == "tensor_address"]
        words = [argument.of for argument in signature.compile_time if argument.source == "accessor"]
        values = [argument.value_of for argument in signature.runtime if argument.value_of]
        for subject, listed, read in (
            ("the accessors", words, tensors), ("the addresses", addresses, tensors),
            ("the core values", values, tuple(dict.fromkeys(kernel.core_values))),
        ):  # fmt: skip
            if missing := [name for name in read if name not in listed]:
                raise VerifyError(
                    "V042",
                    f"{kernel_name(role)} reads {missing[0]}, "
                    f"which is not among {subject} of its signature ({', '.join(listed)})",
                    hint="add it to the signature",
                )
            if strange := [name for name in listed if name not in read]:
                raise VerifyError(
                    "V042",
                    f"{subject} of {kernel_name(role)} include {strange[0]}, which it does not read",
                    hint="remove it",
                )
            if len(set(listed)) != len(listed):
                raise VerifyError(
                    "V042",
                    f"{subject} of {kernel_name(role)} have a duplicate: {', '.join(listed)}",
                    hint="list each once",
                )
        if words != addresses:
            raise VerifyError(
                "V042",
                f"{kernel_name(role)} gets the accessors of {', '.join(words)} and the addresses of "
                f"{', '.join(addresses)}",
                hint="use the same order for both",
            )
        if any(argument.source == "core_list" for argument in signature.runtime[:-1]):
            raise VerifyError(
                "V042",
                f"{kernel_name(role)} has arguments after its list of work items, whose length differs by core",
                hint="put the list last",
            )
