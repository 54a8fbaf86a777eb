"""How long a program takes on its target: a replay of what its processors do, and how long each of that takes.

`events` says what processors do, `program` reads it from the three kernels, `rates` says how long each event takes,
`replay` runs them against each other, and `estimate` holds the answer. `closed_form` is for choices before there are
kernels to replay.
"""
