// The compute engine without the SFPU: start-up and formats, DST sections, FPU operations, packing.
#include "block_float.h"
#include "fpu.h"
#include "machine.h"
#include "matmul.h"
#include "matmul_exact.h"
#include "sfpu_functions.h"

// ---- formats

// Source A and B formats as the unpacker distinguishes them.
enum : uint32_t { KEY_BFLOAT16, KEY_FLOAT32, KEY_FLOAT32_TO_DST, KEY_INT32, KEY_BFP8 };
static constexpr const char* KEY_NAMES[] = {"Float16_b", "Float32", "Float32 unpacked to DST", "Int32", "Bfp8_b"};

static uint32_t source_key(uint32_t buffer) {
    checked_buffer(buffer);
    const BufferConfig& config = machine.buffers[buffer];
    switch (config.format) {
        case Format::Bfloat16: return KEY_BFLOAT16;
        case Format::Int32: return KEY_INT32;  // always unpacked to DST
        case Format::Bfp8: return KEY_BFP8;
        case Format::Float32: break;
    }
    return config.unpack_to_dest ? KEY_FLOAT32_TO_DST : KEY_FLOAT32;
}

static uint32_t pack_key(uint32_t buffer) {
    checked_buffer(buffer);
    switch (machine.buffers[buffer].format) {
        case Format::Bfloat16: return KEY_BFLOAT16;
        case Format::Int32: return KEY_INT32;
        case Format::Bfp8: return KEY_BFP8;
        case Format::Float32: break;
    }
    return KEY_FLOAT32;
}

static ComputeState& compute_state() {
    if (running->role != COMPUTE) {
        kernel_fault("B014", "a compute operation in a data movement kernel", "move it to the compute kernel");
    }
    return running->core->compute;
}

static ComputeState& started_state(uint32_t line) {
    at_line(line);
    ComputeState& state = compute_state();
    if (!state.started_up) {
        kernel_fault("B014",
                     "a compute operation before compute_kernel_hw_startup()",
                     "call compute_kernel_hw_startup(in0, in1, out) first in kernel_main()");
    }
    return state;
}

void emulator_startup(uint32_t source_a, uint32_t source_b, uint32_t out, uint32_t line) {
    at_line(line);
    ComputeState& state = compute_state();
    if (state.started_up) {
        kernel_fault("B014",
                     "a second compute_kernel_hw_startup()", "call it once; later changes are reconfig_data_format calls");
    }
    state.started_up = true;
    state.source_a = source_key(source_a);
    state.source_b = source_key(source_b);
    state.pack = pack_key(out);
}

// The form with an old operand does nothing when both have the same format, whatever is set.
static void reconfigure(uint32_t& current, int32_t old_buffer, uint32_t buffer, uint32_t (*key)(uint32_t)) {
    if (old_buffer < 0 || key(static_cast<uint32_t>(old_buffer)) != key(buffer)) {
        current = key(buffer);
    }
}

void emulator_reconfigure_a(int32_t old_buffer, uint32_t buffer, uint32_t line) {
    reconfigure(started_state(line).source_a, old_buffer, buffer, source_key);
}
void emulator_reconfigure_b(int32_t old_buffer, uint32_t buffer, uint32_t line) {
    reconfigure(started_state(line).source_b, old_buffer, buffer, source_key);
}
void emulator_reconfigure_pack(int32_t old_buffer, uint32_t buffer, uint32_t line) {
    reconfigure(started_state(line).pack, old_buffer, buffer, pack_key);
}
void emulator_pack_accumulate(uint32_t enable, uint32_t line) { started_state(line).pack_accumulate = enable != 0; }
void emulator_pack_relu(uint32_t mode, uint32_t threshold, uint32_t line) {
    ComputeState& state = started_state(line);
    state.relu_mode = mode;
    state.relu_threshold = threshold;
}

// ---- DST sections

static constexpr const char* SECTION_NAMES[] = {"released", "acquired", "committed", "being packed"};

static void change_section(ComputeState& state, ComputeState::Section from, ComputeState::Section to, const char* call,
                           const char* hint) {
    if (state.section != from) {
        kernel_fault("B013",
                     format_text("%s while DST is %s (since line %u)", call, SECTION_NAMES[state.section], state.section_line),
                     hint);
    }
    state.section = to;
    state.section_line = running->line;
}

void emulator_registers_acquire(uint32_t line) {
    ComputeState& state = started_state(line);
    change_section(state, ComputeState::Free, ComputeState::Acquired, "tile_regs_acquire()",
                   "end the previous section first: commit, wait, pack, tile_regs_release()");
    state.dst_touched = 0;
    state.dst_integers = 0;
    moved({}, in_dst(ALL_DST_TILES), 0);
    record(Event_acquire, 0, 0);
}
void emulator_registers_commit(uint32_t line) {
    change_section(started_state(line), ComputeState::Acquired, ComputeState::Committed, "tile_regs_commit()",
                   "use the order acquire, math, commit, wait, pack, release");
    record(Event_commit, 0, 0);
}
void emulator_registers_wait(uint32_t line) {
    change_section(started_state(line), ComputeState::Committed, ComputeState::Packing, "tile_regs_wait()",
                   "call tile_regs_commit() after the math: without it, the packer would wait forever");
    record(Event_wait_registers, 0, 0);
}
void emulator_registers_release(uint32_t line) {
    change_section(started_state(line), ComputeState::Packing, ComputeState::Free, "tile_regs_release()",
                   "use the order acquire, math, commit, wait, pack, release");
    record(Event_release, 0, 0);
}

// DST tile `slot` for math. A slot that this section has not touched counts as zero. `integers` says what the call takes
// for the tile's content, or makes it.
float* dst_for_math(ComputeState& state, uint32_t slot, bool overwritten, const char* call, bool integers) {
    if (state.section != ComputeState::Acquired) {
        kernel_fault("B013",
                     format_text("%s while DST is %s", call, SECTION_NAMES[state.section]),
                     "move the math between tile_regs_acquire() and tile_regs_commit()");
    }
    if (slot >= machine.dst_tiles) {
        kernel_fault("B013",
                     format_text("%s uses DST tile %u, but DST holds %u tiles in this mode (%u-bit)", call, slot,
                                 machine.dst_tiles, machine.wide_dst ? 32u : 16u),
                     "use a smaller sub-block: the chip would silently use the other half of DST");
    }
    float* tile = running->core->memory->dst + slot * TILE_ELEMENTS;
    const uint32_t mask = 1u << slot;
    if (overwritten) {
        state.dst_integers = integers ? state.dst_integers | mask : state.dst_integers & ~mask;
    } else if ((state.dst_touched & mask) && integers != ((state.dst_integers & mask) != 0)) {
        kernel_fault("B019",
                     format_text("%s takes DST tile %u for %s, but it holds %s", call, slot,
                                 integers ? "32-bit integers" : "numbers", integers ? "numbers" : "32-bit integers"),
                     "call typecast_tile first");
    }
    if (!(state.dst_touched & mask)) {
        state.dst_touched |= mask;
        if (!overwritten) {
            memset(tile, 0, TILE_ELEMENTS * sizeof(float));
        }
    }
    return tile;
}

static void round_tile(float* tile) {
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        tile[i] = round_ties_away(tile[i]);
    }
}

// ---- initialisation state

static const char* binary_name(uint32_t operation) {
    switch (operation) {
        case 0: return "mul";
        case 1: return "add";
        case 2: return "sub";
        default: return "?";
    }
}

static std::string broadcast_name(uint32_t broadcast) {
    static constexpr const char* names[] = {"", "_bcast_cols", "_bcast_rows", "_bcast_scalar"};
    return names[broadcast & 3];
}

static std::string operation_name(FpuOperation operation, uint32_t variant, bool init) {
    const char* tail = init ? "_init" : "_tiles";
    switch (operation) {
        case Fpu_none: return "no init";
        case Fpu_copy: return init ? "copy_init" : "copy_tile";
        case Fpu_transpose: return init ? "transpose_init" : "transpose_tile";
        case Fpu_unary_bcast: return init ? "unary_bcast_init" : "unary_bcast";
        case Fpu_binary: {
            const std::string base = binary_name(variant & 0xFF), broadcast = broadcast_name(variant >> 8 & 0xFF);
            return init ? base + broadcast + "_init" : base + "_tiles" + broadcast;
        }
        case Fpu_reuse_dest: return std::string(binary_name(variant & 0xFF)) + "_reuse_dest" + tail;
        case Fpu_matmul: return init ? "matmul_init" : "matmul_tiles";
        case Fpu_matmul_block: return init ? "matmul_block_init" : "matmul_block";
        case Fpu_reduce_block: return init ? "reduce_block_max_row_init" : "reduce_block_max_row";
        case Fpu_reduce: return init ? "reduce_init" : "reduce_tile";
        case Fpu_tilize: return init ? "tilize_init" : "tilize_block";
        case Fpu_pack_untilize: return init ? "pack_untilize_init" : "pack_untilize_block";
    }
    return "?";
}

static const char* rows_uninit(FpuOperation operation) {
    return operation == Fpu_tilize ? "tilize_uninit" : "pack_untilize_uninit";
}

static bool rows_undone(const ComputeState& state, FpuOperation operation) {
    return state.rows_pending == Fpu_none || state.rows_pending == operation;
}

[[noreturn]] static void rows_not_undone(const ComputeState& state, const std::string& call) {
    const std::string last = operation_name(state.rows_pending, 0, false), undo = rows_uninit(state.rows_pending);
    kernel_fault("B014",
                 call + " after " + last + " without " + undo,
                 "call " + undo + " after the last " + last + ": its set-up of the unpacker or packer is still in effect");
}

static void set_init(FpuOperation operation, uint32_t variant, uint32_t in0, uint32_t in1, uint32_t line) {
    ComputeState& state = started_state(line);
    if (state.bcast_pending && operation != Fpu_unary_bcast) {
        kernel_fault("B014",
                     operation_name(operation, variant, true) + " after unary_bcast without unary_bcast_uninit",
                     "call unary_bcast_uninit<...>(cb) when the broadcasts are done");
    }
    if (!rows_undone(state, operation)) {
        rows_not_undone(state, operation_name(operation, variant, true));
    }
    state.fpu = operation;
    state.fpu_variant = variant;
    state.fpu_line = line;
    state.fpu_format0 = source_key(in0);
    state.fpu_format1 = source_key(in1);
    if (operation == Fpu_reduce || operation == Fpu_reduce_block) {
        state.reduce_mask = true;
    }
    if (operation == Fpu_reduce_block) {
        // Both set an address mode of the chip.
        memset(state.sfpu_seen, 0, sizeof state.sfpu_seen);
    }
    if (operation == Fpu_unary_bcast) {
        state.bcast_pending = true;
    }
    if (operation == Fpu_tilize || operation == Fpu_pack_untilize) {
        state.rows_pending = operation;
    }
}

void emulator_fpu_init(uint32_t operation, uint32_t variant, uint32_t in0, uint32_t in1, uint32_t line) {
    set_init(static_cast<FpuOperation>(operation), variant, in0, in1, line);
}

void emulator_matmul_init(uint32_t block, uint32_t in0, uint32_t in1, uint32_t transpose, uint32_t columns,
                          uint32_t rows, uint32_t inner, uint32_t line) {
    set_init(block ? Fpu_matmul_block : Fpu_matmul, 0, in0, in1, line);
    ComputeState& state = running->core->compute;
    state.matmul_transpose = transpose;
    state.matmul_columns = columns;
    state.matmul_rows = rows;
    state.matmul_inner = inner;
}

void emulator_reduce_uninit(uint32_t line) { started_state(line).reduce_mask = false; }
void emulator_unary_bcast_uninit(uint32_t, uint32_t line) { started_state(line).bcast_pending = false; }

// An operation must run under its own init, for operands of the format that the init was given (op-truth.md, trap 1).
static void check_init(ComputeState& state, FpuOperation operation, uint32_t variant, uint32_t mask, uint32_t in0,
                       uint32_t in1) {
    const bool same_operation = state.fpu == operation && (state.fpu_variant & mask) == (variant & mask);
    if (same_operation && state.fpu_format0 == source_key(in0) && state.fpu_format1 == source_key(in1)) {
        return;
    }
    const std::string call = operation_name(operation, variant, false), init = operation_name(operation, variant, true);
    if (state.fpu == Fpu_none) {
        kernel_fault("B014", call + " without " + init, "call " + init + " before it");
    }
    if (same_operation) {
        kernel_fault("B014",
                     format_text("%s on %s and %s, but its init (line %u) was for other data formats", call.c_str(),
                                 buffer_name(in0).c_str(), buffer_name(in1).c_str(), state.fpu_line),
                     "call reconfig_data_format and " + init + " again for these circular buffers");
    }
    const std::string last = operation_name(state.fpu, state.fpu_variant, true);
    kernel_fault("B014",
                 format_text("%s, but the last FPU init is %s (line %u)%s", call.c_str(), last.c_str(), state.fpu_line,
                             last == init ? " with other template arguments" : ""),
                 "call " + init + " again before it: inits overwrite each other");
}

static void check_format(uint32_t current, uint32_t buffer, const char* source, const char* reconfigure,
                         const char* call) {
    const uint32_t wanted = source_key(buffer);
    if (current != wanted) {
        kernel_fault("B014",
                     format_text("%s reads %s (%s) through %s, which is set to %s", call, buffer_name(buffer).c_str(),
                                 KEY_NAMES[wanted], source, KEY_NAMES[current]),
                     format_text("call %s(%u) before the operation's init", reconfigure, buffer));
    }
}

static void check_source_a(const ComputeState& state, uint32_t buffer, const char* call) {
    check_format(state.source_a, buffer, "SrcA", "reconfig_data_format_srca", call);
}
static void check_source_b(const ComputeState& state, uint32_t buffer, const char* call) {
    check_format(state.source_b, buffer, "SrcB", "reconfig_data_format_srcb", call);
}

static void check_fpu_operand(uint32_t buffer, const char* call) {
    if (source_key(buffer) == KEY_INT32) {
        kernel_fault("B019",
                     format_text("%s reads %s, which holds integers, through the FPU", call, buffer_name(buffer).c_str()),
                     "copy it to DST and call typecast_tile");
    }
    if (source_key(buffer) == KEY_FLOAT32_TO_DST) {
        kernel_fault("B014",
                     format_text("%s reads %s, which is unpacked to DST, through the FPU", call,
                                 buffer_name(buffer).c_str()),
                     "copy it to DST instead: through the FPU it would have bfloat16 precision");
    }
}

// ---- operands

// What `sources` and `operands` can hold of a page. Transposed is a flag beside.
enum Variant : uint8_t { Nothing, Exact, FullA, HighA, HighB };
static constexpr uint8_t TRANSPOSED = 0x80;

static uint32_t variant_mask(uint8_t variant) {
    switch (variant & 0x7F) {
        case FullA: return SOURCE_A_MASK;
        case HighA: return SOURCE_A_HIGH_MASK;
        case HighB: return SOURCE_B_HIGH_MASK;
        default: return 0xFFFFFFFFu;
    }
}

static void unpack(const uint8_t* page, Format format, bool to_dest, uint32_t mask, float* tile) {
    if (format == Format::Bfp8) {
        unpack_block_floats(page, mask, tile);
        return;
    }
    if (format == Format::Bfloat16) {
        const uint16_t* values = reinterpret_cast<const uint16_t*>(page);
        for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
            tile[i] = float_of(static_cast<uint32_t>(values[i]) << 16 & mask);
        }
        return;
    }
    const uint32_t format_mask = to_dest || format == Format::Int32 ? 0xFFFFFFFFu : machine.wide_dst ? TF32_MASK : 0xFFFF0000u;
    const uint32_t* values = reinterpret_cast<const uint32_t*>(page);
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        tile[i] = float_of(values[i] & format_mask & mask);
    }
}

static void transpose(const float* from, float* to) {
    for (uint32_t face = 0; face < 4; ++face) {
        const uint32_t other = (face & 1) << 1 | face >> 1;
        for (uint32_t row = 0; row < 16; ++row) {
            for (uint32_t column = 0; column < 16; ++column) {
                to[other * FACE_ELEMENTS + column * 16 + row] = from[face * FACE_ELEMENTS + row * 16 + column];
            }
        }
    }
}

// The position of a tile in a circular buffer that was waited for.
static uint32_t source_position(Core* core, uint32_t id, uint32_t tile, const char* call) {
    const Buffer& buffer = core->buffers[id];
    const BufferConfig& config = machine.buffers[id];
    if (tile >= buffer.waited) {
        kernel_fault("B010",
                     format_text("%s reads tile %u of %s, but %u tiles were waited for", call, tile, buffer_name(id).c_str(),
                                 buffer.waited),
                     format_text("call wait_front(%u) first", tile + 1));
    }
    const uint32_t position = buffer.read + tile;
    if (position >= config.pages) {
        kernel_fault("B010",
                     format_text("%s reads tile %u of %s past its end (position %u of %u)", call, tile,
                                 buffer_name(id).c_str(), position, config.pages),
                     "make the capacity a multiple of every push and pop: the chip does not wrap around inside a block");
    }
    return position;
}

static void unpack_as(Core* core, uint32_t id, uint32_t position, uint8_t variant, float* tile) {
    const BufferConfig& config = machine.buffers[id];
    const uint8_t* page = page_memory(core, id, position);
    if (variant & TRANSPOSED) {
        float upright[TILE_ELEMENTS];
        unpack(page, config.format, config.unpack_to_dest, variant_mask(variant), upright);
        transpose(upright, tile);
    } else {
        unpack(page, config.format, config.unpack_to_dest, variant_mask(variant), tile);
    }
}

// What is unpacked of a page of the core.
static UnpackedPage& unpacked_page(const Core* core, uint32_t index) {
    UnpackedPage& page = machine.unpacked[index];
    if (page.core != core->index) {
        page = {};
        page.core = static_cast<uint16_t>(core->index);
    }
    return page;
}

// The tile as the source register holds it; unpacked once per page and variant, unless another core comes between.
static const float* source_tile(Core* core, uint32_t id, uint32_t tile, uint8_t variant, const char* call) {
    const uint32_t position = source_position(core, id, tile, call), index = machine.buffers[id].first_page + position;
    float* source = machine.sources + static_cast<uint64_t>(index) * TILE_ELEMENTS;
    uint8_t& tag = unpacked_page(core, index).source;
    if (tag != variant) {
        unpack_as(core, id, position, variant, source);
        tag = variant;
    }
    return source;
}

// The tile as a side of the exact matrix product takes it; taken apart once per page, side and variant,
// unless another core comes between.
static const MatmulOperand& matmul_operand(Core* core, uint32_t id, uint32_t tile, bool left, uint8_t variant,
                                           const char* call) {
    const uint32_t position = source_position(core, id, tile, call), index = machine.buffers[id].first_page + position;
    MatmulOperand& operand = machine.operands[static_cast<uint64_t>(index) * 2 + left];
    UnpackedPage& page = unpacked_page(core, index);
    uint8_t& tag = left ? page.left : page.right;
    if (tag != variant) {
        unpack_as(core, id, position, variant, operand.tile);
        (left ? take_left : take_right)(operand);
        tag = variant;
    }
    return operand;
}

// Notes that an operation made DST tile `dst` of a tile of a buffer, and of what was there if it `adds`.
static void unpacked_to(uint32_t in, uint32_t tile, uint32_t dst, bool adds, bool also = false) {
    const Core* core = running->core;
    moved(in_buffer(core, in, core->buffers[in].read + tile), in_dst(dst), machine.buffers[in].page_bytes, adds, also);
}

// ---- copy, transpose, broadcast

// Whether a buffer is unpacked to DST past the source registers.
static bool goes_to_dst(uint32_t buffer) {
    return source_key(buffer) == KEY_INT32 || source_key(buffer) == KEY_FLOAT32_TO_DST;
}

static void check_width(uint32_t in, const char* call) {
    if (goes_to_dst(in) && !machine.wide_dst) {
        kernel_fault("B014",
                     format_text("%s of %s, which is unpacked to DST, into a 16-bit DST", call, buffer_name(in).c_str()),
                     "use fp32_dest_acc_en for 32-bit formats in DST: otherwise the chip silently gives wrong values");
    }
}

void emulator_copy_tile(uint32_t in, uint32_t tile, uint32_t dst, uint32_t line) {
    ComputeState& state = started_state(line);
    check_init(state, Fpu_copy, 0, 0, in, in);
    check_source_a(state, in, "copy_tile");
    const bool integers = source_key(in) == KEY_INT32;
    check_width(in, "copy_tile");
    if (state.fpu_variant & 1) {
        const float* source = source_tile(running->core, in, tile, Exact, "copy_tile");
        transpose(source, dst_for_math(state, dst, true, "copy_tile", integers));
    } else {
        // Most tiles are copied once: straight to DST, so that nothing is kept of them.
        const BufferConfig& config = machine.buffers[in];
        const uint8_t* page = page_memory(running->core, in, source_position(running->core, in, tile, "copy_tile"));
        float* target = dst_for_math(state, dst, true, "copy_tile", integers);
        unpack(page, config.format, config.unpack_to_dest, variant_mask(Exact), target);
    }
    unpacked_to(in, tile, dst, false);
    record(Event_fpu, in, 1);
}

void emulator_transpose_tile(uint32_t in, uint32_t tile, uint32_t dst, uint32_t line) {
    ComputeState& state = started_state(line);
    check_init(state, Fpu_transpose, 0, 0, in, in);
    check_source_a(state, in, "transpose_tile");
    const bool integers = source_key(in) == KEY_INT32;
    check_width(in, "transpose_tile");
    const float* source = source_tile(running->core, in, tile, Exact, "transpose_tile");
    transpose(source, dst_for_math(state, dst, true, "transpose_tile", integers));
    unpacked_to(in, tile, dst, false);
    record(Event_fpu, in, 1);
}

// The tile that a broadcast operand stands for. `broadcast` is a BroadcastType, `used_row` the row that ROW repeats.
static void spread(const float* source, uint32_t broadcast, uint32_t used_row, float* target) {
    if (broadcast == 0) {
        memcpy(target, source, TILE_ELEMENTS * sizeof(float));
        return;
    }
    const bool columns = broadcast == 1, rows = broadcast == 2;
    for (uint32_t face = 0; face < 4; ++face) {
        const float* repeated = source + element_place(used_row, (face & 1) * 16);
        for (uint32_t row = 0; row < 16; ++row) {
            float* place = target + face * FACE_ELEMENTS + row * 16;
            if (rows) {
                memcpy(place, repeated, 16 * sizeof(float));
                continue;
            }
            const float value = source[columns ? (face & 2) * FACE_ELEMENTS + row * 16 : 0];
            for (uint32_t column = 0; column < 16; ++column) {
                place[column] = value;
            }
        }
    }
}

void emulator_unary_bcast(uint32_t variant, uint32_t in, uint32_t tile, uint32_t dst, uint32_t line) {
    ComputeState& state = started_state(line);
    check_init(state, Fpu_unary_bcast, variant, 0xFF, in, in);
    check_width(in, "unary_bcast");
    if (variant == 2 && machine.wide_dst && (source_key(in) == KEY_BFLOAT16 || source_key(in) == KEY_BFP8)) {
        kernel_fault("B014",
                     format_text("unary_bcast<BroadcastType::ROW> of %s (%s) into a 32-bit DST: the chip gives wrong "
                                 "values without any error",
                                 buffer_name(in).c_str(), KEY_NAMES[source_key(in)]),
                     "use add_tiles_bcast_rows with a tile of zeros, or a Float32 circular buffer");
    }
    if (goes_to_dst(in)) {
        check_source_a(state, in, "unary_bcast");
    } else {
        check_source_b(state, in, "unary_bcast");
    }
    const float* source = source_tile(running->core, in, tile, Exact, "unary_bcast");
    spread(source, variant, 0, dst_for_math(state, dst, true, "unary_bcast", source_key(in) == KEY_INT32));
    unpacked_to(in, tile, dst, false);
    record(Event_fpu, in, 1);
}

// ---- element-wise operations on two operands

static FpuMode fpu_mode() {
    return {machine.wide_dst, machine.fidelity < 2 ? 1 : machine.fidelity, machine.wormhole};
}

// a and b as held by SrcA and SrcB; `accumulate` adds to what `target` holds.
static void binary(uint32_t operation, const float* a, const float* b, float* target, bool accumulate) {
    if (machine.exact) {
        if (operation == 0) {
            fpu_multiply_elements(a, b, target, accumulate, fpu_mode());
        } else {
            fpu_add_tile(a, b, operation == 2, target, accumulate, fpu_mode());
        }
        return;
    }
    const bool wide = machine.wide_dst;
    if (operation != 0) {
        const float sign = operation == 1 ? 1.0f : -1.0f;
        for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
            const float result = a[i] + sign * b[i];
            target[i] = accumulate ? target[i] + result : result;
        }
        if (!wide) {
            round_tile(target);
        }
        return;
    }
    // The multiplier's phases (metalium.md 5.1): which part of SrcA and of SrcB each takes.
    const uint32_t phases = machine.fidelity < 2 ? 1 : machine.fidelity;
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        const float a_full = masked(a[i], SOURCE_A_MASK), a_high = masked(a[i], SOURCE_A_HIGH_MASK);
        const float b_high = masked(b[i], SOURCE_B_HIGH_MASK);
        const float a_part[4] = {a_high, a_full - a_high, a_high, a_full - a_high};
        const float b_part[4] = {b_high, b_high, b[i] - b_high, b[i] - b_high};
        float value = accumulate ? target[i] : 0.0f;
        if (wide && phases == 4) {
            value += a_full * b[i];
        } else {
            for (uint32_t phase = 0; phase < phases; ++phase) {
                value += a_part[phase] * b_part[phase];
                if (!wide) {
                    value = round_ties_away(value);
                }
            }
        }
        target[i] = value;
    }
}

void emulator_binary_tiles(uint32_t variant, uint32_t in0, uint32_t in1, uint32_t tile0, uint32_t tile1, uint32_t dst,
                           uint32_t row, uint32_t line) {
    ComputeState& state = started_state(line);
    check_init(state, Fpu_binary, variant, 0xFFFF, in0, in1);
    constexpr const char* call = "an element-wise operation";
    check_source_a(state, in0, call);
    check_source_b(state, in1, call);
    check_fpu_operand(in0, call);
    check_fpu_operand(in1, call);
    const bool accumulate = state.fpu_variant >> 16 & 1;
    const float* a = source_tile(running->core, in0, tile0, Exact, "the operation");
    const float* b = source_tile(running->core, in1, tile1, Exact, "the operation");
    float* target = dst_for_math(state, dst, !accumulate, "the operation");
    const uint32_t broadcast = variant >> 8 & 0xFF;
    float spread_b[TILE_ELEMENTS];
    if (broadcast) {
        spread(b, broadcast, row, spread_b);
        b = spread_b;
    }
    binary(variant & 0xFF, a, b, target, accumulate);
    unpacked_to(in0, tile0, dst, accumulate);
    unpacked_to(in1, tile1, dst, accumulate, true);
    record(Event_fpu, in0, 1);
}

void emulator_reuse_dest_tiles(uint32_t variant, uint32_t in, uint32_t tile, uint32_t dst, uint32_t line) {
    ComputeState& state = started_state(line);
    check_init(state, Fpu_reuse_dest, variant, 0xFFFF, in, in);
    const bool dst_to_a = (variant >> 8) == 1;
    constexpr const char* call = "a reuse_dest operation";
    if (dst_to_a) {
        check_source_b(state, in, call);
    } else {
        check_source_a(state, in, call);
    }
    check_fpu_operand(in, call);
    const float* other = source_tile(running->core, in, tile, Exact, "the operation");
    float* target = dst_for_math(state, dst, false, "the operation");
    float held[TILE_ELEMENTS];
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        held[i] = masked(target[i], TF32_MASK);  // DST moves to a source register, which holds TF32
    }
    binary(variant & 0xFF, dst_to_a ? held : other, dst_to_a ? other : held, target, false);
    unpacked_to(in, tile, dst, true);
    record(Event_fpu, in, 1);
}

// ---- matrix products

static void split(const float* from, uint32_t full_mask, uint32_t high_mask, float* high, float* low) {
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        high[i] = masked(from[i], high_mask);
        low[i] = masked(from[i], full_mask) - high[i];
    }
}

// One tile product where the parts of the operands matter: 16-bit DST (rounded after each 16-deep step of each phase)
// or HiFi3. in0 is in SrcB, in1 in SrcA.
static void multiply_in_phases(const float* in0, const float* in1, float* target) {
    float in0_high[TILE_ELEMENTS], in0_low[TILE_ELEMENTS], in1_high[TILE_ELEMENTS], in1_low[TILE_ELEMENTS];
    split(in0, 0xFFFFFFFFu, SOURCE_B_HIGH_MASK, in0_high, in0_low);
    split(in1, SOURCE_A_MASK, SOURCE_A_HIGH_MASK, in1_high, in1_low);
    const float* in0_part[4] = {in0_high, in0_high, in0_low, in0_low};
    const float* in1_part[4] = {in1_high, in1_low, in1_high, in1_low};
    const uint32_t phases = machine.fidelity < 2 ? 1 : machine.fidelity;
    for (uint32_t phase = 0; phase < phases; ++phase) {
        if (machine.wide_dst) {
            multiply_tiles(in0_part[phase], in1_part[phase], target, 0, 32, false);
            continue;
        }
        for (uint32_t half = 0; half < 32; half += 16) {
            multiply_tiles(in0_part[phase], in1_part[phase], target, half, half + 16, false);
            round_tile(target);
        }
    }
}

void emulator_matmul(uint32_t block, uint32_t in0, uint32_t in1, uint32_t tile0, uint32_t tile1, uint32_t dst,
                     uint32_t columns, uint32_t rows, uint32_t inner, uint32_t line) {
    ComputeState& state = started_state(line);
    const char* call = block ? "matmul_block" : "matmul_tiles";
    check_init(state, block ? Fpu_matmul_block : Fpu_matmul, 0, 0, in0, in1);
    if (block && (columns != state.matmul_columns || rows != state.matmul_rows || inner != state.matmul_inner)) {
        kernel_fault("B014",
                     format_text("matmul_block of %u x %u tiles (kt_dim %u), but its init (line %u) was for %u x %u (kt_dim %u)",
                                 rows, columns, inner, state.fpu_line, state.matmul_rows, state.matmul_columns,
                                 state.matmul_inner),
                     "give matmul_block_init the ct_dim, rt_dim and kt_dim of the calls, again when they change");
    }
    check_source_a(state, in1, call);
    check_source_b(state, in0, call);
    check_fpu_operand(in0, call);
    check_fpu_operand(in1, call);
    if (rows * columns > machine.dst_tiles || dst + rows * columns > machine.dst_tiles) {
        kernel_fault("B013",
                     format_text("%s of %u x %u tiles from DST tile %u, but DST holds %u tiles in this mode (%u-bit)", call,
                                 rows, columns, dst, machine.dst_tiles, machine.wide_dst ? 32u : 16u),
                     "use a smaller sub-block: the chip would silently use the other half of DST");
    }
    Core* core = running->core;
    // The fast way takes operands that are cut to what the phases use of them together.
    const bool in_phases = !machine.exact && (!machine.wide_dst || machine.fidelity == 3);
    const bool cut = !machine.exact && !in_phases;
    const uint8_t in0_variant = cut && machine.fidelity < 4 ? HighB : Exact;
    uint8_t in1_variant = Exact;
    if (cut) {
        const bool low_fidelity = machine.fidelity < 2;
        const Format format = machine.buffers[in1].format;
        const bool exact = !low_fidelity && (format == Format::Bfloat16 || format == Format::Bfp8);
        in1_variant = low_fidelity ? HighA : exact ? Exact : FullA;
    }
    if (state.matmul_transpose) {
        in1_variant |= TRANSPOSED;
    }
    const float* right[MAXIMUM_DST_TILES];
    const MatmulOperand* exact_right[MAXIMUM_DST_TILES];
    for (uint32_t column = 0; column < columns; ++column) {
        if (machine.exact) {
            exact_right[column] = &matmul_operand(core, in1, tile1 + column, false, in1_variant, call);
        } else {
            right[column] = source_tile(core, in1, tile1 + column, in1_variant, call);
        }
    }
    for (uint32_t row = 0; row < rows; ++row) {
        const uint32_t left_tile = tile0 + row * inner;
        const MatmulOperand* exact_left = machine.exact ? &matmul_operand(core, in0, left_tile, true, Exact, call) : nullptr;
        const float* left = machine.exact ? nullptr : source_tile(core, in0, left_tile, in0_variant, call);
        for (uint32_t column = 0; column < columns; ++column) {
            const uint32_t slot = dst + row * columns + column;
            const bool fresh = !(state.dst_touched >> slot & 1);
            float* target = dst_for_math(state, slot, cut, call);
            if (machine.exact) {
                multiply_tiles_exactly(*exact_left, *exact_right[column], target, fpu_mode());
            } else if (in_phases) {
                multiply_in_phases(left, right[column], target);
            } else {
                multiply_tiles(left, right[column], target, 0, 32, fresh);
            }
            unpacked_to(in0, left_tile, slot, true);
            unpacked_to(in1, tile1 + column, slot, true, true);
        }
    }
    record(Event_fpu, in0, rows * columns);
}

// ---- reductions

// Whether a reduction along a dimension leaves the element at a place of the tile.
static bool is_left(ReduceDim dimension, uint32_t row, uint32_t column) {
    return (dimension == ReduceDim::REDUCE_COL || column == 0) && (dimension == ReduceDim::REDUCE_ROW || row == 0);
}

// Adds the sums of `values` times `factor` to the elements that are left.
static void add_sums(ReduceDim dimension, const float* values, float factor, float* target) {
    if (machine.exact && dimension == ReduceDim::REDUCE_COL) {
        return fpu_sum_columns(values, factor, target, fpu_mode());
    }
    if (machine.exact && dimension == ReduceDim::REDUCE_ROW) {
        float factors[TILE_ELEMENTS];
        for (float& one : factors) {
            one = factor;
        }
        float products[TILE_ELEMENTS] = {};
        for (uint32_t row = 0; row < 32; ++row) {
            products[element_place(row, 0)] = target[element_place(row, 0)];
        }
        multiply_tiles_exactly(values, factors, products, fpu_mode());
        memcpy(target, products, sizeof products);
        return;
    }
    float sums[TILE_ELEMENTS] = {};
    for (uint32_t row = 0; row < 32; ++row) {
        for (uint32_t column = 0; column < 32; ++column) {
            const uint32_t to = element_place(dimension == ReduceDim::REDUCE_ROW ? row : 0, dimension == ReduceDim::REDUCE_COL ? column : 0);
            sums[to] += values[element_place(row, column)] * factor;
        }
    }
    // The factor is applied once for each dimension.
    const float again = dimension == ReduceDim::REDUCE_SCALAR ? factor : 1.0f;
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        target[i] += sums[i] * again;
    }
    if (!machine.wide_dst) {
        round_tile(target);
    }
}

// The largest elements, in the order of numbers of sign and magnitude. Denormals count as zero. `narrow_scaler`: SrcB is
// set to bfloat16, through which Blackhole transposes the maxima of rows.
static void take_maxima(ReduceDim dimension, const float* values, bool narrow_scaler, bool fresh, float* target) {
    const bool cut = narrow_scaler && dimension != ReduceDim::REDUCE_COL && !machine.wormhole;
    const uint32_t mask = cut ? 0xFFFF0000u : 0xFFFFFFFFu;
    bool used[TILE_ELEMENTS] = {};
    for (uint32_t row = 0; row < 32; ++row) {
        for (uint32_t column = 0; column < 32; ++column) {
            const uint32_t to = element_place(dimension == ReduceDim::REDUCE_ROW ? row : 0, dimension == ReduceDim::REDUCE_COL ? column : 0);
            const Bits bits = bits_of(values[element_place(row, column)]);
            const Bits next = biased_exponent(bits) == 0 ? ZERO : bits & mask;
            target[to] = float_of(fresh && !used[to] ? next : larger(bits_of(target[to]), next));
            used[to] = true;
        }
    }
}

// The factor of a reduction, which is the same in row 0 of each face of the scaler tile.
static float factor_of(uint32_t scaler, uint32_t tile, const char* call) {
    const float* factors = source_tile(running->core, scaler, tile, Exact, call);
    for (uint32_t face = 0; face < 4; ++face) {
        for (uint32_t column = 0; column < 16; ++column) {
            if (factors[face * FACE_ELEMENTS + column] != factors[0]) {
                kernel_fault("B014",
                             format_text("the scaler tile in %s is not the same value in row 0 of each of its four faces",
                                         buffer_name(scaler).c_str()),
                             "fill row 0 of every face with the factor (or the whole tile)");
            }
        }
    }
    return factors[0];
}

// Makes what a reduction does not define unwritten.
static void leave_rest(ReduceDim dimension, float* target) {
    for (uint32_t row = 0; row < 32; ++row) {
        for (uint32_t column = 0; column < 32; ++column) {
            if (!is_left(dimension, row, column)) {
                target[element_place(row, column)] = float_of(UNWRITTEN_NUMBER);
            }
        }
    }
}

// Raises for maxima with another factor than 1; for those of rows, also for a tile of DST that was used: the chip would
// take the maximum with other elements of it.
static void check_maxima(const char* call, float factor, bool of_rows, uint32_t dst, bool fresh) {
    if (factor != 1.0f) {
        kernel_fault("B014", format_text("%s with a scaler of %g", call, static_cast<double>(factor)),
                     "use a scaler of exactly 1 for MAX");
    }
    if (of_rows && !fresh) {
        kernel_fault("B014", format_text("%s of rows into DST tile %u, which this section has used", call, dst),
                     "give it a tile that nothing has used: the chip would take the maximum with other elements of it");
    }
}

void emulator_reduce_tile(uint32_t variant, uint32_t in, uint32_t scaler, uint32_t tile, uint32_t scaler_tile,
                          uint32_t dst, uint32_t line) {
    ComputeState& state = started_state(line);
    check_init(state, Fpu_reduce, variant, 0xFFFF, in, scaler);
    const PoolType pool = static_cast<PoolType>(variant & 0xFF);
    const ReduceDim dimension = static_cast<ReduceDim>(variant >> 8);
    if (pool == PoolType::MIN) {
        kernel_fault("B014",
                     "reduce_tile<PoolType::MIN>: the FPU has no minimum", "reduce the negated values with MAX");
    }
    const bool maximum = pool == PoolType::MAX;
    const bool swapped = dimension == ReduceDim::REDUCE_ROW && !maximum;  // an MVMUL with the scaler in SrcA
    check_source_a(state, swapped ? scaler : in, "reduce_tile");
    check_source_b(state, swapped ? in : scaler, "reduce_tile");
    check_fpu_operand(in, "reduce_tile");
    check_fpu_operand(scaler, "reduce_tile");
    const float* values = source_tile(running->core, in, tile, Exact, "reduce_tile");
    const float factor = factor_of(scaler, scaler_tile, "reduce_tile");
    const bool fresh = !(state.dst_touched >> dst & 1);
    if (maximum) {
        check_maxima("reduce_tile<PoolType::MAX>", factor, dimension != ReduceDim::REDUCE_COL, dst, fresh);
    }
    float* target = dst_for_math(state, dst, false, "reduce_tile");
    if (maximum) {
        take_maxima(dimension, values, source_key(scaler) == KEY_BFLOAT16, fresh, target);
    } else {
        add_sums(dimension, values, factor, target);
    }
    leave_rest(dimension, target);
    unpacked_to(in, tile, dst, true);
    unpacked_to(scaler, scaler_tile, dst, true, true);
    record(Event_fpu, in, 1);
}

void emulator_reduce_block_max_row(uint32_t count, uint32_t in, uint32_t scaler, uint32_t tile, uint32_t dst,
                                   uint32_t line) {
    const char* call = "reduce_block_max_row";
    ComputeState& state = started_state(line);
    check_init(state, Fpu_reduce_block, emulator_reduce_block_variant(count), 0xFFFF, in, scaler);
    check_source_a(state, in, call);
    check_source_b(state, scaler, call);
    check_fpu_operand(in, call);
    check_fpu_operand(scaler, call);
    const bool fresh = !(state.dst_touched >> dst & 1);
    check_maxima(call, factor_of(scaler, 0, call), true, dst, fresh);
    float* target = dst_for_math(state, dst, false, call);
    for (uint32_t number = 0; number < count; ++number) {
        const float* values = source_tile(running->core, in, tile + number, Exact, call);
        take_maxima(ReduceDim::REDUCE_ROW, values, false, number == 0, target);
        unpacked_to(in, tile + number, dst, true, number != 0);
    }
    leave_rest(ReduceDim::REDUCE_ROW, target);
    unpacked_to(scaler, 0, dst, true, true);
    record(Event_fpu, in, count);
}

// ---- packing

static float relu(float value, uint32_t mode, float threshold) {
    switch (mode) {
        case 1: return value > 0.0f ? value : 0.0f;
        case 2: return value > threshold ? value : 0.0f;
        case 3: return value > threshold ? threshold : value > 0.0f ? value : 0.0f;
        default: return value;
    }
}

void emulator_pack_tile(uint32_t dst, uint32_t out, uint32_t out_of_order, uint32_t tile, uint32_t line) {
    ComputeState& state = started_state(line);
    Core* core = running->core;
    Buffer& buffer = checked_buffer(out);
    const BufferConfig& config = machine.buffers[out];
    if (state.section != ComputeState::Packing) {
        kernel_fault("B013",
                     format_text("pack_tile while DST is %s", SECTION_NAMES[state.section]),
                     "pack between tile_regs_wait() and tile_regs_release()");
    }
    if (dst >= machine.dst_tiles) {
        kernel_fault("B013",
                     format_text("pack_tile of DST tile %u, but DST holds %u tiles in this mode", dst, machine.dst_tiles),
                     "use a smaller sub-block");
    }
    if (state.pack != pack_key(out)) {
        kernel_fault("B014",
                     format_text("pack_tile to %s (%s) while the packer is set to %s", buffer_name(out).c_str(),
                                 KEY_NAMES[pack_key(out)], KEY_NAMES[state.pack]),
                     format_text("call pack_reconfig_data_format(%u) first", out));
    }
    if (!rows_undone(state, Fpu_none)) {
        rows_not_undone(state, "pack_tile");
    }
    if (state.reduce_mask && state.fpu != Fpu_reduce && state.fpu != Fpu_reduce_block) {
        kernel_fault("B014",
                     "pack_tile after a reduction without reduce_uninit()",
                     "call reduce_uninit() after the reduction: the packer would zero all but its row or column");
    }
    const uint32_t index = out_of_order ? tile : buffer.packed;
    if (index >= buffer.reserved) {
        kernel_fault("B010",
                     format_text("pack_tile writes tile %u of %s, but %u tiles are reserved", index, buffer_name(out).c_str(),
                                 buffer.reserved),
                     format_text("call reserve_back(%u) first", index + 1));
    }
    const uint32_t position = buffer.write + index;
    if (position >= config.pages) {
        kernel_fault("B010",
                     format_text("pack_tile writes tile %u of %s past its end (position %u of %u)", index,
                                 buffer_name(out).c_str(), position, config.pages),
                     "make the capacity a multiple of every push and pop: the chip does not wrap around inside a block");
    }
    uint8_t& written = core->memory->written[config.first_page + position];
    if (state.pack_accumulate && !written) {
        kernel_fault("B013",
                     format_text("pack_tile adds to tile %u of %s, where nothing was packed yet", index,
                                 buffer_name(out).c_str()),
                     "call pack_reconfig_l1_acc(0) for the first block and 1 from the second on");
    }
    float* values = core->memory->dst + dst * TILE_ELEMENTS;
    if (!(state.dst_touched >> dst & 1)) {
        memset(values, 0, TILE_ELEMENTS * sizeof(float));
    }
    const bool integers = config.format == Format::Int32;
    if ((state.dst_touched >> dst & 1) && integers != (state.dst_integers >> dst & 1)) {
        kernel_fault("B023",
                     format_text("pack_tile of DST tile %u, which holds %s, to %s (%s)", dst,
                                 integers ? "numbers" : "32-bit integers", buffer_name(out).c_str(), KEY_NAMES[pack_key(out)]),
                     "call typecast_tile first");
    }
    if (integers && (state.relu_mode || state.pack_accumulate)) {
        kernel_fault("B019", "pack_tile of integers with ReLU or L1 accumulation", "turn both off for integers");
    }
    if (config.format == Format::Bfp8 && state.pack_accumulate) {
        kernel_fault("B019",
                     "pack_tile to Bfp8_b with L1 accumulation", "accumulate in a Float32 or Float16_b circular buffer");
    }
    float changed[TILE_ELEMENTS];
    if (state.reduce_mask) {
        // The packer leaves what the reduction does.
        for (uint32_t row = 0; row < 32; ++row) {
            for (uint32_t column = 0; column < 32; ++column) {
                const uint32_t place = element_place(row, column);
                changed[place] = is_left(static_cast<ReduceDim>(state.fpu_variant >> 8), row, column) ? values[place] : 0.0f;
            }
        }
        values = changed;
    }
    if (state.relu_mode) {
        const float threshold = widen(static_cast<uint16_t>(state.relu_threshold));
        for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
            changed[i] = relu(values[i], state.relu_mode, threshold);
        }
        values = changed;
    }
    uint8_t* page = page_memory(core, out, position);
    if (config.format == Format::Bfp8) {
        pack_block_floats(values, page);
    } else if (config.format == Format::Bfloat16) {
        uint16_t* target = reinterpret_cast<uint16_t*>(page);
        if (state.pack_accumulate) {
            for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
                target[i] = narrow_ties_away(widen(target[i]) + round_ties_away(values[i]));
            }
        } else if (machine.wide_dst) {
            for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
                target[i] = narrow_packed(values[i]);
            }
        } else {
            // A 16-bit DST holds bfloat16: nothing is rounded or flushed.
            for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
                target[i] = static_cast<uint16_t>(bits_of(values[i]) >> 16);
            }
        }
    } else {
        float* target = reinterpret_cast<float*>(page);
        if (state.pack_accumulate) {
            for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
                target[i] += values[i];
            }
        } else {
            memcpy(target, values, TILE_ELEMENTS * sizeof(float));
        }
    }
    written = 1;
    if (!out_of_order) {
        ++buffer.packed;
    }
    moved(in_dst(dst), in_buffer(core, out, position), config.page_bytes, state.pack_accumulate);
    record(Event_pack, out, 1);
}

// ---- rows to tiles and back

void emulator_rows_init(uint32_t operation, uint32_t in, uint32_t tiles, uint32_t line) {
    set_init(static_cast<FpuOperation>(operation), tiles, in, in, line);
}

void emulator_rows_uninit(uint32_t operation, uint32_t line) {
    ComputeState& state = started_state(line);
    if (state.rows_pending != static_cast<FpuOperation>(operation)) {
        kernel_fault("B019",
                     format_text("%s without an init to undo", rows_uninit(static_cast<FpuOperation>(operation))),
                     "call it once after the last block of rows");
    }
    state.rows_pending = Fpu_none;
    state.fpu = Fpu_none;
}

// Where element `column` of row `row` of 32 rows lies in `tiles` tiles.
static uint32_t element_in_tiles(uint32_t row, uint32_t column) {
    const uint32_t face = (row >> 4) * 2 + ((column & 31) >> 4);
    return (column >> 5) * TILE_ELEMENTS + face * FACE_ELEMENTS + (row & 15) * 16 + (column & 15);
}

void emulator_rows_block(uint32_t operation, uint32_t in, uint32_t out, uint32_t tiles, uint32_t line) {
    ComputeState& state = started_state(line);
    const FpuOperation kind = static_cast<FpuOperation>(operation);
    const std::string call = operation_name(kind, 0, false);
    Core* core = running->core;
    const Buffer& source = checked_buffer(in);
    Buffer& target = checked_buffer(out);
    if (state.section != ComputeState::Free) {
        kernel_fault("B013",
                     format_text("%s while DST is %s", call.c_str(), SECTION_NAMES[state.section]),
                     "call it outside of all sections: it acquires and releases DST itself");
    }
    check_init(state, kind, tiles, 0xFFFFFFFFu, in, in);
    check_source_a(state, in, call.c_str());
    if (state.pack != pack_key(out)) {
        kernel_fault("B019",
                     format_text("%s to %s (%s) while the packer is set to %s", call.c_str(), buffer_name(out).c_str(),
                                 KEY_NAMES[pack_key(out)], KEY_NAMES[state.pack]),
                     format_text("call pack_reconfig_data_format(%u) before its init", out));
    }
    if (source_key(in) != KEY_BFLOAT16 || pack_key(out) != KEY_BFLOAT16) {
        kernel_fault("B019",
                     format_text("%s from %s to %s, which are not both Float16_b", call.c_str(), buffer_name(in).c_str(),
                                 buffer_name(out).c_str()),
                     "use Float16_b: the emulator does not model other formats, and tilize truncates Float32 to TF32");
    }
    const uint32_t most = kind == Fpu_tilize ? ~0u : machine.wide_dst ? 4 : 8;
    if (tiles == 0 || tiles > most) {
        kernel_fault("B023",
                     format_text("%s of %u tiles at once, but half of DST holds %u (%u-bit)", call.c_str(), tiles, most,
                                 machine.wide_dst ? 32u : 16u),
                     "make rows of fewer tiles at once");
    }
    if (tiles > source.waited) {
        kernel_fault("B019",
                     format_text("%s reads %u tiles of %s, but %u tiles were waited for", call.c_str(), tiles,
                                 buffer_name(in).c_str(), source.waited),
                     format_text("call wait_front(%u) first", tiles));
    }
    if (tiles > target.reserved) {
        kernel_fault("B019",
                     format_text("%s writes %u tiles of %s, but %u tiles are reserved", call.c_str(), tiles,
                                 buffer_name(out).c_str(), target.reserved),
                     format_text("call reserve_back(%u) first", tiles));
    }
    for (uint32_t id : {in, out}) {
        const uint32_t position = id == in ? source.read : target.write;
        if (position + tiles > machine.buffers[id].pages) {
            kernel_fault("B023",
                         format_text("%s of %u tiles of %s goes past its end (position %u of %u)", call.c_str(), tiles,
                                     buffer_name(id).c_str(), position, machine.buffers[id].pages),
                         "make the capacity a multiple of every push and pop: the chip does not wrap around inside a block");
        }
    }
    const uint16_t* from = reinterpret_cast<const uint16_t*>(page_memory(core, in, source.read));
    uint16_t* to = reinterpret_cast<uint16_t*>(page_memory(core, out, target.write));
    for (uint32_t row = 0; row < 32; ++row) {
        for (uint32_t column = 0; column < tiles * 32; ++column) {
            const uint32_t in_rows = row * tiles * 32 + column, in_tiles = element_in_tiles(row, column);
            const uint16_t value = from[kind == Fpu_tilize ? in_rows : in_tiles];
            to[kind == Fpu_tilize ? in_tiles : in_rows] = machine.wide_dst ? narrow_packed(widen(value)) : value;
            if (column % 16 == 0) {
                // Runs of 16 elements stay together.
                const uint32_t source_at = (kind == Fpu_tilize ? in_rows : in_tiles) * 2;
                const uint32_t target_at = (kind == Fpu_tilize ? in_tiles : in_rows) * 2;
                moved(in_l1(core, reinterpret_cast<const uint8_t*>(from) + source_at),
                      in_l1(core, reinterpret_cast<const uint8_t*>(to) + target_at), 32, false, row || column);
            }
        }
    }
    for (uint32_t tile = 0; tile < tiles; ++tile) {
        core->memory->written[machine.buffers[out].first_page + target.write + tile] = 1;
    }
    record(Event_fpu, in, tiles);
    record(Event_pack, out, tiles);
}
