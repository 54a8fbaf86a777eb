"""What ttexplore uses of TVM (apache-tvm 0.27.0.post1), which has no types of its own.

`tests/ir/test_stubs.py` holds these files against the installed TVM: each name, each field and each parameter exists.
"""

from tvm import ir as ir
from tvm import sym as sym
from tvm import tirx as tirx
from tvm.ir import IRModule as IRModule
