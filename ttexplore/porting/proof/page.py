"""The proof of a port on a page."""

from __future__ import annotations

import itertools

import numpy as np

from ttexplore.porting.proof.results import PortProof, listed
from ttexplore.views.markup import escape

# How many rows and columns of outputs a page shows beside each other.
_SHOWN = 3


def proof_html(proof: PortProof) -> str:
    """A proof for a page: what was tried, and the first elements of both outputs where they are furthest apart."""
    rows = [
        f"<tr><td><code>{escape(tensor)}[{', '.join(map(str, index))}]</code></td>"
        f"<td>{float(proof.source[tensor][index]):.4g}</td><td>{float(proof.skeleton[tensor][index]):.4g}</td></tr>"
        for tensor in proof.source
        for index in _first(proof.source[tensor].shape)
    ]
    tried = "".join(f"<li>{escape(text)}</li>" for text in (*map(listed, proof.sizes), *proof.skipped))
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("element", "source", "skeleton"))
    return (
        f"<p>{escape(proof.summary[0].upper() + proof.summary[1:])}.</p><details><summary>the proof</summary>"
        f"<p>The source was launched with {escape(listed(proof.launch))}.</p><ul>{tried}</ul>"
        f'<table class="t facts" aria-label="outputs"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody>'
        "</table></details>"
    )


def _first(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The first places of an array."""
    return list(itertools.islice(np.ndindex(*(min(size, _SHOWN) for size in shape)), _SHOWN * _SHOWN))
