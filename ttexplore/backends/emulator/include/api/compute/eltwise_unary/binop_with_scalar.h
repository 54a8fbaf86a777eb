#pragma once
#include "api/compute/common_globals.h"

ALWI void binop_with_scalar_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_binop_with_scalar, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void add_unary_tile(uint32_t idst, uint32_t param1, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_binop_with_scalar, 0, idst, param1, ScalarAdd, static_cast<uint32_t>(VectorMode::RC), line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void sub_unary_tile(uint32_t idst, uint32_t param1, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_binop_with_scalar, 0, idst, param1, ScalarSub, static_cast<uint32_t>(VectorMode::RC), line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void mul_unary_tile(uint32_t idst, uint32_t param1, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_binop_with_scalar, 0, idst, param1, ScalarMul, static_cast<uint32_t>(VectorMode::RC), line.number);
}
// Multiplies by its argument: pass the bits of the reciprocal (op-truth.md, trap 14).
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void div_unary_tile(uint32_t idst, uint32_t param1, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_binop_with_scalar, 0, idst, param1, ScalarDiv, static_cast<uint32_t>(VectorMode::RC), line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void rsub_unary_tile(uint32_t idst, uint32_t param1, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_binop_with_scalar, 0, idst, param1, ScalarRsub, static_cast<uint32_t>(VectorMode::RC), line.number);
}
