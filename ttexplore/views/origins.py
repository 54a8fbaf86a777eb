"""Which kernel lines a line comes from, as short labels."""

from __future__ import annotations

from collections.abc import Sequence

from ttexplore.record import Origin


def origin_label(origins: Sequence[Origin]) -> str:
    """The kernel lines of a line, best known first: ``L18``, ``L18 L22``, ``L18 L22 +3``; empty if unknown."""
    lines = _origin_lines(origins)
    more = f" +{len(lines) - 2}" if len(lines) > 2 else ""
    return " ".join(f"L{line}" for line, _ in lines[:2]) + more


def origin_html(origins: Sequence[Origin]) -> str:
    """The label with each line underlined: solid for exact, dashed for derived, dotted for inferred."""
    lines = _origin_lines(origins)
    more = f" +{len(lines) - 2}" if len(lines) > 2 else ""
    return " ".join(f'<i class="{kind[0]}">L{line}</i>' for line, kind in lines[:2]) + more


def _origin_lines(origins: Sequence[Origin]) -> list[tuple[int, str]]:
    kinds = ("exact", "derived", "inferred")
    best: dict[int, str] = {}
    for origin in sorted(origins, key=lambda one: (kinds.index(one.kind), one.span.line)):
        best.setdefault(origin.span.line, origin.kind)
    return list(best.items())


ORIGIN_NOTE = (
    '<p class="q">L<i>n</i> is the kernel line: <span class="e">exact</span>, '
    '<span class="d">derived</span> by a pass, <span class="i">inferred</span> from what encloses it.</p>'
)
