"""Blocks that are loaded, filled, moved and stored."""

from __future__ import annotations

from tests.fuzz.description import Copy, Fill
from tests.fuzz.draw.draft import DTYPES, Draft


def load(draft: Draft) -> None:
    draft.load(draft.places)


def vector(draft: Draft) -> None:
    """A vector that element-wise blocks broadcast along rows or columns."""
    if not draft.is_vector:
        draft.load([draft.one(draft.places)], "v")


def fill(draft: Draft) -> None:
    buffer = draft.target(draft.block, draft.one(DTYPES), "f")
    draft.add(Fill(buffer, draft.number(-4, 4) / 2))


def move(draft: Draft) -> None:
    """A copy from one on-chip buffer to another."""
    source = draft.one(draft.defined(draft.block) or [None])
    if source is not None:
        target = draft.target(draft.block, draft.one(DTYPES), "m")
        if target != source:
            draft.add(Copy(draft.whole(source), draft.whole(target)))


def store(draft: Draft) -> None:
    for name in draft.defined(draft.block)[-1:]:
        draft.store(name)
