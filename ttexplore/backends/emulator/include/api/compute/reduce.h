#pragma once
#include "api/compute/common_globals.h"

template <PoolType reduce_type, ReduceDim reduce_dim, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void reduce_init(uint32_t icb, uint32_t icb_scaler, uint32_t ocb, EMULATOR_CALL_LINE) {
    (void)ocb;
    emulator_fpu_init(Fpu_reduce, emulator_reduce_variant(reduce_type, reduce_dim), icb, icb_scaler, line.number);
}
ALWI void reduce_uninit(uint32_t icb = 0, EMULATOR_CALL_LINE) {
    (void)icb;
    emulator_reduce_uninit(line.number);
}
template <PoolType reduce_type, ReduceDim reduce_dim, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void reduce_tile(uint32_t icb, uint32_t icb_scaler, uint32_t itile, uint32_t itile_scaler, uint32_t idst,
                      EMULATOR_CALL_LINE) {
    emulator_reduce_tile(emulator_reduce_variant(reduce_type, reduce_dim), icb, icb_scaler, itile, itile_scaler, idst,
                         line.number);
}
