"""Pictures of the notebooks: numbers as bars, and what the processors of a core do over time."""

from itertools import groupby

from ttexplore.views.figures.svg import drawing, rectangle, text, tooltip
from ttexplore.views.markup import content_id
from ttexplore.views.theme import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION

_LEFT, _ROW, _WIDTH = 190, 24, 690


class Bars:
    """A bar for each number, as long as the number is large. A value is a number, or a number and a remark."""

    def __init__(self, values, unit, digits=0):
        self.title = unit
        self.rows = []
        for name, value in values.items():
            number, remark = value if isinstance(value, tuple) else (value, "")
            self.rows.append((name, number, f"{number:,.{digits}f}", remark))

    def _repr_svg_(self):
        largest = max(number for _, number, _, _ in self.rows)
        content = [text(2, 16, self.title, "b")]
        told = [f"{shown}, {remark}" if remark else shown for _, _, shown, remark in self.rows]
        longest = _WIDTH - _LEFT - 20 - 7 * max(map(len, told))
        for place, (name, number, _, _) in enumerate(self.rows):
            y = 44 + _ROW * place
            width = max(1, longest * number / largest)
            content.append(text(_LEFT - 8, y, name, anchor="end"))
            content.append(rectangle(_LEFT, y - 13, width, 17, fill=BLUE))
            content.append(text(_LEFT + width + 8, y, told[place]))
        return _drawn(self.title, repr(self), 34 + _ROW * len(self.rows), content)

    def __repr__(self):
        rows = [(name, f"{shown}, {remark}" if remark else shown) for name, _, shown, remark in self.rows]
        return "\n".join(f"{name}: {shown}" for name, shown in [("", self.title), *rows]).removeprefix(": ")


_KINDS = {
    "works": BLUE,
    "buffer": ORANGE,
    "registers": SKY,
    "read": GREEN,
    "write": VERMILLION,
    "semaphore": PURPLE,
}
_WORDS = {
    "works": "works",
    "buffer": "waits for a circular buffer",
    "registers": "waits for registers",
    "read": "waits for its reads",
    "write": "waits for its writes",
    "semaphore": "waits for another core",
}
_COLUMNS = 490


class OverTime:
    """What processors of core (0, 0) do in the time `first_us` to `last_us` of each of several programs, as the clock
    predicts it: microseconds from the start of the kernels."""

    def __init__(self, explorations, last_us, first_us=0.0, processors=("reader", "unpack", "math", "pack", "writer")):
        self.first, self.last, self.processors = first_us, last_us, processors
        self.lanes = {}
        for label, exploration in explorations.items():
            found = exploration.estimate()
            trace = found.trace((0, 0))
            assert not any(start * found.us / found.cycles < last_us for start, _ in trace.gaps), "parts are left out"
            for name in processors:
                self.lanes[label, name] = self._columns(trace.processors[name], found.us / found.cycles)

    def _columns(self, parts, us):
        """For each column of the picture, what the processor does most of that time."""
        step = (self.last - self.first) / _COLUMNS
        spent = [{} for _ in range(_COLUMNS)]
        for part in parts:
            working = part.start + part.busy
            for start, end, kind in ((part.start, working, "works"), (working, part.end, part.reason)):
                left, right = (start * us - self.first) / step, (end * us - self.first) / step
                for column in range(max(0, int(left)), min(_COLUMNS, int(right) + 1)):
                    share = min(right, column + 1) - max(left, column)
                    if share > 0:
                        spent[column][kind] = spent[column].get(kind, 0) + share
        return [max(column, key=column.get) if column else None for column in spent]

    def _repr_svg_(self):
        left, y = _WIDTH - _COLUMNS - 10, 16
        content = [text(2, y, f"What core (0, 0) does from {self.first:g} to {self.last:g} µs", "b")]
        label = None
        for (program, processor), columns in self.lanes.items():
            y += 20
            if program != label:
                y += 6
                content.append(text(2, y, program, "b"))
                label = program
            content.append(text(left - 8, y, processor, anchor="end"))
            x = left
            for kind, run in groupby(columns):
                width = len(list(run))
                if kind is not None:
                    bar = rectangle(x, y - 12, width, 15, fill=_KINDS[kind])
                    content.append(f"<g>{tooltip(f'{processor} {_WORDS[kind]}')}{bar}</g>")
                x += width
        y += 20
        for part in range(6):
            at = self.first + (self.last - self.first) * part / 5
            content.append(text(left + _COLUMNS * part / 5, y, f"{at:g}", "s", "n"))
        content.append(text(left - 26, y, "µs", "s", anchor="end"))
        y, x = y + 22, 2.0
        used = {kind for columns in self.lanes.values() for kind in columns}
        for kind in (one for one in _KINDS if one in used):
            content.append(rectangle(x, y - 10, 11, 11, fill=_KINDS[kind], radius=2))
            content.append(text(x + 16, y, _WORDS[kind], "s"))
            x += 30 + 6.2 * len(_WORDS[kind])
        return _drawn("Over time", repr(self), y + 8, content)

    def __repr__(self):
        lines = []
        for (program, processor), columns in self.lanes.items():
            shares = {kind: columns.count(kind) / _COLUMNS for kind in _KINDS if kind in columns}
            lines.append(f"{program}, {processor}: " + ", ".join(f"{_WORDS[k]} {s:.0%}" for k, s in shares.items()))
        return f"What core (0, 0) does from {self.first:g} to {self.last:g} µs\n" + "\n".join(lines)


class Example:
    """Small matrices beside each other, with an arrow before the last one: what a kernel is to make of the others.
    Equal numbers have the same colour."""

    def __init__(self, **matrices):
        self.matrices = {name: [list(row) for row in rows] for name, rows in matrices.items()}

    def _repr_svg_(self):
        cell, content, x = 30, [], 2
        tallest = max(map(len, self.matrices.values()))
        numbers = sorted({number for rows in self.matrices.values() for row in rows for number in row} - {0})
        for number_of_matrix, (name, rows) in enumerate(self.matrices.items()):
            if number_of_matrix:
                content.append(
                    text(x + 16, 40 + cell * tallest / 2, "→" if number_of_matrix == len(self.matrices) - 1 else "·")
                )
                x += 44
            content.append(text(x, 16, f"{name}: {len(rows)} x {len(rows[0])}", "b"))
            for i, row in enumerate(rows):
                for j, number in enumerate(row):
                    hue = round(300 * numbers.index(number) / len(numbers)) if number else None
                    look = ("box",) if hue is None else ()
                    colour = "" if hue is None else f"hsl({hue},70%,50%,0.4)"
                    content.append(
                        rectangle(x + cell * j, 26 + cell * i, cell - 2, cell - 2, *look, radius=3, fill=colour)
                    )
                    content.append(text(x + cell * (j + 0.5) - 1, 45 + cell * i, str(number), anchor="middle"))
            x += cell * len(rows[0])
        return _drawn("An example", repr(self), 34 + cell * tallest, content)

    def __repr__(self):
        return "\n".join(f"{name} {rows}" for name, rows in self.matrices.items())


def _drawn(title, told, height, content):
    return drawing(content_id("ttx-picture", title, *content), title, told, _WIDTH, round(height), "".join(content))
