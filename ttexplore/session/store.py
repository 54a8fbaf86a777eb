"""A saved exploration, opened without TVM: it shows everything, and its emitted code runs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never, ParamSpec, TypeVar

from numpy.typing import NDArray

from ttexplore.backends.base import ordered_layouts
from ttexplore.control import FREE
from ttexplore.errors import UsageError
from ttexplore.given import Parts
from ttexplore.plan import Plan
from ttexplore.record import Listing, Trace
from ttexplore.session.archive import MALFORMED, Archive, KeptRun, malformed, read_archive
from ttexplore.session.explored import Explored, needs_kernel
from ttexplore.session.inputs import Inputs, Tensor
from ttexplore.session.lowering import Lowering, reference_of
from ttexplore.session.steps import RecordedStep

Array = NDArray[Any]
P = ParamSpec("P")
T = TypeVar("T")

_TRUST = "It compiles and executes the file's C++ on this machine: run only files from sources that you trust."
# What an exploration of a kernel has, and what of it needs the kernel.
_NEEDING_KERNEL = {
    "fork": "lowering again", "lower_again": "lowering again", "with_options": "lowering again",
    "edited": "lowering another text", "lower_text": "lowering another text",
    "with_sizes": "a lowering for other sizes", "check": "executing each step",
    "porting_checks": "executing each step", "estimate": "an estimate", "estimate_data": "an estimate",
    "trace_data": "an estimate", "costs_data": "an estimate", "advice_data": "an estimate",
    "link_map": "an estimate", "gpu": "the GPU lane", "gpu_data": "the GPU lane",
    "beside": "the GPU lane", "lanes_data": "the GPU lane",
}  # fmt: skip


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


class RecordedLowering(Lowering):
    """The lowering of a file."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self.target = archive, archive.target
        source = archive.trace.source
        span = source.lines[0].origins[0].span if source.lines and source.lines[0].origins else None
        self.kernel = KernelText(archive.trace.kernel, source, span.file if span else "", span.line if span else 0)
        self.steps = tuple(map(RecordedStep, archive.trace.steps))

    @property
    def plan(self) -> Plan:
        return self._archive.plan

    @property
    def kept(self) -> KeptRun | None:
        return self._archive.kept

    @functools.cached_property
    def files(self) -> dict[str, Listing]:
        if self.error is not None:
            raise self.error
        return Parts("file", self._archive.trace.files)

    @functools.cached_property
    def trace(self) -> Trace:
        return self._archive.trace

    @functools.cached_property
    def roles(self) -> Mapping[str, str]:
        return {layout.name: layout.role for layout in ordered_layouts(self.plan)}

    @property
    def tensors(self) -> list[Tensor]:
        return [Tensor(layout.name, layout.shape, layout.dtype) for layout in ordered_layouts(self.plan)]


def _of_file(function: Callable[P, T]) -> Callable[P, T]:
    """The same operation on what a file says. Inconsistent parts of it raise UsageError."""

    @functools.wraps(function)
    def fitting(*arguments: P.args, **options: P.kwargs) -> T:
        with _fitting():
            return function(*arguments, **options)

    fitting.__doc__ = f"{function.__doc__}\n    {_TRUST}\n"
    return fitting


class SavedExploration(Explored):
    """A recorded exploration. Operations that need the kernel itself raise UsageError.

    Its C++ is the file's: only what is asked to run it does so (:meth:`run`, :meth:`timeline`, :meth:`tile`, and
    :meth:`report` with ``run=True``). It is compiled and executed on this machine: run only files from sources that you
    trust.
    """

    _has_kernel = False

    def __init__(self, archive: Archive) -> None:
        lowering = RecordedLowering(archive)
        super().__init__(lowering.kernel, lowering.target, (lowering,))

    run = _of_file(Explored.run)
    timeline = _of_file(Explored.timeline)
    tile = _of_file(Explored.tile)

    def __getattr__(self, name: str) -> Never:
        if name in _NEEDING_KERNEL:
            raise needs_kernel(_NEEDING_KERNEL[name])
        raise AttributeError(f"a saved exploration has no {name!r}")

    def reference(self, inputs: Inputs = None, seed: int = 0) -> tuple[Array, ...]:
        """The outputs of the kernel, in storage dtype. Raises UsageError for inputs without a saved reference."""
        with _fitting():
            reference = reference_of(self, self._inputs(inputs, seed), FREE)
        if reference is None:
            raise needs_kernel("the reference of these inputs")
        return reference


@contextlib.contextmanager
def _fitting() -> Generator[None]:
    """Turn the exceptions of running an inconsistent plan into UsageError."""
    try:
        yield
    except MALFORMED as error:
        why = f"its parts are inconsistent ({type(error).__name__}: {error})"
        raise malformed("the file", why) from error
