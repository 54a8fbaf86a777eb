"""The explorer's module in a page of its own, with a stand-in for the model that Jupyter gives it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Locator, Page, Route

from ttexplore import Exploration
from ttexplore.views.assets import late_module, widget_module, widget_style
from ttexplore.views.explorer import packed
from ttexplore.views.steps.step_changes import changed_files, step_changes

# The loopback's name makes the page a secure one, which the clipboard wants; no server is behind it.
ADDRESS = "http://localhost/"
WIDE, NARROW = 1400, 620
BACKENDS = [
    {"name": "reference", "missing": "", "arithmetic": False, "limit": None},
    {"name": "emulator", "missing": "", "arithmetic": True, "limit": 60.0},
    {"name": "ttnn", "missing": "needs the SDK: ttexplore setup device", "arithmetic": False, "limit": 300.0},
]
TARGETS = ["wormhole_n150", "blackhole_p150"]
INPUTS = [["random", "normally distributed", True], ["ones", "1 everywhere", False]]

# As on a slow machine: what does not wait for it fails each time.
_UNPACKING_MS = 30

_WHAT_IF = json.dumps(late_module("whatif")).replace("<", "\\u003c")
_MODEL = """
// Not those of a test that sets the clock.
const {setTimeout: start, requestAnimationFrame: nextFrame} = window;
const {json} = Response.prototype;
const after = (way, ...time) => new Promise((passed) => way.call(window, passed, ...time));
let unpacked = Promise.resolve();
Response.prototype.json = function () {
  const value = after(start, UNPACKING_MS).then(() => json.call(this));
  unpacked = Promise.allSettled([unpacked, value]);
  return value;
};
// Waits until all that has come is unpacked and drawn.
window.drawn = async () => {
  await after(start, 0);
  await unpacked;
  await after(nextFrame);
  await after(nextFrame);
};
window.sent = [];
window.models = [];
window.cleanups = [];
class Model {
  constructor(state) { this.state = state; this.heard = new Map(); }
  get(name) { return this.state[name]; }
  on(name, listener) { this.heard.set(name, [...(this.heard.get(name) || []), listener]); }
  off(name, listener) { this.heard.set(name, (this.heard.get(name) || []).filter((one) => one !== listener)); }
  emit(name, ...values) { for (const one of this.heard.get(name) || []) one(...values); }
  count() { return [...this.heard.values()].flat().length; }
  send(message) {
    // Python has it at hand; tests ask what else is sent.
    if (message.name !== "whatif") return window.sent.push(message);
    const message_back = {id: message.id, state: "done", module: WHATIF};
    const answer = after(start, UNPACKING_MS).then(() => this.emit("msg:custom", message_back));
    unpacked = Promise.allSettled([unpacked, answer, answer.then(() => after(start, UNPACKING_MS))]);
  }
}
window.mount = async (packed, state, displays) => {
  const {default: widget} = await import("/explorer.js");
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const launches = (state.launches ?? []).map((one) => ({...one, data: bytes(one.data)}));
  const model = new Model({data: bytes(packed), ...state, launches});
  window.models.push(model);
  for (let k = 0; k < displays; k++) {
    const el = document.body.firstElementChild.appendChild(document.createElement("div"));
    window.cleanups.push(await widget.render({model, el}));
  }
  await drawn();
};
"""

# Lists and bars learn in the first frame how large they are, and draw themselves then.
_DRAWN = "() => window.drawn?.() ?? new Promise((one) => requestAnimationFrame(() => requestAnimationFrame(one)))"

_HEAD = "(header) => [...header.children].filter((one) => !one.querySelector('.badge')).map((one) => one.innerText)"


def keep_inside(context: BrowserContext, asked_outside: list[str]) -> None:
    """Lets requests to this machine through; others fail and are noted in `asked_outside`."""

    def judge(route: Route) -> None:
        address = urlsplit(route.request.url)
        if address.scheme in ("data", "blob", "file", "about") or address.hostname in ("127.0.0.1", "localhost"):
            route.fallback()
        else:
            asked_outside.append(route.request.url)
            route.abort()

    context.route("**/*", judge)


def serve(context: BrowserContext) -> None:
    """Answers for ADDRESS with a page that holds the module, without a server."""
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>explorer</title>'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{widget_style()}body{{margin:0;background:light-dark(#fff,#14171c)}}</style></head>"
        f"<body><main></main><script>const UNPACKING_MS = {_UNPACKING_MS}, WHATIF = {_WHAT_IF};{_MODEL}</script>"
        "</body></html>"
    )
    files = {"/": (page, "text/html; charset=utf-8"), "/explorer.js": (widget_module(), "text/javascript")}

    def answer(route: Route) -> None:
        body, kind = files.get(urlsplit(route.request.url).path, ("", "text/plain"))
        route.fulfill(status=200 if body else 204, body=body, content_type=kind)

    context.route(f"{ADDRESS}**", answer)


class ExplorerPage:
    """A page with one or more displays of an exploration. `number` says which display is meant."""

    def __init__(self, page: Page, data: Mapping[str, Any], number: int = 0) -> None:
        self.page = page
        self.data = data
        self.number = number

    @property
    def root(self) -> Locator:
        return self.page.locator(".ttx-explorer").nth(self.number)

    def find(self, selector: str) -> Locator:
        return self.root.locator(selector)

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name)

    def drawn(self) -> None:
        """Waits until all that has come into the page is drawn."""
        self.page.evaluate(_DRAWN)

    def tab(self, name: str) -> None:
        self.find("[aria-label=views]").get_by_role("tab", name=name, exact=True).click()
        if name == "What if":
            self.find(".whatifview").or_(self.find(".runview .result")).wait_for()
        self.drawn()

    def file(self, name: str) -> Locator:
        """Opens the tab of an emitted file in Code; gives its pane."""
        self.find(".files").get_by_role("tab", name=name).click()
        self.drawn()
        return self.find(f"section[aria-label='{name}']")

    def part(self, name: str) -> None:
        """Opens a part of Buffers."""
        self.find("[aria-label='parts of Buffers']").get_by_role("tab", name=name).click()

    def option(self, name: str) -> Locator:
        """A control of the menu above the changes, which is opened for it."""
        panel = self.find(".diffpane .menu")
        if not panel.is_visible():
            self.root.get_by_role("button", name=re.compile("^show")).click()
            panel.wait_for()
        return panel.get_by_role("button", name=name).or_(panel.get_by_label(name)).first

    def press(self, *keys: str) -> None:
        """Presses keys with the focus on the explorer itself."""
        self.root.focus()
        self.type(*keys)

    def type(self, *keys: str) -> None:
        """Presses keys wherever the focus is."""
        for key in keys:
            self.page.keyboard.press(key)

    def head(self) -> list[str]:
        """The texts of the header, but for the badge: the estimate comes when it is ready, and changes nothing else."""
        return self.find("header").evaluate(_HEAD)

    def new_head(self, before: list[str]) -> list[str]:
        """Waits until the header says something else than `before`, the badge aside; gives that."""
        changed = f"([root, before]) => `${{({_HEAD})(root.querySelector('header'))}}` !== `${{before}}`"
        self.page.wait_for_function(changed, arg=[self.root.element_handle(), before])
        return self.head()

    # The selected step

    def step(self) -> int:
        return int(self.find(".steplist [aria-selected=true]").get_attribute("data-step") or -1)

    def letter(self) -> str:
        return self.data["steps"][self.step()]["letter"]

    def position(self, letter: str) -> int:
        return next(i for i, step in enumerate(self.data["steps"]) if step["letter"] == letter)

    def go(self, letter: str) -> None:
        self.find(f".steplist [data-step='{self.position(letter)}']").click()

    def spoken(self, text: str) -> None:
        """Waits until the live region says something that has `text` in it."""
        self.find(".live").filter(has_text=text).wait_for(state="attached")

    # The data, and what is lit

    def listing(self, number: int) -> list[tuple[str, dict[int, int]]]:
        """Text and origins (place: kind) of each line."""
        flat = self.data["listings"][number]
        lines: list[tuple[str, dict[int, int]]] = []
        for k in range(0, len(flat), 4):
            origins = self.data["origins"][flat[k + 1]]
            lines.append((self.data["texts"][flat[k]], dict(zip(origins[::2], origins[1::2], strict=True))))
        return lines

    def places(self, kernel_line: int) -> set[int]:
        return {number for number, (_, line) in enumerate(self.data["places"]) if line == kernel_line}

    def linked(self, listing: int, kernel_line: int) -> dict[int, int]:
        """Positions of the lines that come from a kernel line, with the kind of the link."""
        wanted = self.places(kernel_line)
        kinds = (
            (i, [origins[p] for p in wanted & origins.keys()]) for i, (_, origins) in enumerate(self.listing(listing))
        )
        return {i: min(found) for i, found in kinds if found}

    def lit(self, rows: str) -> dict[int, int]:
        """Positions of the lit rows of a list that exist now, with the kind of the link."""
        return {
            int(i): int(kind)
            for i, kind in self.find(f"{rows} .l").evaluate_all(
                "rows => rows.flatMap((row) => [0, 1, 2].filter((kind) => row.classList.contains(`lit${kind}`))"
                ".map((kind) => [row.dataset.i, kind]))"
            )
        }

    def source_row(self, kernel_line: int) -> Locator:
        return self.find(f".source .l[data-i='{self.data['source']['lines'].index(kernel_line)}']")

    # Python's side

    def sent(self) -> list[dict[str, Any]]:
        return self.page.evaluate("sent")

    def answer(self, message: Mapping[str, Any], data: Mapping[str, Any] | None = None, question: int = -1) -> None:
        """Answers a question as Python would, and waits until the page shows that; `data` goes with it as bytes."""
        self.page.evaluate(
            """async ([question, message, packed]) => {
                const raw = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
                const bytes = packed ? [new DataView(raw.buffer)] : [];
                models[0].emit("msg:custom", {id: sent.at(question).id, ...message}, bytes);
                await drawn();
            }""",
            [question, message, base64.b64encode(packed(dict(data))).decode() if data else ""],
        )

    def answer_what_if(self, now: Exploration, other: Exploration, variant: str = "1", question: int = -1) -> None:
        """Answers with another lowering, as Python does."""
        steps = step_changes(now.trace.steps, other.trace.steps).with_parts
        message = {
            "state": "done", "variant": variant, "steps": [[one.glyph, one.words] for one in steps],
            "files": list(changed_files(now.trace, other.trace)),
        }  # fmt: skip
        self.answer(message, other.data, question)

    def set(self, name: str, value: Any) -> None:
        self.page.evaluate(
            "([name, value]) => { models[0].state[name] = value; models[0].emit(`change:${name}`); return drawn(); }",
            [name, value],
        )


def mount(
    page: Page, data: Mapping[str, Any], *, displays: int = 1, backends: Sequence[Mapping[str, Any]] = tuple(BACKENDS),
    **state: Any,
) -> ExplorerPage:  # fmt: skip
    """Shows an exploration's data in a page that has been opened at ADDRESS, which asks for no estimate and no GPU lane
    by itself."""
    state.setdefault("missing", {"estimate": "no Python", "gpu": "no Python"})
    page.evaluate(
        "([packed, state, displays]) => mount(packed, JSON.parse(state), displays)",
        [
            base64.b64encode(packed(dict(data))).decode(),
            json.dumps({"backends": list(backends), "targets": TARGETS, "inputs": INPUTS, "stale": "", **state}),
            displays,
        ],
    )
    return ExplorerPage(page, data)
