__global__ void row_sum(const float *x, float *sums, int columns) {
    extern __shared__ float partial[];
    int row = blockIdx.x, tid = threadIdx.x;
    float total = 0.0f;
    for (int j = tid; j < columns; j += blockDim.x) total += x[row * columns + j];
    partial[tid] = total;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) partial[tid] += partial[tid + s];
        __syncthreads();
    }
    if (tid == 0) sums[row] = partial[0];
}
