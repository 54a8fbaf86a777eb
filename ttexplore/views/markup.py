"""Text that is safe to show, and numbers as all views print them.

Kernel sources, names and messages come from the user. Every view passes them through :func:`escape`, which also makes
characters visible that would change how the line around them reads (bidirectional controls, zero-width characters).
"""

from __future__ import annotations

import hashlib
import html

from ttexplore.characters import visible


def escape(text: str) -> str:
    """`text` for HTML and XML, in content and in quoted attributes."""
    return html.escape(visible(text), quote=True)


def paragraphs(text: str) -> str:
    """Escaped `text` that keeps its line ends; the style shows them."""
    return "\n".join(escape(line) for line in text.splitlines())


def content_id(prefix: str, *contents: str) -> str:
    """An element id that depends on the content only, so two runs print the same bytes."""
    digest = hashlib.sha256("\0".join(contents).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{prefix}-{digest[:12]}"


def byte_size(size_bytes: int) -> str:
    """A size in bytes or, where that is exact to a tenth, in KiB: ``2 KiB``, ``1,360.7 KiB``, ``96 B``."""
    if abs(size_bytes) < 1024:
        return f"{size_bytes:,} B"
    return f"{size_bytes / 1024:,.1f}".removesuffix(".0") + " KiB"


def shortened(text: str, characters: int) -> str:
    """`text` cut to a number of characters, with an ellipsis where something is missing."""
    text = visible(text)
    return text if len(text) <= characters else text[: characters - 1] + "…"


def plural(count: int, noun: str) -> str:
    """``1 page``, ``2 pages``."""
    if count == 1:
        return f"1 {noun}"
    ending = "es" if noun.endswith(("s", "x", "ch")) else "s"
    return f"{count:,} {noun}{ending}"
