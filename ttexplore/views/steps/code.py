"""Listings as coloured code with line numbers and the kernel line of each line."""

from __future__ import annotations

import dataclasses

from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.data import JsonLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType

from ttexplore.record import Listing
from ttexplore.views.markup import content_id, escape, plural, visible
from ttexplore.views.steps.diff import gap_row
from ttexplore.views.steps.origins import ORIGIN_NOTE, origin_html
from ttexplore.views.theme import fragment

# The first match counts. Names are not coloured, except functions, which are bold.
_CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Comment.Preproc, "pp"),
    (Comment.PreprocFile, "st"),
    (Comment, "co"),
    (String, "st"),
    (Number, "nu"),
    (Keyword, "kw"),
    (Name.Function, "fn"),
    (Name.Decorator, "pp"),
)


def coloured_lines(listing: Listing) -> tuple[str, ...]:
    """Each line of the listing as HTML."""
    text = "\n".join(visible(line.text) for line in listing.lines)
    lines: list[list[str]] = [[]]
    for kind, value in _lexer(listing.language).get_tokens(text):
        name = next((name for group, name in _CLASSES if kind in group), "")
        for position, piece in enumerate(value.split("\n")):
            if position:
                lines.append([])
            if piece:
                lines[-1].append(f'<span class="{name}">{escape(piece)}</span>' if name else escape(piece))
    return tuple("".join(texts) for texts in lines[: len(listing.lines)])


def _lexer(language: str) -> Lexer:
    options = {"stripnl": False, "ensurenl": False}
    match language:
        case "python" | "tir":
            return PythonLexer(**options)
        case "cpp":
            return CppLexer(**options)
        case "json":
            return JsonLexer(**options)
        case _:
            raise ValueError(f"no colours for {language!r}; known are python, tir, cpp and json")


def _beginning(listing: Listing, max_bytes: int) -> Listing:
    """The lines that can fit at all, so that no time goes to colouring others."""
    size_bytes = 0
    for position, line in enumerate(listing.lines):
        size_bytes += len(line.text)
        if size_bytes > max_bytes:
            return dataclasses.replace(listing, lines=listing.lines[:position])
    return listing


def code_table(listing: Listing, *, max_bytes: int = 60_000, label: str = "") -> str:
    """The listing as a table without a style of its own; lines beyond `max_bytes` are counted in its last row."""
    with_origins = any(line.origins for line in listing.lines)
    rows: list[str] = []
    size_bytes = 0
    shown = _beginning(listing, max_bytes)
    for number, (line, text) in enumerate(zip(shown.lines, coloured_lines(shown), strict=True), start=1):
        origin = f"<td>{origin_html(line.origins)}</td>" if with_origins else ""
        row = f"<tr><td>{number}</td>{origin}<td>{text}</td></tr>"
        size_bytes += len(row.encode())
        if size_bytes > max_bytes:
            break
        rows.append(row)
    cut = len(listing.lines) - len(rows)
    if cut:
        rows.append(gap_row(f"… {plural(cut, 'more line')} not shown here", 2 + with_origins))
    return f'<table class="t code" aria-label="{escape(label or listing.name)}">{"".join(rows)}</table>'


def code_html(listing: Listing, *, max_bytes: int = 100_000) -> str:
    """A listing as an HTML fragment."""
    name = escape(listing.name or listing.language)
    head = f'<div class="head"><h3>{name}</h3> <span class="q">{plural(len(listing.lines), "line")}</span></div>'
    note = ORIGIN_NOTE if any(line.origins for line in listing.lines) else ""
    table = code_table(listing, max_bytes=max_bytes)
    return fragment(content_id("ttx-code", listing.name, table), f"code {listing.name}", head + table + note)
