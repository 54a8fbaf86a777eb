#pragma once
#include "api/compute/common_globals.h"

ALWI void add_binary_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_add_binary, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void add_binary_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_add_binary, idst0, idst1, odst, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void sub_binary_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_sub_binary, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void sub_binary_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_sub_binary, idst0, idst1, odst, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void rsub_binary_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_rsub_binary, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void rsub_binary_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_rsub_binary, idst0, idst1, odst, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void mul_binary_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_mul_binary, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void mul_binary_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_mul_binary, idst0, idst1, odst, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void div_binary_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_div_binary, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void div_binary_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_div_binary, idst0, idst1, odst, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void power_binary_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_power_binary, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void power_binary_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_power_binary, idst0, idst1, odst, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void eq_binary_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_eq_binary, 0, line.number);
}
ALWI void eq_binary_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_eq_binary, idst0, idst1, odst, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void ne_binary_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_ne_binary, 0, line.number);
}
ALWI void ne_binary_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_ne_binary, idst0, idst1, odst, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void lt_binary_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_lt_binary, 0, line.number);
}
ALWI void lt_binary_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_lt_binary, idst0, idst1, odst, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void gt_binary_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_gt_binary, 0, line.number);
}
ALWI void gt_binary_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_gt_binary, idst0, idst1, odst, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void le_binary_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_le_binary, 0, line.number);
}
ALWI void le_binary_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_le_binary, idst0, idst1, odst, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void ge_binary_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_ge_binary, 0, line.number);
}
ALWI void ge_binary_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_ge_binary, idst0, idst1, odst, static_cast<uint32_t>(VectorMode::RC), line.number);
}
