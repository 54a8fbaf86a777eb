"""UsageError: wrong use of the command or of the Python interface."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

USAGE = (
    diagnostic(
        "U001", "an unknown name",
        "There is no such command, step, target, backend, device, policy, option or file.",
        "Use one of the names that the hint lists; it names the one that was probably meant.",
    ),
    diagnostic(
        "U002", "a kernel that cannot be found",
        "A kernel is named as file.py::name; the file must be there and define it.",
        "Check the path and the name.",
    ),
    diagnostic(
        "U003", "wrong arguments of a kernel",
        "A kernel that is made by a function takes that function's arguments.",
        "Give each argument once, by name, with a value of its kind.",
    ),
    diagnostic(
        "U004", "the file of a kernel does not run",
        "Loading the file, which is Python, raised an error of its own.",
        "Mend the file: the message is Python's.",
    ),
    diagnostic(
        "U005", "wrong inputs for a run",
        "A run takes one array of numbers for each input tensor, of its shape: in the order of the parameters, or by "
        "name. In the explorer, arrays of the notebook are named.",
        "Compare with the tensors that the kernel was made with.",
    ),
    diagnostic(
        "U006", "a step that was not reached",
        "An earlier pass refused the kernel, so there is nothing to see after it.",
        "Mend what the earlier error says.",
    ),
    diagnostic(
        "U007", "a grid or a range of cores that is none",
        "Grids are columns x rows, ranges of cores two corners, both included.",
        "Write 8x4, or ((0, 0), (3, 1)).",
    ),
    diagnostic(
        "U008", "wrong work lists",
        "Work lists give each work item of the grid to one core.",
        "Give each item once, as a number or as a block.",
    ),
    diagnostic(
        "U009", "a wrong order of the work",
        "Orders are row_major, column_major, block_linear(k) and z_order; some policies are an order themselves.",
        "Leave the order out, or use it with the policy contiguous.",
    ),
    diagnostic(
        "U010", "a wrong value of an option",
        "The option or argument takes other values.",
        "Use one of those that the hint names.",
    ),
    diagnostic(
        "U011", "wrong harvesting",
        "Harvested rows or columns are rows or columns of workers, and some worker must be left.",
        "Name rows of a Wormhole or columns of a Blackhole, in NoC coordinates.",
    ),
    diagnostic(
        "U012", "a folder that cannot be used",
        "The folder cannot be written, holds something else, or is given files whose names lead out of it.",
        "Choose another folder; give plain names.",
    ),
    diagnostic(
        "U013", "wrong use of setup",
        "What is to be set up is not clear.",
        "See ttexplore setup --help.",
    ),
    diagnostic(
        "U014", "wrong words on the command line",
        "The command does not know an option, or an option lacks its value.",
        "See ttexplore COMMAND --help.",
    ),
    diagnostic(
        "U015", "an annotation that cannot be followed",
        "A schedule, layout or sharding annotation names something that is not there, or leaves work out.",
        "Compare the annotation with the grid and the tensors of the kernel.",
    ),
    diagnostic(
        "U016", "a wrong division of a tensor into shards",
        "A tensor is divided along some of its dimensions into shards of whole tiles, one after another on the cores.",
        "Give dimensions that the tensor has, and sizes that are whole tiles.",
    ),
    diagnostic(
        "U017", "something that a saved exploration cannot do",
        "A saved exploration holds what was shown and emitted, not the kernel: it cannot be lowered or interpreted.",
        "Explore the kernel again, or run on the emulator or a device.",
    ),
    diagnostic(
        "U018", "a file of another kind",
        "The file is not what is wanted, was written by another version, or is damaged.",
        "Give an exploration that exploration.save wrote, or a notebook; save it again.",
    ),
)  # fmt: skip
