"""Random kernels for single threads, many with a race, and what threads make of them in any order.

    python -m tests.fuzz.threads [number] [first seed]

Each kernel is run here with plain numbers, statement by statement, thread after thread in random orders; in a branch
by thread one may be far ahead of another. A kernel that is lowered must give one result in all these orders, the one
that every step gives. Of those that are rejected some must give several.
"""

from __future__ import annotations

import itertools
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ttexplore as ttx

# How many orders of threads a kernel is run in.
ORDERS = 12
_BLOCKS = 2
_WARP = 32
_KERNEL = """
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor({shape}, "float32"), C: T.Tensor({shape}, "float32")):
    with T.Kernel({blocks}, threads={threads}) as bx:
        {names} = T.get_thread_bindings(){first}
        x = T.alloc_local(({each},), "float32")
        total = T.alloc_local((1,), "float32")
        s = T.alloc_shared(({width},), "float32")
        total[0] = 0
        T.clear(s)
        for k in T.{loop}({each}):
            x[k] = A[{row}, {column}]
{body}
        for k in T.{loop}({each}):
            C[{row}, {column}] = x[k] + total[0]
"""


@dataclass
class Thread:
    """What one thread has: its indices, its elements, and its sum."""

    tx: int
    ty: int
    x: list[float]
    total: float = 0.0


# What a statement does for one thread, with the block that they share and its size.
Step = Callable[[Thread, list[float]], None]


@dataclass(frozen=True)
class Statement:
    """A statement as text, and as its steps: one after another of all threads, unless it is a branch by thread."""

    text: str
    steps: tuple[Step, ...]
    is_branch: bool = False
    # The axis along which threads join their sums, and how.
    joined_axis: str = ""
    kind: str = "sum"


@dataclass(frozen=True)
class Drawn:
    width: int
    height: int
    each: int
    strided: bool
    vectorized: bool
    statements: tuple[Statement, ...]
    # The first and the last statement of a loop that all threads run twice.
    looped: range

    @property
    def shape(self) -> tuple[int, int]:
        return _BLOCKS * self.height, self.width * self.each

    def column(self, thread: Thread, k: int) -> int:
        return k * self.width + thread.tx if self.strided else thread.tx * self.each + k

    @property
    def text(self) -> str:
        lines: list[str] = []
        for number, statement in enumerate(self.statements):
            if number == self.looped.start and self.looped:
                lines.append("for r in T.serial(2):")
            lines += [f"{'    ' * (number in self.looped)}{line}" for line in statement.text.split("\n")]
        body = "\n".join(f"        {line}" for line in lines)
        return _KERNEL.format(
            shape=self.shape, blocks=_BLOCKS, width=self.width, each=self.each, body=body,
            threads=(self.width, self.height) if self.height > 1 else self.width,
            names="tx, ty" if self.height > 1 else "tx", first="" if self.height > 1 else "[0]",
            loop="vectorized" if self.vectorized else "serial",
            row=f"bx * {self.height} + ty" if self.height > 1 else "bx",
            column=f"k * {self.width} + tx" if self.strided else f"tx * {self.each} + k",
        )  # fmt: skip


def drawn(seed: int) -> Drawn:
    rng = random.Random(seed)
    width, height, each = rng.choice((4, 8, 32)), rng.choice((1, 1, 2, 4)), rng.choice((1, 2, 4))
    statements = tuple(_statement(rng, width, height, each) for _ in range(rng.randint(2, 5)))
    first = rng.randrange(len(statements))
    looped = range(first, rng.randint(first, len(statements)))
    return Drawn(width, height, each, rng.random() < 0.5, rng.random() < 0.5, statements, looped)


def _statement(rng: random.Random, width: int, height: int, each: int) -> Statement:
    axes = ["tx", "ty"] if height > 1 else ["tx"]
    number, axis = rng.randint(1, 3), rng.choice(axes)
    limit, least = rng.randint(1, width), rng.choice((0, 1))

    def index(thread: Thread, name: str) -> int:
        return thread.tx if name == "tx" else thread.ty

    def scale(thread: Thread, s: list[float]) -> None:
        thread.x = [value * number + index(thread, axis) - k for k, value in enumerate(thread.x)]

    def add(thread: Thread, s: list[float]) -> None:
        thread.total += sum(value * number for k, value in enumerate(thread.x))

    def add_some(thread: Thread, s: list[float]) -> None:
        thread.total += sum(value for k, value in enumerate(thread.x) if (thread.tx + k) % 3 == least)

    def largest(thread: Thread, s: list[float]) -> None:
        thread.total = max([thread.total, *thread.x])

    def double(thread: Thread, s: list[float]) -> None:
        thread.total = thread.total * 2 + thread.x[0]

    def give(thread: Thread, s: list[float]) -> None:
        s[thread.tx] = thread.total + number

    def give_one(thread: Thread, s: list[float]) -> None:
        if index(thread, axis) == 0:
            s[thread.tx] = thread.total

    def take(thread: Thread, s: list[float]) -> None:
        thread.total = s[width - 1 - thread.tx]

    def add_shared(thread: Thread, s: list[float]) -> None:
        s[thread.tx] += thread.total

    def add_all(thread: Thread, s: list[float]) -> None:
        s[0] += number

    def add_few(thread: Thread, s: list[float]) -> None:
        if thread.tx < limit:
            s[0] += thread.x[0]

    def most(thread: Thread, s: list[float]) -> None:
        s[thread.tx] = max(s[thread.tx], thread.x[0])

    def few_double(thread: Thread, s: list[float]) -> None:
        if thread.tx < limit:
            thread.total = thread.total * 2 + 1

    def few_give(thread: Thread, s: list[float]) -> None:
        if thread.tx < limit:
            s[thread.tx] = thread.total

    def few_take(thread: Thread, s: list[float]) -> None:
        if thread.tx < limit:
            thread.total = s[limit - 1 - thread.tx]

    def few_take_own(thread: Thread, s: list[float]) -> None:
        if thread.tx < limit:
            thread.total = s[thread.tx] + 1

    def few_fill(thread: Thread, s: list[float]) -> None:
        if thread.tx < limit:
            thread.x = [float(number)] * each

    def plain_add(thread: Thread, s: list[float]) -> None:
        s[thread.tx] = s[thread.tx] + thread.x[0]

    loop = f"for k in T.serial({each}):\n    "
    reducer = 'with T.attr(T.comm_reducer(lambda a, b: a + b, [0.0]), "reduce_scope", 0):\n    '
    several = f"if tx < {limit}:\n    s[tx] = total[0]\n    "
    choices = [
        Statement(f"{loop}x[k] = x[k] * {number} + {axis} - k", (scale,)),
        Statement(f"{loop}total[0] += x[k] * {number}", (add,)),
        Statement(f"{loop}if (tx + k) % 3 == {least}:\n        total[0] += x[k]", (add_some,)),
        Statement(f"{loop}total[0] = T.max(total[0], x[k])", (largest,)),
        Statement("total[0] = total[0] * 2 + x[0]", (double,)),
        Statement(f"s[tx] = total[0] + {number}", (give,)),
        Statement(f"if {axis} == 0:\n    s[tx] = total[0]", (give_one,), is_branch=True),
        Statement(f"total[0] = s[{width - 1} - tx]", (take,)),
        Statement("T.atomic_add(s[tx], total[0])", (add_shared,)),
        Statement(f"T.atomic_add(s[0], {number}.0)", (add_all,)),
        Statement(f"if tx < {limit}:\n    T.atomic_add(s[0], x[0])", (add_few,), is_branch=True),
        Statement("T.atomic_max(s[tx], x[0])", (most,)),
        Statement(f"if tx < {limit}:\n    total[0] = total[0] * 2 + 1", (few_double,), is_branch=True),
        Statement(f"{several}total[0] = s[{limit - 1} - tx]", (few_give, few_take), is_branch=True),
        Statement(f"{several}total[0] = s[tx] + 1", (few_give, few_take_own), is_branch=True),
        Statement(f"if tx < {limit}:\n    T.fill(x, {number})", (few_fill,), is_branch=True),
        Statement("s[tx] = s[tx] + x[0]", (plain_add,)),
        Statement(f"{reducer}T.tvm_thread_allreduce(1, total[0], True, total[0], {axis})", (), joined_axis=axis),
    ]
    if width == _WARP:
        choices += [
            Statement(f"total[0] = T.warp_reduce_{kind}(total[0])", (), joined_axis="tx", kind=kind)
            for kind in ("sum", "max")
        ]
    return rng.choice(choices)


def _executed(kernel: Drawn, a: Any, rng: random.Random) -> Any:
    """The tensor that the threads of all blocks give in one order."""
    c = np.zeros(kernel.shape, np.float32)
    for block in range(_BLOCKS):
        s = [0.0] * kernel.width
        threads = [Thread(tx, ty, []) for ty, tx in itertools.product(range(kernel.height), range(kernel.width))]
        for thread in threads:
            row = block * kernel.height + thread.ty
            thread.x = [float(a[row, kernel.column(thread, k)]) for k in range(kernel.each)]
        first, end = kernel.looped.start, kernel.looped.stop
        before, inside, behind = kernel.statements[:first], kernel.statements[first:end], kernel.statements[end:]
        for statement in (*before, *inside, *inside, *behind):
            for thread, step in _order(statement, threads, rng):
                step(thread, s)
            if statement.joined_axis:
                _join(threads, statement.joined_axis, statement.kind)
        for thread in threads:
            for k in range(kernel.each):
                c[block * kernel.height + thread.ty, kernel.column(thread, k)] = thread.x[k] + thread.total
    return c


def _order(statement: Statement, threads: list[Thread], rng: random.Random) -> Iterator[tuple[Thread, Step]]:
    """The steps of all threads in an order that they may have."""
    if not statement.is_branch:
        for step in statement.steps:
            for thread in rng.sample(threads, len(threads)):
                yield thread, step
        return
    waiting = {number: [*statement.steps] for number in range(len(threads))}
    while waiting:
        number = rng.choice([*waiting])
        yield threads[number], waiting[number].pop(0)
        if not waiting[number]:
            del waiting[number]


def _join(threads: list[Thread], axis: str, kind: str) -> None:
    values: dict[int, list[float]] = {}
    for thread in threads:
        values.setdefault(thread.ty if axis == "tx" else thread.tx, []).append(thread.total)
    for thread in threads:
        joined = values[thread.ty if axis == "tx" else thread.tx]
        thread.total = float(sum(joined)) if kind == "sum" else max(joined)


def verdict(seed: int, folder: Path, *, emulate: bool = False) -> str:
    """What became of a kernel, and whether it gives one result. Raises AssertionError where it is lowered wrongly."""
    kernel = drawn(seed)
    a = np.random.default_rng(seed).integers(-3, 4, kernel.shape).astype(np.float32)
    results = [_executed(kernel, a, random.Random(order)) for order in range(ORDERS)]
    # Beyond these, float32 is not exact.
    if any(np.abs(result).max() >= 1 << 22 for result in results):
        return "too large"
    is_one = all(np.array_equal(results[0], result) for result in results)
    file = folder / f"threads_{seed}.py"
    file.write_text(kernel.text)
    ex = ttx.explore(f"{file}::kernel")
    if ex.error is not None:
        assert ex.error.code in ("TTX-K016", "TTX-L001", "TTX-L003"), f"{ex.error}\n{kernel.text}"
        return f"{'right' if is_one else 'wrong'}, rejected"
    assert is_one, f"lowered, but it gives several results\n{kernel.text}"
    failed = [step for step in ex.check([a]).results if not step.passed]
    assert not failed, f"{failed[0].letter}: {failed[0].message}\n{kernel.text}"
    for backend in ("interpreter", "emulator") if emulate else ("interpreter",):
        output = ex.run([a], backend=backend).outputs[0]
        assert np.array_equal(np.asarray(output, np.float32), results[0]), f"{backend} is wrong\n{kernel.text}"
    return "lowered"


def campaign(first: int, count: int, *, emulate: int = 0) -> Counter[str]:
    """How many kernels came to which verdict; each `emulate`-th is run on the emulator, too."""
    with tempfile.TemporaryDirectory() as folder:
        return Counter(
            verdict(seed, Path(folder), emulate=bool(emulate) and seed % emulate == 0)
            for seed in range(first, first + count)
        )


if __name__ == "__main__":
    number, start = (
        (int(text) for text in [*sys.argv[1:], "200", "0"][:2]) if len(sys.argv) != 2 else (int(sys.argv[1]), 0)
    )
    print(campaign(start, number, emulate=20))
