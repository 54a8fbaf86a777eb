#pragma once
#include "api/compute/common_globals.h"

ALWI void unary_ne_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_unary_ne, 0, line.number);
}
ALWI void unary_ne_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_unary_ne, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void unary_eq_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_unary_eq, 0, line.number);
}
ALWI void unary_eq_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_unary_eq, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void unary_gt_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_unary_gt, 0, line.number);
}
ALWI void unary_gt_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_unary_gt, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void unary_ge_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_unary_ge, 0, line.number);
}
ALWI void unary_ge_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_unary_ge, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void unary_lt_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_unary_lt, 0, line.number);
}
ALWI void unary_lt_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_unary_lt, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void unary_le_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_unary_le, 0, line.number);
}
ALWI void unary_le_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_unary_le, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void gtz_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_gtz, 0, line.number);
}
ALWI void gtz_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_gtz, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void nez_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_nez, 0, line.number);
}
ALWI void nez_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_nez, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void gez_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_gez, 0, line.number);
}
ALWI void gez_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_gez, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void ltz_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_ltz, 0, line.number);
}
ALWI void ltz_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_ltz, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void eqz_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_eqz, 0, line.number);
}
ALWI void eqz_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_eqz, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void lez_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_lez, 0, line.number);
}
ALWI void lez_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_lez, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
