"""The two ways to multiply tiles exactly, in float vectors and in whole numbers, agree bit for bit on any processor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.arithmetic_objects import PARAMETERS, run_with_arithmetic

COMPARISON = r"""
#include <cmath>
#include <cstdio>
#include <random>
#include "matmul_exact.h"

int main() {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);  // as the runner does
#endif
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    std::uniform_int_distribution<int> places(-12, 12), tenth(0, 9);
    long different = 0;
    for (unsigned round = 0; round < 224; ++round) {
        const FpuMode mode = {round % 2 != 0, 1 + round / 2 % 4, round / 8 % 2 == 0};
        const unsigned kind = round / 16 % 7;
        const uint32_t format = mode.wide && round % 3 ? 0xFFFFE000u : 0xFFFF0000u;
        // Ordinary values, wide exponents, small whole numbers, exponents out of the vectors' range, zeros, outliers,
        // and sums that cancel down to a last place of -1, which Wormhole normalises wrongly.
        const auto value = [&] {
            const float v = normal(generator);
            switch (kind) {
                case 1: return v * ldexpf(1, places(generator));
                case 2: return static_cast<float>(places(generator)) / 4;
                case 3: return v * ldexpf(1, places(generator) * 5);
                case 4: return tenth(generator) < 3 ? 0.0f : v;
                case 5: return tenth(generator) == 0 ? v * ldexpf(1, 60 + places(generator)) : v;
                case 6: return v < 0 ? -1.0f : 1.0f;
                default: return v;
            }
        };
        float a[TILE_ELEMENTS], b[TILE_ELEMENTS], one[TILE_ELEMENTS], other[TILE_ELEMENTS];
        for (float& v : one) v = round % 5 ? 0.0f : masked(normal(generator), mode.wide ? 0xFFFFFFFFu : 0xFFFF0000u);
        if (kind == 6) for (float& v : one) v = -ldexpf(1, -23);
        memcpy(other, one, sizeof one);
        for (int step = 0; step < 3; ++step) {
            for (float& v : a) v = masked(value(), format);
            for (float& v : b) v = masked(value(), format);
            multiply_tiles_exactly(a, b, one, mode);
            fpu_multiply_tiles(a, b, other, mode);
            for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) different += bits_of(one[i]) != bits_of(other[i]);
        }
    }
    printf("%ld\n", different);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PARAMETERS["this processor"], PARAMETERS["AVX2"]])
def test_vectors_and_whole_numbers_agree(kind: str, tmp_path: Path) -> None:
    assert run_with_arithmetic(kind, COMPARISON, tmp_path) == "0\n"
