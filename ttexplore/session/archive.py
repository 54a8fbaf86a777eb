"""Explorations in files: a zip of JSON and arrays. Reading one does not execute its content.

``ttx.json`` has the version of the format and the target, ``trace.json`` everything that was recorded. ``inputs`` and
``reference``, which are optional, hold the elements of the input and output tensors in parameter order, float32 or
int32, little-endian: the inputs of seed 0 and the kernel's own outputs for them.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ttexplore.errors import UsageError
from ttexplore.files import write_file
from ttexplore.given import path as path_of
from ttexplore.plan import (
    DATA_FORMATS,
    EXPORTED_FILES,
    FORMAT_OF_DTYPE,
    MOST_WORK_ITEMS,
    CoreRange,
    CoreWork,
    Partition,
    Plan,
    TensorLayout,
    launch_extents,
)
from ttexplore.record import StepRecord, Trace, from_json, to_json
from ttexplore.target import Target

Array = NDArray[Any]
_Lists = Mapping[str, "_Lists"]

VERSION = 2
_MEMBERS: tuple[str, ...] = ("ttx.json", "trace.json", "inputs", "reference")
# The limit for inputs and reference together; larger ones are omitted.
LARGEST_ARRAYS_BYTES = 16 << 20
# The limit for an unpacked member: a recorded GEMM has 2 MiB.
_LARGEST_JSON_BYTES = 64 << 20
# More columns or rows than any chip has, and cores.
_LARGEST_GRID = 64
_MOST_CORES = _LARGEST_GRID**2
# The lists whose items are drawn or followed, by where they are, and the most items of each: no lowering has more.
_IN_PLAN: _Lists = {
    "partition": {"grid": {}, "cores": {}, "core_ranges": {}}, "shared": {"multicasts": {}}, "partials": {"chains": {}},
}  # fmt: skip
_IN_STEP: _Lists = {"plan_before": _IN_PLAN, "plan_after": _IN_PLAN, "firings": {}}
_IN_TRACE: _Lists = {"plan": _IN_PLAN, "steps": {**_IN_STEP, "parts": {**_IN_STEP, "parts": {}}}}
_MOST_STEPS = 256
_MOST_ITEMS = {
    "steps": _MOST_STEPS, "parts": _MOST_STEPS, "firings": 10_000, "grid": 3, "cores": _MOST_CORES,
    "core_ranges": _MOST_CORES, "shared": 64, "multicasts": _MOST_CORES, "partials": 64, "chains": _MOST_CORES,
}  # fmt: skip
_LARGEST_VALUE = MOST_WORK_ITEMS
# More than any machine's memory holds, and few enough for every index.
_LARGEST_TENSOR = 1 << 44
# A fixed date, so that the same exploration gives the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)
# The exceptions that malformed values raise when they are converted or shown.
MALFORMED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError, RecursionError)


@dataclass(frozen=True)
class KeptRun:
    """Inputs and the kernel's outputs for them, in parameter order, as float32 or int32."""

    inputs: tuple[Array, ...]
    reference: tuple[Array, ...]


@dataclass(frozen=True)
class Archive:
    """The content of a file."""

    trace: Trace
    plan: Plan
    target: Target
    kept: KeptRun | None


def malformed(path: str | Path, why: str) -> UsageError:
    """Return the error for a file that is not a valid saved exploration."""
    return UsageError(
        "U018", f"{path} is not a valid saved exploration: {why}", hint="save it again: exploration.save(file)"
    )


def write_archive(path: str | Path, archive: Archive) -> Path:
    """Writes the file. Raises UsageError if it cannot be written."""
    head = {"version": VERSION, "target": to_json(archive.target)}
    members: dict[str, bytes] = {"ttx.json": _json(head), "trace.json": _json(to_json(archive.trace))}
    if archive.kept is not None:
        members["inputs"] = _bytes(archive.kept.inputs)
        members["reference"] = _bytes(archive.kept.reference)
    for name in ("ttx.json", "trace.json"):
        if len(members[name]) > _LARGEST_JSON_BYTES:
            raise UsageError(
                "U012",
                f"{path} cannot be written: {name} would have {len(members[name]):,} B, above the limit of "
                f"{_LARGEST_JSON_BYTES:,} B",
                hint="export the files, or save a smaller kernel",
            )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    return write_file(path, packed.getvalue())


def read_archive(path: str | Path) -> Archive:
    """Reads a file written by :func:`write_archive`. Raises UsageError for a missing file and for any other content."""
    path = path_of("the file", path)
    # Unlike Path.is_file, this accepts names that no file system accepts.
    if not os.path.isfile(path):
        raise UsageError("U002", f"there is no file {path}", hint="give a file that exploration.save wrote")
    try:
        with zipfile.ZipFile(path) as file:
            return _read(file, path)
    except zipfile.BadZipFile:
        raise malformed(path, "it is damaged, or not a zip file") from None
    except OSError as error:
        raise UsageError(
            "U002", f"{path} cannot be read: {error.strerror or error}", hint="check its permissions"
        ) from None
    except (zlib.error, struct.error, EOFError, RuntimeError, NotImplementedError, ValueError) as error:
        # The exceptions of zipfile for damaged or encrypted members, and for names that are not valid text.
        raise malformed(path, f"it cannot be unpacked ({error})") from None


def _read(file: zipfile.ZipFile, path: str | Path) -> Archive:
    # Of two members of one name, other programs may read the other.
    if strange := Counter(file.namelist()) - Counter(_MEMBERS):
        name = min(strange)
        raise malformed(path, f"it has {name!r}{' twice' if name in _MEMBERS else ', which no save writes'}")
    head = _object(file, "ttx.json", path)
    if head.get("version") != VERSION:
        raise malformed(path, f"it has version {head.get('version')!r}, and this ttexplore reads version {VERSION}")
    data = _object(file, "trace.json", path)
    try:
        # Before anything is made of them.
        _refuse_long("the trace", data, _IN_TRACE)
        trace = from_json(Trace, data)
        plan = from_json(Plan, trace.plan)
        target = from_json(Target, head.get("target"))
        # Whether the steps' own are consistent is checked one by one, later.
        for step in _with_parts(trace):
            for plan_data in (step.plan_before, step.plan_after):
                _check_work(from_json(Plan, plan_data))
        _check_work(plan)
        _check(trace, plan, target)
    except MALFORMED as error:
        raise malformed(path, f"its content is malformed ({_short(error)})") from None
    names = file.namelist()
    if "inputs" not in names or "reference" not in names:
        return Archive(trace, plan, target, None)
    stored = KeptRun(
        _arrays(file, "inputs", tensors(plan, ("input", "inout")), path),
        _arrays(file, "reference", tensors(plan, ("output", "inout")), path),
    )
    return Archive(trace, plan, target, stored)


def _with_parts(trace: Trace) -> list[StepRecord]:
    """The steps, each followed by its parts. Raises ValueError for too many of them, and for parts of parts."""
    steps = [nested for step in trace.steps for nested in (step, *step.parts)]
    if len(steps) > _MOST_STEPS:
        raise ValueError(f"there are {len(steps):,} steps and parts, and at most {_MOST_STEPS:,} occur")
    if any(part.parts for step in trace.steps for part in step.parts):
        raise ValueError("a part of a step has parts")
    return steps


def _refuse_long(name: str, value: object, lists: _Lists) -> None:
    """Raise ValueError for a list of plain data that is longer than any of its kind."""
    items = cast(list[object], value) if isinstance(value, list) else [value]
    if len(items) > (most := _MOST_ITEMS.get(name, 1)):
        raise ValueError(f"{name} has {len(items):,} items, and at most {most:,} occur")
    for item in items:
        if isinstance(item, dict):
            fields = cast(dict[str, object], item)
            for inner in lists.keys() & fields.keys():
                _refuse_long(inner, fields[inner], lists[inner])


def _check_work(plan: Plan) -> None:
    """Raise ValueError for a plan with so much work, or so many places of cores, that following them would not end."""
    if plan.partition is None:
        return
    of_cores = sum(abs(_count(plan.partition, core)) for core in plan.partition.cores)
    if (most := max(plan.partition.work_items, of_cores)) > (lowered := plan.partition.most_work_items):
        raise ValueError(f"there are {most:,} work items, and at most {lowered:,} are lowered")
    groups: list[Iterable[CoreRange]] = [plan.partition.core_ranges]
    groups += [[multicast.cores for multicast in shared.multicasts] for shared in plan.shared]
    if any(sum(map(_area, ranges)) > _MOST_CORES for ranges in groups) or any(
        sum(map(len, sums.chains)) > _MOST_CORES for sums in plan.partials
    ):
        raise ValueError(f"no chip has more than {_MOST_CORES:,} cores")


def _count(partition: Partition, core: CoreWork) -> int:
    """How many work items a core has, as its values say."""
    match partition.form:
        case "range":
            return core.values["work_count"]
        case "rectangle":
            return core.values["x_count"] * core.values.get("y_count", 1) * launch_extents(partition.grid)[2]
        case "list":
            return len(core.listed)


def _area(rectangle: CoreRange) -> int:
    return (rectangle.last[0] - rectangle.first[0] + 1) * (rectangle.last[1] - rectangle.first[1] + 1)


def _check(trace: Trace, plan: Plan, target: Target) -> None:
    """Raises ValueError for files that no export contains, and for numbers so large that drawings or runs would not
    end."""
    if not trace.steps:
        raise ValueError("it has no steps")
    if strange := trace.files.keys() - set(EXPORTED_FILES):
        raise ValueError(f"it has a file {min(strange)!r}, but exports contain only {', '.join(EXPORTED_FILES)}")
    ranges = plan.partition.core_ranges if plan.partition else ()
    corners = [coordinate for area in ranges for corner in (area.first, area.last) for coordinate in corner]
    grids = (*target.compute_grid, *target.noc_grid, *(plan.partition.core_grid if plan.partition else ()))
    if not all(1 <= extent <= _LARGEST_GRID for extent in grids) or not all(0 <= c < _LARGEST_GRID for c in corners):
        raise ValueError(f"no chip has more than {_LARGEST_GRID} columns or rows")
    coordinates = [(core.x, core.y) for core in (plan.partition.cores if plan.partition else ())]
    columns, rows = target.compute_grid
    if strange := [at for at in coordinates if not (0 <= at[0] < columns and 0 <= at[1] < rows)]:
        raise ValueError(f"core {strange[0]} has work, but {target.name} has {columns}x{rows} cores")
    if len(set(coordinates)) < len(coordinates):
        raise ValueError("a core is there twice")
    values = [value for core in (plan.partition.cores if plan.partition else ()) for value in core.values.values()]
    if any(abs(value) > _LARGEST_VALUE for value in values):
        raise ValueError(f"a core has a value beyond {_LARGEST_VALUE:,}")
    # These names become part of texts that the runner parses.
    if strange := [declared.name for declared in (*plan.layouts, *plan.buffers) if not declared.name.isidentifier()]:
        raise ValueError(f"{strange[0]!r} is not a valid name of a tensor or buffer")
    if strange := [layout.dtype for layout in plan.layouts if layout.dtype not in FORMAT_OF_DTYPE]:
        raise ValueError(f"{strange[0]!r} is not a dtype of a tensor")
    if strange := [f for declared in (*plan.layouts, *plan.buffers) if (f := declared.data_format) not in DATA_FORMATS]:
        raise ValueError(f"{strange[0]!r} is not a data format")
    if any(extent < 1 for layout in plan.layouts for extent in layout.shape):
        raise ValueError("a tensor has an extent below 1")
    if any(prod(layout.shape) > _LARGEST_TENSOR for layout in plan.layouts):
        raise ValueError(f"a tensor has more than {_LARGEST_TENSOR:,} elements")


def tensors(plan: Plan, roles: Sequence[str]) -> list[TensorLayout]:
    """The tensors of `plan` with these roles, in parameter order."""
    return sorted((layout for layout in plan.layouts if layout.role in roles), key=lambda layout: layout.position)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _object(file: zipfile.ZipFile, name: str, path: str | Path) -> dict[str, Any]:
    content = _member(file, name, _LARGEST_JSON_BYTES, path)
    try:
        value = json.loads(content.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise malformed(path, f"{name} is not JSON") from None
    if not isinstance(value, dict):
        raise malformed(path, f"{name} is not a JSON object")
    return cast(dict[str, Any], value)


def _member(file: zipfile.ZipFile, name: str, largest_bytes: int, path: str | Path) -> bytes:
    """The content of a member. Stops unpacking at the limit, whatever size the file declares."""
    if name not in file.namelist():
        raise malformed(path, f"{name} is missing")
    # Other compression methods raise errors of their own, and not every Python supports them.
    if file.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise malformed(path, f"{name} uses an unsupported compression method")
    with file.open(name) as member:
        content = member.read(largest_bytes + 1)
    if len(content) > largest_bytes:
        raise malformed(path, f"{name} is larger than {largest_bytes:,} B")
    return content


def _bytes(arrays: Sequence[Array]) -> bytes:
    return b"".join(
        np.ascontiguousarray(array, "<i4" if array.dtype.kind == "i" else "<f4").tobytes() for array in arrays
    )


def _arrays(
    file: zipfile.ZipFile, name: str, layouts: Sequence[TensorLayout], path: str | Path
) -> tuple[Array, ...]:  # fmt: skip
    content = _member(file, name, LARGEST_ARRAYS_BYTES, path)
    sizes = [prod(layout.shape) for layout in layouts]
    if len(content) != 4 * sum(sizes):
        raise malformed(path, f"{name} has {len(content):,} B, but the tensors of the plan have {4 * sum(sizes):,} B")
    arrays: list[Array] = []
    start = 0
    for layout, size in zip(layouts, sizes, strict=True):
        kind = "<i4" if layout.dtype == "int32" else "<f4"
        arrays.append(np.frombuffer(content, kind, size, start).reshape(layout.shape))
        start += 4 * size
    return tuple(arrays)


def _short(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) < 200 else f"{text[:200]} ..."
