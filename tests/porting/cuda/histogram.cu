#define BINS 256
__global__ void histogram(const unsigned char *data, unsigned int *bins, int n) {
    __shared__ unsigned int mine[BINS];
    for (int b = threadIdx.x; b < BINS; b += blockDim.x) mine[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[data[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < BINS; b += blockDim.x) atomicAdd(bins + b, mine[b]);
}
