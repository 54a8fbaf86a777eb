"""The host program in C++, from the plan alone.

Its calls follow the classic host API of tt-metal 0.81.1 as the symbols of libtt_metal.so show it. The wheel has no
host headers, so it cannot be compiled from the wheel; `run_ttnn.py` does the same through Python.
"""

from __future__ import annotations

from ttexplore.plan import Argument, KernelSignature, Plan, TensorLayout

_PROCESSORS = {
    "reader": ("RISCV_1", "NOC_0"),
    "writer": ("RISCV_0", "NOC_1"),
}


def emit_host(plan: Plan) -> str:
    """The text of main.cpp."""
    parts = [_head(plan), _tiles(), _main(plan)]
    return "\n".join(parts)


def _head(plan: Plan) -> str:
    return f"""// Host program of {plan.kernel} for {plan.target}, written by ttexplore from tt.plan.json.
// Usage: main [input files of float32, one for each input tensor]; outputs go to <tensor>.bin as float32.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <tt-metalium/distributed.hpp>
#include <tt-metalium/host_api.hpp>
#include <tt-metalium/tensor_accessor_args.hpp>

using namespace tt;
using namespace tt::tt_metal;
"""


def _tiles() -> str:
    return """namespace {

// The bytes of a tensor as tiles of four 16x16 faces; each matrix of `rows` x `columns` is whole tiles.
template <typename Visit>
void for_each_element(size_t matrices, size_t rows, size_t columns, Visit visit) {
    size_t place = 0;
    for (size_t m = 0; m < matrices; ++m)
        for (size_t tr = 0; tr < rows / 32; ++tr)
            for (size_t tc = 0; tc < columns / 32; ++tc)
                for (size_t face = 0; face < 4; ++face)
                    for (size_t r = 0; r < 16; ++r)
                        for (size_t c = 0; c < 16; ++c) {
                            const size_t row = tr * 32 + face / 2 * 16 + r;
                            const size_t column = tc * 32 + face % 2 * 16 + c;
                            visit(place++, (m * rows + row) * columns + column);
                        }
}

std::vector<uint32_t> to_tiles(const std::vector<float>& values, size_t rows, size_t columns, bool wide) {
    std::vector<uint8_t> bytes(values.size() * (wide ? 4 : 2));
    for_each_element(values.size() / (rows * columns), rows, columns, [&](size_t to, size_t from) {
        uint32_t bits;
        std::memcpy(&bits, &values[from], 4);
        if (wide) {
            std::memcpy(&bytes[to * 4], &bits, 4);
        } else {
            const uint16_t half = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
            std::memcpy(&bytes[to * 2], &half, 2);
        }
    });
    std::vector<uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
}

std::vector<float> from_tiles(const std::vector<uint32_t>& words, size_t rows, size_t columns, bool wide) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
    std::vector<float> values(words.size() * (wide ? 1 : 2));
    for_each_element(values.size() / (rows * columns), rows, columns, [&](size_t from, size_t to) {
        uint32_t bits = 0;
        if (wide) {
            std::memcpy(&bits, bytes + from * 4, 4);
        } else {
            uint16_t half;
            std::memcpy(&half, bytes + from * 2, 2);
            bits = static_cast<uint32_t>(half) << 16;
        }
        std::memcpy(&values[to], &bits, 4);
    });
    return values;
}

std::vector<float> load(int argc, char** argv, int index, size_t count) {
    std::vector<float> values(count);
    if (index < argc) {
        std::ifstream(argv[index], std::ios::binary).read(reinterpret_cast<char*>(values.data()), count * 4);
    } else {
        std::mt19937 random(index);
        std::normal_distribution<float> normal;
        for (auto& value : values) value = normal(random);
    }
    return values;
}

}  // namespace
"""


def _main(plan: Plan) -> str:
    lines = [
        "int main(int argc, char** argv) {",
        "    auto device = distributed::MeshDevice::create_unit_mesh(0);",
        "    auto& queue = device->mesh_command_queue();",
        "    Program program = CreateProgram();",
        "",
    ]
    for layout in plan.layouts:
        lines += _tensor(layout, plan)
    assert plan.partition is not None
    lines.append("    std::vector<CoreRange> ranges;")
    lines.append("    const std::vector<CoreCoord> cores = {")
    row: list[str] = []
    for core in plan.partition.cores:
        row.append(f"{{{core.x}, {core.y}}}")
    lines += [f"        {', '.join(row[i : i + 8])}," for i in range(0, len(row), 8)]
    lines += ["    };", "    for (const auto& core : cores) ranges.emplace_back(core, core);"]
    lines += ["    const CoreRangeSet all(ranges);", ""]
    for buffer in plan.buffers:
        lines += [
            f"    // {buffer.name}: {buffer.producer} -> {buffer.consumer}",
            "    CreateCircularBuffer(",
            "        program, all,",
            f"        CircularBufferConfig({buffer.total_bytes}, "
            f"{{{{{buffer.index}, DataFormat::{buffer.data_format}}}}})",
            f"            .set_page_size({buffer.index}, {buffer.page_bytes}));",
        ]
    lines.append("")
    for signature in plan.signature:
        lines += _kernel(signature, plan)
    lines += [
        "    distributed::MeshWorkload workload;",
        "    workload.add_program(distributed::MeshCoordinateRange(device->shape()), std::move(program));",
        "    distributed::EnqueueMeshWorkload(queue, workload, false);",
        "    distributed::Finish(queue);",
        "",
    ]
    for layout in plan.layouts:
        if layout.role == "output":
            lines += _read_back(layout)
    lines += ["    device->close();", "    return 0;", "}", ""]
    return "\n".join(lines)


def _matrix(layout: TensorLayout) -> str:
    return f"{layout.padded_shape[-2]}, {layout.padded_shape[-1]}, {str(layout.data_format == 'Float32').lower()}"


def _elements(layout: TensorLayout) -> int:
    total = 1
    for extent in layout.padded_shape:
        total *= extent
    return total


def _tensor(layout: TensorLayout, plan: Plan) -> list[str]:
    accessor = plan.accessor(layout.name)
    name = f"{layout.name}_tensor"
    lines = [
        f"    auto {name} = distributed::MeshBuffer::create(",
        f"        distributed::ReplicatedBufferConfig{{.size = {accessor.pages * accessor.page_bytes}}},",
        "        distributed::DeviceLocalBufferConfig{",
        f"            .page_size = {accessor.page_bytes}, .buffer_type = BufferType::DRAM}},",
        "        device.get());",
    ]
    if layout.role == "input":
        index = 1 + sum(1 for other in plan.layouts if other.role == "input" and other.position < layout.position)
        values = f"load(argc, argv, {index}, {_elements(layout)})"
        if len(layout.shape) == 1:
            # A vector is the first row of one row of tiles.
            lines += [
                f"    auto {layout.name}_row = load(argc, argv, {index}, {layout.shape[0]});",
                f"    {layout.name}_row.resize({_elements(layout)});",
            ]
            values = f"{layout.name}_row"
        lines += [
            f"    auto {layout.name}_words = to_tiles({values}, {_matrix(layout)});",
            f"    distributed::EnqueueWriteMeshBuffer(queue, {name}, {layout.name}_words, false);",
        ]
    return [*lines, ""]


def _words(arguments: tuple[Argument, ...]) -> str:
    made: list[str] = []
    for argument in arguments:
        match argument.source:
            case "tensor_address":
                made.append(f"static_cast<uint32_t>({argument.of}_tensor->address())")
            case "constant":
                made.append(str(argument.value))
            case source:
                raise ValueError(f"{argument.name}: {source} is no common argument")
    return ", ".join(made)


def _kernel(signature: KernelSignature, plan: Plan) -> list[str]:
    role = signature.kernel
    lines = [f"    std::vector<uint32_t> {role}_words;"]
    lines += [
        f"    TensorAccessorArgs(*{argument.of}_tensor).append_to({role}_words);" for argument in signature.compile_time
    ]
    if role == "compute":
        lines += _compute_kernel(plan)
    else:
        processor, noc = _PROCESSORS[role]
        lines += [
            f'    auto {role} = CreateKernel(program, "{role}.cpp", all, DataMovementConfig{{',
            f"        .processor = DataMovementProcessor::{processor}, .noc = NOC::{noc},",
            f"        .compile_args = {role}_words}});",
        ]
    if signature.common_runtime:
        lines.append(f"    SetCommonRuntimeArgs(program, {role}, {{{_words(signature.common_runtime)}}});")
    if signature.runtime:
        assert plan.partition is not None
        names = [argument.of for argument in signature.runtime]
        lines.append(f"    const std::vector<std::vector<uint32_t>> {role}_arguments = {{")
        for core in plan.partition.cores:
            lines.append(f"        {{{', '.join(str(core.values[name]) for name in names)}}},")
        lines.append("    };")
        lines.append(
            "    for (size_t i = 0; i < cores.size(); ++i)\n"
            f"        SetRuntimeArgs(program, {role}, cores[i], {role}_arguments[i]);"
        )
    return [*lines, ""]


def _compute_kernel(plan: Plan) -> list[str]:
    compute = plan.compute
    assert compute is not None
    lines = ["    std::vector<UnpackToDestMode> unpack_modes(64, UnpackToDestMode::Default);"]
    lines += [
        f"    unpack_modes[{buffer.index}] = UnpackToDestMode::UnpackToDestFp32;"
        for buffer in plan.buffers
        if buffer.unpack_to_dest
    ]
    return [
        *lines,
        '    auto compute = CreateKernel(program, "compute.cpp", all, ComputeConfig{',
        f"        .math_fidelity = MathFidelity::{compute.math_fidelity},",
        f"        .fp32_dest_acc_en = {str(compute.fp32_dest_acc_en).lower()},",
        f"        .dst_full_sync_en = {str(compute.dst_full_sync_en).lower()},",
        "        .unpack_to_dest_mode = unpack_modes,",
        f"        .math_approx_mode = {str(compute.math_approx_mode).lower()},",
        "        .compile_args = compute_words});",
    ]


def _read_back(layout: TensorLayout) -> list[str]:
    name = layout.name
    return [
        f"    std::vector<uint32_t> {name}_words;",
        f"    distributed::EnqueueReadMeshBuffer(queue, {name}_words, {name}_tensor, true);",
        f"    const auto {name}_values = from_tiles({name}_words, {_matrix(layout)});",
        f'    std::ofstream("{name}.bin", std::ios::binary)',
        f"        .write(reinterpret_cast<const char*>({name}_values.data()), {_size(layout)} * 4);",
    ]


def _size(layout: TensorLayout) -> int:
    return layout.shape[0] if len(layout.shape) == 1 else _elements(layout)
