//// support
namespace {

// The kernels lie beside this file.
const std::filesystem::path here = std::filesystem::absolute(__FILE__).parent_path();

struct Options {
    std::vector<std::string> inputs;
    std::filesystem::path out = here;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc;) {
        const std::string flag = argv[i++];
        if (flag == "--inputs") {
            while (i < argc && argv[i][0] != '-') options.inputs.emplace_back(argv[i++]);
        } else if (flag == "--out" && i < argc) {
            options.out = argv[i++];
        } else {
            throw std::runtime_error("usage: main [--inputs FILE...] [--out FOLDER]");
        }
    }
    return options;
}

// The bits of float32 or int32 numbers.
using Words = std::vector<uint32_t>;

// What an output holds where no kernel writes: not a number, or a conspicuous integer.
constexpr uint32_t UNWRITTEN = 0x7fc00000;

// A tensor as the device stores it: matrices in tiles of 32x32, a page each, padded with zeros to whole tiles; or row
// by row, a page each.
struct Tiles {
    size_t matrices, rows, columns, page_bytes;
    bool integers, by_rows;

    size_t elements() const { return matrices * rows * columns; }
    size_t element_bytes() const { return page_bytes / (by_rows ? columns : 1024); }
    size_t pages() const { return matrices * (by_rows ? rows : ((rows + 31) / 32) * ((columns + 31) / 32)); }
    size_t bytes() const { return pages() * page_bytes; }
};

// Visits the elements in the order of the device: tile after tile, in each the four 16x16 faces.
template <typename Visit>
void for_each_element(const Tiles& tiles, Visit visit) {
    if (tiles.by_rows) {
        for (size_t index = 0; index < tiles.elements(); ++index) visit(index * tiles.element_bytes(), index);
        return;
    }
    size_t place = 0;
    for (size_t matrix = 0; matrix < tiles.matrices; ++matrix)
        for (size_t tile_row = 0; tile_row < tiles.rows; tile_row += 32)
            for (size_t tile_column = 0; tile_column < tiles.columns; tile_column += 32)
                for (size_t face = 0; face < 4; ++face)
                    for (size_t i = 0; i < 256; ++i, ++place) {
                        const size_t row = tile_row + face / 2 * 16 + i / 16;
                        const size_t column = tile_column + face % 2 * 16 + i % 16;
                        if (row < tiles.rows && column < tiles.columns)
                            visit(place * tiles.element_bytes(), (matrix * tiles.rows + row) * tiles.columns + column);
                    }
}

// Where a tensor lies on the device.
struct Place {
    BufferType memory = BufferType::DRAM;
    BufferShardingArgs sharding{};
};
//// shards

// Shards on these cores, or banks of DRAM, in order: elements of a shard, tiles of the tensor.
BufferShardingArgs shards(
    TensorMemoryLayout kind, std::vector<CoreRange> cores, std::array<uint32_t, 2> shard_shape,
    std::array<uint32_t, 2> tile_grid, ShardOrientation order) {
    const CoreRangeSet all(std::move(cores));
    return BufferShardingArgs(ShardSpecBuffer(all, shard_shape, order, {32, 32}, tile_grid), kind);
}
//// bytes

// The bytes of a tensor on the device.
using Bytes = std::vector<uint8_t>;

[[maybe_unused]] Bytes pack(const Tiles& tiles, const Words& values) {
    Bytes bytes(tiles.bytes());
    for_each_element(tiles, [&](size_t byte, size_t index) {
        uint32_t bits = values[index];
        // bfloat16 is the upper half of a float32, rounded to the nearest, ties to even.
        if (tiles.element_bytes() == 2) bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
        std::memcpy(&bytes[byte], &bits, tiles.element_bytes());
    });
    return bytes;
}

[[maybe_unused]] Words unpack(const Tiles& tiles, const Bytes& bytes) {
    Words values(tiles.elements());
    for_each_element(tiles, [&](size_t byte, size_t index) {
        std::memcpy(&values[index], &bytes[byte], tiles.element_bytes());
        if (tiles.element_bytes() == 2) values[index] <<= 16;
    });
    return values;
}
//// block_floats

// Bfp8_b: a tile is the exponents of its 64 groups of 16 elements, then a sign and 7 bits of each element.
constexpr size_t GROUP = 16, GROUPS = 64, ELEMENTS = GROUP * GROUPS;

// Rounded to the nearest, ties to even, but not beyond the largest magnitude.
[[maybe_unused]] Bytes pack_block_floats(const Tiles& tiles, const Words& values) {
    Words ordered(tiles.bytes() / tiles.page_bytes * ELEMENTS);
    for_each_element(tiles, [&](size_t place, size_t index) { ordered[place] = values[index]; });
    Bytes bytes(tiles.bytes());
    for (size_t first = 0; first < ordered.size(); first += GROUP) {
        uint8_t* page = &bytes[first / ELEMENTS * tiles.page_bytes];
        const size_t place = first % ELEMENTS;
        uint32_t exponent = 0;
        for (size_t i = 0; i < GROUP; ++i) exponent = std::max(exponent, ordered[first + i] >> 23 & 0xff);
        page[place / GROUP] = exponent;
        for (size_t i = 0; i < GROUP; ++i) {
            const uint32_t bits = ordered[first + i], own = bits >> 23 & 0xff;
            const uint32_t moved = own ? ((bits & 0x7fffff) | 0x800000) >> std::min(exponent - own, 31u) : 0;
            const uint32_t magnitude = std::min((moved + 0xffff + (moved >> 17 & 1)) >> 17, 0x7fu);
            page[GROUPS + place + i] = magnitude ? bits >> 31 << 7 | magnitude : 0;
        }
    }
    return bytes;
}

[[maybe_unused]] Words unpack_block_floats(const Tiles& tiles, const Bytes& bytes) {
    Words values(tiles.elements());
    for_each_element(tiles, [&](size_t place, size_t index) {
        const uint8_t* page = &bytes[place / ELEMENTS * tiles.page_bytes];
        const uint32_t element = page[GROUPS + place % ELEMENTS];
        uint32_t exponent = page[place % ELEMENTS / GROUP], magnitude = element & 0x7f;
        if (magnitude == 0) return;
        for (; magnitude < 0x40; magnitude <<= 1) --exponent;
        values[index] = element >> 7 << 31 | (exponent & 0xff) << 23 | (magnitude & 0x3f) << 17;
    });
    return values;
}
//// small

// Casts to a dtype of 8 bits or fewer, which the device stores as bfloat16.
template <typename Cast>
Words cast(Words values, Cast to) {
    for (auto& bits : values) {
        float value;
        std::memcpy(&value, &bits, 4);
        value = to(value);
        std::memcpy(&bits, &value, 4);
    }
    return values;
}

// To the nearest floating-point number, ties to even, but not beyond the largest magnitude.
[[maybe_unused]] Words cast_to_floats(Words values, int fraction_bits, int least_exponent, float largest) {
    return cast(std::move(values), [=](float value) {
        if (std::isnan(value)) return value;
        const float inside = std::clamp(value, -largest, largest);
        int exponent = 0;
        std::frexp(inside, &exponent);
        const float step = std::ldexp(1.0f, std::max(exponent - 1, least_exponent) - fraction_bits);
        return std::nearbyint(inside / step) * step;
    });
}

// The lowest bits of the integer.
[[maybe_unused]] Words cast_to_integers(Words values, int32_t low, int32_t high) {
    return cast(std::move(values), [=](float value) {
        const auto whole = static_cast<int64_t>(std::clamp(value, -2147483648.0f, 2147483520.0f));
        return static_cast<float>(((whole - low) & (high - low)) + low);
    });
}

[[maybe_unused]] Words cast_to_bool(Words values) {
    return cast(std::move(values), [](float value) { return value != 0 ? 1.0f : 0.0f; });
}
//// transfers

std::shared_ptr<distributed::MeshBuffer> to_device(
    distributed::MeshDevice& device, const Tiles& tiles, const Place& place, const Bytes& bytes) {
    auto buffer = distributed::MeshBuffer::create(
        distributed::ReplicatedBufferConfig{.size = tiles.bytes()},
        distributed::DeviceLocalBufferConfig{
            .page_size = tiles.page_bytes, .buffer_type = place.memory, .sharding_args = place.sharding},
        &device);
    distributed::EnqueueWriteMeshBuffer(device.mesh_command_queue(), buffer, bytes, true);
    return buffer;
}

Bytes from_device(distributed::MeshDevice& device, std::shared_ptr<distributed::MeshBuffer>& buffer) {
    Bytes bytes;
    distributed::EnqueueReadMeshBuffer(device.mesh_command_queue(), bytes, buffer, true);
    return bytes;
}

[[maybe_unused]] Words load(const Options& options, size_t index, const Tiles& tiles) {
    Words values(tiles.elements());
    if (index >= options.inputs.size()) {
        std::mt19937 random(index);
        std::normal_distribution<float> normal;
        for (auto& value : values) {
            const float number = normal(random);
            std::memcpy(&value, &number, 4);
            if (tiles.integers) value = static_cast<uint32_t>(static_cast<int32_t>(1000 * number));
        }
        return values;
    }
    const auto& file = options.inputs[index];
    const size_t bytes = 4 * values.size();
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw std::runtime_error(file + " cannot be read");
    if (const auto found = std::filesystem::file_size(file); found != bytes)
        throw std::runtime_error(
            file + " has " + std::to_string(found) + " bytes, its tensor " + std::to_string(bytes) +
                                 (tiles.integers ? " of int32" : " of float32"));
    stream.read(reinterpret_cast<char*>(values.data()), bytes);
    return values;
}

void save(const Options& options, const std::string& name, const Words& values) {
    const auto file = options.out / (name + ".bin");
    std::ofstream stream(file, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(values.data()), 4 * values.size());
    if (!stream.flush()) throw std::runtime_error(file.string() + " cannot be written");
    size_t unwritten = 0;
    for (const auto value : values) unwritten += value == UNWRITTEN;
    std::printf("%s: %zu elements, %zu of them NaN or not written -> %s\n", name.c_str(), values.size(), unwritten,
                file.c_str());
}
//// main
}  // namespace

int main(int argc, char** argv) {
    try {
        run(parse(argc, argv));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
