"""Unsupported: the kernel may be right, but no rule lowers what it says."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

LOWERING = (
    diagnostic(
        "L001", "a function or operation that is not lowered",
        "The kernel language has it, the compiler has no rule for it; nothing is dropped or guessed.",
        "Write it with operations that are lowered, as the hint says.",
        "{} is not lowered", "T.{} is not lowered", "no rule lowers {}", "no kernel runs {}", "T.fill with {}",
        "the interpreter does not know {}",
    ),
    diagnostic(
        "L002", "an expression that is not lowered",
        "No device operation, and no combination of them, computes this inside T.Parallel.",
        "Write it with + - * /, comparisons, T.if_then_else and the functions of T on floats; of int32 there are + - * "
        "// and % by powers of two, T.max, T.min, T.abs, comparisons, bitwise operators and shifts.",
        "no rule lowers {} inside T.Parallel", "no rule lowers {} of loop variables inside T.Parallel",
        "a cast from {} to {} inside T.Parallel", "arithmetic in {} on elements", "a division of loop variables by {}",
        "a division of elements by {}", "{} of integers", "integers in 16-bit DST",
        "{} of numbers made of indices in 16-bit DST",
        "{} is between {} and {}", "{} divides by {}, which can be 0 or less", "{} divides a number between {} and {}",
    ),
    diagnostic(
        "L003", "an access in T.Parallel that is not element by element",
        "T.Parallel works on whole on-chip blocks: it stores at its loop variables, in order, and reads elements, "
        "rows, columns or single values.",
        "Copy to an on-chip buffer first, and index with the loop variables in order.",
        "T.Parallel stores to the tensor {} directly", "T.Parallel reads the tensor {} directly",
        "T.Parallel stores to {} at other indices than its loop variables in order",
        "T.Parallel covers {} of {}, which is {}", "{}[{}] in a T.Parallel over ({})",
        "{} is stored to and read at other elements in one T.Parallel",
        "a store of single elements to {} outside T.Parallel",
    ),
    diagnostic(
        "L005", "control flow that is only known when the kernel runs",
        "Conditions and loop lengths must be known when the kernel is lowered.",
        "Use T.if_then_else on elements, or decide it in Python.",
        "a condition that is only known when the kernel runs is not lowered",
        "a loop whose length is only known when the kernel runs is not lowered",
        "operations on tiles under a condition that is only known when the kernel runs",
    ),
    diagnostic(
        "L006", "a region that is not whole tiles",
        "What is moved is tiles of 32 x 32 elements.",
        "Start at multiples of 32 and take multiples of 32, or constant block sizes.",
        "{}: the region from {} of length {} along axis {} is no whole tiles of {}", "{}: a region of variable size",
        "the rows of a block along axis {} of a tensor whose matrices have T.dynamic sizes",
        "{}: a block of {} along axis {}", "{}[{}] {}: {}",
        "{}: the region along axis {} starts at {}, which can lie before the tensor",
        "{}: axis {} would become the {} of a block {}", "{} is {}: {} is no multiple of {}",
        "{} is {}: {} is no multiple of {}\n{}",
    ),
    diagnostic(
        "L007", "a part of an on-chip buffer",
        "Operations take whole on-chip buffers.",
        "Allocate a buffer for each block.",
        "{} is {}; the operation takes {} of it",
        "{} is {} tiles in one matrix product and {} in another",
    ),
    diagnostic(
        "L008", "an operation on a tensor in DRAM",
        "Operations work on on-chip buffers.",
        "T.copy the block to an on-chip buffer first.",
        "T.{} works on the tensor {} directly",
    ),
    diagnostic(
        "L009", "a dtype that is not lowered",
        "The chip's tiles hold bfloat16, float32 and int32; float16 and uint8 are held as bfloat16. Products are of "
        "floats.",
        "Use one of the dtypes that the hint names.",
        "the dtype {} is not lowered", "{} is {}, which no tile format holds", "{} has no tile format",
        "T.gemm with {}, which is int32", "T.copy of {} to uint8",
    ),
    diagnostic(
        "L010", "a tensor of this shape or role",
        "Tensors have at most four dimensions and are read or written; scalars are constants of the kernel.",
        "Reshape it, write to a tensor of its own, or make it a constant.",
        "{} has {} dimensions", "{} is read and written by the kernel", "the scalar parameter {}",
        "{} is held as {}, and {} is asked for", "{} is {}, and {} holds numbers of which 16 share an exponent",
        "{} has {} columns, and {} packs {} at once: what lies behind the last ones would change them",
    ),
    diagnostic(
        "L012", "an expression that has no C++ text",
        "The emitter has no C++ for it.",
        "Write it with operations that are lowered.",
        "{} has no C++ text", "the expression {} has no C++ form",
    ),
    diagnostic(
        "L013", "a single element of a tensor",
        "The cores move tensors in blocks, and know no element of one as a number: it cannot say where a block lies, "
        "how often a loop runs or whether something happens.",
        "Copy the tensor into an on-chip buffer and use its elements inside T.Parallel.",
        "where to read or write depends on an element of {}: index tensors are not supported yet",
        "{} depends on an element of {}, which is not known before the kernel runs",
        "an element of {} is taken as a single value",
    ),
    diagnostic(
        "L014", "a layout that is not lowered",
        "Tensors lie in DRAM or in the L1 of the cores, in tiles of 32 x 32, interleaved or in shards of whole runs, "
        "or row by row, interleaved over DRAM.",
        "Leave the hint out, or use the form that the hint of the message names.",
        "the layout of {} asks for a halo {}", "tiles of {} for {}", "TTShard: faces of {}", "TTShard: tiles of {}",
        "tiles in DRAM in {} order", "{} in column_major order", "{}: tiles in the order {}",
        "the {} of axis {} of {} are not divided evenly by {}", "{} in blocks over DRAM banks",
        "shards of {} along axis {} would be no runs of rows: axis {} has {} and is divided into {}",
        "{} row by row {}", "{} through tilize: it holds {}, {}",
        "{} of a kernel with sizes that are known when it runs",
        "the blocks of {} cannot be followed: their places depend on run-time values",
    ),
    diagnostic(
        "L015", "a whole number that int32 does not hold",
        "Indices, bounds of loops and what they are computed from are int32, in TIR and on the chip. What leaves it, a "
        "division by 0 and a shift by more bits than there are have no meaning.",
        "Compute with smaller numbers: reduce before multiplying, and divide by what is never 0.",
        "{} is between {} and {}, which {} does not hold", "{} divides by {}, which can be 0",
        "{} does not hold the number {}",
        "{} is {}, and indices are int32", "{} shifts by {} to {} bits",
    ),
    diagnostic(
        "L016", "what is too deep",
        "So many operations, loops or branches stand inside one another that the compiler cannot follow them. Those of "
        "elements get names by themselves; an index, also one that names stand for, is one expression.",
        "Compute it in fewer steps, or with fewer loops.",
        "an expression of {} operations, {} of them inside one another",
        "more than {} loops and branches inside one another",
        "loops and branches of {} stand too deep inside one another",
    ),
)  # fmt: skip
