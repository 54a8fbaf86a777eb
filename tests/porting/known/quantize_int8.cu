__global__ void quantize(const float *x, signed char *q, float *scales, int columns) {
    __shared__ float s[256];
    int row = blockIdx.x;
    float best = 0.0f;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) best = fmaxf(best, fabsf(x[row * columns + j]));
    s[threadIdx.x] = best;
    __syncthreads();
    for (int k = 128; k > 0; k >>= 1) {
        if (threadIdx.x < k) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + k]);
        __syncthreads();
    }
    float scale = s[0] / 127.0f;
    if (threadIdx.x == 0) scales[row] = scale;
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        q[row * columns + j] = (signed char)rintf(x[row * columns + j] / scale);
}
