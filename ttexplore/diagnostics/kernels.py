"""KernelError: the kernel is wrong, on any chip."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

KERNELS = (
    diagnostic(
        "K001", "a region outside of its tensor",
        "A copy or an access leaves the tensor or the buffer.",
        "Check the block indices, or make the size a multiple of the block.",
    ),
    diagnostic(
        "K002", "shapes that do not fit",
        "The operands of an operation have shapes that do not go together.",
        "Compare the shapes that the message names.",
    ),
    diagnostic(
        "K003", "a wrong index",
        "A buffer is indexed with as many indices as it has dimensions, and a slice cannot be assigned to.",
        "Give one index for each dimension; assign in T.Parallel.",
    ),
    diagnostic(
        "K004", "a wrong extent",
        "Extents of loops, grids and buffers are integers of at least 1.",
        "Give a positive integer.",
    ),
    diagnostic(
        "K005", "a statement outside of T.Kernel",
        "A kernel is one `with T.Kernel(...)`; what runs on the chip stands inside, once.",
        "Put everything into one T.Kernel, outside of loops and branches.",
    ),
    diagnostic(
        "K006", "a value is read before it is written",
        "On-chip buffers start with no defined contents.",
        "T.copy, T.fill or T.clear it first.",
    ),
    diagnostic(
        "K007", "a wrong parameter or result",
        "Parameters are tensors; what a kernel returns are tensors that it writes.",
        "Annotate parameters with T.Tensor, and write each output.",
    ),
    diagnostic(
        "K008", "a wrong operand",
        "A function of the kernel language got a block for an element, an element for a block, or too many of them.",
        "Compare with what the message says that it wants.",
    ),
    diagnostic(
        "K009", "a wrong dtype",
        "The name is no dtype, a value cannot be cast to it, or the operation is not for values of it.",
        "Use a dtype of T, or its name, and the operation that the hint names.",
    ),
    diagnostic(
        "K010", "Python on values that are known only when the kernel runs",
        "Plain Python's if, loops and assignments run while the kernel is traced; they cannot see its values.",
        "Decorate helper functions with @T.macro, or use the loops of T.",
    ),
    diagnostic(
        "K011", "the kernel's own Python raised an error",
        "While the kernel was traced, its Python raised.",
        "Mend the line: the message is Python's, or that of the name that is not known.",
    ),
    diagnostic(
        "K012", "a package that is not installed",
        "The kernel uses a package that it only needs on a GPU.",
        "Keep what uses it out of the kernel, or install it.",
    ),
    diagnostic(
        "K013", "a wrong use of a size that is known only at run time",
        "A T.dynamic size has a name of its own and is the size of a tensor, whose array gives it its value.",
        "Use each in the shape of a tensor, under a name of its own.",
    ),
    diagnostic(
        "K014", "Python that another turn or branch would see changed",
        "The body of a kernel loop is traced once, for all turns, and of a branch that is decided when the kernel runs "
        "both sides are. What Python changes there would keep its first value in all turns, or get that of both sides. "
        "Names that are bound before they are read may change.",
        "Compute the value from the loop's variable, keep it in T.alloc_var or a buffer, or let Python run the loop: "
        "`for k in [*range(3)]` writes its turns out.",
    ),
)  # fmt: skip
