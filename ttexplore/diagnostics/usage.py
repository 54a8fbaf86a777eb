"""UsageError: incorrect use of the command or of the Python interface."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

USAGE = (
    diagnostic(
        "U001", "unknown name",
        "There is no command, step, target, backend, device, policy, option, exercise or file of this name.",
        "Use one of the names in the hint, which also suggests the closest match.",
    ),
    diagnostic(
        "U002", "kernel not found",
        "A kernel is named as file.py::name; the file must exist and define it.",
        "Check the path and the name.",
    ),
    diagnostic(
        "U003", "wrong kernel arguments",
        "A function that creates a kernel takes its own arguments.",
        "Pass each argument once, by name, with a value of the right type.",
    ),
    diagnostic(
        "U004", "the kernel's file does not run",
        "Python raised an error while the kernel's file was loaded.",
        "Fix the file; the message is Python's.",
    ),
    diagnostic(
        "U005", "wrong inputs for a run",
        "A run takes one numeric array per input tensor, with the tensor's shape, in parameter order or by name. In "
        "the explorer, you enter names of notebook arrays.",
        "Compare the arrays with the tensors that the kernel was created with.",
    ),
    diagnostic(
        "U006", "step not reached",
        "An earlier pass rejected the kernel, so later steps do not exist.",
        "Fix the earlier error.",
    ),
    diagnostic(
        "U007", "invalid grid or range of cores",
        "A grid is columns x rows; a range of cores is two corners, both included.",
        "Write 8x4, or ((0, 0), (3, 1)).",
    ),
    diagnostic(
        "U008", "invalid work lists",
        "Work lists assign each work item of the grid to one core.",
        "List each item once, as a number or as a block.",
    ),
    diagnostic(
        "U009", "invalid work order",
        "Orders are row_major, column_major, block_linear(k) and z_order; some policies imply an order.",
        "Omit the order, or use it with the policy contiguous.",
    ),
    diagnostic(
        "U010", "invalid option value",
        "The option or argument does not accept this value.",
        "Use one of the values in the hint.",
    ),
    diagnostic(
        "U011", "invalid harvesting",
        "Harvested rows or columns must be rows or columns of workers, and at least one worker must remain.",
        "Name rows of a Wormhole or columns of a Blackhole, in NoC coordinates.",
    ),
    diagnostic(
        "U012", "unusable folder",
        "The folder is not writable, contains something else, or a file name leads out of it.",
        "Choose another folder; use plain file names.",
    ),
    diagnostic(
        "U013", "incorrect use of setup",
        "It is unclear what to set up.",
        "See ttexplore setup --help.",
    ),
    diagnostic(
        "U014", "incorrect command line",
        "The command does not know an option, or an option lacks its value.",
        "See ttexplore COMMAND --help.",
    ),
    diagnostic(
        "U015", "an annotation that cannot be applied",
        "A schedule, layout or sharding annotation names something that does not exist, or leaves out work.",
        "Compare the annotation with the grid and the tensors of the kernel.",
    ),
    diagnostic(
        "U016", "invalid shards",
        "A tensor is divided along some of its dimensions into shards of whole tiles, which are assigned to cores in "
        "order.",
        "Use dimensions that the tensor has, and sizes that are whole tiles.",
    ),
    diagnostic(
        "U017", "not available in a saved exploration",
        "A saved exploration contains what was shown and emitted, but not the kernel, so it cannot be lowered or "
        "interpreted.",
        "Explore the kernel again, or run on the emulator or a device.",
    ),
    diagnostic(
        "U018", "wrong kind of file",
        "The file has another format, was written by another version, or is damaged.",
        "Use a file written by exploration.save, or a notebook; save it again if it is damaged.",
    ),
    diagnostic(
        "U019", "not one launch",
        "A kernel with several launches has steps, a plan and code for each of them.",
        "Take one of exploration.launches; runs, checks and exports are those of the whole.",
    ),
    diagnostic(
        "U020", "text that cannot be edited here",
        "The text of a kernel's function is executed where the kernel was defined; that alone must define the kernel.",
        "Edit the kernel's cell or file, and explore it again.",
    ),
    diagnostic(
        "U021", "an input that cannot be shared",
        "Cores share an input only if they need the same blocks of it at the same steps of their loops, and one copy "
        "reads it from DRAM.",
        "Share another input, in another direction, or use multicast='all'.",
    ),
    diagnostic(
        "U022", "time that depends on elements of tensors",
        "The time of a program is predicted without running it. Where elements of tensors decide how often a loop runs "
        "or whether a branch is taken, the time depends on them.",
        "Predict it for certain inputs, given as those of a run: `ex.estimate(inputs=...)`, or "
        "`ttexplore estimate --inputs random`.",
    ),
    diagnostic(
        "U023", "invalid space of schedules",
        "A space names arguments of the kernel, options of the passes or the target, each with its values.",
        "Give each name once, with at least one value, and none of them twice.",
    ),
    diagnostic(
        "U024", "an input that the writer cannot load",
        "The writer stores results. It can also load inputs whose blocks go to the compute kernel through a circular "
        "buffer.",
        "Let it load another input, or use loaded_by='both'.",
    ),
    diagnostic(
        "U025", "partial sums that cannot be sent",
        "Cores hand on what they have added up to the next one, over the NoC, only if they update the same whole "
        "blocks of a tensor in DRAM, in the same order, and each block once.",
        "Choose cores and a policy that give all cores as many work items, or use partials='dram'.",
    ),
    diagnostic(
        "U026", "a reference that does not fit",
        "A reference is a function of the kernel's inputs, as arrays in float64, that returns its outputs: one array "
        "or a tuple of arrays, of the shapes of the outputs.",
        "Call it with the shapes in the hint, and compare what it returns with the kernel's outputs.",
    ),
    diagnostic(
        "U027", "a source that cannot be ported",
        "ttx.port reads kernels of Triton, CUDA C++ and ThunderKittens, and writes those of a known family in "
        "TileLang. Reading C++ needs the packages tree-sitter and tree-sitter-cuda.",
        "Give the whole file, install these packages, or port the kernel by hand with the rows of .table.",
    ),
    diagnostic(
        "U028", "no word in the Tessera style",
        "export(dialect=\"tessera\") writes copies, products, fills and reductions of whole blocks, and T.Parallel. "
        "The kernel has something else, or is a saved one, of which only texts are left.",
        "Read the exported C++, which has everything; or simplify the kernel to see its skeleton.",
    ),
)  # fmt: skip
