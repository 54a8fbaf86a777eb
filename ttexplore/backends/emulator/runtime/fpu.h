// The matrix unit's arithmetic, bit for bit (8-bit-exponent formats; metalium.md 5.1).
#pragma once
#include "number.h"

// What of the chip the arithmetic depends on: a 32-bit DST, how many fidelity phases (1 to 4), and whether it is a
// Wormhole, which normalises a sum of exactly -1 units wrongly.
struct FpuMode {
    bool wide;
    uint32_t phases;
    bool wormhole;
};

// How many sums of -1 in the last place of a 32-bit DST were normalised wrongly: each counts 2^27 times as much, as on the
// chip.
extern uint64_t misnormalised_sums;

// One 32x32 tile product on tiles of four 16x16 faces: result += in0 * in1. in0 is held by SrcB, in1 by SrcA.
void fpu_multiply_tiles(const float* in0, const float* in1, float* result, FpuMode mode);

// The sums of a tile's columns times `factor`, which SrcB holds; added to row 0 of `result`.
void fpu_sum_columns(const float* tile, float factor, float* result, FpuMode mode);

// One tile of element-wise sums (b negated for differences) or products. `accumulate` adds to what `result` holds.
void fpu_add_tile(const float* a, const float* b, bool subtract, float* result, bool accumulate, FpuMode mode);
void fpu_multiply_elements(const float* a, const float* b, float* result, bool accumulate, FpuMode mode);
