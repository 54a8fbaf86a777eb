__global__ void quantize(const float *x, int8_t *q, float *scale, int n) {
    __shared__ float best[64];
    float m = 0.f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) m = max(m, fabsf(x[blockIdx.x * n + i]));
    best[threadIdx.x] = m;
    __syncthreads();
    for (unsigned s = blockDim.x >> 1; s > 0; s >>= 1) {
        if (threadIdx.x < s) best[threadIdx.x] = max(best[threadIdx.x], best[threadIdx.x + s]);
        __syncthreads();
    }
    float d = best[0] / 127.0f;
    if (threadIdx.x == 0) scale[blockIdx.x] = d;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        q[blockIdx.x * n + i] = static_cast<int8_t>(min(127, max(-127, __float2int_rn(x[blockIdx.x * n + i] / d))));
}
