"""Which kernel lines a line comes from: short labels, and how much of a listing knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from ttexplore.record import Listing, Origin, OriginKind

# Best first.
ORIGIN_KINDS: tuple[str, ...] = get_args(OriginKind)


def origin_html(origins: Sequence[Origin]) -> str:
    """The kernel lines of a line, best known first: L18, L18 L22, L18 L22 +3; empty if unknown. Each is underlined:
    solid for exact, dashed for derived, dotted for inferred."""
    lines = _origin_lines(origins)
    more = f" +{len(lines) - 2}" if len(lines) > 2 else ""
    return " ".join(f'<i class="{kind[0]}">L{line}</i>' for line, kind in lines[:2]) + more


def _origin_lines(origins: Sequence[Origin]) -> list[tuple[int, str]]:
    best: dict[int, str] = {}
    for origin in sorted(origins, key=lambda origin: (ORIGIN_KINDS.index(origin.kind), origin.span.line)):
        best.setdefault(origin.span.line, origin.kind)
    return list(best.items())


def coverage(listing: Listing) -> tuple[int, int, int, int]:
    """How many statements of a listing are exact, derived, inferred and unknown, by the best origin of each."""
    counts = [0, 0, 0, 0]
    for line in listing.lines:
        if line.node is not None:
            best = min((ORIGIN_KINDS.index(origin.kind) for origin in line.origins), default=3)
            counts[best] += 1
    return counts[0], counts[1], counts[2], counts[3]


ORIGIN_NOTE = (
    '<p class="q">L<i>n</i> is the kernel line: <span class="e">exact</span>, '
    '<span class="d">derived</span> by a pass, <span class="i">inferred</span> from the enclosing statement.</p>'
)
