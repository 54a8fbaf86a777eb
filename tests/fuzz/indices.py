"""Random index expressions: ``python -m tests.fuzz.indices 3000``.

Many index expressions of a block index and a loop variable go into one kernel, with negative intermediates, minima,
clamps, divisions that round down, shifts, bits, selects and casts to few bits; as pages and as bounds of loops. Python
computes what each must give. Held to it are the interpreter at D3 and at the last step, and the emulator: every index,
every page and every trip count, because each page of the input has a number of its own and each turn a place of its
own.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ttexplore as ttx
from tests.fuzz.description import INDEX_FUNCTIONS
from tests.typecheck.headers import HEADERS_FOLDER, headers_missing
from tests.typecheck.typecheck import typecheck
from ttexplore.backends.base import Program
from ttexplore.backends.emulator import Emulator
from ttexplore.errors import TTExploreError, VerifyError
from ttexplore.exploration import Exploration
from ttexplore.plan import KERNEL_ROLES

# Pages of the input; of each block so many rows of pages of the output: a turn's is its number modulo that.
BLOCKS, PAGES, ROWS = 5, 16, 4
_LARGEST = 1 << 24
# What the output holds before.
_BEFORE = -1.0


def value(text: str, **names: int) -> int:
    """What an index expression is for these values of its names."""
    return int(eval(text, {"T": INDEX_FUNCTIONS}, names))


@dataclass(frozen=True)
class Item:
    """One index expression: the page that is copied, in each turn of the loop where there are bounds. `how` is ``copy``
    where each turn stores its page, ``sum`` where the pages are added up."""

    page: str
    bounds: tuple[str, str] | None
    how: str

    def lines(self, number: int) -> list[str]:
        place = f"{number} * 32"
        load = f"T.copy(A[({self.page}) * 32, 0], s)"
        if self.bounds is None:
            return [load, f"T.copy(s, B[bx * {ROWS * 32}, {place}])"]
        loop = f"for k in T.serial({self.bounds[0]}, {self.bounds[1]}):"
        if self.how == "copy":
            return [loop, f"    {load}", f"    T.copy(s, B[(bx * {ROWS} + k % {ROWS}) * 32, {place}])"]
        return [
            "T.clear(c)", loop, f"    {load}", "    for i, j in T.Parallel(32, 32):",
            "        c[i, j] = c[i, j] + s[i, j]", f"T.copy(c, B[bx * {ROWS * 32}, {place}])",
        ]  # fmt: skip

    def pages(self, bx: int) -> list[float]:
        """What lies in the rows of pages of a block; what was there before where nothing is stored."""
        found = [_BEFORE] * ROWS
        if self.bounds is None:
            found[0] = value(self.page, bx=bx)
            return found
        turns = range(*(value(one, bx=bx) for one in self.bounds))
        if self.how == "sum":
            found[0] = sum(value(self.page, bx=bx, k=k) for k in turns)
            return found
        for k in turns:
            found[k % ROWS] = value(self.page, bx=bx, k=k)
        return found


class Drawer:
    """Draws expressions; `size` of each is a bound of its magnitude, so that none leaves int32."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def expression(self, names: dict[str, int], depth: int) -> tuple[str, int]:
        random = self.random
        if depth == 0 or random.random() < 0.1:
            if random.random() < 0.6:
                return random.choice([*names.items()])
            number = random.choice([random.randint(-9, 9), random.randint(-100, 100)])
            return (str(number) if number >= 0 else f"({number})"), abs(number)
        kind = random.choice(_KINDS)
        left, size = self.expression(names, depth - 1)
        right, other = self.expression(names, depth - 1)
        match kind:
            case "+" | "-" | "*" | "&" | "|" | "^":
                if kind == "*" and size * other > _LARGEST:
                    right, other = f"({right} % 7)", 6
                grown = {"+": size + other, "-": size + other, "*": size * other}.get(kind, 2 * max(size, other) + 1)
                return self.small(f"({left} {kind} {right})", grown)
            case "min" | "max":
                return f"T.{kind}({left}, {right})", max(size, other)
            case "clamp":
                low = random.randint(-9, 4)
                high = low + random.randint(0, 12)
                return f"T.clamp({left}, {low}, {high})", max(abs(low), abs(high))
            case "select":
                test, _ = self.expression(names, depth - 1)
                sign = random.choice(["<", "<=", ">", ">=", "==", "!="])
                return f"T.if_then_else({test} {sign} {random.randint(-4, 6)}, {left}, {right})", max(size, other)
            case "//" | "%" | "ceildiv" | "truncdiv" | "truncmod":
                divisor = random.choice([random.randint(1, 9), random.randint(1, 9), -random.randint(1, 9), 32])
                if kind in ("//", "%"):
                    return f"({left} {kind} ({divisor}))", size + 9
                # Of two numbers of Python's the language computes it at once, as Python does.
                return f"T.{kind}({left} + 0 * {next(iter(names))}, {abs(divisor)})", size + 9
            case "cast":
                # Beside int32, so that what is made of it may be larger.
                wide, largest = random.choice([*names.items()])
                return f'({wide} + T.cast({left}, "{random.choice(_NARROW)}"))', largest + (1 << 16)
            case "<<":
                by = random.randint(0, 4)
                return self.small(f"({left} << {by})", size << by)
            case ">>":
                return f"({left} >> {random.choice([str(random.randint(0, 6)), '(bx % 4)'])})", size + 1
            case "~":
                return f"(~{left})", size + 1
            case _:
                return f"(-{left})", size

    def small(self, text: str, size: int) -> tuple[str, int]:
        return (text, size) if size <= _LARGEST else (f"({text} % 1009)", 1009)

    def page(self, names: dict[str, int]) -> str:
        """An expression that is a page whatever it computes on the way."""
        text, _ = self.expression(names, self.random.randint(1, 4))
        last = PAGES - 1
        forms = (
            f"T.clamp({text}, 0, {last})", f"{text} % {PAGES}", f"T.min(T.max({text}, 0), {last})", f"{text} & {last}",
            f"T.max(T.min({text}, {last}), 0)", f"T.if_then_else({text} > {last}, {last}, T.max({text}, 0)) % {PAGES}",
            f"({text} % 7) + ({text} % 9)", f"T.clamp({text}, -3, 5) + 3", f"{last} - ({text}) % {PAGES}",
            f"(T.clamp({text}, -9, 20) // 2 + 5) % {PAGES}",
            f'T.cast(T.cast({text}, "{self.random.choice(_NARROW)}"), "int32") % {PAGES}',
        )  # fmt: skip
        return self.random.choice(forms)

    def bound(self) -> str:
        text, _ = self.expression({"bx": BLOCKS - 1}, self.random.randint(1, 2))
        return f"T.clamp({text}, {self.random.randint(-6, -1)}, {self.random.randint(0, 6)})"

    def item(self) -> Item:
        if self.random.random() < 0.6:
            return Item(self.page({"bx": BLOCKS - 1}), None, "copy")
        bounds = self.random.choice(
            [
                (self.bound(), self.bound()),
                (str(self.random.randint(-4, 4)), self.bound()),
                ("0", f"bx - {self.random.randint(0, 4)}"),
                (f"bx - {self.random.randint(1, 4)}", f"bx + {self.random.randint(0, 2)}"),
                (f"T.max(bx - {self.random.randint(1, 3)}, 0)", "bx + 1"),
                (f'T.cast(bx - {self.random.randint(1, 4)}, "int8")', f'T.cast({self.bound()}, "int16")'),
                (f'T.cast(bx * {self.random.randint(90, 128)}, "int8") // 32', "bx"),
                ("0", f"T.if_then_else(bx > {self.random.randint(0, 3)}, 3, {self.random.randint(-1, 2)})"),
            ]
        )
        how = "sum" if self.random.random() < 0.15 else "copy"
        return Item(self.page({"bx": BLOCKS - 1, "k": 8}), bounds, how)


_NARROW = ("int8", "int16", "uint8", "uint16")
_KINDS = (
    "+", "-", "-", "*", "&", "|", "^", "min", "max", "clamp", "select", "//", "//", "%", "ceildiv", "truncdiv",
    "truncmod", "<<", ">>", "~", "negative", "cast", "cast",
)  # fmt: skip


def source_text(items: list[Item]) -> str:
    body = [line for number, item in enumerate(items) for line in item.lines(number)]
    sums = any(item.how == "sum" for item in items)
    head = f"""\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor(({PAGES * 32}, 32), "float32"), B: T.Tensor(({BLOCKS * ROWS * 32}, {len(items) * 32}), "float32")
):
    with T.Kernel({BLOCKS}) as bx:
        s = T.alloc_shared((32, 32), "float32")
"""
    head += '        c = T.alloc_fragment((32, 32), "float32")\n' if sums else ""
    return head + "".join(f"        {line}\n" for line in body)


def expected(items: list[Item]) -> NDArray[Any]:
    pages = np.array([[item.pages(bx) for item in items] for bx in range(BLOCKS)], np.float32)
    return np.kron(pages.transpose(0, 2, 1).reshape(BLOCKS * ROWS, len(items)), np.ones((32, 32), np.float32))


def numbered_pages() -> NDArray[Any]:
    return np.repeat(np.arange(PAGES, dtype=np.float32), 32)[:, None] * np.ones((1, 32), np.float32)


class Fault(AssertionError):
    """An executor that gives something else: which, and for which expression."""


def check(items: list[Item], folder: Path, emulator: Emulator, *, types: bool = False) -> str:
    """Hold the kernel of these items to Python's result; gives "" or what was refused. Raises Fault."""
    path = folder / "kernel.py"
    path.write_text(source_text(items), encoding="utf-8")
    try:
        exploration = ttx.explore(f"{path}::kernel")
        if exploration.error is not None:
            raise exploration.error
    except VerifyError as mistake:
        # A law that is broken is a mistake of the lowering, not of the kernel.
        raise Fault(f"{mistake.code} {mistake}\n{source_text(items)}") from mistake
    except TTExploreError as refused:
        if refused.span is None or not refused.hint:
            raise Fault(f"a refusal without a line or a hint: {refused}\n{source_text(items)}") from refused
        return f"{refused.code} {refused.message}"
    wanted, given = expected(items), (numbered_pages(),)
    if exploration._roles["B"] == "inout":
        given = (*given, np.full_like(wanted, _BEFORE))
    for name, run in _executors(exploration, emulator, given).items():
        try:
            made = run()
        except Exception as error:
            raise Fault(f"{name}: {type(error).__name__}: {error}\n{source_text(items)}") from error
        for number, item in enumerate(items):
            part = np.s_[:, number * 32 : number * 32 + 32]
            if not np.array_equal(made[part], wanted[part], equal_nan=True):
                found = made[part][::32, 0].reshape(BLOCKS, ROWS).tolist()
                right = wanted[part][::32, 0].reshape(BLOCKS, ROWS).tolist()
                raise Fault(f"{name}: {item}\n gives {found}\n not   {right}\n{source_text([item])}")
    if types and not headers_missing():
        _typecheck(exploration)
    return ""


def _executors(
    exploration: Exploration, emulator: Emulator, given: tuple[NDArray[Any], ...]
) -> dict[str, Callable[[], NDArray[Any]]]:  # fmt: skip
    texts = {role: exploration.code[role].text for role in KERNEL_ROLES}
    runs: dict[str, Callable[[], NDArray[Any]]] = {
        f"the interpreter at {letter}": lambda letter=letter: exploration._lowered.run(
            exploration.steps[letter].after, given
        ).outputs[0]
        for letter in ("A0", "B2", "D3", "E1")
    }
    runs["the emulator"] = lambda: emulator.run(Program(texts, exploration.plan), given).outputs[0]
    return runs


def _typecheck(exploration: Exploration) -> None:
    plan = exploration.plan
    formats = {buffer.index: buffer.data_format for buffer in plan.buffers if buffer.index is not None}
    for role in KERNEL_ROLES:
        words = [2, 4096] * len(plan.kernel_signature(role).compile_time)
        found = typecheck(
            exploration.code[role].text, role=role, arch=exploration.target.arch, compile_time_args=words, named={},
            formats=formats, fp32_dest_acc=True, headers=HEADERS_FOLDER,
        )  # fmt: skip
        if found:
            raise Fault(f"the {role} does not type-check: {found}\n{exploration.code[role].text}")


def search(count: int, seed: int, in_a_kernel: int, *, types_every: int = 0) -> tuple[Counter[str], list[str]]:
    """Check so many expressions; refusals by what they say (each is tried alone), and faults."""
    drawer, emulator = Drawer(Random(seed)), Emulator(event_limit=0)
    told, faults = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)

        def tried(items: list[Item], *, types: bool) -> None:
            try:
                refused = check(items, folder, emulator, types=types)
            except Fault as fault:
                if len(items) == 1:
                    faults.append(str(fault))
                    return
                refused = str(fault)
            if not refused or len(items) == 1:
                told[refused.partition("\n")[0]] += len(items)
                return
            half = len(items) // 2
            tried(items[:half], types=types)
            tried(items[half:], types=types)

        for number in itertools.count():
            size = min(in_a_kernel, count - number * in_a_kernel)
            if size <= 0:
                break
            items = [drawer.item() for _ in range(size)]
            tried(items, types=bool(types_every) and number % types_every == 0)
    return told, faults


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.indices", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("count", type=int, nargs="?", default=3000, help="how many expressions")
    parser.add_argument("--in-a-kernel", type=int, default=24, help="expressions in one kernel")
    parser.add_argument("--seed", type=int, default=None, help="without it a random one")
    given = parser.parse_args(arguments)
    seed = Random().randrange(1_000_000) if given.seed is None else given.seed
    start = time.perf_counter()
    told, faults = search(given.count, seed, given.in_a_kernel, types_every=4)
    for fault in faults:
        print(f"{fault}\n")
    print(f"{given.count} expressions from seed {seed}, {len(faults)} faults, {time.perf_counter() - start:.0f} s")
    for name, count in told.most_common(20):
        print(f"{count:7}  {name or 'as Python computes'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
