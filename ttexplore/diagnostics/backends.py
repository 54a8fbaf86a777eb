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
        "B002", "kernel does not compile",
        "The emulator's headers or the device's compiler reject the emitted text.",
        "Look at the line; if you did not edit the text, this is a fault of the emitter: please report the kernel.",
    ),
    diagnostic(
        "B003", "time limit exceeded",
        "The program reached the time limit: an endless loop, a hang, or simply much work.",
        "Look at where it stopped; raise the time limit for large sizes.",
    ),
    diagnostic(
        "B004", "program crashed",
        "The program ended with a signal, or its process ended without a result.",
        "Look for stores through pointers after that line; if it was killed for memory, use smaller tensors.",
    ),
    diagnostic(
        "B005", "inputs or plan do not match the program",
        "The arrays, or parts of the plan, are not those that the program was made with.",
        "Use the inputs of the exploration; lower again if the plan was edited by hand.",
    ),
    diagnostic(
        "B006", "run cancelled",
        "The run was cancelled by its caller.",
        "Run it again.",
    ),
    diagnostic(
        "B007", "unusable cache or temporary folder",
        "The emulator keeps compiled files in the user's cache folder and runs them there; tensors pass through the "
        "folder for temporary files. A cache folder that belongs to others, or that they can write to, is not used: "
        "they could put programs there.",
        "Free space, or choose other folders: XDG_CACHE_HOME for compiled files, TMPDIR for temporary ones.",
    ),
    diagnostic(
        "B008", "C++ compiler failed",
        "The compiler was killed, did not start or end, or gave no whole file. The text that it compiled is not at "
        "fault.",
        "Free memory and space for temporary files, and run again.",
    ),
    diagnostic(
        "B010", "incorrect use of a circular buffer at run time",
        "Tiles are reserved before they are written, pushed once, waited for before they are read, and popped once.",
        "Look at the C++ line and at the kernel line that it came from.",
    ),
    diagnostic(
        "B011", "deadlock at run time",
        "No kernel can proceed: each waits for tiles or space that another one should provide.",
        "See which kernel waits for what, and the change that the message suggests.",
    ),
    diagnostic(
        "B012", "faulty transfer at run time",
        "A NoC transfer reaches outside a tensor, a page or the held part of a circular buffer, or is still in "
        "flight.",
        "Check page ids, sizes and addresses, and add the barriers.",
    ),
    diagnostic(
        "B013", "incorrect use of DST at run time",
        "Sections of DST are acquired, committed, waited for and released; slots lie within it.",
        "Look at the C++ line and at the kernel line that it came from.",
    ),
    diagnostic(
        "B014", "engine misconfigured at run time",
        "An operation runs without its start-up, its init or its data format, or before another operation is undone.",
        "Add the init or the reconfiguration before it.",
    ),
    diagnostic(
        "B015", "missing kernel argument",
        "The kernel reads an argument beyond those that the host passes.",
        "Compare the indices with the signature.",
    ),
    diagnostic(
        "B019", "other fault of the running program",
        "The emulator or the simulated chip rejects what the kernel does at that line.",
        "Look at the C++ line and at the kernel line that it came from.",
    ),
    diagnostic(
        "B020", "no device environment",
        "The real SDK is installed in an environment of its own, with its own Python.",
        "Run ttexplore setup device.",
    ),
    diagnostic(
        "B021", "setup failed",
        "A download, a check or an installation failed; completed parts are kept, and setup continues from there.",
        "Fix what the message names and run ttexplore setup again.",
    ),
    diagnostic(
        "B022", "device does not match the program",
        "The opened chip is not the one that the program was lowered for.",
        "Lower for the available target.",
    ),
    diagnostic(
        "B023", "device or SDK failed",
        "The SDK raised an error, or the device's process ended or answered unexpectedly.",
        "Read the log that the message names; running again reopens the device.",
    ),
    diagnostic(
        "B024", "program hangs on the device",
        "Nothing makes progress; the message says which processor waits for what, as far as the device reports it.",
        "Run the same program on the emulator, which names the waiting lines.",
    ),
    diagnostic(
        "B025", "unsupported by the simulator",
        "The chosen simulator does not model an instruction of the program, or silently computes it wrongly.",
        "Use the other simulator, or the option in the hint.",
    ),
    diagnostic(
        "B026", "program too large for a core",
        "A core holds the code of all its kernels, a Wormhole core in 69 KiB. The compute kernel is compiled three "
        "times; the code of each element function, such as T.exp, is included once per call.",
        "Use fewer different functions in one kernel, or split it into two that pass on a tensor.",
    ),
    diagnostic(
        "B030", "JupyterLab is missing",
        "The command lab starts JupyterLab.",
        "Install JupyterLab with the command in the hint.",
    ),
    diagnostic(
        "B031", "wrong result of the verification kernel",
        "Adding two tiles on the chosen backend did not give their sum.",
        "Run ttexplore doctor, and set up the device again.",
    ),
    diagnostic(
        "B032", "graph cannot be drawn",
        "Graphs are drawn by Graphviz, which is optional.",
        "Install Graphviz, or use the text of the graph: str(graph), or graph.save with a name that ends in .dot.",
    ),
    diagnostic(
        "B033", "a worker of a sweep failed",
        "The process that lowered a point ended, runs another version of ttexplore, or raised what is no error of the "
        "kernel. All other points have their results.",
        "If it was killed for memory, use fewer workers; on a cluster, install the same version everywhere.",
    ),
    diagnostic(
        "B034", "scheduler cannot be reached",
        "No scheduler of Dask answered at this address.",
        "Start it, and give the address that it prints.",
    ),
    diagnostic(
        "B035", "optional package is missing",
        "Clusters and DataFrames need packages that are not installed with ttexplore.",
        "Install the package in the hint.",
    ),
    diagnostic(
        "B040", "no GPU environment",
        "TileLang, which lowers kernels for a GPU, is installed in an environment of its own; only the kernels of the "
        "gallery have recorded lanes.",
        "Run ttexplore setup gpu.",
    ),
    diagnostic(
        "B041", "TileLang's process failed",
        "TileLang runs in a process of its own, which crashed, did not start, or gave no answer.",
        "Read what it said; ttexplore doctor checks the environment. Everything else of the kernel works.",
    ),
    diagnostic(
        "B042", "kernel rejected by TileLang",
        "TileLang traces the text of the kernel itself. It lacks some of our names, checks more in other places, and "
        "gets the values of the names that the text uses only if they are plain data.",
        "Write the line as TileLang takes it, or do without the GPU lane.",
    ),
    diagnostic(
        "B043", "pass of TileLang failed",
        "TileLang traced the kernel, but one of its passes cannot lower it for this architecture.",
        "Look at the program before the pass; try another architecture or other block sizes.",
    ),
    diagnostic(
        "B044", "no PTX",
        "PTX is compiled from the generated CUDA by nvcc, which is not part of any environment, with the headers of "
        "TileLang.",
        "Install the CUDA toolkit, and ttexplore setup gpu.",
    ),
)  # fmt: skip
