__global__ void top_k(const float *x, float *values, int *indices, int columns, int k) {
    int row = blockIdx.x;
    for (int n = 0; n < k; ++n) {
        float best = -INFINITY;
        int at = -1;
        for (int j = 0; j < columns; ++j) {
            bool taken = false;
            for (int m = 0; m < n; ++m) taken = taken || indices[row * k + m] == j;
            if (!taken && x[row * columns + j] > best) { best = x[row * columns + j]; at = j; }
        }
        values[row * k + n] = best;
        indices[row * k + n] = at;
    }
}
