"""The output of the compiler: three kernels, a host program, the plan, and a Python runner."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ttexplore.emit.host import emit_host
from ttexplore.emit.kernels import emit_kernel
from ttexplore.plan import KERNEL_ROLES, Plan
from ttexplore.record import Line, Listing, lines_of, to_json

PLAN_VERSION = 2
LAUNCHES_VERSION = 1
# The exported runner, unchanged: a program of its own that imports nothing of ours.
RUNNER = Path(__file__).with_name("run_ttnn.py")
# That of a kernel with several launches, which uses those of the launches.
LAUNCHES_RUNNER = Path(__file__).with_name("run_launches.py")


def emit(functions: dict[str, Any], plan: Plan) -> dict[str, Listing]:
    """Emit all exported files, by name, from the lowered functions and the plan.

    Raises Unsupported for operations and expressions without C++ text.
    """
    files = {f"{role}.cpp": emit_kernel(role, functions[role], plan) for role in KERNEL_ROLES}
    files["main.cpp"] = _plain("cpp", "main.cpp", emit_host(plan))
    files["tt.plan.json"] = _plain("json", "tt.plan.json", plan_json(plan))
    files["run_ttnn.py"] = _plain("python", "run_ttnn.py", RUNNER.read_text(encoding="utf-8"))
    return files


def launch_folder(number: int) -> str:
    """The folder of a launch in an export, counted from 0."""
    return f"launch_{number + 1}"


def emit_launches(
    kernel: str, count: int, inputs: Sequence[Mapping[str, object]], outputs: Sequence[Mapping[str, object]]
) -> dict[str, str]:
    """The files of a kernel with several launches beside the folders of these, by name: which tensors go in and come
    out, each with name, shape and dtype, and the runner."""
    folders = [launch_folder(number) for number in range(count)]
    content = {"version": LAUNCHES_VERSION, "kernel": kernel, "launches": folders, "inputs": inputs, "outputs": outputs}
    text = json.dumps(to_json(content), indent=1, sort_keys=True) + "\n"
    return {"launches.json": text, "run_launches.py": LAUNCHES_RUNNER.read_text(encoding="utf-8")}


def plan_json(plan: Plan) -> str:
    """The plan as JSON text; equal plans give equal texts."""
    return json.dumps({"version": PLAN_VERSION, **to_json(plan)}, indent=1, sort_keys=True) + "\n"


def _plain(language: Any, name: str, text: str) -> Listing:
    return Listing(language, tuple(Line(line) for line in lines_of(text)), name)
