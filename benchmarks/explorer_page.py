"""The explorer for a lowering of 80 steps, one of 18 parts, and 4,000 lines of IR: first paint, switching, hovering.

    python benchmarks/explorer_page.py

Runs the report page in a headless Chromium: it does the same as the widget, without a notebook. Keys are pressed to go
from step to step, and the mouse is moved over the lines; what they take is read from Chromium's own trace.
"""

from __future__ import annotations

import dataclasses
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from ttexplore.plan import Plan
from ttexplore.record import Line, Listing, Origin, Span, StepRecord, Trace
from ttexplore.views.explorer import explorer_data, packed
from ttexplore.views.report import Reported, report_html

STEPS, PARTS, LINES, KERNEL_LINES = 80, 18, 4000, 60
SWITCHES = 200
CHROMIUM = "/usr/bin/chromium"
PINNED_ROW = 8

# The middles of all rows that can be seen.
_ROWS = """rows => rows.map((row) => row.getBoundingClientRect()).map(({left, top, width, height}) =>
  [left + width / 2, top + height / 2]).filter(([_, y]) => y < innerHeight)"""


def main() -> None:
    """Prints the figures."""
    trace = large_trace()
    start = time.process_time()
    data = explorer_data(trace, Plan("large", "wormhole_n150"), None)
    seconds = time.process_time() - start
    print(f"{STEPS} steps of {LINES:,} lines: data in {seconds:.2f} s, {len(packed(data)) / 1000:,.0f} kB packed")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        page_file.write_text(report_html("large", [Reported(data, "")]), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(page_file.as_uri())
        page.wait_for_selector(".ttx-explorer .diff .l")
        paint_ms = page.evaluate("() => performance.getEntriesByName('ttexplore first paint')[0].duration")
        print("milliseconds; in brackets those of the processor alone, which tell more on a busy machine")
        print(f"first paint, after the widget was asked to render: {paint_ms:.0f}; wanted: less than 200")
        page.locator(".steplist [aria-selected=true]").click()
        _report("step switch", _traced(page, _switch), "keydown", 10)
        _report("hover", _traced(page, _hover), "mouseover", 5)
        page.locator(".source .l").nth(PINNED_ROW).locator("code").click()
        page.locator(".steplist [aria-selected=true]").focus()
        _report("step switch with a pinned line", _traced(page, _switch), "keydown")
        browser.close()


def _switch(page: Page) -> None:
    """Goes through all steps and back."""
    for k in range(SWITCHES):
        page.keyboard.press("k" if k // (STEPS + PARTS - 1) % 2 else "j")


def _hover(page: Page) -> None:
    """Hovers over one line after the other, of the changes and of the kernel."""
    for x, y in page.locator(".ttx-explorer :is(.diff, .source) .l").evaluate_all(_ROWS):
        page.mouse.move(x, y)


def _traced(page: Page, act: Callable[[Page], None]) -> list[dict[str, Any]]:
    """What the thread that runs the page's scripts did meanwhile, in order."""
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    act(page)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    [thread] = {(event["pid"], event["tid"]) for event in events if event["name"] == "EventDispatch"}
    own = [event for event in events if (event["pid"], event["tid"]) == thread and "dur" in event]
    return sorted(own, key=lambda event: event["ts"])


def _report(name: str, events: list[dict[str, Any]], kind: str, wanted_ms: int | None = None) -> None:
    """Prints how long the scripts of each event of a kind took, and how long it was until a frame was painted."""
    types = [event["args"]["data"]["type"] if event["name"] == "EventDispatch" else "" for event in events]
    scripts = [at for at, one in enumerate(types) if one == kind]
    frames: list[float] = []
    for at in scripts:
        # The last thing that this thread does for a frame.
        layers = next((event for event in events[at:] if event["name"] == "Layerize"), None)
        if layers:
            frames.append(layers["ts"] + layers["dur"] - events[at]["ts"])
    took, worked = ([events[at].get(part, 0) for at in scripts] for part in ("dur", "tdur"))
    (p50, p95), (cpu50, cpu95) = _percentiles(took), _percentiles(worked)
    wanted = f"; wanted: p95 less than {wanted_ms}" if wanted_ms else ""
    print(f"{name}, scripts: p50 {p50:.1f} ({cpu50:.1f}), p95 {p95:.1f} ({cpu95:.1f}){wanted}")
    p50, p95 = _percentiles(frames)
    print(f"{name}, until it is painted: p50 {p50:.1f}, p95 {p95:.1f}")


def _percentiles(microseconds: list[float]) -> tuple[float, float]:
    """The median and the 95th percentile in milliseconds."""
    values = sorted(microseconds)
    return values[len(values) // 2] / 1000, values[len(values) * 95 // 100] / 1000


def large_trace() -> Trace:
    """A trace with as many steps, parts and lines as asked for; each of them changes some two dozen lines."""
    chance = random.Random(0)
    spans = [Span("large.py", number + 1, 1, number + 1, 40) for number in range(KERNEL_LINES)]

    def line(number: int) -> Line:
        indent, buffer = "    " * chance.randint(1, 6), f"A_{chance.randint(0, 99)}"
        text = f"{indent}T.copy({buffer}[{number} : +32, k * 32 : +32], B_shared_{number})"
        return Line(text, (Origin(chance.choice(spans), chance.choice(("exact", "derived", "inferred"))),), number)

    lines = [line(number) for number in range(LINES)]
    steps: list[StepRecord] = []
    for index in range(PARTS + STEPS - 1):
        before = Listing("tir", tuple(lines))
        for _ in range(24):
            at = chance.randrange(len(lines))
            match chance.randrange(3):
                case 0:
                    lines[at] = line(at)
                case 1:
                    lines.insert(at, line(at))
                case _:
                    del lines[at]
        steps.append(
            StepRecord(
                index, f"pass_{index}", f"P{index}", "stage", "Does something.", "", True, False, 0.001, before,
                Listing("tir", tuple(lines)), {}, {}, {},
            )
        )  # fmt: skip
    parts = tuple(steps[:PARTS])
    whole = dataclasses.replace(parts[0], name="whole", letter="W", after=parts[-1].after, parts=parts)
    source = Listing("python", tuple(Line(f"statement_{n}", (Origin(spans[n], "exact"),)) for n in range(KERNEL_LINES)))
    return Trace("large", "wormhole_n150", source, (whole, *steps[PARTS:]), {}, {}, {})


if __name__ == "__main__":
    main()
