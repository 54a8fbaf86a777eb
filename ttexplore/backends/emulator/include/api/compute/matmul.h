#pragma once
#include "api/compute/common_globals.h"

ALWI void matmul_init(uint32_t in0_cb_id, uint32_t in1_cb_id, const uint32_t transpose = 0, EMULATOR_CALL_LINE) {
    emulator_matmul_init(0, in0_cb_id, in1_cb_id, transpose, 1, 1, 1, line.number);
}
ALWI void mm_uninit(uint32_t in0_cb_id, uint32_t in1_cb_id) {
    (void)in0_cb_id;
    (void)in1_cb_id;
}
ALWI void matmul_tiles(uint32_t in0_cb_id, uint32_t in1_cb_id, uint32_t in0_tile_index, uint32_t in1_tile_index,
                       uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_matmul(0, in0_cb_id, in1_cb_id, in0_tile_index, in1_tile_index, idst, 1, 1, 1, line.number);
}
ALWI void matmul_block_init(uint32_t in0_cb_id, uint32_t in1_cb_id, const uint32_t transpose = 0, uint32_t ct_dim = 1,
                            uint32_t rt_dim = 1, uint32_t kt_dim = 1, EMULATOR_CALL_LINE) {
    emulator_matmul_init(1, in0_cb_id, in1_cb_id, transpose, ct_dim, rt_dim, kt_dim, line.number);
}
// The call's `transpose` has no effect: the init decides (op-truth.md, trap 4).
ALWI void matmul_block(uint32_t in0_cb_id, uint32_t in1_cb_id, uint32_t in0_tile_index, uint32_t in1_tile_index,
                       uint32_t idst, const uint32_t transpose, uint32_t ct_dim, uint32_t rt_dim, uint32_t kt_dim,
                       EMULATOR_CALL_LINE) {
    (void)transpose;
    emulator_matmul(1, in0_cb_id, in1_cb_id, in0_tile_index, in1_tile_index, idst, ct_dim, rt_dim, kt_dim,
                    line.number);
}
