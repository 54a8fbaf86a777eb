"""Searching over schedules: many lowerings of one kernel, each verified and estimated, the best of them proven.

`space` says which lowerings there are, `shipping` how a kernel reaches another process, `evaluate` what happens to one
lowering there, `workers` where that runs, `kept` what earlier searches found, `sweep` does the search, and `result`
holds what it found.
"""
