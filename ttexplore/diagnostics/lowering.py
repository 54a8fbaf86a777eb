"""Unsupported: the kernel may be right, but no rule lowers it."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

LOWERING = (
    diagnostic(
        "L001", "unsupported function or operation",
        "The kernel language has this operation, but the compiler has no rule that lowers it; nothing is dropped or "
        "guessed.",
        "Write it with supported operations, as the hint says.",
    ),
    diagnostic(
        "L002", "unsupported expression",
        "No device operation, and no combination of them, computes this inside T.Parallel.",
        "Use + - * /, comparisons, T.if_then_else and the functions of T on floats. int32 supports + - *, // and % by "
        "powers of two, T.max, T.min, T.abs, comparisons, bitwise operators and shifts.",
    ),
    diagnostic(
        "L003", "access in T.Parallel that is not element-wise",
        "T.Parallel works on whole on-chip blocks: it stores at its loop variables, in order, and reads elements, "
        "rows, columns or single values.",
        "Copy to an on-chip buffer first, and index with the loop variables in order.",
    ),
    diagnostic(
        "L005", "run-time control flow",
        "The three kernels of a core take the same branches and turns, so these depend only on what all three know: "
        "block and loop indices, and sizes.",
        "Use conditions on indices, T.if_then_else on elements, and loops with a length, or a `while` that compares "
        "variables to which each turn adds the same number.",
    ),
    diagnostic(
        "L006", "region that is not whole tiles",
        "Data is moved in tiles of 32 x 32 elements, in parts of tiles or element by element. Block floats have no "
        "single elements.",
        "Start at multiples of 32 and use sizes that are multiples of 32, or constant sizes.",
    ),
    diagnostic(
        "L007", "part of an on-chip buffer",
        "Operations take blocks of one or two dimensions, and parts of them; a part of these has no meaning for them.",
        "Allocate a buffer for the part, or copy the part to one.",
    ),
    diagnostic(
        "L009", "unsupported dtype",
        "Tiles hold bfloat16, float32 and int32; float16 and dtypes of 8 bits and fewer (float8, int8, uint8, bool and "
        "int4) are stored as bfloat16. Products take floating-point numbers, or integers of at most 8 bits.",
        "Use one of the dtypes in the hint.",
    ),
    diagnostic(
        "L010", "unsupported shape or role of a tensor",
        "Tensors have at most eight dimensions. Which blocks of a tensor a kernel both reads and writes is known "
        "before it runs. Scalars are constants of the kernel.",
        "Reshape the tensor, write to a separate tensor, or make the scalar a constant.",
    ),
    diagnostic(
        "L012", "expression without C++ text",
        "The emitter cannot write this expression in C++.",
        "Write it with supported operations.",
    ),
    diagnostic(
        "L013", "single element of a tensor as a number",
        "An element that decides a branch, the length of a loop or a place must be known to all kernels of a core: the "
        "reader reads whole numbers of input tensors. Elements of blocks are known to the compute kernel alone.",
        "Read the element of the tensor where it decides; or use elements of blocks inside T.Parallel.",
    ),
    diagnostic(
        "L014", "unsupported layout",
        "Tensors lie in DRAM or L1, in 32 x 32 tiles that are interleaved or in shards of contiguous rows, or "
        "row-major and interleaved over DRAM.",
        "Remove the request, or use the form in the hint.",
    ),
    diagnostic(
        "L015", "integer outside int32",
        "Indices, loop bounds and the values that they are computed from are int32, in TIR and on the chip. Results "
        "outside int32, divisions by 0 and shifts by too many bits are undefined.",
        "Compute with smaller numbers: reduce before you multiply, and divide by values that are never 0.",
    ),
    diagnostic(
        "L016", "nesting too deep",
        "Operations, loops or branches are nested too deeply for the compiler. Deep values of elements are split "
        "automatically; an index, including the names it uses, is one expression.",
        "Compute it in fewer steps, or use fewer nested loops.",
    ),
    diagnostic(
        "L017", "groups of threads that are no sequence",
        "Groups of threads are lowered as one sequence of statements, in which their loops go turn by turn. It is "
        "proved for all turns, so the lengths of loops must be known.",
        "Write one loop for all threads, with T.Pipelined and T.copy: the reader runs ahead of the compute kernel.",
    ),
)  # fmt: skip
