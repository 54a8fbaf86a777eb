__global__ void half2_axpy(const half2 *x, half *y, float a, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n / 2) {
        half2 *out = reinterpret_cast<half2 *>(y);
        out[i] = __hfma2(__float2half2_rn(a), x[i], out[i]);
    }
}
