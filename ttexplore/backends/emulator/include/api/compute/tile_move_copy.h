#pragma once
#include "api/compute/common_globals.h"
#include "api/compute/reconfig_data_format.h"

template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void copy_init(uint32_t cbid, uint32_t transpose = 0, uint32_t transpose_within_16x16_face = false,
                    EMULATOR_CALL_LINE) {
    emulator_fpu_init(Fpu_copy, transpose | transpose_within_16x16_face << 1, cbid, cbid, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void copy_tile(uint32_t in_cb_id, uint32_t in_tile_index, uint32_t dst_tile_index, EMULATOR_CALL_LINE) {
    emulator_copy_tile(in_cb_id, in_tile_index, dst_tile_index, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void copy_block(uint32_t in_cb_id, uint32_t start_in_tile_index, uint32_t start_dst_tile_index, uint32_t ntiles,
                     EMULATOR_CALL_LINE) {
    for (uint32_t tile = 0; tile < ntiles; ++tile) {
        emulator_copy_tile(in_cb_id, start_in_tile_index + tile, start_dst_tile_index + tile, line.number);
    }
}
