"""BackendError: a backend is missing, failed, or found a fault in the running program."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

BACKENDS = (
    diagnostic(
        "B001", "no C++ compiler",
        "The emulator compiles the emitted kernels for this machine.",
        "Install a C++ compiler, or the package ziglang.",
    ),
    diagnostic(
        "B002", "a kernel that does not compile",
        "The emitted text is refused by the emulator's headers or by the device's compiler.",
        "Look at the line; without changes of your own this is a fault of the emitter: please report the kernel.",
    ),
    diagnostic(
        "B003", "the program did not end in time",
        "The program ran into the time limit: a loop without an end, a hang, or simply much work.",
        "Look at where it was; raise the time limit for large sizes.",
    ),
    diagnostic(
        "B004", "the program crashed",
        "The program ended with a signal, or its process without a result.",
        "Look for stores through pointers after that line; if it was killed for memory, use smaller tensors.",
    ),
    diagnostic(
        "B005", "inputs or a plan that do not fit the program",
        "The arrays, or the parts of the plan, are not those that the program was made with.",
        "Use the inputs of the exploration; lower again where the plan was changed by hand.",
    ),
    diagnostic(
        "B006", "the run was cancelled", "Whoever started the run ended it.", "Run it again.",
    ),
    diagnostic(
        "B007", "a folder that compiled or temporary files need cannot be used",
        "The emulator keeps compiled files in the user's cache folder and runs them there; tensors go through the "
        "folder for temporary files.",
        "Make room, or choose other folders: XDG_CACHE_HOME for compiled files, TMPDIR for temporary ones.",
    ),
    diagnostic(
        "B010", "a circular buffer is used wrongly as the program runs",
        "Tiles are reserved before they are written, pushed once, waited for before they are read, and popped once.",
        "Look at the line of C++ and at the kernel's line that it came from.",
    ),
    diagnostic(
        "B011", "a deadlock as the program runs",
        "No kernel can go on: each waits for tiles or room that another one should give.",
        "See who waits for what, and what the message says would let it go on.",
    ),
    diagnostic(
        "B012", "a transfer goes wrong as the program runs",
        "A NoC transfer leaves a tensor, a page or what is held of a circular buffer, or is still under way.",
        "Check page ids, sizes and addresses, and put the barriers.",
    ),
    diagnostic(
        "B013", "DST is used wrongly as the program runs",
        "Sections of DST are acquired, committed, waited for and released; slots lie inside of it.",
        "Look at the line of C++ and at the kernel's line that it came from.",
    ),
    diagnostic(
        "B014", "the engine is set up wrongly as the program runs",
        "An operation runs without its start-up, its init, its data format, or while another one is not undone.",
        "Put the init or the reconfiguration before it.",
    ),
    diagnostic(
        "B015", "a kernel reads arguments that it was not given",
        "The kernel asks for an argument beyond those that the host passes.",
        "Compare the indices with the signature.",
    ),
    diagnostic(
        "B019", "another fault of the running program",
        "The emulator, or the simulated chip, refuses what the kernel does at that line.",
        "Look at the line of C++ and at the kernel's line that it came from.",
    ),
    diagnostic(
        "B020", "no device environment",
        "The real SDK lives in an environment of its own, with its own Python.",
        "Run ttexplore setup device.",
    ),
    diagnostic(
        "B021", "setting up the device environment failed",
        "A download, a check or an installation failed; what is there stays and setup goes on from it.",
        "Mend what the message names and run ttexplore setup device again.",
    ),
    diagnostic(
        "B022", "the device does not fit the program",
        "The chip that was opened is another one than the program was lowered for.",
        "Lower for the target that is there.",
    ),
    diagnostic(
        "B023", "the device or its SDK failed",
        "The SDK raised, the device's process ended or said something else than expected.",
        "The log that the message names keeps all that was said; running again opens the device anew.",
    ),
    diagnostic(
        "B024", "the program hangs on the device",
        "Nothing moves any more; the message tells which processor waits for what, as far as the device tells.",
        "Run the same program on the emulator, which names the line that waits.",
    ),
    diagnostic(
        "B025", "a simulator that is silently wrong",
        "The chosen simulator does not model an instruction of the program, or computes it wrongly without saying so.",
        "Use the other simulator, or the option that the hint names.",
    ),
    diagnostic(
        "B026", "a program that is too large for a core",
        "A core keeps the code of all its kernels, a Wormhole in 69 KiB. The compute kernel is compiled three times; "
        "the code of each function of elements, such as T.exp, is in it as often as it is called.",
        "Use fewer different functions in one kernel, or divide it into two that pass a tensor on.",
    ),
    diagnostic(
        "B030", "JupyterLab is missing", "The command lab starts JupyterLab.", "Install ttexplore[lab].",
    ),
    diagnostic(
        "B031", "the verification kernel gave a wrong result",
        "Adding two tiles on the chosen backend did not give their sum.",
        "Run ttexplore doctor, and set the device up again.",
    ),
    diagnostic(
        "B032", "a graph cannot be drawn",
        "Graphs are drawn by Graphviz, which is optional.",
        "Install Graphviz, or use the text of the graph: str(graph), or graph.save with a name that ends in .dot.",
    ),
)  # fmt: skip
