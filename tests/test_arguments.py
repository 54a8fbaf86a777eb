"""Wrong arguments of everything public: each is accepted or refused with a code, never a raw exception."""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import ttexplore as ttx
from ttexplore.course.gallery import CHIPS, read_gallery
from ttexplore.errors import TTExploreError
from ttexplore.exercises.checks import EXERCISES

REPOSITORY = Path(__file__).parents[1]
KERNELS = REPOSITORY / "notebooks" / "kernels"
KERNEL = f"{KERNELS / 'elementwise.py'}::bias_exp"
CUDA = "__global__ void add(float* a, float* b, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; b[i] = a[i]; }"


class Text(str):
    pass


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = object.__hash__


def _recursive() -> list[Any]:
    own: list[Any] = []
    own.append(own)
    return own


def _generator() -> Iterator[int]:
    yield 1


VALUES: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 5, 2**31, 10**30, -(10**400), 1.5, float("nan"), float("inf"), 1j, "", "x", "\x1b[2J",
    "\ud800", "\0", "x" * 5000, Text("part"), b"x", bytearray(b"x"), [], [1], ["a", "b"], [[1]], _recursive(),
    (_recursive(),), (), (1, 2), {}, {"a": 1}, {1: 2}, {"a": _recursive()}, {"a": Hostile()}, {Hostile(): 1}, {1},
    frozenset(), object(), Hostile(), [Hostile()], lambda: 0, int, types, _generator(), range(3), slice(None), ...,
    NotImplemented, ValueError("x"), memoryview(b"ab"), np.array([]), np.array([1, 2]), np.array(3), np.array("x"),
    np.zeros((2, 2)), np.array([None, "a"], object), np.array([(1,)], [("a", int)]), np.bool_(True), np.int64(1),
    np.float32("nan"), np.datetime64("2020"), np.str_("x"), np.ma.masked, Path("/nowhere/x"), "8x4", "-1",
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
                    if not error.code:
                        raw.add(f"{called}({parameter}=VALUES[{number}]): no code")
                except Exception as error:
                    raw.add(f"{called}({parameter}=VALUES[{number}]): {type(error).__name__}")
    assert sorted(raw) == []
    assert calls > 5000


def test_a_report_with_names_that_no_file_can_hold(objects: dict[str, Any], tmp_path: Path) -> None:
    lowering = objects["lowering"]
    page = ttx.report(tmp_path / "page.html", lowering, lowering, names=["\ud800", "b"], run=False)
    text = page.read_text(encoding="utf-8")
    assert 'href="#lowering=%5Cud800"' in text
    assert json.loads(re.findall(r'id="lowerings">(.*?)</script>', text)[0])[0]["name"] == "\\ud800"
