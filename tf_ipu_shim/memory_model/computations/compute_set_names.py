"""Generates names of compute sets as Poplar numbers them.

A name has three parts: scope and name of the TensorFlow op, the numbered XLA instruction (`add.1`), and PopLibs'
compute set (`Op/Add`). Fused instructions of the IPU's compiler (see `fusions`) and matmuls only have a number if there
are several. In the XLA of TensorFlow 1.15 to 2.5 that held for all instructions that this compiler adds, and for no
others.
"""

from __future__ import annotations

import json
from collections.abc import Hashable

from tf_ipu_shim import sdk
from tf_ipu_shim.memory_model.computations.matmul_passes import INFERENCE, UPDATE
from tf_ipu_shim.tf_private.eager import tf2

# Instructions whose first one has no number.
_UNNUMBERED = frozenset(
    "avg-pool avg-pool-grad dynamic-slice dynamic-update-slice fusion gelu-erf group-norm-grad group-norm-inference "
    "group-norm-statistics group-norm-training inter-ipu-copy max-pool max-pool-grad multi-slice multi-update-add "
    "negate relu relu-grad scaled-inplace scaled-inplace-xb-y sigmoid sigmoid-grad sort tanh-grad "
    "truncated-normal".split()
)
# Of XLA, in TensorFlow 2.6; added by the IPU's compiler, in releases before it.
_OF_XLA = frozenset("batch-norm-grad batch-norm-inference batch-norm-training convolution dot".split())
_ADDED = frozenset("conv-with-reverse multi-conv weights-transpose-chans-flip-x-y".split())
_TENSORFLOW_2_6_SINCE = (2, 6)  # SDK


def _unnumbered_instructions() -> frozenset[str]:
    """Returns the instructions whose first one has no number in the emulated release."""
    is_tensorflow_2_6 = sdk.current() >= _TENSORFLOW_2_6_SINCE and tf2.enabled()
    return _UNNUMBERED | (_OF_XLA if is_tensorflow_2_6 else _ADDED)


class ComputeSetNames:
    """Names the compute sets of a whole program.

    Matmuls of the same shapes and dtypes are one function in Poplar's program, called for each of them. It has the name
    of the first. The same holds for norms, fused updates, transposed kernels, calls of outlined functions, and ops in
    identical branches or loops. Each IPU has its own functions.

    Attributes:
        products: the op and the type of each matmul, see `product_types`.
        kernels: the variables that convolutions of the forward pass read unchanged.
        allocated: see `layouts.Layouts`.
    """

    def __init__(self) -> None:
        self.products: list[tuple[str, int]] = []
        self.kernels: set[str] = set()
        self.allocated: dict[Hashable, int] = {}
        self._unnumbered = _unnumbered_instructions()
        self._counts: dict[str, int] = {}
        self._shared: dict[Hashable, str] = {}
        self._groups: dict[Hashable, int] = {}

    def name(self, owner: str, below: str, same: Hashable = None, group: Hashable = None) -> str:
        """Returns the name of a compute set.

        Example:
            >>> names = ComputeSetNames()
            >>> [names.name("a", "add/Op/Add"), names.name("b", "add/Op/Add")]
            ['a/add.1/Op/Add', 'b/add.2/Op/Add']
        """
        if same is not None and same in self._shared:
            return self._shared[same]
        first, _, rest = below.partition("/")
        count = self.number_of(first, group)
        parts = [owner, f"{first}.{count}" if count else first, rest]
        full_name = "/".join(part for part in parts if part)
        if same is not None:
            self._shared[same] = full_name
        return full_name

    def number_of(self, first: str, group: Hashable = None) -> int:
        """Returns the number of an XLA instruction name; groups keep one number."""
        if not first:
            return 0
        known = None if group is None else self._groups.get(group)
        if known is not None:
            return known
        count = self._counts.get(first, 0 if first in self._unnumbered else 1)
        self._counts[first] = count + 1
        if group is not None:
            self._groups[group] = count
        return count

    def instruction_info(self) -> str:
        """JSON of the types of all matmuls, as in trace events; a program without updates infers."""
        trains = any(kind == UPDATE for _, kind in self.products)
        types = {f"{op}.{index}": kind if trains else INFERENCE for index, (op, kind) in enumerate(self.products, 1)}
        return json.dumps({"ml_types": types})
