extern "C" __global__ void grid_stride(size_t n, double a, const float* __restrict__ x, float* y) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        y[i] = (float)(a * x[i]);
}
