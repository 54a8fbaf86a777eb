namespace ops {
enum class Kind { relu, square };
struct Relu { __device__ float operator()(float v) const { return v > 0.f ? v : 0.f; } };
template <Kind K> struct Choose;
template <> struct Choose<Kind::relu> { static constexpr float scale = 2.0f; using type = Relu; };
__global__ void struct_of_functions(const float *x, float *y, int n, bool twice) {
    Choose<Kind::relu>::type f;
    auto apply = [&](int i) { return Choose<Kind::relu>::scale * f(x[i]); };
    if (int i = threadIdx.x; i < n) y[i] = twice ? 2 * apply(i) : apply(i);
}
}
__global__ void other(float *x) { asm("nop"); }
