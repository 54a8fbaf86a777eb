"""The emulator's vectors against one element after the other in whole numbers (plain_fpu.h), bit for bit.

Every number of fidelity phases, both widths of DST and both chips, with the numbers that each format can hold in the
source registers, and denormals, infinities, NaN and the ends of the exponents among them; compiled for this processor,
for AVX2 and for any processor of its kind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.arithmetic_objects import PARAMETERS, run_with_arithmetic

COMPARISON = r"""
#include <cmath>
#include <cstdio>
#include <random>
#include "fpu.h"
#include "matmul_exact.h"
#include "plain_fpu.h"

static std::mt19937 generator(7);
static uint32_t below(uint32_t limit) { return generator() % limit; }

// A number of one of several kinds.
static float drawn(uint32_t kind) {
    static std::normal_distribution<float> normal;
    const float value = normal(generator);
    switch (kind) {
        case 0: return value;
        case 1: return ldexpf(value, static_cast<int>(below(25)) - 12);
        case 2: return static_cast<float>(static_cast<int>(below(17)) - 8) / 4;
        case 3: return ldexpf(value, static_cast<int>(below(180)) - 90);
        case 4: return float_of(generator());  // any bits: denormals, infinities and NaN as well
        case 5: return below(3) ? value : 0.0f;
        case 6: {
            const uint32_t special[] = {0, 0x80000000u, 1, 0x807FFFFFu, 0x00800000u, 0x7F7FE000u, 0x7F800000u,
                                        0xFF800000u, 0x7FC00000u, 0x3F800000u, 0xBF800000u, 0x3FFFE000u, 0x00810000u,
                                        0x7F000000u};
            return below(2) ? float_of(special[below(sizeof special / 4)]) : value;
        }
        case 7: return below(2) ? 1.0f : -1.0f;  // sums that cancel
        case 8: return ldexpf(value, -70);       // products at the lower end
        case 9: return ldexpf(value, below(8) ? -2 : 20);
        case 10: return ldexpf(value, 62);       // and at the upper one
        case 11: return 0.0f;
        case 12: return below(40) ? value : float_of(below(2) ? 0x7F800000u : 0xFFC00000u);
        default: return ldexpf(value, -40);  // beside which infinities make products of ordinary size
    }
}
constexpr uint32_t KINDS = 14;

static long different = 0, compared = 0;
static unsigned long long misnormalised = 0;
static void expect(const char* what, float got, float wanted, uint32_t kind, FpuMode mode, unsigned place) {
    ++compared;
    if (bits_of(got) != bits_of(wanted) && ++different <= 5) {
        printf("%s: %08x instead of %08x at %u (kind %u, wide %d, phases %u, Wormhole %d)\n", what, bits_of(got),
               bits_of(wanted), place, kind, mode.wide, mode.phases, mode.wormhole);
    }
}

int main() {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);  // as the runner does
#endif
    for (unsigned round = 0; round < 16 * KINDS; ++round) {
        const FpuMode mode = {round % 2 != 0, 1 + round / 2 % 4, round / 8 % 2 == 0};
        const plain::Mode same = {mode.wide, mode.phases, mode.wormhole};
        const uint32_t kind = round / 16 % KINDS, other_kind = kind == 12 ? 13 : below(3) ? kind : below(KINDS);
        // What the source registers hold: bfloat16 and Bfp8_b, or TF32.
        const uint32_t masks[] = {0xFFFF0000u, 0xFFFE0000u, 0xFFFFE000u};
        const uint32_t mask = masks[below(mode.wide ? 3 : 2)], dst_mask = mode.wide ? 0xFFFFFFFFu : 0xFFFF0000u;
        float a[TILE_ELEMENTS], b[TILE_ELEMENTS], start[TILE_ELEMENTS], got[TILE_ELEMENTS];
        for (float& v : a) v = masked(drawn(kind), mask);
        for (float& v : b) v = masked(drawn(other_kind), mask);
        // Beside sums that cancel, DST holds their last places: Wormhole normalises a total of -1 wrongly.
        const uint32_t held_kind = kind == 7 ? 1 : below(4);
        for (float& v : start) {
            const float one = drawn(kind == 4 || kind == 6 ? kind : other_kind);
            const float small = ldexpf(drawn(0), kind == 7 ? -23 : -80);
            v = masked(held_kind == 0 ? 0.0f : held_kind == 1 ? small : one, dst_mask);
        }
        uint64_t wrong[2];
        for (const bool vectors : {true, false}) {
            memcpy(got, start, sizeof got);
            misnormalised_sums = 0;
            (vectors ? static_cast<void (*)(const float*, const float*, float*, FpuMode)>(multiply_tiles_exactly)
                     : fpu_multiply_tiles)(b, a, got, mode);
            for (unsigned n = 0; n < 64; ++n) {
                const unsigned row = below(32), column = below(32), at = element_place(row, column);
                expect("product", got[at], plain::product_element(b, a, row, column, start[at], same), kind, mode, at);
            }
            wrong[vectors] = misnormalised_sums;
        }
        expect("sums of -1", wrong[true], wrong[false], kind, mode, 0);
        misnormalised += wrong[true];
        memcpy(got, start, sizeof got);
        fpu_sum_columns(a, b[0], got, mode);
        for (unsigned column = 0; column < 32; ++column) {
            const unsigned at = element_place(0, column);
            expect("sum of a column", got[at], plain::column_sum(a, b[0], column, start[at], same), kind, mode, at);
        }
        for (const bool accumulate : {false, true}) {
            const auto held = [&](unsigned i) { return accumulate ? start[i] : 0.0f; };
            for (const bool subtract : {false, true}) {
                memcpy(got, start, sizeof got);
                fpu_add_tile(a, b, subtract, got, accumulate, mode);
                for (unsigned i = 0; i < TILE_ELEMENTS; ++i) {
                    const float second = float_of(bits_of(b[i]) ^ (subtract ? 0x80000000u : 0));
                    expect("sum", got[i], plain::sum_element(a[i], second, held(i), same), kind, mode, i);
                }
            }
            memcpy(got, start, sizeof got);
            fpu_multiply_elements(a, b, got, accumulate, mode);
            for (unsigned i = 0; i < TILE_ELEMENTS; ++i) {
                expect("product of two", got[i], plain::element_product(a[i], b[i], held(i), same), kind, mode, i);
            }
        }
    }
    printf("%ld of %ld differ\n", different, compared);
    printf("%llu sums of -1\n", misnormalised);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", PARAMETERS.values())
def test_every_mode_and_kind_of_number(kind: str, tmp_path: Path) -> None:
    printed = run_with_arithmetic(kind, COMPARISON, tmp_path)
    assert printed.startswith("0 of "), printed
    assert int(printed.split()[2]) > 1_000_000
    assert int(printed.splitlines()[1].split()[0]) > 0
