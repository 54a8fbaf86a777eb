"""The page's own line diff against Python's, on the listings, plans and files of real lowerings."""

from __future__ import annotations

import difflib
import itertools
import json
import subprocess
from typing import Any

import pytest

from ttexplore import explore
from ttexplore.record import Line, Trace
from ttexplore.views.explorer import ROW_KINDS
from ttexplore.views.steps.plan_lines import flat_plan
from ttexplore.views.steps.rows import align
from widgets.build import FOLDER, NODE

Pair = tuple[list[str], list[str]]

_ROWS = """
import { readFileSync } from "node:fs";
import { aligned } from "%s/model/align.js";
const keys = { lines: (line) => line.trim(), plan: (line) => line.split(": ")[0] };
const pairs = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(pairs.map(([kind, before, after]) => aligned(before, after, keys[kind]))));
"""
_KEYS = {"lines": str.strip, "plan": lambda line: line.partition(": ")[0]}


def rows_of(pairs: list[tuple[str, list[str], list[str]]]) -> list[list[Any]]:
    command = [*NODE, "--input-type=module", "-e", _ROWS % FOLDER.as_posix()]
    ran = subprocess.run(command, input=json.dumps(pairs), capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def listings(trace: Trace) -> dict[tuple[str, str], tuple[str, list[str]]]:
    found: dict[tuple[str, str], tuple[str, list[str]]] = {}
    for step in trace.steps:
        found[step.letter, "program"] = ("lines", [line.text for line in step.after.lines])
        found[step.letter, "plan"] = ("plan", [f"{path}: {value}" for path, value in flat_plan(step.plan_after)])
    for name, file in trace.files.items():
        found["file", name] = ("lines", [line.text for line in file.lines])
    return found


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, list[str], list[str]]]:
    gemm = explore("notebooks/kernels/gemm.py::matmul", M=256, N=256, K=128)
    attention = explore("notebooks/gallery/attention.py::causal_attention")
    made: list[tuple[str, list[str], list[str]]] = []
    for one, other in ((gemm, gemm.fork(policy="strided", cores=(2, 2))), (attention, attention.fork(eltwise="fpu"))):
        now, what_if = listings(one.trace), listings(other.trace)
        made += [(kind, lines, what_if[key][1]) for key, (kind, lines) in now.items()]
        for part, kind in (("program", "lines"), ("plan", "plan")):
            texts = [now[step.letter, part][1] for step in one.trace.steps]
            made += [(kind, first, second) for first, second in itertools.combinations(texts[::3], 2)]
    return made


def test_rows_are_both_texts_and_align_as_much_as_python_does(pairs: list[tuple[str, list[str], list[str]]]) -> None:
    assert len(pairs) > 80
    for (kind, before, after), rows in zip(pairs, rows_of(pairs), strict=True):
        key = _KEYS[kind]
        sides: tuple[list[int], list[int]] = ([], [])
        paired = 0
        for name, i, j, *more in ((ROW_KINDS[row[0]], *row[1:]) for row in rows):
            length = more[0] if name == "equal" else 1
            sides[0].extend(range(i, i + length) if i >= 0 else ())
            sides[1].extend(range(j, j + length) if j >= 0 else ())
            match name:
                case "equal":
                    assert before[i : i + length] == after[j : j + length]
                    paired += length
                case "indented":
                    assert before[i].strip() == after[j].strip()
                    paired += 1
                case "changed":
                    assert (sum(more[0]), sum(more[1])) == (len(before[i]), len(after[j]))
                    assert same_pieces(before[i], more[0]) == same_pieces(after[j], more[1]) != ""
                    paired += key(before[i]) == key(after[j])
                case _:
                    assert name in ("added", "removed")
        assert sides == (list(range(len(before))), list(range(len(after))))
        matcher = difflib.SequenceMatcher(None, list(map(key, before)), list(map(key, after)), autojunk=False)
        assert paired >= 0.98 * sum(block.size for block in matcher.get_matching_blocks())


def same_pieces(line: str, lengths: list[int]) -> str:
    """What both sides of a changed line have, without its indentation."""
    ends = list(itertools.accumulate(lengths, initial=0))
    return "".join(line[a:b] for a, b in list(itertools.pairwise(ends))[::2]).lstrip()


def test_few_lines_change_as_python_says(pairs: list[tuple[str, list[str], list[str]]]) -> None:
    """Two lanes of one step differ in few lines; there both say the same of each line."""
    near = [one for one in pairs if 0 < sum(a != b for a, b in zip(one[1], one[2], strict=False)) < 5]
    near = [one for one in near if len(one[1]) == len(one[2])]
    assert len(near) > 10
    for (kind, before, after), rows in zip(near, rows_of(near), strict=True):
        ours = [(ROW_KINDS[row[0]], row[1], row[2]) for row in rows if row[0]]
        keys = [list(map(_KEYS[kind], lines)) for lines in (before, after)]
        python = align([Line(one) for one in before], [Line(one) for one in after], keys[0], keys[1])
        assert ours == [
            (row.kind, (row.before_number or 0) - 1, (row.after_number or 0) - 1)
            for row in python
            if row.kind != "equal"
        ]


def test_large_and_repeated_texts_end_soon() -> None:
    """What is too large to be searched is removed and added; where little differs, nothing has to be searched."""
    repeated = ["for t in range(4):", "    tt.pack_tile(t)"] * 2000
    longer = [*repeated[:1000], "    tt.release()", *repeated[1000:]]
    other = [f"line {i} of {i * i}" for i in range(4000)]
    changed = [line.replace("of", "in") for line in other]
    inserted, similar, unlike = rows_of(
        [("lines", repeated, longer), ("lines", other, changed), ("lines", repeated, other)]
    )
    assert [(ROW_KINDS[row[0]], *row[1:]) for row in inserted] == [
        ("equal", 0, 0, 1000), ("added", -1, 1000), ("equal", 1000, 1001, 3000)
    ]  # fmt: skip
    assert len(similar) == len(unlike) == 8000
