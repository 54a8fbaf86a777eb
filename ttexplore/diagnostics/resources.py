"""ResourceError: the kernel does not fit the chip."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

RESOURCES = (
    diagnostic(
        "R001", "the circular buffers do not fit L1",
        "All circular buffers of a program, with all their stages, lie in the L1 of each core.",
        "Make the largest block smaller, or use fewer stages.",
    ),
    diagnostic(
        "R002", "too many circular buffers",
        "A core has 32 circular buffers on Wormhole, 64 on Blackhole. Where they run out, buffers that the compute "
        "kernel fills and empties share one, if their blocks are never there at the same time.",
        "Use fewer staging buffers, or fewer values at the same time.",
    ),
    diagnostic(
        "R003", "DST is too small for an expression",
        "DST holds 8 tiles of 16 bits or 4 tiles of 32 bits, and every live value of an expression needs one.",
        "Split the expression over several T.Parallel blocks, or use smaller blocks.",
    ),
    diagnostic(
        "R004", "too many kernel arguments",
        "The runtime and common arguments of a kernel share a fixed number of words.",
        "Use fewer tensors, more cores, or a policy that assigns items in equal steps.",
    ),
    diagnostic(
        "R005", "cores outside the compute grid",
        "The requested cores reach outside the compute grid.",
        "Request fewer cores, or another target.",
    ),
    diagnostic(
        "R006", "shards that do not fit the chip",
        "Each shard lies on a core of its own, or in a DRAM bank of its own.",
        "Use fewer shards, or more cores.",
    ),
    diagnostic(
        "R007", "too many semaphores",
        "A core has 16 semaphores. Each shared input uses two, and so do partial sums of a tensor that cores hand on.",
        "Share fewer inputs, or use partials='dram'.",
    ),
    diagnostic(
        "R010", "not enough memory on this machine",
        "Kernels are lowered, interpreted and emulated in the memory of this machine.",
        "Use smaller tensors; for a check, bind T.dynamic sizes to smaller values.",
    ),
    diagnostic(
        "R011", "called from too deep",
        "Python limits the calls inside one another (sys.getrecursionlimit), those of the caller and those of "
        "ttexplore together. The caller has used up most of them.",
        "Call it from fewer calls, in a thread of its own, or raise the limit before.",
    ),
    diagnostic(
        "R012", "too many work items",
        "The lowering follows what every block of the launch grid stores, to prove that each is computed once, on one "
        "core. Policies and orders other than contiguous or strided runs in row-major order list every block besides.",
        "Use larger blocks, or loop over several inside of T.Kernel; or use the default policy and order.",
    ),
    diagnostic(
        "R013", "the tensors do not fit DRAM",
        "The pages of a tensor are dealt out over the DRAM banks of the chip. Kernels compute the numbers of pages, "
        "and offsets in them, in 32 bits.",
        "Use smaller tensors, and launch the kernel for each part.",
    ),
    diagnostic(
        "R014", "more transfers than are verified",
        "Of a tensor that a kernel stores to, the verifier follows each transfer of all cores, so that no two write to "
        "the same place: at most 2^26 of them.",
        "Keep the tensor in tiles, or move larger blocks.",
    ),
)  # fmt: skip
