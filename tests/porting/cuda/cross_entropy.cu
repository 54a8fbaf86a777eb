__global__ void cross_entropy(float* losses, const float* logits, const int* targets, int V) {
    const float* x = logits + blockIdx.x * V;
    float top = -CUDART_INF_F, sum = 0.f;
    for (int i = threadIdx.x; i < V; i += 32) {
        float before = top;
        if (x[i] > top) top = x[i];
        sum = sum * __expf(before - top) + __expf(x[i] - top);
    }
    for (int o = 16; o; o >>= 1) {
        float t = __shfl_xor_sync(~0u, top, o), s = __shfl_xor_sync(~0u, sum, o);
        float m = fmaxf(top, t);
        sum = sum * __expf(top - m) + s * __expf(t - m);
        top = m;
    }
    if (threadIdx.x == 0) losses[blockIdx.x] = logf(sum) + top - x[targets[blockIdx.x]];
}
