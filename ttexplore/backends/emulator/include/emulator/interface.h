// The functions that the runner offers to kernels, shared by the API headers and the runner.
// Kernels include nothing heavier than <stdint.h> through this, so that each compiles in a fraction of a second.
#pragma once
#include <stdint.h>

// The line of a call, taken by a default argument. The constructor is explicit, so that a superfluous argument of an
// API call stays a compile error, as it is with the SDK's headers.
struct SourceLine {
    explicit constexpr SourceLine(uint32_t number) : number(number) {}
    uint32_t number;
};
#define EMULATOR_CALL_LINE SourceLine line = SourceLine(__builtin_LINE())

// One end of a NoC transfer.
struct NocLocation {
    enum Kind : uint32_t { Tensor, Buffer, Local, Remote } kind;
    uint32_t address;     // Tensor: base address; Buffer: circular buffer id; Local, Remote: L1 address
    uint32_t page;        // Tensor: page id
    uint32_t page_bytes;  // Tensor: the accessor's page size
    uint32_t offset;      // bytes from the start of the page, buffer position or address
    uint32_t x, y;        // Remote: NoC coordinates
};

struct NocRectangle {
    uint32_t x_start, y_start, x_end, y_end;
};

// clang-format off
// SFPU operations: name, and whether it needs its own init to be the latest, because it keeps constants in registers
// that all share (op-truth.md, trap 2).
#define EMULATOR_SFPU_OPERATIONS(X) \
    X(exp, true) X(exp2, true) X(expm1, true) X(log, true) X(log_with_base, true) X(power, true) \
    X(sqrt, true) X(rsqrt, true) X(recip, true) X(sin, true) X(cos, true) X(erf, true) \
    X(relu, false) X(relu_max, false) X(relu_min, false) X(leaky_relu, false) \
    X(abs, false) X(negative, false) X(sign, false) X(square, false) X(logical_not, false) X(rounding_op, false) \
    X(gtz, false) X(gez, false) X(ltz, false) X(lez, false) X(eqz, false) X(nez, false) \
    X(unary_gt, false) X(unary_ge, false) X(unary_lt, false) X(unary_le, false) X(unary_eq, false) X(unary_ne, false) \
    X(sigmoid, true) X(tanh, true) X(gelu, true) X(silu, true) \
    X(clamp, false) X(fill, false) X(typecast, false) X(bitwise, false) \
    X(binop_with_scalar, false) X(unary_max, false) X(unary_min, false) \
    X(add_binary, false) X(sub_binary, false) X(rsub_binary, false) \
    X(mul_binary, false) X(div_binary, true) X(power_binary, true) X(binary_max, false) X(binary_min, false) \
    X(gt_binary, false) X(ge_binary, false) X(lt_binary, false) X(le_binary, false) X(eq_binary, false) \
    X(ne_binary, false) X(where, true) X(mac, false) \
    X(add_int, false) X(sub_int, false) X(mul_int, true) X(binary_max_int32, true) X(binary_min_int32, true) \
    X(gt_int, false) X(ge_int, false) X(lt_int, false) X(le_int, false) X(eq_int, false) X(ne_int, false) \
    X(binary_bitwise, false) X(binary_shift, false) X(bitwise_not, false) X(reduce, true)
// clang-format on

#define EMULATOR_ENUMERATOR(name, constants) Sfpu_##name,
enum SfpuOperation : uint32_t { EMULATOR_SFPU_OPERATIONS(EMULATOR_ENUMERATOR) SfpuOperationCount };
#undef EMULATOR_ENUMERATOR

enum ScalarOperation : uint32_t { ScalarAdd, ScalarSub, ScalarMul, ScalarDiv, ScalarRsub };
enum IntegerVariant : uint32_t { BitwiseAnd, BitwiseOr, BitwiseXor, ShiftLeft, ShiftRight };
enum Rounding : uint32_t { RoundingFloor, RoundingCeil, RoundingTrunc, RoundingNearest };

// What the FPU and its unpackers were last initialised for.
enum FpuOperation : uint32_t {
    Fpu_none,
    Fpu_copy,
    Fpu_transpose,
    Fpu_unary_bcast,
    Fpu_binary,
    Fpu_reuse_dest,
    Fpu_matmul,
    Fpu_matmul_block,
    Fpu_reduce,
    Fpu_reduce_block,
    Fpu_tilize,
    Fpu_pack_untilize,
};

extern "C" {
uint32_t emulator_argument(uint32_t index, uint32_t line);
uint32_t emulator_common_argument(uint32_t index, uint32_t line);
uint32_t emulator_logical_x();
uint32_t emulator_logical_y();

void emulator_reserve_back(uint32_t buffer, uint32_t pages, uint32_t line);
void emulator_push_back(uint32_t buffer, uint32_t pages, uint32_t line);
void emulator_wait_front(uint32_t buffer, uint32_t pages, uint32_t line);
void emulator_pop_front(uint32_t buffer, uint32_t pages, uint32_t line);
uint32_t emulator_write_pointer(uint32_t buffer, uint32_t line);
uint32_t emulator_read_pointer(uint32_t buffer, uint32_t line);
uint32_t emulator_page_bytes(uint32_t buffer, uint32_t line);
uint32_t emulator_tile_word(uint32_t buffer, uint32_t tile, uint32_t place, uint32_t line);
[[noreturn]] void emulator_assertion(const char* condition, uint32_t line);
uint32_t emulator_buffer_pages(uint32_t buffer, uint32_t line);

void emulator_noc_read(const NocLocation* source, const NocLocation* target, uint32_t bytes, uint32_t line);
void emulator_noc_write_zeros(const NocLocation* target, uint32_t bytes, uint32_t line);
void emulator_noc_write(const NocLocation* source, const NocLocation* target, uint32_t bytes, uint32_t line);
void emulator_noc_multicast(const NocLocation* source, const NocLocation* target, const NocRectangle* rectangle,
                            uint32_t bytes, uint32_t destinations, uint32_t include_source, uint32_t line);
void emulator_copied(uint32_t source, uint32_t target, uint32_t bytes);
void emulator_noc_read_barrier(uint32_t line);
void emulator_noc_write_barrier(uint32_t line);
void emulator_noc_writes_flushed(uint32_t line);
void emulator_noc_atomic_barrier(uint32_t line);

void emulator_semaphore_set(uint32_t semaphore, uint32_t value, uint32_t line);
void emulator_semaphore_add(uint32_t semaphore, int32_t value, uint32_t line);
uint32_t emulator_semaphore_value(uint32_t semaphore, uint32_t line);
void emulator_semaphore_wait(uint32_t semaphore, uint32_t value, uint32_t minimum_only, uint32_t line);
void emulator_semaphore_up_remote(uint32_t semaphore, uint32_t x, uint32_t y, uint32_t value, uint32_t line);
void emulator_semaphore_multicast(uint32_t semaphore, const NocRectangle* rectangle, uint32_t destinations,
                                  uint32_t include_source, uint32_t increment, uint32_t value, uint32_t line);

void emulator_startup(uint32_t source_a, uint32_t source_b, uint32_t out, uint32_t line);
void emulator_reconfigure_a(int32_t old_buffer, uint32_t buffer, uint32_t line);
void emulator_reconfigure_b(int32_t old_buffer, uint32_t buffer, uint32_t line);
void emulator_reconfigure_pack(int32_t old_buffer, uint32_t buffer, uint32_t line);
void emulator_pack_accumulate(uint32_t enable, uint32_t line);
void emulator_pack_relu(uint32_t mode, uint32_t threshold, uint32_t line);

void emulator_registers_acquire(uint32_t line);
void emulator_registers_commit(uint32_t line);
void emulator_registers_wait(uint32_t line);
void emulator_registers_release(uint32_t line);

// `variant` holds what must be the same in init and call: the binary operation and broadcast, reuse type, reduce kind.
void emulator_fpu_init(uint32_t operation, uint32_t variant, uint32_t in0, uint32_t in1, uint32_t line);
void emulator_matmul_init(uint32_t block, uint32_t in0, uint32_t in1, uint32_t transpose, uint32_t columns,
                          uint32_t rows, uint32_t inner, uint32_t line);
void emulator_reduce_uninit(uint32_t line);
void emulator_unary_bcast_uninit(uint32_t variant, uint32_t line);
void emulator_copy_tile(uint32_t in, uint32_t tile, uint32_t dst, uint32_t line);
void emulator_transpose_tile(uint32_t in, uint32_t tile, uint32_t dst, uint32_t line);
void emulator_unary_bcast(uint32_t variant, uint32_t in, uint32_t tile, uint32_t dst, uint32_t line);
void emulator_binary_tiles(uint32_t variant, uint32_t in0, uint32_t in1, uint32_t tile0, uint32_t tile1, uint32_t dst,
                           uint32_t row, uint32_t line);
void emulator_reuse_dest_tiles(uint32_t variant, uint32_t in, uint32_t tile, uint32_t dst, uint32_t line);
void emulator_matmul(uint32_t block, uint32_t in0, uint32_t in1, uint32_t tile0, uint32_t tile1, uint32_t dst,
                     uint32_t columns, uint32_t rows, uint32_t inner, uint32_t line);
void emulator_reduce_tile(uint32_t variant, uint32_t in, uint32_t scaler, uint32_t tile, uint32_t scaler_tile,
                          uint32_t dst, uint32_t line);
void emulator_reduce_block_max_row(uint32_t count, uint32_t in, uint32_t scaler, uint32_t tile, uint32_t dst,
                                   uint32_t line);
void emulator_pack_tile(uint32_t dst, uint32_t out, uint32_t out_of_order, uint32_t tile, uint32_t line);

// Rows to tiles, or tiles to rows, by the operation: `tiles` from the front of `in` to the next free ones of `out`.
void emulator_rows_init(uint32_t operation, uint32_t in, uint32_t tiles, uint32_t line);
void emulator_rows_uninit(uint32_t operation, uint32_t line);
void emulator_rows_block(uint32_t operation, uint32_t in, uint32_t out, uint32_t tiles, uint32_t line);

void emulator_sfpu_init(uint32_t operation, uint32_t variant, uint32_t line);
void emulator_exp_scale(uint32_t bits);
void emulator_sfpu_unary(uint32_t operation, uint32_t variant, uint32_t dst, uint32_t parameter, uint32_t second,
                         uint32_t vector_mode, uint32_t line);
void emulator_sfpu_binary(uint32_t operation, uint32_t dst0, uint32_t dst1, uint32_t out, uint32_t vector_mode,
                          uint32_t line);
// `kind` chooses among operations of one init; those of one operand take it twice.
void emulator_sfpu_integer(uint32_t operation, uint32_t kind, uint32_t dst0, uint32_t dst1, uint32_t out, uint32_t line);
// Along the rows or columns of a tile; `data_format` is that of the template argument. The numbers of enumerators.
void emulator_sfpu_reduce(uint32_t pool, uint32_t dimension, uint32_t data_format, uint32_t dst, uint32_t tiles,
                          uint32_t line);
void emulator_sfpu_ternary(uint32_t operation, uint32_t wide, uint32_t dst0, uint32_t dst1, uint32_t dst2,
                           uint32_t out, uint32_t line);
}

// Names that the SDK's headers make available everywhere.
#define FORCE_INLINE inline __attribute__((always_inline))
#define ALWI inline __attribute__((always_inline))
#define tt_l1_ptr
#define tt_reg_ptr

enum class DataFormat : uint8_t {
    Float32 = 0,
    Float16 = 1,
    Bfp8 = 2,
    Bfp4 = 3,
    Tf32 = 4,
    Float16_b = 5,
    Bfp8_b = 6,
    Bfp4_b = 7,
    Int32 = 8,
    UInt16 = 9,
    Int8 = 14,
    UInt32 = 24,
    UInt8 = 30,
};
enum class PoolType : uint8_t { SUM, AVG, MAX, MIN };
enum class ReduceDim : uint8_t { REDUCE_ROW, REDUCE_COL, REDUCE_SCALAR };

// The keys by which the init of a reduction and its calls are compared.
constexpr uint32_t emulator_reduce_variant(PoolType pool, ReduceDim dimension) {
    return static_cast<uint32_t>(pool) | static_cast<uint32_t>(dimension) << 8;
}
// In its second byte, the part of a tile that is left, as that of the other reductions has it.
constexpr uint32_t emulator_reduce_block_variant(uint32_t count) {
    return count | static_cast<uint32_t>(ReduceDim::REDUCE_ROW) << 8;
}
constexpr uint32_t emulator_sfpu_reduce_variant(PoolType pool, DataFormat format) {
    return static_cast<uint32_t>(pool) | static_cast<uint32_t>(format) << 8;
}
