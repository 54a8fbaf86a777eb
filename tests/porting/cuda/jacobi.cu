#define AT(a, i, j) ((a)[(i) * w + (j)])
__global__ void jacobi(const float *u, float *v, int h, int w) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= h || j >= w) return;
    if (i == 0 || j == 0 || i == h - 1 || j == w - 1) { AT(v, i, j) = AT(u, i, j); return; }
    AT(v, i, j) = 0.25f * (AT(u, i - 1, j) + AT(u, i + 1, j) + AT(u, i, j - 1) + AT(u, i, j + 1));
}
