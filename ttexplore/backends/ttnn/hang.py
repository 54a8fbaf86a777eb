"""Describing a hanging program: what each processor waits for, from the simulator's report or the SDK's watcher."""

from __future__ import annotations

import re
from collections.abc import Callable

from ttexplore.backends.base import KernelFault
from ttexplore.backends.ttnn.session import DeviceHang
from ttexplore.plan import KERNEL_ROLES
from ttexplore.target import RISCV_PROCESSORS

# The kernel that each processor runs.
PROCESSORS = {
    processor: kernel if kernel in KERNEL_ROLES else f"compute ({kernel})"
    for kernel, processor in RISCV_PROCESSORS.items()
}

# The meaning of the watcher's waypoints (the SDK's docs, "Watcher").
WAYPOINTS = {
    "CRBW": "waits for free pages in a circular buffer (reserve_back)",
    "CWFW": "waits for pages in a circular buffer (wait_front)",
    "NRBW": "waits for its NoC reads (read barrier)",
    "NWBW": "waits for its NoC writes (write barrier)",
    "NSMW": "waits for a semaphore",
    "NARW": "has begun a NoC read",
    "NAWW": "has begun a NoC write",
    "MWDD": "waits for the matrix unit",
    "K": "runs",
    "R": "runs",
    "W": "has ended",
    "GW": "has ended",
    "D": "has ended",
}

WAITING = frozenset({"CRBW", "CWFW", "NRBW", "NWBW", "NSMW"})

HINT = "run it on the emulator, which names the line where each kernel waits; the full report is in the log"


def describe_hang(hang: DeviceHang, watch: Callable[[], DeviceHang | None]) -> KernelFault:
    """The error for a hang, with what each processor waits for. `watch` runs the program again under the SDK's watcher;
    it is called if the simulator reported nothing."""
    states = simulator_states(hang.log)
    if not states and (again := watch()):
        states = watcher_states(again.watcher) or simulator_states(again.log)
    waits = "; ".join(f"{PROCESSORS[processor]} {state}" for processor, state in states.items())
    return KernelFault(
        "B024", hang.message + (f": {waits}" if waits else ", and it is unknown where it waits"), hint=HINT
    )


def simulator_states(log: str) -> dict[str, str]:
    """The state of each processor in wolfpine's last report."""
    report = log.rpartition("[DEADLOCK")[2]
    states: dict[str, str] = {}
    for processor in PROCESSORS:
        state_line = re.search(rf"^\s*{processor}: (.+)$", report, re.MULTILINE)
        if state_line is None:
            continue
        words = state_line[1]
        if "firmware wait loop" in words:
            states[processor] = "has ended"
        elif "polling" in words:
            states[processor] = "polls for something that never happens"
        elif "frozen" in words:
            states[processor] = "makes no progress"
        else:
            states[processor] = words
    return states


def watcher_states(dump: str) -> dict[str, str]:
    """The state of each processor of the first waiting worker core in the watcher's last dump."""
    for core, waypoints in re.findall(r"worker core(\(x= *\d+,y= *\d+\)).*?: *([\w ,]+?)  rmsg", dump):
        words = [word.strip() for word in waypoints.split(",")]
        if any(word in WAITING for word in words):
            coordinates = core.replace("x= ", "").replace("y= ", "").replace(",", ", ")
            names = [WAYPOINTS.get(word, f"is at waypoint {word}") for word in words]
            return {p: f"{name} on core {coordinates}" for p, name in zip(PROCESSORS, names, strict=False)}
    return {}
