#define R 2
__constant__ float W[2 * R + 1] = {0.1f, 0.2f, 0.4f, 0.2f, 0.1f};
__global__ void convolution(const float *x, float *y, int n) {
    __shared__ float s[32 + 2 * R];
    int g = blockIdx.x * 32 + threadIdx.x, l = threadIdx.x + R;
    s[l] = g < n ? x[g] : 0.0f;
    if (threadIdx.x < R) {
        s[l - R] = g >= R ? x[g - R] : 0.0f;
        s[l + 32] = g + 32 < n ? x[g + 32] : 0.0f;
    }
    __syncthreads();
    float sum = 0.0f;
    for (int k = -R; k <= R; ++k) sum += W[k + R] * s[l + k];
    if (g < n) y[g] = sum;
}
