"""Record the gallery: python -m benchmarks.gallery [--chips] [--all] [WORD ...]

Lowers each kernel of notebooks/gallery for both chips, executes every step and the emulated program, predicts its time,
and writes `notebooks/gallery/gallery.json`, the pictures in `docs/gallery` and the page `docs/gallery.md`. WORDs select
kernels whose ``file.py::name`` contains one of them; the others keep their records.

With --chips, programs that have changed since they last ran on the simulated chips (with --all, all) run there again,
which takes about half a minute for each and needs the environment of ttexplore setup device.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import ttexplore as ttx
from benchmarks.gallery_picture import picture
from ttexplore.backends.ttnn.environment import TTNN_VERSION, WOLFPINE_VERSION, read_environment
from ttexplore.course.gallery import CHIPS, FOLDER, FORMULA, PHASES, RECORDS, page, read_gallery
from ttexplore.errors import TTExploreError
from ttexplore.exploration import Exploration
from ttexplore.language.load import load_module
from ttexplore.record import JsonObject, to_json

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / FOLDER
PAGE = ROOT / "docs" / "gallery.md"
PICTURES = ROOT / "docs" / "gallery"
KERNELS = tuple(kernel for phase in PHASES for section in phase.sections for kernel in section.kernels)
# For each kernel and chip, without the compiler.
CHIP_SECONDS = 240.0
# wolfpine adds up wrongly on the SFPU, and says so.
SUMS_WRONGLY = "TTX-B025"
ON_THE_FPU = {"eltwise": "fpu"}


@dataclass(frozen=True)
class Recorded:
    """A kernel as it is now: its record, without the chips; its errors beside the formula and the dtypes of its
    outputs, one for each; and its picture."""

    record: JsonObject
    errors: tuple[float, ...]
    dtypes: tuple[str, ...]
    picture: str


@functools.cache
def module(file: Path) -> Any:
    return load_module(file)


def formula_of(kernel: str) -> Callable[..., Any]:
    """The formula in NumPy of ``file.py::name``."""
    file, _, name = kernel.partition("::")
    return cast("Callable[..., Any]", vars(module(GALLERY / file))[name + FORMULA])


def wanted_of(kernel: str, arrays: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
    """What the formula gives, in float64."""
    found: Any = formula_of(kernel)(*(array.astype(np.float64) for array in arrays))
    return cast("tuple[NDArray[Any], ...]", found) if isinstance(found, tuple) else (found,)


def recorded(kernel: str) -> Recorded:
    """Lower, check every step, emulate, compare with the formula, and predict.

    Raises AssertionError if a step or the program is wrong, or moves more single elements than tiles.
    """
    explored = ttx.explore(f"{GALLERY / kernel}")
    if explored.error is not None:
        error = explored.error
        return Recorded({"refused": {"code": error.code, "message": error.message, "hint": error.hint}}, (), (), "")
    checked = explored.check()
    assert checked.ok, f"{kernel}: {checked}"
    arrays = explored.inputs()
    ran = explored.run(list(arrays), backend="emulator")
    assert ran.passed, f"{kernel}: {ran}"
    wanted = wanted_of(kernel, arrays)
    inputs, outputs = (explored._tensors(roles) for roles in (("input", "inout"), ("output", "inout")))
    assert [out.shape for out in ran.outputs] == [one.shape for one in wanted], kernel
    errors = tuple(
        float(np.abs(out.astype(np.float64) - one).max() / np.abs(one).max())
        for out, one in zip(ran.outputs, wanted, strict=True)
    )
    moved = module(ROOT / "notebooks" / "beside_numpy.py").transfers(explored, ran)
    # What moves element by element stands in the plan, and is little.
    assert not moved["elements"] or any("element" in note for note in explored.plan.notes), kernel
    assert moved["elements"] < moved["tiles"], kernel
    estimates = {chip: _estimate(explored.fork(target=chip)) for chip in CHIPS}
    record: JsonObject = {
        "inputs": [_described(one) for one in inputs],
        "outputs": [_described(one) for one in outputs],
        "steps": len(checked.results),
        "errors": [f"{error:.0e}" if error else "0" for error in errors],
        "moved": {what: moved[what] for what in ("tiles", "parts of tiles", "elements")},
        "bytes": estimates["wormhole_n150"].read_bytes + estimates["wormhole_n150"].written_bytes,
        "predicted": {chip: {"us": float(f"{one.us:.3g}"), "bound": one.bound} for chip, one in estimates.items()},
    }
    return Recorded(record, errors, tuple(one.dtype for one in outputs), picture(explored, ran))


def _described(tensor: Any) -> str:
    return f"{tensor.name} {'x'.join(map(str, tensor.shape))} {tensor.dtype}"


def _estimate(explored: Exploration) -> Any:
    """The predicted time, with random inputs where elements decide what the program does."""
    try:
        return explored.estimate()
    except TTExploreError as error:
        if error.code != "TTX-U022":
            raise
        return explored.estimate(inputs="random")


# The simulated chips


def digest(explored: Exploration) -> str:
    """What a program is, in 12 hexadecimal digits: its texts without comments, and what the host passes to it."""
    texts = {role: re.sub(r"//.*", "", explored.code[role].text) for role in ("reader", "compute", "writer")}
    plan = to_json(explored.plan)
    facts = {name: plan[name] for name in ("layouts", "buffers", "partition", "compute", "signature", "target")}
    return hashlib.sha256(json.dumps([texts, _unplaced(facts)], sort_keys=True).encode()).hexdigest()[:12]


def _unplaced(value: Any) -> Any:
    """Facts without their lines in the kernel and without reasons."""
    match value:
        case dict():
            items = cast(JsonObject, value)
            if {"file", "line"} <= items.keys():
                return None
            return {key: _unplaced(one) for key, one in items.items() if key != "reason"}
        case list():
            return [_unplaced(one) for one in cast(list[Any], value)]
        case _:
            return value


def chip_status(kernel: str, chip: str) -> JsonObject:
    """What a simulated chip did with a kernel: ``equal`` to the emulator bit by bit, ``passed``, ``differs``, or the
    code of an error. Sums are taken to the FPU where the simulator adds up wrongly on the SFPU."""
    first = _chip_status(kernel, chip, {})
    if first["result"] != SUMS_WRONGLY:
        return first
    second = _chip_status(kernel, chip, ON_THE_FPU)
    return first if second["result"] == SUMS_WRONGLY else second


def _chip_status(kernel: str, chip: str, options: JsonObject) -> JsonObject:
    explored = ttx.explore(kernel, target=chip, options=options)
    if explored.error is not None:
        return {"result": explored.error.code, "options": options, "program": ""}
    status: JsonObject = {"options": options, "program": digest(explored)}
    try:
        run = explored.run(backend="ttnn", device="wolfpine", time_limit_seconds=CHIP_SECONDS)
    except TTExploreError as error:
        return {**status, "result": error.code, "message": error.message}
    beside = next(side.comparison for side in run.sides if side.name == "ttnn against emulator")
    return {**status, "result": "equal" if beside.equal_share == 1.0 else "passed" if run.passed else "differs"}


def with_chips(kernel: str, record: JsonObject, before: JsonObject, *, run: bool, again: bool) -> JsonObject:
    """A record with what the chips did: as it was recorded before, or from a run if the program has changed since. The
    digest `now` is that of the program as it is."""
    chips: JsonObject = {}
    for chip in CHIPS:
        status = before.get("chips", {}).get(chip)
        now = (
            None
            if status is None
            else digest(ttx.explore(f"{GALLERY / kernel}", target=chip, options=status["options"]))
        )
        if run and (again or status is None or now != status["program"]):
            status = chip_status(f"{GALLERY / kernel}", chip)
            now = status["program"]
        if status is not None:
            chips[chip] = {**status, "now": now}
    return {**record, "chips": chips} if chips else record


def write(chosen: dict[str, Recorded], *, run: bool = False, again: bool = False) -> None:
    """Write the records, pictures and the page; kernels that are not `chosen` stay as they are."""
    file = GALLERY / RECORDS
    data: JsonObject = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"kernels": {}}
    kernels: JsonObject = {}
    PICTURES.mkdir(exist_ok=True)
    for kernel in KERNELS:
        before = data["kernels"].get(kernel, {})
        kernels[kernel] = before
        if kernel in chosen:
            kernels[kernel] = with_chips(kernel, chosen[kernel].record, before, run=run, again=again)
            picture_file(kernel).write_text(chosen[kernel].picture, encoding="utf-8")
    versions = {"ttnn": TTNN_VERSION, "wolfpine": WOLFPINE_VERSION}
    file.write_text(json.dumps({"versions": versions, "kernels": kernels}, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(read_gallery(GALLERY)), encoding="utf-8")


def picture_file(kernel: str) -> Path:
    return PICTURES / f"{kernel.partition('::')[2]}.svg"


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the gallery.")
    parser.add_argument("words", metavar="WORD", nargs="*", help="only kernels whose file.py::name contains it")
    parser.add_argument("--chips", action="store_true", help="run changed programs on the simulated chips")
    parser.add_argument("--all", action="store_true", help="with --chips, run all programs")
    given = parser.parse_args()
    if given.chips:
        read_environment()
    for kernel in KERNELS:
        if not given.words or any(word in kernel for word in given.words):
            print(kernel, flush=True)
            write({kernel: recorded(kernel)}, run=given.chips, again=given.all)


if __name__ == "__main__":
    main()
