__device__ float warp_max(float v) {
    for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, offset));
    return v;
}
__device__ float warp_sum(float v) {
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffff, v, offset);
    return v;
}
__global__ void softmax(const float *x, float *y, int columns) {
    __shared__ float part[32];
    int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize, warps = blockDim.x / warpSize;
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    float largest = -INFINITY;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) largest = fmaxf(largest, x[j]);
    largest = warp_max(largest);
    if (lane == 0) part[warp] = largest;
    __syncthreads();
    if (warp == 0) {
        largest = lane < warps ? part[lane] : -INFINITY;
        largest = warp_max(largest);
        if (lane == 0) part[0] = largest;
    }
    __syncthreads();
    largest = part[0];
    __syncthreads();
    float total = 0.0f;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) total += expf(x[j] - largest);
    total = warp_sum(total);
    if (lane == 0) part[warp] = total;
    __syncthreads();
    total = lane < warps ? part[lane] : 0.0f;
    total = warp_sum(total);
    for (int j = threadIdx.x; j < columns; j += blockDim.x) y[j] = expf(x[j] - largest) / total;
}
