"""The exercises: for each, its notebook and the function that checks an answer.

A check gets a kernel of the notebook and the learner's answer. It raises :class:`Wrong` for a wrong answer and returns
what to say about a right one. It compares with NumPy or with counts of a run, never with the solution, which is in the
file of the exercise in `sources`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ttexplore.backends.base import Deadlock
from ttexplore.errors import shown
from ttexplore.exercises.comparing import SEED, Array, Wrong, check_shapes, happened, lowered, moved, run_and_compare
from ttexplore.exercises.schedules import cores_of, faster, stays_home, tuned
from ttexplore.exercises.written import WRITTEN, Change, product, softmax, with_loop
from ttexplore.exploration import Exploration
from ttexplore.given import plain
from ttexplore.session.results import Run
from ttexplore.views.markup import plural

_TILE = 32
# Each core reads its own blocks, so that a tile is counted as often as a block needs it.
_ALONE = {"multicast": "off", "loaded_by": "reader"}


@dataclass(frozen=True)
class Definition:
    """An exercise: the notebook that it belongs to, and the function that checks an answer."""

    notebook: str
    check: Callable[..., str]


def _whole(name: str, value: object) -> int:
    number = plain(value)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise Wrong(f"{name} is {shown(value)}; a whole number from 1 on is asked for.")
    return number


def all_cores(kernel: Any, block_M: Any, block_N: Any) -> str:
    """Blocks of a product of 512 x 512 x 256 with which all 64 cores work."""
    rows, columns = _whole("block_M", block_M), _whole("block_N", block_N)
    mine = lowered(kernel, M=512, N=512, K=256, block_M=rows, block_N=columns, block_K=32)
    cores = len(cores_of(mine))
    grid = f"{math.ceil(512 / rows)} x {math.ceil(512 / columns)}"
    if cores != 64:
        raise Wrong(f"{cores} of 64 cores work: blocks of {rows} x {columns} make a launch grid of {grid} blocks.")
    run_and_compare(mine, product, f"blocks of {rows} x {columns}")
    return f"64 cores work on a launch grid of {grid} blocks, and the product is that of NumPy."


def add_row(kernel: Any) -> str:
    """A kernel that adds a row to each row of a matrix, and keeps what is positive."""

    def reference(A: Array, bias: Array) -> Array:
        return np.maximum(A + bias, 0.0)

    for M, N in ((64, 64), (128, 192), (192, 64)):
        case = f"M={M}, N={N}"
        mine = lowered(kernel, M=M, N=N)
        check_shapes(mine, {"A": (M, N), "bias": (N,)}, case)
        run_and_compare(mine, reference, case)
    return "The kernel gives the same as NumPy for three shapes."


def stays_in_dst(kernel: Any, block_M: Any, block_N: Any) -> str:
    """Blocks of a product of 256 x 256 x 256 that spill no partial sums and read at most 512 tiles."""
    rows, columns = _whole("block_M", block_M), _whole("block_N", block_N)
    mine = lowered(kernel, M=256, N=256, K=256, block_M=rows, block_N=columns, block_K=64, options=_ALONE)
    tiles = math.ceil(rows / _TILE) * math.ceil(columns / _TILE)
    if spilled := [buffer.name for buffer in mine.plan.buffers if buffer.producer == buffer.consumer == "compute"]:
        raise Wrong(
            f"`{spilled[0]}` holds partial sums in L1: a block of {rows} x {columns} is {plural(tiles, 'tile')}, "
            "too many for DST."
        )
    run = run_and_compare(mine, product, f"blocks of {rows} x {columns}")
    read = sum(count for (operation, _), count in moved(mine, run).items() if operation == "read")
    if read > 512:
        raise Wrong(
            f"The sums stay in DST, but {read} tiles are read. For {plural(tiles, 'tile')} of a block's sum, each step "
            f"along K takes {rows // _TILE} + {columns // _TILE} tiles: a shape closer to a square takes fewer."
        )
    return f"The sums stay in DST, {read} tiles are read, and {mine.estimate().us:.1f} µs are predicted."


def cancellation(kernel: Any, columns: Any) -> str:
    """Columns of three numbers, of which two cancel, so that the small one is kept by the matrix unit."""
    answer = plain(columns)
    if not isinstance(answer, tuple | list) or len(cast(list[object], answer)) != 3:
        raise Wrong(f"columns is {shown(columns)}; three columns are asked for, such as (0, 1, 2).")
    chosen = [column for column in cast(list[object], answer) if isinstance(column, int) and 0 <= column < _TILE]
    if len(chosen) != 3:
        raise Wrong(f"columns is {shown(columns)}; the matrix has the columns 0 to 31.")
    if len(set(chosen)) != 3:
        raise Wrong(f"columns is {shown(columns)}; two numbers stand in the same column.")
    mine = lowered(kernel)
    for large, exponent in ((1.0, 12), (3.0, 15), (112.0, 14)):
        a = np.zeros((_TILE, _TILE), np.float32)
        for column, value in zip(chosen, (large, -large, 2.0**-exponent), strict=True):
            a[:, column] = value
        total = float(mine.run([a, np.ones((_TILE, _TILE), np.float32)]).outputs[0][0, 0])
        if total != 2.0**-exponent:
            groups = ", ".join(f"column {column} in group {column // 8}" for column in chosen)
            raise Wrong(
                f"With {large:g}, -{large:g} and 2^-{exponent}, the sum is {total:g}, not 2^-{exponent} = "
                f"{2.0**-exponent:g}. Groups of eight columns are added at a time: {groups}."
            )
    return "The small number is kept with each of three triples."


def first_step(exploration: Any, word: Any) -> str:
    """A word that the plan has first after A2."""
    if not isinstance(word, str) or not word.strip():
        raise Wrong(f"word is {shown(word)}; a string is asked for.")
    for lowering in (exploration, exploration.fork(at="B1", cores=(1, 1))):
        finds = lowering.find(word)
        if finds.first is None:
            raise Wrong(f"{word!r} stands in no step, neither in the code nor in the plan.")
        if finds.first.partition(".")[0] != "A2":
            raise Wrong(
                f"{word!r} appears first in {finds.first}, {lowering.steps[finds.first].summary.rstrip('.').lower()}."
            )
    step = exploration.steps["A2"]
    return f"{step.name}: {step.summary}"


def count_tiles(kernel: Any, tiles: Any) -> str:
    """A function that says how many tiles of A, B and C a sum in parts moves, compared with a count in runs."""
    for sizes in (
        {"M": 64, "N": 64, "K": 256, "parts": 2, "block_M": 64, "block_N": 64},
        {"M": 64, "N": 128, "K": 256, "parts": 4, "block_M": 32, "block_N": 64},
        {"M": 128, "N": 64, "K": 128, "parts": 1, "block_M": 32, "block_N": 32},
    ):
        case = ", ".join(f"{name}={size}" for name, size in sizes.items())
        try:
            answer = tiles(**sizes)
        except Exception as error:  # It is the learner's function: anything can be wrong with it.
            raise Wrong(f"`tiles` raises {type(error).__name__}: {error}") from error
        numbers: Any = plain(answer)
        if not isinstance(numbers, tuple | list) or len(cast(list[object], numbers)) != 3:
            raise Wrong(f"`tiles` returns {shown(answer)}; three numbers are asked for: those of A, B and C.")
        mine = lowered(kernel, **sizes, options=_ALONE)
        run = mine.run()
        counted = moved(mine, run)
        for name, number in zip("ABC", cast(list[object], numbers), strict=True):
            right = counted["read", name] + counted["write", name]
            if number != right:
                raise Wrong(f"With {case}, {right} tiles of {name} are moved, not {shown(number)}.")
    return "The emulator counts as many tiles of A, B and C, for three sizes."


def count_packed(kernel: Any, packed: Any) -> str:
    """A function that says how many tiles the packer moves for one block of a product, compared with runs."""
    for block_M, block_N, block_K, K in (
        (64, 64, 32, 128), (128, 64, 64, 192), (128, 128, 32, 128), (32, 96, 32, 96), (96, 96, 128, 128)
    ):  # fmt: skip
        case = f"block_M={block_M}, block_N={block_N}, block_K={block_K}, K={K}"
        try:
            answer = plain(packed(block_M=block_M, block_N=block_N, block_K=block_K, K=K))
        except Exception as error:  # It is the learner's function: anything can be wrong with it.
            raise Wrong(f"`packed` raises {type(error).__name__}: {error}") from error
        sizes = {"block_M": block_M, "block_N": block_N, "block_K": block_K}
        mine = lowered(kernel, M=block_M, N=block_N, K=K, **sizes, options=_ALONE)
        right = happened(mine.run(), "pack")
        if answer != right:
            raise Wrong(f"With {case}, the packer moves {plural(right, 'tile')}, not {shown(answer)}.")
    return "The emulator counts as many tiles for five blocks, of which two stay in DST."


def depths(kernel: Any, depths: Any) -> str:
    """Depths of the circular buffers of a product of 512 x 512 x 1024 that need little L1 and no more time than two."""
    answer = plain(depths)
    if not isinstance(answer, dict) or not answer:
        raise Wrong(f'depths is {shown(depths)}; a dictionary is asked for, such as {{"A_shared": 2}}.')
    sizes = {"M": 512, "N": 512, "K": 1024, "block_M": 128, "block_N": 128, "block_K": 64}
    fixed = {**_ALONE, "accumulate": "l1", "stages": 2}
    two = lowered(kernel, **sizes, options=fixed)
    mine = lowered(kernel, **sizes, options={**fixed, "cb_depth": answer})
    needed = sum(buffer.total_bytes for buffer in mine.plan.buffers) // 1024
    slower = mine.estimate().us / two.estimate().us
    if slower > 1.01:
        raise Wrong(f"Too slow: {mine.estimate().us:.1f} µs, and {two.estimate().us:.1f} µs with two blocks each.")
    if needed > 160:
        raise Wrong(f"As fast as with two blocks each, but {needed} KiB of L1; at most 160 KiB are asked for.")
    # The same depths, with few enough steps along K to run.
    run_and_compare(lowered(kernel, **{**sizes, "K": 256}, options={**fixed, "cb_depth": answer}), product, "K=256")
    return f"{mine.estimate().us:.1f} µs with {needed} KiB of L1."


def window_start(kernel: Any, first: Any) -> str:
    """The first block of keys that a block of queries needs, where each query sees 48 keys."""
    for seq_len in (256, 128):
        mine = lowered(kernel, first=first, seq_len=seq_len)
        case = f"{seq_len} keys"
        run = run_and_compare(mine, _windowed, case)
        read = moved(mine, run)["read", "K"] // 2
        least = sum(block - max(0, (block * _TILE - 47) // _TILE) + 1 for block in range(seq_len // _TILE))
        if read > least:
            raise Wrong(
                f"With {case}, the numbers are right, but {plural(read, 'block')} of keys are read, and only {least} "
                "have a key in a window: the loop begins too early."
            )
    return "Each block of queries reads at most three blocks of keys, and the result is that of NumPy."


def _windowed(Q: Array, K: Array, V: Array) -> Array:
    """Attention in which query m sees the keys m - 47 to m."""
    scores: Any = Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])
    query: Any = np.arange(int(Q.shape[-2]))
    distance: Any = query[:, None] - query
    weights: Any = np.exp(scores) * ((distance >= 0) & (distance < 48))
    result: Array = (weights / weights.sum(axis=-1, keepdims=True)) @ V
    return result


def online_step(kernel: Any, step: Any) -> str:
    """The step of flash attention that carries maximum, sum and values from one block of keys to the next."""

    def reference(Q: Array, K: Array, V: Array) -> Array:
        return softmax(Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])) @ V

    def scored(lowest: int, highest: int) -> Change:
        """Scores of twice these numbers, which the matrix engine computes exactly: only the first column counts."""

        def inputs(arrays: list[Array]) -> list[Array]:
            Q, K, V = (array.copy() for array in arrays)
            Q[...] = 0
            Q[..., 0] = 2 * math.sqrt(Q.shape[-1])
            K[..., 0] = np.random.default_rng(SEED).integers(lowest, highest + 1, K.shape[:-1])
            return [Q, K, V]

        return inputs

    runs = {"": None, " and scores up to 128": scored(-64, 64), " and scores below -128": scored(-72, -64)}
    for seq_len in (32, 64, 256):
        mine = lowered(kernel, step=step, seq_len=seq_len)
        for scores, inputs in runs.items():
            run_and_compare(mine, reference, f"{seq_len} keys{scores}", inputs=inputs)
    return (
        "Attention with your step is that of NumPy for one block of keys, for two, and for eight, with scores of all "
        "sizes."
    )


def read_once(kernel: Any) -> str:
    """A kernel that uses each element of a matrix twice and reads each of its tiles once."""

    def reference(A: Array) -> Array:
        return A * A + A

    for M, N in ((64, 64), (128, 192)):
        case = f"M={M}, N={N}"
        mine = lowered(kernel, M=M, N=N)
        check_shapes(mine, {"A": (M, N)}, case)
        read = moved(mine, run_and_compare(mine, reference, case))["read", "A"]
        tiles = (M // _TILE) * (N // _TILE)
        if read != tiles:
            raise Wrong(f"With {case}, the numbers are right, but {read} tiles of A are read; A has {tiles}.")
    return "The kernel gives the same as NumPy for two shapes and reads each tile of A once."


def unhang(exploration: Any, reader: Any, compute: Any) -> str:
    """Texts of two kernels of a product, corrected so that the program ends."""
    code = {"reader": reader, "compute": compute}
    for name, text in code.items():
        if not isinstance(text, str):
            raise Wrong(f"{name} is {shown(text)}; the text of the kernel is asked for.")
    try:
        run_and_compare(exploration, product, "your texts", code)
    except Deadlock as deadlock:
        # Its hint would say what to write.
        raise Wrong(f"The program still hangs: {deadlock.message}") from deadlock
    return "The program ends, and the product is that of NumPy."


def handshake(exploration: Exploration, reader: Any) -> str:
    """The text of the reader of a product that shares B, corrected so that senders and receivers agree."""
    if not isinstance(reader, str):
        raise Wrong(f"reader is {shown(reader)}; the text of the kernel is asked for.")
    try:
        run_and_compare(exploration, product, "your text", {"reader": reader})
    except Deadlock as deadlock:
        # Its hint would say what to write.
        raise Wrong(f"The program still hangs: {deadlock.message}") from deadlock
    return "The program ends, and the product is that of NumPy."


def reader_loop(exploration: Exploration, reader_loop: Any) -> str:
    """The loop along K of the reader of a product, which reads each tile that a block needs once."""
    run, code = _with_loop(exploration, "reader", reader_loop)
    read = {name: moved(exploration, run, code)["read", name] for name in "AB"}
    # Each tensor has 8 tiles, and two blocks of the result need each of them.
    if extra := [f"{count} tiles of {name}" for name, count in read.items() if count > 16]:
        raise Wrong(f"The product is right, but {' and '.join(extra)} are read; 16 are enough.")
    return "The program ends, reads no tile twice for one block, and the product is that of NumPy."


def compute_loop(exploration: Exploration, compute_loop: Any) -> str:
    """The loop along K of the compute kernel of a product."""
    _with_loop(exploration, "compute", compute_loop)
    return "The program ends, and the product is that of NumPy."


def _with_loop(exploration: Exploration, kernel: str, loop: object) -> tuple[Run, dict[str, str]]:
    """The run with a loop in place of the emitted one, and the text that ran. Raises Wrong."""
    if not isinstance(loop, str):
        raise Wrong(f"{kernel}_loop is {shown(loop)}; the text of the loop is asked for.")
    code = {kernel: with_loop(exploration.code[kernel].text, loop)}
    try:
        return run_and_compare(exploration, product, "your loop", code), code
    except Deadlock as deadlock:
        # Its hint would say what to write.
        raise Wrong(f"The program hangs: {deadlock.message}") from deadlock


def tf32(kernel: Any, rounded: Any) -> str:
    """A function that gives what the matrix engine sees of float32 numbers, compared with a run."""
    mine = lowered(kernel, dtype="float32")
    draw = np.random.default_rng(SEED)
    drawn = draw.standard_normal((_TILE, _TILE)) * 2.0 ** draw.integers(-20, 20, (_TILE, _TILE))
    # Numbers of all signs and sizes, and beside them some that end in ones.
    numbers = np.where(draw.random((_TILE, _TILE)) < 0.2, draw.choice([-1, 1]) * (2 - 2.0**-23), drawn).astype(
        np.float32
    )
    try:
        answer = np.asarray(rounded(numbers.copy()))
    except Exception as error:  # It is the learner's function: anything can be wrong with it.
        raise Wrong(f"`seen` raises {type(error).__name__}: {error}") from error
    if answer.shape != numbers.shape:
        raise Wrong(f"`seen` returns an array of the shape {answer.shape} for one of the shape {numbers.shape}.")
    right = mine.run([numbers, np.eye(_TILE, dtype=np.float32)]).outputs[0]
    wrong = np.argwhere(right != answer)
    if len(wrong):
        index = tuple(wrong[0])
        raise Wrong(
            f"Of {float(numbers[index])!r}, the matrix engine sees {float(right[index])!r}, and `seen` gives "
            f"{float(answer[index])!r}. {len(wrong):,} of {numbers.size:,} numbers differ."
        )
    return f"All {numbers.size:,} numbers are those that the matrix engine sees."


EXERCISES: dict[str, Definition] = {
    "all_cores": Definition("00_start", all_cores),
    "add_row": Definition("02_elementwise", add_row),
    "stays_in_dst": Definition("03_gemm", stays_in_dst),
    "count_packed": Definition("04_why_dst_does_not_hold_it", count_packed),
    "depths": Definition("05_double_buffering", depths),
    "handshake": Definition("06_multicast", handshake),
    "tf32": Definition("10_numbers", tf32),
    "cancellation": Definition("09_on_the_chip", cancellation),
    "first_step": Definition("explorer", first_step),
    "count_tiles": Definition("08_reductions_and_softmax", count_tiles),
    "window_start": Definition("12_port_flash_attention", window_start),
    "online_step": Definition("12_port_flash_attention", online_step),
    "stays_home": Definition("15_where_does_my_tensor_lie", stays_home),
    "tuned": Definition("16_which_schedule", tuned),
    "faster": Definition("07_why_is_it_slow", faster),
    "read_once": Definition("01_what_a_core_is", read_once),
    "unhang": Definition("11_why_did_it_deadlock", unhang),
    **{name: Definition(check.notebook, check) for name, check in WRITTEN.items()},
    "reader_loop": Definition("13_can_you_write_it", reader_loop),
    "compute_loop": Definition("13_can_you_write_it", compute_loop),
}
