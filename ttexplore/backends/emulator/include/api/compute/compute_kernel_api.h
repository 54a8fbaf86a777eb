#pragma once
#include "api/compute/common_globals.h"

template <bool fast_and_approx = false>
ALWI void sigmoid_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_sigmoid, fast_and_approx, line.number);
}
template <VectorMode vec_mode = VectorMode::RC, bool fast_and_approx = false, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void sigmoid_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_sigmoid, fast_and_approx, idst, 0, 0, static_cast<uint32_t>(vec_mode), line.number);
}
ALWI void silu_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_silu, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void silu_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_silu, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void square_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_square, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void square_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_square, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
template <bool fast_and_approx = false, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void tanh_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_tanh, fast_and_approx, line.number);
}
template <bool fast_and_approx = false, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void tanh_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_tanh, fast_and_approx, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
template <bool fast_and_approx = false, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void log_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_log, fast_and_approx, line.number);
}
template <bool fast_and_approx = false, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void log_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_log, fast_and_approx, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void exp2_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_exp2, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void exp2_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_exp2, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
template <bool approx = false, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void expm1_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_expm1, approx, line.number);
}
template <bool approx = false, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void expm1_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_expm1, approx, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void abs_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_abs, 0, line.number);
}
ALWI void abs_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_abs, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void abs_tile_int32(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_integer(Sfpu_abs, 0, idst, idst, idst, line.number);
}
ALWI void sign_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_sign, 0, line.number);
}
ALWI void sign_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_sign, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void unary_max_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_unary_max, 0, line.number);
}
ALWI void unary_max_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_unary_max, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void unary_min_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_unary_min, 0, line.number);
}
ALWI void unary_min_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_unary_min, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
template <bool fast_and_approx = false, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void log_with_base_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_log_with_base, fast_and_approx, line.number);
}
template <bool fast_and_approx = false, bool base_is_two = false, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void log_with_base_tile(uint32_t idst, uint32_t base_scale, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_log_with_base, fast_and_approx, idst, base_scale, base_is_two,
                        static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void power_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_power, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void power_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_power, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}

template <PoolType pool_type, DataFormat format, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void sfpu_reduce_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_reduce, emulator_sfpu_reduce_variant(pool_type, format), line.number);
}
template <PoolType pool_type, DataFormat format, ReduceDim reduce_dim = ReduceDim::REDUCE_COL,
          bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void sfpu_reduce(uint32_t idst, uint32_t ct_dim = 1, uint32_t rt_dim = 1, EMULATOR_CALL_LINE) {
    static_assert(reduce_dim != ReduceDim::REDUCE_SCALAR, "sfpu_reduce reduces rows or columns");
    emulator_sfpu_reduce(static_cast<uint32_t>(pool_type), static_cast<uint32_t>(reduce_dim),
                         static_cast<uint32_t>(format), idst, ct_dim * rt_dim, line.number);
}
