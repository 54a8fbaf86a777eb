"""ResourceError: the kernel does not fit the chip."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

RESOURCES = (
    diagnostic(
        "R001", "the circular buffers do not fit L1",
        "All circular buffers of a program lie in the L1 of each core, with all their stages.",
        "Make the largest block smaller, or use fewer stages.",
        "the circular buffers need {} B of L1; a core of {} has {} B:\n{}",
        "the circular buffers {}need {} B of L1; a core of {} has {} B:\n{}",
    ),
    diagnostic(
        "R002", "too many circular buffers",
        "A core has 32 circular buffers on Wormhole, 64 on Blackhole.",
        "Use fewer staging buffers.",
        "{} circular buffers are needed; a core of {} has {}",
    ),
    diagnostic(
        "R003", "DST is too small for an expression",
        "DST holds 8 tiles of 16 bits or 4 of 32 bits, and every value of an expression that is alive needs one.",
        "Divide the expression over several T.Parallel blocks, or use smaller blocks.",
        "a sub-block of {}x{} tiles is {} tiles; DST holds {}",
        "an expression needs {} tiles of DST at once, which holds {}",
        "a block of {} tiles with {} values needs {} tiles of DST, which holds {}",
        "{} values of {}x{} tiles are needed at once; DST holds {} tiles",
    ),
    diagnostic(
        "R004", "too many kernel arguments",
        "The runtime and common arguments of a kernel share a fixed number of words.",
        "Use fewer tensors, more cores, or a policy whose items count up.",
        "the {} has {} words of runtime arguments; {} takes {}",
    ),
    diagnostic(
        "R005", "cores that the chip does not have",
        "The cores that were asked for reach outside of the compute grid.",
        "Ask for fewer cores, or for another target.",
        "{}x{} cores{} are asked for; {} has {}x{}",
        "the cores {} to {} are asked for; {} has {}x{}",
        "core ({}, {}) gets work; {} has {}x{}",
        "a stride of {} deals items out to {} cores; there are {}",
        "rectangles of {} {} of blocks divide {} among {} cores, which they do not cover",
    ),
    diagnostic(
        "R006", "shards that the chip cannot hold",
        "Each shard lies on a core or in a bank of DRAM of its own.",
        "Use fewer shards, or more cores.",
        "{} has {} x {} shards, which the cores {} to {} do not hold: {} is outside",
        "{} has {} shards; {} has {} banks of DRAM", "{} has {} shards for {} cores",
    ),
    diagnostic(
        "R010", "not enough memory on this machine",
        "Kernels are lowered, interpreted and emulated in this machine's memory.",
        "Use smaller tensors; T.dynamic sizes can be bound to smaller ones for a check.",
        "{} needs more memory than this machine has",
    ),
)  # fmt: skip
