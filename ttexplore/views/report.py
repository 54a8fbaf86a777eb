"""The explorer as one file that works without Jupyter, without Python and without a network."""

from __future__ import annotations

import base64
import json
from typing import Any

from ttexplore.views.assets import widget_module, widget_style
from ttexplore.views.explorer import packed
from ttexplore.views.markup import escape

# Nothing is fetched: the module comes from a blob of the page's own text.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_START = """
const text = (name) => document.getElementById(name).textContent;
const address = URL.createObjectURL(new Blob([JSON.parse(text("module"))], {type: "text/javascript"}));
const {default: widget} = await import(address);
const bytes = (name) => Uint8Array.from(atob(text(name)), (c) => c.charCodeAt(0));
const state = {data: bytes("data"), live: false, ...JSON.parse(text("state"))};
if (text("timeline")) state.timeline = bytes("timeline");
document.getElementById("static").remove();
await widget.render({model: {get: (name) => state[name], on() {}, off() {}}, el: document.getElementById("explorer")});
"""


def report_html(
    data: dict[str, Any], static: str, state: dict[str, Any] | None = None, timeline: dict[str, Any] | None = None
) -> str:  # fmt: skip
    """A whole page with the explorer of `data`. Where no script runs it shows `static`, an HTML fragment.

    `state` are further values that the widget's model has, such as the card of a run; `timeline` is the data of what
    happened on a core.
    """
    recorded = base64.b64encode(packed(timeline)).decode() if timeline else ""
    title = escape(f"{data['kernel']} on {data['target']}")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title} · ttexplore</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{widget_style()}body{{margin:0;padding:12px;background:light-dark(#fff,#14171c)}}</style></head><body>"
        f'<main><div id="explorer"></div><div id="static">{static}</div></main>'
        f'<script type="application/json" id="module">{_in_script(widget_module())}</script>'
        f'<script type="text/plain" id="data">{base64.b64encode(packed(data)).decode()}</script>'
        f'<script type="text/plain" id="timeline">{recorded}</script>'
        f'<script type="application/json" id="state">{_in_script(state or {})}</script>'
        f'<script type="module">{_START}</script></body></html>\n'
    )


def _in_script(value: Any) -> str:
    """A value as JSON that cannot end the script element that holds it."""
    return json.dumps(value).replace("<", "\\u003c")
