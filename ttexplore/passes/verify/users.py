"""Check which kernel fills and which one empties each circular buffer. Both are kernels of its own core, and the plan
names one for each side. If other cores fill a buffer, it has producers that the plan cannot name yet."""

from __future__ import annotations

from collections.abc import Mapping

from ttexplore.errors import VerifyError
from ttexplore.ir.kernel import Call, Kernel, calls, kernel_name
from ttexplore.ops.op import CB_SCOPE
from ttexplore.ops.protocol import CB_POP_FRONT, CB_PUSH_BACK, CB_RESERVE_BACK, CB_WAIT_FRONT
from ttexplore.passes.verify.ends import PROTOCOL
from ttexplore.plan import Plan


def check_users(kernels: Mapping[str, Kernel], plan: Plan) -> None:
    """Each circular buffer has the producer and the consumer that the plan names, and no others."""
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    used = set[str]()
    for role, kernel in kernels.items():
        for call in calls(kernel.body):
            for name in _buffers_of(call):
                used.add(name)
                if name not in buffers:
                    raise VerifyError(
                        "V010",
                        f"{kernel_name(role)} uses the circular buffer {name}, which is not in the plan",
                        hint="add it to the plan where it is allocated",
                        span=call.span,
                    )
            if call.name not in PROTOCOL:
                continue
            buffer = buffers[call.buffer("cb")]
            fills = call.name in (CB_RESERVE_BACK.ir_name, CB_PUSH_BACK.ir_name)
            owner = buffer.producer if fills else buffer.consumer
            if role != owner:
                action = {CB_RESERVE_BACK.ir_name: "reserves room in", CB_PUSH_BACK.ir_name: "pushes",
                        CB_WAIT_FRONT.ir_name: "waits for", CB_POP_FRONT.ir_name: "pops"}[call.name]  # fmt: skip
                raise VerifyError(
                    "V010",
                    f"{kernel_name(role)} {action} {buffer.name}; the plan says that {kernel_name(owner)} does",
                    hint=f"move the call to {kernel_name(owner)}, or use another buffer: a circular buffer has one "
                    "producer and one consumer",
                    span=call.span,
                )
    if not any(kernel.names & PROTOCOL for kernel in kernels.values()):
        return
    for buffer in plan.buffers:
        if buffer.name not in used:
            raise VerifyError(
                "V010",
                f"no kernel uses the circular buffer {buffer.name} of the plan",
                hint="remove it from the plan: it wastes L1",
                span=buffer.origin,
            )


def _buffers_of(call: Call) -> list[str]:
    return [buffer.name for buffer in call.buffers.values() if buffer.scope == CB_SCOPE]
