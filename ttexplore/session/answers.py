"""What the explorer is asked, and the answers: each is JSON, with the buffers that go beside it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from ttexplore.backends.base import AddedLine, Deadlock, DeeperBuffer, KernelFault, ordered_layouts
from ttexplore.backends.registry import ARITHMETICS, BACKENDS
from ttexplore.control import Control
from ttexplore.errors import TTExploreError, UsageError
from ttexplore.given import named
from ttexplore.options import option_text, parse_options
from ttexplore.record import JsonObject
from ttexplore.session.inputs import INPUT_KINDS, Inputs, named_inputs
from ttexplore.views.assets import LATE, late_module
from ttexplore.views.explorer import error_data, packed
from ttexplore.views.markup import visible

if TYPE_CHECKING:
    from ttexplore.session.explored import Explored

Answer = tuple[JsonObject, list[bytes]]
# For how long the interpreter may run a program by itself, to tell what elements decide about its time.
ESTIMATE_SECONDS = 20.0


def notebook_shell() -> Any:
    """The shell of the current notebook, None outside of one."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def _inputs(question: JsonObject) -> Inputs:
    """The chosen kind of inputs, or the values of the named variables."""
    if question["inputs"] in INPUT_KINDS:
        return question["inputs"]
    shell = notebook_shell()
    variables: Mapping[str, object] = shell.user_ns if shell is not None else {}
    return named_inputs(str(question["names"]), variables)


def _estimated(question: JsonObject) -> tuple[Inputs, int]:
    """The inputs for which a time is asked for, and their seed; none where elements do not decide it."""
    return (_inputs(question), question["seed"]) if question.get("inputs") else (None, 0)


def _for_run(question: JsonObject, control: Control) -> dict[str, Any]:
    """The arguments that a run, a check and a record have in common."""
    return {
        "inputs": _inputs(question), "seed": question["seed"], "time_limit_seconds": question.get("limit"),
        "progress": control.progress, "cancel": control.cancel,
    }  # fmt: skip


def _run(exploration: Explored, question: JsonObject, control: Control) -> Answer:
    run = exploration.run(
        backend=named("backend", str(question["backend"]), BACKENDS), code=question.get("code") or None,
        arithmetic=question.get("arithmetic") or ARITHMETICS[0], **_for_run(question, control),
    )  # fmt: skip
    return {"html": run.card(), "passed": run.passed}, []


def _record(exploration: Explored, question: JsonObject, control: Control) -> Answer:
    record = exploration.timeline(_core(question), code=question.get("code") or None, **_for_run(question, control))
    return {}, [packed(record.recording.within().data)]


def _tile(exploration: Explored, question: JsonObject, control: Control) -> Answer:
    outputs: list[str] = [layout.name for layout in ordered_layouts(exploration.plan) if layout.role != "input"]
    history = exploration.tile(
        outputs[int(question["output"])], *question["tile"], code=question.get("code") or None,
        **_for_run(question, control),
    )  # fmt: skip
    return history.data, []


def _check(exploration: Explored, question: JsonObject, control: Control) -> Answer:
    check = exploration._with_kernel("executing each step").check(**_for_run(question, control))
    results = [
        {
            "letter": row.letter, "step": row.step, "passed": row.passed, "pcc": f"{row.pcc:.7f}",
            "error": f"{row.max_rel_error:.2e}", "message": "" if len(row.rows) > 1 else visible(row.message),
        }
        for row in check.rows
    ]  # fmt: skip
    return {"results": results, "first_bad": check.first_bad}, []


def _estimate(exploration: Explored, question: JsonObject, control: Control) -> Answer:
    lowering = exploration._with_kernel("an estimate")
    prediction = lowering.estimate_data(*_estimated(question), Control(control.cancel, ESTIMATE_SECONDS))
    if prediction["of_inputs"]:
        prediction["facts"].insert(0, ["inputs", visible(str(question["words"]))])
    return {"estimate": prediction}, []


def _trace(exploration: Explored, question: JsonObject, control: Control) -> Answer:
    lowering, limited = exploration._with_kernel("an estimate"), Control(control.cancel, ESTIMATE_SECONDS)
    return {"trace": lowering.trace_data(_core(question), *_estimated(question), limited)}, []


def _costs(exploration: Explored, question: JsonObject, control: Control) -> Answer:
    lowering, limited = exploration._with_kernel("an estimate"), Control(control.cancel, ESTIMATE_SECONDS)
    return {"costs": lowering.costs_data(*_estimated(question), limited)}, []


def _advice(exploration: Explored, question: JsonObject, control: Control) -> Answer:
    return {"advice": exploration._with_kernel("an estimate").advice_data(control)}, []


def _gpu(exploration: Explored, question: JsonObject, control: Control) -> Answer:
    return {"gpu": exploration._with_kernel("the GPU lane").gpu_data(str(question["arch"]), control)}, []


def _core(question: JsonObject) -> tuple[int, int]:
    x, y = map(int, question["core"].split(","))
    return x, y


# By what is asked for; what makes another lowering is of the explorer that keeps it.
ANSWERS: Mapping[object, Callable[[Explored, JsonObject, Control], Answer]] = {
    "run": _run, "check": _check, "record": _record, "tile": _tile, "estimate": _estimate, "trace": _trace,
    "costs": _costs, "advice": _advice, "gpu": _gpu,
    "module": lambda exploration, question, control: (
        {"module": late_module(named("module", str(question["name"]), LATE))}, []
    ),
}  # fmt: skip


def failure_data(error: TTExploreError, exploration: Explored | None) -> JsonObject:
    """The error as the page shows it: with the lines of emitted files that it is about, and the fix that was tried, of
    which an option takes the place of the one that `exploration` was lowered with."""
    data = error_data(error.record())
    if isinstance(error, KernelFault):
        data["places"] = [
            {
                "file": f"{fault.kernel}.cpp", "line": fault.cpp_line, "kind": "stuck" if fault.stuck else "error",
                "message": visible(fault.what.partition("\n")[0]),
            }
            for fault in error.places
        ]  # fmt: skip
    if isinstance(error, Deadlock):
        data["drawing"] = error.svg
        if isinstance(error.fix, AddedLine):
            fix = error.fix
            around = [visible(line) for line in fix.around]
            data["fix"] = {"kernel": fix.kernel, "line": fix.line, "text": visible(fix.text), "around": around}
        if isinstance(error.fix, DeeperBuffer) and exploration is not None:
            depths: dict[str, int] = {}
            for step in exploration.trace.steps:
                depths |= step.options.get("cb_depth") or {}
            data["fix"] = {"options": {"cb_depth": option_text(depths | {error.fix.buffer: error.fix.blocks})}}
    return data


def wrong_option(options: object) -> str:
    """The first of the given options whose value is rejected wherever it is given; empty for none, and for what is no
    dictionary of options."""
    for name, value in cast(Mapping[str, object], options).items() if isinstance(options, Mapping) else ():
        try:
            parse_options({name: value})
        except UsageError:
            return name
    return ""
