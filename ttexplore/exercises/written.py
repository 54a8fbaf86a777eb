"""The exercises that ask for a whole kernel, or for its loop in C++: each is compared with NumPy at several sizes, and
on inputs that show what a kernel forgets, such as large scores, rows of zeros, and hidden numbers that are
the largest."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ttexplore.exercises.comparing import SEED, Array, check_shapes, lowered, run_and_compare

# From the inputs that are drawn to those of a run.
Change = Callable[[list[Array]], list[Array]]


@dataclass(frozen=True)
class WrittenKernel:
    """What a kernel is to compute. `axes` names the axes of each input by the sizes of the kernel, `inputs` the runs
    with each size by what they are called in a verdict, None for one with the inputs as they are drawn; `notebook` is
    the chapter that asks for it."""

    reference: Callable[..., Array]
    axes: dict[str, str]
    sizes: tuple[dict[str, int], ...]
    inputs: Mapping[str, Change | None] = field(default_factory=lambda: {"": None})
    notebook: str = "13_can_you_write_it"

    def __call__(self, kernel: Any) -> str:
        """Compare a kernel with NumPy for each size and each kind of inputs. Raises Wrong."""
        for size in self.sizes:
            case = ", ".join(f"{name}={value}" for name, value in size.items())
            mine = lowered(kernel, **size)
            check_shapes(
                mine, {name: tuple(size[axis] for axis in axes.split()) for name, axes in self.axes.items()}, case
            )
            for name, change in self.inputs.items():
                run_and_compare(mine, self.reference, f"{case}{name and f' and {name}'}", inputs=change)
        kinds = f", each with {', '.join(self.inputs)}" if any(self.inputs) else ""
        return f"The kernel gives the same as NumPy for {len(self.sizes)} sizes{kinds}."


def with_loop(text: str, loop: str) -> str:
    """The text of an emitted kernel with other lines in place of its loop along K."""
    lines = text.split("\n")
    first, head = next((number, line) for number, line in enumerate(lines) if "for (uint32_t k = 0;" in line)
    indent = head[: len(head) - len(head.lstrip())]
    last = lines.index(f"{indent}}}", first)
    lines[first : last + 1] = textwrap.indent(textwrap.dedent(loop).strip("\n"), indent).split("\n")
    return "\n".join(lines)


def _scaled(factor: float) -> Change:
    def scaled(arrays: list[Array]) -> list[Array]:
        return [array * np.asarray(factor, array.dtype) for array in arrays]

    return scaled


def _far_below_zero(arrays: list[Array]) -> list[Array]:
    return [-150 - np.abs(array) for array in arrays]


def _largest_is_hidden(arrays: list[Array]) -> list[Array]:
    """Scores of which those that a row does not see are far above the others."""
    (scores,) = arrays
    return [scores + np.triu(np.full_like(scores, 200), 1)]


def _with_a_row_of_zeros(arrays: list[Array]) -> list[Array]:
    rows, *weights = arrays
    return [np.where(np.arange(len(rows))[:, None] == 3, np.zeros_like(rows), rows), *weights]


def _rows_of_the_table(arrays: list[Array]) -> list[Array]:
    """Any rows, some of them twice, and the last one."""
    table, index, *stored = arrays
    chosen = np.random.default_rng(SEED).integers(0, len(table), index.shape)
    chosen[::5] = len(table) - 1
    return [table, chosen.astype(index.dtype), *stored]


def _transposed(A: Array) -> Array:
    return A.T


def _outer(a: Array, b: Array) -> Array:
    return np.outer(a, b)


def _gated(gate: Array, up: Array) -> Array:
    with np.errstate(over="ignore"):
        return gate / (1 + np.exp(-gate)) * up


def _column_sums(X: Array) -> Array:
    return np.asarray(X.sum(axis=0))


def _lower_triangle(A: Array) -> Array:
    return np.tril(A)


def _absolute_sums(A: Array) -> Array:
    return np.asarray(np.abs(A).sum(axis=1))


def softmax(X: Array) -> Array:
    powers: Array = np.exp(X - X.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def causal_softmax(S: Array) -> Array:
    return softmax(np.where(np.tri(*S.shape[-2:]) > 0, S, -np.inf))


def _log_sum_exp(X: Array) -> Array:
    largest: Array = X.max(axis=1)
    return largest + np.log(np.exp(X - largest[:, None]).sum(axis=1))


def _rms_norm(X: Array, weight: Array) -> Array:
    scale: Array = np.sqrt((X * X).mean(axis=1, keepdims=True) + 1e-5)
    return X / scale * weight


def _bias_relu(A: Array, B: Array, bias: Array) -> Array:
    return np.maximum(A @ B + bias, 0)


def _by_transposed(A: Array, B: Array) -> Array:
    return A @ B.T


def product(A: Array, B: Array) -> Array:
    return A @ B


def _rows(table: Array, index: Array) -> Array:
    return table[index.astype(np.int64)]


_LARGE: dict[str, Change | None] = {"numbers around 1": None, "numbers up to about 200": _scaled(60)}
_SCORES = {**_LARGE, "numbers below -150": _far_below_zero}
_PRODUCTS = ({"M": 64, "N": 64, "K": 64}, {"M": 96, "N": 160, "K": 96})

WRITTEN: dict[str, WrittenKernel] = {
    "transposed": WrittenKernel(
        _transposed, {"A": "M N"}, ({"M": 64, "N": 64}, {"M": 96, "N": 32}, {"M": 32, "N": 128})
    ),
    "outer": WrittenKernel(_outer, {"a": "M", "b": "N"}, ({"M": 64, "N": 64}, {"M": 96, "N": 192})),
    "triangle": WrittenKernel(_lower_triangle, {"A": "M M"}, ({"M": 64}, {"M": 160})),
    "long_rows": WrittenKernel(_absolute_sums, {"A": "M N"}, ({"M": 32, "N": 128}, {"M": 64, "N": 8192 + 96})),
    "softmax_rows": WrittenKernel(softmax, {"X": "M N"}, ({"M": 32, "N": 64}, {"M": 64, "N": 160}), _SCORES),
    "causal_rows": WrittenKernel(
        causal_softmax,
        {"S": "M M"},
        ({"M": 32}, {"M": 96}),
        {**_SCORES, "the largest numbers hidden": _largest_is_hidden},
    ),
    "scaled_rows": WrittenKernel(
        _rms_norm,
        {"X": "M N", "weight": "N"},
        ({"M": 32, "N": 64}, {"M": 64, "N": 160}),
        {**_LARGE, "a row of zeros": _with_a_row_of_zeros},
    ),
    "online_rows": WrittenKernel(_log_sum_exp, {"X": "M N"}, ({"M": 32, "N": 64}, {"M": 64, "N": 256}), _SCORES),
    "bias_relu": WrittenKernel(_bias_relu, {"A": "M K", "B": "K N", "bias": "N"}, _PRODUCTS),
    "by_transposed": WrittenKernel(_by_transposed, {"A": "M K", "B": "N K"}, _PRODUCTS),
    "batched": WrittenKernel(
        product,
        {"A": "batch M K", "B": "batch K N"},
        ({"batch": 1, **_PRODUCTS[0]}, {"batch": 3, **_PRODUCTS[1]}),
    ),
    "embedding": WrittenKernel(
        _rows,
        {"table": "words dim", "index": "tokens"},
        ({"words": 64, "dim": 64, "tokens": 32}, {"words": 40, "dim": 96, "tokens": 96}),
        {"any rows": _rows_of_the_table},
    ),
    "gated": WrittenKernel(
        _gated, {"gate": "M N", "up": "M N"}, ({"M": 32, "N": 64}, {"M": 96, "N": 160}), _LARGE, "14_from_cuda"
    ),
    "column_sums": WrittenKernel(
        _column_sums, {"X": "M N"}, ({"M": 64, "N": 64}, {"M": 2048 + 32, "N": 160}), notebook="14_from_cuda"
    ),
}
