"""Wrong arguments of everything public: each is accepted or refused with a code, never a raw exception."""

from __future__ import annotations

import inspect
import json
import re
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import ttexplore as ttx
from tests.hostile_values import HOSTILE, hostile
from ttexplore.course.gallery import CHIPS, read_gallery
from ttexplore.errors import TTExploreError
from ttexplore.exercises.checks import EXERCISES

REPOSITORY = Path(__file__).parents[1]
KERNELS = REPOSITORY / "notebooks" / "kernels"
KERNEL = f"{KERNELS / 'elementwise.py'}::bias_exp"
CUDA = "__global__ void add(float* a, float* b, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; b[i] = a[i]; }"


class Text(str):
    pass


def _recursive() -> list[Any]:
    own: list[Any] = []
    own.append(own)
    return own


def _generator() -> Iterator[int]:
    yield 1


VALUES: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 5, 2**31, 10**30, -(10**400), 1.5, float("nan"), float("inf"), 1j, "", "x", "\x1b[2J",
    "\ud800", "\0", "x" * 5000, Text("part"), b"x", bytearray(b"x"), [], [1], ["a", "b"], [[1]], _recursive(),
    (_recursive(),), (), (1, 2), {}, {"a": 1}, {1: 2}, {"a": _recursive()}, {1},
    frozenset(), object(), lambda: 0, int, types, _generator(), range(3), slice(None), ...,
    NotImplemented, ValueError("x"), memoryview(b"ab"), np.array([]), np.array([1, 2]), np.array(3), np.array("x"),
    np.zeros((2, 2)), np.array([None, "a"], object), np.array([(1,)], [("a", int)]), np.bool_(True), np.int64(1),
    np.float32("nan"), np.datetime64("2020"), np.str_("x"), np.ma.masked, Path("/nowhere/x"), "8x4", "-1",
    *HOSTILE.values(),
)  # fmt: skip

# What is given for the other arguments, by name.
GIVEN: dict[str, Any] = {
    "kernel": KERNEL, "line": 1, "text": "exp", "source": CUDA, "space": {"stages": [1]}, "what": "A1", "number": 0,
    "core": (0, 0), "buffer": "A_shared", "tensor": "A", "tile": (0, 0), "arch": "sm_90a",
    "name": next(iter(EXERCISES)), "x": 0, "y": 0, "noc": 0, "wide": False, "chip": next(iter(CHIPS)), "run": False,
    "runs": 1, "prove": 0, "progress": None,
}  # fmt: skip
# Public, but not for users: parts of the explorer, whose arguments it makes; and what tuples and sequences have.
INTERNAL = {
    "lower_again", "lower_text", "gpu_data", "estimate_data", "trace_data", "costs_data", "advice_data", "with_options",
    "alone", "replace", "reason", "single", "index", "count", "annotated", "with_arguments",
}  # fmt: skip
# Each of these would execute the kernel, or write a large file, with many of the values.
LONG = {
    ("sweep", "kernel_arguments"), ("validate", "kernel_arguments"), ("validate", "space"), ("report", "path"),
    ("save", "path"), ("validate", "time_limit_seconds"),
}  # fmt: skip


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One of everything that users get."""
    file = tmp_path_factory.mktemp("saved") / "saved.ttx"
    lowering = ttx.explore(KERNEL, M=32, N=32)
    lowering.save(file)
    saved, timeline = ttx.load(file), lowering.timeline()
    gallery = read_gallery(REPOSITORY / "notebooks" / "gallery")
    gemm = ttx.explore(f"{KERNELS / 'gemm.py'}::matmul", M=256, N=256, K=256)
    return {
        "ttx": ttx, "lowering": lowering, "saved": saved, "steps": lowering.steps, "step": lowering.steps[3],
        "saved steps": saved.steps, "saved step": saved.steps[3], "code": lowering.code, "saved code": saved.code,
        "files": lowering.files, "saved files": saved.files, "options": lowering.steps[3].options,
        "plan": lowering.plan, "timeline": timeline, "recording": timeline.recording, "estimate": lowering.estimate(),
        "graph": lowering.dot(), "comparison": ttx.compare(lowering, saved), "target": lowering.target,
        "port": ttx.port(CUDA), "gallery": gallery, "entry": next(iter(gallery)), "porting": ttx.porting,
        "table": ttx.porting.table(),
        "exercise": ttx.exercise(next(iter(EXERCISES))), "lane": gemm.gpu(environment=Path("nowhere")),
    }  # fmt: skip


def _calls(name: str, part: Any, folder: Path) -> Iterator[tuple[str, str, Callable[[object], object]]]:
    """Each public function and method of a thing, as a call that takes the value of one of its parameters."""
    if isinstance(part, dict | tuple) or (hasattr(part, "__getitem__") and not isinstance(part, str)):
        items: Callable[[object], object] = cast(Any, part).__getitem__
        yield name, "[]", items
        if isinstance(part, dict | tuple):
            return
    names: list[str] = getattr(part, "__all__", None) or [one for one in dir(part) if not one.startswith("_")]
    for called in names:
        if called in INTERNAL or (isinstance(part, str) and hasattr(str, called)):
            continue
        function = inspect.getattr_static(type(part), called, None)
        if isinstance(part, types.ModuleType):
            function = getattr(part, called)
        if not isinstance(function, types.FunctionType):
            continue
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name not in ("self", "explored", "exploration") and (called, parameter.name) not in LONG:
                yield f"{name}.{called}", parameter.name, _call(getattr(part, called), parameter, folder)


def _call(function: Callable[..., object], varied: inspect.Parameter, folder: Path) -> Callable[[object], object]:
    given = GIVEN | {"path": folder / "written", "folder": folder / "exported"}

    def call(value: object) -> object:
        positional: list[object] = []
        named: dict[str, object] = {}
        for one in inspect.signature(function).parameters.values():
            held = value if one.name == varied.name else given.get(one.name, one.default)
            match one.kind:
                case one.VAR_POSITIONAL:
                    positional += [held] if one.name == varied.name else given.get(one.name, ())
                case one.VAR_KEYWORD:
                    named |= {"M": 32, "N": 32} if one.name == "kernel_arguments" else {}
                    named |= {"n": value} if one.name == varied.name else {}
                case _ if held is one.empty:
                    positional.append(value)
                case one.KEYWORD_ONLY:
                    named[one.name] = held
                case _:
                    positional.append(held)
        return function(*positional, **named)

    return call


@pytest.mark.slow
def test_no_argument_raises_a_raw_exception(
    objects: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    raw: set[str] = set()
    calls = 0
    for name, part in objects.items():
        for called, parameter, call in _calls(name, part, tmp_path):
            for number, value in enumerate(VALUES):
                calls += 1
                try:
                    call(value)
                except TTExploreError as error:
                    if not error.code or error.code == "TTX-V060":
                        raw.add(f"{called}({parameter}=VALUES[{number}]): {error.code or 'no code'}")
                except (Exception, SystemExit) as error:
                    raw.add(f"{called}({parameter}=VALUES[{number}]): {type(error).__name__}")
    assert sorted(raw) == []
    assert calls > 5000


def test_a_report_with_names_that_no_file_can_hold(objects: dict[str, Any], tmp_path: Path) -> None:
    lowering = objects["lowering"]
    page = ttx.report(tmp_path / "page.html", lowering, lowering, names=["\ud800", "b"], run=False)
    text = page.read_text(encoding="utf-8")
    assert 'href="#lowering=%5Cud800"' in text
    assert json.loads(re.findall(r'id="lowerings">(.*?)</script>', text)[0])[0]["name"] == "\\ud800"


def test_values_whose_methods_raise_are_taken_as_what_they_are() -> None:
    """Of a number, a text, a list or a dictionary of a class of one's own, only what it holds counts."""
    few = ("__eq__", "__hash__", "__repr__", "__str__", "__bool__")
    number, text, several, named = (hostile(base, *few) for base in (int, str, list, dict))
    plain = ttx.explore(KERNEL, M=32, N=32, options={"stages": 3, "policy": "strided"})
    options = named({"stages": number(3), "policy": text("strided")})
    same = ttx.explore(text(KERNEL), M=number(32), N=number(32), options=options, target=text("wormhole_n150"))
    assert same.code["reader"].text == plain.code["reader"].text
    arrays = plain.inputs(seed=3)
    run = same.run(several(same.inputs(seed=number(3))), backend=text("interpreter"))
    np.testing.assert_array_equal(run.outputs[0], plain.run(arrays, backend="interpreter").outputs[0])
    names = [layout.name for layout in plain.plan.layouts if layout.role == "input"]
    by_name = named(zip(names, arrays, strict=True))
    assert same.run(by_name, backend="interpreter").passed


@pytest.mark.parametrize(
    "name", ["__repr__", "__bool__", "__array__", "object", "exits", "mapping", "sequence", "call"]
)
def test_a_value_that_cannot_be_read_is_an_error_with_its_name(name: str) -> None:
    value, lowering = HOSTILE[name], ttx.explore(KERNEL, M=32, N=32)
    calls: dict[str, Callable[[], object]] = {
        "options": lambda: ttx.explore(KERNEL, M=32, N=32, options=value),
        "backend": lambda: lowering.run(backend=value),
        "inputs": lambda: lowering.run([value, value]),
        "seed": lambda: lowering.check(seed=value),
        "space": lambda: ttx.sweep(KERNEL, value),
        "sizes": lambda: lowering.estimate(sizes=value),
        "name": lambda: ttx.exercise(value),
    }
    for called, call in calls.items():
        with pytest.raises(TTExploreError) as caught:
            call()
        assert caught.value.code.startswith("TTX-U"), called
        assert caught.value.hint, called


@pytest.mark.parametrize("options", [["x"], "stages", 3, {"stages": [1]}, {1: 2}])
def test_a_malformed_question_of_a_page_is_answered(options: Any) -> None:
    widget: Any = ttx.explore(KERNEL, M=32, N=32).widget()
    told: list[Any] = []
    widget._tell = lambda message, buffers=None: told.append(message)
    widget._answer({"id": 1, "do": "nothing", "options": options}, threading.Event())
    (answer,) = [message for message in told if message["state"] == "failed"]
    assert "the explorer cannot 'nothing'" in str(answer["error"])
