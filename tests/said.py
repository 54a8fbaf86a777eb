"""The notes of a plan or of a traced kernel, as sentences."""

from __future__ import annotations

from ttexplore.language.tracer.kernel import TracedKernel
from ttexplore.plan import Plan


def said(of: Plan | TracedKernel) -> tuple[str, ...]:
    return tuple(note.text for note in of.notes)
