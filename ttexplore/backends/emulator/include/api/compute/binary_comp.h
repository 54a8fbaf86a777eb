#pragma once
#include "api/compute/common_globals.h"

template <DataFormat data_format>
ALWI void gt_int_tile_init(EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_init(Sfpu_gt_int, 0, line.number);
}
template <DataFormat data_format>
ALWI void gt_int_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_integer(Sfpu_gt_int, 0, idst0, idst1, odst, line.number);
}
template <DataFormat data_format>
ALWI void ge_int_tile_init(EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_init(Sfpu_ge_int, 0, line.number);
}
template <DataFormat data_format>
ALWI void ge_int_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_integer(Sfpu_ge_int, 0, idst0, idst1, odst, line.number);
}
template <DataFormat data_format>
ALWI void lt_int_tile_init(EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_init(Sfpu_lt_int, 0, line.number);
}
template <DataFormat data_format>
ALWI void lt_int_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_integer(Sfpu_lt_int, 0, idst0, idst1, odst, line.number);
}
template <DataFormat data_format>
ALWI void le_int_tile_init(EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_init(Sfpu_le_int, 0, line.number);
}
template <DataFormat data_format>
ALWI void le_int_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_integer(Sfpu_le_int, 0, idst0, idst1, odst, line.number);
}
template <DataFormat data_format>
ALWI void eq_int_tile_init(EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_init(Sfpu_eq_int, 0, line.number);
}
template <DataFormat data_format>
ALWI void eq_int_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_integer(Sfpu_eq_int, 0, idst0, idst1, odst, line.number);
}
template <DataFormat data_format>
ALWI void ne_int_tile_init(EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_init(Sfpu_ne_int, 0, line.number);
}
template <DataFormat data_format>
ALWI void ne_int_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_integer(Sfpu_ne_int, 0, idst0, idst1, odst, line.number);
}
