"""Kernels that a rule accepts, with one change each: none is written as the unchanged one is, unless the change means
nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.porting.test_port import CASES, draft_of, read, readable
from tests.porting.test_twists import WRITTEN
from ttexplore.errors import UsageError

TWISTS = (
    "t minmax", "t loop", "t gemm biasN", "t in place", "t variants", "c warp reduce", "c grid stride", "float4",
    "shared memory", "c bias2d rows", "start of a sum", "reference",
)  # fmt: skip
SOURCES = {name: source for name, (source, _, _) in CASES.items()} | {name: WRITTEN[name][0] for name in TWISTS}
SWAPPED = {
    " + ": (" - ", " * "), " - ": (" + ",), " * ": (" + ", " / "), " / ": (" * ",), " < ": (" <= ", " > "),
    " > ": (" < ",), " >= ": (" > ", " <= "), " += ": (" -= ", " = "), " -= ": (" += ",), "*=": ("+=",),
    ">>=": ("<<=",), "++": ("--",), " == ": (" != ",), " && ": (" || ",), " & ": (" | ",), " % ": (" // ",),
    "maximum": ("minimum",),
    "fmaxf": ("fminf",), "tl.max": ("tl.sum",), "tl.sum": ("tl.max",), "exp": ("exp2", "log"), "row_max": ("row_sum",),
    "row_sum": ("row_max",), "program_id(0)": ("program_id(1)", "(program_id(0) // 2)", "(program_id(0) % 2)"),
    "program_id(1)": ("program_id(0)", "(program_id(1) // 4)"), "blockIdx.x": ("blockIdx.y", "(blockIdx.x / 2)"),
    "blockIdx.y": ("blockIdx.x",), "threadIdx.x": ("threadIdx.y", "(threadIdx.x + 1)"), "threadIdx.y": ("threadIdx.x",),
    "range(0, ": ("range(1, ", "range(B, "), "[:, None]": ("[None, :]",), "[None, :]": ("[:, None]",),
    "mma_ABt": ("mma_AB",), "sub_row": ("add_row",), "div_row": ("mul_row",),
}  # fmt: skip


def mutations(source: str) -> Iterator[str]:
    """The source with one change: a constant, an operator, a function, an index, or a line that is left out."""
    begin = max(source.find("def "), source.find("{"))
    for word, others in SWAPPED.items():
        for found in re.finditer(re.escape(word), source[begin:]):
            at, end = begin + found.start(), begin + found.end()
            if word[-1].isalnum() and source[end : end + 1].isalnum():
                continue
            for other in others:
                other = other.replace("(program_id", "(tl.program_id") if source[at - 3 : at] == "tl." else other
                cut = at - 3 if other.startswith("(tl.") else at
                yield source[:cut] + other + source[end:]
    for found in re.finditer(r"(?<![\w.])\d+(\.\d+)?(?=f?\b)", source[begin:]):
        at, end = begin + found.start(), begin + found.end()
        number = found[0]
        yield f"{source[:at]}{float(number) + 1 if '.' in number else int(number) + 1}{source[end:]}"
    # One size of a block in place of another; strides and lengths mean nothing.
    names = re.findall(r"(\w+): tl\.constexpr", source)
    for place, name in enumerate(names):
        other = names[(place + 1) % len(names)]
        for found in re.finditer(rf"\b{name}\b(?!:)", source):
            if other != name:
                yield source[: found.start()] + other + source[found.end() :]
    lines = source.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("    ") and "return" not in line:
            yield "\n".join(lines[:number] + lines[number + 1 :])


# What means nothing to a skeleton.
NEUTRAL = {
    "blocks are numbered along another axis of the grid, all of them": (
        r"^(i|at|p|n) = tl\.program_id\((\d)\)(.*) => \1 = tl\.program_id\((?!\2)\d\)\3$"
    ),
    "groups of threads have another size": r"=> .*blockIdx\.[xy] \* 17 |__shared__ float a\[16\]",
    "a race of threads has no value": r"^(__syncthreads\(\)|warpgroup::mma_async_wait\(\)); => $",
    "edges that are not checked do not exist": r"^if \(row < M && col < N\) \{ => $",
    "it is another variant, which a constant chooses": r"^(v = v \* 3\.0|v = v \+ 7\.0|w = v|if F != 1:) => ",
    "the skeleton says that it is not stored": r"^tl\.store\(L \+ m, ",
    "types and memory": (
        r"^(struct globals .*|shared_allocator .*|extern __shared__ alignment_dummy .*|r[tv]_fl<.*|"
        r"\w+ = tl\.zeros\(.*) => "
    ),
    "it is set again before it is used": r"^float acc = 0; => float acc = 1;$",
    "it is not used": r"^i = tl\.arange\(0, B\) => $",
    "tl.where hides it": r"^d = tl\.where\(i < n, tl\.load\(x \+ i, mask=i < n, other=0\.0\)",
    "blocks have another size": r"^d = tl\.arange\(0, D\) => ",
}


def skeletons(source: str) -> tuple[str, ...]:
    try:
        return tuple(filter(None, map(draft_of, read(source).kernels)))
    except UsageError:
        return ()


@pytest.mark.parametrize("name", SOURCES)
def test_a_change_is_refused_or_written(name: str) -> None:
    source = SOURCES[name]
    readable(source)
    original = skeletons(source)
    assert original
    same = [one for one in mutations(source) if skeletons(one) == original]
    changes = [change(source, one) for one in same if one != source]
    assert [one for one in changes if not any(re.search(rule, one) for rule in NEUTRAL.values())] == []


def test_many_changes_are_made() -> None:
    counts = {name: len(list(mutations(source))) for name, source in SOURCES.items()}
    assert min(counts.values()) > 10
    assert sum(counts.values()) > 1000


def change(source: str, other: str) -> str:
    """The lines that differ, before and after."""
    old, new = source.split("\n"), other.split("\n")
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return " => ".join(" ".join(" ".join(one).split()) for one in (old, new))
