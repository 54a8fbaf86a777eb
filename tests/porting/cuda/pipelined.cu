#include <cuda_pipeline.h>
__global__ void pipelined(const float *x, float *y, int rows) {
    __shared__ __align__(16) float stage[2][64];
    __pipeline_memcpy_async(&stage[0][threadIdx.x * 4], &x[threadIdx.x * 4], sizeof(float4));
    __pipeline_commit();
    float sum[4] = {};
    for (int r = 0; r < rows; ++r) {
        if (r + 1 < rows) {
            __pipeline_memcpy_async(&stage[(r + 1) & 1][threadIdx.x * 4], &x[(r + 1) * 64 + threadIdx.x * 4], 16);
            __pipeline_commit();
        }
        __pipeline_wait_prior(r + 1 < rows ? 1 : 0);
        __syncthreads();
        for (int j = 0; j < 4; ++j) sum[j] += stage[r & 1][threadIdx.x * 4 + j];
        __syncthreads();
    }
    *reinterpret_cast<float4*>(y + threadIdx.x * 4) = make_float4(sum[0], sum[1], sum[2], sum[3]);
}
