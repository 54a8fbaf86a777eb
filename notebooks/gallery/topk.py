"""The largest numbers of each row, and where they are: one after another, each left out of the search for the next."""

import numpy as np

import ttexplore.language as T


def top_k(M=64, N=128, k=4, block_M=32):
    """The k largest numbers of each row in order, and their columns; of equal ones, the last column first. Routers
    choose experts in this way, and samplers tokens."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), Values: T.Tensor((k, M), "float32"), Columns: T.Tensor((k, M), "int32")):
        with T.Kernel(T.ceildiv(M, block_M)) as by:
            a = T.alloc_fragment((block_M, N), "float32")
            places = T.alloc_fragment((block_M, N), "int32")
            largest = T.alloc_fragment((block_M,), "float32")
            place = T.alloc_fragment((block_M,), "int32")
            T.copy(A[by * block_M, 0], a)
            for n in T.serial(k):
                T.reduce_max(a, largest, dim=1)
                for i, j in T.Parallel(block_M, N):
                    places[i, j] = T.if_then_else(a[i, j] == largest[i], j, -1)
                T.reduce_max(places, place, dim=1)
                for i, j in T.Parallel(block_M, N):
                    a[i, j] = T.if_then_else(places[i, j] == place[i], -1e30, a[i, j])
                T.copy(largest, Values[n, by * block_M])
                T.copy(place, Columns[n, by * block_M])

    return main


def top_k_reference(A, k=4):
    last_first = A[:, ::-1]
    columns = A.shape[1] - 1 - np.argsort(-last_first, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(A, columns, axis=1).T, columns.T.astype(np.int32)
