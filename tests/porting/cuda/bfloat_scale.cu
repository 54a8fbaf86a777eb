#include <cuda_bf16.h>
__global__ void bfloat_scale(const __nv_bfloat16 *x, __nv_bfloat16 *y, float a, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] = __float2bfloat16(__bfloat162float(x[i]) * a);
}
