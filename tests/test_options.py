"""Options: every hostile value is refused in one way or understood, and what is chosen shows."""

from __future__ import annotations

import math
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.sums import split_k
from tests.passes.test_chunks import attention
from tests.said import said
from ttexplore import Exploration
from ttexplore.cli import main
from ttexplore.errors import TTExploreError, UsageError
from ttexplore.options import DEFAULTS, OPTIONS, parse_options
from ttexplore.passes.pipeline import PIPELINE
from ttexplore.target import get_target
from ttexplore.tenstorrent import apply_tt_defaults

GEMM = "notebooks/kernels/gemm.py::matmul"


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("not for you")


def endless() -> list[Any]:
    one: list[Any] = []
    one.append(one)
    return one


SCALARS: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3, 8, 2**31, 2**63, 10**30, 10**5000, -(2**70), 1.5, 2.0, -0.0, math.nan,
    math.inf, -math.inf, 1e308, 1j, np.int64(2), np.int8(-1), np.uint64(2**63), np.float32(2.5), np.float64("nan"),
    np.bool_(True), np.str_("strided"), np.array(3), np.array([2, 2]), np.array(["x", None], dtype=object),
    np.zeros((2, 0)), ml_dtypes.bfloat16(2), np.datetime64("2020-01-01"), "", " ", "2", "2.5", "8x8", "8x", "xx",
    "0x0", "4,4", ",", "banana", "None", "null", "NaN", "true", "(2, 2)", "[[1]]", "{}", '{"A": 1}', "{[1]: 2}",
    "[" * 300, "9" * 5000, "\0", "é\n", "lambda: 1", "x" * 100_000, "block_linear(", "block_linear(0)",
    "block_linear(²)", "strided(2)", b"2", bytearray(b"2"), object(), Unprintable(), object, len, lambda: 1, sys,
    Path("x"), slice(2), range(3), range(10**30), iter([1]), ...,
)  # fmt: skip
CONTAINERS: tuple[Any, ...] = (
    (), [], {}, set(), {1, 2}, frozenset({3}), (1,), (2, 2), [2, 2], (2, 2, 2), (0, 0), (-1, 2), (1.5, 2), ("2", "2"),
    (True, True), (None, None), ((1, 1), (2, 2)), [((0, 0), (1, 1))], [((0, 0), (1, 1)), ((1, 1), (2, 2))], [(0, 1)],
    [((9, 9), (99, 99))], [[[0, 0], [1, 1]]], [((0, 0), None)], [((10**30, 0), (10**30, 0))], endless(),
    [[[[[[[[[[1]]]]]]]]]], {"A": 1}, {"A": "L1"}, {"A": "l2"}, {"A": None}, {"A": {}}, {"A": {"memory": 5}},
    {"A": {"shard": "hight"}}, {"A": {5: 5}}, {"A": {"shard": "height", "grid": [0]}},
    {"A": {"shard": "height", "grid": "x"}}, {"A": {"grid": {1}}}, {"A": {"nd_shard": 5}},
    {"A": {"nd_shard": {"axes": [0], "grid": [0], "shard_shape_elems": [32, 32]}}},
    {"A": {"nd_shard": {"axes": [0], "grid": [2], "shard_shape_elems": [0]}}},
    {"A": {"nd_shard": {"axes": "x", "grid": 1}}}, {"A": {"nd_shard": {"axes": [9], "grid": [2]}}},
    {"A": {"nd_shard": {"axes": [0], "grid": [2], "align_tiles": "yes"}}}, {"A": {"tile_shape": 5}},
    {"A": {"tile_shape": [16, 16]}}, {"A": {"dtype": 5}}, {"A": {"dtype": "bfp9"}}, {"A": {"halo": [1]}},
    {"A": {"dtype": np.float32}}, {"A": {"order": ["row_major"]}}, {"A": {"layout": None}},
    {"A": {"page": 1, "through": 2}}, {"A": T.TTShard(0, placement="L1")}, {"A": {"memory": "L1", "shrd": 1}},
    {"Z": "L1"}, {5: "L1"}, {None: None}, {("A",): 1}, {"A_shared": 3}, {"A_shared": 2.5}, {"A_shared": "3"},
    {"A_shared": 10**30}, {"A_shared": np.int64(3)}, {"A_shred": 3}, {"A_shared": {}}, {"A_shared": True},
    {(0, 0): [0]}, {(0, 0): 0}, {(0, 0): [0, 0]}, {(0, 0): {0}}, {"(0, 0)": [0, 1, 2, 3]},
    {(0, 0): [[0, 0], [1, 0], (0, 1), (1, 1)]}, {(0, 0): [None]}, {(0, 0): [True]}, {(0, 0): ["0"]}, {(0,): [0]},
    {0: [0]}, {(0, 0): range(10**12)}, {(0, 0): np.arange(4)},
    {(np.int64(0), np.int64(0)): [np.int64(n) for n in range(4)]}, {(99, 99): [0, 1, 2, 3]}, {(-1, 0): [0]},
    [((0, 0), [0]), ((0, 0), [1])], [((0, 0), [0, 1, 2, 3])], [5], [[5, 5]], [(0, 0, 0)], OrderedDict(A="L1"),
    {"A": [1, 2]}, {"A": [[["L1"]]]}, {"A": "x" * 10_000},
)  # fmt: skip
HOSTILE = (*SCALARS, *CONTAINERS)


@T.prim_func
def added(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), C: T.Tensor((64, 64), "bfloat16")):
    with T.Kernel(1, 2) as (bx, by):
        A_shared = T.alloc_shared((32, 64), "bfloat16")
        B_shared = T.alloc_shared((32, 64), "bfloat16")
        C_local = T.alloc_fragment((32, 64), "bfloat16")
        T.copy(A[by * 32, bx * 64], A_shared)
        T.copy(B[by * 32, bx * 64], B_shared)
        for i, j in T.Parallel(32, 64):
            C_local[i, j] = A_shared[i, j] + B_shared[i, j]
        T.copy(C_local, C[by * 32, bx * 64])


@pytest.fixture(scope="module")
def gemm() -> Exploration:
    return ttx.explore(GEMM, M=64, N=64, K=32, block_M=32, block_N=32, block_K=32)


def test_every_option_of_a_pass_has_its_reading() -> None:
    """And one default, in the order of the passes, which is that of the plan."""
    assert list(OPTIONS) == [name for step in PIPELINE for name in step.options] == list(DEFAULTS.by_name)
    for name, default in DEFAULTS.by_name.items():
        assert OPTIONS[name].parse(default) == default
        assert OPTIONS[name].meaning


def outcome(make: Callable[[], Any]) -> TTExploreError | None:
    """The error of ours that it ends in, if it does; any other error is raised."""
    try:
        return getattr(make(), "error", None)
    except TTExploreError as error:
        return error


@pytest.mark.parametrize("name", OPTIONS)
def test_hostile_values(name: str, gemm: Exploration) -> None:
    """Each is rejected with a code and with what to do; or it is read, and the kernel is lowered or rejected so."""
    for value in HOSTILE:
        error = outcome(lambda value=value: OPTIONS[name].parse(value))
        if error is None and OPTIONS[name].parse(value) is not None:
            error = outcome(lambda value=value: gemm.fork(**{name: value}))
        if error is not None:
            assert error.code, error.message
            assert error.hint, error.message
            assert len(str(error)) < 700, error.message


@pytest.mark.parametrize(
    "text", ["block_linear(", "block_linear()", "block_linear(2", "block_linear(2))", "block_linear(2)x"]
)
def test_half_a_square_of_blocks_is_refused(text: str) -> None:
    for name in ("order", "policy"):
        with pytest.raises(UsageError, match="has no valid square size"):
            OPTIONS[name].parse(text)


@pytest.mark.parametrize("text", ["z_order(", "row_major()"])
def test_an_order_without_a_number_takes_no_parentheses(text: str) -> None:
    with pytest.raises(UsageError, match="takes no number"):
        OPTIONS["order"].parse(text)


def test_the_same_words_everywhere(gemm: Exploration, capsys: pytest.CaptureFixture[str]) -> None:
    """Python, the command line and fork say the same of a wrong value, and naming an option that there is not."""
    for options in ({"cores": "banana"}, {"stages": "1.5"}, {"polcy": "strided"}, {"math_fidelity": "hifi2"}):
        said = [str(outcome(lambda given=options: parse_options(given)))]
        said.append(str(outcome(lambda given=options: ttx.explore(GEMM, options=given))))
        said.append(str(outcome(lambda given=options: gemm.fork(**given))))
        [(name, text)] = options.items()
        assert main(["run", GEMM, "--option", f"{name}={text}"]) == 2
        said.append(capsys.readouterr().err.strip().removeprefix("UsageError: "))
        assert len(set(said)) == 1, said
        assert name in said[0]
    assert "did you mean HiFi2?" in said[0]


@pytest.mark.parametrize("options", [5, "stages", [("stages", 2)], {5: 1}, {None: 1}, {("stages",): 2}, {"": 1}])
def test_what_are_no_options(options: Any) -> None:
    with pytest.raises(UsageError):
        ttx.explore(GEMM, options=options)


@pytest.mark.parametrize(
    ("name", "given", "means"),
    [
        ("cores", "8x4", (8, 4)), ("cores", "8,4", (8, 4)), ("cores", [np.int64(8), 4], (8, 4)),
        ("cores", np.array([8, 4]), (8, 4)), ("stages", np.int64(2), 2), ("stages", " 3 ", 3), ("stages", "", None),
        ("dst_full_sync", np.bool_(True), True), ("dst_full_sync", "false", False),
        ("policy", np.str_("strided"), "strided"),
        ("match", "5", "5"), ("work_lists", '{"(0, 0)": [0, 1]}', {(0, 0): [0, 1]}),
        ("order", "block-linear(2)", "block-linear(2)"),
        ("core_ranges", "[[[0, 0], [1, 1]]]", (((0, 0), (1, 1)),)), ("cb_depth", {"a": np.int8(3)}, {"a": 3}),
    ],
)  # fmt: skip
def test_values_and_texts(name: str, given: Any, means: Any) -> None:
    read = OPTIONS[name].parse(given)
    assert read == means
    assert type(read) is type(means)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("cores", 8, "cores is 8\n  hint: did you mean (8, 1)? cores takes (columns, rows), integers of at least 1"),
        ("stages", 1.5, "stages is 1.5\n  hint: did you mean 2? stages takes a whole number of at least 1"),
        ("stages", True, "stages is True\n  hint: did you mean 1? stages takes"),
        ("stages", 10**4000, "stages is 1000000"),
        ("dst_full_sync", 1, "dst_full_sync is 1\n  hint: did you mean True?"),
        ("policy", "Strided", "there is no policy 'Strided'\n  hint: did you mean strided?"),
        ("policy", 5, "policy is 5\n  hint: policy takes one of contiguous"),
        ("cb_depth", 3, "cb_depth is 3\n  hint: cb_depth takes a dictionary keyed by the names of circular buffers"),
        ("cb_depth", {"a": 2.5}, "the depth of a is 2.5\n  hint: did you mean 2?"),
        ("layouts", {"A": {"memry": "L1"}}, "there is no key of the layout of A 'memry'\n  hint: did you mean memory?"),
        ("layouts", {"A": 5}, "the layout of A is 5\n  hint: the layout of A takes a TTShard"),
        ("core_ranges", 5, "core_ranges is 5\n  hint: core_ranges takes rectangles of cores"),
        ("match", ["A"], "match is ['A']\n  hint: match takes the name of a tensor"),
    ],
)  # fmt: skip
def test_messages(name: str, given: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        OPTIONS[name].parse(given)
    assert str(caught.value).startswith(message)


ARGUMENTS: dict[str, Callable[[Exploration, Any], Any]] = {
    "seed": lambda ex, value: ex.run(seed=value, backend="interpreter"),
    "backend": lambda ex, value: ex.run(backend=value),
    "arithmetic": lambda ex, value: ex.run(arithmetic=value, backend="interpreter"),
    "time_limit_seconds": lambda ex, value: ex.run(time_limit_seconds=value, backend="interpreter"),
    "device": lambda ex, value: ex.run(device=value, backend="interpreter"),
    "inputs": lambda ex, value: ex.run(value, backend="interpreter"),
    "one input": lambda ex, value: ex.run([value, value], backend="interpreter"),
    "named input": lambda ex, value: ex.check({"A": value, "B": value}),
    "sizes": lambda ex, value: ex.reference(sizes=value),
    "code": lambda ex, value: ex.timeline(code={"compute": value}) if not isinstance(value, str) else None,
    "target": lambda ex, value: ex.fork(target=value),
    "grid": lambda _, value: get_target("wormhole_n150", grid=value),
    "harvested": lambda _, value: get_target("wormhole_n150", harvested=value),
    "at": lambda ex, value: ex.fork(at=value, policy="strided"),
    "step": lambda ex, value: ex.steps[value],
    "kind": lambda ex, value: ex.inputs(kind=value),
    "kernel": lambda _, value: ttx.explore(value),
    "graph": lambda ex, value: ex.dot(value),
    "line": lambda ex, value: ex.history(value),
    "text": lambda ex, value: ex.find(value),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_hostile_arguments(name: str, gemm: Exploration) -> None:
    for value in HOSTILE:
        error = outcome(lambda value=value: ARGUMENTS[name](gemm, value))
        assert error is None or (error.code and error.hint), str(error)


@pytest.mark.parametrize("value", ["x", 64.5, None, True, [64], {}, -64, 0, 10**30, math.nan, b"64", np.array([64])])
def test_hostile_kernel_arguments(value: Any) -> None:
    error = outcome(lambda: ttx.explore(GEMM, M=value, N=64, K=32))
    assert error is not None or value is True
    assert error is None or error.code, str(error)


def test_numbers_of_numpy_are_kernel_arguments() -> None:
    sizes: dict[str, Any] = {"M": np.int64(64), "N": np.uint8(64), "K": np.int32(32)}
    seed: Any = np.int64(3)
    exploration = ttx.explore(GEMM, **sizes)
    assert exploration.plan.layouts[0].shape == (64, 32)
    assert exploration.run(seed=seed, backend=np.str_("interpreter")).passed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seed", "-1"], "seed is -1\n  hint: did you mean 0? seed takes a whole number from 0 to"),
        (["--seed", "1.5"], "argument --seed: invalid int value: '1.5'"),
        (["--option", "stages=0"], "stages is 0"),
        (["--option", "cores=0x2"], "cores is (0, 2)"),
        (
            ["--option", 'cb_depth={"a": 3}'],
            "there is no circular buffer 'a'\n  hint: use one of C_local_out, A_shared",
        ),
        (["--grid", "0x2"], "wormhole_n150 has 8x9 workers, not 0x2"),
        (["--inputs", "onse"], "there is no kind of inputs 'onse'\n  hint: did you mean ones?"),
    ],
)
def test_wrong_words_are_wrong_use(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run", "check"):
        assert main([command, GEMM, "M=64", "N=64", "K=32", *words]) == 2
        assert capsys.readouterr().err.startswith(f"UsageError: {message}")


def test_a_wrong_option_that_a_pass_rejects_is_wrong_use_of_show_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", GEMM, "M=64", "N=64", "K=32", "--option", 'layouts={"Z": "L1"}']) == 2
    assert "there is no tensor 'Z'" in capsys.readouterr().out


def test_help_lists_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["show", "--help"])
    shown = capsys.readouterr().out
    for name, one in OPTIONS.items():
        assert f"  {name} " in shown
        assert one.meaning in shown


ANNOTATIONS: dict[str, Callable[[Any], Any]] = {
    **{
        f"schedule {key}": lambda value, key=key: T.annotate_tt_schedule(added, {key: value})
        for key in (
            "policy", "order", "rect", "stride", "chunk_k_tiles", "qk_chunk_tiles", "stages", "cb_depth", "cores",
            "core_offset", "core_ranges",
        )
    },
    **{
        f"layout {key}": lambda value, key=key: T.annotate_tt_layout(added, {"A": {key: value}})
        for key in (
            "memory", "layout", "dtype", "tile_shape", "shard", "grid", "order", "nd_shard", "halo", "page", "through",
        )
    },
    **{
        f"nd_shard {key}": lambda value, key=key: T.annotate_tt_layout(
            added, {"A": {"nd_shard": {"axes": [0], "grid": [2], key: value}}}
        )
        for key in ("axes", "grid", "shard_shape_elems", "order", "align_tiles", "projected_grid")
    },
    **{
        f"TTShard {key}": lambda value, key=key: T.TTShard(**dict[str, Any]({"axis": 0, key: value}))
        for key in ("axis", "tiles", "placement", "order", "faces")
    },
    "schedule": lambda value: T.annotate_tt_schedule(added, value),
    "layouts": lambda value: T.annotate_tt_layout(added, value),
    "sharding": lambda value: T.annotate_tt_sharding(added, {"A": value}),
    "defaults": lambda value: apply_tt_defaults(added, options=value),
    "comparison": lambda value: ttx.compare(value, value),
}  # fmt: skip


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_hostile_annotations(name: str) -> None:
    for value in HOSTILE:
        error = outcome(lambda value=value: ANNOTATIONS[name](value))
        assert error is None or (error.code and error.hint), str(error)


def test_a_wrong_annotation_is_rejected_at_its_line() -> None:
    with pytest.raises(UsageError, match="there is no policy 'stried'") as caught:

        @T.prim_func
        def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
            with T.Kernel(1, 2) as (bx, by):
                T.annotate_tt_schedule(policy="stried")
                A_shared = T.alloc_shared((32, 64), "bfloat16")
                T.copy(A[by * 32, bx * 64], A_shared)
                T.copy(A_shared, B[by * 32, bx * 64])

    assert caught.value.span is not None
    assert "did you mean strided?" in caught.value.hint


# What options change


HEIGHT = {"shard": "height"}
SHARDED: dict[str, Any] = {"policy": "match_shard", "layouts": {"A": HEIGHT}, "cores": (1, 2)}


def items(ex: Exploration) -> list[tuple[int, ...]]:
    """The work items of each core."""
    assert ex.plan.partition is not None
    return [(core.x, core.y, *ex.plan.partition.items_of(core)) for core in ex.plan.partition.cores]


def compute(name: str) -> Callable[[Exploration], Any]:
    return lambda ex: getattr(ex.plan.compute, name)


def depth(name: str) -> Callable[[Exploration], Any]:
    return lambda ex: ex.plan.buffer(name).stages


# For each option: a value, other options that go with it, and what differs with it and without it.
EFFECTS: dict[str, tuple[Any, dict[str, Any], Callable[[Exploration], Any]]] = {
    "layouts": ({"A": "L1"}, {}, lambda ex: ex.plan.layout("A").memory),
    "stages": (4, {}, depth("A_shared")),
    "cb_depth": ({"C_local_out": 3}, {}, depth("C_local_out")),
    "chunk_k_tiles": (3, {}, depth("B_shared")),
    "qk_chunk_tiles": (4, {}, depth("k")),
    "math_fidelity": ("LoFi", {}, compute("math_fidelity")),
    "accumulate": ("l1", {}, lambda ex: "pack_reconfig_l1_acc" in ex.code["compute"].text),
    "accumulate_dtype": ("bfloat16", {}, compute("fp32_dest_acc_en")),
    "dst_full_sync": (True, {}, compute("dst_tiles")),
    "policy": ("strided", {"cores": (2, 1)}, items),
    "order": ("column_major", {"cores": (2, 1)}, items),
    "cores": ((2, 1), {}, items),
    "core_offset": ((1, 2), {}, items),
    "core_ranges": ([((3, 3), (3, 4))], {}, items),
    "work_lists": ({(0, 0): [3, 1, 2, 0]}, {}, items),
    "rectangle": ((2, 1), {"policy": "rectangular"}, items),
    "stride": (3, {"policy": "strided"}, items),
    "match": ("B", SHARDED | {"layouts": {"B": {"shard": "height"}}}, lambda ex: ex.plan.options["match"]),
    "multicast": ("all", {"policy": "rectangular"}, lambda ex: ex.plan.shared),
    "loaded_by": ({"B": "writer"}, {}, lambda ex: ex.plan.buffer("B_shared").producer),
    "partials": ("noc", {}, lambda ex: ex.plan.partials),
    "mode": ("local_shard", SHARDED, lambda ex: ex.plan.buffer("A_shared").shard_of),
    "eltwise": ("sfpu", {}, compute("fp32_dest_acc_en")),
    "sfpu": ({"exp": "fast"}, {}, compute("fast")),
    "epilogue": ("separate", {}, compute("reasons")),
    "subblock": ((1, 1), {}, lambda ex: ex.code["compute"].text),
}


@pytest.fixture(scope="module")
def lowerings() -> dict[str, Exploration]:
    """A product of 2 x 2 blocks with an accumulator larger than DST; a sum of blocks, for what products do not have;
    and attention, for what chained products have."""
    product = ttx.explore(GEMM, M=256, N=256, K=128, block_M=128, block_N=128, block_K=32)
    partial = ttx.explore(split_k(32, 32, 64, 2))
    return {"product": product, "sum": ttx.explore(added), "attention": ttx.explore(attention()), "partial": partial}


@pytest.mark.parametrize("name", OPTIONS)
def test_what_an_option_changes(name: str, lowerings: dict[str, Exploration]) -> None:
    value, others, figure = EFFECTS[name]
    kinds = {
        "qk_chunk_tiles": "attention",
        "partials": "partial",
        "eltwise": "sum",
        "sfpu": "attention",
        "mode": "sum",
        "match": "sum",
    }
    of = lowerings[kinds.get(name, "product")]
    without, with_it = of.fork(**others), of.fork(**others, **{name: value})
    assert without.error is None, str(without.error)
    assert with_it.error is None, str(with_it.error)
    assert figure(with_it) != figure(without)


def test_match_decides_between_tensors(lowerings: dict[str, Exploration]) -> None:
    layouts: Any = {"A": HEIGHT, "B": {"shard": "height", "grid": [1]}}
    by_a, by_b = (lowerings["sum"].fork(**(SHARDED | {"layouts": layouts, "match": name})) for name in "AB")
    assert items(by_a) == [(0, 0, 0), (0, 1, 1)]
    assert items(by_b) == [(0, 0, 0, 1)]


def test_stages_of_a_pipelined_loop() -> None:
    """The option is stronger than num_stages, single depths are stronger than the option, and the plan says so."""
    sizes: dict[str, Any] = {"M": 64, "N": 64, "K": 128, "block_M": 32, "block_N": 32, "block_K": 32}

    def depths(**options: Any) -> tuple[dict[str, int], str]:
        plan = ttx.explore(GEMM, options=options, **sizes).plan
        return {one.name: one.stages for one in plan.buffers if one.producer != "compute"}, "\n".join(said(plan))

    assert depths()[0] == {"A_shared": 2, "B_shared": 2}
    assert "stages" not in depths()[1]
    found, notes = depths(stages=1)
    assert found == {"A_shared": 1, "B_shared": 1}
    assert "stages=1 is the depth of A_shared, B_shared, instead of num_stages=2 of T.Pipelined at" in notes
    assert "gemm.py:24" in notes
    assert "stages=1 does not change C_local_out, which the reader does not fill: use cb_depth" in notes
    found, notes = depths(stages=3, cb_depth={"A_shared": 5}, chunk_k_tiles=4)
    assert found == {"A_shared": 5, "B_shared": 4}
    assert "stages=3 does not change A_shared: cb_depth, chunk_k_tiles or qk_chunk_tiles sets it to 5" in notes
    assert "A_shared holds 5 blocks: cb_depth overrides the 4 of chunk_k_tiles=4" in notes
    assert "instead of" not in depths(stages=2)[1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"accumulate": "l1"}, "accumulate='l1' has no effect: no accumulator leaves DST"),
        ({"epilogue": "separate"}, "epilogue='separate' has no effect: no loop has an operation on its result"),
        ({"subblock": (1, 1)}, "subblock=(1, 1) has no effect: the kernel has no matrix product"),
        ({"stages": 3, "mode": "local_shard", "policy": "match_shard", "layouts": {"A": HEIGHT}, "cores": (1, 2)},
         "A_shared holds 1 blocks, the shard of A; stages has no effect on it"),
    ],
)  # fmt: skip
def test_an_option_without_effect_is_told(options: dict[str, Any], reason: str) -> None:
    plan = ttx.explore(added, options=options).plan
    assert plan.compute is not None
    assert any(one.startswith(reason) for one in (*said(plan), *plan.compute.reasons)), said(plan)


@pytest.mark.parametrize(
    ("options", "notes"),
    [
        ({}, ["work: contiguous, row-major", "tensors: DRAM, interleaved, 32x32 tiles"]),
        ({"policy": "strided"}, ["work: strided, row-major"]),
        ({"policy": "z_order"}, ["work: z_order"]),
        ({"order": "column_major"}, ["work: contiguous, column_major"]),
        ({"work_lists": {(0, 0): [0, 1]}}, ["work: as work_lists says"]),
        ({"layouts": {"A": "L1"}}, ["tensors: A as asked for, others in DRAM, interleaved, 32x32 tiles"]),
    ],
)
def test_the_first_notes_are_true(options: dict[str, Any], notes: list[str]) -> None:
    assert set(notes) <= set(said(ttx.explore(added, options=options).steps["A0"].plan))
