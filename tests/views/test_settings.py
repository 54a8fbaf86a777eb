"""Who set each option, and which options are said to have no effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore import Exploration, explore
from ttexplore.options import DEFAULTS, OPTIONS
from ttexplore.views.runs.settings import OptionSetting, Settings

# Values of the options that may have no effect.
_VALUES: dict[str, tuple[Any, ...]] = {
    "stages": (1, 3), "mode": ("local_shard",), "match": ("A",), "chunk_k_tiles": (2, 4), "qk_chunk_tiles": (2, 4),
    "eltwise": ("fpu", "sfpu"), "subblock": ((1, 1), (1, 2)), "accumulate": ("l1",), "epilogue": ("separate",),
    "sfpu": ("fast", {"exp": "fast"}),
}  # fmt: skip
_KERNELS: dict[str, dict[str, Any]] = {
    "notebooks/kernels/gemm.py::matmul": {"M": 128, "N": 128, "K": 128, "block_M": 64, "block_N": 64},
    "notebooks/kernels/elementwise.py::bias_exp": {},
    "notebooks/gallery/softmax.py::online_softmax": {},
    "notebooks/gallery/gemm_epilogues.py::gemm_gelu": {},
    "notebooks/gallery/attention.py::causal_attention": {},
}


@T.prim_func
def annotated(A: T.Tensor((128, 64), "bfloat16"), B: T.Tensor((128, 64), "bfloat16")):
    with T.Kernel(4) as bx:
        T.annotate_tt_schedule(policy="strided")
        block = T.alloc_shared((32, 64), "bfloat16")
        T.copy(A[bx * 32, 0], block)
        T.copy(block, B[bx * 32, 0])


@T.prim_func
def filled(B: T.Tensor((128, 64), "bfloat16")):
    with T.Kernel(4) as bx:
        block = T.alloc_shared((32, 64), "bfloat16")
        T.fill(block, 1.0)
        T.copy(block, B[bx * 32, 0])


_LINE_OF_ANNOTATION = 1 + next(
    i for i, line in enumerate(Path(__file__).read_text().splitlines()) if "T.annotate_tt_schedule(policy" in line
)


def of(settings: Settings, name: str) -> OptionSetting:
    return next(one for one in settings if one.name == name)


def test_who_set_an_option() -> None:
    plain = explore(annotated)
    policy = of(plain.settings, "policy")
    assert (policy.value, policy.default) == ("strided", OPTIONS["policy"].default)
    assert policy.by.startswith("annotation at ")
    assert policy.by.endswith(f"test_settings.py:{_LINE_OF_ANNOTATION}")
    assert (of(plain.settings, "stages").by, of(plain.settings, "stages").value) == ("default", "")
    given = plain.fork(stages=3, policy="z_order", math_fidelity="HiFi4")
    assert of(given.settings, "policy").by.startswith("option, instead of the annotation at ")
    assert of(given.settings, "order").by == "policy z_order"
    assert (of(given.settings, "stages").by, of(given.settings, "stages").value) == ("option", "3")
    # Given as it is anyway.
    assert (of(given.settings, "math_fidelity").by, of(plain.settings, "math_fidelity").by) == ("option", "default")
    lists = explore(filled, options={"work_lists": {(0, 0): [0, 1, 2, 3]}})
    assert (of(lists.settings, "policy").by, of(lists.settings, "work_lists").by) == ("work_lists", "option")


def test_layouts_are_set_tensor_by_tensor() -> None:
    @T.prim_func
    def sharded(A: T.Tensor((128, 64), "bfloat16"), B: T.Tensor((128, 64), "bfloat16")):
        with T.Kernel(4) as bx:
            T.annotate_tt_sharding({"A": {"shard": "height"}})
            block = T.alloc_shared((32, 64), "bfloat16")
            T.copy(A[bx * 32, 0], block)
            T.copy(block, B[bx * 32, 0])

    noted = explore(sharded)
    assert of(noted.settings, "layouts").by.startswith("annotation at ")
    both = noted.fork(layouts={"B": {"memory": "l1", "shard": "height"}})
    assert of(both.settings, "layouts").by.startswith("option, annotation at ")
    assert of(explore(annotated, options={"layouts": {"B": "L1"}}).settings, "layouts").by == "option"
    # With a shard to work on, the options for it may have an effect.
    assert of(both.settings, "match").idle == ""
    assert of(explore(annotated).settings, "match").idle != ""


def test_every_option_has_a_sentence_with_its_default() -> None:
    settings = explore(filled).settings
    assert [one.name for one in settings] == list(OPTIONS)
    for one in settings:
        assert one.sentence.startswith(f"{one.meaning[:1].upper()}{one.meaning[1:]}. Default: {one.default}.")
        assert one.default
        if DEFAULTS.plain[one.name] is None:
            assert OPTIONS[one.name].unset
    assert "No effect here: the reader fills no circular buffer." in of(settings, "stages").sentence
    text = str(settings)
    assert "A2  stages            -              default\n      Blocks per circular buffer that" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "<td>stages</td>" in settings._repr_html_()


def test_a_saved_exploration_knows_who_set_what(tmp_path: Path) -> None:
    made = explore(annotated, options={"stages": 3})
    loaded = ttx.load(made.save(tmp_path / "one.ttx"))
    assert str(loaded.settings) == str(made.settings)


@pytest.mark.parametrize("kernel", [*_KERNELS, "filled"])
def test_an_option_without_effect_has_none(kernel: str) -> None:
    """Whatever its value, the programs and the C++ are the same; or the value is rejected, where that is said."""
    made = explore(filled) if kernel == "filled" else explore(kernel, **_KERNELS[kernel])
    idle = {one.name: one.idle for one in made.settings if one.idle}
    assert idle.keys() <= _VALUES.keys()
    assert idle
    for name, why in idle.items():
        for value in _VALUES[name]:
            other = made.fork(**{name: value})
            if why.startswith("Other values are rejected here: "):
                assert other.error is not None, (name, value)
            else:
                assert programs(made) == programs(other), (name, value)


def programs(exploration: Exploration) -> list[str]:
    files = [one.text for one in exploration.files.values() if one.language != "json"]
    return [*(step.after.text for step in exploration.trace.steps), *files]
