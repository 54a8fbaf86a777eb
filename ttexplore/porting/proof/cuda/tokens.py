"""The tokens of a foreign text that the C++ compiler gets, and those that it does not.

Nothing by which a text gets at something outside of itself is among them: files, the compiler's own functions,
assembler, names of other libraries. Comments and the contents of strings stay behind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ttexplore.porting.proof.running import CannotRun

INCLUDE_FOLDER = Path(__file__).parent / "include"

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<string>"(?:[^"\\\n]|\\[^\n])*")
    | (?P<character>'(?:[^'\\\n]|\\[0abfnrtv'"\\])')
    | (?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<pragma>\#[ ]*pragma[ ]+unroll\b[^\n\\]*)
    | (?P<mark><[:%]|[%:]>|%:|\?\?|[-+*/%^&|!~=<>?:;,.()\[\]{}\#])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_DIGRAPHS = frozenset(("<:", "<%", ":>", "%>", "%:", "??"))
# What no kernel needs, or what reaches out of it.
_REFUSED = (
    "asm new delete try catch throw typeid dynamic_cast thread_local export import module co_await co_yield co_return "
    "friend typeof"
)
# Names that start like this are the compiler's or the runner's; those that the header has are CUDA's.
_RESERVED = re.compile(r"_[_A-Z]|ttx", re.ASCII)
# What the header makes out of parts of names.
_PASTED = re.compile(
    r"__(?:float|double)2(?:int|uint|ll)_r[nzdu]|__shfl(?:_up|_down|_xor)?(?:_sync)?|__(?:low|high)2half"
)
_OF_HEADER_ALONE = re.compile(r"__builtin\w*|__attribute__|__APPLE__|__VA_ARGS__|__int128|__clang__|__constinit")
_REFUSED_WORDS = frozenset(_REFUSED.split())


def without_comments(text: str) -> str:
    """The text without its comments and strings."""
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', " ", text, flags=re.S)


@dataclass(frozen=True, slots=True)
class Token:
    """A token that is taken over, or the space between two, and its line in the source."""

    text: str
    line: int
    is_space: bool = False


def checked_text(text: str, line: int) -> str:
    """The text, of known tokens only, each on its line. Raises CannotRun for others."""
    tokens = _with_dynamic_arrays(tokens_of(text, line))
    # __shared__ is static here.
    words = [(index, token.text) for index, token in enumerate(tokens) if not token.is_space]
    doubled = {
        index
        for position, (index, word) in enumerate(words)
        if word == "static" and "__shared__" in [near for _, near in words[max(position - 1, 0) : position + 2]]
    }
    return "".join(token.text for index, token in enumerate(tokens) if index not in doubled)


def tokens_of(text: str, line: int) -> list[Token]:
    tokens: list[Token] = []
    closing: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise CannotRun(f"`{text[position]}`", line)
        token, kind = match[0], match.lastgroup
        if kind == "string" and tokens and not tokens[-1].is_space and re.match(r"\w", tokens[-1].text[-1]):
            raise CannotRun(f"a string after `{tokens[-1].text}`", line)
        if kind == "word":
            _check_word(token, line)
            if tokens and tokens[-1].text.startswith(('"', "'")):
                raise CannotRun(f"`{token}` after a string", line)
        if kind == "mark":
            _check_mark(token, line, closing)
        tokens.append(Token(_clean(kind, token, line), line, kind in ("space", "comment", "pragma")))
        line += token.count("\n")
        position = match.end()
    if closing:
        raise CannotRun(f"a missing `{closing[-1]}`", line)
    return tokens


def _check_word(word: str, line: int) -> None:
    if word in _REFUSED_WORDS or (_RESERVED.match(word) and not (word in names_of_header() or _PASTED.fullmatch(word))):
        raise CannotRun(f"`{word}`", line)


def _check_mark(mark: str, line: int, closing: list[str]) -> None:
    if mark in _DIGRAPHS or mark == "#":
        raise CannotRun(f"`{mark}`", line)
    if mark in _CLOSED_BY:
        closing.append(_CLOSED_BY[mark])
    elif mark in _CLOSED_BY.values() and (not closing or closing.pop() != mark):
        raise CannotRun(f"`{mark}`, which closes nothing", line)


_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


def _clean(kind: str | None, token: str, line: int) -> str:
    """A token as the compiler gets it."""
    match kind:
        case "comment" | "pragma":
            if token.endswith("\\"):
                raise CannotRun("a comment that continues on the next line", line)
            return " " + "\n" * token.count("\n")
        case "string":
            return '""'
        case _:
            return token


@cache
def names_of_header() -> frozenset[str]:
    """The names of CUDA that the header has."""
    text = (INCLUDE_FOLDER / "cuda.h").read_text(encoding="utf-8")
    names = re.findall(r"(?<!\w)_[_A-Z]\w*", without_comments(text))
    return frozenset(name for name in names if not _OF_HEADER_ALONE.fullmatch(name))


def _with_dynamic_arrays(tokens: list[Token]) -> list[Token]:
    """The tokens, with a reference to the dynamic memory of the block for each array that is ``extern __shared__``."""
    result: list[Token] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.text != "extern":
            result.append(token)
            position += 1
            continue
        end = next((index for index in range(position, len(tokens)) if tokens[index].text == ";"), len(tokens))
        name, kind = dynamic_array([token.text for token in tokens[position:end] if not token.is_space], token.line)
        lines = sum(token.text.count("\n") for token in tokens[position:end])
        result.append(Token(f"auto& {name} = {kind}" + "\n" * lines, token.line))
        position = end
    return result


def dynamic_array(words: list[str], line: int) -> tuple[str, str]:
    """The name of an array of dynamic shared memory, and what refers to that memory with its type."""
    text = " ".join(words)
    text = re.sub(r"\b(__align__|alignas|__attribute__) \( [^()]*(\( [^()]*\) )*\)", "", text)
    match = re.fullmatch(r"(?=.*\b__shared__\b)(?=.*\bextern\b)([\w: ]*?) (\w+) \[ \]((?: \[[^\[\]]*\])*) ?", text)
    if match is None:
        raise CannotRun("`extern` without an array of __shared__ memory", line)
    kind = " ".join(word for word in match[1].split() if word not in ("extern", "__shared__"))
    return match[2], f"ttx_dynamic<{kind}[]{match[3]}>()"
