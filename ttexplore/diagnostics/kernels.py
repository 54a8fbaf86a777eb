"""KernelError: the kernel is wrong, on any chip."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

KERNELS = (
    diagnostic(
        "K001", "region outside its tensor",
        "A copy or an access reaches outside the tensor or buffer.",
        "Check the block indices, or make the size a multiple of the block.",
    ),
    diagnostic(
        "K002", "shape mismatch",
        "The shapes of the operands do not match.",
        "Compare the shapes in the message.",
    ),
    diagnostic(
        "K003", "wrong index",
        "A buffer takes one index per dimension, and slices cannot be assigned to.",
        "Use one index per dimension; assign inside T.Parallel.",
    ),
    diagnostic(
        "K004", "wrong extent",
        "Extents of loops, grids and buffers are integers of at least 1.",
        "Use a positive integer.",
    ),
    diagnostic(
        "K005", "statement outside T.Kernel",
        "All the code for the chip is inside `with T.Kernel(...)`; several of them follow one another.",
        "Put all statements into one T.Kernel, outside loops and branches.",
    ),
    diagnostic(
        "K006", "value read before it is written",
        "On-chip buffers are uninitialized at the start.",
        "Initialize it with T.copy, T.fill or T.clear first.",
    ),
    diagnostic(
        "K007", "wrong parameter or result",
        "Parameters are tensors; a kernel returns tensors that it writes.",
        "Annotate parameters with T.Tensor, and write each output.",
    ),
    diagnostic(
        "K008", "wrong operand",
        "A function of the kernel language received a block instead of an element, an element instead of a block, or "
        "too many operands.",
        "Compare the operands with those that the message expects.",
    ),
    diagnostic(
        "K009", "wrong dtype",
        "The name is not a dtype, a value cannot be cast to it, or the operation does not support it.",
        "Use a dtype of T, or its name, and the operation in the hint.",
    ),
    diagnostic(
        "K010", "Python cannot see run-time values",
        "Python's own if, loops and assignments run while the kernel is traced, when its values are not known.",
        "Decorate helper functions with @T.macro, or use the loops of T.",
    ),
    diagnostic(
        "K011", "the kernel's Python raised an error",
        "Python raised an error while the kernel was traced.",
        "Fix the line; the message is Python's, or names what is unknown.",
    ),
    diagnostic(
        "K012", "package not installed",
        "The kernel uses a package that it needs only on a GPU.",
        "Move the code that uses it out of the kernel, or install the package.",
    ),
    diagnostic(
        "K013", "wrong use of a run-time size",
        "A T.dynamic size has a name of its own and is a dimension of some tensor, whose array determines its value.",
        "Use each size in the shape of a tensor, under its own name.",
    ),
    diagnostic(
        "K014", "Python state changed in a loop or branch",
        "The body of a kernel loop is traced once for all iterations, and both sides of a run-time branch are traced. "
        "State that Python changes there would keep its first value in all iterations, or receive the changes of both "
        "sides. Names that are assigned before they are read may change.",
        "Compute the value from the loop variable, keep it in T.alloc_var or a buffer, or let Python run the loop: "
        "`for k in [*range(3)]` unrolls it.",
    ),
    diagnostic(
        "K015", "race between groups of threads",
        "Two groups of threads access the same elements, one of them writes, and no barrier orders the two accesses. A "
        "copy with a barrier is over only for those who wait for the barrier's phase. Registers are seen by their own "
        "threads alone.",
        "Let the first group arrive at a barrier after its access, and let the other one wait for it before its own.",
    ),
    diagnostic(
        "K016", "barrier that does not order its threads",
        "A wait never ends, because its phase is never over, or can miss its phase, because nothing keeps the barrier "
        "from the next one; or more or fewer threads arrive than the barrier is for.",
        "Check parities and arrive_count: the first wait for a filled block has parity 0, the first wait for an empty "
        "one parity 1.",
    ),
    diagnostic(
        "K017", "race between blocks",
        "Blocks of the launch grid run at the same time, in no order. What one of them writes, no other one may use, "
        "unless all of them only add to it with T.atomic_add, or update it with T.atomic_max or T.atomic_min alike.",
        "Let one block own each element: loop over the parts of its sum, or add them up with T.atomic_add.",
    ),
    diagnostic(
        "K018", "value of another launch",
        "Each T.Kernel is a launch, as is each part of one between T.sync_grid. Block indices, values and on-chip "
        "buffers end with their launch; tensors remain.",
        "Pass blocks through a tensor of T.alloc_global, and compute values again.",
    ),
)  # fmt: skip
