"""The runner's input: a program as a text of declarations, and one file per input tensor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ttexplore.backends.base import Array, on_host, ordered_layouts
from ttexplore.backends.emulator.compiler import KernelSource
from ttexplore.backends.emulator.tiles import from_pages, to_pages
from ttexplore.errors import BackendError
from ttexplore.ops.functions import COPY_ELEMENT
from ttexplore.plan import (
    BLOCK_FLOAT,
    KERNEL_ROLES,
    NOC_OF_ROLE,
    Argument,
    CircularBuffer,
    ComputeConfig,
    KernelRole,
    Partition,
    Plan,
    TensorLayout,
)
from ttexplore.target import get_target

# Any distinct numbers work: the emulator identifies a tensor by its address.
FIRST_TENSOR_ADDRESS = 0x2000_0000
TENSOR_ADDRESS_STEP = 0x0100_0000

# Flag word of an accessor to a tensor interleaved over the DRAM banks (metalium.md 2.3).
INTERLEAVED_DRAM = 2

# The runner's numbers for formats.
FORMATS = {"Float16_b": 0, "Float32": 1, "Int32": 2, BLOCK_FLOAT: 3}
FIDELITIES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}

_TOLD_COPY = COPY_ELEMENT.replace(" {\n", " { emulator_copied(source, target, bytes);\n", 1)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The values of arguments, as defined by `plan.Argument.source`."""

    plan: Plan

    def words(
        self, arguments: tuple[Argument, ...], core_values: dict[str, int], listed: tuple[int, ...] = ()
    ) -> list[int]:
        """The 32-bit words of `arguments`; an accessor takes two, a list one per item.

        Raises BackendError for an argument without a value.
        """
        return [word for argument in arguments for word in self._words_of(argument, core_values, listed)]

    def names(self, arguments: tuple[Argument, ...]) -> list[tuple[str, int]]:
        """The names and values of the constants among compile-time arguments."""
        return [(a.name, self._words_of(a, {}, ())[0]) for a in arguments if a.source == "constant"]

    def _words_of(self, argument: Argument, core_values: dict[str, int], listed: tuple[int, ...]) -> list[int]:
        match argument.source:
            case "tensor_address":
                return [tensor_address(self.plan, argument.of)]
            case "accessor":
                return [INTERLEAVED_DRAM, self.plan.accessor(argument.of).page_bytes]
            case "core_value":
                if argument.of not in core_values:
                    raise BackendError(
                        "B005",
                        f"argument {argument.name} needs the core value {argument.of!r}, which the partition lacks",
                        hint=f"use a core value of the partition: {', '.join(core_values) or 'there are none'}",
                    )
                return [core_values[argument.of] & 0xFFFF_FFFF]
            case "noc_x" | "noc_y":
                # The emulator's coordinates on the NoC are the logical ones.
                return [core_values[argument.value_of]]
            case "core_list":
                return list(listed)
            case "constant":
                if argument.value is None:
                    raise BackendError(
                        "B005", f"argument {argument.name} is a constant without a value", hint="lower the kernel again"
                    )
                return [argument.value & 0xFFFF_FFFF]
            case _:  # a plan from a file can contain anything
                raise BackendError(
                    "B005",
                    f"argument {argument.name} has the unknown source {argument.source!r}",
                    hint="lower the kernel again",
                )


def tensor_address(plan: Plan, name: str) -> int:
    """The address with which kernels identify the tensor."""
    names = [layout.name for layout in ordered_layouts(plan)]
    return FIRST_TENSOR_ADDRESS + names.index(name) * TENSOR_ADDRESS_STEP


def complete(plan: Plan) -> tuple[Partition, ComputeConfig]:
    """The parts of the plan that early steps lack. Raises BackendError if one is missing."""
    if plan.partition is None or plan.compute is None or not plan.signature:
        raise BackendError(
            "B005",
            "the plan is incomplete: partition, compute configuration or signature is missing",
            hint="run all passes first",
        )
    return plan.partition, plan.compute


def kernel_sources(texts: dict[str, str], plan: Plan, *, tell_copies: bool = False) -> list[KernelSource]:
    """The sources to compile: each text with its compile-time arguments as macros. With `tell_copies`, the function
    that copies elements tells the emulator what it copies; no line changes its number."""
    _, compute = complete(plan)
    sources: list[KernelSource] = []
    for role in KERNEL_ROLES:
        if role not in texts:
            raise BackendError(
                "B005", f"the program has no {role} kernel", hint="pass texts for reader, compute and writer"
            )
        arguments = plan.kernel_signature(role).compile_time
        values = Arguments(plan)
        words = ",".join(f"{word}u" for word in values.words(arguments, {}))
        macros = [
            f"NOC_INDEX={NOC_OF_ROLE[role]}",
            f"KERNEL_COMPILE_TIME_ARGS={words}",
            f"EMULATOR_DST_ACCUM_MODE={str(compute.fp32_dest_acc_en).lower()}",
            f"EMULATOR_APPROX={str(compute.math_approx_mode).lower()}",
        ]
        names = values.names(arguments)
        if names:
            entries = ",".join(f'{{"{name}",{value}u}}' for name, value in names)
            macros.append(f"KERNEL_COMPILE_TIME_ARG_MAP={entries}")
        text = texts[role].replace(COPY_ELEMENT, _TOLD_COPY) if tell_copies else texts[role]
        sources.append(KernelSource(role, text, tuple(macros)))
    return sources


def write_job(
    folder: Path, plan: Plan, inputs: dict[str, Array], kernels: dict[KernelRole, Path], event_limit: int, repeats: int,
    *, exact: bool, event_core: int = 0, move_limit: int = 0,
) -> None:  # fmt: skip
    """Write `job.txt` and the input files to `folder`."""
    partition, compute = complete(plan)
    fidelity = FIDELITIES[compute.math_fidelity]
    wormhole = get_target(plan.target).arch == "wormhole_b0"
    lines = [
        f"compute {int(compute.fp32_dest_acc_en)} {compute.dst_tiles} {fidelity} {int(exact)} {int(wormhole)}",
        f"events {event_limit} {event_core} {move_limit}",
        f"repeat {repeats}",
    ]
    for index, layout in enumerate(ordered_layouts(plan)):
        accessor = plan.accessor(layout.name)
        input_file = "-"
        if layout.name in inputs:
            input_file = f"input{index}.bin"
            pages = to_pages(inputs[layout.name], layout)
            _check_pages(layout, pages.shape[0], accessor.pages, pages.itemsize * pages.shape[1], accessor.page_bytes)
            # Unlike tofile, this reports why a file cannot be written.
            (folder / input_file).write_bytes(np.ascontiguousarray(pages).view(np.uint8).data)
        written = output_file(index) if layout.role != "input" else "-"
        lines.append(
            f"tensor {layout.name} {tensor_address(plan, layout.name)} {accessor.page_bytes} {accessor.pages} "
            f"{int(layout.role != 'input')} {int(layout.data_format == 'Int32')} {input_file} {written}"
        )
    for buffer in plan.on_chip.buffers:
        if buffer.index is None:
            raise BackendError("B005", f"circular buffer {buffer.name} has no index", hint="run all passes first")
        if buffer.data_format not in FORMATS:
            raise BackendError(
                "B005",
                f"circular buffer {buffer.name} has the format {buffer.data_format}, which the emulator does not model",
                hint=f"use one of {', '.join(FORMATS)}",
            )
        lines.append(
            f"buffer {buffer.index} {buffer.pages} {buffer.page_bytes} {FORMATS[buffer.data_format]} "
            f"{int(buffer.unpack_to_dest)} {int(_lies_there(plan, buffer))} {buffer.name.replace(' ', '_')}"
        )
    values = Arguments(plan)
    for number, role in enumerate(KERNEL_ROLES):
        lines.append(f"kernel {number} {kernels[role]}")
        lines.append(_counted(f"common {number}", values.words(plan.kernel_signature(role).common_runtime, {})))
    for core in partition.cores:
        lines.append(f"core {core.x} {core.y}")
        lines += [_shard_line(plan, buffer, (core.x, core.y)) for buffer in plan.buffers if buffer.shard_of]
        for number, role in enumerate(KERNEL_ROLES):
            words = values.words(plan.kernel_signature(role).runtime, core.values, core.listed)
            lines.append(_counted(f"arguments {number}", words))
    (folder / "job.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _shard_line(plan: Plan, buffer: CircularBuffer, core: tuple[int, int]) -> str:
    """The declaration of a shard: buffer, tensor, whether it is an output, and its pages, -1 for none."""
    tensor = [layout.name for layout in ordered_layouts(plan)].index(buffer.shard_of)
    pages = [-1 if page is None else page for page in plan.layout(buffer.shard_of).shard_pages(core)]
    return _counted(f"shard {buffer.index} {tensor} {int(not _lies_there(plan, buffer))}", pages)


def _lies_there(plan: Plan, buffer: CircularBuffer) -> bool:
    """Whether the buffer is a shard that contains its tiles before the program starts."""
    return bool(buffer.shard_of) and plan.layout(buffer.shard_of).role == "input"


def read_outputs(folder: Path, plan: Plan) -> tuple[Array, ...]:
    """The output and inout tensors that the runner wrote, in parameter order and logical shape."""
    outputs: list[Array] = []
    for index, layout in enumerate(ordered_layouts(plan)):
        if layout.role == "input":
            continue
        stored = np.fromfile(folder / output_file(index), dtype=np.uint8)
        outputs.append(on_host(layout, from_pages(stored, layout)))
    return tuple(outputs)


def output_file(index: int) -> str:
    return f"output{index}.bin"


def _counted(head: str, words: list[int]) -> str:
    return " ".join([head, str(len(words)), *map(str, words)])


def _check_pages(
    layout: TensorLayout, pages: int, planned_pages: int, page_bytes: int, planned_page_bytes: int
) -> None:
    if (pages, page_bytes) != (planned_pages, planned_page_bytes):
        raise BackendError(
            "B005",
            f"tensor {layout.name} {layout.shape} has {pages} pages of {page_bytes} bytes, but its accessor has "
            f"{planned_pages} of {planned_page_bytes}",
            hint="correct the accessor: its pages are the 32x32 tiles of the padded tensor, or its rows",
        )
