"""Explorers as one file that works without Jupyter, without Python and without a network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from ttexplore.views.assets import late_module, widget_module, widget_style
from ttexplore.views.explorer import packed
from ttexplore.views.markup import escape, plural

# The fragment of the address is the place, `#lowering=matmul&tab=Code&step=D3&pin=27`: the page writes it as the
# reader goes about, and goes where it leads.
_START, _STYLE = (
    "\n" + Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("report.js", "report.css")
)


@dataclass(frozen=True, slots=True)
class Reported:
    """One lowering of a page: the explorer's data, and `static`, an HTML fragment for where no script runs.

    `note` says in the index what it is, `name` what it is called there instead of the kernel's name. `state` are
    further values that the widget's model has, such as the card of a run; `timeline` is the data of what happened on a
    core.
    """

    data: dict[str, Any]
    static: str
    note: str = ""
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    timeline: dict[str, Any] | None = None
    name: str = ""


def report_html(title: str, lowerings: Sequence[Reported]) -> str:
    """A whole page with the explorers of one or more lowerings, and an index of them where there are several.

    It names no folder of the machine on which it is made: of absolute paths to kernels only the file's name stays.
    """
    lowerings = [_without_folders(lowering) for lowering in lowerings]
    names = _names([lowering.name or lowering.data["kernel"] for lowering in lowerings])
    sent = [
        {
            "name": name, "data": base64.b64encode(packed(lowering.data)).decode(), "state": lowering.state,
            "timeline": base64.b64encode(packed(lowering.timeline)).decode() if lowering.timeline else "",
        }
        for name, lowering in zip(names, lowerings, strict=True)
    ]  # fmt: skip
    with_gpu = any(lowering.state.get("gpu") for lowering in lowerings)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · ttexplore</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(_START)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{widget_style()}{_STYLE}</style></head><body>"
        f'<main>{_index(names, lowerings)}<div id="explorer" class="ttx-filled"></div>'
        f'<div id="static">{"".join(lowering.static for lowering in lowerings)}</div></main>'
        f'<script type="application/json" id="module">{_in_script(widget_module())}</script>'
        f'<script type="application/json" id="gpu">{_in_script(late_module("gpu") if with_gpu else "")}</script>'
        f'<script type="application/json" id="lowerings">{_in_script(sent)}</script>'
        f'<script type="module">{_START}</script></body></html>\n'
    )


def _policy(script: str) -> str:
    """The content security policy of a page whose only script is `script`: browsers run no other one, nor a handler
    in an attribute.

    Nothing is fetched: the script imports its modules from blobs of the page's own text. Styles are part of the
    drawings, in elements and attributes; without images and fonts from outside, they cannot send anything.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}' blob:; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _index(names: Sequence[str], lowerings: Sequence[Reported]) -> str:
    if len(lowerings) == 1:
        return ""
    links = "".join(
        f'<a href="#lowering={quote(name, safe="")}">{escape(name)} <span>{escape(lowering.note)}</span></a>'
        for name, lowering in zip(names, lowerings, strict=True)
    )
    return f'<nav aria-label="{plural(len(lowerings), "lowering")}">{links}</nav>'


def _names(kernels: Sequence[str]) -> list[str]:
    """A name for each lowering; those of kernels of the same name are numbered."""
    count = Counter(kernels)
    used: Counter[str] = Counter()
    names: list[str] = []
    for kernel in kernels:
        used[kernel] += 1
        names.append(kernel if count[kernel] == 1 else f"{kernel} {used[kernel]}")
    return names


def _without_folders(lowering: Reported) -> Reported:
    files = {PurePath(file) for file, _ in lowering.data["places"]}
    folders = sorted((f"{file.parent}/" for file in files if file.is_absolute()), key=len, reverse=True)

    def plain(value: Any) -> Any:
        match value:
            case str():
                for folder in folders:
                    value = value.replace(folder, "")
                return value
            case dict():
                return {name: plain(item) for name, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
            case list() | tuple():
                return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
            case _:
                return value

    if not folders:
        return lowering
    return Reported(
        plain(lowering.data), plain(lowering.static), lowering.note, plain(lowering.state), plain(lowering.timeline),
        plain(lowering.name),
    )  # fmt: skip


def _in_script(value: Any) -> str:
    """A value as JSON that cannot end the script element that holds it."""
    return json.dumps(value).replace("<", "\\u003c")
