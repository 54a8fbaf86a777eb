"""The explorer as a Jupyter widget: sends the browser its data, and answers its requests.

All displayed data is sent once, when the widget is created. After that, the browser only requests to run, check, record
and lower again; each request is answered in its own thread, so the notebook's kernel stays responsive. A request that
is cancelled ends: the emulator, the compiler and devices are processes, which are killed; the interpreter looks before
each statement, a lowering after each pass.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from ttexplore.backends.base import AddedLine, Deadlock, DeeperBuffer, KernelFault, ordered_layouts
from ttexplore.backends.registry import ARITHMETICS, BACKENDS
from ttexplore.control import Control
from ttexplore.errors import TTExploreError, UsageError, refuse_cancelled
from ttexplore.given import named
from ttexplore.inputs import INPUT_KINDS, Inputs, named_inputs
from ttexplore.options import option_text, parse_options
from ttexplore.record import ErrorRecord, JsonObject, lines_of
from ttexplore.target import TARGETS
from ttexplore.views.assets import gpu_module, widget_module, widget_style
from ttexplore.views.explorer import error_data, packed
from ttexplore.views.markup import visible
from ttexplore.views.steps.moved import moved_lines
from ttexplore.views.steps.step_changes import changed_files, step_changes

if TYPE_CHECKING:
    from ttexplore.explored import Explored

Answer = tuple[JsonObject, list[bytes]]
# What of a request in progress every page knows; `words` are those of the page that asked.
_LISTED = ("do", "variant", "words")
# For how long the interpreter may run a program by itself, to tell what elements decide about its time.
ESTIMATE_SECONDS = 20.0
# What the page asks for by itself, and nobody waits for.
_UNLISTED = ("edit", "estimate", "gpu", "module", "trace")
# Whoever still waits for an answer that was sent has not got it.
_LOST = ErrorRecord("AnswerLost", "the answer was lost while there was no connection to the kernel", "ask again")


class ExplorerWidget(anywidget.AnyWidget):
    """The explorer of one exploration, and of those that its What if creates.

    Answers messages ``{"id", "do": "run" | "check" | "record" | "tile" | "fork" | "edit" | "estimate" | "trace" |
    "gpu" | "module" | "cancel" | "waiting", ...}`` with ``{"id", "state": "progress" | "done" | "failed", ...}``.
    Errors are answers, too: the notebook's kernel never sees an exception.
    """

    _esm = widget_module()
    _css = widget_style()
    data = traitlets.Bytes().tag(sync=True)
    backends = traitlets.List(traitlets.Dict()).tag(sync=True)
    targets = traitlets.List(traitlets.Unicode()).tag(sync=True)
    # The kinds of inputs: name, description, whether they have a seed.
    inputs = traitlets.List(traitlets.Tuple()).tag(sync=True)
    # For each request that it cannot answer, the reason.
    missing = traitlets.Dict().tag(sync=True)
    stale = traitlets.Unicode("").tag(sync=True)
    # Where to go: "tab", "step" (a letter), "pin" (numbers of kernel lines, with commas), "file".
    place = traitlets.Dict().tag(sync=True)
    # Where a view of this widget is, in the same words, and the "text" of the kernel there, if it was edited.
    here = traitlets.Dict(None, allow_none=True).tag(sync=True)
    # Shares of panes and a height in pixels, by what they are of.
    arrangement = traitlets.Dict().tag(sync=True)
    # By this name the front end finds the model for another view of it.
    identity = traitlets.Unicode("", allow_none=True).tag(sync=True)
    # The requests in progress, so that a page that is opened later shows them and can cancel them.
    running = traitlets.List(traitlets.Dict()).tag(sync=True)

    def __init__(self, exploration: Explored, place: Mapping[str, str] | None = None) -> None:
        super().__init__(
            data=packed(exploration.data), backends=exploration.backends, targets=list(TARGETS),
            inputs=[(kind.name, kind.what, kind.seeded) for kind in INPUT_KINDS.values()],
            missing=exploration.missing, place=dict(place or {}),
        )  # fmt: skip
        self.identity = self.model_id  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
        self._explorations: dict[str, Explored] = {"": exploration}
        self._numbers = itertools.count(1)
        # For each request in progress, by its id, what it does and what cancels it.
        self._running: dict[object, tuple[object, threading.Event]] = {}
        self._changing = threading.Lock()
        self.on_msg(self._asked)  # pyright: ignore[reportUnknownMemberType]

    def __repr__(self) -> str:
        return f"<explorer of {self._explorations['']!r}>"

    def view(self) -> JsonObject:
        """A view of this widget as a display bundle, by media type; empty without a notebook."""
        bundle: Any = self._repr_mimebundle_()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        kind = "application/vnd.jupyter.widget-view+json"
        return {kind: bundle[0][kind]} if bundle else {}

    def kernel_changed(self, cell: str) -> None:
        """Show in the explorer that the kernel has changed, if `cell`, which has just run, defines another text for it,
        or its file has changed."""
        kernel = self._explorations[""].kernel
        source = kernel.source.text
        path = Path(kernel.file)
        if path.suffix == ".py" and path.is_file():
            lines = lines_of(path.read_text(encoding="utf-8-sig", errors="replace"))
            now = lines[kernel.first_line - 1 : kernel.first_line - 1 + len(kernel.source.lines)]
            changed = now != lines_of(source)
        else:
            # A launch has a name of its own, and the text of the whole kernel.
            named = re.search(r"^\s*def\s+(\w+)", source, re.MULTILINE)
            name = named[1] if named else kernel.name
            changed = any(_plain(one) != _plain(source) for one in _definitions(cell, name))
        if changed:
            self.stale = f"{visible(kernel.name)} has changed since this exploration was made: explore it again"

    # Questions

    def _asked(self, _: object, question: JsonObject, buffers: object) -> None:
        del buffers
        do = question.get("do")
        if do == "cancel":
            # An edit ends when another one takes its place, not with what the explorer is busy with; an estimate is
            # short.
            wanted = question.get("edit")
            for identifier, (what, one) in tuple(self._running.items()):
                if identifier == wanted if wanted else what not in _UNLISTED:
                    one.set()
            return
        if do == "waiting":
            for identifier in question["ids"]:
                if identifier not in self._running:
                    self._tell({"id": identifier, "state": "failed", "error": error_data(_LOST)})
            return
        cancel = threading.Event()
        self._running[question.get("id")] = (do, cancel)
        threading.Thread(target=self._answer, args=(question, cancel), daemon=True).start()

    def _answer(self, question: JsonObject, cancel: threading.Event) -> None:
        identifier = question.get("id")
        if question.get("do") not in _UNLISTED:
            self._list({"id": identifier, "since": time.time(), **{name: question.get(name) or "" for name in _LISTED}})

        def progress(text: str) -> None:
            self._tell({"id": identifier, "state": "progress", "text": visible(text)})

        exploration = self._explorations.get(question.get("variant") or "")
        answer: tuple[JsonObject, list[bytes]]
        try:
            if exploration is None:
                raise UsageError("U001", "an edit has replaced this lowering", hint="lower it again")
            match question.get("do"):
                case "run":
                    answer = _run(exploration, question, progress, cancel)
                case "check":
                    answer = _check(exploration, question, progress, cancel)
                case "fork":
                    answer = self._fork(exploration, question, progress, cancel)
                case "edit":
                    answer = self._edit(exploration, question, cancel)
                case "record":
                    answer = _record(exploration, question, progress, cancel)
                case "tile":
                    answer = _tile(exploration, question, progress, cancel)
                case "estimate":
                    answer = {"estimate": _estimate(exploration, question, cancel)}, []
                case "trace":
                    x, y = map(int, question["core"].split(","))
                    trace = exploration.trace_data((x, y), *_estimated(question), Control(cancel, ESTIMATE_SECONDS))
                    answer = {"trace": trace}, []
                case "gpu":
                    lane = exploration.gpu_data(str(question["arch"]), Control(cancel, progress=progress))
                    answer = {"gpu": lane}, []
                case "module":
                    answer = {"module": gpu_module()}, []
                case other:
                    raise UsageError("U001", f"the explorer cannot {other!r}", hint="run the cell again")
        except TTExploreError as error:
            failure = {**_failure(error, exploration), "option": _wrong_option(question.get("options") or {})}
            self._tell({"id": identifier, "state": "failed", "error": failure})
        except Exception as error:  # The notebook continues, and the user sees what to report.
            where = traceback.extract_tb(error.__traceback__)[-1]
            record = ErrorRecord(
                type(error).__name__, f"{error}\n({Path(where.filename).name}, line {where.lineno})",
                "this is an error of ttexplore itself: please report it with the kernel",
            )  # fmt: skip
            self._tell({"id": identifier, "state": "failed", "error": error_data(record)})
        else:
            self._tell({"id": identifier, "state": "done", **answer[0]}, answer[1])
        finally:
            self._running.pop(identifier, None)
            self._list(None, identifier)

    def _list(self, request: JsonObject | None, ended: object = None) -> None:
        """Add a request to those in progress, or take the one that has `ended` away."""
        with self._changing:
            self.running = [one for one in self.running if one["id"] != ended] + ([request] if request else [])

    def _tell(self, message: JsonObject, buffers: list[bytes] | None = None) -> None:
        self.send(message, buffers)  # pyright: ignore[reportUnknownMemberType]

    def _fork(
        self, exploration: Explored, question: JsonObject, progress: Callable[[str], None], cancel: threading.Event
    ) -> Answer:
        target = None if question["target"] == exploration.target.name else question["target"]
        other = exploration.lower_again(question["options"], target, Control(cancel, progress=progress))
        steps = step_changes(exploration.trace.steps, other.trace.steps).with_parts
        return {
            "variant": self._added(other), "steps": [[one.glyph, one.words] for one in steps],
            "files": list(changed_files(exploration.trace, other.trace)),
        }, [packed(other.data)]  # fmt: skip

    def _edit(self, exploration: Explored, question: JsonObject, cancel: threading.Event) -> Answer:
        # What earlier edits gave and the page shows no longer.
        for name in question["unused"]:
            if name:
                self._explorations.pop(name, None)
        other = exploration.lower_text(str(question["text"]), Control(cancel))
        data = packed(other.data)
        refuse_cancelled(cancel)
        moved = moved_lines(*([line.text for line in one.kernel.source.lines] for one in (exploration, other)))
        return {
            "variant": self._added(other), "moved": moved,
            "error": error_data(other.error.record()) if other.error else None,
        }, [data]  # fmt: skip

    def _added(self, exploration: Explored) -> str:
        name = str(next(self._numbers))
        self._explorations[name] = exploration
        return name

    def left_for(self, exploration: Explored) -> JsonObject:
        """The place that a reader has left here, for another exploration of this kernel or of a newer text of it; none
        for a lowering that failed, which opens where it did."""
        if exploration.error is not None:
            return {}
        place: JsonObject = dict(self.here or {})
        kernel, now = self._explorations[""].kernel, exploration.kernel
        before = lines_of(str(place.pop("text", "") or kernel.source.text))
        moved = moved_lines(before, [line.text for line in now.source.lines])
        pins: list[int] = []
        for word in str(place.get("pin") or "").split(","):
            row = int(word) - kernel.first_line if word.isdecimal() else -1
            if 0 <= row < len(moved) and moved[row] >= 0:
                pins.append(now.first_line + moved[row])
        return {**place, "pin": ",".join(map(str, pins))} if place else {}

    @property
    def kernel_name(self) -> str:
        return str(self._explorations[""].kernel.name)


def _failure(error: TTExploreError, exploration: Explored | None) -> JsonObject:
    """The error as the page shows it: with the lines of emitted files that it is about, and the fix that was tried, of
    which an option takes the place of the one that `exploration` was lowered with."""
    data = error_data(error.record())
    if isinstance(error, KernelFault):
        data["places"] = [
            {
                "file": f"{place.kernel}.cpp", "line": place.cpp_line, "kind": "stuck" if place.stuck else "error",
                "message": visible(place.what.partition("\n")[0]),
            }
            for place in error.places
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


def _wrong_option(options: Mapping[str, object]) -> str:
    """The first of the given options whose value is rejected wherever it is given; empty for none."""
    for name, value in options.items():
        try:
            parse_options({name: value})
        except UsageError:
            return name
    return ""


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


def _estimate(exploration: Explored, question: JsonObject, cancel: threading.Event) -> JsonObject:
    found = exploration.estimate_data(*_estimated(question), Control(cancel, ESTIMATE_SECONDS))
    if found["of_inputs"]:
        found["facts"].insert(0, ["inputs", visible(str(question["words"]))])
    return found


def _run(
    exploration: Explored, question: JsonObject, progress: Callable[[str], None], cancel: threading.Event
) -> Answer:
    backend = named("backend", str(question["backend"]), BACKENDS)
    run = exploration.run(
        _inputs(question), backend, question["seed"], code=question.get("code") or None,
        arithmetic=question.get("arithmetic") or ARITHMETICS[0],
        time_limit_seconds=question.get("limit"), progress=progress, cancel=cancel,
    )  # fmt: skip
    return {"html": run.card(), "passed": run.passed}, []


def _record(
    exploration: Explored, question: JsonObject, progress: Callable[[str], None], cancel: threading.Event
) -> Answer:
    x, y = map(int, question["core"].split(","))
    record = exploration.timeline(
        (x, y), inputs=_inputs(question), seed=question["seed"], code=question.get("code") or None,
        time_limit_seconds=question.get("limit"), progress=progress, cancel=cancel,
    )  # fmt: skip
    return {}, [packed(record.recording.within().data)]


def _tile(
    exploration: Explored, question: JsonObject, progress: Callable[[str], None], cancel: threading.Event
) -> Answer:
    outputs: list[str] = [one.name for one in ordered_layouts(exploration.plan) if one.role != "input"]
    history = exploration.tile(
        outputs[int(question["output"])], *question["tile"], inputs=_inputs(question), seed=question["seed"],
        code=question.get("code") or None, time_limit_seconds=question.get("limit"), progress=progress, cancel=cancel,
    )  # fmt: skip
    return history.data, []


def _check(
    exploration: Explored, question: JsonObject, progress: Callable[[str], None], cancel: threading.Event
) -> Answer:
    check = exploration.check(
        _inputs(question), question["seed"], time_limit_seconds=question.get("limit"), progress=progress, cancel=cancel
    )
    results = [
        {
            "letter": one.letter, "step": one.step, "passed": one.passed, "pcc": f"{one.pcc:.7f}",
            "error": f"{one.max_rel_error:.2e}", "message": "" if len(one.rows) > 1 else visible(one.message),
        }
        for one in check.rows
    ]  # fmt: skip
    return {"results": results, "first_bad": check.first_bad}, []


def _definitions(cell: str, name: str) -> list[str]:
    """The text of each function `name` in a cell, decorators included."""
    try:
        tree = ast.parse(cell)
    except SyntaxError:
        # The cell contains a magic, or did not run.
        return []
    lines = lines_of(cell)
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.append("\n".join(lines[first - 1 : node.end_lineno]))
    return found


def _plain(text: str) -> str:
    return textwrap.dedent(text).strip()
