__global__ void gather(const __half* table, const int* tokens, __half* out, int count, int dim) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count * dim; i += blockDim.x * gridDim.x)
        out[i] = table[tokens[i / dim] * dim + i % dim];
}
