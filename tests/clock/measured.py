"""Published times of silicon besides those of matmuls, and what the clock predicts for them: ``measured.json``, each
with its source. A row is predicted from what it says, its parameters and its chip, as are others of the same words.

``python -m tests.clock.measured [FILE]`` prints each row of a file of such rows, and the table by kind.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tests.clock.published import N150, P150
from tests.clock.reshard import Reshard
from tests.clock.sdk import elementwise, multicasts, spread, streams, transfers
from tests.clock.sdk_attention import Attention, decode, prefill
from tests.clock.sdk_rows import search, softmax
from tests.clock.sections import APPROXIMATE, first_cores
from ttexplore.clock.events import CoreClass
from ttexplore.clock.rates import rates_of
from ttexplore.clock.replay import replay
from ttexplore.ops.sfpu_cycles import COUNTED, sfpu_cycles
from ttexplore.target import TARGETS, Target

ROWS = Path(__file__).parent / "measured.json"
KINDS = ("dram", "noc", "multicast", "noc_trace", "eltwise", "sdpa", "norm", "reduce", "sfpu")
_TILES = {"bf16": 2048, "bfp8": 1088, "bfp4": 576}
# What the profiler calls the time of kernels is from the start on the first core to the end on the last one; the cores
# of a launch on many start within 630 to 720 cycles (tenstorrent/polaris, ttsim/perf/roofline_sdpa.py).
_STARTING = 650


@dataclass(frozen=True)
class Row:
    """A published figure: of `arch`, `what` with `params` took `value`, in `unit`."""

    kind: str
    arch: str
    what: str
    params: Mapping[str, Any]
    value: float
    unit: str
    source: str

    @property
    def target(self) -> Target:
        if self.arch.startswith("wormhole"):
            return N150
        return TARGETS["blackhole_p100"] if "p100" in self.arch else P150


def rows(path: Path = ROWS) -> list[Row]:
    fields = ("kind", "arch", "what", "params", "value", "unit", "source")
    return [Row(*(one[name] for name in fields)) for one in json.loads(path.read_text(encoding="utf-8"))]


def predicted(row: Row) -> float | None:
    """What the clock predicts for a row, in its unit; None for what it cannot express."""
    for kind, words, predict in _PREDICTIONS:
        if row.kind == kind and (found := re.search(words, row.what)):
            return predict(row, found)
    return None


def error(row: Row) -> float | None:
    value = predicted(row)
    return None if value is None else value / row.value - 1


def _cycles(classes: Sequence[CoreClass], target: Target) -> float:
    found = replay(classes, rates_of(target))
    assert not found.stuck
    return found.cycles


def _us(classes: Sequence[CoreClass], target: Target) -> float:
    return (_cycles(classes, target) + target.costs.launch_cycles) / target.clock_hz * 1e6


def _kernels_us(classes: Sequence[CoreClass], target: Target) -> float:
    starting = _STARTING if sum(len(core_class.cores) for core_class in classes) > 1 else 0
    return (_cycles(classes, target) + starting) / target.clock_hz * 1e6


def _gigabytes(count: float, cycles: float, target: Target) -> float:
    return count / cycles * target.clock_hz / 1e9


# DRAM


def _interleaved(row: Row, _: re.Match[str]) -> float:
    role, count, size = (row.params[name] for name in ("role", "transactions", "bytes"))
    return _cycles(transfers(role, "dram", count, size), row.target)


def _one_per_bank(row: Row, _: re.Match[str]) -> float:
    size, target = 16384, row.target
    cores = [(x, 0) for x in range(min(target.dram_banks, target.compute_grid[0]))]
    rate = size * 1024 / _cycles(streams("read", "bank", cores, 1024, size), target)
    return rate * target.dram_banks * target.clock_hz / 1e9


def _share(row: Row, _: re.Match[str]) -> float:
    costs = row.target.costs
    peak = costs.dram_bank_bytes_per_cycle * row.target.dram_banks
    return 100 * min(1.0, rates_of(row.target).reading(1 / row.params["page_bytes"]) / peak)


def _to_shards(row: Row, _: re.Match[str]) -> float:
    tiles = row.params["rows"] * row.params["cols"] // 1024
    target = row.target
    share = tiles // target.cores
    return _us(spread("read", target, share, _TILES[row.params["format"]]), target)


def _copied(tile_bytes: int, read: int = 1, written: int = 1) -> Callable[[Row, re.Match[str]], float]:
    """Tensors that all cores read and write, in GB/s: 256 pages in each core."""

    def rate(row: Row, _: re.Match[str]) -> float:
        target = row.target
        classes = elementwise(target, 256, tile_bytes, read, written, cycles=1)
        return _gigabytes(256 * target.cores * tile_bytes * (read + written), _cycles(classes, target), target)

    return rate


def _weights(row: Row, _: re.Match[str]) -> float:
    target = row.target
    count = 256 * target.cores * 576
    return _gigabytes(count, _cycles(spread("read", target, 256, 576), target), target)


# The NoC


def _from_all(row: Row, _: re.Match[str]) -> float:
    """A core reads a part from each of the others, `transactions` times: it sets the registers of its NoC once for each
    of them, and then starts a read in 6 cycles."""
    target, partners = row.target, row.target.cores
    target = replace(target, costs=replace(target.costs, l1_read_issue_cycles=6))
    count = partners * row.params["transactions"]
    return _cycles(transfers("read", "l1", count, row.params["bytes"] // partners), target)


def _each_from_all(row: Row, _: re.Match[str]) -> float:
    target = row.target
    cores = [(x, y) for y in range(target.compute_grid[1]) for x in range(target.compute_grid[0])]
    count = len(cores) * row.params["transactions"]
    return _cycles(streams("read", "l1", cores, count, row.params["bytes"] // len(cores)), target)


def _sent_to_all(row: Row, _: re.Match[str]) -> float:
    return _cycles(multicasts(row.target.cores, row.params["transactions"], row.params["bytes"]), row.target)


def _rate(direction: Literal["read", "write"]) -> Callable[[Row, re.Match[str]], float]:
    def rate(row: Row, _: re.Match[str]) -> float:
        count, size = 256, row.target.costs.noc_packet_bytes
        return count * size / _cycles(transfers(direction, "l1", count, size), row.target)

    return rate


def _multicast_rate(row: Row, _: re.Match[str]) -> float:
    size = row.target.costs.noc_packet_bytes
    return 256 * size / _cycles(multicasts(row.target.cores, 256, size), row.target)


def _traced(row: Row, match: re.Match[str]) -> float:
    """Cores that each read their part, page by page, of what lies in the shards of others or in DRAM. Recording slows
    the start of a transfer to 132 cycles; in all traces, the first one starts 190 cycles after the kernel."""
    count, cores, size = (row.params[name] for name in ("transfers", "cores", "transfer_bytes"))
    costs = replace(row.target.costs, l1_read_issue_cycles=132, noc_issue_cycles=132)
    target = replace(row.target, costs=costs)
    memory = "dram" if match[1].startswith("DRAM") else "l1"
    read = _cycles(streams("read", memory, list(first_cores(target, cores)), count // cores, size), target)
    latency = rates_of(target).latency["read", memory]
    return 190 + max(read, latency + Reshard.named(match[1]).link_cycles(target, row.params["bytes"], count))


# Compute


def _vector(row: Row, match: re.Match[str]) -> float | None:
    name = f"{match[1]}_tile"
    if "approx" in row.what:
        return APPROXIMATE.get(name)
    # A row with its date is of older code than what is counted.
    if name not in COUNTED or "TTI" in row.what or re.search(r"\(20\d\d-", row.what):
        return None
    return sfpu_cycles(name, row.target.arch, 32 if "fp32" in row.what or "Float32" in row.what else 16)


def _adam(row: Row, _: re.Match[str]) -> float:
    target = row.target
    m, n = (int(one) for one in row.params["shape"].split("x"))
    tiles = -(-m * n // 1024 // target.cores)
    # The update of a tile: some twenty sums and products in the vector unit, a root and a quotient.
    cycles = 8 * 214 + sfpu_cycles("sqrt_tile", target.arch) + sfpu_cycles("div_binary_tile", target.arch)
    us = _us(elementwise(target, tiles, 2048, 4, 3, cycles=cycles), target)
    return 7 * m * n * 2 / us / 1e3


# The same function (https://github.com/tenstorrent/tt-metal/pull/3659).
_ALIASES = {"prelu": "leaky_relu"}


def _activation(row: Row, match: re.Match[str]) -> float:
    """The activation of a layer, whose products are named 5376 wide, of an eighth of the tokens (PER_OP_TABLES.md)."""
    columns = 12
    target = replace(row.target, compute_grid=(columns, int(match[1]) // columns))
    tiles = -(-row.params["chunk"] // 8 // 32 * (5376 // 32) // target.cores)
    return _kernels_us(elementwise(target, tiles, 2048, 1, 1, cycles=APPROXIMATE["gelu_tile"]), target)


def _small_unary(row: Row, match: re.Match[str]) -> float | None:
    """256 tiles over all cores, without the launch: of all kernels, or of the compute kernels alone. They move more
    bytes than DRAM could in that time, so they lie in L1."""
    name = f"{_ALIASES.get(match[1], match[1])}_tile"
    if name not in COUNTED:
        return None
    target = row.target
    cycles = sfpu_cycles(name, target.arch)
    classes = elementwise(target, -(-256 // target.cores), 2048, 1, 1, cycles=cycles, memory="l1")
    if not row.what.endswith("compute"):
        return _kernels_us(classes, target)
    times = replay(classes, rates_of(target)).processors[0]
    return times["pack"].end / target.clock_hz * 1e6


# Attention, norms and reductions


def _attention(row: Row, _: re.Match[str]) -> float | None:
    """Prefill: the sizes are in the words, where there are no parameters for them."""

    def size(name: str, words: str, otherwise: int) -> int:
        said = re.search(words, row.what)
        return int(row.params.get(name) or (said[1] if said else otherwise))

    heads = re.search(r"(\d+)(?: q)? ?/ ?(\d+)(?: kv)? heads", row.what)
    seq = size("seq", r"\bS(\d+)", 0)
    if not seq:
        return None
    # Models of tt_transformers: 64 x 64 or 256 x 256, HiFi4 and a DST of 32 bits (model_config.py).
    of_model = "Llama" in row.what
    otherwise = (256 if seq >= 2048 else 64) if of_model else 128
    q_chunk, k_chunk = (size(f"{side}_chunk", rf"\b{side}(\d+)", otherwise) for side in "qk")
    fidelity = re.search(r"HiFi\d|LoFi", row.what)
    depth = size("d", r"\bd(\d+)", 128) // 32
    attention = Attention(
        *((int(heads[1]), int(heads[2])) if heads else (32, 8)), seq // 32, seq // 32, q_chunk // 32, k_chunk // 32,
        depth=depth, values=depth, fidelity=fidelity[0] if fidelity else "HiFi4" if of_model else "HiFi2",
        tile_bytes=2048 if "bf16" in row.what else 1088, causal="non causal" not in row.what,
        chained="chains" in row.what or "non causal" in row.what, wide=of_model or "fp32 dest" in row.what,
    )  # fmt: skip
    grid = re.search(r"(\d+)x(\d+)", str(row.params.get("grid", ""))) or re.search(r"(\d+)x(\d+) cores", row.what)
    cores = int(grid[1]) * int(grid[2]) if grid else None
    us = _kernels_us(prefill(row.target, attention, cores), row.target)
    return us * row.target.clock_hz / 1e6 if row.unit == "cycles" else us


def _latent_attention(row: Row, match: re.Match[str]) -> float:
    """A step of a ring of 32 chips on one of them (RingSDPA_SingleChipProxy.md): all of K with a mask, half of it for
    all of Q (up), or all of it for half of Q (down)."""
    length = int(match[1]) * 1024 // 32 // 32
    queries, keys = {"down": (length // 2, length), "up": (length, length // 2)}.get(match[5], (length, length))
    attention = Attention(
        32, 1, queries, keys, int(match[3]) // 32, int(match[4]) // 32, depth=18, values=4, causal=match[5] == "0",
        chained=match[5] != "0",
    )  # fmt: skip
    return _kernels_us(prefill(row.target, attention, int(match[2])), row.target)


def _decoding(row: Row, match: re.Match[str]) -> float:
    users, heads, kv_heads, depth = (int(match[number]) for number in range(1, 5))
    attention = Attention(
        heads, kv_heads, 1, row.params["cache"] // 32, 1, 4, depth=depth // 32, values=depth // 32,
        tile_bytes=_TILES[row.params["kv"]],
    )  # fmt: skip
    return _kernels_us(decode(row.target, attention, users), row.target)


def _stream_of_keys(row: Row, match: re.Match[str]) -> float:
    """What cores read of K and V in tiles of bfp8: each of them in bytes per cycle, or all in GB/s."""
    rate = rates_of(row.target).reading(1 / _TILES["bfp8"])
    cores = re.search(r"(\d+) cores", row.what)
    return rate / int(cores[1]) if cores and row.unit == "B/cycle" else rate * row.target.clock_hz / 1e9


def _softmax_rows(row: Row, _: re.Match[str]) -> float:
    *outer, height, width = (int(size) for size in re.findall(r"\d+", row.params["shape"]))
    tiles = -(-height // 32)
    for size in outer:
        tiles *= size
    # A report of an unnamed card; 64 cores explain what 64 rows take.
    target = N150 if row.arch.startswith("not named") else row.target
    return _kernels_us(softmax(target, tiles, -(-width // 32)), target)


def _search(row: Row, _: re.Match[str]) -> float:
    return _kernels_us(search(row.target, *(row.params[name] for name in ("rows", "n", "k"))), row.target)


_PREDICTIONS: tuple[tuple[str, str, Callable[[Row, re.Match[str]], float | None]], ...] = (
    ("dram", "^one core, interleaved DRAM", _interleaved),
    ("dram", "^one reader per bank, 12 banks|bank-adjacent", _one_per_bank),
    ("dram", "^share of channel peak by page size, one NoC", _share),
    ("dram", "^InterleavedToSharded", _to_shards),
    ("dram", "^decode matmul, bfp4", _weights),
    ("dram", "^neg on a bfp4 tensor", _copied(576)),
    ("dram", "^clone of 64 MiB, rows of 32 bf16", _copied(64)),
    ("noc", "^one core reads from all others", _from_all),
    ("noc", "^every core reads from all others", _each_from_all),
    ("noc", r"\(write\)$|one to all, unicast", _rate("write")),
    ("noc", r"\(read\)$|one from all$", _rate("read")),
    ("multicast", "^linked multicast", _sent_to_all),
    ("multicast", "multicast, linked$", _multicast_rate),
    ("noc_trace", r"(\w+_TO_\w+)$", _traced),
    ("eltwise", "^AdamW bf16", _adam),
    ("eltwise", r"^one Unary, (\d+) cores", _activation),
    ("eltwise", r"(?:trace replay: |^)(\w+)(?: of 256 tiles|$)", _small_unary),
    ("sdpa", "prefill|^(?:non )?causal", _attention),
    ("sdpa", r"^MLA (\d+)k proxy, (\d+) cores, q(\d+) k(\d+): ring_iter_(\w+)", _latent_attention),
    ("sdpa", r"^sdpa_decode, batch (\d+), (\d+)/(\d+) heads, d(\d+)", _decoding),
    ("sdpa", "K/V stream", _stream_of_keys),
    ("norm", "softmax", _softmax_rows),
    ("reduce", "^topk_large_indices", _search),
    ("sfpu", r"^(\w+)", _vector),
)


@dataclass(frozen=True)
class Summary:
    """The errors of a kind: of how many of its rows the clock predicts something, and by how much that is off."""

    kind: str
    rows: int
    errors: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(abs(one) for one in self.errors)

    @property
    def worst(self) -> float:
        return max(abs(one) for one in self.errors)


def summaries(of: Sequence[Row]) -> list[Summary]:
    made: list[Summary] = []
    for kind in KINDS:
        those = [row for row in of if row.kind == kind]
        made.append(Summary(kind, len(those), tuple(one for row in those if (one := error(row)) is not None)))
    return made


def table(of: Sequence[Row]) -> str:
    lines = ["| Kind | Rows | Predicted | Median error | Worst |", "|---|---|---|---|---|"]
    for one in summaries(of):
        told = f"{one.median:.0%} | {one.worst:.0%}" if one.errors else "- | -"
        lines.append(f"| {one.kind} | {one.rows} | {len(one.errors)} | {told} |")
    return "\n".join(lines)


def main() -> None:
    given = rows(Path(sys.argv[1])) if len(sys.argv) > 1 else rows()
    for row in given:
        off = error(row)
        told = "no prediction" if off is None else f"{off:+.0%}"
        print(f"{row.kind:9} {told:>13}  {row.value:>12} {row.unit:10} {row.arch}: {row.what} {dict(row.params)}")
    print(table(given))


if __name__ == "__main__":
    main()
