// Host program of copy for wormhole_n150, written by ttexplore from tt.plan.json.
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

namespace {

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

int main(int argc, char** argv) {
    auto device = distributed::MeshDevice::create_unit_mesh(0);
    auto& queue = device->mesh_command_queue();
    Program program = CreateProgram();

    auto A_tensor = distributed::MeshBuffer::create(
        distributed::ReplicatedBufferConfig{.size = 12288},
        distributed::DeviceLocalBufferConfig{
            .page_size = 2048, .buffer_type = BufferType::DRAM},
        device.get());
    auto A_words = to_tiles(load(argc, argv, 1, 6144), 64, 96, false);
    distributed::EnqueueWriteMeshBuffer(queue, A_tensor, A_words, false);

    auto B_tensor = distributed::MeshBuffer::create(
        distributed::ReplicatedBufferConfig{.size = 12288},
        distributed::DeviceLocalBufferConfig{
            .page_size = 2048, .buffer_type = BufferType::DRAM},
        device.get());

    std::vector<CoreRange> ranges;
    const std::vector<CoreCoord> cores = {
        {0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0},
    };
    for (const auto& core : cores) ranges.emplace_back(core, core);
    const CoreRangeSet all(ranges);

    // S: reader -> writer
    CreateCircularBuffer(
        program, all,
        CircularBufferConfig(4096, {{16, DataFormat::Float16_b}})
            .set_page_size(16, 2048));

    std::vector<uint32_t> reader_words;
    TensorAccessorArgs(*A_tensor).append_to(reader_words);
    auto reader = CreateKernel(program, "reader.cpp", all, DataMovementConfig{
        .processor = DataMovementProcessor::RISCV_1, .noc = NOC::NOC_0,
        .compile_args = reader_words});
    SetCommonRuntimeArgs(program, reader, {static_cast<uint32_t>(A_tensor->address())});
    const std::vector<std::vector<uint32_t>> reader_arguments = {
        {0, 1},
        {1, 1},
        {2, 1},
        {3, 1},
        {4, 1},
        {5, 1},
    };
    for (size_t i = 0; i < cores.size(); ++i)
        SetRuntimeArgs(program, reader, cores[i], reader_arguments[i]);

    std::vector<uint32_t> compute_words;
    std::vector<UnpackToDestMode> unpack_modes(64, UnpackToDestMode::Default);
    auto compute = CreateKernel(program, "compute.cpp", all, ComputeConfig{
        .math_fidelity = MathFidelity::HiFi4,
        .fp32_dest_acc_en = false,
        .dst_full_sync_en = false,
        .unpack_to_dest_mode = unpack_modes,
        .math_approx_mode = false,
        .compile_args = compute_words});

    std::vector<uint32_t> writer_words;
    TensorAccessorArgs(*B_tensor).append_to(writer_words);
    auto writer = CreateKernel(program, "writer.cpp", all, DataMovementConfig{
        .processor = DataMovementProcessor::RISCV_0, .noc = NOC::NOC_1,
        .compile_args = writer_words});
    SetCommonRuntimeArgs(program, writer, {static_cast<uint32_t>(B_tensor->address())});
    const std::vector<std::vector<uint32_t>> writer_arguments = {
        {0, 1},
        {1, 1},
        {2, 1},
        {3, 1},
        {4, 1},
        {5, 1},
    };
    for (size_t i = 0; i < cores.size(); ++i)
        SetRuntimeArgs(program, writer, cores[i], writer_arguments[i]);

    distributed::MeshWorkload workload;
    workload.add_program(distributed::MeshCoordinateRange(device->shape()), std::move(program));
    distributed::EnqueueMeshWorkload(queue, workload, false);
    distributed::Finish(queue);

    std::vector<uint32_t> B_words;
    distributed::EnqueueReadMeshBuffer(queue, B_words, B_tensor, true);
    const auto B_values = from_tiles(B_words, 64, 96, false);
    std::ofstream("B.bin", std::ios::binary)
        .write(reinterpret_cast<const char*>(B_values.data()), 6144 * 4);
    device->close();
    return 0;
}
