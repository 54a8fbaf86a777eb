"""The source text of a kernel, as a user would write it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType

from tests.fuzz.description import (
    BLOCK_INDICES,
    Allocate,
    Bind,
    BindForm,
    Blocks,
    Branch,
    Call,
    Constant,
    Copy,
    Expression,
    Fill,
    Gemm,
    Kernel,
    Load,
    Loop,
    Named,
    Parallel,
    Position,
    Reduce,
    Region,
    Scalar,
    Schedule,
    Statement,
    Store,
    statements,
)
from tests.fuzz.meaning import OPERATIONS


def source_text(kernel: Kernel) -> str:
    """A Python file with the kernel in it."""
    names = BLOCK_INDICES[: len(kernel.grid)]
    bound = names[0] if len(names) == 1 else f"({', '.join(names)})"
    lines = [
        "import ttexplore.language as T",
        *(["", "", "def keep(value):", "    return lambda: value"] if _has_helper(kernel) else []),
        *(["", *(f'{size.name} = T.dynamic("{size.name}")' for size in kernel.sizes)] if kernel.sizes else []),
        "",
        "",
        "@T.prim_func",
        f"def {kernel.name}(",
        *(f"    {one.name}: T.Tensor({_shape(one.shape)}, {_quoted(one.dtype)})," for one in kernel.tensors),
        "):",
        f"    with T.Kernel({', '.join(map(extent_text, kernel.grid))}) as {bound}:",
        *(f"        {line}" for line in kernel.annotations),
    ]
    return "\n".join([*lines, *_body(kernel.body, 2)]) + "\n"


def _has_helper(kernel: Kernel) -> bool:
    nests = (one for one in statements(kernel.body) if isinstance(one, Parallel))
    return any(isinstance(one, Bind) and one.form == "helper" for nest in nests for one in nest.body)


def regression_text(kernel: Kernel, schedule: Schedule, name: str) -> str:
    """A regression test of the kernel and its schedule."""
    options = f", options={schedule.options!r}" if schedule.options else ""
    sizes = {size.name: size.value for size in kernel.sizes}
    later = {size.name: size.later for size in kernel.sizes}
    options += f", sizes={sizes!r}, later={later!r}" if sizes else ""
    options += ", few_buffers=True" if schedule.few_buffers else ""
    text = source_text(kernel).replace('"""', "'''")
    return "\n".join(
        [
            f"def test_{name}(tmp_path: Path) -> None:",
            f'    text = """\\\n{text}"""',
            f"    holds(text, tmp_path, target={_quoted(schedule.target)}{options})",
            "",
        ]
    )


def _quoted(text: str) -> str:
    return f'"{text}"'


def extent_text(extent: int | str | Blocks) -> str:
    if not isinstance(extent, Blocks):
        return str(extent)
    return extent.size if extent.block == 1 else f"T.ceildiv({extent.size}, {extent.block})"


def _shape(shape: tuple[int | str, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _body(body: tuple[Statement, ...], depth: int) -> list[str]:
    return [line for statement in body for line in _statement(statement, depth)]


def _statement(statement: Statement, depth: int) -> list[str]:
    indent = "    " * depth
    match statement:
        case Allocate(name, _, dtype, "var"):
            return [f"{indent}{name} = T.alloc_var({_quoted(dtype)})"]
        case Allocate(name, shape, dtype, scope):
            return [f"{indent}{name} = T.alloc_{scope}({_shape(shape)}, {_quoted(dtype)})"]
        case Scalar(name, value, _, indices):
            place = f"{name}[{', '.join(indices)}]" if indices else name
            return [f"{indent}{place} = {expression_text(value)}"]
        case Copy(source, target):
            return [f"{indent}T.copy({_region(source)}, {_region(target)})"]
        case Fill(buffer, value):
            return [f"{indent}T.clear({buffer})" if value == 0 else f"{indent}T.fill({buffer}, {value!r})"]
        case Gemm(a, b, c, transpose_a, transpose_b, clear):
            flags = {"transpose_A": transpose_a, "transpose_B": transpose_b, "clear_accum": clear}
            shown = "".join(f", {name}=True" for name, on in flags.items() if on)
            return [f"{indent}T.gemm({a}, {b}, {c}{shown})"]
        case Reduce(kind, source, target, dim, clear):
            kept = "" if clear else ", clear=False"
            return [f"{indent}T.reduce_{kind}({source}, {target}, dim={dim}{kept})"]
        case Loop(variable, extent, _, body, in_python=True):
            inner = _body(body, depth + 1)
            return [
                f"{indent}{variable} = -1",
                f"{indent}for turn_of_{variable} in [*range({extent_text(extent)})]:",
                f"{indent}    {variable} += 1",
                *inner,
            ]
        case Loop(variable, extent, stages, body):
            turns = _bounds(statement)
            how = f"T.serial({turns})" if stages is None else f"T.Pipelined({turns}, num_stages={stages})"
            head = [f"{indent}for {variable} in {how}:"]
            if not statement.test:
                return [*head, *_body(body, depth + 1)]
            return [*head, f"{indent}    if {statement.test}:", *_body(body, depth + 2)]
        case Branch(test, body, other):
            lines = [f"{indent}if {test}:", *(_body(body, depth + 1) or [f"{indent}    pass"])]
            return [*lines, f"{indent}else:", *_body(other, depth + 1)] if other else lines
        case Parallel(variables, extents, body):
            head = f"{indent}for {', '.join(variables)} in T.Parallel({', '.join(map(str, extents))}):"
            inner = "    " * (depth + 1)
            return [head, *(f"{inner}{line}" for line in _assignments(body, ", ".join(variables)))]


def _bounds(loop: Loop) -> str:
    end = f"T.min({loop.own}, {extent_text(loop.extent)})" if loop.own else extent_text(loop.extent)
    if loop.shift:
        first = f"{loop.shift} + {loop.first}" if loop.first else loop.shift
        return f"{first}, {loop.shift} + {end}"
    return f"{loop.first}, {end}" if loop.first else end


def _assignments(body: tuple[Bind | Store, ...], place: str) -> list[str]:
    """The statements of a T.Parallel. `forms` are those of the names so far: they say how a name is read."""
    lines: list[str] = []
    forms: dict[str, BindForm] = {}
    rest = list(body)
    while rest:
        pairs = _together(rest)
        if pairs:
            targets = ", ".join(f"{store.buffer}[{place}]" for _, store in pairs)
            lines.append(f"{targets} = {', '.join(expression_text(bind.value, forms) for bind, _ in pairs)}")
            rest = rest[2 * len(pairs) :]
            continue
        one = rest.pop(0)
        value = expression_text(one.value, forms)
        if isinstance(one, Store):
            store = f"{one.buffer}[{', '.join(one.indices) or place}] = "
            if one.test is None:
                lines.append(f"{store}{value}")
                continue
            lines += [f"if {expression_text(one.test, forms)}:", f"    {store}{value}"]
            if one.other is not None:
                lines += ["else:", f"    {store}{expression_text(one.other, forms)}"]
            continue
        lines += [line.format(name=one.name, value=value) for line in _KEPT[one.form]]
        forms[one.name] = one.form
    return lines


def _together(body: list[Bind | Store]) -> list[tuple[Bind, Store]]:
    """The values and stores that the body begins with and that are one assignment: nothing else reads their names."""
    binds = list(itertools.takewhile(lambda one: isinstance(one, Bind) and one.form == "together", body))
    stores = body[len(binds) : 2 * len(binds)]
    names = [Named(one.name) for one in binds if isinstance(one, Bind)]
    if len(binds) < 2 or [one.value for one in stores if isinstance(one, Store)] != names:
        return []
    return [
        (bind, store)
        for bind, store in zip(binds, stores, strict=True)
        if isinstance(bind, Bind) and isinstance(store, Store)
    ]


# How each form keeps a value, and how its name is read.
_KEPT: dict[BindForm, list[str]] = {
    "name": ["{name} = {value}"],
    "together": ["{name} = {value}"],
    "list": ["{name} = [{value}]"],
    "tuple": ["first_of_{name}, *{name} = (0, {value})"],
    "dict": ['{name} = {{"x": {value}}}'],
    "walrus": ["if ({name} := {value}) is not None and True:", "    pass"],
    "default": ["def {name}(value={value}):", "    return value"],
    "helper": ["{name} = keep({value})"],
}
_READ: dict[BindForm, str] = {"list": "{}[0]", "tuple": "{}[0]", "dict": '{}["x"]', "default": "{}()", "helper": "{}()"}


def _region(region: Region) -> str:
    match region.form:
        case "whole":
            return region.name
        case "index":
            return f"{region.name}[{', '.join(region.starts)}]"
        case "slice":
            parts = [
                start if extent == 1 and axis < len(region.extents) - 2 else f"{start} : {start} + {extent}"
                for axis, (start, extent) in enumerate(zip(region.starts, region.extents, strict=True))
            ]
            return f"{region.name}[{', '.join(parts)}]"


def expression_text(expression: Expression, forms: Mapping[str, BindForm] = MappingProxyType({})) -> str:
    """The expression as Python; `forms` say how names are read."""
    match expression:
        case Load(buffer, indices):
            return f"{buffer}[{', '.join(indices)}]"
        case Constant(value):
            return repr(value) if value >= 0 else f"({value!r})"
        case Position(text):
            return f"({text})"
        case Named(name):
            return _READ.get(forms.get(name, "name"), "{}").format(name)
        case Call(name, arguments):
            return OPERATIONS[name].text.format(*(expression_text(one, forms) for one in arguments))
