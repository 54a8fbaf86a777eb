"""The host program in C++, from the plan alone.

Its calls follow the host API of tt-metal 0.81.1. The ttnn wheel has that API's shared libraries but not its headers:
tests/emit/test_host_symbols.py compares the signatures. `run_ttnn.py` does the same in Python, with the same command
line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path

from ttexplore.ops.integers import SMALL_INTEGERS
from ttexplore.ops.small import FLOATS, is_small
from ttexplore.plan import (
    BLOCK_FLOAT,
    TILE_COLUMNS,
    TILE_ROWS,
    Argument,
    CircularBuffer,
    CoreWork,
    KernelSignature,
    Plan,
    TensorLayout,
    chip_buffers,
)

_PROCESSORS = {
    "reader": ("RISCV_1", "NOC_0"),
    "writer": ("RISCV_0", "NOC_1"),
}
_CHIPS = {"wormhole": "WORMHOLE_B0", "blackhole": "BLACKHOLE"}
_CORES_PER_LINE = 8
# The parts of main.cpp whose text does not depend on the plan, by name, in order.
_NAMED = re.split(r"^//// (\w+)\n", Path(__file__).with_name("host_parts.cpp").read_text(encoding="utf-8"), flags=re.M)
_PARTS = dict(zip(_NAMED[1::2], _NAMED[2::2], strict=True))


def emit_host(plan: Plan) -> str:
    """The text of main.cpp. Variables of a tensor end in _tensor or _tiles, so that its name cannot collide."""
    is_needed = {
        "shards": any(layout.sharding for layout in plan.layouts),
        "block_floats": any(layout.data_format == BLOCK_FLOAT for layout in plan.layouts),
        "small": any(is_small(layout.dtype) for layout in _inputs(plan)),
    }
    support = "".join(text for name, text in _PARTS.items() if is_needed.get(name, name != "main"))
    return "\n".join([_head(plan), support, *_run(plan), _PARTS["main"]])


def _head(plan: Plan) -> str:
    inputs = ", ".join(f"{layout.name} {layout.shape}" for layout in _inputs(plan))
    outputs = ", ".join(f"{layout.name} {layout.shape}" for layout in _outputs(plan))
    return f"""// Host program of {plan.kernel} for {plan.target}, written by ttexplore from tt.plan.json.
// It uses the host API of tt-metal 0.81.1.
//
// main [--inputs FILE...] [--out FOLDER]
//   inputs, in order: {inputs or "none"}
//   outputs: {outputs}
// A file holds one tensor, row-major and without a header, as numpy's tofile writes and fromfile reads it:
// float32{_integers(plan)}. Inputs that are not given are random. Outputs are written to FOLDER/<name>.bin;
// FOLDER is the one of this file if not given.{_small(plan)}
//
// CMakeLists.txt, with the SDK installed:
//   cmake_minimum_required(VERSION 3.22)
//   project(main CXX)
//   find_package(TT-Metalium REQUIRED)
//   add_executable(main main.cpp)
//   target_link_libraries(main PRIVATE TT::Metalium)

#include <algorithm>
#include <array>
{_mathematics(plan)}#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tt-metalium/distributed.hpp>
#include <tt-metalium/host_api.hpp>
#include <tt-metalium/tensor_accessor_args.hpp>

using namespace tt::tt_metal;
"""


def _integers(plan: Plan) -> str:
    names = [layout.name for layout in plan.layouts if layout.data_format == "Int32"]
    return f", of {', '.join(names)} int32" if names else ""


def _mathematics(plan: Plan) -> str:
    return "#include <cmath>\n" if _small(plan) else ""


def _small(plan: Plan) -> str:
    names = [f"{layout.name} to {layout.dtype}" for layout in _inputs(plan) if is_small(layout.dtype)]
    return f"\n// Inputs are converted as by a cast: {', '.join(names)}." if names else ""


def _run(plan: Plan) -> list[str]:
    assert plan.partition is not None
    inputs = _inputs(plan)
    chip = _CHIPS[plan.target.partition("_")[0]]
    lines = [
        "void run(const Options& options) {",
        f"    if (options.inputs.size() > {len(inputs)})",
        f'        throw std::runtime_error("{plan.kernel} has {len(inputs)} inputs, more are given");',
        "    auto device = distributed::MeshDevice::create_unit_mesh(0);",
        f"    if (device->arch() != tt::ARCH::{chip})",
        f'        throw std::runtime_error("the program is for {plan.target}, the device is another chip");',
        "    Program program = CreateProgram();",
        "",
    ]
    for layout in plan.layouts:
        lines += _tensor(layout, plan)
    cores = [f"{{{core.x}, {core.y}}}" for core in plan.partition.cores]
    rows = [cores[start : start + _CORES_PER_LINE] for start in range(0, len(cores), _CORES_PER_LINE)]
    lines += [
        "",
        "    const std::vector<CoreCoord> cores = {",
        *(f"        {', '.join(row)}," for row in rows),
        "    };",
        "    const CoreRangeSet all(std::vector<CoreRange>(cores.begin(), cores.end()));",
        "",
    ]
    for sharing in chip_buffers(plan.buffers):
        lines += _circular_buffer(sharing)
    lines += _semaphores(plan)
    lines.append("")
    for signature in plan.signature:
        lines += _kernel(signature, plan)
    lines += [
        "    distributed::MeshWorkload workload;",
        "    workload.add_program(distributed::MeshCoordinateRange(device->shape()), std::move(program));",
        "    distributed::EnqueueMeshWorkload(device->mesh_command_queue(), workload, false);",
        "    distributed::Finish(device->mesh_command_queue());",
        "",
    ]
    for layout in _outputs(plan):
        name = layout.name
        values = f"unpack{_packing(layout)}({name}_tiles, from_device(*device, {name}_tensor))"
        lines.append(f'    save(options, "{name}", {values});')
    return [*lines, "    device->close();", "}", ""]


def _inputs(plan: Plan) -> list[TensorLayout]:
    return [layout for layout in plan.layouts if layout.role != "output"]


def _outputs(plan: Plan) -> list[TensorLayout]:
    return [layout for layout in plan.layouts if layout.role != "input"]


def _tensor(layout: TensorLayout, plan: Plan) -> list[str]:
    name = layout.name
    # A vector is stored as the first row of one row of tiles.
    *batch, rows, columns = (1, *layout.shape)
    values = f"Words({name}_tiles.elements(), UNWRITTEN)"
    if layout.role != "output":
        index = [input_layout.name for input_layout in _inputs(plan)].index(name)
        values = _cast(layout.dtype, f"load(options, {index}, {name}_tiles)")
    integers, by_rows = (str(flag).lower() for flag in (layout.data_format == "Int32", layout.page == "row"))
    shape = f"{prod(batch)}, {rows}, {columns}, {plan.accessor(name).page_bytes}"
    return [
        f"    const Tiles {name}_tiles{{{shape}, {integers}, {by_rows}}};",
        *_place(layout),
        f"    auto {name}_tensor =",
        f"        to_device(*device, {name}_tiles, {name}_place, pack{_packing(layout)}({name}_tiles, {values}));",
    ]


def _cast(dtype: str, values: str) -> str:
    """What the host stores of numbers that are given for a tensor of a kernel dtype."""
    if dtype in FLOATS:
        floats = FLOATS[dtype]
        return f"cast_to_floats({values}, {floats.fraction_bits}, {floats.least_exponent}, {floats.largest}f)"
    if dtype == "bool":
        return f"cast_to_bool({values})"
    return f"cast_to_integers({values}, {', '.join(map(str, SMALL_INTEGERS[dtype]))})" if is_small(dtype) else values


def _packing(layout: TensorLayout) -> str:
    """The suffix of the functions that pack and unpack the tensor."""
    return "_block_floats" if layout.data_format == BLOCK_FLOAT else ""


def _place(layout: TensorLayout) -> list[str]:
    memory = f"BufferType::{layout.memory.upper()}"
    sharding = layout.sharding
    if sharding is None:
        return [f"    const Place {layout.name}_place{{{memory}}};"]
    cores = [f"CoreRange({{{x}, {y}}})" for x, y in sharding.cores]
    if sharding.kind == "block":
        (left, top), (right, bottom) = sharding.cores[0], sharding.cores[-1]
        cores = [f"CoreRange({{{left}, {top}}}, {{{right}, {bottom}}})"]
    rows = [cores[start : start + _CORES_PER_LINE // 2] for start in range(0, len(cores), _CORES_PER_LINE // 2)]
    height, width = sharding.shard_shape
    tile_rows, tile_columns = prod(layout.padded_shape[:-1]) // TILE_ROWS, layout.padded_shape[-1] // TILE_COLUMNS
    order = {"row_major": "ROW_MAJOR", "column_major": "COL_MAJOR"}[sharding.order]
    return [
        f"    const Place {layout.name}_place{{{memory}, shards(",
        f"        TensorMemoryLayout::{sharding.kind.upper()}_SHARDED, {{",
        *(f"            {', '.join(row)}," for row in rows),
        f"        }}, {{{height}, {width}}}, {{{tile_rows}, {tile_columns}}}, ShardOrientation::{order})}};",
    ]


def _circular_buffer(sharing: Sequence[CircularBuffer]) -> list[str]:
    buffer = sharing[0]
    data_format = f"{{{{{buffer.index}, tt::DataFormat::{buffer.data_format}}}}}"
    storage = f", in the shards of {buffer.shard_of}" if buffer.shard_of else ""
    size = f"        .set_page_size({buffer.index}, {buffer.page_bytes})"
    address = f"        .set_globally_allocated_address(*{buffer.shard_of}_tensor->get_backing_buffer())"
    return [
        f"    // {', '.join(sharer.name for sharer in sharing)}: {buffer.producer} -> {buffer.consumer}{storage}",
        f"    CreateCircularBuffer(program, all, CircularBufferConfig({buffer.total_bytes}, {data_format})",
        *([size, address + ");"] if buffer.shard_of else [size + ");"]),
    ]


def _semaphores(plan: Plan) -> list[str]:
    """The semaphores, and what finds the coordinates of a core on the NoC."""
    lines: list[str] = []
    for number, name in plan.semaphores:
        lines += [
            f"    if (CreateSemaphore(program, all, 0) != {number})",
            f'        throw std::runtime_error("the semaphore {name} has another number than {number}");',
        ]
    if lines:
        lines += [
            "    const auto noc_x = [&](size_t x, size_t y) {",
            "        return static_cast<uint32_t>(device->worker_core_from_logical_core({x, y}).x);",
            "    };",
            "    const auto noc_y = [&](size_t x, size_t y) {",
            "        return static_cast<uint32_t>(device->worker_core_from_logical_core({x, y}).y);",
            "    };",
        ]
    return lines


def _word(argument: Argument) -> str:
    match argument.source:
        case "tensor_address":
            return f"static_cast<uint32_t>({argument.of}_tensor->address())"
        case "constant":
            return str(argument.value)
        case source:
            raise ValueError(f"{argument.name}: {source} is not a common argument")


def _runtime_words(signature: KernelSignature, core: CoreWork) -> list[str]:
    words: list[str] = []
    for argument in signature.runtime:
        match argument.source:
            case "core_value":
                words.append(str(core.values[argument.of]))
            case "noc_x" | "noc_y":
                x, y = argument.place(core.values)
                words.append(f"{argument.source}({x}, {y})")
            case "core_list":
                words += map(str, core.listed)
            case source:
                raise ValueError(f"{argument.name}: {source} is not a per-core argument")
    return words


def _list(items: Iterable[str], indent: str) -> str:
    return "".join(f"\n{indent}{item}," for item in items)


def _kernel(signature: KernelSignature, plan: Plan) -> list[str]:
    assert plan.partition is not None
    role = signature.kernel
    lines: list[str] = []
    if signature.compile_time:
        lines.append(f"    std::vector<uint32_t> {role}_compile_args;")
    lines += [
        f"    TensorAccessorArgs(*{argument.of}_tensor).append_to({role}_compile_args);"
        for argument in signature.compile_time
    ]
    handle = f"const auto {role} = " if signature.common_runtime or signature.runtime else ""
    create = f'    {handle}CreateKernel(program, here / "{role}.cpp", all, '
    lines += _compute_kernel(create, plan) if role == "compute" else _data_movement_kernel(create, role)
    if signature.compile_time:
        lines.append(f"        .compile_args = {role}_compile_args,")
    lines.append("    });")
    if signature.common_runtime:
        words = _list(map(_word, signature.common_runtime), " " * 8)
        lines.append(f"    SetCommonRuntimeArgs(program, {role}, {{{words}\n    }});")
    if signature.runtime:
        rows = (f"{{{', '.join(_runtime_words(signature, core))}}}" for core in plan.partition.cores)
        lines += [
            f"    // {', '.join(argument.name for argument in signature.runtime)} of each core",
            f"    SetRuntimeArgs(program, {role}, cores, {{{_list(rows, ' ' * 8)}\n    }});",
        ]
    return [*lines, ""]


def _data_movement_kernel(create: str, role: str) -> list[str]:
    processor, noc = _PROCESSORS[role]
    return [
        f"{create}DataMovementConfig{{",
        f"        .processor = DataMovementProcessor::{processor},",
        f"        .noc = NOC::{noc},",
    ]


def _compute_kernel(create: str, plan: Plan) -> list[str]:
    compute = plan.compute
    assert compute is not None
    exact = [sharing[0] for sharing in chip_buffers(plan.buffers) if sharing[0].unpack_to_dest]
    lines: list[str] = []
    if exact:
        lines = [
            "    std::vector<UnpackToDestMode> unpack_modes(NUM_CIRCULAR_BUFFERS, UnpackToDestMode::Default);",
            *(f"    unpack_modes[{buffer.index}] = UnpackToDestMode::UnpackToDestFp32;" for buffer in exact),
        ]
    return [
        *lines,
        f"{create}ComputeConfig{{",
        f"        .math_fidelity = MathFidelity::{compute.math_fidelity},",
        f"        .fp32_dest_acc_en = {str(compute.fp32_dest_acc_en).lower()},",
        f"        .dst_full_sync_en = {str(compute.dst_full_sync_en).lower()},",
        *(["        .unpack_to_dest_mode = unpack_modes,"] if exact else []),
        f"        .math_approx_mode = {str(compute.math_approx_mode).lower()},",
    ]
