"""Who fills and who empties each circular buffer: kernels of its own core, of which the plan names one for each side. A
buffer that other cores fill has producers that the plan cannot name yet."""

from __future__ import annotations

from collections.abc import Mapping

from ttexplore.errors import VerifyError
from ttexplore.ir.kernel import Call, Kernel, calls, kernel_name
from ttexplore.passes.verify.ends import PROTOCOL
from ttexplore.plan import Plan


def check_users(kernels: Mapping[str, Kernel], plan: Plan) -> None:
    """Each circular buffer has the producer and the consumer that the plan names, and no other."""
    known = {buffer.name: buffer for buffer in plan.buffers}
    used = set[str]()
    for role, kernel in kernels.items():
        for call in calls(kernel.body):
            for name in _buffers_of(call):
                used.add(name)
                if name not in known:
                    raise VerifyError(
                        "V010",
                        f"{kernel_name(role)} uses the circular buffer {name}, which the plan does not have",
                        hint="add it to the plan where it is allocated",
                        span=call.span,
                    )
            if call.name not in PROTOCOL:
                continue
            buffer = known[call.buffer("cb")]
            fills = call.name in ("tt.cb_reserve_back", "tt.cb_push_back")
            wanted = buffer.producer if fills else buffer.consumer
            if role != wanted:
                what = {"tt.cb_reserve_back": "reserves room in", "tt.cb_push_back": "pushes",
                        "tt.cb_wait_front": "waits for", "tt.cb_pop_front": "pops"}[call.name]  # fmt: skip
                raise VerifyError(
                    "V010",
                    f"{kernel_name(role)} {what} {buffer.name}, which {kernel_name(wanted)} should",
                    hint="a circular buffer has one producer and one consumer: move it there, or name another buffer",
                    span=call.span,
                )
    if not any(kernel.names & PROTOCOL for kernel in kernels.values()):
        return
    for buffer in plan.buffers:
        if buffer.name not in used:
            raise VerifyError(
                "V010",
                f"no kernel uses the circular buffer {buffer.name} of the plan",
                hint="leave it out of the plan: it takes L1 for nothing",
                span=buffer.origin,
            )


def _buffers_of(call: Call) -> list[str]:
    return [buffer.name for buffer in call.buffers.values() if buffer.scope == "tt.cb"]
