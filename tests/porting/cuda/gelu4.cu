#define FLOAT4(value) (reinterpret_cast<float4 *>(&(value))[0])
#define SQRT_2_PI M_SQRT2 *M_2_SQRTPI * 0.5f
__device__ inline float gelu(float x) { return 0.5f * x * (1.0f + tanhf(SQRT_2_PI * (x + 0.044715f * x * x * x))); }
__global__ void gelu4(float *x, float *y, int N) {
    int idx = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (idx >= N) return;
    float4 r = FLOAT4(x[idx]);
    float4 s;
    s.x = gelu(r.x); s.y = gelu(r.y); s.z = gelu(r.z); s.w = gelu(r.w);
    FLOAT4(y[idx]) = s;
}
