#include "matmul.h"

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#endif

#if defined(__AVX512F__)

// 8 rows x 32 columns of the result stay in registers: sixteen accumulators, two column vectors of b per step.
void multiply_tiles(const float* a, const float* b, float* result, uint32_t begin, uint32_t end, bool fresh) {
    for (uint32_t row = 0; row < 32; row += 8) {
        const uint32_t face = row / 16 * 2;
        float* left = result + face * FACE_ELEMENTS + row % 16 * 16;
        float* right = left + FACE_ELEMENTS;
        __m512 sums[8][2];
        for (uint32_t i = 0; i < 8; ++i) {
            sums[i][0] = fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(left + i * 16);
            sums[i][1] = fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(right + i * 16);
        }
        for (uint32_t half = begin / 16; half < (end + 15) / 16; ++half) {
            const float* a_face = a + (face + half) * FACE_ELEMENTS + row % 16 * 16;
            const float* b_face = b + half * 2 * FACE_ELEMENTS;
            for (uint32_t k = 0; k < 16; ++k) {
                const __m512 b_left = _mm512_loadu_ps(b_face + k * 16);
                const __m512 b_right = _mm512_loadu_ps(b_face + FACE_ELEMENTS + k * 16);
                for (uint32_t i = 0; i < 8; ++i) {
                    const __m512 factor = _mm512_set1_ps(a_face[i * 16 + k]);
                    sums[i][0] = _mm512_fmadd_ps(factor, b_left, sums[i][0]);
                    sums[i][1] = _mm512_fmadd_ps(factor, b_right, sums[i][1]);
                }
            }
        }
        for (uint32_t i = 0; i < 8; ++i) {
            _mm512_storeu_ps(left + i * 16, sums[i][0]);
            _mm512_storeu_ps(right + i * 16, sums[i][1]);
        }
    }
}

#elif defined(__AVX2__) && defined(__FMA__)

// 4 rows x 16 columns of the result stay in registers: eight accumulators.
void multiply_tiles(const float* a, const float* b, float* result, uint32_t begin, uint32_t end, bool fresh) {
    for (uint32_t row = 0; row < 32; row += 4) {
        for (uint32_t column_half = 0; column_half < 2; ++column_half) {
            const uint32_t face = row / 16 * 2;
            float* target = result + (face + column_half) * FACE_ELEMENTS + row % 16 * 16;
            __m256 sums[4][2];
            for (uint32_t i = 0; i < 4; ++i) {
                sums[i][0] = fresh ? _mm256_setzero_ps() : _mm256_loadu_ps(target + i * 16);
                sums[i][1] = fresh ? _mm256_setzero_ps() : _mm256_loadu_ps(target + i * 16 + 8);
            }
            for (uint32_t half = begin / 16; half < (end + 15) / 16; ++half) {
                const float* a_face = a + (face + half) * FACE_ELEMENTS + row % 16 * 16;
                const float* b_face = b + (half * 2 + column_half) * FACE_ELEMENTS;
                for (uint32_t k = 0; k < 16; ++k) {
                    const __m256 b_left = _mm256_loadu_ps(b_face + k * 16);
                    const __m256 b_right = _mm256_loadu_ps(b_face + k * 16 + 8);
                    for (uint32_t i = 0; i < 4; ++i) {
                        const __m256 factor = _mm256_broadcast_ss(a_face + i * 16 + k);
                        sums[i][0] = _mm256_fmadd_ps(factor, b_left, sums[i][0]);
                        sums[i][1] = _mm256_fmadd_ps(factor, b_right, sums[i][1]);
                    }
                }
            }
            for (uint32_t i = 0; i < 4; ++i) {
                _mm256_storeu_ps(target + i * 16, sums[i][0]);
                _mm256_storeu_ps(target + i * 16 + 8, sums[i][1]);
            }
        }
    }
}

#else

// Plain loops that compilers vectorise for other processors.
void multiply_tiles(const float* a, const float* b, float* result, uint32_t begin, uint32_t end, bool fresh) {
    for (uint32_t row = 0; row < 32; row += 4) {
        for (uint32_t column_half = 0; column_half < 2; ++column_half) {
            const uint32_t face = row / 16 * 2;
            float* target = result + (face + column_half) * FACE_ELEMENTS + row % 16 * 16;
            float sums[4][16] = {};
            if (!fresh) {
                memcpy(sums, target, sizeof sums);
            }
            for (uint32_t half = begin / 16; half < (end + 15) / 16; ++half) {
                const float* a_face = a + (face + half) * FACE_ELEMENTS + row % 16 * 16;
                const float* b_face = b + (half * 2 + column_half) * FACE_ELEMENTS;
                for (uint32_t k = 0; k < 16; ++k) {
                    for (uint32_t i = 0; i < 4; ++i) {
                        for (uint32_t j = 0; j < 16; ++j) {
                            sums[i][j] = multiply_add(a_face[i * 16 + k], b_face[k * 16 + j], sums[i][j]);
                        }
                    }
                }
            }
            memcpy(target, sums, sizeof sums);
        }
    }
}

#endif
