"""A saved exploration, opened without TVM: it shows everything, and its emitted code runs."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.archive import MALFORMED, Archive, Kept, malformed, read_archive, tensors
from ttexplore.backends.base import Execution, storage_dtype
from ttexplore.backends.registry import BackendEntry
from ttexplore.control import FREE, Control, Progress
from ttexplore.errors import TTExploreError, UsageError, from_record
from ttexplore.explored import BaseStep, Explored, Steps
from ttexplore.given import Parts, dictionary, whole
from ttexplore.inputs import Inputs
from ttexplore.plan import Plan
from ttexplore.record import JsonObject, Listing, OptionForm, StepRecord, Trace, from_json
from ttexplore.results import Check, Run
from ttexplore.target import Target
from ttexplore.views.figures.timeline import Timeline
from ttexplore.views.runs.tile_history import TileHistory

Array = NDArray[Any]

_NEEDS_KERNEL = "needs the kernel itself, which a saved exploration does not contain"


def load(path: str | Path) -> SavedExploration:
    """Open a file written by ``exploration.save(path)``. Nothing in the file is executed.

    Raises UsageError if the file is missing or has any other content.
    """
    archive = read_archive(path)
    loaded = SavedExploration(archive)
    try:
        # Reject inconsistent parts here, not when they are first shown. The explorer needs this data anyway.
        _ = loaded.data, loaded.code if loaded.error is None else {}
    except (*MALFORMED, UsageError) as error:
        raise malformed(path, f"its parts are inconsistent ({type(error).__name__}: {error})") from None
    return loaded


@dataclass(frozen=True)
class KernelText:
    """The source of the explored kernel; `first_line` is its first line in `file`, 0 if that is unknown."""

    name: str
    source: Listing
    file: str
    first_line: int


class SavedStep(BaseStep):
    """The record of one pass."""

    def __init__(self, record: StepRecord) -> None:
        self._record = record

    @functools.cached_property
    def record(self) -> StepRecord:
        return self._record

    @property
    def index(self) -> int:
        return self._record.index

    @property
    def name(self) -> str:
        return self._record.name

    @property
    def letter(self) -> str:
        return self._record.letter

    @property
    def stage(self) -> str:
        return self._record.stage

    @property
    def summary(self) -> str:
        return self._record.summary

    @property
    def options(self) -> dict[str, Any]:
        """The options of this pass with the values that it used."""
        return Parts(f"option of {self.name}", self._record.options)

    @property
    def seconds(self) -> float:
        return self._record.seconds

    @property
    def plan(self) -> Plan:
        return from_json(Plan, self._record.plan_after)

    @functools.cached_property
    def parts(self) -> tuple[SavedStep, ...]:
        """The steps that this one consists of, in order; none for most."""
        return tuple(map(SavedStep, self._record.parts))

    @functools.cached_property
    def listing(self) -> Listing:
        return self._record.after

    @property
    def error(self) -> TTExploreError | None:
        return from_record(self._record.error) if self._record.error else None


class SavedExploration(Explored):
    """A recorded exploration. Operations that need the kernel itself raise UsageError.

    Its C++ is the file's: only what is asked to run it does so (:meth:`run`, :meth:`timeline`, :meth:`tile`, and
    :meth:`report` with ``run=True``).
    """

    _runs_unasked = False

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        source = archive.trace.source
        span = source.lines[0].origins[0].span if source.lines and source.lines[0].origins else None
        self.kernel = KernelText(archive.trace.kernel, source, span.file if span else "", span.line if span else 0)
        self.target = archive.target

    @property
    def steps(self) -> Steps[SavedStep]:
        return Steps([SavedStep(record) for record in self._archive.trace.steps])

    @property
    def plan(self) -> Plan:
        return self._archive.plan

    @property
    def error(self) -> TTExploreError | None:
        return self.steps[-1].error

    @functools.cached_property
    def files(self) -> dict[str, Listing]:
        if self.error is not None:
            raise self.error
        return Parts("file", self._archive.trace.files)

    @functools.cached_property
    def trace(self) -> Trace:
        return self._archive.trace

    @property
    def option_forms(self) -> Mapping[str, OptionForm]:
        # Lowering again needs the kernel, so no options can be chosen.
        return {}

    def reference(self, inputs: Inputs = None, seed: int = 0) -> tuple[Array, ...]:
        """The outputs of the kernel, in storage dtype. Raises UsageError for inputs without a saved reference."""
        with _fitting():
            found = self._reference(self._inputs(inputs, seed), FREE)
        if found is None:
            raise _needs_kernel("the reference of these inputs")
        return found

    def run(self, *arguments: Any, **options: Any) -> Run:
        """Run the emitted code, as :meth:`Explored.run` does. The file's C++ is compiled and executed on this machine:
        run only files from sources that you trust.

        Raises UsageError if the parts of the file are inconsistent, and whatever :meth:`Explored.run` raises.
        """
        with _fitting():
            return super().run(*arguments, **options)

    def timeline(self, *arguments: Any, **options: Any) -> Timeline:
        """Record a run, as :meth:`Explored.timeline` does. As :meth:`run` does, it compiles and executes the file's
        C++ on this machine: run only files from sources that you trust."""
        with _fitting():
            return super().timeline(*arguments, **options)

    def tile(self, *arguments: Any, **options: Any) -> TileHistory:
        """Follow a tile back, as :meth:`Explored.tile` does. As :meth:`run` does, it compiles and executes the file's
        C++ on this machine: run only files from sources that you trust."""
        with _fitting():
            return super().tile(*arguments, **options)

    def _in_tessera(self) -> str:
        raise UsageError(
            "U028", "a saved exploration has no kernel that can be written in Tessera", hint="explore the kernel itself"
        )

    def _kept(self) -> Kept | None:
        return self._archive.kept

    def _reference(self, arrays: tuple[Array, ...], control: Control) -> tuple[Array, ...] | None:
        del control
        kept = self._archive.kept
        if kept is None or not all(map(np.array_equal, arrays, kept.inputs)):
            return None
        layouts = tensors(self.plan, ("output", "inout"))
        return tuple(one.astype(storage_dtype(layout)) for one, layout in zip(kept.reference, layouts, strict=True))

    def _rounding(self, arrays: tuple[Array, ...], control: Control) -> None:
        del arrays, control

    def _interpreted(self, backend: BackendEntry, arrays: tuple[Array, ...], control: Control) -> Execution:
        del arrays, control
        raise _needs_kernel(f"the backend {backend.name}")

    def _backend_missing(self, backend: BackendEntry) -> str:
        return _NEEDS_KERNEL if backend.needs_kernel else super()._backend_missing(backend)

    @property
    def missing(self) -> dict[str, str]:
        return {**super().missing, **dict.fromkeys(("check", "fork", "edit", "estimate", "gpu"), _NEEDS_KERNEL)}

    def estimate_data(self, inputs: Inputs = None, seed: int = 0, control: Control = FREE) -> JsonObject:
        """Raises UsageError: the prediction reads the kernels' IR."""
        raise _needs_kernel("an estimate")

    def trace_data(
        self, core: tuple[int, int], inputs: Inputs = None, seed: int = 0, control: Control = FREE
    ) -> JsonObject:
        """Raises UsageError, as an estimate does."""
        return self.estimate_data()

    def gpu_data(self, arch: str, control: Control) -> JsonObject:
        """Raises UsageError: the lane begins with the kernel's text and its values."""
        raise _needs_kernel("the GPU lane")

    def _sized(self, inputs: Inputs, sizes: Mapping[str, int] | None) -> SavedExploration:
        del inputs
        sizes = dictionary("sizes", {} if sizes is None else sizes, "names", '{"n": 64}')
        if any(whole(f"the size {name}", sizes[name]) != self.plan.size_values.get(name) for name in sizes):
            raise _needs_kernel("a lowering for other sizes")
        return self

    def fork(self, at: str | int | None = None, *, target: str | Target | None = None, **options: Any) -> Explored:
        """Raises UsageError: lowering again needs the kernel."""
        raise _needs_kernel("lowering again")

    def lower_again(self, options: Mapping[str, Any], target: str | Target | None, control: Control) -> Explored:
        """Raises UsageError: lowering again needs the kernel."""
        raise _needs_kernel("lowering again")

    def edited(self, text: str) -> Explored:
        """Raises UsageError: lowering another text needs the kernel."""
        del text
        raise _needs_kernel("lowering another text")

    def lower_text(self, text: str, control: Control) -> Explored:
        """Raises UsageError: lowering another text needs the kernel."""
        del control
        return self.edited(text)

    def check(
        self, inputs: Inputs = None, seed: int = 0, *, time_limit_seconds: float | None = None,
        progress: Progress | None = None, cancel: threading.Event | None = None,
    ) -> Check:  # fmt: skip
        """Raises UsageError: executing each step needs the kernel."""
        raise _needs_kernel("executing each step")


@contextlib.contextmanager
def _fitting() -> Generator[None]:
    """Turn the exceptions of running an inconsistent plan into UsageError."""
    try:
        yield
    except MALFORMED as error:
        why = f"its parts are inconsistent ({type(error).__name__}: {error})"
        raise malformed("the file", why) from error


def _needs_kernel(what: str) -> UsageError:
    return UsageError(
        "U017",
        f"{what} {_NEEDS_KERNEL}",
        hint="explore the kernel again: ttx.explore(kernel)",
    )
