"""KernelError: the kernel is wrong, on any chip."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

KERNELS = (
    diagnostic(
        "K001", "a region outside of its tensor",
        "A copy or an access leaves the tensor or the buffer.",
        "Check the block indices, or make the size a multiple of the block.",
        "{} has {} elements along axis {}; the region reaches from {} to {}",
        "{} has {} elements along axis {}; the region {}:{} is outside",
        "{} has {} elements along axis {}; index {} is outside", "{} has {} elements along axis {}, and {} reaches {}",
        "{}[{}:{}] along dimension {} is outside of its extent {}",
    ),
    diagnostic(
        "K002", "shapes that do not fit",
        "The operands of an operation have shapes that do not go together.",
        "Compare the shapes that the message names.",
        "T.copy: the shapes differ: {} to {}", "T.gemm: {} times {}{} does not fit {}", "{}: {} is no matrix",
        "{}: dim={}, and {} has {} dimensions", "{}: {} along dim={} does not fit {}",
        "{}: {} has {} dimensions, the other side is {}",
    ),
    diagnostic(
        "K003", "a wrong index",
        "A buffer is indexed with as many indices as it has dimensions, and a slice cannot be assigned to.",
        "Give one index for each dimension; assign in T.Parallel.",
        "{} has {} dimension{} and is indexed with {}", "{} {} is indexed with {} indices",
        "{}: a slice cannot be assigned to",
    ),
    diagnostic(
        "K004", "a wrong extent",
        "Extents of loops, grids and buffers are integers of at least 1.",
        "Give a positive integer.",
        "{}: {} is no extent", "{}: the shape {} has no elements", "{}: the extent {} leaves nothing to do",
        "{} needs at least one extent", "T.Kernel has {} axes", "{} launches no blocks",
        "the launch grid has {} blocks along {}", "T.Pipelined: num_stages is {}", "a loop steps by {}",
        "a loop bound is {}, which is no integer", "range takes 1 to 3 bounds, not {}",
        "T.Kernel: an axis is given twice or left out",
    ),
    diagnostic(
        "K005", "a statement outside of T.Kernel",
        "A kernel is one `with T.Kernel(...)`; what runs on the chip stands inside, once.",
        "Put everything into one T.Kernel, outside of loops and branches.",
        "a statement is outside of T.Kernel", "the kernel has no launch grid, or statements outside of it",
        "T.Kernel is inside a loop or a branch", "{} is outside of T.Kernel", "{} works inside a kernel only",
        "there are no block indices outside of T.Kernel",
    ),
    diagnostic(
        "K006", "a value is read before it is written",
        "On-chip buffers start with no defined contents.",
        "T.copy, T.fill or T.clear it first.",
        "{} is read before anything is written to it",
    ),
    diagnostic(
        "K007", "a wrong parameter or result",
        "Parameters are tensors that the kernel reads or writes; what a kernel returns are tensors.",
        "Annotate parameters with T.Tensor, and remove those that are not used.",
        "{} is neither read nor written", "{} is annotated with {}, which is no tensor",
        "{} returns {}, which is no tensor",
        "out_idx={}, and {} has {} parameters", "parameter {} is {}, which makes it no tensor",
        "T.const {} has no value",
    ),
    diagnostic(
        "K008", "a wrong operand",
        "A function of the kernel language got a block for an element, an element for a block, or too many of them.",
        "Compare with what the message says that it wants.",
        "{} works on elements, and {} is a block", "{} works on numbers, and this is {}",
        "{} wants a tensor, a buffer or a region of one, not {}", "T.{} takes {} argument{}, not {}", "{} is no {}",
        "{} has no infinity", "{}: unknown scope {}",
        "T.region wants an element",
        "T.region: the sizes {} of {}, which has {} dimensions",
    ),
    diagnostic(
        "K009", "a wrong dtype",
        "The name is no dtype, a value cannot be cast to it, or the operation is not for values of it.",
        "Use a dtype of T, or its name, and the operation that the hint names.",
        "{} is no dtype", "{} cannot be cast to {}", "integers are divided with /, which has a fraction",
    ),
    diagnostic(
        "K010", "Python on values that are known only when the kernel runs",
        "Plain Python's if, loops and assignments run while the kernel is traced; they cannot see its values.",
        "Decorate helper functions with @T.macro, or use the loops of T.",
        "plain Python works on a value that is known only when the kernel runs",
        "`{}` depends on a value known only when the kernel runs, but Python runs this loop",
        "this cannot be iterated over", "{} gives {} {} to {} names",
    ),
    diagnostic(
        "K011", "the kernel's own Python raised an error",
        "While the kernel was traced, its Python raised.",
        "Mend the line: the message is Python's, or that of the name that is not known.",
        "{}: {}", "the source of {} cannot be found", "there is no {} {}", "{} has no {}", "T.{} does not exist{}",
        "T has no {}{}", "there is no T.{}",
    ),
    diagnostic(
        "K012", "a package that is not installed",
        "The kernel uses a package that it only needs on a GPU.",
        "Keep what uses it out of the kernel, or install it.",
        "{} is {}, of a module that is not installed", "torch is not installed",
    ),
    diagnostic(
        "K013", "a wrong use of a size that is known only at run time",
        "A T.dynamic size has a name of its own and is the size of a tensor, whose array gives it its value.",
        "Use each in the shape of a tensor, under a name of its own.",
        "{} is not known before the kernel runs", "two sizes are called {}",
        "{} is the size of no tensor, so nothing gives it a value", "T.dynamic wants a name",
    ),
)  # fmt: skip
