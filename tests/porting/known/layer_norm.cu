__global__ void layer_norm(const float *x, const float *gamma, const float *beta, float *y, float *mean, float *rstd,
                           int rows, int columns, float eps) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int j = 0; j < columns; ++j) sum += x[row * columns + j];
    float m = sum / columns;
    float squares = 0.0f;
    for (int j = 0; j < columns; ++j) {
        float d = x[row * columns + j] - m;
        squares += d * d;
    }
    float r = rsqrtf(squares / columns + eps);
    for (int j = 0; j < columns; ++j) y[row * columns + j] = (x[row * columns + j] - m) * r * gamma[j] + beta[j];
    mean[row] = m;
    rstd[row] = r;
}
