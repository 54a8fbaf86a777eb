"""The process that lowers a kernel with TileLang: ``python worker.py``, run by the interpreter that has TileLang.

Imports nothing of ttexplore, which needs another TVM. A request is one line of JSON on standard input, the answer one
line of JSON on the original standard output; TileLang's own output goes to standard error. A request has the kernel's
texts (the first is the kernel, the others are functions that it calls), the values of the names that they use, and the
target. The answer has the texts of the program after the passes, or ``{"error": {"kind", "text", "where"}}``.
"""

import difflib
import importlib
import json
import linecache
import math
import os
import re
import sys
import tempfile
import time
import types
from pathlib import Path

# Marks a statement's kernel line: in the printed IR as a comment, in the generated source as a call.
MARK = "ttexplore_line"
COMMENT = re.compile(rf" *# {MARK}_(\d+)_(\d+)_(\d)$")
# The column of lines that a statement got here, because a pass had made it without one.
RECOVERED = 2
BEGIN, END = f"{MARK}_begin", f"{MARK}_end"
# Nothing of a kernel needs them, and TileLang does not know them.
OURS = ("annotate_tt_", "TT")


class Rejected(Exception):
    """TileLang does not take the kernel: why, and the text and line where."""

    def __init__(self, text, where=None):
        super().__init__(text)
        self.where = where


class Names:
    """Rebuilds the values of the names that the texts use."""

    def __init__(self, request, folder):
        import tilelang.language

        self.texts, self.folder, self.language = request["texts"], folder, tilelang.language
        self.notes, self.made, self.sizes = [], {}, {}
        self.files = {str(folder / f"text_{index}.py"): index for index in range(len(self.texts))}
        self.module = self.language_module()

    def language_module(self):
        """TileLang's language with what ours has in addition: T.jit, and annotations, which are left out."""
        import tilelang

        module = types.ModuleType("tilelang.language")

        def missing(name):
            if name in ("jit", "autotune"):
                return getattr(tilelang, name)
            if name.startswith(OURS):
                return self.left_out(name)
            try:
                return getattr(self.language, name)
            except AttributeError:
                raise Rejected(f"TileLang {tilelang.__version__} has no T.{name}") from None

        module.__getattr__ = missing
        return module

    def left_out(self, name):
        def nothing(*arguments, **options):
            frame = sys._getframe(1)
            note = {"text": f"T.{name} is left out", "where": place(frame, self.files)}
            # Only annotations are statements; an eager kernel may be executed twice.
            if name.startswith("annotate_") and note not in self.notes:
                self.notes.append(note)
            # Above a function it is a decorator.
            return (lambda function: function) if frame.f_code.co_name == "<module>" else None

        return nothing

    def value(self, data):
        match data:
            case {"value": value}:
                return value
            case {"number": text}:
                return {"inf": math.inf, "-inf": -math.inf}.get(text, math.nan)
            case {"tuple": items}:
                return tuple(self.value(item) for item in items)
            case {"list": items}:
                return [self.value(item) for item in items]
            case {"dict": items}:
                return {self.value(key): self.value(value) for key, value in items}
            case {"size": name, "dtype": dtype}:
                if name not in self.sizes:
                    self.sizes[name] = self.language.dynamic(name, dtype)
                return self.sizes[name]
            case {"dtype": name}:
                return getattr(self.language, name, name)
            case {"language": name}:
                return getattr(self.module, name) if name else self.module
            case {"tilelang": True}:
                import tilelang

                # `tilelang.language` inside of a kernel is also completed.
                module = types.ModuleType("tilelang")
                module.language = self.module
                module.__getattr__ = lambda name: getattr(tilelang, name)
                return module
            case {"module": name, "member": member}:
                return getattr(importlib.import_module(name), member)
            case {"module": name}:
                return importlib.import_module(name)
            case {"function": index}:
                return self.function(index)
            case _:
                raise ValueError(f"{data!r} is not a value")

    def function(self, index):
        """The function that a text defines; the last one, if there are several."""
        if index in self.made:
            return self.made[index]
        text = self.texts[index]
        file = self.folder / f"text_{index}.py"
        lines = text["text"]
        # Indented texts stay indented: a line above makes them a block, and keeps the numbers of their lines known.
        first = next((line for line in lines.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
        unit = ("if True:\n" if first[:1].isspace() else "\n") + lines
        file.write_text(unit, encoding="utf-8")
        linecache.checkcache(str(file))
        namespace = {"__name__": f"text_{index}"}
        # A function may name itself, or one that names it.
        for name, data in text["names"].items():
            if not ("function" in data and data["function"] == index):
                namespace[name] = self.value(data)
        exec(compile(unit, str(file), "exec", flags=text["flags"], dont_inherit=True), namespace)
        self.made[index] = namespace[text["name"]]
        return self.made[index]


def place(frame, files):
    """The text and line of the innermost calling frame in a text: the kernel's line is one less than the file's."""
    while frame is not None:
        index = files.get(frame.f_code.co_filename)
        if index is not None:
            return [index, frame.f_lineno - 1]
        frame = frame.f_back
    return None


def place_of(error, files):
    """The innermost text and line of an error's traceback, or where the text is no Python."""
    if isinstance(error, SyntaxError) and error.filename in files:
        return [files[error.filename], (error.lineno or 2) - 1]
    if isinstance(error, Rejected) and error.where:
        return error.where
    where, step = None, error.__traceback__
    while step is not None:
        index = files.get(step.tb_frame.f_code.co_filename)
        if index is not None:
            where = [index, step.tb_lineno - 1]
        step = step.tb_next
    return where


def traced(names, request):
    """The kernel as TileLang's function."""
    import tilelang
    from tvm import tirx

    kernel = names.function(0)
    if isinstance(kernel, tirx.PrimFunc):
        return kernel
    arguments = {name: names.value(data) for name, data in request["arguments"].items()}
    # Of an autotuned kernel, the compiled one, whose arguments are known.
    kernel = getattr(kernel, "jit_impl", kernel)
    if not hasattr(kernel, "get_tir"):
        kernel = tilelang.jit(kernel)
    return kernel.get_tir(**arguments)


# Listings: text with the kernel lines of each line.


def mark_of(statement, files):
    """The text, the line, and whether it was recovered (1) or TileLang's own (0), of a statement; None without."""
    from tilelang.ir import get_stmt_span

    span = get_stmt_span(statement)
    index = files.get(span.source_name.name) if span is not None else None
    return None if index is None else (index, span.line - 1, int(span.column == RECOVERED))


def marks_in(function, files):
    """The marks of the statements of a function that have a kernel line."""
    from tvm import tirx

    marks = {}

    def visit(node):
        if isinstance(node, tirx.Stmt):
            mark = mark_of(node, files)
            if mark is not None:
                marks[node] = mark

    tirx.stmt_functor.post_order_visit(function.body, visit)
    return marks


def leaves(module, files):
    """The statements of a module that contain no others, in order, each with its mark and the buffers that it uses; and
    for each loop and branch, the leaves inside of it."""
    from tvm import tirx

    leaf_rows, inside = [], []

    def buffers(leaf):
        names = set()

        def visit(node):
            if isinstance(node, tirx.BufferLoad | tirx.BufferStore):
                names.add(str(node.buffer.name))

        tirx.stmt_functor.post_order_visit(leaf, visit)
        return names

    def visit(node):
        if isinstance(node, tirx.Evaluate | tirx.BufferStore):
            leaf_rows.append((node, mark_of(node, files), buffers(node)))
        elif isinstance(node, tirx.For | tirx.IfThenElse | tirx.While):
            # Post-order: its leaves are the last ones.
            count = 0

            def number(node):
                nonlocal count
                count += isinstance(node, tirx.Evaluate | tirx.BufferStore)

            tirx.stmt_functor.post_order_visit(node, number)
            inside.append((node, len(leaf_rows) - count, len(leaf_rows)))

    for _, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc):
            tirx.stmt_functor.post_order_visit(function.body, visit)
    return leaf_rows, inside


def loop_name(statement):
    """The name of a loop's variable; empty for branches."""
    from tvm import tirx

    return str(statement.loop_var.name) if isinstance(statement, tirx.For) else ""


def recover(before, after, files):
    """Give a line to the statements that a pass made without one: that of the only statement before it which used the
    same buffers, or that which stood in the same place; to loops, that of the loop with the same variable; to other
    loops and to branches, that of all statements inside."""
    from tilelang.ir import set_stmt_span
    from tvm.ir import SourceName, Span

    leaf_rows, inside = leaves(after, files)
    if all(mark is not None for _, mark, _ in leaf_rows):
        return
    former, around = leaves(before, files)
    marks_of, names = {}, set()
    for _, mark, used in former:
        names |= used
        if mark is not None:
            marks_of.setdefault(frozenset(used), set()).add(mark[:2])
    marks = []
    for _, mark, used in leaf_rows:
        same = marks_of.get(frozenset(used & names), ()) if used & names else ()
        marks.append(mark[:2] if mark is not None else next(iter(same)) if len(same) == 1 else None)
    # Runs of statements without a line, where one line was before that is lost now.
    old = [mark[:2] if mark is not None else ("bare", *sorted(used)) for _, mark, used in former]
    new = [mark or ("bare", *sorted(leaf[2])) for leaf, mark in zip(leaf_rows, marks, strict=True)]
    for kind, first, last, begin, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        lost = {key for key in old[first:last] if key[0] != "bare"}.difference(marks)
        if kind == "replace" and len(lost) == 1 and all(mark is None for mark in marks[begin:end]):
            marks[begin:end] = [*lost] * (end - begin)
    files_of = {index: file for file, index in files.items()}

    def give(statement, mark):
        line = mark[1] + 1
        set_stmt_span(statement, Span(SourceName(files_of[mark[0]]), line, line, RECOVERED, RECOVERED))

    for (statement, own_mark, _), mark in zip(leaf_rows, marks, strict=True):
        if own_mark is None and mark is not None:
            give(statement, mark)
    loops = {}
    for statement, _, _ in around:
        mark = mark_of(statement, files)
        if mark is not None:
            loops.setdefault(loop_name(statement), set()).add(mark[:2])
    for statement, begin, end in inside:
        if mark_of(statement, files) is not None:
            continue
        same = loops.get(loop_name(statement), ()) if loop_name(statement) else set(marks[begin:end])
        same = same or set(marks[begin:end])
        if len(same) == 1 and None not in same:
            give(statement, next(iter(same)))


class Listings:
    """The listings of an answer; equal ones are sent once."""

    def __init__(self, files):
        self.files, self.all, self.known = files, [], {}

    def add(self, lines):
        """The number of a listing of (text, places) lines, where a place is [text, line, recovered]."""
        key = json.dumps(lines)
        if key not in self.known:
            self.known[key] = len(self.all)
            self.all.append({"text": [line for line, _ in lines], "places": [origins for _, origins in lines]})
        return self.known[key]

    def of_module(self, module):
        from tvm import tirx

        marks = {}
        for _, function in module.functions_items():
            if isinstance(function, tirx.PrimFunc):
                marks.update(marks_in(function, self.files))
        notes = {node: f"{MARK}_{index}_{line}_{kind}" for node, (index, line, kind) in marks.items()}
        lines, waiting = [], []
        for line in module.script(show_meta=False, obj_to_annotate=notes).rstrip("\n").split("\n"):
            mark = COMMENT.search(line)
            if mark:
                mark_numbers = [int(number) for number in mark.groups()]
                waiting += [] if mark_numbers in waiting else [mark_numbers]
                line = line[: mark.start()]
                if not line.strip():
                    continue
            lines.append((line, waiting))
            waiting = []
        return self.add(lines)

    def of_source(self, source, marked):
        """The generated source, with the places from its marked twin where that is the same text."""
        plain, open_marks, lines = [], [], []
        for line in marked.split("\n"):
            begin = re.search(rf"\b{BEGIN}\((\d+), (\d+), (\d+)\);", line)
            if begin:
                open_marks.append([int(number) for number in begin.groups()])
            elif re.search(rf"\b{END}\(\);", line):
                open_marks.pop()
            else:
                plain.append(line)
                lines.append((line, open_marks[-1:]))
        if open_marks or plain != source.split("\n"):
            lines = [(line, []) for line in source.split("\n")]
        while lines and not lines[-1][0]:
            lines.pop()
        return self.add(lines)


def with_marks(module, files):
    """The module with calls that mark the beginning and the end of the statements with a kernel line."""
    import tvm
    from tvm import tirx

    kinds = (tirx.BufferStore, tirx.Evaluate, tirx.For, tirx.IfThenElse, tirx.While)

    def call(name, *numbers):
        return tirx.Evaluate(tirx.call_extern("int32", name, *numbers))

    def after(node):
        mark = mark_of(node, files) if isinstance(node, kinds) else None
        return None if mark is None else tirx.SeqStmt([call(BEGIN, *mark), node, call(END)])

    functions = {}
    for variable, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc):
            function = function.with_body(tirx.stmt_functor.ir_transform(function.body, None, after))
        functions[variable] = function
    return tvm.IRModule(functions, attrs=module.attrs)


# Passes.


class Recorder:
    """Records each pass: its name, stage, depth, time, and the modules before and after it."""

    def __init__(self, files):
        self.passes, self.open, self.legalized, self.files = [], [], False, files

    def begin(self, module, information):
        name = str(information.name).rpartition(".")[2]
        frame, stage = sys._getframe(1), ""
        caller = None
        while frame is not None:
            file, function = frame.f_code.co_filename, frame.f_code.co_name
            if caller is None and "tilelang" in file and "tvm" not in Path(file).parts[-4:] and file != __file__:
                caller = frame
            if function == "PreLowerSemanticCheck":
                stage = "Semantic checks"
            elif function in ("_prepare_device_codegen_mod", "device_codegen_without_compile"):
                stage = "Code generation"
            frame = frame.f_back
        if name == "pass_fn" and caller is not None:
            # Passes in Python all have this name: the line that calls one says which it is.
            said = re.search(r"(\w+)\(\w*\)\(\w+\)", linecache.getline(caller.f_code.co_filename, caller.f_lineno))
            name = said[1] if said else name
        record = {
            "name": name,
            "stage": stage or ("OptimizeForTarget" if self.legalized else "LowerAndLegalize"),
            "depth": len(self.open),
            "before": module,
            "after": None,
            "seconds": 0.0,
            "summary": "",
        }
        self.passes.append(record)
        self.open.append((record, time.perf_counter()))

    def end(self, module, information):
        record, start = self.open.pop()
        record["after"], record["seconds"] = module, time.perf_counter() - start
        if module is not None and not module.same_as(record["before"]):
            recover(record["before"], module, self.files)
        # Both pipelines end their first half with it.
        self.legalized = self.legalized or record["name"] == "HoistNonRestrictParams"


def summary(name):
    """The first sentence of a pass's own documentation."""
    import tilelang
    import tvm

    modules = [tilelang.transform, getattr(getattr(tilelang, "cuda", None), "transform", None), tvm.tirx.transform]
    modules += [getattr(tvm, "s_tir", None) and tvm.s_tir.transform, tilelang.analysis]
    for module in modules:
        text = getattr(getattr(module, name, None), "__doc__", None)
        if text:
            return re.split(r"(?<=\.)\s|\n\s*\n", " ".join(text.strip().split("\n\n")[0].split()))[0]
    return ""


def lower(request, folder):
    os.environ["TILELANG_ENABLE_IR_SPAN"] = "1"
    import tilelang
    import tvm
    from tilelang.backend.module import create_backend_context
    from tilelang.engine.lower import device_codegen_without_compile
    from tvm.ir.instrument import pass_instrument

    names = Names(request, folder)
    answer = {"versions": {"tilelang": tilelang.__version__, "tvm": tvm.__version__}, "passes": [], "listings": []}
    try:
        function = traced(names, request)
    except Exception as error:
        return {"error": told(error, names.files, "trace")}
    recorder = Recorder(names.files)

    @pass_instrument
    class Instrument:
        def run_before_pass(self, module, information):
            recorder.begin(module, information)

        def run_after_pass(self, module, information):
            recorder.end(module, information)

    target = tvm.target.Target(request["target"])
    failed = artifact = None
    start = time.perf_counter()
    try:
        with tvm.transform.PassContext(opt_level=3, instruments=[Instrument()]), target:
            artifact = tilelang.lower(function, target=target)
    except Exception as error:
        failed = error
    answer["seconds"] = time.perf_counter() - start
    listings = Listings(names.files)
    numbers = {}

    def number(module):
        # The same object is printed once.
        if module not in numbers:
            numbers[module] = listings.of_module(module)
        return numbers[module]

    for record in recorder.passes:
        before = number(record["before"])
        after = before if record["after"] is None else number(record["after"])
        answer["passes"].append(
            {
                **record,
                "before": before,
                "after": after,
                "failed": record["after"] is None,
                "summary": summary(record["name"]),
            }
        )
    if artifact is not None:
        source = artifact.kernel_source
        context = create_backend_context(target, None, "auto")
        with target:
            begun = time.perf_counter()
            again = device_codegen_without_compile(artifact.device_mod, context).inspect_source()
            seconds = time.perf_counter() - begun
            marked = ""
            if again == source:
                marked = device_codegen_without_compile(with_marks(artifact.device_mod, names.files), context)
                marked = marked.inspect_source()
        answer["source"] = listings.of_source(source, marked)
        answer["passes"].append(
            {
                "name": "codegen",
                "stage": "Code generation",
                "depth": 0,
                "seconds": seconds,
                "before": number(artifact.device_mod),
                "after": answer["source"],
                "failed": False,
                "summary": "Write the kernel's source text.",
            }
        )
    else:
        answer["error"] = told(failed, names.files, "pass")
    answer["listings"], answer["notes"] = listings.all, names.notes
    return answer


def told(error, files, kind):
    """An error as plain data."""
    text = str(error).strip() or type(error).__name__
    if not isinstance(error, Rejected):
        text = f"{type(error).__name__}: {text}"
    return {"kind": kind, "text": text[:2000], "where": place_of(error, files)}


def main():
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.readline())
    with tempfile.TemporaryDirectory(prefix="ttexplore-gpu-") as folder:
        answer = lower(request, Path(folder).resolve())
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
