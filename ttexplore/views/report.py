"""Explorers as one file that works without Jupyter, without Python and without a network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from ttexplore.views.assets import gpu_module, widget_module, widget_style
from ttexplore.views.explorer import packed
from ttexplore.views.markup import escape, plural

# The fragment of the address is the place, `#lowering=matmul&tab=Code&step=D3&pin=27`: the page writes it as the
# reader goes about, and goes where it leads.
_START = """
const text = (name) => document.getElementById(name).textContent;
const address = URL.createObjectURL(new Blob([JSON.parse(text("module"))], {type: "text/javascript"}));
const {default: widget} = await import(address);
// Going over the characters of the text itself takes ten times as long.
function bytes(packed) {
  const text = atob(packed);
  const all = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) all[i] = text.charCodeAt(i);
  return all;
}
const lowerings = JSON.parse(text("lowerings"));
const links = [...document.querySelectorAll("nav a")];
const place = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const holder = document.getElementById("explorer");
let shown, state, heard, close, writing;
// Browsers count how often an address is written, so a reader who goes fast is waited for.
function write() {
  if (!state.here) return;
  const named = lowerings.length > 1 ? {lowering: shown.name, ...state.here} : state.here;
  const kept = Object.entries(named).filter(([, one]) => one);
  history.replaceState(null, "", `#${new URLSearchParams(kept).toString().replaceAll("%2C", ",")}`);
}
const model = {
  get: (name) => state[name],
  set(name, value) {
    state[name] = value;
    clearTimeout(writing);
    writing = setTimeout(write, 200);
  },
  on(name, listener) { if (name === "change:place") heard = listener; },
  off() {},
};
async function show() {
  clearTimeout(writing);
  const {lowering, ...rest} = place();
  const named = lowerings.find(({name}) => name === lowering);
  const wanted = named ?? lowerings[0];
  const to = named ? rest : place();
  if (shown === wanted) {
    state.place = to;
    heard?.();
    return;
  }
  close?.();
  shown = wanted;
  state = {live: false, module: JSON.parse(text("gpu")), ...shown.state, data: bytes(shown.data), place: to};
  if (shown.timeline) state.timeline = bytes(shown.timeline);
  holder.replaceChildren();
  links.forEach((link, i) => link.setAttribute("aria-current", lowerings[i] === shown ? "page" : "false"));
  close = await widget.render({model, el: holder});
}
document.getElementById("static").remove();
document.body.classList.add("live");
addEventListener("hashchange", show);
await show();
"""
_STYLE = """
body{margin:0;background:light-dark(#fff,#14171c);color:light-dark(#1f2328,#dfe3e8)}
body.live main{display:flex;flex-direction:column;height:100vh;min-height:480px}
#explorer{flex:1;min-height:0}
body:not(.live) nav{display:none}
nav{display:flex;flex-wrap:wrap;gap:4px 8px;padding:6px 10px;font:13px/1.45 system-ui,sans-serif}
nav a{color:inherit;text-decoration:none;padding:3px 10px;border:1px solid;border-radius:4px}
nav a:not([aria-current=page]){border-color:light-dark(#d8dee4,#333b45)}
nav a:hover{text-decoration:underline}
nav a[aria-current=page]{border-color:#0072b2;box-shadow:inset 0 -2px #0072b2;font-weight:600}
nav a:focus-visible{outline:2px solid #0072b2}
nav span{color:light-dark(#59636e,#9aa4af);font-weight:400}
"""


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
    lowerings = [_without_folders(one) for one in lowerings]
    names = _names([one.name or one.data["kernel"] for one in lowerings])
    sent = [
        {
            "name": name, "data": base64.b64encode(packed(one.data)).decode(), "state": one.state,
            "timeline": base64.b64encode(packed(one.timeline)).decode() if one.timeline else "",
        }
        for name, one in zip(names, lowerings, strict=True)
    ]  # fmt: skip
    with_gpu = any(one.state.get("gpu") for one in lowerings)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · ttexplore</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(_START)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{widget_style()}{_STYLE}</style></head><body>"
        f'<main>{_index(names, lowerings)}<div id="explorer" class="ttx-filled"></div>'
        f'<div id="static">{"".join(one.static for one in lowerings)}</div></main>'
        f'<script type="application/json" id="module">{_in_script(widget_module())}</script>'
        f'<script type="application/json" id="gpu">{_in_script(gpu_module() if with_gpu else "")}</script>'
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
        f'<a href="#lowering={quote(name, safe="")}">{escape(name)} <span>{escape(one.note)}</span></a>'
        for name, one in zip(names, lowerings, strict=True)
    )
    return f'<nav aria-label="{plural(len(lowerings), "lowering")}">{links}</nav>'


def _names(kernels: Sequence[str]) -> list[str]:
    """A name for each lowering; those of kernels of the same name are numbered."""
    count = Counter(kernels)
    seen: Counter[str] = Counter()
    names: list[str] = []
    for kernel in kernels:
        seen[kernel] += 1
        names.append(kernel if count[kernel] == 1 else f"{kernel} {seen[kernel]}")
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
                return {name: plain(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
            case list() | tuple():
                return [plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
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
