#pragma once
#include "api/compute/common_globals.h"

ALWI void add_init(uint32_t icb0, uint32_t icb1, bool acc_to_dest = false, EMULATOR_CALL_LINE) {
    const uint32_t accumulate = acc_to_dest ? 1u : 0u;
    emulator_fpu_init(Fpu_binary, emulator_binary_variant(EltwiseBinaryType::ELWADD, BroadcastType::NONE) | accumulate << 16, icb0, icb1,
                      line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void add_tiles(uint32_t icb0, uint32_t icb1, uint32_t itile0, uint32_t itile1, uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_binary_tiles(emulator_binary_variant(EltwiseBinaryType::ELWADD, BroadcastType::NONE), icb0, icb1, itile0, itile1, idst, 0,
                          line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void add_block(uint32_t icb0, uint32_t icb1, uint32_t start_itile0, uint32_t start_itile1, uint32_t start_idst,
                    uint32_t ntiles, EMULATOR_CALL_LINE) {
    for (uint32_t tile = 0; tile < ntiles; ++tile) {
        add_tiles<is_fp32_dest_acc_en>(icb0, icb1, start_itile0 + tile, start_itile1 + tile, start_idst + tile, line);
    }
}
template <EltwiseBinaryReuseDestType reuse_dest>
ALWI void add_reuse_dest_init(uint32_t icb, EMULATOR_CALL_LINE) {
    emulator_fpu_init(Fpu_reuse_dest, emulator_reuse_variant(EltwiseBinaryType::ELWADD, reuse_dest), icb, icb, line.number);
}
template <EltwiseBinaryReuseDestType reuse_dest, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void add_reuse_dest_tiles(uint32_t in_cb_id, uint32_t in_tile_index, uint32_t dst_tile_index, EMULATOR_CALL_LINE) {
    emulator_reuse_dest_tiles(emulator_reuse_variant(EltwiseBinaryType::ELWADD, reuse_dest), in_cb_id, in_tile_index, dst_tile_index,
                              line.number);
}
ALWI void sub_init(uint32_t icb0, uint32_t icb1, bool acc_to_dest = false, EMULATOR_CALL_LINE) {
    const uint32_t accumulate = acc_to_dest ? 1u : 0u;
    emulator_fpu_init(Fpu_binary, emulator_binary_variant(EltwiseBinaryType::ELWSUB, BroadcastType::NONE) | accumulate << 16, icb0, icb1,
                      line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void sub_tiles(uint32_t icb0, uint32_t icb1, uint32_t itile0, uint32_t itile1, uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_binary_tiles(emulator_binary_variant(EltwiseBinaryType::ELWSUB, BroadcastType::NONE), icb0, icb1, itile0, itile1, idst, 0,
                          line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void sub_block(uint32_t icb0, uint32_t icb1, uint32_t start_itile0, uint32_t start_itile1, uint32_t start_idst,
                    uint32_t ntiles, EMULATOR_CALL_LINE) {
    for (uint32_t tile = 0; tile < ntiles; ++tile) {
        sub_tiles<is_fp32_dest_acc_en>(icb0, icb1, start_itile0 + tile, start_itile1 + tile, start_idst + tile, line);
    }
}
template <EltwiseBinaryReuseDestType reuse_dest>
ALWI void sub_reuse_dest_init(uint32_t icb, EMULATOR_CALL_LINE) {
    emulator_fpu_init(Fpu_reuse_dest, emulator_reuse_variant(EltwiseBinaryType::ELWSUB, reuse_dest), icb, icb, line.number);
}
template <EltwiseBinaryReuseDestType reuse_dest, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void sub_reuse_dest_tiles(uint32_t in_cb_id, uint32_t in_tile_index, uint32_t dst_tile_index, EMULATOR_CALL_LINE) {
    emulator_reuse_dest_tiles(emulator_reuse_variant(EltwiseBinaryType::ELWSUB, reuse_dest), in_cb_id, in_tile_index, dst_tile_index,
                              line.number);
}
ALWI void mul_init(uint32_t icb0, uint32_t icb1, bool acc_to_dest = true, EMULATOR_CALL_LINE) {
    (void)acc_to_dest;
    const uint32_t accumulate = 1u;  // ELWMUL always adds to DST
    emulator_fpu_init(Fpu_binary, emulator_binary_variant(EltwiseBinaryType::ELWMUL, BroadcastType::NONE) | accumulate << 16, icb0, icb1,
                      line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void mul_tiles(uint32_t icb0, uint32_t icb1, uint32_t itile0, uint32_t itile1, uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_binary_tiles(emulator_binary_variant(EltwiseBinaryType::ELWMUL, BroadcastType::NONE), icb0, icb1, itile0, itile1, idst, 0,
                          line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void mul_block(uint32_t icb0, uint32_t icb1, uint32_t start_itile0, uint32_t start_itile1, uint32_t start_idst,
                    uint32_t ntiles, EMULATOR_CALL_LINE) {
    for (uint32_t tile = 0; tile < ntiles; ++tile) {
        mul_tiles<is_fp32_dest_acc_en>(icb0, icb1, start_itile0 + tile, start_itile1 + tile, start_idst + tile, line);
    }
}
template <EltwiseBinaryReuseDestType reuse_dest>
ALWI void mul_reuse_dest_init(uint32_t icb, EMULATOR_CALL_LINE) {
    emulator_fpu_init(Fpu_reuse_dest, emulator_reuse_variant(EltwiseBinaryType::ELWMUL, reuse_dest), icb, icb, line.number);
}
template <EltwiseBinaryReuseDestType reuse_dest, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void mul_reuse_dest_tiles(uint32_t in_cb_id, uint32_t in_tile_index, uint32_t dst_tile_index, EMULATOR_CALL_LINE) {
    emulator_reuse_dest_tiles(emulator_reuse_variant(EltwiseBinaryType::ELWMUL, reuse_dest), in_cb_id, in_tile_index, dst_tile_index,
                              line.number);
}
