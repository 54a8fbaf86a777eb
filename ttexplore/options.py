"""The options of the passes: their meanings, defaults, accepted values and parsing, in one place.

`explore(options=...)`, `fork`, annotations in the kernel, the command line and the explorer's What if parse options in
the same way: an option is given as a value or as text, ``(8, 4)`` or ``"8x4"``. Wrong values are rejected here, before
anything is lowered; the passes reject values that do not suit the kernel or the chip.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from ttexplore.errors import UsageError, shown, unknown
from ttexplore.given import LARGEST, dictionary, flag, named, plain, read_text, whole, wholes, wrong
from ttexplore.layout_request import layout_request
from ttexplore.plan import Loader, Mode, Order, Policy, Topology
from ttexplore.record import JsonObject, OptionForm, to_json

Fidelity = Literal["LoFi", "HiFi2", "HiFi3", "HiFi4"]
Accumulate = Literal["reload", "l1"]
AccumulateDtype = Literal["auto", "float32", "bfloat16"]
Engine = Literal["auto", "fpu", "sfpu"]
Accuracy = Literal["exact", "fast"]
Epilogue = Literal["fused", "separate"]
Partials = Literal["dram", "noc", "auto"]
Core = tuple[int, int]

TOPOLOGIES: tuple[Topology, ...] = get_args(Topology)
LOADERS: tuple[Loader, ...] = get_args(Loader)
ACCURACIES: tuple[Accuracy, ...] = get_args(Accuracy)
# The functions of the kernel language that have a faster, less accurate form.
FAST_FUNCTIONS = ("exp", "exp2", "div")
POLICIES: tuple[Policy, ...] = get_args(Policy)
ORDERS: tuple[Order, ...] = get_args(Order)
# The edge of block_linear's squares if none is given.
_DEFAULT_BLOCK = 4
# Longer lists are rejected: no user writes them, and no kernel has so many items.
_MOST_ITEMS = 1 << 20
_LISTED_ITEMS = 16


@dataclass(frozen=True)
class Options:
    """The options of a lowering. None leaves the choice to the pass."""

    partials: Partials = "dram"
    layouts: Mapping[str, object] | None = None
    stages: int | None = None
    cb_depth: Mapping[str, int] | None = None
    chunk_k_tiles: int | None = None
    qk_chunk_tiles: int | None = None
    math_fidelity: Fidelity = "HiFi4"
    accumulate: Accumulate = "reload"
    accumulate_dtype: AccumulateDtype = "auto"
    dst_full_sync: bool = False
    # A policy may include the edge of its squares: block_linear(4).
    policy: Policy | str | None = None
    order: str | None = None
    cores: tuple[int, int] | None = None
    core_offset: tuple[int, int] = (0, 0)
    core_ranges: Sequence[tuple[Core, Core]] | None = None
    work_lists: Mapping[Core, Sequence[object]] | None = None
    rectangle: tuple[int, int] | None = None
    stride: int | None = None
    match: str | None = None
    mode: Mode = "global"
    # auto, all, off, or topologies by tensor.
    multicast: str | Mapping[str, Topology] = "auto"
    eltwise: Engine = "auto"
    # exact or fast, for all functions that have a fast form or by function.
    sfpu: str | Mapping[str, Accuracy] = "exact"
    # auto, both, reader, or kernels by tensor.
    loaded_by: str | Mapping[str, Loader] = "auto"
    epilogue: Epilogue = "fused"
    subblock: tuple[int, int] | None = None

    @property
    def by_name(self) -> dict[str, Any]:
        return dict(vars(self))

    @property
    def plain(self) -> JsonObject:
        """The options as the plan records them; values without a JSON form become text."""
        return {name: _plain(value) for name, value in self.by_name.items()}


DEFAULTS = Options()


def _plain(value: object) -> object:
    try:
        return to_json(value)
    except TypeError:
        return repr(value)


@dataclass(frozen=True)
class Option:
    """An option of a pass. `read` converts a given value and raises UsageError for wrong ones; `example` is a text.
    `unset` says what the pass chooses where the option is not given, if that is no value of the option."""

    name: str
    meaning: str
    read: Callable[[str, object], object]
    example: str = ""
    choices: tuple[object, ...] = ()
    policy: str = ""
    # Its values are strings, so strings are not parsed as numbers or lists.
    of_text: bool = False
    unset: str = ""

    @property
    def default(self) -> str:
        """The default as text."""
        return self.unset or option_text(DEFAULTS.plain[self.name])

    def parse(self, value: object) -> object:
        """Convert a given value; None leaves the choice to the pass. Raises UsageError."""
        value = plain(value)
        if isinstance(value, str):
            value = (value.strip() or None) if self.of_text else read_text(value)
        return None if value is None else self.read(self.name, value)


def _number(name: str, value: object) -> int:
    return whole(name, value)


def _pair(least: int, first: str, second: str) -> Callable[[str, object], tuple[int, int]]:
    def read(name: str, value: object) -> tuple[int, int]:
        takes = f"({first}, {second}), integers of at least {least}, for example {OPTIONS[name].example}"
        if not isinstance(value, list | tuple):
            is_count = isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST
            raise wrong(name, value, takes, str((value, least)) if is_count else "")
        try:
            return cast(tuple[int, int], wholes(name, cast(object, value), 2, least=least))
        except UsageError:
            raise wrong(name, cast(object, value), takes) from None

    return read


def _one_of(*names: str) -> Callable[[str, object], str]:
    def read(name: str, value: object) -> str:
        return named(name, value, names)

    return read


def _policy(name: str, value: object) -> str:
    text = _text(name, value, POLICIES)
    parse_policy(text)
    if "(" in text:
        parse_order(text)
    return text


def _order(name: str, value: object) -> str:
    text = _text(name, value, ORDERS)
    parse_order(text)
    return text


def _text(name: str, value: object, example: Sequence[str]) -> str:
    if not isinstance(value, str):
        raise wrong(name, value, f"one of {', '.join(example)}")
    return value


def fast_functions(sfpu: str | Mapping[str, Accuracy]) -> frozenset[str]:
    """The functions that the option `sfpu` asks to be fast."""
    if isinstance(sfpu, str):
        return frozenset(FAST_FUNCTIONS if sfpu == "fast" else ())
    return frozenset(function for function, accuracy in sfpu.items() if accuracy == "fast")


def parse_policy(text: str) -> Policy:
    """The policy, without the edge of its squares. Raises UsageError for any other text."""
    base, parenthesis, _ = text.replace("-", "_").partition("(")
    policies: dict[str, Policy] = {policy: policy for policy in POLICIES}
    policy = policies.get(base)
    if policy is None or (parenthesis and policy != "block_linear"):
        raise unknown("policy", text, POLICIES)
    return policy


def parse_order(text: str) -> tuple[Order, int | None]:
    """The order and, for ``block_linear(k)``, the edge of its squares. Raises UsageError for any other text."""
    base, parenthesis, rest = text.replace("-", "_").partition("(")
    orders: dict[str, Order] = {order: order for order in ORDERS}
    name = orders.get(base)
    if name is None:
        raise unknown("order", text, [*ORDERS, "block_linear(k)"])
    if name != "block_linear":
        if parenthesis:
            raise UsageError("U009", f"the order {name} takes no number", hint=f"write {name}")
        return name, None
    if not parenthesis:
        return name, _DEFAULT_BLOCK
    edge = re.fullmatch(r"0*([1-9][0-9]{0,8})\)", rest)
    if edge is None:
        raise UsageError(
            "U009", f"{shown(text)} has no valid square size", hint="write block_linear(k) with k of at least 1"
        )
    return name, int(edge[1])


def _tensor(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise wrong(name, value, "the name of a tensor that is sharded in L1, for example A")
    return value


def _core(value: object) -> Core:
    value = read_text(value) if isinstance(value, str) else value
    if not isinstance(value, list | tuple):
        raise wrong("a core", value, "(x, y)")
    return cast(tuple[int, int], wholes("a core", cast(object, value), 2, least=0))


def _core_ranges(name: str, value: object) -> tuple[tuple[tuple[int, int], tuple[int, int]], ...]:
    if not isinstance(value, list | tuple):
        raise wrong(name, value, f"rectangles of cores, for example {OPTIONS[name].example}")
    return tuple(_core_range(item) for item in cast(Sequence[object], value))


def _core_range(value: object) -> tuple[tuple[int, int], tuple[int, int]]:
    try:
        first, last = cast(Sequence[object], value)
        return _core(first), _core(last)
    except (TypeError, ValueError, UsageError):
        raise UsageError(
            "U007",
            f"{shown(value)} is not a range of cores",
            hint="write its corners, both included: ((x0, y0), (x1, y1))",
        ) from None


def _work_lists(name: str, value: object) -> dict[tuple[int, int], list[object]]:
    if not isinstance(value, Mapping | list | tuple):
        raise wrong(name, value, "{(x, y): [item, ...]} or [((x, y), [item, ...]), ...]")
    pairs = cast(Sequence[object], value.items() if isinstance(value, Mapping) else value)
    work: dict[tuple[int, int], list[object]] = {}
    for entry in pairs:
        try:
            at, items = cast(tuple[object, object], entry)
            core = _core(at)
            if not isinstance(items, list | tuple | range) or len(cast(Sequence[object], items)) > _MOST_ITEMS:
                raise ValueError
            listed = list(cast(Sequence[object], items))
        except (TypeError, ValueError, OverflowError, UsageError):
            raise UsageError(
                "U008",
                f"{shown(entry)} is not a work list",
                hint="write {(x, y): [item, ...]} or [((x, y), [item, ...]), ...]",
            ) from None
        if core in work:
            raise UsageError("U008", f"core {core} has two work lists", hint="merge them")
        work[core] = listed
    return work


def _depths(name: str, value: object) -> dict[str, int]:
    depths = dictionary(name, value, "the names of circular buffers in the plan", OPTIONS[name].example)
    return {buffer: whole(f"the depth of {buffer}", depth) for buffer, depth in depths.items()}


def _layouts(name: str, value: object) -> dict[str, object]:
    layouts = dictionary(name, value, "the names of tensors", OPTIONS[name].example)
    for tensor, asked in layouts.items():
        layout_request(tensor, asked)
    return layouts


def _multicast(name: str, value: object) -> str | dict[str, str]:
    return _by_tensor(name, value, _MULTICASTS, "topology", TOPOLOGIES)


def _loaded_by(name: str, value: object) -> str | dict[str, str]:
    return _by_tensor(name, value, _LOADED_BY, "kernel that loads", LOADERS)


def _sfpu(name: str, value: object) -> str | dict[str, str]:
    asked = _by_name(name, value, ACCURACIES, "accuracy", ACCURACIES, "functions")
    if isinstance(asked, dict):
        for function in asked:
            named("function with a fast form", function, FAST_FUNCTIONS)
    return asked


def _by_tensor(
    name: str, value: object, words: Sequence[str], noun: str, values: Sequence[str]
) -> str | dict[str, str]:  # fmt: skip
    return _by_name(name, value, words, noun, values, "tensors")


def _by_name(
    name: str, value: object, words: Sequence[str], noun: str, values: Sequence[str], keys: str
) -> str | dict[str, str]:
    """One of the words, which are about all tensors or functions, or one of the values for each of some of them."""
    about, example = f"the names of {keys}", OPTIONS[name].example
    if isinstance(value, Mapping):
        asked = dictionary(name, cast(object, value), about, example)
        return {key: named(noun, word, values) for key, word in asked.items()}
    if not isinstance(value, str):
        raise wrong(name, value, f"one of {', '.join(words)}, or a dictionary keyed by {about}, for example {example}")
    if value not in words:
        error = unknown(name, value, words)
        raise UsageError("U001", error.message, hint=f"{error.hint}, or name {keys}, as in {example}")
    return value


_MULTICASTS = ("auto", "all", "off")
_LOADED_BY = ("auto", "both", "reader")
_YES_OR_NO = (False, True)

# A and A_shared are a tensor and a circular buffer of the example.
OPTIONS: dict[str, Option] = {
    option.name: option
    for option in (
        Option("partials", "how sums over work items are added up: by one core in DRAM, by several cores that "
               "hand them on over the NoC, or auto: as is predicted to be faster", _one_of(*get_args(Partials)), "",
               get_args(Partials), of_text=True),
        Option("layouts", "how tensors are stored: interleaved or sharded, in DRAM or L1", _layouts,
               '{"A": {"shard": "height"}}', unset="interleaved tiles in DRAM"),
        Option("stages", "blocks per circular buffer that the reader fills", _number, "3",
               unset="num_stages in T.Pipelined, 2 elsewhere"),
        Option("cb_depth", "blocks per circular buffer, by name", _depths, '{"A_shared": 3}', unset="as stages says"),
        Option("chunk_k_tiles", "tiles along K in one block of an operand of a product", _number, "2",
               unset="as stages says"),
        Option("qk_chunk_tiles", "tiles of the sequence in the buffers of operands of chained products, as K and V",
               _number, "4", unset="as stages says"),
        Option("math_fidelity", "how many bits of the mantissas the FPU multiplies", _one_of(*get_args(Fidelity)), "",
               get_args(Fidelity), of_text=True),
        Option("accumulate", "how an accumulator that DST cannot hold is kept across a loop",
               _one_of(*get_args(Accumulate)), "", get_args(Accumulate), of_text=True),
        Option("accumulate_dtype", "the width of DST", _one_of(*get_args(AccumulateDtype)), "",
               get_args(AccumulateDtype), of_text=True),
        Option("dst_full_sync", "DST as one piece, twice as large, without overlapping math and packing", flag, "",
               _YES_OR_NO),
        Option("policy", "how work items are assigned to cores", _policy, "", POLICIES, of_text=True,
               unset="contiguous, rectangular where cores that share inputs are then faster, or balanced where items "
               "take different times"),
        Option("order", "the order in which work items are assigned", _order, "column_major", of_text=True,
               unset="row_major, or that of the policy"),
        Option("cores", "columns and rows of cores to use", _pair(1, "columns", "rows"), "(2, 2)", unset="all"),
        Option("core_offset", "the first core to use", _pair(0, "x", "y"), "(1, 0)"),
        Option("core_ranges", "the cores to use, as rectangles", _core_ranges, "[((0, 0), (1, 1))]",
               unset="as cores and core_offset say"),
        Option("work_lists", "the work items of each core", _work_lists, policy="explicit", unset="none"),
        Option("rectangle", "columns and rows of blocks per core", _pair(1, "columns", "rows"), "(2, 1)",
               policy="rectangular", unset="an even division among the cores"),
        Option("stride", "number of cores that work items are distributed over", _number, "2", policy="strided",
               unset="all cores"),
        Option("match", "the tensor whose shards decide which core does which work", _tensor, "A", policy="match_shard",
               of_text=True, unset="the only sharded tensor"),
        Option("mode", "whether cores work on their own shards in place", _one_of(*get_args(Mode)), "",
               get_args(Mode), of_text=True),
        Option("multicast", "which inputs are read once for several cores and sent to them: auto (where that is "
               "faster), all, off, or by tensor, to the cores of a row, of a column or of the grid", _multicast,
               '{"A": "row"}'),
        Option("eltwise", "the engine for element-wise operations", _one_of(*get_args(Engine)), "",
               get_args(Engine), of_text=True),
        Option("sfpu", "whether functions are exact, or fast where the chip has a faster form that is a few percent "
               "off, for all or by function, as {'exp2': 'fast'}", _sfpu, "", ACCURACIES),
        Option("loaded_by", "which kernel loads the inputs: the reader, both, each over its own NoC, auto (both where "
               "that is faster), or by tensor, the reader or the writer", _loaded_by, '{"B": "writer"}'),
        Option("epilogue", "where element-wise operations on a product run: in DST, or after it is packed",
               _one_of(*get_args(Epilogue)), "", get_args(Epilogue), of_text=True),
        Option("subblock", "rows and columns of tiles that are computed in one section", _pair(1, "rows", "columns"),
               "(1, 2)", unset="the cheapest"),
    )
}  # fmt: skip


def parse_options(values: object) -> dict[str, Any]:
    """Parse options, by name; options that are left to the passes are omitted.

    Raises UsageError if `values` is not a dictionary, for unknown names, and for wrong values; the error names the
    option, the value, and the accepted values.
    """
    if values is None:
        return {}
    values = plain(values)
    if not isinstance(values, Mapping):
        raise wrong("options", values, "a dictionary keyed by names, for example {'policy': 'strided'}")
    for name in (asked := dict(cast(Mapping[str, object], values))):
        if name not in OPTIONS:
            raise UsageError(
                "U001", f"there is no option {shown(name)}", hint=unknown("option", name, sorted(OPTIONS)).hint
            )
    parsed = {name: OPTIONS[name].parse(value) for name, value in asked.items()}
    return {name: value for name, value in parsed.items() if value is not None}


def option_text(value: object) -> str:
    """Format a recorded value as option text: strings unchanged, others as JSON, except that core keys are tuples."""
    if value is None or isinstance(value, str):
        return value or ""
    return re.sub(r'"(\(\d+, \d+\))":', r"\1:", json.dumps(value))


def option_forms(work_items: int) -> dict[str, OptionForm]:
    """The form in which each option is given, for a kernel with `work_items` work items."""
    items = [str(item) for item in range(min(work_items, _LISTED_ITEMS + 1))]
    if work_items > _LISTED_ITEMS:
        items = [*items[:2], "...", str(work_items - 1)]
    half = -(-len(items) // 2)
    lists = f"{{(0, 0): [{', '.join(items[:half])}], (1, 0): [{', '.join(items[half:])}]}}"
    return {
        option.name: OptionForm(option.choices, lists if option.name == "work_lists" else option.example, option.policy)
        for option in OPTIONS.values()
    }


__all__ = [
    "DEFAULTS",
    "OPTIONS",
    "Option",
    "Options",
    "fast_functions",
    "option_forms",
    "option_text",
    "parse_options",
    "parse_order",
    "parse_policy",
]
