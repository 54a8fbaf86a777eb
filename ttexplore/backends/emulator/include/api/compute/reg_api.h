#pragma once
#include "api/compute/common_globals.h"

ALWI void tile_regs_acquire(EMULATOR_CALL_LINE) { emulator_registers_acquire(line.number); }
ALWI void tile_regs_wait(EMULATOR_CALL_LINE) { emulator_registers_wait(line.number); }
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void tile_regs_commit(EMULATOR_CALL_LINE) { emulator_registers_commit(line.number); }
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void tile_regs_release(EMULATOR_CALL_LINE) { emulator_registers_release(line.number); }
