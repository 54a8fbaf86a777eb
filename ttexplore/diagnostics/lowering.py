"""Unsupported: the kernel may be right, but no rule lowers what it says."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

LOWERING = (
    diagnostic(
        "L001", "a function or operation that is not lowered",
        "The kernel language has it, the compiler has no rule for it; nothing is dropped or guessed.",
        "Write it with operations that are lowered, as the hint says.",
    ),
    diagnostic(
        "L002", "an expression that is not lowered",
        "No device operation, and no combination of them, computes this inside T.Parallel.",
        "Write it with + - * /, comparisons, T.if_then_else and the functions of T on floats; of int32 there are + - * "
        "// and % by powers of two, T.max, T.min, T.abs, comparisons, bitwise operators and shifts.",
    ),
    diagnostic(
        "L003", "an access in T.Parallel that is not element by element",
        "T.Parallel works on whole on-chip blocks: it stores at its loop variables, in order, and reads elements, "
        "rows, columns or single values.",
        "Copy to an on-chip buffer first, and index with the loop variables in order.",
    ),
    diagnostic(
        "L005", "control flow that is only known when the kernel runs",
        "Conditions and loop lengths must be known when the kernel is lowered.",
        "Use T.if_then_else on elements, or decide it in Python.",
    ),
    diagnostic(
        "L006", "a region that is not whole tiles",
        "What is moved is tiles of 32 x 32 elements.",
        "Start at multiples of 32 and take multiples of 32, or constant block sizes.",
    ),
    diagnostic(
        "L007", "a part of an on-chip buffer",
        "Operations take whole on-chip buffers.",
        "Allocate a buffer for each block.",
    ),
    diagnostic(
        "L008", "an operation on a tensor in DRAM",
        "Operations work on on-chip buffers.",
        "T.copy the block to an on-chip buffer first.",
    ),
    diagnostic(
        "L009", "a dtype that is not lowered",
        "The chip's tiles hold bfloat16, float32 and int32; float16 and uint8 are held as bfloat16. Products are of "
        "floats.",
        "Use one of the dtypes that the hint names.",
    ),
    diagnostic(
        "L010", "a tensor of this shape or role",
        "Tensors have at most four dimensions and are read or written; scalars are constants of the kernel.",
        "Reshape it, write to a tensor of its own, or make it a constant.",
    ),
    diagnostic(
        "L012", "an expression that has no C++ text",
        "The emitter has no C++ for it.",
        "Write it with operations that are lowered.",
    ),
    diagnostic(
        "L013", "a single element of a tensor",
        "The cores move tensors in blocks, and know no element of one as a number: it cannot say where a block lies, "
        "how often a loop runs or whether something happens.",
        "Copy the tensor into an on-chip buffer and use its elements inside T.Parallel.",
    ),
    diagnostic(
        "L014", "a layout that is not lowered",
        "Tensors lie in DRAM or in the L1 of the cores, in tiles of 32 x 32, interleaved or in shards of whole runs, "
        "or row by row, interleaved over DRAM.",
        "Leave the hint out, or use the form that the hint of the message names.",
    ),
    diagnostic(
        "L015", "a whole number that int32 does not hold",
        "Indices, bounds of loops and what they are computed from are int32, in TIR and on the chip. What leaves it, a "
        "division by 0 and a shift by more bits than there are have no meaning.",
        "Compute with smaller numbers: reduce before multiplying, and divide by what is never 0.",
    ),
    diagnostic(
        "L016", "what is too deep",
        "So many operations, loops or branches stand inside one another that the compiler cannot follow them. Those of "
        "elements get names by themselves; an index, also one that names stand for, is one expression.",
        "Compute it in fewer steps, or with fewer loops.",
    ),
)  # fmt: skip
