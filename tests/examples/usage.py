# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false, reportUnusedVariable=false, reportCallIssue=false, reportArgumentType=false
"""UsageError."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import copy_block
from tests.corpus.deciding_variables import searched
from tests.corpus.launches import two_products
from tests.corpus.sums import split_k
from tests.faults.kernels import difference
from ttexplore import cli
from ttexplore.target import get_target


def u001() -> Any:
    return ttx.explore(difference(), target="wormhole_n15")


def u002() -> Any:
    return ttx.explore("kernels.py:gemm")


def u003() -> Any:
    """`ttexplore show kernels.py::gemm M=256 M=512`"""
    return cli._run(["show", "kernels.py::gemm", "M=256", "M=512"], as_json=False)


def u004(tmp_path: Path) -> Any:
    """A file with the line `from numpy import tiles`."""
    (tmp_path / "kernels.py").write_text("from numpy import tiles\n")
    return ttx.explore(f"{tmp_path}/kernels.py::gemm")


def u005() -> Any:
    return ttx.explore(difference()).run([np.ones((64, 128)), np.ones((128, 64))])


def u006() -> Any:
    return ttx.explore(difference(), options={"cb_depth": {"A_shred": 3}}).steps["C1"]


def u007() -> Any:
    return ttx.explore(difference(), options={"core_ranges": [((0, 0), (2, 2)), ((2, 2), (3, 3))]})


def u008() -> Any:
    return ttx.explore(difference(), options={"work_lists": {(0, 0): [0, 1]}})


def u009() -> Any:
    return ttx.explore(difference(), options={"policy": "z_order", "order": "row_major"})


def u010() -> Any:
    return ttx.explore(difference(), options={"stages": 0})


def u011() -> Any:
    return get_target("wormhole_n150", harvested=12)


def u012(tmp_path: Path) -> Any:
    """`exploration.export("out")` when `out` is a file."""
    (tmp_path / "out").touch()
    return ttx.explore(difference()).export(tmp_path / "out")


def u013() -> Any:
    """`ttexplore setup`"""
    return cli._run(["setup"], as_json=False)


def u014() -> Any:
    """`ttexplore run kernels.py::gemm --seed one`"""
    return cli._run(["run", "kernels.py::gemm", "--seed", "one"], as_json=False)


def u015() -> Any:
    return ttx.explore(T.annotate_tt_schedule(difference(), {"policy": "rect", "rect": (1, 0, 2, 2)}))


def u016() -> Any:
    return ttx.explore(difference(), options={"layouts": {"A": {"nd_shard": {"axes": [2], "grid": [2]}}}})


def u017(tmp_path: Path) -> Any:
    """`ttx.load("gemm.ttx").check()`"""
    return ttx.load(ttx.explore(difference()).save(tmp_path / "gemm.ttx")).check()


def u018(tmp_path: Path) -> Any:
    """`ttx.load("kernels.py")`"""
    (tmp_path / "kernels.py").touch()
    return ttx.load(tmp_path / "kernels.py")


def u019() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1):
            T.copy(A, B)
        with T.Kernel(1):
            T.copy(A, B)

    return ttx.explore(kernel).steps["B1"]


def u020() -> Any:
    """The text of one of several launches, edited: `ex.launches[0].edited(text)`"""
    return ttx.explore(two_products()).launches[0].edited("")


def u021() -> Any:
    return ttx.explore(difference(), options={"multicast": {"A": "row"}})


def u025() -> Any:
    """Four work items that update one block, on three cores."""
    return ttx.explore(split_k(32, 32, 128, 4), options={"cores": (3, 1), "partials": "noc"})


def u027() -> Any:
    return ttx.port("def kernel(x): return 2 * x")


def u022() -> Any:
    return ttx.explore(searched()).estimate()


def u023() -> Any:
    return ttx.sweep(difference, {"stages": [2, 3, 2]})


def u024() -> Any:
    return ttx.explore(copy_block(), options={"loaded_by": {"A": "writer"}})


def u026() -> Any:
    return ttx.validate(difference, reference=lambda a, *others: a[0])


def u028() -> Any:
    return ttx.explore(split_k()).export("out", dialect="tessera")


def u029(tmp_path: Path) -> Any:
    """A report without the times of processors: `ex.estimate().beside("ops_perf_results.csv")`"""
    (tmp_path / "ops_perf_results.csv").write_text("OP CODE,DEVICE KERNEL DURATION [ns]\n")
    return ttx.explore(difference()).estimate().beside(tmp_path / "ops_perf_results.csv")
