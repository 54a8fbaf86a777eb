__global__ void block_softmax(const float *x, float *y, int columns) {
    extern __shared__ float s[];
    const float *row = x + blockIdx.x * columns;
    float *out = y + blockIdx.x * columns;
    int tid = threadIdx.x;
    float largest = -INFINITY;
    for (int j = tid; j < columns; j += blockDim.x) largest = fmaxf(largest, row[j]);
    s[tid] = largest;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k >>= 1) {
        if (tid < k) s[tid] = fmaxf(s[tid], s[tid + k]);
        __syncthreads();
    }
    largest = s[0];
    __syncthreads();
    float total = 0.0f;
    for (int j = tid; j < columns; j += blockDim.x) total += expf(row[j] - largest);
    s[tid] = total;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k >>= 1) {
        if (tid < k) s[tid] += s[tid + k];
        __syncthreads();
    }
    total = s[0];
    for (int j = tid; j < columns; j += blockDim.x) out[j] = expf(row[j] - largest) / total;
}
