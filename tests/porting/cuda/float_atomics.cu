__device__ float atomicMaxFloat(float* addr, float value) {
    return value >= 0 ? __int_as_float(atomicMax((int*)addr, __float_as_int(value)))
                      : __uint_as_float(atomicMin((unsigned*)addr, __float_as_uint(value)));
}
__global__ void float_atomics(const float *x, float *sum, float *top, double *wide, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(sum, x[i]);
    atomicMaxFloat(top, x[i]);
    unsigned long long *address = (unsigned long long *)wide, old = *address, assumed;
    do {
        assumed = old;
        old = atomicCAS(address, assumed, __double_as_longlong(x[i] + __longlong_as_double(assumed)));
    } while (assumed != old);
}
