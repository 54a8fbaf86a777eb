"""The process that keeps the device open: ``python worker.py``, run by the interpreter that has ttnn.

Requests are lines of JSON on standard input, answers are lines of JSON on the original standard output. The SDK's own
output goes to standard error, which is the log. A request is ``{"folder": F, "inputs": [...], "out": G}``: run the
exported program in F on these .npy files and write each result to G. The answers to it are ``{"stage": ...}`` for
progress, then ``{"done": ...}`` or ``{"error": ...}``. The process ends when standard input closes.
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import queue
import signal
import sys
import threading
import time


def load_runner(folder):
    """Load the exported run_ttnn.py as a module, so that the file that users get is tested."""
    specification = importlib.util.spec_from_file_location("run_ttnn", pathlib.Path(folder) / "run_ttnn.py")
    runner = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(runner)
    return runner


def run(request, device, say):
    import numpy as np
    import ttnn

    runner = load_runner(request["folder"])
    plan = runner.load_plan()
    say(stage="writing the inputs")
    on_device = runner.tensors(plan, [np.load(file) for file in request["inputs"]], device)
    say(stage="compiling")
    start = time.perf_counter()
    runner.launch(plan, on_device)
    say(stage="running")
    launched = time.perf_counter()
    ttnn.synchronize_device(device)
    ended = time.perf_counter()
    say(stage="reading the outputs")
    for name, values in runner.results(plan, on_device).items():
        np.save(pathlib.Path(request["out"]) / f"{name}.npy", values)
    say(done={"compile_seconds": launched - start, "seconds": ended - launched})


def end_simulator(tag):
    """End the simulator's server, which runs in its own session and outlives a killed client; `tag` is on its command
    line."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if tag.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)


def read_requests(requests):
    for line in sys.stdin:
        requests.put(json.loads(line))
    # Nobody is left to read an answer. A program that never ends may block the main thread.
    end_simulator(os.environ["TT_SIM_RUN_TAG"])
    os._exit(0)


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)

    def say(**fields):
        answers.write(json.dumps(fields) + "\n")

    requests = queue.Queue()
    threading.Thread(target=read_requests, args=(requests,), daemon=True).start()
    say(stage="opening the device")
    import ttnn

    device = ttnn.open_device(device_id=0)
    grid = device.compute_with_storage_grid_size()
    architecture = str(device.arch()).rpartition(".")[2].lower()
    say(ready={"grid": [grid.x, grid.y], "architecture": architecture})
    while True:
        request = requests.get()
        try:
            run(request, device, say)
        except Exception as error:
            say(error={"kind": type(error).__name__, "text": str(error)})


if __name__ == "__main__":
    main()
