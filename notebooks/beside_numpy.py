"""Kernels of the gallery beside their formulas in NumPy, and what they move between DRAM and the cores."""

import html
from collections import Counter

import numpy as np

import ttexplore as ttx


class Compared:
    """A kernel of the gallery: its exploration, one run on the emulator, the largest error beside NumPy as a share of
    the largest element of an output, and what the run moved: tiles, parts of tiles, and single elements."""

    def __init__(self, kernel, reference, label="", **arguments):
        self.name = label or kernel.__name__
        self.exploration = ttx.explore(kernel, **arguments)
        inputs = self.exploration.inputs()
        self.run = self.exploration.run(inputs)
        assert self.run.passed, self.run.message
        wanted = reference(*(one.astype(np.float64) for one in inputs))
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        found = (one.astype(np.float64) for one in self.run.outputs)
        self.error = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(found, wanted, strict=True))
        assert self.error < 0.01, self.error
        self.moved = transfers(self.exploration, self.run)

    def __repr__(self):
        moved = ", ".join(f"{count} {what}" for what, count in sorted(self.moved.items(), reverse=True))
        return f"{self.name}: within {self.error:.1%} of NumPy; moved {moved}"


def transfers(exploration, run):
    """How many transfers between DRAM and the cores the emulator has counted, by what they move."""
    events = run.execution.events
    assert events.total == len(events.records)
    texts = {kernel: exploration.code[kernel].text.split("\n") for kernel in events.kernels}
    found = Counter()
    for event in events.records:
        kernel, operation = events.kernels[event["kernel"]], events.operations[event["operation"]]
        if operation not in ("read", "write"):
            continue
        lines, line = texts[kernel], int(event["line"])
        # Functions before the kernel itself move one element each.
        in_function = line < lines.index("void kernel_main() {")
        is_tile = "_page_bytes" in "".join(lines[line - 1 : line + 1])
        found["elements" if in_function else "tiles" if is_tile else "parts of tiles"] += 1
    return found


_COLORS = {"tiles": "#2a78b8", "parts of tiles": "#e0a030", "elements": "#c8403c"}


class Bars:
    """What kernels move, as one bar for each: as long as the number of its transfers."""

    def __init__(self, *compared):
        self.rows = [(one.name, one.moved) for one in compared]

    def _repr_svg_(self):
        longest = max(moved.total() for _, moved in self.rows)
        height = 28 * len(self.rows) + 34
        title = "; ".join(f"{name}: {dict(sorted(moved.items()))}" for name, moved in self.rows)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="680" height="{height}" role="img" '
            f'aria-label="{html.escape(title)}" font-family="sans-serif" font-size="13">'
            f'<rect width="680" height="{height}" fill="#ffffff"/>'
        ]
        for row, (name, moved) in enumerate(self.rows):
            y, x = 28 * row + 6, 190.0
            parts.append(f'<text x="182" y="{y + 15}" text-anchor="end" fill="#222222">{html.escape(name)}</text>')
            for what, color in _COLORS.items():
                width = 420 * moved[what] / longest
                parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="20" fill="{color}"/>')
                x += width
            parts.append(f'<text x="{x + 6:.1f}" y="{y + 15}" fill="#222222">{moved.total()}</text>')
        x = 190
        for what, color in _COLORS.items():
            parts.append(f'<rect x="{x}" y="{height - 20}" width="12" height="12" fill="{color}"/>')
            parts.append(f'<text x="{x + 17}" y="{height - 9}" fill="#222222">{what}</text>')
            x += 130
        return "".join([*parts, "</svg>"])

    def __repr__(self):
        return "\n".join(f"{name}: {dict(sorted(moved.items()))}" for name, moved in self.rows)
