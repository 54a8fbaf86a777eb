"""Running a program at any step, with NumPy and without lowering it.

Each function is translated once to a Python generator. Before the split one function runs core by core; after it
three of them share each core, and every blocking operation that cannot go on yields to the others. Protocols are
checked as they run. Values are float32, rounded where they are stored to the format of the buffer, or int32. Indices
are Python's integers; from where circular buffers are queues on they are words, signed or not, as in the C++.

`entry` takes tensors in and out, `translation` makes generators of functions, and `scheduling` runs these, by core.
`machine` is what one core has: circular buffers (`queues`) and its compute engine (`engines`). `operations` says what
runs each operation of the table, which stands in `blocks`, `transfers` and `compute`, or for the kernel language in
`statements`.
"""

from __future__ import annotations

from ttexplore.ir.interpreter.deciding import check_places, valid_inputs
from ttexplore.ir.interpreter.entry import Interpretation, interpret, runs_alike
from ttexplore.ir.interpreter.tiles import tilize, untilize

__all__ = ["Interpretation", "check_places", "interpret", "runs_alike", "tilize", "untilize", "valid_inputs"]
