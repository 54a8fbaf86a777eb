__global__ void embedding(const int *ids, const float *table, float *out, int dim) {
    int token = blockIdx.x;
    for (int j = threadIdx.x; j < dim; j += blockDim.x) out[token * dim + j] = table[ids[token] * dim + j];
}
