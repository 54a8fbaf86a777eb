# pyright: basic, reportAttributeAccessIssue=false
"""No exception of TVM, NumPy or of the project's own mistakes leaves the library."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from tvm import tirx

import ttexplore as ttx
from tests.corpus import gemm
from tests.faults.kernels import difference
from ttexplore.errors import KernelError, ResourceError, TTExploreError, VerifyError
from ttexplore.exploration import Exploration

OVERFLOW = "Check failed: (bits == 64) is false: Literal value exceeds minimum of int32"


def raising(error: BaseException) -> Callable[..., Any]:
    def raise_it(*_: Any, **__: Any) -> Any:
        raise error

    return raise_it


def test_an_exception_in_a_step_is_its_error_at_the_kernels_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is that of the statement that was at work."""

    def overflow(s: Any, *_: Any) -> Any:
        raise ValueError(f"{OVERFLOW}\n  at a line of TVM")

    monkeypatch.setattr("ttexplore.analysis.engine_setup.statements", overflow)
    kernel = difference()
    ex = ttx.explore(kernel)
    assert isinstance(ex.error, VerifyError)
    assert ex.steps[-1].letter == "D4"
    assert ex.error.message == f"the step D4 insert_compute_init failed inside ttexplore: ValueError: {OVERFLOW}"
    assert ex.error.code == "TTX-V060"
    assert "please report it with the kernel" in ex.error.hint
    assert isinstance(ex.error.__cause__, ValueError)
    with pytest.raises(VerifyError, match="the step D4"):
        ex.run()
    with pytest.raises(VerifyError, match="the step D4"):
        ex.export("nowhere")
    lines, first = inspect.getsourcelines(difference)
    assert ex.error.span is not None
    assert ex.error.span.file == inspect.getsourcefile(difference)
    assert first <= ex.error.span.line < first + len(lines)


def test_the_line_is_that_of_the_innermost_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """TVM refuses a constant that its dtype does not hold."""
    seen: list[Any] = []

    def overflow(s: Any, *_: Any) -> Any:
        if isinstance(s, tirx.Evaluate) and s.span is not None and not seen:
            seen.append(s.span.line)
            tirx.const(1 << 40, "int32")
        return original(s, *_)

    from ttexplore.passes import lower_tt_tile_intrinsics as module

    original = module.runs
    monkeypatch.setattr(module, "runs", overflow)
    ex = ttx.explore(gemm(64, 64, 64, 32, 32, 32))
    assert isinstance(ex.error, VerifyError), ex.error
    assert ex.error.span is not None
    assert ex.error.span.line == seen[0]


@pytest.mark.parametrize(
    ("place", "use", "doing"),
    [
        ("ttexplore.exploration.trace", lambda ex: ttx.explore(difference()), "reading the kernel"),
        ("ttexplore.exploration.lowered.emit", lambda ex: ex.files, "writing the C\\+\\+"),
        ("ttexplore.exploration.lowered.emit", lambda ex: ex.run(), "writing the C\\+\\+"),
        (
            "ttexplore.exploration.lowered.interpret",
            lambda ex: ex.run(backend="interpreter"),
            "interpreting the kernel",
        ),
        ("ttexplore.exploration.lowered.interpret", lambda ex: ex.check(), "interpreting the kernel"),
        ("ttexplore.passes.running.Verifier.check", lambda ex: ttx.explore(difference()).run(), "the step A0.1 "),
        # What comes before the first step that looks at the option has been verified already.
        ("ttexplore.passes.running.Verifier.check", lambda ex: ex.fork(policy="strided").run(), "the step B1.1 "),
    ],
)
@pytest.mark.parametrize("error", [ValueError(OVERFLOW), AttributeError("no"), RecursionError(), MemoryError()])
def test_no_other_exception_leaves(
    monkeypatch: pytest.MonkeyPatch, place: str, use: Callable[[Exploration], Any], doing: str, error: Exception
) -> None:
    ex = ttx.explore(difference())
    monkeypatch.setattr(place, raising(error))
    told = "needs more memory than this machine has" if isinstance(error, MemoryError) else "failed inside ttexplore"
    with pytest.raises(TTExploreError, match=f"^{doing}.*{told}") as caught:
        use(ex)
    assert type(caught.value) is (ResourceError if isinstance(error, MemoryError) else VerifyError)
    assert caught.value.code in ("TTX-R010", "TTX-V060")
    assert caught.value.hint


def test_sizes_are_bound_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.corpus import SIZES

    ex = ttx.explore(SIZES[0].make())
    assert ex.plan.sizes
    monkeypatch.setattr("ttexplore.exploration.lower.bind_sizes", raising(IndexError("out of range")))
    with pytest.raises(VerifyError, match="binding the sizes failed inside ttexplore: IndexError: out of range"):
        ex.with_sizes(**{size.name: size.value + 1 for size in ex.plan.sizes})


def test_errors_of_ours_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttexplore.exploration.trace", raising(KernelError("K011", "a name")))
    with pytest.raises(KernelError, match=r"^a name \[TTX-K011\]$"):
        ttx.explore(difference())
    monkeypatch.setattr("ttexplore.exploration.trace", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        ttx.explore(difference())
