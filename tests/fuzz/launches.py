# pyright: basic
"""Random kernels of several launches, which pass tensors on in every way: whole, in parts, changed in place.

    python -m tests.fuzz.launches [number] [first seed]

A kernel is a list of steps; a step makes some row blocks of one tensor from blocks of others. NumPy carries the steps
out one after another. Some kernels have a fault: they read a tensor that nothing has written, or a block from before a
T.sync_grid; these must be refused.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
from ttexplore.errors import KernelError

# In blocks of 32 rows; parameters and tensors of T.alloc_global, the last of which nothing writes.
_BLOCKS, _COLUMNS, _CORES = 4, 40, 3
_PARAMETERS, _ALLOCATED = ("A", "B", "C"), ("M", "N", "U")
_OPERATIONS = ("x[i, j] + y[i, j]", "x[i, j] * 2 - y[i, j]", "T.max(x[i, j], y[i, j])")
_CODES = {"unwritten": "TTX-K006", "kept block": "TTX-K018"}


@dataclass(frozen=True)
class Step:
    """Blocks `low` to `high` of `target` from blocks of two tensors, which come from the block's own number `b`.
    `synchronized` steps are part of the T.Kernel of the step before, after a T.sync_grid."""

    target: str
    low: int
    high: int
    sources: tuple[str, str]
    places: tuple[str, str]
    operation: str
    synchronized: bool


@dataclass(frozen=True)
class Described:
    """A kernel: its steps, and the fault in the last of them."""

    steps: tuple[Step, ...]
    fault: Literal["", "unwritten", "kept block"]


def drawn(seed: int) -> Described:
    rng = random.Random(seed)
    fault = rng.choice(("", "", "", "", "", "unwritten", "kept block"))
    # The blocks whose numbers are known. What is written before it is read is no input.
    known = {name: set(range(_BLOCKS)) if name in _PARAMETERS else set[int]() for name in _PARAMETERS + _ALLOCATED}
    touched: set[str] = set()
    steps: list[Step] = []
    for number in range(rng.choice((2, 2, 3, 4))):
        target = rng.choice(("B", "C", "M", "N"))
        low = rng.choice((0, 0, 0, 1, 2))
        high = rng.randint(low + 1, _BLOCKS) if rng.random() < 0.4 else _BLOCKS
        whole = [name for name, blocks in known.items() if len(blocks) == _BLOCKS and name != target]
        # Other blocks of the target may be stored at the same time.
        own = [target] if known[target] >= {*range(low, high)} else []
        sources = rng.choice(whole + own), rng.choice(whole + own)
        first, second = ("b" if one == target else rng.choice(("b", f"{_BLOCKS - 1} - b", "0")) for one in sources)
        synchronized = number > 0 and rng.random() < 0.4
        steps.append(Step(target, low, high, sources, (first, second), rng.choice(_OPERATIONS), synchronized))
        for name in sources:
            touched.add(name)
        if target not in touched:
            known[target] = set()
            touched.add(target)
        known[target] |= {*range(low, high)}
    if fault:
        source = "U" if fault == "unwritten" else "A"
        steps.append(Step("B", 0, _BLOCKS, (source, "A"), ("b", "b"), _OPERATIONS[0], fault == "kept block"))
    return Described(tuple(steps), fault)


def source_text(one: Described) -> str:
    shape = f'(({_BLOCKS * 32}, {_COLUMNS}), "int32")'
    lines = [
        "import ttexplore.language as T", "", "", "@T.prim_func",
        f"def kernel({', '.join(f'{name}: T.Tensor{shape}' for name in _PARAMETERS)}):",
        *(f"    {name} = T.alloc_global{shape}" for name in _ALLOCATED),
    ]  # fmt: skip
    blocks = [f'        {name} = T.alloc_shared((32, {_COLUMNS}), "int32")' for name in "xy"]
    steps = one.steps
    for number, step in enumerate(steps):
        count = step.high - step.low
        phased = step.synchronized or (number + 1 < len(steps) and steps[number + 1].synchronized)
        if not step.synchronized:
            lines += [f"    with T.Kernel({_CORES if phased else count}) as {'core' if phased else 'place'}:", *blocks]
        else:
            lines.append("        T.sync_grid()")
        depth = 8
        if phased:
            lines += [
                f"        for w in T.serial({-(-count // _CORES)}):", f"            place = w * {_CORES} + core",
                f"            if place < {count}:",
            ]  # fmt: skip
            depth = 16
        is_faulty = one.fault == "kept block" and number == len(steps) - 1
        inner = [f"b = place + {step.low}"]
        for name, source, place in zip("xy", step.sources, step.places, strict=True):
            if not (is_faulty and name == "x"):
                inner.append(f"T.copy({source}[({place}) * 32, 0], {name})")
        inner += [
            f"for i, j in T.Parallel(32, {_COLUMNS}):", f"    x[i, j] = {step.operation}",
            f"T.copy(x, {step.target}[b * 32, 0])",
        ]  # fmt: skip
        lines += [" " * depth + line for line in inner]
    return "\n".join(lines) + "\n"


def expected(one: Described, given: dict[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], dict[str, set[int]]]:
    """The parameters in the end, as blocks of rows, and which blocks of each the kernel has written."""
    tensors = {name: given.get(name, np.zeros((_BLOCKS * 32, _COLUMNS))).reshape(_BLOCKS, 32, _COLUMNS).copy()
               for name in _PARAMETERS + _ALLOCATED}  # fmt: skip
    written: dict[str, set[int]] = {name: set() for name in tensors}
    for step in one.steps:
        made: dict[int, NDArray[Any]] = {}
        for b in range(step.low, step.high):
            x, y = (tensors[source][int(eval(place, {}, {"b": b}))]
                    for source, place in zip(step.sources, step.places, strict=True))  # fmt: skip
            made[b] = eval(step.operation.replace("[i, j]", ""), {"T": _Numbers}, {"x": x, "y": y})
        for b, block in made.items():
            tensors[step.target][b] = block
        written[step.target] |= made.keys()
    return tensors, written


def _is_new(one: Described, name: str) -> bool:
    """Whether all blocks of a tensor are written by launches before the first that reads one."""
    blocks: set[int] = set()
    for step in one.steps:
        if name in step.sources:
            break
        if name == step.target:
            blocks |= {*range(step.low, step.high)}
    return len(blocks) == _BLOCKS


class _Numbers:
    max = np.maximum


def verdict(seed: int, folder: Path) -> str:
    """What became of a kernel. Raises AssertionError where a law does not hold."""
    one, rng = drawn(seed), random.Random(f"options {seed}")
    text = source_text(one)
    file = folder / f"launches_{seed}.py"
    file.write_text(text)
    options: dict[str, Any] = {"cores": rng.choice(((1, 1), (2, 1), (2, 2), (8, 8)))}
    options["policy"] = rng.choice(("contiguous", "strided"))
    target = rng.choice(("wormhole_n150", "blackhole_p150"))
    told = f"seed {seed}, {target}, {options}:\n{text}"
    if one.fault:
        with pytest.raises(KernelError) as caught:
            ttx.explore(f"{file}::kernel")
        assert caught.value.code == _CODES[one.fault], f"{caught.value}\n{told}"
        return f"{one.fault}, refused"
    exploration = ttx.explore(f"{file}::kernel", target=target, options=options)
    assert exploration.error is None, f"{exploration.error}\n{told}"
    numbers = np.random.default_rng(seed)
    shape = (_BLOCKS * 32, _COLUMNS)
    roles = exploration._roles
    given = {name: numbers.integers(-9, 10, shape) for name, role in roles.items() if role != "output"}
    check = exploration.check(given)
    assert check, f"{check}\n{told}"
    wanted, written = expected(one, given)
    # What is all written before it is read is no input, and nothing else.
    new = {name for name in _PARAMETERS if roles[name] == "output"}
    assert new == {name for name in _PARAMETERS if _is_new(one, name)}, f"{roles}\n{told}"
    names = [name for name, role in roles.items() if role != "input"]
    assert {*names} == {name for name in _PARAMETERS if written[name]}, told
    for backend in ("interpreter", "emulator"):
        run = exploration.run(given, backend=backend)
        assert run.passed, f"{run}\n{told}"
        for name, output in zip(names, run.outputs, strict=True):
            found = output.reshape(_BLOCKS, 32, _COLUMNS)
            np.testing.assert_array_equal(found, wanted[name], err_msg=f"{backend}, {name}, {told}")
    phases = sum(step.synchronized for step in one.steps)
    return f"{len(exploration.launches)} launches, {phases} of them after T.sync_grid"


def campaign(first: int, number: int) -> Counter[str]:
    with tempfile.TemporaryDirectory() as folder:
        return Counter(verdict(seed, Path(folder)) for seed in range(first, first + number))


if __name__ == "__main__":
    number, first = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 100), (2, 0)))
    for what, count in sorted(campaign(first, number).items()):
        print(f"{count:6} {what}")
