"""Start-up time of the command: python -m benchmarks.startup [repeats].

Medians of whole processes: an empty Python, the command's help, and a lowering from a cold start (TVM's import is most
of it).
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

KERNEL = ["notebooks/kernels/gemm.py::matmul", "M=256", "N=256", "K=256"]
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "ttexplore --help": ["-m", "ttexplore.cli", "--help"],
    "import tvm": ["-c", "import tvm"],
    "ttexplore show": ["-m", "ttexplore.cli", "show", *KERNEL],
    "ttexplore run": ["-m", "ttexplore.cli", "run", *KERNEL],
}


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name, command in COMMANDS.items():
        seconds: list[float] = []
        for _ in range(repeats):
            start = time.perf_counter()
            subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - start)
        print(f"{name:<18} {statistics.median(seconds):6.2f} s")


if __name__ == "__main__":
    main()
