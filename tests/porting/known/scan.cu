__global__ void scan(const float *x, float *y, int n) {
    __shared__ float temp[1024];
    int t = threadIdx.x;
    temp[t] = t < n ? x[t] : 0.0f;
    __syncthreads();
    for (int offset = 1; offset < blockDim.x; offset *= 2) {
        float before = t >= offset ? temp[t - offset] : 0.0f;
        __syncthreads();
        temp[t] += before;
        __syncthreads();
    }
    if (t < n) y[t] = temp[t];
}
