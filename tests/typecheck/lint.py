"""What a good kernel must not contain, beyond what the compiler rejects: `lint(text)` reads emitted C++.

The rules know the form of emitted text (one statement a line, braces on every loop) and judge by textual order, which
for structured code is the order of execution up to loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Names that SDK 0.81.1 no longer has, or that it announces to remove.
_REMOVED = (
    "mm_init", "mm_init_short", "mm_init_short_with_dt", "mm_block_init", "mm_block_init_short",
    "binary_op_init_common", "add_tiles_init", "sub_tiles_init", "mul_tiles_init", "init_bcast", "transpose_wh_init",
    "transpose_wh_tile", "tilize_init_short", "reduce_revert_delta", "max_tile", "pack_tile_block",
    "binary_dest_reuse_tiles", "binary_dest_reuse_tiles_init",
)  # fmt: skip
_DEPRECATED = (
    "copy_tile_init", "copy_tile_to_dst_init_short", "copy_tile_to_dst_init_short_with_dt", "unary_op_init_common",
    "init_sfpu", "acquire_dst", "release_dst", "noc_async_read_tile", "noc_async_write_tile",
)  # fmt: skip
_PATTERNS = (
    (rf"\b(?:{'|'.join(_REMOVED)})\b", "{0} was removed from the SDK"),
    (r"\b\w+_bcast_(?:rows|cols|scalar)_init_short\b", "{0} was removed from the SDK"),
    (rf"\b(?:{'|'.join(_DEPRECATED)})\b", "{0} is deprecated"),
    (r"\bInterleaved(?:Pow2)?AddrGen\w*", "{0} is deprecated; use TensorAccessor"),
    (r"\bTensorAccessor\s*(?:\(\s*\)|\w+\s*;)", "{0}: an accessor needs its arguments"),
    (r"\bDPRINT\s*<<", "{0}: DPRINT takes a format string"),
    (r"\bvoid MAIN\b|\bnamespace NAMESPACE\b", "{0}: the entry is void kernel_main()"),
    (r"#include \"(?:compute_kernel_api|dataflow_api\.h|debug/)[^\"]*\"?", "{0}: headers lie below api/"),
)
# The matrix unit's operations and the init each must run under; every one of these inits undoes the others.
_MATRIX_OPERATION = re.compile(
    r"\b(matmul_block|matmul|copy|(?:add|sub|mul)_bcast_(?:rows|cols|scalar)|add|sub|mul|reduce|transpose|unary_bcast)_init\b"
    r"|\b(matmul_block|(?:add|sub|mul)_tiles_bcast_(?:rows|cols|scalar)|(?:matmul|add|sub|mul)_tiles|(?:copy|reduce|transpose)_tile"
    r"|unary_bcast)\b(?=\s*(?:<[^;(]*>)?\()"
)


def lint(text: str, *, arch: str = "wormhole_b0", dst_tiles: int = 8) -> list[str]:
    """The faults of a kernel, each ``"line 12: ..."``, in order; empty when there are none."""
    code = _without_comments(text)
    found: list[tuple[int, str]] = []
    for rule in (_names, _barriers, _inits, _sections, _limits):
        found += rule(code, arch, dst_tiles)
    return [f"line {line}: {message}" for line, message in sorted(set(found))]


def _without_comments(text: str) -> str:
    """`text` with comments blanked, so that every line keeps its number."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.DOTALL)


def _line(code: str, position: int) -> int:
    return code.count("\n", 0, position) + 1


def _rest_of_block(code: str, position: int) -> str:
    """The text from `position` to the closing brace of its block."""
    depth = 0
    for end in range(position, len(code)):
        depth += {"{": 1, "}": -1}.get(code[end], 0)
        if depth < 0:
            return code[position:end]
    return code[position:]


def _depth(code: str, position: int) -> int:
    return code.count("{", 0, position) - code.count("}", 0, position)


def _names(code: str, arch: str, dst_tiles: int) -> Iterator[tuple[int, str]]:
    for pattern, message in _PATTERNS:
        for match in re.finditer(pattern, code):
            yield _line(code, match.start()), message.format(match[0])


def _barriers(code: str, arch: str, dst_tiles: int) -> Iterator[tuple[int, str]]:
    """One barrier per block; no page handed on before its transfer is complete."""
    for match in re.finditer(r"\basync_read_barrier\b", code):
        if match.start() < code.find("void kernel_main"):
            # A single element is waited for by the function that reads it: what arrived with it is needed at once.
            continue
        if "push_back" not in _rest_of_block(code, match.start()):
            yield _line(code, match.start()), "a read barrier for each page; wait once for the block, before push_back"
    # A kernel that reads back what it writes waits for each block.
    reads_back = re.search(r"\basync_read\(", code) is not None
    for match in re.finditer(r"\basync_write_barrier\b", code):
        if _depth(code, match.start()) > 1 and not reads_back:
            yield _line(code, match.start()), "a write barrier in a loop; flush there, and wait once at the end"
    transfers = {
        "async_read": ("async_read_barrier", "push_back"),
        "async_write": ("async_writes_flushed", "pop_front"),
    }
    pending: dict[str, bool] = dict.fromkeys(transfers, False)
    # What a function of ours transfers, it does where it is called; an element that is read has arrived by then.
    called = re.compile(r"\b(async_read|async_write|write_element)\b|\b(async_\w+)|\b(push_back|pop_front)\b")
    for match in called.finditer(code, max(code.find("void kernel_main"), 0)):
        name = "async_write" if match[0] == "write_element" else match[0]
        if name in transfers:
            pending[name] = True
        for transfer, (barrier, hand_on) in transfers.items():
            if name == barrier or name == f"{transfer}_barrier":
                pending[transfer] = False
            if name == hand_on and pending[transfer]:
                yield _line(code, match.start()), f"{hand_on} before {barrier}"
    last_write = code.rfind("async_write(")
    if last_write >= 0 and not re.search(r"async_(write|full)_barrier", code[last_write:]):
        yield _line(code, last_write), "no async_write_barrier before the kernel ends"


def _inits(code: str, arch: str, dst_tiles: int) -> Iterator[tuple[int, str]]:
    """Each operation of the matrix unit runs under its own init; reduce is undone; one start-up, first."""
    current = ""
    for match in _MATRIX_OPERATION.finditer(code):
        init, operation = match[1], match[2]
        if init:
            current = init
            continue
        wanted = operation.replace("_tiles_bcast", "_bcast").removesuffix("_tiles").removesuffix("_tile")
        if current != wanted:
            under = f"under {current}_init" if current else "without an init"
            yield _line(code, match.start()), f"{operation} runs {under}; it needs {wanted}_init"
    if (reduce := re.search(r"\breduce_init\b", code)) and not re.search(r"\breduce_uninit\b", code):
        yield _line(code, reduce.start()), "reduce_init without reduce_uninit"
    if "api/compute/" in code:
        startups = [match.start() for match in re.finditer(r"\bcompute_kernel_hw_startup(?=\s*[<(])", code)]
        first = re.search(r"\b\w+_init\b(?=\s*[<(])", code)
        if len(startups) != 1 or (first and first.start() < startups[0]):
            line = _line(code, startups[-1]) if startups else 1
            yield line, "compute_kernel_hw_startup must be called once, before any init"


def _sections(code: str, arch: str, dst_tiles: int) -> Iterator[tuple[int, str]]:
    """DST sections follow acquire, commit, wait, release."""
    order = ("acquire", "commit", "wait", "release")
    expected = 0
    for match in re.finditer(r"\btile_regs_(acquire|commit|wait|release)\b", code):
        if match[1] != order[expected]:
            yield _line(code, match.start()), f"tile_regs_{match[1]} where tile_regs_{order[expected]} must come"
            return
        expected = (expected + 1) % len(order)
    if expected:
        yield _line(code, len(code) - 1), f"no tile_regs_{order[expected]} at the end of the last section"


def _limits(code: str, arch: str, dst_tiles: int) -> Iterator[tuple[int, str]]:
    buffers = 32 if arch == "wormhole_b0" else 64
    for match in re.finditer(r"\bDataflowBuffer\s+\w+\((\d+)\)", code):
        if int(match[1]) >= buffers:
            yield _line(code, match.start()), f"circular buffer {match[1]}; {arch} has {buffers}"
    for match in re.finditer(r"\bpack_tile(?:<\w+>)?\((\d+)\s*,", code):
        if int(match[1]) >= dst_tiles:
            yield _line(code, match.start()), f"DST tile {match[1]}; this configuration has {dst_tiles}"
