"""Record the GPU lanes that ship with ttexplore: python -m benchmarks.gpu_lanes [--write].

Lowers the kernels with TileLang, and prints for each target the passes, those that change the program, the generated
lines, the share of them that is linked to kernel lines, the seconds, and whether the recording is the same.
Times are not compared. With --write, the recordings are written again. Needs the environment of ttexplore setup gpu.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ttexplore as ttx
from ttexplore.control import FREE
from ttexplore.gpu.environment import read_environment
from ttexplore.gpu.lane import TIME_LIMIT_SECONDS, read_answer, request_for
from ttexplore.gpu.process import ask
from ttexplore.gpu.recorded import FOLDER, recorded, without_times, write_recording
from ttexplore.language.portable import portable

# Relative to the root of the repository.
KERNELS: dict[str, tuple[str, dict[str, Any]]] = {
    "matmul": ("notebooks/kernels/gemm.py::matmul", {"M": 256, "N": 256, "K": 256}),
    "softmax": ("notebooks/gallery/softmax.py::softmax", {"N": 256}),
    "full_attention": ("notebooks/gallery/attention.py::full_attention", {}),
    "causal_attention": ("notebooks/gallery/attention.py::causal_attention", {}),
}
TARGETS = ("sm_90a", "sm_80", "gfx942")


def main() -> None:
    write = "--write" in sys.argv[1:]
    environment = read_environment()
    if write:
        for old in FOLDER.glob("*.json.xz"):
            old.unlink()
    print("| kernel | target | passes | changed | lines | linked | seconds | bytes | recorded |\n" + "|---" * 9 + "|")
    for name, (reference, arguments) in KERNELS.items():
        kernel = ttx.explore(reference, **arguments).kernel
        sent = portable(kernel)
        for target in TARGETS:
            request = request_for(sent.texts, sent.arguments, target)
            before = recorded(request)
            answer = ask(environment, request, FREE.of("the GPU lane", seconds=TIME_LIMIT_SECONDS))
            lane = read_answer(kernel.name, kernel.source, answer, sent.places, target)
            state = "none" if before is None else "same" if without_times(before) == without_times(answer) else "OTHER"
            file: Path | None = write_recording(f"{name}-{target}", request, answer) if write else None
            cells = (
                name, target, len(lane.records), sum(one.changed_ir for one in lane.records),
                len(lane.code.lines) if lane.error is None else "failed",
                f"{100 * lane.linked_share:.0f} %" if lane.error is None else "-", f"{lane.seconds:.1f}",
                file.stat().st_size if file else "-", state,
            )  # fmt: skip
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
