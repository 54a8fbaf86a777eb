#pragma once
#include "fpu.h"

// A tile as one side of the multiplier takes it. `tile` is given, take_left() and take_right() find the rest.
struct MatmulOperand {
    alignas(64) float tile[TILE_ELEMENTS];
    alignas(64) float part[2][TILE_ELEMENTS];  // the values of its high and of its low mantissa bits
    // Exponents, a byte each: of the left side for each row, half of the depth and one of eight places those of both
    // groups of eight, twice; of the right side for each half and place words of two columns and two groups.
    union {
        alignas(64) uint32_t left_exponents[TILE_ELEMENTS / 2];
        alignas(64) int8_t right_exponents[TILE_ELEMENTS];
    };
    int32_t least, largest;  // exponents of numbers other than zero
};

void take_left(MatmulOperand& operand);   // in0, which SrcB holds
void take_right(MatmulOperand& operand);  // in1, which SrcA holds

// What fpu_multiply_tiles() computes, bit for bit, with vectors of floats where the processor has what it takes and
// the operands keep away from the ends of the exponent range; several times faster.
void multiply_tiles_exactly(const MatmulOperand& left, const MatmulOperand& right, float* result, FpuMode mode);
void multiply_tiles_exactly(const float* in0, const float* in1, float* result, FpuMode mode);
