"""The card that shows how a run went."""

from __future__ import annotations

import math
from typing import Protocol

from ttexplore.views.markup import content_id, escape, paragraphs
from ttexplore.views.theme import fragment


class RunResult(Protocol):
    """What a run tells: `pcc` and `max_rel_error` compare its outputs with the reference's; `seconds` is their time."""

    @property
    def backend(self) -> str: ...
    @property
    def passed(self) -> bool: ...
    @property
    def pcc(self) -> float: ...
    @property
    def max_rel_error(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def message(self) -> str: ...


def run_html(run: RunResult, *, times: bool = False) -> str:
    """The card as an HTML fragment. Times differ from run to run, so they are shown only when asked for."""
    figures = [
        ("backend", run.backend), ("PCC", correlation(run.pcc)), ("max relative error", f"{run.max_rel_error:.3g}"),
    ]  # fmt: skip
    if times:
        figures.append(("time", f"{run.seconds:.3g} s"))
    verdict = '<span class="ok">✔</span> passed' if run.passed else '<span class="bad">✖</span> failed'
    shown = "".join(
        f'<span><span class="q">{name}</span> <span class="m">{escape(value)}</span></span> ' for name, value in figures
    )
    note = f'<p class="pre">{paragraphs(run.message)}</p>' if run.message else ""
    card = (
        f'<div class="card {"good" if run.passed else "fault"}">'
        f'<div class="opts"><b>{verdict}</b> {shown}</div>{note}</div>'
    )
    label = f"run on {escape(run.backend)}: {'passed' if run.passed else 'failed'}"
    return fragment(content_id("ttx-run", card), label, card)


def correlation(pcc: float) -> str:
    """A correlation with six digits, rounded down, so that only 1 itself reads as 1."""
    return f"{math.floor(pcc * 1e6) / 1e6:.6f}" if math.isfinite(pcc) else str(pcc)
