"""The few shapes that all drawings share. Coordinates are pixels; text is never measured."""

from __future__ import annotations

from ttexplore.views.markup import escape
from ttexplore.views.theme import svg_style

# Characters between elements are never drawn. Where a front end takes drawings out for safety, only texts are left of
# them: these keep their words apart, and one thing from the next.
_APART = (("</title>", " "), ("</text>", " "), ("</g>", "| "))


def drawing(identifier: str, title: str, description: str, width: int, height: int, content: str) -> str:
    """A whole drawing that reads well inside a page and alone. `title` and `description` are plain text."""
    content = apart(content)
    # Wide drawings scroll on a narrow page; others shrink with it.
    classes = "ttx-svg wide" if width > 900 else "ttx-svg"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{classes}" id="{identifier}" role="img" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'aria-labelledby="{identifier}-t {identifier}-d">'
        f'<title id="{identifier}-t">{escape(title)}</title>: <desc id="{identifier}-d">{escape(description)}</desc>. '
        f'{svg_style()}<rect class="surface" width="{width}" height="{height}"/>{content}</svg>\n'
    )


def apart(content: str) -> str:
    """What is inside a drawing, with the words of neighbouring texts kept apart where only the texts are left of it."""
    for end, between in _APART:
        content = content.replace(end, end + between)
    return content


def text(x: float, y: float, content: str, *classes: str, anchor: str = "start") -> str:
    """A line of text on the baseline `y`. `content` is plain text.

    Texts of the class ``t`` are labels: the explorer explains the terms in them.
    """
    style = f' class="{" ".join(classes)}"' if classes else ""
    align = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{_number(x)}" y="{_number(y)}"{style}{align}>{escape(content)}</text>'


def rectangle(x: float, y: float, width: float, height: float, *classes: str, radius: float = 0, fill: str = "") -> str:
    """A rectangle with a class or a fill."""
    style = f' class="{" ".join(classes)}"' if classes else ""
    round_ = f' rx="{_number(radius)}"' if radius else ""
    colour = f' fill="{fill}"' if fill else ""
    return (
        f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
        f"{round_}{style}{colour}/>"
    )


def path(data: str, *classes: str, extra: str = "") -> str:
    """A path with classes; `extra` are ready attributes."""
    return f'<path d="{data}" class="{" ".join(classes)}"{extra}/>'


def arrow_marker(identifier: str) -> str:
    """The arrow head of edges, to be referred to by ``marker-end``."""
    return (
        f'<marker id="{identifier}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0 .8 8 4 0 7.2z"/></marker>'
    )


def hatch_pattern(identifier: str) -> str:
    """Diagonal lines for what is not used."""
    return (
        f'<pattern id="{identifier}" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><path class="hatch" d="M0 0V6"/></pattern>'
    )


def tooltip(content: str) -> str:
    """The title that a browser shows on hovering. `content` is plain text."""
    return f"<title>{escape(content)}</title>"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
