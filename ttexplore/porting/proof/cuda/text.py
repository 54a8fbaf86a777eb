"""What of a CUDA source is given to the C++ compiler: what its kernel reaches, token by token, and no more.

The text is foreign. Only definitions are taken over, only of tokens that are known here, and nothing by which a text
gets at something outside of itself: files, the compiler's own functions, assembler, names of other libraries. Comments
and the contents of strings stay behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ttexplore.porting.foreign.cuda import parsed
from ttexplore.porting.proof.cuda.tokens import checked_text, dynamic_array, tokens_of, without_comments
from ttexplore.porting.proof.running import CannotRun

SOURCE = "source"  # what the compiler calls the text

Node = Any

_NAMESPACES = {"std", "cuda", "nvcuda", "wmma", "cooperative_groups", "cg"}
_DEFINED_BY = (
    "struct_specifier class_specifier union_specifier enum_specifier type_definition alias_declaration declaration "
    "namespace_alias_definition using_declaration function_definition template_declaration preproc_def "
    "preproc_function_def static_assert_declaration"
)
_DEFINITIONS = frozenset(_DEFINED_BY.split())


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """A parameter of a template: its name, whether it is a type, and whether it has a default."""

    name: str
    is_type: bool
    is_optional: bool


@dataclass(frozen=True, slots=True)
class Translation:
    """A kernel and what it reaches, as C++; `name` is its qualified name, `parameters` those of the kernel in order,
    `lines` those of the last assignments to elements of each."""

    text: str
    name: str
    parameters: tuple[str, ...]
    template: tuple[TemplateParameter, ...]
    lines: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class _Definition:
    """A definition of the source outside of functions, and the names that it defines."""

    node: Node
    names: frozenset[str]
    line: int
    text: str
    namespaces: tuple[str, ...] = ()
    # A definition under a condition of the preprocessor is one only if that holds.
    is_conditional: bool = False


def translated(source: str, kernel_name: str) -> Translation:
    """Translate a kernel. Raises CannotRun for a construct that is not taken over, at its line."""
    definitions = list(_definitions(parsed(source), (), is_conditional=False))
    by_name: dict[str, list[_Definition]] = {}
    for definition in definitions:
        for name in definition.names:
            by_name.setdefault(name, []).append(definition)
    kernels = [d for d in by_name.get(kernel_name, []) if _is_kernel(d.node)]
    if len(kernels) != 1:
        count = len(kernels) or "no"
        raise CannotRun(f"the source has {count} definitions of the kernel {kernel_name} that can be read")
    reached = _reached(kernels[0], by_name)
    texts = [
        _as_cpp(definition, reached)
        for definition in definitions
        if definition.node.id in reached or definition.node.type == "using_declaration"
    ]
    function = _function(kernels[0].node)
    assert function is not None, "it is a kernel"
    parameters = tuple(_parameter_names(function, kernel_name))
    return Translation(
        "\n".join(texts),
        "::".join((*kernels[0].namespaces, kernel_name)),
        parameters,
        tuple(_template_parameters(kernels[0].node)),
        _store_lines(function, parameters),
    )


def _reached(kernel: _Definition, by_name: Mapping[str, list[_Definition]]) -> dict[int, _Definition]:
    """The definitions that a kernel reaches by any name in its text, by the numbers of their nodes."""
    reached, pending = {kernel.node.id: kernel}, [kernel]
    while pending:
        definition = pending.pop()
        if definition.is_conditional:
            raise CannotRun("a definition under a condition of the preprocessor", definition.line)
        for word in set(re.findall(r"[A-Za-z_]\w*", without_comments(definition.text))):
            for definition_of_word in by_name.get(word, ()):
                if definition_of_word.node.id not in reached:
                    reached[definition_of_word.node.id] = definition_of_word
                    pending.append(definition_of_word)
    return reached


def _definitions(parent: Node, namespaces: tuple[str, ...], *, is_conditional: bool) -> Iterator[_Definition]:
    for node in parent.named_children:
        match node.type:
            case "namespace_definition":
                name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
                named = namespaces if name is None else (*namespaces, *_text(name).split("::"))
                yield from _definitions(body, named, is_conditional=is_conditional)
            case "linkage_specification":
                body = node.child_by_field_name("body")
                inner = body if body.type == "declaration_list" else node
                yield from _definitions(inner, namespaces, is_conditional=is_conditional)
            case "preproc_ifdef" | "preproc_if" | "preproc_else" | "preproc_elif" | "preproc_elifdef":
                yield from _definitions(node, namespaces, is_conditional=is_conditional or not _is_guard(node))
            case _ if node.type in _DEFINITIONS:
                names = frozenset(filter(None, _names(node)))
                if names or node.type == "using_declaration":
                    text = _macro_text(node) if node.type.startswith("preproc") else _text(node)
                    yield _Definition(node, names, node.start_point[0] + 1, text, namespaces, is_conditional)
            case _:
                pass


def _is_guard(node: Node) -> bool:
    """Whether a condition is that of a file which may be included twice."""
    words = _text(node).split(None, 5)
    return words[0] == "#ifndef" and words[2:4] == ["#define", words[1]]


def _function(node: Node) -> Node | None:
    """The function that a definition defines, or None."""
    while node.type == "template_declaration":
        node = node.named_children[-1]
    return node if node.type == "function_definition" else None


def _words(node: Node) -> set[str]:
    """The words of a declaration before its declarator, such as ``__device__``."""
    return {_text(child) for child in node.children if child.type != "compound_statement"}


def _is_kernel(node: Node) -> bool:
    function = _function(node)
    return function is not None and "__global__" in _words(function)


def _names(node: Node) -> Iterator[str]:
    """The names that a definition defines for kernels; none for one of the host."""
    match node.type:
        case "template_declaration":
            yield from _names(node.named_children[-1])
        case "function_definition":
            words = _words(node)
            if words & {"__global__", "__device__", "constexpr"}:
                yield from _declared_name(node.child_by_field_name("declarator"))
        case "declaration":
            words = {_text(child) for child in node.children}
            constant = words & {"const", "constexpr", "__constant__", "__device__", "__global__", "__shared__"}
            for declarator in node.children_by_field_name("declarator") if constant else ():
                yield from _declared_name(declarator)
        case "alias_declaration" | "namespace_alias_definition" | "preproc_def" | "preproc_function_def":
            yield _text(node.child_by_field_name("name"))
        case "type_definition":
            for declarator in node.children_by_field_name("declarator"):
                yield from _declared_name(declarator)
            yield from _names(node.child_by_field_name("type"))
        case "struct_specifier" | "class_specifier" | "union_specifier" | "enum_specifier":
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            if name is not None:
                yield re.split(r"[<:]", _text(name))[0].strip()
            if node.type == "enum_specifier" and body is not None:
                yield from (
                    _text(child.child_by_field_name("name"))
                    for child in body.named_children
                    if child.type == "enumerator"
                )
        case _:
            pass


def _declared_name(node: Node | None) -> Iterator[str]:
    """The name that a declarator declares, without the scope that it is in."""
    while node is not None and node.type not in ("identifier", "type_identifier", "field_identifier"):
        if node.type in ("qualified_identifier", "template_function"):
            node = node.child_by_field_name("name")
        elif node.type in ("operator_name", "destructor_name"):
            # An operator has no name by which it is reached: it goes with the types of its parameters.
            yield from re.findall(r"[A-Za-z_]\w*", _text(node.parent.child_by_field_name("parameters")))
            return
        else:
            inner = node.child_by_field_name("declarator")
            node = inner if inner is not None else next(iter(node.named_children), None)
    if node is not None:
        yield _text(node)


def _macro_text(node: Node) -> str:
    """The whole line of a macro, with the lines that continue it."""
    root = node
    while root.parent is not None:
        root = root.parent
    rest = root.text[node.start_byte - root.start_byte :].decode("utf-8", "replace")
    match = re.match(r"(?:[^\n\\]|\\\n|\\.)*", rest)
    assert match is not None, "it matches the empty text"
    return match[0]


def _as_cpp(definition: _Definition, reached: Mapping[int, _Definition]) -> str:
    node, line = definition.node, definition.line
    head = f'\n#line {line} "{SOURCE}"\n'
    if node.type in ("preproc_def", "preproc_function_def"):
        if sum(bool(each.names & definition.names) for each in reached.values()) > 1:
            raise CannotRun(f"the macro {min(definition.names)}, which is defined twice", line)
        return head + _macro(definition)
    if node.type == "using_declaration":
        used = re.findall(r"\w+", definition.text)
        scopes = {scope for each in reached.values() for scope in each.namespaces}
        if next(word for word in used if word not in ("using", "namespace")) not in _NAMESPACES | scopes:
            return ""
    qualifier = ""
    if node.type == "declaration":
        words = {_text(child) for child in node.children}
        if any(_inner(each).type == "function_declarator" for each in node.children_by_field_name("declarator")):
            defined = {name for each in reached.values() if _function(each.node) for name in each.names}
            if not definition.names <= defined:
                return ""
        elif "extern" in words:
            # Each function has it for its own.
            tokens = tokens_of(definition.text.rstrip("; \n"), line)
            name, array = dynamic_array([token.text for token in tokens if not token.is_space], line)
            return f"{head}#define {name} {array}"
        else:
            qualifier = _qualifier(definition, words)
    end = ";" if node.type.endswith("_specifier") else ""
    before = "".join(f"namespace {name} {{ " for name in definition.namespaces)
    after = " }" * len(definition.namespaces)
    return f"{before}{head}{qualifier}{checked_text(definition.text, line)}{end}\n{after}"


def _qualifier(definition: _Definition, words: set[str]) -> str:
    """What a variable outside of functions gets, so that the compiler computes its value."""
    is_set = all(each.type == "init_declarator" for each in definition.node.children_by_field_name("declarator"))
    if "__constant__" in words and not is_set:
        raise CannotRun(f"the host sets the constants {', '.join(sorted(definition.names))}", definition.line)
    if "__device__" in words and not words & {"const", "constexpr"}:
        return "TTX_CONSTINIT "
    return "" if "constexpr" in words else "constexpr "


def _inner(declarator: Node) -> Node:
    while declarator.type in ("pointer_declarator", "reference_declarator"):
        declarator = declarator.child_by_field_name("declarator") or declarator.named_children[-1]
    return declarator


def _macro(definition: _Definition) -> str:
    match = re.fullmatch(r"#[ \t]*define[ \t]+([A-Za-z_]\w*)(\([\w\s,.]*\))?(.*)", definition.text, re.S)
    if match is None:
        raise CannotRun("a macro that is not understood", definition.line)
    name, parameters, body = match[1], match[2] or "", match[3]
    checked = checked_text(re.sub(r"\\[ \t]*\n", " ", body), definition.line)
    head = checked_text(name + parameters.replace("...", "").replace("\\\n", " "), definition.line)
    if "\n" in checked or "..." in parameters:
        raise CannotRun(f"the macro {name}", definition.line)
    return f'#line {definition.line} "{SOURCE}"\n#define {head} {checked}'


def _parameter_names(function: Node, kernel_name: str) -> Iterator[str]:
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    parameters = declarator.child_by_field_name("parameters").named_children if declarator is not None else ()
    for parameter in parameters:
        if parameter.type == "comment":
            continue
        declared = parameter.child_by_field_name("declarator")
        names = [*_declared_name(declared)] if declared is not None else []
        if not names:
            if _text(parameter) == "void":
                continue
            raise CannotRun(f"a parameter of {kernel_name} without a name", parameter.start_point[0] + 1)
        yield names[0]


def _store_lines(function: Node, parameters: tuple[str, ...]) -> dict[str, int]:
    """The lines of the last assignments to elements of parameters."""
    lines: dict[str, int] = {}
    pending = [function]
    while pending:
        node = pending.pop()
        if node.type == "assignment_expression":
            stored = _text(node.child_by_field_name("left"))
            for name in re.findall(r"[A-Za-z_]\w*", stored.split("[")[0]) if "[" in stored or "*" in stored else ():
                if name in parameters:
                    lines[name] = max(lines.get(name, 0), node.start_point[0] + 1)
        pending += node.named_children
    return lines


def _template_parameters(node: Node) -> Iterator[TemplateParameter]:
    if node.type != "template_declaration":
        return
    for parameter in node.child_by_field_name("parameters").named_children:
        match parameter.type:
            case "type_parameter_declaration" | "optional_type_parameter_declaration":
                name = next((child for child in parameter.named_children if child.type == "type_identifier"), None)
                if name is None:
                    raise CannotRun("a parameter of a template without a name", parameter.start_point[0] + 1)
                yield TemplateParameter(_text(name), is_type=True, is_optional=parameter.type.startswith("optional"))
            case "parameter_declaration" | "optional_parameter_declaration":
                names = [*_declared_name(parameter.child_by_field_name("declarator"))]
                if not names:
                    raise CannotRun("a parameter of a template without a name", parameter.start_point[0] + 1)
                yield TemplateParameter(names[0], is_type=False, is_optional=parameter.type.startswith("optional"))
            case "comment":
                pass
            case _:
                raise CannotRun(f"`{_text(parameter)}`", parameter.start_point[0] + 1)


def _text(node: Node) -> str:
    """The text of a node, empty for one that a text with mistakes lacks."""
    return "" if node is None else node.text.decode("utf-8", "replace")
