"""The explorer for a lowering of 80 steps and 4,000 lines of IR: first paint, the time to switch steps, that to hover.

    python benchmarks/explorer_page.py

Runs the report page in a headless Chromium: it does the same as the widget, without a notebook.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from ttexplore.plan import Plan
from ttexplore.record import Line, Listing, Origin, Span, StepRecord, Trace
from ttexplore.views.explorer import explorer_data, packed
from ttexplore.views.report import Reported, report_html

STEPS, LINES, KERNEL_LINES = 80, 4000, 60
SWITCHES = 200
CHROMIUM = "/usr/bin/chromium"

# The script of one switch, what the browser needs to lay out the result, and all until after the next frame.
_MEASURE = """async (switches) => {
  const root = document.querySelector(".ttx-explorer");
  const list = root.querySelector(".steplist");
  const script = [], layout = [], frame = [];
  for (let k = 0; k < switches; k++) {
    const key = Math.floor(k / 79) % 2 ? "k" : "j";
    const start = performance.now();
    list.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    const ran = performance.now();
    root.offsetHeight;
    script.push(ran - start);
    layout.push(performance.now() - ran);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    frame.push(performance.now() - start);
  }
  return {script, layout, frame};
}"""

# The script of hovering over one line after the other, of the changes and of the kernel.
_HOVER = """async () => {
  const hover = [];
  for (const row of document.querySelectorAll(".ttx-explorer :is(.diff, .source) .l")) {
    const start = performance.now();
    row.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
    hover.push(performance.now() - start);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
  return hover;
}"""


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
        print(f" paint: {paint_ms:.0f} ms after the widget was asked to render")
        figures = page.evaluate(_MEASURE, SWITCHES)
        figures["hover"] = page.evaluate(_HOVER)
        browser.close()
    for name in ("script", "layout", "frame", "hover"):
        values = sorted(figures[name])
        print(f"{name:>6}: p50 {values[len(values) // 2]:.1f} ms, p95 {values[len(values) * 95 // 100]:.1f} ms")


def large_trace() -> Trace:
    """A trace with as many steps and lines as asked for; each step changes some two dozen lines."""
    chance = random.Random(0)
    spans = [Span("large.py", number + 1, 1, number + 1, 40) for number in range(KERNEL_LINES)]

    def line(number: int) -> Line:
        indent, buffer = "    " * chance.randint(1, 6), f"A_{chance.randint(0, 99)}"
        text = f"{indent}T.copy({buffer}[{number} : +32, k * 32 : +32], B_shared_{number})"
        return Line(text, (Origin(chance.choice(spans), chance.choice(("exact", "derived", "inferred"))),), number)

    lines = [line(number) for number in range(LINES)]
    steps: list[StepRecord] = []
    for index in range(STEPS):
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
    source = Listing("python", tuple(Line(f"statement_{n}", (Origin(spans[n], "exact"),)) for n in range(KERNEL_LINES)))
    return Trace("large", "wormhole_n150", source, tuple(steps), {}, {}, {})


if __name__ == "__main__":
    main()
