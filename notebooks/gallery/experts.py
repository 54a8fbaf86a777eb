"""A mixture of experts: tokens go through the layers of the experts that a router has chosen for them. Either they are
sorted by expert, so that each block of them has one; or each block asks which experts it needs."""

import numpy as np

import ttexplore.language as T


def expert_layers(blocks=4, experts=3, block=32, dim=64, hidden=128, dtype="bfloat16"):
    """Y = (silu(X @ Gate[e]) * (X @ Up[e])) @ Down[e] * weight of the token: both layers of an expert in one kernel,
    for tokens that are sorted by expert. The hidden layer stays on the core."""

    @T.prim_func
    def main(
        X: T.Tensor((blocks * block, dim), dtype),
        Gate: T.Tensor((experts, dim, hidden), dtype),
        Up: T.Tensor((experts, dim, hidden), dtype),
        Down: T.Tensor((experts, hidden, dim), dtype),
        Expert: T.Tensor((blocks,), "int32"),
        Weight: T.Tensor((blocks * block,), "float32"),
        Y: T.Tensor((blocks * block, dim), dtype),
    ):
        with T.Kernel(blocks) as by:
            x = T.alloc_shared((block, dim), dtype)
            gate = T.alloc_shared((dim, 64), dtype)
            up = T.alloc_shared((dim, 64), dtype)
            down = T.alloc_shared((64, dim), dtype)
            weight = T.alloc_shared((block,), "float32")
            gated = T.alloc_fragment((block, 64), "float32")
            raised = T.alloc_fragment((block, 64), "float32")
            inner = T.alloc_shared((block, 64), dtype)
            y = T.alloc_fragment((block, dim), "float32")
            expert = Expert[by]
            T.copy(X[by * block, 0], x)
            T.copy(Weight[by * block], weight)
            T.clear(y)
            for n in T.Pipelined(hidden // 64, num_stages=2):
                T.copy(Gate[expert, 0, n * 64], gate)
                T.copy(Up[expert, 0, n * 64], up)
                T.copy(Down[expert, n * 64, 0], down)
                T.clear(gated)
                T.clear(raised)
                T.gemm(x, gate, gated)
                T.gemm(x, up, raised)
                for i, j in T.Parallel(block, 64):
                    gated[i, j] = gated[i, j] / (1.0 + T.exp(-gated[i, j])) * raised[i, j]
                T.copy(gated, inner)
                T.gemm(inner, down, y)
            for i, j in T.Parallel(block, dim):
                y[i, j] = y[i, j] * weight[i]
            T.copy(y, Y[by * block, 0])

    return main


def expert_layers_reference(X, Gate, Up, Down, Expert, Weight):
    parts = []
    for x, expert in zip(np.split(X, len(Expert)), Expert.astype(int), strict=True):
        gated = x @ Gate[expert]
        parts.append(gated / (1 + np.exp(-gated)) * (x @ Up[expert]) @ Down[expert])
    return np.concatenate(parts) * Weight[:, None]


def routed_layers(tokens=64, experts=4, block=32, dim=64, hidden=64, dtype="bfloat16"):
    """The sum over all experts of their layers times the weight that the router gave them for each token. An expert
    that no token of a block has chosen, which `Chosen` says, is neither read nor computed."""

    @T.prim_func
    def main(
        X: T.Tensor((tokens, dim), dtype),
        Gate: T.Tensor((experts, dim, hidden), dtype),
        Up: T.Tensor((experts, dim, hidden), dtype),
        Down: T.Tensor((experts, hidden, dim), dtype),
        Chosen: T.Tensor((tokens // block, experts), "bool"),
        Weight: T.Tensor((experts, tokens), "float32"),
        Y: T.Tensor((tokens, dim), dtype),
    ):
        with T.Kernel(tokens // block) as by:
            x = T.alloc_shared((block, dim), dtype)
            gate = T.alloc_shared((dim, hidden), dtype)
            up = T.alloc_shared((dim, hidden), dtype)
            down = T.alloc_shared((hidden, dim), dtype)
            weight = T.alloc_shared((block,), "float32")
            gated = T.alloc_fragment((block, hidden), "float32")
            raised = T.alloc_fragment((block, hidden), "float32")
            inner = T.alloc_shared((block, hidden), dtype)
            y = T.alloc_fragment((block, dim), "float32")
            T.copy(X[by * block, 0], x)
            T.clear(y)
            for e in T.serial(experts):
                if Chosen[by, e]:
                    T.copy(Gate[e, 0, 0], gate)
                    T.copy(Up[e, 0, 0], up)
                    T.copy(Down[e, 0, 0], down)
                    T.copy(Weight[e, by * block], weight)
                    T.clear(gated)
                    T.clear(raised)
                    T.gemm(x, gate, gated)
                    T.gemm(x, up, raised)
                    for i, j in T.Parallel(block, hidden):
                        gated[i, j] = gated[i, j] / (1.0 + T.exp(-gated[i, j])) * raised[i, j] * weight[i]
                    T.copy(gated, inner)
                    T.gemm(inner, down, y)
            T.copy(y, Y[by * block, 0])

    return main


def routed_layers_reference(X, Gate, Up, Down, Chosen, Weight):
    weights = np.repeat(Chosen, X.shape[0] // Chosen.shape[0], axis=0) * Weight.T
    gated = X @ Gate
    layers = gated / (1 + np.exp(-gated)) * (X @ Up) @ Down
    return np.einsum("te,etd->td", weights, layers)
