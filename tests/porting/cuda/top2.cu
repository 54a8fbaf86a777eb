struct Pair { float value; int index; };
__device__ void insert(Pair (&best)[2], float value, int index) {
    if (value > best[0].value) { best[1] = best[0]; best[0] = {value, index}; }
    else if (value > best[1].value) best[1] = Pair{value, index};
}
__global__ void top2(const float *x, float *values, int *indices, int rows, int experts) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    Pair best[2] = {{-FLT_MAX, -1}, {-FLT_MAX, -1}};
    for (int e = 0; e < experts; ++e) insert(best, x[row * experts + e], e);
    for (int k = 0; k < 2; ++k) { values[row * 2 + k] = best[k].value; indices[row * 2 + k] = best[k].index; }
}
