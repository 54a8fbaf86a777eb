__device__ __forceinline__ float gelu(float x) {
    return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}
__global__ void gelu_float4(const float *x, float *y, int n) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i < n) {
        float4 v = *reinterpret_cast<const float4 *>(x + i);
        float4 r;
        r.x = gelu(v.x);
        r.y = gelu(v.y);
        r.z = gelu(v.z);
        r.w = gelu(v.w);
        *reinterpret_cast<float4 *>(y + i) = r;
    }
}
