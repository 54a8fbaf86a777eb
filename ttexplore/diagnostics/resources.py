"""ResourceError: the kernel does not fit the chip."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

RESOURCES = (
    diagnostic(
        "R001", "the circular buffers do not fit L1",
        "All circular buffers of a program lie in the L1 of each core, with all their stages.",
        "Make the largest block smaller, or use fewer stages.",
    ),
    diagnostic(
        "R002", "too many circular buffers",
        "A core has 32 circular buffers on Wormhole, 64 on Blackhole.",
        "Use fewer staging buffers.",
    ),
    diagnostic(
        "R003", "DST is too small for an expression",
        "DST holds 8 tiles of 16 bits or 4 of 32 bits, and every value of an expression that is alive needs one.",
        "Divide the expression over several T.Parallel blocks, or use smaller blocks.",
    ),
    diagnostic(
        "R004", "too many kernel arguments",
        "The runtime and common arguments of a kernel share a fixed number of words.",
        "Use fewer tensors, more cores, or a policy whose items count up.",
    ),
    diagnostic(
        "R005", "cores that the chip does not have",
        "The cores that were asked for reach outside of the compute grid.",
        "Ask for fewer cores, or for another target.",
    ),
    diagnostic(
        "R006", "shards that the chip cannot hold",
        "Each shard lies on a core or in a bank of DRAM of its own.",
        "Use fewer shards, or more cores.",
    ),
    diagnostic(
        "R010", "not enough memory on this machine",
        "Kernels are lowered, interpreted and emulated in this machine's memory.",
        "Use smaller tensors; T.dynamic sizes can be bound to smaller ones for a check.",
    ),
)  # fmt: skip
